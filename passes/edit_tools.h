// Fuseboard: what several edits need. GPL-3.0-or-later.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "model/ir/module.h"

namespace fb
{

// A class name from a module's: "first_block" gives FirstBlock.
std::string camelCase(std::string_view text);

// "conv1, bn1"
std::string nodeList(const Graph &g, const std::vector<NodeId> &ids);

// Drops those of `paths`, with all below them, that no node calls or reads from any more.
void dropModules(GraphModule &gm, const std::set<std::string> &paths);

// Takes a module's entry and everything below it out of the tables, in use or not; its place is kept for a successor of the same
// path.
void clearModule(GraphModule &gm, const std::string &path);

// Forgets shape and dtype of a node and of everything computed from it.
void forgetShapes(Graph &g, NodeId id);

// Moves what `id` needs in front of `user`. Refuses when `id` is computed from `user`, and when an in-place node is in the way.
Status makeAvailable(GraphModule &gm, NodeId id, NodeId user);

} // namespace fb
