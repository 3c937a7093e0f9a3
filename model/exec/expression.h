// Fuseboard: the call expressions of resources/ops.json. GPL-3.0-or-later. Private to model/exec.
//
// How a Python-level function or module maps onto ATen is an expression in Python's own syntax:
//     aten::relu_(input) if inplace else aten::relu(input)
// or, where that takes several steps, a body of assignments, `if`, `for` and `return` by indentation. Names are parameters,
// module tensors, facts (a child's with its path: `self_attn.num_heads`) or what the body assigned; `ns::op[.overload]` calls an
// operator by schema, `F.pad` or `torch.norm` another function, `x.view` a method, `norm1` a child module; other calls are Python
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
    enum class Kind {
        Literal,
        Name,
        Call,
        Sequence,
        Conditional,
        Binary,
        Not,
        Block, // statements: its value is what `return` or the last one gives
        Assign, // keywords = items[0]
        If, // items: condition, block, block
        For, // keywords in items[0]: items[1]
        Return
    } kind
        = Kind::Literal;
    Arg literal{}; // Literal; Sequence: see `tuple`
    std::string text{}; // Name, callee or binary operator
    std::vector<Expr> items{}; // operands, statements, or the arguments of a call
    std::vector<std::string> keywords{}; // of a call, beside `items`: "" positional, "*" spread
    bool tuple = false;
};

Result<std::shared_ptr<const Expr>> parseExpression(std::string_view text);

} // namespace fb
