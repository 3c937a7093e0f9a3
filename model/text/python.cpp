#include "model/text/python.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>

namespace fb
{

namespace
{

// Both sorted.
constexpr std::string_view kKeywords[] = { "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class",
    "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
    "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield" };
constexpr std::string_view kBuiltins[] = { "ArithmeticError", "AssertionError", "AttributeError", "BaseException",
    "BaseExceptionGroup", "BlockingIOError", "BrokenPipeError", "BufferError", "BytesWarning", "ChildProcessError",
    "ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError", "ConnectionResetError", "DeprecationWarning",
    "EOFError", "Ellipsis", "EncodingWarning", "EnvironmentError", "Exception", "ExceptionGroup", "FileExistsError",
    "FileNotFoundError", "FloatingPointError", "FutureWarning", "GeneratorExit", "IOError", "ImportError", "ImportWarning",
    "IndentationError", "IndexError", "InterruptedError", "IsADirectoryError", "KeyError", "KeyboardInterrupt", "LookupError",
    "MemoryError", "ModuleNotFoundError", "NameError", "NotADirectoryError", "NotImplemented", "NotImplementedError", "OSError",
    "OverflowError", "PendingDeprecationWarning", "PermissionError", "ProcessLookupError", "RecursionError", "ReferenceError",
    "ResourceWarning", "RuntimeError", "RuntimeWarning", "StopAsyncIteration", "StopIteration", "SyntaxError", "SyntaxWarning",
    "SystemError", "SystemExit", "TabError", "TimeoutError", "TypeError", "UnboundLocalError", "UnicodeDecodeError",
    "UnicodeEncodeError", "UnicodeError", "UnicodeTranslateError", "UnicodeWarning", "UserWarning", "ValueError", "Warning",
    "ZeroDivisionError", "__build_class__", "__debug__", "__doc__", "__import__", "__loader__", "__name__", "__package__",
    "__spec__", "abs", "aiter", "all", "anext", "any", "ascii", "bin", "bool", "breakpoint", "bytearray", "bytes", "callable",
    "chr", "classmethod", "compile", "complex", "copyright", "credits", "delattr", "dict", "dir", "divmod", "enumerate", "eval",
    "exec", "exit", "filter", "float", "format", "frozenset", "getattr", "globals", "hasattr", "hash", "help", "hex", "id",
    "input", "int", "isinstance", "issubclass", "iter", "len", "license", "list", "locals", "map", "max", "memoryview", "min",
    "next", "object", "oct", "open", "ord", "pow", "print", "property", "quit", "range", "repr", "reversed", "round", "set",
    "setattr", "slice", "sorted", "staticmethod", "str", "sum", "super", "tuple", "type", "vars", "zip" };

// What str.isprintable() refuses: controls, formats, separators and private use (unassigned code points count as printable).
constexpr uint32_t kUnprintable[][2] = { { 0, 0x1f }, { 0x7f, 0xa0 }, { 0xad, 0xad }, { 0x600, 0x605 }, { 0x61c, 0x61c },
    { 0x6dd, 0x6dd }, { 0x70f, 0x70f }, { 0x890, 0x891 }, { 0x8e2, 0x8e2 }, { 0x1680, 0x1680 }, { 0x180e, 0x180e },
    { 0x2000, 0x200f }, { 0x2028, 0x202f }, { 0x205f, 0x206f }, { 0x3000, 0x3000 }, { 0xd800, 0xf8ff }, { 0xfeff, 0xfeff },
    { 0xfff9, 0xfffb }, { 0xfffe, 0xffff }, { 0x110bd, 0x110bd }, { 0x110cd, 0x110cd }, { 0x13430, 0x13438 },
    { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe00ff }, { 0xe01f0, 0x10ffff } };

bool isPrintable(uint32_t code)
{
    return std::none_of(std::begin(kUnprintable), std::end(kUnprintable),
        [code](const auto &range) { return range[0] <= code && code <= range[1]; });
}

// The code point at `at` and its bytes; a byte that begins none stands for itself.
std::pair<uint32_t, size_t> codePoint(std::string_view text, size_t at)
{
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(at);
    const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
    if (length == 1 || at + length > text.size())
        return { first, 1 };
    uint32_t code = first & (0x7f >> length);
    for (size_t i = 1; i < length; ++i) {
        if ((byte(at + i) & 0xc0) != 0x80)
            return { first, 1 };
        code = code << 6 | (byte(at + i) & 0x3f);
    }
    return { code, length };
}

std::string quoted(std::string_view text, char quote)
{
    constexpr char kHex[] = "0123456789abcdef";
    std::string out(1, quote);
    for (size_t i = 0; i < text.size();) {
        const auto [code, length] = codePoint(text, i);
        if (code == static_cast<unsigned char>(quote) || code == '\\') {
            (out += '\\') += char(code);
        } else if (code == '\n' || code == '\r' || code == '\t') {
            (out += '\\') += code == '\n' ? 'n' : code == '\r' ? 'r' : 't';
        } else if (!isPrintable(code)) {
            (out += '\\') += code < 0x100 ? 'x' : code < 0x10000 ? 'u' : 'U';
            for (int shift = code < 0x100 ? 4 : code < 0x10000 ? 12 : 28; shift >= 0; shift -= 4)
                out += kHex[code >> shift & 15];
        } else {
            out += text.substr(i, length);
        }
        i += length;
    }
    return out += quote;
}

} // namespace

bool isPythonKeyword(std::string_view name)
{
    return std::binary_search(std::begin(kKeywords), std::end(kKeywords), name);
}
bool isPythonBuiltin(std::string_view name)
{
    return std::binary_search(std::begin(kBuiltins), std::end(kBuiltins), name);
}

bool isPythonIdentifier(std::string_view name)
{
    auto letter = [](unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80; };
    return !name.empty() && letter(static_cast<unsigned char>(name[0]))
        && std::all_of(name.begin(), name.end(), [&](unsigned char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string pythonRepr(double value)
{
    if (std::isnan(value))
        return "nan";
    if (std::isinf(value))
        return value > 0 ? "inf" : "-inf";
    // The shortest digits that read back, laid out as repr() does: an exponent below 1e-4 and from 1e16 on.
    char buffer[64];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, std::fabs(value), std::chars_format::scientific).ptr;
    const std::string_view text(buffer, size_t(end - buffer));
    const size_t e = text.find('e');
    const int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
    std::string digits(1, text[0]);
    if (e > 2)
        digits += text.substr(2, e - 2);
    std::string out = std::signbit(value) ? "-" : "";
    if (exponent < -4 || exponent >= 16) {
        out += digits[0];
        if (digits.size() > 1)
            out += "." + digits.substr(1);
        const std::string power = std::to_string(std::abs(exponent));
        out += std::string("e") + (exponent < 0 ? "-" : "+") + (power.size() < 2 ? "0" : "") + power;
    } else if (exponent < 0) {
        out += "0." + std::string(size_t(-exponent - 1), '0') + digits;
    } else {
        const auto whole = size_t(exponent) + 1;
        if (digits.size() <= whole)
            out += digits + std::string(whole - digits.size(), '0') + ".0";
        else
            out += digits.substr(0, whole) + "." + digits.substr(whole);
    }
    return out;
}

std::string pythonRepr(std::complex<double> value)
{
    auto part = [](double v) {
        const std::string text = pythonRepr(v);
        return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
    };
    if (value.real() == 0 && !std::signbit(value.real()))
        return part(value.imag()) + "j";
    const std::string imag = part(value.imag());
    return "(" + part(value.real()) + (imag[0] == '-' ? "" : "+") + imag + "j)";
}

std::string pythonRepr(std::string_view text)
{
    const bool single = text.find('\'') != text.npos, twice = text.find('"') != text.npos;
    return quoted(text, single && !twice ? '"' : '\'');
}

void appendUtf8(std::string &out, uint32_t code)
{
    if (code < 0x80)
        out += char(code);
    else if (code < 0x800)
        out += { char(0xc0 | code >> 6), char(0x80 | (code & 0x3f)) };
    else if (code < 0x10000)
        out += { char(0xe0 | code >> 12), char(0x80 | (code >> 6 & 0x3f)), char(0x80 | (code & 0x3f)) };
    else
        out += { char(0xf0 | (code >> 18 & 7)), char(0x80 | (code >> 12 & 0x3f)), char(0x80 | (code >> 6 & 0x3f)),
            char(0x80 | (code & 0x3f)) };
}

bool isUtf8(std::string_view text)
{
    std::string same;
    for (size_t i = 0; i < text.size();) {
        const auto [code, length] = codePoint(text, i);
        same.clear();
        appendUtf8(same, code);
        if (code > 0x10ffff || same != text.substr(i, length))
            return false;
        i += length;
    }
    return true;
}

std::string doubleQuoted(std::string_view text)
{
    return quoted(text, '"');
}

} // namespace fb
