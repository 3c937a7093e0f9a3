// Fuseboard tests: exported programs regrouped into modules, and what follows from that: the same fusions and the same int8 model
// as the symbolic trace's. tests/oracle/pt2_oracle.py exports the models. GPL-3.0-or-later.
#include <QTemporaryDir>
#include <QTest>

#include <cmath>
#include <fstream>
#include <set>

#include "model/exec/interpreter.h"
#include "model/exec/tensor_ops.h"
#include "model/io/fxt.h"
#include "model/io/models.h"
#include "model/ir/lint.h"
#include "model/text/text.h"
#include "passes/edits.h"
#include "passes/export_python.h"
#include "passes/raise.h"
#include "support/graphs.h"
#include "support/pt2.h"
#include "support/python.h"

using namespace fb;
using fbtest::why;

namespace
{

// One aten call in the forward of a module of that class.
struct Case {
    const char *name, *className, *overload;
    ArgList rest; // after the input; strings "weight", "bias", ... are tensors of the module
    const char *says; // its facts; null: it is not regrouped
};

GraphModule single(const Case &c)
{
    GraphModule gm;
    gm.modules.set("", fbtest::moduleInfo("", "net.Net", ModuleKind::Container));
    gm.addModule(fbtest::moduleInfo("m", c.className, ModuleKind::Container));
    Graph &g = gm.graph;
    const std::string op = c.overload;
    const bool conv = op.starts_with("conv"), embedding = op.starts_with("embedding");
    const std::vector<int64_t> wide = op.find("conv1d") != op.npos ? std::vector<int64_t>{ 4, 4, 3 }
        : conv                                                     ? std::vector<int64_t>{ 4, 4, 3, 3 }
        : op.starts_with("linear") || embedding                    ? std::vector<int64_t>{ 6, 4 }
                                                                   : std::vector<int64_t>{ 4 };
    auto tensor = [&](const std::string &name) {
        const std::vector<int64_t> sizes = name == "weight" ? wide : std::vector<int64_t>{ op.starts_with("linear") ? 6 : 4 };
        Tensor t = *randomTensor(fbtest::shapeOf(sizes), 5, int(g.size()));
        if (name == "running_var")
            t = makeFloat({ 4 }, { 1, 2, 3, 4 });
        gm.tensors.set("m." + name, { t, !name.starts_with("running"), true });
        return g.append(fbtest::node(Opcode::GetAttr, "", "m." + name));
    };
    const NodeId x = g.append(fbtest::node(Opcode::Placeholder, "x", "x"));
    ArgList args{ x };
    for (const Arg &a : c.rest)
        args.push_back(a.as<std::string>() && !a.as<std::string>()->starts_with('=') ? Arg(tensor(*a.as<std::string>()))
                : a.as<std::string>()                                                ? Arg(a.as<std::string>()->substr(1))
                                                                                     : a);
    if (embedding)
        std::swap(args[0], args[1]);
    Node n = fbtest::node(Opcode::CallFunction, "call", "torch.ops.aten." + op, args);
    n.stack = std::make_shared<const ModuleStack>(ModuleStack{ { "m", c.className, 0 } });
    const NodeId call = g.append(std::move(n));
    const NodeId fresh = g.append(fbtest::node(Opcode::CallFunction, "fresh", "torch.ops.aten.mul.Tensor", { call, 2 }));
    g.append(fbtest::node(Opcode::Output, "output", "output", { fresh }));
    return gm;
}

Arg ints(std::vector<int64_t> v)
{
    return Arg::list(ArgList(v.begin(), v.end()));
}

Arg result(const GraphModule &gm, const std::string &input)
{
    auto run = Interpreter::create(gm);
    if (!run)
        return run.message();
    const auto out = run->run({ *randomTensor(input, 3) });
    return out ? *out : Arg(out.message());
}

} // namespace

class TstRaise : public QObject
{
    Q_OBJECT
    fbtest::Judge judge_;

