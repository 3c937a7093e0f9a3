// The interpreter against real PyTorch, node by node. GPL-3.0-or-later.
//
// tests/oracle/run_fx.py traces each model and writes what torch.fx.Interpreter gave for every node; here the same archive runs
// on the same inputs. FUSEBOARD_MODELS="resnet50 vit_b_16" compares other models of torchvision.
#include <QTest>

#include <cmath>
#include <map>
#include <set>

#include "model/exec/interpreter.h"
#include "model/exec/tensor_ops.h"
#include "model/io/fxt.h"
#include "support/python.h"

using namespace fb;

namespace
{

void tensorsOf(const Arg &a, std::vector<Tensor> &out)
{
    forEachTensor(a, [&](const Tensor &t) { out.push_back(t); });
}

// Empty when equal bit for bit (nan equals nan) or within 1e-6 of the largest value; counts what was not bit equal.
std::string unlike(const Tensor &mine, const Tensor &torchs, int &inexact)
{
    if (mine->sizes != torchs->sizes)
        return "shape " + mine->shapeText() + " instead of " + torchs->shapeText();
    const std::vector<double> a = toDoubles(*mine), b = toDoubles(*torchs);
    double worst = 0, largest = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
            continue;
        if (!std::isfinite(a[i]) || !std::isfinite(b[i]))
            return "nan or inf in one alone";
        worst = std::max(worst, std::abs(a[i] - b[i]));
    }
    for (const double v : b)
        if (std::isfinite(v))
            largest = std::max(largest, std::abs(v));
    inexact += worst > 0;
    return worst <= 1e-6 * largest ? std::string()
                                   : "off by " + std::to_string(worst) + " where the largest is " + std::to_string(largest);
}

// A converted graph as passes/quantize.h describes it, over tensors of run_quantized.py.
GraphModule quantizedGraph(const std::map<std::string, Tensor> &arrays, bool perChannel)
{
    GraphModule gm;
    const auto packed = [&](const std::string &name) {
        const Tensor &w = arrays.at(name);
        QuantParams q{ { .02 }, { 0 }, -1 };
        if (perChannel) {
            const auto n = size_t(w->sizes[0]);
            q = { {}, std::vector<int64_t>(n, 0), 0 };
            for (size_t i = 0; i < n; ++i) // torch.linspace, from both ends
                q.scales.push_back(
                    i < n / 2 ? .01 + .02 / double(n - 1) * double(i) : .03 - .02 / double(n - 1) * double(n - 1 - i));
        }
        return *quantize(w, q, DType::QInt8);
    };
    const auto module
        = [&](const std::string &path, const std::string &cls, const std::string &w, const std::string &b, Kwargs attrs) {
              ModuleInfo m;
              m.path = path;
              m.className = cls;
              m.kind = ModuleKind::Nn;
              m.attrs = std::move(attrs);
              gm.addModule(m);
              gm.tensors.set(path + ".weight", { packed(w), false, true });
              if (!b.empty())
                  gm.tensors.set(path + ".bias", { arrays.at(b), false, true });
          };
    const auto add = [&](Opcode op, const std::string &name, const std::string &target, ArgList args, Kwargs kwargs = {}) {
        Node n;
        n.op = op;
        n.name = name;
        n.target = target;
        n.args = std::move(args);
        n.kwargs = std::move(kwargs);
        return Arg(gm.graph.append(n));
    };
    const Arg zeros = Arg::ints({ 0, 0 }), ones = Arg::ints({ 1, 1 });
    module("conv", "torch.ao.nn.intrinsic.quantized.modules.conv_relu.ConvReLU2d", "w", "b",
        { { "stride", Arg::ints({ 2, 2 }) }, { "padding", ones }, { "dilation", ones }, { "groups", 1 },
            { "padding_mode", "zeros" }, { "scale", .1 }, { "zero_point", 3 } });
    module("depthwise", "torch.ao.nn.quantized.modules.conv.Conv2d", "w1", "",
        { { "stride", ones }, { "padding", ones }, { "dilation", ones }, { "groups", 6 }, { "bias", Arg() },
            { "padding_mode", "zeros" }, { "scale", .2 }, { "zero_point", 60 } });
    module("linear", "torch.ao.nn.quantized.modules.linear.Linear", "lw", "lb",
        { { "scale", .15 }, { "zero_point", 70 }, { "bias", true } });
    const Arg x = add(Opcode::Placeholder, "x", "x", {});
    const Arg q = add(Opcode::CallFunction, "q", "torch.quantize_per_tensor", { x, .05, 64, ArgDType{ "torch.quint8" } });
    const Arg c = add(Opcode::CallModule, "c", "conv", { q });
    const Arg d = add(Opcode::CallModule, "d", "depthwise", { c });
    const Arg a = add(Opcode::CallFunction, "a", "torch.ops.quantized.add", { c, d, .25, 40 });
    add(Opcode::CallFunction, "r", "torch.ops.quantized.add_relu", { a, d, .25, 0 });
    const Arg k = add(Opcode::CallFunction, "k", "torch.cat", { Arg::list({ a, d }), 1 });
    const Arg m = add(Opcode::CallFunction, "m", "torch.nn.functional.max_pool2d", { k, 2 });
    const Arg p = add(Opcode::CallFunction, "p", "torch.nn.functional.adaptive_avg_pool2d", { m, ones });
    const Arg f = add(Opcode::CallFunction, "f", "torch.flatten", { p, 1 });
    const Arg h = add(Opcode::CallFunction, "h", "torch.clamp", { f, 0.0, 2.0 });
    const Arg o = add(Opcode::CallModule, "o", "linear", { h });
    add(Opcode::Output, "output", "output", { add(Opcode::CallMethod, "out", "dequantize", { o }) });
    return gm;
}

