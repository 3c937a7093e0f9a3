// Fuseboard: flat ATen graphs as the modules that they came from. GPL-3.0-or-later.
//
// An exported program calls ATen operators on lifted weights, and each node says which module's forward made it. Where that
// module is one of torch.nn and the operator is what its forward is, the node becomes a call_module again, with the module's
// facts from the operator's arguments: conv, bn and linear are then the same semantic kinds as in a symbolic trace, with the same
// names, so everything that works on those works. Other nodes become the functions that Python code calls (operator.add,
// torch.flatten), where these take the same arguments. What is left stays as it is, in its module, and runs as before. No value
// changes.
#pragma once

#include "passes/pass.h"

namespace fb
{

Result<PassReport> raiseModules(GraphModule &gm);

// The edit of EDITS.json that does it.
inline constexpr const char *kRegroupEdit = R"({"op": "regroup"})";

// Whether there is anything to raise: nodes that call ATen operators.
bool isFlat(const GraphModule &gm);

} // namespace fb