    const std::vector<Case> cases_{
        { "conv2d", "torch.nn.modules.conv.Conv2d", "conv2d.default", { "weight", "bias", ints({ 2, 2 }), ints({ 1, 1 }) },
            "in_channels=4 out_channels=4 kernel_size=(3, 3) stride=(2, 2) padding=(1, 1) dilation=(1, 1) groups=1 "
            "padding_mode='zeros' bias=True" },
        { "conv1d", "torch.nn.modules.conv.Conv1d", "conv1d.default", { "weight" },
            "in_channels=4 out_channels=4 kernel_size=(3,) stride=(1,) padding=(0,) dilation=(1,) groups=1 padding_mode='zeros' "
            "bias=None" },
        { "same", "torch.nn.modules.conv.Conv2d", "conv2d.padding", { "weight", Arg(), ints({ 1, 1 }), "=same" },
            "in_channels=4 out_channels=4 kernel_size=(3, 3) stride=(1, 1) padding='same' dilation=(1, 1) groups=1 "
            "padding_mode='zeros' bias=None" },
        { "convolution", "torch.nn.modules.conv.Conv2d", "convolution.default",
            { "weight", "bias", ints({ 1, 1 }), ints({ 0, 0 }), ints({ 1, 1 }), false, ints({ 0, 0 }), 1 },
            "in_channels=4 out_channels=4 kernel_size=(3, 3) stride=(1, 1) padding=(0, 0) dilation=(1, 1) groups=1 "
            "padding_mode='zeros' bias=True" },
        { "transposed", "torch.nn.modules.conv.ConvTranspose2d", "conv_transpose2d.input", { "weight", "bias", ints({ 2, 2 }) },
            "in_channels=4 out_channels=4 kernel_size=(3, 3) stride=(2, 2) padding=(0, 0) output_padding=(0, 0) groups=1 "
            "dilation=(1, 1) bias=True" },
        { "linear", "torch.nn.modules.linear.Linear", "linear.default", { "weight", "bias" },
            "in_features=4 out_features=6 bias=True" },
        { "batch norm", "torch.nn.modules.batchnorm.BatchNorm2d", "batch_norm.default",
            { "weight", "bias", "running_mean", "running_var", false, .2, 1e-3, true },
            "num_features=4 momentum=0.2 eps=0.001 affine=True track_running_stats=True" },
        { "layer norm", "torch.nn.modules.normalization.LayerNorm", "layer_norm.default", { ints({ 4 }), "weight", "bias", 1e-6 },
            "normalized_shape=(4,) eps=1e-06 elementwise_affine=True" },
        { "group norm", "torch.nn.modules.normalization.GroupNorm", "group_norm.default", { 2, "weight", "bias" },
            "num_channels=4 num_groups=2 eps=1e-05 affine=True" },
        { "relu in place", "torch.nn.modules.activation.ReLU", "relu_.default", {}, "inplace=True" },
        { "relu6", "torch.nn.modules.activation.ReLU6", "hardtanh.default", { 0., 6. }, "inplace=False" },
        { "gelu", "torch.nn.modules.activation.GELU", "gelu.default", {}, "approximate='none'" },
        { "softmax", "torch.nn.modules.activation.Softmax", "softmax.int", { -1 }, "dim=-1 dtype=None" },
        { "leaky relu", "torch.nn.modules.activation.LeakyReLU", "leaky_relu.default", { .2 },
            "negative_slope=0.2 inplace=False" },
        { "max pool", "torch.nn.modules.pooling.MaxPool2d", "max_pool2d.default",
            { ints({ 3, 3 }), ints({ 2, 2 }), ints({ 1, 1 }) },
            "kernel_size=3 stride=2 padding=1 dilation=1 ceil_mode=False return_indices=False" },
        { "pool", "torch.nn.modules.pooling.AdaptiveAvgPool2d", "adaptive_avg_pool2d.default", { ints({ 1, 2 }) },
            "output_size=(1, 2)" },
        { "flatten all", "torch.nn.modules.flatten.Flatten", "flatten.using_ints", {}, "start_dim=0 end_dim=-1" },
        { "dropout", "torch.nn.modules.dropout.Dropout", "dropout.default", { .3, false }, "p=0.3 inplace=False" },
        { "another operator", "torch.nn.modules.conv.Conv2d", "relu.default", {}, nullptr },
        { "computed weight", "torch.nn.modules.linear.Linear", "linear.default", {}, nullptr },
        { "a class of one's own", "net.Relu", "relu.default", {}, nullptr },
    };

private slots:
    void initTestCase()
    {
        qputenv("PYTHONPATH", (fbtest::sourceDir() + "/tests/oracle").toLocal8Bit()); // the namedtuple of one model
        QVERIFY2(judge_.oracle("pt2_oracle.py", { "make", judge_.path(".") }), judge_.error);
    }

