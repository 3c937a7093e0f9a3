// Mark as leaf and back, on the demo and on small graphs. GPL-3.0-or-later.
#include <QTemporaryDir>
#include <QTest>

#include "model/exec/interpreter.h"
#include "model/io/fxt.h"
#include "model/ir/lint.h"
#include "model/text/text.h"
#include "passes/edits.h"
#include "passes/fuse.h"
#include "support/python.h"

using namespace fb;

namespace
{

std::string text(const GraphModule &gm)
{
    return canonicalText(gm.graph) + torchGraphText(gm) + torchCode(gm);
}

std::vector<NodeId> ids(const GraphModule &gm)
{
    return gm.graph.order();
}

// Functions in modules, given as {name, function, module, inputs}.
struct Line {
    const char *name, *function, *module;
    std::vector<const char *> inputs;
};
GraphModule graphOf(std::initializer_list<Line> lines, const char *result)
{
    GraphModule gm;
    auto container = [](const char *path) {
        ModuleInfo m;
        m.path = path;
        m.className = "net.Block";
        return m;
    };
    gm.modules.set("", container(""));
    for (const Line &l : lines) {
        Node n;
        n.name = n.target = l.name;
        n.op = *l.function ? Opcode::CallFunction : Opcode::Placeholder;
        if (*l.function)
            n.target = l.function;
        for (const char *in : l.inputs)
            n.args.push_back(gm.graph.find(in));
        if (*l.module) {
            n.stack = std::make_shared<const ModuleStack>(ModuleStack{ { l.module, "net.Block", 0 } });
            if (!gm.modules.contains(l.module))
                gm.addModule(container(l.module));
        }
        gm.graph.append(std::move(n));
    }
    Node out;
    out.op = Opcode::Output;
    out.target = "output";
    out.args = { gm.graph.find(result) };
    gm.graph.append(std::move(out));
    return gm;
}

} // namespace

class TstLeaf : public QObject
{
    Q_OBJECT

    static Result<PassReport> mark(GraphModule &gm, const std::string &path)
    {
        return runPass(
            "Mark as leaf", [&](GraphModule &g) { return markLeaf(g, path); }, gm);
    }
    static Result<PassReport> unmark(GraphModule &gm, const std::string &path)
    {
        return runPass(
            "Unmark", [&](GraphModule &g) { return unmarkLeaf(g, path); }, gm);
    }
    static GraphModule demo()
    {
        auto gm = readFxt(fbtest::sourceDir().toStdString() + "/resources/demo/digits.fxt");
        if (!gm)
            qFatal("%s", gm.message().c_str());
        return std::move(*gm);
    }

private slots:
    // Every module with an inside, one after the other.
    void demoThereAndBack_data()
    {
        QTest::addColumn<QString>("path");
        for (const auto &[path, info] : demo().modules)
            if (!path.empty() && info->kind == ModuleKind::Container)
                QTest::newRow(path.c_str()) << QString::fromStdString(path);
    }
    void demoThereAndBack()
    {
        QFETCH(QString, path);
        GraphModule gm = demo();
        const GraphModule before = gm;
        const std::string was = text(gm), name = path.toStdString();
        auto marked = mark(gm, name);
        QVERIFY2(marked.ok(), marked.ok() ? "" : marked.message().c_str());
        QVERIFY(lint(gm).empty() && text(gm) != was && gm.graph.size() < before.graph.size());
        const ModuleInfo *leaf = gm.modules.find(name);
        QVERIFY(leaf && leaf->kind == ModuleKind::Graph && leaf->keepFloat && leaf->graph && lint(*leaf->graph).empty());
        QCOMPARE(gm.callers(name).size(), size_t(1));

        const Arg x = *randomTensor("2x1x8x8", 3);
        auto a = Interpreter::create(before), b = Interpreter::create(gm);
        QVERIFY2(a.ok() && b.ok(), !b.ok() ? b.message().c_str() : "");
        auto ra = a->run({ x }), rb = b->run({ x });
        QVERIFY2(ra.ok() && rb.ok(), !rb.ok() ? rb.message().c_str() : "");
        QVERIFY(*ra == *rb);

        // Through a file and back as well.
        QTemporaryDir folder;
        const std::string file = folder.filePath("leaf.fxt").toStdString();
        const Status written = writeFxt(gm, file);
        QVERIFY2(written.ok(), written.ok() ? "" : written.message().c_str());
        auto again = readFxt(file);
        QVERIFY2(again.ok(), again.ok() ? "" : again.message().c_str());
        auto opened = unmark(*again, name);
        QVERIFY2(opened.ok(), opened.ok() ? "" : opened.message().c_str());
        QCOMPARE(QString::fromStdString(text(*again)), QString::fromStdString(was));

        auto unmarked = unmark(gm, name);
        QVERIFY2(unmarked.ok(), unmarked.ok() ? "" : unmarked.message().c_str());
        QCOMPARE(QString::fromStdString(text(gm)), QString::fromStdString(was));
        QVERIFY(gm == before && ids(gm) == ids(before));
    }

