// Fuseboard: a tensor constant as text. Private to model/text. GPL-3.0-or-later.
#pragma once

#include <string>

#include "model/ir/tensor.h"

namespace fb
{

// repr() of a dense tensor, as torch/_tensor_str.py prints it: four digits, one width for all, long ones shortened.
std::string tensorRepr(const TensorData &t);

// Nested lists from which Python gets exactly these elements back, but for the dtype ("[0.1, float('inf')]"); `number` spells
// what is no plain literal.
std::string tensorLiteral(const TensorData &t, const std::string &floatName);

} // namespace fb
