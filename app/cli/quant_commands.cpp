// calibrate, merge, quantize, export. GPL-3.0-or-later.
//
// Statistics belong to the fused graph, because that is what is converted: calibrate and quantize fuse alike, and statistics of
// another graph are refused.
#include <cmath>
#include <optional>

#include "app/cli/cli.h"
#include "app/cli/worker_options.h"
#include "app/document/parts.h"
#include "model/exec/statistics.h"
#include "passes/edits.h"
#include "passes/fuse.h"
#include "passes/quantize.h"

namespace fb::cli
{

namespace
{

struct QuantOptions {
    std::string file, data, stats, test, backend, qconfig, output, form;
    uint64_t samples = 0, batch = 32;
    WorkerRequest python;
    bool json = false, acceptTraining = false;
};

struct MergeOptions {
    std::vector<std::string> files;
    std::string output;
};

// A model made ready for calibration.
struct Prepared {
    GraphModule graph;
    PassReport fused;
    ByPart<PassReport> fusedParts; // where only submodules are traced
    std::shared_ptr<Worker> worker; // null where none is needed or was asked for
};

Result<Prepared> prepare(const QuantOptions &o, const Common &common)
{
    const std::string &file = o.file;
    Result<GraphModule> gm = openModel(file, common);
    if (!gm)
        return gm.error();
    if (const auto calls = trainingCalls(*gm); !calls.empty() && !o.acceptTraining)
        return Error{ file + ": " + calls.front().message
            + (calls.size() > 1 ? " (and " + std::to_string(calls.size() - 1) + " more)" : "")
            + R"(; put the graph in evaluation mode with the edit {"op": "eval"}, or give --accept-training)" };
    PassReport fused;
    ByPart<PassReport> fusedParts;
    if (isPartial(*gm)) {
        auto reports = fuseParts(*gm);
        if (!reports)
            return Error{ file + ": " + reports.message() };
        fusedParts = std::move(*reports);
    } else {
        Result<PassReport> report = runPass("Fuse all", fuseAll, *gm);
        if (!report)
            return Error{ file + ": " + report.message() };
        fused = std::move(*report);
    }
    auto worker = startedWorker(*gm, file, o.python);
    if (!worker)
        return worker.error();
    return Prepared{ std::move(*gm), std::move(fused), std::move(fusedParts), std::move(*worker) };
}

Result<Calibration> collect(const Prepared &model, const QuantOptions &o, const Common &common)
{
    Result<DataSet> data = openData(o.data, model.graph);
    if (!data)
        return data.error();
    ProgressLine line(common.quiet);
    CalibrateOptions options;
    options.batch = o.batch;
    options.samples = o.samples;
    options.modules = model.worker.get();
    options.progress = [&line](const CalibrationProgress &p) {
        line.show(p.total ? double(p.done) / double(p.total) : 0,
            "calibrating, " + std::to_string(p.done) + " of " + std::to_string(p.total) + " samples, "
                + std::to_string(std::lround(p.secondsLeft)) + " s left");
    };
    return calibrate(model.graph, *data, options);
}

// What calibration met and kept out of the ranges, a line each, in the order of the graph: the first are where it came from.
std::string keptOutText(const Calibration &c, const Graph &graph)
{
    constexpr int most = 8;
    std::string text;
    int count = 0;
    for (NodeId id : graph.order()) {
        const auto it = c.nodes.find(graph[id].name);
        const uint64_t lost = it == c.nodes.end() ? 0 : it->second.nan + it->second.positiveInf + it->second.negativeInf;
        if (lost && ++count <= most)
            text += it->first + ": " + std::to_string(lost)
                + (lost == 1 ? " value is nan or inf and was kept out\n" : " values are nan or inf and were kept out\n");
    }
    if (count > most)
        text += "and " + std::to_string(count - most) + " more nodes after them\n";
    return text;
}

Status runCalibrate(const QuantOptions &o, const Common &common)
{
    Result<Prepared> model = prepare(o, common);
    if (!model)
        return model.error();
    Result<Calibration> c = collect(*model, o, common);
    if (!c)
        return c.error();
    if (Status written = writeStats(*c, o.output); !written)
        return written;
    Json nodes = Json::object();
    for (const auto &[name, s] : c->nodes) {
        nodes[name] = { { "count", s.count }, { "min", s.min }, { "max", s.max }, { "mean", s.mean() } };
        if (s.nan || s.positiveInf || s.negativeInf) {
            nodes[name]["nan"] = s.nan;
            nodes[name]["inf"] = s.positiveInf + s.negativeInf;
        }
    }
    if (o.json)
        print(Json{ { "samples", c->samples }, { "batches", c->batches }, { "nodes", nodes } });
    else
        print(std::to_string(c->samples) + " samples, " + std::to_string(c->nodes.size()) + " observed values\n"
            + keptOutText(*c, model->graph.graph));
    return {};
}

Status runMerge(const MergeOptions &o, const Common &)
{
    std::optional<Calibration> all;
    for (const std::string &file : o.files) {
        Result<Calibration> c = readStats(file);
        if (!c)
            return c.error();
        if (!all) {
            all = std::move(*c);
        } else if (c->modelText != all->modelText) {
            return Error{ file + " holds statistics of another model than " + o.files.front()
                + "; merge only runs of one model" };
        } else {
            all->merge(*c);
        }
    }
    return writeStats(*all, o.output);
}

// Q.json: the "quantize" part of a recipe.json.
Result<QuantConfig> readConfig(const QuantOptions &o)
{
    QuantConfig config;
    if (!o.qconfig.empty()) {
        Result<std::string> text = readFile(o.qconfig);
        if (!text)
            return text.error();
        const Json j = Json::parse(*text, nullptr, false);
        if (!j.is_object())
            return Error{ o.qconfig + " is no JSON object; write {\"backend\": \"x86\", \"float_nodes\": [...]}" };
        const std::map<std::string, std::set<std::string> *> lists{ { "float_nodes", &config.floatNodes },
            { "float_modules", &config.floatModules }, { "float_types", &config.floatTypes } };
        for (const auto &[key, value] : j.items()) {
            const auto list = lists.find(key);
            if (list != lists.end() && value.is_array()
                && std::all_of(value.begin(), value.end(), [](const Json &v) { return v.is_string(); }))
                *list->second = value.get<std::set<std::string>>();
            else if (key == "backend" && value.is_string())
                config.backend = value.get<std::string>();
            else if (key != "observer" || value != "MinMaxObserver")
                return Error{ o.qconfig + ": \"" + key
                    + "\" cannot be used; it takes backend, observer (MinMaxObserver), and the lists of "
                      "names float_nodes, float_modules and float_types" };
        }
    }
    if (!o.backend.empty())
        config.backend = o.backend;
    const auto known = quantBackends();
    if (std::find(known.begin(), known.end(), config.backend) == known.end())
        return Error{ "there is no backend " + config.backend + " in " + o.qconfig + "; take x86 or qnnpack" };
    return config;
}

// The statistics that the options name, of the prepared model.
Result<Calibration> statistics(const Prepared &model, const QuantOptions &o, const Common &common)
{
    Result<Calibration> calibration = o.stats.empty() ? collect(model, o, common) : readStats(o.stats);
    if (calibration && calibration->modelText != graphHash(model.graph))
        return Error{ o.stats + " holds statistics of another model than " + o.file + "; run fuseboard-cli calibrate on it" };
    return calibration;
}

// What is exported: the whole model, or each of the submodules that are traced.
struct Quantized {
    ExportRequest whole;
    ByPart<ExportRequest> parts;
};

Result<ExportRequest> convertGraph(const GraphModule &graph, const PassReport &fused, Calibration calibration,
    const QuantConfig &config, const Prepared &model, const QuantOptions &o)
{
    ExportRequest request;
    request.config = config;
    request.worker = model.worker;
    request.edits = { R"({"op": "fuse"})" };
    request.fused = fused;
    request.modelPath = o.file;
    request.dataPath = o.data;
    request.statsPath = o.stats;
    request.batch = o.batch;
    request.directory = o.output;
    Result<std::shared_ptr<const QuantResult>> converted = convertModel(graph, config, calibration);
    if (!converted)
        return Error{ o.file + ": " + converted.message() };
    request.converted = *converted;
    request.calibration = std::make_shared<const Calibration>(std::move(calibration));
    request.floatGraph = std::make_shared<const GraphModule>(graph);
    return request;
}

Status convertParts(
    Quantized &out, const Calibration &calibration, const QuantConfig &config, const Prepared &model, const QuantOptions &o)
{
    for (const auto &[path, fused] : model.fusedParts) {
        Result<ExportRequest> request = convertGraph(
            *model.graph.modules.find(path)->graph, fused, statisticsOf(calibration, model.graph, path), config, model, o);
        if (!request)
            return Error{ request.message() + " (in " + pathInModel(path) + ")" };
        request->edits.clear();
        out.parts.emplace(path, std::move(*request));
    }
    return {};
}

// How good it is: on held-out data where given, else on the data it was calibrated with.
Status judge(Quantized &out, const QuantConfig &config, const Prepared &model, const QuantOptions &o, const Common &common)
{
    const std::string &judged = o.test.empty() ? o.data : o.test;
    if (judged.empty())
        return {};
    Result<DataSet> data = openData(judged, model.graph);
    if (!data)
        return data.error();
    ProgressLine line(common.quiet);
    const auto progress = [&line](double fraction) { line.show(fraction, "comparing int8 with float"); };
    if (model.fusedParts.empty()) {
        Result<Evaluation> evaluation = evaluateModels(
            model.graph, out.whole.converted->graph, config.backend, *data, nullptr, progress, model.worker.get());
        if (!evaluation)
            return evaluation.error();
        if (!o.test.empty() && evaluation->accuracyFloat < 0)
            std::fprintf(stderr,
                "warning: no accuracy: %s needs an integer array named labels with one class for each sample, and the model an "
                "output of [batch, classes]\n",
                o.test.c_str());
        out.whole.evaluation = *evaluation;
        return {};
    }
    ByPart<std::shared_ptr<const QuantResult>> converted;
    for (const auto &[path, request] : out.parts)
        converted.emplace(path, request.converted);
    auto evaluations = evaluateParts(model.graph, converted, config.backend, *data, *model.worker, progress);
    if (!evaluations)
        return evaluations.error();
    for (auto &[path, e] : *evaluations) {
        out.parts.at(path).evaluation = std::move(e.evaluation);
        out.parts.at(path).sample = std::move(e.sample);
    }
    return {};
}

Result<Quantized> quantizeModel(const QuantOptions &o, const Common &common)
{
    Result<QuantConfig> config = readConfig(o);
    if (!config)
        return config.error();
    Result<Prepared> model = prepare(o, common);
    if (!model)
        return model.error();
    if (isPartial(model->graph) && !model->worker && !o.data.empty())
        return Error{ o.file + " holds submodules of a model that has to run in your Python; add --worker" };
    Result<Calibration> calibration = statistics(*model, o, common);
    if (!calibration)
        return calibration.error();
    Quantized out;
    if (isPartial(model->graph)) {
        if (Status s = convertParts(out, *calibration, *config, *model, o); !s)
            return s.error();
    } else {
        Result<ExportRequest> whole = convertGraph(model->graph, model->fused, std::move(*calibration), *config, *model, o);
        if (!whole)
            return whole.error();
        out.whole = std::move(*whole);
    }
    if (Status s = judge(out, *config, *model, o, common); !s)
        return s.error();
    return out;
}

Status exportQuantized(const Quantized &q, const QuantOptions &o)
{
    return q.parts.empty() ? exportFolder(q.whole) : exportParts(q.parts, o.output);
}

void checkSource(const QuantOptions &o)
{
    if (o.data.empty() == o.stats.empty())
        throw UsageError("give either --data DATA or --stats S.stats");
}

std::string percent(double share)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
    return text;
}

std::string resultText(const ExportRequest &request)
{
    size_t int8 = 0;
    std::string kept;
    for (const QuantRow &row : request.converted->rows)
        if (row.int8())
            ++int8;
        else if (row.staysFloat())
            kept += "  " + row.reason + "\n";
    std::string out = std::to_string(int8) + (int8 == 1 ? " node" : " nodes") + " in int8 for " + request.config.backend + "\n";
    if (request.calibration)
        out += keptOutText(*request.calibration, request.floatGraph->graph);
    if (!kept.empty())
        out += "float:\n" + kept;
    if (const auto &e = request.evaluation) {
        if (e->accuracyFloat >= 0)
            out += "top-1 on " + e->data + ": float " + percent(e->accuracyFloat) + ", int8 " + percent(e->accuracyInt8) + "\n";
        out += "SQNR of the outputs: " + decibelText(e->sqnrDb) + "\n";
    }
    return out;
}

Status runQuantize(const QuantOptions &o, const Common &common)
{
    checkSource(o);
    Result<Quantized> quantized = quantizeModel(o, common);
    if (!quantized)
        return quantized.error();
    if (Status written = exportQuantized(*quantized, o); !written)
        return written;
    if (quantized->parts.empty()) {
        print(o.json ? fb::reportJson(quantized->whole) : resultText(quantized->whole) + "written to " + o.output + "\n");
        return {};
    }
    Json reports = Json::object();
    std::string text;
    for (const auto &[path, request] : quantized->parts) {
        reports[pathInModel(path)] = Json::parse(fb::reportJson(request));
        text += pathInModel(path) + ": " + resultText(request);
    }
    if (o.json)
        print(Json{ { "fuseboard", 1 }, { "submodules", reports } });
    else
        print(text + "written to " + o.output + "\n");
    return {};
}

Status runExport(const QuantOptions &o, const Common &common)
{
    if (o.form == "quantized") {
        checkSource(o);
        Result<Quantized> quantized = quantizeModel(o, common);
        return quantized ? exportQuantized(*quantized, o) : quantized.error();
    }
    Result<GraphModule> gm = openModel(o.file, common);
    if (!gm)
        return gm.error();
    ExportRequest request;
    auto worker = startedWorker(*gm, o.file, o.python);
    if (!worker)
        return worker.error();
    request.worker = std::move(*worker);
    request.floatGraph = std::make_shared<const GraphModule>(std::move(*gm));
    request.modelPath = o.file;
    request.directory = o.output;
    return exportFolder(request);
}

void addTraining(CLI::App *c, QuantOptions *o)
{
    c->add_flag("--accept-training", o->acceptTraining, "calibrate although dropout or batch norm act as in training");
}

void addSource(CLI::App *c, QuantOptions *o)
{
    c->add_option("--data", o->data, "calibration data: a .npy, .npz or .safetensors file, or a folder of them");
    c->add_option("--stats", o->stats, "statistics that calibrate or merge wrote");
    c->add_option("--samples", o->samples, "how many samples of the data to take (all)");
    c->add_option("--batch", o->batch, "samples per forward (32)")->check(CLI::PositiveNumber);
    c->add_option("--backend", o->backend, "where the int8 model will run (x86)")->check(CLI::IsMember(quantBackends()));
    c->add_option("--qconfig", o->qconfig, "Q.json: backend and what stays in float");
    c->add_option("--test", o->test, "held-out data with labels to measure accuracy on");
    addTraining(c, o);
    addWorkerOptions(c, &o->python);
}

} // namespace

