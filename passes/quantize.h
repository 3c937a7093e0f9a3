// Fuseboard: prepare and convert, torch.ao's prepare_fx / convert_fx as plan, statistics and rewrite. GPL-3.0-or-later.
//
// Planning says for every node of a fused graph whether it will run in int8 and why not, and which values are observed together.
// Observation needs no change of the graph: statistics are collected on every value. Converting rewrites the graph into
// torch.ao's quantized modules and operators. Semantics: torch/ao/quantization/fx/prepare.py, convert.py,
// _lower_to_native_backend.py and the backend configs; known faults of those (cases.md) are not copied.
//
// The converted graph holds: call_module `torch.ao.nn.quantized.modules.conv.Conv2d`, `...linear.Linear`,
// `torch.ao.nn.intrinsic.quantized.modules.conv_relu.ConvReLU2d`, `...linear_relu.LinearReLU` (facts of the float module plus
// `scale` (float) and `zero_point` (int); tensors `weight` (qint8), `bias` (float32, may be absent)); call_function
// `torch.quantize_per_tensor(x, scale, zero_point, torch.quint8)`, `torch.ops.quantized.add`, `add_relu`, `mul`, ...; call_method
// `dequantize`; and ops that take quantized tensors as they are.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/exec/statistics.h"
#include "passes/pass.h"

namespace fb
{

struct QuantConfig {
    std::string backend = "x86"; // resources/backends/NAME.json
    std::set<std::string> floatNodes; // kept in float by choice: node names,
    std::set<std::string> floatModules; // module paths (with all below),
    std::set<std::string> floatTypes; // module classes or function names
    bool operator==(const QuantConfig &) const = default;
};

enum class QuantState : uint8_t { Int8, FloatByChoice, FloatUnsupported, Leaf, NotQuantizable /* ints, sizes, inputs */ };

struct NodeQuant {
    QuantState state = QuantState::NotQuantizable;
    std::string reason; // one sentence why it stays float; empty for Int8
    std::string pattern; // "ConvReLU2d", "add + relu"
    int group = -1; // values with one group share one observer; -1: not observed
    std::optional<QuantParams> fixed; // fixed qparams (sigmoid ...), else chosen by the observer
    NodeId last; // Int8: the node that gives the pattern's value (itself, or the ReLU that joins it)
};

struct QuantPlan {
    QuantConfig config;
    std::map<NodeId, NodeQuant> nodes; // every node of the graph it was made for
    bool reduceRange = false;
    bool perChannelWeights = true;
};

std::vector<std::string> quantBackends();
Result<QuantPlan> planQuantization(const GraphModule &fused, const QuantConfig &config);

// MinMaxObserver.calculate_qparams of torch.ao for quint8 per-tensor affine: range includes zero, eps floor, quant range 0..255
// or 0..127.
QuantParams minMaxQParams(float min, float max, bool reduceRange);
// Symmetric qint8 weights, per tensor (axis -1) or per channel, as torch.ao's (PerChannel)MinMaxObserver.
Result<QuantParams> weightQParams(const Tensor &weight, int axis);

// What happened to one node: a row of report.json and of the Layers table.
struct QuantRow {
    // State: "int8", "float by choice", "float", "leaf", "not quantizable", and "input", "constant", "output", which are no
    // operators.
    std::string node, op, dtype, state, reason, observer;
    bool int8() const { return state == "int8"; }
    bool staysFloat() const { return state.starts_with("float") || state == "leaf"; }
    double scale = 0;
    int64_t zeroPoint = 0;
    float min = 0, max = 0;
    int group = -1;
    uint64_t nonFinite = 0; // nan and inf seen in calibration (kept out)
    std::vector<double> weightScales;
    std::vector<std::string> flags; // "constant zero", "nan or inf in calibration data", ...
    std::string converted; // the node of the converted graph that gives this value
};

struct QuantResult {
    GraphModule graph;
    PassReport report;
    std::vector<QuantRow> rows;
};

// Refuses, naming the nodes, when an observed value has no statistics (case QO-06).
Result<QuantResult> convert(const GraphModule &fused, const QuantPlan &plan, const Calibration &calibration);

} // namespace fb
