#include "app/document/workflow.h"

#include <algorithm>
#include <cmath>

#include <QCryptographicHash>
#include <QFile>
#include <QFileInfo>
#include <nlohmann/json.hpp>

#include "passes/export_python.h"

namespace fb
{

using Json = nlohmann::ordered_json;

namespace
{

std::string fileName(const std::string &path)
{
    return QFileInfo(QString::fromStdString(path)).fileName().toStdString();
}

// The first tensor of a model's answer: what accuracy is taken from.
Tensor firstTensor(const Arg &value)
{
    Tensor found;
    forEachTensor(value, [&](const Tensor &t) {
        if (!found)
            found = t;
    });
    return found;
}

// What the statistics came from: the data, or a file of statistics made before.
const std::string &calibrationSource(const ExportRequest &request)
{
    return request.dataPath.empty() ? request.statsPath : request.dataPath;
}

std::vector<Tensor> allTensors(const Arg &value)
{
    std::vector<Tensor> out;
    forEachTensor(value, [&](const Tensor &t) { out.push_back(t); });
    return out;
}

// Integers named as labels are; nothing where the data has none. Error: as many as do not fit the samples.
Result<std::optional<std::vector<int64_t>>> labelsOf(const DataSet &data)
{
    for (const char *name : { "labels", "label", "y", "targets" }) {
        auto it = data.extra.find(name);
        if (it == data.extra.end() || !it->second || isFloatingPoint(it->second->dtype))
            continue;
        if (it->second->numel() != int64_t(data.samples))
            return Error{ data.source + ": " + name + " holds " + std::to_string(it->second->numel()) + " labels for "
                + std::to_string(data.samples) + " samples; give one for each" };
        std::vector<int64_t> labels;
        for (double v : toDoubles(*it->second))
            labels.push_back(int64_t(v));
        return std::optional(std::move(labels));
    }
    return std::optional<std::vector<int64_t>>();
}

// Rows of `logits` whose largest value stands at the label. Only for a [batch, classes] answer.
std::optional<uint64_t> countRight(const Tensor &logits, const std::vector<int64_t> &labels, uint64_t begin)
{
    if (!logits || logits->sizes.size() != 2)
        return std::nullopt;
    const std::vector<double> values = toDoubles(*logits);
    const auto rows = uint64_t(logits->sizes[0]), classes = uint64_t(logits->sizes[1]);
    uint64_t right = 0;
    for (uint64_t r = 0; r < rows; ++r) {
        const auto row = values.begin() + std::ptrdiff_t(r * classes);
        right += std::max_element(row, row + std::ptrdiff_t(classes)) - row == labels[begin + r];
    }
    return right;
}

// The sample that model.py checks itself with.
Result<std::vector<Arg>> sampleInputs(const ExportRequest &request)
{
    if (!request.sample.empty())
        return request.sample;
    std::vector<Arg> inputs;
    if (!request.dataPath.empty()) {
        Result<DataSet> data = openData(request.dataPath, *request.floatGraph);
        if (!data)
            return data.error();
        return rowsOf(*data, 0, 1);
    }
    for (const InputSpec &spec : request.floatGraph->provenance.inputs) {
        Result<Tensor> t = randomTensor(inputText(spec), 0, int(inputs.size()));
        if (!t)
            return t.error();
        inputs.emplace_back(*t);
    }
    return inputs;
}

Json rowJson(const QuantRow &row)
{
    Json j{ { "node", row.node }, { "op", row.op }, { "state", row.state }, { "dtype", row.dtype } };
    if (!row.reason.empty())
        j["reason"] = row.reason;
    if (!row.observer.empty()) {
        j["observer"] = row.observer;
        j["scale"] = row.scale;
        j["zero_point"] = row.zeroPoint;
        j["min"] = row.min;
        j["max"] = row.max;
        if (row.group >= 0)
            j["shared_group"] = row.group;
    }
    if (!row.weightScales.empty())
        j["weight_scales"] = row.weightScales;
    if (row.nonFinite)
        j["non_finite"] = row.nonFinite;
    if (!row.flags.empty())
        j["flags"] = row.flags;
    return j;
}

Json itemsJson(const std::vector<PassItem> &items)
{
    Json list = Json::array();
    for (const PassItem &item : items)
        list.push_back({ { "node", item.node }, { "what", item.what } });
    return list;
}

} // namespace

std::string fileHash(const std::string &path)
{
    if (!QFileInfo(QString::fromStdString(path)).isFile())
        return {};
    QFile file(QString::fromStdString(path));
    QCryptographicHash hash(QCryptographicHash::Sha256);
    if (!file.open(QIODevice::ReadOnly) || !hash.addData(&file))
        return {};
    return hash.result().toHex().toStdString();
}

void SignalToNoise::add(const Arg &reference, const Arg &value)
{
    const auto left = allTensors(reference), right = allTensors(value);
    for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
        const auto x = toDoubles(*left[i]), y = toDoubles(*right[i]);
        for (size_t k = 0; k < std::min(x.size(), y.size()); ++k) {
            signal_ += x[k] * x[k];
            noise_ += (x[k] - y[k]) * (x[k] - y[k]);
        }
    }
}

