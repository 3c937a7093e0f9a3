// Fuseboard: the layout of one module level, see level.h. GPL-3.0-or-later.
#include "model/layout/level.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <queue>
#include <tuple>

namespace fb::layout
{

namespace
{

constexpr double kLane = 4; // width of a lane
constexpr double kGap = 38; // between layers: room for an arrowhead and a shape
constexpr double kGapMost = 120;
constexpr double kColumnGap = 70;
constexpr double kPort = 16; // between lines that end at one box

// One value's way down from its box: lanes at the layers it passes.
struct Chain {
    int upper = 0;
    double port = -1;
    std::vector<int> edges; // indexes into Level::edges
    std::vector<int> lanes; // vertex per layer below upper's
    int lowest = 0;
    int outer = -1; // index of the lane outside everything, or -1
};

struct Work {
    const Level &level;
    std::vector<char> reversed;
    std::vector<int> layer;
    int layers = 1;
    Layers g;
    std::vector<Chain> chains;
    std::vector<int> chainOf; // by edge
    std::vector<double> upperPort, lowerPort; // by edge: x in absolute terms
    int outerLanes = 0;

    int upper(size_t e) const { return reversed[e] ? level.edges[e].to : level.edges[e].from; }
    int lower(size_t e) const { return reversed[e] ? level.edges[e].from : level.edges[e].to; }

