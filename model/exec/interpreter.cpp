// Fuseboard: the interpreter. GPL-3.0-or-later.
//
// Every node becomes a step once: what it calls is looked up, module tensors are bound, TorchScript is loaded, nested graphs get
// an interpreter of their own. Running is then one loop over the steps with a table of values. A value is dropped with its last
// use.
//
// In-place operators act on shared memory as they do in torch. What must not change is kept out of their reach: inputs and
// constants are copied for a graph that changes anything in place, and so is a value that an observer kept.
#include "model/exec/interpreter.h"

#include <mutex>
#include <sstream>
#include <unordered_set>

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/istream_adapter.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/version.h>

#include "model/exec/calls.h"
#include "model/exec/higher_order.h"
#include "model/ir/bind.h"
#include "model/ir/ops.h"

namespace fb
{

namespace
{

struct RunState {
    const RunOptions *options;
};

using Call = std::function<Arg(const ArgList &args, const Kwargs &kwargs, const RunState &run)>;

std::shared_ptr<const Expr> expression(std::string_view text)
{
    static std::mutex mutex;
    static std::unordered_map<std::string_view, std::shared_ptr<const Expr>> parsed; // rows live forever
    const std::lock_guard lock(mutex);
    auto it = parsed.find(text);
    if (it == parsed.end()) {
        auto e = parseExpression(text);
        if (!e)
            throw ExecError(e.message());
        it = parsed.emplace(text, *e).first;
    }
    return it->second;
}

std::vector<Operand> operands(const ArgList &args)
{
    std::vector<Operand> out;
    out.reserve(args.size());
    for (const Arg &a : args)
        out.push_back({ a, {} });
    return out;
}

KeywordOperands operands(const Kwargs &kwargs)
{
    KeywordOperands out;
    for (const auto &[name, a] : kwargs)
        out.emplace_back(name, Operand{ a, {} });
    return out;
}

Call operatorCall(std::string name)
{
    if (!operatorExists(name))
        throw ExecError("torch " TORCH_VERSION " has no operator " + name);
    return [name = std::move(name)](const ArgList &args, const Kwargs &kwargs, const RunState &) {
        return callOperator(name, operands(args), operands(kwargs));
    };
}

// Arguments by the names of a Python signature.
class Bound
{
public:
    Bound(std::span<const OpParam> params, const ArgList &args, const Kwargs &kwargs)
    {
        size_t next = 0;
        for (const OpParam &p : params) {
            if (p.name.starts_with('*')) {
                ArgList rest(args.begin() + std::ptrdiff_t(std::min(next, args.size())), args.end());
                values_.emplace_back(p.name.substr(1), Arg::tuple(std::move(rest)));
                next = args.size();
            } else if (next < args.size()) {
                values_.emplace_back(p.name, args[next++]);
            }
        }
        if (next < args.size())
            throw ExecError("it takes " + std::to_string(params.size()) + " arguments and got " + std::to_string(args.size()));
        for (const auto &[name, value] : kwargs) {
            const auto known
                = std::find_if(params.begin(), params.end(), [&, &key = name](const OpParam &p) { return p.name == key; });
            if (known == params.end())
                throw ExecError("it takes no argument named '" + name + "'");
            values_.emplace_back(known->name, value);
        }
    }
    std::optional<Arg> find(std::string_view name) const
    {
        for (const auto &[key, value] : values_)
            if (key == name)
                return value;
        return std::nullopt;
    }

private:
    std::vector<std::pair<std::string_view, Arg>> values_;
};

// As torch's own allocations are: what the kernels compute may differ in the last bit where memory is not.
Tensor aligned(const Tensor &t)
{
    constexpr uintptr_t kAlignment = 64;
    return hold(reinterpret_cast<uintptr_t>(t->data) % kAlignment == 0 ? toAten(t) : toAten(t).clone());
}

std::optional<Arg> defaultOf(std::span<const OpParam> params, std::string_view name)
{
    for (const OpParam &p : params)
        if (p.name == name && !p.defaultText.empty())
            return parseLiteral(p.defaultText);
    return std::nullopt;
}

Call expressionCall(const OpInfo &op)
{
    return [&op, e = expression(op.call)](const ArgList &args, const Kwargs &kwargs, const RunState &) {
        const Bound bound(op.params, args, kwargs);
        ExpressionRun evaluation;
        evaluation.lookup = [&](std::string_view name) {
            auto v = bound.find(name);
            return v ? v : defaultOf(op.params, name);
        };
        return evaluation.value(*e);
    };
}

Call pythonCall(PythonFunction f)
{
    return [f](const ArgList &args, const Kwargs &kwargs, const RunState &) { return f(args, kwargs); };
}

Call resolveMethod(const std::string &name)
{
    if (const OpInfo *op = findMethod(name); op && !op->call.empty())
        return expressionCall(*op);
    if (name.starts_with("__") && name.ends_with("__")) {
        const std::string plain = name.substr(2, name.size() - 4);
        for (const std::string &candidate : { plain, plain + "_" })
            if (const auto f = pythonFunction("operator." + candidate))
                return pythonCall(f);
        if (plain == "len")
            return pythonCall(pythonFunction("builtins.len"));
        if (plain.starts_with('r'))
            if (const auto f = pythonFunction("operator." + plain.substr(1)))
                return [f](const ArgList &args, const Kwargs &kwargs, const RunState &) {
                    ArgList swapped = args;
                    for (const auto &[key, value] : kwargs)
                        swapped.push_back(value);
                    std::reverse(swapped.begin(), swapped.end());
                    return f(swapped, {});
                };
    }
    if (const auto f = pythonFunction("torch.Tensor." + name))
        return pythonCall(f);
    if (!operatorExists("aten::" + name))
        throw ExecError("the method '" + name + "' is no operator of torch " TORCH_VERSION);
    return operatorCall("aten::" + name);
}

// "torch.linalg.norm" is aten::linalg_norm, "torch.nn.functional.relu" aten::relu.
std::optional<std::string> operatorOf(std::string_view target)
{
    if (target.starts_with("torch.ops.")) {
        target.remove_prefix(10);
        const size_t dot = target.find('.');
        if (dot == target.npos)
            return std::nullopt;
        return std::string(target.substr(0, dot)) + "::" + std::string(target.substr(dot + 1));
    }
    const std::string_view base = target.substr(target.rfind('.') + 1);
    const std::string_view space = target.substr(0, target.size() - std::min(target.size(), base.size() + 1));
    for (const std::string_view s :
        { "torch.linalg", "torch.fft", "torch.special", "torch._C._linalg", "torch._C._fft", "torch._C._special" })
        if (space == s) {
            const std::string prefix = std::string(s.substr(s.rfind('.') + 1 + (s.find("_C.") != s.npos))) + "_";
            return "aten::" + (base.starts_with(prefix) ? "" : prefix) + std::string(base);
        }
    for (const std::string_view s :
        { "torch", "torch.functional", "torch.nn.functional", "torch._C._nn", "torch._VF", "torch._C._VariableFunctions" })
        if (space == s)
            return "aten::" + std::string(base);
    return std::nullopt;
}

// One that the user's code has torch.fx.wrap keep, of no package that is known here.
bool isUsersFunction(const std::string &target)
{
    for (const char *known : { "torch.", "operator.", "_operator.", "builtins.", "math." })
        if (target.starts_with(known))
            return false;
    return target.find('.') != target.npos && !pythonFunction(target) && !findFunction(target) && !operatorOf(target);
}

std::string onlyInPython(const std::string &function)
{
    return "the function " + function + " is Python's alone";
}

Call usersFunction(const std::string &target)
{
    return [target](const ArgList &args, const Kwargs &kwargs, const RunState &run) {
        if (!run.options->modules)
            throw ExecError(onlyInPython(target) + "; start the Python worker (--worker) to run it");
        auto r = run.options->modules->runFunction(target, args, kwargs, *run.options);
        if (!r)
            throw ExecError(r.message());
        return std::move(*r);
    };
}

Call resolveFunction(const std::string &target)
{
    if (isUsersFunction(target))
        return usersFunction(target);
    if (const auto f = target.find('.') != std::string::npos ? pythonFunction(target) : nullptr)
        return pythonCall(f);
    if (target.starts_with("torch.Tensor."))
        return resolveMethod(target.substr(13));
    // Operators of torch.ops run by their own schema, unless they are written in Python and have a row of their own.
    if (const OpInfo *op = findFunction(target); op && !op->call.empty()
        && (!target.starts_with("torch.ops.")
            || std::find(op->functions.begin(), op->functions.end(), target) != op->functions.end()))
        return expressionCall(*op);
    auto name = operatorOf(target);
    if (name && name->starts_with("prims::") && !operatorExists(*name)) // written in Python, where ATen has the same
        name = "aten" + name->substr(5, name->rfind(".default") - 5);
    if (!name || !operatorExists(*name))
        throw ExecError("the function " + target + " is not known to torch's operators; mark the module that calls it as a leaf");
    return operatorCall(*name);
}

using Calls = std::unordered_map<std::string, Call>;

// What a thread has resolved once is kept in `known`.
Arg callKnown(
    Calls &known, Call (*resolve)(const std::string &), const std::string &name, const ArgList &args, const Kwargs &kwargs)
{
    auto it = known.find(name);
    if (it == known.end())
        it = known.emplace(name, resolve(name)).first;
    const RunOptions none;
    const Call call = it->second; // its own calls may make the table grow
    return call(args, kwargs, { &none });
}

} // namespace

Arg callFunction(const std::string &target, const ArgList &args, const Kwargs &kwargs)
{
    thread_local Calls known;
    return callKnown(known, resolveFunction, target, args, kwargs);
}

Arg callMethod(const std::string &name, const ArgList &args, const Kwargs &kwargs)
{
    thread_local Calls known;
    return callKnown(known, resolveMethod, name, args, kwargs);
}

namespace
{

// Opens TorchScript without running any of its code: objects that restore themselves by code are refused.
std::shared_ptr<torch::jit::Module> loadScript(const std::string &bytes)
{
    std::istringstream stream(bytes);
    {
        caffe2::serialize::PyTorchStreamReader reader(std::make_unique<caffe2::serialize::IStreamAdapter>(&stream));
        for (const std::string &record : reader.getAllRecords()) {
            if (!record.starts_with("code/") && !record.ends_with(".pkl"))
                continue;
            const auto [data, size] = reader.getRecord(record);
            const std::string_view text(static_cast<const char *>(data.get()), size);
            if (text.find("__torch__.torch.classes") != text.npos)
                throw ExecError("its TorchScript holds a custom C++ object, which is not loaded");
            if (text.find("__setstate__") != text.npos)
                throw ExecError("its TorchScript would run code while it is loaded");
        }
    }
    stream.clear();
    stream.seekg(0);
    return std::make_shared<torch::jit::Module>(torch::jit::load(stream, c10::Device(c10::kCPU)));
}

bool holdsMeta(const Arg &value)
{
    bool found = false;
    forEachTensor(value, [&](const Tensor &t) { found |= isMeta(t); });
    return found;
}

Call scriptCall(const ModuleInfo &info)
{
    if (!info.script)
        throw ExecError("the archive holds no TorchScript for it");
    return [loaded = loadScript(*info.script), shapes = std::shared_ptr<torch::jit::Module>()](
               const ArgList &args, const Kwargs &kwargs, const RunState &) mutable {
        const bool meta = holdsMeta(Arg::tuple(args));
        if (meta && !shapes) { // the same over tensors without memory
            shapes = std::make_shared<torch::jit::Module>(loaded->deepcopy());
            shapes->to(at::kMeta);
        }
        const auto &module = meta ? shapes : loaded;
        const c10::FunctionSchema &schema = module->get_method("forward").function().getSchema();
        const auto convert = [](const Arg &a, const c10::TypePtr &type) {
            int cost = 0;
            auto v = toIValue(a, type, cost);
            return v ? std::move(*v) : toIValue(a);
        };
        std::vector<c10::IValue> inputs;
        for (size_t i = 0; i < args.size(); ++i)
            inputs.push_back(
                i + 1 < schema.arguments().size() ? convert(args[i], schema.arguments()[i + 1].type()) : toIValue(args[i]));
        std::unordered_map<std::string, c10::IValue> named;
        for (const auto &[key, value] : kwargs) {
            const auto index = schema.argumentIndexWithName(key);
            named[key] = index ? convert(value, schema.arguments()[size_t(*index)].type()) : toIValue(value);
        }
        return fromIValue(module->forward(std::move(inputs), named));
    };
}

// A module's names: arguments of forward, then tensors, then facts, then defaults.
Call resolveModule(const GraphModule &gm, const std::string &path);

struct BoundModule {
    const GraphModule &gm;
    const ModuleInfo &info;
    const OpInfo *op = nullptr;
    std::shared_ptr<const Expr> call{};
    std::unordered_map<std::string, Arg> tensors{};
    std::unordered_map<std::string, Call> children{}; // by path within this one
    std::unordered_map<const Expr *, c10::IValue> kept{};
    at::QEngine keptFor = at::QEngine::NoQEngine;

