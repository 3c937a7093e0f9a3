// Writing a trace archive: what readFxt reads back to an equal GraphModule. Tensors are named after the first place that
// holds them, so ties stay ties, and are written from where they lie.
#include <unordered_map>
#include <unordered_set>

#include "model/io/arguments.h"
#include "model/io/safetensors.h"

namespace fb
{

namespace
{

using namespace io;

class Writer
{
public:
    void write(const GraphModule &gm, const std::string &path)
    {
        Json::Object document = graphModule(gm, "");
        document.insert(document.begin(), { { "format", "fuseboard-fxt" }, { "version", 1 } });
        if (!quantized_.empty())
            document.emplace_back("quantized", std::move(quantized_));
        const std::string graph = Json(std::move(document)).dump();
        const SafetensorsPlan plan = planSafetensors(tensors_);
        std::vector<std::string> holders;

        AtomicFile file(path);
        ZipWriter zip(file);
        zip.add("graph.json", { bytesOf(graph) });
        zip.add("tensors.safetensors", safetensorsPieces(tensors_, plan, holders));
        for (size_t i = 0; i < scripts_.size(); ++i)
            zip.add(scriptName(i), { bytesOf(*scripts_[i]) });
        zip.finish();
        file.commit();
    }

private:
    static std::string scriptName(size_t i) { return "scripts/" + std::to_string(i) + ".pt"; }

    const std::string &tensorName(const Tensor &t, const std::string &wanted)
    {
        auto [it, fresh] = tensorNames_.try_emplace(t.get(), wanted);
        if (fresh) {
            for (int i = 1; !taken_.insert(it->second).second; ++i)
                it->second = wanted + "#" + std::to_string(i);
            tensors_.emplace_back(it->second, t);
            if (t->quant)
                quantized_.emplace_back(it->second,
                    Json::Object{ { "dtype", dtypeName(t->dtype) }, { "scales", Json::array(t->quant->scales) },
                        { "zero_points", Json::array(t->quant->zeroPoints) }, { "axis", t->quant->axis } });
        }
        return it->second;
    }

    std::string script(const std::shared_ptr<const std::string> &bytes)
    {
        size_t i = 0;
        while (i < scripts_.size() && scripts_[i] != bytes)
            ++i;
        if (i == scripts_.size())
            scripts_.push_back(bytes);
        return scriptName(i);
    }

    Json list(const ArgList &items, const Graph &g)
    {
        Json::Array out;
        for (const Arg &a : items)
            out.push_back(argument(a, g));
        return out;
    }

    Json argument(const Arg &a, const Graph &g)
    {
        return writeArgument(a,
            { [&](NodeId id) { return g[id].name; },
                [&](const Tensor &t) { return tensorName(t, "_argument" + std::to_string(tensors_.size())); } });
    }

    Json keywords(const Kwargs &kwargs, const Graph &g)
    {
        Json::Object out;
        for (const auto &[k, v] : kwargs)
            out.emplace_back(k, argument(v, g));
        return out;
    }

    Json node(const Node &n, const Graph &g)
    {
        Json::Array stack;
        if (n.stack)
            for (const ModuleFrame &f : *n.stack)
                stack.push_back(Json::Array{ f.path, f.className, f.call });
        Json source, shape, dtype;
        if (n.source)
            source = Json::Object{ { "file", n.source->file }, { "line", n.source->line }, { "code", n.source->code },
                { "function", n.source->function } };
        if (n.meta) {
            shape = Json::array(n.meta->shape);
            dtype = dtypeName(n.meta->dtype);
        }
        Json::Object out{ { "op", opcodeName(n.op) }, { "name", n.name }, { "target", n.target }, { "args", list(n.args, g) },
            { "kwargs", keywords(n.kwargs, g) }, { "type", n.type }, { "module", n.modulePath() },
            { "module_stack", std::move(stack) }, { "source", std::move(source) }, { "shape", std::move(shape) },
            { "dtype", std::move(dtype) } };
        if (!n.typeText.empty())
            out.emplace_back("type_text", n.typeText);
        if (n.metadata)
            out.emplace_back("meta", keywords(*n.metadata, g));
        return out;
    }

    // `prefix` keeps tensors of nested graphs apart from those around them.
    Json module(const ModuleInfo &m, const GraphModule &gm, bool called, const std::string &prefix)
    {
        static constexpr std::string_view kinds[] = { "nn", "container", "script", "opaque", "graph" };
        Json::Array nonPersistent;
        for (const std::string &name : m.buffers)
            if (const TensorEntry *e = gm.tensors.find(joinPath(m.path, name)); e && !e->persistent)
                nonPersistent.push_back(name);
        auto orNull = [](const std::string &s) { return s.empty() ? Json() : Json(s); };
        Json::Object out{ { "path", m.path }, { "class", m.className }, { "training", m.training }, { "called", called },
            { "attrs", keywords(m.attrs, gm.graph) }, { "extra_repr", m.extraRepr }, { "parameters", Json::array(m.parameters) },
            { "buffers", Json::array(m.buffers) }, { "non_persistent", std::move(nonPersistent) },
            { "none", Json::array(m.none) }, { "alias_of", orNull(m.aliasOf) }, { "kind", kinds[size_t(m.kind)] },
            { "script", m.script ? Json(script(m.script)) : Json() }, { "script_error", orNull(m.scriptError) } };
        if (m.keepFloat)
            out.emplace_back("keep_float", true);
        if (m.graph)
            out.emplace_back("graph", graphModule(*m.graph, prefix + m.path + "/"));
        return out;
    }