    void modules_data()
    {
        QTest::addColumn<int>("index");
        for (size_t i = 0; i < cases_.size(); ++i)
            QTest::newRow(cases_[i].name) << int(i);
    }
    // The value stays, the module has the facts of its constructor, its weights are no nodes any more.
    void modules()
    {
        QFETCH(int, index);
        const Case &c = cases_[size_t(index)];
        GraphModule gm = single(c);
        if (QByteArray(c.name) == "computed weight") {
            Graph &g = gm.graph;
            const NodeId w = g.insertBefore(g.find("call"), fbtest::node(Opcode::CallFunction, "w", "torch.ones", { 6, 4 }));
            g.setArgs(g.find("call"), { g.find("x"), w }, {});
        }
        const std::string input = QByteArray(c.overload).startsWith("conv1d") ? "2x4x9" : "2x4x8x4";
        const Arg before = result(gm, input);
        QVERIFY2(before.as<Tensor>(), before.as<std::string>() ? before.as<std::string>()->c_str() : "");
        const auto report = runPass("Regroup", raiseModules, gm);
        QVERIFY2(report.ok(), why(report));
        QVERIFY(lint(gm).empty());
        QVERIFY(result(gm, input) == before);
        const NodeId m = gm.graph.find("m");
        QCOMPARE(bool(m), c.says != nullptr);
        QVERIFY(gm.graph.find("mul") && gm.graph[gm.graph.find("mul")].target == "operator.mul");
        if (!m)
            return;
        QCOMPARE(gm.graph[m].op, Opcode::CallModule);
        QVERIFY(!gm.graph[m].stack);
        QCOMPARE(gm.graph.size(), size_t(4));
        const ModuleInfo *info = gm.modules.find("m");
        QCOMPARE(info->kind, ModuleKind::Nn);
        QStringList facts;
        for (const auto &[name, value] : info->attrs)
            facts << QString::fromStdString(name + "=" + argText(gm, value));
        QCOMPARE(facts.join(' '), c.says);
        // Once more changes nothing.
        const auto again = runPass("Regroup", raiseModules, gm);
        QVERIFY(again && !again->changed);
    }

    // In place on memory that something else reads, the operator stays as it is.
    void inPlaceStaysWhereItShows()
    {
        GraphModule gm;
        gm.modules.set("", fbtest::moduleInfo("", "net.Net", ModuleKind::Container));
        Graph &g = gm.graph;
        const NodeId x = g.append(fbtest::node(Opcode::Placeholder, "x", "x"));
        const NodeId a = g.append(fbtest::node(Opcode::CallFunction, "a", "torch.ops.aten.exp.default", { x }));
        const NodeId view
            = g.append(fbtest::node(Opcode::CallFunction, "view", "torch.ops.aten.view.default", { a, ints({ -1 }) }));
        const NodeId shown = g.append(fbtest::node(Opcode::CallFunction, "shown", "torch.ops.aten.add_.Tensor", { a, 1 }));
        const NodeId b = g.append(fbtest::node(Opcode::CallFunction, "b", "torch.ops.aten.exp.default", { shown }));
        const NodeId hidden = g.append(fbtest::node(Opcode::CallFunction, "hidden", "torch.ops.aten.add_.Tensor", { b, view }));
        g.append(fbtest::node(Opcode::Output, "output", "output", { Arg::tuple({ hidden, view }) }));
        const Arg before = result(gm, "4");
        QVERIFY(runPass("Regroup", raiseModules, gm).ok());
        QVERIFY(result(gm, "4") == before);
        QCOMPARE(gm.graph[gm.graph.find("shown")].target.c_str(), "torch.ops.aten.add_.Tensor");
        QVERIFY(!gm.graph.find("hidden") && gm.graph[gm.graph.find("add")].target == "operator.add");
    }

