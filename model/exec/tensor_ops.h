// Fuseboard: the few tensor computations that passes need, done by ATen so that they equal torch bit for bit. GPL-3.0-or-later.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "model/ir/result.h"
#include "model/ir/tensor.h"

namespace fb
{

struct FoldedWeights {
    Tensor weight, bias;
};

// torch.nn.utils.fusion.fuse_conv_bn_weights / fuse_linear_bn_weights. `bias`, `gamma`, `beta` may be null. `transposed`
// scales axis 1 (per group) of a ConvTranspose weight.
Result<FoldedWeights> foldBatchNorm(const Tensor &weight, const Tensor &bias, const Tensor &mean, const Tensor &var, double eps,
    const Tensor &gamma, const Tensor &beta, bool transposed, int64_t groups);

// torch.quantize_per_tensor / quantize_per_channel.
Result<Tensor> quantize(const Tensor &t, const QuantParams &q, DType dtype);
Result<Tensor> dequantize(const Tensor &t);

// Exact min and max along everything but `axis` (axis -1: of all elements), finite values only.
struct MinMax {
    std::vector<float> min, max;
};
Result<MinMax> minMax(const Tensor &t, int axis = -1);

Result<Tensor> contiguous(const Tensor &t);
Result<Tensor> sliceRows(const Tensor &t, int64_t begin, int64_t end); // t[begin:end], a view
Result<Tensor> catRows(const std::vector<Tensor> &parts); // torch.cat(parts, 0)

// Comparison of two outputs of the same shape (compare a with reference b).
struct Difference {
    double maxAbs = 0, relative = 0, cosine = 1, sqnrDb = 0;
    bool sameShape = true;
};
Result<Difference> difference(const Tensor &a, const Tensor &b);

} // namespace fb
