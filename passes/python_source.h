// Fuseboard: a GraphModule as a Python file of nn.Module classes. GPL-3.0-or-later. Private to passes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "passes/export_python.h"

namespace fb
{

// A module of an int8 graph that holds a packed weight, and scale and zero point of what it gives.
inline bool isQuantizedWeight(const ModuleInfo &m)
{
    return m.className.find(".quantized.modules.") != std::string::npos
        && m.className.find(".functional_modules.") == std::string::npos;
}

inline bool inStateDict(const TensorEntry &e)
{
    return e.parameter || e.persistent;
}

// Where weights.pt keeps a tensor: what state_dict() leaves out stands apart from it.
inline std::string weightsKey(const std::string &name, bool persistent)
{
    return persistent ? name : "__buffer__." + name;
}

struct PythonSource {
    std::string text;
    // State that the graph holds as literals (scales of functions, tensor constants), under their keys in weights.pt.
    std::vector<std::pair<std::string, Tensor>> state;
    std::vector<std::pair<std::string, std::string>> scripts; // module path -> file name of its TorchScript
};

Result<PythonSource> writePython(const GraphModule &gm, const ExportOptions &options);

} // namespace fb