std::string decibelText(double sqnrDb)
{
    if (std::isnan(sqnrDb))
        return "undefined, there are nan or inf in the outputs";
    if (std::isinf(sqnrDb))
        return "no error";
    char text[32];
    std::snprintf(text, sizeof text, "%.1f dB", sqnrDb);
    return text;
}

double SignalToNoise::decibels() const
{
    return noise_ == 0 ? INFINITY : 10 * std::log10(signal_ / noise_);
}

Result<Evaluation> evaluateModels(const GraphModule &floatGraph, const GraphModule &int8Graph, const std::string &backend,
    const DataSet &data, const CancelFlag *cancel, const Progress &progress, ModuleRunner *modules)
{
    Result<Interpreter> reference = Interpreter::create(floatGraph);
    if (!reference)
        return reference.error();
    Result<Interpreter> int8 = Interpreter::create(int8Graph);
    if (!int8)
        return int8.error();
    const auto found = labelsOf(data);
    if (!found)
        return found.error();
    const std::optional<std::vector<int64_t>> &labels = *found;
    const RunOptions floatRun{ .cancel = cancel, .modules = modules },
        int8Run{ .cancel = cancel, .engine = backend, .modules = modules };

    Evaluation e;
    e.data = fileName(data.source);
    uint64_t rightFloat = 0, rightInt8 = 0;
    bool scored = labels.has_value();
    SignalToNoise distance;
    const uint64_t step = 32;
    for (uint64_t begin = 0; begin < data.samples; begin += step) {
        const uint64_t end = std::min(data.samples, begin + step);
        const Result<std::vector<Arg>> inputs = rowsOf(data, begin, end);
        if (!inputs)
            return inputs.error();
        Result<Arg> a = reference->run(*inputs, floatRun);
        if (!a)
            return a.error();
        Result<Arg> b = int8->run(*inputs, int8Run);
        if (!b)
            return b.error();
        distance.add(*a, *b);
        if (scored) {
            const Tensor logits = firstTensor(*a);
            if (logits && logits->sizes.size() == 2)
                for (uint64_t i = begin; i < end; ++i)
                    if ((*labels)[i] < 0 || (*labels)[i] >= logits->sizes[1])
                        return Error{ data.source + ": label " + std::to_string((*labels)[i]) + " of sample " + std::to_string(i)
                            + " is none of the model's " + std::to_string(logits->sizes[1]) + " classes" };
            const auto ra = countRight(logits, *labels, begin), rb = countRight(firstTensor(*b), *labels, begin);
            scored = ra && rb;
            rightFloat += ra.value_or(0);
            rightInt8 += rb.value_or(0);
        }
        e.samples = end;
        if (progress)
            progress(double(end) / double(data.samples));
    }
    e.sqnrDb = distance.decibels();
    if (scored && e.samples) {
        e.accuracyFloat = double(rightFloat) / double(e.samples);
        e.accuracyInt8 = double(rightInt8) / double(e.samples);
    }
    return e;
}

Result<std::shared_ptr<const QuantResult>> convertModel(
    const GraphModule &fused, const QuantConfig &config, const Calibration &calibration, const CancelFlag *cancel)
{
    auto result = std::make_shared<QuantResult>();
    const Pass pass = [&](GraphModule &gm) -> Result<PassReport> {
        Result<QuantPlan> plan = planQuantization(gm, config);
        if (!plan)
            return plan.error();
        Result<QuantResult> converted = convert(gm, *plan, calibration);
        if (!converted)
            return converted.error();
        *result = std::move(*converted);
        gm = result->graph;
        return result->report;
    };
    GraphModule work = fused;
    Result<PassReport> report = runPass("Convert to int8", pass, work, cancel);
    if (!report)
        return report.error();
    return std::shared_ptr<const QuantResult>(std::move(result));
}

