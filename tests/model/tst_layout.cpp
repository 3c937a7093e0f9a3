// Fuseboard: the promises of the layout. GPL-3.0-or-later.
//
// No box over a box, no line through a box that is not its own, the same answer twice, and an answer for any size: held against
// chains, residual blocks, dense connections, nested and shared modules, and random graphs, folded and unfolded.
#include <QtTest>

#include <algorithm>
#include <random>

#include "model/layout/layout.h"

using namespace fb;

namespace
{

struct Builder {
    GraphModule gm;

    NodeId add(const std::string &target, std::vector<NodeId> inputs, const std::vector<std::string> &modules = {}, int call = 0)
    {
        Node n;
        n.op = inputs.empty() ? Opcode::Placeholder : target == "output" ? Opcode::Output : Opcode::CallFunction;
        n.target = target;
        if (n.op == Opcode::Output)
            n.name = "output";
        for (NodeId id : inputs)
            n.args.push_back(Arg(id));
        ModuleStack stack;
        for (const auto &path : modules)
            stack.push_back({ path, "net." + path, call });
        if (!stack.empty())
            n.stack = std::make_shared<const ModuleStack>(stack);
        return gm.graph.append(std::move(n));
    }
};

GraphModule chain(int length)
{
    Builder b;
    NodeId last = b.add("x", {});
    for (int i = 0; i < length; ++i)
        last = b.add("torch.relu", { last });
    b.add("output", { last });
    return b.gm;
}

GraphModule residual(int blocks)
{
    Builder b;
    NodeId last = b.add("x", {});
    for (int i = 0; i < blocks; ++i) {
        const std::string stage = "layer" + std::to_string(i / 2), block = stage + "." + std::to_string(i % 2);
        NodeId skip = last;
        for (int k = 0; k < 4; ++k)
            last = b.add("torch.relu", { last }, { stage, block });
        last = b.add("operator.add", { last, skip }, { stage, block });
    }
    b.add("output", { last });
    return b.gm;
}

GraphModule dense(int layers)
{
    Builder b;
    std::vector<NodeId> all{ b.add("x", {}) };
    for (int i = 0; i < layers; ++i) {
        const NodeId cat = b.add("torch.cat", all, { "dense", "dense.l" + std::to_string(i) });
        all.push_back(b.add("torch.relu", { cat }, { "dense", "dense.l" + std::to_string(i) }));
    }
    b.add("output", all);
    return b.gm;
}

GraphModule random(int nodes, unsigned seed)
{
    std::mt19937 rng(seed);
    Builder b;
    std::vector<NodeId> all{ b.add("x", {}), b.add("y", {}) };
    std::vector<std::string> at;
    int fresh = 0;
    for (int i = 0; i < nodes; ++i) {
        if (rng() % 4 == 0) {
            if (!at.empty() && rng() % 2)
                at.pop_back();
            else if (at.size() < 4)
                at.push_back("m" + std::to_string(fresh++));
        }
        std::vector<NodeId> inputs;
        for (unsigned k = 0, n = 1 + rng() % 3; k < n; ++k)
            inputs.push_back(all[rng() % 5 ? all.size() - 1 - rng() % std::min<size_t>(all.size(), 6) : rng() % all.size()]);
        all.push_back(b.add("operator.add", inputs, at));
    }
    b.add("output", { all.back() });
    return b.gm;
}

std::vector<Size> sizesOf(const ViewGraph &view)
{
    std::vector<Size> sizes;
    for (size_t i = 0; i < view.items.size(); ++i)
        sizes.push_back({ 96 + double(i * 37 % 5) * 24, i % 3 ? 58.0 : 42.0 });
    return sizes;
}

// Does the open inside of `r` meet the segment?
bool crosses(Point a, Point b, Rect r)
{
    const double shrink = 0.5;
    r = { r.x + shrink, r.y + shrink, r.w - 2 * shrink, r.h - 2 * shrink };
    double t0 = 0, t1 = 1;
    auto clip = [&](double p, double q) { // p t <= q
        if (p == 0)
            return q >= 0;
        const double t = q / p;
        p < 0 ? t0 = std::max(t0, t) : t1 = std::min(t1, t);
        return t0 <= t1;
    };
    const double dx = b.x - a.x, dy = b.y - a.y;
    return clip(-dx, a.x - r.x) && clip(dx, r.x + r.w - a.x) && clip(-dy, a.y - r.y) && clip(dy, r.y + r.h - a.y);
}

std::vector<int> parents(const ViewGraph &view)
{
    std::vector<int> result;
    for (const auto &item : view.items) {
        int parent = -1;
        for (size_t i = 0; i < view.items.size() && !item.parent.empty(); ++i)
            if (!view.items[i].node && view.items[i].module == item.parent)
                parent = int(i);
        result.push_back(parent);
    }
    return result;
}

QString faults(const ViewGraph &view, const Layout &layout)
{
    const auto parent = parents(view);
    auto isAncestor = [&](int box, int of) {
        for (; of >= 0; of = parent[size_t(of)])
            if (of == box)
                return true;
        return false;
    };
    auto overlap
        = [](const Rect &a, const Rect &b) { return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h; };
    const auto &r = layout.items;
    for (size_t i = 0; i < r.size(); ++i) {
        if (int p = parent[i]; p >= 0) {
            const Rect &box = r[size_t(p)];
            if (r[i].x < box.x || r[i].y < box.y || r[i].x + r[i].w > box.x + box.w || r[i].y + r[i].h > box.y + box.h)
                return QString("box %1 leaves its module").arg(i);
        }
        for (size_t k = i + 1; k < r.size(); ++k)
            if (overlap(r[i], r[k]) && !isAncestor(int(i), int(k)) && !isAncestor(int(k), int(i)))
                return QString("boxes %1 and %2 overlap").arg(i).arg(k);
    }
    for (size_t e = 0; e < layout.edges.size(); ++e) {
        const auto &line = layout.edges[e];
        const auto &edge = view.edges[e];
        if (line.size() < 2)
            return QString("edge %1 has no line").arg(e);
        const Rect &from = r[size_t(edge.from)], &to = r[size_t(edge.to)];
        if (std::abs(line.front().y - (from.y + from.h)) > 1e-6 || line.front().x < from.x || line.front().x > from.x + from.w)
            return QString("edge %1 does not start at its producer's bottom").arg(e);
        if (std::abs(line.back().y - to.y) > 1e-6 || line.back().x < to.x || line.back().x > to.x + to.w)
            return QString("edge %1 does not end at its consumer's top").arg(e);
        for (size_t k = 1; k < line.size(); ++k)
            for (size_t i = 0; i < r.size(); ++i) {
                const bool own
                    = int(i) == edge.from || int(i) == edge.to || isAncestor(int(i), edge.from) || isAncestor(int(i), edge.to);
                if (!own && crosses(line[k - 1], line[k], r[i]))
                    return QString("edge %1 (%2 to %3) crosses box %4").arg(e).arg(edge.from).arg(edge.to).arg(i);
            }
    }
    return {};
}

} // namespace

