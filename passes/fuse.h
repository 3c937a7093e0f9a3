// Fuseboard: fold BatchNorm and fuse activations, as torch.ao.quantization.fuse_fx does where it is right. GPL-3.0-or-later.
//
// Conv + BN (+ ReLU), Conv + ReLU, Linear + ReLU, Linear + BN1d (+ ReLU). The result has the modules that fuse_fx makes:
// a folded conv stays `torch.nn.modules.conv.Conv2d` (with a bias) and keeps the conv node's name and path; with a ReLU it
// becomes `torch.ao.nn.intrinsic.modules.fused.ConvReLU2d` whose children `0` (the conv) and `1` (the ReLU) follow it in the
// module table; likewise LinearReLU, ConvReLU1d, ConvReLU3d. A conv or BN that is shared, used by others or in the way otherwise
// stays, and the report says why.
#pragma once

#include <set>

#include "passes/pass.h"

namespace fb
{

Result<PassReport> fuseAll(GraphModule &gm);
// Only chains all of whose nodes are in `selection`; an error when there is none, with the reason of the nearest miss.
Result<PassReport> fuseSelection(GraphModule &gm, const std::set<NodeId> &selection);

} // namespace fb
