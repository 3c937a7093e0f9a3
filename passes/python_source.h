// Fuseboard: a GraphModule as a Python file of nn.Module classes. GPL-3.0-or-later. Private to passes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "passes/export_python.h"

namespace fb
{

struct PythonSource {
    std::string text;
    // State that the graph holds as literals (scales of functions, tensor constants), under the keys that model.py registers.
    std::vector<std::pair<std::string, Tensor>> state;
    std::vector<std::pair<std::string, std::string>> scripts; // module path -> file name of its TorchScript
};

Result<PythonSource> writePython(const GraphModule &gm, const ExportOptions &options);

} // namespace fb
