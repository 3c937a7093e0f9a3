// Fuseboard: arguments that a trace fixed. GPL-3.0-or-later.
//
// Traced with concrete_args, torch.fx keeps a placeholder for the fixed argument and an assertion that it has the fixed value.
// Nobody should have to give such an argument: its value stands in the graph.
#pragma once

#include <optional>

#include "model/ir/graph.h"

namespace fb
{

// The value that the graph asserts its placeholder `id` to have, or nothing.
std::optional<Arg> pinnedValue(const Graph &graph, NodeId id);

} // namespace fb
