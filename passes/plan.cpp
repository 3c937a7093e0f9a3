// Which nodes run in int8, and which values share one observer. The rules are those of torch/ao/quantization/fx/prepare.py:
// patterns are matched from the end of the graph; a matched node's inputs are observed unless int8 already, its output is
// observed, and where an operator cannot change scale (pooling, reshaping, cat) its output and further inputs take over
// the observer of its first input. Taking over is an assignment, not a union: a later cat may take a value out of an
// earlier group again, and so the walk below keeps torch's order.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "model/ir/ops.h"
#include "passes/backends.h"
#include "passes/quantize.h"

namespace fb
{

namespace
{

bool below(const std::string &path, const std::string &root)
{
    return path == root || (path.size() > root.size() && path.starts_with(root) && path[root.size()] == '.');
}

bool reads(const Arg &arg)
{
    bool found = false;
    forEachNode(arg, [&](NodeId) { found = true; });
    return found;
}

class Planner
{
public:
    Planner(const GraphModule &gm, const Backend &backend, QuantPlan &plan)
        : gm_(gm)
        , g_(gm.graph)
        , backend_(backend)
        , plan_(plan)
    {
    }

    void run()
    {
        for (NodeId id : g_.order())
            isFloat_[id] = givesFloat(id);
        match();
        observe();
        number();
    }

private:
    // --- what a node gives ---

    // A floating point tensor, as far as can be known: from the shapes of the trace, else by torch's
    // all_node_args_have_no_tensors.
    bool givesFloat(NodeId id) const
    {
        const Node &n = g_[id];
        if (n.op == Opcode::Output)
            return false;
        if (n.meta)
            return isFloatingPoint(n.meta->dtype);
        if (n.op == Opcode::GetAttr) {
            const Tensor t = gm_.tensor(n.target);
            return !t || isFloatingPoint(t->dtype);
        }
        if (n.op == Opcode::Placeholder)
            return n.args.empty(); // what has a default and no shape is a number or an option
        if (n.op == Opcode::CallModule)
            return true;
        if (backend_.metadata.contains(gm_, n))
            return false;
        for (NodeId in : g_.inputs(id))
            if (isFloat_.at(in))
                return true;
        return false;
    }

    // --- the user's choices ---

    bool chosenFloat(const Node &n) const
    {
        const QuantConfig &c = plan_.config;
        if (c.floatNodes.contains(n.name))
            return true;
        for (const std::string &path : c.floatModules)
            if (below(n.modulePath(), path) || (n.op == Opcode::CallModule && below(n.target, path)))
                return true;
        if (c.floatTypes.empty())
            return false;
        const auto named = [&](const std::string &full) {
            return std::any_of(c.floatTypes.begin(), c.floatTypes.end(), [&](const std::string &t) {
                return full == t || (full.ends_with(t) && full[full.size() - t.size() - 1] == '.')
                    || t == "nn." + full.substr(full.rfind('.') + 1);
            });
        };
        const ModuleInfo *m = gm_.moduleOf(n);
        if (!m)
            return named(n.target);
        if (named(m->className))
            return true;
        const ModuleInfo *inner = gm_.modules.find(m->path + ".0"); // ConvReLU2d: the Conv2d in it counts
        return m->className.starts_with("torch.ao.nn.intrinsic.") && inner && named(inner->className);
    }

    // --- matching ---

    std::string opName(const Node &n) const
    {
        const ModuleInfo *m = gm_.moduleOf(n);
        return m ? m->shortClass() : n.op == Opcode::CallMethod ? "." + n.target + "()" : n.target;
    }

