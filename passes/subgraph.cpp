#include "passes/subgraph.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "model/ir/bind.h"
#include "passes/edit_tools.h"

namespace fb
{

Result<Piece> pieceOf(const Graph &g, std::vector<NodeId> nodes)
{
    Piece piece;
    const std::unordered_set<NodeId> own(nodes.begin(), nodes.end());
    std::unordered_set<NodeId> read;
    for (NodeId id : nodes) {
        for (NodeId in : g.inputs(id))
            if (!own.contains(in) && read.insert(in).second)
                piece.inputs.push_back(in);
        const auto &users = g.users(id);
        if (std::any_of(users.begin(), users.end(), [&](NodeId u) { return !own.contains(u); }))
            piece.outputs.push_back(id);
    }
    if (piece.outputs.empty())
        return Error{ "nothing outside reads what it gives" };
    piece.nodes = std::move(nodes);
    return piece;
}

std::shared_ptr<GraphModule> graphOf(const GraphModule &gm, const Piece &piece)
{
    const Graph &g = gm.graph;
    auto inside = std::make_shared<GraphModule>();
    inside->provenance.torchVersion = gm.provenance.torchVersion;
    inside->graph.reserveIds(g.nextId());
    for (NodeId in : piece.inputs) {
        Node p;
        p.id = in;
        p.op = Opcode::Placeholder;
        p.name = p.target = g[in].name;
        p.meta = g[in].meta;
        inside->graph.restore(std::move(p), {});
    }
    for (NodeId id : piece.nodes)
        inside->graph.restore(g[id], {});
    Node out;
    out.op = Opcode::Output;
    out.name = out.target = "output";
    const auto &values = piece.outputs;
    out.args = { values.size() == 1 ? Arg(values.front()) : Arg::tuple(ArgList(values.begin(), values.end())) };
    inside->graph.append(std::move(out));
    return inside;
}

void shareTables(const GraphModule &from, const std::string &path, GraphModule &inside)
{
    std::set<std::string> reach{ path };
    for (NodeId id : inside.graph.order()) {
        const Node &n = inside.graph[id];
        if (n.op == Opcode::CallModule || n.op == Opcode::GetAttr)
            reach.insert(n.target);
        if (const ModuleInfo *m = from.moduleOf(n); m && !m->aliasOf.empty())
            reach.insert(m->aliasOf);
    }
    auto reached = [&](const std::string &name) {
        for (size_t dot = name.size(); dot != std::string::npos; dot = dot ? name.rfind('.', dot - 1) : std::string::npos)
            if (reach.contains(name.substr(0, dot)))
                return true;
        return false;
    };
    for (const auto &[name, info] : from.modules)
        if (reached(name))
            inside.modules.share(name, info);
    for (const auto &[name, entry] : from.tensors)
        if (reached(name))
            inside.tensors.share(name, entry);
}

Result<NodeId> replaceByCall(GraphModule &gm, const Piece &piece, Node call)
{
    Graph &g = gm.graph;
    const std::unordered_set<NodeId> own(piece.nodes.begin(), piece.nodes.end());
    const auto &outputs = piece.outputs;
    call.args = ArgList(piece.inputs.begin(), piece.inputs.end());
    call.kwargs.clear();
    call.source = g[piece.nodes.front()].source;
    if (outputs.size() == 1)
        call.meta = g[outputs.front()].meta;
    const NodeId id = g.insertAfter(piece.nodes.back(), std::move(call));
    NodeId at = id;
    for (size_t i = 0; i < outputs.size(); ++i) {
        NodeId value = id;
        if (outputs.size() > 1) {
            Node item;
            item.target = "operator.getitem";
            item.args = { id, int64_t(i) };
            item.stack = g[id].stack;
            item.meta = g[outputs[i]].meta;
            value = at = g.insertAfter(at, std::move(item));
        }
        for (NodeId user : std::vector(g.users(outputs[i])))
            if (!own.contains(user))
                g.replaceInput(user, outputs[i], value);
    }
    if (Status s = g.erase(piece.nodes); !s)
        return s.error();
    return id;
}

Status replaceByNodes(GraphModule &gm, NodeId callId, const Graph &inside, const std::function<void(Node &)> &adapt)
{
    Graph &g = gm.graph;
    const Node call = g[callId];
    const auto given = bindArguments(inside, call.args, call.kwargs);
    if (!given)
        return Error{ call.name + " does not fit its inside: " + given.message() };
    std::unordered_map<NodeId, Arg> bound;
    auto mapped = [&](NodeId id) { return bound.at(id); };
    Arg results;
    for (size_t hole = 0; NodeId id : inside.order()) {
        Node n = inside[id];
        if (n.op == Opcode::Placeholder) {
            const std::optional<Arg> &value = (*given)[hole++];
            bound[id] = value ? *value : mapNodes(n.args.front(), mapped);
            continue;
        }
        for (Arg &a : n.args)
            a = mapNodes(a, mapped);
        for (auto &kw : n.kwargs)
            kw.second = mapNodes(kw.second, mapped);
        if (n.op == Opcode::Output) {
            results = n.args.empty() ? Arg() : n.args.front();
            continue;
        }
        if (adapt)
            adapt(n);
        if (g.contains(n.id) || n.id.value >= g.nextId()) {
            bound[id] = g.insertBefore(callId, std::move(n));
        } else {
            g.restore(std::move(n), callId);
            bound[id] = id;
        }
    }
    const ArgSequence *many = results.sequence();
    for (NodeId user : std::vector(g.users(callId))) {
        const Node n = g[user];
        const auto index = n.args.size() == 2 ? n.args[1].toInt() : std::nullopt;
        if (many && n.target == "operator.getitem" && index && *index < int64_t(many->items.size())
            && *index >= -int64_t(many->items.size())) {
            const Arg &item = many->items[size_t(*index < 0 ? *index + int64_t(many->items.size()) : *index)];
            if (const NodeId value = item.node()) {
                g.replaceAllUses(user, value);
                if (Status s = g.erase(user); !s)
                    return s.error();
                continue;
            }
        }
        // The value as it is written: a tuple of nodes, a constant.
        g.mapInputs(user, [&](NodeId in) { return in == callId ? results : Arg(in); });
    }
    return g.erase(callId);
}

} // namespace fb