    // Does it write to its own tensors? Those of the snapshot stay as they are.
    bool changes() const
    {
        const Arg *limit = info.attr("max_norm");
        return info.training || (limit && !limit->isNone());
    }

    std::optional<Arg> lookup(const Bound &bound, std::string_view name)
    {
        if (auto v = bound.find(name))
            return v;
        const std::string key(name);
        if (const auto it = tensors.find(key); it != tensors.end())
            return it->second;
        if (name == "parameters") {
            ArgList all;
            for (const std::string &p : info.parameters)
                all.push_back(lookup(bound, p).value_or(Arg()));
            return Arg::list(std::move(all));
        }
        if (name == "training")
            return info.training;
        const size_t dot = name.rfind('.'); // out_proj.weight
        const std::string path = joinPath(info.path, dot == name.npos ? std::string_view() : name.substr(0, dot));
        if (const Tensor t = dot == name.npos ? gm.moduleTensor(info.path, name) : gm.moduleTensor(path, name.substr(dot + 1)))
            return tensors[key] = changes() ? hold(toAten(t).clone()) : aligned(t);
        if (dot != name.npos)
            if (const ModuleInfo *child = gm.modules.find(path)) {
                const std::string_view fact = name.substr(dot + 1);
                if (std::find(child->none.begin(), child->none.end(), fact) != child->none.end())
                    return Arg();
                if (fact == "training")
                    return child->training;
                if (fact == "__class__")
                    return child->className;
                if (const Arg *v = child->attr(fact))
                    return *v;
            }
        if (std::find(info.none.begin(), info.none.end(), key) != info.none.end())
            return Arg();
        if (const Arg *fact = info.attr(name)) {
            // `bias=True` of a constructor is no bias tensor; the recurrent modules ask for the flag itself.
            const bool flag = op->category == Category::Recurrent || (name != "weight" && name != "bias");
            return flag || fact->as<Tensor>() ? *fact : Arg();
        }
        if (auto v = defaultOf(op->forward, name))
            return v;
        if (auto v = defaultOf(op->params, name))
            return v;
        return dot == name.npos ? std::optional<Arg>(Arg()) : std::nullopt;
    }

