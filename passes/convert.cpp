// From plan and statistics to the int8 graph: what prepare_fx, calibration and convert_fx end in, in one rewrite. Every value has
// up to two forms, float and int8. A node of the plan gives one of them, each of its users wants one, and a quantize or
// dequantize is put between where they differ, once for a value. It is put outside of the modules that the value leaves and
// enters, so that modules stay in one piece.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "model/exec/tensor_ops.h"
#include "passes/backends.h"
#include "passes/quantize.h"

namespace fb
{

namespace
{

std::string number(double v)
{
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, v).ptr;
    return { text, end };
}

std::shared_ptr<const ModuleStack> commonStack(
    const std::shared_ptr<const ModuleStack> &a, const std::shared_ptr<const ModuleStack> &b)
{
    if (!a || !b)
        return nullptr;
    const auto end = std::mismatch(a->begin(), a->end(), b->begin(), b->end()).first;
    return end == a->end() ? a : std::make_shared<const ModuleStack>(a->begin(), end);
}

class Converter
{
public:
    Converter(const GraphModule &fused, const QuantPlan &plan, const Calibration &calibration, const Backend &backend)
        : fused_(fused)
        , plan_(plan)
        , calibration_(calibration)
        , backend_(backend)
        , gm_(fused)
        , g_(gm_.graph)
    {
    }

    Result<QuantResult> run()
    {
        if (Status s = choose(); !s)
            return s.error();
        separateAliases();
        for (NodeId id : fused_.graph.order()) {
            const NodeQuant &q = quant(id);
            if (q.state != QuantState::Int8 || isTail(id))
                continue;
            if (Status s = lower(id, q); !s)
                return s.error();
        }
        connect();
        makeContiguous();
        for (const std::string &path : replaced_)
            dropFloatParts(path);
        gm_.dropUnused();
        return finish();
    }

private:
    struct Range {
        float min = std::numeric_limits<float>::infinity(), max = -std::numeric_limits<float>::infinity();
    };

    const NodeQuant &quant(NodeId id) const { return plan_.nodes.at(id); }
    // The ReLU of a pair: its value is given by the node before it.
    bool isTail(NodeId id) const
    {
        const NodeQuant &q = quant(id);
        if (q.state != QuantState::Int8 || q.last != id)
            return false;
        const auto ins = fused_.graph.inputs(id);
        return ins.size() == 1 && ins[0] != id && quant(ins[0]).state == QuantState::Int8 && quant(ins[0]).last == id;
    }

    // --- ranges ---

    Status choose()
    {
        std::vector<std::string> missing;
        for (NodeId id : fused_.graph.order()) {
            const NodeQuant &q = quant(id);
            if (q.group < 0)
                continue;
            if (size_t(q.group) >= ranges_.size()) {
                ranges_.resize(size_t(q.group) + 1);
                params_.resize(ranges_.size());
            }
            if (q.fixed) {
                params_[size_t(q.group)] = *q.fixed;
                continue;
            }
            const std::optional<Range> seen = rangeOf(id);
            if (!seen) {
                missing.push_back(fused_.graph[id].name);
                continue;
            }
            Range &r = ranges_[size_t(q.group)];
            r.min = std::min(r.min, seen->min);
            r.max = std::max(r.max, seen->max);
            params_[size_t(q.group)] = minMaxQParams(r.min, r.max, plan_.reduceRange);
        }
        if (missing.empty())
            return {};
        std::string names;
        for (size_t i = 0; i < missing.size() && i < 8; ++i)
            names += (i ? ", " : "") + missing[i];
        if (missing.size() > 8)
            names += " and " + std::to_string(missing.size() - 8) + " more";
        return Error{ "no calibration data reached " + names + "; calibrate this model on data that runs through "
            + (missing.size() == 1 ? "it" : "them") + " first" };
    }

