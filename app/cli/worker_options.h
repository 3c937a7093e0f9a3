// Fuseboard: the options of the commands that may need Python to run a model. GPL-3.0-or-later.
#pragma once

#include <CLI/CLI.hpp>

#include "app/document/python_worker.h"

namespace fb::cli
{

void addWorkerOptions(CLI::App *command, WorkerRequest *request);

// The worker for `gm`, with the model loaded; null where none is needed or was asked for.
Result<std::shared_ptr<Worker>> startedWorker(const GraphModule &gm, const std::string &file, const WorkerRequest &request);

} // namespace fb::cli
