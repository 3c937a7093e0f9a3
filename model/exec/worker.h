// Fuseboard: what only Python can run, run by Python. GPL-3.0-or-later.
//
// A Worker is a process of the user's own interpreter with the user's model in it (resources/python/fuseboard_worker.py),
// started on the user's command only. A call goes out as one line of text with the tensors in memory that both processes map,
// and the answer comes back the same way; it is a stranger's, and every size in it is checked. The process never outlives
// this one, and whatever becomes of it is one sentence on the node that called.
#pragma once

#include <memory>
#include <string>

#include "model/exec/interpreter.h"

namespace fb
{

struct WorkerOptions {
    std::string python; // the user's interpreter
    std::string script; // where fuseboard_worker.py is
    std::string source; // the user's model: "net.py:make"
    double timeout = 300; // seconds that a call, or loading the model, may take
};

// Where a model does not trace as a whole, its graph is one call of the opaque module "model", and those submodules that trace
// stand in the module table as graphs that no node calls.
bool isPartial(const GraphModule &gm);
std::vector<std::string> partsOf(const GraphModule &gm); // "model.backbone"

class Worker : public ModuleRunner
{
public:
    explicit Worker(WorkerOptions options);
    ~Worker() override; // ends the process

    // Returns when the model is loaded. Calls start a worker that does not run (any more) by themselves.
    Status start(const CancelFlag *cancel = nullptr);

    // The module has the tensors of `gm` while it runs. Submodules of it that are graphs of their own run here (see partsOf).
    // From any thread, one call at a time.
    Result<Arg> run(const GraphModule &gm, const std::string &path, const ArgList &args, const Kwargs &kwargs,
        const RunOptions &options) override;
    // One of the source's own, or one that what it imports has torch.fx.wrap keep; others are refused.
    Result<Arg> runFunction(
        const std::string &qualifiedName, const ArgList &args, const Kwargs &kwargs, const RunOptions &options) override;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace fb