    const Call *child(const std::string &path)
    {
        const auto it = children.find(path);
        if (it != children.end())
            return &it->second;
        const std::string whole = joinPath(info.path, path);
        return path.empty() || !gm.modules.contains(whole) ? nullptr : &(children[path] = resolveModule(gm, whole));
    }

    std::vector<std::string> childrenOf(const std::string &path) const
    {
        std::vector<std::string> out;
        const std::string own = path.empty() ? info.path : joinPath(info.path, path), prefix = own.empty() ? "" : own + ".";
        for (const auto &[whole, m] : gm.modules)
            if (!whole.empty() && whole.starts_with(prefix) && whole.find('.', prefix.size()) == whole.npos)
                out.push_back(joinPath(path, whole.substr(prefix.size())));
        return out;
    }
};

Call moduleCall(const GraphModule &gm, const ModuleInfo &info, const OpInfo &op)
{
    auto m = std::make_shared<BoundModule>(BoundModule{ .gm = gm, .info = info, .op = &op });
    m->call = op.moduleCall.empty() ? nullptr : expression(op.moduleCall);
    if (!m->call && op.aten.empty())
        throw ExecError("the op table does not say how " + info.className + " runs");
    return [m](const ArgList &args, const Kwargs &kwargs, const RunState &run) {
        if (!m->call)
            return callOperator(std::string(m->op->aten), operands(args), operands(kwargs));
        const Bound bound(m->op->forward, args, kwargs);
        if (const at::QEngine engine = at::globalContext().qEngine(); engine != m->keptFor) {
            m->kept.clear(); // packing depends on the engine
            m->keptFor = engine;
        }
        ExpressionRun evaluation;
        evaluation.lookup = [&](std::string_view name) { return m->lookup(bound, name); };
        evaluation.kept = &m->kept;
        evaluation.child = [&](const std::string &path, const ArgList &a, const Kwargs &k) -> std::optional<Arg> {
            const Call *child = m->child(path);
            return child ? std::optional((*child)(a, k, run)) : std::nullopt;
        };
        evaluation.childrenOf = [&](const std::string &path) { return m->childrenOf(path); };
        return evaluation.value(*m->call);
    };
}

std::string onlyInPython(const ModuleInfo &info)
{
    return "custom module " + info.shortClass() + " does not script"
        + (info.scriptError.empty() ? std::string() : ": " + info.scriptError.substr(0, info.scriptError.find('\n')));
}

Call resolveModule(const GraphModule &gm, const std::string &path)
{
    const ModuleInfo *info = gm.modules.find(path);
    if (!info)
        throw ExecError("the module table has no '" + path + "'");
    switch (info->kind) {
    case ModuleKind::Script:
        return scriptCall(*info);
    case ModuleKind::Opaque:
        return [&gm, info](const ArgList &args, const Kwargs &kwargs, const RunState &run) {
            if (!run.options->modules)
                throw ExecError(onlyInPython(*info) + "; start the Python worker (--worker) to run it");
            auto r = run.options->modules->run(gm, info->path, args, kwargs, *run.options);
            if (!r)
                throw ExecError(r.message());
            return std::move(*r);
        };
    case ModuleKind::Graph: {
        if (!info->graph)
            throw ExecError("its inside is missing");
        auto inner = Interpreter::create(*info->graph);
        if (!inner)
            throw ExecError(inner.message());
        auto shared = std::make_shared<Interpreter>(std::move(*inner));
        return [shared](const ArgList &args, const Kwargs &kwargs, const RunState &run) {
            RunOptions options;
            options.cancel = run.options->cancel;
            options.modules = run.options->modules;
            auto r = shared->call(args, kwargs, options);
            if (!r)
                throw ExecError(r.message());
            return std::move(*r);
        };
    }
    case ModuleKind::Nn:
    case ModuleKind::Container:
        if (const OpInfo *op = findModuleClass(info->className))
            return moduleCall(gm, *info, *op);
        throw ExecError("module class " + info->className + " is not in the op table");
    }
    throw ExecError("unknown kind of module");
}

// What a node executes, for error texts: "Conv2d", "torch.flatten", "method view".
std::string described(const GraphModule &gm, const Node &n)
{
    if (n.op == Opcode::CallModule) {
        const ModuleInfo *m = gm.moduleOf(n);
        return m ? m->shortClass() : "module " + n.target;
    }
    return n.op == Opcode::CallMethod ? "method " + n.target : n.target;
}

// The module that a get_attr node reads, else null.
const ModuleInfo *graphRead(const GraphModule &gm, const Node &n)
{
    const ModuleInfo *m = n.op == Opcode::GetAttr ? gm.modules.find(n.target) : nullptr;
    return m && m->kind == ModuleKind::Graph ? m : nullptr;
}

// torch.cond and its like: the graphs among the arguments are prepared once.
Call resolveHigherOrder(const GraphModule &gm, const Node &n)
{
    auto graphs = std::make_shared<std::vector<Call>>();
    std::vector<bool> isGraph;
    for (const Arg &a : n.args) {
        const ModuleInfo *m = a.node() ? graphRead(gm, gm.graph[a.node()]) : nullptr;
        isGraph.push_back(m);
        if (m)
            graphs->push_back(resolveModule(gm, m->path));
    }
    return [target = n.target, graphs, isGraph](const ArgList &args, const Kwargs &, const RunState &run) {
        std::vector<GraphFunction> functions;
        for (const Call &graph : *graphs)
            functions.push_back([&graph, &run](const ArgList &given) { return graph(given, {}, run); });
        ArgList rest;
        for (size_t i = 0; i < args.size(); ++i)
            if (!isGraph[i])
                rest.push_back(args[i]);
        return callHigherOrder(target, functions, rest);
    };
}

Call resolve(const GraphModule &gm, const Node &n)
{
    switch (n.op) {
    case Opcode::CallFunction:
        if (isHigherOrder(n.target))
            return resolveHigherOrder(gm, n);
        return resolveFunction(n.target);
    case Opcode::CallMethod:
        return resolveMethod(n.target);
    case Opcode::CallModule:
        return resolveModule(gm, n.target);
    default:
        return {};
    }
}

class EngineScope
{
public:
    explicit EngineScope(const std::string &name)
        : before_(at::globalContext().qEngine())
    {
        if (name.empty())
            return;
        for (const at::QEngine engine : at::Context::supportedQEngines()) {
            std::string candidate = at::toString(engine);
            std::transform(
                candidate.begin(), candidate.end(), candidate.begin(), [](unsigned char c) { return char(std::tolower(c)); });
            if (candidate == name) {
                at::globalContext().setQEngine(engine);
                return;
            }
        }
        throw ExecError("this PyTorch has no quantized engine '" + name + "'");
    }
    ~EngineScope() { at::globalContext().setQEngine(before_); }
    EngineScope(const EngineScope &) = delete;
    EngineScope &operator=(const EngineScope &) = delete;

private:
    at::QEngine before_;
};

struct Cancelled {
};

constexpr size_t kNoSlot = std::numeric_limits<size_t>::max();

} // namespace

struct Interpreter::Impl {
    // An argument of a node: the value in a slot, or a constant that may hold nodes further in.
    struct Source {
        size_t slot = 0;
        enum Kind : uint8_t { Slot, Constant, Nested } kind = Constant;
        Arg arg{};
    };
    struct Step {
        const Node *node = nullptr;
        Call call{}; // call_*: null where it cannot be executed
        std::string problem{}; // why
        Arg constant{}; // get_attr
        std::vector<Source> args{};
        std::vector<std::pair<std::string, Source>> kwargs{};
        std::vector<size_t> last{}; // slots whose last use this is
    };

