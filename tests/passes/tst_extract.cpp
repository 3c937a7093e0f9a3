// Extract, inline, move, replace uses, and long random rows of every edit. GPL-3.0-or-later.
#include <QTemporaryDir>
#include <QTest>

#include <random>

#include "model/exec/interpreter.h"
#include "model/io/fxt.h"
#include "model/ir/lint.h"
#include "model/text/text.h"
#include "passes/edits.h"
#include "passes/export_python.h"
#include "passes/fuse.h"
#include "passes/python_source.h"
#include "support/graphs.h"
#include "support/python.h"

using namespace fb;
using fbtest::why;

namespace
{

std::string text(const GraphModule &gm)
{
    return canonicalText(gm.graph) + torchGraphText(gm) + torchCode(gm);
}

GraphModule demo()
{
    auto gm = readFxt(fbtest::sourceDir().toStdString() + "/resources/demo/digits.fxt");
    if (!gm)
        qFatal("%s", gm.message().c_str());
    return std::move(*gm);
}

Arg result(const GraphModule &gm)
{
    auto run = Interpreter::create(gm);
    if (!run)
        return run.message();
    const auto out = run->run({ *randomTensor("2x1x8x8", 3) });
    return out ? *out : Arg(out.message());
}

std::set<NodeId> named(const GraphModule &gm, std::initializer_list<const char *> names)
{
    std::set<NodeId> out;
    for (const char *name : names) {
        const NodeId id = gm.graph.find(name);
        if (!id)
            qFatal("no node %s", name);
        out.insert(id);
    }
    return out;
}

// One edit as EDITS.json has it, with ' for ".
Result<PassReport> perform(GraphModule &gm, std::string edit)
{
    std::replace(edit.begin(), edit.end(), '\'', '"');
    return runPass(
        "Edit", [&](GraphModule &work) { return applyEdits(work, "[" + edit + "]"); }, gm);
}

// x -> a -> b -> c, a -> side -> c
GraphModule diamond()
{
    GraphModule gm;
    gm.modules.set("", fbtest::moduleInfo("", "net.Net", ModuleKind::Container));
    Graph &g = gm.graph;
    const NodeId x = g.append(fbtest::node(Opcode::Placeholder, "x", "x"));
    const NodeId a = g.append(fbtest::node(Opcode::CallFunction, "a", "torch.relu", { x }));
    const NodeId side = g.append(fbtest::node(Opcode::CallFunction, "side", "torch.neg", { a }));
    const NodeId b = g.append(fbtest::node(Opcode::CallFunction, "b", "torch.exp", { a }));
    const NodeId c = g.append(fbtest::node(Opcode::CallFunction, "c", "operator.add", { b, side }));
    g.append(fbtest::node(Opcode::Output, "output", "output", { c }));
    return gm;
}

} // namespace

class TstExtract : public QObject
{
    Q_OBJECT

private slots:
    // Every run of nodes of the demo: extracted it computes the same, inlined again too.
    void demoPieces()
    {
        const GraphModule before = demo();
        const Arg expected = result(before);
        QVERIFY(expected.as<Tensor>());
        const auto &order = before.graph.order();
        int done = 0;
        QTemporaryDir folder;
        for (size_t first = 1; first + 1 < order.size(); first += 3)
            for (size_t count : { size_t(1), size_t(4), size_t(9) }) {
                const size_t last = std::min(first + count, order.size() - 1);
                GraphModule gm = before;
                const std::set<NodeId> nodes(order.begin() + long(first), order.begin() + long(last));
                auto extracted = runPass(
                    "Extract", [&](GraphModule &g) { return extractNodes(g, nodes, "piece", "Piece"); }, gm);
                QVERIFY2(extracted.ok(), why(extracted));
                QCOMPARE(gm.callers("piece").size(), size_t(1));
                QVERIFY(gm.modules.find("piece")->graph && lint(*gm.modules.find("piece")->graph).empty());
                const Arg got = result(gm);
                QVERIFY2(got == expected, got.as<std::string>() ? got.as<std::string>()->c_str() : "another result");
                QCOMPARE(gm.parameterCount(), before.parameterCount());
                auto inlined = runPass(
                    "Inline", [&](GraphModule &g) { return inlineModule(g, "piece"); }, gm);
                QVERIFY2(inlined.ok(), why(inlined));
                QCOMPARE(gm.graph.size(), before.graph.size());
                QVERIFY(result(gm) == expected);
                ++done;
            }
        QVERIFY(done > 20);
    }

