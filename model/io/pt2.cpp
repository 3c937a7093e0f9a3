// An exported program becomes a Graph: its own JSON is a list of operator calls over named values, beside a signature that says
// which of the graph's inputs are weights, and which outputs are new values of them.
#include <functional>
#include <limits>
#include <set>
#include <unordered_map>

#include "model/io/models.h"
#include "model/io/names.h"
#include "model/io/pt2_archive.h"
#include "model/ir/lint.h"

namespace fb
{

namespace
{

using namespace io;

constexpr std::string_view kPlainModule = "torch.nn.modules.module.Module";

// A union of the schema: an object with one member, which says what it is.
const std::pair<std::string, Json> &variant(const Json &j, const std::string &what)
{
    const Json::Object &o = j.object(what);
    if (o.size() != 1)
        throw FormatError(what + " is no value of the export schema; export the model again");
    return o.front();
}

// Floats that JSON cannot spell are strings.
double real(const Json &j, const std::string &what)
{
    if (const std::string *text = j.as<std::string>()) {
        if (*text == "Infinity")
            return std::numeric_limits<double>::infinity();
        if (*text == "-Infinity")
            return -std::numeric_limits<double>::infinity();
        if (*text == "NaN")
            return std::numeric_limits<double>::quiet_NaN();
    }
    return j.number(what);
}

Arg layoutOf(int64_t n)
{
    static constexpr const char *names[] = { "torch.strided", "torch.sparse_coo", "torch.sparse_csr", "torch.sparse_csc",
        "torch.sparse_bsr", "torch.sparse_bsc", "torch._mkldnn", "torch.strided" };
    return ArgLayout{ names[n > 0 && n < 8 ? n : 0] };
}

Arg memoryFormatOf(int64_t n)
{
    static constexpr const char *names[] = { "torch.preserve_format", "torch.contiguous_format", "torch.channels_last",
        "torch.channels_last_3d", "torch.preserve_format" };
    return ArgMemoryFormat{ names[n > 0 && n < 5 ? n : 0] };
}

Arg deviceOf(const Json &j, const std::string &what)
{
    const Json *index = j.find("index");
    return ArgDevice{ j.at("type", what).text(what) + (index ? ":" + std::to_string(index->integer(what)) : std::string()) };
}

// "L['self'].layer1.0" of exports that Dynamo made is "layer1.0".
std::string modulePath(std::string path)
{
    if (path.starts_with("L['")) {
        const size_t end = path.find("']");
        path = end == path.npos ? path : path.substr(std::min(end + 3, path.size()));
    }
    return path;
}

// torch.utils._pytree's JSON of a structure, filled with `leaves` in their order.
class Structure
{
public:
    Structure(const Json &program, const std::string &spec, const std::vector<Arg> &leaves)
        : program_(program)
        , leaves_(leaves)
    {
        const Json document = parseJson(spec);
        const Json::Array &parts = document.list(kWhat);
        if (parts.size() != 2)
            throw FormatError("the structure of its inputs or outputs is of an unknown form; export the model again");
        whole_ = build(parts[1]);
        if (next_ != leaves.size())
            throw FormatError("the structure of its inputs or outputs does not fit the signature; export the model again");
    }
    const Arg &whole() const { return whole_; }

private:
    static constexpr const char *kWhat = "the structure of its inputs or outputs";

