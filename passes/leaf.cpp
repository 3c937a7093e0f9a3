// Mark as leaf: the nodes that one module made become one node, and back. GPL-3.0-or-later.
//
// A leaf is a piece that quantization must leave alone. Its nodes move, ids and names included, into a graph of their own
// that hangs on the module's entry; what they read from outside become that graph's placeholders (with the outside nodes' names),
// what the outside reads becomes its output. So a copy of a leaf is cheap, and unmarking puts the very same nodes back.
#include "passes/edit_tools.h"
#include "passes/edits.h"
#include "passes/subgraph.h"

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

    auto piece = pieceOf(g, own);
    if (!piece)
        return Error{ failed + piece.message() };
    auto leaf = graphOf(gm, *piece);
    leaf->rootClass = info->shortClass();
    shareTables(gm, path, *leaf);

    Node call;
    call.op = Opcode::CallModule;
    call.target = path;
    if (depth > 0) {
        const ModuleStack &stack = *g[own.front()].stack;
        call.stack = std::make_shared<const ModuleStack>(stack.begin(), stack.begin() + std::ptrdiff_t(depth));
    }
    const auto callId = replaceByCall(gm, *piece, std::move(call));
    if (!callId)
        return callId.error();

    ModuleInfo marked = *info;
    marked.kind = ModuleKind::Graph;
    marked.keepFloat = true;
    marked.graph = std::move(leaf);
    gm.modules.set(path, std::move(marked));
    PassReport report{ "Mark " + path + " as leaf", true, {}, {} };
    report.done.push_back({ g[*callId].name,
        std::to_string(own.size()) + (own.size() == 1 ? " node of " : " nodes of ") + path + " -> " + g[*callId].name
            + ", in float" });
    return report;
}

Result<PassReport> unmarkLeaf(GraphModule &gm, const std::string &path)
{
    const std::string failed = "cannot unmark " + path + ": ";
    const ModuleInfo *info = gm.modules.find(path);
    if (!info)
        return Error{ failed + unknownModule(gm, path) };
    const auto calls = gm.callers(path);
    if (calls.empty())
        return Error{ failed + "it is not a leaf" };
    if (info->kind != ModuleKind::Graph || !info->graph) {
        auto report = setKeepFloat(gm, *info, nodeList(gm.graph, calls), false);
        report->pass = "Unmark " + path;
        return report;
    }
    auto report = inlineModule(gm, path);
    if (!report)
        return Error{ failed + report.message() };
    report->pass = "Unmark " + path;
    return report;
}

} // namespace fb
