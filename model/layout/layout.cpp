// Fuseboard: levels composed into one picture. GPL-3.0-or-later.
//
// Every unfolded box is a level of its own: its boxes, an entry for each value that comes in and an exit for each that goes
// out. Levels are laid out inside first, so that a parent knows the size of a box and where its entries and exits are; then
// everything is moved to its place and the pieces of each line are joined.
#include "model/layout/layout.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "model/layout/level.h"

namespace fb
{

namespace
{

using layout::Level;
using layout::LevelEdge;
using layout::LevelNode;
using layout::LevelResult;

constexpr double kHeader = 30; // of an unfolded box: its title
constexpr double kPad = 16;

// Results of earlier levels: identical blocks, and what an edit or a fold left alone.
class Memo
{
public:
    std::shared_ptr<const LevelResult> find(const std::string &key)
    {
        const std::lock_guard lock(mutex_);
        auto it = known_.find(key);
        return it == known_.end() ? nullptr : it->second;
    }
    void keep(std::string key, std::shared_ptr<const LevelResult> result)
    {
        const std::lock_guard lock(mutex_);
        if ((bytes_ += key.size()) > 32u << 20) {
            known_.clear();
            bytes_ = key.size();
        }
        known_.emplace(std::move(key), std::move(result));
    }

private:
    std::mutex mutex_;
    std::unordered_map<std::string, std::shared_ptr<const LevelResult>> known_;
    size_t bytes_ = 0;
};

Memo &memo()
{
    static Memo m;
    return m;
}

// A level under construction. Values are known by the item that produces them.
struct Building {
    int box = -1; // item, or -1: the root
    std::vector<int> entries, children, exits; // producer items, child items, producer items
    std::unordered_map<int, int> entryOf, childOf, exitOf; // -> index in its list
    struct Edge {
        enum End : uint8_t { Entry, Child, Exit } fromEnd, toEnd;
        int from, to, value; // indexes into the lists; producer item
    };
    std::vector<Edge> edges;
    std::map<std::tuple<int, int, int, int, int>, int> edgeOf;
    std::shared_ptr<const LevelResult> result;
    Point origin;

