#include "model/ir/pinned.h"

namespace fb
{

std::optional<Arg> pinnedValue(const Graph &graph, NodeId id)
{
    if (graph[id].op != Opcode::Placeholder || graph.users(id).size() != 1)
        return {};
    const Node &test = graph[graph.users(id)[0]];
    if (test.op != Opcode::CallFunction || test.args.empty() || !test.args[0].as<NodeId>())
        return {};
    if (test.target.ends_with("._assert_is_none"))
        return Arg();
    if (test.target != "operator.eq" || test.args.size() != 2 || test.args[1].as<NodeId>() || graph.users(test.id).size() != 1)
        return {};
    const Node &check = graph[graph.users(test.id)[0]];
    if (check.op != Opcode::CallFunction || check.target != "torch._assert")
        return {};
    return test.args[1];
}

} // namespace fb
