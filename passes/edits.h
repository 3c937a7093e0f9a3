// Fuseboard: edits by hand as passes: replace, remove, mark as leaf. GPL-3.0-or-later.
#pragma once

#include <set>
#include <string>

#include "passes/pass.h"

namespace fb
{

// What a node calls: an opcode (call_function, call_method, call_module) with a function name, method name or module class.
struct OpRef {
    Opcode op = Opcode::CallFunction;
    std::string target; // "torch.clamp", "relu", "torch.nn.modules.activation.ReLU6" (or "nn.ReLU6")
    // Accepts "torch.clamp", "F.relu", "nn.ReLU6", ".relu()" and full names; an error names what is near.
    static Result<OpRef> parse(const std::string &text);
    bool operator==(const OpRef &) const = default;
};
OpRef opRefOf(const GraphModule &gm, const Node &n);

// Replaces the op of each node in `nodes` by `to`. Arguments carry over by name (inplace to inplace, p to p ...), the tensor
// inputs by position; what does not fit the new op is dropped, and the report says so. A required argument with no value is an
// error. Modules are made with their default facts under the old path.
Result<PassReport> replaceNodes(GraphModule &gm, const std::set<NodeId> &nodes, const OpRef &to, const Kwargs &extra = {});
// The same for every node that calls `from`.
Result<PassReport> replaceAll(GraphModule &gm, const OpRef &from, const OpRef &to, const Kwargs &extra = {});
// What `from` may sensibly be replaced by (same number of tensor inputs, same category first).
std::vector<OpRef> replacements(const GraphModule &gm, NodeId node);

// Removes a node and reconnects its single tensor input to its users; refused, with what is in the way, where that is ambiguous.
Result<PassReport> removeNode(GraphModule &gm, NodeId node);
// torch.fx's eliminate_dead_code, except that a node that mutates is never dropped (case TR-06).
Result<PassReport> eliminateDeadCode(GraphModule &gm);

// The nodes of module `path` become one call_module of kind Graph whose inside is kept, in float, never quantized. Works when the
// nodes were made by one call of the module and form a piece that can be cut out (what it gives to the outside is returned, as a
// tuple where it is several values). unmarkLeaf restores the same nodes, names, places and text.
Result<PassReport> markLeaf(GraphModule &gm, const std::string &path);
Result<PassReport> unmarkLeaf(GraphModule &gm, const std::string &path);

// The nodes become one call of a new module `path`, whose inside they are. Modules that only they use move below it, and their
// weights get new names; others keep theirs. Refused where a value leaves the nodes and comes back, where nothing reads what they
// give, and where nodes in between would have to pass an in-place one. Like torch.fx.passes.split_module, for a chosen set.
Result<PassReport> extractNodes(
    GraphModule &gm, const std::set<NodeId> &nodes, const std::string &path, const std::string &className = {});
// Every call of a module that holds a graph (marked, extracted, or a nested GraphModule) becomes that graph's nodes.
Result<PassReport> inlineModule(GraphModule &gm, const std::string &path);
// The same for all but the marked leaves, to any depth; the report says which kept their graph and why.
PassReport inlineAll(GraphModule &gm);

// Every user of `node` reads `to` instead; refused where `to` is computed from it.
Result<PassReport> replaceUses(GraphModule &gm, NodeId node, NodeId to);
// Another place in the order of execution; refused where a value would be used before it is there, or an in-place node passed.
Result<PassReport> moveNode(GraphModule &gm, NodeId node, NodeId before);

// One input of `node` comes from `to` instead of `from`. Nodes that `to` needs move up where they have to; a cycle is refused.
Result<PassReport> rewireInput(GraphModule &gm, NodeId node, NodeId from, NodeId to);
// A new call of `op` on the value of `node`; the node's users (all, or those in `users`) read the new node.
Result<PassReport> insertAfter(GraphModule &gm, NodeId node, const OpRef &op, const Kwargs &arguments = {},
    const std::set<NodeId> &users = {}, const std::string &name = {});
// One argument, by position ("0") or by name; a module's fact by name where the call has no such argument.
Result<PassReport> setArgument(GraphModule &gm, NodeId node, const std::string &argument, const Arg &value);
// The function or method that a node calls, its arguments as they are.
Result<PassReport> setTarget(GraphModule &gm, NodeId node, const OpRef &op);
Result<PassReport> renameNode(GraphModule &gm, NodeId node, const std::string &name);

// A call that acts as in training: dropout and batch norm with training=True as a constant (or by default), modules in that mode.
struct TrainingCall {
    std::string node; // of a nested graph: below the path of its module
    std::string message; // one sentence
};
std::vector<TrainingCall> trainingCalls(const GraphModule &gm);
// Module.eval() for the whole graph: every module's flag, and the arguments that the trace froze.
Result<PassReport> evalMode(GraphModule &gm);

// What an edit of EDITS.json may say, as a text for people.
inline constexpr const char *kEditsHelp = R"(EDITS.json is a list of these, applied in order, all or none:
  {"op": "replace", "node": N | "nodes": [N..] | "all": OP, "with": OP, "args": {NAME: VALUE}}
  {"op": "remove", "node": N}
  {"op": "insert_after", "node": N, "call": OP, "args": {NAME: VALUE}, "users": [N..], "name": NAME}
  {"op": "rewire", "node": N, "from": N, "to": N}
  {"op": "set_arg", "node": N, "arg": POSITION | NAME, "value": VALUE}
  {"op": "set_target", "node": N, "target": OP}
  {"op": "rename", "node": N, "name": NAME}
  {"op": "replace_uses", "node": N, "with": N}
  {"op": "move", "node": N, "before": N}
  {"op": "extract", "nodes": [N..], "module": PATH, "class": NAME}
  {"op": "inline", "module": PATH}
  {"op": "leaf" | "unleaf", "module": PATH}
  {"op": "eval"}
  {"op": "regroup"} ATen operators of an exported program into the modules that they came from
  {"op": "fuse"} everything, {"op": "fuse", "nodes": [N..]}
N is a node's name; OP a function, method or module by PyTorch's name like torch.sigmoid, .relu() or nn.ReLU; VALUE as in JSON.
)";

// Applies EDITS.json of cli.md: a list of edits in order, all or nothing; errors begin with the edit's number.
// OP is what OpRef::parse takes, VALUE an argument as fxt-format.md writes it.
Result<PassReport> applyEdits(GraphModule &gm, const std::string &json);

} // namespace fb
