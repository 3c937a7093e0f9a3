// Fuseboard: running a graph with ATen. GPL-3.0-or-later.
//
// One loop for everything. Shape propagation, statistics, profiling and sensitivity are observers that see (node, value).
// Values die after their last use. Operators are called boxed through the dispatcher by schema; the only op knowledge is
// resources/ops.json and the schema itself. Runs under no_grad and inference rules of an eval() model.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/ir/module.h"

namespace fb
{

// Set from any thread; checked between nodes.
using CancelFlag = std::atomic<bool>;

// A value as an Arg whose leaves may be Tensors. Tensors wrap ATen memory without a copy, and must not be kept by an
// observer that does not want to keep the memory.
using Observer = std::function<void(NodeId node, const Arg &value)>;

struct RunOptions;

// Runs what only Python can, modules of the kind Opaque and functions of the user's own: see worker.h. Called on the thread of
// Interpreter::run.
class ModuleRunner
{
public:
    virtual ~ModuleRunner() = default;
    virtual Result<Arg> run(
        const GraphModule &gm, const std::string &path, const ArgList &args, const Kwargs &kwargs, const RunOptions &options)
        = 0;
    virtual Result<Arg> runFunction(
        const std::string &qualifiedName, const ArgList &args, const Kwargs &kwargs, const RunOptions &options)
        = 0;
};

struct RunOptions {
    Observer observer = {};
    const CancelFlag *cancel = nullptr;
    std::string engine = {}; // quantized engine ("x86", "qnnpack"); empty: leave as it is
    std::optional<uint64_t> seed = {}; // torch.manual_seed; none: random nodes go on where they were
    ModuleRunner *modules = nullptr; // null: an opaque module is an error
    std::function<void(const std::string &path, NodeId node, const Arg &value)> inside = {}; // observer of graphs in those
};

// Prepared once (modules and weights bound, prepacking done), run many times. Not thread safe; holds its own snapshot.
class Interpreter
{
public:
    static Result<Interpreter> create(const GraphModule &gm);
    Interpreter(Interpreter &&) noexcept;
    Interpreter &operator=(Interpreter &&) noexcept;
    ~Interpreter();

    // One Arg per placeholder in order; those with defaults may be left out at the end.
    // Errors begin with the node that was being executed. Cancelled: the message is exactly kCancelled.
    Result<Arg> run(const std::vector<Arg> &inputs, const RunOptions &options = {});
    // As Python calls the graph's forward (bind.h).
    Result<Arg> call(const ArgList &args, const Kwargs &kwargs, const RunOptions &options = {});

    static constexpr const char *kCancelled = "cancelled";

private:
    using Inputs = std::vector<std::optional<Arg>>; // by placeholder; none: its default
    struct Impl;
    Result<Arg> runBound(const Inputs &inputs, const RunOptions &options);
    explicit Interpreter(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

// Names of nodes that cannot be executed, each with the reason ("blk: custom module Gate does not script: ...").
struct NotExecutable {
    std::string node, reason;
    bool inPython = false; // a ModuleRunner can
};
std::vector<NotExecutable> notExecutable(const GraphModule &gm);

// Sets Node::meta of every node: on meta tensors, which have shapes and no memory, where every operator of the graph knows them
// (nothing in it asks for a value), else from a run on `inputs`.
Status propagateShapes(
    GraphModule &gm, const std::vector<Arg> &inputs, const CancelFlag *cancel = nullptr, ModuleRunner *modules = nullptr);

// How the shapes that propagateShapes has found on the same inputs follow the batch: for a node whose sizes change with the first
// dimension of the inputs, the multiple of it that each dimension is, 0 where it does not change. Empty where the graph does not
// run at another batch size, where the inputs do not agree on a first dimension, or where something else changes with it.
std::map<NodeId, std::vector<int64_t>> batchDimensions(const GraphModule &gm, const std::vector<Arg> &inputs);
// "Nx64x56x56", "4Nx10"; the plain numbers without multiples.
std::string shapeText(const std::vector<int64_t> &shape, const std::vector<int64_t> &multiples);

// SHAPE of cli.md ("1x3x224x224:int64") as a seeded random tensor: randn for floats, small integers else, from torch's
// generator seeded with `seed` (successive calls with index 0, 1, .. continue the stream).
std::string inputText(const InputSpec &spec); // SHAPE of a sample input
Result<Tensor> randomTensor(std::string_view shape, uint64_t seed, int index = 0);

void setThreads(int n); // at::set_num_threads
std::string torchVersion(); // of the loaded LibTorch
std::vector<std::string> quantizedEngines();

} // namespace fb
