#include "model/ir/graph.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_set>

namespace fb
{

namespace
{

constexpr std::array<std::string_view, 6> kOpcodes{ "placeholder", "get_attr", "call_function", "call_method", "call_module",
    "output" };

// Names that generated code must not rebind: Python's keywords, its builtins in use by fx, and fx's own globals. torch 2.13 lets
// a node be called None, and so do we: code calls it otherwise.
constexpr std::string_view kIllegalNames[] = { "False", "True", "and", "as", "assert", "async", "await", "break", "class",
    "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
    "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield", "abs", "all", "any", "bin", "bool",
    "bytes", "callable", "chr", "complex", "dict", "dir", "divmod", "enumerate", "eval", "exec", "filter", "float", "format",
    "getattr", "globals", "hasattr", "hash", "help", "hex", "id", "input", "int", "isinstance", "iter", "len", "list", "locals",
    "map", "max", "min", "next", "object", "oct", "open", "ord", "pow", "print", "property", "range", "repr", "reversed", "round",
    "set", "setattr", "slice", "sorted", "str", "sum", "super", "tuple", "type", "vars", "zip", "inf", "nan", "NoneType", "torch",
    "device", "fx_pytree", "pytree" };

bool isIllegalName(std::string_view name)
{
    return std::find(std::begin(kIllegalNames), std::end(kIllegalNames), name) != std::end(kIllegalNames);
}

bool isIdentifier(std::string_view s)
{
    return !s.empty() && !std::isdigit(static_cast<unsigned char>(s[0]))
        && std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

std::string toIdentifier(std::string_view candidate)
{
    std::string out;
    bool illegal = false; // a run of illegal characters becomes one underscore
    for (unsigned char c : candidate) {
        const bool wasIllegal = illegal;
        illegal = !(std::isalnum(c) || c == '_');
        if (!illegal)
            out += char(c);
        else if (!wasIllegal)
            out += '_';
    }
    if (out.empty())
        return "_unnamed";
    return std::isdigit(static_cast<unsigned char>(out[0])) ? "_" + out : out;
}

// "add_12" is base "add" and number 12; a name without a number is its own base.
struct NameParts {
    std::string base;
    std::optional<uint64_t> number;
};

NameParts splitName(const std::string &name)
{
    const size_t bar = name.rfind('_');
    if (bar == std::string::npos || bar == 0 || bar + 1 == name.size() || name.size() - bar > 18
        || !std::all_of(name.begin() + std::ptrdiff_t(bar) + 1, name.end(), [](unsigned char c) { return std::isdigit(c); }))
        return { name, std::nullopt };
    return { name.substr(0, bar), std::stoull(name.substr(bar + 1)) };
}

// torch.fx.graph._snake_case
std::string snakeCase(std::string_view s)
{
    std::string out;
    for (size_t i = 0; i < s.size(); ++i) {
        const auto c = static_cast<unsigned char>(s[i]);
        if (std::isupper(c) && i > 0 && s[i - 1] != '_' && s[i - 1] != '.')
            out += '_';
        out += char(std::tolower(c));
    }
    return out;
}

// What torch.fx would call a node made for this target.
std::string candidateName(const Node &n)
{
    if (!n.name.empty())
        return n.name;
    if (n.op == Opcode::Output)
        return "output";
    std::string_view target = n.target;
    if (n.op == Opcode::CallFunction) {
        if (target.starts_with("torch.ops.")) { // torch.ops.aten.add.Tensor -> add
            const size_t overload = target.rfind('.');
            if (std::count(target.begin(), target.end(), '.') > 3)
                target = target.substr(0, overload);
        }
        target = target.substr(target.rfind('.') + 1);
    }
    return snakeCase(target);
}

const std::string kRoot;

} // namespace

std::string_view opcodeName(Opcode op)
{
    return kOpcodes[size_t(op)];
}

std::optional<Opcode> opcodeFromName(std::string_view name)
{
    auto it = std::find(kOpcodes.begin(), kOpcodes.end(), name);
    if (it == kOpcodes.end())
        return std::nullopt;
    return Opcode(it - kOpcodes.begin());
}

const std::string &Node::modulePath() const
{
    return stack && !stack->empty() ? stack->back().path : kRoot;
}

const Arg *Node::kwarg(std::string_view key) const
{
    for (const auto &[k, v] : kwargs)
        if (k == key)
            return &v;
    return nullptr;
}

bool Graph::contains(NodeId id) const
{
    return id.value < nodes_.size() && nodes_[id.value];
}
const Node &Graph::node(NodeId id) const
{
    return *nodes_[id.value];
}
const std::vector<NodeId> &Graph::users(NodeId id) const
{
    return users_[id.value];
}

NodeId Graph::find(std::string_view name) const
{
    auto it = names().ids.find(std::string(name));
    return it == names().ids.end() ? NodeId{} : it->second;
}

std::vector<NodeId> Graph::inputs(NodeId id) const
{
    std::vector<NodeId> out;
    auto visit = [&](NodeId in) {
        if (std::find(out.begin(), out.end(), in) == out.end())
            out.push_back(in);
    };
    const Node &n = node(id);
    for (const Arg &a : n.args)
        forEachNode(a, visit);
    for (const auto &kw : n.kwargs)
        forEachNode(kw.second, visit);
    return out;
}

size_t Graph::position(NodeId id) const
{
    if (!positionsValid_) {
        positions_.assign(nodes_.size(), 0);
        for (size_t i = 0; i < order_.size(); ++i)
            positions_[order_[i].value] = uint32_t(i);
        positionsValid_ = true;
    }
    return positions_[id.value];
}

NodeId Graph::output() const
{
    for (size_t i = order_.size(); i-- > 0;)
        if (node(order_[i]).op == Opcode::Output)
            return order_[i];
    return {};
}

std::vector<NodeId> Graph::placeholders() const
{
    std::vector<NodeId> out;
    for (NodeId id : order_)
        if (node(id).op == Opcode::Placeholder)
            out.push_back(id);
    return out;
}

std::string Graph::uniqueName(std::string_view wanted) const
{
    std::string candidate = toIdentifier(wanted);
    const bool illegal = isIllegalName(candidate);
    const auto &[ids, counts] = names();
    if (!illegal && !ids.contains(candidate))
        return candidate;
    const std::string base = splitName(candidate).base;
    const auto count = counts.find(base);
    uint64_t number = count == counts.end() ? 0 : count->second;
    do
        candidate = base + "_" + std::to_string(++number);
    while (ids.contains(candidate));
    return candidate;
}

Node &Graph::edit(NodeId id)
{
    auto &slot = nodes_[id.value];
    if (slot.use_count() > 1)
        slot = std::make_shared<Node>(*slot);
    return *slot;
}

const Graph::Names &Graph::names() const
{
    static const Names none;
    return names_ ? *names_ : none;
}

Graph::Names &Graph::editNames()
{
    if (!names_)
        names_ = std::make_shared<Names>();
    else if (names_.use_count() > 1)
        names_ = std::make_shared<Names>(*names_);
    return *names_;
}

void Graph::link(const Node &n)
{
    for (NodeId in : inputs(n.id)) {
        auto &u = users_[in.value];
        if (std::find(u.begin(), u.end(), n.id) == u.end())
            u.push_back(n.id);
    }
}

void Graph::unlink(const Node &n)
{
    for (NodeId in : inputs(n.id))
        std::erase(users_[in.value], n.id);
}

NodeId Graph::insertAt(size_t index, Node n, bool keepId)
{
    if (!keepId)
        n.id = NodeId{ nextId_ };
    reserveIds(n.id.value + 1);
    if (!isIdentifier(n.name) || isIllegalName(n.name) || names().ids.contains(n.name))
        n.name = uniqueName(candidateName(n));
    if (nodes_.size() <= n.id.value) {
        nodes_.resize(n.id.value + 1);
        users_.resize(n.id.value + 1);
    }
    const NodeId id = n.id;
    Names &known = editNames();
    known.ids[n.name] = id;
    if (NameParts parts = splitName(n.name); parts.number)
        known.counts[std::move(parts.base)] = *parts.number;
    nodes_[id.value] = std::make_shared<Node>(std::move(n));
    order_.insert(order_.begin() + std::ptrdiff_t(index), id);
    if (positionsValid_ && index + 1 == order_.size()) {
        positions_.resize(nodes_.size());
        positions_[id.value] = uint32_t(index);
    } else {
        positionsValid_ = false;
    }
    link(node(id));
    return id;
}

NodeId Graph::append(Node n)
{
    return insertAt(order_.size(), std::move(n), false);
}
NodeId Graph::insertBefore(NodeId before, Node n)
{
    return insertAt(position(before), std::move(n), false);
}
NodeId Graph::insertAfter(NodeId after, Node n)
{
    return insertAt(position(after) + 1, std::move(n), false);
}

void Graph::restore(Node n, NodeId before)
{
    insertAt(before ? position(before) : order_.size(), std::move(n), true);
}

Status Graph::erase(NodeId id)
{
    return erase(std::vector{ id });
}

Status Graph::erase(const std::vector<NodeId> &ids)
{
    const std::unordered_set<NodeId> going(ids.begin(), ids.end());
    for (NodeId id : ids) {
        std::string list;
        for (NodeId user : users(id))
            if (!going.contains(user))
                list += (list.empty() ? "" : ", ") + node(user).name;
        if (!list.empty())
            return Error{ "cannot remove " + node(id).name + ": it is used by " + list + "; rewire or remove those first" };
    }
    if (going.size() == 1)
        order_.erase(order_.begin() + std::ptrdiff_t(position(ids.front())));
    else
        std::erase_if(order_, [&](NodeId id) { return going.contains(id); });
    for (NodeId id : going) {
        unlink(node(id));
        editNames().ids.erase(node(id).name);
    }
    for (NodeId id : going) {
        users_[id.value].clear();
        nodes_[id.value].reset();
    }
    positionsValid_ = false;
    return {};
}

void Graph::setArgs(NodeId id, ArgList args, Kwargs kwargs)
{
    unlink(node(id));
    Node &n = edit(id);
    n.args = std::move(args);
    n.kwargs = std::move(kwargs);
    link(n);
}

void Graph::setTarget(NodeId id, Opcode op, std::string target)
{
    Node &n = edit(id);
    n.op = op;
    n.target = std::move(target);
}

void Graph::setMeta(NodeId id, std::optional<TensorMeta> meta)
{
    if (node(id).meta != meta)
        edit(id).meta = std::move(meta);
}

void Graph::setStack(NodeId id, std::shared_ptr<const ModuleStack> stack)
{
    edit(id).stack = std::move(stack);
}

Status Graph::rename(NodeId id, std::string_view name)
{
    if (node(id).name == name)
        return {};
    if (!isIdentifier(name) || isIllegalName(name))
        return Error{ "cannot rename " + node(id).name + " to \"" + std::string(name)
            + "\": it is not a free Python identifier" };
    if (find(name))
        return Error{ "cannot rename " + node(id).name + " to " + std::string(name) + ": another node has that name" };
    editNames().ids.erase(node(id).name);
    edit(id).name = name;
    editNames().ids[std::string(name)] = id;
    return {};
}

void Graph::replaceInput(NodeId user, NodeId from, NodeId to)
{
    mapInputs(user, [&](NodeId in) { return Arg(in == from ? to : in); });
}

void Graph::mapInputs(NodeId user, const std::function<Arg(NodeId)> &replace)
{
    const Node &n = node(user);
    ArgList args;
    for (const Arg &a : n.args)
        args.push_back(mapNodes(a, replace));
    Kwargs kwargs;
    for (const auto &[k, v] : n.kwargs)
        kwargs.emplace_back(k, mapNodes(v, replace));
    setArgs(user, std::move(args), std::move(kwargs));
}

void Graph::replaceAllUses(NodeId from, NodeId to, NodeId except)
{
    const std::vector<NodeId> users = this->users(from);
    for (NodeId user : users)
        if (user != except)
            replaceInput(user, from, to);
}

void Graph::moveBefore(NodeId id, NodeId before)
{
    if (id == before)
        return;
    order_.erase(order_.begin() + std::ptrdiff_t(position(id)));
    positionsValid_ = false;
    order_.insert(order_.begin() + std::ptrdiff_t(position(before)), id);
    positionsValid_ = false;
}

void Graph::reorder(std::vector<NodeId> order)
{
    order_ = std::move(order);
    positionsValid_ = false;
}

bool Graph::operator==(const Graph &other) const
{
    if (order_.size() != other.order_.size())
        return false;
    // Node references compare by position, so equal graphs need not share ids.
    auto place = [](const Graph &g) { return [&g](NodeId id) { return Arg(NodeId{ uint32_t(g.position(id)) + 1 }); }; };
    for (size_t i = 0; i < order_.size(); ++i) {
        const auto &pa = nodes_[order_[i].value];
        const auto &pb = other.nodes_[other.order_[i].value];
        const Node &a = *pa, &b = *pb;
        if (a.op != b.op || a.name != b.name || a.target != b.target || a.type != b.type || a.typeText != b.typeText
            || a.args.size() != b.args.size() || a.kwargs.size() != b.kwargs.size() || a.modulePath() != b.modulePath()
            || a.meta != b.meta || bool(a.metadata) != bool(b.metadata) || (a.metadata && *a.metadata != *b.metadata))
            return false;
        for (size_t k = 0; k < a.args.size(); ++k)
            if (!(mapNodes(a.args[k], place(*this)) == mapNodes(b.args[k], place(other))))
                return false;
        for (size_t k = 0; k < a.kwargs.size(); ++k)
            if (a.kwargs[k].first != b.kwargs[k].first
                || !(mapNodes(a.kwargs[k].second, place(*this)) == mapNodes(b.kwargs[k].second, place(other))))
                return false;
    }
    return true;
}

} // namespace fb
