// Data sets and the calibration run. A data set is one tensor for each input whose first axis is the sample; it must have
// the shape and dtype that the model was traced with, apart from that axis, and says so in one sentence where it has not.
#include <algorithm>
#include <chrono>
#include <filesystem>

#include "model/exec/statistics.h"
#include "model/exec/tensor_ops.h"
#include "model/exec/worker.h"
#include "model/io/fxt.h"
#include "model/ir/pinned.h"
#include "model/text/text.h"

namespace fb
{

namespace
{

namespace fs = std::filesystem;
constexpr const char *kKinds = ".npy, .npz or .safetensors";

bool holdsArrays(const fs::path &p)
{
    const std::string kind = p.extension().string();
    return kind == ".npy" || kind == ".npz" || kind == ".safetensors";
}

// The files that a path stands for, in order of name.
Result<std::vector<std::string>> dataFiles(const std::string &path)
{
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status))
        return Error{ path + ": there is no such data; give a " + kKinds + " file or a folder of them" };
    if (!fs::is_directory(status))
        return std::vector<std::string>{ path };
    std::vector<std::string> files;
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
        if (it->is_regular_file(error) && holdsArrays(it->path()))
            files.push_back(it->path().string());
    if (error)
        return Error{ path + ": the folder cannot be read: " + error.message() };
    if (files.empty())
        return Error{ path + ": the folder holds no " + kKinds + " file, so there is nothing to calibrate on" };
    std::sort(files.begin(), files.end());
    return files;
}

struct Wanted {
    std::string name;
    std::vector<int64_t> shape; // empty where the trace had no sample input
    std::string dtype;
    bool required = true;
};

std::vector<Wanted> wantedInputs(const GraphModule &gm)
{
    std::vector<Wanted> out;
    for (NodeId id : gm.graph.placeholders()) {
        const Node &n = gm.graph[id];
        if (pinnedValue(gm.graph, id))
            continue;
        Wanted w{ n.name, {}, "float32", n.args.empty() && !n.target.starts_with('*') };
        for (const InputSpec &spec : gm.provenance.inputs)
            if ((spec.name == n.name || spec.name == n.target) && !spec.dtype.empty()) {
                w.shape = spec.shape;
                w.dtype = spec.dtype;
            }
        if (w.shape.empty() && n.meta) {
            w.shape = n.meta->shape;
            w.dtype = dtypeName(n.meta->dtype);
        }
        if (w.dtype.starts_with("torch."))
            w.dtype.erase(0, 6);
        out.push_back(std::move(w));
    }
    return out;
}

// Takes the inputs out of a file's arrays: by name where every required input is there, else in order.
Status pick(NamedTensors arrays, const std::vector<Wanted> &wanted, const std::string &file, std::vector<Tensor> &inputs,
    std::map<std::string, Tensor> &extra)
{
    auto named = [&](const std::string &name) {
        return std::find_if(arrays.begin(), arrays.end(), [&](const auto &a) { return a.first == name; });
    };
    const bool byName = std::all_of(
        wanted.begin(), wanted.end(), [&](const Wanted &w) { return !w.required || named(w.name) != arrays.end(); });
    for (const Wanted &w : wanted) {
        auto it = byName ? named(w.name) : arrays.begin();
        if (it == arrays.end()) {
            if (w.required)
                return Error{ file + ": it holds no array for input " + w.name + "; give one array for each of the model's "
                    + std::to_string(wanted.size()) + " inputs" };
            break;
        }
        inputs.push_back(it->second);
        arrays.erase(it);
    }
    for (auto &[name, t] : arrays)
        extra[name] = std::move(t);
    return {};
}

// "float32 Nx1x8x8"
std::string described(const std::string &dtype, std::vector<int64_t> shape)
{
    std::string text = dtype + " N";
    for (size_t d = 1; d < shape.size(); ++d)
        text += "x" + std::to_string(shape[d]);
    return text;
}

Result<Tensor> checked(const Tensor &t, const Wanted &w, const std::string &file)
{
    const bool sameShape = w.shape.empty()
        || (t->sizes.size() == w.shape.size() && std::equal(t->sizes.begin() + 1, t->sizes.end(), w.shape.begin() + 1));
    const bool narrows = t->dtype == DType::Float64 && w.dtype == "float32";
    if (t->sizes.empty() || !sameShape || (dtypeName(t->dtype) != w.dtype && !narrows))
        return Error{ file + ": the array for input " + w.name + " is " + std::string(dtypeName(t->dtype)) + " " + t->shapeText()
            + ", and the model takes " + described(w.dtype, w.shape)
            + " (N samples); convert the data or trace with such an input" };
    if (!narrows)
        return t;
    const std::vector<double> values = toDoubles(*t);
    return makeFloat(t->sizes, std::vector<float>(values.begin(), values.end()));
}

} // namespace

