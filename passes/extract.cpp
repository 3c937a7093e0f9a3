// Extract and inline: a set of nodes becomes a module, a module becomes its nodes. GPL-3.0-or-later.
//
// Nodes that lie together in the order of execution are easy to cut out. Others first have to be brought together: what stands
// between them goes before the piece, or behind it where it is computed from the piece. No order does when a value leaves the
// piece and comes back.
#include "passes/edits.h"

#include <algorithm>
#include <unordered_set>

#include "model/ir/ops.h"
#include "model/text/python.h"
#include "passes/edit_tools.h"
#include "passes/subgraph.h"

namespace fb
{

namespace
{

// Reorders so that the nodes follow each other.
Status bringTogether(GraphModule &gm, const std::vector<NodeId> &nodes)
{
    Graph &g = gm.graph;
    const std::unordered_set<NodeId> own(nodes.begin(), nodes.end());
    const size_t first = g.position(nodes.front()), last = g.position(nodes.back());
    if (last - first + 1 == nodes.size())
        return {};
    std::unordered_set<NodeId> dependent;
    std::vector<NodeId> before, after;
    std::string inPlace;
    for (size_t i = first; i <= last; ++i) {
        const NodeId id = g.order()[i];
        const auto inputs = g.inputs(id);
        const bool mine = own.contains(id);
        for (NodeId in : inputs)
            if (mine && dependent.contains(in))
                return Error{ "a value leaves them and comes back by " + g[in].name + " (to " + g[id].name
                    + "), so they are not one piece" };
        if (mutatesInput(gm, g[id]))
            inPlace = g[id].name;
        if (mine)
            continue;
        if (g[id].op == Opcode::Placeholder)
            before.push_back(id);
        else if (std::any_of(inputs.begin(), inputs.end(), [&](NodeId in) { return own.contains(in) || dependent.contains(in); }))
            after.push_back(*dependent.insert(id).first);
        else
            before.push_back(id);
    }
    if (!inPlace.empty())
        return Error{ "other nodes stand between them and " + inPlace + " changes a value in place, so their order must stay" };
    std::vector<NodeId> order(g.order().begin(), g.order().begin() + std::ptrdiff_t(first));
    const auto add = [&](auto begin, auto end) { order.insert(order.end(), begin, end); };
    add(before.begin(), before.end());
    add(nodes.begin(), nodes.end());
    add(after.begin(), after.end());
    add(g.order().begin() + std::ptrdiff_t(last) + 1, g.order().end());
    g.reorder(std::move(order));
    return {};
}

// Modules that only the piece uses, the outermost ones, and their place below the new module.
std::vector<std::pair<std::string, std::string>> moves(
    const GraphModule &gm, const std::unordered_set<NodeId> &own, const std::string &path)
{
    // Every module that a node is made by, calls or reads from, with all above it.
    auto paths = [&](const Node &n) {
        std::set<std::string> out;
        auto add = [&](std::string name) {
            for (; !name.empty(); name = parentPath(name))
                out.insert(name);
        };
        if (n.op == Opcode::CallModule)
            add(n.target);
        else if (n.op == Opcode::GetAttr)
            add(parentPath(n.target));
        if (n.stack)
            for (const ModuleFrame &frame : *n.stack)
                add(frame.path);
        return out;
    };
    std::set<std::string> inside, outside;
    for (NodeId id : gm.graph.order())
        (own.contains(id) ? inside : outside).merge(paths(gm.graph[id]));
    for (const auto &[name, info] : gm.modules)
        if (!info->aliasOf.empty()) // one object under two names stays where it is
            for (std::string part : { name, info->aliasOf })
                for (; !part.empty(); part = parentPath(part))
                    outside.insert(part);
    std::vector<std::pair<std::string, std::string>> out;
    std::set<std::string> names;
    for (const std::string &module : inside) {
        if (outside.contains(module) || isAtOrBelow(path, module) || (!out.empty() && isAtOrBelow(module, out.back().first)))
            continue;
        const std::string plain = module.substr(module.rfind('.') + 1);
        std::string name = plain;
        for (int i = 1; !names.insert(name).second; ++i)
            name = plain + "_" + std::to_string(i);
        out.emplace_back(module, joinPath(path, name));
    }
    return out;
}

} // namespace

Result<PassReport> extractNodes(
    GraphModule &gm, const std::set<NodeId> &chosen, const std::string &path, const std::string &className)
{
    Graph &g = gm.graph;
    const std::string failed = "cannot extract into " + path + ": ";
    if (chosen.empty())
        return Error{ failed + "no node was named" };
    for (NodeId id : chosen)
        if (g[id].op == Opcode::Placeholder || g[id].op == Opcode::Output)
            return Error{ failed + g[id].name + " is " + (g[id].op == Opcode::Output ? "the output" : "an input")
                + " of the graph" };
    const std::string name = path.substr(path.rfind('.') + 1), parent = parentPath(path);
    if (!isPythonIdentifier(name) || isPythonKeyword(name))
        return Error{ failed + "\"" + name + "\" is no name for a module" };
    if (!className.empty() && (!isPythonIdentifier(className) || isPythonKeyword(className)))
        return Error{ failed + "\"" + className + "\" is no name for a class" };
    if (gm.modules.contains(path) || gm.tensors.contains(path))
        return Error{ failed + "that name is taken" };
    if (!parent.empty() && !gm.modules.contains(parent))
        return Error{ failed + "there is no module " + parent };

    std::vector<NodeId> nodes(chosen.begin(), chosen.end());
    std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return g.position(a) < g.position(b); });
    if (Status s = bringTogether(gm, nodes); !s)
        return Error{ failed + s.message() };

    // Names: what moves below the new module, and the frames that its nodes keep.
    const auto moved = moves(gm, std::unordered_set<NodeId>(nodes.begin(), nodes.end()), path);
    auto renamed = [&](const std::string &old) {
        for (const auto &[from, to] : moved)
            if (isAtOrBelow(old, from))
                return to + old.substr(from.size());
        return old;
    };
    ModuleInfo info;
    info.path = path;
    info.className = className.empty() ? camelCase(name) : className;
    if (const ModuleInfo *root = gm.modules.find(""))
        info.training = root->training;
    OrderedTable<ModuleInfo> modules;
    for (const auto &[old, entry] : gm.modules) {
        if (const std::string now = renamed(old); now != old) {
            if (!modules.contains(path))
                modules.set(path, info);
            ModuleInfo copy = *entry;
            copy.path = now;
            modules.set(now, std::move(copy));
        } else {
            modules.share(old, entry);
        }
    }
    OrderedTable<TensorEntry> tensors;
    for (const auto &[old, entry] : gm.tensors)
        tensors.share(renamed(old), entry);
    gm.modules = std::move(modules);
    gm.tensors = std::move(tensors);
    if (!gm.modules.contains(path))
        gm.addModule(info);
    std::shared_ptr<const ModuleStack> outer;
    for (NodeId id : nodes) {
        const Node n = g[id];
        ModuleStack above, below;
        for (const ModuleFrame &frame : n.stack ? *n.stack : ModuleStack())
            if (isAtOrBelow(parent, frame.path))
                above.push_back(frame);
            else if (const std::string now = renamed(frame.path); now != frame.path)
                below.push_back({ now, frame.className, frame.call });
        if (!outer || above.size() < outer->size())
            outer = std::make_shared<const ModuleStack>(above);
        above.push_back({ path, info.className, 0 });
        above.insert(above.end(), below.begin(), below.end());
        g.setStack(id, std::make_shared<const ModuleStack>(std::move(above)));
        if (n.op == Opcode::CallModule || n.op == Opcode::GetAttr)
            g.setTarget(id, n.op, renamed(n.target));
    }

    auto piece = pieceOf(g, nodes);
    if (!piece)
        return Error{ failed + piece.message() };
    auto inside = graphOf(gm, *piece);
    inside->rootClass = info.className;
    shareTables(gm, path, *inside);
    Node call;
    call.op = Opcode::CallModule;
    call.target = path;
    if (!outer->empty())
        call.stack = outer;
    const auto id = replaceByCall(gm, *piece, std::move(call));
    if (!id)
        return id.error();
    info.kind = ModuleKind::Graph;
    info.graph = std::move(inside);
    gm.modules.set(path, std::move(info));
    PassReport report{ "Extract into " + path, true, {}, {} };
    report.done.push_back(
        { g[*id].name, std::to_string(nodes.size()) + (nodes.size() == 1 ? " node -> " : " nodes -> ") + path });
    for (const auto &[from, to] : moved)
        report.done.push_back({ g[*id].name, from + " is now " + to });
    return report;
}

