// Fuseboard: calling any operator by its schema. GPL-3.0-or-later. Private to model/exec.
//
// Chooses the overload as Python's argument parser does: positional and keyword arguments are matched against each schema, the
// one that needs the least conversion wins, and the call is boxed. No operator needs code of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/exec/aten_bridge.h"

namespace fb
{

// An argument of a call: a value of ours, or an object that only operators understand (packed weights).
struct Operand {
    Arg arg;
    c10::IValue object; // used when not None
};
using KeywordOperands = std::vector<std::pair<std::string, Operand>>;

// "aten::add" knows all overloads, "aten::add.Tensor" one.
bool operatorExists(const std::string &name);
// Gives the operator's results; throws ExecError (or what ATen throws).
std::vector<c10::IValue> callBoxed(const std::string &name, const std::vector<Operand> &args, const KeywordOperands &kwargs);
// As Python sees them: nothing is None, one is itself, more are a tuple (with names where the schema names them).
Arg callOperator(const std::string &name, const std::vector<Operand> &args, const KeywordOperands &kwargs = {});

} // namespace fb