Result<DataSet> openData(const std::string &path, const GraphModule &gm)
{
    auto files = dataFiles(path);
    if (!files)
        return files.error();
    const std::vector<Wanted> wanted = wantedInputs(gm);
    if (wanted.empty())
        return Error{ path + ": the graph has no inputs, so there is nothing to give it" };
    std::vector<std::vector<Tensor>> parts(wanted.size());
    std::map<std::string, std::vector<Tensor>> extras;
    for (const std::string &file : *files) {
        auto arrays = readArrays(file);
        if (!arrays)
            return arrays.error();
        std::vector<Tensor> inputs;
        std::map<std::string, Tensor> extra;
        if (Status s = pick(std::move(*arrays), wanted, file, inputs, extra); !s)
            return s.error();
        for (size_t i = 0; i < inputs.size(); ++i) {
            auto t = checked(inputs[i], wanted[i], file);
            if (!t)
                return t.error();
            if ((*t)->sizes[0] != inputs[0]->sizes[0])
                return Error{ file + ": input " + wanted[i].name + " has " + std::to_string((*t)->sizes[0]) + " samples, and "
                    + wanted[0].name + " has " + std::to_string(inputs[0]->sizes[0]) + "; give as many of each" };
            parts[i].push_back(*t);
        }
        for (auto &[name, t] : extra)
            extras[name].push_back(std::move(t));
    }
    DataSet data;
    data.source = path;
    const auto places = gm.graph.placeholders();
    for (size_t i = 0; i < places.size(); ++i)
        if (const auto pinned = pinnedValue(gm.graph, places[i]))
            data.pinned[i] = *pinned;
    for (size_t i = 0; i < parts.size() && !parts[i].empty(); ++i) {
        if (parts[i].size() != files->size())
            return Error{ path + ": only some of its files have an array for input " + wanted[i].name
                + "; give it in all or none" };
        auto whole = catRows(parts[i]);
        if (!whole)
            return Error{ path + ": " + whole.message() };
        data.inputs.push_back(*whole);
    }
    data.samples = uint64_t(data.inputs[0]->sizes[0]);
    if (data.samples == 0)
        return Error{ path + ": it holds no samples (the first axis is empty), so there is nothing to calibrate on" };
    for (const auto &[name, list] : extras)
        if (list.size() == files->size())
            if (auto whole = catRows(list))
                data.extra[name] = *whole;
    return data;
}

Result<std::vector<Arg>> rowsOf(const DataSet &data, uint64_t begin, uint64_t end)
{
    std::vector<Arg> out;
    auto pinnedHere = [&] {
        for (auto it = data.pinned.find(out.size()); it != data.pinned.end(); it = data.pinned.find(out.size()))
            out.push_back(it->second);
    };
    for (const Tensor &t : data.inputs) {
        pinnedHere();
        auto rows = sliceRows(t, int64_t(begin), int64_t(end));
        if (!rows)
            return rows.error();
        out.emplace_back(*rows);
    }
    pinnedHere();
    return out;
}

std::string graphHash(const GraphModule &gm)
{
    std::string all = canonicalText(gm.graph);
    for (const std::string &path : partsOf(gm))
        all += path + graphHash(*gm.modules.find(path)->graph);
    uint64_t hash = 0xcbf29ce484222325; // FNV-1a
    for (const char c : all)
        hash = (hash ^ uint8_t(c)) * 0x100000001b3;
    std::string text;
    for (int shift = 60; shift >= 0; shift -= 4)
        text += "0123456789abcdef"[hash >> shift & 15];
    return text;
}

Result<Calibration> calibrate(const GraphModule &gm, const DataSet &data, const CalibrateOptions &options)
{
    using Clock = std::chrono::steady_clock;
    auto interpreter = Interpreter::create(gm);
    if (!interpreter)
        return interpreter.error();
    Calibration result;
    result.modelText = graphHash(gm);
    using ByNode = std::unordered_map<NodeId, TensorStats *>; // of the nodes that have given a float tensor
    ByNode stats;
    std::map<std::string, ByNode> statsInside;
    const auto observe = [&result](ByNode &seen, const std::string &prefix, const Node &n, const Arg &value) {
        const Tensor *t = value.as<Tensor>();
        if (!t || !*t || !isFloatingPoint((*t)->dtype) || n.op == Opcode::Output)
            return;
        TensorStats *&s = seen[n.id];
        if (!s)
            s = &result.nodes[prefix + n.name];
        s->add(**t);
    };
    RunOptions run;
    run.cancel = options.cancel;
    run.modules = options.modules;
    run.observer = [&](NodeId id, const Arg &value) { observe(stats, "", gm.graph[id], value); };
    run.inside = [&](const std::string &path, NodeId id, const Arg &value) {
        observe(statsInside[path], path + "/", gm.modules.find(path)->graph->graph[id], value);
    };
    const uint64_t total = options.samples ? std::min(options.samples, data.samples) : data.samples;
    const uint64_t batch = std::max<uint64_t>(options.batch, 1);
    const auto start = Clock::now();
    for (uint64_t done = 0; done < total;) {
        if (options.cancel && *options.cancel)
            return Error{ Interpreter::kCancelled };
        const uint64_t next = std::min(done + batch, total);
        const auto inputs = rowsOf(data, done, next);
        if (!inputs)
            return inputs.error();
        if (auto out = interpreter->run(*inputs, run); !out) {
            if (out.message() == Interpreter::kCancelled)
                return out.error();
            return Error{ out.message() + " (samples " + std::to_string(done) + " to " + std::to_string(next - 1) + " of "
                + data.source + ")" };
        }
        done = next;
        result.samples = done;
        ++result.batches;
        if (options.progress) {
            const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
            options.progress({ done, total, seconds / double(done) * double(total - done) });
        }
    }
    return result;
}

} // namespace fb
