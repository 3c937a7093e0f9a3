// From a range to scale and zero point, in the float32 arithmetic of torch.ao's
// UniformQuantizationObserverBase._calculate_qparams: scales must be equal to the last bit, so every division below is a float
// division as ATen does it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "model/exec/tensor_ops.h"
#include "passes/quantize.h"

namespace fb
{

namespace
{
constexpr float kEps = std::numeric_limits<float>::epsilon();
}

QuantParams minMaxQParams(float min, float max, bool reduceRange)
{
    const int top = reduceRange ? 127 : 255;
    const float low = std::min(min, 0.0f), high = std::max(max, 0.0f);
    const float scale = std::max((high - low) / float(top), kEps);
    const float zero = -std::nearbyint(low / scale);
    return { { double(scale) }, { int64_t(std::clamp(zero, 0.0f, float(top))) }, -1 };
}

Result<QuantParams> weightQParams(const Tensor &weight, int axis)
{
    if (!weight)
        return Error{ "A weight to quantize is missing." };
    Result<MinMax> range = minMax(weight, axis);
    if (!range)
        return range.error();
    QuantParams q;
    q.axis = axis;
    for (size_t i = 0; i < range->min.size(); ++i) {
        const float reach = std::max(-std::min(range->min[i], 0.0f), std::max(range->max[i], 0.0f));
        q.scales.push_back(double(std::max(reach / 127.5f, kEps)));
        q.zeroPoints.push_back(0);
    }
    return q;
}

} // namespace fb
