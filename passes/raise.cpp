#include "passes/raise.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/exec/schema.h"
#include "model/ir/ops.h"
#include "model/text/text.h"
#include "passes/call.h"

namespace fb
{

namespace
{

constexpr std::string_view kAten = "torch.ops.aten.";

// Modules whose forward ATen also has in a decomposed form, under another name.
struct Decomposed {
    std::string_view aten, kindPrefix; // of OpInfo::kind
    bool tuple; // the module's value is item 0
};
constexpr Decomposed kDecomposed[] = { { "convolution.default", "conv", false },
    { "_native_batch_norm_legit_no_training.default", "batch_norm", true }, { "native_layer_norm.default", "layer_norm", true },
    { "native_group_norm.default", "group_norm", true }, { "_softmax.default", "softmax", false },
    { "_log_softmax.default", "log_softmax", false }, { "_adaptive_avg_pool2d.default", "adaptive_avg_pool2d", false },
    { "addmm.default", "linear", false }, { "hardtanh.default", "relu6", false }, { "clamp.default", "relu6", false },
    { "max_pool2d_with_indices.default", "max_pool2d", true } };

// Arguments of schemas that say how to compute, not what.
constexpr std::string_view kIgnored[] = { "cudnn_enabled", "cudnn_enable", "half_to_float" };

template <class Names> bool among(const Names &names, std::string_view name)
{
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool isTensorFact(std::string_view name)
{
    static constexpr std::string_view names[] = { "weight", "bias", "running_mean", "running_var" };
    return among(names, name);
}

std::string overloadOf(const Node &n)
{
    return n.op == Opcode::CallFunction && n.target.starts_with(kAten) ? n.target.substr(kAten.size()) : std::string();
}

Arg tupled(const Arg &a)
{
    const ArgSequence *s = a.sequence();
    return s ? Arg::tuple(s->items) : a;
}

// [3, 3] as the 3 that people write, for the modules that keep it so.
Arg collapsed(const Arg &a)
{
    const auto values = a.toInts();
    const bool same = a.sequence() && values && !values->empty()
        && std::all_of(values->begin(), values->end(), [&](int64_t v) { return v == values->front(); });
    return same ? Arg(values->front()) : tupled(a);
}

class Raiser
{
public:
    explicit Raiser(GraphModule &gm)
        : gm_(gm)
        , g_(gm.graph)
    {
    }

    PassReport run()
    {
        PassReport report{ "Regroup into modules", false, {}, {} };
        auto sweep = [&](auto raise) { // modules first: the parts of one must not become functions before it is found
            for (const NodeId id : std::vector(g_.order()))
                if (g_.contains(id) && !overloadOf(g_[id]).empty())
                    raise(id, std::string(g_[id].name));
        };
        sweep([&](NodeId id, const std::string &before) {
            std::string why;
            if (toModule(id, why))
                report.done.push_back({ before, before + " -> " + gm_.moduleOf(g_[id])->shortClass() + " " + g_[id].target });
            else if (!why.empty())
                report.kept.push_back({ before, before + " kept: " + why });
        });
        sweep([&](NodeId id, const std::string &before) {
            if (toFunction(id))
                report.done.push_back({ before, before + " -> " + g_[id].target });
        });
        dropWeights();
        nameAnew(report);
        report.changed = !report.done.empty();
        return report;
    }

private:
    using Given = std::map<std::string, Arg>; // arguments by the schema's names, with defaults

    std::optional<Given> argumentsOf(const Node &n, const std::string &overload) const
    {
        const auto parameters = schemaParameters("aten::" + overload);
        if (parameters.empty() || n.args.size() > parameters.size())
            return std::nullopt;
        Given given;
        for (size_t i = 0; i < parameters.size(); ++i) {
            if (i < n.args.size())
                given[parameters[i].name] = n.args[i];
            else if (const Arg *named = n.kwarg(parameters[i].name))
                given[parameters[i].name] = *named;
            else if (parameters[i].fallback)
                given[parameters[i].name] = *parameters[i].fallback;
        }
        return given;
    }

    // --- modules -------------------------------------------------------------------------------------------------------

    bool toModule(NodeId id, std::string &why)
    {
        const Node n = g_[id];
        if (!n.stack || n.stack->empty())
            return false;
        const ModuleFrame &frame = n.stack->back();
        const OpInfo *op = findModuleClass(frame.className);
        if (!op || op->kind == "sequential")
            return false;
        std::string overload = overloadOf(n);
        const bool inplace = overload.find("_.") != overload.npos;
        if (inplace)
            overload.erase(overload.find("_."), 1);
        const Decomposed *form = nullptr;
        for (const Decomposed &d : kDecomposed)
            if (d.aten == overload && op->kind.starts_with(d.kindPrefix))
                form = &d;
        if (!form && op->aten != "aten::" + overload.substr(0, overload.find('.')))
            return false; // one of several operators of this module's forward
        std::optional<Given> given = argumentsOf(n, overload);
        if (!given)
            return false;
        std::vector<NodeId> absorbed;
        if (form && !normalize(*form, op->kind, n, *given, absorbed))
            return false;
        if (form && form->tuple)
            for (const NodeId user : g_.users(id))
                if (g_[user].target != "operator.getitem" || g_[user].args.size() != 2
                    || (g_[user].args[1] != Arg(0) && !g_.users(user).empty()))
                    return false; // what it keeps for the backward pass is read

        ModuleInfo m = made(frame, *op, n, *given, inplace, why);
        if (!why.empty() || !adopt(m, *given, why))
            return false;
        ArgList inputs{ inputOf(*given) };
        if (!inputs.front().node()) {
            why = "its input is not a tensor of the graph";
            return false;
        }
        apply(id, m.path, std::move(inputs), form && form->tuple, absorbed);
        return true;
    }

    static Arg inputOf(const Given &given)
    {
        for (const char *name : { "self", "input", "indices" })
            if (const auto it = given.find(name); it != given.end())
                return it->second;
        return {};
    }

    // A decomposed operator's arguments as those of the operator that it stands for. `absorbed`: nodes that go with it.
    bool normalize(
        const Decomposed &form, std::string_view kind, const Node &n, Given &given, std::vector<NodeId> &absorbed) const
    {
        if (form.aten == "convolution.default") {
            const bool transposed = given["transposed"] == Arg(true);
            if (transposed != kind.starts_with("conv_transpose"))
                return false;
            given.erase("transposed");
            if (!transposed)
                given.erase("output_padding");
        } else if (form.aten == "_native_batch_norm_legit_no_training.default") {
            given["training"] = Arg(false);
        } else if (form.aten == "native_group_norm.default") {
            given["num_groups"] = given["group"];
            for (const char *name : { "group", "N", "C", "HxW" })
                given.erase(name);
        } else if (kind == "relu6") {
            const bool clamp = form.aten == "clamp.default";
            const Arg low = given[clamp ? "min" : "min_val"], high = given[clamp ? "max" : "max_val"];
            if (low.toDouble() != 0.0 || high.toDouble() != 6.0)
                return false;
            given = { { "self", given["self"] } };
        } else if (form.aten == "addmm.default") {
            // addmm(bias, input, permute(weight, [1, 0]))
            const NodeId turned = given["mat2"].node();
            if (!turned || given["beta"] != Arg(1) || given["alpha"] != Arg(1) || g_.users(turned).size() != 1
                || overloadOf(g_[turned]) != "permute.default" || g_[turned].args.size() != 2
                || g_[turned].args[1].toInts() != std::vector<int64_t>{ 1, 0 } || g_[turned].stack != n.stack)
                return false;
            given = { { "input", given["mat1"] }, { "weight", g_[turned].args[0] }, { "bias", given["self"] } };
            absorbed.push_back(turned);
        }
        return true;
    }

    // The module as its class would be constructed; its tensors are not looked at yet.
    ModuleInfo made(const ModuleFrame &frame, const OpInfo &op, const Node &n, const Given &given, bool inplace, std::string &why)
    {
        ModuleInfo m;
        if (const ModuleInfo *known = gm_.modules.find(frame.path))
            m = *known;
        m.path = frame.path;
        m.className = frame.className;
        m.kind = ModuleKind::Nn;
        m.attrs.clear();
        const bool pool = op.kind.find("pool") != op.kind.npos;
        auto fact = [&](std::string_view name, Arg value) { m.attrs.emplace_back(std::string(name), std::move(value)); };
        std::set<std::string_view> used{ "self", "input", "indices" };
        for (const OpParam &p : op.params) {
            const std::string name(p.name);
            if (name == "input" || isTensorFact(name) || name.starts_with('_'))
                continue;
            const std::string schema = name == "training" && !given.contains(name) ? "train" : name;
            if (name == "training") {
                if (const auto it = given.find(schema); it != given.end()) {
                    used.insert(it->first);
                    m.training = it->second.toBool().value_or(false);
                }
                continue;
            }
            if (name == "inplace") {
                fact(name, inplace);
                continue;
            }
            if (const auto it = given.find(name); it != given.end()) {
                used.insert(it->first);
                bool nodes = false;
                forEachNode(it->second, [&](NodeId) { nodes = true; });
                if (nodes) {
                    why = "its " + name + " is computed in the graph";
                    return m;
                }
                fact(name, pool ? collapsed(it->second) : tupled(it->second));
            } else if (p.defaultText.empty()) {
                why = "its " + name + " is not known";
                return m;
            } else {
                fact(name, parseLiteral(p.defaultText).value_or(Arg()));
            }
        }
        if (inplace && !m.attr("inplace"))
            why = m.shortClass() + " has no in-place form";
        // What the operator takes beyond the module's facts must be at its default.
        const auto parameters = schemaParameters("aten::" + overloadOf(n));
        for (const SchemaParameter &p : parameters)
            if (const auto it = given.find(p.name); it != given.end() && !used.contains(p.name) && !isTensorFact(p.name)
                && !among(kIgnored, p.name) && p.fallback && it->second != *p.fallback)
                why = "it is called with " + p.name + "=" + argText(gm_, it->second) + ", which " + m.shortClass() + " has not";
        return m;
    }

    // Gives the module its tensors, the rest of its facts and its place in the table. Refuses where it is there with other ones.
    bool adopt(ModuleInfo &m, const Given &given, std::string &why)
    {
        std::vector<std::pair<std::string, std::string>> shared; // own name, name in the signature
        std::map<std::string, Tensor> tensors;
        for (const char *name : { "weight", "bias", "running_mean", "running_var" }) {
            const auto it = given.find(name);
            if (it == given.end() || it->second.isNone()) {
                if (it != given.end() && std::find(m.none.begin(), m.none.end(), name) == m.none.end())
                    m.none.emplace_back(name);
                continue;
            }
            const NodeId source = it->second.node();
            const Tensor t = source && g_[source].op == Opcode::GetAttr ? gm_.tensor(g_[source].target) : nullptr;
            if (!t) {
                why = std::string("its ") + name + " is computed in the graph";
                return false;
            }
            const std::string own = joinPath(m.path, name);
            if (const Tensor there = gm_.tensor(own); there && there != t) {
                why = "its " + std::string(name) + " is not that of " + m.path;
                return false;
            }
            tensors[name] = t;
            if (!gm_.tensors.contains(own))
                shared.emplace_back(own, g_[source].target);
        }
        derive(m, tensors);
        if (const auto it = raised_.find(m.path); it != raised_.end()) {
            const ModuleInfo &first = *gm_.modules.find(m.path);
            if (first.attrs != m.attrs || first.training != m.training) {
                why = "another call of " + m.path + " has other arguments";
                return false;
            }
            return true;
        }
        for (const auto &[own, name] : shared) {
            const TensorEntry entry = *gm_.tensors.find(name);
            gm_.tensors.set(own, entry);
            (entry.parameter ? m.parameters : m.buffers).push_back(own.substr(m.path.empty() ? 0 : m.path.size() + 1));
        }
        raised_.insert(m.path);
        gm_.addModule(m);
        return true;
    }

    // Facts that the operator has no argument for: they follow from the weights.
    static void derive(ModuleInfo &m, const std::map<std::string, Tensor> &tensors)
    {
        const std::string cls = m.shortClass();
        const auto sizes = [&](const char *name) {
            const auto it = tensors.find(name);
            return it == tensors.end() ? std::vector<int64_t>() : it->second->sizes;
        };
        const std::vector<int64_t> w = sizes("weight");
        Kwargs first;
        auto put = [&](const char *name, Arg v) { first.emplace_back(name, std::move(v)); };
        if (cls.starts_with("Conv") && w.size() > 2) {
            const bool transposed = cls.starts_with("ConvTranspose");
            const int64_t groups = m.attr("groups") ? m.attr("groups")->toInt().value_or(1) : 1;
            put("in_channels", transposed ? w[0] : w[1] * groups);
            put("out_channels", transposed ? w[1] * groups : w[0]);
            put("kernel_size", Arg::ints({ w.begin() + 2, w.end() }));
        } else if (cls == "Linear" && w.size() == 2) {
            put("in_features", w[1]);
            put("out_features", w[0]);
        } else if (cls.starts_with("BatchNorm")) {
            const std::vector<int64_t> mean = sizes("running_mean");
            put("num_features", !mean.empty() ? mean[0] : w.empty() ? int64_t(0) : w[0]);
            m.attrs.emplace_back("affine", !w.empty());
            m.attrs.emplace_back("track_running_stats", !mean.empty());
        } else if (cls == "LayerNorm" || cls == "RMSNorm") {
            m.attrs.emplace_back("elementwise_affine", !w.empty());
        } else if (cls == "GroupNorm") {
            if (!w.empty())
                put("num_channels", w[0]);
            m.attrs.emplace_back("affine", !w.empty());
        } else if (cls == "Embedding" && w.size() == 2) {
            put("num_embeddings", w[0]);
            put("embedding_dim", w[1]);
        } else if (cls == "PReLU" && w.size() == 1) {
            put("num_parameters", w[0]);
        }
        m.attrs.insert(m.attrs.begin(), first.begin(), first.end());
        if (cls.starts_with("Conv") || cls == "Linear") {
            if (tensors.contains("bias"))
                m.attrs.emplace_back("bias", true);
            else
                m.attrs.emplace_back("bias", Arg());
        }
    }

    void apply(NodeId id, const std::string &path, ArgList inputs, bool tuple, const std::vector<NodeId> &absorbed)
    {
        auto stack = std::make_shared<ModuleStack>(*g_[id].stack);
        stack->pop_back();
        g_.setTarget(id, Opcode::CallModule, path);
        g_.setArgs(id, std::move(inputs), {});
        g_.setStack(id, stack->empty() ? nullptr : std::shared_ptr<const ModuleStack>(std::move(stack)));
        if (tuple)
            for (const NodeId item : std::vector(g_.users(id))) {
                if (g_[item].args[1] == Arg(0))
                    g_.setMeta(id, g_[item].meta);
                g_.replaceAllUses(item, id);
                (void)g_.erase(item);
            }
        for (const NodeId other : absorbed)
            (void)g_.erase(other);
        wanted_[id] = path;
    }

    // --- functions -----------------------------------------------------------------------------------------------------

    // Whether nothing can see that the node's first argument was changed: it is fresh memory that only this node reads.
    bool changeIsHidden(const Node &n) const
    {
        const NodeId in = n.args.empty() ? NodeId() : n.args[0].node();
        if (!in || g_.users(in).size() != 1)
            return false;
        const Node &source = g_[in];
        if (source.op == Opcode::Placeholder || source.op == Opcode::GetAttr)
            return false;
        const OpInfo *op = opInfo(gm_, source);
        return op && !op->viewOrShape && !mutatesInput(gm_, source) && op->category != Category::Shape && op->kind != "dropout"
            && op->kind != "getitem";
    }

    bool toFunction(NodeId id)
    {
        const Node n = g_[id];
        std::string overload = overloadOf(n);
        const std::string asItIs = overload;
        if (const size_t mark = overload.find("_."); mark != overload.npos && !overload.starts_with("__")) {
            if (!changeIsHidden(n))
                return false;
            overload.erase(mark, 1);
        }
        const OpInfo *op = findFunction(std::string(kAten) + overload);
        const std::optional<Given> given = argumentsOf(n, asItIs);
        if (!op || !given)
            return false;
        const auto parameters = schemaParameters("aten::" + asItIs);
        Values values;
        for (size_t i = 0; i < parameters.size(); ++i) {
            const std::string &name = parameters[i].name;
            if (i >= n.args.size() && !n.kwarg(name))
                continue;
            const Arg &value = given->at(name);
            auto p = std::find_if(op->params.begin(), op->params.end(), [&](const OpParam &q) { return q.name == name; });
            if (p == op->params.end() && i < op->params.size() && (i == 0 || op->params[i].name.starts_with('*')))
                p = op->params.begin() + std::ptrdiff_t(i); // self, and the sizes of view(*shape)
            if (p != op->params.end())
                values.emplace_back(std::string(p->name), value);
            else if (!among(kIgnored, name) && !(parameters[i].fallback && value == *parameters[i].fallback))
                return false;
        }
        // The call must say the same: arguments that were left out have ATen's defaults, not always Python's.
        for (const OpParam &p : op->params) {
            const auto it = given->find(std::string(p.name));
            const bool said = std::any_of(values.begin(), values.end(), [&](const auto &v) { return v.first == p.name; });
            if (!said && it != given->end() && !p.defaultText.empty() && parseLiteral(p.defaultText) != it->second)
                values.emplace_back(std::string(p.name), it->second);
        }
        for (const OpRef &ref : spellings(n, *op)) {
            auto call = writeCall(ref, values);
            if (!call || (ref.target.starts_with("operator.") && values.size() != call->args.size()))
                continue;
            if (ref.op == Opcode::CallMethod && call->args.size() == 2 && op->params.back().name.starts_with('*'))
                if (const ArgSequence *sizes = call->args[1].sequence()) { // x.view(2, 3)
                    const ArgList spread = sizes->items;
                    call->args.resize(1);
                    call->args.insert(call->args.end(), spread.begin(), spread.end());
                }
            g_.setTarget(id, ref.op, ref.target);
            g_.setArgs(id, std::move(call->args), std::move(call->kwargs));
            wanted_[id] = ref.target.substr(ref.target.rfind('.') + 1);
            return true;
        }
        return false;
    }

    // The names that Python code has for an operator, that of the code it was exported from first: torch keeps "the function or
    // method that made it" (torch_fn). x + y and x.add(y) are one to it; the operator is what people write.
    static std::vector<OpRef> spellings(const Node &n, const OpInfo &op)
    {
        std::string made;
        if (n.metadata)
            for (const auto &[key, value] : *n.metadata)
                if (key == "torch_fn" && value.as<std::string>())
                    made = *value.as<std::string>();
        const bool method = made.find(";method_descriptor.") != made.npos, function = made.find(";builtin_function") != made.npos;
        std::vector<OpRef> found;
        auto functions = [&](bool operators) {
            for (const std::string_view name : op.functions)
                if (name.starts_with("operator.") == operators)
                    found.push_back({ Opcode::CallFunction, std::string(name) });
        };
        auto methods = [&] {
            for (const std::string_view name : op.methods)
                if (!name.starts_with("__"))
                    found.push_back({ Opcode::CallMethod, std::string(name) });
        };
        if (!function)
            functions(true);
        if (method)
            methods();
        functions(false);
        functions(true);
        methods();
        return found;
    }

    // --- weights -------------------------------------------------------------------------------------------------------

    void dropWeights()
    {
        std::vector<NodeId> unused;
        for (const NodeId id : g_.order())
            if (g_[id].op == Opcode::GetAttr && g_.users(id).empty())
                unused.push_back(id);
        (void)g_.erase(unused);
    }

    // The names that torch.fx gives when it traces these calls, numbered in their order.
    void nameAnew(PassReport &report)
    {
        Graph named;
        std::map<NodeId, NodeId> now;
        std::map<std::string, std::string> names;
        const auto mapped = [&](NodeId id) { return Arg(now.at(id)); };
        for (const NodeId id : g_.order()) {
            Node n = g_[id];
            const std::string before = n.name;
            if (const auto it = wanted_.find(id); it != wanted_.end()) {
                n.name = it->second;
                std::replace_if(
                    n.name.begin(), n.name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '_'; },
                    '_');
                if (n.name[0] >= '0' && n.name[0] <= '9')
                    n.name.insert(0, "_");
            }
            for (Arg &a : n.args)
                a = mapNodes(a, mapped);
            for (auto &[key, a] : n.kwargs)
                a = mapNodes(a, mapped);
            now[id] = named.append(std::move(n));
            names[before] = named[now[id]].name;
        }
        if (auto &call = gm_.provenance.call) {
            for (Arg &a : call->args)
                a = mapNodes(a, mapped);
            for (auto &[key, a] : call->kwargs)
                a = mapNodes(a, mapped);
        }
        g_ = std::move(named);
        for (PassItem &item : report.done)
            item.node = names[item.node];
        for (PassItem &item : report.kept)
            item.node = names[item.node];
    }

    GraphModule &gm_;
    Graph &g_;
    std::set<std::string> raised_; // module paths
    std::map<NodeId, std::string> wanted_; // what a changed node is named after
};

} // namespace

bool isFlat(const GraphModule &gm)
{
    return std::any_of(
        gm.graph.order().begin(), gm.graph.order().end(), [&](NodeId id) { return !overloadOf(gm.graph[id]).empty(); });
}

Result<PassReport> raiseModules(GraphModule &gm)
{
    return Raiser(gm).run();
}

} // namespace fb