    void namesMoveAlong()
    {
        GraphModule gm = demo();
        const std::string first = gm.graph[gm.graph.order()[1]].target;
        const NodeId conv = gm.graph.order()[1];
        QVERIFY(gm.graph[conv].op == Opcode::CallModule);
        auto done = extractNodes(gm, { conv }, "piece");
        QVERIFY2(done.ok(), why(done));
        QVERIFY(!gm.modules.contains(first) && !gm.tensors.contains(first + ".weight"));
        const std::string now = "piece." + first.substr(first.rfind('.') + 1);
        QVERIFY(gm.modules.contains(now) && gm.tensors.contains(now + ".weight"));
        QCOMPARE(QString::fromStdString(gm.modules.find("piece")->className), QStringLiteral("Piece"));
        const Graph &inside = gm.modules.find("piece")->graph->graph;
        QCOMPARE(QString::fromStdString(inside[conv].target), QString::fromStdString(now));
    }

    // An extracted module is structure: it fuses and exports as before, under its own class.
    void extractedStillFuses()
    {
        GraphModule plain = demo(), gm = plain;
        const auto &order = plain.graph.order();
        const std::set<NodeId> nodes(order.begin() + 1, order.begin() + 4);
        auto extracted = extractNodes(gm, nodes, "entry", "Entry");
        QVERIFY2(extracted.ok(), why(extracted));
        QVERIFY(fuseAll(plain).ok() && fuseAll(gm).ok());
        QCOMPARE(gm.graph.size(), plain.graph.size());
        QVERIFY(result(gm) == result(plain));
        const auto source = writePython(gm, {});
        QVERIFY2(source.ok(), why(source));
        QVERIFY(source->text.find("class Entry(nn.") != std::string::npos);
    }

    void othersMoveAside()
    {
        GraphModule gm = diamond();
        auto done = extractNodes(gm, named(gm, { "a", "b" }), "ab");
        QVERIFY2(done.ok(), why(done));
        QVERIFY(lint(gm).empty());
        QCOMPARE(QString::fromStdString(torchCode(gm)),
            QStringLiteral("\n\n\ndef forward(self, x):\n    ab = self.ab(x);  x = None\n    getitem = ab[0]\n"
                           "    getitem_1 = ab[1];  ab = None\n    side = torch.neg(getitem);  getitem = None\n"
                           "    c = getitem_1 + side;  getitem_1 = side = None\n    return c\n    "));
        QVERIFY(inlineModule(gm, "ab").ok());
        QCOMPARE(gm.graph.size(), diamond().graph.size());
    }

    void refusals()
    {
        GraphModule gm = diamond();
        const std::string was = text(gm);
        auto refused = [&](std::set<NodeId> nodes, const char *path, const char *reason) {
            const auto done = runPass(
                "Extract", [&](GraphModule &g) { return extractNodes(g, nodes, path); }, gm);
            return !done && QString::fromStdString(done.message()).contains(QLatin1String(reason)) && text(gm) == was;
        };
        QVERIFY(refused(named(gm, { "a", "c" }), "p", "a value leaves them and comes back by"));
        QVERIFY(refused(named(gm, { "x", "a" }), "p", "x is an input of the graph"));
        QVERIFY(refused(named(gm, { "c", "output" }), "p", "output is the output of the graph"));
        QVERIFY(refused({}, "p", "no node"));
        QVERIFY(refused(named(gm, { "a" }), "1p", "no name for a module"));
        QVERIFY(refused(named(gm, { "a" }), "no.p", "there is no module no"));
        GraphModule mutating = diamond();
        mutating.graph.setTarget(mutating.graph.find("side"), Opcode::CallMethod, "neg_");
        QVERIFY(!extractNodes(mutating, named(mutating, { "a", "b" }), "p").ok());
        QVERIFY(!inlineModule(gm, "p").ok());
    }

    void calledTwice()
    {
        GraphModule gm = diamond();
        auto inside = std::make_shared<GraphModule>(fbtest::innerGraph(makeFloat({ 1 }, { 2 })));
        ModuleInfo sub = fbtest::moduleInfo("sub", "net.Inner", ModuleKind::Graph);
        sub.graph = inside;
        gm.modules.set("sub", sub);
        Graph &g = gm.graph;
        for (const char *name : { "a", "b" }) {
            const NodeId id = g.find(name);
            g.setTarget(id, Opcode::CallModule, "sub");
        }
        auto run = [](const GraphModule &m) {
            auto i = Interpreter::create(m);
            const auto out = i ? i->run({ makeFloat({ 2 }, { 1, 5 }) }) : Result<Arg>(i.error());
            return out ? *out : Arg(out.message());
        };
        const Arg expected = run(gm);
        QVERIFY(expected.as<Tensor>());
        QVERIFY(inlineModule(gm, "sub").ok());
        QVERIFY(lint(gm).empty());
        QVERIFY(run(gm) == expected);
        QVERIFY(gm.tensors.contains("sub.w"));
        QCOMPARE(gm.graph.size(), size_t(8));
    }

