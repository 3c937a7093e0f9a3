// Fuseboard: when and where the Python worker is started. GPL-3.0-or-later.
//
// Only on the user's command. The archive names its source without a folder, so that is looked for where Fuseboard was started
// and beside the archive, unless the user names it.
#pragma once

#include <memory>
#include <string>

#include "model/exec/worker.h"

namespace fb
{

struct WorkerRequest {
    bool wanted = false; // so are a python and a source
    std::string python, source; // empty: as pythonProgram() finds it, and as the archive names it
    double timeout = WorkerOptions().timeout;
};

// Whether the graph calls a module that only Python can run.
bool needsPython(const GraphModule &gm);

// "net.py:make" that `gm`, opened from `file`, was traced from, with the file where it is.
Result<std::string> sourceOf(const GraphModule &gm, const std::string &file);

// A worker with the model that `gm`, opened from `file`, was traced from; not started. Null where none is needed or wanted.
Result<std::shared_ptr<Worker>> workerFor(const GraphModule &gm, const std::string &file, const WorkerRequest &request);

} // namespace fb
