#include "app/document/document.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include <QFileInfo>

#include "app/document/parts.h"
#include "model/io/fxt.h"
#include "model/io/models.h"
#include "passes/edits.h"
#include "passes/raise.h"

namespace fb
{

namespace
{

constexpr uint64_t kCalibrationBatch = 8;

// One edit on one graph: what it reports and the state after it.
struct Edited {
    DocumentState next;
    PassReport report;
};

Result<Edited> apply(const DocumentState &s, const QString &name, const std::string &edit, const JobContext &context)
{
    GraphModule gm = *s.graph;
    const Pass pass = [&edit](GraphModule &work) -> Result<PassReport> {
        Result<PassReport> report = applyEdits(work, "[" + edit + "]");
        if (report)
            return report;
        const std::string &text = report.message(); // "edit 1 (fuse): why": here there is but one
        const size_t why = text.find("): ");
        return Error{ why == std::string::npos ? text : text.substr(why + 3) };
    };
    Result<PassReport> report = runPass(name.toStdString(), pass, gm, &context.cancelled);
    if (!report)
        return report.error();
    DocumentState next = s;
    next.graph = std::make_shared<const GraphModule>(std::move(gm));
    next.evaluation.reset();
    next.edits.push_back(edit);
    if (nlohmann::json::parse(edit).value("op", "") == "fuse") { // the report of an export says what was fused, by hand or not
        next.fused.done.insert(next.fused.done.end(), report->done.begin(), report->done.end());
        next.fused.kept = report->kept;
    }
    return Edited{ std::move(next), std::move(*report) };
}

// The graphs that are quantized: the model's own, or its parts.
std::vector<std::string> quantized(const DocumentStates &all)
{
    std::vector<std::string> paths;
    for (const auto &[path, s] : all)
        if (all.size() == 1 || !path.empty())
            paths.push_back(path);
    return paths;
}

// The model with the parts as they are now; `graphOf` says which form of each.
template <class GraphOf> GraphModule withParts(const DocumentStates &all, GraphOf graphOf)
{
    GraphModule whole = *graphOf(all.at(""));
    for (const auto &[path, s] : all)
        if (!path.empty())
            replacePart(whole, path, graphOf(s));
    return whole;
}

std::shared_ptr<const GraphModule> floatGraphOf(const DocumentState &s)
{
    return s.floatGraph ? s.floatGraph : s.graph;
}

QString inPart(const std::string &path)
{
    return path.empty() ? QString() : qs(pathInModel(path)) + QStringLiteral(": ");
}

QString evaluationText(const Evaluation &e)
{
    return e.accuracyFloat < 0 ? GraphDocument::tr("outputs: SQNR %1").arg(qs(decibelText(e.sqnrDb)))
                               : GraphDocument::tr("float %1 %, int8 %2 %, %3 samples, SQNR %4")
                                     .arg(e.accuracyFloat * 100, 0, 'f', 2)
                                     .arg(e.accuracyInt8 * 100, 0, 'f', 2)
                                     .arg(e.samples)
                                     .arg(qs(decibelText(e.sqnrDb)));
}

Result<ByPart<PartEvaluation>> evaluatePartsOf(
    const DocumentStates &all, const DataSet &data, Worker &worker, JobContext &context)
{
    ByPart<std::shared_ptr<const QuantResult>> converted;
    for (const std::string &path : quantized(all))
        converted.emplace(path, all.at(path).converted);
    return evaluateParts(
        withParts(all, floatGraphOf), converted, all.at("").config.backend, data, worker,
        [&context](double f) { context.progress(f); }, &context.cancelled);
}

} // namespace

QString qs(std::string_view s)
{
    return QString::fromUtf8(s.data(), qsizetype(s.size()));
}

QString nodesText(qsizetype count)
{
    return count == 1 ? GraphDocument::tr("1 node") : GraphDocument::tr("%1 nodes").arg(count);
}

GraphDocument::GraphDocument(QObject *parent)
    : QObject(parent)
{
}

QString GraphDocument::title() const
{
    return isOpen() ? name_ : tr("Fuseboard");
}

void GraphDocument::push(const QString &name, DocumentStates states)
{
    while (history_.size() > current_ + 1)
        history_.removeLast();
    history_.append({ name, std::move(states), part_ });
    ++current_;
    stateChanged();
}

QStringList GraphDocument::parts() const
{
    QStringList paths;
    for (const auto &[path, s] : states())
        if (!path.empty())
            paths << qs(path);
    return paths;
}

QString GraphDocument::part() const
{
    return qs(part_);
}

void GraphDocument::showPart(const QString &path)
{
    if (path == part() || !states().contains(path.toStdString()))
        return;
    part_ = path.toStdString();
    graphChanged();
}

void GraphDocument::stateChanged()
{
    ++revision_;
    exportedTo_.clear();
    graphChanged();
}

void GraphDocument::graphChanged()
{
    plan_.reset();
    updateProblems();
    emit changed();
    updatePlan();
}

void GraphDocument::undo()
{
    if (canUndo()) // and look at the graph that changes
        moveTo(current_ - 1, history_[current_].part);
}

void GraphDocument::redo()
{
    if (canRedo())
        moveTo(current_ + 1, history_[current_ + 1].part);
}

void GraphDocument::moveTo(qsizetype step, const std::string &part)
{
    current_ = step;
    part_ = part;
    stateChanged();
}

void GraphDocument::runOnStates(
    const QString &name, const QString &kind, std::function<Result<Deliver>(const DocumentStates &, JobContext &)> work)
{
    const quint64 revision = revision_;
    jobs_.start({ name, kind }, [this, name, revision, snapshot = states(), work = std::move(work)](JobContext &context) {
        Result<Deliver> answer = work(snapshot, context);
        if (!answer) {
            const QString message = qs(answer.message());
            return JobAnswer{ message, true, [this, name, message] { emit failed(name, message); } };
        }
        return JobAnswer{ tr("done"), false, [this, name, revision, deliver = *answer] {
                             if (revision == revision_)
                                 deliver();
                             else
                                 emit failed(
                                     name, tr("the document changed meanwhile, so the answer was dropped; start it again"));
                         } };
    });
}

void GraphDocument::open(const QString &path)
{
    const QString file = QFileInfo(path).fileName();
    jobs_.start({ tr("Open %1").arg(file), QStringLiteral("open") }, [this, path, file](JobContext &) {
        Result<GraphModule> gm = readModel(path.toStdString());
        if (!gm) {
            const QString message = qs(gm.message());
            return JobAnswer{ message, true, [this, file, message] { emit failed(tr("Open %1").arg(file), message); } };
        }
        auto shared = std::make_shared<const GraphModule>(std::move(*gm));
        std::shared_ptr<const GraphModule> regrouped;
        if (isFlat(*shared)) {
            GraphModule raised = *shared;
            if (runPass("Regroup into modules", raiseModules, raised))
                regrouped = std::make_shared<const GraphModule>(std::move(raised));
        }
        return JobAnswer{ nodesText(qsizetype((regrouped ? regrouped : shared)->graph.size())), false,
            [this, path, file, shared, regrouped] { adopt(shared, regrouped, path, file); } };
    });
}

void GraphDocument::adopt(std::shared_ptr<const GraphModule> gm, std::shared_ptr<const GraphModule> regrouped,
    const QString &path, const QString &title)
{
    DocumentStates states;
    for (const std::string &part : partsOf(*gm))
        states[part].graph = gm->modules.find(part)->graph;
    states[""].graph = std::move(gm);
    path_ = path;
    name_ = title;
    dataPath_.clear();
    extraProblems_.clear();
    waitingData_.clear();
    trainingAccepted_ = false;
    worker_.reset();
    part_.clear();
    history_ = { Step{ tr("Open"), states, {} } };
    if (regrouped) { // undo shows the file's own operators
        states[""].graph = std::move(regrouped);
        states[""].edits.emplace_back(kRegroupEdit);
        history_.append({ tr("Regroup into modules"), std::move(states), {} });
    }
    current_ = saved_ = history_.size() - 1;
    stateChanged();
    emit opened();
}

void GraphDocument::edit(const QString &name, const std::string &edit)
{
    if (isInt8())
        return emit failed(name, tr("the graph is in int8; undo the conversion to edit it"));
    runOnStates(name, QStringLiteral("edit"),
        [this, name, edit, part = part_](const DocumentStates &all, JobContext &context) -> Result<Deliver> {
            Result<Edited> edited = apply(all.at(part), name, edit, context);
            if (!edited)
                return edited.error();
            QStringList lines;
            for (const auto *items : { &edited->report.done, &edited->report.kept })
                for (const PassItem &item : *items)
                    lines << qs(item.what);
            DocumentStates next = all;
            next[part] = std::move(edited->next);
            return Deliver([this, name, changed = edited->report.changed, next = std::move(next), lines] {
                if (changed)
                    push(name, next);
                emit done(name, lines.isEmpty() ? tr("nothing to change") : lines.join(QStringLiteral("\n")));
            });
        });
}

void GraphDocument::configure(const QString &name, QuantConfig config)
{
    if (config == state().config || !isOpen())
        return;
    if (isInt8())
        return emit failed(name, tr("the graph is in int8; undo the conversion to change its configuration"));
    DocumentStates next = states();
    for (auto &[path, s] : next)
        s.config.backend = config.backend; // one for all parts
    next[part_].config = std::move(config);
    push(name, std::move(next));
}

void GraphDocument::updatePlan()
{
    const quint64 revision = ++planRevision_; // whatever is worked out now is of another graph
    if (!isOpen() || isInt8())
        return;
    jobs_.start({ tr("Plan quantization"), QStringLiteral("plan"), true }, [this, revision, snapshot = state()](JobContext &) {
        Result<QuantPlan> plan = planQuantization(*snapshot.graph, snapshot.config);
        if (!plan) {
            const QString message = qs(plan.message());
            return JobAnswer{ message, true, [this, message] { emit failed(tr("Plan quantization"), message); } };
        }
        auto shared = std::make_shared<const QuantPlan>(std::move(*plan));
        return JobAnswer{ tr("done"), false, [this, revision, shared] {
                             if (revision != planRevision_)
                                 return;
                             plan_ = shared;
                             updateProblems();
                             emit planChanged();
                         } };
    });
}

bool GraphDocument::lacksWorker(const QString &name)
{
    const bool lacks = isPartial() && !worker_;
    if (lacks)
        emit failed(name, tr("the model as a whole runs only in your Python: start the Python worker, see Problems"));
    return lacks;
}

void GraphDocument::calibrate(const QString &dataPath)
{
    if (isInt8())
        return emit failed(tr("Calibrate"), tr("the graph is in int8; undo the conversion to calibrate again"));
    if (lacksWorker(tr("Calibrate")))
        return;
    const bool training = std::any_of(states().begin(), states().end(),
        [](const auto &s) { return s.second.graph && !trainingCalls(*s.second.graph).empty(); });
    if (training && !trainingAccepted_) {
        waitingData_ = dataPath;
        updateProblems();
        return emit failed(
            tr("Calibrate"), tr("the graph acts as in training, so its ranges would not be those of inference; see Problems"));
    }
    const QString name = tr("Prepare: fuse");
    runOnStates(
        name, QStringLiteral("fuse"), [this, name, dataPath](const DocumentStates &all, JobContext &context) -> Result<Deliver> {
            DocumentStates next = all;
            bool changed = false;
            for (const std::string &path : quantized(all)) {
                Result<Edited> edited = apply(all.at(path), name, R"({"op": "fuse"})", context);
                if (!edited)
                    return Error{ inPart(path).toStdString() + edited.message() };
                if (edited->report.changed)
                    next[path] = std::move(edited->next);
                changed |= edited->report.changed;
            }
            return Deliver([this, name, changed, next = std::move(next), dataPath] {
                if (changed)
                    push(name, next);
                calibrateNow(dataPath);
            });
        });
}

void GraphDocument::calibrateInTraining()
{
    trainingAccepted_ = true;
    setExtraProblems({});
    calibrate(waitingData_);
}

void GraphDocument::calibrateNow(const QString &dataPath)
{
    const QString name = tr("Calibrate");
    runOnStates(name, QStringLiteral("calibrate"),
        [this, name, dataPath, worker = worker_](const DocumentStates &all, JobContext &context) -> Result<Deliver> {
            const GraphModule whole = withParts(all, floatGraphOf);
            Result<DataSet> data = openData(dataPath.toStdString(), whole);
            if (!data)
                return data.error();
            CalibrateOptions options;
            options.cancel = &context.cancelled;
            options.batch = kCalibrationBatch;
            options.modules = worker.get();
            options.progress = [&context](const CalibrationProgress &p) {
                context.progress(
                    p.total ? double(p.done) / double(p.total) : -1, tr("%1 of %2 samples").arg(p.done).arg(p.total));
            };
            Result<Calibration> calibration = fb::calibrate(whole, *data, options);
            if (!calibration)
                return calibration.error();
            DocumentStates next = all;
            for (auto &[path, s] : next)
                if (!path.empty())
                    s.calibration = std::make_shared<const Calibration>(statisticsOf(*calibration, whole, path));
            next[""].calibration = std::make_shared<const Calibration>(std::move(*calibration));
            return Deliver([this, name, next, dataPath] {
                dataPath_ = dataPath;
                push(name, next);
                emit done(name, tr("%1 samples").arg(next.at("").calibration->samples));
            });
        });
}

void GraphDocument::convertToInt8()
{
    const QString name = tr("Convert to int8");
    if (isInt8())
        return emit failed(name, tr("the graph is in int8 already"));
    if (!state().calibration)
        return emit failed(name, tr("nothing was calibrated yet: calibrate on data first"));
    runOnStates(name, QStringLiteral("convert"), [this, name](const DocumentStates &all, JobContext &context) -> Result<Deliver> {
        DocumentStates next = all;
        std::vector<QuantRow> rows; // of a model in parts: what became of them together, named as calibration names them
        qsizetype int8 = 0;
        for (const std::string &path : quantized(all)) {
            DocumentState &s = next[path];
            Result<std::shared_ptr<const QuantResult>> result
                = convertModel(*s.graph, s.config, *s.calibration, &context.cancelled);
            if (!result)
                return Error{ inPart(path).toStdString() + result.message() };
            s.floatGraph = s.graph;
            s.converted = *result;
            s.graph = std::shared_ptr<const GraphModule>(*result, &(*result)->graph);
            for (const QuantRow &row : s.converted->rows) {
                int8 += row.int8();
                if (!path.empty()) {
                    rows.push_back(row);
                    rows.back().node = path + "/" + row.node;
                    rows.back().converted = path + "/" + row.converted;
                }
            }
        }
        if (DocumentState &whole = next[""]; next.size() > 1) {
            whole.floatGraph = whole.graph;
            whole.converted = std::make_shared<const QuantResult>(QuantResult{ *whole.graph, {}, std::move(rows) });
        }
        return Deliver([this, name, next, int8] {
            push(name, next);
            emit done(name, tr("%1 in int8").arg(nodesText(int8)));
        });
    });
}

void GraphDocument::evaluate(const QString &dataPath)
{
    const QString name = tr("Evaluate");
    if (!isInt8())
        return emit failed(name, tr("there is no int8 graph yet: convert first"));
    if (lacksWorker(name))
        return;
    runOnStates(name, QStringLiteral("evaluate"),
        [this, name, dataPath, worker = worker_](const DocumentStates &all, JobContext &context) -> Result<Deliver> {
            DocumentStates next = all;
            DocumentState &whole = next[""];
            Result<DataSet> data = openData(dataPath.toStdString(), *whole.floatGraph);
            if (!data)
                return data.error();
            QStringList lines;
            if (next.size() > 1) {
                auto evaluations = evaluatePartsOf(all, *data, *worker, context);
                if (!evaluations)
                    return evaluations.error();
                for (const auto &[path, e] : *evaluations) {
                    next[path].evaluation = e.evaluation;
                    lines << inPart(path) + evaluationText(e.evaluation);
                }
            } else {
                Result<Evaluation> e = evaluateModels(
                    *whole.floatGraph, *whole.graph, whole.config.backend, *data, &context.cancelled,
                    [&context](double f) { context.progress(f); }, worker.get());
                if (!e)
                    return e.error();
                whole.evaluation = *e;
                lines << evaluationText(*e) + (e->accuracyFloat < 0 ? tr("; the data has no labels") : QString());
            }
            return Deliver([this, name, next, lines] {
                history_[current_].states = next; // figures about this state, not another state
                emit changed();
                emit done(name, lines.join(QStringLiteral("\n")));
            });
        });
}

void GraphDocument::exportTo(const QString &folder, bool int8Form)
{
    const QString name = tr("Export");
    if (int8Form && !isInt8())
        return emit failed(name, tr("there is no int8 graph yet: convert first"));
    if (int8Form && lacksWorker(name))
        return;
    runOnStates(name, QStringLiteral("export"),
        [this, name, folder, int8Form, path = path_, dataPath = dataPath_, worker = worker_](
            const DocumentStates &all, JobContext &context) -> Result<Deliver> {
            ByPart<ExportRequest> requests;
            for (const std::string &part : quantized(all)) {
                const DocumentState &s = all.at(part);
                ExportRequest request;
                request.floatGraph = floatGraphOf(s);
                request.converted = int8Form ? s.converted : nullptr;
                request.calibration = s.calibration;
                request.config = s.config;
                request.edits = s.edits;
                request.fused = s.fused;
                request.batch = kCalibrationBatch;
                request.modelPath = path.toStdString();
                request.dataPath = part.empty() || int8Form ? dataPath.toStdString() : std::string();
                request.evaluation = s.evaluation;
                request.directory = folder.toStdString();
                request.cancel = &context.cancelled;
                request.worker = worker;
                requests.emplace(part, std::move(request));
            }
            if (all.size() == 1) {
                if (Status ok = exportFolder(requests.at("")); !ok)
                    return ok.error();
            } else {
                if (int8Form) { // each part checks itself on what the model gives it for the first sample
                    Result<DataSet> data = openData(dataPath.toStdString(), *all.at("").floatGraph);
                    if (!data)
                        return data.error();
                    data->samples = std::min<uint64_t>(data->samples, 1);
                    auto first = evaluatePartsOf(all, *data, *worker, context);
                    if (!first)
                        return first.error();
                    for (auto &[part, e] : *first)
                        requests.at(part).sample = std::move(e.sample);
                }
                if (Status ok = exportParts(requests, folder.toStdString()); !ok)
                    return ok.error();
            }
            return Deliver([this, name, folder] {
                exportedTo_ = folder;
                emit changed();
                emit done(name, tr("written to %1").arg(folder));
            });
        });
}

void GraphDocument::saveAs(const QString &path)
{
    const QString name = tr("Save");
    runOnStates(name, QStringLiteral("save"), [this, name, path](const DocumentStates &all, JobContext &) -> Result<Deliver> {
        const GraphModule whole = withParts(all, [](const DocumentState &s) { return s.graph; });
        if (Status ok = writeFxt(whole, path.toStdString()); !ok)
            return ok.error();
        return Deliver([this, name, path] {
            path_ = path;
            name_ = QFileInfo(path).fileName();
            saved_ = current_;
            emit changed();
            emit done(name, path);
        });
    });
}

int GraphDocument::staleNodes() const
{
    const DocumentState &s = state();
    if (!s.calibration)
        return -1;
    if (!plan_)
        return 0;
    int stale = 0;
    for (const auto &[id, q] : plan_->nodes)
        stale += q.group >= 0 && s.graph->graph.contains(id) && !s.calibration->nodes.contains(s.graph->graph[id].name);
    return stale;
}

QStringList GraphDocument::sampleInputs() const
{
    QStringList shapes;
    const Provenance &p = model()->provenance;
    for (const InputSpec &input : p.inputs)
        if (!input.dtype.empty() && p.options.samples.empty())
            shapes << qs(inputText(input));
    return shapes;
}

void GraphDocument::startWorker(const QString &python, const QString &source)
{
    const QString name = tr("Start the Python worker");
    const WorkerRequest request{ true, python.toStdString(), source.toStdString() };
    const auto opened = history_.front().states.at("").graph;
    jobs_.start({ name, QStringLiteral("worker") }, [this, name, request, opened, path = path_](JobContext &context) {
        auto worker = workerFor(*opened, path.toStdString(), request);
        Status started = worker ? Status() : Status(worker.error());
        if (worker && !*worker)
            started = Error{ tr("nothing in this graph needs Python").toStdString() };
        else if (worker)
            started = (*worker)->start(&context.cancelled);
        if (!started) {
            const QString message = qs(started.message());
            return JobAnswer{ message, true, [this, name, message] { emit failed(name, message); } };
        }
        return JobAnswer{ tr("running"), false, [this, name, opened, worker = *worker] {
                             if (history_.front().states.at("").graph != opened)
                                 return; // another document is open by now
                             worker_ = worker;
                             updateProblems();
                             emit done(name, tr("what only Python can run runs there"));
                         } };
    });
}

void GraphDocument::setExtraProblems(QList<Problem> problems)
{
    extraProblems_ = std::move(problems);
    updateProblems();
}

void GraphDocument::updateProblems()
{
    QList<Problem> list = extraProblems_;
    if (isOpen()) {
        const DocumentState &s = state();
        for (const TraceWarning &w : s.graph->provenance.warnings)
            if (w.kind != "training") // the graph as it is now says more
                list.append({ Problem::Warning, qs(w.node.empty() ? w.module : w.node), qs(w.message), {}, {}, {}, {} });
        const auto training = trainingCalls(*s.graph);
        if (!training.empty() && !waitingData_.isEmpty() && !trainingAccepted_)
            list.append(
                { Problem::Note, {}, tr("calibration waits: %1 act as in training").arg(nodesText(qsizetype(training.size()))),
                    {}, tr("Calibrate all the same"), QStringLiteral("calibrate-in-training"), {} });
        for (const TrainingCall &c : training)
            list.append({ Problem::Warning, qs(c.node), qs(c.message), {}, tr("Evaluation mode"), QStringLiteral("eval"), {} });
        if (!part_.empty() && !worker_)
            list.append({ Problem::Fault, {}, tr("the model around %1 runs only in your Python").arg(qs(pathInModel(part_))), {},
                tr("Start the Python worker"), QStringLiteral("worker"), {} });
        for (const NotExecutable &n : notExecutable(*s.graph))
            if (!n.inPython)
                list.append({ Problem::Fault, qs(n.node), qs(n.reason), {}, {}, {}, {} });
            else if (worker_)
                list.append({ Problem::Note, qs(n.node), tr("%1 runs in Python").arg(qs(n.node)), {}, {}, {}, {} });
            else
                list.append({ Problem::Fault, qs(n.node), tr("%1 cannot run here: %2").arg(qs(n.node), qs(n.reason)), {},
                    tr("Start the Python worker"), QStringLiteral("worker"), {} });
        if (s.calibration && !isInt8()) {
            for (const auto &[node, t] : s.calibration->nodes) {
                if (t.nan || t.positiveInf || t.negativeInf)
                    list.append({ Problem::Warning, qs(node),
                        tr("%1 gave %2 nan and %3 inf in calibration; they were kept out of its range")
                            .arg(qs(node))
                            .arg(t.nan)
                            .arg(t.positiveInf + t.negativeInf),
                        {}, {}, {}, {} });
                if (t.count && t.min == 0 && t.max == 0)
                    list.append({ Problem::Warning, qs(node), tr("%1 was zero in every sample").arg(qs(node)), {}, {}, {}, {} });
            }
            if (const int stale = staleNodes(); stale > 0)
                list.append({ Problem::Warning, {}, tr("%1 changed since calibration").arg(nodesText(stale)), {},
                    tr("Calibrate again"), QStringLiteral("recalibrate"), {} });
        }
        if (plan_ && !isInt8()) {
            for (const auto &[id, q] : plan_->nodes)
                if (q.state == QuantState::FloatUnsupported && s.graph->graph.contains(id))
                    list.append({ Problem::Note, qs(s.graph->graph[id].name), qs(q.reason), {}, {}, {}, {} });
        }
    }
    if (list != problems_) {
        problems_ = list;
        emit problemsChanged();
    }
}

} // namespace fb
