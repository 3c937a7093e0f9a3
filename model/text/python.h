// Fuseboard: Python's own spelling of names and values. GPL-3.0-or-later.
//
// Generated code and torch's texts are judged byte for byte, so floats, strings and names follow CPython's repr().
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <string_view>

namespace fb
{

bool isPythonKeyword(std::string_view name);
bool isPythonBuiltin(std::string_view name); // keywords are not among these
bool isPythonIdentifier(std::string_view name); // str.isidentifier(): keywords are identifiers to it

std::string pythonRepr(double value); // 0.1, 1e-05, inf, nan
std::string pythonRepr(std::complex<double> value); // 1j, (1+2j)
std::string pythonRepr(std::string_view text); // 'it', "it's"
void appendUtf8(std::string &out, uint32_t codePoint);
bool isUtf8(std::string_view text); // lone surrogates count as code points, as in Python's str
std::string doubleQuoted(std::string_view text); // "a\"b": the same, always in double quotes

} // namespace fb
