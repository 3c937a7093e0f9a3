// trace, info, print, code, run, shapes, verify. GPL-3.0-or-later.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "app/cli/cli.h"
#include "app/cli/worker_options.h"
#include "app/document/parts.h"
#include "app/document/tracer.h"
#include "model/exec/interpreter.h"
#include "model/exec/tensor_ops.h"
#include "model/ir/lint.h"
#include "model/text/text.h"
#include "passes/edits.h"

namespace fb::cli
{

namespace
{

// --- trace -----------------------------------------------------------------------------------------------------------

struct TraceOptions {
    std::string source, output, python, samples;
    std::vector<std::string> inputs, kwargs, concrete, leaves, leafClasses, wraps, submodules;
    bool keepMode = false, sizes = false, doctor = false, json = false;
};

QStringList strings(const std::vector<std::string> &list)
{
    QStringList out;
    for (const std::string &s : list)
        out << QString::fromStdString(s);
    return out;
}

Status runTrace(const TraceOptions &o, const Common &common)
{
    if (o.output.empty() && !o.doctor)
        throw UsageError("-o OUT.fxt is needed (only --doctor goes without)");
    TraceRequest request;
    request.source = QString::fromStdString(o.source);
    request.output = QString::fromStdString(o.output);
    request.python = QString::fromStdString(o.python);
    request.inputs = strings(o.inputs);
    request.samples = QString::fromStdString(o.samples);
    request.kwargs = strings(o.kwargs);
    request.concrete = strings(o.concrete);
    request.leaves = strings(o.leaves);
    request.leafClasses = strings(o.leafClasses);
    request.wraps = strings(o.wraps);
    request.submodules = strings(o.submodules);
    request.keepMode = o.keepMode;
    request.sizes = o.sizes;
    request.doctor = o.doctor;
    request.seed = int(common.seed);
    TraceResult result;
    {
        ProgressLine line(common.quiet);
        result = fb::trace(request, [&line](double fraction, const QString &text) { line.show(fraction, text.toStdString()); });
    }
    if (result.exitCode == 2)
        throw UsageError(result.error.toStdString());
    if (!result.ok) {
        const std::string sentence = result.sentence().toStdString();
        if (o.json && !result.problems.isEmpty())
            print(result.json.toStdString());
        else if (o.json) // Python itself failed
            print(Json{ { "ok", false },
                { "problems",
                    Json::array({ { { "kind", "python" }, { "module", nullptr }, { "class", nullptr }, { "file", nullptr },
                        { "line", nullptr }, { "source", nullptr }, { "message", sentence }, { "fixes", Json::array() } } }) } });
        return Error{ "cannot trace " + o.source + ": " + sentence };
    }
    const Json answer = Json::parse(result.json.toStdString(), nullptr, false);
    if (o.json) {
        print(result.json.toStdString());
        return {};
    }
    for (const QString &warning : result.warnings)
        std::fprintf(stderr, "warning: %s\n", warning.toUtf8().constData());
    if (o.doctor) {
        if (const std::string worth = answer.value("worth", std::string()); !worth.empty())
            std::fprintf(stderr, "%s\n", worth.c_str());
        print(answer.value("advice", std::string()) + "\n");
    }
    return {};
}

// --- info, print, code -----------------------------------------------------------------------------------------------

struct FileOptions {
    std::string file;
    bool json = false, strict = false;
};

Json specJson(const std::string &name, const std::optional<TensorMeta> &meta)
{
    Json j{ { "name", name }, { "shape", nullptr }, { "dtype", nullptr } };
    if (meta) {
        j["shape"] = meta->shape;
        j["dtype"] = std::string(dtypeName(meta->dtype));
    }
    return j;
}

Json describe(const GraphModule &gm)
{
    Json opcodes = Json::object(), inputs = Json::array(), outputs = Json::array(), problems = Json::array();
    for (Opcode op :
        { Opcode::Placeholder, Opcode::GetAttr, Opcode::CallFunction, Opcode::CallMethod, Opcode::CallModule, Opcode::Output })
        opcodes[std::string(opcodeName(op))] = 0;
    for (NodeId id : gm.graph.order()) {
        const Node &n = gm.graph[id];
        opcodes[std::string(opcodeName(n.op))] = opcodes[std::string(opcodeName(n.op))].get<int>() + 1;
        if (n.op == Opcode::Placeholder) {
            Json j = specJson(n.target, n.meta);
            for (const InputSpec &spec : gm.provenance.inputs)
                if (!n.meta && (spec.name == n.name || spec.name == n.target)) {
                    j["shape"] = spec.shape;
                    j["dtype"] = spec.dtype;
                }
            inputs.push_back(j);
        }
    }
    if (const NodeId output = gm.graph.output())
        for (NodeId id : gm.graph.inputs(output))
            outputs.push_back(specJson(gm.graph[id].name, gm.graph[id].meta));
    for (const LintProblem &p : lint(gm))
        problems.push_back({ { "kind", "graph" }, { "node", p.node }, { "message", p.message } });
    for (const NotExecutable &n : notExecutable(gm))
        problems.push_back({ { "kind", "not executable" }, { "node", n.node }, { "message", n.reason } });
    for (const TraceWarning &w : gm.provenance.warnings)
        if (w.kind != "training") // the graph as it is now says more
            problems.push_back({ { "kind", w.kind }, { "node", w.node }, { "message", w.message } });
    for (const TrainingCall &c : trainingCalls(gm))
        problems.push_back({ { "kind", "training" }, { "node", c.node }, { "message", c.message } });
    Json info{ { "format", gm.provenance.format }, { "torch", gm.provenance.torchVersion }, { "nodes", gm.graph.size() },
        { "opcodes", opcodes }, { "modules", gm.modules.size() }, { "parameters", gm.parameterCount() }, { "inputs", inputs },
        { "outputs", outputs }, { "problems", problems } };
    for (const std::string &path : partsOf(gm)) {
        const ModuleInfo &m = *gm.modules.find(path);
        Json part{ { "path", pathInModel(path) }, { "class", m.className }, { "nodes", m.graph->graph.size() },
            { "parameters", m.graph->parameterCount() } };
        if (const auto &share = m.graph->provenance.share) {
            part["parameters_share"] = share->parameters;
            part["multiply_adds_share"] = share->multiplyAdds ? Json(*share->multiplyAdds) : Json();
        }
        info["submodules"].push_back(part);
    }
    return info;
}

std::string specText(const Json &spec)
{
    std::string out = spec["name"].get<std::string>();
    if (!spec["shape"].is_null())
        out += "  " + shapeText(spec["shape"].get<std::vector<int64_t>>(), {}) + "  " + spec["dtype"].get<std::string>();
    return out;
}

Status runInfo(const FileOptions &o, const Common &common)
{
    Result<GraphModule> gm = openModel(o.file, common);
    if (!gm)
        return gm.error();
    const Json info = describe(*gm);
    if (o.json) {
        print(info);
        return {};
    }
    std::string out
        = "format      " + info["format"].get<std::string>() + ", traced with torch " + info["torch"].get<std::string>() + "\n";
    std::string opcodes;
    for (const auto &[op, count] : info["opcodes"].items())
        if (count.get<int>())
            opcodes += (opcodes.empty() ? "" : ", ") + std::to_string(count.get<int>()) + " " + op;
    out += "nodes       " + std::to_string(gm->graph.size()) + " (" + opcodes + ")\n";
    out += "modules     " + std::to_string(gm->modules.size()) + "\n";
    out += "parameters  " + std::to_string(gm->parameterCount()) + "\n";
    for (const Json &i : info["inputs"])
        out += "input       " + specText(i) + "\n";
    for (const Json &i : info["outputs"])
        out += "output      " + specText(i) + "\n";
    for (const std::string &path : partsOf(*gm)) {
        const GraphModule &part = *gm->modules.find(path)->graph;
        const std::string share = shareText(part);
        out += "submodule   " + pathInModel(path) + "  " + std::to_string(part.graph.size()) + " nodes"
            + (share.empty() ? "" : ", ") + share + "\n";
    }
    for (const Json &p : info["problems"])
        out += "problem     " + p["message"].get<std::string>() + "\n";
    print(out);
    return {};
}

Status runPrint(const FileOptions &o, const Common &common)
{
    Result<GraphModule> gm = openModel(o.file, common);
    if (!gm)
        return gm.error();
    print(torchGraphText(*gm) + "\n");
    return {};
}

Status runCode(const FileOptions &o, const Common &common)
{
    Result<GraphModule> gm = openModel(o.file, common);
    if (!gm)
        return gm.error();
    print(torchCode(*gm, { o.strict }) + "\n");
    return {};
}

// --- run, shapes, verify ---------------------------------------------------------------------------------------------

struct RunCommand {
    std::string file, other, output;
    std::vector<std::string> inputs, nodes;
    WorkerRequest python;
    bool json = false;
};

// What a file can hold: quantized tensors go out as the numbers that they stand for.
Status storable(NamedTensors &tensors)
{
    for (auto &[name, t] : tensors)
        if (isQuantized(t->dtype)) {
            Result<Tensor> real = dequantize(t);
            if (!real)
                return real.error();
            t = *real;
        }
    return {};
}

// Where an input is not what the model was traced with, that is the likely cause of a failed run.
std::string unlike(const GraphModule &gm, const std::vector<Arg> &inputs)
{
    const std::vector<NodeId> placeholders = gm.graph.placeholders();
    for (size_t i = 0; i < inputs.size() && i < placeholders.size(); ++i)
        for (const InputSpec &spec : gm.provenance.inputs) {
            const Tensor *t = inputs[i].as<Tensor>();
            if (!t || spec.name != gm.graph[placeholders[i]].target)
                continue;
            const std::string given = (*t)->shapeText() + " " + std::string(dtypeName((*t)->dtype)),
                              traced = shapeText(spec.shape, {}) + " " + spec.dtype;
            if (given != traced)
                return "; its input " + spec.name + " is " + given + " and was " + traced + " when the model was traced";
        }
    return {};
}

Result<Arg> runOnce(const GraphModule &gm, const std::string &file, const std::vector<Arg> &inputs, const WorkerRequest &python,
    RunOptions options = {})
{
    const auto worker = startedWorker(gm, file, python);
    if (!worker)
        return worker.error();
    options.modules = worker->get();
    Result<Interpreter> interpreter = Interpreter::create(gm);
    if (!interpreter)
        return Error{ file + ": " + interpreter.message() };
    Result<Arg> value = interpreter->run(inputs, options);
    if (!value)
        return Error{ file + ": " + value.message() + unlike(gm, inputs) };
    return value;
}

Status runRun(const RunCommand &o, const Common &common)
{
    if (!o.output.ends_with(".npy") && !o.output.ends_with(".npz") && !o.output.ends_with(".safetensors"))
        throw UsageError("-o names a .npy, .npz or .safetensors file, not " + o.output);
    Result<GraphModule> gm = openModel(o.file, common);
    if (!gm)
        return gm.error();
    for (const std::string &name : o.nodes)
        if (!gm->graph.find(name))
            return Error{ o.file + " has no node " + name + "; fuseboard-cli print lists them" };
    Result<std::vector<Arg>> inputs = inputsFor(*gm, o.file, o.inputs, common.seed);
    if (!inputs)
        return inputs.error();
    std::map<std::string, NamedTensors> seen;
    RunOptions options;
    if (!o.nodes.empty())
        options.observer = [&](NodeId id, const Arg &value) {
            const std::string &name = gm->graph[id].name;
            if (std::find(o.nodes.begin(), o.nodes.end(), name) != o.nodes.end())
                seen[name] = namedTensors(name, value);
        };
    Result<Arg> value = runOnce(*gm, o.file, *inputs, o.python, options);
    if (!value)
        return value.error();
    NamedTensors out;
    if (o.nodes.empty())
        out = namedTensors("output", *value);
    for (const std::string &name : o.nodes)
        out.insert(out.end(), seen[name].begin(), seen[name].end());
    if (out.empty())
        return Error{ o.file + " gave no tensor to write" };
    if (o.output.ends_with(".npy") && out.size() > 1)
        return Error{ o.file + " gave " + std::to_string(out.size())
            + " tensors and a .npy file holds one; name a .npz or .safetensors file with -o" };
    if (Status ok = storable(out); !ok)
        return ok;
    return writeArrays(out, o.output);
}

Status runShapes(const RunCommand &o, const Common &common)
{
    Result<GraphModule> gm = openModel(o.file, common);
    if (!gm)
        return gm.error();
    Result<std::vector<Arg>> inputs = inputsFor(*gm, o.file, o.inputs, common.seed);
    if (!inputs)
        return inputs.error();
    const auto worker = startedWorker(*gm, o.file, o.python);
    if (!worker)
        return worker.error();
    if (Status ok = propagateShapes(*gm, *inputs, nullptr, worker->get()); !ok)
        return Error{ o.file + ": " + ok.message() + unlike(*gm, *inputs) };
    const auto batch = batchDimensions(*gm, *inputs);
    Json rows = Json::array();
    std::string text;
    size_t width = 0;
    for (NodeId id : gm->graph.order())
        width = std::max(width, gm->graph[id].name.size());
    for (NodeId id : gm->graph.order()) {
        const Node &n = gm->graph[id];
        const auto follows = batch.find(id);
        const std::vector<int64_t> multiples = follows == batch.end() ? std::vector<int64_t>() : follows->second;
        Json row = specJson(n.name, n.meta);
        if (!multiples.empty())
            row["batch"] = multiples;
        rows.push_back(std::move(row));
        text += n.name + std::string(width - n.name.size() + 2, ' ')
            + (n.meta ? shapeText(n.meta->shape, multiples) + "  " + std::string(dtypeName(n.meta->dtype)) : "-") + "\n";
    }
    if (o.json)
        print(Json{ { "nodes", rows } });
    else
        print(text);
    return {};
}

Status runVerify(const RunCommand &o, const Common &common)
{
    Result<GraphModule> a = openModel(o.file, common);
    if (!a)
        return a.error();
    Result<GraphModule> b = openModel(o.other, common);
    if (!b)
        return b.error();
    Result<std::vector<Arg>> inputs = inputsFor(*a, o.file, o.inputs, common.seed);
    if (!inputs)
        return inputs.error();
    Result<Arg> left = runOnce(*a, o.file, *inputs, o.python), right = left ? runOnce(*b, o.other, *inputs, o.python) : left;
    if (!right)
        return right.error();
    const NamedTensors x = namedTensors("output", *left), y = namedTensors("output", *right);
    if (x.size() != y.size())
        return Error{ o.file + " gives " + std::to_string(x.size()) + " tensors and " + o.other + " gives "
            + std::to_string(y.size()) + ", so they cannot be compared" };
    Json rows = Json::array();
    char line[256];
    std::snprintf(line, sizeof line, "%-20s %12s %12s %12s %12s\n", "output", "max abs", "relative", "cosine", "SQNR dB");
    std::string text = line;
    for (size_t i = 0; i < x.size(); ++i) {
        Result<Difference> d = difference(y[i].second, x[i].second);
        if (!d)
            return d.error();
        if (!d->sameShape)
            return Error{ x[i].first + " is " + x[i].second->shapeText() + " in " + o.file + " and " + y[i].second->shapeText()
                + " in " + o.other + ", so they cannot be compared" };
        rows.push_back({ { "name", x[i].first }, { "max_abs", d->maxAbs }, { "relative", d->relative }, { "cosine", d->cosine },
            { "sqnr_db", std::isfinite(d->sqnrDb) ? Json(d->sqnrDb) : Json(nullptr) } });
        std::snprintf(line, sizeof line, "%-20s %12.4g %12.4g %12.8f %12.2f\n", x[i].first.c_str(), d->maxAbs, d->relative,
            d->cosine, d->sqnrDb);
        text += line;
    }
    if (o.json)
        print(Json{ { "outputs", rows } });
    else
        print(text);
    return {};
}

} // namespace

void addModelCommands(Program &program)
{
    {
        auto [c, o] = program.add<TraceOptions>("trace", "trace a model with torch.fx in your own Python", runTrace);
        c->add_option("SOURCE", o->source, "file.py:name or package.module:name")->required();
        c->add_option("-o", o->output, "OUT.fxt");
        c->add_option("--input", o->inputs, "sample inputs: SHAPE or FILE");
        c->add_option("--kwarg", o->kwargs, "NAME=SHAPE or NAME=FILE")
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        c->add_option("--samples", o->samples, "NAME of a function in SOURCE's file that gives the sample inputs");
        c->add_option("--concrete", o->concrete, "NAME=VALUE fixes an argument of forward")
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        c->add_option("--leaf", o->leaves, "PATH of a module to keep as one node")
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        c->add_option("--leaf-class", o->leafClasses, "QUALNAME of a class to keep as one node")
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        c->add_option("--wrap", o->wraps, "QUALNAME of a function to keep as one call")
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        c->add_option("--submodule", o->submodules, "PATH of a module to trace as a graph of its own in an opaque model")
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        c->add_option("--python", o->python, "the Python of your environment");
        c->add_flag("--sizes", o->sizes, "let the sample inputs decide what depends on sizes, dtypes and devices");
        c->add_flag("--keep-mode", o->keepMode, "trace in the mode the model is in (else in eval mode)");
        c->add_flag("--doctor", o->doctor, "find a smallest set of leaves that lets it trace, or submodules that do");
        c->add_flag("--json", o->json, "one JSON document");
    }
    {
        auto [c, o] = program.add<FileOptions>("info", "what a file holds", runInfo);
        c->add_option("FILE", o->file)->required();
        c->add_flag("--json", o->json, "one JSON document");
    }
    {
        auto [c, o] = program.add<FileOptions>("print", "the graph as torch's str(graph) prints it", runPrint);
        c->add_option("FILE", o->file)->required();
    }
    {
        auto [c, o] = program.add<FileOptions>("code", "the graph as torch's gm.code prints it", runCode);
        c->add_option("FILE", o->file)->required();
        c->add_flag("--strict-torch", o->strict, "torch's own text even where it is wrong Python");
    }
    {
        auto [c, o] = program.add<RunCommand>("run", "run on tensors", runRun);
        c->add_option("FILE", o->file)->required();
        c->add_option("--input", o->inputs, "SHAPE or FILE for each input (as traced)");
        c->add_option("-o", o->output, "OUT.npy, .npz or .safetensors")->required();
        c->add_option("--node", o->nodes, "write the values of these nodes instead");
        addWorkerOptions(c, &o->python);
    }
    {
        auto [c, o] = program.add<RunCommand>("shapes", "shape and dtype of every node", runShapes);
        c->add_option("FILE", o->file)->required();
        c->add_option("--input", o->inputs, "SHAPE or FILE for each input (as traced)");
        c->add_flag("--json", o->json, "one JSON document");
        addWorkerOptions(c, &o->python);
    }
    {
        auto [c, o] = program.add<RunCommand>("verify", "compare two models on the same inputs", runVerify);
        c->add_option("A", o->file)->required();
        c->add_option("B", o->other)->required();
        c->add_option("--input", o->inputs, "SHAPE or FILE for each input (as traced)");
        c->add_flag("--json", o->json, "one JSON document");
        addWorkerOptions(c, &o->python);
    }
}

} // namespace fb::cli
