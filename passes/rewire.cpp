// Edits of single nodes: rewire, insert, arguments, targets, names. GPL-3.0-or-later.
//
// The order of nodes is the order of execution. An edit that makes a node read a later one moves what is needed up, and is
// refused where that is no order at all: a cycle.
#include "passes/edits.h"

#include <algorithm>
#include <charconv>

#include "model/ir/ops.h"
#include "model/text/text.h"
#include "passes/call.h"
#include "passes/edit_tools.h"

namespace fb
{

Result<PassReport> rewireInput(GraphModule &gm, NodeId node, NodeId from, NodeId to)
{
    Graph &g = gm.graph;
    const std::string &name = g[node].name;
    const auto inputs = g.inputs(node);
    if (std::find(inputs.begin(), inputs.end(), from) == inputs.end())
        return Error{ name + " does not read " + g[from].name + (inputs.empty() ? "" : "; it reads " + nodeList(g, inputs)) };
    if (g[to].op == Opcode::Output)
        return Error{ name + " cannot read " + g[to].name + ": an output gives no value" };
    PassReport report{ "Rewire " + name, from != to, {}, {} };
    if (from == to)
        return report;
    if (Status s = makeAvailable(gm, to, node); !s)
        return s.error();
    if (g[from].meta != g[to].meta)
        forgetShapes(g, node);
    g.replaceInput(node, from, to);
    report.done.push_back({ name, name + " reads " + g[to].name + " instead of " + g[from].name });
    return report;
}

Result<PassReport> replaceUses(GraphModule &gm, NodeId node, NodeId to)
{
    Graph &g = gm.graph;
    const std::string &name = g[node].name, &other = g[to].name;
    PassReport report{ "Replace the uses of " + name, false, {}, {} };
    if (g[to].op == Opcode::Output)
        return Error{ other + " cannot stand for " + name + ": an output gives no value" };
    if (node == to)
        return report;
    for (NodeId user : std::vector(g.users(node))) {
        if (user == to)
            return Error{ other + " cannot stand for " + name + ": it is computed from it" };
        auto rewired = rewireInput(gm, user, node, to);
        if (!rewired)
            return rewired;
        report.done.insert(report.done.end(), rewired->done.begin(), rewired->done.end());
        report.changed = true;
    }
    if (!report.changed)
        report.kept.push_back({ name, name + " kept: nothing reads it" });
    return report;
}

Result<PassReport> moveNode(GraphModule &gm, NodeId node, NodeId before)
{
    Graph &g = gm.graph;
    const std::string failed = "cannot move " + g[node].name + " before " + g[before].name + ": ";
    if (g[node].op == Opcode::Output)
        return Error{ failed + "the output stays last" };
    const size_t from = g.position(node), to = g.position(before);
    PassReport report{ "Move " + g[node].name, from != to && from + 1 != to, {}, {} };
    if (!report.changed)
        return report;
    const bool up = to < from;
    const auto inputs = g.inputs(node);
    for (size_t i = up ? to : from + 1; i < (up ? from : to); ++i) {
        const NodeId passed = g.order()[i];
        const auto &users = g.users(node);
        if (up && std::find(inputs.begin(), inputs.end(), passed) != inputs.end())
            return Error{ failed + "it reads " + g[passed].name };
        if (!up && std::find(users.begin(), users.end(), passed) != users.end())
            return Error{ failed + g[passed].name + " reads it" };
        if (g[passed].op == Opcode::Placeholder || g[node].op == Opcode::Placeholder)
            return Error{ failed + "inputs keep their place" };
        if (mutatesInput(gm, g[passed]) || mutatesInput(gm, g[node]))
            return Error{ failed + (mutatesInput(gm, g[node]) ? g[node].name : g[passed].name) + " changes a value in place" };
    }
    g.moveBefore(node, before);
    report.done.push_back({ g[node].name, g[node].name + " moved before " + g[before].name });
    return report;
}

Result<PassReport> insertAfter(GraphModule &gm, NodeId node, const OpRef &op, const Kwargs &arguments,
    const std::set<NodeId> &users, const std::string &name)
{
    Graph &g = gm.graph;
    const Node at = g[node];
    if (at.op == Opcode::Output)
        return Error{ "cannot insert after " + at.name + ": nothing follows the output" };
    for (NodeId user : users)
        if (const auto &all = g.users(node); std::find(all.begin(), all.end(), user) == all.end())
            return Error{ "cannot insert between " + at.name + " and " + g[user].name + ": " + g[user].name
                + " does not read it" };
    if (Status s = checkNames(op, arguments); !s)
        return s.error();
    if (!name.empty() && (g.find(name) || g.uniqueName(name) != name))
        return Error{ "cannot insert \"" + name + "\": that is no free name for a node" };
    const OpInfo *info = op.op == Opcode::CallModule ? findModuleClass(op.target)
        : op.op == Opcode::CallMethod                ? findMethod(op.target)
                                                     : findFunction(op.target);
    Values values(arguments.begin(), arguments.end());
    if (info && !info->params.empty())
        values.insert(values.begin(), { std::string(info->params.front().name), node });
    auto call = writeCall(op, values);
    if (!call)
        return Error{ "cannot insert after " + at.name + ": " + call.message() };

    Node n;
    n.op = call->op;
    n.name = name;
    n.target = call->target;
    n.args = call->args;
    n.kwargs = call->kwargs;
    n.stack = at.stack;
    if (info->category == Category::Activation || (info->category == Category::Arithmetic && arguments.empty()))
        n.meta = at.meta;
    if (call->module) {
        ModuleInfo m = *call->module;
        std::string path = m.shortClass();
        std::transform(path.begin(), path.end(), path.begin(), [](unsigned char c) { return char(std::tolower(c)); });
        m.path = gm.uniqueModulePath(joinPath(at.modulePath(), name.empty() ? path : name));
        n.target = m.path;
        if (const ModuleInfo *root = gm.modules.find(""))
            m.training = root->training;
        gm.addModule(std::move(m));
    }
    // Inputs keep their place at the top, so a call on one of them follows the last.
    NodeId after = node;
    for (NodeId p : g.placeholders())
        if (at.op == Opcode::Placeholder && g.position(p) > g.position(after))
            after = p;
    std::vector<NodeId> readers;
    for (NodeId user : g.users(node))
        if (users.empty() || users.contains(user))
            readers.push_back(user);
    // Other inputs may stand later than `node`.
    const auto before = readers.empty()
        ? NodeId{}
        : *std::min_element(readers.begin(), readers.end(), [&](NodeId a, NodeId b) { return g.position(a) < g.position(b); });
    const NodeId id = g.insertAfter(after, std::move(n));
    for (NodeId in : g.inputs(id))
        if (Status s = makeAvailable(gm, in, id); !s)
            return s.error();
    if (before && g.position(before) < g.position(id))
        if (Status s = makeAvailable(gm, id, before); !s)
            return s.error();
    for (NodeId user : readers) {
        if (!g[id].meta)
            forgetShapes(g, user);
        g.replaceInput(user, node, id);
    }
    // An argument that is computed from what was rewired would now be computed from itself.
    for (NodeId in : g.inputs(id))
        if (g.position(in) > g.position(id))
            return Error{ "cannot insert after " + at.name + ": " + g[in].name + " would be computed from itself" };
    PassReport report{ "Insert " + opText(op), true, {}, {} };
    report.done.push_back({ g[id].name,
        g[id].name + " = " + opText(op) + " inserted after " + at.name
            + (readers.empty() ? "" : "; read by " + nodeList(g, readers)) });
    return report;
}

Result<PassReport> setArgument(GraphModule &gm, NodeId node, const std::string &argument, const Arg &value)
{
    Graph &g = gm.graph;
    const Node n = g[node];
    PassReport report{ "Set " + argument + " of " + n.name, true, {}, {} };
    ArgList args = n.args;
    Kwargs kwargs = n.kwargs;
    Arg *place = nullptr;

    size_t index = 0;
    const auto [end, error] = std::from_chars(argument.data(), argument.data() + argument.size(), index);
    const OpInfo *op = opInfo(gm, n);
    const ModuleInfo *m = gm.moduleOf(n);
    if (error == std::errc() && end == argument.data() + argument.size()) {
        if (index >= args.size())
            return Error{ n.name + " has no argument " + argument + "; it has " + std::to_string(args.size()) + " by position" };
        place = &args[index];
    } else {
        for (auto &[k, v] : kwargs)
            if (k == argument)
                place = &v;
        if (!place && op && !m)
            for (size_t i = 0; i < std::min(op->params.size(), args.size()); ++i)
                if (op->params[i].name == argument)
                    place = &args[i];
    }
    if (!place && m && m->attr(argument)) {
        const Arg old = *m->attr(argument);
        if (Tensor t = gm.moduleTensor(n.target, argument))
            return Error{ argument + " of " + n.name + " is a tensor of shape " + t->shapeText() + ", which cannot be typed in" };
        ModuleInfo changed = *m;
        for (auto &[k, v] : changed.attrs)
            if (k == argument)
                v = value;
        const std::string was = argument + "=" + argText(gm, old);
        if (const size_t at = changed.extraRepr.find(was); at != std::string::npos)
            changed.extraRepr.replace(at, was.size(), argument + "=" + argText(gm, value));
        report.changed = !(old == value);
        gm.modules.set(n.target, std::move(changed));
        forgetShapes(g, node);
        report.done.push_back({ n.name, argument + " of " + n.name + ": " + argText(gm, old) + " -> " + argText(gm, value) });
        return report;
    }
    if (!place) {
        bool known = false;
        std::string names;
        for (const OpParam &p : op && !m ? op->params : std::span<const OpParam>()) {
            known = known || p.name == argument;
            names += (names.empty() ? "" : ", ") + std::string(p.name);
        }
        if (!known)
            return Error{ n.name + " has no argument \"" + argument + "\"" + (names.empty() ? "" : "; it takes " + names) };
        kwargs.emplace_back(argument, Arg());
        place = &kwargs.back().second;
    }
    const std::string old = argText(gm, *place);
    report.changed = !(*place == value);
    *place = value;
    std::vector<NodeId> needed;
    forEachNode(value, [&](NodeId in) { needed.push_back(in); });
    for (NodeId in : needed)
        if (Status s = makeAvailable(gm, in, node); !s)
            return s.error();
    g.setArgs(node, std::move(args), std::move(kwargs));
    if (report.changed && n.op != Opcode::Output)
        forgetShapes(g, node);
    report.done.push_back({ n.name, argument + " of " + n.name + ": " + old + " -> " + argText(gm, value) });
    return report;
}

Result<PassReport> setTarget(GraphModule &gm, NodeId node, const OpRef &op)
{
    Graph &g = gm.graph;
    const Node &n = g[node];
    if (n.op != Opcode::CallFunction && n.op != Opcode::CallMethod)
        return Error{ "cannot set the target of " + n.name + ": it is a " + std::string(opcodeName(n.op)) + "; use \"replace\"" };
    if (op.op == Opcode::CallModule)
        return Error{ "cannot set the target of " + n.name + " to " + opText(op) + ": a module has to be made; use \"replace\"" };
    PassReport report{ "Set target of " + n.name, !(opRefOf(gm, n) == op), {}, {} };
    if (report.changed) {
        report.done.push_back({ n.name, n.name + ": " + opText(opRefOf(gm, n)) + " -> " + opText(op) });
        g.setTarget(node, op.op, op.target);
        forgetShapes(g, node);
    }
    return report;
}

Result<PassReport> renameNode(GraphModule &gm, NodeId node, const std::string &name)
{
    const std::string old = gm.graph[node].name;
    PassReport report{ "Rename " + old, old != name, {}, {} };
    if (Status s = gm.graph.rename(node, name); !s)
        return s.error();
    if (report.changed)
        report.done.push_back({ name, old + " renamed to " + name });
    return report;
}

} // namespace fb