    std::optional<Range> rangeOf(NodeId id) const
    {
        const Node &n = fused_.graph[id];
        const auto it = calibration_.nodes.find(n.name);
        if (it != calibration_.nodes.end() && it->second.count > 0)
            return Range{ it->second.min, it->second.max };
        if (n.op != Opcode::GetAttr)
            return std::nullopt;
        const Result<MinMax> known = minMax(fused_.tensor(n.target));
        return known ? std::optional<Range>(Range{ known->min[0], known->max[0] }) : std::nullopt;
    }

    const QuantParams &params(NodeId id) const { return params_[size_t(quant(id).group)]; }

    // --- one node at a time ---

    // A module under two names may become two quantized modules: each gets names of its own for what it holds.
    void separateAliases()
    {
        std::vector<ModuleInfo> aliases;
        for (const auto &[path, m] : gm_.modules)
            if (!m->aliasOf.empty())
                aliases.push_back(*m);
        for (ModuleInfo &m : aliases) {
            for (const auto *names : { &m.parameters, &m.buffers })
                for (const std::string &name : *names)
                    if (const Tensor t = gm_.moduleTensor(m.path, name); t && !gm_.tensors.contains(joinPath(m.path, name)))
                        gm_.tensors.set(joinPath(m.path, name), TensorEntry{ t, names == &m.parameters, true });
            m.aliasOf.clear();
            gm_.modules.set(m.path, m);
        }
    }

    Status lower(NodeId id, const NodeQuant &q)
    {
        const Node n = g_[id]; // as it was
        const Int8Rule &rule = *backend_.rule(fused_, fused_.graph[id]);
        for (NodeId in : activations(fused_, fused_.graph[id], rule))
            wantsInt8_[id].insert(in);
        const QuantParams &out = params(q.last);
        const bool relu = q.last != id;
        switch (rule.form) {
        case Int8Form::Weighted:
            if (Status s = lowerWeighted(id, n, rule, out, relu); !s)
                return s;
            break;
        case Int8Form::Binary: {
            const Arg a = *callArg(fused_, n, rule, "input"), b = *callArg(fused_, n, rule, "other");
            ArgList args{ a, b };
            if (a.node() && b.node()) {
                args.emplace_back(out.scales[0]);
                args.emplace_back(out.zeroPoints[0]);
            }
            g_.setTarget(id, Opcode::CallFunction, relu ? rule.int8Relu : rule.int8);
            g_.setArgs(id, std::move(args), {});
            if (relu)
                (void)g_.rename(id, g_.uniqueName(rule.op + "_relu"));
            break;
        }
        case Int8Form::Call:
            lowerCall(id, n, rule, out, relu);
            break;
        case Int8Form::Same:
            if (const ModuleInfo *m = gm_.moduleOf(n); m && rule.fixed)
                setFact(*m, "inplace", Arg(false)); // the quantized kernels have no in-place form
            break;
        }
        if (relu) {
            g_.replaceAllUses(q.last, id);
            (void)g_.erase(q.last);
            g_.setMeta(id, fused_.graph[q.last].meta);
        }
        if (auto meta = g_[id].meta) {
            meta->dtype = DType::QUInt8;
            g_.setMeta(id, meta);
        }
        return {};
    }

    void setFact(ModuleInfo m, const std::string &name, Arg value)
    {
        for (auto &[k, v] : m.attrs)
            if (k == name && v != value) {
                v = std::move(value);
                gm_.modules.set(m.path, m);
                return;
            }
    }