// x through one call.
GraphModule single(Opcode op, const std::string &target, ArgList more = {})
{
    GraphModule gm;
    Node p;
    p.op = Opcode::Placeholder;
    p.name = p.target = "x";
    const NodeId x = gm.graph.append(p);
    Node n;
    n.op = op;
    n.name = "call";
    n.target = target;
    n.args = std::move(more);
    n.args.insert(n.args.begin(), Arg(x));
    const NodeId call = gm.graph.append(n);
    Node o;
    o.op = Opcode::Output;
    o.name = o.target = "output";
    o.args = { Arg(call) };
    gm.graph.append(o);
    return gm;
}

Result<Arg> runOnce(const GraphModule &gm, const std::vector<Arg> &inputs, const RunOptions &options = {})
{
    auto i = Interpreter::create(gm);
    return i ? i->run(inputs, options) : Result<Arg>(i.error());
}

} // namespace

class TstInterpreter : public QObject
{
    Q_OBJECT

    fbtest::Judge judge_;
    std::set<std::string> names_;

private slots:
    void initTestCase()
    {
        const QByteArray more = qgetenv("FUSEBOARD_MODELS");
        QStringList models{ "demo", "resnet18", "mobilenet_v2", "convolutions", "convolutions_1d", "convolutions_3d",
            "activations", "in_place", "norms", "pooling", "shapes_2d", "linears", "functional", "arithmetic", "shape_flow",
            "recurrent", "attention", "script_leaf", "tied_and_constants" };
        if (!more.isEmpty())
            models = QString::fromUtf8(more).split(' ');
        QVERIFY2(judge_.oracle("run_fx.py", QStringList{ judge_.path(".") } + models), judge_.error);
        for (const QString &m : models)
            names_.insert(m.toStdString());
    }