std::string reportJson(const ExportRequest &request)
{
    const GraphModule &gm = request.converted ? request.converted->graph : *request.floatGraph;
    Json report{ { "fuseboard", 1 }, { "model", fileName(request.modelPath) },
        { "form", request.converted ? "quantized" : "float" }, { "traced_with_torch", gm.provenance.torchVersion },
        { "exported_with_torch", torchVersion() }, { "nodes", gm.graph.size() },
        { "parameters", request.floatGraph->parameterCount() } };
    if (request.evaluation) {
        const Evaluation &e = *request.evaluation;
        Json j{ { "data", e.data }, { "samples", e.samples } };
        if (e.accuracyFloat >= 0) {
            j["top1_float"] = e.accuracyFloat;
            j["top1_int8"] = e.accuracyInt8;
        }
        if (std::isfinite(e.sqnrDb))
            j["sqnr_db"] = e.sqnrDb;
        report["evaluation"] = j;
    }
    report["fused"] = itemsJson(request.fused.done);
    report["not_fused"] = itemsJson(request.fused.kept);
    if (request.converted) {
        report["backend"] = request.config.backend;
        report["calibration"] = { { request.dataPath.empty() ? "stats" : "data", fileName(calibrationSource(request)) },
            { "samples", request.calibration ? request.calibration->samples : 0 } };
        size_t int8 = 0;
        Json rows = Json::array(), kept = Json::array();
        for (const QuantRow &row : request.converted->rows) {
            rows.push_back(rowJson(row));
            int8 += row.int8();
            if (row.staysFloat())
                kept.push_back({ { "node", row.node }, { "reason", row.reason } });
        }
        report["int8_nodes"] = int8;
        report["float_nodes"] = kept;
        report["layers"] = rows;
    }
    return report.dump(2) + "\n";
}

std::string recipeJson(const ExportRequest &request)
{
    Json steps = Json::array();
    for (const std::string &edit : request.edits)
        steps.push_back(Json::parse(edit, nullptr, false));
    Json recipe{ { "fuseboard", 1 },
        { "model", { { "file", fileName(request.modelPath) }, { "sha256", fileHash(request.modelPath) } } }, { "edits", steps } };
    if (request.converted) {
        recipe["calibrate"] = { { request.dataPath.empty() ? "stats" : "data", fileName(calibrationSource(request)) },
            { "sha256", fileHash(calibrationSource(request)) },
            { "samples", request.calibration ? request.calibration->samples : 0 }, { "batch", request.batch } };
        recipe["quantize"] = { { "backend", request.config.backend }, { "observer", "MinMaxObserver" },
            { "float_nodes", request.config.floatNodes }, { "float_modules", request.config.floatModules },
            { "float_types", request.config.floatTypes } };
    }
    recipe["export"] = request.converted ? "quantized" : "python";
    return recipe.dump(2) + "\n";
}

Status exportFolder(const ExportRequest &request)
{
    const GraphModule &gm = request.converted ? request.converted->graph : *request.floatGraph;
    const std::string engine = request.converted ? request.config.backend : "";
    ExportOptions options;
    options.directory = request.directory;
    options.engine = engine;
    options.madeFrom = fileName(request.modelPath);
    options.tolerance = request.converted ? 0 : 1e-5;
    for (const PassItem &item : request.fused.done)
        options.steps.push_back("fused " + item.what);
    if (request.converted) {
        options.steps.push_back("calibrated on " + fileName(calibrationSource(request)) + " ("
            + std::to_string(request.calibration ? request.calibration->samples : 0) + " samples, MinMaxObserver)");
        options.steps.push_back("converted to int8 for " + request.config.backend);
    }
    options.reportJson = reportJson(request);
    options.recipeJson = recipeJson(request);

    // A graph that cannot run here (an opaque leaf), or not on random values, is exported all the same, without a sample to check
    // itself with.
    const auto obstacles = notExecutable(gm);
    if (std::all_of(obstacles.begin(), obstacles.end(), [&](const NotExecutable &n) { return request.worker && n.inPython; })) {
        Result<std::vector<Arg>> inputs = sampleInputs(request);
        if (!inputs)
            return inputs.error();
        if (!inputs->empty()) {
            Result<Interpreter> interpreter = Interpreter::create(gm);
            if (!interpreter)
                return interpreter.error();
            const RunOptions run{ .cancel = request.cancel, .engine = engine, .modules = request.worker.get() };
            Result<Arg> output = interpreter->run(*inputs, run);
            const bool random = request.sample.empty() && request.dataPath.empty();
            if (!output && (!random || (request.cancel && *request.cancel)))
                return output.error();
            if (output) {
                options.sampleInputs = *inputs;
                options.sampleOutput = *output;
            }
        }
    }
    return exportPython(gm, options);
}

} // namespace fb
