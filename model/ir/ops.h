// Fuseboard: what is known about operators, as data. GPL-3.0-or-later.
//
// Rows come from resources/ops.json, turned into a table at build time. A new op is a row there, not a class.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/ir/module.h"

namespace fb
{

enum class Category : uint8_t {
    ConvLinear,
    Normalization,
    Activation,
    Pooling,
    Shape,
    Arithmetic,
    Attention,
    Recurrent,
    Leaf,
    InputOutput,
    Constant,
    Quantize,
    Other
};

std::string_view categoryName(Category c); // "convolution and linear"

struct OpParam {
    std::string_view name;
    std::string_view defaultText; // Python literal; empty where required
};

// One operation under all the names that reach it. `kind` is the semantic kind that passes ask for ("conv2d", "relu",
// "add"): the same for nn.Conv2d, F.conv2d and torch.ops.aten.conv2d.default.
struct OpInfo {
    std::string_view kind;
    Category category = Category::Other;
    std::span<const std::string_view> functions; // qualified names as Node::target holds them
    std::span<const std::string_view> methods;
    std::span<const std::string_view> modules; // class names
    std::span<const OpParam> params; // Python signature of the function (and method, first param is self)
    std::string_view aten; // the ATen operator behind it, "aten::relu"; empty where there is no single one
    std::string_view call; // how the function maps on ATen, an expression over `params` (model/exec/expression.h);
                           // empty: the operator of the function's own name
    std::string_view moduleCall; // the same for a module: over `forward`, its tensors and facts (defaults from `params`);
                                 // empty: `aten` of the forward arguments
    std::span<const OpParam> forward; // parameters of the module's forward
    bool mutates = false; // changes an argument in place: never removed as dead
    bool random = false;
    bool viewOrShape = false; // values unchanged: takes its input's quantization as it is
};

std::span<const OpInfo> allOps();
const OpInfo *findFunction(std::string_view qualifiedName);
const OpInfo *findMethod(std::string_view name);
const OpInfo *findModuleClass(std::string_view className); // accepts short torch.nn names too ("Conv2d")

const OpInfo *opInfo(const GraphModule &gm, const Node &n); // null where unknown
Category categoryOf(const GraphModule &gm, const Node &n);
bool mutatesInput(const GraphModule &gm, const Node &n); // `name_` methods, operator.i*, setitem, out=, inplace=True

// One accessor for all spellings of an op: `arg("stride")` reads the call's argument or the module's fact, filling defaults.
class OpView
{
public:
    OpView(const GraphModule &gm, const Node &n);
    std::string_view kind() const { return info_ ? info_->kind : std::string_view(); }
    const OpInfo *info() const { return info_; }
    const ModuleInfo *module() const { return module_; }
    const Node &node() const { return *node_; }
    std::optional<Arg> arg(std::string_view name) const; // parsed default where the call leaves it out; nullopt: no such argument
    NodeId input() const; // the first tensor input
    Tensor tensor(std::string_view name) const; // weight, bias, running_mean ... of a module or through get_attr
    std::string tensorName(std::string_view name) const; // its fully qualified name, or empty

private:
    const GraphModule *gm_;
    const Node *node_;
    const OpInfo *info_;
    const ModuleInfo *module_;
};

// A Python literal as it stands in a signature: None, True, 1, 1e-05, 'mean', (1, 1). nullopt when it is none of these.
std::optional<Arg> parseLiteral(std::string_view text);

// Title and the one line of what matters for a node box: "Conv2d" and "3x3 s2  64 -> 128".
std::string nodeTitle(const GraphModule &gm, const Node &n);
std::string nodeSummary(const GraphModule &gm, const Node &n);

} // namespace fb
