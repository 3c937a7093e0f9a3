// Fuseboard: where boxes and edges go. GPL-3.0-or-later.
//
// Layered, top down, one module level at a time: the inside of an unfolded module is laid out by itself and then stands
// in its parent's layout as one big box. Values that enter it do so at its top edge, values that leave it at its bottom edge.
// Graphviz `dot` orders and aligns where it is quick enough, our own linear-time sweeps beyond; lanes are ours in both cases, so
// that no line crosses a box. Deterministic. Runs on any thread, one Graphviz call at a time.
#pragma once

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/ir/module.h"

namespace fb
{

struct Point {
    double x = 0, y = 0;
    bool operator==(const Point &) const = default;
};
struct Rect {
    double x = 0, y = 0, w = 0, h = 0;
    bool contains(Point p) const { return p.x >= x && p.x <= x + w && p.y >= y && p.y <= y + h; }
    bool operator==(const Rect &) const = default;
};
struct Size {
    double w = 0, h = 0;
};

// What the canvas shows: graph nodes and module boxes (folded, or unfolded around their inside).
struct ViewItem {
    NodeId node; // a graph node, or NodeId{} for a module box
    std::string module; // module box: its key ("layer1", second call "layer1@1")
    std::string parent; // key of the module box it stands in; "" is the root
    bool folded = false;
    int count = 0; // module box: graph nodes inside, all levels
    std::string className;
    bool operator==(const ViewItem &) const = default;
};

struct ViewEdge {
    int from = -1, to = -1; // indexes into items; never an unfolded module box
    NodeId producer; // the graph node whose value it carries (the first, where folded boxes bundle several)
    NodeId consumer;
    int bundled = 1; // values carried between two boxes
    bool operator==(const ViewEdge &) const = default;
};

struct ViewGraph {
    std::vector<ViewItem> items; // parents before children
    std::vector<ViewEdge> edges;
    bool operator==(const ViewGraph &) const = default;
};

// `unfolded` holds keys of module boxes that are open. get_attr nodes of parameters are left out unless `showParameters`.
ViewGraph buildView(const GraphModule &gm, const std::set<std::string> &unfolded, bool showParameters = false);
// How many module boxes are alike (same class, same nodes with the same facts, wired alike), by key; at least 1.
std::map<std::string, int> identicalBlocks(const GraphModule &gm);
// Keys to open so that at most `maxItems` boxes show, outer levels first.
std::set<std::string> foldToFit(const GraphModule &gm, int maxItems);
std::set<std::string> allModuleKeys(const GraphModule &gm);
// Key of the innermost module box of a node ("" at the root), outermost first in `ancestors`.
std::vector<std::string> boxAncestors(const Node &n);

struct Layout {
    std::vector<Rect> items; // by index of ViewGraph::items, absolute coordinates
    std::vector<std::vector<Point>> edges; // by index of ViewGraph::edges: a polyline from producer's bottom to consumer's top
    Rect bounds;
    bool exact = true; // false: the linear-time fallback was used somewhere
};

struct LayoutOptions {
    bool leftToRight = false;
    double seconds = 0.6; // time budget for Graphviz, spent by prediction so that answers repeat
    double columnAspect = 0; // above 0: a root level of many layers is wrapped into columns, like text, to
                             // about this width / height
    const std::atomic<bool> *cancel = nullptr;
};

// `sizes` by item index (of an unfolded box: its least width). Edges run from the producer's bottom to the consumer's top; only
// where folding makes a cycle of two boxes does one run upwards. Identical insides are laid out once, also across calls.
// An error when cancelled.
Result<Layout> layoutView(const ViewGraph &view, const std::vector<Size> &sizes, const LayoutOptions &options = {});

} // namespace fb
