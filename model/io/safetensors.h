// Fuseboard: the safetensors layout inside other files. Private to model/io. GPL-3.0-or-later.
#pragma once

#include "model/io/files.h"
#include "model/io/fxt.h"

namespace fb::io
{

// Views into `data`, which `owner` keeps alive; a tensor whose data is not aligned for its type is copied.
NamedTensors parseSafetensors(Bytes data, const std::shared_ptr<const void> &owner);

// The header with its length in front, and for each tensor its place in the list that it is to be written in: wide
// elements first, so that each tensor is aligned for its own type. Quantized tensors are stored as their integers.
struct SafetensorsPlan {
    std::string header;
    std::vector<size_t> order;
};
SafetensorsPlan planSafetensors(const NamedTensors &tensors);

// All the pieces in order; `holders` keeps copies of tensors that are not contiguous.
std::vector<Bytes> safetensorsPieces(const NamedTensors &tensors, const SafetensorsPlan &plan, std::vector<std::string> &holders);

} // namespace fb::io
