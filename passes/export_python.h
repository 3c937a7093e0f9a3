// Fuseboard: export as Python that runs in plain torch. GPL-3.0-or-later.
//
// Writes model.py, weights.pt, report.json and recipe.json (cli.md). model.py keeps the module structure as nested classes with
// readable names, imports torch alone (and the user's own leaf classes), defines load(), and checks itself when run.
#pragma once

#include <string>
#include <vector>

#include "passes/quantize.h"

namespace fb
{

struct ExportOptions {
    std::string directory; // made when missing; each file is written beside and renamed
    std::vector<Arg> sampleInputs; // stored, with sampleOutput, for model.py's check
    Arg sampleOutput;
    double tolerance = 0; // of that check: 0 is bit equality (quantized form)
    std::string engine; // quantized engine, empty for a float model
    std::string madeFrom; // name of the opened file, without its folder
    std::vector<std::string> steps; // what was done, one sentence each, for the header and recipe.json
    std::string reportJson, recipeJson; // written as they are
};

Status exportPython(const GraphModule &gm, const ExportOptions &options);
std::string pythonSource(const GraphModule &gm, const ExportOptions &options); // model.py alone

} // namespace fb
