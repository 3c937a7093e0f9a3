#include "passes/edit_tools.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>

#include "model/ir/ops.h"

namespace fb
{

std::string camelCase(std::string_view text)
{
    std::string out;
    bool up = true;
    for (char c : text) {
        if (!std::isalnum(static_cast<unsigned char>(c))) {
            up = true;
            continue;
        }
        out += up ? char(std::toupper(static_cast<unsigned char>(c))) : c;
        up = false;
    }
    return out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) ? "Block" + out : out;
}

std::string nodeList(const Graph &g, const std::vector<NodeId> &ids)
{
    std::string list;
    for (NodeId id : ids)
        list += (list.empty() ? "" : ", ") + g[id].name;
    return list;
}

void dropModules(GraphModule &gm, const std::set<std::string> &paths)
{
    // The dropped path that `name` is or lies below, or null.
    std::set<std::string> going = paths;
    auto owner = [&](const std::string &name) -> const std::string * {
        for (size_t dot = name.size(); dot != std::string::npos; dot = dot ? name.rfind('.', dot - 1) : std::string::npos)
            if (auto it = going.find(name.substr(0, dot)); it != going.end())
                return &*it;
        return nullptr;
    };
    auto needed = [&](const std::string &name) {
        while (const std::string *path = owner(name))
            going.erase(*path);
    };
    for (NodeId id : gm.graph.order()) {
        const Node &n = gm.graph[id];
        if (n.op == Opcode::CallModule || n.op == Opcode::GetAttr)
            needed(n.target);
    }
    for (const auto &[path, info] : gm.modules)
        if (!info->aliasOf.empty() && !owner(path))
            needed(info->aliasOf);
    if (going.empty())
        return;
    OrderedTable<ModuleInfo> modules;
    for (const auto &[path, info] : gm.modules)
        if (!owner(path))
            modules.share(path, info);
    OrderedTable<TensorEntry> tensors;
    for (const auto &[fqn, entry] : gm.tensors)
        if (!owner(fqn))
            tensors.share(fqn, entry);
    gm.modules = std::move(modules);
    gm.tensors = std::move(tensors);
}

void clearModule(GraphModule &gm, const std::string &path)
{
    auto below = [&](const std::string &name) { return name.starts_with(path + "."); };
    OrderedTable<ModuleInfo> modules;
    for (const auto &[name, info] : gm.modules)
        if (!below(name))
            modules.share(name, info);
    OrderedTable<TensorEntry> tensors;
    for (const auto &[name, entry] : gm.tensors)
        if (!below(name))
            tensors.share(name, entry);
    gm.modules = std::move(modules);
    gm.tensors = std::move(tensors);
}

void forgetShapes(Graph &g, NodeId start)
{
    std::unordered_set<NodeId> seen{ start };
    std::vector<NodeId> todo{ start };
    while (!todo.empty()) {
        const NodeId id = todo.back();
        todo.pop_back();
        g.setMeta(id, std::nullopt);
        for (NodeId user : g.users(id))
            if (seen.insert(user).second)
                todo.push_back(user);
    }
}

Status makeAvailable(GraphModule &gm, NodeId id, NodeId user)
{
    Graph &g = gm.graph;
    const size_t place = g.position(user);
    std::unordered_set<NodeId> moving;
    std::vector<NodeId> todo{ id };
    while (!todo.empty()) {
        const NodeId next = todo.back();
        todo.pop_back();
        if (next == user)
            return Error{ g[user].name + " cannot read " + g[id].name + ": " + g[id].name
                + (id == user ? " is itself" : " is computed from it") + ", which would make a cycle" };
        if (g.position(next) < place || !moving.insert(next).second)
            continue;
        for (NodeId in : g.inputs(next))
            todo.push_back(in);
    }
    if (moving.empty())
        return {};
    std::vector<NodeId> order(g.order().begin(), g.order().begin() + std::ptrdiff_t(place)), rest;
    for (size_t i = place; i < g.size(); ++i) {
        const NodeId at = g.order()[i];
        (moving.contains(at) ? order : rest).push_back(at);
    }
    size_t last = 0;
    for (NodeId m : moving)
        last = std::max(last, g.position(m));
    for (size_t i = place; i <= last; ++i)
        if (mutatesInput(gm, g[g.order()[i]]))
            return Error{ g[user].name + " cannot read " + g[id].name + ": it would have to be computed earlier, before "
                + g[g.order()[i]].name + " changes a value in place" };
    order.insert(order.end(), rest.begin(), rest.end());
    g.reorder(std::move(order));
    return {};
}

} // namespace fb
