// Counting is the hot loop of calibration: one increment of a table entry for each element. Elements are taken in blocks
// that stay in the first-level cache: a block is checked for nan and inf (rare; it is then filtered), gives its minimum,
// maximum and sums in independent lanes, and is counted. Sums of a run are made in double by a fixed scheme that sees
// nothing but the run's own values, then added exactly, so that no result depends on how the data was split.
#include "model/exec/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "model/exec/tensor_ops.h"
#include "model/io/fxt.h"

namespace fb
{

namespace
{

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr size_t kLanes = 16, kBlock = 2048;
constexpr uint32_t kExponent = 0x7f800000;

struct Moments {
    float min = kInfinity, max = -kInfinity;
    double sum = 0, squares = 0;
};

bool allFinite(const float *p, size_t n)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < n; ++i)
        bad |= uint32_t((std::bit_cast<uint32_t>(p[i]) & kExponent) == kExponent);
    return !bad;
}

// Lanes make the loop wide without letting the compiler choose the order of summation.
Moments moments(const float *p, size_t n)
{
    float low[kLanes], high[kLanes];
    double sum[kLanes] = {}, squares[kLanes] = {};
    std::fill_n(low, kLanes, kInfinity);
    std::fill_n(high, kLanes, -kInfinity);
    auto take = [&](size_t lane, float v) {
        low[lane] = v < low[lane] ? v : low[lane];
        high[lane] = v > high[lane] ? v : high[lane];
        sum[lane] += double(v);
        squares[lane] += double(v) * double(v);
    };
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (size_t lane = 0; lane < kLanes; ++lane)
            take(lane, p[i + lane]);
    for (size_t lane = 0; i < n; ++i, ++lane)
        take(lane, p[i]);
    Moments m;
    for (size_t lane = 0; lane < kLanes; ++lane) {
        m.min = std::min(m.min, low[lane]);
        m.max = std::max(m.max, high[lane]);
        m.sum += sum[lane];
        m.squares += squares[lane];
    }
    return m;
}

void countBins(const float *p, size_t n, uint64_t *bins)
{
    for (size_t i = 0; i < n; ++i)
        ++bins[std::bit_cast<uint32_t>(p[i]) >> 16];
}

// One run of elements that share a channel.
Moments addRun(TensorStats &s, const float *p, size_t n)
{
    Moments total;
    float finite[kBlock];
    for (size_t begin = 0; begin < n; begin += kBlock) {
        const float *block = p + begin;
        size_t size = std::min(kBlock, n - begin);
        if (!allFinite(block, size)) {
            size_t kept = 0;
            for (size_t i = 0; i < size; ++i) {
                const float v = block[i];
                if (std::isfinite(v))
                    finite[kept++] = v;
                else
                    ++(std::isnan(v) ? s.nan : v > 0 ? s.positiveInf : s.negativeInf);
            }
            block = finite;
            size = kept;
        }
        const Moments m = moments(block, size);
        total.min = std::min(total.min, m.min);
        total.max = std::max(total.max, m.max);
        total.sum += m.sum;
        total.squares += m.squares;
        countBins(block, size, s.bins.data());
        s.count += size;
    }
    return total;
}

