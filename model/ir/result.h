// Fuseboard: a value or one clear sentence. GPL-3.0-or-later.
//
// Everything that can fail on a user's input returns Result<T>. The message is what the user reads: what failed, on which
// file, node or line, and what to do next. Exceptions do not cross a public header.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace fb
{

struct Error {
    std::string message;
};

template <class T> class [[nodiscard]] Result
{
public:
    Result(T value)
        : v_(std::in_place_index<0>, std::move(value))
    {
    }
    Result(Error error)
        : v_(std::in_place_index<1>, std::move(error))
    {
    }

    bool ok() const { return v_.index() == 0; }
    explicit operator bool() const { return ok(); }

    // Only when ok().
    T &operator*() & { return std::get<0>(v_); }
    const T &operator*() const & { return std::get<0>(v_); }
    T &&operator*() && { return std::get<0>(std::move(v_)); }
    T *operator->() { return &std::get<0>(v_); }
    const T *operator->() const { return &std::get<0>(v_); }

    // Only when not ok().
    const Error &error() const { return std::get<1>(v_); }
    const std::string &message() const { return error().message; }

private:
    std::variant<T, Error> v_;
};

template <> class [[nodiscard]] Result<void>
{
public:
    Result() = default;
    Result(Error error)
        : error_(std::move(error))
        , ok_(false)
    {
    }

    bool ok() const { return ok_; }
    explicit operator bool() const { return ok_; }
    const Error &error() const { return error_; }
    const std::string &message() const { return error_.message; }

private:
    Error error_;
    bool ok_ = true;
};

using Status = Result<void>;

} // namespace fb
