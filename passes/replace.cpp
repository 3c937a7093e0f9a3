// Replace: one op by another, with the arguments that carry over. GPL-3.0-or-later.
//
// torch.clamp(x, 0, 6), x.clamp(0, 6) and nn.ReLU6()(x) say the same thing in three forms, so both sides are brought to named
// values first (`valuesOf`, by the parameter names of the op table), matched by name, and then written in the form of the new op
// (`writeCall`). What has no place in the new op is dropped, and the report says so.
#include "passes/edits.h"

#include <algorithm>
#include <map>
#include <optional>

#include "model/ir/ops.h"
#include "model/text/text.h"
#include "passes/call.h"
#include "passes/edit_tools.h"

namespace fb
{

namespace
{

constexpr std::string_view kTensorParams[] = { "input", "self", "other", "tensors", "tensor1", "tensor2", "mat2", "batch1",
    "batch2", "query", "key", "value", "target", "x", "y", "a", "b", "end", "exponent" };
constexpr std::string_view kStateParams[]
    = { "weight", "bias", "running_mean", "running_var", "in_proj_weight", "in_proj_bias", "weight_hh" };

template <class Names> bool among(const Names &names, std::string_view name)
{
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}
bool isTensorParam(std::string_view name)
{
    return among(kTensorParams, name);
}

bool hasState(const OpInfo &op)
{
    return std::any_of(op.params.begin(), op.params.end(), [](const OpParam &p) { return among(kStateParams, p.name); });
}

// Whether the form `to` of an op takes a parameter of its row: only F.* and modules have `inplace`, no module `training`.
bool takes(const OpRef &to, const OpParam &p)
{
    if (p.name == "inplace")
        return to.op == Opcode::CallModule || to.target.starts_with("torch.nn.functional.");
    if (p.name == "training")
        return to.op != Opcode::CallModule;
    return !p.name.starts_with('_');
}

bool holdsNode(const Arg &a)
{
    bool found = false;
    forEachNode(a, [&](NodeId) { found = true; });
    return found;
}

std::string withoutCall(std::string text)
{
    return text.ends_with("()") ? text.substr(0, text.size() - 2) : text;
}

std::string shortName(std::string_view name)
{
    return std::string(name.substr(name.rfind('.') + 1));
}

std::string lower(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    return text;
}

size_t editDistance(std::string_view a, std::string_view b)
{
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j)
        row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t above = row[j];
            row[j] = std::min({ row[j] + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1]) });
            corner = above;
        }
    }
    return row.back();
}

const OpInfo *infoOf(const OpRef &op)
{
    switch (op.op) {
    case Opcode::CallFunction:
        return findFunction(op.target);
    case Opcode::CallMethod:
        return findMethod(op.target);
    case Opcode::CallModule:
        return findModuleClass(op.target);
    default:
        return nullptr;
    }
}

// Names like `text`, as a person writes them.
std::string nearest(const std::string &text)
{
    const std::string wanted = lower(shortName(withoutCall(text)));
    std::vector<std::pair<size_t, std::string>> found;
    auto consider = [&](std::string_view name, const std::string &shown) {
        if (const size_t d = editDistance(wanted, lower(shortName(name))); d <= std::max<size_t>(1, wanted.size() / 3))
            found.emplace_back(d, shown);
    };
    for (const OpInfo &op : allOps()) {
        for (std::string_view f : op.functions)
            consider(f, f.starts_with("torch.nn.functional.") ? "F." + shortName(f) : std::string(f));
        for (std::string_view m : op.methods)
            consider(m, "." + std::string(m) + "()");
        for (std::string_view m : op.modules)
            consider(m, m.starts_with("torch.nn.") ? "nn." + shortName(m) : std::string(m));
    }
    std::stable_sort(found.begin(), found.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    std::string list;
    for (size_t i = 0; i < std::min<size_t>(found.size(), 3); ++i)
        list += (list.empty() ? "" : ", ") + found[i].second;
    return list;
}

// nn.ReLU as torch spells the class.
std::optional<std::string> moduleClass(const std::string &text)
{
    std::string name = text;
    for (std::string_view prefix : { "torch.nn.", "nn." })
        if (name.starts_with(prefix) && name.find('.', prefix.size()) == std::string::npos)
            name = name.substr(prefix.size());
    const OpInfo *op = findModuleClass(name);
    if (!op)
        return std::nullopt;
    for (std::string_view m : op->modules)
        if (m == name || shortName(m) == name)
            return std::string(m);
    return std::nullopt;
}

} // namespace

