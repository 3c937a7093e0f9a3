// Fuseboard: the call expressions of resources/ops.json. GPL-3.0-or-later. Private to model/exec.
//
// How a Python-level function or module maps onto ATen is one expression in Python's own syntax:
//     aten::relu_(input) if inplace else aten::relu(input)
// Names are parameters, module tensors or facts; `ns::op[.overload]` calls an operator by schema, other calls are Python
// functions or the few helpers of calls.cpp. Parsed once, evaluated for each node.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/ir/arg.h"
#include "model/ir/result.h"

namespace fb
{

struct Expr {
    enum class Kind { Literal, Name, Call, Sequence, Conditional, Binary, Not } kind = Kind::Literal;
    Arg literal{}; // Literal; Sequence: see `tuple`
    std::string text{}; // Name, callee or binary operator
    std::vector<Expr> items{}; // operands, or the arguments of a call
    std::vector<std::string> keywords{}; // of a call, beside `items`: "" positional, "*" spread
    bool tuple = false;
};

Result<std::shared_ptr<const Expr>> parseExpression(std::string_view text);

} // namespace fb
