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

std::string quoted(std::string_view text, char quote)
{
    constexpr char kHex[] = "0123456789abcdef";
    std::string out(1, quote);
    auto hex = [&](unsigned char c) { (out += "\\x") += { kHex[c >> 4], kHex[c & 15] }; };
    for (size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (c == static_cast<unsigned char>(quote) || c == '\\')
            (out += '\\') += char(c);
        else if (c == '\n')
            out += "\\n";
        else if (c == '\r')
            out += "\\r";
        else if (c == '\t')
            out += "\\t";
        else if (c < 0x20 || c == 0x7f)
            hex(c);
        else if (c == 0xc2 && i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) <= 0xa0 || text[i + 1] == '\xad'))
            hex(static_cast<unsigned char>(text[++i])); // U+0080 to U+00A0 and the soft hyphen do not print
        else
            out += char(c);
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

std::string doubleQuoted(std::string_view text)
{
    return quoted(text, '"');
}

} // namespace fb
