// Fuseboard: reading and writing trace archives and arrays. GPL-3.0-or-later.
//
// The `.fxt` format is described in fxt-format.md beside this file. Nothing here runs code from a file; every size and
// offset is checked against the file before it is used, so a hostile file gives one sentence and no allocation it asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/ir/module.h"

namespace fb
{

// Tensors are mapped, not read: they stay valid while a handle lives, even when the file is replaced by rename.
Result<GraphModule> readFxt(const std::string &path);
Status writeFxt(const GraphModule &gm, const std::string &path); // temporary file beside, then rename

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

Result<NamedTensors> readSafetensors(const std::string &path);
Status writeSafetensors(const NamedTensors &tensors, const std::string &path);
Result<Tensor> readNpy(const std::string &path);
Status writeNpy(const Tensor &t, const std::string &path);
Result<NamedTensors> readNpz(const std::string &path); // stored and deflated members
Status writeNpz(const NamedTensors &tensors, const std::string &path);
// By extension: .npy gives one unnamed tensor, .npz and .safetensors their members.
Result<NamedTensors> readArrays(const std::string &path);
Status writeArrays(const NamedTensors &tensors, const std::string &path);

// torch.save's zip form of a dict[str, Tensor] that torch.load(..., weights_only=True) reads; quantized tensors included.
Status writeTorchWeights(const NamedTensors &tensors, const std::string &path);

// Writes text or bytes to a temporary file beside `path` and renames it.
Status writeFileAtomically(const std::string &path, std::string_view bytes);
Result<std::string> readFile(const std::string &path);
uint32_t crc32(std::string_view bytes); // as zip has it

} // namespace fb
