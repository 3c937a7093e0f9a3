#pragma once
// How a call meets the placeholders of the graph that it calls: Python's rules for binding arguments.

#include "model/ir/graph.h"

namespace fb
{

// One value for each placeholder of `callee`, in their order. Positional arguments first, then by name, then the placeholder's
// default;
// `*args` takes the positional ones left over as a tuple, `**kwargs` the named ones as a dict, and what follows `*args` goes by
// name alone. Error: a missing, doubled or unknown argument, by name.
Result<ArgList> bindArguments(const Graph &callee, const ArgList &args, const Kwargs &kwargs);

} // namespace fb
