// Fuseboard: ordering and alignment in linear time. GPL-3.0-or-later.
//
// A few sweeps down and up: first each layer is sorted by the mean place of its neighbours, then each member is moved to the
// mean x of its neighbours as nearly as the others leave room. The latter is an isotonic regression, solved exactly by pooling
// adjacent violators.
#include <algorithm>
#include <numeric>

#include "model/layout/level.h"

namespace fb::layout
{

namespace
{

// The x nearest to `wanted` (weighted least squares) that keep order and separation.
void place(Layers &g, const std::vector<int> &layer, const std::vector<double> &wanted, const std::vector<double> &weight)
{
    struct Block {
        double sum, weight;
        size_t count;
        double mean() const { return sum / weight; }
    };
    std::vector<Block> blocks;
    std::vector<double> offset(layer.size());
    for (size_t i = 0; i < layer.size(); ++i) {
        if (i)
            offset[i] = offset[i - 1] + separation(g.vertices[size_t(layer[i - 1])], g.vertices[size_t(layer[i])]);
        blocks.push_back({ (wanted[i] - offset[i]) * weight[i], weight[i], 1 });
        while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
            const Block last = blocks.back();
            blocks.pop_back();
            blocks.back().sum += last.sum;
            blocks.back().weight += last.weight;
            blocks.back().count += last.count;
        }
    }
    size_t i = 0;
    for (const Block &b : blocks)
        for (size_t k = 0; k < b.count; ++k, ++i)
            g.vertices[size_t(layer[i])].x = b.mean() + offset[i];
}

struct Neighbours {
    std::vector<int> start, edge; // compressed rows
    const int *begin(int v) const { return edge.data() + start[size_t(v)]; }
    const int *end(int v) const { return edge.data() + start[size_t(v) + 1]; }
};

Neighbours neighbours(const Layers &g, bool up)
{
    Neighbours n;
    n.start.assign(g.vertices.size() + 1, 0);
    n.edge.resize(g.edges.size());
    for (const auto &e : g.edges)
        ++n.start[size_t(up ? e.b : e.a) + 1];
    std::partial_sum(n.start.begin(), n.start.end(), n.start.begin());
    std::vector<int> next(n.start.begin(), n.start.end() - 1);
    for (size_t i = 0; i < g.edges.size(); ++i)
        n.edge[size_t(next[size_t(up ? g.edges[i].b : g.edges[i].a)]++)] = int(i);
    return n;
}

} // namespace

double separation(const Layers::Vertex &a, const Layers::Vertex &b)
{
    return (a.w + b.w) / 2 + (a.dummy || b.dummy ? kLaneGap : kNodeGap);
}

void separate(Layers &g)
{
    for (auto &layer : g.order) {
        std::stable_sort(
            layer.begin(), layer.end(), [&](int a, int b) { return g.vertices[size_t(a)].x < g.vertices[size_t(b)].x; });
        std::vector<double> wanted, weight(layer.size(), 1);
        for (int v : layer)
            wanted.push_back(g.vertices[size_t(v)].x);
        place(g, layer, wanted, weight);
    }
}

void arrangeBySweeps(Layers &g, const std::atomic<bool> *cancel)
{
    const Neighbours above = neighbours(g, true), below = neighbours(g, false);
    auto cancelled = [&] { return cancel && *cancel; };
    std::vector<double> rank(g.vertices.size());
    auto number = [&](const std::vector<int> &layer) {
        for (size_t i = 0; i < layer.size(); ++i)
            rank[size_t(layer[i])] = double(i);
    };
    for (const auto &layer : g.order)
        number(layer);

    // Order.
    for (int sweep = 0; sweep < 6 && !cancelled(); ++sweep) {
        const bool down = sweep % 2 == 0;
        const Neighbours &fixed = down ? above : below;
        for (size_t k = 0; k < g.order.size(); ++k) {
            auto &layer = g.order[down ? k : g.order.size() - 1 - k];
            std::vector<std::pair<double, int>> keyed;
            for (int v : layer) {
                double sum = 0;
                for (const int *e = fixed.begin(v); e != fixed.end(v); ++e)
                    sum += rank[size_t(down ? g.edges[size_t(*e)].a : g.edges[size_t(*e)].b)];
                const auto count = fixed.end(v) - fixed.begin(v);
                keyed.emplace_back(count ? sum / double(count) : rank[size_t(v)], v);
            }
            std::stable_sort(keyed.begin(), keyed.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
            for (size_t i = 0; i < layer.size(); ++i)
                layer[i] = keyed[i].second;
            number(layer);
        }
    }

    // Alignment: from packed rows to straight lines.
    for (auto &layer : g.order)
        place(g, layer, std::vector<double>(layer.size(), 0), std::vector<double>(layer.size(), 1));
    for (int sweep = 0; sweep < 8 && !cancelled(); ++sweep) {
        const bool down = sweep % 2 == 0;
        const Neighbours &fixed = down ? above : below;
        for (size_t k = 0; k < g.order.size(); ++k) {
            const auto &layer = g.order[down ? k : g.order.size() - 1 - k];
            std::vector<double> wanted, weight;
            for (int v : layer) {
                double sum = 0, total = 0;
                for (const int *i = fixed.begin(v); i != fixed.end(v); ++i) {
                    const auto &e = g.edges[size_t(*i)];
                    sum += e.weight * (down ? g.vertices[size_t(e.a)].x + e.da - e.db : g.vertices[size_t(e.b)].x + e.db - e.da);
                    total += e.weight;
                }
                wanted.push_back(total > 0 ? sum / total : g.vertices[size_t(v)].x);
                weight.push_back(total > 0 ? total : 0.01);
            }
            place(g, layer, wanted, weight);
        }
    }
}

} // namespace fb::layout
