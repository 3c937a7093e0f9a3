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

// The argument at a place, which must be there; the one at a place or of a name, or `fallback`.
const Arg &nth(const ArgList &args, size_t i);
Arg named(const ArgList &args, const Kwargs &kwargs, size_t i, std::string_view name, Arg fallback = {});

// The same for math.* and the builtins that only know numbers and sequences (numbers.cpp).
PythonFunction numberFunction(std::string_view name);
ArgList itemsOf(const Arg &a); // of anything that Python iterates over
bool truth(const Arg &a);
bool less(const Arg &a, const Arg &b);

// nn.MultiheadAttention.forward: query, key, value, embed_dim, num_heads and the rest by name.
Arg multiHeadAttention(const ArgList &args, const Kwargs &kwargs);

// A function as Node::target names it, or a method, as the interpreter would run it.
Arg callFunction(const std::string &target, const ArgList &args, const Kwargs &kwargs);
Arg callMethod(const std::string &name, const ArgList &args, const Kwargs &kwargs);

// One evaluation of a call expression.
struct ExpressionRun {
    std::function<std::optional<Arg>(std::string_view name)> lookup;
    // Calls the child module of that path; nothing where there is none.
    std::function<std::optional<Arg>(const std::string &path, const ArgList &args, const Kwargs &kwargs)> child;
    std::function<std::vector<std::string>(const std::string &path)> childrenOf; // paths
    std::unordered_map<const Expr *, c10::IValue> *kept = nullptr; // what `once(...)` keeps: packed weights

    Operand evaluate(const Expr &e);
    Arg value(const Expr &e);

private:
    Arg name(const std::string &text);
    Operand call(const Expr &e);
    std::optional<Operand> run(const Expr &statement, bool last); // of `return`, or of the last statement
    void assign(const std::vector<std::string> &names, Arg value);
    std::unordered_map<std::string, Arg> locals_;
};

} // namespace fb