    static Json::Object options(const TraceOptions &o)
    {
        Json::Object concrete;
        for (const auto &[name, value] : o.concrete)
            concrete.emplace_back(name, value);
        Json::Object out{ { "leaves", Json::array(o.leaves) }, { "leaf_classes", Json::array(o.leafClasses) },
            { "wraps", Json::array(o.wraps) }, { "concrete", std::move(concrete) }, { "keep_mode", o.keepMode },
            { "sizes", o.sizes }, { "samples", o.samples.empty() ? Json() : Json(o.samples) } };
        if (!o.submodules.empty())
            out.emplace_back("submodules", Json::array(o.submodules));
        return out;
    }

    Json::Object graphModule(const GraphModule &gm, const std::string &prefix)
    {
        const Provenance &p = gm.provenance;
        Json::Array inputs, nodes, modules, warnings;
        Json::Object tensors, globals;
        std::unordered_map<std::string, TensorEntry> listed; // what the module lists will say to the reader
        for (const auto &[path, m] : gm.modules) {
            for (const std::string &name : m->parameters)
                listed[joinPath(path, name)] = { nullptr, true, true };
            for (const std::string &name : m->buffers) {
                const TensorEntry *e = gm.tensors.find(joinPath(path, name));
                listed[joinPath(path, name)] = { nullptr, false, !e || e->persistent };
            }
        }
        for (const auto &[fqn, e] : gm.tensors) {
            const std::string &name = tensorName(e->tensor, prefix + fqn);
            auto it = listed.find(fqn);
            const TensorEntry said = it == listed.end() ? TensorEntry{ nullptr, false, false } : it->second;
            if (said.parameter == e->parameter && said.persistent == e->persistent)
                tensors.emplace_back(fqn, name);
            else
                tensors.emplace_back(
                    fqn, Json::Object{ { "tensor", name }, { "parameter", e->parameter }, { "persistent", e->persistent } });
        }
        std::unordered_set<std::string_view> called;
        for (NodeId id : gm.graph.order()) {
            nodes.push_back(node(gm.graph[id], gm.graph));
            if (gm.graph[id].op == Opcode::CallModule)
                called.insert(gm.graph[id].target);
        }
        for (const auto &[path, m] : gm.modules)
            modules.push_back(module(*m, gm, called.contains(path), prefix));
        for (const InputSpec &i : p.inputs)
            inputs.push_back(Json::Object{ { "name", i.name }, { "shape", i.dtype.empty() ? Json() : Json::array(i.shape) },
                { "dtype", i.dtype.empty() ? Json() : Json(i.dtype) } });
        for (const auto &[name, value] : p.globals)
            globals.emplace_back(name, value);
        for (const TraceWarning &w : p.warnings)
            warnings.push_back(Json::Object{ { "kind", w.kind }, { "message", w.message }, { "module", w.module },
                { "node", w.node }, { "file", w.file }, { "line", w.line } });
        Json::Object out{ { "torch", p.torchVersion }, { "python", p.pythonVersion }, { "source", p.source },
            { "root_class", gm.rootClass }, { "inputs", std::move(inputs) }, { "nodes", std::move(nodes) },
            { "modules", std::move(modules) }, { "tensors", std::move(tensors) }, { "globals", std::move(globals) },
            { "wrapped", Json::array(p.wrapped) }, { "warnings", std::move(warnings) }, { "return_type", p.returnType },
            { "options", options(p.options) } };
        if (gm.attributes.size()) {
            Json::Object attributes;
            for (const auto &[fqn, value] : gm.attributes)
                attributes.emplace_back(fqn, argument(*value, gm.graph));
            out.emplace_back("attributes", std::move(attributes));
        }
        if (p.share)
            out.emplace_back("share",
                Json::Object{ { "parameters", p.share->parameters },
                    { "multiply_adds", p.share->multiplyAdds ? Json(*p.share->multiplyAdds) : Json() } });
        if (p.call && describes(*p.call, gm.graph))
            out.emplace_back("call",
                Json::Object{ { "args", list(p.call->args, gm.graph) }, { "kwargs", keywords(p.call->kwargs, gm.graph) } });
        return out;
    }

    // Whether all that a call gives to the graph is still there; an edit may have taken it.
    static bool describes(const BoundCall &call, const Graph &g)
    {
        bool all = true;
        auto check = [&](NodeId id) { all &= g.contains(id); };
        for (const Arg &a : call.args)
            forEachNode(a, check);
        for (const auto &kw : call.kwargs)
            forEachNode(kw.second, check);
        return all;
    }

    NamedTensors tensors_;
    std::unordered_map<const TensorData *, std::string> tensorNames_;
    std::unordered_set<std::string> taken_;
    Json::Object quantized_;
    std::vector<std::shared_ptr<const std::string>> scripts_;
};

} // namespace

Status writeFxt(const GraphModule &gm, const std::string &path)
{
    return guarded(path, [&] { Writer().write(gm, path); });
}

} // namespace fb
