// Fuseboard: Graph and Node, the value at the heart of everything. GPL-3.0-or-later.
//
// The names and rules are torch.fx's (torch/fx/graph.py, node.py). A Graph is a value: copying one is cheap (nodes are
// shared until written), `==` compares what a user can see, nothing in it points into another graph. Users are derived
// and kept up to date by every edit. All edits go through the functions below; a refused edit leaves the graph as it was.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/ir/arg.h"
#include "model/ir/result.h"

namespace fb
{

enum class Opcode : uint8_t { Placeholder, GetAttr, CallFunction, CallMethod, CallModule, Output };

std::string_view opcodeName(Opcode op); // "call_module"
std::optional<Opcode> opcodeFromName(std::string_view name);

// One level of nn_module_stack: the module whose forward was running, and which call of it (0 is the first).
struct ModuleFrame {
    std::string path; // "layer1.0"
    std::string className; // "torchvision.models.resnet.BasicBlock"
    int call = 0;
    bool operator==(const ModuleFrame &) const = default;
};
using ModuleStack = std::vector<ModuleFrame>; // outermost first, without the root

struct SourceLine {
    std::string file;
    int line = 0;
    std::string code;
    std::string function;
    bool operator==(const SourceLine &) const = default;
};

struct TensorMeta {
    std::vector<int64_t> shape;
    DType dtype = DType::Float32;
    bool operator==(const TensorMeta &) const = default;
};

using Kwargs = std::vector<std::pair<std::string, Arg>>;

struct Node {
    NodeId id;
    Opcode op = Opcode::CallFunction;
    std::string name;
    std::string target; // call_function: qualified name ("torch.flatten", "operator.add", "builtins.getattr"); else fx's string
    ArgList args;
    Kwargs kwargs;
    std::string type; // annotation as generated code spells it, or empty
    std::string typeText; // as str(graph) spells it, where that is not what follows from `type`
    std::shared_ptr<const Kwargs> metadata; // the rest of torch's Node.meta, or null; no nodes in it
    std::shared_ptr<const ModuleStack> stack; // may be null: made outside any module
    std::shared_ptr<const SourceLine> source; // may be null
    std::optional<TensorMeta> meta; // of the tensor it gives, where known

    // Path of the innermost module whose forward made this node; "" is the root.
    const std::string &modulePath() const;
    const Arg *kwarg(std::string_view name) const;
};

class Graph
{
public:
    Graph() = default;

    // --- reading ---
    size_t size() const { return order_.size(); }
    const std::vector<NodeId> &order() const { return order_; } // execution order
    bool contains(NodeId id) const;
    const Node &node(NodeId id) const; // contains(id)
    const Node &operator[](NodeId id) const { return node(id); }
    NodeId find(std::string_view name) const; // NodeId{} when absent
    const std::vector<NodeId> &users(NodeId id) const; // each once, in the order they came to use it
    std::vector<NodeId> inputs(NodeId id) const; // all_input_nodes: each once, in argument order
    size_t position(NodeId id) const; // index in order()
    NodeId output() const; // the output node, NodeId{} when absent
    std::vector<NodeId> placeholders() const;
    std::string uniqueName(std::string_view candidate) const; // torch 2.13's _Namespace.create_name

    // --- edits ---
    // The node gets a fresh id (id of `n` is ignored) and, when its name is empty or taken, a name made from name or target.
    NodeId append(Node n);
    NodeId insertBefore(NodeId before, Node n);
    NodeId insertAfter(NodeId after, Node n);
    Status erase(NodeId id); // refuses while it has users, and lists them
    // Many at once, in one sweep; refuses, changing nothing, when one of them is used by a node that stays.
    Status erase(const std::vector<NodeId> &ids);
    void setArgs(NodeId id, ArgList args, Kwargs kwargs);
    void setTarget(NodeId id, Opcode op, std::string target);
    void setMeta(NodeId id, std::optional<TensorMeta> meta);
    void setStack(NodeId id, std::shared_ptr<const ModuleStack> stack);
    Status rename(NodeId id, std::string_view name); // refuses a name that is taken or no identifier
    // Every use of `from` becomes a use of `to`, except in `except`.
    void replaceAllUses(NodeId from, NodeId to, NodeId except = {});
    void replaceInput(NodeId user, NodeId from, NodeId to); // the same for one user
    void mapInputs(
        NodeId user, const std::function<Arg(NodeId)> &replace); // each reference to a node becomes what `replace` gives
    void moveBefore(NodeId id, NodeId before);
    // The same nodes in another order.
    void reorder(std::vector<NodeId> order);
    // A node with a given id and position, for undoing an extraction exactly. The id must have belonged to this document and be
    // free.
    void restore(Node n, NodeId before /* NodeId{}: at the end */);

    uint32_t nextId() const { return nextId_; }
    void reserveIds(uint32_t next) { nextId_ = next > nextId_ ? next : nextId_; }

    bool operator==(const Graph &other) const; // same nodes in the same order; ids and users do not count

private:
    struct Names {
        std::unordered_map<std::string, NodeId> ids;
        std::unordered_map<std::string, uint64_t> counts; // the last number given for "add" in add_1, add_2, as torch counts
    };
    Node &edit(NodeId id);
    const Names &names() const;
    Names &editNames();
    void link(const Node &n);
    void unlink(const Node &n);
    NodeId insertAt(size_t index, Node n, bool keepId);

    std::vector<NodeId> order_;
    std::vector<std::shared_ptr<Node>> nodes_; // by id; null where free
    std::vector<std::vector<NodeId>> users_; // by id
    std::shared_ptr<Names> names_; // shared between copies until one of them changes a name; null: none yet
    mutable std::vector<uint32_t> positions_; // by id; valid while positionsValid_
    mutable bool positionsValid_ = false;
    uint32_t nextId_ = 1;
};

} // namespace fb
