#include "app/window/present.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "passes/raise.h"

namespace fb
{

namespace
{

NodeBadge::Runs runs(QuantState state)
{
    switch (state) {
    case QuantState::Int8:
        return NodeBadge::Runs::Int8;
    case QuantState::FloatByChoice:
        return NodeBadge::Runs::FloatByChoice;
    case QuantState::FloatUnsupported:
        return NodeBadge::Runs::FloatUnsupported;
    case QuantState::Leaf:
        return NodeBadge::Runs::Leaf;
    case QuantState::NotQuantizable:
        break;
    }
    return NodeBadge::Runs::Unknown;
}

QString stateText(QuantState state)
{
    switch (state) {
    case QuantState::Int8:
        return GraphDocument::tr("int8");
    case QuantState::FloatByChoice:
        return GraphDocument::tr("float by choice");
    case QuantState::FloatUnsupported:
        return GraphDocument::tr("float (unsupported)");
    case QuantState::Leaf:
        return GraphDocument::tr("float (leaf)");
    case QuantState::NotQuantizable:
        break;
    }
    return GraphDocument::tr("not quantized");
}

// The range and parameters that an observer has chosen so far.
struct Chosen {
    float min = 0, max = 0;
    double scale = 0;
    int64_t zeroPoint = 0;
};

// What is asked for every node, looked up once for a document.
class Facts
{
public:
    explicit Facts(const GraphDocument &doc)
        : doc_(doc)
    {
        if (doc.isInt8()) {
            const auto &rows = doc.state().converted->rows;
            for (const QuantRow &row : rows)
                if (row.int8())
                    rows_[row.converted] = &row;
            for (const QuantRow &row : rows)
                rows_[row.node] = &row;
        }
        if (!doc.plan() || !doc.state().calibration)
            return;
        for (const auto &[id, q] : doc.plan()->nodes) {
            if (q.group < 0 || !doc.graph()->graph.contains(id))
                continue;
            const auto it = doc.state().calibration->nodes.find(doc.graph()->graph[id].name);
            if (it == doc.state().calibration->nodes.end() || it->second.count == 0)
                continue;
            const auto [range, fresh] = groups_.try_emplace(q.group, Chosen{ it->second.min, it->second.max });
            range->second.min = std::min(range->second.min, it->second.min);
            range->second.max = std::max(range->second.max, it->second.max);
        }
    }

    const QuantRow *row(const std::string &name) const
    {
        auto it = rows_.find(name);
        return it == rows_.end() ? nullptr : it->second;
    }

    const NodeQuant *plan(NodeId id) const
    {
        if (!doc_.plan())
            return nullptr;
        auto it = doc_.plan()->nodes.find(id);
        return it == doc_.plan()->nodes.end() ? nullptr : &it->second;
    }

