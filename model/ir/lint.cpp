#include "model/ir/lint.h"

#include <string_view>
#include <unordered_set>

namespace fb
{

std::vector<LintProblem> lint(const GraphModule &gm)
{
    std::vector<LintProblem> problems;
    const Graph &g = gm.graph;
    std::unordered_set<std::string_view> names;
    names.reserve(g.size());
    std::vector<bool> defined(g.nextId()); // by id
    bool sawOutput = false;

    // Placeholders may stand between other nodes: torch.fx checks a fixed argument right after its placeholder.
    for (NodeId id : g.order()) {
        const Node &n = g[id];
        auto report = [&](std::string text) { problems.push_back({ n.name, std::move(text) }); };
        if (!names.insert(n.name).second)
            report("the name " + n.name + " is used twice");
        if (sawOutput)
            report(n.name + " stands after the output");
        for (NodeId in : g.inputs(id)) {
            if (!g.contains(in))
                report(n.name + " uses a node that does not exist");
            else if (!defined[in.value])
                report(n.name + " uses " + g[in].name + " before it is defined");
        }
        switch (n.op) {
        case Opcode::CallModule:
            if (!gm.modules.contains(n.target))
                report(n.name + " calls module " + n.target + ", which does not exist");
            break;
        case Opcode::GetAttr:
            if (!gm.tensors.contains(n.target) && !gm.attributes.contains(n.target) && !gm.modules.contains(n.target))
                report(n.name + " reads attribute " + n.target + ", which does not exist");
            break;
        case Opcode::Output:
            sawOutput = true;
            break;
        case Opcode::CallMethod:
            if (n.args.empty())
                report(n.name + " calls method " + n.target + " on nothing");
            break;
        case Opcode::Placeholder:
        case Opcode::CallFunction:
            break;
        }
        defined[id.value] = true;
    }
    if (!sawOutput)
        problems.push_back({ "", "the graph has no output" });
    return problems;
}

} // namespace fb
