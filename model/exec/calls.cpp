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

} // namespace

const Arg &nth(const ArgList &args, size_t i)
{
    if (i >= args.size())
        throw ExecError("an argument is missing");
    return args[i];
}

Arg named(const ArgList &args, const Kwargs &kwargs, size_t i, std::string_view name, Arg fallback)
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

namespace
{

int64_t integer(const Arg &a)
{
    if (const auto i = a.toInt())
        return *i;
    if (tensorOf(a) && !at::isFloatingType(aten(a).scalar_type()))
        return aten(a).item().toLong();
    throw ExecError("an int was expected");
}

// As Python's slices take it: an int of any size ends where the largest ones do.
int64_t bound(const Arg &a)
{
    if (const auto *big = a.as<ArgBigInt>())
        return big->digits.front() == '-' ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
    return integer(a);
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

template <Op op> Arg binaryFunction(const ArgList &args, const Kwargs &kwargs)
{
    return binary(op, nth(args, 0), args.size() > 1 || kwargs.empty() ? nth(args, 1) : kwargs[0].second);
}

// operator.iadd and friends: in place on tensors, as Python's `+=`.
template <Op op> Arg inplaceFunction(const ArgList &args, const Kwargs &kwargs)
{
    const Arg &other = args.size() > 1 || kwargs.empty() ? nth(args, 1) : kwargs[0].second;
    if (!tensorOf(nth(args, 0)) || op == Op::MatMul)
        return binary(op, args[0], other);
    static const std::string name = std::string(kAten[int(op)]) + "_";
    return callOperator(name, { { args[0], {} }, { other, {} } });
}

// --- indexing ---

using at::indexing::TensorIndex;

Arg newTensor(const ArgList &args, const Kwargs &kwargs);

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
        const auto part
            = [](const Arg &v) { return v.isNone() ? std::optional<c10::SymInt>() : std::optional<c10::SymInt>(bound(v)); };
        return TensorIndex(at::indexing::Slice(part(s->start), part(s->stop), part(s->step)));
    }
    if (a.sequence()) // nested lists of ints or bools
        return TensorIndex(aten(newTensor({ a }, {})));
    if (a.sliceOrRange()) // a range
        return TensorIndex(aten(newTensor({ Arg::list(itemsOf(a)) }, {})));
    throw ExecError("an index of this kind is not supported");
}

std::vector<TensorIndex> indices(const Arg &index)
{
    std::vector<TensorIndex> out;
    // A short list that holds more than numbers is taken for a tuple.
    const auto composite
        = [](const Arg &a) { return a.sequence() || a.isNone() || a.as<Tensor>() || a.as<ArgEllipsis>() || a.sliceOrRange(); };
    if (const ArgSequence *s = index.sequence();
        s && (s->kind != ArgSequence::List || (s->items.size() < 32 && std::any_of(s->items.begin(), s->items.end(), composite))))
        for (const Arg &item : s->items)
            out.push_back(oneIndex(item));
    else
        out.push_back(oneIndex(index));
    return out;
}

} // namespace

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

bool less(const Arg &a, const Arg &b)
{
    return truth(binary(Op::Lt, a, b));
}

