// Fuseboard: the hot loop of calibration. GPL-3.0-or-later. Private to model/exec.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "model/exec/statistics.h"

namespace fb
{

constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline void widen(float &low, float &high, float min, float max)
{
    low = std::min(low, min) + 0.0f; // -0 becomes 0: which zero came first must not show
    high = std::max(high, max) + 0.0f;
}

// Adds a contiguous float32 tensor: bins, counts, min, max and sums, and the minimum and maximum of each index of axis 1 where
// `perChannel`. Runs on ATen's threads; the result does not depend on how many there are.
void countValues(TensorStats &s, const float *values, const std::vector<int64_t> &sizes, bool perChannel);

} // namespace fb