    Arg build(const Json &spec)
    {
        const Json *type = spec.find("type");
        if (!type) {
            if (next_ == leaves_.size())
                throw FormatError("the structure of its inputs or outputs does not fit the signature; export the model again");
            return leaves_[next_++];
        }
        ArgList items;
        for (const Json &child : spec.at("children_spec", kWhat).list(kWhat))
            items.push_back(build(child));
        const std::string &name = type->text(kWhat);
        Json context;
        if (const Json *text = spec.find("context"); text && text->as<std::string>())
            context = contextOf(*text->as<std::string>());
        if (name == "builtins.list" || name == "collections.deque")
            return Arg::list(std::move(items));
        if (name == "collections.namedtuple")
            if (const Json *fields = fieldsOf(context); fields && fields->list(kWhat).size() == items.size()) {
                std::vector<std::pair<std::string, Arg>> named;
                for (size_t i = 0; i < items.size(); ++i)
                    named.emplace_back(fields->list(kWhat)[i].text(kWhat), std::move(items[i]));
                return Arg::namedTuple(context.text(kWhat), std::move(named));
            }
        if (const Json *inner = context.find("dict_context")) // collections.defaultdict
            context = Json(*inner);
        // dict, OrderedDict, and classes that are dicts of their fields
        if (const auto *keys = context.as<Json::Array>(); keys && keys->size() == items.size() && name != "builtins.tuple") {
            std::vector<std::pair<Arg, Arg>> pairs;
            for (size_t i = 0; i < items.size(); ++i)
                pairs.emplace_back(keyOf((*keys)[i]), std::move(items[i]));
            return Arg::dict(std::move(pairs));
        }
        return Arg::tuple(std::move(items));
    }

    // JSON where the class has no form of its own.
    static Json contextOf(const std::string &text)
    {
        try {
            return parseJson(text);
        } catch (const FormatError &) {
            return text;
        }
    }

    const Json *fieldsOf(const Json &type) const
    {
        const Json *table = program_.find("treespec_namedtuple_fields");
        const Json *entry = table && type.as<std::string>() ? table->find(*type.as<std::string>()) : nullptr;
        return entry ? entry->find("field_names") : nullptr;
    }

    static Arg keyOf(const Json &key)
    {
        if (key.as<int64_t>())
            return Arg(*key.as<int64_t>());
        return Arg(key.text("a key of the inputs or outputs"));
    }

    const Json &program_;
    const std::vector<Arg> &leaves_;
    size_t next_ = 0;
    Arg whole_;
};

class Program
{
public:
    explicit Program(const Pt2Archive &archive)
        : archive_(archive)
        , module_(archive.program.at("graph_module", "the exported program"))
        , graph_(module_.at("graph", "the exported program"))
    {
        if (const Json *version = archive.program.find("schema_version")) {
            const int64_t major = version->at("major", "schema_version").integer("schema_version");
            if (major != 7 && major != 8)
                throw FormatError("its schema version is " + std::to_string(major)
                    + ", and this Fuseboard reads 7 and 8 (PyTorch 2.5 and later); "
                    + (major > 8 ? "use a newer Fuseboard" : "export the model again with a newer PyTorch"));
        }
    }

    GraphModule read()
    {
        gm_.provenance.format = "pt2";
        gm_.provenance.torchVersion = archive_.program.textOr("torch_version");
        readModules();
        readInputs();
        std::vector<Arg> held;
        for (const Json &n : graph_.at("nodes", "the graph").list("\"nodes\""))
            readNode(n);
        readOutputs();
        dropUnusedWeights();
        if (const auto problems = lint(gm_); !problems.empty())
            throw FormatError(problems[0].message + "; export the model again");
        return std::move(gm_);
    }

private:
    // --- modules and tensors -------------------------------------------------------------------------------------------

    // Containers: what the call graph and the nodes name, and what holds a tensor.
    void readModules()
    {
        std::map<std::string, std::string> classes;
        std::vector<std::string> paths;
        for (const Json &n : graph_.at("nodes", "the graph").list("\"nodes\""))
            for (const ModuleFrame &f : framesOf(n))
                if (classes.emplace(f.path, f.className).second)
                    paths.push_back(f.path);
        auto add = [&](const std::string &path) {
            if (gm_.modules.contains(path))
                return;
            ModuleInfo m;
            m.path = path;
            m.className = classes.contains(path) ? classes[path] : std::string(kPlainModule);
            gm_.addModule(std::move(m));
        };
        add("");
        if (const ModuleInfo *root = gm_.modules.find(""); root->className != kPlainModule)
            gm_.rootClass = root->shortClass();
        if (const Json *calls = module_.find("module_call_graph"))
            for (const Json &call : calls->list("\"module_call_graph\""))
                if (const std::string path = modulePath(call.textOr("fqn")); path.find('@') == path.npos && isPath(path))
                    add(path);
        for (const std::string &path : paths)
            add(path);
        // addModule makes parents of a plain class; those that a node names have their own.
        for (const auto &[path, name] : classes)
            if (gm_.modules.find(path)->className != name) {
                ModuleInfo m = *gm_.modules.find(path);
                m.className = name;
                gm_.modules.set(path, std::move(m));
            }
    }

