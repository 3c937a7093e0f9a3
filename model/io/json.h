// Fuseboard: JSON as a plain value, for files that may be hostile. Private to model/io. GPL-3.0-or-later.
//
// Members keep their order (keyword arguments have one), nesting is bounded while parsing so that no later recursion can
// overflow the stack, and looking something up that is missing or of another kind throws a FormatError with a sentence.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/ir/result.h"

namespace fb::io
{

// What is wrong with a file, without the file's name; never leaves model/io.
struct FormatError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Json
{
public:
    using Array = std::vector<Json>;
    using Object = std::vector<std::pair<std::string, Json>>;

    Json() = default;
    Json(bool v)
        : value_(v)
    {
    }
    Json(int64_t v)
        : value_(v)
    {
    }
    Json(int v)
        : value_(int64_t(v))
    {
    }
    Json(double v)
        : value_(v)
    {
    }
    Json(std::string v)
        : value_(std::move(v))
    {
    }
    Json(std::string_view v)
        : value_(std::string(v))
    {
    }
    Json(const char *v)
        : value_(std::string(v))
    {
    }
    Json(Array v)
        : value_(std::move(v))
    {
    }
    Json(Object v)
        : value_(std::move(v))
    {
    }
    template <class T> static Json array(const std::vector<T> &items)
    {
        Array out;
        for (const auto &item : items)
            out.emplace_back(item);
        return out;
    }

    bool isNull() const { return std::holds_alternative<std::monostate>(value_); }
    template <class T> const T *as() const { return std::get_if<T>(&value_); }
    const Json *find(std::string_view key) const; // null when absent, null, or this is no object

    // `what` names the thing in the error ("node 3").
    const std::string &text(std::string_view what) const;
    int64_t integer(std::string_view what) const;
    double number(std::string_view what) const; // int or float
    const Array &list(std::string_view what) const;
    const Object &object(std::string_view what) const;
    const Json &at(std::string_view key, std::string_view what) const;
    // With a default where the member is absent or null.
    std::string textOr(std::string_view key, std::string_view fallback = {}) const;
    bool boolOr(std::string_view key, bool fallback) const;

    std::string dump() const; // compact; doubles in the fewest digits that read back

    static constexpr int kMaxDepth = 3000;

private:
    friend class Builder;
    std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

Json parseJson(std::string_view text); // throws FormatError

} // namespace fb::io
