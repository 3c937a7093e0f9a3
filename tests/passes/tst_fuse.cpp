// Fusion against torch.ao's fuse_fx, live, and the cases FU-01 to FU-08. GPL-3.0-or-later.
#include <QTest>

#include <nlohmann/json.hpp>

#include "model/exec/interpreter.h"
#include "model/exec/tensor_ops.h"
#include "model/io/fxt.h"
#include "model/ir/lint.h"
#include "model/text/text.h"
#include "passes/fuse.h"
#include "support/python.h"

using namespace fb;
using json = nlohmann::json;

namespace
{

std::string all(const std::vector<PassItem> &items)
{
    std::string text;
    for (const PassItem &i : items)
        text += i.what + "\n";
    return text;
}

bool mentions(const std::vector<PassItem> &items, std::string_view text)
{
    return all(items).find(text) != std::string::npos;
}

} // namespace

class TstFuse : public QObject
{
    Q_OBJECT

    fbtest::Judge judge_;
    json facts_;

    GraphModule read(const std::string &name)
    {
        auto gm = readFxt(judge_.path(QString::fromStdString(name + ".fxt")).toStdString());
        if (!gm)
            QTest::qFail(gm.message().c_str(), __FILE__, __LINE__);
        return gm ? std::move(*gm) : GraphModule();
    }
    NamedTensors tensors(const std::string &name)
    {
        auto t = readSafetensors(judge_.path(QString::fromStdString(name + ".safetensors")).toStdString());
        return t ? *t : NamedTensors();
    }
    // Runs and compares with the eager outputs.
    void compareOutputs(const std::string &name, const GraphModule &gm)
    {
        auto interpreter = Interpreter::create(gm);
        QVERIFY2(interpreter.ok(), interpreter.ok() ? "" : interpreter.message().c_str());
        std::vector<Arg> inputs;
        const NamedTensors given = tensors(name + ".in"), expected = tensors(name + ".out");
        for (size_t i = 0; i < given.size(); ++i)
            for (const auto &[key, t] : given)
                if (key == std::to_string(i))
                    inputs.push_back(t);
        auto out = interpreter->run(inputs);
        QVERIFY2(out.ok(), out.ok() ? "" : out.message().c_str());
        ArgList outputs = out->sequence() ? out->sequence()->items : ArgList{ *out };
        QCOMPARE(outputs.size(), expected.size());
        for (const auto &[key, want] : expected) {
            auto d = difference(*outputs[std::stoul(key)].as<Tensor>(), want);
            QVERIFY2(d.ok(), d.ok() ? "" : d.message().c_str());
            double largest = 1;
            for (double v : toDoubles(*want))
                largest = std::max(largest, std::abs(v));
            QVERIFY2(d->sameShape && d->maxAbs <= 1e-5 * largest,
                qPrintable(QString("output %1 is off by %2").arg(key.c_str()).arg(d->maxAbs)));
        }
    }
    Result<PassReport> fuse(GraphModule &gm) { return runPass("Fuse all", fuseAll, gm); }

private slots:
    void initTestCase()
    {
        QVERIFY2(judge_.oracle("fuse_oracle.py"), judge_.error);
        facts_ = json::parse(judge_.output.toStdString());
    }

    // Node for node, name for name, weight for weight what fuse_fx makes.
    void sameAsTorch_data()
    {
        QTest::addColumn<QString>("name");
        for (const auto &[name, fact] : facts_.items())
            if (fact.contains("graph"))
                QTest::newRow(name.c_str()) << QString::fromStdString(name);
    }
    void sameAsTorch()
    {
        QFETCH(QString, name);
        const std::string model = name.toStdString();
        const json &fact = facts_[model];
        GraphModule gm = read(model);
        const GraphModule before = gm;
        auto report = fuse(gm);
        QVERIFY2(report.ok(), report.ok() ? "" : report.message().c_str());
        QCOMPARE(QString::fromStdString(torchGraphText(gm)), QString::fromStdString(fact["graph"].get<std::string>()));
        QCOMPARE(report->changed, !(gm == before));

        // torch lists the state in order of use, Fuseboard as the modules stand.
        std::set<std::string> names;
        for (const auto &[fqn, e] : gm.tensors)
            if (e->persistent)
                names.insert(fqn);
        QCOMPARE(json(names).dump().c_str(), json(fact["state"].get<std::set<std::string>>()).dump().c_str());
        for (const auto &[fqn, want] : tensors(model + ".weights"))
            QVERIFY2(sameContents(gm.tensor(fqn), want), (fqn + " differs from fuse_fx's").c_str());
        for (const auto &[path, repr] : fact["repr"].items()) {
            const ModuleInfo *m = gm.modules.find(path);
            QVERIFY2(m, path.c_str());
            const ModuleInfo *inside = gm.modules.find(path + ".0");
            const std::string text = repr.get<std::string>();
            QVERIFY2(text.starts_with(m->shortClass() + "("), text.c_str());
            if (inside && text.find("(0): ") != std::string::npos)
                QVERIFY2(
                    text.find("(0): " + inside->shortClass() + "(" + inside->extraRepr + ")") != std::string::npos, text.c_str());
            else if (m->kind == ModuleKind::Nn)
                QCOMPARE(text.c_str(), (m->shortClass() + "(" + m->extraRepr + ")").c_str());
        }
        compareOutputs(model, gm);

        // Once fused there is nothing left to do.
        auto again = fuse(gm);
        QVERIFY(again.ok() && !again->changed);
    }