    // A leaf is left alone by fusion and opens again afterwards.
    void fusionLeavesTheInside()
    {
        GraphModule gm = demo();
        QVERIFY(mark(gm, "residual").ok());
        auto fused = runPass("Fuse all", fuseAll, gm);
        QVERIFY2(fused.ok() && fused->changed, fused.ok() ? "" : fused.message().c_str());
        QVERIFY(gm.modules.find("residual")->graph->modules.contains("residual.bn"));
        QVERIFY(unmark(gm, "residual").ok());
        QVERIFY(gm.graph.find("residual_bn") && gm.modules.contains("residual.bn") && lint(gm).empty());
    }

    void severalOutputs()
    {
        GraphModule gm = graphOf({ { "x", "", "", {} }, { "a", "torch.relu", "blk", { "x" } },
                                     { "b", "torch.neg", "blk", { "a" } }, { "c", "operator.add", "", { "a", "b" } } },
            "c");
        const GraphModule before = gm;
        const std::string was = text(gm);
        QVERIFY(mark(gm, "blk").ok());
        QCOMPARE(gm.graph.size(), size_t(6)); // x, blk, two getitems, c, output
        QVERIFY(gm.graph.find("getitem") && gm.graph.find("getitem_1"));
        QVERIFY(unmark(gm, "blk").ok());
        QCOMPARE(text(gm).c_str(), was.c_str());
        QVERIFY(gm == before && ids(gm) == ids(before));
    }

    void refusals()
    {
        auto refused = [](GraphModule gm, const char *path) {
            const GraphModule before = gm;
            auto r = markLeaf(gm, path);
            return r.ok() ? QString("marked") : !(gm == before) ? QString("changed") : QString::fromStdString(r.message());
        };
        const GraphModule around = graphOf({ { "x", "", "", {} }, { "a", "torch.relu", "blk", { "x" } },
                                               { "o", "torch.neg", "", { "a" } }, { "b", "torch.exp", "blk", { "o" } } },
            "b");
        QCOMPARE(refused(around, "blk"),
            "cannot mark blk as leaf: a value leaves it (a) and comes back by o (to b), so it is not one piece");
        const GraphModule between
            = graphOf({ { "x", "", "", {} }, { "a", "torch.relu", "blk", { "x" } }, { "o", "torch.neg", "", { "x" } },
                          { "b", "torch.exp", "blk", { "a" } }, { "c", "operator.add", "", { "b", "o" } } },
                "c");
        QCOMPARE(refused(between, "blk"),
            "cannot mark blk as leaf: o, which is not part of it, stands between its nodes, so it is not one piece");
        QCOMPARE(
            refused(demo(), "self.stem"), "cannot mark self.stem as leaf: there is no module \"self.stem\"; did you mean stem?");
        QCOMPARE(refused(demo(), "stom"),
            "cannot mark stom as leaf: there is no module \"stom\"; module paths are like layer1.0.conv1");
        QVERIFY(refused(demo(), "").startsWith("cannot mark the whole model as leaf"));

        GraphModule twice = graphOf({ { "x", "", "", {} }, { "a", "torch.relu", "blk", { "x" } } }, "a");
        Node n = twice.graph[twice.graph.find("a")];
        n.stack = std::make_shared<const ModuleStack>(ModuleStack{ { "blk", "net.Block", 1 } });
        n.name.clear();
        const NodeId second = twice.graph.insertAfter(n.id, n);
        twice.graph.replaceInput(twice.graph.output(), n.id, second);
        QVERIFY(refused(twice, "blk").startsWith("cannot mark blk as leaf: it is called twice"));
    }

    // A module that is one node already only gets its mark.
    void leafAlready()
    {
        GraphModule gm = demo();
        const GraphModule before = gm;
        auto marked = mark(gm, "gain");
        QVERIFY2(marked.ok() && marked->changed, marked.ok() ? "" : marked.message().c_str());
        QVERIFY(gm.modules.find("gain")->keepFloat);
        auto again = mark(gm, "gain");
        QVERIFY(again.ok() && !again->changed);
        QVERIFY(unmark(gm, "gain").ok() && gm == before);
    }

    void leafInLeaf()
    {
        GraphModule gm = demo();
        const GraphModule before = gm;
        QVERIFY(mark(gm, "residual.first").ok());
        QVERIFY(mark(gm, "residual").ok());
        QVERIFY(!mark(gm, "residual.first").ok() || gm.modules.find("residual.first")->keepFloat);
        QVERIFY(unmark(gm, "residual").ok());
        QVERIFY(unmark(gm, "residual.first").ok());
        QCOMPARE(text(gm).c_str(), text(before).c_str());
        QVERIFY(gm == before);
    }
};

QTEST_GUILESS_MAIN(TstLeaf)
#include "tst_leaf.moc"
