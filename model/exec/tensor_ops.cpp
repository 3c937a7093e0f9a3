// Tensor computations for passes, by ATen, so that what a pass folds equals what torch folds to the last bit.
#include "model/exec/tensor_ops.h"

#include <cmath>

#include "model/exec/aten_bridge.h"

namespace fb
{

namespace
{

// An ATen failure becomes one sentence that begins with what was being done.
template <class F> auto attempt(const char *what, F work) -> Result<decltype(work())>
{
    try {
        const c10::InferenceMode guard;
        const QuietScope quiet;
        return work();
    } catch (...) {
        return Error{ std::string(what) + ": " + currentMessage() };
    }
}

} // namespace

Result<FoldedWeights> foldBatchNorm(const Tensor &weight, const Tensor &bias, const Tensor &mean, const Tensor &var, double eps,
    const Tensor &gamma, const Tensor &beta, bool transposed, int64_t groups)
{
    return attempt("folding BatchNorm", [&]() -> FoldedWeights {
        const at::Tensor w = toAten(weight), rm = toAten(mean);
        const at::Tensor b = bias ? toAten(bias) : at::zeros_like(rm), g = gamma ? toAten(gamma) : at::ones_like(rm),
                         shift = beta ? toAten(beta) : at::zeros_like(rm), inverse = at::rsqrt(toAten(var) + eps);
        const at::ScalarType biasType = bias ? b.scalar_type() : w.scalar_type();
        const at::Tensor scale = g * inverse;
        if (w.dim() == 2) // fuse_linear_bn_weights rounds in another order
            return { fromAten(w * scale.unsqueeze(-1).to(w.scalar_type())), fromAten(((b - rm) * scale + shift).to(biasType)) };
        at::Tensor folded;
        if (transposed) { // (in, out / groups, k...): input block g makes the outputs of group g
            std::vector<int64_t> blocks = w.sizes().vec(), factor(size_t(w.dim()) + 1, 1);
            blocks[0] /= groups;
            blocks.insert(blocks.begin(), groups);
            factor[0] = groups;
            factor[2] = w.size(1);
            folded = (w.reshape(blocks) * scale.reshape(factor)).reshape(w.sizes());
        } else {
            std::vector<int64_t> factor(size_t(w.dim()), 1);
            factor[0] = -1;
            folded = w * scale.reshape(factor);
        }
        return { fromAten(folded.to(w.scalar_type())), fromAten(((b - rm) * inverse * g + shift).to(biasType)) };
    });
}

Result<Tensor> quantize(const Tensor &t, const QuantParams &q, DType dtype)
{
    return attempt("quantizing a tensor", [&]() -> Tensor {
        if (q.scales.empty() || q.scales.size() != q.zeroPoints.size())
            throw ExecError("as many zero points as scales are needed");
        const at::Tensor x = toAten(t).to(at::kFloat);
        if (!q.perChannel())
            return fromAten(at::quantize_per_tensor(x, q.scales[0], q.zeroPoints[0], scalarType(dtype)));
        return fromAten(at::quantize_per_channel(
            x, at::tensor(q.scales, at::kDouble), at::tensor(q.zeroPoints, at::kLong), q.axis, scalarType(dtype)));
    });
}

Result<Tensor> dequantize(const Tensor &t)
{
    return attempt("dequantizing a tensor", [&] { return fromAten(t->quant ? toAten(t).dequantize() : toAten(t)); });
}

Result<MinMax> minMax(const Tensor &t, int axis)
{
    return attempt("finding minimum and maximum", [&]() -> MinMax {
        at::Tensor x = toAten(t);
        x = (t->quant ? x.dequantize() : x).to(at::kFloat);
        if (axis >= x.dim())
            throw ExecError("the tensor has " + std::to_string(x.dim()) + " dimensions and no axis " + std::to_string(axis));
        x = axis < 0 ? x.reshape({ 1, -1 }) : x.movedim(axis, 0).reshape({ x.size(axis), -1 });
        if (x.numel() == 0)
            throw ExecError("the tensor has no elements");
        auto [low, high] = at::aminmax(x, 1);
        if (!at::isfinite(low).logical_and(at::isfinite(high)).all().item<bool>()) {
            const at::Tensor finite = at::isfinite(x);
            if (!finite.any(1).all().item<bool>())
                throw ExecError("the tensor has no finite element" + std::string(axis < 0 ? "" : " in one of its channels"));
            low = at::where(finite, x, HUGE_VAL).amin(1);
            high = at::where(finite, x, -HUGE_VAL).amax(1);
        }
        low = low.to(at::kFloat).contiguous();
        high = high.to(at::kFloat).contiguous();
        auto list = [](const at::Tensor &v) {
            return std::vector<float>(v.const_data_ptr<float>(), v.const_data_ptr<float>() + v.numel());
        };
        return { list(low), list(high) };
    });
}

Result<Tensor> contiguous(const Tensor &t)
{
    if (t->isContiguous())
        return t;
    return attempt("copying a tensor", [&] { return fromAten(toAten(t).contiguous()); });
}

Result<Tensor> sliceRows(const Tensor &t, int64_t begin, int64_t end)
{
    if (t->sizes.empty() || begin < 0 || end < begin || end > t->sizes[0])
        return Error{ "rows " + std::to_string(begin) + " to " + std::to_string(end) + " of a " + t->shapeText()
            + " tensor do not exist" };
    auto rows = std::make_shared<TensorData>(*t);
    rows->owner = t; // and not what may be a whole ATen tensor, which would stand for the rows
    rows->data = t->data + begin * t->strides[0] * int64_t(dtypeSize(t->dtype));
    rows->sizes[0] = end - begin;
    if (rows->quant && rows->quant->axis == 0) {
        auto cut = [&](auto &v) { v = { v.begin() + begin, v.begin() + end }; };
        cut(rows->quant->scales);
        cut(rows->quant->zeroPoints);
    }
    return Tensor(std::move(rows));
}

Result<Tensor> catRows(const std::vector<Tensor> &parts)
{
    if (parts.size() == 1)
        return parts[0];
    return attempt("joining tensors", [&] {
        std::vector<at::Tensor> list;
        for (const Tensor &t : parts)
            list.push_back(toAten(t));
        return fromAten(at::cat(list, 0));
    });
}

Result<Difference> difference(const Tensor &a, const Tensor &b)
{
    return attempt("comparing tensors", [&]() -> Difference {
        Difference d;
        if (a->sizes != b->sizes) {
            d.sameShape = false;
            return d;
        }
        auto flat = [](const Tensor &t) {
            const at::Tensor x = toAten(t);
            return (t->quant ? x.dequantize() : x).to(at::kDouble).reshape({ -1 });
        };
        const at::Tensor x = flat(a), ref = flat(b);
        if (ref.numel() == 0)
            return d;
        // Equal infinities are no difference.
        const at::Tensor error = at::where(x == ref, at::zeros_like(ref), x - ref);
        const double size = ref.norm().item<double>(), off = error.norm().item<double>(), own = x.norm().item<double>();
        d.maxAbs = error.abs().max().item<double>();
        d.relative = off == 0 ? 0 : off / size;
        d.cosine = off == 0 ? 1 : size * own == 0 ? 0 : at::dot(x, ref).item<double>() / (size * own);
        d.sqnrDb = off == 0 ? HUGE_VAL : 20 * std::log10(size / off);
        return d;
    });
}

} // namespace fb
