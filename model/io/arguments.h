// Fuseboard: one argument as JSON, as fxt-format.md has it. Private to model/io. GPL-3.0-or-later.
#pragma once

#include <functional>

#include "model/io/json.h"
#include "model/ir/arg.h"

namespace fb::io
{

// What the names in an argument stand for; both throw a FormatError for a name that stands for nothing.
struct ArgumentNames {
    std::function<NodeId(const std::string &name)> node;
    std::function<Tensor(const std::string &name)> tensor;
};
Arg readArgument(const Json &j, const ArgumentNames &names, const std::string &what); // throws FormatError

struct ArgumentNaming {
    std::function<std::string(NodeId node)> node;
    std::function<std::string(const Tensor &tensor)> tensor;
};
Json writeArgument(const Arg &a, const ArgumentNaming &naming);

} // namespace fb::io