void addQuantCommands(Program &program)
{
    {
        auto [c, o] = program.add<QuantOptions>("calibrate", "collect statistics on real data", runCalibrate);
        c->add_option("FILE", o->file)->required();
        c->add_option("--data", o->data, "a .npy, .npz or .safetensors file, or a folder of them")->required();
        c->add_option("--samples", o->samples, "how many samples to take (all)");
        c->add_option("--batch", o->batch, "samples per forward (32)")->check(CLI::PositiveNumber);
        c->add_option("-o", o->output, "OUT.stats")->required();
        c->add_flag("--json", o->json, "one JSON document");
        addTraining(c, o);
        addWorkerOptions(c, &o->python);
    }
    {
        auto [c, o] = program.add<MergeOptions>("merge", "add statistics of several runs", runMerge);
        c->add_option("STATS", o->files)->required();
        c->add_option("-o", o->output, "OUT.stats")->required();
    }
    {
        auto [c, o] = program.add<QuantOptions>("quantize", "prepare, calibrate, convert and export", runQuantize);
        c->add_option("FILE", o->file)->required();
        addSource(c, o);
        c->add_option_function<std::string>(
             "--observer", [](const std::string &) {}, "how ranges are chosen (MinMaxObserver)")
            ->check(CLI::IsMember({ "MinMaxObserver" }));
        c->add_option("-o", o->output, "DIR for model.py, weights.pt, report.json, recipe.json")->required();
        c->add_flag("--json", o->json, "the report as one JSON document");
    }
    {
        auto [c, o] = program.add<QuantOptions>("export", "write a model that runs in plain PyTorch", runExport);
        c->add_option("FILE", o->file)->required();
        c->add_option("--form", o->form, "python: float; quantized: int8, with the options of quantize")
            ->required()
            ->check(CLI::IsMember({ "python", "quantized" }));
        addSource(c, o);
        c->add_option("-o", o->output, "DIR")->required();
    }
}

} // namespace fb::cli