namespace
{

Arg getitem(const ArgList &args, const Kwargs &)
{
    const Arg &a = nth(args, 0), &index = nth(args, 1);
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
            int64_t i = bound(v);
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
    const at::Tensor self = aten(nth(args, 0));
    const Arg &value = nth(args, 2);
    const at::Tensor v = tensorOf(value) ? aten(value) : at::scalar_tensor(toScalar(value), self.options());
    at::indexing::set_item(self, indices(nth(args, 1)), v);
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
    const auto *name = nth(args, 1).as<std::string>();
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
            return ArgLayout{ t.is_sparse() ? "torch.sparse_coo" : "torch.strided" };
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
        if (*name == "nbytes")
            return int64_t(t.nbytes());
        if (*name == "is_floating_point" || *name == "is_cpu" || *name == "is_leaf" || *name == "is_meta"
            || *name == "is_complex")
            return *name == "is_floating_point" ? t.is_floating_point()
                : *name == "is_complex"         ? t.is_complex()
                                                : *name != "is_meta" || t.is_meta();
        if (*name == "names")
            return Arg::tuple(ArgList(size_t(t.dim())));
        if (*name == "grad_fn" || *name == "_base" || *name == "name")
            return {};
        if (*name == "is_mkldnn" || *name == "is_sparse_csr" || *name == "is_xpu" || *name == "retains_grad"
            || *name == "requires_grad" || *name == "is_cuda" || *name == "is_sparse" || *name == "is_mps"
            || *name == "is_nested")
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
    const at::Tensor t = aten(nth(args, 0));
    const Arg dim = named(args, kwargs, 1, "dim");
    return dim.isNone() ? sizeOf(t) : Arg(t.size(integer(dim)));
}
Arg stride(const ArgList &args, const Kwargs &kwargs)
{
    const at::Tensor t = aten(nth(args, 0));
    const Arg dim = named(args, kwargs, 1, "dim");
    return dim.isNone() ? Arg::ints(t.strides().vec()) : Arg(t.stride(integer(dim)));
}
Arg dimensions(const ArgList &args, const Kwargs &)
{
    return aten(nth(args, 0)).dim();
}
Arg numel(const ArgList &args, const Kwargs &kwargs)
{
    return aten(named(args, kwargs, 0, "input")).numel();
}
Arg item(const ArgList &args, const Kwargs &)
{
    return fromScalar(aten(nth(args, 0)).item());
}
Arg nothing(const ArgList &, const Kwargs &)
{
    return {};
}

Arg tolist(const ArgList &args, const Kwargs &k)
{
    if (!tensorOf(nth(args, 0)))
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
    if (truth(nth(args, 0)))
        return {};
    const Arg message = named(args, kwargs, 1, "message");
    throw ExecError(message.as<std::string>() ? "the model's own check failed: " + *message.as<std::string>()
                                              : std::string("the model's own check failed"));
}

// torch.fx's check of an argument that was fixed to None.
Arg assertNone(const ArgList &args, const Kwargs &kwargs)
{
    return nth(args, 0).isNone() ? Arg() : assertion({ Arg(false), named(args, kwargs, 1, "message") }, {});
}

// torch.tensor(data): nested lists of numbers.
Arg newTensor(const ArgList &args, const Kwargs &kwargs)
{
    std::vector<int64_t> sizes;
    for (const Arg *level = &nth(args, 0); level->sequence();) {
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
    if (std::any_of(flat.begin(), flat.end(), [](const Arg &a) { return a.as<std::complex<double>>() != nullptr; })) {
        std::vector<c10::complex<double>> numbers;
        for (const Arg &a : flat)
            numbers.push_back(toScalar(a).toComplexDouble());
        return wrap(at::tensor(numbers, at::kComplexDouble).reshape(sizes).to(at::kComplexFloat));
    }
    bool real = false, bools = !flat.empty();
    std::vector<double> values;
    for (const Arg &a : flat) {
        real |= a.as<double>() || (tensorOf(a) && at::isFloatingType(aten(a).scalar_type()));
        bools &= a.as<bool>() != nullptr;
        values.push_back(number(a));
    }
    at::Tensor t = at::tensor(values, at::kDouble).reshape(sizes);
    const Arg dtype = named({}, kwargs, 0, "dtype");
    if (const auto *d = dtype.as<ArgDType>())
        return wrap(t.to(scalarType(dtypeFromName(d->name).value_or(DType::Float32))));
    return wrap(t.to(bools ? at::kBool : real || flat.empty() ? at::kFloat : at::kLong));
}

// --- builtins and math ---

Arg length(const ArgList &args, const Kwargs &)
{
    const Arg &a = nth(args, 0);
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
    const Arg &a = nth(args, 0);
    if (const auto *text = a.as<std::string>()) {
        size_t end = 0;
        try {
            if (const int64_t v = std::stoll(*text, &end); end == text->size())
                return v;
        } catch (const std::exception &) {
        }
        throw ExecError("'" + *text + "' is no int");
    }
    if (a.toInt())
        return *a.toInt();
    const double d = std::trunc(number(a));
    if (!(std::abs(d) < 9.2e18))
        throw ExecError("the number is no int");
    return int64_t(d);
}
Arg toFloat(const ArgList &args, const Kwargs &)
{
    if (const auto *text = nth(args, 0).as<std::string>()) {
        char *end = nullptr;
        const double v = std::strtod(text->c_str(), &end);
        if (end == text->c_str() || *end)
            throw ExecError("'" + *text + "' is no float");
        return v;
    }
    return number(args[0]);
}
Arg toBool(const ArgList &args, const Kwargs &)
{
    return truth(nth(args, 0));
}
Arg negation(const ArgList &args, const Kwargs &)
{
    return !truth(nth(args, 0));
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
    return args.size() == 1 ? Arg::range(0, args[0], step) : Arg::range(nth(args, 0), nth(args, 1), step);
}
Arg isSequence(const ArgList &args, const Kwargs &)
{
    return nth(args, 0).sequence() != nullptr;
}
Arg toSize(const ArgList &args, const Kwargs &)
{
    return Arg::size(args.empty() ? ArgList{} : itemsOf(args[0]));
}

template <bool largest> Arg extreme(const ArgList &args, const Kwargs &kwargs)
{
    ArgList items = args;
    for (const auto &[key, value] : kwargs)
        items.push_back(value);
    if (items.size() == 1)
        items = itemsOf(ArgList(items)[0]);
    Arg best = nth(items, 0);
    for (const Arg &a : items)
        if (truth(binary(largest ? Op::Gt : Op::Lt, a, best)))
            best = a;
    return best;
}
Arg sum(const ArgList &args, const Kwargs &)
{
    Arg total = args.size() > 1 ? args[1] : Arg(0);
    for (const Arg &a : itemsOf(nth(args, 0)))
        total = binary(Op::Add, total, a);
    return total;
}
Arg product(const ArgList &args, const Kwargs &)
{
    Arg total = 1;
    for (const Arg &a : itemsOf(nth(args, 0)))
        total = binary(Op::Mul, total, a);
    return total;
}
Arg rounded(const ArgList &args, const Kwargs &k)
{
    if (tensorOf(nth(args, 0)))
        return wrap(aten(args[0]).round());
    if (args[0].toInt() && (args.size() < 2 || args[1].isNone() || integer(args[1]) >= 0))
        return args[0];
    if (args.size() > 1 && !args[1].isNone()) {
        const double scale = std::pow(10.0, number(args[1]));
        return std::nearbyint(number(args[0]) * scale) / scale;
    }
    return toInteger({ Arg(std::nearbyint(number(args[0]))) }, k);
}
Arg absolute(const ArgList &args, const Kwargs &)
{
    if (tensorOf(nth(args, 0)))
        return wrap(aten(args[0]).abs());
    return args[0].toInt() ? Arg(std::abs(*args[0].toInt())) : Arg(std::abs(number(args[0])));
}
Arg negative(const ArgList &args, const Kwargs &)
{
    if (tensorOf(nth(args, 0)))
        return wrap(aten(args[0]).neg());
    return args[0].toInt() ? Arg(-*args[0].toInt()) : Arg(-number(args[0]));
}
Arg invert(const ArgList &args, const Kwargs &)
{
    return tensorOf(nth(args, 0)) ? wrap(aten(args[0]).bitwise_not()) : Arg(~integer(args[0]));
}
Arg identical(const ArgList &args, const Kwargs &)
{
    const Tensor *a = tensorOf(nth(args, 0)), *b = tensorOf(nth(args, 1));
    return a || b ? Arg(a && b && *a == *b) : Arg(args[0] == args[1]);
}
Arg differs(const ArgList &args, const Kwargs &k)
{
    return !truth(identical(args, k));
}
Arg contains(const ArgList &args, const Kwargs &)
{
    if (tensorOf(nth(args, 0)))
        return aten(binary(Op::Eq, args[0], nth(args, 1))).any().item().toBool();
    const auto *whole = args[0].as<std::string>(), *part = nth(args, 1).as<std::string>();
    if (whole && part)
        return whole->find(*part) != whole->npos;
    if (const ArgDict *d = args[0].dictionary())
        return std::any_of(d->items.begin(), d->items.end(), [&](const auto &item) { return item.first == args[1]; });
    for (const Arg &a : itemsOf(nth(args, 0)))
        if (a == nth(args, 1))
            return true;
    return false;
}

// --- helpers of call expressions ---

// _reversed_padding_repeated_twice of the convolutions: the pads that F.pad takes, last dimension first.
Arg convPads(const ArgList &args, const Kwargs &)
{
    const Arg &padding = nth(args, 0), &dilation = nth(args, 1), &kernel = nth(args, 2);
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
    const at::Tensor t = aten(nth(args, 1));
    const int64_t dims = integer(nth(args, 2));
    const ArgList given = args[0].sequence() ? args[0].sequence()->items : ArgList(size_t(dims), args[0]);
    ArgList out;
    for (size_t i = 0; i < given.size(); ++i)
        out.push_back(given[i].isNone() ? Arg(t.size(t.dim() - int64_t(given.size()) + int64_t(i))) : given[i]);
    return Arg::list(std::move(out));
}

// One value for each spatial dimension of the input, where a single one stands for all.
Arg perDimension(const ArgList &args, const Kwargs &)
{
    if (nth(args, 0).isNone() || args[0].sequence())
        return args[0];
    return Arg::list(ArgList(size_t(integer(nth(args, 1))), args[0]));
}

Arg fail(const ArgList &args, const Kwargs &)
{
    const auto *text = nth(args, 0).as<std::string>();
    throw ExecError(text ? *text : "this cannot be executed");
}

// (output, h, c) of the recurrent operators as (output, (h, c)).
Arg stateTuple(const ArgList &args, const Kwargs &)
{
    const ArgList r = itemsOf(nth(args, 0));
    return Arg::tuple({ nth(r, 0), Arg::tuple({ nth(r, 1), nth(r, 2) }) });
}
// The zero state of a recurrent module.
Arg zeroState(const ArgList &args, const Kwargs &)
{
    const at::Tensor input = aten(nth(args, 0));
    const bool batchFirst = truth(nth(args, 3));
    const int64_t batch = input.size(batchFirst ? 0 : 1);
    return wrap(at::zeros({ integer(nth(args, 1)), batch, integer(nth(args, 2)) }, input.options()));
}

// What `size_average` and `reduce` of the losses meant before there was `reduction`.
Arg reductionOf(const ArgList &args, const Kwargs &)
{
    if (nth(args, 0).isNone() && nth(args, 1).isNone())
        return nth(args, 2);
    const bool average = args[0].isNone() || truth(args[0]), reduce = args[1].isNone() || truth(args[1]);
    return !reduce ? "none" : average ? "mean" : "sum";
}

Arg isTensor(const ArgList &args, const Kwargs &)
{
    return tensorOf(nth(args, 0)) != nullptr;
}

Arg broadcastShapes(const ArgList &args, const Kwargs &)
{
    std::vector<int64_t> out;
    for (const Arg &shape : itemsOf(nth(args, 0)))
        out = at::infer_size(out, shape.toInts().value_or(std::vector<int64_t>{}));
    return Arg::size(itemsOf(Arg::ints(out)));
}

// Tensor.type(): "torch.FloatTensor".
constexpr std::pair<const char *, at::ScalarType> kTypeNames[]
    = { { "Float", at::kFloat }, { "Double", at::kDouble }, { "Half", at::kHalf }, { "BFloat16", at::kBFloat16 },
          { "Byte", at::kByte }, { "Char", at::kChar }, { "Short", at::kShort }, { "Int", at::kInt }, { "Long", at::kLong },
          { "Bool", at::kBool }, { "ComplexFloat", at::kComplexFloat }, { "ComplexDouble", at::kComplexDouble } };
Arg tensorType(const ArgList &args, const Kwargs &)
{
    for (const auto &[name, type] : kTypeNames)
        if (aten(nth(args, 0)).scalar_type() == type)
            return "torch." + std::string(name) + "Tensor";
    throw ExecError("this dtype has no tensor type");
}
Arg dtypeOfType(const ArgList &args, const Kwargs &)
{
    const auto *text = nth(args, 0).as<std::string>();
    const auto *symbol = args[0].as<ArgSymbol>();
    const std::string given = text ? *text : symbol ? symbol->name : std::string();
    for (const auto &[name, type] : kTypeNames)
        if (given == "torch." + std::string(name) + "Tensor")
            return ArgDType{ "torch." + std::string(dtypeName(dtypeOf(type))) };
    return args[0];
}

// A PackedSequence: data, batch_sizes, sorted_indices, unsorted_indices.
const ArgNamedTuple *packedSequence(const Arg &a)
{
    const ArgNamedTuple *n = a.named();
    return n && n->fields.size() == 4 && n->fields[1].first == "batch_sizes" ? n : nullptr;
}
Arg isPacked(const ArgList &args, const Kwargs &)
{
    return packedSequence(nth(args, 0)) != nullptr;
}
Arg packedData(const ArgList &args, const Kwargs &)
{
    return packedSequence(nth(args, 0))->fields[0].second;
}
Arg packedSizes(const ArgList &args, const Kwargs &)
{
    return packedSequence(nth(args, 0))->fields[1].second;
}
Arg packedBatch(const ArgList &args, const Kwargs &)
{
    return aten(packedSequence(nth(args, 0))->fields[1].second)[0].item().toLong();
}
// The batch of a state in the order of a packed input, or back.
Arg packedOrder(const ArgList &args, const Kwargs &)
{
    const ArgNamedTuple *n = packedSequence(nth(args, 1));
    if (!n)
        return args[0];
    const auto *which = nth(args, 2).as<std::string>();
    for (const auto &[name, value] : n->fields)
        if (which && name == *which && !value.isNone())
            return wrap(aten(args[0]).index_select(1, aten(value)));
    return args[0];
}
Arg packedLike(const ArgList &args, const Kwargs &)
{
    const ArgNamedTuple *n = packedSequence(nth(args, 1));
    auto fields = n->fields;
    fields[0].second = args[0];
    return Arg::namedTuple(n->type, std::move(fields));
}

Arg resultType(const ArgList &args, const Kwargs &)
{
    const auto type = aten(callOperator("aten::add", { { nth(args, 0), {} }, { nth(args, 1), {} } })).scalar_type();
    return ArgDType{ "torch." + std::string(dtypeName(dtypeOf(type))) };
}
Arg promoteTypes(const ArgList &args, const Kwargs &)
{
    at::ScalarType types[2];
    for (size_t i = 0; i < 2; ++i) {
        const auto *d = nth(args, i).as<ArgDType>();
        const auto dtype = d ? dtypeFromName(d->name) : std::nullopt;
        if (!dtype)
            throw ExecError("a dtype was expected");
        types[i] = scalarType(*dtype);
    }
    return ArgDType{ "torch." + std::string(dtypeName(dtypeOf(c10::promoteTypes(types[0], types[1])))) };
}
// x.to("cpu") leaves the dtype out, which the operator asks for.
Arg tensorTo(const ArgList &args, const Kwargs &kwargs)
{
    ArgList given = args;
    const bool device = args.size() > 1 && (args[1].as<std::string>() || args[1].as<ArgDevice>() || args[1].isNone());
    if (device && (args.size() == 2 || args[2].as<bool>())
        && std::none_of(kwargs.begin(), kwargs.end(), [](const auto &k) { return k.first == "dtype"; }))
        given.insert(given.begin() + 2, getattribute({ args[0], "dtype" }, {}));
    std::vector<Operand> operands;
    for (Arg &a : given)
        operands.push_back({ std::move(a), {} });
    KeywordOperands named;
    for (const auto &[key, value] : kwargs)
        named.emplace_back(key, Operand{ value, {} });
    return callOperator("aten::to", operands, named);
}
Arg toDevice(const ArgList &args, const Kwargs &)
{
    const auto *text = nth(args, 0).as<std::string>();
    return text ? Arg(ArgDevice{ *text + (args.size() > 1 ? ":" + std::to_string(integer(args[1])) : "") }) : args[0];
}
Arg choice(const ArgList &args, const Kwargs &)
{
    return truth(nth(args, 0)) ? nth(args, 1) : nth(args, 2);
}
Arg positive(const ArgList &args, const Kwargs &)
{
    return nth(args, 0).as<bool>() ? Arg(integer(args[0])) : args[0];
}

Arg elementSize(const ArgList &args, const Kwargs &)
{
    return int64_t(aten(nth(args, 0)).element_size());
}
Arg no(const ArgList &, const Kwargs &)
{
    return false;
}
Arg dimOrder(const ArgList &args, const Kwargs &)
{
    const at::Tensor t = aten(nth(args, 0));
    std::vector<int64_t> order(size_t(t.dim()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return t.stride(a) > t.stride(b); });
    return Arg::ints(order);
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
        { "operator.ilshift", inplaceFunction<Op::LShift> },
        { "operator.irshift", inplaceFunction<Op::RShift> },
        { "operator.concat", binaryFunction<Op::Add> },
        { "operator.iconcat", binaryFunction<Op::Add> },
        { "operator.neg", negative },
        { "operator.pos", positive },
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
        { "builtins.print", nothing },
        { "torch._assert", assertion },
        { "torch.fx._symbolic_trace._assert_is_none", assertNone },
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
        { "reduction_of", reductionOf },
        { "is_tensor", isTensor },
        { "broadcast_shapes", broadcastShapes },
        { "tensor_type", tensorType },
        { "dtype_of_type", dtypeOfType },
        { "is_packed", isPacked },
        { "packed_data", packedData },
        { "packed_sizes", packedSizes },
        { "packed_batch", packedBatch },
        { "packed_order", packedOrder },
        { "packed_like", packedLike },
        { "torch.result_type", resultType },
        { "torch.promote_types", promoteTypes },
        { "torch.Tensor.element_size", elementSize },
        { "torch.Tensor.dim_order", dimOrder },
        { "torch.Tensor.is_shared", no },
        { "torch.Tensor.is_inference", no },
        { "torch.Tensor.__contains__", contains },
        { "torch.is_tensor", isTensor },
        { "torch.typename", tensorType },
        { "torch._C._set_grad_enabled", nothing },
        { "torch.Tensor.to", tensorTo },
        { "torch.device", toDevice },
        { "torch.asarray", newTensor },
        { "torch.ops.aten.size", size },
        { "torch.sym_ite", choice },
        { "torch.sym_not", negation },
        { "torch.sym_sum", sum },
        { "torch._sym_sqrt", numberFunction("math.sqrt") },
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
    if (const PythonFunction f = numberFunction(name))
        return f;
    const auto it = functions().find(name);
    return it == functions().end() ? nullptr : it->second;
}

Arg ExpressionRun::value(const Expr &e)
{
    Operand o = evaluate(e);
    if (!o.object.isNone())
        throw ExecError("packed weights are no value");
    return std::move(o.arg);
}

Arg ExpressionRun::name(const std::string &text)
{
    if (const auto it = locals_.find(text); it != locals_.end())
        return it->second;
    const size_t dot = text.rfind('.');
    if (dot != text.npos && locals_.contains(text.substr(0, dot)))
        return getattribute({ locals_[text.substr(0, dot)], text.substr(dot + 1) }, {});
    if (auto v = lookup(text))
        return std::move(*v);
    if (dot != text.npos)
        if (auto v = lookup(text.substr(0, dot)); v && !v->isNone())
            return getattribute({ std::move(*v), text.substr(dot + 1) }, {});
    throw ExecError("'" + text + "' is not given");
}

void ExpressionRun::assign(const std::vector<std::string> &names, Arg value)
{
    if (names.size() == 1) {
        locals_[names[0]] = std::move(value);
        return;
    }
    const ArgList items = itemsOf(value);
    if (items.size() != names.size())
        throw ExecError(std::to_string(items.size()) + " values for " + std::to_string(names.size()) + " names");
    for (size_t i = 0; i < names.size(); ++i)
        locals_[names[i]] = items[i];
}

std::optional<Operand> ExpressionRun::run(const Expr &s, bool last)
{
    switch (s.kind) {
    case Expr::Kind::Block:
        for (size_t i = 0; i < s.items.size(); ++i)
            if (auto r = run(s.items[i], last && i + 1 == s.items.size()))
                return r;
        return std::nullopt;
    case Expr::Kind::Assign:
        assign(s.keywords, value(s.items[0]));
        return std::nullopt;
    case Expr::Kind::If:
        if (truth(value(s.items[0])))
            return run(s.items[1], last);
        return s.items.size() > 2 ? run(s.items[2], last) : std::nullopt;
    case Expr::Kind::For:
        for (Arg &item : itemsOf(value(s.items[0]))) {
            assign(s.keywords, std::move(item));
            if (auto r = run(s.items[1], false))
                return r;
        }
        return std::nullopt;
    case Expr::Kind::Return:
        return evaluate(s.items[0]);
    default: {
        Operand o = evaluate(s);
        return last ? std::optional(std::move(o)) : std::nullopt;
    }
    }
}

Operand ExpressionRun::evaluate(const Expr &e)
{
    switch (e.kind) {
    case Expr::Kind::Literal:
        return { e.literal, {} };
    case Expr::Kind::Name:
        return { name(e.text), {} };
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
            { "//", binaryFunction<Op::FloorDiv> }, { "%", binaryFunction<Op::Mod> }, { "[]", getitem }, { "is", identical } };
        const Arg a = value(e.items[0]), b = value(e.items[1]);
        return { e.text == "in" ? contains({ b, a }, {}) : operators.at(e.text)({ a, b }, {}), {} };
    }
    case Expr::Kind::Call:
        return call(e);
    default:
        return run(e, true).value_or(Operand{});
    }
}

