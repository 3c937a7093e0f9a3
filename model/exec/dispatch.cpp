#include "model/exec/dispatch.h"

#include <algorithm>
#include <unordered_map>

#include <torch/version.h>

namespace fb
{

namespace
{

using Overloads = std::vector<c10::OperatorHandle>;

// Every operator by name and by full name; operators are registered when the libraries load.
const std::unordered_map<std::string, Overloads> &registry()
{
    static const auto table = [] {
        std::unordered_map<std::string, Overloads> t;
        auto &dispatcher = c10::Dispatcher::singleton();
        for (const c10::OperatorName &name : dispatcher.getAllOpNames()) {
            const auto handle = dispatcher.findSchema(name);
            if (!handle)
                continue;
            t[name.name].push_back(*handle);
            t[name.name + "." + (name.overload_name.empty() ? "default" : name.overload_name)].push_back(*handle);
        }
        for (auto &[name, list] : t)
            std::sort(list.begin(), list.end(), [](const auto &a, const auto &b) {
                const auto key
                    = [](const auto &h) { return std::pair(h.schema().arguments().size(), h.schema().overload_name()); };
                return key(a) < key(b);
            });
        return t;
    }();
    return table;
}

const Overloads *find(const std::string &name)
{
    const auto it = registry().find(name);
    return it == registry().end() ? nullptr : &it->second;
}

// Names under which Python takes a schema's argument.
bool sameName(const std::string &python, const std::string &schema)
{
    return python == schema || (schema == "self" && (python == "input" || python == "x" || python == "x1" || python == "a"))
        || (schema == "other" && (python == "x2" || python == "b")) || (schema == "dim" && python == "axis")
        || (schema == "keepdim" && python == "keepdims");
}

bool isIntList(const c10::Argument &a)
{
    const auto *list = a.type()->castRaw<c10::ListType>();
    return list
        && (list->getElementType()->kind() == c10::TypeKind::IntType
            || list->getElementType()->kind() == c10::TypeKind::SymIntType);
}

std::optional<c10::IValue> convert(const Operand &o, const c10::Argument &a, int &cost)
{
    if (!o.object.isNone())
        return o.object;
    return toIValue(o.arg, a.real_type(), cost, a.N() ? std::optional<int>(int(*a.N())) : std::nullopt);
}

std::optional<std::vector<c10::IValue>> match(
    const c10::FunctionSchema &schema, const std::vector<Operand> &args, const KeywordOperands &kwargs, int &cost)
{
    const auto &wanted = schema.arguments();
    std::vector<const Operand *> bound(wanted.size(), nullptr);
    Operand spread;
    size_t positional = 0;
    while (positional < wanted.size() && !wanted[positional].kwarg_only())
        ++positional;
    size_t given = args.size();
    // x.view(2, 3): ints spread over the place of the one list.
    const size_t listAt = !wanted.empty() && isIntList(wanted[0]) ? 0 : 1;
    const auto isInt = [](const Operand &o) { return o.arg.as<int64_t>() || o.arg.as<bool>(); };
    if (listAt < positional && given > listAt && isIntList(wanted[listAt])
        && std::all_of(args.begin() + ptrdiff_t(listAt), args.end(), isInt)
        && (given > positional || (positional == listAt + 1 && (!wanted[listAt].N() || given > listAt + 1)))) {
        ArgList ints;
        for (size_t i = listAt; i < given; ++i)
            ints.push_back(args[i].arg);
        spread.arg = Arg::list(std::move(ints));
        bound[listAt] = &spread;
        given = listAt;
    }
    if (given > positional)
        return std::nullopt;
    for (size_t i = 0; i < given; ++i)
        bound[i] = &args[i];
    for (const auto &[name, value] : kwargs) {
        const auto it
            = std::find_if(wanted.begin(), wanted.end(), [&](const c10::Argument &a) { return sameName(name, a.name()); });
        if (it == wanted.end()) {
            if (name == "requires_grad" || (name == "out" && value.arg.isNone()))
                continue;
            return std::nullopt;
        }
        const size_t i = size_t(it - wanted.begin());
        if (bound[i])
            return std::nullopt;
        bound[i] = &value;
    }
    std::vector<c10::IValue> stack;
    stack.reserve(wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
        if (!bound[i]) {
            if (!wanted[i].default_value())
                return std::nullopt;
            stack.push_back(*wanted[i].default_value());
            continue;
        }
        auto v = convert(*bound[i], wanted[i], cost);
        if (!v)
            return std::nullopt;
        stack.push_back(std::move(*v));
    }
    return stack;
}

std::string describe(const Operand &o)
{
    const Arg &a = o.arg;
    if (!o.object.isNone())
        return "packed";
    if (a.as<Tensor>())
        return "Tensor";
    if (a.isNone())
        return "None";
    if (a.as<bool>())
        return "bool";
    if (a.as<int64_t>())
        return "int";
    if (a.as<double>())
        return "float";
    if (a.as<std::string>())
        return "str";
    if (const ArgSequence *s = a.sequence())
        return s->kind == ArgSequence::List ? "list" : "tuple";
    if (a.dictionary())
        return "dict";
    return "object";
}

struct Chosen {
    c10::OperatorHandle op;
    std::vector<c10::IValue> stack;
};

Chosen choose(const std::string &name, const std::vector<Operand> &args, const KeywordOperands &kwargs)
{
    const Overloads *overloads = find(name);
    if (!overloads)
        throw ExecError("there is no operator " + name + " in torch " + TORCH_VERSION);
    std::optional<Chosen> best;
    int bestCost = 0;
    for (const c10::OperatorHandle &op : *overloads) {
        const std::string &overload = op.schema().overload_name();
        if (overloads->size() > 1 && (overload.find("imname") != overload.npos || overload.find("names") != overload.npos))
            continue; // named dimensions
        int cost = 0;
        auto stack = match(op.schema(), args, kwargs, cost);
        if (stack && (!best || cost < bestCost)) {
            best.emplace(Chosen{ op, std::move(*stack) });
            bestCost = cost;
            if (cost == 0)
                break;
        }
    }
    if (!best) {
        std::string given;
        for (const Operand &o : args)
            given += (given.empty() ? "" : ", ") + describe(o);
        for (const auto &[key, o] : kwargs)
            given += (given.empty() ? "" : ", ") + key + "=" + describe(o);
        throw ExecError("no overload of " + name + " takes (" + given + ")");
    }
    return std::move(*best);
}

} // namespace

bool operatorExists(const std::string &name)
{
    return find(name) != nullptr;
}

std::vector<c10::IValue> callBoxed(const std::string &name, const std::vector<Operand> &args, const KeywordOperands &kwargs)
{
    Chosen c = choose(name, args, kwargs);
    c.op.callBoxed(&c.stack);
    return std::move(c.stack);
}

Arg callOperator(const std::string &name, const std::vector<Operand> &args, const KeywordOperands &kwargs)
{
    Chosen c = choose(name, args, kwargs);
    c.op.callBoxed(&c.stack);
    if (c.stack.empty())
        return {};
    if (c.stack.size() == 1)
        return fromIValue(c.stack[0]);
    const auto &returns = c.op.schema().returns();
    const bool named = returns.size() == c.stack.size()
        && std::all_of(returns.begin(), returns.end(), [](const c10::Argument &a) { return !a.name().empty(); });
    if (!named) {
        ArgList items;
        for (const c10::IValue &v : c.stack)
            items.push_back(fromIValue(v));
        return Arg::tuple(std::move(items));
    }
    std::vector<std::pair<std::string, Arg>> fields;
    for (size_t i = 0; i < c.stack.size(); ++i)
        fields.emplace_back(returns[i].name(), fromIValue(c.stack[i]));
    return Arg::namedTuple("torch.return_types." + name.substr(name.find("::") + 2), std::move(fields));
}

} // namespace fb