    // A default that is a tensor of the module goes in with the rest.
    void inlineWithDefault()
    {
        GraphModule gm = diamond();
        auto inside = std::make_shared<GraphModule>(fbtest::innerGraph(makeFloat({ 1 }, { 2 })));
        Graph &inner = inside->graph;
        const NodeId w = inner.find("w");
        const NodeId v = inner.insertAfter(w, fbtest::node(Opcode::Placeholder, "v", "v", { w }));
        inner.setArgs(inner.find("add"), { inner.find("x"), v }, {});
        ModuleInfo sub = fbtest::moduleInfo("sub", "net.Inner", ModuleKind::Graph);
        sub.graph = inside;
        gm.modules.set("sub", sub);
        gm.graph.setTarget(gm.graph.find("a"), Opcode::CallModule, "sub");
        auto run = [](const GraphModule &m) {
            auto i = Interpreter::create(m);
            const auto out = i ? i->run({ makeFloat({ 2 }, { 1, 5 }) }) : Result<Arg>(i.error());
            return out ? *out : Arg(out.message());
        };
        const Arg expected = run(gm);
        QVERIFY(expected.as<Tensor>());
        const auto inlined = inlineModule(gm, "sub");
        QVERIFY2(inlined.ok(), why(inlined));
        QVERIFY(lint(gm).empty() && !gm.graph.find("v"));
        QVERIFY(run(gm) == expected);
    }

    // get_attr of what is no tensor: it runs, and its value is in the exported code.
    void plainAttribute()
    {
        GraphModule gm;
        gm.modules.set("", fbtest::moduleInfo("", "net.Net", ModuleKind::Container));
        gm.attributes.set("sizes", Arg::list({ 2, 3 }));
        Graph &g = gm.graph;
        const NodeId x = g.append(fbtest::node(Opcode::Placeholder, "x", "x"));
        const NodeId k = g.append(fbtest::node(Opcode::GetAttr, "sizes", "sizes"));
        const NodeId item = g.append(fbtest::node(Opcode::CallFunction, "item", "operator.getitem", { k, 1 }));
        const NodeId y = g.append(fbtest::node(Opcode::CallFunction, "y", "operator.mul", { x, item }));
        g.append(fbtest::node(Opcode::Output, "output", "output", { y }));
        QVERIFY(lint(gm).empty() && notExecutable(gm).empty());
        auto run = Interpreter::create(gm);
        QVERIFY2(run.ok(), why(run));
        const auto out = run->run({ makeFloat({ 2 }, { 1, 5 }) });
        QVERIFY2(out.ok(), why(out));
        QVERIFY(*out == Arg(makeFloat({ 2 }, { 3, 15 })));
        const auto source = writePython(gm, {});
        QVERIFY2(source.ok(), why(source));
        QVERIFY2(source->text.find("[2, 3]") != std::string::npos, source->text.c_str());
        gm.attributes.erase("sizes");
        QCOMPARE(notExecutable(gm).size(), size_t(1));
    }

    void movesAndUses()
    {
        GraphModule gm = diamond();
        QVERIFY(perform(gm, "{'op': 'move', 'node': 'b', 'before': 'side'}").ok());
        QCOMPARE(gm.graph.position(gm.graph.find("b")), size_t(2));
        auto refused = [&](const char *edit, const char *reason) {
            const auto done = perform(gm, edit);
            if (done || !QString::fromStdString(done.message()).contains(QLatin1String(reason)))
                qWarning("%s", done ? "not refused" : done.message().c_str());
            return !done && QString::fromStdString(done.message()).contains(QLatin1String(reason));
        };
        QVERIFY(refused("{'op': 'move', 'node': 'b', 'before': 'a'}", "it reads a"));
        QVERIFY(refused("{'op': 'move', 'node': 'a', 'before': 'c'}", "reads it"));
        QVERIFY(refused("{'op': 'replace_uses', 'node': 'a', 'with': 'b'}", "it is computed from it"));
        QVERIFY(perform(gm, "{'op': 'replace_uses', 'node': 'side', 'with': 'a'}").ok());
        QVERIFY(gm.graph.users(gm.graph.find("side")).empty());
    }

