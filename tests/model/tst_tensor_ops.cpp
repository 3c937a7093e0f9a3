// Fuseboard tests: what passes compute with tensors equals torch to the last bit. GPL-3.0-or-later.
#include <QTest>

#include <cmath>
#include <cstring>
#include <map>

#include "model/exec/tensor_ops.h"
#include "model/io/fxt.h"
#include "support/graphs.h"
#include "support/python.h"

using namespace fb;

class TestTensorOps : public QObject
{
    Q_OBJECT
    std::map<std::string, Tensor> torch;

private slots:
    void initTestCase()
    {
        fbtest::Judge judge;
        QVERIFY2(judge.oracle("tensor_ops_oracle.py", { judge.path("ops.npz") }), judge.error);
        auto arrays = readNpz(judge.path("ops.npz").toStdString());
        QVERIFY2(arrays, fbtest::why(arrays));
        for (auto &[name, t] : *arrays)
            torch[name] = t;
    }

    void folds_data()
    {
        QTest::addColumn<int>("transposedGroups");
        for (const char *name : { "conv", "conv_bias", "conv1d", "linear" })
            QTest::newRow(name) << 0;
        QTest::newRow("transposed1") << 1;
        QTest::newRow("transposed2") << 2;
    }
    void folds()
    {
        QFETCH(int, transposedGroups);
        const std::string c = std::string(QTest::currentDataTag()) + ".";
        auto r = foldBatchNorm(torch[c + "w"], torch[c + "b"], torch[c + "mean"], torch[c + "var"], 1e-5, torch[c + "gamma"],
            torch[c + "beta"], transposedGroups > 0, std::max(transposedGroups, 1));
        QVERIFY2(r, fbtest::why(r));
        QVERIFY(sameContents(r->weight, torch[c + "fw"]));
        QVERIFY(sameContents(r->bias, torch[c + "fb"]));
    }
    void foldsWithoutAffine()
    {
        auto r = foldBatchNorm(makeFloat({ 1, 1, 1, 1 }, { 2 }), nullptr, makeFloat({ 1 }, { 3 }), makeFloat({ 1 }, { 4 }), 0,
            nullptr, nullptr, false, 1);
        QVERIFY2(r, fbtest::why(r));
        QCOMPARE(toDoubles(*r->weight)[0], 1.0);
        QCOMPARE(toDoubles(*r->bias)[0], -1.5);
        auto wrong = foldBatchNorm(makeFloat({ 2, 1, 1, 1 }, { 1, 2 }), nullptr, makeFloat({ 3 }, { 0, 0, 0 }),
            makeFloat({ 3 }, { 1, 1, 1 }), 0, nullptr, nullptr, false, 1);
        QVERIFY(!wrong && wrong.message().starts_with("folding BatchNorm: "));
    }

    void quantizes()
    {
        const Tensor x = torch["quantize.x"];
        const QuantParams whole{ { 0.037 }, { 100 }, -1 }, channels{ { 0.1, 1.0 / 3, 0.02 }, { 0, 3, -5 }, 1 };
        auto q = quantize(x, whole, DType::QUInt8), c = quantize(x, channels, DType::QInt8);
        QVERIFY2(q, fbtest::why(q));
        QVERIFY2(c, fbtest::why(c));
        QVERIFY((*q)->quant == whole && (*c)->quant == channels);
        QVERIFY(std::memcmp((*q)->data, torch["quantize.tensor"]->data, 60) == 0);
        QVERIFY(std::memcmp((*c)->data, torch["quantize.channel"]->data, 60) == 0);
        QVERIFY(sameContents(*dequantize(*q), torch["quantize.tensor_back"]));
        QVERIFY(sameContents(*dequantize(*c), torch["quantize.channel_back"]));
        QVERIFY(!quantize(x, QuantParams{}, DType::QInt8));
    }

    void findsMinMax()
    {
        const float inf = HUGE_VALF, nan = std::nanf("");
        const Tensor t = makeFloat({ 2, 3 }, { 1, -5, inf, nan, 2, 3 });
        QCOMPARE(minMax(t)->min, std::vector<float>{ -5 });
        QCOMPARE(minMax(t)->max, std::vector<float>{ 3 });
        QCOMPARE(minMax(t, 0)->min, (std::vector<float>{ -5, 2 }));
        QCOMPARE(minMax(t, 1)->max, (std::vector<float>{ 1, 2, 3 }));
        QVERIFY(minMax(makeFloat({ 0 }, {})).error().message.find("no elements") != std::string::npos);
        QVERIFY(minMax(makeFloat({ 1 }, { nan })).error().message.find("no finite element") != std::string::npos);
        QVERIFY(!minMax(t, 2));
    }

    void rows()
    {
        const Tensor t = makeFloat({ 3, 2 }, { 1, 2, 3, 4, 5, 6 });
        auto middle = sliceRows(t, 1, 3);
        QVERIFY(middle && (*middle)->data == t->data + 8);
        QVERIFY(sameContents(*catRows({ *sliceRows(t, 0, 1), *middle }), t));
        QVERIFY(!sliceRows(t, 1, 4) && !sliceRows(t, 2, 1) && !sliceRows(makeFloat({}, { 1 }), 0, 1));
        auto q = std::make_shared<TensorData>(
            *makeTensor(DType::QInt8, { 3, 2 }, nullptr, QuantParams{ { 1, 2, 3 }, { 0, 1, 2 }, 0 }));
        QCOMPARE((*sliceRows(q, 1, 2))->quant->scales, std::vector<double>{ 2 });
    }

    void differs()
    {
        const Tensor ref = makeFloat({ 2 }, { 3, 4 }), off = makeFloat({ 2 }, { 3, 4.5 });
        auto d = difference(off, ref);
        QCOMPARE(d->maxAbs, 0.5);
        QCOMPARE(d->relative, 0.1);
        QCOMPARE(d->sqnrDb, 20.0);
        QVERIFY(std::fabs(d->cosine - 27.0 / (5 * std::sqrt(29.25))) < 1e-12);
        QVERIFY(std::isinf(difference(ref, ref)->sqnrDb) && difference(ref, ref)->cosine == 1);
        QVERIFY(!difference(ref, makeFloat({ 1, 2 }, { 3, 4 }))->sameShape);
    }
};

QTEST_GUILESS_MAIN(TestTensorOps)
#include "tst_tensor_ops.moc"
