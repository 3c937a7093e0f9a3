// Fuseboard: one argument as text, the JSON that it has in graph.json. GPL-3.0-or-later.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "model/ir/arg.h"
#include "model/ir/result.h"

namespace fb
{

// The caller names the tensors; an argument with nodes has no such text. Reading takes text from anybody.
std::string argumentText(const Arg &a, const std::function<std::string(const Tensor &)> &name);
Result<Arg> argumentFromText(std::string_view text, const std::function<Result<Tensor>(const std::string &)> &named);

} // namespace fb
