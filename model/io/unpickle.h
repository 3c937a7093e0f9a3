// Fuseboard: tensors out of what torch.save wrote, without running anything. Private to model/io. GPL-3.0-or-later.
//
// A pickle is a program for a stack machine that may call any Python function. This reader knows the opcodes that make plain
// values and the few functions that rebuild tensors (torch/_weights_only_unpickler.py has the same list); at any other name it
// stops with a sentence that says which.
#pragma once

#include "model/io/files.h"
#include "model/io/fxt.h"

namespace fb::io
{

// The tensors of a saved dict[str, Tensor], in its order; null where a value is no tensor. `archive`: torch.save's zip form.
NamedTensors readTorchDict(const Held &archive);

} // namespace fb::io
