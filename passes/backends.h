// Fuseboard: what a quantization backend can do, as data. GPL-3.0-or-later.
//
// Rows of resources/backends/*.json, which follow torch/ao/quantization/backend_config and _lower_to_native_backend.py. A backend
// names its engine and number ranges and points at a table of operators; private to passes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/ir/module.h"

namespace fb
{

// How an operator becomes int8.
enum class Int8Form : uint8_t {
    Weighted, // a quantized module with a qint8 weight and its output's scale and zero point
    Binary, // torch.ops.quantized.OP(a, b, scale, zero_point)
    Call, // torch.ops.quantized.OP with arguments as `args` lists them
    Same // the operator itself, on quantized tensors
};

struct NameSet {
    std::vector<std::string> modules, functions, methods;
    bool contains(const GraphModule &gm, const Node &n) const;
};

struct Int8Rule {
    std::string op; // "conv2d"
    Int8Form form = Int8Form::Same;
    NameSet names;
    std::string fused; // class of the float module that holds it and a ReLU
    std::string int8, int8Relu; // module class or function of the int8 form, alone and with a ReLU after it
    std::vector<std::pair<std::string, std::string>> params; // of the function form: name and default, "" where required
    std::vector<std::string> args; // of a Call
    bool share = false; // inputs and output are observed together
    bool inference = false; // int8 only in eval mode (dropout)
    int spatial = 0; // dimensions of a convolution
    std::optional<QuantParams> fixed; // output range known in advance
};

struct Backend {
    std::string name, engine;
    bool reduceRange = false, perChannelWeights = false, int32Bias = false;
    std::vector<std::string> contiguous; // operators that the engine gets wrong on any other memory format
    std::vector<Int8Rule> rules;
    NameSet relu, reluAfterBinary; // what fuses behind weighted and norm, behind binary operators
    NameSet metadata; // read a tensor's shape only: no dequantize for them

    const Int8Rule *rule(const GraphModule &gm, const Node &n) const;
};

Result<const Backend *> findBackend(const std::string &name);

// Argument `name` of a call in any spelling: positional, keyword, module fact, or the row's default. nullopt: there is none.
std::optional<Arg> callArg(const GraphModule &gm, const Node &n, const Int8Rule &rule, const std::string &name);

// The argument that holds what is observed going in: the tensor, or the list of tensors of a cat.
std::optional<Arg> activationArg(const GraphModule &gm, const Node &n, const Int8Rule &rule);
std::vector<NodeId> activations(const GraphModule &gm, const Node &n, const Int8Rule &rule);

} // namespace fb
