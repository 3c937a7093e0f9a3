// Remove: taking a node out must leave its users with an obvious input. GPL-3.0-or-later.
//
// By hand (`removeNode`) that input is the node's only one; with two there is a choice to make, and the edit says so. By
// cleaning (`eliminateDeadCode`) only nodes go that nobody reads, and of those not the ones that work by changing a
// value in place: torch.fx drops `y.mul_(3)` for having no users, and the result changes silently.
#include "passes/edit_tools.h"
#include "passes/edits.h"

#include "model/ir/ops.h"

namespace fb
{

Result<PassReport> removeNode(GraphModule &gm, NodeId id)
{
    Graph &g = gm.graph;
    const Node n = g[id];
    if (n.op == Opcode::Output)
        return Error{ "cannot remove " + n.name + ": a graph needs its output" };
    PassReport report{ "Remove " + n.name, true, {}, {} };
    std::string what = n.name + " removed";
    const std::vector<NodeId> users = g.users(id);
    if (!users.empty()) {
        const std::vector<NodeId> inputs = g.inputs(id);
        if (inputs.empty())
            return Error{ "cannot remove " + n.name + ": " + nodeList(g, users) + " would have no input; rewire or remove "
                + (users.size() == 1 ? "it" : "those") + " first" };
        if (inputs.size() > 1)
            return Error{ "cannot remove " + n.name + ": it has " + std::to_string(inputs.size()) + " inputs ("
                + nodeList(g, inputs) + "), so what " + nodeList(g, users) + " should read is not clear; rewire "
                + (users.size() == 1 ? "it" : "those") + " first" };
        if (g[inputs.front()].meta != n.meta)
            forgetShapes(g, id);
        g.replaceAllUses(id, inputs.front());
        what += "; " + nodeList(g, users) + (users.size() == 1 ? " now reads " : " now read ") + g[inputs.front()].name;
    }
    if (Status s = g.erase(id); !s)
        return s.error();
    if (n.op == Opcode::CallModule)
        dropModules(gm, { n.target });
    report.done.push_back({ n.name, what });
    return report;
}

namespace
{

// Calls that are worth something without a user. Unknown functions and leaves may do anything.
std::string whyKept(const GraphModule &gm, const Node &n)
{
    if (n.op == Opcode::GetAttr)
        return {};
    if (mutatesInput(gm, n))
        return "it changes a value in place";
    const OpInfo *op = opInfo(gm, n);
    const ModuleInfo *m = gm.moduleOf(n);
    if (op && op->random && (!m || m->training))
        return "it moves the random generator on";
    if (n.op == Opcode::CallFunction && (n.target.find("_assert") != std::string::npos || n.target == "builtins.print"))
        return "it acts without giving a value";
    if (!op && n.op == Opcode::CallModule) {
        const ModuleInfo *m = gm.moduleOf(n);
        return m && m->kind == ModuleKind::Nn ? std::string()
                                              : "what " + (m ? m->shortClass() : n.target) + " does besides is not known";
    }
    if (!op)
        return "what " + n.target + " does besides is not known";
    return {};
}

} // namespace

Result<PassReport> eliminateDeadCode(GraphModule &gm)
{
    Graph &g = gm.graph;
    PassReport report{ "Remove dead nodes", false, {}, {} };
    std::set<std::string> modules;
    std::vector<uint32_t> readers(g.nextId());
    for (NodeId id : g.order())
        readers[id.value] = uint32_t(g.users(id).size());
    std::vector<NodeId> dead;
    for (size_t i = g.size(); i-- > 0;) {
        const NodeId id = g.order()[i];
        const Node &n = g[id];
        if (readers[id.value] || n.op == Opcode::Placeholder || n.op == Opcode::Output)
            continue;
        if (const std::string why = whyKept(gm, n); !why.empty()) {
            report.kept.push_back({ n.name, n.name + " kept: " + why });
            continue;
        }
        for (NodeId in : g.inputs(id))
            --readers[in.value];
        if (n.op == Opcode::CallModule)
            modules.insert(n.target);
        report.done.push_back({ n.name, n.name + " removed: nothing reads it" });
        dead.push_back(id);
    }
    if (dead.empty())
        return report;
    if (Status s = g.erase(dead); !s)
        return s.error();
    dropModules(gm, modules);
    report.changed = true;
    return report;
}

} // namespace fb