std::string opText(const OpRef &op)
{
    if (op.op == Opcode::CallMethod)
        return "." + op.target + "()";
    if (op.op == Opcode::CallModule && op.target.starts_with("torch.nn.modules."))
        return "nn." + shortName(op.target);
    if (op.target.starts_with("torch.nn.functional."))
        return "F." + shortName(op.target);
    return op.target;
}

Result<OpRef> OpRef::parse(const std::string &given)
{
    const std::string text = withoutCall(given);
    auto unknown = [&]() -> Error {
        const std::string near = nearest(given);
        return Error{ "there is no op \"" + given + "\" that Fuseboard knows"
            + (near.empty() ? "; write torch.clamp, F.relu, nn.ReLU6 or .relu()" : "; did you mean " + near + "?") };
    };
    if (text.starts_with('.')) {
        const std::string method = text.substr(1);
        if (!findMethod(method))
            return unknown();
        return OpRef{ Opcode::CallMethod, method };
    }
    const std::string full = text.starts_with("F.") ? "torch.nn.functional." + text.substr(2) : text;
    if (findFunction(full))
        return OpRef{ Opcode::CallFunction, full };
    if (auto cls = moduleClass(text))
        return OpRef{ Opcode::CallModule, *cls };
    if (text.find('.') == std::string::npos) {
        for (const char *prefix : { "torch.", "torch.nn.functional.", "operator." })
            if (findFunction(prefix + text))
                return OpRef{ Opcode::CallFunction, prefix + text };
        if (findMethod(text))
            return OpRef{ Opcode::CallMethod, text };
        return unknown();
    }
    // Names of the user's own packages: a class by its capital, else a function.
    for (std::string_view known : { "torch.", "nn.", "F.", "operator.", "builtins." })
        if (text.starts_with(known))
            return unknown();
    return OpRef{ std::isupper(static_cast<unsigned char>(shortName(text)[0])) ? Opcode::CallModule : Opcode::CallFunction,
        text };
}

OpRef opRefOf(const GraphModule &gm, const Node &n)
{
    const ModuleInfo *m = gm.moduleOf(n);
    return { n.op, m ? m->className : n.target };
}

Values valuesOf(const GraphModule &gm, const Node &n)
{
    Values values;
    const OpInfo *op = opInfo(gm, n);
    const ModuleInfo *m = gm.moduleOf(n);
    std::vector<std::string_view> names;
    if (op)
        for (const OpParam &p : op->params)
            if (!m || isTensorParam(p.name))
                names.push_back(p.name);
    for (size_t i = 0; i < n.args.size(); ++i)
        values.emplace_back(i < names.size() ? std::string(names[i]) : std::string(), n.args[i]);
    for (const auto &kw : n.kwargs)
        values.push_back(kw);
    if (op && m)
        for (const OpParam &p : op->params)
            if (const Arg *fact = m->attr(p.name); fact && !isTensorParam(p.name) && !among(kStateParams, p.name))
                values.emplace_back(std::string(p.name), *fact);
    return values;
}

Result<Call> writeCall(const OpRef &to, const Values &values)
{
    const OpInfo *op = infoOf(to);
    if (!op)
        return Error{ opText(to) + " is not in the op table, so its arguments are not known; choose another op" };
    if (to.op == Opcode::CallModule && hasState(*op))
        return Error{ opText(to) + " has weights, and there are none to give it; only modules without weights can be put in" };
    Call call{ to.op, to.target, {}, {}, {} };
    auto valueOf = [&](std::string_view name) -> const Arg * {
        for (const auto &[k, v] : values)
            if (k == name)
                return &v;
        return nullptr;
    };
    const bool positionalOnly = to.target.starts_with("operator.") || to.target.starts_with("builtins.");
    ModuleInfo module;
    bool contiguous = true;
    for (const OpParam &p : op->params) {
        if (!takes(to, p))
            continue;
        const Arg *v = valueOf(p.name);
        if (!v && p.defaultText.empty() && !p.name.starts_with('*'))
            return Error{ opText(to) + " needs " + std::string(p.name) + ", which is not given; add it to \"args\"" };
        if (to.op == Opcode::CallModule && !isTensorParam(p.name)) {
            module.attrs.emplace_back(std::string(p.name), v ? *v : parseLiteral(p.defaultText).value_or(Arg()));
        } else if (!v) {
            contiguous = false;
        } else if (contiguous && (p.defaultText.empty() || positionalOnly || to.op == Opcode::CallModule)) {
            call.args.push_back(*v);
        } else if (!positionalOnly) {
            call.kwargs.emplace_back(std::string(p.name), *v);
        }
    }
    if (to.op == Opcode::CallModule) {
        module.className = to.target;
        module.kind = ModuleKind::Nn;
        for (const auto &[name, value] : module.attrs)
            if (name != "inplace" || value.toBool().value_or(false) || module.className.find(".dropout.") != std::string::npos)
                module.extraRepr += (module.extraRepr.empty() ? "" : ", ") + name + "=" + argText(GraphModule(), value);
        call.module = std::move(module);
    }
    return call;
}

