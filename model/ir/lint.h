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
// targets that do not exist. And: a missing or second output, an output that is not last, placeholders after other nodes,
// a required placeholder after one with a default, a module called whose facts are missing.
std::vector<LintProblem> lint(const GraphModule &gm);

} // namespace fb
