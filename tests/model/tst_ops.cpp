// The op table and what is asked of it. GPL-3.0-or-later.
#include <QTest>

#include <set>

#include "model/exec/expression.h"
#include "model/ir/ops.h"

using namespace fb;

namespace
{

// A graph with one call on input x; modules and tensors may be added.
struct One {
    GraphModule gm;
    NodeId x, call;
    One(Opcode op, std::string target, ArgList args = {}, Kwargs kwargs = {})
    {
        Node p;
        p.op = Opcode::Placeholder;
        p.target = p.name = "x";
        x = gm.graph.append(p);
        Node n;
        n.op = op;
        n.target = std::move(target);
        n.args = std::move(args);
        n.args.insert(n.args.begin(), Arg(x));
        n.kwargs = std::move(kwargs);
        call = gm.graph.append(n);
    }
    One(const char *className, Kwargs attrs)
        : One(Opcode::CallModule, "m")
    {
        ModuleInfo m;
        m.path = "m";
        m.className = className;
        m.kind = ModuleKind::Nn;
        m.attrs = std::move(attrs);
        gm.modules.set("m", m);
    }
    const Node &node() const { return gm.graph[call]; }
    OpView view() const { return OpView(gm, node()); }
    std::string title() const { return nodeTitle(gm, node()); }
    std::string summary() const { return nodeSummary(gm, node()); }
};

Arg pair(int a, int b)
{
    return Arg::ints({ a, b });
}

} // namespace

class TstOps : public QObject
{
    Q_OBJECT

private slots:
    void tableIsSound()
    {
        std::set<std::string_view> functions, methods, modules;
        for (const OpInfo &op : allOps()) {
            QVERIFY(!op.kind.empty());
            for (const auto f : op.functions)
                QVERIFY2(functions.insert(f).second, f.data());
            for (const auto m : op.methods)
                QVERIFY2(methods.insert(m).second, m.data());
            for (const auto m : op.modules)
                QVERIFY2(modules.insert(m).second, m.data());
            for (const auto text : { op.call, op.moduleCall })
                if (!text.empty()) {
                    const auto e = parseExpression(text);
                    QVERIFY2(e, e.ok() ? "" : e.message().c_str());
                }
            for (const OpParam &p : op.params)
                QVERIFY2(p.defaultText.empty() || parseLiteral(p.defaultText), p.name.data());
        }
    }

    void oneKindForAllSpellings()
    {
        for (const char *f : { "torch.conv2d", "torch.nn.functional.conv2d", "torch.ops.aten.conv2d.default" })
            QCOMPARE(findFunction(f)->kind, std::string_view("conv2d"));
        for (const char *m : { "torch.nn.modules.conv.Conv2d", "Conv2d", "nn.Conv2d" })
            QCOMPARE(findModuleClass(m)->kind, std::string_view("conv2d"));
        QCOMPARE(findModuleClass("torch.nn.quantized.modules.conv.Conv2d"),
            findModuleClass("torch.ao.nn.quantized.modules.conv.Conv2d"));
        QCOMPARE(findModuleClass("torch.nn.intrinsic.modules.fused.ConvReLU2d")->kind, std::string_view("conv2d_relu"));
        QCOMPARE(findFunction("operator.add")->kind, findFunction("torch.add")->kind);
        QCOMPARE(findMethod("add")->kind, findFunction("torch.ops.aten.add.Tensor")->kind);
        QCOMPARE(findFunction("torch.Tensor.add")->kind, std::string_view("add"));
        QVERIFY(!findFunction("torch.no_such_thing"));
        QVERIFY(!findModuleClass("pkg.Conv2d"));
    }

    void argumentsAndDefaults()
    {
        const One f(Opcode::CallFunction, "torch.nn.functional.conv2d", { Arg(), Arg(), 2 }, { { "groups", 4 } });
        QCOMPARE(*f.view().arg("stride"), Arg(2));
        QCOMPARE(*f.view().arg("groups"), Arg(4));
        QCOMPARE(*f.view().arg("padding"), Arg(0));
        QVERIFY(!f.view().arg("nonsense"));
        QCOMPARE(f.view().input(), f.x);
        const One m("torch.nn.modules.conv.Conv2d", { { "stride", pair(2, 2) } });
        QCOMPARE(*m.view().arg("stride"), pair(2, 2));
        QCOMPARE(*m.view().arg("dilation"), Arg(1));
        QCOMPARE(*m.view().arg("input"), Arg(m.x));
    }

