// Float forward against forward with a histogram on every activation, turn about in one process: `bench_calibrate FUSED.fxt SHAPE
// ROUNDS` prints the medians in milliseconds and the median of the rounds' ratios as JSON. GPL-3.0-or-later.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "model/exec/interpreter.h"
#include "model/exec/statistics.h"
#include "model/io/fxt.h"

using namespace fb;

namespace
{

double median(std::vector<double> v)
{
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

template <class Work> double milliseconds(Work work)
{
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 4) {
        std::fprintf(stderr, "usage: bench_calibrate FUSED.fxt SHAPE ROUNDS\n");
        return 2;
    }
    if (const char *threads = std::getenv("OMP_NUM_THREADS"))
        setThreads(std::atoi(threads));
    const auto gm = readFxt(argv[1]);
    const auto input = randomTensor(argv[2], 0);
    if (!gm || !input) {
        std::fprintf(stderr, "bench_calibrate: %s\n", (gm ? input.message() : gm.message()).c_str());
        return 1;
    }
    auto interpreter = Interpreter::create(*gm);
    if (!interpreter) {
        std::fprintf(stderr, "bench_calibrate: %s\n", interpreter.message().c_str());
        return 1;
    }
    std::vector<TensorStats> stats(gm->graph.nextId());
    RunOptions counting;
    uint64_t values = 0;
    counting.observer = [&](NodeId id, const Arg &value) {
        if (const Tensor *t = value.as<Tensor>(); t && *t && gm->graph[id].op != Opcode::Output) {
            stats[id.value].add(**t);
            values += uint64_t((*t)->numel());
        }
    };
    std::vector<double> plain, counted, ratios;
    for (int round = -2; round < std::atoi(argv[3]); ++round) {
        const double a = milliseconds([&] { (void)interpreter->run({ *input }); });
        values = 0;
        const double b = milliseconds([&] { (void)interpreter->run({ *input }, counting); });
        if (round < 0)
            continue; // warm
        plain.push_back(a);
        counted.push_back(b);
        ratios.push_back(b / a);
    }
    std::printf("{\"float\": %.3f, \"calibrate\": %.3f, \"ratio\": %.3f, \"values\": %llu}\n", median(plain), median(counted),
        median(ratios), static_cast<unsigned long long>(values));
    return 0;
}
