#include "model/ir/tensor.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

namespace fb
{

namespace
{

struct DTypeRow {
    DType dtype;
    std::string_view name;
    size_t size;
};
constexpr std::array<DTypeRow, 20> kDTypes{ {
    { DType::UInt8, "uint8", 1 },
    { DType::Int8, "int8", 1 },
    { DType::Int16, "int16", 2 },
    { DType::Int32, "int32", 4 },
    { DType::Int64, "int64", 8 },
    { DType::Float16, "float16", 2 },
    { DType::Float32, "float32", 4 },
    { DType::Float64, "float64", 8 },
    { DType::Complex64, "complex64", 8 },
    { DType::Complex128, "complex128", 16 },
    { DType::Bool, "bool", 1 },
    { DType::BFloat16, "bfloat16", 2 },
    { DType::QUInt8, "quint8", 1 },
    { DType::QInt8, "qint8", 1 },
    { DType::QInt32, "qint32", 4 },
    { DType::UInt16, "uint16", 2 },
    { DType::UInt32, "uint32", 4 },
    { DType::UInt64, "uint64", 8 },
    { DType::Float8E4M3, "float8_e4m3fn", 1 },
    { DType::Float8E5M2, "float8_e5m2", 1 },
} };

const DTypeRow &row(DType dtype)
{
    return kDTypes[size_t(dtype)];
}

float halfToFloat(uint16_t h)
{
    const uint32_t sign = uint32_t(h & 0x8000) << 16, exponent = (h >> 10) & 0x1f, mantissa = h & 0x3ff;
    if (exponent == 0)
        return (sign ? -1.f : 1.f) * std::ldexp(float(mantissa), -24);
    const uint32_t e = exponent == 31 ? 255 : exponent + 112;
    return std::bit_cast<float>(sign | e << 23 | mantissa << 13);
}

template <class T> T load(const std::byte *p)
{
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

double element(DType dtype, const std::byte *p)
{
    switch (dtype) {
    case DType::UInt8:
    case DType::Bool:
    case DType::QUInt8:
        return load<uint8_t>(p);
    case DType::Int8:
    case DType::QInt8:
        return load<int8_t>(p);
    case DType::Int16:
        return load<int16_t>(p);
    case DType::Int32:
    case DType::QInt32:
        return load<int32_t>(p);
    case DType::Int64:
        return double(load<int64_t>(p));
    case DType::Float16:
        return halfToFloat(load<uint16_t>(p));
    case DType::Float32:
    case DType::Complex64:
        return load<float>(p);
    case DType::Float64:
    case DType::Complex128:
        return load<double>(p);
    case DType::BFloat16:
        return std::bit_cast<float>(uint32_t(load<uint16_t>(p)) << 16);
    case DType::UInt16:
        return load<uint16_t>(p);
    case DType::UInt32:
        return load<uint32_t>(p);
    case DType::UInt64:
        return double(load<uint64_t>(p));
    case DType::Float8E5M2:
        return halfToFloat(uint16_t(load<uint8_t>(p) << 8));
    case DType::Float8E4M3: {
        const uint8_t b = load<uint8_t>(p);
        const int exponent = (b >> 3) & 15, mantissa = b & 7;
        if ((b & 0x7f) == 0x7f)
            return std::nan("");
        const double v = exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9);
        return b & 0x80 ? -v : v;
    }
    }
    return 0;
}

// Calls visit(flat index, element pointer, multi-index) in row-major order.
template <class F> void forEachElement(const TensorData &t, F visit)
{
    const size_t dims = t.sizes.size(), width = dtypeSize(t.dtype);
    std::vector<int64_t> index(dims, 0);
    const int64_t n = t.numel();
    int64_t offset = 0;
    for (int64_t i = 0; i < n; ++i) {
        visit(i, t.data + offset * int64_t(width), index);
        for (size_t d = dims; d-- > 0;) {
            offset += t.strides[d];
            if (++index[d] < t.sizes[d])
                break;
            offset -= t.strides[d] * t.sizes[d];
            index[d] = 0;
        }
    }
}

} // namespace

std::string_view dtypeName(DType dtype)
{
    return row(dtype).name;
}
size_t dtypeSize(DType dtype)
{
    return row(dtype).size;
}

std::optional<DType> dtypeFromName(std::string_view name)
{
    if (name.starts_with("torch."))
        name.remove_prefix(6);
    for (const DTypeRow &r : kDTypes)
        if (r.name == name)
            return r.dtype;
    return std::nullopt;
}

bool isFloatingPoint(DType d)
{
    return d == DType::Float16 || d == DType::Float32 || d == DType::Float64 || d == DType::BFloat16 || d == DType::Float8E4M3
        || d == DType::Float8E5M2;
}

bool isQuantized(DType d)
{
    return d == DType::QUInt8 || d == DType::QInt8 || d == DType::QInt32;
}

int64_t TensorData::numel() const
{
    return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
}

bool TensorData::isContiguous() const
{
    return numel() <= 1 || strides == contiguousStrides(sizes);
}

std::string TensorData::shapeText() const
{
    std::string text;
    for (int64_t s : sizes)
        text += (text.empty() ? "" : "x") + std::to_string(s);
    return text.empty() ? "scalar" : text;
}

std::vector<int64_t> contiguousStrides(const std::vector<int64_t> &sizes)
{
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;)
        strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
    return strides;
}