    void addTensor(const std::string &fqn, bool parameter, bool persistent)
    {
        if (gm_.tensors.contains(fqn) || gm_.attributes.contains(fqn))
            return; // 2.5 lists a tied weight once for each of its uses
        if (!isPath(fqn) || fqn.empty())
            throw FormatError("the signature names a weight that cannot have this name; export the model again");
        if (const auto it = archive_.tensors.find(fqn); it != archive_.tensors.end()) {
            gm_.tensors.set(fqn, { it->second, parameter, persistent });
        } else if (const auto unread = archive_.unread.find(fqn); unread != archive_.unread.end()) {
            gm_.attributes.set(fqn, Arg(ArgOpaque{ "object", fqn }));
            gm_.provenance.warnings.push_back({ "weight", fqn + " is not read: " + unread->second, parentPath(fqn), {}, {}, 0 });
            return;
        } else {
            throw FormatError("its weights are incomplete: " + fqn + " is missing; copy or export it again");
        }
        const std::string path = parentPath(fqn), name = fqn.substr(path.empty() ? 0 : path.size() + 1);
        ModuleInfo m;
        if (const ModuleInfo *known = gm_.modules.find(path)) {
            m = *known;
        } else {
            m.path = path;
            m.className = kPlainModule;
        }
        (parameter ? m.parameters : m.buffers).push_back(name);
        gm_.addModule(std::move(m));
    }

    // --- inputs --------------------------------------------------------------------------------------------------------

    void readInputs()
    {
        const auto &inputs = graph_.at("inputs", "the graph").list("\"inputs\"");
        const auto &specs = module_.at("signature", "the program").at("input_specs", "the signature").list("\"input_specs\"");
        if (inputs.size() != specs.size())
            throw FormatError("its signature has " + std::to_string(specs.size()) + " inputs and its graph "
                + std::to_string(inputs.size()) + "; export the model again");
        std::vector<Arg> users;
        for (size_t i = 0; i < specs.size(); ++i) {
            const auto &[kind, spec] = variant(specs[i], "input " + std::to_string(i));
            const std::string what = "input " + std::to_string(i);
            if (kind == "user_input") {
                users.emplace_back(placeholder(spec.at("arg", what), what));
            } else if (kind == "constant_input") {
                const std::string &name = spec.at("name", what).text(what);
                Node n = named(Opcode::Placeholder, name, what);
                n.target = n.name;
                const auto &[type, value] = variant(spec.at("value", what), what);
                n.args = { argument(Json(Json::Object{ { type, value } }), what) };
                users.emplace_back(values_[name] = gm_.graph.append(std::move(n)));
            } else if (kind == "parameter") {
                weight(spec, "parameter_name", true, true, what);
            } else if (kind == "buffer") {
                weight(spec, "buffer_name", false, spec.boolOr("persistent", true), what);
            } else if (kind == "tensor_constant") {
                weight(spec, "tensor_constant_name", false, false, what);
            } else {
                const std::string name = spec.at("arg", what).at("name", what).text(what); // custom_obj, token
                Node n = named(Opcode::GetAttr, name, what);
                n.target = spec.textOr("custom_obj_name", name);
                gm_.attributes.set(n.target, Arg(ArgOpaque{ kind, n.target }));
                values_[name] = gm_.graph.append(std::move(n));
            }
        }
        addTiedNames();
        bindInputs(users);
    }

