"""Turns ops.json into the C++ rows that model/ir/ops.cpp includes. The fields of a row are those of OpInfo in model/ir/ops.h."""
import json
import sys


def quoted(text):
    """A C++ literal; a list is the lines of a body."""
    return json.dumps(text if isinstance(text, str) else "\n".join(text) + "\n")


def main(source, target):
    with open(source, encoding="utf-8") as f:
        rows = json.load(f)
    out = []
    for i, row in enumerate(rows):
        for key in ("functions", "methods", "modules"):
            names = row.get(key, [])
            out.append(f"constexpr std::array<std::string_view, {len(names)}> {key}{i}{{{{{', '.join(map(quoted, names))}}}}};"
                       if names else f"constexpr std::array<std::string_view, 0> {key}{i}{{}};")
        for key, default_params in (("params", []), ("forward", ["input"] if row.get("modules") else [])):
            items = []
            for p in row.get(key, default_params):
                name, _, default = p.partition("=")
                items.append(f"OpParam{{{quoted(name)}, {quoted(default)}}}")
            out.append(f"constexpr std::array<OpParam, {len(items)}> {key}{i}{{{{{', '.join(items)}}}}};"
                       if items else f"constexpr std::array<OpParam, 0> {key}{i}{{}};")
    out.append(f"constexpr std::array<OpInfo, {len(rows)}> kOps{{{{")
    for i, row in enumerate(rows):
        flags = ", ".join("true" if row.get(k) else "false" for k in ("mutates", "random", "view"))
        out.append(f"    OpInfo{{{quoted(row['kind'])}, Category::{row['category']}, functions{i}, methods{i}, modules{i}, params{i}, "
                   f"{quoted(row.get('aten', ''))}, {quoted(row.get('call', ''))}, {quoted(row.get('module_call', ''))}, forward{i}, {flags}}},")
    out.append("}};")
    with open(target, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
