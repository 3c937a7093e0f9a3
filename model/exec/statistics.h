// Fuseboard: calibration statistics that merge exactly. GPL-3.0-or-later.
//
// A histogram whose bins are fixed by the number format: a float32 falls into the bin of its top 16 bits (sign, exponent,
// 7 bits of mantissa). There is no range to guess, counts add in any order, and inf and nan are counted apart. Exact min,
// max, count and sums stand beside it. State is fixed size (512 KiB a tensor) however long the run, and everything in it
// adds in any order: shards of a data set merge to the very bytes that one run gives.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/exec/interpreter.h"
#include "model/ir/module.h"

namespace fb
{

constexpr int kHistogramBins = 1 << 16;

// A sum of doubles that are multiples of 2^-298 (sums and sums of squares of floats are), held as one wide integer: nothing is
// rounded, so the order of adding does not matter.
class ExactSum
{
public:
    void add(double v);
    void add(const ExactSum &other);
    operator double() const; // rounded once
    bool operator==(const ExactSum &) const = default;
    std::array<uint32_t, 20> limbs{}; // two's complement, lowest first
};

struct TensorStats {
    std::vector<uint64_t> bins; // kHistogramBins, or empty before the first value; non-finite values are not in it
    uint64_t count = 0; // finite elements
    uint64_t nan = 0, positiveInf = 0, negativeInf = 0;
    float min = 0, max = 0; // of finite elements; meaningful when count > 0
    ExactSum sum, sumSquares; // of finite elements
    std::vector<float> channelMin, channelMax; // along axis 1, where the tensor has one and its size is stable; an index
                                               // without a finite element has +inf, -inf
    bool channelsVary = false; // its size was not
    std::string dtype; // of the tensor seen; "mixed" where it changed

    double mean() const { return count ? double(sum) / double(count) : 0; }
    void add(const TensorData &t); // float tensors only; others are ignored
    void merge(const TensorStats &other);
    bool operator==(const TensorStats &) const = default;
};

// Lower edge of a bin as a float, and the value range [lo, hi) of the values in it ordered on the number line.
std::pair<float, float> binRange(int bin);
// The histogram rebinned over [lo, hi] into n equal bins (counts are spread over bins that a fixed bin overlaps), for plots.
std::vector<double> rebin(const TensorStats &s, double lo, double hi, int n);

struct Calibration {
    std::map<std::string, TensorStats> nodes; // by node name: every node that gave a float tensor
    uint64_t samples = 0, batches = 0;
    std::string modelText; // graphHash of the graph that these belong to
    void merge(const Calibration &other);
    bool operator==(const Calibration &) const = default;
};

struct CalibrationProgress {
    uint64_t done = 0, total = 0;
    double secondsLeft = 0;
};

struct CalibrateOptions {
    uint64_t batch = 1; // samples per forward
    uint64_t samples = 0; // 0: all
    const CancelFlag *cancel = nullptr;
    ModuleRunner *modules = nullptr; // of the interpreter
    std::function<void(const CalibrationProgress &)> progress;
};

// A data set: for each input one tensor whose first axis is the sample. From a .npy / .npz / .safetensors file or a folder
// of them (concatenated in name order). Members are matched to placeholders by name, else by order; extra ones (labels) are
// kept in `extra`.
struct DataSet {
    std::vector<Tensor> inputs; // one per placeholder that is not pinned
    std::map<std::string, Tensor> extra;
    uint64_t samples = 0;
    std::string source;
    std::map<size_t, Arg> pinned; // arguments that the trace fixed, by their place among the placeholders
};
// What a run takes for the samples from `begin` to `end`: one argument for each placeholder.
Result<std::vector<Arg>> rowsOf(const DataSet &data, uint64_t begin, uint64_t end);
Result<DataSet> openData(const std::string &path, const GraphModule &gm);

// Of the graph's canonical text: tells whether statistics belong to a graph.
std::string graphHash(const GraphModule &gm);

// Runs the float graph over the data and collects statistics on every float value. nan and inf are counted and kept out.
Result<Calibration> calibrate(const GraphModule &gm, const DataSet &data, const CalibrateOptions &options);

Result<Calibration> readStats(const std::string &path);
Status writeStats(const Calibration &c, const std::string &path); // equal calibrations give equal bytes

} // namespace fb
