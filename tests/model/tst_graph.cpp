// Graph and GraphModule: edits, names, refusals, snapshots, depth. GPL-3.0-or-later.
#include <QTest>

#include <random>
#include <set>

#include "model/ir/bind.h"
#include "model/ir/lint.h"
#include "model/text/text.h"

using namespace fb;

namespace
{

Node call(const char *function, ArgList args)
{
    Node n;
    n.op = Opcode::CallFunction;
    n.target = function;
    n.args = std::move(args);
    return n;
}

Node placeholder(const char *name)
{
    Node n;
    n.op = Opcode::Placeholder;
    n.name = n.target = name;
    return n;
}

Node output(NodeId value)
{
    Node n;
    n.op = Opcode::Output;
    n.target = "output";
    n.args = { value };
    return n;
}

std::string text(const GraphModule &gm)
{
    return canonicalText(gm.graph) + torchGraphText(gm) + torchCode(gm);
}

// Users as the arguments say, to compare with those that edits keep up to date.
bool usersAreRight(const Graph &g)
{
    std::map<NodeId, std::set<NodeId>> want;
    for (NodeId id : g.order())
        for (NodeId in : g.inputs(id))
            want[in].insert(id);
    for (NodeId id : g.order()) {
        const auto &have = g.users(id);
        if (std::set<NodeId>(have.begin(), have.end()) != want[id] || have.size() != want[id].size())
            return false;
    }
    return true;
}

} // namespace

class TstGraph : public QObject
{
    Q_OBJECT
private slots:
    // torch 2.13's _Namespace: torch.md, section 4.
    void names()
    {
        Graph g;
        auto made = [&](const char *name) {
            Node n = call("torch.add", {});
            n.name = name;
            return QString::fromStdString(g[g.append(std::move(n))].name);
        };
        QCOMPARE(made("add_5"), "add_5");
        QCOMPARE(made("add"), "add");
        QCOMPARE(made("add"), "add_6");
        QCOMPARE(made("add_5"), "add_7");
        QCOMPARE(made("x.y z"), "x_y_z");
        QCOMPARE(made("0"), "_0");
        QCOMPARE(made("len"), "len_1");
        QCOMPARE(made("class"), "class_1");
        QCOMPARE(QString::fromStdString(g.uniqueName("")), "_unnamed");
        QCOMPARE(QString::fromStdString(g[g.append(call("torch.nn.functional.relu", {}))].name), "relu");
        QCOMPARE(QString::fromStdString(g[g.append(call("torch.ops.aten.conv2d.default", {}))].name), "conv2d");
    }

    void renameRefuses()
    {
        Graph g;
        const NodeId a = g.append(placeholder("a"));
        g.append(placeholder("b"));
        QVERIFY(!g.rename(a, "b").ok());
        QVERIFY(!g.rename(a, "1x").ok());
        QVERIFY(!g.rename(a, "class").ok());
        QVERIFY(g.rename(a, "a").ok());
        QVERIFY(g.rename(a, "c").ok());
        QVERIFY(!g.find("a") && g.find("c") == a);
    }

    // Python's own rules: f(a, b=2, *rest, key, last=5, **more).
    void argumentsBind()
    {
        Graph g;
        auto add = [&](const char *target, ArgList fallback = {}) {
            Node p = placeholder(target + std::string_view(target).find_first_not_of('*'));
            p.target = target;
            p.args = std::move(fallback);
            g.append(std::move(p));
        };
        add("a");
        add("b", { 2 });
        add("*rest");
        add("key");
        add("last", { 5 });
        add("**more");
        auto bound = [&](const ArgList &args, const Kwargs &kwargs) {
            const auto r = bindArguments(g, args, kwargs);
            if (!r)
                return QString::fromStdString(r.message());
            QStringList texts;
            for (size_t i = 0; i < r->size(); ++i)
                texts << QString::fromStdString(argText({}, (*r)[i] ? *(*r)[i] : g[g.placeholders()[i]].args.front()));
            return texts.join("; ");
        };
        QCOMPARE(bound({ 1 }, { { "key", 3 } }), "1; 2; (); 3; 5; {}");
        QCOMPARE(bound({ 1, 7, 8, 9 }, { { "z", 0 }, { "last", 6 }, { "key", 3 } }), "1; 7; (8, 9); 3; 6; {'z': 0}");
        QCOMPARE(bound({}, { { "b", 4 }, { "a", 1 }, { "key", 3 } }), "1; 4; (); 3; 5; {}");
        QCOMPARE(bound({ 1 }, {}), "its argument 'key' is missing");
        QCOMPARE(bound({ 1 }, { { "a", 2 }, { "key", 3 } }), "it got two values for its argument 'a'");
        Graph plain;
        plain.append(placeholder("x"));
        QCOMPARE(bindArguments(plain, { 1, 2 }, {}).message().c_str(), "it takes 1 arguments and got 2");
        QCOMPARE(bindArguments(plain, { 1 }, { { "y", 2 } }).message().c_str(), "it takes no argument named 'y'");
    }

