#include "model/ir/arg.h"

#include <cmath>
#include <type_traits>

namespace fb
{

namespace
{

std::shared_ptr<const ArgSequence> sequenceOf(ArgSequence::Kind kind, ArgList items)
{
    return std::make_shared<const ArgSequence>(ArgSequence{ kind, std::move(items) });
}

bool sameFloat(double a, double b)
{
    return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
}

} // namespace

Arg Arg::list(ArgList items)
{
    return sequenceOf(ArgSequence::List, std::move(items));
}
Arg Arg::tuple(ArgList items)
{
    return sequenceOf(ArgSequence::Tuple, std::move(items));
}
Arg Arg::size(ArgList items)
{
    return sequenceOf(ArgSequence::Size, std::move(items));
}

Arg Arg::dict(std::vector<std::pair<Arg, Arg>> items)
{
    return std::make_shared<const ArgDict>(ArgDict{ std::move(items) });
}

Arg Arg::slice(Arg start, Arg stop, Arg step)
{
    return std::make_shared<const ArgSlice>(ArgSlice{ std::move(start), std::move(stop), std::move(step), false });
}

Arg Arg::range(Arg start, Arg stop, Arg step)
{
    return std::make_shared<const ArgSlice>(ArgSlice{ std::move(start), std::move(stop), std::move(step), true });
}

Arg Arg::namedTuple(std::string type, std::vector<std::pair<std::string, Arg>> fields)
{
    return std::make_shared<const ArgNamedTuple>(ArgNamedTuple{ std::move(type), std::move(fields) });
}

Arg Arg::ints(const std::vector<int64_t> &values, bool tuple)
{
    ArgList items(values.begin(), values.end());
    return tuple ? Arg::tuple(std::move(items)) : Arg::list(std::move(items));
}

const ArgSequence *Arg::sequence() const
{
    auto *p = as<std::shared_ptr<const ArgSequence>>();
    return p ? p->get() : nullptr;
}

const ArgDict *Arg::dictionary() const
{
    auto *p = as<std::shared_ptr<const ArgDict>>();
    return p ? p->get() : nullptr;
}

const ArgSlice *Arg::sliceOrRange() const
{
    auto *p = as<std::shared_ptr<const ArgSlice>>();
    return p ? p->get() : nullptr;
}

const ArgNamedTuple *Arg::named() const
{
    auto *p = as<std::shared_ptr<const ArgNamedTuple>>();
    return p ? p->get() : nullptr;
}

std::optional<int64_t> Arg::toInt() const
{
    if (auto *i = as<int64_t>())
        return *i;
    if (auto *b = as<bool>())
        return *b;
    return std::nullopt;
}

std::optional<double> Arg::toDouble() const
{
    if (auto *d = as<double>())
        return *d;
    if (auto i = toInt())
        return double(*i);
    return std::nullopt;
}

std::optional<bool> Arg::toBool() const
{
    if (auto i = toInt())
        return *i != 0;
    return std::nullopt;
}

std::optional<std::vector<int64_t>> Arg::toInts() const
{
    if (auto i = toInt())
        return std::vector<int64_t>{ *i };
    const ArgSequence *s = sequence();
    if (!s)
        return std::nullopt;
    std::vector<int64_t> out;
    for (const Arg &a : s->items) {
        auto i = a.toInt();
        if (!i)
            return std::nullopt;
        out.push_back(*i);
    }
    return out;
}

bool Arg::operator==(const Arg &other) const
{
    if (value_.index() != other.value_.index())
        return false;
    return std::visit(
        [&](const auto &a) {
            using T = std::decay_t<decltype(a)>;
            const auto &b = std::get<T>(other.value_);
            if constexpr (std::is_same_v<T, double>) {
                return sameFloat(a, b);
            } else if constexpr (std::is_same_v<T, std::complex<double>>) {
                return sameFloat(a.real(), b.real()) && sameFloat(a.imag(), b.imag());
            } else if constexpr (std::is_same_v<T, Tensor>) {
                return sameContents(a, b);
            } else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgSequence>>) {
                return a == b || (a->kind == b->kind && a->items == b->items);
            } else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgDict>>) {
                return a == b || a->items == b->items;
            } else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgSlice>>) {
                return a == b || (a->isRange == b->isRange && a->start == b->start && a->stop == b->stop && a->step == b->step);
            } else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgNamedTuple>>) {
                return a == b || (a->type == b->type && a->fields == b->fields);
            } else {
                return a == b;
            }
        },
        value_);
}

void forEachNode(const Arg &arg, const std::function<void(NodeId)> &visit)
{
    if (NodeId id = arg.node()) {
        visit(id);
    } else if (const ArgSequence *s = arg.sequence()) {
        for (const Arg &a : s->items)
            forEachNode(a, visit);
    } else if (const ArgDict *d = arg.dictionary()) {
        for (const auto &[key, value] : d->items) {
            forEachNode(key, visit);
            forEachNode(value, visit);
        }
    } else if (const ArgSlice *s = arg.sliceOrRange()) {
        for (const Arg *a : { &s->start, &s->stop, &s->step })
            forEachNode(*a, visit);
    } else if (const ArgNamedTuple *n = arg.named()) {
        for (const auto &field : n->fields)
            forEachNode(field.second, visit);
    }
}

namespace
{

// One rebuild for both maps: `leaf` gives the replacement of a non-container, or nothing to keep it.
Arg rebuild(const Arg &arg, const std::function<std::optional<Arg>(const Arg &)> &leaf)
{
    if (auto replaced = leaf(arg))
        return *replaced;
    if (const ArgSequence *s = arg.sequence()) {
        ArgList items;
        items.reserve(s->items.size());
        for (const Arg &a : s->items)
            items.push_back(rebuild(a, leaf));
        return sequenceOf(s->kind, std::move(items));
    }
    if (const ArgDict *d = arg.dictionary()) {
        std::vector<std::pair<Arg, Arg>> items;
        for (const auto &[key, value] : d->items)
            items.emplace_back(rebuild(key, leaf), rebuild(value, leaf));
        return Arg::dict(std::move(items));
    }
    if (const ArgSlice *s = arg.sliceOrRange()) {
        Arg a = rebuild(s->start, leaf), b = rebuild(s->stop, leaf), c = rebuild(s->step, leaf);
        return s->isRange ? Arg::range(a, b, c) : Arg::slice(a, b, c);
    }
    if (const ArgNamedTuple *n = arg.named()) {
        std::vector<std::pair<std::string, Arg>> fields;
        for (const auto &[name, value] : n->fields)
            fields.emplace_back(name, rebuild(value, leaf));
        return Arg::namedTuple(n->type, std::move(fields));
    }
    return arg;
}

} // namespace

Arg mapNodes(const Arg &arg, const std::function<Arg(NodeId)> &replace)
{
    return rebuild(arg, [&](const Arg &a) -> std::optional<Arg> {
        if (NodeId id = a.node())
            return replace(id);
        return std::nullopt;
    });
}

Arg mapTensors(const Arg &arg, const std::function<Arg(const Tensor &)> &replace)
{
    return rebuild(arg, [&](const Arg &a) -> std::optional<Arg> {
        if (auto *t = a.as<Tensor>())
            return replace(*t);
        return std::nullopt;
    });
}

void forEachTensor(const Arg &arg, const std::function<void(const Tensor &)> &visit)
{
    mapTensors(arg, [&](const Tensor &t) {
        visit(t);
        return Arg(t);
    });
}

} // namespace fb
