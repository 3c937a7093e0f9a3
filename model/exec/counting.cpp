// One increment of a table entry for each element, beside a forward pass that has not ten operations for each of them: what
// counts is to touch memory once. Elements are taken in blocks that stay in the first-level cache. Each gives its minimum,
// maximum and sums in sixteen lanes, and is counted in four tables in turn, because a processor waits when the same entry is
// raised twice in a row, as the zeros behind a ReLU do. Blocks with nan or inf are rare; they are filtered first.
//
// A run is the elements of one channel of one sample. Its sums are made in double by a scheme that sees nothing but the run's own
// values, then added exactly, so no result depends on threads, on the instruction set or on how the data was split.
#include "model/exec/counting.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>

#include <ATen/Parallel.h>

namespace fb
{

namespace
{

constexpr size_t kLanes = 16, kBlock = 2048, kTables = 4;
constexpr size_t kSmall = 8192; // elements that do not pay for tables or threads

// 256 bits: wider vectors are lowered badly where the machine has none.
using Floats = float __attribute__((vector_size(32)));
using Bits = uint32_t __attribute__((vector_size(32)));
using Four = float __attribute__((vector_size(16)));
using Doubles = double __attribute__((vector_size(32)));

constexpr uint32_t kNoMagnitude = 0x7fffffff;

struct Moments {
    float min = kInfinity, max = -kInfinity;
    double sum = 0, squares = 0;
    uint32_t tiny = kNoMagnitude; // bits of the smallest magnitude that is not 0
    bool finite = true; // else the rest means nothing
};

// Eight lanes of them.
struct Lanes {
    Floats low = Floats{} + kInfinity, high = Floats{} - kInfinity;
    Bits large = {}, tiny = Bits{} + kNoMagnitude;
    Doubles sumA = {}, sumB = {}, squaresA = {}, squaresB = {};

    [[gnu::always_inline]] void take(const float *p)
    {
        Floats v;
        Bits magnitude;
        Four a, b;
        std::memcpy(&v, p, sizeof v);
        std::memcpy(&magnitude, p, sizeof magnitude);
        std::memcpy(&a, p, sizeof a);
        std::memcpy(&b, p + 4, sizeof b);
        low = v < low ? v : low;
        high = v > high ? v : high;
        magnitude &= kNoMagnitude;
        large = magnitude > large ? magnitude : large;
        magnitude -= 1; // so that 0 is the largest
        tiny = magnitude < tiny ? magnitude : tiny;
        const Doubles da = __builtin_convertvector(a, Doubles), db = __builtin_convertvector(b, Doubles);
        sumA += da;
        sumB += db;
        squaresA += da * da;
        squaresB += db * db;
    }

    [[gnu::always_inline]] void add(const Lanes &o)
    {
        low = o.low < low ? o.low : low;
        high = o.high > high ? o.high : high;
        large = o.large > large ? o.large : large;
        tiny = o.tiny < tiny ? o.tiny : tiny;
        sumA += o.sumA;
        sumB += o.sumB;
        squaresA += o.squaresA;
        squaresB += o.squaresB;
    }