Operand ExpressionRun::call(const Expr &e)
{
    if (e.text == "once") {
        auto it = kept->find(&e);
        if (it == kept->end()) {
            const Expr &inner = e.items.at(0);
            std::vector<Operand> args;
            for (const Expr &i : inner.items)
                args.push_back(evaluate(i));
            it = kept->emplace(&e, callBoxed(inner.text, args, {}).at(0)).first;
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
    ArgList plain;
    for (Operand &o : args)
        plain.push_back(std::move(o.arg));
    Kwargs named;
    for (auto &[k, o] : kwargs)
        named.emplace_back(k, std::move(o.arg));
    if (e.text.starts_with("torch."))
        return { callFunction(e.text, plain, named), {} };
    if (e.text.starts_with("F."))
        return { callFunction("torch.nn.functional." + e.text.substr(2), plain, named), {} };
    if (e.text == "children_of") {
        ArgList paths;
        for (std::string &path : childrenOf(plain.at(0).as<std::string>() ? *plain[0].as<std::string>() : std::string()))
            paths.emplace_back(std::move(path));
        return { Arg::list(std::move(paths)), {} };
    }
    std::string callee = e.text;
    if (callee == "module") { // by a computed path
        const auto *path = plain.at(0).as<std::string>();
        callee = path ? *path : std::string();
        plain.erase(plain.begin());
    }
    if (child)
        if (auto r = child(callee, plain, named))
            return { std::move(*r), {} };
    if (const size_t dot = callee.rfind('.'); dot != callee.npos) {
        plain.insert(plain.begin(), name(callee.substr(0, dot)));
        return { callMethod(callee.substr(dot + 1), plain, named), {} };
    }
    PythonFunction f = pythonFunction(callee);
    if (!f)
        f = pythonFunction("builtins." + callee);
    if (!f)
        f = pythonFunction("math." + callee);
    if (f)
        return { f(plain, named), {} };
    if (const auto v = lookup(callee)) // a function that the module keeps
        if (const auto *symbol = v->as<ArgSymbol>())
            return { callFunction(symbol->name, plain, named), {} };
    throw ExecError("the op table calls '" + callee + "', which does not exist");
}

} // namespace fb