    // Where fuse_fx is wrong or stops early: the output stays, and the report says what was done or why not.
    void different_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("done");
        QTest::addColumn<QString>("kept");
        QTest::newRow("FU-01") << "conv_twice_one_bn"
                               << ""
                               << "c kept: it is called twice (c, c_1), BatchNorm on only one";
        QTest::newRow("two BatchNorms") << "conv_twice_two_bns"
                                        << ""
                                        << "c kept: it is called twice (c, c_1) with different BatchNorms (b, d)";
        QTest::newRow("one ReLU") << "conv_twice_one_relu"
                                  << ""
                                  << "c kept: it is called twice (c, c_1), ReLU on only one";
        QTest::newRow("FU-05") << "linear_bn_three_dims"
                               << ""
                               << "a kept: its output is 3-D (2x3x3), where n works on axis 1 and Linear on the last";
        QTest::newRow("linear bn relu") << "linear_bn_relu"
                                        << "_0 + _1 + _2 -> LinearReLU"
                                        << "";
        QTest::newRow("transposed bn relu") << "transposed_bn_relu"
                                            << "_0 + _1 -> ConvTranspose2d"
                                            << "_2 kept: torch.ao has no module for ConvTranspose2d with ReLU";
        QTest::newRow("FU-08") << "functional_conv"
                               << ""
                               << "b kept: it follows conv2d, a call of torch.conv2d whose weight is no module's";
        QTest::newRow("weight read") << "weight_read_elsewhere"
                                     << ""
                                     << "c kept: its weight is also read directly by c_weight";
        QTest::newRow("no statistics") << "no_statistics"
                                       << ""
                                       << "c kept: b has no running statistics";
        QTest::newRow("in place between") << "changed_in_place_between"
                                          << "c + b + relu -> ConvReLU2d"
                                          << "";
    }
    void different()
    {
        QFETCH(QString, name);
        QFETCH(QString, done);
        QFETCH(QString, kept);
        GraphModule gm = read(name.toStdString());
        auto report = fuse(gm);
        QVERIFY2(report.ok(), report.ok() ? "" : report.message().c_str());
        QCOMPARE(report->changed, !done.isEmpty());
        QCOMPARE(report->changed, !report->done.empty());
        QVERIFY2(mentions(report->done, done.toStdString()), all(report->done).c_str());
        QVERIFY2(mentions(report->kept, kept.toStdString()), all(report->kept).c_str());
        compareOutputs(name.toStdString(), gm);
    }

    // Near misses of models that torch treats alike.
    void reasons_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("kept");
        QTest::newRow("FU-02 three") << "users_three"
                                     << "c kept: its output has 2 other users (relu, output)";
        QTest::newRow("FU-02 residual") << "users_residual"
                                        << "c kept: its output has 1 other user (add)";
        QTest::newRow("FU-03") << "bn_before_conv"
                               << "b kept: it stands before c, which pads with zeros after it";
        QTest::newRow("FU-07 torch.relu") << "spelled_torch"
                                          << "relu kept: torch.relu does not fuse with c; replace it by nn.ReLU";
        QTest::newRow("FU-07 method") << "spelled_method"
                                      << "relu kept: .relu() does not fuse with c";
        QTest::newRow("FU-07 clamp") << "spelled_clamp"
                                     << "clamp kept: .clamp() never fuses with c";
        QTest::newRow("ReLU6") << "other_activations"
                               << "_2 kept: ReLU6 never fuses with _0; only ReLU does";
        QTest::newRow("Hardswish") << "other_activations"
                                   << "_4 kept: Hardswish never fuses with _3";
        QTest::newRow("Dropout") << "other_activations"
                                 << "_8 kept: Dropout never fuses with _7";
    }
    void reasons()
    {
        QFETCH(QString, name);
        QFETCH(QString, kept);
        GraphModule gm = read(name.toStdString());
        auto report = fuse(gm);
        QVERIFY2(report.ok(), report.ok() ? "" : report.message().c_str());
        QVERIFY2(mentions(report->kept, kept.toStdString()), all(report->kept).c_str());
    }

    void trainingMode()
    {
        GraphModule gm = read("conv_bn");
        ModuleInfo bn = *gm.modules.find("1");
        bn.training = true;
        gm.modules.set("1", bn);
        auto report = fuse(gm);
        QVERIFY(report.ok() && !report->changed);
        QVERIFY2(mentions(report->kept, "_0 kept: _1 is in training mode"), all(report->kept).c_str());
    }

    void linearWithoutShapes()
    {
        GraphModule gm = read("linear_bn_relu");
        for (NodeId id : std::vector(gm.graph.order()))
            gm.graph.setMeta(id, std::nullopt);
        auto report = fuse(gm);
        QVERIFY(report.ok() && !report->changed);
        QVERIFY2(mentions(report->kept, "_0 kept: its output is not known to be 2-D"), all(report->kept).c_str());
    }

    void selection()
    {
        GraphModule gm = read("conv_bias_bn_relu");
        const GraphModule before = gm;
        auto id = [&](const char *name) { return gm.graph.find(name); };
        auto none = fuseSelection(gm, { id("_2") });
        QVERIFY(!none.ok() && gm == before);
        auto some = fuseSelection(gm, { id("_0"), id("_1") });
        QVERIFY2(some.ok(), some.ok() ? "" : some.message().c_str());
        QCOMPARE(all(some->done).c_str(), "_0 + _1 -> Conv2d\n");
        QVERIFY(lint(gm).empty());
        compareOutputs("conv_bias_bn_relu", gm);

        GraphModule users = read("users_residual");
        auto refused = fuseSelection(users, { users.graph.find("c"), users.graph.find("relu") });
        QVERIFY(!refused.ok());
        QCOMPARE(refused.message().c_str(), "nothing in the selection fuses: c kept: its output has 1 other user (add)");
    }
};

QTEST_GUILESS_MAIN(TstFuse)
#include "tst_fuse.moc"