    GraphModule gm;
    std::vector<Step> steps;
    std::vector<size_t> slots; // by id
    size_t placeholders = 0;
    bool changesInPlace = false;
    bool onMeta = false; // its tensors are shapes alone

    explicit Impl(const GraphModule &source)
        : gm(source)
    {
        const Graph &g = gm.graph;
        std::vector<size_t> lastUse(g.size());
        slots.assign(g.nextId(), kNoSlot);
        placeholders = g.placeholders().size();
        for (const auto &[name, entry] : gm.tensors)
            onMeta |= isMeta(entry->tensor);
        for (const NodeId id : g.order()) {
            const Node &n = g[id];
            const size_t slot = steps.size();
            slots[id.value] = slot;
            lastUse[slot] = slot;
            for (const NodeId used : g.inputs(id))
                if (slots[used.value] != kNoSlot)
                    lastUse[slots[used.value]] = slot;
            Step step{ .node = &n };
            for (const Arg &a : n.args)
                step.args.push_back(sourceOf(a));
            for (const auto &[name, a] : n.kwargs)
                step.kwargs.emplace_back(name, sourceOf(a));
            if (n.op == Opcode::GetAttr) {
                if (const Tensor t = gm.tensor(n.target))
                    step.constant = aligned(t);
                else if (const Arg *value = gm.attributes.find(n.target))
                    step.constant = *value;
                else if (graphRead(gm, n))
                    step.constant = ArgSymbol{ n.target }; // known to the calls that take it
                else
                    step.problem = "the archive does not hold '" + n.target + "'";
            } else {
                try {
                    step.call = resolve(gm, n);
                } catch (...) {
                    step.problem = currentMessage();
                }
            }
            const ModuleInfo *m = gm.moduleOf(n);
            changesInPlace |= mutatesInput(gm, n) || (n.op == Opcode::CallFunction && isUsersFunction(n.target))
                || (m
                    && (m->kind == ModuleKind::Script || m->kind == ModuleKind::Opaque || m->kind == ModuleKind::Graph
                        || m->training));
            steps.push_back(std::move(step));
        }
        for (size_t slot = 0; slot < steps.size(); ++slot)
            steps[lastUse[slot]].last.push_back(slot);
    }

