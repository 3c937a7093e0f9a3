// Fuseboard: names that a file may give, before anything is done with them. Private to model/io. GPL-3.0-or-later.
#pragma once

#include <algorithm>
#include <string_view>

namespace fb::io
{

inline bool isIdentifier(std::string_view s)
{
    return !s.empty() && !(s[0] >= '0' && s[0] <= '9') && std::all_of(s.begin(), s.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
}

// "torch.nn.functional.relu", "net.outer.<locals>.inner": nothing that generated code could trip over.
inline bool isQualifiedName(std::string_view s)
{
    return !s.empty() && std::all_of(s.begin(), s.end(), [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '<'
            || c == '>' || c >= 0x80;
    });
}

// The path of a module or attribute: children may have any name (case CG-02), so generated code quotes what is no identifier.
inline bool isPath(std::string_view s)
{
    return std::none_of(s.begin(), s.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

} // namespace fb::io
