// Fuseboard: a call as named values, and named values as a call. GPL-3.0-or-later.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "passes/edits.h"

namespace fb
{

// The arguments of a call (and the facts of a module) by the parameter names of the op table; "" where there is no name.
using Values = std::vector<std::pair<std::string, Arg>>;

struct Call {
    Opcode op = Opcode::CallFunction;
    std::string target; // of a module: its class, until it has a path
    ArgList args;
    Kwargs kwargs;
    std::optional<ModuleInfo> module; // to be made for call_module
};

std::string opText(const OpRef &op); // as a person writes it: "nn.ReLU", "F.relu", ".relu()", "torch.clamp"
Values valuesOf(const GraphModule &gm, const Node &n);
// Refuses when a required argument is missing, and modules that have weights.
Result<Call> writeCall(const OpRef &to, const Values &values);
Status checkNames(const OpRef &to, const Kwargs &extra);

} // namespace fb
