// Fuseboard: what Python itself does in a graph, and the evaluation of call expressions. GPL-3.0-or-later. Private to model/exec.
//
// Sizes, tuples and numbers flow through operator.*, builtins.*, math.* and a few Tensor methods that are no ATen operators;
// these are the only functions written out in C++.
#pragma once

#include <functional>
#include <unordered_map>

#include "model/exec/dispatch.h"
#include "model/exec/expression.h"
#include "model/ir/graph.h"

namespace fb
{

using PythonFunction = Arg (*)(const ArgList &args, const Kwargs &kwargs);

// By qualified name ("operator.add", "builtins.len", "math.sqrt", "torch._assert"); helpers of call expressions by their bare
// name.
PythonFunction pythonFunction(std::string_view name);

// nn.MultiheadAttention.forward: query, key, value, embed_dim, num_heads and the rest by name.
Arg multiHeadAttention(const ArgList &args, const Kwargs &kwargs);

// One evaluation of a call expression.
struct Evaluation {
    std::function<std::optional<Arg>(std::string_view name)> lookup;
    std::function<Arg(Arg input)> children; // `children(x)`: the module's children, one after the other
    std::unordered_map<const Expr *, c10::IValue> *kept = nullptr; // what `once(...)` keeps: packed weights

    Operand evaluate(const Expr &e) const;
    Arg value(const Expr &e) const;
};

} // namespace fb