    // Dynamo's exports name a tied weight once; the state dict has all its names.
    void addTiedNames()
    {
        std::map<Tensor, bool> parameters;
        for (const auto &[fqn, entry] : gm_.tensors)
            parameters.emplace(entry->tensor, entry->parameter);
        for (const auto &[fqn, t] : archive_.tensors)
            if (const auto it = parameters.find(t); it != parameters.end() && !gm_.tensors.contains(fqn))
                addTensor(fqn, it->second, true);
    }

    NodeId placeholder(const Json &arg, const std::string &what)
    {
        const auto &[kind, value] = variant(arg, what);
        const std::string &name = kind == "as_tensor" ? value.at("name", what).text(what) : value.at("as_name", what).text(what);
        Node n = named(Opcode::Placeholder, name, what);
        n.target = n.name;
        n.meta = metaOf(name);
        if (kind == "as_tensor")
            gm_.provenance.inputs.push_back({ n.target, n.meta ? n.meta->shape : std::vector<int64_t>(),
                n.meta ? std::string(dtypeName(n.meta->dtype)) : "" });
        return values_[name] = gm_.graph.append(std::move(n));
    }

    void weight(const Json &spec, std::string_view nameKey, bool parameter, bool persistent, const std::string &what)
    {
        const std::string &name = spec.at("arg", what).at("name", what).text(what);
        const std::string fqn = modulePath(spec.at(nameKey, what).text(what));
        if (fqn != spec.at(nameKey, what).text(what))
            throw FormatError(fqn + " is a weight of an unknown form; export the model again");
        addTensor(fqn, parameter, persistent);
        Node n;
        n.op = Opcode::GetAttr;
        n.target = fqn;
        n.meta = metaOf(name);
        weights_[fqn] = values_[name] = gm_.graph.append(std::move(n));
    }

    // How the original forward takes the placeholders, where it is more than one after the other.
    void bindInputs(const std::vector<Arg> &users)
    {
        const Json *calls = module_.find("module_call_graph");
        const Json *signature = calls && !calls->list("\"module_call_graph\"").empty()
            ? calls->list("\"module_call_graph\"").front().find("signature")
            : nullptr;
        const Json *spec = signature ? signature->find("in_spec") : nullptr;
        outSpec_ = signature ? signature->textOr("out_spec") : std::string();
        if (!spec)
            return;
        const Structure structure(module_, spec->text("in_spec"), users);
        const ArgSequence *call = structure.whole().sequence();
        if (!call || call->items.size() != 2 || !call->items[0].sequence() || !call->items[1].dictionary())
            throw FormatError("the structure of its inputs is of an unknown form; export the model again");
        BoundCall bound{ call->items[0].sequence()->items, {} };
        for (const auto &[key, value] : call->items[1].dictionary()->items) {
            if (!key.as<std::string>())
                throw FormatError("the structure of its inputs is of an unknown form; export the model again");
            bound.kwargs.emplace_back(*key.as<std::string>(), value);
        }
        const bool plain = std::all_of(bound.args.begin(), bound.args.end(), [](const Arg &a) { return bool(a.node()); })
            && std::all_of(bound.kwargs.begin(), bound.kwargs.end(),
                [&](const auto &k) { return k.second.node() && gm_.graph[k.second.node()].target == k.first; });
        if (!plain)
            gm_.provenance.call = std::move(bound);
    }

    // --- nodes ---------------------------------------------------------------------------------------------------------

    Node named(Opcode op, const std::string &name, const std::string &what) const
    {
        if (!isIdentifier(name))
            throw FormatError(what + " has a name that is no Python identifier; export the model again");
        if (values_.contains(name))
            throw FormatError("two values are named " + name + "; export the model again");
        Node n;
        n.op = op;
        n.name = name;
        return n;
    }