    Source sourceOf(const Arg &a) const
    {
        if (const NodeId id = a.node())
            return { slots.at(id.value), Source::Slot, {} };
        bool nodes = false;
        forEachNode(a, [&](NodeId) { nodes = true; });
        return { 0, nodes ? Source::Nested : Source::Constant, a };
    }

    Arg resolved(const Source &s, const std::vector<Arg> &values) const
    {
        switch (s.kind) {
        case Source::Slot:
            return values[s.slot];
        case Source::Constant:
            return s.arg;
        case Source::Nested:
            break;
        }
        return mapNodes(s.arg, [&](NodeId id) { return values[slots.at(id.value)]; });
    }

    // A tensor that nothing in the graph may change is handed over as it is, else as a copy.
    Arg guarded(const Arg &a) const
    {
        if (!changesInPlace)
            return a;
        return mapTensors(a, [](const Tensor &t) { return Arg(hold(toAten(t).clone())); });
    }

    Arg execute(const Step &step, std::vector<Arg> &values, const Inputs &inputs, size_t &nextInput, const RunState &run) const
    {
        const Node &n = *step.node;
        if (!step.problem.empty())
            throw ExecError(step.problem);
        switch (n.op) {
        case Opcode::Placeholder:
            if (const size_t own = nextInput++; own < inputs.size() && inputs[own])
                return guarded(*inputs[own]);
            if (n.args.empty())
                throw ExecError("the input is missing");
            return resolved(step.args[0], values);
        case Opcode::GetAttr:
            return guarded(step.constant);
        case Opcode::Output:
            return step.args.empty() ? Arg() : resolved(step.args[0], values);
        default: {
            ArgList args;
            args.reserve(step.args.size());
            for (const Source &s : step.args)
                args.push_back(resolved(s, values));
            Kwargs kwargs;
            for (const auto &[name, s] : step.kwargs)
                kwargs.emplace_back(name, resolved(s, values));
            return step.call(args, kwargs, run);
        }
        }
    }