    Status lowerWeighted(NodeId id, const Node &n, const Int8Rule &rule, const QuantParams &out, bool relu)
    {
        const ModuleInfo *called = fused_.moduleOf(n);
        ModuleInfo q;
        Tensor weight, bias;
        if (called) {
            const bool fusedRelu = called->className == rule.fused;
            relu |= fusedRelu;
            const std::string path = fusedRelu ? called->path + ".0" : called->path;
            const ModuleInfo &facts = *fused_.modules.find(path);
            q = facts;
            weight = fused_.moduleTensor(path, "weight");
            bias = fused_.moduleTensor(path, "bias");
            q.path = pathFor(called->path);
        } else {
            const auto tensorArg = [&](const char *name) {
                const auto arg = callArg(fused_, n, rule, name);
                return arg && arg->node() ? fused_.tensor(fused_.graph[arg->node()].target) : nullptr;
            };
            weight = tensorArg("weight");
            bias = tensorArg("bias");
            q.path = gm_.uniqueModulePath(joinPath(n.modulePath(), n.name));
            q.attrs = factsOf(n, rule, *weight);
        }
        Result<QuantParams> w = weightQParams(weight, plan_.perChannelWeights ? 0 : -1);
        if (!w)
            return Error{ "Cannot quantize the weight of " + n.name + ": " + w.message() };
        const NodeId input = activations(fused_, n, rule).front();
        if (backend_.int32Bias && bias)
            fitBias(id, *w, *bias, params(activations(fused_, fused_.graph[id], rule).front()).scales[0]);
        Result<Tensor> codes = quantize(weight, *w, DType::QInt8);
        if (!codes)
            return Error{ "Cannot quantize the weight of " + n.name + ": " + codes.message() };

        q.className = relu ? rule.int8Relu : rule.int8;
        q.kind = ModuleKind::Nn;
        q.training = false;
        q.aliasOf.clear();
        q.parameters.clear();
        q.buffers = { "weight" };
        q.none.clear();
        (bias ? q.buffers : q.none).push_back("bias");
        q.attrs.emplace_back("scale", out.scales[0]);
        q.attrs.emplace_back("zero_point", out.zeroPoints[0]);
        q.extraRepr += (q.extraRepr.empty() ? "" : ", ") + ("scale=" + number(out.scales[0]))
            + ", zero_point=" + std::to_string(out.zeroPoints[0]);
        if (called)
            replaced_.push_back(q.path);
        weightScales_[quant(id).last] = w->scales;
        const std::string path = q.path;
        gm_.addModule(std::move(q));
        gm_.tensors.set(joinPath(path, "weight"), TensorEntry{ *codes, false, true });
        if (bias)
            gm_.tensors.set(joinPath(path, "bias"), TensorEntry{ bias, false, true });
        g_.setTarget(id, Opcode::CallModule, path);
        g_.setArgs(id, { Arg(input) }, {});
        return {};
    }

    // Each call has an output range of its own, so each call of a shared module gets a module of its own.
    std::string pathFor(const std::string &path)
    {
        const auto callers = fused_.callers(path);
        const bool allInt8
            = std::all_of(callers.begin(), callers.end(), [&](NodeId c) { return quant(c).state == QuantState::Int8; });
        if (allInt8 && taken_.insert(path).second)
            return path;
        return gm_.uniqueModulePath(path + "_call");
    }

    // A functional convolution or linear as a module: the facts that its arguments and its weight tell.
    Kwargs factsOf(const Node &n, const Int8Rule &rule, const TensorData &weight) const
    {
        if (!rule.spatial)
            return { { "in_features", weight.sizes[1] }, { "out_features", weight.sizes[0] } };
        const auto wide = [&](const char *name) {
            std::vector<int64_t> v = callArg(fused_, n, rule, name).value_or(Arg(1)).toInts().value_or(std::vector<int64_t>{ 1 });
            v.resize(size_t(rule.spatial), v.empty() ? 1 : v[0]);
            return Arg::ints(v);
        };
        const int64_t groups = callArg(fused_, n, rule, "groups").value_or(Arg(1)).toInt().value_or(1);
        return { { "in_channels", weight.sizes[1] * groups }, { "out_channels", weight.sizes[0] },
            { "kernel_size", Arg::ints({ weight.sizes.begin() + 2, weight.sizes.end() }) }, { "stride", wide("stride") },
            { "padding", wide("padding") }, { "dilation", wide("dilation") }, { "groups", groups }, { "padding_mode", "zeros" } };
    }