    std::optional<Chosen> chosen(NodeId id) const
    {
        const NodeQuant *q = plan(id);
        const auto range = q ? groups_.find(q->group) : groups_.end();
        if (range == groups_.end())
            return std::nullopt;
        Chosen c = range->second;
        const QuantParams p = q->fixed ? *q->fixed : minMaxQParams(c.min, c.max, doc_.plan()->reduceRange);
        c.scale = p.scales.at(0);
        c.zeroPoint = p.zeroPoints.at(0);
        return c;
    }

private:
    const GraphDocument &doc_;
    std::unordered_map<std::string, const QuantRow *> rows_;
    std::map<int, Chosen> groups_;
};

bool isEdited(const GraphDocument &doc, const Node &n)
{
    for (const std::string &edit : doc.state().edits)
        if (edit.find('"' + n.name + '"') != std::string::npos)
            return true;
    return false;
}

} // namespace

QHash<uint32_t, NodeBadge> presentBadges(const GraphDocument &doc)
{
    QHash<uint32_t, NodeBadge> badges;
    if (!doc.isOpen())
        return badges;
    const Facts all(doc);
    const Graph &g = doc.graph()->graph;
    QHash<QString, QString> warnings;
    for (const Problem &p : doc.problems())
        if (p.severity != Problem::Note && !p.node.isEmpty())
            warnings[p.node] = p.text;
    std::map<std::string, int> calls;
    for (NodeId id : g.order())
        if (g[id].op == Opcode::CallModule)
            ++calls[g[id].target];
    for (NodeId id : g.order()) {
        const Node &n = g[id];
        NodeBadge badge;
        if (const NodeQuant *q = all.plan(id)) {
            badge.runs = runs(q->state);
            badge.reason = qs(q->reason);
        } else if (const QuantRow *row = all.row(n.name)) {
            badge.runs = row->int8() ? NodeBadge::Runs::Int8 : row->staysFloat() ? NodeBadge::Runs::FloatUnsupported : badge.runs;
            badge.reason = qs(row->reason);
        } else if (doc.isInt8() && n.meta && isQuantized(n.meta->dtype)) {
            badge.runs = NodeBadge::Runs::Int8;
        }
        badge.warning = warnings.value(qs(n.name));
        badge.edited = isEdited(doc, n);
        if (const ModuleInfo *m = doc.graph()->moduleOf(n)) {
            badge.leaf
                = m->kind == ModuleKind::Script || m->kind == ModuleKind::Opaque || m->kind == ModuleKind::Graph || m->keepFloat;
            badge.shared = calls[n.target] > 1;
            if (badge.leaf)
                badge.runs = NodeBadge::Runs::Leaf;
        }
        badges.insert(id.value, badge);
    }
    return badges;
}

QVector<HistogramData> presentHistograms(const GraphDocument &doc, const QList<NodeId> &nodes)
{
    QVector<HistogramData> out;
    if (!doc.isOpen() || !doc.state().calibration)
        return out;
    const Facts all(doc);
    const Graph &g = doc.graph()->graph;
    QList<NodeId> wanted = nodes;
    if (wanted.isEmpty())
        for (NodeId id : g.order())
            if (const NodeQuant *q = all.plan(id); q ? q->group >= 0 : all.row(g[id].name) != nullptr)
                wanted << id;
    for (NodeId id : wanted) {
        if (!g.contains(id))
            continue;
        const auto it = doc.state().calibration->nodes.find(g[id].name);
        if (it == doc.state().calibration->nodes.end() || it->second.bins.empty())
            continue;
        const TensorStats &stats = it->second;
        HistogramData h;
        h.node = id;
        h.name = qs(g[id].name);
        h.dtype = qs(stats.dtype);
        // Shares the calibration, so the answer stays right whatever happens to the document meanwhile.
        h.rebin = [calibration = doc.state().calibration, name = g[id].name](
                      double lo, double hi, int bins) { return rebin(calibration->nodes.at(name), lo, hi, bins); };
        h.min = double(stats.min);
        h.max = double(stats.max);
        h.mean = stats.mean();
        h.count = stats.count;
        h.nan = stats.nan;
        h.inf = stats.positiveInf + stats.negativeInf;
        std::optional<Chosen> chosen = all.chosen(id);
        int top = doc.plan() && doc.plan()->reduceRange ? 127 : 255;
        if (const QuantRow *row = all.row(g[id].name); row && row->scale > 0) {
            chosen = Chosen{ row->min, row->max, row->scale, row->zeroPoint };
            top = doc.state().config.backend == "qnnpack" ? 255 : 127;
        }
        if (chosen) {
            h.hasRange = true;
            h.scale = chosen->scale;
            h.zeroPoint = int(chosen->zeroPoint);
            h.clipMin = double(-chosen->zeroPoint) * chosen->scale;
            h.clipMax = double(top - chosen->zeroPoint) * chosen->scale;
            h.observer = QStringLiteral("MinMaxObserver");
        }
        out.append(h);
    }
    return out;
}

namespace
{

QuantFacts quantization(const GraphDocument &doc, const Facts &all, NodeId node)
{
    QuantFacts facts;
    if (!doc.isOpen() || !doc.graph()->graph.contains(node))
        return facts;
    const Node &n = doc.graph()->graph[node];
    if (const QuantRow *row = all.row(n.name)) {
        facts.state = qs(row->state);
        facts.reason = qs(row->reason);
        facts.observer = qs(row->observer);
        if (row->scale > 0) {
            facts.scale = row->scale;
            facts.zeroPoint = row->zeroPoint;
            facts.min = double(row->min);
            facts.max = double(row->max);
        }
        facts.channels = int(row->weightScales.size());
        facts.canKeepFloat = false;
        return facts;
    }
    const NodeQuant *q = all.plan(node);
    facts.canKeepFloat = q && !doc.isInt8() && (q->state == QuantState::Int8 || q->state == QuantState::FloatByChoice);
    if (!q)
        return facts;
    facts.state = stateText(q->state);
    facts.reason = qs(q->reason);
    const QuantConfig &config = doc.state().config;
    facts.keepFloat = config.floatNodes.count(n.name) > 0;
    if (facts.keepFloat)
        facts.rule = GraphDocument::tr("node %1").arg(qs(n.name));
    else if (q->state == QuantState::FloatByChoice)
        facts.rule = GraphDocument::tr("module or type rule");
    if (q->group >= 0)
        facts.observer = q->fixed ? QStringLiteral("FixedQParamsObserver") : QStringLiteral("MinMaxObserver");
    if (const auto chosen = all.chosen(node)) {
        facts.scale = chosen->scale;
        facts.zeroPoint = chosen->zeroPoint;
        facts.min = double(chosen->min);
        facts.max = double(chosen->max);
    }
    return facts;
}

} // namespace

QuantFacts presentQuantization(const GraphDocument &doc, NodeId node)
{
    return quantization(doc, Facts(doc), node);
}

QVector<WeightStats> presentWeights(const GraphModule &gm, NodeId node)
{
    QVector<WeightStats> out;
    if (!gm.graph.contains(node))
        return out;
    const Node &n = gm.graph[node];
    const std::string prefix = n.op == Opcode::CallModule ? n.target + "." : n.target;
    if (n.op != Opcode::CallModule && n.op != Opcode::GetAttr)
        return out;
    for (const auto &[fqn, entry] : gm.tensors) {
        if (!(n.op == Opcode::CallModule ? fqn.rfind(prefix, 0) == 0 : fqn == prefix) || !entry->tensor)
            continue;
        WeightStats w;
        w.name = qs(n.op == Opcode::CallModule ? std::string_view(fqn).substr(prefix.size()) : std::string_view(fqn));
        w.shape = qs(entry->tensor->shapeText());
        w.dtype = qs(dtypeName(entry->tensor->dtype));
        double sum = 0, squares = 0;
        bool seen = false;
        for (double v : toDoubles(*entry->tensor)) {
            ++w.count;
            if (std::isnan(v)) {
                ++w.nan;
            } else if (std::isinf(v)) {
                ++w.inf;
            } else {
                w.zeros += v == 0;
                w.min = seen ? std::min(w.min, v) : v;
                w.max = seen ? std::max(w.max, v) : v;
                seen = true;
                sum += v;
                squares += v * v;
            }
        }
        if (const double finite = double(w.count - w.nan - w.inf); finite > 0) {
            w.mean = sum / finite;
            w.deviation = std::sqrt(std::max(0.0, squares / finite - w.mean * w.mean));
        }
        out.append(w);
    }
    return out;
}

QVector<LayerRow> presentLayers(const GraphDocument &doc)
{
    QVector<LayerRow> rows;
    if (!doc.isOpen())
        return rows;
    const Facts all(doc);
    const Graph &g = doc.graph()->graph;
    for (NodeId id : g.order()) {
        const Node &n = g[id];
        if (n.op == Opcode::Output || n.op == Opcode::GetAttr)
            continue;
        LayerRow row;
        row.node = id;
        row.name = qs(n.name);
        row.op = qs(nodeTitle(*doc.graph(), n));
        const QuantFacts facts = quantization(doc, all, id);
        row.observer = facts.observer;
        row.scale = facts.scale;
        row.zeroPoint = facts.zeroPoint;
        row.min = facts.min;
        row.max = facts.max;
        row.reason = facts.reason;
        const QuantRow *q = all.row(n.name);
        row.dtype = q ? qs(q->dtype) : n.meta ? qs(dtypeName(n.meta->dtype)) : QString();
        rows.append(row);
    }
    return rows;
}

QVector<RuleRow> presentRules(const GraphDocument &doc)
{
    QVector<RuleRow> rules;
    if (!doc.isOpen())
        return rules;
    const QuantConfig &config = doc.state().config;
    const Graph &g = doc.graph()->graph;
    auto count = [&](auto matches) {
        int n = 0;
        for (NodeId id : g.order())
            n += g[id].op != Opcode::Placeholder && g[id].op != Opcode::Output && matches(g[id]);
        return n;
    };
    auto add = [&](const QString &kind, const QString &label, const std::string &pattern, int decides) {
        rules.append({ kind + QLatin1Char(':') + qs(pattern), label, qs(pattern), GraphDocument::tr("keep in float"), decides,
            !doc.isInt8() });
    };
    for (const std::string &name : config.floatNodes)
        add(QStringLiteral("node"), GraphDocument::tr("node"), name, g.find(name) ? 1 : 0);
    for (const std::string &path : config.floatModules)
        add(QStringLiteral("module"), GraphDocument::tr("module"), path, count([&](const Node &n) {
            const std::string &where = n.op == Opcode::CallModule ? n.target : n.modulePath();
            return where == path || where.rfind(path + ".", 0) == 0;
        }));
    for (const std::string &type : config.floatTypes)
        add(QStringLiteral("type"), GraphDocument::tr("type"), type, count([&](const Node &n) {
            const ModuleInfo *m = doc.graph()->moduleOf(n);
            return m ? m->className == type : n.target == type;
        }));
    int quantized = 0;
    if (doc.plan())
        for (const auto &[id, q] : doc.plan()->nodes)
            quantized += q.state == QuantState::Int8;
    else if (doc.isInt8())
        for (const QuantRow &row : doc.state().converted->rows)
            quantized += row.int8();
    rules.append(
        { QStringLiteral("default"), GraphDocument::tr("default"), {}, GraphDocument::tr("int8, MinMax"), quantized, false });
    return rules;
}

QVector<ProblemRow> presentProblems(const GraphDocument &doc)
{
    QVector<ProblemRow> rows;
    for (qsizetype i = 0; i < doc.problems().size(); ++i) {
        const Problem &p = doc.problems()[i];
        ProblemRow row;
        row.id = int(i);
        row.severity = p.severity == Problem::Note ? ProblemRow::Note
            : p.severity == Problem::Warning       ? ProblemRow::Warning
                                                   : ProblemRow::Error;
        row.node = doc.isOpen() ? doc.graph()->graph.find(p.node.toStdString()) : NodeId{};
        row.where = p.node;
        row.sentence = p.text;
        row.detail = p.detail;
        row.fix = p.fix;
        rows.append(row);
    }
    return rows;
}

QVector<JobRow> presentJobs(const Jobs &jobs)
{
    QVector<JobRow> rows;
    for (const JobInfo &j : jobs.list()) {
        if (j.quiet && !j.failed)
            continue;
        rows.append({ j.id, j.name,
            j.running      ? JobRow::Running
                : j.failed ? JobRow::Failed
                           : JobRow::Done,
            j.fraction, j.secondsLeft, j.text });
    }
    return rows;
}

StepState presentStep(const GraphDocument &doc, StepRow::Step step)
{
    auto done = [](bool yes, const QString &text) { return StepState{ yes ? StepState::Done : StepState::Todo, -1, text }; };
    const DocumentState &s = doc.state();
    if (!doc.isOpen())
        return done(false,
            step == StepRow::Trace ? GraphDocument::tr("Open a trace or trace a Python model")
                                   : GraphDocument::tr("Open a model first"));
    switch (step) {
    case StepRow::Trace:
        return done(true, GraphDocument::tr("%1, traced with torch %2").arg(doc.title(), qs(s.graph->provenance.torchVersion)));
    case StepRow::Edit: {
        const auto own = std::count_if(s.edits.begin(), s.edits.end(), [](const std::string &e) { return e != kRegroupEdit; });
        return done(own > 0,
            own == 0       ? GraphDocument::tr("Fuse convolutions, BatchNorm and activations")
                : own == 1 ? GraphDocument::tr("1 edit")
                           : GraphDocument::tr("%1 edits").arg(own));
    }
    case StepRow::Configure:
        return done(s.calibration || doc.isInt8() || s.config != QuantConfig(),
            GraphDocument::tr("Backend %1; what runs in int8 and what stays float").arg(qs(s.config.backend)));
    case StepRow::Calibrate: {
        for (const JobInfo &j : doc.jobs()->list())
            if (j.running && j.kind == QLatin1String("calibrate"))
                return { StepState::Running, j.fraction < 0 ? -1 : int(j.fraction * 100), j.text };
        if (!s.calibration)
            return done(false, GraphDocument::tr("Run the float model over data to find its ranges"));
        if (const int stale = doc.staleNodes(); stale > 0)
            return { StepState::OutOfDate, -1, GraphDocument::tr("%1 changed since calibration").arg(nodesText(stale)) };
        return done(true, GraphDocument::tr("%1 samples").arg(s.calibration->samples));
    }
    case StepRow::Review:
        if (s.evaluation && s.evaluation->accuracyFloat >= 0)
            return done(true,
                GraphDocument::tr("float %1 %, int8 %2 %")
                    .arg(s.evaluation->accuracyFloat * 100, 0, 'f', 2)
                    .arg(s.evaluation->accuracyInt8 * 100, 0, 'f', 2));
        return done(doc.isInt8(), GraphDocument::tr("Convert to int8 and see what it costs"));
    case StepRow::Export:
        return done(!doc.exportedTo().isEmpty(),
            doc.exportedTo().isEmpty() ? GraphDocument::tr("Write model.py, weights and report") : doc.exportedTo());
    case StepRow::StepCount:
        break;
    }
    return {};
}

StepRow::Step nextStep(const GraphDocument &doc)
{
    for (StepRow::Step step : { StepRow::Trace, StepRow::Edit, StepRow::Calibrate, StepRow::Review, StepRow::Export })
        if (presentStep(doc, step).kind != StepState::Done)
            return step;
    return StepRow::Export;
}

} // namespace fb
