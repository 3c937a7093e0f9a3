// Fuseboard: GraphModule, a graph with the modules and tensors it refers to. GPL-3.0-or-later.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/ir/graph.h"

namespace fb
{

class GraphModule;

// A string-keyed table that keeps insertion order; values are shared until written, so copies are cheap.
template <class V> class OrderedTable
{
public:
    using Entry = std::pair<std::string, std::shared_ptr<const V>>;
    const V *find(std::string_view key) const
    {
        auto it = index_.find(std::string(key));
        return it == index_.end() ? nullptr : entries_[it->second].second.get();
    }
    bool contains(std::string_view key) const { return find(key) != nullptr; }
    void set(const std::string &key, V value) { share(key, std::make_shared<const V>(std::move(value))); }
    // An entry of another table, without a copy: how a table is rebuilt in one sweep.
    void share(const std::string &key, std::shared_ptr<const V> shared)
    {
        auto [it, fresh] = index_.try_emplace(key, entries_.size());
        if (fresh)
            entries_.emplace_back(key, std::move(shared));
        else
            entries_[it->second].second = std::move(shared);
    }
    bool erase(const std::string &key)
    {
        auto it = index_.find(key);
        if (it == index_.end())
            return false;
        entries_.erase(entries_.begin() + std::ptrdiff_t(it->second));
        index_.clear();
        for (size_t i = 0; i < entries_.size(); ++i)
            index_[entries_[i].first] = i;
        return true;
    }
    size_t size() const { return entries_.size(); }
    auto begin() const { return entries_.begin(); }
    auto end() const { return entries_.end(); }

private:
    std::vector<Entry> entries_;
    std::unordered_map<std::string, size_t> index_;
};

// What a module is to Fuseboard.
enum class ModuleKind : uint8_t {
    Nn, // from torch.nn (or torch.ao.nn): executed from its class and facts
    Container, // traced through: present for hierarchy and state
    Script, // a leaf of the user's that travels as TorchScript
    Opaque, // a leaf of the user's that does not script: shown and exported, not executable
    Graph // its inside is `graph`: a marked leaf, a standalone or nested GraphModule
};

struct ModuleInfo {
    std::string path; // "layer1.0.conv1"; "" is the root
    std::string className; // "torch.nn.modules.conv.Conv2d"
    ModuleKind kind = ModuleKind::Container;
    bool training = false;
    Kwargs attrs; // constructor facts by name
    std::string extraRepr; // as torch prints it inside repr()
    std::vector<std::string> parameters; // own tensor names, in registration order
    std::vector<std::string> buffers;
    std::vector<std::string> none; // registered as None
    std::string aliasOf; // earlier path of the same object, or empty
    std::shared_ptr<const std::string> script; // TorchScript archive bytes (kind Script)
    std::string scriptError; // why it does not script (kind Opaque)
    std::shared_ptr<const GraphModule> graph; // kind Graph
    bool keepFloat = false; // marked leaf: never quantized

    std::string shortClass() const; // "Conv2d"
    const Arg *attr(std::string_view name) const; // null when absent
};

struct TensorEntry {
    Tensor tensor;
    bool parameter = true; // else buffer or plain attribute
    bool persistent = true; // in state_dict()
};

struct InputSpec {
    std::string name;
    std::vector<int64_t> shape;
    std::string dtype;
};

struct TraceWarning {
    std::string kind, message, module, node, file;
    int line = 0;
};

// How a graph was traced, enough to do it again: options of fuseboard_trace.py.
struct TraceOptions {
    std::vector<std::string> leaves, leafClasses, wraps, submodules;
    std::vector<std::pair<std::string, std::string>> concrete; // name and Python literal
    std::string samples; // a function of the source, or empty
    bool keepMode = false, sizes = false;
    bool operator==(const TraceOptions &) const = default;
};

// How the traced model's own forward takes the placeholders, where torch.fx cannot bind its signature: its arguments, holding
// placeholders.
struct BoundCall {
    ArgList args;
    Kwargs kwargs;
};

// What of the whole model one of its traced submodules holds that can be quantized, from 0 to 1.
struct ModelShare {
    double parameters = 0;
    std::optional<double> multiplyAdds; // where the sample inputs ran
};

// Facts about where a graph came from; printed and exported, never executed.
struct Provenance {
    std::string format = "fxt"; // of the file: "fxt", "pt2"
    std::string torchVersion; // "2.13.0+cpu"; decides the dialect of the two torch texts
    std::string pythonVersion;
    std::string source; // "net.py:make"
    TraceOptions options;
    std::optional<BoundCall> call;
    std::optional<ModelShare> share; // of a graph that is a part of a model
    std::vector<InputSpec> inputs;
    std::vector<TraceWarning> warnings;
    std::vector<std::string> wrapped; // torch.fx.wrap names
    std::vector<std::pair<std::string, std::string>> globals;
    std::string returnType;
};

class GraphModule
{
public:
    Graph graph;
    std::string rootClass = "GraphModule";
    OrderedTable<ModuleInfo> modules; // by path, in named_modules() order, "" first
    OrderedTable<TensorEntry> tensors; // by fully qualified name
    OrderedTable<Arg> attributes; // what get_attr nodes read that is neither a tensor nor a module, by the same names
    Provenance provenance;

    const ModuleInfo *moduleOf(const Node &n) const; // of a call_module node, else null
    Tensor tensor(std::string_view fqn) const; // null when absent
    Tensor moduleTensor(std::string_view path, std::string_view name) const; // tensor("path.name"), following aliases
    // Nodes that call this module path.
    std::vector<NodeId> callers(std::string_view path) const;
    // Adds `info` and makes every parent path exist as a container.
    void addModule(ModuleInfo info);
    std::string uniqueModulePath(std::string_view wanted) const;
    // Replaces a tensor under every name that is tied to it.
    void replaceTensor(const std::string &fqn, Tensor t);
    // Drops modules and tensors that no node reaches (containers of reached ones stay). Like torch's
    // delete_all_unused_submodules.
    void dropUnused();
    // Distinct parameter elements, tied ones once.
    int64_t parameterCount() const;

    bool operator==(const GraphModule &other) const; // graph, modules, tensor contents and ties
};

// "layer1.0" of "layer1.0.conv1"; empty at the top.
inline std::string parentPath(std::string_view path)
{
    const size_t dot = path.rfind('.');
    return dot == std::string_view::npos ? std::string() : std::string(path.substr(0, dot));
}

// Whether a name is that of a module or of something below it; everything is below the root.
inline bool isAtOrBelow(std::string_view name, std::string_view path)
{
    return path.empty() || name == path || (name.size() > path.size() && name.starts_with(path) && name[path.size()] == '.');
}

inline std::string joinPath(std::string_view a, std::string_view b)
{
    return a.empty() ? std::string(b) : std::string(a) + "." + std::string(b);
}

} // namespace fb