    // The engine stores bias / (input scale x weight scale) in int32. Where tiny weights make that overflow, a larger weight
    // scale keeps the bias right, and that bias is what such a layer gives.
    void fitBias(NodeId id, QuantParams &w, const TensorData &bias, double inputScale)
    {
        const std::vector<double> b = toDoubles(bias);
        bool enlarged = false;
        for (size_t i = 0; i < b.size(); ++i) {
            double &scale = w.scales[w.perChannel() ? i : 0];
            const double needed = std::abs(b[i]) / (inputScale * double(1 << 30));
            if (std::abs(b[i]) / (inputScale * scale) >= double(std::numeric_limits<int32_t>::max())) {
                scale = double(float(needed));
                enlarged = true;
            }
        }
        if (enlarged)
            flags_[quant(id).last].push_back("weight scale enlarged, so that the bias fits int32");
    }

    // torch.ops.quantized.OP with the arguments that its row lists.
    void lowerCall(NodeId id, const Node &n, const Int8Rule &rule, const QuantParams &out, bool relu)
    {
        const ModuleInfo *m = fused_.moduleOf(n);
        const bool fusedRelu = m && m->className == rule.fused && !rule.fused.empty();
        const std::string path = m ? (fusedRelu ? m->path + ".0" : m->path) : "";
        const ModuleInfo *facts = fused_.modules.find(path);
        ArgList args;
        for (const std::string &name : rule.args) {
            if (name == "scale") {
                args.emplace_back(out.scales[0]);
            } else if (name == "zero_point") {
                args.emplace_back(out.zeroPoints[0]);
            } else if (name == "input") {
                args.emplace_back(activations(fused_, n, rule).front());
            } else if (!m) {
                args.push_back(callArg(fused_, n, rule, name).value_or(Arg()));
            } else if (fused_.moduleTensor(path, name)) {
                Node get;
                get.op = Opcode::GetAttr;
                get.target = joinPath(path, name);
                get.stack = n.stack;
                const TensorData &t = *fused_.moduleTensor(path, name);
                get.meta = TensorMeta{ t.sizes, t.dtype };
                args.emplace_back(g_.insertBefore(id, std::move(get)));
            } else {
                const Arg *fact = facts->attr(name);
                args.push_back(fact ? *fact : Arg());
            }
        }
        g_.setTarget(id, Opcode::CallFunction, relu || fusedRelu ? rule.int8Relu : rule.int8);
        g_.setArgs(id, std::move(args), {});
    }

    // --- quantize and dequantize ---

    void connect()
    {
        std::unordered_map<NodeId, size_t> place;
        std::vector<NodeId> order = g_.order();
        for (size_t i = 0; i < order.size(); ++i)
            place[order[i]] = i;
        for (NodeId original : fused_.graph.order()) {
            const NodeQuant &q = quant(original);
            const bool givesInt8 = q.state == QuantState::Int8;
            if (!g_.contains(original) || (!givesInt8 && q.group < 0))
                continue; // a ReLU that joined, a value that is float for everyone
            std::vector<NodeId> others; // users that want the other form
            for (NodeId user : g_.users(original)) {
                const auto it = wantsInt8_.find(user);
                const bool wantsInt8 = it != wantsInt8_.end() && it->second.contains(valueName(original));
                const bool indifferent = !wantsInt8 && backend_.metadata.contains(gm_, g_[user])
                    && g_[user].target != "builtins.len" && readsShape(g_[user]);
                if (!indifferent && wantsInt8 != givesInt8)
                    others.push_back(user);
            }
            if (others.empty())
                continue;
            bridge(original, q, givesInt8, others, order, place);
        }
    }

    // What the users of a joined pair called its value before.
    NodeId valueName(NodeId id) const { return quant(id).state == QuantState::Int8 ? quant(id).last : id; }

    static bool readsShape(const Node &n)
    {
        return n.op == Opcode::CallMethod || (n.args.size() > 1 && (n.args[1] == Arg("shape") || n.args[1] == Arg("ndim")));
    }

