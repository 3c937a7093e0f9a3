// Reading a trace archive: map the file, find its members, parse graph.json, and build the GraphModule with tensors that
// point into the mapping. The file is a stranger's: what it says is checked before it is used, and the result passes lint.
#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "model/io/arguments.h"
#include "model/io/names.h"
#include "model/io/safetensors.h"
#include "model/ir/lint.h"

namespace fb
{

namespace
{

using namespace io;

// Files that people take for a trace, by their content, and what to do with each.
std::string foreignKind(Bytes bytes)
{
    const std::string_view text = textOf(bytes.first(std::min<size_t>(bytes.size(), 4096)));
    const std::string trace = "trace the model with \"fuseboard-cli trace SOURCE -o OUT.fxt\"";
    auto starts = [&](std::string_view s) { return text.starts_with(s); };
    if (bytes.empty())
        return "the file is empty; copy or make it again";
    if (starts("\x80\x02") || starts("\x80\x03") || starts("\x80\x04") || starts("\x80\x05"))
        return "it is a Python pickle (an old torch.save file), not a .fxt trace; pickles can run code, so it is not opened: "
            + trace;
    if (starts("\x93NUMPY"))
        return "it is a NumPy array, not a .fxt trace; give it as data or input";
    if (starts("\x89HDF"))
        return "it is an HDF5 file, not a .fxt trace; load it in PyTorch, then " + trace;
    if (starts("\x1f\x8b") || starts("BZh")
        || starts("\xfd"
                  "7zXZ")
        || starts("7z\xbc\xaf"))
        return "it is a compressed file, not a .fxt trace; unpack it first";
    if (starts("version https://git-lfs"))
        return "it is a Git LFS pointer, not the file itself; run \"git lfs pull\"";
    const size_t first = text.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos && text[first] == '<')
        return "it is a web page or XML, not a .fxt trace; download the file itself";
    if (first != std::string_view::npos && text[first] == '{')
        return "it is a JSON file, not a .fxt trace; " + trace;
    if (bytes.size() > 9 && readLittle<uint64_t>(bytes, 0) < bytes.size() && bytes[8] == std::byte('{'))
        return "it is a safetensors file, not a .fxt trace: it holds weights without a graph; " + trace;
    if (text.size() > 262 && text.substr(257, 5) == "ustar")
        return "it is a tar archive, not a .fxt trace; " + trace;
    if (starts("\x08") && text.size() > 4 && (text[2] == '\x12' || text[2] == '\x3a' || text[2] == '\x1a'))
        return "it is an ONNX model, not a .fxt trace; " + trace + " from the PyTorch model it came from";
    if (text.find("import torch") != std::string_view::npos || text.find("def forward(") != std::string_view::npos)
        return "it is Python source, not a .fxt trace; " + trace;
    return "it is not a .fxt trace (no zip archive); " + trace;
}

std::string foreignArchive(const ZipReader &zip)
{
    auto any = [&](auto test) { return std::any_of(zip.members().begin(), zip.members().end(), test); };
    auto endsWith = [&](std::string_view end) { return any([&](const auto &m) { return m.name.ends_with(end); }); };
    const std::string trace = "trace the model with \"fuseboard-cli trace SOURCE -o OUT.fxt\"";
    if (endsWith("/constants.pkl"))
        return "it is a TorchScript archive, not a .fxt trace; " + trace + " from the Python model it was made from";
    if (endsWith("serialized_exported_program.json") || endsWith("models/model.json") || endsWith("/archive_format"))
        return "it is a torch.export archive (.pt2), not a .fxt trace; " + trace + " from the Python model it was made from";
    if (endsWith("/data.pkl") || endsWith("data.pkl"))
        return "it is a torch.save file, not a .fxt trace: it holds pickled Python objects, which can run code; " + trace;
    if (!zip.members().empty() && !any([](const auto &m) { return !m.name.ends_with(".npy"); }))
        return "it is a NumPy .npz archive, not a .fxt trace; give it as data or input";
    if (endsWith(".fuse"))
        return "it is a zip that holds a project, not a .fxt trace; unpack it first";
    return "it is a zip archive without graph.json, so not a .fxt trace; " + trace;
}

class Reader
{
public:
    explicit Reader(const std::string &path)
    {
        const auto file = MappedFile::open(path);
        const Bytes bytes = file->bytes();
        if (!textOf(bytes).starts_with("PK"))
            throw FormatError(foreignKind(bytes));
        const ZipReader zip(bytes);
        const auto *graph = zip.find("graph.json");
        if (!graph)
            throw FormatError(foreignArchive(zip));
        try {
            document_ = parseJson(textOf(zip.stored(*graph, true)));
        } catch (const FormatError &e) {
            throw FormatError(std::string(e.what()).starts_with("is ") ? std::string("graph.json ") + e.what() : e.what());
        }
        if (document_.textOr("format") != "fuseboard-fxt")
            throw FormatError("graph.json is not a Fuseboard document; the file is not a .fxt trace");
        if (const int64_t version = document_.at("version", "graph.json").integer("\"version\""); version != 1)
            throw FormatError("it is of .fxt version " + std::to_string(version)
                + ", and this Fuseboard reads version 1; "
                  "use a newer Fuseboard or trace the model again");
        if (const auto *m = zip.find("tensors.safetensors"))
            for (auto &[name, t] : parseSafetensors(zip.stored(*m, false), file))
                tensors_.emplace(name, std::move(t));
        readQuantization();
        for (const auto &m : zip.members())
            if (m.name.starts_with("scripts/"))
                scripts_.emplace(m.name, std::make_shared<const std::string>(textOf(zip.stored(m, true))));
    }

