// Evaluation mode for a graph that was traced in training mode.
//
// A trace freezes what `self.training` was: F.dropout(x, 0.5, self.training) has training=True as a constant from then on, and
// Module.eval() changes nothing any more. Ranges collected through a dropout are ranges of noise, so calibration asks first
// (case TR-10). Modules carry their flag with them.
#include "passes/edits.h"

#include "model/ir/ops.h"

namespace fb
{

namespace
{

// The name of the argument that says it, where a call acts as in training.
std::string frozenArgument(const OpView &op)
{
    if (!op.info() || op.module())
        return {};
    for (const char *p : { "p", "dropout_p" })
        if (const auto share = op.arg(p); share && share->toDouble() == 0.0)
            return {};
    for (const char *name : { "training", "train" })
        if (op.arg(name) == Arg(true))
            return name;
    return {};
}

bool actsInTraining(const OpView &op)
{
    const ModuleInfo *m = op.module();
    if (!m)
        return !frozenArgument(op).empty();
    if (!m->training || !op.info())
        return false;
    if (op.kind() == "batch_norm" || op.kind() == "instance_norm")
        return m->attr("track_running_stats") && *m->attr("track_running_stats") == Arg(true);
    return op.info()->random && !(op.arg("p") && op.arg("p")->toDouble() == 0.0);
}

template <typename Visit> void eachGraph(const GraphModule &gm, const std::string &prefix, const Visit &visit)
{
    visit(gm, prefix);
    for (const auto &[path, m] : gm.modules)
        if (m->graph)
            eachGraph(*m->graph, prefix + path + ".", visit);
}

// Sets what is frozen; whether anything was.
bool setEval(GraphModule &gm, PassReport &report, const std::string &prefix)
{
    bool changed = false;
    const std::vector<NodeId> order = gm.graph.order();
    for (NodeId id : order) {
        const Node n = gm.graph[id];
        const std::string argument = frozenArgument(OpView(gm, n));
        if (argument.empty())
            continue;
        if (auto done = setArgument(gm, id, argument, false); done && done->changed) {
            report.done.push_back({ prefix + n.name, prefix + n.name + ": " + argument + "=False" });
            changed = true;
        }
    }
    std::vector<std::string> paths;
    for (const auto &[path, m] : gm.modules)
        if (m->training || m->graph)
            paths.push_back(path);
    for (const std::string &path : paths) {
        ModuleInfo m = *gm.modules.find(path);
        bool other = m.training;
        m.training = false;
        if (m.graph) {
            auto inside = std::make_shared<GraphModule>(*m.graph);
            if (setEval(*inside, report, prefix + path + ".")) {
                m.graph = std::move(inside);
                other = true;
            }
        }
        if (other)
            gm.modules.set(path, std::move(m));
        changed |= other;
    }
    return changed;
}

} // namespace

std::vector<TrainingCall> trainingCalls(const GraphModule &gm)
{
    std::vector<TrainingCall> out;
    eachGraph(gm, "", [&](const GraphModule &g, const std::string &prefix) {
        for (NodeId id : g.graph.order()) {
            const Node &n = g.graph[id];
            const OpView op(g, n);
            if (!actsInTraining(op))
                continue;
            const std::string name = prefix + n.name;
            out.push_back({ name,
                op.module() ? name + " calls module " + n.target + " in training mode"
                            : name + " calls " + n.target + " with " + frozenArgument(op)
                        + "=True as a constant: eval() does not change that" });
        }
    });
    return out;
}

Result<PassReport> evalMode(GraphModule &gm)
{
    PassReport report{ "Evaluation mode", false, {}, {} };
    report.changed = setEval(gm, report, "");
    return report;
}

} // namespace fb
