// Fuseboard: calibration statistics that merge exactly. GPL-3.0-or-later.
//
// A histogram whose bins are fixed by the number format: a float32 falls into the bin of its top 16 bits (sign, exponent,
// 7 bits of mantissa). There is no range to guess, counts add in any order, and inf and nan are counted apart. Exact min,
// max, count and sum (compensated) stand beside it. State is fixed size (512 KiB a tensor) however long the run.
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

namespace fb {

constexpr int kHistogramBins = 1 << 16;

struct TensorStats {
    std::vector<uint64_t> bins;            // kHistogramBins, or empty before the first value; non-finite values are not in it
    uint64_t count = 0;                    // finite elements
    uint64_t nan = 0, positiveInf = 0, negativeInf = 0;
    float min = 0, max = 0;                // of finite elements; meaningful when count > 0
    double sum = 0, sumSquares = 0;        // of finite elements, per batch pairwise, exactly reproducible for one run
    std::vector<float> channelMin, channelMax;   // along axis 1, where the tensor has one and its size is stable
    std::string dtype;                     // of the tensor seen

    double mean() const { return count ? sum / double(count) : 0; }
    void add(const TensorData &t);         // float tensors only; others are ignored
    void merge(const TensorStats &other);
    bool operator==(const TensorStats &) const = default;
};

// Lower edge of a bin as a float, and the value range [lo, hi) of the values in it ordered on the number line.
std::pair<float, float> binRange(int bin);
// The histogram rebinned over [lo, hi] into n equal bins (counts are spread over bins that a fixed bin overlaps), for plots.
std::vector<double> rebin(const TensorStats &s, double lo, double hi, int n);

struct Calibration {
    std::map<std::string, TensorStats> nodes;     // by node name: every node that gave a float tensor
    uint64_t samples = 0, batches = 0;
    std::string modelText;                        // hash of the graph's text these belong to
    void merge(const Calibration &other);
    bool operator==(const Calibration &) const = default;
};

struct CalibrationProgress { uint64_t done = 0, total = 0; double secondsLeft = 0; };

struct CalibrateOptions {
    uint64_t batch = 1;                            // samples per forward
    uint64_t samples = 0;                          // 0: all
    const CancelFlag *cancel = nullptr;
    std::function<void(const CalibrationProgress &)> progress;
};

// A data set: for each input one tensor whose first axis is the sample. From a .npy / .npz / .safetensors file or a folder
// of them (concatenated in name order). Members are matched to placeholders by name, else by order; extra ones (labels) are
// kept in `extra`.
struct DataSet {
    std::vector<Tensor> inputs;                    // one per placeholder
    std::map<std::string, Tensor> extra;
    uint64_t samples = 0;
    std::string source;
};
Result<DataSet> openData(const std::string &path, const GraphModule &gm);

// Runs the float graph over the data and collects statistics on every float value. nan and inf are counted and kept out.
Result<Calibration> calibrate(const GraphModule &gm, const DataSet &data, const CalibrateOptions &options);

Result<Calibration> readStats(const std::string &path);
Status writeStats(const Calibration &c, const std::string &path);     // equal calibrations give equal bytes

} // namespace fb
