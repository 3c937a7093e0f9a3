// The export folder: code, weights, report and recipe. model.py comes from python_source.cpp; here the state is put together
// under the keys that its modules register, and every file is written beside its target and renamed.
#include "passes/export_python.h"

#include <filesystem>
#include <functional>
#include <map>

#include "model/exec/tensor_ops.h"
#include "model/io/fxt.h"
#include "passes/python_source.h"

namespace fb
{

namespace
{

void collect(const Arg &value, std::vector<Tensor> &out)
{
    forEachTensor(value, [&](const Tensor &t) { out.push_back(t); });
}

std::string counted(const char *what, size_t i)
{
    const std::string digits = std::to_string(i);
    return std::string("__sample__.") + what + "." + std::string(digits.size() < 3 ? 3 - digits.size() : 0, '0') + digits;
}

Result<NamedTensors> state(const GraphModule &gm, const PythonSource &source, const ExportOptions &options)
{
    NamedTensors out;
    std::map<const TensorData *, Tensor> stored; // tied tensors stay one
    const auto add = [&](const std::string &name, const Tensor &t) -> Status {
        Tensor &s = stored[t.get()];
        if (!s) {
            Result<Tensor> c = contiguous(t);
            if (!c)
                return Error{ "Cannot store " + name + ": " + c.message() };
            s = *c;
        }
        out.emplace_back(name, s);
        return {};
    };
    for (const auto &[fqn, e] : gm.tensors)
        if (Status s = add(weightsKey(fqn, inStateDict(*e)), e->tensor); !s)
            return s.error();
    for (const auto &[path, m] : gm.modules) {
        if (!isQuantizedWeight(*m))
            continue;
        const float scale = float(m->attr("scale") ? m->attr("scale")->toDouble().value_or(1) : 1);
        const int64_t zero = m->attr("zero_point") ? m->attr("zero_point")->toInt().value_or(0) : 0;
        out.emplace_back(path + ".scale", makeTensor(DType::Float32, {}, &scale));
        out.emplace_back(path + ".zero_point", makeTensor(DType::Int64, {}, &zero));
    }
    for (const auto &[name, t] : source.state)
        out.emplace_back(name, t);
    std::vector<Tensor> inputs, outputs;
    for (const Arg &a : options.sampleInputs)
        collect(a, inputs);
    collect(options.sampleOutput, outputs);
    for (const auto &[what, list] : { std::pair("input", &inputs), std::pair("output", &outputs) })
        for (size_t i = 0; i < list->size(); ++i)
            if (Status s = add(counted(what, i), (*list)[i]); !s)
                return s.error();
    return out;
}

} // namespace

std::string pythonSource(const GraphModule &gm, const ExportOptions &options)
{
    const Result<PythonSource> source = writePython(gm, options);
    return source ? source->text : "raise RuntimeError(\"\"\"" + source.message() + "\"\"\")\n";
}

Status exportPython(const GraphModule &gm, const ExportOptions &options)
{
    namespace fs = std::filesystem;
    const Result<PythonSource> source = writePython(gm, options);
    if (!source)
        return source.error();
    const Result<NamedTensors> weights = state(gm, *source, options);
    if (!weights)
        return weights.error();
    std::error_code failed;
    fs::create_directories(options.directory, failed);
    if (failed)
        return Error{ "Cannot make the folder " + options.directory + ": " + failed.message() + "; choose another one." };
    const fs::path folder(options.directory);
    for (const auto &[path, file] : source->scripts)
        if (const ModuleInfo *m = gm.modules.find(path); m && m->script)
            if (Status s = writeFileAtomically((folder / file).string(), *m->script); !s)
                return s;
    if (Status s = writeTorchWeights(*weights, (folder / "weights.pt").string()); !s)
        return s;
    const std::pair<const char *, const std::string *> texts[]
        = { { "model.py", &source->text }, { "report.json", &options.reportJson }, { "recipe.json", &options.recipeJson } };
    for (const auto &[name, text] : texts)
        if (!text->empty())
            if (Status s = writeFileAtomically((folder / name).string(), *text); !s)
                return s;
    return {};
}

} // namespace fb