    NodeId value(const std::string &name, const std::string &what) const
    {
        const auto it = values_.find(name);
        if (it == values_.end())
            throw FormatError(what + " uses " + name + ", which nothing before it gives; export the model again");
        return it->second;
    }

    template <class Read> static Arg list(const Json &j, const std::string &what, Read read)
    {
        ArgList items;
        for (const Json &item : j.list(what))
            items.push_back(read(item));
        return Arg::list(std::move(items));
    }

    Arg argument(const Json &j, const std::string &what) const
    {
        const auto &[kind, v] = variant(j, what);
        auto tensor = [&](const Json &t) { return Arg(value(t.at("name", what).text(what), what)); };
        auto integer = [&](const Json &i) { return Arg(i.integer(what)); };
        auto number = [&](const Json &f) { return Arg(real(f, what)); };
        auto text = [&](const Json &s) { return Arg(s.text(what)); };
        auto truth = [&](const Json &b) {
            const bool *known = b.as<bool>();
            if (!known)
                throw FormatError(what + " has a value that is no bool; export the model again");
            return Arg(*known);
        };
        auto symbolic = [&](const Json &s) -> Arg {
            const auto &[form, given] = variant(s, what);
            if (form == "as_name")
                return Arg(value(given.text(what), what));
            return form == "as_int" ? integer(given) : form == "as_float" ? number(given) : truth(given);
        };
        auto optional = [&](const Json &t) -> Arg {
            const auto &[form, given] = variant(t, what);
            return form == "as_none" ? Arg() : tensor(given);
        };
        if (kind == "as_none")
            return Arg();
        if (kind == "as_tensor")
            return tensor(v);
        if (kind == "as_tensors")
            return list(v, what, tensor);
        if (kind == "as_nested_tensors")
            return list(v, what, [&](const Json &inner) { return list(inner, what, tensor); });
        if (kind == "as_optional_tensor")
            return optional(v);
        if (kind == "as_optional_tensors")
            return list(v, what, optional);
        if (kind == "as_int")
            return integer(v);
        if (kind == "as_ints")
            return list(v, what, integer);
        if (kind == "as_int_lists")
            return list(v, what, [&](const Json &inner) { return list(inner, what, integer); });
        if (kind == "as_float")
            return number(v);
        if (kind == "as_floats")
            return list(v, what, number);
        if (kind == "as_float_lists")
            return list(v, what, [&](const Json &inner) { return list(inner, what, number); });
        if (kind == "as_string")
            return text(v);
        if (kind == "as_strings")
            return list(v, what, text);
        if (kind == "as_bool")
            return truth(v);
        if (kind == "as_bools")
            return list(v, what, truth);
        if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool")
            return symbolic(v);
        if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools")
            return list(v, what, symbolic);
        if (kind == "as_scalar_type")
            return ArgDType{ "torch." + std::string(dtypeName(pt2DType(v, what))) };
        if (kind == "as_memory_format")
            return memoryFormatOf(v.integer(what));
        if (kind == "as_layout")
            return layoutOf(v.integer(what));
        if (kind == "as_device")
            return deviceOf(v, what);
        if (kind == "as_complex")
            return std::complex<double>(real(v.at("real", what), what), real(v.at("imag", what), what));
        if (kind == "as_operator")
            return ArgSymbol{ targetOf(v.text(what), what) };
        if (kind == "as_string_to_argument") {
            std::vector<std::pair<Arg, Arg>> items;
            for (const auto &[key, inner] : v.object(what))
                items.emplace_back(Arg(key), argument(inner, what));
            return Arg::dict(std::move(items));
        }
        if (kind == "as_custom_obj")
            return Arg(value(v.at("name", what).text(what), what));
        throw FormatError(what + " has an argument of the kind \"" + kind + "\", which this Fuseboard does not know");
    }

