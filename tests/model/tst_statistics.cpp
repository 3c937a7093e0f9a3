// Fuseboard tests: statistics count every element once, merge exactly in any order, and equal what torch sees. Cases QO-01 to
// QO-08. GPL-3.0-or-later.
#include <QTest>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>

#include <QElapsedTimer>
#include <QJsonArray>

#include "model/exec/statistics.h"
#include "model/exec/tensor_ops.h"
#include "model/io/fxt.h"
#include "support/graphs.h"
#include "support/python.h"

using namespace fb;

namespace
{

const float kInf = std::numeric_limits<float>::infinity(), kNan = std::nanf("");

TensorStats statsOf(std::initializer_list<std::vector<float>> batches)
{
    TensorStats s;
    for (const auto &b : batches)
        s.add(*makeFloat({ int64_t(b.size()) }, b));
    return s;
}

uint64_t counted(const TensorStats &s)
{
    return std::accumulate(s.bins.begin(), s.bins.end(), uint64_t(0));
}

Tensor randomTensor(std::vector<int64_t> sizes, unsigned seed)
{
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(size_t(std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>())));
    for (float &v : values)
        v = normal(random) * std::exp(8 * normal(random));
    return makeFloat(std::move(sizes), values);
}

double total(const std::vector<double> &bars)
{
    return std::accumulate(bars.begin(), bars.end(), 0.0);
}

} // namespace

class TestStatistics : public QObject
{
    Q_OBJECT
    fbtest::Judge judge;
    std::string path(const char *name) { return judge.path(name).toStdString(); }
    std::string bytes(const Calibration &c)
    {
        const Status s = writeStats(c, path("x.stats"));
        return s ? *readFile(path("x.stats")) : s.message();
    }
    std::string bytes(const TensorStats &s)
    {
        Calibration c;
        c.nodes["t"] = s;
        return bytes(c);
    }
    GraphModule demo()
    {
        auto gm = readFxt((fbtest::sourceDir() + "/resources/demo/digits.fxt").toStdString());
        return gm ? *gm : GraphModule();
    }
    std::string calib() { return (fbtest::sourceDir() + "/resources/demo/calib.npy").toStdString(); }

private slots:
    void zeros() // QO-01
    {
        const TensorStats s = statsOf({ { 0, 0, 0, 0 }, { 0, -0.0f, 0, 0 } });
        QCOMPARE(s.count, uint64_t(8));
        QVERIFY(s.min == 0 && s.max == 0 && !std::signbit(s.min));
        const auto bars = rebin(s, s.min, s.max, 5);
        QCOMPARE(bars, (std::vector<double>{ 0, 0, 8, 0, 0 }));
    }
    void everySampleIsCounted() // QO-02
    {
        const TensorStats s = statsOf({ { -2.7f, -2.5f, 2.5f, 2.7f } });
        const auto bars = rebin(s, s.min, s.max, 8);
        for (size_t i = 0; i < 8; ++i)
            QVERIFY(std::fabs(bars[i] - (i % 7 ? 0 : 2)) < 1e-9);
        TensorStats u;
        std::mt19937 random(1);
        std::uniform_real_distribution<float> uniform(0, 1.9f);
        std::vector<float> values(100000);
        for (float &v : values)
            v = uniform(random);
        u.add(*makeFloat({ 100000 }, values));
        QCOMPARE(counted(u), uint64_t(100000));
        QVERIFY(std::fabs(total(rebin(u, u.min, u.max, 64)) - 100000) < 1e-6);
    }
    void tinyThenNormal() // QO-03
    {
        const TensorStats s = statsOf({ { 0, 1e-6f }, { 0, 1 } });
        QCOMPARE(s.bins.size(), size_t(kHistogramBins));
        QCOMPARE(counted(s), uint64_t(4));
        QVERIFY(s.max == 1 && std::fabs(total(rebin(s, 0, 1, 2048)) - 4) < 1e-9);
    }
    void nonFinite() // QO-04
    {
        const TensorStats s = statsOf({ { 1, 2 }, { kNan, 1, kInf, -kInf, -kNan, kInf }, { std::bit_cast<float>(0x7f800001u) } });
        QCOMPARE(s.nan, uint64_t(3));
        QCOMPARE(s.positiveInf, uint64_t(2));
        QCOMPARE(s.negativeInf, uint64_t(1));
        QCOMPARE(s.count, uint64_t(3));
        QCOMPARE(counted(s), uint64_t(3));
        QVERIFY(s.min == 1 && s.max == 2 && double(s.sum) == 4);
        const TensorStats none = statsOf({ { kNan } });
        QVERIFY(none.count == 0 && none.nan == 1 && none.mean() == 0);
        TensorStats good = statsOf({ { 3 } });
        good.merge(none);
        QVERIFY(good.min == 3 && good.max == 3 && good.nan == 1);
        TensorStats channels;
        channels.add(*makeFloat({ 1, 2, 2 }, { kNan, kInf, 1, kNan }));
        QVERIFY(channels.channelMin[0] == kInf && channels.channelMax[0] == -kInf && channels.channelMin[1] == 1);
    }
    void oneSidedAndEmpty() // QO-05
    {
        TensorStats s = statsOf({ { -1, -3 } });
        QVERIFY(s.min == -3 && s.max == -1);
        const TensorStats before = s;
        s.add(*makeFloat({ 0, 3 }, {}));
        QVERIFY(s == before);
        s.add(*makeTensor(DType::Int64, { 3 }));
        QVERIFY(s == before);
    }
    void laterBatchesInside() // QO-07
    {
        std::vector<float> t(101), half(101);
        for (size_t i = 0; i < t.size(); ++i) {
            t[i] = -3 + 0.06f * float(i);
            half[i] = t[i] / 2;
        }
        const TensorStats s = statsOf({ t, half, { 0.1f } });
        QCOMPARE(s.count, uint64_t(203));
        QVERIFY(std::fabs(total(rebin(s, s.min, s.max, 100)) - 203) < 1e-9);
    }
    void binsCoverTheNumberLine()
    {
        for (int bin = 0; bin < kHistogramBins; ++bin) {
            const auto [lo, hi] = binRange(bin);
            if ((bin & 0x7f80) == 0x7f80)
                continue;
            QVERIFY(lo < hi);
            const float inside = std::bit_cast<float>(uint32_t(bin) << 16 | 0x1234);
            QVERIFY(lo <= inside && inside <= hi);
        }
        QVERIFY(binRange(0x3f80) == std::pair(1.0f, 1.0078125f));
        QVERIFY(binRange(0xbf80) == std::pair(-1.0078125f, -1.0f));
    }

