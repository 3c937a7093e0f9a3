// Fuseboard: how a call meets the placeholders of the graph that it calls, by Python's rules. GPL-3.0-or-later.
#pragma once

#include <optional>

#include "model/ir/graph.h"

namespace fb
{

// One value for each placeholder of `callee`, in their order; none where its default stands. Positional arguments first, then
// named ones; `*args` takes the positional ones left over as a tuple, `**kwargs` the named ones as a dict, and what follows
// `*args` goes by name alone. Error: a missing, doubled or unknown argument, by name.
Result<std::vector<std::optional<Arg>>> bindArguments(const Graph &callee, const ArgList &args, const Kwargs &kwargs);

} // namespace fb
