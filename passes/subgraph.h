// Fuseboard: cutting a piece out of a graph, and putting one in. GPL-3.0-or-later.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/ir/module.h"
#include "passes/pass.h"

namespace fb
{

// Nodes in order, what they read from outside, and those of them that the outside reads.
struct Piece {
    std::vector<NodeId> nodes, inputs, outputs;
};
// The nodes must be in execution order. Refuses a piece that nothing outside reads.
Result<Piece> pieceOf(const Graph &g, std::vector<NodeId> nodes);

// The piece as a graph of its own: the same ids and names, inputs as placeholders with the outside nodes' names, one output (a
// tuple where there are several). Its tables are empty.
std::shared_ptr<GraphModule> graphOf(const GraphModule &gm, const Piece &piece);

// Fills the tables of `inside`: module `path` with all below it, and whatever else its nodes refer to.
void shareTables(const GraphModule &from, const std::string &path, GraphModule &inside);

// `call` (its args are set here) takes the place of the last node of the piece, and the piece goes. Several outputs are read by
// getitem.
Result<NodeId> replaceByCall(GraphModule &gm, const Piece &piece, Node call);

// The nodes of `inside` take the place of `call`, with their own ids and names where those are free. `adapt` sees each before it
// goes in. Refuses, with the reason, calls that do not fit the placeholders.
Status replaceByNodes(GraphModule &gm, NodeId call, const Graph &inside, const std::function<void(Node &)> &adapt = {});

} // namespace fb