    // Rows of every edit there is, 10,000 in all, on the demo: refused or right, never a broken graph; every snapshot comes back.
    void randomEdits_data()
    {
        QTest::addColumn<int>("seed");
        for (int seed = 0; seed < 10; ++seed)
            QTest::newRow(qPrintable(QString::number(seed))) << seed;
    }
    void randomEdits()
    {
        QFETCH(int, seed);
        std::mt19937 random{ unsigned(seed) };
        auto below = [&](size_t n) { return size_t(random() % n); };
        GraphModule gm = demo();
        std::vector<std::pair<GraphModule, std::string>> history;
        int changed = 0;
        std::map<std::string, int> kinds;
        const char *functions[] = { "torch.relu", "torch.neg", "torch.sigmoid", "F.gelu", "nn.ReLU6", ".tanh()" };
        for (int step = 0; step < 1000; ++step) {
            const Graph &g = gm.graph;
            if (step % 50 == 0)
                history.emplace_back(gm, text(gm));
            if (g.size() < 15 || g.size() > 120)
                gm = history[below(history.size())].first; // undo
            auto node = [&] { return "'" + g[g.order()[below(g.size())]].name + "'"; };
            auto module = [&] {
                auto it = gm.modules.begin();
                std::advance(it, long(below(gm.modules.size())));
                return "'" + it->first + "'";
            };
            auto function = [&] { return std::string("'") + functions[below(std::size(functions))] + "'"; };
            std::string edit;
            switch (below(14)) {
            case 0:
            case 1:
                edit = "'insert_after', 'node': " + node() + ", 'call': " + function();
                break;
            case 2:
                edit = "'remove', 'node': " + node();
                break;
            case 3: {
                const NodeId id = g.order()[below(g.size())];
                const auto inputs = g.inputs(id);
                if (inputs.empty())
                    continue;
                edit = "'rewire', 'node': '" + g[id].name + "', 'from': '" + g[inputs[below(inputs.size())]].name
                    + "', 'to': " + node();
                break;
            }
            case 4:
                edit = "'rename', 'node': " + node() + ", 'name': 'n_" + std::to_string(below(40)) + "'";
                break;
            case 5:
                edit = "'set_target', 'node': " + node() + ", 'target': " + function();
                break;
            case 6:
                edit = "'replace', 'node': " + node() + ", 'with': " + function();
                break;
            case 7:
                edit = "'replace_uses', 'node': " + node() + ", 'with': " + node();
                break;
            case 8:
                edit = "'move', 'node': " + node() + ", 'before': " + node();
                break;
            case 9: {
                const size_t first = below(g.size()), last = std::min(g.size(), first + 1 + below(6));
                std::string list;
                for (size_t i = first; i < last; ++i)
                    list += (list.empty() ? "'" : ", '") + g[g.order()[i]].name + "'";
                edit = "'extract', 'nodes': [" + list + "], 'module': 'p_" + std::to_string(below(20)) + "'";
                break;
            }
            case 10:
                edit = "'inline', 'module': " + module();
                break;
            case 11:
                edit = "'leaf', 'module': " + module();
                break;
            case 12:
                edit = "'unleaf', 'module': " + module();
                break;
            case 13:
                edit = below(8) ? "'set_arg', 'arg': 0, 'node': " + node() + ", 'value': {'node': " + node() + "}" : "'fuse'";
                break;
            }
            edit = "{'op': " + edit + "}";
            const std::string was = canonicalText(gm.graph);
            const auto done = perform(gm, edit);
            if (done && done->changed) {
                ++changed;
                ++kinds[edit.substr(0, edit.find(','))];
            } else {
                QVERIFY2(canonicalText(gm.graph) == was, edit.c_str());
            }
            const auto problems = lint(gm);
            QVERIFY2(problems.empty(), problems.empty() ? "" : (edit + ": " + problems[0].message).c_str());
        }
        QVERIFY2(changed > 200 && kinds.size() >= 9,
            qPrintable(QStringLiteral("%1 edits of %2 kinds").arg(changed).arg(kinds.size())));
        for (const auto &[snapshot, was] : history)
            QVERIFY(text(snapshot) == was);
    }
};

QTEST_GUILESS_MAIN(TstExtract)
#include "tst_extract.moc"