Status checkNames(const OpRef &to, const Kwargs &extra)
{
    const OpInfo *op = infoOf(to);
    for (const auto &[name, value] : extra) {
        std::string known;
        bool found = false;
        for (const OpParam &p : op ? op->params : std::span<const OpParam>()) {
            found = found || p.name == name;
            known += (known.empty() ? "" : ", ") + std::string(p.name);
        }
        if (!found)
            return Error{ opText(to) + " has no argument \"" + name + "\"" + (known.empty() ? "" : "; it takes " + known) };
    }
    return {};
}

namespace
{

// The values of `from` under the names of `to`; what stays over is told in `dropped`.
Values carryOver(
    const OpInfo *from, const OpRef &toRef, const OpInfo &to, const Values &values, const Kwargs &extra, std::string &dropped)
{
    Values out;
    std::vector<bool> used(values.size());
    auto has = [&](std::string_view name) {
        return std::any_of(out.begin(), out.end(), [&](const auto &v) { return v.first == name; });
    };
    auto take = [&](size_t i, std::string_view name) {
        out.emplace_back(std::string(name), values[i].second);
        used[i] = true;
    };
    for (const auto &[name, value] : extra)
        out.emplace_back(name, value);
    if (!values.empty() && !to.params.empty() && !has(to.params[0].name) && holdsNode(values[0].second))
        take(0, to.params[0].name);
    for (const OpParam &p : to.params)
        for (size_t i = 0; i < values.size() && !has(p.name); ++i)
            if (!used[i] && values[i].first == p.name && takes(toRef, p))
                take(i, p.name);
    for (size_t i = 0; i < values.size(); ++i)
        if (!used[i] && holdsNode(values[i].second))
            for (const OpParam &p : to.params)
                if (isTensorParam(p.name) && !has(p.name)) {
                    take(i, p.name);
                    break;
                }
    for (size_t i = 0; i < values.size(); ++i) {
        if (used[i] || has(values[i].first))
            continue;
        std::optional<Arg> byDefault;
        if (from)
            for (const OpParam &p : from->params)
                if (p.name == values[i].first)
                    byDefault = parseLiteral(p.defaultText);
        if (byDefault && *byDefault == values[i].second)
            continue;
        const std::string name = values[i].first.empty() ? "an argument" : values[i].first;
        dropped += (dropped.empty() ? "" : ", ") + name;
    }
    return out;
}

bool elementwise(const OpInfo *op)
{
    return op && (op->category == Category::Activation || op->category == Category::Arithmetic);
}

} // namespace

