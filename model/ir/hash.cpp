#include "model/ir/hash.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <type_traits>

namespace fb
{

namespace
{

// FNV-1a over everything that is put in, each piece with its length or kind, so that pieces cannot run together.
class Hash
{
public:
    // Node references are what `place` says; all are alike without it.
    explicit Hash(std::function<uint64_t(NodeId)> place = {})
        : place_(std::move(place))
    {
    }

    uint64_t value() const { return value_; }

    Hash &bytes(const void *data, size_t size)
    {
        const auto *p = static_cast<const unsigned char *>(data);
        for (size_t i = 0; i < size; ++i)
            value_ = (value_ ^ p[i]) * 1099511628211u;
        return *this;
    }
    Hash &put(uint64_t v) { return bytes(&v, sizeof v); }
    Hash &put(const std::string &s) { return put(s.size()).bytes(s.data(), s.size()); }
    Hash &put(double v)
    {
        const double one = std::isnan(v) ? std::nan("") : v;
        return bytes(&one, sizeof one);
    }

    Hash &put(const Tensor &t)
    {
        if (!t)
            return put(uint64_t(0));
        put(uint64_t(t->dtype) + 1).put(t->sizes.size());
        for (int64_t s : t->sizes)
            put(uint64_t(s));
        if (t->quant) {
            put(uint64_t(t->quant->axis));
            for (double s : t->quant->scales)
                put(s);
            for (int64_t z : t->quant->zeroPoints)
                put(uint64_t(z));
        }
        const size_t width = dtypeSize(t->dtype);
        if (t->isContiguous())
            return bytes(t->data, size_t(t->numel()) * width);
        std::vector<int64_t> index(t->sizes.size());
        for (int64_t left = t->numel(); left > 0; --left) {
            int64_t offset = 0;
            for (size_t d = 0; d < index.size(); ++d)
                offset += index[d] * t->strides[d];
            bytes(t->data + size_t(offset) * width, width);
            for (size_t d = index.size(); d-- > 0 && ++index[d] == t->sizes[d];)
                index[d] = 0;
        }
        return *this;
    }

    Hash &put(const Arg &arg)
    {
        put(uint64_t(arg.value().index()));
        std::visit(
            [this](const auto &v) {
                using T = std::decay_t<decltype(v)>;
                if constexpr (std::is_same_v<T, ArgNone> || std::is_same_v<T, ArgEllipsis>) {
                } else if constexpr (std::is_integral_v<T>) {
                    put(uint64_t(v));
                } else if constexpr (std::is_same_v<T, std::complex<double>>) {
                    put(v.real()).put(v.imag());
                } else if constexpr (std::is_same_v<T, NodeId>) {
                    put(place_ ? place_(v) : 0);
                } else if constexpr (std::is_same_v<T, ArgBigInt>) {
                    put(v.digits);
                } else if constexpr (std::is_same_v<T, ArgSymbol>) {
                    put(v.name).put(v.repr).put(v.str);
                } else if constexpr (std::is_same_v<T, ArgOpaque>) {
                    put(v.type).put(v.repr).put(v.str);
                } else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgSequence>>) {
                    put(uint64_t(v->kind)).put(v->items.size());
                    for (const Arg &item : v->items)
                        put(item);
                } else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgDict>>) {
                    put(v->items.size());
                    for (const auto &[key, value] : v->items)
                        put(key).put(value);
                } else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgSlice>>) {
                    put(uint64_t(v->isRange)).put(v->start).put(v->stop).put(v->step);
                } else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgNamedTuple>>) {
                    put(v->type).put(v->fields.size());
                    for (const auto &[name, value] : v->fields)
                        put(name).put(value);
                } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::string> || std::is_same_v<T, Tensor>) {
                    put(v);
                } else {
                    put(v.name); // dtype, device, layout, memory format
                }
            },
            arg.value());
        return *this;
    }
    Hash &put(const Kwargs &kwargs)
    {
        put(kwargs.size());
        for (const auto &[name, value] : kwargs)
            put(name).put(value);
        return *this;
    }
    Hash &put(const std::vector<std::string> &names)
    {
        put(names.size());
        for (const std::string &name : names)
            put(name);
        return *this;
    }

private:
    std::function<uint64_t(NodeId)> place_;
    uint64_t value_ = 14695981039346656037u;
};

uint64_t hashOf(const ModuleInfo &m)
{
    Hash h;
    h.put(m.path).put(m.className).put(uint64_t(m.kind)).put(uint64_t(m.training)).put(m.attrs).put(m.extraRepr);
    h.put(m.parameters).put(m.buffers).put(m.none).put(m.aliasOf).put(uint64_t(m.keepFloat));
    h.put(m.script ? *m.script : std::string()).put(m.graph ? hashOf(*m.graph) : 0);
    return h.value();
}

} // namespace

uint64_t hashOf(const Arg &arg)
{
    return Hash().put(arg).value();
}

uint64_t hashOf(const Graph &graph)
{
    Hash h([&](NodeId id) { return graph.position(id) + 1; });
    for (NodeId id : graph.order()) {
        const Node &n = graph[id];
        h.put(uint64_t(n.op)).put(n.name).put(n.target).put(n.type).put(n.typeText).put(n.modulePath());
        h.put(n.args.size());
        for (const Arg &a : n.args)
            h.put(a);
        h.put(n.kwargs).put(n.metadata ? *n.metadata : Kwargs());
        if (n.meta) {
            h.put(uint64_t(n.meta->dtype) + 1);
            for (int64_t s : n.meta->shape)
                h.put(uint64_t(s));
        }
    }
    return h.value();
}

uint64_t hashOf(const GraphModule &gm)
{
    Hash h;
    h.put(gm.rootClass).put(hashOf(gm.graph));
    for (const auto &entry : gm.modules)
        h.put(hashOf(*entry.second));
    std::map<const TensorData *, uint64_t> first; // ties
    for (const auto &[name, e] : gm.tensors) {
        const auto [it, fresh] = first.try_emplace(e->tensor.get(), first.size());
        h.put(name).put(uint64_t(e->parameter)).put(uint64_t(e->persistent)).put(it->second);
        if (fresh)
            h.put(e->tensor);
    }
    uint64_t attributes = 0; // in any order, as `==` has it
    for (const auto &[name, value] : gm.attributes)
        attributes += Hash().put(name).put(*value).value();
    return h.put(attributes).value();
}

} // namespace fb
