// Fuseboard: what the dispatcher knows about an operator's arguments. GPL-3.0-or-later.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/ir/arg.h"

namespace fb
{

struct SchemaParameter {
    std::string name; // "self", "stride"
    std::optional<Arg> fallback; // its default; none: required
};

// Of one overload, "aten::conv2d.default" or "aten::softmax.int", in the schema's order; empty where there is no such operator.
std::vector<SchemaParameter> schemaParameters(const std::string &name);

} // namespace fb