    void equalsTorch_data()
    {
        QTest::addColumn<QString>("name");
        for (const std::string &n : names_)
            QTest::newRow(n.c_str()) << QString::fromStdString(n);
    }
    void equalsTorch()
    {
        QFETCH(QString, name);
        const auto gm = readFxt(judge_.path(name + ".fxt").toStdString());
        QVERIFY2(gm, gm.ok() ? "" : gm.message().c_str());
        for (const NotExecutable &n : notExecutable(*gm))
            qWarning("%s: %s", n.node.c_str(), n.reason.c_str());
        const auto in = readNpz(judge_.path(name + ".in.npz").toStdString());
        const auto out = readNpz(judge_.path(name + ".out.npz").toStdString());
        QVERIFY2(in && out, "the oracle's arrays do not open");
        std::map<std::string, Tensor> expected(out->begin(), out->end());
        std::vector<Arg> inputs;
        for (const auto &[key, t] : *in)
            inputs.emplace_back(t);
        auto interpreter = Interpreter::create(*gm);
        QVERIFY2(interpreter, interpreter.ok() ? "" : interpreter.message().c_str());

        int wrong = 0, inexact = 0, compared = 0;
        const auto compare = [&](const std::string &what, const Tensor &mine) {
            const auto it = expected.find(what);
            if (it == expected.end())
                return;
            ++compared;
            const std::string problem = unlike(isQuantized(mine->dtype) ? *dequantize(mine) : mine, it->second, inexact);
            if (!problem.empty() && ++wrong < 8)
                qWarning("%s: %s", what.c_str(), problem.c_str());
        };
        RunOptions options;
        options.observer = [&](NodeId id, const Arg &value) {
            if (const Tensor *t = value.as<Tensor>(); t && gm->graph[id].op != Opcode::Output)
                compare(gm->graph[id].name, *t);
        };
        const auto result = interpreter->run(inputs, options);
        QVERIFY2(result, result.ok() ? "" : result.message().c_str());
        std::vector<Tensor> outputs;
        tensorsOf(*result, outputs);
        for (size_t i = 0; i < outputs.size(); ++i)
            compare("output." + std::to_string(i), outputs[i]);
        QCOMPARE(wrong, 0);
        QCOMPARE(size_t(compared), expected.size());
        if (inexact)
            qInfo("%s: %d of %d values are not bit equal", qPrintable(name), inexact, compared);
    }

    void quantizedEqualsTorchOnEveryEngine()
    {
        const QString file = judge_.path("quantized.npz");
        QVERIFY2(judge_.oracle("run_quantized.py", { file }), judge_.error);
        const auto npz = readNpz(file.toStdString());
        QVERIFY(npz);
        const std::map<std::string, Tensor> arrays(npz->begin(), npz->end());
        QVERIFY(!quantizedEngines().empty());
        for (const std::string &engine : quantizedEngines()) {
            const GraphModule gm = quantizedGraph(arrays, engine != "qnnpack");
            int compared = 0, inexact = 0;
            std::string wrong;
            RunOptions options;
            options.engine = engine;
            options.observer = [&](NodeId id, const Arg &value) {
                const auto it = arrays.find(engine + "." + gm.graph[id].name);
                const Tensor *t = value.as<Tensor>();
                if (!t || it == arrays.end())
                    return;
                ++compared;
                wrong += unlike(isQuantized((*t)->dtype) ? *dequantize(*t) : *t, it->second, inexact);
            };
            const auto r = runOnce(gm, { arrays.at("x") }, options);
            QVERIFY2(r, r.ok() ? "" : r.message().c_str());
            QCOMPARE(wrong, std::string());
            QCOMPARE(inexact, 0);
            QCOMPARE(compared, 11);
        }
    }

