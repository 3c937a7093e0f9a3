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
            QWARN((n.node + ": " + n.reason).c_str());
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
                QWARN((what + ": " + problem).c_str());
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
};

QTEST_MAIN(TstInterpreter)
#include "tst_interpreter.moc"
