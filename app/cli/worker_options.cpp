#include "app/cli/worker_options.h"

namespace fb::cli
{

void addWorkerOptions(CLI::App *command, WorkerRequest *request)
{
    command->add_flag("--worker", request->wanted, "run what only Python can run in your Python");
    command->add_option("--python", request->python, "the Python of your environment, for --worker");
    command->add_option("--source", request->source, "file.py:name that FILE was traced from, for --worker (as FILE says)");
    command->add_option("--worker-timeout", request->timeout, "seconds that one call into Python may take (300)")
        ->check(CLI::PositiveNumber);
}

Result<std::shared_ptr<Worker>> startedWorker(const GraphModule &gm, const std::string &file, const WorkerRequest &request)
{
    auto worker = workerFor(gm, file, request);
    if (worker && *worker)
        if (const Status started = (*worker)->start(); !started)
            return Error{ file + ": " + started.message() };
    return worker;
}

} // namespace fb::cli
