// Fuseboard: the op registry. GPL-3.0-or-later.
//
// An op has many names: nn.Conv2d, F.conv2d, torch.conv2d, torch.ops.aten.conv2d.default. Rows of resources/ops.json list them;
// the rest follows from how torch spells things: `torch.nn.modules.conv.Conv2d` was `torch.nn.quantized...` in torch 1.13 where
// it is `torch.ao.nn.quantized...` today, an overload is named after the last dot, a method is the function with `self` first.
#include "model/ir/ops.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <unordered_map>

namespace fb
{

namespace
{

#include "ops_table.inc"

using Index = std::unordered_map<std::string_view, const OpInfo *>;

struct Registry {
    Index functions, methods, modules, shortModules, aten;
    Registry()
    {
        for (const OpInfo &op : kOps) {
            for (std::string_view f : op.functions)
                functions.emplace(f, &op);
            for (std::string_view m : op.methods)
                methods.emplace(m, &op);
            for (std::string_view m : op.modules) {
                modules.emplace(m, &op);
                if (m.starts_with("torch.nn.modules."))
                    shortModules.emplace(m.substr(m.rfind('.') + 1), &op);
            }
            if (!op.aten.empty())
                aten.emplace(op.aten, &op);
        }
    }
};

const Registry &registry()
{
    static const Registry r;
    return r;
}

const OpInfo *find(const Index &index, std::string_view key)
{
    const auto it = index.find(key);
    return it == index.end() ? nullptr : it->second;
}

constexpr std::array<std::string_view, 13> kCategories{ "convolution and linear", "normalization", "activation", "pooling",
    "shape and index", "arithmetic", "attention and embedding", "recurrent", "custom leaf", "input and output", "constant",
    "quantization", "other" };

bool lookup(const Kwargs &kwargs, std::string_view name, const Arg *&out)
{
    for (const auto &[k, v] : kwargs)
        if (k == name) {
            out = &v;
            return true;
        }
    return false;
}

// "aten::relu" of torch.ops.aten.relu.default, empty for other functions.
std::string schemaName(std::string_view target)
{
    if (!target.starts_with("torch.ops."))
        return {};
    target.remove_prefix(10);
    const size_t dot = target.find('.');
    if (dot == target.npos)
        return {};
    const std::string_view rest = target.substr(dot + 1);
    return std::string(target.substr(0, dot)) + "::" + std::string(rest.substr(0, rest.find('.')));
}

// Children of a fused module hold the facts: ConvReLU2d's conv is its child 0.
const ModuleInfo *firstChild(const GraphModule &gm, const ModuleInfo &m)
{
    return m.className.find("intrinsic.modules.fused") == std::string::npos ? nullptr : gm.modules.find(joinPath(m.path, "0"));
}

std::string number(const Arg &a)
{
    if (const int64_t *i = a.as<int64_t>())
        return std::to_string(*i);
    if (const auto d = a.toDouble()) {
        std::array<char, 32> text;
        const auto r = std::to_chars(text.data(), text.data() + text.size(), *d);
        return std::string(text.data(), r.ptr);
    }
    if (const auto *s = a.as<std::string>())
        return *s;
    if (const ArgSequence *s = a.sequence()) {
        std::string out;
        for (const Arg &i : s->items)
            out += (out.empty() ? "" : ",") + number(i);
        return out;
    }
    return {};
}

// "3x3"; a single number is repeated for each dimension.
std::string by(const Arg &a, size_t dims)
{
    const auto values = a.toInts();
    if (!values || values->empty())
        return number(a);
    std::string out;
    for (size_t i = 0; i < std::max(values->size() == 1 ? dims : values->size(), size_t(1)); ++i)
        out += (i ? "x" : "") + std::to_string(values->size() == 1 ? values->front() : (*values)[i]);
    return out;
}

size_t dimensions(std::string_view kind)
{
    const size_t d = kind.find_last_of("123");
    return d != kind.npos && kind.substr(d).starts_with(kind[d]) && kind.find('d', d) != kind.npos ? size_t(kind[d] - '0') : 1;
}

bool allEqual(const std::optional<std::vector<int64_t>> &v, int64_t x)
{
    return v && std::all_of(v->begin(), v->end(), [x](int64_t i) { return i == x; });
}

} // namespace

std::string_view categoryName(Category c)
{
    return kCategories[size_t(c)];
}

std::span<const OpInfo> allOps()
{
    return kOps;
}

const OpInfo *findFunction(std::string_view name)
{
    if (const OpInfo *op = find(registry().functions, name))
        return op;
    if (const std::string schema = schemaName(name); !schema.empty())
        return find(registry().aten, schema);
    if (name.starts_with("torch.Tensor."))
        return findMethod(name.substr(13));
    return nullptr;
}

const OpInfo *findMethod(std::string_view name)
{
    return find(registry().methods, name);
}

const OpInfo *findModuleClass(std::string_view name)
{
    if (const OpInfo *op = find(registry().modules, name))
        return op;
    if (name.starts_with("torch.nn.quantized.") || name.starts_with("torch.nn.intrinsic.")) // torch 1.13
        return find(registry().modules, "torch.ao." + std::string(name.substr(6)));
    if (name.starts_with("nn."))
        name.remove_prefix(3);
    return find(registry().shortModules, name);
}

const OpInfo *opInfo(const GraphModule &gm, const Node &n)
{
    switch (n.op) {
    case Opcode::CallFunction:
        return findFunction(n.target);
    case Opcode::CallMethod:
        return findMethod(n.target);
    case Opcode::CallModule: {
        const ModuleInfo *m = gm.moduleOf(n);
        return m && m->kind == ModuleKind::Nn ? findModuleClass(m->className) : nullptr;
    }
    default:
        return nullptr;
    }
}

Category categoryOf(const GraphModule &gm, const Node &n)
{
    switch (n.op) {
    case Opcode::Placeholder:
    case Opcode::Output:
        return Category::InputOutput;
    case Opcode::GetAttr:
        return Category::Constant;
    case Opcode::CallModule:
        if (const ModuleInfo *m = gm.moduleOf(n); m && m->kind != ModuleKind::Nn)
            return Category::Leaf;
        break;
    default:
        break;
    }
    const OpInfo *op = opInfo(gm, n);
    return op ? op->category : Category::Other;
}

namespace
{

// Writes running statistics, or rows of a weight, whatever its schema says.
bool updatesState(const OpView &view)
{
    const auto given = [&](std::string_view name) {
        const auto a = view.arg(name);
        return a && !a->isNone() && !(a->toBool() && !*a->toBool());
    };
    const std::string_view kind = view.kind();
    return ((kind == "batch_norm" || kind == "native_batch_norm") && given("training") && given("running_mean"))
        || (kind == "instance_norm" && given("use_input_stats") && given("running_mean"))
        || (kind.starts_with("embedding") && given("max_norm"));
}

} // namespace

bool mutatesInput(const GraphModule &gm, const Node &n)
{
    if (n.op == Opcode::CallModule) {
        const ModuleInfo *m = gm.moduleOf(n);
        const Arg *inplace = m ? m->attr("inplace") : nullptr;
        return inplace && inplace->toBool().value_or(false);
    }
    if (n.op != Opcode::CallFunction && n.op != Opcode::CallMethod)
        return false;
    if (const OpInfo *op = opInfo(gm, n); op && op->mutates)
        return true;
    if (const Arg *out = n.kwarg("out"); out && !out->isNone())
        return true;
    const OpView view(gm, n);
    if (const auto inplace = view.arg("inplace"); inplace && inplace->toBool().value_or(false))
        return true;
    if (updatesState(view))
        return true;
    std::string_view name = n.target;
    if (name.starts_with("torch.ops.")) {
        name = name.substr(0, name.find('.', name.find('.', 10) + 1));
        name = name.substr(name.rfind('.') + 1);
    } else {
        name = name.substr(name.rfind('.') + 1);
    }
    if (n.target.starts_with("operator."))
        return name == "setitem" || name == "delitem"
            || (name.starts_with("i") && find(registry().functions, "operator." + std::string(name.substr(1))) != nullptr
                && name != "is_" && name != "is_not");
    if (n.op == Opcode::CallMethod && name == "__setitem__")
        return true;
    return name.size() > 1 && name.ends_with('_') && !name.ends_with("__") && name != "requires_grad_" && !name.starts_with('_');
}

OpView::OpView(const GraphModule &gm, const Node &n)
    : gm_(&gm)
    , node_(&n)
    , info_(opInfo(gm, n))
    , module_(gm.moduleOf(n))
{
}

std::optional<Arg> OpView::arg(std::string_view name) const
{
    const Arg *given = nullptr;
    if (lookup(node_->kwargs, name, given))
        return *given;
    const auto positional = [&](std::span<const OpParam> params) -> std::optional<Arg> {
        for (size_t i = 0; i < params.size() && i < node_->args.size(); ++i)
            if (params[i].name == name)
                return node_->args[i];
        return std::nullopt;
    };
    const auto fallback = [&](std::span<const OpParam> params) -> std::optional<Arg> {
        for (const OpParam &p : params)
            if (p.name == name && !p.defaultText.empty())
                return parseLiteral(p.defaultText);
        return std::nullopt;
    };
    if (node_->op == Opcode::CallModule) {
        if (info_)
            if (auto a = positional(info_->forward))
                return a;
        for (const ModuleInfo *m = module_; m; m = firstChild(*gm_, *m))
            if (const Arg *fact = m->attr(name))
                return *fact;
        if (!info_)
            return std::nullopt;
        auto a = fallback(info_->forward);
        return a ? a : fallback(info_->params);
    }
    if (!info_)
        return std::nullopt;
    auto a = positional(info_->params);
    return a ? a : fallback(info_->params);
}

NodeId OpView::input() const
{
    NodeId first;
    const auto note = [&](NodeId id) { first = first ? first : id; };
    for (const Arg &a : node_->args)
        forEachNode(a, note);
    for (const auto &[name, a] : node_->kwargs)
        forEachNode(a, note);
    return first;
}

std::string OpView::tensorName(std::string_view name) const
{
    for (const ModuleInfo *m = module_; m; m = firstChild(*gm_, *m))
        for (const std::string &path : { m->path, m->aliasOf })
            if (const std::string fqn = joinPath(path, name); (!path.empty() || m->path.empty()) && gm_->tensors.contains(fqn))
                return fqn;
    if (module_)
        return {};
    const auto a = arg(name);
    const NodeId id = a ? a->node() : NodeId{};
    if (!id || !gm_->graph.contains(id))
        return {};
    const Node &source = gm_->graph[id];
    return source.op == Opcode::GetAttr && gm_->tensors.contains(source.target) ? source.target : std::string();
}

Tensor OpView::tensor(std::string_view name) const
{
    const std::string fqn = tensorName(name);
    if (!fqn.empty())
        return gm_->tensor(fqn);
    const auto a = module_ ? std::nullopt : arg(name);
    const Tensor *t = a ? a->as<Tensor>() : nullptr;
    return t ? *t : nullptr;
}

std::optional<Arg> parseLiteral(std::string_view t)
{
    while (t.starts_with(' '))
        t.remove_prefix(1);
    while (t.ends_with(' '))
        t.remove_suffix(1);
    if (t == "None")
        return Arg();
    if (t == "True" || t == "False")
        return Arg(t == "True");
    if (t.size() >= 2 && (t[0] == '\'' || t[0] == '"') && t.back() == t[0]) {
        const std::string_view inside = t.substr(1, t.size() - 2);
        if (inside.find(t[0]) != inside.npos || inside.find('\\') != inside.npos)
            return std::nullopt;
        return Arg(std::string(inside));
    }
    if (t.size() >= 2 && ((t[0] == '(' && t.back() == ')') || (t[0] == '[' && t.back() == ']'))) {
        ArgList items;
        std::string_view inside = t.substr(1, t.size() - 2);
        int depth = 0;
        size_t start = 0, commas = 0;
        for (size_t i = 0; i <= inside.size(); ++i) {
            const char c = i < inside.size() ? inside[i] : ',';
            depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
            if (c != ',' || depth != 0)
                continue;
            commas += i < inside.size();
            const std::string_view part = inside.substr(start, i - start);
            start = i + 1;
            if (part.find_first_not_of(' ') == part.npos && i == inside.size())
                break;
            auto item = parseLiteral(part);
            if (!item)
                return std::nullopt;
            items.push_back(std::move(*item));
        }
        if (t[0] == '[')
            return Arg::list(std::move(items));
        if (items.size() == 1 && commas == 0)
            return items[0];
        return Arg::tuple(std::move(items));
    }
    int64_t i = 0;
    if (const auto r = std::from_chars(t.data(), t.data() + t.size(), i);
        !t.empty() && r.ptr == t.data() + t.size() && r.ec == std::errc())
        return Arg(i);
    double d = 0;
    const bool numeric = !t.empty() && (std::isdigit(uint8_t(t[0])) || t[0] == '-' || t[0] == '.');
    if (const auto r = std::from_chars(t.data(), t.data() + t.size(), d);
        numeric && r.ptr == t.data() + t.size() && r.ec == std::errc())
        return Arg(d);
    return std::nullopt;
}

std::string nodeTitle(const GraphModule &gm, const Node &n)
{
    switch (n.op) {
    case Opcode::Placeholder:
        return n.target;
    case Opcode::Output:
        return "output";
    case Opcode::GetAttr:
        return n.target.substr(n.target.rfind('.') + 1);
    case Opcode::CallMethod:
        return n.target;
    case Opcode::CallModule: {
        const ModuleInfo *m = gm.moduleOf(n);
        return m ? m->shortClass() : n.target;
    }
    case Opcode::CallFunction:
        break;
    }
    std::string_view name = n.target;
    if (name.starts_with("torch.ops.")) // the operator, not its overload
        name = name.substr(0, name.find('.', name.find('.', 10) + 1));
    if (n.target == "builtins.getattr" && n.args.size() > 1)
        if (const auto *attribute = n.args[1].as<std::string>())
            return "." + *attribute;
    std::string title(name.substr(name.rfind('.') + 1));
    if (title.size() > 1 && title.ends_with('_') && n.target.starts_with("operator."))
        title.pop_back(); // operator.and_
    return title;
}

std::string nodeSummary(const GraphModule &gm, const Node &n)
{
    const OpView v(gm, n);
    std::string_view kind = v.kind();
    if (kind.starts_with("quantized_"))
        kind.remove_prefix(10);
    const auto text = [&](std::string_view name) {
        const auto a = v.arg(name);
        return a && !a->isNone() && !a->node() ? number(*a) : std::string();
    };
    const auto labelled = [&](std::string_view name) {
        const std::string t = text(name);
        return t.empty() ? t : std::string(name) + "=" + t;
    };
    const auto stride = [&](const std::string &kernel) {
        auto s = v.arg("stride");
        if (s && s->isNone())
            s = v.arg("kernel_size");
        const auto values = s ? s->toInts() : std::nullopt;
        const bool even = values && !values->empty() && allEqual(values, values->front());
        return kernel + (!values || allEqual(values, 1) ? "" : " s" + (even ? std::to_string(values->front()) : by(*s, 1)));
    };
    if (n.op == Opcode::GetAttr) {
        const Tensor t = gm.tensor(n.target);
        return t ? t->shapeText() : std::string();
    }
    if (kind.starts_with("conv")) {
        const size_t dims = dimensions(kind);
        const Tensor w = v.tensor("weight");
        const auto kernel = v.arg("kernel_size");
        std::string k = kernel && !kernel->isNone() ? by(*kernel, dims) : std::string();
        if (k.empty() && w)
            for (size_t i = 2; i < w->sizes.size(); ++i)
                k += (i > 2 ? "x" : "") + std::to_string(w->sizes[i]);
        std::string in = text("in_channels"), out = text("out_channels");
        const auto groups = v.arg("groups");
        const int64_t g = groups ? groups->toInt().value_or(1) : 1;
        if (in.empty() && w && w->sizes.size() > 2 && !kind.starts_with("conv_transpose")) {
            in = std::to_string(w->sizes[1] * g);
            out = std::to_string(w->sizes[0]);
        }
        std::string s = stride(k);
        if (!in.empty())
            s += (s.empty() ? "" : "  ") + in + " -> " + out;
        return g > 1 ? s + "  groups " + std::to_string(g) : s;
    }
    if (kind.starts_with("linear")) {
        const Tensor w = v.tensor("weight");
        std::string in = text("in_features"), out = text("out_features");
        if (in.empty() && w && w->sizes.size() == 2) {
            in = std::to_string(w->sizes[1]);
            out = std::to_string(w->sizes[0]);
        }
        return in.empty() ? in : in + " -> " + out;
    }
    if (kind.starts_with("adaptive_")) {
        const auto size = v.arg("output_size");
        return size && !size->isNone() ? "to " + by(*size, dimensions(kind)) : std::string();
    }
    if (kind.find("pool") != kind.npos) {
        const auto kernel = v.arg("kernel_size");
        return kernel ? stride(by(*kernel, dimensions(kind))) : std::string();
    }
    if (kind.starts_with("batch_norm") || kind.starts_with("instance_norm"))
        return text("num_features");
    if (kind == "group_norm")
        return text("num_groups").empty() ? std::string() : text("num_groups") + " groups";
    if (kind == "layer_norm" || kind == "rms_norm")
        return text("normalized_shape");
    if (kind == "embedding" || kind == "embedding_bag")
        return text("num_embeddings").empty() ? std::string() : text("num_embeddings") + " x " + text("embedding_dim");
    if (kind == "flatten" || kind == "squeeze" || kind == "unsqueeze" || kind == "cat" || kind == "stack" || kind == "softmax"
        || kind == "log_softmax" || kind == "mean" || kind == "sum" || kind == "chunk" || kind == "split" || kind == "glu"
        || kind == "unbind" || kind == "argmax") {
        const std::string dim = text(kind == "flatten" ? "start_dim" : "dim");
        return dim.empty() ? dim : "dim=" + dim;
    }
    if (kind == "transpose") {
        const std::string a = text("dim0"), b = text("dim1");
        return a.empty() || b.empty() ? std::string() : a + " <-> " + b;
    }
    if (kind == "permute")
        return text("dims");
    if (kind == "clamp" || kind == "hardtanh") {
        const std::string low = text(kind == "clamp" ? "min" : "min_val"), high = text(kind == "clamp" ? "max" : "max_val");
        return low.empty() && high.empty() ? std::string()
                                           : (low.empty() ? "" : low + " ") + ".." + (high.empty() ? "" : " " + high);
    }
    if (kind.starts_with("dropout") || kind.ends_with("dropout"))
        return labelled("p");
    if (kind == "interpolate") {
        const std::string scale = text("scale_factor"), size = text("size");
        return (!size.empty() ? "to " + size : !scale.empty() ? "x" + scale : "") + " " + text("mode");
    }
    if (kind == "pixel_shuffle")
        return "x" + text("upscale_factor");
    if (kind == "leaky_relu")
        return labelled("negative_slope");
    if (kind == "quantize_per_tensor") {
        const auto scale = v.arg("scale");
        const auto value = scale ? scale->toDouble() : std::nullopt;
        if (!value)
            return {};
        char digits[32];
        std::snprintf(digits, sizeof digits, "%.4g", *value);
        return std::string("scale ") + digits + ", zero point " + text("zero_point");
    }
    return {};
}

} // namespace fb
