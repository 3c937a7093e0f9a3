// The interpreter's half of bench_exec.py. GPL-3.0-or-later.
//
// Each line of standard input, "FILE SHAPE", is answered by one line: milliseconds of one run (after one that is not counted for
// a file seen first) and the process's peak memory in MB.
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>

#include <sys/resource.h>

#include "model/exec/interpreter.h"
#include "model/io/fxt.h"

using namespace fb;

int main(int argc, char **argv)
{
    setThreads(argc > 1 ? std::stoi(argv[1]) : 2);
    std::map<std::string, Interpreter> ready;
    std::string file, shape;
    while (std::cin >> file >> shape) {
        const auto input = randomTensor(shape, 1);
        auto it = ready.find(file);
        const bool first = it == ready.end();
        if (first) {
            const auto gm = readFxt(file);
            auto interpreter = gm ? Interpreter::create(*gm) : Result<Interpreter>(gm.error());
            if (!interpreter || !input) {
                std::fprintf(stderr, "%s\n", (interpreter ? input.error() : interpreter.error()).message.c_str());
                return 1;
            }
            it = ready.emplace(file, std::move(*interpreter)).first;
        }
        double milliseconds = 0;
        for (int i = first ? 0 : 1; i < 2; ++i) {
            const auto start = std::chrono::steady_clock::now();
            const auto r = it->second.run({ Arg(*input) });
            milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
            if (!r) {
                std::fprintf(stderr, "%s\n", r.message().c_str());
                return 1;
            }
        }
        rusage usage = {};
        getrusage(RUSAGE_SELF, &usage);
        std::printf("%.4f %ld\n", milliseconds, usage.ru_maxrss / 1024);
        std::fflush(stdout);
    }
    return 0;
}
