// Mark as leaf: the nodes that one module made become one node, and back. GPL-3.0-or-later.
//
// A leaf is a piece that quantization must leave alone. Its nodes move, ids and names included, into a graph of their own
// that hangs on the module's entry; what they read from outside become that graph's placeholders (with the outside nodes' names),
// what the outside reads becomes its output. So a copy of a leaf is cheap, and unmarking puts the very same nodes back.
#include "passes/edit_tools.h"
#include "passes/edits.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace fb
{

namespace
{

// The depth of `path` in a node's module stack, or -1.
int depthOf(const Node &n, const std::string &path)
{
    if (n.stack)
        for (size_t i = 0; i < n.stack->size(); ++i)
            if ((*n.stack)[i].path == path)
                return int(i);
    return -1;
}

std::string unknownModule(const GraphModule &gm, const std::string &path)
{
    std::string text = "there is no module \"" + path + "\"";
    const std::string plain = path.starts_with("self.") ? path.substr(5) : std::string();
    const std::string last = path.substr(path.rfind('.') + 1);
    std::string near;
    for (const auto &entry : gm.modules)
        if (entry.first == plain
            || (plain.empty() && !entry.first.empty() && entry.first.substr(entry.first.rfind('.') + 1) == last))
            near += (near.empty() ? "" : ", ") + entry.first;
    return near.empty() ? text + "; module paths are like layer1.0.conv1" : text + "; did you mean " + near + "?";
}

// A leaf whose inside is not in this graph (or is one call already) only gets its mark.
Result<PassReport> setKeepFloat(GraphModule &gm, ModuleInfo info, const std::string &node, bool keep)
{
    PassReport report;
    if (info.keepFloat == keep) {
        report.kept.push_back({ node, node + (keep ? " is marked as leaf already" : " is not marked as leaf") });
        return report;
    }
    info.keepFloat = keep;
    report.done.push_back({ node, node + (keep ? " stays in float" : " may be quantized again") });
    report.changed = true;
    const std::string path = info.path;
    gm.modules.set(path, std::move(info));
    return report;
}

// The tables of the inside: the module with all below it, and whatever else its nodes refer to.
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

} // namespace

Result<PassReport> markLeaf(GraphModule &gm, const std::string &path)
{
    Graph &g = gm.graph;
    const std::string failed = "cannot mark " + path + " as leaf: ";
    const ModuleInfo *info = gm.modules.find(path);
    if (path.empty())
        return Error{ "cannot mark the whole model as leaf; choose a module in it" };
    if (!info)
        return Error{ failed + unknownModule(gm, path) };
    if (const auto calls = gm.callers(path); !calls.empty()) {
        auto report = setKeepFloat(gm, *info, nodeList(g, calls), true);
        report->pass = "Mark " + path + " as leaf";
        return report;
    }
    if (!info->aliasOf.empty())
        return Error{ failed + "it is the same module as " + info->aliasOf + "; mark that" };

    // The nodes of one call.
    std::vector<NodeId> own;
    std::unordered_set<NodeId> inside;
    std::set<int> calls;
    size_t depth = 0;
    for (NodeId id : g.order()) {
        const int d = depthOf(g[id], path);
        if (d < 0 || g[id].op == Opcode::Placeholder || g[id].op == Opcode::Output)
            continue;
        own.push_back(id);
        inside.insert(id);
        depth = size_t(d);
        calls.insert((*g[id].stack)[depth].call);
    }
    if (own.empty()) {
        for (const auto &[other, m] : gm.modules)
            if (m->kind == ModuleKind::Graph && path.starts_with(other + "."))
                return Error{ failed + "it is inside the leaf " + other + "; unmark that first" };
        return Error{ failed + "no node of the graph comes from it" };
    }
    if (calls.size() > 1)
        return Error{ failed + "it is called " + (calls.size() == 2 ? "twice" : std::to_string(calls.size()) + " times")
            + ", and one node cannot stand for all calls; mark it when tracing (--leaf " + path + ")" };
    for (size_t i = g.position(own.front()); i <= g.position(own.back()); ++i)
        if (const NodeId id = g.order()[i]; !inside.contains(id)) {
            std::vector<NodeId> from, to;
            for (NodeId in : g.inputs(id))
                if (inside.contains(in))
                    from.push_back(in);
            for (NodeId user : g.users(id))
                if (inside.contains(user))
                    to.push_back(user);
            if (!from.empty() && !to.empty())
                return Error{ failed + "a value leaves it (" + nodeList(g, from) + ") and comes back by " + g[id].name + " (to "
                    + nodeList(g, to) + "), so it is not one piece" };
            return Error{ failed + g[id].name + ", which is not part of it, stands between its nodes, so it is not one piece" };
        }

    std::vector<NodeId> inputs, outputs;
    for (NodeId id : own) {
        for (NodeId in : g.inputs(id))
            if (!inside.contains(in) && std::find(inputs.begin(), inputs.end(), in) == inputs.end())
                inputs.push_back(in);
        const auto &users = g.users(id);
        if (std::any_of(users.begin(), users.end(), [&](NodeId u) { return !inside.contains(u); }))
            outputs.push_back(id);
    }
    if (outputs.empty())
        return Error{ failed + "nothing outside reads what it gives" };

    // The inside keeps ids, so no argument changes.
    auto leaf = std::make_shared<GraphModule>();
    leaf->rootClass = info->shortClass();
    leaf->provenance.torchVersion = gm.provenance.torchVersion;
    leaf->graph.reserveIds(g.nextId());
    for (NodeId in : inputs) {
        Node p;
        p.id = in;
        p.op = Opcode::Placeholder;
        p.name = p.target = g[in].name;
        p.meta = g[in].meta;
        leaf->graph.restore(std::move(p), {});
    }
    for (NodeId id : own)
        leaf->graph.restore(g[id], {});
    Node out;
    out.op = Opcode::Output;
    out.name = out.target = "output";
    out.args = { outputs.size() == 1 ? Arg(outputs.front()) : Arg::tuple(ArgList(outputs.begin(), outputs.end())) };
    leaf->graph.append(std::move(out));
    shareTables(gm, path, *leaf);

    Node call;
    call.op = Opcode::CallModule;
    call.target = path;
    call.args = ArgList(inputs.begin(), inputs.end());
    if (depth > 0) {
        const ModuleStack &stack = *g[own.front()].stack;
        call.stack = std::make_shared<const ModuleStack>(stack.begin(), stack.begin() + std::ptrdiff_t(depth));
    }
    call.source = g[own.front()].source;
    if (outputs.size() == 1)
        call.meta = g[outputs.front()].meta;
    const NodeId callId = g.insertAfter(own.back(), std::move(call));
    NodeId at = callId;
    for (size_t i = 0; i < outputs.size(); ++i) {
        NodeId value = callId;
        if (outputs.size() > 1) {
            Node item;
            item.op = Opcode::CallFunction;
            item.target = "operator.getitem";
            item.args = { callId, int64_t(i) };
            item.stack = g[callId].stack;
            item.meta = g[outputs[i]].meta;
            value = at = g.insertAfter(at, std::move(item));
        }
        for (NodeId user : std::vector(g.users(outputs[i])))
            if (!inside.contains(user))
                g.replaceInput(user, outputs[i], value);
    }
    if (Status s = g.erase(own); !s)
        return s.error();

    ModuleInfo marked = *info;
    marked.kind = ModuleKind::Graph;
    marked.keepFloat = true;
    marked.graph = std::move(leaf);
    gm.modules.set(path, std::move(marked));
    PassReport report{ "Mark " + path + " as leaf", true, {}, {} };
    report.done.push_back({ g[callId].name,
        std::to_string(own.size()) + (own.size() == 1 ? " node of " : " nodes of ") + path + " -> " + g[callId].name
            + ", in float" });
    return report;
}

Result<PassReport> unmarkLeaf(GraphModule &gm, const std::string &path)
{
    Graph &g = gm.graph;
    const std::string failed = "cannot unmark " + path + ": ";
    const ModuleInfo *info = gm.modules.find(path);
    if (!info)
        return Error{ failed + unknownModule(gm, path) };
    const auto calls = gm.callers(path);
    if (calls.empty())
        return Error{ failed + "it is not a leaf" };
    if (info->kind != ModuleKind::Graph || !info->graph) {
        auto report = setKeepFloat(gm, *info, nodeList(g, calls), false);
        report->pass = "Unmark " + path;
        return report;
    }
    if (calls.size() > 1)
        return Error{ failed + "it is called by " + nodeList(g, calls) + "; remove all but one" };

    const std::shared_ptr<const GraphModule> leaf = info->graph;
    const Graph &inside = leaf->graph;
    const NodeId callId = calls.front();
    const Node call = g[callId];
    const auto holes = inside.placeholders();
    if (holes.size() != call.args.size() || !call.kwargs.empty())
        return Error{ failed + call.name + " is called with " + std::to_string(call.args.size() + call.kwargs.size())
            + " inputs, its inside takes " + std::to_string(holes.size()) };

    std::unordered_map<NodeId, Arg> now;
    for (size_t i = 0; i < holes.size(); ++i)
        now[holes[i]] = call.args[i];
    auto mapped = [&](NodeId id) { return now.at(id); };

    Arg results;
    for (NodeId id : inside.order()) {
        Node n = inside[id];
        for (Arg &a : n.args)
            a = mapNodes(a, mapped);
        for (auto &kw : n.kwargs)
            kw.second = mapNodes(kw.second, mapped);
        if (n.op == Opcode::Placeholder)
            continue;
        if (n.op == Opcode::Output) {
            results = n.args.at(0);
            continue;
        }
        if (g.contains(n.id) || n.id.value >= g.nextId()) {
            now[id] = g.insertBefore(callId, std::move(n));
        } else {
            g.restore(std::move(n), callId);
            now[id] = id;
        }
    }
    if (const ArgSequence *many = results.sequence()) {
        for (NodeId user : std::vector(g.users(callId))) {
            const Node &n = g[user];
            const auto index = n.args.size() == 2 ? n.args[1].toInt() : std::nullopt;
            if (n.target != "operator.getitem" || !index || *index < 0 || size_t(*index) >= many->items.size())
                return Error{ failed + n.name + " uses its outputs as a whole; only single ones can be taken back" };
            g.replaceAllUses(user, many->items[size_t(*index)].node());
            if (Status s = g.erase(user); !s)
                return s.error();
        }
    } else {
        g.replaceAllUses(callId, results.node());
    }
    if (Status s = g.erase(callId); !s)
        return s.error();

    ModuleInfo plain = *info;
    plain.kind = ModuleKind::Container;
    plain.keepFloat = false;
    plain.graph.reset();
    gm.modules.set(path, std::move(plain));
    for (const auto &[name, entry] : leaf->modules)
        if (!gm.modules.contains(name))
            gm.modules.share(name, entry);
    for (const auto &[name, entry] : leaf->tensors)
        if (!gm.tensors.contains(name))
            gm.tensors.share(name, entry);
    PassReport report{ "Unmark " + path, true, {}, {} };
    report.done.push_back(
        { path, call.name + " -> the " + std::to_string(inside.size() - holes.size() - 1) + " nodes of " + path });
    return report;
}

} // namespace fb