    void eraseRefuses()
    {
        GraphModule gm;
        Graph &g = gm.graph;
        const NodeId x = g.append(placeholder("x")), relu = g.append(call("torch.relu", { x })),
                     neg = g.append(call("torch.neg", { relu })), add = g.append(call("operator.add", { relu, neg }));
        g.append(output(add));
        const std::string before = text(gm);
        const Status refused = g.erase(relu);
        QVERIFY(!refused.ok());
        QCOMPARE(refused.message().c_str(), "cannot remove relu: it is used by neg, add; rewire or remove those first");
        QVERIFY(!g.erase(std::vector{ relu, neg }).ok());
        QCOMPARE(text(gm).c_str(), before.c_str());
        g.replaceAllUses(add, x);
        QVERIFY(g.erase(std::vector{ relu, neg, add }).ok());
        QCOMPARE(g.size(), size_t(2));
        QVERIFY(usersAreRight(g) && lint(gm).empty());
    }

    // A snapshot is a copy; what happens to one side is invisible to the other.
    void copyOnWrite()
    {
        GraphModule gm;
        const NodeId x = gm.graph.append(placeholder("x")), relu = gm.graph.append(call("torch.relu", { x }));
        gm.graph.append(output(relu));
        gm.tensors.set("w", { makeFloat({ 2 }, { 1, 2 }), true, true });
        const GraphModule snapshot = gm;
        const std::string before = text(gm);
        gm.graph.setTarget(relu, Opcode::CallFunction, "torch.neg");
        gm.graph.setArgs(relu, { x, 1 }, {});
        QVERIFY(gm.graph.rename(x, "y").ok());
        gm.replaceTensor("w", makeFloat({ 2 }, { 3, 4 }));
        gm.graph.insertAfter(relu, call("torch.exp", { relu }));
        QCOMPARE(text(snapshot).c_str(), before.c_str());
        QCOMPARE(toDoubles(*snapshot.tensor("w")), (std::vector<double>{ 1, 2 }));
        QVERIFY(!(snapshot == gm));
        gm = snapshot;
        QCOMPARE(text(gm).c_str(), before.c_str());
        QVERIFY(gm == snapshot);
    }

    void tiesFollowReplacement()
    {
        GraphModule gm;
        const Tensor shared = makeFloat({ 1 }, { 1 });
        gm.tensors.set("a", { shared, true, true });
        gm.tensors.set("b", { shared, true, true });
        gm.tensors.set("c", { makeFloat({ 1 }, { 1 }), true, true });
        QCOMPARE(gm.parameterCount(), int64_t(2));
        gm.replaceTensor("a", makeFloat({ 1 }, { 5 }));
        QVERIFY(gm.tensor("a") == gm.tensor("b"));
        QCOMPARE(toDoubles(*gm.tensor("c")), std::vector<double>{ 1 });
    }

    void lintFinds()
    {
        GraphModule gm;
        Graph &g = gm.graph;
        const NodeId x = g.append(placeholder("x")), relu = g.append(call("torch.relu", { x })),
                     neg = g.append(call("torch.neg", { relu }));
        Node module = call("", { neg });
        module.op = Opcode::CallModule;
        module.target = "missing";
        g.append(module);
        QCOMPARE(lint(gm).size(), size_t(2)); // no such module, no output
        g.moveBefore(neg, relu);
        const auto problems = lint(gm);
        QCOMPARE(problems.size(), size_t(3));
        QCOMPARE(problems[0].node.c_str(), "neg");
        QCOMPARE(problems[0].message.c_str(), "neg uses relu before it is defined");
    }