class TestLayout : public QObject
{
    Q_OBJECT
private slots:
    void promises_data()
    {
        QTest::addColumn<GraphModule>("gm");
        QTest::newRow("chain") << chain(30);
        QTest::newRow("residual") << residual(8);
        QTest::newRow("dense") << dense(12);
        for (unsigned seed = 1; seed <= 6; ++seed)
            QTest::newRow(qPrintable(QString("random %1").arg(seed))) << random(20 + int(seed) * 25, seed);
    }
    void promises()
    {
        QFETCH(GraphModule, gm);
        const auto all = allModuleKeys(gm);
        std::set<std::string> half;
        int k = 0;
        for (const auto &key : all)
            if (k++ % 2)
                half.insert(key);
        for (const auto &unfolded : { std::set<std::string>(), half, all })
            for (double seconds : { 0.0, 5.0 }) { // our own sweeps, and Graphviz
                const ViewGraph view = buildView(gm, unfolded);
                LayoutOptions options;
                options.seconds = seconds;
                auto layout = layoutView(view, sizesOf(view), options);
                QVERIFY(layout.ok());
                QCOMPARE(faults(view, *layout), QString());
                auto again = layoutView(view, sizesOf(view), options);
                QVERIFY(again->items == layout->items && again->edges == layout->edges);
            }
    }