    // LD-05: two boxes that share one weight.
    void LD_05_oneModuleTwice()
    {
        const std::string path = judge_.path("hand.pt2").toStdString();
        std::ofstream(path, std::ios::binary) << fbtest::zipped(fbtest::handMadePt2());
        auto gm = readModel(path);
        QVERIFY2(gm.ok(), why(gm));
        QVERIFY(isFlat(*gm) && runPass("Regroup", raiseModules, *gm).ok());
        QCOMPARE(gm->callers("l").size(), size_t(2));
        QVERIFY(gm->graph.find("l") && gm->graph.find("l_1"));
        QCOMPARE(toDoubles(**result(*gm, "1x1").as<Tensor>())[0] / toDoubles(**randomTensor("1x1", 3))[0], 100.);
    }

    void everyModel_data()
    {
        QTest::addColumn<QString>("stem");
        for (const QString &name : QDir(judge_.path(".")).entryList({ "*.pt2" }))
            if (name != "hand.pt2")
                QTest::newRow(qPrintable(name)) << judge_.path(name.chopped(4));
    }
    // Whatever is regrouped computes the same, is written as an archive and read back.
    void everyModel()
    {
        QFETCH(QString, stem);
        auto gm = readModel((stem + ".pt2").toStdString());
        QVERIFY2(gm.ok(), why(gm));
        const auto given = readNpz((stem + "-in.npz").toStdString());
        std::map<std::string, Tensor> byName(given->begin(), given->end());
        auto run = [&](const GraphModule &m) {
            ArgList args;
            for (const NodeId id : m.graph.placeholders())
                args.push_back(
                    byName.contains(m.graph[id].target) ? Arg(byName.at(m.graph[id].target)) : m.graph[id].args.front());
            auto i = Interpreter::create(m);
            const auto r = i ? i->run(args) : Result<Arg>(i.error());
            return r ? *r : Arg(r.message());
        };
        const Arg before = run(*gm);
        QVERIFY(!before.as<std::string>());
        const auto report = runPass("Regroup", raiseModules, *gm);
        QVERIFY2(report.ok(), why(report));
        QVERIFY(run(*gm) == before);
        const std::string copy = (stem + "-raised.fxt").toStdString();
        const Status written = writeFxt(*gm, copy);
        QVERIFY2(written.ok(), why(written));
        const auto back = readFxt(copy);
        QVERIFY2(back.ok(), why(back));
        QVERIFY(*back == *gm);
        QVERIFY(run(*back) == before);

        // Its code in PyTorch: graphs that operators call, modules in training mode, changed buffers and all.
        ExportOptions options;
        options.directory = (stem + "-code").toStdString();
        for (const NodeId id : gm->graph.placeholders())
            if (byName.contains(gm->graph[id].target))
                options.sampleInputs.emplace_back(byName.at(gm->graph[id].target));
        options.sampleOutput = before;
        const Status exported = exportPython(*gm, options);
        QVERIFY2(exported.ok(), why(exported));
        QVERIFY2(judge_.run({ stem + "-code/model.py" }), judge_.error);
        QVERIFY2(judge_.output.contains(": 0.0"), judge_.output);
    }
};

QTEST_MAIN(TstRaise)
#include "tst_raise.moc"
