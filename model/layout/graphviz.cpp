// Fuseboard: Graphviz `dot` orders and aligns the layers. GPL-3.0-or-later.
//
// Graphviz keeps global state, so one call runs at a time. It reads numbers by the locale, so the thread's is set to C. Ranks
// are ours: every edge spans one layer, which leaves dot's ranking a single best answer.
#include <clocale>
#include <cstdio>
#include <locale.h>
#include <mutex>
#include <numeric>
#include <utility>

#include <graphviz/gvc.h>

#include "model/layout/level.h"

namespace fb::layout
{

namespace
{

std::mutex graphvizMutex;

class CLocale
{
public:
    CLocale()
        : c_(newlocale(LC_ALL_MASK, "C", nullptr))
        , old_(uselocale(c_))
    {
    }
    ~CLocale()
    {
        uselocale(old_);
        freelocale(c_);
    }
    CLocale(const CLocale &) = delete;
    CLocale &operator=(const CLocale &) = delete;

private:
    locale_t c_, old_;
};

void put(void *object, const char *name, const char *value)
{
    agsafeset(object, const_cast<char *>(name), const_cast<char *>(value), const_cast<char *>(""));
}

void put(void *object, const char *name, double value)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.4f", value);
    put(object, name, text);
}

} // namespace

bool arrangeByDot(Layers &g)
{
    const std::lock_guard lock(graphvizMutex);
    const CLocale locale;
    static GVC_t *const context = gvContext();
    if (!context)
        return false;
    agseterr(AGMAX);

    Agraph_t *graph = agopen(const_cast<char *>("level"), Agstrictdirected, nullptr);
    put(graph, "nodesep", kLaneGap / 72);
    put(graph, "ranksep", 0.4);
    put(graph, "splines", "false");
    for (auto [name, value] :
        { std::pair{ "shape", "box" }, { "label", "" }, { "fixedsize", "true" }, { "width", "0.1" }, { "height", "0.2" } })
        agattr(graph, AGNODE, const_cast<char *>(name), const_cast<char *>(value));
    for (const char *name : { "weight", "minlen" })
        agattr(graph, AGEDGE, const_cast<char *>(name), const_cast<char *>("1"));

    std::vector<Agnode_t *> nodes;
    for (const auto &v : g.vertices) {
        nodes.push_back(agnode(graph, nullptr, 1));
        // Boxes keep a wider distance from each other than lanes do.
        put(nodes.back(), "width", (v.dummy ? v.w : v.w + (kNodeGap - kLaneGap)) / 72);
    }
    std::vector<int> root(g.vertices.size());
    std::iota(root.begin(), root.end(), 0);
    auto find = [&](int v) {
        while (root[size_t(v)] != v)
            v = root[size_t(v)] = root[size_t(root[size_t(v)])];
        return v;
    };
    for (const auto &e : g.edges) {
        Agedge_t *edge = agedge(graph, nodes[size_t(e.a)], nodes[size_t(e.b)], nullptr, 1);
        put(edge, "weight", e.weight);
        root[size_t(find(e.a))] = find(e.b);
    }
    // Separate components are tied to a common top, so that their ranks are our layers.
    std::vector<int> top(g.vertices.size(), -1);
    int components = 0;
    for (int v = 0; v < int(g.vertices.size()); ++v) {
        int &t = top[size_t(find(v))];
        components += t < 0;
        if (t < 0 || g.vertices[size_t(v)].layer < g.vertices[size_t(t)].layer)
            t = v;
    }
    if (components > 1) {
        Agnode_t *anchor = agnode(graph, nullptr, 1);
        for (int t : top)
            if (t >= 0) {
                Agedge_t *edge = agedge(graph, anchor, nodes[size_t(t)], nullptr, 1);
                put(edge, "weight", "0");
                put(edge, "minlen", double(g.vertices[size_t(t)].layer + 1));
            }
    }

    const bool ok = gvLayout(context, graph, "dot") == 0;
    if (ok)
        for (size_t i = 0; i < nodes.size(); ++i)
            g.vertices[i].x = ND_coord(nodes[i]).x;
    gvFreeLayout(context, graph);
    agclose(graph);
    return ok;
}

} // namespace fb::layout