    Arg run(const Inputs &inputs, const RunOptions &options)
    {
        const c10::InferenceMode inference;
        const QuietScope quiet;
        const EngineScope engine(options.engine);
        const RunState run{ &options };
        if (options.seed)
            at::Generator(at::globalContext().defaultGenerator(at::kCPU)).set_current_seed(*options.seed);
        if (inputs.size() > placeholders)
            throw ExecError(
                "the graph takes " + std::to_string(placeholders) + " inputs and got " + std::to_string(inputs.size()));
        const bool meta = onMeta || std::any_of(inputs.begin(), inputs.end(), [](const auto &a) { return a && holdsMeta(*a); });
        const MetaScope shapesAlone(meta);
        std::vector<Arg> values(steps.size());
        size_t nextInput = 0;
        Arg output;
        for (size_t slot = 0; slot < steps.size(); ++slot) {
            const Step &step = steps[slot];
            if (options.cancel && options.cancel->load(std::memory_order_relaxed))
                throw Cancelled();
            try {
                values[slot] = execute(step, values, inputs, nextInput, run);
            } catch (...) {
                if (options.cancel && options.cancel->load())
                    throw Cancelled();
                const Node &n = *step.node;
                const bool call = n.op != Opcode::Placeholder && n.op != Opcode::GetAttr && n.op != Opcode::Output;
                throw ExecError(n.name + ": " + (call ? described(gm, n) + ": " : "") + currentMessage());
            }
            if (step.node->op == Opcode::Output)
                output = meta ? values[slot] : leaving(values[slot], false);
            for (const size_t dead : step.last)
                if (dead != slot)
                    values[dead] = Arg();
            if (options.observer) {
                options.observer(step.node->id, meta ? values[slot] : leaving(values[slot], true));
                if (changesInPlace && !meta)
                    leaveWithObserver(values[slot]);
            }
            if (!step.last.empty() && step.last.back() == slot)
                values[slot] = Arg();
        }
        return output;
    }