    static std::string targetOf(std::string target, const std::string &what)
    {
        if (target.starts_with("_operator."))
            target.erase(0, 1);
        if (!isQualifiedName(target))
            throw FormatError(what + " has a target that is no name; export the model again");
        return target;
    }

    void readNode(const Json &j)
    {
        const Json::Array &outputs = j.at("outputs", "a node").list("\"outputs\"");
        const Json *single = outputs.size() == 1 ? nameOf(outputs.front()) : nullptr;
        Node n;
        n.op = Opcode::CallFunction;
        n.name = j.textOr("name", single ? std::string_view(single->text("a node")) : std::string_view());
        const std::string what = n.name.empty() ? "node " + std::to_string(gm_.graph.size()) : n.name;
        n.target = targetOf(j.at("target", what).text(what), what);
        for (const Json &input : j.at("inputs", what).list(what)) {
            Arg a = argument(input.at("arg", what), what);
            // Up to schema 7 it does not say which are positional; the first one always can be.
            const Json *kind = input.find("kind");
            if (kind ? kind->integer(what) != 2 : n.args.empty() && n.kwargs.empty())
                n.args.push_back(std::move(a));
            else
                n.kwargs.emplace_back(input.at("name", what).text(what), std::move(a));
        }
        readMetadata(j, n);
        if (single) {
            const std::string name = single->text(what);
            const auto stack = n.stack;
            Node checked = named(Opcode::CallFunction, name, what);
            n.name = std::move(checked.name);
            n.meta = metaOf(name);
            values_[name] = gm_.graph.append(std::move(n));
            return;
        }
        if (!n.name.empty() && !isIdentifier(n.name))
            throw FormatError(what + " has a name that is no Python identifier; export the model again");
        const auto stack = n.stack;
        const auto source = n.source;
        const NodeId id = gm_.graph.append(std::move(n));
        const bool listed = outputs.size() == 1 && !outputs.front().object(what).empty();
        items(listed ? variant(outputs.front(), what).second.as<Json::Array>() : &outputs, id, !listed, stack, source, what);
    }

    // The name of an output that is one value, else null.
    static const Json *nameOf(const Json &output)
    {
        const auto &[kind, v] = variant(output, "an output");
        if (kind == "as_tensor" || kind == "as_custom_obj")
            return v.find("name");
        if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool")
            return v.find("as_name");
        if (kind == "as_optional_tensor")
            if (const Json *tensor = v.find("as_tensor"))
                return tensor->find("name");
        return nullptr;
    }

    // getitem nodes for the values of a node that gives several. `unions`: each is a union of the schema, else a tensor.
    void items(const Json::Array *outputs, NodeId from, bool unions, const std::shared_ptr<const ModuleStack> &stack,
        const std::shared_ptr<const SourceLine> &source, const std::string &what)
    {
        if (!outputs)
            return;
        for (size_t i = 0; i < outputs->size(); ++i) {
            const Json &output = (*outputs)[i];
            const Json *name = unions ? nameOf(output) : output.find("name") ? output.find("name") : nameOf(output);
            const auto *inner = !name && unions ? variant(output, what).second.as<Json::Array>() : nullptr;
            if (!name && !inner)
                continue; // None
            Node n;
            if (name)
                n = named(Opcode::CallFunction, name->text(what), what);
            n.target = "operator.getitem";
            n.args = { from, int64_t(i) };
            n.stack = stack;
            n.source = source;
            if (name)
                n.meta = metaOf(n.name);
            const std::string key = n.name;
            const NodeId id = gm_.graph.append(std::move(n));
            if (name)
                values_[key] = id;
            else
                items(inner, id, false, stack, source, what);
        }
    }