    void bridge(NodeId value, const NodeQuant &q, bool givesInt8, const std::vector<NodeId> &users,
        const std::vector<NodeId> &order, const std::unordered_map<NodeId, size_t> &place)
    {
        std::shared_ptr<const ModuleStack> stack = g_[value].stack;
        size_t first = order.size();
        for (NodeId u : users) {
            stack = commonStack(stack, g_[u].stack);
            first = std::min(first, place.at(u));
        }
        // Back to where the module that the first user is in begins.
        const size_t depth = stack ? stack->size() : 0;
        const auto inside = [&](NodeId id) -> const ModuleFrame * {
            const auto &s = g_[id].stack;
            return s && s->size() > depth ? &(*s)[depth] : nullptr;
        };
        if (const ModuleFrame *frame = inside(order[first]))
            while (first > 0 && order[first - 1] != value && inside(order[first - 1]) && *inside(order[first - 1]) == *frame)
                --first;
        Node n;
        if (givesInt8) {
            n.op = Opcode::CallMethod;
            n.target = "dequantize";
            n.args = { Arg(value) };
        } else {
            const QuantParams &p = params_[size_t(q.group)];
            n.op = Opcode::CallFunction;
            n.target = "torch.quantize_per_tensor";
            n.args = { Arg(value), p.scales[0], p.zeroPoints[0], ArgDType{ "torch.quint8" } };
        }
        n.stack = stack && !stack->empty() ? stack : nullptr;
        n.source = g_[value].source;
        if (auto meta = g_[value].meta) {
            meta->dtype = givesInt8 ? DType::Float32 : DType::QUInt8;
            n.meta = meta;
        }
        const NodeId made = g_.insertBefore(order[first], std::move(n));
        if (!givesInt8)
            quantized_[value] = made;
        for (NodeId u : users)
            g_.replaceInput(u, value, made);
    }

    // Convolutions give channels_last, and QNNPACK's clamp kernels read that as if it were contiguous: every value lands in a
    // wrong place.
    void makeContiguous()
    {
        for (NodeId id : fused_.graph.order()) {
            if (quant(id).state != QuantState::Int8 || isTail(id))
                continue;
            const Int8Rule &rule = *backend_.rule(fused_, fused_.graph[id]);
            if (std::find(backend_.contiguous.begin(), backend_.contiguous.end(), rule.op) == backend_.contiguous.end())
                continue;
            const NodeId input = activationArg(gm_, g_[id], rule).value_or(Arg()).node();
            if (!input || (g_[input].meta && g_[input].meta->shape.size() < 4))
                continue; // too few dimensions for channels_last
            Node n;
            n.op = Opcode::CallMethod;
            n.target = "contiguous";
            n.args = { Arg(input) };
            n.stack = g_[id].stack;
            n.source = g_[id].source;
            n.meta = g_[input].meta;
            const NodeId made = g_.insertBefore(id, std::move(n));
            g_.replaceInput(id, input, made);
        }
    }

    // The float children and tensors of a module that is quantized now.
    void dropFloatParts(const std::string &path)
    {
        std::vector<std::string> gone;
        const std::string prefix = path + ".";
        for (const auto &[p, m] : gm_.modules)
            if (p.starts_with(prefix))
                gone.push_back(p);
        for (const std::string &p : gone)
            gm_.modules.erase(p);
        gone.clear();
        for (const auto &[fqn, t] : gm_.tensors)
            if (fqn.starts_with(prefix) && fqn != prefix + "weight" && fqn != prefix + "bias")
                gone.push_back(fqn);
        for (const std::string &fqn : gone)
            gm_.tensors.erase(fqn);
    }

    // --- what is told ---