    void errorsNameTheNode()
    {
        const Tensor x = makeFloat({ 2, 3 }, { 1, 2, 3, 4, 5, 6 });
        const auto message = [&](const GraphModule &gm, std::vector<Arg> inputs) {
            const auto r = runOnce(gm, inputs);
            return r ? std::string("no error") : r.message();
        };
        const auto starts = [](const std::string &text, std::string_view with) {
            return text.starts_with(with) && text.find('\n') == text.npos;
        };
        const std::string shape = message(single(Opcode::CallFunction, "torch.matmul", { x }), { x });
        QVERIFY2(starts(shape, "call: torch.matmul: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"), shape.c_str());
        const std::string unknown = message(single(Opcode::CallFunction, "pkg.thing"), { x });
        QVERIFY2(starts(unknown, "call: pkg.thing: "), unknown.c_str());
        QCOMPARE(notExecutable(single(Opcode::CallFunction, "pkg.thing")).size(), size_t(1));
        const std::string arguments = message(single(Opcode::CallMethod, "flatten", { "no" }), { x });
        QVERIFY2(starts(arguments, "call: method flatten: no overload of aten::flatten takes (Tensor, str)"), arguments.c_str());
        QVERIFY(starts(message(single(Opcode::CallMethod, "relu"), {}), "x: "));
        QVERIFY(starts(message(single(Opcode::CallMethod, "relu"), { x, x }), "the graph takes 1 inputs"));
        GraphModule opaque = single(Opcode::CallModule, "blk");
        ModuleInfo m;
        m.path = "blk";
        m.className = "net.Gate";
        m.kind = ModuleKind::Opaque;
        m.scriptError = "it uses yield\nand more";
        opaque.addModule(m);
        QCOMPARE(message(opaque, { x }),
            std::string(
                "call: Gate: custom module Gate does not script: it uses yield; start the Python worker (--worker) to run it"));
        QCOMPARE(notExecutable(opaque).at(0).reason, std::string("custom module Gate does not script: it uses yield"));
    }

    void inputsStayAsTheyWere()
    {
        const Tensor x = makeFloat({ 2 }, { 1, 2 });
        const auto r = runOnce(single(Opcode::CallMethod, "add_", { 1 }), { x });
        QVERIFY(r);
        QCOMPARE(toDoubles(**r->as<Tensor>()), (std::vector<double>{ 2, 3 }));
        QCOMPARE(toDoubles(*x), (std::vector<double>{ 1, 2 }));
    }

    void whatAnObserverKeepsDoesNotChange()
    {
        GraphModule gm = single(Opcode::CallMethod, "add", { 1 });
        Node n;
        n.op = Opcode::CallMethod;
        n.target = n.name = "mul_";
        n.args = { Arg(gm.graph.find("call")), 10 };
        gm.graph.insertAfter(gm.graph.find("call"), n);
        Arg kept;
        RunOptions options;
        options.observer = [&](NodeId id, const Arg &value) {
            if (gm.graph[id].name == "call")
                kept = value;
        };
        const auto r = runOnce(gm, { makeFloat({ 1 }, { 1 }) }, options);
        QVERIFY(r);
        QCOMPARE(toDoubles(**kept.as<Tensor>()), std::vector<double>{ 2 });
        QCOMPARE(toDoubles(**r->as<Tensor>()), std::vector<double>{ 20 });
    }

    void cancelled()
    {
        CancelFlag cancel{ false };
        RunOptions options;
        options.cancel = &cancel;
        options.observer = [&](NodeId, const Arg &) { cancel = true; };
        const auto r = runOnce(single(Opcode::CallMethod, "relu"), { makeFloat({ 1 }, { 1 }) }, options);
        QVERIFY(!r);
        QCOMPARE(r.message(), std::string(Interpreter::kCancelled));
    }

    void nestedGraph()
    {
        GraphModule gm = single(Opcode::CallModule, "inner");
        ModuleInfo m;
        m.path = "inner";
        m.className = "Inner";
        m.kind = ModuleKind::Graph;
        m.graph = std::make_shared<const GraphModule>(single(Opcode::CallMethod, "neg"));
        gm.addModule(m);
        const auto r = runOnce(gm, { makeFloat({ 1 }, { 3 }) });
        QVERIFY2(r, r.ok() ? "" : r.message().c_str());
        QCOMPARE(toDoubles(**r->as<Tensor>()), std::vector<double>{ -3 });
        QVERIFY(notExecutable(gm).empty());
    }