    // Why a node that has a rule cannot follow it all the same; empty when it can.
    std::string obstacle(const Node &n, const Int8Rule &rule) const
    {
        const auto input = activationArg(gm_, n, rule);
        if (!input || !reads(*input))
            return "its input is not a tensor of the graph";
        std::string why;
        forEachNode(*input, [&](NodeId in) {
            if (!isFloat_.at(in) && why.empty())
                why = "its input " + g_[in].name + " is not a floating point tensor";
        });
        if (!why.empty())
            return why;
        const ModuleInfo *m = gm_.moduleOf(n);
        if (rule.inference && ((m && m->training) || (!m && callArg(gm_, n, rule, "training") == Arg(true))))
            return "it is in training mode";
        switch (rule.form) {
        case Int8Form::Weighted:
            return weightObstacle(n, m, rule);
        case Int8Form::Binary: {
            for (const auto &[k, v] : n.kwargs)
                if (k != "input" && k != "other")
                    return "the int8 form has no '" + k + "'";
            const auto other = callArg(gm_, n, rule, "other");
            if (!other || n.args.size() > 2)
                return "its second operand is missing";
            if (rule.op == "matmul" && !other->node())
                return "its second operand is not a tensor of the graph";
            if (other->node() && !isFloat_.at(other->node()))
                return "its second operand " + g_[other->node()].name + " is not a floating point tensor";
            if (!other->node() && !other->toDouble())
                return "its second operand is neither a tensor nor a number";
            return {};
        }
        case Int8Form::Call:
            for (const std::string &name : rule.args)
                if (name == "dim" && callArg(gm_, n, rule, name).value_or(Arg()).isNone())
                    return "it names no dimension";
            if (m && m->className.ends_with("InstanceNorm2d") && !m->buffers.empty())
                return "it tracks running statistics";
            return {};
        case Int8Form::Same:
            return {};
        }
        return {};
    }

    std::string weightObstacle(const Node &n, const ModuleInfo *m, const Int8Rule &rule) const
    {
        Tensor weight;
        if (m) {
            const std::string path = m->className == rule.fused ? m->path + ".0" : m->path;
            const ModuleInfo *facts = gm_.modules.find(path);
            if (!facts)
                return "the facts of module " + path + " are missing";
            if (const Arg *mode = facts->attr("padding_mode"); mode && *mode != Arg("zeros"))
                return "int8 convolutions pad with zeros only";
            if (const Arg *padding = facts->attr("padding"); padding && padding->as<std::string>())
                return "its padding is given as a word";
            weight = gm_.moduleTensor(path, "weight");
        } else {
            for (const char *name : { "weight", "bias" }) {
                const auto arg = callArg(gm_, n, rule, name);
                if (arg && arg->node() && g_[arg->node()].op != Opcode::GetAttr)
                    return std::string("its ") + name + " is computed in the graph";
                if (arg && arg->node() && name == std::string("weight"))
                    weight = gm_.tensor(g_[arg->node()].target);
            }
            if (const auto padding = callArg(gm_, n, rule, "padding"); padding && padding->as<std::string>())
                return "its padding is given as a word";
        }
        if (!weight)
            return "its weight is missing";
        return weight->dtype == DType::Float32 ? "" : "its weight is " + std::string(dtypeName(weight->dtype)) + ", not float32";
    }

    void match()
    {
        for (auto it = g_.order().rbegin(); it != g_.order().rend(); ++it) {
            const NodeId id = *it;
            if (rules_.contains(id) || plan_.nodes.contains(id))
                continue;
            const Node &n = g_[id];
            NodeQuant q;
            const ModuleInfo *m = gm_.moduleOf(n);
            if (n.op == Opcode::Placeholder || n.op == Opcode::GetAttr || n.op == Opcode::Output) {
                plan_.nodes[id] = q;
                continue;
            }
            if (m
                && (m->kind == ModuleKind::Script || m->kind == ModuleKind::Opaque || m->kind == ModuleKind::Graph
                    || m->keepFloat)) {
                q.state = QuantState::Leaf;
                q.reason = n.name + " stays float: " + m->shortClass() + " is a leaf, what is inside is not quantized.";
                plan_.nodes[id] = q;
                continue;
            }
            if (!isFloat_.at(id)) {
                plan_.nodes[id] = q;
                continue;
            }
            if (chosenFloat(n)) {
                q.state = QuantState::FloatByChoice;
                q.reason = n.name + " stays float by choice.";
                plan_.nodes[id] = q;
                continue;
            }
            if (matchPair(id))
                continue;
            const Int8Rule *rule = backend_.rule(gm_, n);
            const std::string why = rule ? obstacle(n, *rule) : "no int8 form of " + opName(n) + " on " + backend_.name;
            if (!why.empty()) {
                q.state = QuantState::FloatUnsupported;
                q.reason = n.name + " stays float: " + why + ".";
                plan_.nodes[id] = q;
                continue;
            }
            rules_[id] = rule;
            q.state = QuantState::Int8;
            q.pattern = opName(n);
            q.last = id;
            plan_.nodes[id] = q;
        }
    }

