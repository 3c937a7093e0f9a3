// Edits by hand and from JSON; cases TR-06 and CG-06. GPL-3.0-or-later.
#include <QTest>

#include "model/exec/interpreter.h"
#include "model/io/fxt.h"
#include "model/ir/lint.h"
#include "model/text/text.h"
#include "passes/edits.h"
#include "support/python.h"

using namespace fb;

namespace
{

std::string text(const GraphModule &gm)
{
    return canonicalText(gm.graph) + torchGraphText(gm) + torchCode(gm);
}

QString body(const GraphModule &gm)
{
    QString lines;
    for (NodeId id : gm.graph.order()) {
        const Node &n = gm.graph[id];
        lines += QString::fromStdString(n.name + " = " + n.target + "(");
        QStringList args;
        for (const Arg &a : n.args)
            args << QString::fromStdString(argText(gm, a));
        for (const auto &[k, v] : n.kwargs)
            args << QString::fromStdString(k + "=" + argText(gm, v));
        lines += args.join(", ") + ")\n";
    }
    return lines;
}

double runOne(const GraphModule &gm, float x)
{
    auto interpreter = Interpreter::create(gm);
    if (!interpreter)
        qFatal("%s", interpreter.message().c_str());
    auto out = interpreter->run({ makeFloat({ 1 }, { x }) });
    if (!out)
        qFatal("%s", out.message().c_str());
    return toDoubles(**out->as<Tensor>())[0];
}

} // namespace

class TstEdits : public QObject
{
    Q_OBJECT

    fbtest::Judge judge_;