    void sumsAreExact()
    {
        ExactSum s;
        for (double v : { 1e38, 1.0, -1e38, std::ldexp(1.0, -298), -0.25, std::ldexp(1.0, 200), -std::ldexp(1.0, 200) })
            s.add(v);
        QCOMPARE(double(s), 0.75);
        s.add(-0.75);
        QCOMPARE(double(s), std::ldexp(1.0, -298));
        s.add(-std::ldexp(1.0, -297));
        QCOMPARE(double(s), -std::ldexp(1.0, -298));
        std::mt19937_64 random(5);
        ExactSum a, b;
        long double wide = 0;
        for (int i = 0; i < 10000; ++i) {
            const double v = std::ldexp(double(int64_t(random())), int(random() % 20) - 60);
            (i % 2 ? a : b).add(v);
            wide += v;
        }
        a.add(b);
        QVERIFY(std::fabs(double(a) - double(wide)) <= 1e-15 * std::fabs(double(wide)));
    }

    void mergesInAnyOrder()
    {
        for (const std::vector<int64_t> &sizes :
            { std::vector<int64_t>{ 12, 5, 7, 9 }, { 12, 40 }, { 12, 3, 2 }, { 12 }, { 12, 4, 3000 } }) {
            const Tensor t = randomTensor(sizes, unsigned(sizes.size()));
            TensorStats whole, forward, backward, single;
            whole.add(*t);
            std::vector<TensorStats> shards;
            for (int64_t begin = 0, step = 1; begin < 12; begin += step, step = step % 4 + 1)
                shards.emplace_back().add(**sliceRows(t, begin, std::min<int64_t>(begin + step, 12)));
            for (const TensorStats &s : shards)
                forward.merge(s);
            for (size_t i = shards.size(); i-- > 0;)
                backward.merge(shards[i]);
            for (int64_t i = 11; i >= 0; --i)
                single.add(**sliceRows(t, i, i + 1));
            QVERIFY(forward == backward && bytes(forward) == bytes(backward));
            QCOMPARE(forward.bins, whole.bins);
            QVERIFY(forward.min == whole.min && forward.max == whole.max && forward.count == whole.count);
            if (sizes.size() > 1)
                QVERIFY(forward == whole && single == whole && bytes(forward) == bytes(whole));
            long double sum = 0;
            for (double v : toDoubles(*t))
                sum += v;
            QVERIFY(
                std::fabs(double(whole.sum) - double(sum)) <= 1e-12 * std::sqrt(double(whole.sumSquares) * double(whole.count)));
        }
        // Sizes that change drop the channels for good, whatever the order.
        TensorStats a, b, c;
        a.add(*randomTensor({ 2, 3, 4 }, 1));
        b.add(*randomTensor({ 2, 5, 4 }, 2));
        c.add(*randomTensor({ 2, 3, 4 }, 3));
        TensorStats abc = a, cba = c;
        abc.merge(b);
        abc.merge(c);
        cba.merge(a);
        cba.merge(b);
        QVERIFY(abc == cba && abc.channelsVary && abc.channelMin.empty());
    }

