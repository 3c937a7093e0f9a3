// GCC 12 with sanitizers takes the unused alternatives of a std::variant for uninitialized.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "model/io/json.h"

#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

#include <nlohmann/json.hpp>

namespace fb::io
{

// Receives nlohmann's parse events. The children of all open containers wait on two stacks; a container is made when it closes,
// with room for exactly what it holds.
class Builder
{
public:
    std::string problem;

    Json root() { return std::move(items_.back()); }

    bool null() { return put({}); }
    bool boolean(bool v) { return put(v); }
    bool number_integer(int64_t v) { return put(v); }
    bool number_unsigned(uint64_t v)
    {
        return v <= uint64_t(std::numeric_limits<int64_t>::max()) ? put(int64_t(v)) : put(double(v));
    }
    bool number_float(double v, const std::string &) { return put(v); }
    bool string(std::string &v) { return put(std::move(v)); }
    bool binary(nlohmann::json::binary_t &) { return false; }
    bool start_object(size_t) { return open(); }
    bool start_array(size_t) { return open(); }
    bool key(std::string &v)
    {
        keys_.push_back(std::move(v));
        return true;
    }
    bool end_object()
    {
        const size_t first = open_.back();
        Json::Object members;
        members.reserve(items_.size() - first);
        const size_t firstKey = keys_.size() - (items_.size() - first);
        for (size_t i = first; i < items_.size(); ++i)
            members.emplace_back(std::move(keys_[firstKey + i - first]), std::move(items_[i]));
        keys_.resize(firstKey);
        return close(std::move(members));
    }
    bool end_array()
    {
        const auto first = items_.begin() + std::ptrdiff_t(open_.back());
        return close(Json::Array(std::make_move_iterator(first), std::make_move_iterator(items_.end())));
    }
    bool parse_error(size_t position, const std::string &, const nlohmann::json::exception &)
    {
        problem = "is not valid JSON at byte " + std::to_string(position);
        return false;
    }

private:
    bool put(Json v)
    {
        items_.push_back(std::move(v));
        return true;
    }
    bool open()
    {
        if (open_.size() >= size_t(Json::kMaxDepth)) {
            problem = "is nested more than " + std::to_string(Json::kMaxDepth) + " deep";
            return false;
        }
        open_.push_back(items_.size());
        return true;
    }
    bool close(Json container)
    {
        items_.resize(open_.back());
        open_.pop_back();
        return put(std::move(container));
    }

    std::vector<Json> items_;
    std::vector<std::string> keys_;
    std::vector<size_t> open_; // where the children of each open container begin in items_
};

Json parseJson(std::string_view text)
{
    Builder builder;
    if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder))
        throw FormatError(builder.problem);
    return builder.root();
}

const Json *Json::find(std::string_view key) const
{
    if (const auto *members = as<Object>())
        for (const auto &[k, v] : *members)
            if (k == key)
                return v.isNull() ? nullptr : &v;
    return nullptr;
}

const std::string &Json::text(std::string_view what) const
{
    if (const auto *v = as<std::string>())
        return *v;
    throw FormatError(std::string(what) + " is not a string");
}

int64_t Json::integer(std::string_view what) const
{
    if (const auto *v = as<int64_t>())
        return *v;
    throw FormatError(std::string(what) + " is not an integer");
}

double Json::number(std::string_view what) const
{
    if (const auto *v = as<double>())
        return *v;
    if (const auto *v = as<int64_t>())
        return double(*v);
    throw FormatError(std::string(what) + " is not a number");
}

const Json::Array &Json::list(std::string_view what) const
{
    if (const auto *v = as<Array>())
        return *v;
    throw FormatError(std::string(what) + " is not a list");
}

const Json::Object &Json::object(std::string_view what) const
{
    if (const auto *v = as<Object>())
        return *v;
    throw FormatError(std::string(what) + " is not an object");
}

const Json &Json::at(std::string_view key, std::string_view what) const
{
    if (const Json *v = find(key))
        return *v;
    throw FormatError(std::string(what) + " has no \"" + std::string(key) + "\"");
}

std::string Json::textOr(std::string_view key, std::string_view fallback) const
{
    const Json *v = find(key);
    if (!v)
        return std::string(fallback);
    if (const auto *text = v->as<std::string>())
        return *text;
    throw FormatError("\"" + std::string(key) + "\" is not a string");
}

bool Json::boolOr(std::string_view key, bool fallback) const
{
    const Json *v = find(key);
    if (!v)
        return fallback;
    if (const bool *b = v->as<bool>())
        return *b;
    throw FormatError("\"" + std::string(key) + "\" is not true or false");
}

namespace
{

void quote(std::string &out, std::string_view s)
{
    out += '"';
    for (const char c : s) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            constexpr char hex[] = "0123456789abcdef";
            out += "\\u00";
            out += hex[c >> 4];
            out += hex[c & 15];
        } else {
            out += c;
        }
    }
    out += '"';
}

void write(std::string &out, const Json &j)
{
    char digits[32];
    if (const auto *b = j.as<bool>()) {
        out += *b ? "true" : "false";
    } else if (const auto *i = j.as<int64_t>()) {
        out.append(digits, std::to_chars(digits, std::end(digits), *i).ptr);
    } else if (const auto *d = j.as<double>()) {
        const std::string_view text(digits, size_t(std::to_chars(digits, std::end(digits), *d).ptr - digits));
        out += text;
        if (text.find_first_not_of("-0123456789") == std::string_view::npos)
            out += ".0"; // stays a float
    } else if (const auto *s = j.as<std::string>()) {
        quote(out, *s);
    } else if (const auto *items = j.as<Json::Array>()) {
        out += '[';
        for (size_t k = 0; k < items->size(); ++k) {
            if (k)
                out += ',';
            write(out, (*items)[k]);
        }
        out += ']';
    } else if (const auto *members = j.as<Json::Object>()) {
        out += '{';
        for (size_t k = 0; k < members->size(); ++k) {
            if (k)
                out += ',';
            quote(out, (*members)[k].first);
            out += ':';
            write(out, (*members)[k].second);
        }
        out += '}';
    } else {
        out += "null";
    }
}

} // namespace

std::string Json::dump() const
{
    std::string out;
    write(out, *this);
    return out;
}

} // namespace fb::io