    // forward(x, w=self.w, *rest, key=2), called as Python calls it: what is left out has its default.
    void nestedGraphBindsAsPython()
    {
        GraphModule inner;
        inner.tensors.set("w", { makeFloat({ 1 }, { 10 }), true, true });
        Graph &g = inner.graph;
        auto add = [&g](Opcode op, std::string name, std::string target, ArgList args) {
            Node n;
            n.op = op;
            n.name = std::move(name);
            n.target = std::move(target);
            n.args = std::move(args);
            return g.append(n);
        };
        const NodeId x = add(Opcode::Placeholder, "x", "x", {});
        const NodeId held = add(Opcode::GetAttr, "held", "w", {});
        const NodeId w = add(Opcode::Placeholder, "w", "w", { held });
        const NodeId rest = add(Opcode::Placeholder, "rest", "*rest", {});
        const NodeId key = add(Opcode::Placeholder, "key", "key", { 2 });
        const NodeId product = add(Opcode::CallFunction, "product", "operator.mul", { w, key });
        const NodeId sum = add(Opcode::CallFunction, "sum", "operator.add", { x, product });
        add(Opcode::Output, "output", "output", { Arg::tuple({ sum, rest }) });

        auto called = [&](ArgList args, Kwargs kwargs) {
            auto i = Interpreter::create(inner);
            const auto r = i ? i->call(args, kwargs) : Result<Arg>(i.error());
            if (!r)
                return QString::fromStdString(r.message());
            const ArgList &items = r->sequence()->items;
            return QStringLiteral("%1 %2").arg(toDoubles(**items[0].as<Tensor>())[0]).arg(items[1].sequence()->items.size());
        };
        const Arg one(makeFloat({ 1 }, { 1 })), five(makeFloat({ 1 }, { 5 }));
        QCOMPARE(called({ one }, {}), "21 0");
        QCOMPARE(called({ one }, { { "key", 3 } }), "31 0");
        QCOMPARE(called({ one, five, 7, 8 }, {}), "11 2");
        QCOMPARE(called({}, { { "w", five }, { "x", one } }), "11 0");
        QCOMPARE(called({ one }, { { "v", five } }), "it takes no argument named 'v'");

        GraphModule gm = single(Opcode::CallModule, "inner");
        ModuleInfo m;
        m.path = "inner";
        m.className = "Inner";
        m.kind = ModuleKind::Graph;
        m.graph = std::make_shared<const GraphModule>(inner);
        gm.addModule(m);
        const auto r = runOnce(gm, { one });
        QVERIFY2(r, r.ok() ? "" : r.message().c_str());
        QCOMPARE(toDoubles(**r->sequence()->items[0].as<Tensor>()), std::vector<double>{ 21 });
    }

    void longChainsAndShapes()
    {
        GraphModule gm = single(Opcode::CallMethod, "relu");
        NodeId last = gm.graph.find("call");
        for (int i = 0; i < 20000; ++i) {
            Node n;
            n.op = Opcode::CallFunction;
            n.target = "operator.add";
            n.args = { Arg(last), 1 };
            last = gm.graph.insertAfter(last, n);
        }
        gm.graph.setArgs(gm.graph.output(), { Arg(last) }, {});
        QVERIFY(propagateShapes(gm, { makeFloat({ 1, 2 }, { 0, 1 }) }));
        QCOMPARE(gm.graph[last].meta->shape, (std::vector<int64_t>{ 1, 2 }));
    }

    void randomTensors()
    {
        QVERIFY2(judge_.run({ "-c", "import torch; torch.manual_seed(7); print(*torch.randn(20).tolist())" }), judge_.error);
        const auto t = randomTensor("20", 7);
        QVERIFY(t);
        std::vector<double> expected;
        for (const QByteArray &v : judge_.output.trimmed().split(' '))
            expected.push_back(v.toDouble());
        QCOMPARE(toDoubles(**t), expected);
        QVERIFY(!sameContents(*randomTensor("20", 7), *randomTensor("20", 7, 1)));
        QCOMPARE((*randomTensor("1x77:int64", 0))->dtype, DType::Int64);
        for (const char *bad : { "x", "2xx3", "2x", "2x3:nonsense", "-1", "2x3:quint8", "99999999999x99999999999" })
            QVERIFY2(!randomTensor(bad, 0), bad);
    }
};

QTEST_MAIN(TstInterpreter)
#include "tst_interpreter.moc"