    // A model of one forward, traced by torch.fx.
    GraphModule traced(const QByteArray &forward, const QByteArray &init = "pass", const QStringList &more = { "--input", "1" })
    {
        judge_.write("net.py",
            "import torch, torch.nn.functional as F\nfrom torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n"
            "        super().__init__()\n        "
                + init + "\n    def forward(self, x):\n        " + forward + "\n");
        if (!judge_.trace("net.py:Net", "net.fxt", more))
            qFatal("%s", judge_.error.constData());
        auto gm = readFxt(judge_.path("net.fxt").toStdString());
        if (!gm)
            qFatal("%s", gm.message().c_str());
        return std::move(*gm);
    }
    static Result<PassReport> edit(GraphModule &gm, const char *json)
    {
        return runPass(
            "Edit", [&](GraphModule &g) { return applyEdits(g, json); }, gm);
    }
    static QString refusal(GraphModule &gm, const char *json)
    {
        const std::string before = text(gm);
        auto r = edit(gm, json);
        return r.ok() ? "done" : text(gm) != before ? "changed" : QString::fromStdString(r.message());
    }

private slots:
    void replace()
    {
        GraphModule gm = traced("return F.relu6(torch.clamp(self.a(x), -1.0, 2.0)).relu()", "self.a = nn.ReLU6(inplace=True)");
        const GraphModule before = gm;
        auto r = edit(gm, R"json([{"op": "replace", "all": "torch.clamp", "with": "torch.sigmoid"},
                              {"op": "replace", "all": "nn.ReLU6", "with": "nn.ReLU"},
                              {"op": "replace", "node": "relu6", "with": ".sigmoid()"},
                              {"op": "replace", "node": "relu", "with": "nn.LeakyReLU", "args": {"negative_slope": 0.25}}])json");
        QVERIFY2(r.ok(), r.ok() ? "" : r.message().c_str());
        QCOMPARE(r->done[0].what.c_str(), "clamp: torch.clamp -> torch.sigmoid (min, max dropped)");
        QCOMPARE(body(gm),
            "x = x()\na = a(x)\nclamp = torch.sigmoid(a)\nrelu6 = sigmoid(clamp)\nrelu = relu(relu6)\noutput = output(relu)\n");
        QCOMPARE(gm.graph[gm.graph.find("relu")].op, Opcode::CallModule);
        const ModuleInfo *a = gm.modules.find("a"), *leaky = gm.modules.find("relu");
        QCOMPARE(a->className.c_str(), "torch.nn.modules.activation.ReLU");
        QVERIFY(a->attr("inplace")->toBool().value() && a->extraRepr == "inplace=True");
        QCOMPARE(leaky->extraRepr.c_str(), "negative_slope=0.25");
        QVERIFY(lint(gm).empty() && !(gm == before));
        const double sigmoid = 1 / (1 + std::exp(-1 / (1 + std::exp(-0.5))));
        QVERIFY(std::abs(runOne(gm, 0.5f) - sigmoid) < 1e-6);
    }

    void replaceForms()
    {
        GraphModule gm = traced("return torch.max(x + 1, torch.neg(x)).clamp(min=0)");
        auto r = edit(gm,
            R"([{"op": "replace", "node": "add", "with": "torch.mul"}, {"op": "replace", "node": "max_1", "with": "operator.sub"},
                              {"op": "replace", "node": "clamp", "with": "F.relu", "args": {"inplace": true}}])");
        QVERIFY2(r.ok(), r.ok() ? "" : r.message().c_str());
        QCOMPARE(body(gm),
            "x = x()\nadd = torch.mul(x, 1)\nneg = torch.neg(x)\nmax_1 = operator.sub(add, neg)\n"
            "clamp = torch.nn.functional.relu(max_1, inplace=True)\noutput = output(clamp)\n");
        QCOMPARE(runOne(gm, 3), 6.);
    }

    void replaceRefuses()
    {
        GraphModule gm = traced("return torch.relu(x)");
        QCOMPARE(refusal(gm, R"([{"op": "replace", "node": "relu", "with": "nn.Conv2d"}])"),
            "Edit: edit 1 (replace): cannot replace relu: nn.Conv2d has weights, and there are none to give it; only modules "
            "without "
            "weights can be put in");
        QVERIFY(refusal(gm, R"([{"op": "replace", "node": "relu", "with": "torch.add"}])").contains("torch.add needs other"));
        QVERIFY(refusal(gm, R"([{"op": "replace", "node": "relu", "with": "torch.sigmiod"}])")
                    .contains("did you mean torch.sigmoid"));
        QVERIFY(refusal(gm, R"([{"op": "replace", "node": "relu", "with": "F.gelu", "args": {"slope": 1}}])")
                    .contains("no argument \"slope\""));
        QVERIFY(refusal(gm, R"([{"op": "replace", "all": "torch.clamp", "with": "torch.sigmoid"}])")
                    .contains("no node calls torch.clamp"));
    }

    void replacementsMakeSense()
    {
        GraphModule gm = traced("return torch.relu(x)");
        const auto list = replacements(gm, gm.graph.find("relu"));
        QVERIFY(std::find(list.begin(), list.end(), OpRef{ Opcode::CallFunction, "torch.sigmoid" }) != list.end());
        for (const OpRef &op : list) {
            GraphModule copy = gm;
            auto r = replaceNodes(copy, { copy.graph.find("relu") }, op);
            QVERIFY2(r.ok() && lint(copy).empty(), op.target.c_str());
        }
    }

    void parse()
    {
        auto is = [](const char *given, Opcode op, const char *target) {
            auto r = OpRef::parse(given);
            return r.ok() && *r == OpRef{ op, target };
        };
        QVERIFY(is("torch.clamp", Opcode::CallFunction, "torch.clamp"));
        QVERIFY(is("F.relu", Opcode::CallFunction, "torch.nn.functional.relu"));
        QVERIFY(is(".relu()", Opcode::CallMethod, "relu"));
        QVERIFY(is("nn.ReLU6", Opcode::CallModule, "torch.nn.modules.activation.ReLU6"));
        QVERIFY(is("torch.nn.ReLU6", Opcode::CallModule, "torch.nn.modules.activation.ReLU6"));
        QVERIFY(is("torch.nn.modules.activation.ReLU6", Opcode::CallModule, "torch.nn.modules.activation.ReLU6"));
        QVERIFY(is("pkg.Gate", Opcode::CallModule, "pkg.Gate"));
        QVERIFY(!OpRef::parse("nn.ReLU7").ok());
    }

    // Nodes that work in place have no users and stay.
    void TR_06()
    {
        GraphModule gm = traced("y = x + 1; y.mul_(3); z = x - 1; w = torch.neg(z); return y");
        QCOMPARE(runOne(gm, 1), 6.);
        auto r = runPass("Clean", eliminateDeadCode, gm);
        QVERIFY2(r.ok(), r.ok() ? "" : r.message().c_str());
        QCOMPARE(runOne(gm, 1), 6.);
        QCOMPARE(r->kept.size(), size_t(1));
        QCOMPARE(r->kept[0].what.c_str(), "mul_ kept: it changes a value in place");
        QCOMPARE(r->done.size(), size_t(2));
        auto again = runPass("Clean", eliminateDeadCode, gm);
        QVERIFY(again.ok() && !again->changed);
    }

    // What runs is what is shown; order is kept or the edit refused; undo is byte for byte.
    void CG_06()
    {
        GraphModule gm = traced("return torch.relu(x) + 1");
        const GraphModule before = gm;
        const std::string was = text(gm);
        QVERIFY(edit(gm, R"([{"op": "set_target", "node": "relu", "target": "torch.neg"}])").ok());
        QVERIFY(torchCode(gm).find("torch.neg(x)") != std::string::npos);
        QCOMPARE(runOne(gm, 2), -1.);
        gm = before;
        QCOMPARE(text(gm).c_str(), was.c_str());

        QCOMPARE(refusal(gm, R"([{"op": "rewire", "node": "relu", "from": "x", "to": "add"}])"),
            "Edit: edit 1 (rewire): relu cannot read add: add is computed from it, which would make a cycle");
        QVERIFY(refusal(gm,
            R"([{"op": "insert_after", "node": "add", "call": "torch.neg"}, {"op": "rewire", "node": "relu", "from": "x", "to": "neg"}])")
                    .contains("edit 2 (rewire): relu cannot read neg: neg is computed from it"));
        QCOMPARE(refusal(gm, R"([{"op": "rewire", "node": "add", "from": "relu", "to": "x"}, {"op": "remove", "node": "nix"}])"),
            "Edit: edit 2 (remove): there is no node \"nix\"");
        // A later node moves up when something earlier comes to read it.
        auto moved = edit(gm, R"([{"op": "insert_after", "node": "x", "call": "torch.neg", "name": "late"},
                                  {"op": "rewire", "node": "relu", "from": "late", "to": "x"}])");
        QVERIFY2(moved.ok(), moved.ok() ? "" : moved.message().c_str());
        Graph &g = gm.graph;
        Node n = g[g.find("late")];
        n.name = "exp";
        n.target = "torch.exp";
        g.insertBefore(g.output(), n);
        QVERIFY(edit(gm, R"([{"op": "rewire", "node": "relu", "from": "x", "to": "exp"}])").ok());
        QVERIFY(lint(gm).empty() && g.position(g.find("exp")) < g.position(g.find("relu")));
    }

    void removeAndRename()
    {
        GraphModule gm = traced("return (self.a(x) + x).relu()", "self.a = nn.ReLU()");
        QVERIFY(
            refusal(gm, R"([{"op": "remove", "node": "add"}])")
                .endsWith("cannot remove add: it has 2 inputs (a, x), so what relu should read is not clear; rewire it first"));
        QVERIFY(refusal(gm, R"([{"op": "remove", "node": "output"}])").contains("a graph needs its output"));
        QVERIFY(refusal(gm, R"([{"op": "rename", "node": "a", "name": "add"}])").contains("another node has that name"));
        auto r = edit(gm, R"([{"op": "remove", "node": "a"}, {"op": "rename", "node": "relu", "name": "act"}])");
        QVERIFY2(r.ok(), r.ok() ? "" : r.message().c_str());
        QCOMPARE(body(gm), "x = x()\nadd = operator.add(x, x)\nact = relu(add)\noutput = output(act)\n");
        QVERIFY(!gm.modules.contains("a"));
        QCOMPARE(runOne(gm, 2), 4.);
    }

    void insertAndSet()
    {
        GraphModule gm = traced("return torch.clamp(x, 0.0, 1.0) + x");
        auto r = edit(gm, R"([{"op": "insert_after", "node": "clamp", "call": "nn.ReLU", "name": "act"},
                              {"op": "insert_after", "node": "x", "call": "torch.mul", "args": {"other": 2}, "users": ["clamp"]},
                              {"op": "set_arg", "node": "clamp", "arg": "max", "value": 5.0},
                              {"op": "set_arg", "node": "add", "arg": 1, "value": {"node": "mul"}}])");
        QVERIFY2(r.ok(), r.ok() ? "" : r.message().c_str());
        QCOMPARE(body(gm),
            "x = x()\nmul = torch.mul(x, 2)\nclamp = torch.clamp(mul, 0.0, 5.0)\nact = act(clamp)\n"
            "add = operator.add(act, mul)\noutput = output(add)\n");
        QCOMPARE(runOne(gm, 2), 8.);
        QVERIFY(refusal(gm, R"([{"op": "set_arg", "node": "clamp", "arg": "mix", "value": 5.0}])")
                    .contains("it takes input, min, max"));
        QVERIFY(refusal(gm, R"([{"op": "set_arg", "node": "clamp", "arg": 7, "value": 5.0}])").contains("has no argument 7"));
    }

    void badJson()
    {
        GraphModule gm = traced("return torch.relu(x)");
        QVERIFY(refusal(gm, "{").endsWith("the edits are not valid JSON"));
        QVERIFY(refusal(gm, "{}").contains("must be a list"));
        QVERIFY(refusal(gm, "[1]").contains("edit 1: an edit is an object"));
        QVERIFY(refusal(gm, R"([{"op": "explode"}])").contains("edit 1 (explode): there is no edit \"explode\""));
        QVERIFY(refusal(gm, R"([{"op": "remove"}])").contains("\"remove\" needs \"node\""));
        QVERIFY(refusal(gm, R"([{"op": "remove", "node": "relu", "nodes": []}])").contains("does not take \"nodes\""));
        QVERIFY(refusal(gm, R"([{"op": "set_arg", "node": "relu", "arg": 0, "value": {"x": 1}}])").contains("is no argument"));
        auto nothing = edit(gm, "[]");
        QVERIFY(nothing.ok() && !nothing->changed);
    }
};

QTEST_GUILESS_MAIN(TstEdits)
#include "tst_edits.moc"
