// An exported program becomes a GraphModule: its signature says which of the graph's inputs are weights, and which outputs are
// new values of them; module_call_graph has the containers of the original forward.
#include <algorithm>
#include <map>

#include "model/io/models.h"
#include "model/io/names.h"
#include "model/io/pt2_archive.h"
#include "model/io/pt2_nodes.h"
#include "model/ir/lint.h"

namespace fb
{

namespace
{

using namespace io;

constexpr std::string_view kPlainModule = "torch.nn.modules.module.Module";

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
        , nodes_(graph_, gm_)
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
        nodes_.readNodes();
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
        std::vector<std::pair<size_t, Node>> constants; // by their place in `users`
        for (size_t i = 0; i < specs.size(); ++i) {
            const auto &[kind, spec] = variant(specs[i], "input " + std::to_string(i));
            const std::string what = "input " + std::to_string(i);
            if (kind == "user_input") {
                const NodeId id = nodes_.placeholder(spec.at("arg", what), what);
                const Node &n = gm_.graph[id];
                if (n.meta || spec.at("arg", what).find("as_tensor"))
                    gm_.provenance.inputs.push_back({ n.target, n.meta ? n.meta->shape : std::vector<int64_t>(),
                        n.meta ? std::string(dtypeName(n.meta->dtype)) : "" });
                users.emplace_back(id);
            } else if (kind == "constant_input") {
                const std::string &name = spec.at("name", what).text(what);
                Node n = nodes_.named(Opcode::Placeholder, name, what);
                n.target = n.name;
                const auto &[type, value] = variant(spec.at("value", what), what);
                n.args = { nodes_.argument(Json(Json::Object{ { type, value } }), what) };
                constants.emplace_back(users.size(), std::move(n));
                users.emplace_back();
            } else if (kind == "parameter") {
                weight(spec, "parameter_name", true, true, what);
            } else if (kind == "buffer") {
                weight(spec, "buffer_name", false, spec.boolOr("persistent", true), what);
            } else if (kind == "tensor_constant") {
                weight(spec, "tensor_constant_name", false, false, what);
            } else {
                const std::string name = spec.at("arg", what).at("name", what).text(what); // custom_obj, token
                Node n = nodes_.named(Opcode::GetAttr, name, what);
                n.target = spec.textOr("custom_obj_name", name);
                gm_.attributes.set(n.target, Arg(ArgOpaque{ kind, n.target }));
                nodes_.add(std::move(n), name);
            }
        }
        // What the export fixed has a default, so it follows the arguments that have none.
        for (auto &[place, n] : constants) {
            const std::string name = n.name;
            users[place] = nodes_.add(std::move(n), name);
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
        n.meta = nodes_.metaOf(name);
        weights_[fqn] = nodes_.add(std::move(n), name);
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
        std::vector<NodeId> inOrder;
        for (const Arg &a : bound.args)
            inOrder.push_back(a.node());
        for (const auto &[name, a] : bound.kwargs)
            inOrder.push_back(a.node());
        const bool plain = inOrder == gm_.graph.placeholders()
            && std::all_of(bound.kwargs.begin(), bound.kwargs.end(),
                [&](const auto &k) { return k.second.node() && gm_.graph[k.second.node()].target == k.first; });
        if (!plain)
            gm_.provenance.call = std::move(bound);
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
                users.push_back(nodes_.argument(outputs[i], what));
                continue;
            }
            NodeId changed;
            if (kind == "user_input_mutation")
                changed = nodes_.value(spec.at("user_input_name", what).text(what), what);
            else if (kind == "buffer_mutation" || kind == "parameter_mutation")
                changed = stored(spec.at(kind == "buffer_mutation" ? "buffer_name" : "parameter_name", what).text(what), what);
            else
                continue; // gradients and tokens
            Node n;
            n.op = Opcode::CallFunction;
            n.target = "torch.ops.aten.copy_.default";
            n.args = { changed, nodes_.argument(outputs[i], what) };
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
    Pt2Nodes nodes_;
    std::map<std::string, NodeId> weights_; // by fully qualified name
    std::string outSpec_;
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
