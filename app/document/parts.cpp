#include "app/document/parts.h"

#include <nlohmann/json.hpp>

#include <QString>

#include "app/document/tracer.h"
#include "model/io/fxt.h"
#include "passes/fuse.h"

namespace fb
{

namespace
{

using Json = nlohmann::ordered_json;

} // namespace

std::string pathInModel(const std::string &part)
{
    return part.substr(part.find('.') + 1);
}

std::string shareText(const GraphModule &part)
{
    const auto &share = part.provenance.share;
    if (!share)
        return {};
    auto percent = [](double of) { return QString::number(100 * of, 'f', 1).toStdString() + " % of the "; };
    return percent(share->parameters) + "parameters"
        + (share->multiplyAdds ? ", " + percent(*share->multiplyAdds) + "multiply-adds" : std::string());
}

void replacePart(GraphModule &gm, const std::string &path, std::shared_ptr<const GraphModule> graph)
{
    ModuleInfo info = *gm.modules.find(path);
    info.graph = std::move(graph);
    gm.modules.set(path, std::move(info));
}

Result<ByPart<PassReport>> fuseParts(GraphModule &gm)
{
    ByPart<PassReport> reports;
    for (const std::string &path : partsOf(gm)) {
        GraphModule inner = *gm.modules.find(path)->graph;
        Result<PassReport> report = runPass("Fuse all", fuseAll, inner);
        if (!report)
            return Error{ pathInModel(path) + ": " + report.message() };
        reports.emplace(path, std::move(*report));
        replacePart(gm, path, std::make_shared<const GraphModule>(std::move(inner)));
    }
    return reports;
}

Calibration statisticsOf(const Calibration &all, const GraphModule &gm, const std::string &part)
{
    Calibration own;
    own.samples = all.samples;
    own.batches = all.batches;
    own.modelText = graphHash(*gm.modules.find(part)->graph);
    const std::string prefix = part + "/";
    for (auto it = all.nodes.lower_bound(prefix); it != all.nodes.end() && it->first.starts_with(prefix); ++it)
        own.nodes.emplace(it->first.substr(prefix.size()), it->second);
    return own;
}

Result<ByPart<PartEvaluation>> evaluateParts(const GraphModule &gm, const ByPart<std::shared_ptr<const QuantResult>> &converted,
    const std::string &backend, const DataSet &data, ModuleRunner &modules, const Progress &progress, const CancelFlag *cancel)
{
    struct Part {
        const GraphModule *graph;
        Interpreter int8;
        std::vector<Arg> inputs;
        SignalToNoise distance;
        PartEvaluation result;
    };
    ByPart<Part> parts;
    for (const auto &[path, result] : converted) {
        auto int8 = Interpreter::create(result->graph);
        if (!int8)
            return Error{ pathInModel(path) + ": " + int8.message() };
        parts.emplace(path, Part{ gm.modules.find(path)->graph.get(), std::move(*int8), {}, {}, {} });
    }
    auto model = Interpreter::create(gm);
    if (!model)
        return model.error();
    std::string failed;
    RunOptions run;
    run.modules = &modules;
    run.cancel = cancel;
    run.inside = [&](const std::string &path, NodeId id, const Arg &value) {
        Part &p = parts.at(path);
        const Opcode op = p.graph->graph[id].op;
        if (op == Opcode::Placeholder)
            p.inputs.push_back(value);
        if (op != Opcode::Output)
            return;
        const std::vector<Arg> inputs = std::exchange(p.inputs, {});
        if (p.result.sample.empty())
            p.result.sample = inputs;
        auto r = p.int8.run(inputs, { .engine = backend, .modules = &modules });
        if (r)
            p.distance.add(value, *r);
        else if (failed.empty())
            failed = pathInModel(path) + " in int8: " + r.message();
    };
    constexpr uint64_t kStep = 32;
    for (uint64_t begin = 0; begin < data.samples; begin += kStep) {
        const uint64_t end = std::min(data.samples, begin + kStep);
        const Result<std::vector<Arg>> inputs = rowsOf(data, begin, end);
        if (!inputs)
            return inputs.error();
        if (auto r = model->run(*inputs, run); !r)
            return r.error();
        if (!failed.empty())
            return Error{ failed };
        if (progress)
            progress(double(end) / double(data.samples));
    }
    ByPart<PartEvaluation> out;
    for (auto &[path, p] : parts) {
        p.result.evaluation.samples = data.samples;
        p.result.evaluation.sqnrDb = p.distance.decibels();
        p.result.evaluation.data = data.source.substr(data.source.rfind('/') + 1);
        out.emplace(path, std::move(p.result));
    }
    return out;
}

Status exportParts(const ByPart<ExportRequest> &requests, const std::string &directory)
{
    Result<std::string> code = readFile(resourcePath(QStringLiteral("python/apply_parts.py")).toStdString());
    if (!code)
        return code.error();
    std::string table = "PARTS = {";
    Json reports = Json::object(), recipes = Json::object();
    for (const auto &[path, unplaced] : requests) {
        ExportRequest request = unplaced;
        const std::string name = pathInModel(path);
        if (name.find('/') != std::string::npos || name.starts_with('.'))
            return Error{ "the submodule '" + name
                + "' cannot be exported: its name is no name of a folder; rename it in the model" };
        request.directory = directory + "/" + name;
        if (Status written = exportFolder(request); !written)
            return Error{ name + ": " + written.message() };
        table += (reports.empty() ? "" : ", ") + Json(name).dump();
        reports[name] = Json::parse(reportJson(request));
        recipes[name] = Json::parse(recipeJson(request));
    }
    const std::string empty = "PARTS = {";
    code->replace(code->find(empty), empty.size(), table);
    if (Status written = writeFileAtomically(directory + "/model.py", *code); !written)
        return written;
    const auto whole = [](const Json &parts) { return Json{ { "fuseboard", 1 }, { "submodules", parts } }.dump(2) + "\n"; };
    if (Status written = writeFileAtomically(directory + "/report.json", whole(reports)); !written)
        return written;
    return writeFileAtomically(directory + "/recipe.json", whole(recipes));
}

} // namespace fb