Result<PassReport> replaceNodes(GraphModule &gm, const std::set<NodeId> &nodes, const OpRef &to, const Kwargs &extra)
{
    Graph &g = gm.graph;
    PassReport report{ "Replace by " + opText(to), false, {}, {} };
    const OpInfo *toInfo = infoOf(to);
    if (!toInfo)
        return Error{ opText(to) + " is not in the op table, so its arguments are not known; choose another op" };
    if (Status s = checkNames(to, extra); !s)
        return s.error();

    std::vector<NodeId> order(nodes.begin(), nodes.end());
    std::sort(order.begin(), order.end(), [&](NodeId a, NodeId b) { return g.position(a) < g.position(b); });
    std::map<std::string, size_t> callers;
    for (NodeId id : g.order())
        if (g[id].op == Opcode::CallModule)
            ++callers[g[id].target];
    std::map<std::string, size_t> replaced; // how many calls of each module path are in `nodes`
    for (NodeId id : order)
        if (g[id].op == Opcode::CallModule)
            ++replaced[g[id].target];
    std::map<std::string, std::string> madeFor; // old path -> path of the module made for it
    std::set<std::string> old;

    for (NodeId id : order) {
        const Node n = g[id];
        const OpRef from = opRefOf(gm, n);
        if (n.op != Opcode::CallFunction && n.op != Opcode::CallMethod && n.op != Opcode::CallModule)
            return Error{ "cannot replace " + n.name + ": it is a " + std::string(opcodeName(n.op)) + ", not a call" };
        if (from == to && extra.empty()) {
            report.kept.push_back({ n.name, n.name + " kept: it calls " + opText(to) + " already" });
            continue;
        }
        const OpInfo *fromInfo = opInfo(gm, n);
        std::string dropped;
        auto call = writeCall(to, carryOver(fromInfo, to, *toInfo, valuesOf(gm, n), extra, dropped));
        if (!call)
            return Error{ "cannot replace " + n.name + ": " + call.message() };

        if (call->module) {
            // Under the old path where all its calls change, else beside it.
            const bool whole = n.op == Opcode::CallModule && replaced[n.target] == callers[n.target];
            auto made = n.op == Opcode::CallModule ? madeFor.find(n.target) : madeFor.end();
            if (made == madeFor.end()) {
                ModuleInfo info = *call->module;
                info.path = whole ? n.target
                                  : gm.uniqueModulePath(n.op == Opcode::CallModule ? n.target : joinPath(n.modulePath(), n.name));
                if (const ModuleInfo *root = gm.modules.find(""))
                    info.training = root->training;
                call->target = info.path;
                if (n.op == Opcode::CallModule)
                    madeFor[n.target] = info.path;
                if (const ModuleInfo *m = gm.moduleOf(n);
                    whole && !(m->parameters.empty() && m->buffers.empty() && m->kind == ModuleKind::Nn))
                    clearModule(gm, n.target);
                gm.addModule(std::move(info));
            } else {
                call->target = made->second;
            }
        } else if (n.op == Opcode::CallModule) {
            old.insert(n.target);
        }
        g.setTarget(id, call->op, call->target);
        g.setArgs(id, call->args, call->kwargs);
        if (!elementwise(fromInfo) || !elementwise(toInfo))
            forgetShapes(g, id);
        report.done.push_back({ n.name,
            n.name + ": " + opText(from) + " -> " + opText(to) + (dropped.empty() ? "" : " (" + dropped + " dropped)") });
        report.changed = true;
    }
    dropModules(gm, old);
    return report;
}

Result<PassReport> replaceAll(GraphModule &gm, const OpRef &from, const OpRef &to, const Kwargs &extra)
{
    std::set<NodeId> nodes;
    for (NodeId id : gm.graph.order())
        if (opRefOf(gm, gm.graph[id]) == from)
            nodes.insert(id);
    if (nodes.empty())
        return Error{ "nothing to replace: no node calls " + opText(from) };
    return replaceNodes(gm, nodes, to, extra);
}

std::vector<OpRef> replacements(const GraphModule &gm, NodeId id)
{
    const Node &n = gm.graph[id];
    const OpRef own = opRefOf(gm, n);
    const OpInfo *from = opInfo(gm, n);
    std::vector<OpRef> same, others;
    if (n.op == Opcode::Placeholder || n.op == Opcode::Output || n.op == Opcode::GetAttr)
        return same;
    const Values values = valuesOf(gm, n);
    const size_t inputs = gm.graph.inputs(id).size();
    for (const OpInfo &op : allOps()) {
        if (op.params.empty() || op.mutates)
            continue;
        // The form that the node has now comes first, then the others.
        std::vector<OpRef> forms;
        if (!op.modules.empty())
            forms.push_back({ Opcode::CallModule, std::string(op.modules.front()) });
        if (!op.functions.empty())
            forms.push_back({ Opcode::CallFunction, std::string(op.functions.front()) });
        if (!op.methods.empty())
            forms.push_back({ Opcode::CallMethod, std::string(op.methods.front()) });
        std::stable_partition(forms.begin(), forms.end(), [&](const OpRef &r) { return r.op == n.op; });
        size_t takes = 0;
        for (const OpParam &p : op.params)
            takes += p.defaultText.empty() && isTensorParam(p.name);
        for (const OpRef &form : forms) {
            std::string dropped;
            if (form == own || takes != std::max<size_t>(inputs, 1)
                || !writeCall(form, carryOver(from, form, op, values, {}, dropped)))
                continue;
            (from && op.category == from->category ? same : others).push_back(form);
            break;
        }
    }
    same.insert(same.end(), others.begin(), others.end());
    return same;
}

} // namespace fb