    void channels()
    {
        const Tensor t = randomTensor({ 4, 6, 5, 5 }, 9);
        TensorStats s;
        s.add(*t);
        const auto m = minMax(t, 1);
        QVERIFY(s.channelMin == m->min && s.channelMax == m->max);
        auto last = std::make_shared<TensorData>(*t); // the same elements seen as 4 x 5 x 5 x 6
        last->sizes = { 4, 5, 5, 6 };
        last->strides = { 150, 5, 1, 25 };
        TensorStats l;
        l.add(*last);
        QVERIFY(l.bins == s.bins && l.min == s.min && l.channelMin.size() == 5);
    }
    void otherTypes()
    {
        const double d[] = { 1.5, -2, 0.1 };
        const uint16_t half[] = { 0x3c00, 0xc000, 0x7c00 }; // 1, -2, inf
        TensorStats s;
        s.add(*makeTensor(DType::Float64, { 3 }, d));
        QVERIFY(s.count == 3 && s.min == -2 && s.max == 1.5f && s.dtype == "float64");
        s.add(*makeTensor(DType::Float16, { 3 }, half));
        QVERIFY(s.count == 5 && s.positiveInf == 1 && s.dtype == "mixed");
    }

    void filesRoundTrip()
    {
        Calibration c;
        c.samples = 7;
        c.batches = 2;
        c.modelText = "abc";
        c.nodes["a"].add(*randomTensor({ 2, 3, 4 }, 1));
        c.nodes["b"] = statsOf({ { kNan, kInf } });
        const std::string all = bytes(c);
        auto back = readStats(path("x.stats"));
        QVERIFY2(back, fbtest::why(back));
        QVERIFY(*back == c);
        QCOMPARE(bytes(*back), all);

        const std::string file = path("bad.stats");
        auto read = [&](const std::string &contents) {
            std::ofstream(file, std::ios::binary) << contents;
            const auto r = readStats(file);
            return r ? std::string() : r.message();
        };
        for (size_t n = 0; n < all.size(); ++n)
            QVERIFY(read(all.substr(0, n)).starts_with(file + ": "));
        QVERIFY(read("hello").find("it is not a calibration statistics file") != std::string::npos);
        std::mt19937 random(4);
        for (int i = 0; i < 2000; ++i) {
            std::string changed = all;
            changed[random() % all.size()] ^= char(1 + random() % 255);
            QVERIFY(read(changed).starts_with(file + ": "));
        }
        QVERIFY(!readStats(path("none.stats")));
    }

    void calibratesAsTorchDoes()
    {
        const GraphModule gm = demo();
        auto data = openData(calib(), gm);
        QVERIFY2(data, fbtest::why(data));
        QCOMPARE(data->samples, uint64_t(256));
        setThreads(1);
        CalibrateOptions options;
        options.batch = 32;
        uint64_t calls = 0, last = 0;
        options.progress = [&](const CalibrationProgress &p) {
            ++calls;
            last = p.done;
            if (p.total != 256 || p.secondsLeft < 0)
                last = 0;
        };
        auto c = calibrate(gm, *data, options);
        QVERIFY2(c, fbtest::why(c));
        QVERIFY(calls == 8 && last == 256 && c->samples == 256 && c->batches == 8);
        QVERIFY2(judge.oracle("stats_oracle.py", { "32", "1" }), judge.error);
        const QJsonObject torch = judge.json().object();
        QCOMPARE(qsizetype(c->nodes.size()), torch.size());
        for (const auto &[name, s] : c->nodes) {
            const QJsonArray t = torch[QString::fromStdString(name)].toArray();
            const double size = std::max(std::fabs(double(s.min)), std::fabs(double(s.max)));
            QCOMPARE(s.count, uint64_t(t[0].toDouble()));
            QVERIFY2(std::fabs(s.min - t[1].toDouble()) <= 1e-6 * size && std::fabs(s.max - t[2].toDouble()) <= 1e-6 * size,
                name.c_str());
            QVERIFY2(std::fabs(s.mean() - t[3].toDouble()) <= 1e-6 * size, name.c_str());
            QCOMPARE(counted(s), s.count);
        }

        // Two shards merge to the bytes of the one run, in either order.
        std::vector<Calibration> shards;
        for (int64_t begin : { 0, 128 }) {
            DataSet part = *data;
            part.inputs[0] = *sliceRows(data->inputs[0], begin, begin + 128);
            part.samples = 128;
            auto shard = calibrate(gm, part, options);
            QVERIFY(shard);
            shards.push_back(*shard);
        }
        Calibration ab = shards[0], ba = shards[1];
        ab.merge(shards[1]);
        ba.merge(shards[0]);
        QCOMPARE(bytes(ab), bytes(*c));
        QCOMPARE(bytes(ba), bytes(*c));
    }

