// Fuseboard: Graph.lint and more. GPL-3.0-or-later.
#pragma once

#include <string>
#include <vector>

#include "model/ir/module.h"

namespace fb
{

struct LintProblem {
    std::string node; // name, or empty for the whole graph
    std::string message;
};

// Finds, as torch.fx's Graph.lint: uses before definition, unknown references, names used twice, call_module and get_attr
// targets that do not exist. And: a graph without an output, nodes after the output (a second one included), a method called on
// nothing.
std::vector<LintProblem> lint(const GraphModule &gm);

} // namespace fb
