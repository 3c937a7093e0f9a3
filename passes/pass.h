// Fuseboard: what a pass is, and the one way to run it. GPL-3.0-or-later.
//
// A pass matches first and changes after. Its report says what changed and, for near misses, why not.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "model/ir/module.h"

namespace fb
{

struct PassItem {
    std::string node; // name of the node (after the pass where it changed, before it where it was kept)
    std::string what; // "conv1, bn1, relu -> ConvReLU2d", "conv1 kept: its output has 1 other user (add)"
    bool operator==(const PassItem &) const = default;
};

struct PassReport {
    std::string pass; // "Fuse all"
    bool changed = false;
    std::vector<PassItem> done;
    std::vector<PassItem> kept;
};

using Pass = std::function<Result<PassReport>(GraphModule &)>;

// Cancelled? time, run, lint, and does `changed` agree with the text? On failure `gm` is untouched.
Result<PassReport> runPass(const std::string &name, const Pass &pass, GraphModule &gm, const std::atomic<bool> *cancel = nullptr);

} // namespace fb
