// Fuseboard: edits by hand as passes: replace, remove, mark as leaf. GPL-3.0-or-later.
#pragma once

#include <set>
#include <string>

#include "passes/pass.h"

namespace fb {

// What a node calls: an opcode (call_function, call_method, call_module) with a function name, method name or module class.
struct OpRef {
    Opcode op = Opcode::CallFunction;
    std::string target;                 // "torch.clamp", "relu", "torch.nn.modules.activation.ReLU6" (or "nn.ReLU6")
    // Accepts "torch.clamp", "F.relu", "nn.ReLU6", ".relu()" and full names; an error names what is near.
    static Result<OpRef> parse(const std::string &text);
    bool operator==(const OpRef &) const = default;
};
OpRef opRefOf(const GraphModule &gm, const Node &n);

// Replaces the op of each node in `nodes` by `to`. Arguments carry over by name (inplace to inplace, p to p ...), the tensor inputs by
// position; what does not fit the new op is dropped, and the report says so. A required argument with no value is an error.
// Modules are made with their default facts under the old path.
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
// nodes were made by one call of the module and form a piece that can be cut out (what it gives to the outside is returned, as a tuple where
// it is several values). unmarkLeaf restores the same nodes, names, places and text.
Result<PassReport> markLeaf(GraphModule &gm, const std::string &path);
Result<PassReport> unmarkLeaf(GraphModule &gm, const std::string &path);

// Applies EDITS.json of cli.md (a list of {"op": ...}); all or nothing.
Result<PassReport> applyEdits(GraphModule &gm, const std::string &json);

} // namespace fb