void widen(float &low, float &high, float min, float max)
{
    low = std::min(low, min) + 0.0f; // -0 becomes 0: which zero came first must not show
    high = std::max(high, max) + 0.0f;
}

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
    int exponent = 0;
    auto m = uint64_t(std::ldexp(std::frexp(std::fabs(v), &exponent), 53));
    exponent -= 53;
    const int zeros = std::countr_zero(m);
    m >>= zeros;
    const int shift = exponent + zeros + 298;
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
    const bool perChannel = channels && !channelsVary;
    const size_t rows = t.sizes.empty() ? 1 : size_t(t.sizes[0]), row = size_t(n) / rows, inner = channels ? row / channels : row;
    const bool wholeChannels = perChannel && inner >= kLanes; // else a run is a whole row
    const size_t run = wholeChannels ? inner : row;
    float low = count ? min : kInfinity, high = count ? max : -kInfinity;
    for (size_t begin = 0; begin < size_t(n); begin += run) {
        const Moments m = addRun(*this, values + begin, run);
        sum.add(m.sum);
        sumSquares.add(m.squares);
        widen(low, high, m.min, m.max);
        if (wholeChannels) {
            const size_t c = begin / run % channels;
            widen(channelMin[c], channelMax[c], m.min, m.max);
        } else if (perChannel) {
            for (size_t c = 0, i = begin; c < channels; ++c)
                for (size_t k = 0; k < inner; ++k, ++i)
                    if (std::isfinite(values[i]))
                        widen(channelMin[c], channelMax[c], values[i], values[i]);
        }
    }
    if (count) {
        min = low;
        max = high;
    }
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
    const float outside = std::bit_cast<float>(std::min((magnitude + 1) << 16, kExponent));
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

// --- .stats files ----------------------------------------------------------------------------------------------------
//
// "FBSTATS1", then little-endian: samples, batches, graph hash, and for each node in order of name its figures and the bins
// that are not empty, each as the distance from the one before and a count (both in base 128). A CRC-32 ends the file.

namespace
{

constexpr std::string_view kMagic = "FBSTATS1";

uint32_t crc32(std::string_view bytes)
{
    uint32_t crc = ~0u;
    for (const char c : bytes) {
        crc ^= uint8_t(c);
        for (int k = 0; k < 8; ++k)
            crc = crc & 1 ? 0xedb88320u ^ (crc >> 1) : crc >> 1;
    }
    return ~crc;
}

class Packer
{
public:
    std::string out;
    void number(uint64_t v, int bytes = 8)
    {
        for (int i = 0; i < bytes; ++i)
            out += char(v >> (8 * i) & 0xff);
    }
    void real(float v) { number(std::bit_cast<uint32_t>(v), 4); }
    void compact(uint64_t v)
    {
        for (; v >= 128; v >>= 7)
            out += char((v & 127) | 128);
        out += char(v);
    }
    void text(std::string_view s)
    {
        number(s.size(), 4);
        out += s;
    }
    void sum(const ExactSum &s)
    {
        for (uint32_t limb : s.limbs)
            number(limb, 4);
    }
};

// Reading stops at the end of the bytes and remembers that it wanted more.
class Unpacker
{
public:
    explicit Unpacker(std::string_view bytes)
        : rest_(bytes)
    {
    }
    bool bad = false;
    bool atEnd() const { return rest_.empty(); }
    size_t left() const { return rest_.size(); }
    uint64_t number(size_t bytes = 8)
    {
        uint64_t v = 0;
        const std::string_view part = take(bytes);
        for (size_t i = part.size(); i-- > 0;)
            v = v << 8 | uint8_t(part[i]);
        return v;
    }
    float real() { return std::bit_cast<float>(uint32_t(number(4))); }
    uint64_t compact()
    {
        uint64_t v = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const uint64_t byte = number(1);
            v |= (byte & 127) << shift;
            if (byte < 128)
                return v;
        }
        bad = true;
        return 0;
    }
    std::string text() { return std::string(take(number(4))); }
    ExactSum sum()
    {
        ExactSum s;
        for (uint32_t &limb : s.limbs)
            limb = uint32_t(number(4));
        return s;
    }

private:
    std::string_view take(size_t n)
    {
        if (bad || n > rest_.size()) {
            bad = true;
            return {};
        }
        const std::string_view part = rest_.substr(0, n);
        rest_.remove_prefix(n);
        return part;
    }
    std::string_view rest_;
};