    std::optional<TensorMeta> metaOf(const std::string &name) const
    {
        const Json *values = graph_.find("tensor_values");
        const Json *meta = values ? indexed(*values).contains(name) ? tensorValues_.at(name) : nullptr : nullptr;
        if (!meta)
            return std::nullopt;
        TensorMeta out;
        for (const Json &size : meta->at("sizes", name).list(name)) {
            const auto &[kind, v] = variant(size, "the shape of " + name);
            const Json *hint = kind == "as_expr" ? v.find("hint") : &size;
            const Json *known = hint ? hint->find("as_int") : nullptr;
            if (!known)
                return std::nullopt; // a size that depends on values
            out.shape.push_back(known->integer(name));
        }
        const int64_t dtype = meta->at("dtype", name).integer(name);
        if (dtype == 9 || dtype == 0 || dtype > 30)
            return std::nullopt;
        out.dtype = pt2DType(meta->at("dtype", name), name);
        checkedNumel(out.shape, 16, "the shape of " + name);
        return out;
    }

    const std::unordered_map<std::string, const Json *> &indexed(const Json &values) const
    {
        if (tensorValues_.empty())
            for (const auto &[name, meta] : values.object("\"tensor_values\""))
                tensorValues_.emplace(name, &meta);
        return tensorValues_;
    }

    // --- where a node comes from ---------------------------------------------------------------------------------------

    // "key,path,class;key,path,class": the key ends in @n at the n-th further call of a module.
    static ModuleStack framesOf(const Json &node)
    {
        ModuleStack frames;
        const Json *metadata = node.find("metadata");
        const std::string text = metadata ? metadata->textOr("nn_module_stack") : std::string();
        for (size_t at = 0; at < text.size();) {
            const size_t end = std::min(text.find(';', at), text.size());
            const std::string entry = text.substr(at, end - at);
            at = end + 1;
            const size_t first = entry.find(','), second = entry.find(',', first + 1);
            if (second == entry.npos || entry.starts_with("_empty_nn_module_stack"))
                continue;
            const std::string key = entry.substr(0, first);
            ModuleFrame f{ modulePath(entry.substr(first + 1, second - first - 1)), entry.substr(second + 1), 0 };
            if (const size_t call = key.rfind('@'); call != key.npos && key.size() - call < 8)
                for (size_t i = call + 1; i < key.size() && key[i] >= '0' && key[i] <= '9'; ++i)
                    f.call = f.call * 10 + (key[i] - '0');
            if (const size_t call = f.path.rfind('@'); call != f.path.npos)
                f.path.resize(call);
            if (isPath(f.path) && isQualifiedName(f.className))
                frames.push_back(std::move(f));
        }
        return frames;
    }

    void readMetadata(const Json &j, Node &n)
    {
        const Json *metadata = j.find("metadata");
        if (!metadata)
            return;
        if (std::string made = metadata->textOr("torch_fn"); !made.empty()) // "chunk_1;method_descriptor.chunk"
            n.metadata = std::make_shared<const Kwargs>(Kwargs{ { "torch_fn", Arg(std::move(made)) } });
        ModuleStack frames = framesOf(j);
        std::erase_if(frames, [](const ModuleFrame &f) { return f.path.empty(); });
        if (!frames.empty()) {
            if (!lastStack_ || !(*lastStack_ == frames))
                lastStack_ = std::make_shared<const ModuleStack>(std::move(frames));
            n.stack = lastStack_;
        }
        if (auto source = sourceOf(metadata->textOr("stack_trace"))) {
            if (!lastSource_ || !(*lastSource_ == *source))
                lastSource_ = std::make_shared<const SourceLine>(std::move(*source));
            n.source = lastSource_;
        }
    }