    void cancelled()
    {
        const GraphModule gm = demo();
        auto data = openData(calib(), gm);
        QVERIFY(data);
        CancelFlag cancel = false;
        CalibrateOptions options;
        options.batch = 16;
        options.cancel = &cancel;
        options.progress = [&](const CalibrationProgress &) { cancel = true; };
        auto c = calibrate(gm, *data, options);
        QVERIFY(!c);
        QCOMPARE(c.message(), std::string(Interpreter::kCancelled));
    }

    void dataThatDoesNotFit()
    {
        const GraphModule gm = demo();
        auto says = [&](const std::string &file) {
            auto d = openData(file, gm);
            return d ? std::string() : d.message();
        };
        auto ends = [](const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; };
        QVERIFY(ends(says(path("none")), "none: there is no such data"));
        QDir().mkpath(judge.path("empty"));
        QVERIFY(ends(says(path("empty")), "empty: the folder holds no .npy, .npz or .safetensors file"));
        QVERIFY(writeNpy(makeTensor(DType::Float32, { 4, 3, 8, 8 }), path("shape.npy")));
        QVERIFY2(ends(says(path("shape.npy")),
                     "shape.npy: the array for input x is float32 4x3x8x8, and the model takes float32 Nx1x8x8"),
            says(path("shape.npy")).c_str());
        QVERIFY(writeNpy(makeTensor(DType::UInt8, { 4, 1, 8, 8 }), path("bytes.npy")));
        QVERIFY(ends(says(path("bytes.npy")), "is uint8 4x1x8x8, and the model takes float32"));
        QVERIFY(writeNpy(makeTensor(DType::Float32, { 0, 1, 8, 8 }), path("zero.npy")));
        QVERIFY(ends(says(path("zero.npy")), "it holds no samples"));
        QVERIFY(writeNpz({}, path("nothing.npz")));
        QVERIFY(ends(says(path("nothing.npz")), "it holds no array for input x"));
        QVERIFY(ends(says((fbtest::sourceDir() + "/README.md").toStdString()), "arrays are not read from a \".md\" file"));

        QVERIFY(writeNpy(makeTensor(DType::Float64, { 4, 1, 8, 8 }), path("double.npy")));
        auto doubles = openData(path("double.npy"), gm);
        QVERIFY(doubles && doubles->inputs[0]->dtype == DType::Float32);
        // By name whatever the order; what is left over is kept.
        const Tensor labels = makeTensor(DType::Int64, { 4 }), x = makeTensor(DType::Float32, { 4, 1, 8, 8 });
        QDir().mkpath(judge.path("parts"));
        QVERIFY(writeNpz({ { "y", labels }, { "x", x } }, path("parts/1.npz"))
            && writeNpz({ { "y", labels }, { "x", x } }, path("parts/2.npz")));
        auto parts = openData(path("parts"), gm);
        QVERIFY2(parts, fbtest::why(parts));
        QVERIFY(parts->samples == 8 && parts->extra["y"]->sizes[0] == 8);
    }

    // QO-08: what counting costs, printed; ratios are for ./dev bench.
    void speed()
    {
        const Tensor t = randomTensor({ 4, 64, 128, 128 }, 3);
        TensorStats s;
        QElapsedTimer timer;
        timer.start();
        s.add(*t);
        qInfo("%.2f ns an element", double(timer.nsecsElapsed()) / double(t->numel()));
        QCOMPARE(s.count, uint64_t(t->numel()));
    }
};

QTEST_GUILESS_MAIN(TestStatistics)
#include "tst_statistics.moc"
