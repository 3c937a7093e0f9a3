#include "model/exec/calls.h"

#include <cmath>
#include <numeric>

#include <ATen/TensorIndexing.h>

namespace fb
{

namespace
{

const Tensor *tensorOf(const Arg &a)
{
    const Tensor *t = a.as<Tensor>();
    return t && *t ? t : nullptr;
}

at::Tensor aten(const Arg &a)
{
    if (const Tensor *t = tensorOf(a))
        return toAten(*t);
    throw ExecError("a tensor was expected");
}

Arg wrap(const at::Tensor &t)
{
    Tensor r = hold(t);
    return r ? Arg(std::move(r)) : Arg();
}

const Arg &at(const ArgList &args, size_t i)
{
    if (i >= args.size())
        throw ExecError("an argument is missing");
    return args[i];
}

Arg argument(const ArgList &args, const Kwargs &kwargs, size_t i, std::string_view name, Arg fallback = {})
{
    if (i < args.size())
        return args[i];
    for (const auto &[k, v] : kwargs)
        if (k == name)
            return v;
    return fallback;
}

bool truth(const Arg &a)
{
    if (a.isNone())
        return false;
    if (const auto d = a.toDouble())
        return *d != 0;
    if (const auto *s = a.as<std::string>())
        return !s->empty();
    if (const ArgSequence *s = a.sequence())
        return !s->items.empty();
    if (const ArgDict *d = a.dictionary())
        return !d->items.empty();
    if (tensorOf(a))
        return aten(a).item().toBool();
    return true;
}

int64_t integer(const Arg &a)
{
    if (const auto i = a.toInt())
        return *i;
    if (tensorOf(a) && !at::isFloatingType(aten(a).scalar_type()))
        return aten(a).item().toLong();
    throw ExecError("an int was expected");
}

double number(const Arg &a)
{
    if (const auto d = a.toDouble())
        return *d;
    if (tensorOf(a))
        return aten(a).item().toDouble();
    throw ExecError("a number was expected");
}

int64_t floorDiv(int64_t a, int64_t b)
{
    if (b == 0)
        throw ExecError("integer division by zero");
    return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

Arg power(const Arg &a, const Arg &b)
{
    if (a.toInt() && b.toInt() && *b.toInt() >= 0) {
        int64_t r = 1;
        for (int64_t i = 0; i < *b.toInt(); ++i)
            if (__builtin_mul_overflow(r, *a.toInt(), &r))
                throw ExecError("the integer power is too large");
        return r;
    }
    return std::pow(number(a), number(b));
}

enum class Op { Add, Sub, Mul, TrueDiv, FloorDiv, Mod, Pow, MatMul, And, Or, Xor, LShift, RShift, Eq, Ne, Lt, Le, Gt, Ge };
constexpr const char *kAten[] = { "aten::add", "aten::sub", "aten::mul", "aten::div", "aten::floor_divide", "aten::remainder",
    "aten::pow", "aten::matmul", "aten::bitwise_and", "aten::bitwise_or", "aten::bitwise_xor", "aten::bitwise_left_shift",
    "aten::bitwise_right_shift", "aten::eq", "aten::ne", "aten::lt", "aten::le", "aten::gt", "aten::ge" };

// What a comparison says of two ints or two floats; nothing for other operators.
template <class N> std::optional<bool> compared(Op op, N x, N y)
{
    switch (op) {
    case Op::Eq:
        return x == y;
    case Op::Ne:
        return x != y;
    case Op::Lt:
        return x < y;
    case Op::Le:
        return x <= y;
    case Op::Gt:
        return x > y;
    case Op::Ge:
        return x >= y;
    default:
        return std::nullopt;
    }
}

// Two Python numbers.
Arg compute(Op op, const Arg &a, const Arg &b)
{
    if (a.toInt() && b.toInt()) {
        const int64_t x = *a.toInt(), y = *b.toInt();
        const bool bools = a.as<bool>() && b.as<bool>();
        int64_t r = 0;
        const auto fits = [&r](bool overflow) -> Arg {
            if (overflow)
                throw ExecError("an integer result is too large");
            return r;
        };
        switch (op) {
        case Op::Add:
            return fits(__builtin_add_overflow(x, y, &r));
        case Op::Sub:
            return fits(__builtin_sub_overflow(x, y, &r));
        case Op::Mul:
            return fits(__builtin_mul_overflow(x, y, &r));
        case Op::FloorDiv:
            return floorDiv(x, y);
        case Op::Mod:
            return x - floorDiv(x, y) * y;
        case Op::And:
            return bools ? Arg((x & y) != 0) : Arg(x & y);
        case Op::Or:
            return bools ? Arg((x | y) != 0) : Arg(x | y);
        case Op::Xor:
            return bools ? Arg((x ^ y) != 0) : Arg(x ^ y);
        case Op::LShift:
        case Op::RShift:
            if (y < 0 || y > 62)
                throw ExecError("a shift by " + std::to_string(y) + " is out of range");
            return op == Op::LShift ? x << y : x >> y;
        case Op::Pow:
            return power(a, b);
        default:
            if (const auto answer = compared(op, x, y))
                return *answer;
        }
    }
    const double x = number(a), y = number(b);
    if ((op == Op::TrueDiv || op == Op::FloorDiv || op == Op::Mod) && y == 0)
        throw ExecError("division by zero");
    switch (op) {
    case Op::Add:
        return x + y;
    case Op::Sub:
        return x - y;
    case Op::Mul:
        return x * y;
    case Op::TrueDiv:
        return x / y;
    case Op::FloorDiv:
        return std::floor(x / y);
    case Op::Mod: {
        const double m = std::fmod(x, y);
        return m != 0 && (m < 0) != (y < 0) ? m + y : m;
    }
    case Op::Pow:
        return std::pow(x, y);
    default:
        if (const auto answer = compared(op, x, y))
            return *answer;
        throw ExecError("this operator does not take floats");
    }
}

Arg binary(Op op, const Arg &a, const Arg &b)
{
    if (tensorOf(a) || tensorOf(b)) {
        if (!tensorOf(a)) { // the reflected methods of torch.Tensor
            switch (op) {
            case Op::Sub:
                return callOperator("aten::rsub", { { b, {} }, { a, {} } });
            case Op::TrueDiv:
                return wrap(aten(b).reciprocal().mul(toScalar(a)));
            case Op::Lt:
                return binary(Op::Gt, b, a);
            case Op::Le:
                return binary(Op::Ge, b, a);
            case Op::Gt:
                return binary(Op::Lt, b, a);
            case Op::Ge:
                return binary(Op::Le, b, a);
            case Op::Add:
            case Op::Mul:
            case Op::Eq:
            case Op::Ne:
            case Op::And:
            case Op::Or:
            case Op::Xor:
                if ((op == Op::Eq || op == Op::Ne) && a.isNone())
                    return op == Op::Ne;
                return callOperator(kAten[int(op)], { { b, {} }, { a, {} } });
            default:
                break;
            }
        }
        if ((op == Op::Eq || op == Op::Ne) && b.isNone())
            return op == Op::Ne;
        return callOperator(kAten[int(op)], { { a, {} }, { b, {} } });
    }
    const ArgSequence *x = a.sequence(), *y = b.sequence();
    if (op == Op::Add && x && y) {
        ArgList items = x->items;
        items.insert(items.end(), y->items.begin(), y->items.end());
        return x->kind == ArgSequence::List ? Arg::list(std::move(items)) : Arg::tuple(std::move(items));
    }
    if (op == Op::Mul && (x || y)) {
        const ArgSequence &s = x ? *x : *y;
        const int64_t n = integer(x ? b : a);
        if (n > 0 && uint64_t(n) * s.items.size() > 1'000'000)
            throw ExecError("the repeated sequence is too long");
        ArgList items;
        for (int64_t i = 0; i < n; ++i)
            items.insert(items.end(), s.items.begin(), s.items.end());
        return s.kind == ArgSequence::List ? Arg::list(std::move(items)) : Arg::tuple(std::move(items));
    }
    if (op == Op::Add && a.as<std::string>() && b.as<std::string>())
        return *a.as<std::string>() + *b.as<std::string>();
    if ((op == Op::Eq || op == Op::Ne) && !(a.toDouble() && b.toDouble())) {
        bool same = a == b;
        if (x && y && (x->kind == ArgSequence::List) == (y->kind == ArgSequence::List)) { // torch.Size equals a tuple
            same = x->items.size() == y->items.size();
            for (size_t i = 0; same && i < x->items.size(); ++i)
                same = truth(binary(Op::Eq, x->items[i], y->items[i]));
        }
        return same == (op == Op::Eq);
    }
    return compute(op, a, b);
}

template <Op op> Arg binaryFunction(const ArgList &args, const Kwargs &)
{
    return binary(op, at(args, 0), at(args, 1));
}

// operator.iadd and friends: in place on tensors, as Python's `+=`.
template <Op op> Arg inplaceFunction(const ArgList &args, const Kwargs &)
{
    if (!tensorOf(at(args, 0)) || op == Op::MatMul)
        return binary(op, at(args, 0), at(args, 1));
    return callOperator(std::string(kAten[int(op)]) + "_", { { args[0], {} }, { at(args, 1), {} } });
}

// --- indexing ---

using at::indexing::TensorIndex;

TensorIndex oneIndex(const Arg &a)
{
    if (a.isNone())
        return TensorIndex(at::indexing::None);
    if (a.as<ArgEllipsis>())
        return TensorIndex(at::indexing::Ellipsis);
    if (const bool *b = a.as<bool>())
        return TensorIndex(*b);
    if (const int64_t *i = a.as<int64_t>())
        return TensorIndex(*i);
    if (tensorOf(a))
        return TensorIndex(aten(a));
    if (const ArgSlice *s = a.sliceOrRange(); s && !s->isRange) {
        const auto bound
            = [](const Arg &v) { return v.isNone() ? std::optional<c10::SymInt>() : std::optional<c10::SymInt>(integer(v)); };
        return TensorIndex(at::indexing::Slice(bound(s->start), bound(s->stop), bound(s->step)));
    }
    int cost = 0;
    const bool bools = a.sequence() && !a.sequence()->items.empty() && a.sequence()->items[0].as<bool>();
    if (auto list = toIValue(a, c10::ListType::ofInts(), cost)) {
        at::Tensor t = at::tensor(list->toIntVector(), at::kLong);
        return TensorIndex(bools ? t.to(at::kBool) : t);
    }
    throw ExecError("an index of this kind is not supported");
}

std::vector<TensorIndex> indices(const Arg &index)
{
    std::vector<TensorIndex> out;
    if (const ArgSequence *s = index.sequence(); s && s->kind != ArgSequence::List)
        for (const Arg &item : s->items)
            out.push_back(oneIndex(item));
    else
        out.push_back(oneIndex(index));
    return out;
}

ArgList itemsOf(const Arg &a)
{
    if (const ArgSequence *s = a.sequence())
        return s->items;
    if (const ArgNamedTuple *n = a.named()) {
        ArgList items;
        for (const auto &field : n->fields)
            items.push_back(field.second);
        return items;
    }
    if (const ArgSlice *r = a.sliceOrRange(); r && r->isRange) {
        ArgList items;
        const int64_t start = integer(r->start), stop = integer(r->stop), step = integer(r->step);
        for (int64_t i = start; step > 0 ? i < stop : step < 0 && i > stop; i += step)
            items.emplace_back(i);
        return items;
    }
    if (tensorOf(a)) {
        ArgList items;
        for (const at::Tensor &t : aten(a).unbind(0))
            items.push_back(wrap(t));
        return items;
    }
    throw ExecError("a sequence was expected");
}

Arg getitem(const ArgList &args, const Kwargs &)
{
    const Arg &a = at(args, 0), &index = at(args, 1);
    if (tensorOf(a)) {
        const at::Tensor self = aten(a), r = at::indexing::get_item(self, indices(index));
        return wrap(r.is_same(self) ? self.alias() : r);
    }
    if (const ArgDict *d = a.dictionary()) {
        for (const auto &[key, value] : d->items)
            if (key == index)
                return value;
        throw ExecError("the dict has no such key");
    }
    const ArgList items = itemsOf(a);
    const auto n = int64_t(items.size());
    if (const ArgSlice *s = index.sliceOrRange()) {
        const int64_t step = s->step.isNone() ? 1 : integer(s->step);
        if (step == 0)
            throw ExecError("a slice step cannot be zero");
        const auto clamp = [&](const Arg &v, int64_t fallback) {
            if (v.isNone())
                return fallback;
            int64_t i = integer(v);
            i = i < 0 ? i + n : i;
            return std::clamp<int64_t>(i, step > 0 ? 0 : -1, step > 0 ? n : n - 1);
        };
        const int64_t start = clamp(s->start, step > 0 ? 0 : n - 1), stop = clamp(s->stop, step > 0 ? n : -1);
        ArgList out;
        for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step)
            out.push_back(items[size_t(i)]);
        const ArgSequence *seq = a.sequence();
        return seq && seq->kind == ArgSequence::List ? Arg::list(std::move(out))
            : seq && seq->kind == ArgSequence::Size  ? Arg::size(std::move(out))
                                                     : Arg::tuple(std::move(out));
    }
    int64_t i = integer(index);
    i = i < 0 ? i + n : i;
    if (i < 0 || i >= n)
        throw ExecError("index " + std::to_string(integer(index)) + " is out of range for " + std::to_string(n) + " items");
    return items[size_t(i)];
}

Arg setitem(const ArgList &args, const Kwargs &)
{
    const at::Tensor self = aten(at(args, 0));
    const Arg &value = at(args, 2);
    const at::Tensor v = tensorOf(value) ? aten(value) : at::scalar_tensor(toScalar(value), self.options());
    at::indexing::set_item(self, indices(at(args, 1)), v);
    return {};
}

// --- attributes and the Python-level methods of a tensor ---

Arg sizeOf(const at::Tensor &t)
{
    ArgList items;
    for (const int64_t n : t.sizes())
        items.emplace_back(n);
    return Arg::size(std::move(items));
}

Arg getattribute(const ArgList &args, const Kwargs &)
{
    const auto *name = at(args, 1).as<std::string>();
    const Arg &a = args[0];
    if (!name)
        throw ExecError("an attribute name was expected");
    if (const ArgNamedTuple *n = a.named())
        for (const auto &[key, value] : n->fields)
            if (key == *name)
                return value;
    if (const auto *d = a.as<ArgDevice>(); d && *name == "type")
        return d->name.substr(0, d->name.find(':'));
    if (const auto *d = a.as<ArgDType>()) {
        const auto dtype = dtypeFromName(d->name);
        if (dtype && *name == "is_floating_point")
            return isFloatingPoint(*dtype);
        if (dtype && *name == "itemsize")
            return int64_t(dtypeSize(*dtype));
    }
    if (tensorOf(a)) {
        const at::Tensor t = aten(a);
        if (*name == "shape")
            return sizeOf(t);
        if (*name == "dtype")
            return ArgDType{ "torch." + std::string(dtypeName(dtypeOf(t.scalar_type()))) };
        if (*name == "device")
            return ArgDevice{ t.device().str() };
        if (*name == "layout")
            return ArgLayout{ "torch.strided" };
        if (*name == "ndim")
            return t.dim();
        if (*name == "T")
            return wrap(t.numpy_T());
        if (*name == "mT")
            return wrap(t.mT());
        if (*name == "H")
            return wrap(t.matrix_H());
        if (*name == "mH")
            return wrap(t.mH());
        if (*name == "real")
            return wrap(at::real(t));
        if (*name == "imag")
            return wrap(at::imag(t));
        if (*name == "data")
            return wrap(t.alias());
        if (*name == "is_quantized")
            return t.is_quantized();
        if (*name == "itemsize")
            return int64_t(t.element_size());
        if (*name == "requires_grad" || *name == "is_cuda" || *name == "is_sparse" || *name == "is_mps" || *name == "is_nested")
            return false;
        if (*name == "grad")
            return {};
    }
    if (args.size() > 2)
        return args[2];
    throw ExecError("attribute '" + *name + "' is not known here");
}

Arg size(const ArgList &args, const Kwargs &kwargs)
{
    const at::Tensor t = aten(at(args, 0));
    const Arg dim = argument(args, kwargs, 1, "dim");
    return dim.isNone() ? sizeOf(t) : Arg(t.size(integer(dim)));
}
Arg stride(const ArgList &args, const Kwargs &kwargs)
{
    const at::Tensor t = aten(at(args, 0));
    const Arg dim = argument(args, kwargs, 1, "dim");
    return dim.isNone() ? Arg::ints(t.strides().vec()) : Arg(t.stride(integer(dim)));
}
Arg dimensions(const ArgList &args, const Kwargs &)
{
    return aten(at(args, 0)).dim();
}
Arg numel(const ArgList &args, const Kwargs &)
{
    return aten(at(args, 0)).numel();
}
Arg item(const ArgList &args, const Kwargs &)
{
    return fromScalar(aten(at(args, 0)).item());
}
Arg same(const ArgList &args, const Kwargs &)
{
    return at(args, 0);
}
Arg nothing(const ArgList &, const Kwargs &)
{
    return {};
}

Arg tolist(const ArgList &args, const Kwargs &k)
{
    if (!tensorOf(at(args, 0)))
        return Arg::list(itemsOf(args[0]));
    if (aten(args[0]).dim() == 0)
        return item(args, k);
    ArgList items;
    for (const Arg &row : itemsOf(args[0]))
        items.push_back(tolist({ row }, k));
    return Arg::list(std::move(items));
}

Arg assertion(const ArgList &args, const Kwargs &kwargs)
{
    if (truth(at(args, 0)))
        return {};
    const Arg message = argument(args, kwargs, 1, "message");
    throw ExecError(message.as<std::string>() ? "the model's own check failed: " + *message.as<std::string>()
                                              : std::string("the model's own check failed"));
}

// torch.tensor(data): nested lists of numbers.
Arg newTensor(const ArgList &args, const Kwargs &kwargs)
{
    std::vector<int64_t> sizes;
    for (const Arg *level = &at(args, 0); level->sequence();) {
        sizes.push_back(int64_t(level->sequence()->items.size()));
        if (level->sequence()->items.empty())
            break;
        level = &level->sequence()->items[0];
    }
    std::vector<Arg> flat{ args[0] };
    for (size_t depth = 0; depth < sizes.size(); ++depth) {
        std::vector<Arg> inner;
        for (const Arg &a : flat)
            for (const Arg &i : itemsOf(a))
                inner.push_back(i);
        flat = std::move(inner);
    }
    if (flat.size() == 1 && tensorOf(flat[0]) && sizes.empty())
        return wrap(aten(flat[0]).clone());
    bool real = false, bools = !flat.empty();
    std::vector<double> values;
    for (const Arg &a : flat) {
        real |= a.as<double>() || (tensorOf(a) && at::isFloatingType(aten(a).scalar_type()));
        bools &= a.as<bool>() != nullptr;
        values.push_back(number(a));
    }
    at::Tensor t = at::tensor(values, at::kDouble).reshape(sizes);
    const Arg dtype = argument({}, kwargs, 0, "dtype");
    if (const auto *d = dtype.as<ArgDType>())
        return wrap(t.to(scalarType(dtypeFromName(d->name).value_or(DType::Float32))));
    return wrap(t.to(bools ? at::kBool : real || flat.empty() ? at::kFloat : at::kLong));
}

// --- builtins and math ---

Arg length(const ArgList &args, const Kwargs &)
{
    const Arg &a = at(args, 0);
    if (tensorOf(a))
        return aten(a).size(0);
    if (const ArgDict *d = a.dictionary())
        return int64_t(d->items.size());
    if (const auto *s = a.as<std::string>())
        return int64_t(s->size());
    return int64_t(itemsOf(a).size());
}
Arg toInteger(const ArgList &args, const Kwargs &)
{
    const Arg &a = at(args, 0);
    if (a.toInt())
        return *a.toInt();
    const double d = std::trunc(number(a));
    if (!(std::abs(d) < 9.2e18))
        throw ExecError("the number is no int");
    return int64_t(d);
}
Arg toFloat(const ArgList &args, const Kwargs &)
{
    return number(at(args, 0));
}
Arg toBool(const ArgList &args, const Kwargs &)
{
    return truth(at(args, 0));
}
Arg negation(const ArgList &args, const Kwargs &)
{
    return !truth(at(args, 0));
}
Arg toTuple(const ArgList &args, const Kwargs &)
{
    return Arg::tuple(args.empty() ? ArgList{} : itemsOf(args[0]));
}
Arg toList(const ArgList &args, const Kwargs &)
{
    return Arg::list(args.empty() ? ArgList{} : itemsOf(args[0]));
}
Arg toRange(const ArgList &args, const Kwargs &)
{
    const Arg step = args.size() > 2 ? args[2] : Arg(1);
    return args.size() == 1 ? Arg::range(0, args[0], step) : Arg::range(at(args, 0), at(args, 1), step);
}
Arg isSequence(const ArgList &args, const Kwargs &)
{
    return at(args, 0).sequence() != nullptr;
}
Arg toSize(const ArgList &args, const Kwargs &)
{
    return Arg::size(args.empty() ? ArgList{} : itemsOf(args[0]));
}

template <bool largest> Arg extreme(const ArgList &args, const Kwargs &)
{
    const ArgList items = args.size() == 1 ? itemsOf(args[0]) : args;
    Arg best = at(items, 0);
    for (const Arg &a : items)
        if (truth(binary(largest ? Op::Gt : Op::Lt, a, best)))
            best = a;
    return best;
}
Arg sum(const ArgList &args, const Kwargs &)
{
    Arg total = args.size() > 1 ? args[1] : Arg(0);
    for (const Arg &a : itemsOf(at(args, 0)))
        total = binary(Op::Add, total, a);
    return total;
}
Arg product(const ArgList &args, const Kwargs &)
{
    Arg total = 1;
    for (const Arg &a : itemsOf(at(args, 0)))
        total = binary(Op::Mul, total, a);
    return total;
}
Arg rounded(const ArgList &args, const Kwargs &k)
{
    if (tensorOf(at(args, 0)))
        return wrap(aten(args[0]).round());
    if (args.size() > 1 && !args[1].isNone()) {
        const double scale = std::pow(10.0, number(args[1]));
        return std::nearbyint(number(args[0]) * scale) / scale;
    }
    return toInteger({ Arg(std::nearbyint(number(args[0]))) }, k);
}
Arg absolute(const ArgList &args, const Kwargs &)
{
    if (tensorOf(at(args, 0)))
        return wrap(aten(args[0]).abs());
    return args[0].toInt() ? Arg(std::abs(*args[0].toInt())) : Arg(std::abs(number(args[0])));
}
Arg negative(const ArgList &args, const Kwargs &)
{
    if (tensorOf(at(args, 0)))
        return wrap(aten(args[0]).neg());
    return args[0].toInt() ? Arg(-*args[0].toInt()) : Arg(-number(args[0]));
}
Arg invert(const ArgList &args, const Kwargs &)
{
    return tensorOf(at(args, 0)) ? wrap(aten(args[0]).bitwise_not()) : Arg(~integer(args[0]));
}
Arg identical(const ArgList &args, const Kwargs &)
{
    const Tensor *a = tensorOf(at(args, 0)), *b = tensorOf(at(args, 1));
    return a || b ? Arg(a && b && *a == *b) : Arg(args[0] == args[1]);
}
Arg differs(const ArgList &args, const Kwargs &k)
{
    return !truth(identical(args, k));
}
Arg contains(const ArgList &args, const Kwargs &)
{
    for (const Arg &a : itemsOf(at(args, 0)))
        if (a == at(args, 1))
            return true;
    return false;
}

template <double (*f)(double)> Arg mathFunction(const ArgList &args, const Kwargs &)
{
    const double r = f(number(at(args, 0)));
    if (std::isnan(r) && !std::isnan(number(args[0])))
        throw ExecError("math domain error");
    return r;
}
template <double (*f)(double)> Arg mathInteger(const ArgList &args, const Kwargs &k)
{
    return toInteger({ Arg(f(number(at(args, 0)))) }, k);
}
Arg logarithm(const ArgList &args, const Kwargs &)
{
    const double x = number(at(args, 0));
    if (x <= 0)
        throw ExecError("math domain error");
    return args.size() > 1 ? std::log(x) / std::log(number(args[1])) : std::log(x);
}

// --- helpers of call expressions ---

// _reversed_padding_repeated_twice of the convolutions: the pads that F.pad takes, last dimension first.
Arg convPads(const ArgList &args, const Kwargs &)
{
    const Arg &padding = at(args, 0), &dilation = at(args, 1), &kernel = at(args, 2);
    const auto sizes = kernel.toInts(), dilations = dilation.toInts();
    if (!sizes || !dilations || dilations->size() != sizes->size())
        throw ExecError("kernel_size and dilation do not fit together");
    ArgList pads;
    for (size_t d = sizes->size(); d-- > 0;) {
        int64_t left = 0, right = 0;
        if (const auto *text = padding.as<std::string>()) {
            const int64_t total = *text == "same" ? (*dilations)[d] * ((*sizes)[d] - 1) : 0;
            left = total / 2;
            right = total - left;
        } else {
            const auto values = padding.toInts();
            if (!values || values->empty())
                throw ExecError("the padding is no list of ints");
            left = right = values->size() == 1 ? values->front() : values->at(d);
        }
        pads.emplace_back(left);
        pads.emplace_back(right);
    }
    return Arg::list(std::move(pads));
}

// output_size with None where the input's own size stays: (None, 7).
Arg sizesOr(const ArgList &args, const Kwargs &)
{
    const at::Tensor t = aten(at(args, 1));
    const int64_t dims = integer(at(args, 2));
    const ArgList given = args[0].sequence() ? args[0].sequence()->items : ArgList(size_t(dims), args[0]);
    ArgList out;
    for (size_t i = 0; i < given.size(); ++i)
        out.push_back(given[i].isNone() ? Arg(t.size(t.dim() - int64_t(given.size()) + int64_t(i))) : given[i]);
    return Arg::list(std::move(out));
}

// One value for each spatial dimension of the input, where a single one stands for all.
Arg perDimension(const ArgList &args, const Kwargs &)
{
    if (at(args, 0).isNone() || args[0].sequence())
        return args[0];
    return Arg::list(ArgList(size_t(integer(at(args, 1))), args[0]));
}

Arg fail(const ArgList &args, const Kwargs &)
{
    const auto *text = at(args, 0).as<std::string>();
    throw ExecError(text ? *text : "this cannot be executed");
}

// (output, h, c) of the recurrent operators as (output, (h, c)).
Arg stateTuple(const ArgList &args, const Kwargs &)
{
    const ArgList r = itemsOf(at(args, 0));
    return Arg::tuple({ at(r, 0), Arg::tuple({ at(r, 1), at(r, 2) }) });
}
// The zero state of a recurrent module.
Arg zeroState(const ArgList &args, const Kwargs &)
{
    const at::Tensor input = aten(at(args, 0));
    const bool batchFirst = truth(at(args, 3));
    const int64_t batch = input.size(batchFirst ? 0 : 1);
    return wrap(at::zeros({ integer(at(args, 1)), batch, integer(at(args, 2)) }, input.options()));
}

const std::unordered_map<std::string_view, PythonFunction> &functions()
{
    static const std::unordered_map<std::string_view, PythonFunction> table{
        { "operator.add", binaryFunction<Op::Add> },
        { "operator.sub", binaryFunction<Op::Sub> },
        { "operator.mul", binaryFunction<Op::Mul> },
        { "operator.truediv", binaryFunction<Op::TrueDiv> },
        { "operator.floordiv", binaryFunction<Op::FloorDiv> },
        { "operator.mod", binaryFunction<Op::Mod> },
        { "operator.pow", binaryFunction<Op::Pow> },
        { "operator.matmul", binaryFunction<Op::MatMul> },
        { "operator.and_", binaryFunction<Op::And> },
        { "operator.or_", binaryFunction<Op::Or> },
        { "operator.xor", binaryFunction<Op::Xor> },
        { "operator.lshift", binaryFunction<Op::LShift> },
        { "operator.rshift", binaryFunction<Op::RShift> },
        { "operator.eq", binaryFunction<Op::Eq> },
        { "operator.ne", binaryFunction<Op::Ne> },
        { "operator.lt", binaryFunction<Op::Lt> },
        { "operator.le", binaryFunction<Op::Le> },
        { "operator.gt", binaryFunction<Op::Gt> },
        { "operator.ge", binaryFunction<Op::Ge> },
        { "operator.iadd", inplaceFunction<Op::Add> },
        { "operator.isub", inplaceFunction<Op::Sub> },
        { "operator.imul", inplaceFunction<Op::Mul> },
        { "operator.itruediv", inplaceFunction<Op::TrueDiv> },
        { "operator.ifloordiv", inplaceFunction<Op::FloorDiv> },
        { "operator.imod", inplaceFunction<Op::Mod> },
        { "operator.ipow", inplaceFunction<Op::Pow> },
        { "operator.iand", inplaceFunction<Op::And> },
        { "operator.ior", inplaceFunction<Op::Or> },
        { "operator.ixor", inplaceFunction<Op::Xor> },
        { "operator.imatmul", inplaceFunction<Op::MatMul> },
        { "operator.neg", negative },
        { "operator.pos", same },
        { "operator.abs", absolute },
        { "operator.invert", invert },
        { "operator.inv", invert },
        { "operator.not_", negation },
        { "operator.truth", toBool },
        { "operator.is_", identical },
        { "operator.is_not", differs },
        { "operator.contains", contains },
        { "operator.getitem", getitem },
        { "operator.setitem", setitem },
        { "operator.index", toInteger },
        { "builtins.getattr", getattribute },
        { "builtins.len", length },
        { "builtins.int", toInteger },
        { "builtins.float", toFloat },
        { "builtins.bool", toBool },
        { "builtins.tuple", toTuple },
        { "builtins.list", toList },
        { "builtins.range", toRange },
        { "getattr", getattribute },
        { "builtins.max", extreme<true> },
        { "builtins.min", extreme<false> },
        { "builtins.sum", sum },
        { "builtins.abs", absolute },
        { "builtins.round", rounded },
        { "builtins.pow", binaryFunction<Op::Pow> },
        { "builtins.print", nothing },
        { "math.sqrt", mathFunction<std::sqrt> },
        { "math.exp", mathFunction<std::exp> },
        { "math.log", logarithm },
        { "math.log2", mathFunction<std::log2> },
        { "math.log10", mathFunction<std::log10> },
        { "math.sin", mathFunction<std::sin> },
        { "math.cos", mathFunction<std::cos> },
        { "math.tanh", mathFunction<std::tanh> },
        { "math.floor", mathInteger<std::floor> },
        { "math.ceil", mathInteger<std::ceil> },
        { "math.trunc", mathInteger<std::trunc> },
        { "math.pow", binaryFunction<Op::Pow> },
        { "math.prod", product },
        { "torch._assert", assertion },
        { "torch._check", assertion },
        { "torch.tensor", newTensor },
        { "torch.as_tensor", newTensor },
        { "torch.Size", toSize },
        { "torch.sym_int", toInteger },
        { "torch.sym_float", toFloat },
        { "torch.sym_max", extreme<true> },
        { "torch.sym_min", extreme<false> },
        { "torch.numel", numel },
        // helpers
        { "size", size },
        { "shape", size },
        { "prod", product },
        { "is_sequence", isSequence },
        { "stride", stride },
        { "dim", dimensions },
        { "numel", numel },
        { "item", item },
        { "tolist", tolist },
        { "conv_pads", convPads },
        { "sizes_or", sizesOr },
        { "per_dimension", perDimension },
        { "fail", fail },
        { "state_tuple", stateTuple },
        { "zero_state", zeroState },
        { "multi_head_attention", multiHeadAttention },
    };
    return table;
}

} // namespace

PythonFunction pythonFunction(std::string_view name)
{
    const auto it = functions().find(name);
    return it == functions().end() ? nullptr : it->second;
}

Arg Evaluation::value(const Expr &e) const
{
    Operand o = evaluate(e);
    if (!o.object.isNone())
        throw ExecError("packed weights are no value");
    return std::move(o.arg);
}

Operand Evaluation::evaluate(const Expr &e) const
{
    switch (e.kind) {
    case Expr::Kind::Literal:
        return { e.literal, {} };
    case Expr::Kind::Name:
        if (auto v = lookup(e.text))
            return { std::move(*v), {} };
        throw ExecError("'" + e.text + "' is not given");
    case Expr::Kind::Sequence: {
        ArgList items;
        for (const Expr &i : e.items)
            items.push_back(value(i));
        return { e.tuple ? Arg::tuple(std::move(items)) : Arg::list(std::move(items)), {} };
    }
    case Expr::Kind::Conditional:
        return evaluate(truth(value(e.items[0])) ? e.items[1] : e.items[2]);
    case Expr::Kind::Not:
        return { !truth(value(e.items[0])), {} };
    case Expr::Kind::Binary: {
        if (e.text == "and" || e.text == "or") {
            Arg a = value(e.items[0]);
            return { truth(a) == (e.text == "and") ? value(e.items[1]) : std::move(a), {} };
        }
        static const std::unordered_map<std::string_view, PythonFunction> operators{ { "==", binaryFunction<Op::Eq> },
            { "!=", binaryFunction<Op::Ne> }, { "<", binaryFunction<Op::Lt> }, { "<=", binaryFunction<Op::Le> },
            { ">", binaryFunction<Op::Gt> }, { ">=", binaryFunction<Op::Ge> }, { "+", binaryFunction<Op::Add> },
            { "-", binaryFunction<Op::Sub> }, { "*", binaryFunction<Op::Mul> }, { "/", binaryFunction<Op::TrueDiv> },
            { "//", binaryFunction<Op::FloorDiv> }, { "[]", getitem }, { "is", identical } };
        const Arg a = value(e.items[0]), b = value(e.items[1]);
        return { e.text == "in" ? contains({ b, a }, {}) : operators.at(e.text)({ a, b }, {}), {} };
    }
    case Expr::Kind::Call:
        break;
    }
    if (e.text == "once") {
        auto it = kept->find(&e);
        if (it == kept->end()) {
            const Expr &call = e.items.at(0);
            std::vector<Operand> args;
            for (const Expr &i : call.items)
                args.push_back(evaluate(i));
            it = kept->emplace(&e, callBoxed(call.text, args, {}).at(0)).first;
        }
        return { {}, it->second };
    }
    std::vector<Operand> args;
    KeywordOperands kwargs;
    for (size_t i = 0; i < e.items.size(); ++i) {
        if (e.keywords[i] == "*") {
            for (Arg &a : itemsOf(value(e.items[i])))
                args.push_back({ std::move(a), {} });
        } else if (e.keywords[i].empty()) {
            args.push_back(evaluate(e.items[i]));
        } else {
            kwargs.emplace_back(e.keywords[i], evaluate(e.items[i]));
        }
    }
    if (e.text.find("::") != std::string::npos)
        return { callOperator(e.text, args, kwargs), {} };
    if (e.text == "children")
        return { children(args.at(0).arg), {} };
    PythonFunction f = pythonFunction(e.text);
    if (!f)
        f = pythonFunction("builtins." + e.text);
    if (!f)
        throw ExecError("the op table calls '" + e.text + "', which does not exist");
    ArgList plain;
    for (Operand &o : args)
        plain.push_back(std::move(o.arg));
    Kwargs named;
    for (auto &[k, o] : kwargs)
        named.emplace_back(k, std::move(o.arg));
    return { f(plain, named), {} };
}

} // namespace fb
