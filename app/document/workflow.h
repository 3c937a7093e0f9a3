// Fuseboard: the steps from a float graph to an exported folder, shared by window and command line. GPL-3.0-or-later.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/exec/statistics.h"
#include "passes/quantize.h"

namespace fb
{

// How the float and the int8 model do on data with labels, and how far their outputs are apart.
struct Evaluation {
    double accuracyFloat = -1, accuracyInt8 = -1; // share of right top-1 answers; -1: the data has no labels
    uint64_t samples = 0;
    double sqnrDb = 0; // of the int8 outputs against the float ones
    std::string data; // the file's name
};

std::string decibelText(double sqnrDb); // "30.3 dB"; "no error" where nothing differs; nan: of outputs that are not finite

// SQNR of values against reference values, over everything that is added.
class SignalToNoise
{
public:
    void add(const Arg &reference, const Arg &value); // all tensors in them
    double decibels() const; // infinite where nothing differs

private:
    double signal_ = 0, noise_ = 0;
};

using Progress = std::function<void(double fraction)>;

// Runs both graphs over the data. Labels are an integer member of the data named "labels", "label", "y" or "targets".
Result<Evaluation> evaluateModels(const GraphModule &floatGraph, const GraphModule &int8Graph, const std::string &backend,
    const DataSet &data, const CancelFlag *cancel = nullptr, const Progress &progress = {}, ModuleRunner *modules = nullptr);

// Plans and converts as one checked pass; `fused` is untouched. `state` of its rows says what runs in int8.
Result<std::shared_ptr<const QuantResult>> convertModel(
    const GraphModule &fused, const QuantConfig &config, const Calibration &calibration, const CancelFlag *cancel = nullptr);

// Everything an export folder is made from.
struct ExportRequest {
    std::shared_ptr<const GraphModule> floatGraph;
    std::shared_ptr<const QuantResult> converted; // null: the float form is exported
    std::shared_ptr<const Calibration> calibration; // may be null for the float form
    QuantConfig config;
    std::vector<std::string> edits; // the session's edits in order, each one entry of EDITS.json
    PassReport fused; // what was fused and what was kept
    std::optional<Evaluation> evaluation;
    std::string modelPath, dataPath, statsPath; // where they came from; only the file names are written
    std::string directory;
    std::vector<Arg> sample; // stored in the folder for its check; empty: the data's first, else a seeded random one
    uint64_t batch = 1; // samples per forward in calibration
    std::shared_ptr<ModuleRunner> worker; // null: a graph that only Python can run is exported without a sample
    const CancelFlag *cancel = nullptr;
};

// Writes model.py, weights.pt, report.json and recipe.json.
Status exportFolder(const ExportRequest &request);
std::string reportJson(const ExportRequest &request);
std::string recipeJson(const ExportRequest &request);

// SHA-256 of a file as hex, empty where it cannot be read.
std::string fileHash(const std::string &path);

} // namespace fb
