// Fuseboard: immutable tensor handles without ATen. GPL-3.0-or-later.
//
// A Tensor is a shared, read-only view: dtype, sizes, strides and a pointer into memory that `owner` keeps alive (a mapped
// file, a byte vector, or an ATen tensor wrapped by model/exec). Copying a handle never copies data. Two names that hold
// the same handle are tied. A pass that changes a weight makes a new Tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fb
{

// Named as torch names them ("float32", "quint8", ...), see dtypeName().
enum class DType : uint8_t {
    UInt8,
    Int8,
    Int16,
    Int32,
    Int64,
    Float16,
    Float32,
    Float64,
    Complex64,
    Complex128,
    Bool,
    BFloat16,
    QUInt8,
    QInt8,
    QInt32,
    UInt16,
    UInt32,
    UInt64,
    Float8E4M3,
    Float8E5M2
};

std::string_view dtypeName(DType dtype); // "float32"; no "torch." prefix
std::optional<DType> dtypeFromName(std::string_view name); // accepts "float32" and "torch.float32"
size_t dtypeSize(DType dtype); // bytes per element
bool isFloatingPoint(DType dtype);
bool isQuantized(DType dtype);

// Affine quantization parameters of a QInt8 / QUInt8 / QInt32 tensor: real = (q - zeroPoint) * scale.
// Per tensor: one scale and one zero point, axis -1. Per channel: one pair for each index of `axis`.
struct QuantParams {
    std::vector<double> scales;
    std::vector<int64_t> zeroPoints;
    int axis = -1;
    bool perChannel() const { return axis >= 0; }
    bool operator==(const QuantParams &) const = default;
};

struct TensorData {
    DType dtype = DType::Float32;
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides; // in elements; a contiguous tensor has row-major strides
    const std::byte *data = nullptr; // first element
    std::shared_ptr<const void> owner; // keeps `data` alive
    std::optional<QuantParams> quant; // present exactly for quantized dtypes

    int64_t numel() const;
    bool isContiguous() const;
    std::string shapeText() const; // "1x64x56x56"; "scalar" for no dimensions
};

using Tensor = std::shared_ptr<const TensorData>;

// Owns a copy of `bytes` bytes (row-major contiguous) or zeros where `bytes` is null.
Tensor makeTensor(
    DType dtype, std::vector<int64_t> sizes, const void *bytes = nullptr, std::optional<QuantParams> quant = std::nullopt);
// A view of memory that `owner` keeps alive, row-major contiguous.
Tensor viewTensor(DType dtype, std::vector<int64_t> sizes, const std::byte *data, std::shared_ptr<const void> owner);
Tensor makeFloat(std::vector<int64_t> sizes, const std::vector<float> &values);

// Same dtype, sizes, quantization and element bytes (nan equals nan of the same bits).
bool sameContents(const Tensor &a, const Tensor &b);

// Elements in row-major order as doubles (quantized ones dequantized, bool as 0 / 1, complex by real part).
std::vector<double> toDoubles(const TensorData &t);
std::vector<int64_t> contiguousStrides(const std::vector<int64_t> &sizes);

} // namespace fb
