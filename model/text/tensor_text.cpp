#include "model/text/tensor_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "model/text/python.h"

namespace fb
{

namespace
{

constexpr size_t kEdge = 3, kThreshold = 1000, kLine = 80;

std::string formatted(const char *format, double v)
{
    std::string out(400, '\0');
    out.resize(size_t(std::snprintf(out.data(), out.size(), format, v)));
    return out;
}

std::string integer(double v, DType dtype)
{
    return dtype == DType::Bool ? v != 0 ? "True" : "False" : std::to_string(int64_t(v));
}

// torch._tensor_str._Formatter: one spelling and one width for every element.
class Formatter
{
public:
    Formatter(DType dtype, const std::vector<double> &values)
        : dtype_(dtype)
        , floating_(isFloatingPoint(dtype) || isQuantized(dtype))
    {
        if (!floating_) {
            for (double v : values)
                width_ = std::max(width_, integer(v, dtype_).size());
            return;
        }
        double least = INFINITY, most = 0;
        for (double v : values)
            if (std::isfinite(v) && v != 0) {
                least = std::min(least, std::fabs(v));
                most = std::max(most, std::fabs(v));
                whole_ &= v == std::ceil(v);
            }
        if (most == 0)
            return;
        scientific_ = most / least > 1000 || most > 1e8 || least < 1e-4;
        for (double v : values)
            if (std::isfinite(v) && v != 0)
                width_ = std::max(width_, plain(v).size());
    }

    size_t width() const { return width_; }
    std::string text(double v) const
    {
        std::string out = floating_ ? plain(v) : integer(v, dtype_);
        return out.size() < width_ ? std::string(width_ - out.size(), ' ') + out : out;
    }

private:
    std::string plain(double v) const
    {
        if (std::isnan(v) || std::isinf(v))
            return pythonRepr(v);
        return scientific_ ? formatted("%.4e", v) : whole_ ? formatted("%.0f", v) + "." : formatted("%.4f", v);
    }

    DType dtype_;
    bool floating_, whole_ = true, scientific_ = false;
    size_t width_ = 1;
};

// The elements, or the outer ones of a large tensor, as nested lists.
class Lists
{
public:
    Lists(const TensorData &t, const std::vector<double> &values)
        : sizes_(t.sizes)
        , values_(values)
        , short_(values.size() > kThreshold)
        , formatter_(t.dtype, shown())
    {
    }

    std::string text(size_t indent) { return sizes_.empty() ? formatter_.text(values_[0]) : list(0, 0, indent); }

private:
    static constexpr size_t kGap = size_t(-1);

    std::vector<size_t> indices(size_t axis) const
    {
        const auto n = size_t(sizes_[axis]);
        std::vector<size_t> out;
        for (size_t i = 0; i < n; ++i) {
            if (short_ && n > 2 * kEdge && i == kEdge) {
                out.push_back(kGap);
                i = n - kEdge;
            }
            out.push_back(i);
        }
        return out;
    }

    std::vector<double> shown() const
    {
        if (!short_)
            return values_;
        std::vector<double> out;
        collect(0, 0, out);
        return out;
    }
    void collect(size_t axis, size_t offset, std::vector<double> &out) const
    {
        if (axis == sizes_.size())
            return out.push_back(values_[offset]);
        for (size_t i : indices(axis))
            if (i != kGap)
                collect(axis + 1, offset * size_t(sizes_[axis]) + i, out);
    }

    std::string list(size_t axis, size_t offset, size_t indent)
    {
        const bool innermost = axis + 1 == sizes_.size();
        const size_t perLine = std::max<size_t>(1, (kLine - std::min(kLine, indent)) / (formatter_.width() + 2));
        const std::string newLine
            = "," + std::string(innermost ? 1 : sizes_.size() - axis - 1, '\n') + std::string(indent + 1, ' ');
        std::string out = "[";
        size_t count = 0;
        for (size_t i : indices(axis)) {
            if (count)
                out += innermost && count % perLine ? ", " : newLine;
            ++count;
            const size_t at = offset * size_t(sizes_[axis]) + i;
            out += i == kGap ? innermost ? " ..." : "..."
                : innermost  ? formatter_.text(values_[at])
                             : list(axis + 1, at, indent + 1);
        }
        return out + "]";
    }

    const std::vector<int64_t> &sizes_;
    const std::vector<double> &values_;
    bool short_;
    Formatter formatter_;
};

std::string sizesText(const std::vector<int64_t> &sizes)
{
    std::string out;
    for (int64_t s : sizes)
        out += (out.empty() ? "" : ", ") + std::to_string(s);
    return "(" + out + (sizes.size() == 1 ? ",)" : ")");
}

std::string literal(
    const TensorData &t, const std::vector<double> &values, size_t axis, size_t &next, const std::string &floatName)
{
    if (axis == t.sizes.size()) {
        const double v = values[next++];
        if (!isFloatingPoint(t.dtype) && !isQuantized(t.dtype))
            return integer(v, t.dtype);
        return std::isfinite(v) ? pythonRepr(v) : floatName + "('" + pythonRepr(v) + "')";
    }
    std::string out = "[";
    for (int64_t i = 0; i < t.sizes[axis]; ++i)
        out += (i ? ", " : "") + literal(t, values, axis + 1, next, floatName);
    return out + "]";
}

} // namespace

std::string tensorRepr(const TensorData &t)
{
    const std::vector<double> values = toDoubles(t);
    std::vector<std::string> suffixes;
    if (values.empty() && t.sizes.size() != 1)
        suffixes.push_back("size=" + sizesText(t.sizes));
    const bool inferred = t.dtype == DType::Float32 || t.dtype == DType::Complex64
        || (!values.empty() && (t.dtype == DType::Int64 || t.dtype == DType::Bool));
    if (!inferred)
        suffixes.push_back("dtype=torch." + std::string(dtypeName(t.dtype)));
    constexpr size_t kIndent = 7; // of "tensor("
    std::string out = "tensor(" + (values.empty() ? "[]" : Lists(t, values).text(kIndent));
    size_t lastLine = out.size() - (out.rfind('\n') == out.npos ? size_t(-1) : out.rfind('\n')) + 1;
    for (const std::string &suffix : suffixes) {
        const bool wraps = lastLine + suffix.size() + 2 > kLine;
        out += (wraps ? ",\n" + std::string(kIndent, ' ') : ", ") + suffix;
        lastLine = wraps ? kIndent + suffix.size() : lastLine + suffix.size() + 2;
    }
    return out + ")";
}

std::string tensorLiteral(const TensorData &t, const std::string &floatName)
{
    size_t next = 0;
    return literal(t, toDoubles(t), 0, next, floatName);
}

} // namespace fb
