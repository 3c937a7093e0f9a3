#include "model/exec/aten_bridge.h"

#include <ATen/quantized/Quantizer.h>

namespace fb
{

namespace
{

struct DTypePair {
    DType ours;
    at::ScalarType aten;
};
constexpr DTypePair kDTypes[] = {
    { DType::UInt8, at::kByte },
    { DType::Int8, at::kChar },
    { DType::Int16, at::kShort },
    { DType::Int32, at::kInt },
    { DType::Int64, at::kLong },
    { DType::Float16, at::kHalf },
    { DType::Float32, at::kFloat },
    { DType::Float64, at::kDouble },
    { DType::Complex64, at::kComplexFloat },
    { DType::Complex128, at::kComplexDouble },
    { DType::Bool, at::kBool },
    { DType::BFloat16, at::kBFloat16 },
    { DType::QUInt8, at::kQUInt8 },
    { DType::QInt8, at::kQInt8 },
    { DType::QInt32, at::kQInt32 },
    { DType::UInt16, at::kUInt16 },
    { DType::UInt32, at::kUInt32 },
    { DType::UInt64, at::kUInt64 },
    { DType::Float8E4M3, at::kFloat8_e4m3fn },
    { DType::Float8E5M2, at::kFloat8_e5m2 },
};

// Marks a handle whose owner is an ATen tensor.
struct AtenOwner {
    void operator()(const void *p) const { delete static_cast<const at::Tensor *>(p); }
};

// The ATen tensor behind a handle that came from ATen.
const at::Tensor *behind(const TensorData &t)
{
    return std::get_deleter<AtenOwner>(t.owner) ? static_cast<const at::Tensor *>(t.owner.get()) : nullptr;
}

std::optional<DType> known(at::ScalarType type)
{
    for (const DTypePair &p : kDTypes)
        if (p.aten == type)
            return p.ours;
    return std::nullopt;
}

// Memory that a handle can describe.
bool isPlain(const at::Tensor &t)
{
    return t.layout() == at::kStrided && !t.is_nested() && t.device().is_cpu() && !t.is_conj() && !t.is_neg()
        && known(t.scalar_type());
}

std::optional<at::MemoryFormat> memoryFormat(const std::string &name)
{
    if (name == "torch.contiguous_format")
        return at::MemoryFormat::Contiguous;
    if (name == "torch.preserve_format")
        return at::MemoryFormat::Preserve;
    if (name == "torch.channels_last")
        return at::MemoryFormat::ChannelsLast;
    if (name == "torch.channels_last_3d")
        return at::MemoryFormat::ChannelsLast3d;
    return std::nullopt;
}

// Names that schemas pass as numbers: what F.cross_entropy and friends do in Python before the call.
std::optional<int64_t> reduction(const std::string &name)
{
    if (name == "none")
        return at::Reduction::None;
    if (name == "mean")
        return at::Reduction::Mean;
    if (name == "sum")
        return at::Reduction::Sum;
    return std::nullopt;
}

bool isNumber(const Arg &a)
{
    return a.as<bool>() || a.as<int64_t>() || a.as<double>() || a.as<std::complex<double>>();
}

// A number as a tensor that, as in Python, does not take part in type promotion by its own dtype.
at::Tensor wrappedNumber(const Arg &a)
{
    at::Tensor t = at::scalar_tensor(toScalar(a),
        at::TensorOptions().dtype(a.as<bool>() ? at::kBool
                : a.as<int64_t>()              ? at::kLong
                : a.as<double>()               ? at::kDouble
                                               : at::kComplexDouble));
    t.unsafeGetTensorImpl()->set_wrapped_number(true);
    return t;
}

// A single-element tensor where a number is wanted (x[: n] with n from the graph).
std::optional<Arg> itemOf(const Arg &a)
{
    if (const Tensor *t = a.as<Tensor>(); t && *t && (*t)->numel() == 1)
        return fromScalar(toAten(*t).item());
    return std::nullopt;
}

// The items of a sequence, of a range too.
std::optional<ArgList> itemsOf(const Arg &a)
{
    if (const ArgSequence *s = a.sequence())
        return s->items;
    if (const ArgNamedTuple *n = a.named()) {
        ArgList items;
        for (const auto &[name, value] : n->fields)
            items.push_back(value);
        return items;
    }
    if (const ArgSlice *r = a.sliceOrRange(); r && r->isRange) {
        const auto start = r->start.toInt(), stop = r->stop.toInt(), step = r->step.toInt();
        if (!start || !stop || !step || *step == 0)
            return std::nullopt;
        ArgList items;
        for (int64_t i = *start; *step > 0 ? i < *stop : i > *stop; i += *step)
            items.emplace_back(i);
        return items;
    }
    return std::nullopt;
}

} // namespace

at::ScalarType scalarType(DType dtype)
{
    for (const DTypePair &p : kDTypes)
        if (p.ours == dtype)
            return p.aten;
    throw ExecError("unknown dtype");
}

DType dtypeOf(at::ScalarType type)
{
    if (const auto dtype = known(type))
        return *dtype;
    throw ExecError(std::string("tensors of dtype ") + c10::toString(type) + " are not supported");
}

at::Tensor toAten(const Tensor &t)
{
    if (!t)
        return {};
    if (const at::Tensor *a = behind(*t))
        return *a;
    auto keep = [owner = t->owner](void *) {};
    void *data = const_cast<std::byte *>(t->data); // the interpreter clones what an in-place node could change
    const auto options = at::TensorOptions().dtype(scalarType(t->dtype));
    const at::Tensor plain
        = at::from_blob(data, t->sizes, t->strides, keep, at::TensorOptions().dtype(at::toUnderlying(scalarType(t->dtype))));
    if (!t->quant)
        return plain;
    // An empty tensor with the right quantizer (scales as doubles, which from_blob_quantized_* would round) takes over the
    // storage.
    const QuantParams &q = *t->quant;
    const at::ScalarType type = scalarType(t->dtype);
    at::Tensor r = at::new_qtensor({ 0 }, options,
        q.perChannel() ? at::make_per_channel_affine_quantizer(
            at::tensor(q.scales, at::kDouble), at::tensor(q.zeroPoints, at::kLong), q.axis, type)
                       : at::make_per_tensor_affine_quantizer(q.scales.at(0), q.zeroPoints.at(0), type));
    r.unsafeGetTensorImpl()->set_storage_keep_dtype(plain.storage());
    r.unsafeGetTensorImpl()->set_sizes_and_strides(t->sizes, t->strides);
    return r;
}

namespace
{
thread_local bool shapesAlone = false;
}

MetaScope::MetaScope(bool on)
    : before_(shapesAlone)
{
    shapesAlone = on;
}

MetaScope::~MetaScope()
{
    shapesAlone = before_;
}

bool isDense(const Tensor &t)
{
    const at::Tensor *a = t ? behind(*t) : nullptr;
    return !a || (a->layout() == at::kStrided && !a->is_nested() && a->device().is_cpu() && known(a->scalar_type()).has_value());
}

bool isMeta(const Tensor &t)
{
    const at::Tensor *a = t ? behind(*t) : nullptr;
    return a && a->is_meta();
}

Tensor hold(const at::Tensor &t)
{
    if (!t.defined())
        return nullptr;
    if (shapesAlone && isPlain(t) && !t.is_quantized() && t.dim() > 0)
        return hold(at::empty_strided(t.sizes(), t.strides(), t.options().device(at::kMeta)));
    auto data = std::make_shared<TensorData>();
    data->owner = std::shared_ptr<const void>(new at::Tensor(t), AtenOwner{});
    data->dtype = known(t.scalar_type()).value_or(DType::Float32);
    if (t.layout() != at::kStrided || t.is_nested())
        return data;
    data->sizes.assign(t.sizes().begin(), t.sizes().end());
    data->strides.assign(t.strides().begin(), t.strides().end());
    if (!isPlain(t))
        return data;
    data->data = static_cast<const std::byte *>(t.const_data_ptr());
    if (t.is_quantized()) {
        QuantParams q;
        if (t.qscheme() == at::kPerTensorAffine || t.qscheme() == at::kPerTensorSymmetric) {
            q.scales = { t.q_scale() };
            q.zeroPoints = { t.q_zero_point() };
        } else {
            const at::Tensor s = t.q_per_channel_scales().to(at::kDouble).contiguous();
            const at::Tensor z = t.q_per_channel_zero_points().to(at::kLong).contiguous();
            q.scales.assign(s.const_data_ptr<double>(), s.const_data_ptr<double>() + s.numel());
            q.zeroPoints.assign(z.const_data_ptr<int64_t>(), z.const_data_ptr<int64_t>() + z.numel());
            q.axis = int(t.q_per_channel_axis());
        }
        data->quant = std::move(q);
    }
    return data;
}

Tensor fromAten(const at::Tensor &t)
{
    if (!t.defined() || isPlain(t))
        return hold(t);
    if (t.layout() != at::kStrided || t.is_nested())
        throw ExecError("a sparse or nested tensor came out, and only dense ones are supported");
    if (!t.device().is_cpu())
        throw ExecError("a tensor on " + t.device().str() + " came out, and only the CPU is supported");
    dtypeOf(t.scalar_type());
    return hold(t.resolve_conj().resolve_neg());
}

Tensor settled(const Tensor &t)
{
    const at::Tensor *a = t ? behind(*t) : nullptr;
    if (!a || (isPlain(*a) && a->const_data_ptr() == t->data && a->sizes() == t->sizes && a->strides() == t->strides))
        return t;
    return fromAten(*a);
}

at::Scalar toScalar(const Arg &a)
{
    if (const bool *b = a.as<bool>())
        return *b;
    if (const int64_t *i = a.as<int64_t>())
        return *i;
    if (const double *d = a.as<double>())
        return *d;
    if (const auto *c = a.as<std::complex<double>>())
        return c10::complex<double>(c->real(), c->imag());
    throw ExecError("a number was expected");
}

Arg fromScalar(const at::Scalar &s)
{
    if (s.isBoolean())
        return s.toBool();
    if (s.isIntegral(false))
        return s.toLong();
    if (s.isFloatingPoint())
        return s.toDouble();
    const auto c = s.toComplexDouble();
    return std::complex<double>(c.real(), c.imag());
}

std::optional<c10::IValue> toIValue(const Arg &a, const c10::TypePtr &type, int &cost, std::optional<int> listSize)
{
    using c10::TypeKind;
    switch (type->kind()) {
    case TypeKind::OptionalType:
        if (a.isNone())
            return c10::IValue();
        return toIValue(a, type->castRaw<c10::OptionalType>()->getElementType(), cost, listSize);
    case TypeKind::NoneType:
        return a.isNone() ? std::optional<c10::IValue>(c10::IValue()) : std::nullopt;
    case TypeKind::TensorType:
        if (const Tensor *t = a.as<Tensor>())
            return c10::IValue(toAten(*t));
        if (!isNumber(a))
            return std::nullopt;
        cost += 10;
        return c10::IValue(wrappedNumber(a));
    case TypeKind::NumberType:
        if (isNumber(a))
            return c10::IValue(toScalar(a));
        if (const Tensor *t = a.as<Tensor>(); t && *t && (*t)->sizes.empty()) {
            cost += 20;
            return c10::IValue(toAten(*t).item());
        }
        return std::nullopt;
    case TypeKind::SymIntType:
    case TypeKind::IntType:
        if (const int64_t *i = a.as<int64_t>())
            return c10::IValue(*i);
        if (const bool *b = a.as<bool>())
            return ++cost, c10::IValue(int64_t(*b));
        if (const auto *d = a.as<ArgDType>()) { // a ScalarType is an int in a schema
            const auto dtype = dtypeFromName(d->name);
            return dtype ? std::optional(c10::IValue(int64_t(scalarType(*dtype)))) : std::nullopt;
        }
        if (const auto *m = a.as<ArgMemoryFormat>()) {
            const auto format = memoryFormat(m->name);
            return format ? std::optional(c10::IValue(int64_t(*format))) : std::nullopt;
        }
        if (a.as<ArgLayout>())
            return c10::IValue(int64_t(at::kStrided));
        if (const auto *s = a.as<std::string>()) {
            const auto r = reduction(*s);
            return r ? (++cost, std::optional(c10::IValue(*r))) : std::nullopt;
        }
        if (const auto item = itemOf(a); item && item->as<int64_t>())
            return cost += 20, c10::IValue(*item->as<int64_t>());
        return std::nullopt;
    case TypeKind::ScalarTypeType:
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType:
        if (a.as<ArgDType>() || a.as<ArgMemoryFormat>() || a.as<ArgLayout>())
            return toIValue(a, c10::IntType::get(), cost);
        return std::nullopt;
    case TypeKind::SymFloatType:
    case TypeKind::FloatType:
        if (const double *d = a.as<double>())
            return c10::IValue(*d);
        if (const auto d = a.toDouble())
            return ++cost, c10::IValue(*d);
        if (const auto item = itemOf(a); item && item->toDouble())
            return cost += 20, c10::IValue(*item->toDouble());
        return std::nullopt;
    case TypeKind::SymBoolType:
    case TypeKind::BoolType:
        if (const bool *b = a.as<bool>())
            return c10::IValue(*b);
        if (const int64_t *i = a.as<int64_t>())
            return cost += 2, c10::IValue(*i != 0);
        return std::nullopt;
    case TypeKind::ComplexType:
        if (!isNumber(a))
            return std::nullopt;
        return c10::IValue(toScalar(a).toComplexDouble());
    case TypeKind::StringType:
        if (const auto *s = a.as<std::string>())
            return c10::IValue(*s);
        return std::nullopt;
    case TypeKind::DeviceObjType:
        if (const auto *d = a.as<ArgDevice>())
            return c10::IValue(c10::Device(d->name));
        if (const auto *s = a.as<std::string>())
            return ++cost, c10::IValue(c10::Device(*s));
        return std::nullopt;
    case TypeKind::ListType: {
        const c10::TypePtr element = type->castRaw<c10::ListType>()->getElementType();
        c10::impl::GenericList list(element->kind() == TypeKind::SymIntType ? c10::TypePtr(c10::IntType::get()) : element);
        if (a.isNone() && listSize) // `stride=None` of the pooling functions
            return cost += 1, c10::IValue(list);
        if (const auto items = itemsOf(a)) {
            for (const Arg &item : *items) {
                auto v = toIValue(item, element, cost);
                if (!v)
                    return std::nullopt;
                list.push_back(std::move(*v));
            }
        } else if (listSize) { // int[2] takes a single int
            auto v = toIValue(a, element, cost);
            if (!v)
                return std::nullopt;
            for (int i = 0; i < *listSize; ++i)
                list.push_back(*v);
            cost += 1;
        } else if (const Tensor *t = a.as<Tensor>(); t && *t && (*t)->sizes.size() == 1 && element->kind() != TypeKind::TensorType
                   && element->kind() != TypeKind::OptionalType) {
            cost += 20;
            for (const double v : toDoubles(**t))
                list.push_back(element->kind() == TypeKind::FloatType ? c10::IValue(v) : c10::IValue(int64_t(v)));
        } else {
            return std::nullopt;
        }
        return c10::IValue(list);
    }
    case TypeKind::TupleType: {
        const auto elements = type->castRaw<c10::TupleType>()->elements();
        const auto items = itemsOf(a);
        if (!items || items->size() != elements.size())
            return std::nullopt;
        std::vector<c10::IValue> values;
        for (size_t i = 0; i < items->size(); ++i) {
            auto v = toIValue((*items)[i], elements[i], cost);
            if (!v)
                return std::nullopt;
            values.push_back(std::move(*v));
        }
        return c10::ivalue::Tuple::create(std::move(values));
    }
    case TypeKind::DictType: {
        const auto *d = type->castRaw<c10::DictType>();
        const ArgDict *items = a.dictionary();
        if (!items)
            return std::nullopt;
        c10::impl::GenericDict dict(d->getKeyType(), d->getValueType());
        for (const auto &[key, value] : items->items) {
            auto k = toIValue(key, d->getKeyType(), cost), v = toIValue(value, d->getValueType(), cost);
            if (!k || !v)
                return std::nullopt;
            dict.insert_or_assign(std::move(*k), std::move(*v));
        }
        return c10::IValue(dict);
    }
    case TypeKind::AnyType:
        return toIValue(a);
    case TypeKind::GeneratorType:
        return std::nullopt;
    default:
        return std::nullopt;
    }
}

c10::IValue toIValue(const Arg &a)
{
    if (a.isNone())
        return {};
    if (isNumber(a))
        return toScalar(a);
    if (const auto *s = a.as<std::string>())
        return *s;
    if (const Tensor *t = a.as<Tensor>())
        return toAten(*t);
    if (a.as<ArgDType>() || a.as<ArgMemoryFormat>() || a.as<ArgLayout>()) {
        int cost = 0;
        if (auto v = toIValue(a, c10::IntType::get(), cost))
            return *v;
    }
    if (const auto *d = a.as<ArgDevice>())
        return c10::Device(d->name);
    if (const ArgDict *d = a.dictionary()) {
        c10::impl::GenericDict dict(c10::AnyType::get(), c10::AnyType::get());
        for (const auto &[key, value] : d->items)
            dict.insert_or_assign(toIValue(key), toIValue(value));
        return dict;
    }
    if (const auto items = itemsOf(a)) {
        std::vector<c10::IValue> values;
        for (const Arg &item : *items)
            values.push_back(toIValue(item));
        if (!a.sequence() || a.sequence()->kind != ArgSequence::List)
            return c10::ivalue::Tuple::create(std::move(values));
        c10::impl::GenericList list(values.empty() ? c10::TypePtr(c10::AnyType::get()) : values.front().type());
        for (c10::IValue &v : values)
            list.push_back(std::move(v));
        return list;
    }
    throw ExecError("an argument of this kind cannot be passed on");
}

Arg fromIValue(const c10::IValue &v)
{
    if (v.isNone())
        return {};
    if (v.isTensor()) {
        Tensor t = hold(v.toTensor());
        return t ? Arg(std::move(t)) : Arg();
    }
    if (v.isBool())
        return v.toBool();
    if (v.isInt() || v.isSymInt())
        return v.isInt() ? v.toInt() : v.toSymInt().expect_int();
    if (v.isDouble())
        return v.toDouble();
    if (v.isComplexDouble())
        return fromScalar(v.toScalar());
    if (v.isString())
        return v.toStringRef();
    if (v.isDevice())
        return ArgDevice{ v.toDevice().str() };
    if (v.isTuple()) {
        const auto tuple = v.toTuple();
        const auto &named = tuple->type()->schema();
        ArgList items;
        std::vector<std::pair<std::string, Arg>> fields;
        for (size_t i = 0; i < tuple->elements().size(); ++i) {
            Arg item = fromIValue(tuple->elements()[i]);
            if (named)
                fields.emplace_back(named->arguments()[i].name(), std::move(item));
            else
                items.push_back(std::move(item));
        }
        return named ? Arg::namedTuple(tuple->type()->name()->name(), std::move(fields)) : Arg::tuple(std::move(items));
    }
    if (v.isList()) {
        ArgList items;
        const c10::List<c10::IValue> list = v.toList();
        for (const c10::IValue &item : list)
            items.push_back(fromIValue(item));
        return v.isTensorList() ? Arg::tuple(std::move(items)) : Arg::list(std::move(items));
    }
    if (v.isGenericDict()) {
        std::vector<std::pair<Arg, Arg>> items;
        for (const auto &item : v.toGenericDict())
            items.emplace_back(fromIValue(item.key()), fromIValue(item.value()));
        return Arg::dict(std::move(items));
    }
    throw ExecError("a value of type " + v.tagKind() + " came out, which has no counterpart here");
}

std::string currentMessage()
{
    std::string text;
    try {
        throw;
    } catch (const c10::Error &e) {
        text = e.what_without_backtrace();
    } catch (const std::exception &e) {
        text = e.what();
    } catch (...) {
        text = "unknown failure";
    }
    return text.substr(0, text.find('\n'));
}

} // namespace fb