Tensor makeTensor(DType dtype, std::vector<int64_t> sizes, const void *bytes, std::optional<QuantParams> quant)
{
    auto t = std::make_shared<TensorData>();
    t->dtype = dtype;
    t->strides = contiguousStrides(sizes);
    t->sizes = std::move(sizes);
    t->quant = std::move(quant);
    auto storage = std::make_shared<std::vector<std::byte>>(size_t(t->numel()) * dtypeSize(dtype));
    if (bytes && !storage->empty())
        std::memcpy(storage->data(), bytes, storage->size());
    t->data = storage->data();
    t->owner = std::move(storage);
    return t;
}

Tensor viewTensor(DType dtype, std::vector<int64_t> sizes, const std::byte *data, std::shared_ptr<const void> owner)
{
    auto t = std::make_shared<TensorData>();
    t->dtype = dtype;
    t->strides = contiguousStrides(sizes);
    t->sizes = std::move(sizes);
    t->data = data;
    t->owner = std::move(owner);
    return t;
}

Tensor makeFloat(std::vector<int64_t> sizes, const std::vector<float> &values)
{
    return makeTensor(DType::Float32, std::move(sizes), values.data());
}

bool sameContents(const Tensor &a, const Tensor &b)
{
    if (a == b)
        return true;
    if (!a || !b || a->dtype != b->dtype || a->sizes != b->sizes || a->quant != b->quant)
        return false;
    const size_t width = dtypeSize(a->dtype);
    if (a->isContiguous() && b->isContiguous())
        return a->numel() == 0 || std::memcmp(a->data, b->data, size_t(a->numel()) * width) == 0;
    std::vector<const std::byte *> left;
    left.reserve(size_t(a->numel()));
    forEachElement(*a, [&](int64_t, const std::byte *p, const auto &) { left.push_back(p); });
    bool same = true;
    forEachElement(
        *b, [&](int64_t i, const std::byte *p, const auto &) { same = same && std::memcmp(left[size_t(i)], p, width) == 0; });
    return same;
}

std::vector<double> toDoubles(const TensorData &t)
{
    std::vector<double> out(size_t(t.numel()));
    forEachElement(t, [&](int64_t i, const std::byte *p, const std::vector<int64_t> &index) {
        double v = element(t.dtype, p);
        if (t.quant && !t.quant->scales.empty()) {
            const size_t c = t.quant->perChannel() ? size_t(index[size_t(t.quant->axis)]) : 0;
            v = (v - double(t.quant->zeroPoints[c])) * t.quant->scales[c];
        }
        out[size_t(i)] = v;
    });
    return out;
}

} // namespace fb
