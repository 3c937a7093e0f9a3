// The .stats file: "FBSTATS1", then little-endian: samples, batches, graph hash, and for each node in order of name its figures
// and the bins that are not empty, each as the distance from the one before and a count (both in base 128). A CRC-32 ends it.
#include <algorithm>
#include <bit>
#include <cmath>

#include "model/exec/statistics.h"
#include "model/io/fxt.h"

namespace fb
{

namespace
{

constexpr std::string_view kMagic = "FBSTATS1";

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
        if (!stats.bins.empty())
            packNode(p, name, stats);
    p.number(crc32(p.out), 4);
    return writeFileAtomically(path, p.out);
}

} // namespace fb