    GraphModule read() const { return graphModule(document_, ""); }

private:
    // Integers become the quantized tensors that they stand for.
    void readQuantization()
    {
        const Json *table = document_.find("quantized");
        if (!table)
            return;
        for (const auto &[name, entry] : table->object("\"quantized\"")) {
            const std::string what = "the quantization of " + name;
            auto it = tensors_.find(name);
            if (it == tensors_.end())
                throw FormatError(what + " is given, but there is no such tensor");
            const auto dtype = dtypeFromName(entry.at("dtype", what).text(what));
            if (!dtype || !isQuantized(*dtype) || dtypeSize(*dtype) != dtypeSize(it->second->dtype) || it->second->quant)
                throw FormatError(what + " does not go with its data");
            QuantParams q;
            const int64_t axis = entry.at("axis", what).integer(what);
            for (const Json &s : entry.at("scales", what).list(what))
                q.scales.push_back(s.number(what));
            for (const Json &z : entry.at("zero_points", what).list(what))
                q.zeroPoints.push_back(z.integer(what));
            const auto dims = int64_t(it->second->sizes.size());
            if (axis < -1 || axis >= dims || q.scales.size() != q.zeroPoints.size()
                || q.scales.size() != (axis < 0 ? 1 : size_t(it->second->sizes[size_t(axis)])))
                throw FormatError(what + " does not go with its shape");
            q.axis = int(axis);
            auto t = std::make_shared<TensorData>(*it->second);
            t->dtype = *dtype;
            t->quant = std::move(q);
            it->second = std::move(t);
        }
    }

    Tensor tensor(const std::string &name, std::string_view what) const
    {
        auto it = tensors_.find(name);
        if (it == tensors_.end())
            throw FormatError(
                std::string(what) + " needs tensor " + name + ", which the archive does not hold; trace the model again");
        return it->second;
    }

    using Names = std::unordered_map<std::string, NodeId>;

    Arg argument(const Json &j, const Names &names, const std::string &what) const
    {
        return readArgument(j,
            { [&](const std::string &name) {
                 auto it = names.find(name);
                 if (it == names.end() || !it->second)
                     throw FormatError(what
                         + (it == names.end() ? " uses " + name + ", and no node has that name"
                                              : " uses " + name + " before it is defined")
                         + "; trace the model again");
                 return it->second;
             },
                [&](const std::string &name) { return tensor(name, what); } },
            what);
    }

    ArgList arguments(const Json &j, const Names &names, const std::string &what) const
    {
        ArgList out;
        for (const Json &item : j.list(what))
            out.push_back(argument(item, names, what));
        return out;
    }

    Kwargs keywords(const Json *j, const Names &names, const std::string &what) const
    {
        Kwargs out;
        if (!j)
            return out;
        for (const auto &[key, value] : j->object(what))
            out.emplace_back(key, argument(value, names, what));
        return out;
    }

