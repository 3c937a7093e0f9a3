#include "model/ir/module.h"

#include <algorithm>
#include <set>

namespace fb
{

std::string ModuleInfo::shortClass() const
{
    return className.substr(className.rfind('.') + 1);
}

const Arg *ModuleInfo::attr(std::string_view name) const
{
    for (const auto &[k, v] : attrs)
        if (k == name)
            return &v;
    return nullptr;
}

const ModuleInfo *GraphModule::moduleOf(const Node &n) const
{
    return n.op == Opcode::CallModule ? modules.find(n.target) : nullptr;
}

Tensor GraphModule::tensor(std::string_view fqn) const
{
    const TensorEntry *e = tensors.find(fqn);
    return e ? e->tensor : nullptr;
}

Tensor GraphModule::moduleTensor(std::string_view path, std::string_view name) const
{
    if (Tensor t = tensor(joinPath(path, name)))
        return t;
    const ModuleInfo *m = modules.find(path);
    return m && !m->aliasOf.empty() ? tensor(joinPath(m->aliasOf, name)) : nullptr;
}

std::vector<NodeId> GraphModule::callers(std::string_view path) const
{
    std::vector<NodeId> out;
    for (NodeId id : graph.order())
        if (graph[id].op == Opcode::CallModule && graph[id].target == path)
            out.push_back(id);
    return out;
}

void GraphModule::addModule(ModuleInfo info)
{
    for (size_t dot = info.path.find('.'); dot != std::string::npos; dot = info.path.find('.', dot + 1)) {
        const std::string parent = info.path.substr(0, dot);
        if (!modules.contains(parent)) {
            ModuleInfo container;
            container.path = parent;
            container.className = "torch.nn.modules.module.Module";
            modules.set(parent, container);
        }
    }
    const std::string path = info.path;
    modules.set(path, std::move(info));
}

std::string GraphModule::uniqueModulePath(std::string_view wanted) const
{
    std::string path(wanted);
    for (int i = 1; modules.contains(path) || tensors.contains(path); ++i)
        path = std::string(wanted) + "_" + std::to_string(i);
    return path;
}

void GraphModule::replaceTensor(const std::string &fqn, Tensor t)
{
    const TensorEntry *entry = tensors.find(fqn);
    if (!entry) {
        tensors.set(fqn, TensorEntry{ std::move(t), true, true });
        return;
    }
    const Tensor old = entry->tensor;
    std::vector<std::pair<std::string, TensorEntry>> tied;
    for (const auto &[name, e] : tensors)
        if (e->tensor == old)
            tied.emplace_back(name, TensorEntry{ t, e->parameter, e->persistent });
    for (auto &[name, e] : tied)
        tensors.set(name, std::move(e));
}

void GraphModule::dropUnused()
{
    std::set<std::string> keep{ "" };
    std::set<std::string> keepTensors;
    auto keepWithParents = [&](const std::string &path) {
        keep.insert(path);
        for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
            keep.insert(path.substr(0, dot));
    };
    std::vector<std::string> used;
    for (NodeId id : graph.order()) {
        const Node &n = graph[id];
        if (n.op == Opcode::CallModule) {
            used.push_back(n.target);
            if (const ModuleInfo *m = modules.find(n.target); m && !m->aliasOf.empty())
                used.push_back(m->aliasOf);
        } else if (n.op == Opcode::GetAttr) {
            keepTensors.insert(n.target);
            if (const size_t dot = n.target.rfind('.'); dot != std::string::npos)
                keepWithParents(n.target.substr(0, dot));
        }
    }
    for (const std::string &path : used)
        keepWithParents(path);
    std::sort(used.begin(), used.end());
    auto belowUsed = [&](const std::string &path) { // a used leaf keeps everything inside it
        for (size_t dot = path.rfind('.'); dot != std::string::npos; dot = dot ? path.rfind('.', dot - 1) : std::string::npos)
            if (std::binary_search(used.begin(), used.end(), path.substr(0, dot)))
                return true;
        return std::binary_search(used.begin(), used.end(), path);
    };
    OrderedTable<ModuleInfo> keptModules;
    for (const auto &[path, info] : modules)
        if (keep.contains(path) || belowUsed(path))
            keptModules.share(path, info);
    OrderedTable<TensorEntry> keptTensors;
    for (const auto &[fqn, entry] : tensors)
        if (keepTensors.contains(fqn) || belowUsed(fqn))
            keptTensors.share(fqn, entry);
    OrderedTable<Arg> keptAttributes;
    for (const auto &[fqn, value] : attributes)
        if (keepTensors.contains(fqn))
            keptAttributes.share(fqn, value);
    modules = std::move(keptModules);
    tensors = std::move(keptTensors);
    attributes = std::move(keptAttributes);
}

int64_t GraphModule::parameterCount() const
{
    std::set<const TensorData *> seen;
    int64_t count = 0;
    for (const auto &[fqn, e] : tensors)
        if (e->parameter && e->tensor && seen.insert(e->tensor.get()).second)
            count += e->tensor->numel();
    return count;
}

namespace
{

bool sameModule(const ModuleInfo &a, const ModuleInfo &b)
{
    const bool sameScript = a.script == b.script || (a.script && b.script && *a.script == *b.script);
    const bool sameGraph = a.graph == b.graph || (a.graph && b.graph && *a.graph == *b.graph);
    return a.path == b.path && a.className == b.className && a.kind == b.kind && a.training == b.training && a.attrs == b.attrs
        && a.extraRepr == b.extraRepr && a.parameters == b.parameters && a.buffers == b.buffers && a.none == b.none
        && a.aliasOf == b.aliasOf && a.keepFloat == b.keepFloat && sameScript && sameGraph;
}

// For each name the first name that holds the same tensor: equal exactly when the ties are.
std::map<std::string, std::string> ties(const GraphModule &gm)
{
    std::map<const TensorData *, std::string> first;
    std::map<std::string, std::string> out;
    for (const auto &[fqn, e] : gm.tensors)
        out[fqn] = first.try_emplace(e->tensor.get(), fqn).first->second;
    return out;
}

} // namespace

bool GraphModule::operator==(const GraphModule &other) const
{
    if (rootClass != other.rootClass || modules.size() != other.modules.size() || tensors.size() != other.tensors.size()
        || attributes.size() != other.attributes.size() || !(graph == other.graph))
        return false;
    for (const auto &[name, value] : attributes)
        if (const Arg *theirs = other.attributes.find(name); !theirs || !(*value == *theirs))
            return false;
    for (auto a = modules.begin(), b = other.modules.begin(); a != modules.end(); ++a, ++b)
        if (a->second != b->second && (a->first != b->first || !sameModule(*a->second, *b->second)))
            return false;
    for (auto a = tensors.begin(), b = other.tensors.begin(); a != tensors.end(); ++a, ++b)
        if (a->first != b->first || a->second->parameter != b->second->parameter || a->second->persistent != b->second->persistent
            || !sameContents(a->second->tensor, b->second->tensor))
            return false;
    return ties(*this) == ties(other);
}

} // namespace fb