    QuantResult finish()
    {
        QuantResult result;
        result.report.pass = "Quantize";
        for (NodeId id : fused_.graph.order()) {
            const Node &n = fused_.graph[id];
            const NodeQuant &q = quant(id);
            if (n.op == Opcode::GetAttr && q.group < 0)
                continue;
            QuantRow row;
            row.node = n.name;
            const ModuleInfo *m = fused_.moduleOf(n);
            const bool call = n.op == Opcode::CallFunction || n.op == Opcode::CallMethod || n.op == Opcode::CallModule;
            row.op = m ? m->shortClass() : call ? n.target : std::string(opcodeName(n.op));
            row.state = stateName(n, q.state);
            row.reason = q.reason;
            if (call && q.state == QuantState::NotQuantizable)
                row.reason = n.name + " stays as it is: it gives no floating point tensor.";
            if (q.state == QuantState::Int8)
                row.dtype = "quint8";
            else if (n.meta || q.group >= 0)
                row.dtype = dtypeName(n.meta ? n.meta->dtype : DType::Float32);
            row.group = q.group;
            if (q.group >= 0) {
                const QuantParams &p = params_[size_t(q.group)];
                row.observer = q.fixed ? "Fixed" : "MinMax";
                row.scale = p.scales[0];
                row.zeroPoint = p.zeroPoints[0];
                if (const auto seen = rangeOf(id)) {
                    row.min = seen->min;
                    row.max = seen->max;
                    if (seen->min == 0 && seen->max == 0)
                        row.flags.push_back("constant zero");
                }
            }
            const auto stats = calibration_.nodes.find(n.name);
            if (stats != calibration_.nodes.end())
                row.nonFinite = stats->second.nan + stats->second.positiveInf + stats->second.negativeInf;
            if (row.nonFinite)
                row.flags.push_back("nan or inf in calibration data");
            if (const auto it = weightScales_.find(id); it != weightScales_.end())
                row.weightScales = it->second;
            if (const auto it = flags_.find(id); it != flags_.end())
                row.flags.insert(row.flags.end(), it->second.begin(), it->second.end());
            row.converted = convertedName(id, q);
            if (!row.converted.empty() && q.state == QuantState::Int8)
                result.report.done.push_back({ row.converted, n.name + " (" + q.pattern + ") runs in int8" });
            if (!q.reason.empty())
                result.report.kept.push_back({ n.name, q.reason });
            result.rows.push_back(std::move(row));
        }
        result.report.changed = !(gm_ == fused_);
        result.graph = std::move(gm_);
        return result;
    }

    static const char *stateName(const Node &n, QuantState s)
    {
        switch (s) {
        case QuantState::Int8:
            return "int8";
        case QuantState::FloatByChoice:
            return "float by choice";
        case QuantState::FloatUnsupported:
            return "float";
        case QuantState::Leaf:
            return "leaf";
        case QuantState::NotQuantizable:
            break;
        }
        switch (n.op) {
        case Opcode::Placeholder:
            return "input";
        case Opcode::GetAttr:
            return "constant";
        case Opcode::Output:
            return "output";
        default:
            return "not quantizable";
        }
    }

    std::string convertedName(NodeId id, const NodeQuant &q) const
    {
        if (const auto it = quantized_.find(id); it != quantized_.end())
            return g_[it->second].name;
        if (q.state == QuantState::Int8 && q.last != id)
            return {}; // its value goes into the ReLU that joined it, and is not there any more
        if (isTail(id))
            return g_[fused_.graph.inputs(id)[0]].name;
        return g_.contains(id) && q.state != QuantState::NotQuantizable ? g_[id].name : "";
    }

    const GraphModule &fused_;
    const QuantPlan &plan_;
    const Calibration &calibration_;
    const Backend &backend_;
    GraphModule gm_;
    Graph &g_;
    std::vector<Range> ranges_; // by group
    std::vector<QuantParams> params_;
    std::unordered_map<NodeId, std::unordered_set<NodeId>> wantsInt8_; // of each int8 node, by the ids of the float graph
    std::unordered_map<NodeId, NodeId> quantized_; // float value -> its quantize node
    std::unordered_map<NodeId, std::vector<double>> weightScales_;
    std::unordered_map<NodeId, std::vector<std::string>> flags_;
    std::unordered_set<std::string> taken_;
    std::vector<std::string> replaced_;
};

} // namespace

Result<QuantResult> convert(const GraphModule &fused, const QuantPlan &plan, const Calibration &calibration)
{
    Result<const Backend *> backend = findBackend(plan.config.backend);
    if (!backend)
        return backend.error();
    for (NodeId id : fused.graph.order())
        if (!plan.nodes.contains(id))
            return Error{ "node " + fused.graph[id].name + " is new since the plan was made; plan again" };
    return Converter(fused, plan, calibration, **backend).run();
}

} // namespace fb