    // What a run gives must be dense memory; an observer sees nothing where it is not.
    static Arg leaving(const Arg &value, bool observed)
    {
        return mapTensors(value, [&](const Tensor &t) { return observed && !isDense(t) ? Arg() : Arg(settled(t)); });
    }

    // An observer that kept the value must not see it change: the graph goes on with a copy.
    static void leaveWithObserver(Arg &value)
    {
        if (const Tensor *t = value.as<Tensor>(); t && *t && t->use_count() > 1)
            if (at::Tensor a = toAten(*t); a.use_count() <= 2 && a.storage().use_count() <= 1)
                value = fromAten(a.clone());
    }
};

Interpreter::Interpreter(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl))
{
}
Interpreter::Interpreter(Interpreter &&) noexcept = default;
Interpreter &Interpreter::operator=(Interpreter &&) noexcept = default;
Interpreter::~Interpreter() = default;

Result<Interpreter> Interpreter::create(const GraphModule &gm)
{
    try {
        const QuietScope quiet;
        return Interpreter(std::make_unique<Impl>(gm));
    } catch (...) {
        return Error{ currentMessage() };
    }
}

Result<Arg> Interpreter::run(const std::vector<Arg> &inputs, const RunOptions &options)
{
    return runBound(Inputs(inputs.begin(), inputs.end()), options);
}