    [[gnu::always_inline]] Moments moments() const
    {
        Moments m;
        for (size_t i = 0; i < 8; ++i) {
            m.min = std::min(m.min, low[i]);
            m.max = std::max(m.max, high[i]);
            m.tiny = std::min(m.tiny, tiny[i] + 1);
            m.finite = m.finite && large[i] < 0x7f800000u;
        }
        for (size_t i = 0; i < 4; ++i) {
            m.sum += sumA[i] + sumB[i];
            m.squares += squaresA[i] + squaresB[i];
        }
        return m;
    }
};

[[gnu::always_inline]] inline Moments momentsHere(const float *p, size_t n)
{
    Lanes even, odd;
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        even.take(p + i);
        odd.take(p + i + 8);
    }
    if (i < n) { // zeros fill the last vectors: sums do not see them, minimum and maximum are taken without
        float last[kLanes] = {};
        std::copy(p + i, p + n, last);
        Lanes rest;
        rest.take(last);
        rest.take(last + 8);
        if (n >= kLanes) { // the last whole vectors, some of it seen before
            std::memcpy(&rest.low, p + n - 8, sizeof rest.low);
            std::memcpy(&rest.high, p + n - 16, sizeof rest.high);
            const Floats a = rest.low, b = rest.high;
            rest.low = a < b ? a : b;
            rest.high = a > b ? a : b;
        } else {
            rest.low = Floats{} + *std::min_element(p + i, p + n);
            rest.high = Floats{} + *std::max_element(p + i, p + n);
        }
        even.add(rest);
    }
    even.add(odd);
    return even.moments();
}

using MomentsFunction = Moments (*)(const float *, size_t);

Moments momentsAnywhere(const float *p, size_t n)
{
    return momentsHere(p, n);
}

#ifdef __x86_64__
// The product of two floats is exact in double, so a fused multiply-add rounds as a product and a sum do.
[[gnu::target("avx2,fma")]] Moments momentsAvx2(const float *p, size_t n)
{
    return momentsHere(p, n);
}

[[gnu::target("avx512f")]] Moments momentsAvx512(const float *p, size_t n)
{
    return momentsHere(p, n);
}

const MomentsFunction moments = __builtin_cpu_supports("avx512f")     ? momentsAvx512
    : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? momentsAvx2
                                                                      : momentsAnywhere;
#else
const MomentsFunction moments = momentsAnywhere;
#endif

// Where one thread counts: four tables that are emptied into the bins now and then, or the bins themselves.
class Counter
{
public:
    Counter(uint64_t *bins, size_t elements)
        : bins_(bins)
        , tables_(elements < kSmall ? nullptr : scratch())
    {
    }

    void count(const float *p, size_t n)
    {
        if (!tables_) {
            for (size_t i = 0; i < n; ++i)
                ++bins_[std::bit_cast<uint32_t>(p[i]) >> 16];
            return;
        }
        uint32_t *a = tables_, *b = a + kHistogramBins, *c = b + kHistogramBins, *d = c + kHistogramBins;
        size_t i = 0;
        for (; i + kTables <= n; i += kTables) {
            uint64_t pair[2];
            std::memcpy(pair, p + i, sizeof pair);
            ++a[pair[0] >> 16 & 0xffff];
            ++b[pair[0] >> 48];
            ++c[pair[1] >> 16 & 0xffff];
            ++d[pair[1] >> 48];
        }
        for (; i < n; ++i)
            ++a[std::bit_cast<uint32_t>(p[i]) >> 16];
    }

    // `low`, `high` and `tiny` bound the values counted so far: few bins of the whole number line.
    void empty(float low, float high, uint32_t tiny)
    {
        if (!tables_)
            return;
        drain(0, 0, 0);
        drain(0x8000, 0, 0);
        if (high > 0)
            drain(0, tiny >> 16, std::bit_cast<uint32_t>(high) >> 16);
        if (low < 0)
            drain(0x8000, tiny >> 16, std::bit_cast<uint32_t>(-low) >> 16);
    }

private:
    static uint32_t *scratch()
    {
        thread_local std::vector<uint32_t> tables(kTables * kHistogramBins);
        return tables.data();
    }

    void drain(uint32_t sign, uint32_t first, uint32_t last)
    {
        uint32_t *a = tables_ + sign, *b = a + kHistogramBins, *c = b + kHistogramBins, *d = c + kHistogramBins;
        for (size_t bin = first; bin <= last; ++bin)
            bins_[sign + bin] += uint64_t(a[bin]) + b[bin] + c[bin] + d[bin];
        for (uint32_t *table : { a, b, c, d })
            if (first <= last)
                std::memset(table + first, 0, (last - first + 1) * sizeof *table);
    }

