// Fuseboard: the layout of one module level. GPL-3.0-or-later.
//
// The classic layered drawing: every box gets a layer, a value that skips layers gets a lane (a chain of dummies) through each
// layer it passes, the members of a layer are ordered and aligned, and lines bend only in the gaps between layers. A lane holds
// room like a box does, hence no line can cross a box. All lines of one value share a lane as long as they can.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "model/layout/layout.h"

namespace fb::layout
{

struct LevelNode {
    enum Kind : uint8_t { Box, Entry, Exit } kind = Box;
    double w = 0, h = 0;
};

// `value` tells values of one producing box apart; ports are offsets from the box's left, or negative to be chosen here.
struct LevelEdge {
    int from = 0, to = 0, value = 0;
    double fromPort = -1, toPort = -1;
};

struct Level {
    std::vector<LevelNode> nodes; // in execution order; entries first, exits last
    std::vector<LevelEdge> edges;
    double padLeft = 0, padRight = 0, padTop = 0, padBottom = 0, minWidth = 0;
    double columnAspect = 0;
    std::string key() const; // equal keys, equal results
};

struct LevelResult {
    std::vector<Point> at; // top left of each node
    std::vector<std::vector<Point>> edges;
    double w = 0, h = 0;
    bool exact = true;
};

// `seconds` is what is left for Graphviz; what is spent is taken off. Null when cancelled.
std::shared_ptr<const LevelResult> layoutLevel(const Level &level, double &seconds, const std::atomic<bool> *cancel);

// Vertices in layers, edges between neighbouring layers only. `x` holds centres.
struct Layers {
    struct Vertex {
        double w = 0;
        int layer = 0;
        bool dummy = false;
        double x = 0;
    };
    struct Edge {
        int a = 0, b = 0;
        double weight = 1;
        double da = 0, db = 0; // port offsets from the centres
    };
    std::vector<Vertex> vertices;
    std::vector<Edge> edges;
    std::vector<std::vector<int>> order; // by layer, left to right
};

inline constexpr double kNodeGap = 22; // between neighbours in a layer
inline constexpr double kLaneGap = 14; // where one of them is a lane

double separation(const Layers::Vertex &a, const Layers::Vertex &b); // least distance of centres

// Graphviz: fills x. False when Graphviz is not usable; then nothing changed.
bool arrangeByDot(Layers &g);
// Our own: orders by barycentres, aligns by isotonic regression. Linear in vertices and edges.
void arrangeBySweeps(Layers &g, const std::atomic<bool> *cancel);
// Moves the members of every layer apart where they are too close, keeping the order of their x.
void separate(Layers &g);

} // namespace fb::layout