    void columns()
    {
        LayoutOptions options;
        const ViewGraph open = buildView(chain(300), {});
        auto tall = layoutView(open, sizesOf(open), options);
        options.columnAspect = 1.6;
        auto wrapped = layoutView(open, sizesOf(open), options);
        QVERIFY(tall->bounds.h > 20 * tall->bounds.w);
        QVERIFY(wrapped->bounds.h < 2 * wrapped->bounds.w);
        QCOMPARE(faults(open, *wrapped), QString());
    }

    void leftToRight()
    {
        const GraphModule gm = residual(4);
        const ViewGraph view = buildView(gm, allModuleKeys(gm));
        LayoutOptions options;
        options.leftToRight = true;
        auto layout = layoutView(view, sizesOf(view), options);
        for (const auto &e : view.edges)
            QVERIFY(layout->items[size_t(e.from)].x + layout->items[size_t(e.from)].w <= layout->items[size_t(e.to)].x);
    }

    // The line of a value that skips a block does not enter it.
    void foldingAndBundles()
    {
        const GraphModule gm = residual(2);
        const ViewGraph folded = buildView(gm, {});
        QCOMPARE(folded.items.size(), size_t(3)); // x, layer0, output
        QCOMPARE(folded.items[1].count, 10);
        QVERIFY(folded.items[1].folded);
        QCOMPARE(folded.edges.size(), size_t(2));
        const ViewGraph open = buildView(gm, { "layer0" });
        QCOMPARE(open.items.size(), size_t(5));
        QCOMPARE(open.items[2].parent, std::string("layer0"));
        // Two values into one folded block.
        Builder b;
        const NodeId x = b.add("x", {}), y = b.add("y", {});
        const NodeId p = b.add("torch.relu", { x }, { "a" }), q = b.add("torch.relu", { y }, { "a" });
        b.add("operator.add", { p, q }, { "b" });
        const ViewGraph two = buildView(b.gm, {});
        QCOMPARE(two.edges.size(), size_t(3));
        QCOMPARE(two.edges.back().bundled, 2);
    }

    // A second call of a module has a box of its own.
    void callsAreBoxes()
    {
        Builder b;
        NodeId last = b.add("x", {});
        last = b.add("torch.relu", { last }, { "shared" }, 0);
        last = b.add("torch.relu", { last });
        b.add("torch.relu", { last }, { "shared" }, 1);
        QCOMPARE(allModuleKeys(b.gm), (std::set<std::string>{ "shared", "shared@1" }));
        QCOMPARE(identicalBlocks(b.gm).at("shared@1"), 2);
    }

    // After an edit two folded boxes may need each other: still a picture.
    void cyclesOfBoxes()
    {
        Builder b;
        const NodeId x = b.add("x", {});
        const NodeId p = b.add("torch.relu", { x }, { "a" });
        const NodeId q = b.add("torch.relu", { p }, { "b" });
        b.add("torch.relu", { q }, { "a" });
        const ViewGraph view = buildView(b.gm, {});
        auto layout = layoutView(view, sizesOf(view));
        QVERIFY(layout.ok());
        QCOMPARE(layout->edges.size(), size_t(3));
        auto open = layoutView(buildView(b.gm, { "a", "b" }), sizesOf(buildView(b.gm, { "a", "b" })));
        QVERIFY(open.ok());
    }

    void foldsToFit()
    {
        const GraphModule gm = residual(16);
        QCOMPARE(foldToFit(gm, 12).size(), size_t(0));
        QCOMPARE(foldToFit(gm, 40).size(), size_t(8));
        QCOMPARE(foldToFit(gm, 10000).size(), size_t(24));
    }

    void largeAndCancelled()
    {
        for (const GraphModule &gm : { chain(10000), random(10000, 7) }) {
            const ViewGraph view = buildView(gm, allModuleKeys(gm));
            auto layout = layoutView(view, sizesOf(view));
            QVERIFY(layout.ok());
            QCOMPARE(layout->items.size(), view.items.size());
        }
        std::atomic<bool> cancel = true;
        LayoutOptions options;
        options.cancel = &cancel;
        const ViewGraph view = buildView(random(500, 9), {});
        QVERIFY(!layoutView(view, sizesOf(view), options).ok());
    }
};

QTEST_GUILESS_MAIN(TestLayout)
#include "tst_layout.moc"
