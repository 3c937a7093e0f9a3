#include "model/exec/dispatch.h"
#include "model/exec/schema.h"

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

// How the arguments of a call fill the places of a schema: settled once for each kind of arguments.
struct Source {
    enum Kind : uint8_t { Default, Positional, Keyword, Spread, OutItem } kind = Default;
    uint32_t index = 0; // of the argument; Spread: the first of those that make one list
    uint32_t item = 0; // OutItem: of the tuple given as out=
};
struct Plan {
    c10::OperatorHandle op;
    std::vector<Source> sources;
};

// The IValues that a schema takes, or nothing where an argument does not convert.
std::optional<std::vector<c10::IValue>> fill(
    const Plan &plan, const std::vector<Operand> &args, const KeywordOperands &kwargs, int &cost)
{
    const auto &wanted = plan.op.schema().arguments();
    std::vector<c10::IValue> stack;
    stack.reserve(std::max(wanted.size(), plan.op.schema().returns().size()));
    for (size_t i = 0; i < plan.sources.size(); ++i) {
        const Source &s = plan.sources[i];
        std::optional<c10::IValue> v;
        switch (s.kind) {
        case Source::Default:
            v = *wanted[i].default_value();
            break;
        case Source::Positional:
            v = convert(args[s.index], wanted[i], cost);
            break;
        case Source::Keyword:
            v = convert(kwargs[s.index].second, wanted[i], cost);
            break;
        case Source::Spread: {
            ArgList items;
            for (size_t k = s.index; k < args.size(); ++k)
                items.push_back(args[k].arg);
            v = convert({ Arg::list(std::move(items)), {} }, wanted[i], ++cost);
            break;
        }
        case Source::OutItem: {
            const ArgSequence *out = kwargs[s.index].second.arg.sequence();
            if (out && s.item < out->items.size())
                v = toIValue(out->items[s.item], wanted[i].real_type(), cost);
        }
        }
        if (!v)
            return std::nullopt;
        stack.push_back(std::move(*v));
    }
    return stack;
}

