// Fuseboard: hashes that go with `==`. GPL-3.0-or-later.
//
// Values that are equal have equal hashes, in every process and on every run: nothing of it depends on addresses or ids.
#pragma once

#include <cstdint>

#include "model/ir/module.h"

namespace fb
{

uint64_t hashOf(const Arg &arg); // of node references only that they are some
uint64_t hashOf(const Graph &graph);
uint64_t hashOf(const GraphModule &gm); // tensors by dtype, sizes, quantization and bytes

} // namespace fb