    // A ReLU that joins the node before it: add + relu, conv + relu.
    bool matchPair(NodeId relu)
    {
        const Node &n = g_[relu];
        if (n.args.size() != 1 || !n.args[0].node() || !backend_.reluAfterBinary.contains(gm_, n))
            return false;
        const NodeId root = n.args[0].node();
        const Node &r = g_[root];
        if (g_.users(root).size() != 1 || !isFloat_.at(root) || chosenFloat(r))
            return false;
        const Int8Rule *rule = backend_.rule(gm_, r);
        const ModuleInfo *m = gm_.moduleOf(r);
        if (!rule || rule->int8Relu.empty() || (m && (m->className == rule->fused || m->keepFloat))
            || !obstacle(r, *rule).empty())
            return false;
        if (rule->form != Int8Form::Binary && !backend_.relu.contains(gm_, n))
            return false;
        rules_[root] = rule;
        NodeQuant q;
        q.state = QuantState::Int8;
        q.pattern = rule->op + " + relu";
        q.last = relu;
        plan_.nodes[root] = q;
        plan_.nodes[relu] = q;
        return true;
    }

    // --- observers ---

    int newObserver(std::optional<QuantParams> fixed)
    {
        observers_.push_back(std::move(fixed));
        return int(observers_.size()) - 1;
    }

    bool isInt8(NodeId id) const { return plan_.nodes.at(id).state == QuantState::Int8; }

    void observe()
    {
        for (NodeId id : g_.order()) {
            const auto found = rules_.find(id);
            if (found == rules_.end())
                continue;
            const Int8Rule &rule = *found->second;
            const Node &n = g_[id];
            const std::vector<NodeId> ins = activations(gm_, n, rule);
            for (NodeId in : ins)
                if (!isInt8(in) && isFloat_.at(in))
                    observer_.try_emplace(in, newObserver(std::nullopt));
            const bool scalar = rule.form == Int8Form::Binary && ins.size() == 1;
            const NodeId last = plan_.nodes.at(id).last;
            if (rule.share || scalar) {
                const int first = observer_.at(ins.front());
                if (rule.share)
                    for (NodeId in : ins)
                        observer_[in] = first;
                observer_[last] = first;
            } else {
                observer_[last] = newObserver(rule.fixed);
            }
        }
    }

    void number()
    {
        std::unordered_map<int, int> groups;
        for (NodeId id : g_.order()) {
            const auto it = observer_.find(id);
            if (it == observer_.end())
                continue;
            NodeQuant &q = plan_.nodes.at(id);
            q.group = groups.try_emplace(it->second, int(groups.size())).first->second;
            q.fixed = observers_[size_t(it->second)];
        }
    }

    const GraphModule &gm_;
    const Graph &g_;
    const Backend &backend_;
    QuantPlan &plan_;
    std::unordered_map<NodeId, bool> isFloat_;
    std::unordered_map<NodeId, const Int8Rule *> rules_; // of the first node of each matched pattern
    std::unordered_map<NodeId, int> observer_; // of each observed value
    std::vector<std::optional<QuantParams>> observers_; // with what is fixed about them
};

} // namespace

Result<QuantPlan> planQuantization(const GraphModule &fused, const QuantConfig &config)
{
    Result<const Backend *> backend = findBackend(config.backend);
    if (!backend)
        return backend.error();
    QuantPlan plan;
    plan.config = config;
    plan.reduceRange = (*backend)->reduceRange;
    plan.perChannelWeights = (*backend)->perChannelWeights;
    Planner(fused, **backend, plan).run();
    return plan;
}

} // namespace fb
