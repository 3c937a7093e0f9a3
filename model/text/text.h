// Fuseboard: a graph as text. GPL-3.0-or-later.
//
// Two printers. The canonical text parses back to an equal graph. The torch text is what `str(graph)` and `gm.code` give,
// byte for byte, in the dialect of the torch version that traced (torch/fx/graph.py, node.py).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/ir/module.h"

namespace fb
{

// What changed in torch's texts between versions, as data.
struct TextDialect {
    bool numUsers = true; // "[num_users=1]", before 2.0 "[#users=1]"
    bool freesUnused = true; // "mul = add * 2;  mul = None" for a value nobody uses
    bool nestedArguments = true; // enums, named tuples and tensors are printed as code inside tuples, lists and slices too
    bool keepsNumbers = true; // a free name that ends in a number is kept as it is ("x_01")
    bool passForNoBody = false; // a graph of placeholders alone has a body
    static TextDialect of(std::string_view torchVersion);
};

std::string torchGraphText(const GraphModule &gm); // str(graph), without a final newline

struct CodeOptions {
    bool strictTorch = false; // torch's own text even where it is wrong Python
};

// A line of code and the node it computes (or NodeId{} for the signature and such).
struct CodeLine {
    std::string text;
    NodeId node;
};

std::string torchCode(const GraphModule &gm, const CodeOptions &options = {}); // gm.code
std::vector<CodeLine> torchCodeLines(const GraphModule &gm, const CodeOptions &options = {});
// Names in the code -> qualified names of what they stand for, beyond builtins, torch, device, inf, nan and NoneType.
std::map<std::string, std::string> torchCodeGlobals(const GraphModule &gm, const CodeOptions &options = {});
std::string argText(const GraphModule &gm, const Arg &arg); // one argument as code prints it (Python repr)

// One node a line with types, shapes and everything else of the graph; parses back.
std::string canonicalText(const Graph &graph);
Result<Graph> parseCanonical(std::string_view text); // errors name the line

} // namespace fb
