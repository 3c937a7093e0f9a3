// Fuseboard: the arguments of a node, a closed recursive variant. GPL-3.0-or-later.
//
// Everything torch.fx allows in Node.args / Node.kwargs. References to other nodes are NodeIds, found and replaced by
// forEachNode and mapNodes alone, so no user of Arg walks it by hand.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/ir/tensor.h"

namespace fb
{

// Identity of a node everywhere: never reused in a document. 0 is no node.
struct NodeId {
    uint32_t value = 0;
    explicit operator bool() const { return value != 0; }
    auto operator<=>(const NodeId &) const = default;
};

class Arg;
using ArgList = std::vector<Arg>;

// Named values: text is torch's own spelling.
struct ArgDType {
    std::string name;
    bool operator==(const ArgDType &) const = default;
}; // "torch.float32"
struct ArgDevice {
    std::string name;
    bool operator==(const ArgDevice &) const = default;
}; // "cuda:0"
struct ArgLayout {
    std::string name;
    bool operator==(const ArgLayout &) const = default;
}; // "torch.strided"
struct ArgMemoryFormat {
    std::string name;
    bool operator==(const ArgMemoryFormat &) const = default;
}; // "torch.channels_last"
// A function, class or enum member. `repr` and `str`: what Python's functions of these names give, without addresses in memory;
// repr empty: the name; str empty: as repr.
struct ArgSymbol {
    std::string name, repr = {}, str = {};
    bool operator==(const ArgSymbol &) const = default;
};
struct ArgOpaque {
    std::string type, repr, str = {};
    bool operator==(const ArgOpaque &) const = default;
}; // anything else, shown only
struct ArgBigInt {
    std::string digits;
    bool operator==(const ArgBigInt &) const = default;
}; // beyond int64
struct ArgEllipsis {
    bool operator==(const ArgEllipsis &) const = default;
};
struct ArgNone {
    bool operator==(const ArgNone &) const = default;
};

struct ArgSequence; // list, tuple or torch.Size
struct ArgDict;
struct ArgSlice; // also range: start, stop, step
struct ArgNamedTuple;

class Arg
{
public:
    using Value = std::variant<ArgNone, bool, int64_t, double, std::complex<double>, std::string, NodeId, ArgBigInt, ArgDType,
        ArgDevice, ArgLayout, ArgMemoryFormat, ArgEllipsis, ArgSymbol, ArgOpaque, Tensor, std::shared_ptr<const ArgSequence>,
        std::shared_ptr<const ArgDict>, std::shared_ptr<const ArgSlice>, std::shared_ptr<const ArgNamedTuple>>;

    Arg() = default;
    template <class T>
    requires(
        std::is_constructible_v<Value,
            T &&> && !std::is_same_v<std::remove_cvref_t<T>, Arg> && !std::is_integral_v<std::remove_cvref_t<T>> && !std::is_pointer_v<std::decay_t<T>>)
        Arg(T &&v)
        : value_(std::forward<T>(v))
    {
    }
    Arg(bool v)
        : value_(v)
    {
    }
    Arg(int64_t v)
        : value_(v)
    {
    }
    Arg(int v)
        : value_(int64_t(v))
    {
    }
    Arg(const char *v)
        : value_(std::string(v))
    {
    }

    static Arg list(ArgList items);
    static Arg tuple(ArgList items);
    static Arg size(ArgList items); // torch.Size
    static Arg dict(std::vector<std::pair<Arg, Arg>> items);
    static Arg slice(Arg start, Arg stop, Arg step);
    static Arg range(Arg start, Arg stop, Arg step);
    static Arg namedTuple(std::string type, std::vector<std::pair<std::string, Arg>> fields);
    static Arg ints(const std::vector<int64_t> &values, bool tuple = true);

    const Value &value() const { return value_; }
    template <class T> const T *as() const { return std::get_if<T>(&value_); }
    bool isNone() const { return std::holds_alternative<ArgNone>(value_); }
    NodeId node() const
    {
        auto *n = as<NodeId>();
        return n ? *n : NodeId{};
    } // no node: NodeId{}
    const ArgSequence *sequence() const; // list, tuple or size, else null
    const ArgDict *dictionary() const;
    const ArgSlice *sliceOrRange() const;
    const ArgNamedTuple *named() const;

    std::optional<int64_t> toInt() const; // int, bool
    std::optional<double> toDouble() const; // int, bool, float
    std::optional<bool> toBool() const; // bool, int
    std::optional<std::vector<int64_t>> toInts() const; // sequence of ints; a single int gives one entry

    bool operator==(const Arg &other) const; // nan equals nan; tensors by contents; 1 != 1.0 != true

private:
    Value value_;
};

struct ArgSequence {
    enum Kind : uint8_t { List, Tuple, Size } kind = List;
    ArgList items;
};
struct ArgDict {
    std::vector<std::pair<Arg, Arg>> items;
};
struct ArgSlice {
    Arg start, stop, step;
    bool isRange = false;
};
struct ArgNamedTuple {
    std::string type;
    std::vector<std::pair<std::string, Arg>> fields;
};

// Every node reference, in the order torch.fx's map_arg visits them (repeats included).
void forEachNode(const Arg &arg, const std::function<void(NodeId)> &visit);
// A copy with node references replaced; everything else is kept as it is (and shared).
Arg mapNodes(const Arg &arg, const std::function<Arg(NodeId)> &replace);
// A copy with tensors replaced.
Arg mapTensors(const Arg &arg, const std::function<Arg(const Tensor &)> &replace);
void forEachTensor(const Arg &arg, const std::function<void(const Tensor &)> &visit);

} // namespace fb

template <> struct std::hash<fb::NodeId> {
    size_t operator()(const fb::NodeId &id) const noexcept { return id.value; }
};