// Where each argument of the schema comes from; nothing where names or counts do not fit.
std::optional<std::vector<Source>> match(
    const c10::FunctionSchema &schema, const std::vector<Operand> &args, const KeywordOperands &kwargs)
{
    const auto &wanted = schema.arguments();
    std::vector<Source> bound(wanted.size());
    size_t positional = 0;
    while (positional < wanted.size() && !wanted[positional].kwarg_only())
        ++positional;
    size_t given = args.size();
    // x.view(2, 3): ints (or tensors, for the functions that take a list of them) spread over the place of the one list.
    const auto isInt = [](const Operand &o) { return o.arg.as<int64_t>() || o.arg.as<bool>() || o.arg.as<Tensor>(); };
    const size_t listAt = !wanted.empty() && isIntList(wanted[0]) ? 0 : 1;
    if (listAt < positional && given > listAt && isIntList(wanted[listAt])
        && std::all_of(args.begin() + ptrdiff_t(listAt), args.end(), isInt)
        && (given > positional || (positional == listAt + 1 && (!wanted[listAt].N() || given > listAt + 1)))) {
        bound[listAt] = { Source::Spread, uint32_t(listAt) };
        given = listAt;
    }
    if (given > positional)
        return std::nullopt;
    for (size_t i = 0; i < given; ++i)
        bound[i] = { Source::Positional, uint32_t(i) };
    for (size_t k = 0; k < kwargs.size(); ++k) {
        const auto &[name, value] = kwargs[k];
        const Source source{ Source::Keyword, uint32_t(k) };
        if (name == "out" && value.arg.isNone())
            continue;
        auto it = std::find_if(wanted.begin(), wanted.end(), [&, &key = name](const auto &a) { return sameName(key, a.name()); });
        if (name == "out" && it == wanted.end()) { // out=(values, indices): each has a name in the schema
            uint32_t item = 0;
            for (size_t i = 0; i < wanted.size(); ++i)
                if (wanted[i].is_out())
                    bound[i] = value.arg.as<Tensor>() ? source : Source{ Source::OutItem, uint32_t(k), item++ };
            if (item != (value.arg.sequence() ? value.arg.sequence()->items.size() : 0)
                || (!item && std::none_of(wanted.begin(), wanted.end(), [](const auto &a) { return a.is_out(); })))
                return std::nullopt;
            continue;
        }
        if (it == wanted.end()) {
            if (name == "requires_grad" || name == "pin_memory" || value.arg.isNone())
                continue;
            return std::nullopt;
        }
        Source &place = bound[size_t(it - wanted.begin())];
        if (place.kind != Source::Default)
            return std::nullopt;
        place = source;
    }
    for (size_t i = 0; i < wanted.size(); ++i)
        if (bound[i].kind == Source::Default && !wanted[i].default_value())
            return std::nullopt;
    return bound;
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

// What overload choice sees of an argument: its kind, and whether a tensor has dimensions.
void addKind(std::string &key, const Arg &a, int depth = 0)
{
    if (const Tensor *t = a.as<Tensor>()) {
        key += !*t ? 'U' : (*t)->sizes.empty() ? '0' : 'T';
        return;
    }
    if (const ArgSequence *s = a.sequence()) {
        key += s->kind == ArgSequence::List ? '[' : '(';
        if (depth < 2)
            for (const Arg &item : s->items)
                addKind(key, item, depth + 1);
        key += ')';
        return;
    }
    key += char('a' + a.value().index());
}

struct Chosen {
    c10::OperatorHandle op;
    std::vector<c10::IValue> stack;
};

Chosen search(const std::string &name, const Overloads &overloads, const std::vector<Operand> &args,
    const KeywordOperands &kwargs, std::optional<Plan> &plan)
{
    std::optional<Chosen> best;
    int bestCost = 0;
    for (const c10::OperatorHandle &op : overloads) {
        const std::string &overload = op.schema().overload_name();
        if (overloads.size() > 1 && (overload.find("imname") != overload.npos || overload.find("names") != overload.npos))
            continue; // named dimensions
        auto sources = match(op.schema(), args, kwargs);
        if (!sources)
            continue;
        Plan candidate{ op, std::move(*sources) };
        int cost = 0;
        auto stack = fill(candidate, args, kwargs, cost);
        if (stack && (!best || cost < bestCost)) {
            best.emplace(Chosen{ op, std::move(*stack) });
            plan = std::move(candidate);
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

// The overload for these arguments. Arguments of the same kinds take the same one, so the search is made once for each.
Chosen choose(const std::string &name, const std::vector<Operand> &args, const KeywordOperands &kwargs)
{
    const Overloads *overloads = find(name);
    if (!overloads)
        throw ExecError("there is no operator " + name + " in torch " + TORCH_VERSION);
    thread_local std::unordered_map<std::string, Plan> plans;
    thread_local std::string key;
    key.assign(reinterpret_cast<const char *>(&overloads), sizeof overloads);
    for (const Operand &o : args)
        o.object.isNone() ? addKind(key, o.arg) : key.push_back('P');
    for (const auto &[word, o] : kwargs) {
        key += '=';
        key += word;
        key += ':';
        o.object.isNone() ? addKind(key, o.arg) : key.push_back('P');
    }
    const auto it = plans.find(key);
    if (it != plans.end()) {
        int cost = 0;
        if (auto stack = fill(it->second, args, kwargs, cost))
            return { it->second.op, std::move(*stack) };
    }
    std::optional<Plan> plan;
    Chosen chosen = search(name, *overloads, args, kwargs, plan);
    if (it == plans.end())
        plans.emplace(key, std::move(*plan));
    return chosen;
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

std::vector<SchemaParameter> schemaParameters(const std::string &name)
{
    std::vector<SchemaParameter> out;
    const Overloads *overloads = find(name);
    if (!overloads || overloads->size() != 1)
        return out;
    for (const c10::Argument &a : overloads->front().schema().arguments()) {
        SchemaParameter p{ a.name(), std::nullopt };
        if (a.default_value())
            p.fallback = fromIValue(*a.default_value());
        out.push_back(std::move(p));
    }
    return out;
}

} // namespace fb