Result<Arg> Interpreter::call(const ArgList &args, const Kwargs &kwargs, const RunOptions &options)
{
    const auto bound = bindArguments(impl_->gm.graph, args, kwargs);
    return bound ? runBound(*bound, options) : bound.error();
}

Result<Arg> Interpreter::runBound(const Inputs &inputs, const RunOptions &options)
{
    try {
        return impl_->run(inputs, options);
    } catch (const Cancelled &) {
        return Error{ kCancelled };
    } catch (...) {
        return Error{ currentMessage() };
    }
}

std::vector<NotExecutable> notExecutable(const GraphModule &gm)
{
    std::vector<NotExecutable> out;
    for (const NodeId id : gm.graph.order()) {
        const Node &n = gm.graph[id];
        NotExecutable found{ n.name, {} };
        try {
            if (n.op == Opcode::GetAttr) {
                if (!gm.tensor(n.target) && !gm.attributes.contains(n.target) && !graphRead(gm, n))
                    found.reason = "the archive does not hold '" + n.target + "'";
            } else {
                resolve(gm, n);
            }
            const ModuleInfo *m = gm.moduleOf(n);
            if (m && m->kind == ModuleKind::Opaque)
                found = { n.name, onlyInPython(*m), true };
            if (n.op == Opcode::CallFunction && isUsersFunction(n.target))
                found = { n.name, onlyInPython(n.target), true };
            if (m && m->kind == ModuleKind::Graph && m->graph)
                for (const NotExecutable &inner : notExecutable(*m->graph)) {
                    found = { n.name, inner.node + ": " + inner.reason, inner.inPython };
                    if (!inner.inPython)
                        break;
                }
        } catch (...) {
            found.reason = currentMessage();
        }
        if (!found.reason.empty())
            out.push_back(std::move(found));
    }
    return out;
}

void setThreads(int n)
{
    at::set_num_threads(n);
}

std::string torchVersion()
{
    return TORCH_VERSION;
}

std::vector<std::string> quantizedEngines()
{
    std::vector<std::string> out;
    for (const at::QEngine engine : at::Context::supportedQEngines()) {
        if (engine == at::QEngine::NoQEngine)
            continue;
        std::string name = at::toString(engine);
        std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return char(std::tolower(c)); });
        out.push_back(std::move(name));
    }
    return out;
}

} // namespace fb