    // Any row of edits keeps the graph valid, and every snapshot on the way comes back byte for byte.
    void randomEdits_data()
    {
        QTest::addColumn<int>("seed");
        for (int seed = 0; seed < 20; ++seed)
            QTest::newRow(qPrintable(QString::number(seed))) << seed;
    }
    void randomEdits()
    {
        QFETCH(int, seed);
        std::mt19937 random{ unsigned(seed) };
        auto below = [&](size_t n) { return size_t(random() % n); };
        GraphModule gm;
        Graph &g = gm.graph;
        g.append(output(g.append(placeholder("x"))));
        std::vector<std::pair<GraphModule, std::string>> history;
        const char *functions[] = { "torch.relu", "torch.neg", "operator.add", "torch.cat", "torch.nn.functional.gelu" };

        for (int step = 0; step < 150; ++step) {
            if (step % 10 == 0)
                history.emplace_back(gm, text(gm));
            // A node and something defined before it.
            const size_t place = 1 + below(g.size() - 1);
            const NodeId id = g.order()[place], earlier = g.order()[below(place)];
            switch (below(7)) {
            case 0:
            case 1: {
                const NodeId other = g.order()[below(place)];
                ArgList args
                    = below(2) ? ArgList{ earlier, other } : ArgList{ Arg::list({ earlier, Arg::tuple({ other, 2.5 }) }), "dim" };
                g.insertBefore(id, call(functions[below(5)], std::move(args)));
                break;
            }
            case 2:
                if (g[id].op != Opcode::Output)
                    g.insertAfter(id, call(functions[below(5)], { id }));
                break;
            case 3: {
                const bool used = !g.users(id).empty();
                if (g[id].op != Opcode::Output)
                    QCOMPARE(g.erase(id).ok(), !used);
                break;
            }
            case 4:
                g.replaceAllUses(id, earlier);
                break;
            case 5:
                g.setArgs(id, { earlier }, g[id].op == Opcode::Output ? Kwargs{} : Kwargs{ { "other", earlier } });
                break;
            case 6:
                (void)g.rename(id, "n_" + std::to_string(below(30)));
                break;
            }
            const auto problems = lint(gm);
            QVERIFY2(problems.empty(), problems.empty() ? "" : problems[0].message.c_str());
            QVERIFY(usersAreRight(g));
            for (size_t i = 0; i < g.size(); ++i)
                QVERIFY(g.position(g.order()[i]) == i && g.find(g[g.order()[i]].name) == g.order()[i]);
        }
        for (const auto &[snapshot, was] : history) {
            QCOMPARE(text(snapshot).c_str(), was.c_str());
            auto parsed = parseCanonical(canonicalText(snapshot.graph));
            QVERIFY2(parsed.ok(), parsed.ok() ? "" : parsed.message().c_str());
            QVERIFY(*parsed == snapshot.graph);
        }
    }

    void restoreKeepsIds()
    {
        GraphModule gm;
        Graph &g = gm.graph;
        const NodeId x = g.append(placeholder("x")), relu = g.append(call("torch.relu", { x })), out = g.append(output(relu));
        const std::string before = text(gm);
        const Node kept = g[relu];
        g.replaceAllUses(relu, x);
        QVERIFY(g.erase(relu).ok());
        const NodeId fresh = g.insertBefore(out, call("torch.neg", { x }));
        QVERIFY(fresh != relu);
        QVERIFY(g.erase(fresh).ok());
        g.restore(kept, out);
        g.replaceInput(out, x, relu);
        QCOMPARE(text(gm).c_str(), before.c_str());
        QVERIFY(g.find("relu") == relu);
    }

    // CG-07: depth is no recursion, and nothing takes quadratic time.
    void deepChain()
    {
        GraphModule gm;
        Graph &g = gm.graph;
        NodeId last = g.append(placeholder("x"));
        for (int i = 0; i < 20000; ++i)
            last = g.append(call("torch.relu", { last }));
        g.append(output(last));
        QVERIFY(lint(gm).empty());
        const GraphModule copy = gm;
        QVERIFY(copy == gm);
        QCOMPARE(g[last].name.c_str(), "relu_19999");
        auto parsed = parseCanonical(canonicalText(g));
        QVERIFY(parsed.ok() && *parsed == g);
        std::vector<NodeId> middle(g.order().begin() + 1, g.order().end() - 1);
        g.replaceAllUses(last, g.order().front());
        QVERIFY(g.erase(middle).ok());
        QCOMPARE(g.size(), size_t(2));
        QCOMPARE(copy.graph.size(), size_t(20002));
        QVERIFY(lint(gm).empty() && lint(copy).empty());
    }
};

QTEST_GUILESS_MAIN(TstGraph)
#include "tst_graph.moc"