    static std::vector<int64_t> shape(const Json &j, const std::string &what)
    {
        std::vector<int64_t> out;
        for (const Json &s : j.list(what))
            out.push_back(s.integer(what));
        checkedNumel(out, 16, what);
        return out;
    }

    static std::vector<std::string> texts(const Json &owner, std::string_view key, const std::string &what)
    {
        std::vector<std::string> out;
        if (const Json *list = owner.find(key))
            for (const Json &item : list->list(what))
                out.push_back(item.text(what));
        return out;
    }

    GraphModule graphModule(const Json &doc, const std::string &where) const
    {
        GraphModule gm;
        gm.rootClass = doc.textOr("root_class", "GraphModule");
        readProvenance(doc, gm.provenance);
        readModules(doc, gm);
        readTensors(doc, gm, where);
        readNodes(doc, gm, where);
        if (const auto problems = lint(gm); !problems.empty())
            throw FormatError(where + problems[0].message + "; trace the model again");
        return gm;
    }

    static void readProvenance(const Json &doc, Provenance &p)
    {
        p.torchVersion = doc.textOr("torch");
        p.pythonVersion = doc.textOr("python");
        p.source = doc.textOr("source");
        p.returnType = doc.textOr("return_type");
        if (const Json *inputs = doc.find("inputs"))
            for (const Json &input : inputs->list("\"inputs\"")) {
                const std::string name = input.textOr("name");
                const Json *sizes = input.find("shape"); // null: not a tensor
                p.inputs.push_back({ name, sizes ? shape(*sizes, "the shape of input " + name) : std::vector<int64_t>{},
                    input.textOr("dtype") });
            }
        if (const Json *warnings = doc.find("warnings"))
            for (const Json &w : warnings->list("\"warnings\"")) {
                const Json *line = w.find("line");
                p.warnings.push_back({ w.textOr("kind"), w.textOr("message"), w.textOr("module"), w.textOr("node"),
                    w.textOr("file"), line ? int(line->integer("\"line\"")) : 0 });
            }
        if (const Json *options = doc.find("options")) {
            const std::string what = "\"options\"";
            p.options.leaves = texts(*options, "leaves", what);
            p.options.leafClasses = texts(*options, "leaf_classes", what);
            p.options.wraps = texts(*options, "wraps", what);
            p.options.submodules = texts(*options, "submodules", what);
            if (const Json *concrete = options->find("concrete"))
                for (const auto &[name, value] : concrete->object(what))
                    p.options.concrete.emplace_back(name, value.text(what));
            p.options.samples = options->textOr("samples");
            p.options.keepMode = options->boolOr("keep_mode", false);
            p.options.sizes = options->boolOr("sizes", false);
        }
        if (const Json *share = doc.find("share")) {
            const Json *adds = share->find("multiply_adds");
            p.share = { share->at("parameters", "\"share\"").number("\"share\""),
                adds ? std::optional(adds->number("\"share\"")) : std::nullopt };
        }
        p.wrapped = texts(doc, "wrapped", "\"wrapped\"");
        if (const Json *globals = doc.find("globals"))
            for (const auto &[name, value] : globals->object("\"globals\""))
                p.globals.emplace_back(name, value.text("\"globals\""));
    }