    void breakCycles();
    void assignLayers();
    void makeChains();
    bool arrange(double &seconds, const std::atomic<bool> *cancel);
    void assignPorts();
    std::shared_ptr<LevelResult> place();
};

// Kahn's order, the earliest box first; where only cycles are left the earliest goes ahead and what it waited for turns round.
void Work::breakCycles()
{
    const size_t n = level.nodes.size();
    std::vector<int> waits(n, 0), rank(n, -1);
    std::vector<std::vector<int>> out(n);
    for (const auto &e : level.edges) {
        out[size_t(e.from)].push_back(e.to);
        ++waits[size_t(e.to)];
    }
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (size_t v = 0; v < n; ++v)
        if (!waits[v])
            ready.push(int(v));
    size_t next = 0;
    for (int count = 0; count < int(n);) {
        if (ready.empty()) {
            while (rank[next] >= 0)
                ++next;
            waits[next] = 0;
            ready.push(int(next));
        }
        const int v = ready.top();
        ready.pop();
        if (rank[size_t(v)] >= 0)
            continue;
        rank[size_t(v)] = count++;
        for (int to : out[size_t(v)])
            if (--waits[size_t(to)] == 0 && rank[size_t(to)] < 0)
                ready.push(to);
    }
    reversed.assign(level.edges.size(), 0);
    for (size_t e = 0; e < level.edges.size(); ++e)
        reversed[e] = rank[size_t(level.edges[e].from)] > rank[size_t(level.edges[e].to)];
    layer = rank; // for now: the order in which assignLayers goes
}

// Longest paths; a box that waits for nothing moves down to just above its first user.
void Work::assignLayers()
{
    const size_t n = level.nodes.size();
    std::vector<int> order(n);
    for (size_t v = 0; v < n; ++v)
        order[size_t(layer[v])] = int(v);
    std::vector<std::vector<int>> down(n);
    std::vector<int> ins(n, 0);
    for (size_t e = 0; e < level.edges.size(); ++e) {
        down[size_t(upper(e))].push_back(lower(e));
        ++ins[size_t(lower(e))];
    }
    bool entries = false;
    for (const auto &v : level.nodes)
        entries |= v.kind == LevelNode::Entry;
    for (size_t v = 0; v < n; ++v)
        layer[v] = entries && level.nodes[v].kind != LevelNode::Entry ? 1 : 0;
    int deepest = 0;
    for (int v : order)
        for (int to : down[size_t(v)])
            layer[size_t(to)] = std::max(layer[size_t(to)], layer[size_t(v)] + 1);
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
        const size_t v = size_t(*it);
        if (level.nodes[v].kind == LevelNode::Box && !down[v].empty() && (ins[v] == 0 || down[v].size() > size_t(ins[v]))) {
            int first = layer[size_t(down[v].front())];
            for (int to : down[v])
                first = std::min(first, layer[size_t(to)]);
            layer[v] = std::max(layer[v], first - 1);
        }
    }
    for (size_t v = 0; v < n; ++v)
        if (level.nodes[v].kind != LevelNode::Exit)
            deepest = std::max(deepest, layer[v]);
    layers = deepest + 1;
    for (size_t v = 0; v < n; ++v)
        if (level.nodes[v].kind == LevelNode::Exit) {
            layer[v] = deepest + 1;
            layers = deepest + 2;
        }
}

void Work::makeChains()
{
    std::map<std::tuple<int, int, double>, int> shared;
    chainOf.assign(level.edges.size(), -1);
    size_t lanes = 0;
    for (size_t e = 0; e < level.edges.size(); ++e) {
        const auto &edge = level.edges[e];
        int index = int(chains.size());
        if (!reversed[e])
            index = shared.try_emplace({ edge.from, edge.value, edge.fromPort }, index).first->second;
        if (index == int(chains.size()))
            chains.push_back({ upper(e), reversed[e] ? edge.toPort : edge.fromPort, {}, {}, layer[size_t(upper(e))], -1 });
        chainOf[e] = index;
        Chain &c = chains[size_t(index)];
        c.edges.push_back(int(e));
        const int before = c.lowest;
        c.lowest = std::max(c.lowest, layer[size_t(lower(e))]);
        lanes += size_t(c.lowest - before);
    }
    // Too many lanes would make long graphs quadratic: the longest go round the outside.
    const size_t budget = 20000 + 6 * level.nodes.size();
    if (lanes > budget) {
        std::vector<int> byLength;
        for (size_t c = 0; c < chains.size(); ++c)
            byLength.push_back(int(c));
        auto length = [&](int c) { return chains[size_t(c)].lowest - layer[size_t(chains[size_t(c)].upper)]; };
        std::stable_sort(byLength.begin(), byLength.end(), [&](int a, int b) { return length(a) > length(b); });
        for (int c : byLength) {
            if (lanes <= budget)
                break;
            lanes -= size_t(length(c));
            chains[size_t(c)].outer = outerLanes++;
        }
    }

    for (size_t v = 0; v < level.nodes.size(); ++v)
        g.vertices.push_back({ std::max(level.nodes[v].w, kLane), layer[v], level.nodes[v].kind != LevelNode::Box, 0 });
    auto centre = [&](int v) { return level.nodes[size_t(v)].w / 2; };
    for (auto &c : chains) {
        const int top = layer[size_t(c.upper)];
        if (c.outer >= 0) {
            // Neighbouring layers still pull at each other.
            for (int e : c.edges)
                if (layer[size_t(lower(size_t(e)))] == top + 1)
                    g.edges.push_back({ c.upper, lower(size_t(e)), 1, 0, 0 });
            continue;
        }
        const double start = c.port >= 0 ? c.port - centre(c.upper) : 0;
        for (int l = top + 1; l < c.lowest; ++l) {
            const int lane = int(g.vertices.size());
            g.vertices.push_back({ kLane, l, true, 0 });
            if (c.lanes.empty())
                g.edges.push_back({ c.upper, lane, 2, start, 0 });
            else
                g.edges.push_back({ c.lanes.back(), lane, 8, 0, 0 });
            c.lanes.push_back(lane);
        }
        for (int e : c.edges) {
            const int to = lower(size_t(e));
            const double port = reversed[size_t(e)] ? level.edges[size_t(e)].fromPort : level.edges[size_t(e)].toPort;
            const double end = port >= 0 ? port - centre(to) : 0;
            const int passed = layer[size_t(to)] - top - 1;
            if (passed == 0)
                g.edges.push_back({ c.upper, to, 1, start, end });
            else
                g.edges.push_back({ c.lanes[size_t(passed - 1)], to, 2, 0, end });
        }
    }
    g.order.assign(size_t(layers), {});
    for (size_t v = 0; v < g.vertices.size(); ++v)
        g.order[size_t(g.vertices[v].layer)].push_back(int(v));
}

// True: by Graphviz.
bool Work::arrange(double &seconds, const std::atomic<bool> *cancel)
{
    const bool chain = std::all_of(g.order.begin(), g.order.end(), [](const auto &layer) { return layer.size() <= 1; });
    // As measured: half a second at 1,000 vertices, growing with their square.
    const double size = double(g.vertices.size() + g.edges.size() / 2) / 1500;
    const double cost = 0.5 * size * size;
    if (!chain && cost <= seconds) {
        seconds -= cost;
        if (arrangeByDot(g)) {
            separate(g);
            return true;
        }
    }
    arrangeBySweeps(g, cancel);
    return chain;
}

// Lines that end at one box get places of their own along its edge, in the order they come.
void Work::assignPorts()
{
    upperPort.assign(level.edges.size(), 0);
    lowerPort.assign(level.edges.size(), 0);
    auto left = [&](int v) { return g.vertices[size_t(v)].x - level.nodes[size_t(v)].w / 2; };
    auto spread = [&](int v, size_t count, size_t index) {
        const double w = level.nodes[size_t(v)].w;
        const double step = count > 1 ? std::min(kPort, std::max(0.0, w - 20) / double(count - 1)) : 0;
        return g.vertices[size_t(v)].x + (double(index) - double(count - 1) / 2) * step;
    };

    std::vector<std::vector<std::pair<double, int>>> leaving(level.nodes.size()), arriving(level.nodes.size());
    for (size_t i = 0; i < chains.size(); ++i) {
        const Chain &c = chains[i];
        const size_t first = size_t(c.edges.front());
        if (c.port >= 0) {
            for (int e : c.edges)
                upperPort[size_t(e)] = left(c.upper) + c.port;
            continue;
        }
        const double towards = c.outer >= 0 ? 1e9 : g.vertices[size_t(c.lanes.empty() ? lower(first) : c.lanes.front())].x;
        leaving[size_t(c.upper)].emplace_back(towards, int(i));
    }
    for (size_t v = 0; v < leaving.size(); ++v) {
        std::stable_sort(leaving[v].begin(), leaving[v].end());
        for (size_t i = 0; i < leaving[v].size(); ++i)
            for (int e : chains[size_t(leaving[v][i].second)].edges)
                upperPort[size_t(e)] = spread(int(v), leaving[v].size(), i);
    }
    for (size_t e = 0; e < level.edges.size(); ++e) {
        const Chain &c = chains[size_t(chainOf[e])];
        const double port = reversed[e] ? level.edges[e].fromPort : level.edges[e].toPort;
        const int to = lower(e);
        const int passed = layer[size_t(to)] - layer[size_t(c.upper)] - 1;
        if (port >= 0)
            lowerPort[e] = left(to) + port;
        else
            arriving[size_t(to)].emplace_back(c.outer >= 0 ? 1e9
                    : passed                               ? g.vertices[size_t(c.lanes[size_t(passed - 1)])].x
                                                           : upperPort[e],
                int(e));
    }
    for (size_t v = 0; v < arriving.size(); ++v) {
        std::stable_sort(arriving[v].begin(), arriving[v].end());
        for (size_t i = 0; i < arriving[v].size(); ++i)
            lowerPort[size_t(arriving[v][i].second)] = spread(int(v), arriving[v].size(), i);
        // A single line that all but runs straight does so.
        if (arriving[v].size() == 1
            && std::abs(arriving[v][0].first - g.vertices[v].x) < std::min(12.0, level.nodes[v].w / 2 - 12))
            lowerPort[size_t(arriving[v][0].second)] = arriving[v][0].first;
    }
}

void addPoint(std::vector<Point> &line, Point p)
{
    const size_t n = line.size();
    if (n && line.back() == p)
        return;
    if (n > 1 && line[n - 1].x == p.x && line[n - 2].x == p.x)
        line.back() = p;
    else
        line.push_back(p);
}

// From one layer to the next: a curve that starts and ends straight down.
void addCurve(std::vector<Point> &line, Point a, Point b)
{
    addPoint(line, a);
    const Point end = b;
    if (b.y - a.y > 24)
        b.y -= 8; // room for an arrowhead that points straight down
    if (std::abs(a.x - b.x) > 0.5)
        for (double t : { 0.12, 0.25, 0.38, 0.5, 0.62, 0.75, 0.88 }) {
            const double s = 1 - t;
            const double ease = 3 * s * t * t + t * t * t; // of x
            const double along = 1.5 * s * s * t + 1.5 * s * t * t + t * t * t; // of y
            addPoint(line, { a.x + (b.x - a.x) * ease, a.y + (b.y - a.y) * along });
        }
    addPoint(line, b);
    addPoint(line, end);
}

std::shared_ptr<LevelResult> Work::place()
{
    const size_t n = size_t(layers);
    const bool entries = !level.nodes.empty() && level.nodes.front().kind == LevelNode::Entry;
    const bool exits = !level.nodes.empty() && level.nodes.back().kind == LevelNode::Exit;

    // The gap below a layer grows with how far lines go sideways in it.
    std::vector<double> height(n, 0), sideways(n, 0), left(n, 1e300), right(n, -1e300);
    for (size_t v = 0; v < g.vertices.size(); ++v) {
        const size_t l = size_t(g.vertices[v].layer);
        left[l] = std::min(left[l], g.vertices[v].x - g.vertices[v].w / 2);
        right[l] = std::max(right[l], g.vertices[v].x + g.vertices[v].w / 2);
        if (v < level.nodes.size())
            height[l] = std::max(height[l], level.nodes[v].h);
    }
    // x of edge e at layer l, between its ends.
    auto at = [&](size_t e, int l) {
        const Chain &c = chains[size_t(chainOf[e])];
        const int top = layer[size_t(c.upper)];
        return l == top                    ? upperPort[e]
            : l == layer[size_t(lower(e))] ? lowerPort[e]
                                           : g.vertices[size_t(c.lanes[size_t(l - top - 1)])].x;
    };
    std::vector<int> crossing(n, 0);
    for (size_t e = 0; e < level.edges.size(); ++e) {
        if (chains[size_t(chainOf[e])].outer >= 0)
            continue;
        for (int l = layer[size_t(upper(e))]; l < layer[size_t(lower(e))]; ++l) {
            sideways[size_t(l)] = std::max(sideways[size_t(l)], std::abs(at(e, l) - at(e, l + 1)));
            ++crossing[size_t(l)];
        }
    }
    if (entries)
        height[0] = level.padTop;
    if (exits)
        height[n - 1] = level.padBottom;
    std::vector<double> gap(n, 0);
    for (size_t l = 0; l + 1 < n; ++l)
        gap[l] = std::round(std::min(kGap + std::max(0.0, sideways[l] - 40) * 0.14, kGapMost) * (entries && l == 0 ? 0.7 : 1)
            * (exits && l + 2 == n ? 0.7 : 1));

    // Columns: cut where few lines cross, near the height that gives the wanted aspect.
    std::vector<size_t> cuts; // a new column starts at this layer
    double total = 0, widest = 0;
    for (size_t l = 0; l < n; ++l) {
        total += height[l] + gap[l];
        widest = std::max(widest, right[l] - left[l]);
    }
    if (level.columnAspect > 0 && outerLanes == 0 && n > 40) {
        const double column = std::max(widest + kColumnGap, 1.0);
        const double ideal = std::sqrt(total * column / level.columnAspect);
        if (total > 2.2 * ideal) {
            double y = 0;
            for (size_t l = 0; l + 1 < n; ++l) {
                y += height[l] + gap[l];
                const bool few = crossing[l] <= 3;
                if ((y >= ideal && few) || y >= 1.4 * ideal) {
                    cuts.push_back(l + 1);
                    y = 0;
                }
            }
        }
    }

    auto result = std::make_shared<LevelResult>();
    std::vector<double> top(n), shift(n), columnBottom(n), columnRight(n);
    double x = 0, bottomMost = 0;
    const double turnRoom = cuts.empty() ? 0 : 48; // lines turn above and below columns
    const double start = entries ? 0 : level.padTop + turnRoom;
    for (size_t first = 0, cut = 0; first < n; ++cut) {
        const size_t last = cut < cuts.size() ? cuts[cut] : n;
        double l0 = 1e300, r0 = -1e300, y = start;
        for (size_t l = first; l < last; ++l) {
            l0 = std::min(l0, left[l]);
            r0 = std::max(r0, right[l]);
            top[l] = y;
            y += height[l] + (l + 1 < last ? gap[l] : 0);
        }
        for (size_t l = first; l < last; ++l) {
            shift[l] = std::round(x - l0);
            columnBottom[l] = y;
            columnRight[l] = x + (r0 - l0);
        }
        x += r0 - l0 + (last < n ? kColumnGap : 0);
        bottomMost = std::max(bottomMost, y);
        first = last;
    }
    // Ports of nodes beyond the boxes themselves (rounded lanes) stay inside by the padding.
    double inner = x + (outerLanes ? 20 + 6.0 * outerLanes : 0);
    const double spare = std::max(0.0, level.minWidth - inner - level.padLeft - level.padRight);
    for (auto &s : shift)
        s += level.padLeft + std::floor(spare / 2);
    for (auto &r : columnRight)
        r += level.padLeft + std::floor(spare / 2);
    result->w = inner + spare + level.padLeft + level.padRight;
    result->h = bottomMost + (exits ? 0 : level.padBottom + turnRoom);

    result->at.resize(level.nodes.size());
    for (size_t v = 0; v < level.nodes.size(); ++v) {
        const size_t l = size_t(layer[v]);
        result->at[v] = { g.vertices[v].x - level.nodes[v].w / 2 + shift[l],
            level.nodes[v].kind == LevelNode::Exit ? top[l] + height[l] : top[l] };
    }

    const double outside = columnRight[n - 1];
    result->edges.resize(level.edges.size());
    std::map<std::pair<int, int>, int> turns; // (chain, layer): which place in the turn from one column to the next
    std::vector<int> turnsAt(n, 0);
    for (size_t e = 0; e < level.edges.size(); ++e) {
        const Chain &c = chains[size_t(chainOf[e])];
        const int u = c.upper, w = lower(e);
        const size_t first = size_t(layer[size_t(u)]), last = size_t(layer[size_t(w)]);
        auto &line = result->edges[e];
        addPoint(line, { upperPort[e] + shift[first], result->at[size_t(u)].y + level.nodes[size_t(u)].h });
        if (c.outer >= 0 && last > first + 1) {
            const double lane = outside + 20 + 6.0 * c.outer;
            const double y0 = top[first] + height[first] + gap[first] / 2, y1 = top[last] - gap[last - 1] / 2;
            for (Point p : { Point{ upperPort[e] + shift[first], y0 }, Point{ lane, y0 }, Point{ lane, y1 },
                     Point{ lowerPort[e] + shift[last], y1 } })
                addPoint(line, p);
        } else {
            for (size_t l = first; l < last; ++l) {
                const Point a{ (c.outer >= 0 ? upperPort[e] : at(e, int(l))) + shift[l], top[l] + height[l] };
                const Point b{ (c.outer >= 0 ? lowerPort[e] : at(e, int(l + 1))) + shift[l + 1], top[l + 1] };
                if (columnRight[l] == columnRight[l + 1]) {
                    addCurve(line, a, b);
                    continue;
                }
                auto [turn, fresh] = turns.try_emplace({ chainOf[e], int(l) }, turnsAt[l]);
                turnsAt[l] += fresh;
                const double k = 8.0 * std::min(turn->second, 3);
                const double under = columnBottom[l] + 16 + k, over = b.y - 16 - k,
                             lane = columnRight[l] + kColumnGap / 2 + k - 12;
                for (Point p : { a, Point{ a.x, under }, Point{ lane, under }, Point{ lane, over }, Point{ b.x, over }, b })
                    addPoint(line, p);
            }
        }
        addPoint(line, { lowerPort[e] + shift[last], result->at[size_t(w)].y });
        if (reversed[e])
            std::reverse(line.begin(), line.end());
    }
    return result;
}

} // namespace

std::string Level::key() const
{
    std::string bytes;
    auto put = [&](auto v) { bytes.append(reinterpret_cast<const char *>(&v), sizeof v); };
    put(padLeft), put(padRight), put(padTop), put(padBottom), put(minWidth), put(columnAspect);
    put(nodes.size());
    for (const auto &n : nodes)
        put(n.kind), put(n.w), put(n.h);
    for (const auto &e : edges)
        put(e.from), put(e.to), put(e.value), put(e.fromPort), put(e.toPort);
    return bytes;
}

std::shared_ptr<const LevelResult> layoutLevel(const Level &level, double &seconds, const std::atomic<bool> *cancel)
{
    Work work{ level, {}, {}, 1, {}, {}, {}, {}, {}, 0 };
    work.breakCycles();
    work.assignLayers();
    work.makeChains();
    const bool exact = work.arrange(seconds, cancel);
    if (cancel && *cancel)
        return nullptr;
    work.assignPorts();
    auto result = work.place();
    result->exact = exact;
    return result;
}

} // namespace fb::layout