void packNode(Packer &p, const std::string &name, const TensorStats &s)
{
    p.text(name);
    p.text(s.dtype);
    for (uint64_t v : { s.count, s.nan, s.positiveInf, s.negativeInf })
        p.number(v);
    p.real(s.min);
    p.real(s.max);
    p.sum(s.sum);
    p.sum(s.sumSquares);
    p.number(s.channelsVary, 1);
    p.number(s.channelMin.size(), 4);
    for (const auto *list : { &s.channelMin, &s.channelMax })
        for (float v : *list)
            p.real(v);
    p.number(uint64_t(std::count_if(s.bins.begin(), s.bins.end(), [](uint64_t c) { return c != 0; })), 4);
    for (size_t bin = 0, last = 0; bin < s.bins.size(); ++bin)
        if (s.bins[bin]) {
            p.compact(bin - last);
            p.compact(s.bins[bin]);
            last = bin;
        }
}

TensorStats unpackNode(Unpacker &u)
{
    TensorStats s;
    s.dtype = u.text();
    for (uint64_t *v : { &s.count, &s.nan, &s.positiveInf, &s.negativeInf })
        *v = u.number();
    s.min = u.real();
    s.max = u.real();
    s.sum = u.sum();
    s.sumSquares = u.sum();
    s.channelsVary = u.number(1);
    const size_t channels = u.number(4);
    if (channels > u.left() / 8)
        u.bad = true;
    for (auto *list : { &s.channelMin, &s.channelMax })
        for (size_t i = 0; i < channels && !u.bad; ++i)
            list->push_back(u.real());
    const size_t filled = u.number(4);
    if (u.bad || filled > size_t(kHistogramBins) || filled > u.left() / 2 || !std::isfinite(s.min) || !std::isfinite(s.max)) {
        u.bad = true;
        return s;
    }
    s.bins.assign(kHistogramBins, 0);
    uint64_t bin = 0, total = 0;
    for (size_t i = 0; i < filled && !u.bad; ++i) {
        const uint64_t step = u.compact(), c = u.compact();
        if (step >= uint64_t(kHistogramBins) - bin || (i > 0 && step == 0) || c == 0
            || __builtin_add_overflow(total, c, &total)) {
            u.bad = true;
            break;
        }
        bin += step;
        u.bad = u.bad || (bin & 0x7f80) == 0x7f80; // no finite value has that exponent
        s.bins[bin] = c;
    }
    u.bad = u.bad || total != s.count;
    return s;
}

} // namespace

Result<Calibration> readStats(const std::string &path)
{
    auto bytes = readFile(path);
    if (!bytes)
        return bytes.error();
    const std::string_view all = *bytes;
    if (!all.starts_with(kMagic))
        return Error{ path + ": it is not a calibration statistics file; make one with \"fuseboard-cli calibrate\"" };
    const Error damaged{ path + ": the statistics are cut short or damaged; copy the file again or calibrate again" };
    if (all.size() < kMagic.size() + 4)
        return damaged;
    const std::string_view body = all.substr(0, all.size() - 4);
    Unpacker tail(all.substr(body.size()));
    if (crc32(body) != uint32_t(tail.number(4)))
        return damaged;
    Unpacker u(body.substr(kMagic.size()));
    Calibration c;
    c.samples = u.number();
    c.batches = u.number();
    c.modelText = u.text();
    while (!u.bad && !u.atEnd()) {
        std::string name = u.text();
        if (!c.nodes.emplace(std::move(name), unpackNode(u)).second)
            u.bad = true;
    }
    if (u.bad)
        return damaged;
    return c;
}

Status writeStats(const Calibration &c, const std::string &path)
{
    Packer p;
    p.out = kMagic;
    p.number(c.samples);
    p.number(c.batches);
    p.text(c.modelText);
    for (const auto &[name, stats] : c.nodes)
        if (seen(stats))
            packNode(p, name, stats);
    p.number(crc32(p.out), 4);
    return writeFileAtomically(path, p.out);
}

} // namespace fb