    void literals()
    {
        QCOMPARE(*parseLiteral("None"), Arg());
        QCOMPARE(*parseLiteral("True"), Arg(true));
        QCOMPARE(*parseLiteral("-1"), Arg(-1));
        QCOMPARE(*parseLiteral("1e-05"), Arg(1e-5));
        QCOMPARE(*parseLiteral("'mean'"), Arg("mean"));
        QCOMPARE(*parseLiteral("(1, 1)"), pair(1, 1));
        QCOMPARE(*parseLiteral("(1,)"), Arg::tuple({ 1 }));
        QCOMPARE(*parseLiteral("[]"), Arg::list({}));
        QCOMPARE(*parseLiteral("[(1, 'a'), None]"), Arg::list({ Arg::tuple({ 1, "a" }), Arg() }));
        for (const char *bad : { "", "x", "1 + 1", "'", "inf", "(1", "os.system('x')" })
            QVERIFY2(!parseLiteral(bad), bad);
    }

    void mutation()
    {
        const auto changes = [](const One &o) { return mutatesInput(o.gm, o.node()); };
        for (const char *m : { "add_", "fill_", "relu_", "__setitem__" })
            QVERIFY2(changes(One(Opcode::CallMethod, m)), m);
        for (const char *m : { "add", "requires_grad_", "__add__" })
            QVERIFY2(!changes(One(Opcode::CallMethod, m)), m);
        for (const char *f :
            { "operator.iadd", "operator.setitem", "operator.iand", "torch.relu_", "torch.ops.aten.add_.Tensor" })
            QVERIFY2(changes(One(Opcode::CallFunction, f)), f);
        for (const char *f :
            { "operator.and_", "operator.is_", "operator.invert", "operator.add", "torch.ops.aten.add.Tensor", "operator.index" })
            QVERIFY2(!changes(One(Opcode::CallFunction, f)), f);
        QVERIFY(changes(One(Opcode::CallFunction, "torch.nn.functional.relu", {}, { { "inplace", true } })));
        QVERIFY(changes(One(Opcode::CallFunction, "torch.nn.functional.relu", { true })));
        QVERIFY(!changes(One(Opcode::CallFunction, "torch.nn.functional.relu")));
        QVERIFY(changes(One("torch.nn.modules.activation.ReLU", { { "inplace", true } })));
        QVERIFY(changes(One(Opcode::CallFunction, "torch.add", { 1 }, { { "out", 2 } })));
    }

    void titles()
    {
        QCOMPARE(One("torch.nn.modules.conv.Conv2d", {}).title(), std::string("Conv2d"));
        QCOMPARE(One(Opcode::CallFunction, "torch.flatten").title(), std::string("flatten"));
        QCOMPARE(One(Opcode::CallFunction, "operator.add").title(), std::string("add"));
        QCOMPARE(One(Opcode::CallFunction, "operator.and_").title(), std::string("and"));
        QCOMPARE(One(Opcode::CallFunction, "torch.ops.aten.add.Tensor").title(), std::string("add"));
        QCOMPARE(One(Opcode::CallFunction, "builtins.getattr", { "shape" }).title(), std::string(".shape"));
    }

    void summaries()
    {
        const Kwargs conv{ { "in_channels", 64 }, { "out_channels", 128 }, { "kernel_size", pair(3, 3) },
            { "stride", pair(2, 2) } };
        QCOMPARE(One("torch.nn.modules.conv.Conv2d", conv).summary(), std::string("3x3 s2  64 -> 128"));
        QCOMPARE(One("torch.nn.modules.pooling.MaxPool2d", { { "kernel_size", 2 }, { "stride", 2 } }).summary(),
            std::string("2x2 s2"));
        QCOMPARE(One("torch.nn.modules.linear.Linear", { { "in_features", 512 }, { "out_features", 10 } }).summary(),
            std::string("512 -> 10"));
        QCOMPARE(One(Opcode::CallFunction, "torch.flatten", { 1 }).summary(), std::string("dim=1"));
        QCOMPARE(One(Opcode::CallFunction, "torch.clamp", { 0.0, 2.0 }).summary(), std::string("0 .. 2"));
        QCOMPARE(One("torch.nn.modules.activation.ReLU", {}).summary(), std::string());
    }
};

QTEST_APPLESS_MAIN(TstOps)
#include "tst_ops.moc"