    void readModules(const Json &doc, GraphModule &gm) const
    {
        static const std::map<std::string_view, ModuleKind> kinds{ { "nn", ModuleKind::Nn },
            { "container", ModuleKind::Container }, { "script", ModuleKind::Script }, { "opaque", ModuleKind::Opaque },
            { "graph", ModuleKind::Graph } };
        for (const Json &j : doc.at("modules", "graph.json").list("\"modules\"")) {
            ModuleInfo m;
            m.path = j.textOr("path");
            const std::string what = m.path.empty() ? "the root module" : "module " + m.path;
            if (gm.modules.contains(m.path))
                throw FormatError(what + " stands twice in the module table");
            m.className = j.at("class", what).text(what);
            auto kind = kinds.find(j.textOr("kind", "container"));
            if (kind == kinds.end())
                throw FormatError(what + " is of the unknown kind \"" + j.textOr("kind") + "\"");
            m.kind = kind->second;
            m.training = j.boolOr("training", false);
            m.attrs = keywords(j.find("attrs"), {}, what);
            m.extraRepr = j.textOr("extra_repr");
            m.parameters = texts(j, "parameters", what);
            m.buffers = texts(j, "buffers", what);
            m.none = texts(j, "none", what);
            m.aliasOf = j.textOr("alias_of");
            if (!m.aliasOf.empty() && !gm.modules.contains(m.aliasOf))
                throw FormatError(what + " is another name of " + m.aliasOf + ", which does not stand before it");
            m.scriptError = j.textOr("script_error");
            m.keepFloat = j.boolOr("keep_float", false);
            if (const Json *script = j.find("script")) {
                auto it = scripts_.find(script->text(what));
                if (it == scripts_.end())
                    throw FormatError(
                        what + " needs " + script->text(what) + ", which the archive does not hold; trace the model again");
                m.script = it->second;
            } else if (m.kind == ModuleKind::Script) {
                throw FormatError(what + " is of the kind \"script\" but names no script");
            }
            if (const Json *graph = j.find("graph"))
                m.graph = std::make_shared<const GraphModule>(graphModule(*graph, "inside " + what + ": "));
            else if (m.kind == ModuleKind::Graph)
                throw FormatError(what + " is of the kind \"graph\" but holds none");
            const std::string path = m.path;
            gm.modules.set(path, std::move(m));
        }
    }

    // What a tensor is follows from its module's lists, unless its entry says otherwise.
    void readTensors(const Json &doc, GraphModule &gm, const std::string &where) const
    {
        std::unordered_map<std::string, TensorEntry> listed;
        for (const Json &j : doc.at("modules", "graph.json").list("\"modules\"")) {
            const std::string path = j.textOr("path");
            for (const std::string &name : texts(j, "parameters", "\"parameters\""))
                listed[joinPath(path, name)] = { nullptr, true, true };
            for (const std::string &name : texts(j, "buffers", "\"buffers\""))
                listed[joinPath(path, name)] = { nullptr, false, true };
            for (const std::string &name : texts(j, "non_persistent", "\"non_persistent\""))
                listed[joinPath(path, name)] = { nullptr, false, false };
        }
        const Json *table = doc.find("tensors");
        if (!table)
            return;
        for (const auto &[fqn, value] : table->object("\"tensors\"")) {
            const std::string what = where + fqn;
            if (gm.tensors.contains(fqn))
                throw FormatError(what + " stands twice in the tensor table");
            if (value.isNull())
                continue; // the tracer has warned: it could not be held
            auto it = listed.find(fqn);
            TensorEntry entry = it == listed.end() ? TensorEntry{ nullptr, false, false } : it->second;
            if (value.as<std::string>()) {
                entry.tensor = tensor(value.text(what), what);
            } else {
                entry.tensor = tensor(value.at("tensor", what).text(what), what);
                entry.parameter = value.boolOr("parameter", entry.parameter);
                entry.persistent = value.boolOr("persistent", entry.persistent);
            }
            gm.tensors.set(fqn, std::move(entry));
        }
        if (const Json *attributes = doc.find("attributes"))
            for (const auto &[fqn, value] : attributes->object("\"attributes\"")) {
                if (gm.tensors.contains(fqn) || gm.attributes.contains(fqn))
                    throw FormatError(where + fqn + " stands twice among the tensors and attributes");
                gm.attributes.set(fqn, argument(value, {}, where + fqn));
            }
    }

