// What a tensor adds to its statistics, how statistics merge, and how their fixed bins are drawn. The counting itself is in
// counting.cpp.
#include "model/exec/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "model/exec/counting.h"
#include "model/exec/tensor_ops.h"

namespace fb
{

namespace
{

// Ready to take values of `channels` channels (0: no axis 1).
void prepareChannels(TensorStats &s, size_t channels, bool fresh)
{
    if (fresh && !s.channelsVary) {
        s.channelMin.assign(channels, kInfinity);
        s.channelMax.assign(channels, -kInfinity);
    } else if (s.channelMin.size() != channels) {
        s.channelsVary = true;
        s.channelMin.clear();
        s.channelMax.clear();
    }
}

void mergeDType(std::string &into, const std::string &dtype)
{
    if (into.empty())
        into = dtype;
    else if (into != dtype && !dtype.empty())
        into = "mixed";
}

bool seen(const TensorStats &s)
{
    return !s.bins.empty();
}

} // namespace

void ExactSum::add(double v)
{
    if (v == 0)
        return;
    const auto bits = std::bit_cast<uint64_t>(v);
    const int exponent = int(bits >> 52 & 0x7ff);
    uint64_t m = (bits & 0xfffffffffffff) | uint64_t(exponent != 0) << 52;
    const int zeros = std::countr_zero(m);
    m >>= zeros;
    const int shift = std::max(exponent, 1) - 1075 + zeros + 298;
    if (shift < 0)
        return; // no sum of floats is that fine
    const int bit = shift % 32;
    const uint64_t low = m << bit, high = bit ? m >> (64 - bit) : 0;
    const uint32_t parts[3] = { uint32_t(low), uint32_t(low >> 32), uint32_t(high) };
    int64_t carry = 0;
    for (size_t limb = size_t(shift) / 32, i = 0; limb < limbs.size() && (i < 3 || carry); ++limb, ++i) {
        const int64_t part = i < 3 ? parts[i] : 0;
        const int64_t next = int64_t(limbs[limb]) + (v > 0 ? part : -part) + carry;
        limbs[limb] = uint32_t(next);
        carry = next >> 32;
    }
}

void ExactSum::add(const ExactSum &other)
{
    uint64_t carry = 0;
    for (size_t i = 0; i < limbs.size(); ++i) {
        carry += uint64_t(limbs[i]) + other.limbs[i];
        limbs[i] = uint32_t(carry);
        carry >>= 32;
    }
}

ExactSum::operator double() const
{
    auto magnitude = limbs;
    const bool negative = limbs.back() >> 31;
    if (negative) {
        bool carry = true;
        for (uint32_t &limb : magnitude) {
            limb = ~limb + uint32_t(carry);
            carry = carry && limb == 0;
        }
    }
    size_t top = magnitude.size();
    while (top > 0 && magnitude[top - 1] == 0)
        --top;
    if (top == 0)
        return 0;
    auto limb = [&](size_t below) { return top >= below ? uint64_t(magnitude[top - below]) : 0; };
    // The highest 64 bits; what lies below them only decides the rounding.
    const int lead = std::countl_zero(magnitude[top - 1]);
    const uint64_t third = limb(3) << lead;
    uint64_t high = ((limb(1) << 32 | limb(2)) << lead) | third >> 32, rest = third & 0xffffffff;
    for (size_t i = 0; i + 3 < top; ++i)
        rest |= magnitude[i];
    high |= uint64_t(rest != 0);
    const double v = std::ldexp(double(high), int(top) * 32 - 64 - lead - 298);
    return negative ? -v : v;
}

void TensorStats::add(const TensorData &t)
{
    const int64_t n = t.numel();
    if (!isFloatingPoint(t.dtype) || n == 0)
        return;
    const float *values = reinterpret_cast<const float *>(t.data);
    std::vector<float> converted;
    Tensor packed;
    if (t.dtype != DType::Float32) {
        const std::vector<double> doubles = toDoubles(t);
        converted.reserve(doubles.size());
        for (double v : doubles)
            converted.push_back(float(v));
        values = converted.data();
    } else if (!t.isContiguous()) {
        auto copy = contiguous(Tensor(std::shared_ptr<void>(), &t));
        if (!copy)
            return;
        packed = *copy;
        values = reinterpret_cast<const float *>(packed->data);
    }

    const bool first = !seen(*this);
    if (first)
        bins.assign(kHistogramBins, 0);
    mergeDType(dtype, std::string(dtypeName(t.dtype)));
    const size_t channels = t.sizes.size() > 1 ? size_t(t.sizes[1]) : 0;
    prepareChannels(*this, channels, first);
    countValues(*this, values, t.sizes, channels && !channelsVary);
}

void TensorStats::merge(const TensorStats &o)
{
    if (!seen(o))
        return;
    const bool first = !seen(*this);
    if (first)
        bins.assign(kHistogramBins, 0);
    for (size_t i = 0; i < bins.size(); ++i)
        bins[i] += o.bins[i];
    if (o.count) {
        min = count ? std::min(min, o.min) : o.min;
        max = count ? std::max(max, o.max) : o.max;
    }
    count += o.count;
    nan += o.nan;
    positiveInf += o.positiveInf;
    negativeInf += o.negativeInf;
    sum.add(o.sum);
    sumSquares.add(o.sumSquares);
    mergeDType(dtype, o.dtype);
    channelsVary = channelsVary || o.channelsVary;
    prepareChannels(*this, channelsVary ? 0 : o.channelMin.size(), first);
    if (!channelsVary)
        for (size_t c = 0; c < channelMin.size(); ++c)
            widen(channelMin[c], channelMax[c], o.channelMin[c], o.channelMax[c]);
}

void Calibration::merge(const Calibration &o)
{
    for (const auto &[name, stats] : o.nodes)
        nodes[name].merge(stats);
    samples += o.samples;
    batches += o.batches;
    if (modelText.empty())
        modelText = o.modelText;
}

std::pair<float, float> binRange(int bin)
{
    const auto magnitude = uint32_t(bin & 0x7fff);
    const float inside = std::bit_cast<float>(magnitude << 16);
    const float outside = std::bit_cast<float>(std::min((magnitude + 1) << 16, std::bit_cast<uint32_t>(kInfinity)));
    return bin & 0x8000 ? std::pair(-outside, -inside) : std::pair(inside, outside);
}

std::vector<double> rebin(const TensorStats &s, double lo, double hi, int n)
{
    std::vector<double> out(size_t(std::max(n, 0)), 0.0);
    if (out.empty() || s.bins.empty())
        return out;
    if (!(lo < hi)) { // a constant: one spike in the middle
        lo -= 0.5;
        hi += 0.5;
    }
    const double scale = n / (hi - lo);
    for (int bin = 0; bin < kHistogramBins; ++bin) {
        const auto c = double(s.bins[size_t(bin)]);
        if (c == 0)
            continue;
        // No value lies outside [min, max], so the outermost bins are narrower than the number format makes them.
        auto [a, b] = std::pair<double, double>(binRange(bin));
        a = std::max(a, double(s.min));
        b = std::min(b, double(s.max));
        const double from = (a - lo) * scale, to = (b - lo) * scale;
        if (from > n || to < 0)
            continue;
        if (!(from < to)) { // narrower than a double can tell
            if (from >= 0)
                out[size_t(std::min(int(from), n - 1))] += c;
            continue;
        }
        for (int k = int(std::max(from, 0.0)); k < n && k < to; ++k)
            out[size_t(k)] += c / (to - from) * (std::min(to, k + 1.0) - std::max(from, double(k)));
    }
    return out;
}

} // namespace fb
