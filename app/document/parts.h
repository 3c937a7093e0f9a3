// Fuseboard: quantizing the submodules that trace, where the model as a whole does not. GPL-3.0-or-later.
//
// Each part of a partial graph (worker.h) is fused, calibrated and converted as a graph of its own, on what the user's model
// gives it while that runs in Python. What is exported goes into the user's own model: DIR has a folder for each part and a
// model.py with apply(model).
#pragma once

#include <map>
#include <string>

#include "app/document/workflow.h"
#include "model/exec/worker.h"

namespace fb
{

// By path in the module table ("model.backbone").
template <class T> using ByPart = std::map<std::string, T>;

std::string pathInModel(const std::string &part); // "backbone"
// "23.1 % of the parameters, 81.0 % of the multiply-adds", of the whole model; empty where that is not known.
std::string shareText(const GraphModule &part);

void replacePart(GraphModule &gm, const std::string &path, std::shared_ptr<const GraphModule> graph);

// Fuses every part where it stands.
Result<ByPart<PassReport>> fuseParts(GraphModule &gm);

// From statistics of the whole: what calibrating the part by itself would have given.
Calibration statisticsOf(const Calibration &all, const GraphModule &gm, const std::string &part);

// Runs the model over the data, with the float parts in it, and the int8 parts beside them on the same inputs.
struct PartEvaluation {
    Evaluation evaluation;
    std::vector<Arg> sample; // what the part was first called with
};
Result<ByPart<PartEvaluation>> evaluateParts(const GraphModule &gm, const ByPart<std::shared_ptr<const QuantResult>> &converted,
    const std::string &backend, const DataSet &data, ModuleRunner &modules, const Progress &progress = {},
    const CancelFlag *cancel = nullptr);

// `requests` have everything but their directories. Error: a part whose name cannot be a folder's, or what exportFolder says.
Status exportParts(const ByPart<ExportRequest> &requests, const std::string &directory);

} // namespace fb
