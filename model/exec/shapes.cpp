// Fuseboard: shapes without values. GPL-3.0-or-later.
//
// A meta tensor has sizes, strides and a dtype and no memory, and nearly every operator of ATen computes on it what it would
// allocate. So the shapes of a graph need neither the memory nor the time of a run. What asks for a value (an index by mask,
// int(x)), TorchScript and quantized operators have no such form: then the graph runs on the real inputs.
//
// A second run at another batch size tells which dimensions follow the batch.
#include <map>
#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include "model/exec/aten_bridge.h"
#include "model/exec/interpreter.h"
#include "model/exec/tensor_ops.h"

namespace fb
{

namespace
{

Tensor onMeta(const Tensor &t)
{
    return hold(at::empty_strided(t->sizes, t->strides, at::TensorOptions().dtype(scalarType(t->dtype)).device(at::kMeta)));
}

// The graph over tensors without memory; null where one cannot be so.
std::shared_ptr<const GraphModule> shapesOf(const GraphModule &gm)
{
    for (const NodeId id : gm.graph.order())
        if (gm.graph[id].target.find("addbmm_") != std::string::npos)
            return nullptr; // torch 2.13 gives a wrong shape for it on meta tensors
    auto out = std::make_shared<GraphModule>(gm);
    std::map<const TensorData *, Tensor> same; // tied ones stay tied
    for (const auto &[name, entry] : gm.tensors) {
        if (entry->tensor->quant)
            return nullptr;
        Tensor &meta = same[entry->tensor.get()];
        if (!meta)
            meta = onMeta(entry->tensor);
        out->tensors.set(name, { meta, entry->parameter, entry->persistent });
    }
    for (const auto &[path, info] : gm.modules) {
        if (info->kind != ModuleKind::Graph || !info->graph)
            continue;
        ModuleInfo changed = *info;
        changed.graph = shapesOf(*info->graph);
        if (!changed.graph)
            return nullptr;
        out->modules.set(path, std::move(changed));
    }
    return out;
}

using Shapes = std::vector<std::pair<NodeId, std::optional<TensorMeta>>>;

Result<Shapes> observed(const GraphModule &gm, const std::vector<Arg> &inputs, const CancelFlag *cancel, ModuleRunner *modules)
{
    auto interpreter = Interpreter::create(gm);
    if (!interpreter)
        return interpreter.error();
    Shapes found;
    RunOptions options;
    options.cancel = cancel;
    options.modules = modules;
    options.observer = [&](NodeId id, const Arg &value) {
        const Tensor *t = value.as<Tensor>();
        found.emplace_back(id, t && *t ? std::optional(TensorMeta{ (*t)->sizes, (*t)->dtype }) : std::nullopt);
    };
    const auto r = interpreter->run(inputs, options);
    if (!r)
        return r.error();
    return found;
}

// `batch` in place of the first dimension, where it is not -1.
std::vector<Arg> metaInputs(const std::vector<Arg> &inputs, int64_t batch = -1)
{
    std::vector<Arg> out;
    for (const Arg &a : inputs)
        out.push_back(mapTensors(a, [&](const Tensor &t) -> Arg {
            TensorData wanted = *t;
            if (batch >= 0 && !wanted.sizes.empty() && wanted.sizes[0] != batch) {
                wanted.sizes[0] = batch;
                wanted.strides = contiguousStrides(wanted.sizes);
            }
            return onMeta(std::make_shared<const TensorData>(std::move(wanted)));
        }));
    return out;
}

// The first sample once more at the end.
std::vector<Arg> withOneMore(const std::vector<Arg> &inputs)
{
    std::vector<Arg> out;
    for (const Arg &a : inputs)
        out.push_back(mapTensors(a, [](const Tensor &t) -> Arg {
            const auto row = t->sizes.empty() ? Result<Tensor>(t) : sliceRows(t, 0, 1);
            const auto more = row && !t->sizes.empty() ? catRows({ t, *row }) : row;
            return more ? *more : t;
        }));
    return out;
}

bool anyQuantized(const std::vector<Arg> &inputs)
{
    bool found = false;
    for (const Arg &a : inputs)
        forEachTensor(a, [&](const Tensor &t) { found |= t->quant.has_value(); });
    return found;
}

} // namespace

Status propagateShapes(GraphModule &gm, const std::vector<Arg> &inputs, const CancelFlag *cancel, ModuleRunner *modules)
{
    Result<Shapes> found = Error{ "" };
    if (const auto shapes = anyQuantized(inputs) ? nullptr : shapesOf(gm))
        found = observed(*shapes, metaInputs(inputs), cancel, nullptr);
    if (!found && found.message() != Interpreter::kCancelled)
        found = observed(gm, inputs, cancel, modules);
    if (!found)
        return found.error();
    for (auto &[id, meta] : *found)
        gm.graph.setMeta(id, std::move(meta));
    return {};
}

std::map<NodeId, std::vector<int64_t>> batchDimensions(const GraphModule &gm, const std::vector<Arg> &inputs)
{
    std::optional<int64_t> batch;
    bool agree = !anyQuantized(inputs);
    for (const Arg &a : inputs)
        forEachTensor(a, [&](const Tensor &t) {
            if (t->sizes.empty())
                return;
            agree = agree && (!batch || *batch == t->sizes[0]);
            batch = t->sizes[0];
        });
    if (!agree || !batch || *batch <= 0)
        return {};
    const int64_t other = *batch + 1;
    const auto shapes = shapesOf(gm);
    Result<Shapes> grown = Error{ "" };
    if (shapes)
        grown = observed(*shapes, metaInputs(inputs, other), nullptr, nullptr);
    if (!grown)
        grown = observed(gm, withOneMore(inputs), nullptr, nullptr);
    if (!grown)
        return {};
    std::map<NodeId, std::vector<int64_t>> out;
    for (const auto &[id, b] : *grown) {
        const auto &a = gm.graph[id].meta;
        if (!a && !b)
            continue;
        if (!a || !b || a->shape.size() != b->shape.size())
            return {};
        std::vector<int64_t> multiples(a->shape.size());
        bool follows = false;
        for (size_t d = 0; d < multiples.size(); ++d) {
            if (a->shape[d] == b->shape[d])
                continue;
            multiples[d] = a->shape[d] / *batch;
            follows = true;
            if (multiples[d] * *batch != a->shape[d] || multiples[d] * other != b->shape[d])
                return {};
        }
        if (follows)
            out.emplace(id, std::move(multiples));
    }
    return out;
}

std::string shapeText(const std::vector<int64_t> &shape, const std::vector<int64_t> &multiples)
{
    std::string out;
    for (size_t i = 0; i < shape.size(); ++i) {
        const int64_t m = i < multiples.size() ? multiples[i] : 0;
        out += i ? "x" : "";
        out += m == 0 ? std::to_string(shape[i]) : (m == 1 ? "" : std::to_string(m)) + "N";
    }
    return out.empty() ? "scalar" : out;
}

std::string inputText(const InputSpec &spec)
{
    return (spec.shape.empty() ? "" : shapeText(spec.shape, {})) + (spec.dtype.empty() ? "" : ":" + spec.dtype);
}

Result<Tensor> randomTensor(std::string_view shape, uint64_t seed, int index)
{
    const std::string text(shape);
    const Error wrong{ "'" + text
        + "' is no shape: write sizes joined by x and perhaps a dtype, such as 1x3x224x224 or 1x77:int64" };
    const size_t colon = text.find(':');
    const auto dtype = colon == text.npos ? std::optional(DType::Float32) : dtypeFromName(text.substr(colon + 1));
    if (!dtype || isQuantized(*dtype))
        return Error{ "'" + text + "': the dtype is not one that random values can have" };
    std::vector<int64_t> sizes;
    std::string_view rest = std::string_view(text).substr(0, colon);
    double elements = 1;
    while (!rest.empty()) {
        const std::string_view part = rest.substr(0, rest.find('x'));
        rest.remove_prefix(std::min(rest.size(), part.size() + 1));
        if (part.empty() || part.size() > 12 || part.find_first_not_of("0123456789") != part.npos
            || part.data() + part.size() + 1 == text.data() + std::min(colon, text.size()))
            return wrong;
        sizes.push_back(std::stoll(std::string(part)));
        elements *= double(sizes.back());
    }
    if (sizes.empty() && colon == text.npos)
        return wrong; // ":int64" is a scalar
    if (elements > 1e10)
        return Error{ "'" + text + "' has too many elements" };
    try {
        static std::mutex mutex;
        static at::Generator generator;
        const std::lock_guard lock(mutex);
        if (index == 0 || !generator.defined())
            generator = at::detail::createCPUGenerator(seed);
        const at::ScalarType type = scalarType(*dtype);
        if (isFloatingPoint(*dtype))
            return fromAten(at::randn(sizes, generator, at::TensorOptions().dtype(type)));
        // Small enough for any index or mask.
        return fromAten(at::randint(0, 2, sizes, generator, at::TensorOptions().dtype(type)));
    } catch (...) {
        return Error{ "'" + text + "': " + currentMessage() };
    }
}

} // namespace fb
