#include "passes/backends.h"

#include <algorithm>
#include <array>
#include <map>

#include <nlohmann/json.hpp>

#include "model/ir/ops.h"
#include "passes/quantize.h"

namespace fb
{

namespace
{

constexpr struct {
    const char *name, *text;
} kFiles[] = {
#include "backends.inc"
};

using Json = nlohmann::json;

std::vector<std::string> strings(const Json &j, const char *key)
{
    return j.value(key, std::vector<std::string>{});
}

NameSet nameSet(const Json &j)
{
    return { strings(j, "modules"), strings(j, "functions"), strings(j, "methods") };
}

Int8Rule readRule(const Json &j)
{
    static const std::map<std::string, Int8Form> forms{ { "weighted", Int8Form::Weighted }, { "binary", Int8Form::Binary },
        { "call", Int8Form::Call }, { "same", Int8Form::Same } };
    Int8Rule r;
    r.op = j.at("op");
    r.form = forms.at(j.at("form"));
    r.names = nameSet(j);
    r.fused = j.value("fused", "");
    r.int8 = j.value("int8", "");
    r.int8Relu = j.value("int8_relu", "");
    for (const std::string &p : strings(j, "params")) {
        const size_t eq = p.find('=');
        r.params.emplace_back(p.substr(0, eq), eq == std::string::npos ? "" : p.substr(eq + 1));
    }
    r.args = strings(j, "args");
    r.share = j.value("share", false);
    r.inference = j.value("inference", false);
    r.spatial = j.value("spatial", 0);
    if (j.contains("fixed"))
        r.fixed = QuantParams{ { j["fixed"][0].get<double>() }, { j["fixed"][1].get<int64_t>() }, -1 };
    return r;
}

Json document(const std::string &name)
{
    for (const auto &file : kFiles)
        if (name == file.name)
            return Json::parse(file.text);
    return {};
}

std::map<std::string, Backend> readBackends()
{
    std::map<std::string, Backend> out;
    for (const auto &file : kFiles) {
        const Json j = Json::parse(file.text);
        if (!j.contains("engine"))
            continue; // a table of operators that backends point at
        const Json operators = document(j.at("operators"));
        Backend b;
        b.name = file.name;
        b.engine = j.at("engine");
        b.reduceRange = j.at("reduce_range");
        b.perChannelWeights = j.at("per_channel_weights");
        b.int32Bias = j.at("bias") == "int32";
        b.contiguous = strings(j, "contiguous");
        for (const Json &row : operators.at("patterns"))
            b.rules.push_back(readRule(row));
        b.relu = nameSet(operators.at("relu"));
        b.reluAfterBinary = nameSet(operators.at("relu_after_binary"));
        b.metadata = nameSet(operators.at("metadata"));
        out.emplace(b.name, std::move(b));
    }
    return out;
}

const std::map<std::string, Backend> &backends()
{
    static const std::map<std::string, Backend> all = readBackends();
    return all;
}

bool has(const std::vector<std::string> &list, const std::string &s)
{
    return std::find(list.begin(), list.end(), s) != list.end();
}

} // namespace

bool NameSet::contains(const GraphModule &gm, const Node &n) const
{
    switch (n.op) {
    case Opcode::CallModule: {
        const ModuleInfo *m = gm.moduleOf(n);
        return m && m->kind == ModuleKind::Nn && has(modules, m->className);
    }
    case Opcode::CallFunction:
        return has(functions, n.target);
    case Opcode::CallMethod:
        return has(methods, n.target);
    default:
        return false;
    }
}

const Int8Rule *Backend::rule(const GraphModule &gm, const Node &n) const
{
    const ModuleInfo *m = gm.moduleOf(n);
    for (const Int8Rule &r : rules)
        if (r.names.contains(gm, n) || (m && !r.fused.empty() && m->className == r.fused))
            return &r;
    return nullptr;
}

Result<const Backend *> findBackend(const std::string &name)
{
    const auto it = backends().find(name);
    if (it != backends().end())
        return &it->second;
    std::string known;
    for (const auto &[k, b] : backends())
        known += (known.empty() ? "" : ", ") + k;
    return Error{ "There is no quantization backend '" + name + "'; choose one of " + known + "." };
}

std::vector<std::string> quantBackends()
{
    std::vector<std::string> out{ "x86", "qnnpack" }; // the usual ones first
    for (const auto &[k, b] : backends())
        if (!has(out, k))
            out.push_back(k);
    return out;
}

std::optional<Arg> callArg(const GraphModule &gm, const Node &n, const Int8Rule &rule, const std::string &name)
{
    if (const Arg *given = n.kwarg(name))
        return *given;
    if (const ModuleInfo *m = gm.moduleOf(n)) {
        if (name == "input")
            return n.args.empty() ? std::nullopt : std::optional<Arg>(n.args[0]);
        const Arg *fact = m->attr(name);
        return fact ? std::optional<Arg>(*fact) : std::nullopt;
    }
    for (size_t i = 0; i < rule.params.size(); ++i)
        if (rule.params[i].first == name)
            return i < n.args.size() ? std::optional<Arg>(n.args[i]) : parseLiteral(rule.params[i].second);
    return std::nullopt;
}

std::optional<Arg> activationArg(const GraphModule &gm, const Node &n, const Int8Rule &rule)
{
    if (rule.form == Int8Form::Binary) { // 2 * x: the tensor may stand second
        const auto a = callArg(gm, n, rule, "input"), b = callArg(gm, n, rule, "other");
        return a && !a->node() && b && b->node() ? b : a;
    }
    if (const auto named = callArg(gm, n, rule, "input"))
        return named;
    if (!n.args.empty())
        return n.args[0];
    return n.kwargs.empty() ? std::nullopt : std::optional<Arg>(n.kwargs.front().second);
}

std::vector<NodeId> activations(const GraphModule &gm, const Node &n, const Int8Rule &rule)
{
    std::vector<NodeId> out;
    const auto add = [&](NodeId id) { out.push_back(id); };
    if (rule.form == Int8Form::Binary) {
        for (const char *operand : { "input", "other" })
            forEachNode(callArg(gm, n, rule, operand).value_or(Arg()), add);
    } else {
        forEachNode(activationArg(gm, n, rule).value_or(Arg()), add);
    }
    return out;
}

} // namespace fb