    uint64_t *bins_;
    uint32_t *tables_;
};

// What one thread found.
struct Part {
    uint64_t count = 0, nan = 0, positiveInf = 0, negativeInf = 0;
    float min = kInfinity, max = -kInfinity;
    uint32_t tiny = kNoMagnitude;
    ExactSum sum, squares;

    Moments addRun(Counter &counter, const float *p, size_t n)
    {
        Moments total;
        float kept[kBlock];
        for (size_t begin = 0; begin < n; begin += kBlock) {
            const float *block = p + begin;
            size_t size = std::min(kBlock, n - begin);
            Moments m = moments(block, size);
            if (!m.finite) {
                size = filter(block, size, kept);
                block = kept;
                m = moments(block, size);
            }
            total.min = std::min(total.min, m.min);
            total.max = std::max(total.max, m.max);
            total.sum += m.sum;
            total.squares += m.squares;
            total.tiny = std::min(total.tiny, m.tiny);
            counter.count(block, size);
            count += size;
        }
        sum.add(total.sum);
        squares.add(total.squares);
        widen(min, max, total.min, total.max);
        tiny = std::min(tiny, total.tiny);
        return total;
    }

private:
    size_t filter(const float *p, size_t n, float *kept)
    {
        size_t size = 0;
        for (size_t i = 0; i < n; ++i)
            if (std::isfinite(p[i]))
                kept[size++] = p[i];
            else
                ++(std::isnan(p[i]) ? nan : p[i] > 0 ? positiveInf : negativeInf);
        return size;
    }
};

void add(TensorStats &s, const Part &part)
{
    if (part.count) {
        float low = s.count ? s.min : kInfinity, high = s.count ? s.max : -kInfinity;
        widen(low, high, part.min, part.max);
        s.min = low;
        s.max = high;
    }
    s.count += part.count;
    s.nan += part.nan;
    s.positiveInf += part.positiveInf;
    s.negativeInf += part.negativeInf;
    s.sum.add(part.sum);
    s.sumSquares.add(part.squares);
}

} // namespace

void countValues(TensorStats &s, const float *values, const std::vector<int64_t> &sizes, bool perChannel)
{
    size_t n = 1;
    for (int64_t size : sizes)
        n *= size_t(size);
    const size_t channels = sizes.size() > 1 ? size_t(sizes[1]) : 1;
    const size_t rows = sizes.empty() ? 1 : size_t(sizes[0]), row = n / rows, inner = row / channels;
    const bool wholeChannels = perChannel && inner >= kLanes; // else a run is a whole row
    const size_t run = wholeChannels ? inner : row, runs = n / run;

    std::mutex mutex;
    // A small tensor is one thread's, which may then count into the bins themselves.
    const int64_t grain = n < kSmall ? int64_t(runs) : int64_t(std::max<size_t>(kSmall / run, 1));
    at::parallel_for(0, int64_t(runs), grain, [&](int64_t begin, int64_t end) {
        Part part;
        Counter counter(s.bins.data(), n);
        std::vector<float> low(s.channelMin.size(), kInfinity), high(s.channelMin.size(), -kInfinity);
        for (int64_t r = begin; r < end; ++r) {
            const float *p = values + size_t(r) * run;
            const Moments m = part.addRun(counter, p, run);
            if (wholeChannels) {
                const size_t c = size_t(r) % channels;
                widen(low[c], high[c], m.min, m.max);
            } else if (perChannel) {
                for (size_t c = 0; c < channels; ++c)
                    for (size_t k = 0; k < inner; ++k, ++p)
                        if (std::isfinite(*p))
                            widen(low[c], high[c], *p, *p);
            }
        }
        const std::lock_guard lock(mutex);
        counter.empty(part.min, part.max, part.tiny);
        add(s, part);
        for (size_t c = 0; c < low.size(); ++c)
            widen(s.channelMin[c], s.channelMax[c], low[c], high[c]);
    });
}

} // namespace fb