    int nodeIndex(Edge::End end, int i) const
    {
        return end == Edge::Entry ? i : end == Edge::Child ? int(entries.size()) + i : int(entries.size() + children.size()) + i;
    }
    int entry(int producer) { return slot(entryOf, entries, producer); }
    int exit(int producer) { return slot(exitOf, exits, producer); }
    int edge(Edge e)
    {
        auto [it, fresh] = edgeOf.try_emplace({ e.fromEnd, e.from, e.toEnd, e.to, e.value }, int(edges.size()));
        if (fresh)
            edges.push_back(e);
        return it->second;
    }

private:
    static int slot(std::unordered_map<int, int> &of, std::vector<int> &list, int producer)
    {
        auto [it, fresh] = of.try_emplace(producer, int(list.size()));
        if (fresh)
            list.push_back(producer);
        return it->second;
    }
};

Point turned(Point p)
{
    return { p.y, p.x };
}

} // namespace

Result<Layout> layoutView(const ViewGraph &view, const std::vector<Size> &sizes, const LayoutOptions &options)
{
    using End = Building::Edge::End;
    const size_t n = view.items.size();
    const bool turn = options.leftToRight;
    if (sizes.size() != n)
        return Error{ "Layout needs one size for each of the " + std::to_string(n) + " boxes." };

    // Levels: 0 is the root, then one for each unfolded box.
    std::vector<Building> levels(1);
    std::vector<int> levelOf(n, -1), parent(n, -1), depth(n, 0);
    {
        std::unordered_map<std::string, int> boxes;
        for (size_t i = 0; i < n; ++i) {
            const ViewItem &item = view.items[i];
            if (!item.parent.empty()) {
                auto it = boxes.find(item.parent);
                if (it == boxes.end())
                    return Error{ "Layout met a box before its parent " + item.parent + "." };
                parent[i] = it->second;
                depth[i] = depth[size_t(it->second)] + 1;
            }
            Building &in = levels[parent[i] < 0 ? 0 : size_t(levelOf[size_t(parent[i])])];
            in.childOf[int(i)] = int(in.children.size());
            in.children.push_back(int(i));
            if (!item.node)
                boxes[item.module] = int(i);
            if (!item.node && !item.folded) {
                levelOf[i] = int(levels.size());
                levels.emplace_back().box = int(i);
            }
        }
    }
    auto levelIn = [&](int item) -> Building & {
        return levels[parent[size_t(item)] < 0 ? 0 : size_t(levelOf[size_t(parent[size_t(item)])])];
    };

    // Each line as pieces, one for each level it passes.
    struct Piece {
        int level, edge;
    };
    std::vector<std::vector<Piece>> pieces(view.edges.size());
    for (size_t e = 0; e < view.edges.size(); ++e) {
        const int u = view.edges[e].from, v = view.edges[e].to;
        int a = u, b = v;
        std::vector<Piece> down;
        auto join = [&](Building &level, Building::Edge edge, std::vector<Piece> &to) {
            to.push_back({ int(&level - levels.data()), level.edge(edge) });
        };
        auto lift = [&](int &end, bool leaving) {
            Building &level = levelIn(end);
            const int child = level.childOf[end];
            if (leaving)
                join(level, { End::Child, End::Exit, child, level.exit(u), u }, pieces[e]);
            else
                join(level, { End::Entry, End::Child, level.entry(u), child, u }, down);
            end = parent[size_t(end)];
        };
        while (parent[size_t(a)] != parent[size_t(b)])
            depth[size_t(a)] >= depth[size_t(b)] ? lift(a, true) : lift(b, false);
        Building &level = levelIn(a);
        if (a != b)
            join(level, { End::Child, End::Child, level.childOf[a], level.childOf[b], u }, pieces[e]);
        pieces[e].insert(pieces[e].end(), down.rbegin(), down.rend());
    }

    // Inside first.
    Layout out;
    double seconds = options.seconds;
    for (size_t l = levels.size(); l-- > 0;) {
        Building &b = levels[l];
        Level level;
        const bool root = l == 0;
        level.padLeft = root ? 0 : turn ? kHeader + 6 : kPad;
        level.padRight = root ? 0 : kPad;
        level.padTop = root ? 0 : turn ? kPad : kHeader;
        level.padBottom = root ? 0 : kPad - 4;
        level.minWidth = root || turn ? 0 : sizes[size_t(b.box)].w;
        level.columnAspect = root ? options.columnAspect : 0;
        auto inside = [&](int item) -> Building * {
            return levelOf[size_t(item)] < 0 ? nullptr : &levels[size_t(levelOf[size_t(item)])];
        };
        level.nodes.resize(b.entries.size() + b.children.size() + b.exits.size());
        for (size_t i = 0; i < b.entries.size(); ++i)
            level.nodes[i].kind = LevelNode::Entry;
        for (size_t i = 0; i < b.exits.size(); ++i)
            level.nodes[level.nodes.size() - 1 - i].kind = LevelNode::Exit;
        for (size_t i = 0; i < b.children.size(); ++i) {
            const int item = b.children[i];
            const Building *box = inside(item);
            const double w = box ? box->result->w : turn ? sizes[size_t(item)].h : sizes[size_t(item)].w;
            const double h = box ? box->result->h : turn ? sizes[size_t(item)].w : sizes[size_t(item)].h;
            level.nodes[b.entries.size() + i] = { LevelNode::Box, w, h };
        }
        // An open child fixes where its values come in and go out. Values get small numbers so that equal blocks look equal.
        std::unordered_map<int, int> number;
        for (const auto &e : b.edges) {
            LevelEdge edge{ b.nodeIndex(e.fromEnd, e.from), b.nodeIndex(e.toEnd, e.to),
                number.try_emplace(e.value, int(number.size())).first->second, -1, -1 };
            auto port = [&](End end, int i, bool leaving) {
                if (end != End::Child)
                    return 0.0;
                const Building *box = inside(b.children[size_t(i)]);
                if (!box)
                    return -1.0;
                const auto &of = leaving ? box->exitOf : box->entryOf;
                const int slot = of.at(e.value);
                return box->result->at[size_t(box->nodeIndex(leaving ? End::Exit : End::Entry, slot))].x;
            };
            edge.fromPort = port(e.fromEnd, e.from, true);
            edge.toPort = port(e.toEnd, e.to, false);
            level.edges.push_back(edge);
        }
        std::string key = level.key();
        b.result = memo().find(key);
        if (!b.result) {
            b.result = layoutLevel(level, seconds, options.cancel);
            if (!b.result || (options.cancel && *options.cancel))
                return Error{ "Layout was cancelled." };
            memo().keep(std::move(key), b.result);
        }
        out.exact &= b.result->exact;
    }

    // Then everything to its place, parents first.
    out.items.resize(n);
    auto placeLevel = [&](Building &b) {
        for (size_t i = 0; i < b.children.size(); ++i) {
            const int item = b.children[i];
            const Point at = b.result->at[size_t(b.nodeIndex(End::Child, int(i)))];
            Building *box = levelOf[size_t(item)] < 0 ? nullptr : &levels[size_t(levelOf[size_t(item)])];
            const double w = box ? box->result->w : turn ? sizes[size_t(item)].h : sizes[size_t(item)].w;
            const double h = box ? box->result->h : turn ? sizes[size_t(item)].w : sizes[size_t(item)].h;
            const Point p{ b.origin.x + at.x, b.origin.y + at.y };
            if (box)
                box->origin = p;
            out.items[size_t(item)] = turn ? Rect{ p.y, p.x, h, w } : Rect{ p.x, p.y, w, h };
        }
    };
    for (auto &b : levels)
        placeLevel(b);
    out.edges.resize(view.edges.size());
    for (size_t e = 0; e < view.edges.size(); ++e)
        for (const Piece &piece : pieces[e]) {
            const Building &b = levels[size_t(piece.level)];
            for (Point p : b.result->edges[size_t(piece.edge)]) {
                p = { b.origin.x + p.x, b.origin.y + p.y };
                p = turn ? turned(p) : p;
                if (out.edges[e].empty() || !(out.edges[e].back() == p))
                    out.edges[e].push_back(p);
            }
        }
    out.bounds
        = turn ? Rect{ 0, 0, levels[0].result->h, levels[0].result->w } : Rect{ 0, 0, levels[0].result->w, levels[0].result->h };
    return out;
}

} // namespace fb