Result<PassReport> inlineModule(GraphModule &gm, const std::string &path)
{
    const ModuleInfo *found = gm.modules.find(path);
    if (!found)
        return Error{ "there is no module \"" + path + "\"" };
    if (found->kind != ModuleKind::Graph || !found->graph)
        return Error{ path + " holds no graph: its inside is not known" };
    const ModuleInfo info = *found;
    const GraphModule &inside = *info.graph;
    // A nested GraphModule counts its names from itself, a piece of this graph from the root.
    const bool own = inside.modules.contains("");
    const auto calls = gm.callers(path);
    for (size_t i = 0; i < calls.size(); ++i) {
        const Node call = gm.graph[calls[i]];
        auto adapt = [&](Node &n) {
            if (own && (n.op == Opcode::CallModule || n.op == Opcode::GetAttr))
                n.target = joinPath(path, n.target);
            ModuleStack stack;
            if (own) {
                if (call.stack)
                    stack = *call.stack;
                stack.push_back({ path, info.className, int(i) });
                for (const ModuleFrame &frame : n.stack ? *n.stack : ModuleStack())
                    stack.push_back({ joinPath(path, frame.path), frame.className, frame.call });
            } else if (n.stack) {
                stack = *n.stack;
                for (ModuleFrame &frame : stack)
                    if (i > 0 && frame.path == path)
                        frame.call = int(i);
            }
            if (!n.stack || stack != *n.stack)
                n.stack = stack.empty() ? nullptr : std::make_shared<const ModuleStack>(std::move(stack));
        };
        if (Status s = replaceByNodes(gm, calls[i], inside.graph, adapt); !s)
            return s.error();
    }
    ModuleInfo plain = info;
    plain.kind = ModuleKind::Container;
    plain.keepFloat = false;
    plain.graph.reset();
    gm.modules.set(path, std::move(plain));
    for (const auto &[key, entry] : inside.modules) {
        const std::string name = own ? joinPath(path, key) : key;
        if (key.empty() || gm.modules.contains(name))
            continue;
        ModuleInfo copy = *entry;
        copy.path = name;
        if (own && !copy.aliasOf.empty())
            copy.aliasOf = joinPath(path, copy.aliasOf);
        gm.modules.set(name, std::move(copy));
    }
    for (const auto &[key, entry] : inside.tensors)
        if (const std::string name = own ? joinPath(path, key) : key; !gm.tensors.contains(name))
            gm.tensors.share(name, entry);
    PassReport report{ "Inline " + path, !calls.empty(), {}, {} };
    const size_t count = inside.graph.size() - inside.graph.placeholders().size() - 1;
    report.done.push_back({ path, path + " -> its " + std::to_string(count) + (count == 1 ? " node" : " nodes") });
    return report;
}

PassReport inlineAll(GraphModule &gm)
{
    PassReport report{ "Inline nested graphs", false, {}, {} };
    std::set<std::string> tried;
    for (bool again = true; again;) { // what was nested twice appears after the first round
        again = false;
        std::vector<std::string> paths;
        for (const auto &[path, info] : gm.modules)
            if (info->kind == ModuleKind::Graph && info->graph && !info->keepFloat && !gm.callers(path).empty()
                && tried.insert(path).second)
                paths.push_back(path);
        for (const std::string &path : paths) {
            GraphModule work = gm;
            const auto done = inlineModule(work, path);
            if (!done) {
                report.kept.push_back({ path, path + " kept as one module: " + done.message() });
                continue;
            }
            gm = std::move(work);
            report.done.insert(report.done.end(), done->done.begin(), done->done.end());
            report.changed = again = true;
        }
    }
    return report;
}

} // namespace fb