    void readNodes(const Json &doc, GraphModule &gm, const std::string &where) const
    {
        const Json::Array &nodes = doc.at("nodes", "graph.json").list("\"nodes\"");
        Names names; // no id yet: stands further down
        names.reserve(nodes.size());
        for (size_t i = 0; i < nodes.size(); ++i) {
            const std::string &name
                = nodes[i].at("name", "node " + std::to_string(i)).text("the name of node " + std::to_string(i));
            if (!isIdentifier(name))
                throw FormatError(where + "the name of node " + std::to_string(i) + " is not a Python identifier");
            if (!names.emplace(name, NodeId{}).second)
                throw FormatError(where + "two nodes are named " + name + "; trace the model again");
        }
        std::map<std::string, std::shared_ptr<const ModuleStack>> stacks;
        std::shared_ptr<const ModuleStack> lastStack;
        std::shared_ptr<const SourceLine> lastSource;
        for (const Json &j : nodes) {
            Node n;
            n.name = j.textOr("name");
            const std::string what = where + n.name;
            const std::string &op = j.at("op", what).text("the opcode of " + what);
            const auto opcode = opcodeFromName(op);
            if (!opcode)
                throw FormatError(
                    what + " has the unknown opcode \"" + op + "\"; trace the model again with this version's tracer");
            n.op = *opcode;
            n.target = j.at("target", what).text("the target of " + what);
            const bool sound = n.op == Opcode::CallMethod ? isIdentifier(n.target)
                : n.op == Opcode::Placeholder
                ? isIdentifier(std::string_view(n.target).substr(std::min(n.target.find_first_not_of('*'), n.target.size())))
                : n.op == Opcode::CallFunction ? isQualifiedName(n.target)
                                               : isPath(n.target);
            if (!sound)
                throw FormatError(what + " has a target that is no name");
            if (const Json *args = j.find("args"))
                n.args = arguments(*args, names, what);
            n.kwargs = keywords(j.find("kwargs"), names, what);
            n.type = j.textOr("type");
            n.typeText = j.textOr("type_text");
            if (Kwargs metadata = keywords(j.find("meta"), {}, what); !metadata.empty())
                n.metadata = std::make_shared<const Kwargs>(std::move(metadata));
            n.stack = stack(j, gm, what, stacks, lastStack);
            if (const Json *s = j.find("source")) {
                const Json *line = s->find("line");
                SourceLine source{ s->textOr("file"), line ? int(line->integer("the line of " + what)) : 0, s->textOr("code"),
                    s->textOr("function") };
                if (!lastSource || !(*lastSource == source))
                    lastSource = std::make_shared<const SourceLine>(std::move(source));
                n.source = lastSource;
            }
            if (const Json *sizes = j.find("shape"))
                if (const auto dtype = dtypeFromName(j.textOr("dtype")))
                    n.meta = TensorMeta{ shape(*sizes, "the shape of " + what), *dtype };
            const std::string name = n.name;
            names[name] = gm.graph.append(std::move(n));
        }
        if (const Json *call = doc.find("call")) {
            const std::string what = where + "\"call\"";
            gm.provenance.call = { arguments(call->at("args", what), names, what), keywords(call->find("kwargs"), names, what) };
        }
    }

    // Nodes of one module call share one stack, and most often it is the stack of the node before.
    static std::shared_ptr<const ModuleStack> stack(const Json &j, const GraphModule &gm, const std::string &what,
        std::map<std::string, std::shared_ptr<const ModuleStack>> &known, std::shared_ptr<const ModuleStack> &last)
    {
        ModuleStack frames;
        std::string key;
        if (const Json *list = j.find("module_stack"))
            for (const Json &f : list->list(what)) {
                const auto &parts = f.list(what);
                if (parts.size() != 3)
                    throw FormatError("the module stack of " + what + " holds an entry that is not [path, class, call]");
                frames.push_back({ parts[0].text(what), parts[1].text(what), int(parts[2].integer(what)) });
            }
        if (const std::string module = j.textOr("module"); frames.empty() && !module.empty()) {
            const ModuleInfo *m = gm.modules.find(module);
            frames.push_back({ module, m ? m->className : std::string(), 0 });
        }
        if (frames.empty())
            return nullptr;
        if (last && *last == frames)
            return last;
        for (const ModuleFrame &f : frames)
            key += f.path + '\n' + f.className + '\n' + std::to_string(f.call) + '\n';
        auto &shared = known[key];
        if (!shared)
            shared = std::make_shared<const ModuleStack>(std::move(frames));
        return last = shared;
    }

    Json document_;
    std::unordered_map<std::string, Tensor> tensors_;
    std::map<std::string, std::shared_ptr<const std::string>> scripts_;
};

} // namespace

Result<GraphModule> readFxt(const std::string &path)
{
    return guarded(path, [&] { return Reader(path).read(); });
}

} // namespace fb