    // The innermost line that is not torch's own: what the user wrote.
    static std::optional<SourceLine> sourceOf(const std::string &trace)
    {
        std::optional<SourceLine> found;
        for (size_t at = trace.find("File \""); at != trace.npos; at = trace.find("File \"", at + 1)) {
            const size_t file = at + 6, fileEnd = trace.find("\", line ", file), lineEnd = trace.find('\n', file);
            if (fileEnd == trace.npos || fileEnd > lineEnd)
                continue;
            SourceLine s;
            s.file = trace.substr(file, fileEnd - file);
            for (size_t i = fileEnd + 8; i < trace.size() && trace[i] >= '0' && trace[i] <= '9' && s.line < 100'000'000; ++i)
                s.line = s.line * 10 + (trace[i] - '0');
            if (const size_t in = trace.find(", in ", fileEnd); in < lineEnd)
                s.function = trace.substr(in + 5, std::min(lineEnd, trace.size()) - in - 5);
            if (lineEnd != trace.npos) {
                const size_t begin = std::min(trace.find_first_not_of(' ', lineEnd + 1), trace.size());
                s.code = trace.substr(begin, std::min(trace.find('\n', begin), trace.size()) - begin);
            }
            const bool torchs = s.file.find("/torch/") != s.file.npos || s.file.starts_with("torch/");
            if (!torchs)
                found = std::move(s);
        }
        return found;
    }

    // --- outputs -------------------------------------------------------------------------------------------------------

    void readOutputs()
    {
        const auto &outputs = graph_.at("outputs", "the graph").list("\"outputs\"");
        const auto &specs = module_.at("signature", "the program").at("output_specs", "the signature").list("\"output_specs\"");
        if (outputs.size() != specs.size())
            throw FormatError("its signature has " + std::to_string(specs.size()) + " outputs and its graph "
                + std::to_string(outputs.size()) + "; export the model again");
        std::vector<Arg> users;
        for (size_t i = 0; i < specs.size(); ++i) {
            const std::string what = "output " + std::to_string(i);
            const auto &[kind, spec] = variant(specs[i], what);
            if (kind == "user_output" || kind == "loss_output") {
                users.push_back(argument(outputs[i], what));
                continue;
            }
            NodeId changed;
            if (kind == "user_input_mutation")
                changed = value(spec.at("user_input_name", what).text(what), what);
            else if (kind == "buffer_mutation" || kind == "parameter_mutation")
                changed = stored(spec.at(kind == "buffer_mutation" ? "buffer_name" : "parameter_name", what).text(what), what);
            else
                continue; // gradients and tokens
            Node n;
            n.op = Opcode::CallFunction;
            n.target = "torch.ops.aten.copy_.default";
            n.args = { changed, argument(outputs[i], what) };
            n.meta = gm_.graph[changed].meta;
            gm_.graph.append(std::move(n));
        }
        Node n;
        n.op = Opcode::Output;
        n.name = "output";
        n.target = "output";
        n.args = { outSpec_.empty() ? users.size() == 1 ? users[0] : Arg::tuple(users)
                                    : Structure(module_, outSpec_, users).whole() };
        gm_.graph.append(std::move(n));
    }

    NodeId stored(const std::string &fqn, const std::string &what) const
    {
        const auto it = weights_.find(fqn);
        if (it == weights_.end())
            throw FormatError(what + " changes " + fqn + ", which is no input; export the model again");
        return it->second;
    }

    // Every parameter and buffer is an input of the exported program, used or not.
    void dropUnusedWeights()
    {
        std::vector<NodeId> unused;
        for (const NodeId id : gm_.graph.order())
            if (gm_.graph[id].op == Opcode::GetAttr && gm_.graph.users(id).empty())
                unused.push_back(id);
        (void)gm_.graph.erase(unused);
    }

    const Pt2Archive &archive_;
    const Json &module_, &graph_;
    GraphModule gm_;
    std::unordered_map<std::string, NodeId> values_; // by the program's names
    std::map<std::string, NodeId> weights_; // by fully qualified name
    std::string outSpec_;
    mutable std::unordered_map<std::string, const Json *> tensorValues_;
    std::shared_ptr<const ModuleStack> lastStack_;
    std::shared_ptr<const SourceLine> lastSource_;
};

} // namespace

Result<GraphModule> readPt2(const std::string &path)
{
    return guarded(path, [&] {
        const Pt2Archive archive = readPt2Archive(path);
        return Program(archive).read();
    });
}

} // namespace fb
