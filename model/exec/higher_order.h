// Fuseboard: operators that call graphs: torch.cond, while_loop, scan, map and what wraps a region. GPL-3.0-or-later. Private to
// model/exec.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/ir/arg.h"

namespace fb
{

// A graph that is an argument of the call.
using GraphFunction = std::function<Arg(const ArgList &args)>;

bool isHigherOrder(const std::string &target); // "torch.ops.higher_order.cond"

// `graphs` in the order in which the call has them, `args` without them. As torch/_higher_order_ops does it eagerly. Throws
// ExecError, also for an operator that is not known.
Arg callHigherOrder(const std::string &target, const std::vector<GraphFunction> &graphs, const ArgList &args);

} // namespace fb
