// Fuseboard tests: what is written reads back, and NumPy, torch (both) and zipfile agree. GPL-3.0-or-later.
#include <QTest>

#include <csignal>
#include <fstream>

#include <QJsonArray>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/io/files.h"
#include "model/io/fxt.h"
#include "support/graphs.h"
#include "support/python.h"

using namespace fb;
using fbtest::Judge;

namespace
{

// "" when a tensor is what the oracle says it is, else what differs.
QString difference(const Tensor &t, const QJsonObject &facts)
{
    QString dtype = facts["dtype"].toString();
    if (std::string_view name = dtypeName(t->dtype); dtype.toStdString() != name)
        return "dtype " + QString::fromStdString(std::string(name)) + " not " + dtype;
    std::vector<int64_t> shape;
    for (const auto &s : facts["shape"].toArray())
        shape.push_back(s.toInteger());
    if (t->sizes != shape)
        return "shape " + QString::fromStdString(t->shapeText());
    const std::vector<double> values = toDoubles(*t);
    const QJsonArray expected = facts["values"].toArray();
    if (size_t(expected.size()) != values.size())
        return "count";
    for (size_t i = 0; i < values.size(); ++i) {
        const auto e = expected[qsizetype(i)];
        const double want = e.isString() ? e.toString().toDouble() : e.toDouble();
        if (values[i] != want && !(std::isnan(values[i]) && std::isnan(want)))
            return QStringLiteral("value %1: %2 not %3").arg(i).arg(values[i]).arg(want);
    }
    return {};
}

QString difference(const NamedTensors &tensors, const QJsonObject &facts)
{
    if (qsizetype(tensors.size()) != facts.size())
        return "number of tensors";
    for (const auto &[name, t] : tensors)
        if (const QString d = difference(t, facts[QString::fromStdString(name)].toObject()); !d.isEmpty())
            return QString::fromStdString(name) + ": " + d;
    return {};
}

NamedTensors samples()
{
    const std::vector<float> f{ 1.5f, -2, 0, std::numeric_limits<float>::infinity(), 3e-45f, 7 };
    const uint8_t bytes[] = { 0, 1, 1, 0, 1, 0 };
    const int64_t longs[] = { -1, 0, 9007199254740993 };
    auto transposed = std::make_shared<TensorData>(*makeFloat({ 2, 3 }, f));
    transposed->sizes = { 3, 2 };
    transposed->strides = { 1, 3 };
    return { { "f", makeFloat({ 2, 3 }, f) }, { "transposed", transposed }, { "b", makeTensor(DType::Bool, { 6 }, bytes) },
        { "l", makeTensor(DType::Int64, { 3 }, longs) }, { "scalar", makeFloat({}, { 4 }) },
        { "empty", makeTensor(DType::Float64, { 0, 2 }) } };
}

bool exists(const std::string &path)
{
    return ::access(path.c_str(), F_OK) == 0;
}

} // namespace

class TestIo : public QObject
{
    Q_OBJECT
    Judge judge;
    std::string path(const char *name) { return judge.path(name).toStdString(); }

private slots:
    void everythingRoundTrips()
    {
        GraphModule gm = fbtest::everything();
        gm.provenance.share = { 0.25, 0.5 };
        gm.provenance.call = { { Arg::tuple({ gm.graph.placeholders().front(), 1 }) }, { { "flag", true } } };
        const Status written = writeFxt(gm, path("all.fxt"));
        QVERIFY2(written, fbtest::why(written));
        auto read = readFxt(path("all.fxt"));
        QVERIFY2(read, fbtest::why(read));
        QVERIFY(*read == gm);
        QCOMPARE(read->tensor("conv.weight").get(), read->tensor("again.weight").get());
        const ModuleInfo *leaf = read->modules.find("leaf");
        QCOMPARE(leaf->graph->tensor("w").get(), read->tensor("conv.weight").get()); // tied across the leaf's border
        QCOMPARE(leaf->keepFloat, true);
        QCOMPARE(read->modules.find("odd")->scriptError, gm.modules.find("odd")->scriptError);
        QCOMPARE(read->provenance.warnings[0].message, std::string("two names"));
        QCOMPARE(read->provenance.globals, gm.provenance.globals);
        QVERIFY(
            read->provenance.share && read->provenance.share->parameters == 0.25 && read->provenance.share->multiplyAdds == 0.5);
        QVERIFY(read->provenance.call && read->provenance.call->args == gm.provenance.call->args);
        const Node &conv = read->graph[read->graph.find("conv")];
        QCOMPARE(conv.source->code, std::string("x = self.conv(x)"));
        QVERIFY(*conv.stack == *gm.graph[gm.graph.find("conv")].stack);
        // Equal graphs give equal files.
        QVERIFY(writeFxt(*read, path("again.fxt")));
        QCOMPARE(*readFile(path("again.fxt")), *readFile(path("all.fxt")));
    }

    void archiveIsAligned()
    {
        QVERIFY(writeFxt(fbtest::everything(), path("all.fxt")));
        QVERIFY2(judge.oracle("io_oracle.py", { "zip", judge.path("all.fxt") }), judge.error);
        const QJsonObject members = judge.json().object();
        QCOMPARE(members.size(), 3);
        for (const QString &name : members.keys())
            QCOMPARE(members[name].toArray()[1].toInteger() % 64, 0);
    }

    void tracesRoundTrip()
    {
        const std::string demo = (fbtest::sourceDir() + "/resources/demo/digits.fxt").toStdString();
        auto gm = readFxt(demo);
        QVERIFY2(gm, fbtest::why(gm));
        QVERIFY(writeFxt(*gm, path("demo.fxt")));
        auto back = readFxt(path("demo.fxt"));
        QVERIFY2(back, fbtest::why(back));
        QVERIFY(*back == *gm);
        // Nodes of one module call share their stack; tensors lie in the file, not in memory of their own.
        const Graph &g = gm->graph;
        const Node *last = nullptr;
        int shared = 0;
        for (NodeId id : g.order()) {
            const Node &n = g[id];
            if (last && n.stack && last->stack && *n.stack == *last->stack) {
                QCOMPARE(n.stack.get(), last->stack.get());
                ++shared;
            }
            last = &n;
        }
        QVERIFY(shared > 5);
    }

    void savingOverTheOpenFileKeepsItsTensors()
    {
        QVERIFY(writeFxt(fbtest::everything(), path("open.fxt")));
        auto gm = readFxt(path("open.fxt"));
        QVERIFY(gm);
        QVERIFY(writeFxt(*gm, path("open.fxt")));
        QVERIFY(*gm == fbtest::everything());
    }

    void zip64()
    {
        const std::string body(1000, 'x');
        std::string bytes;
        io::ZipWriter writer([&](io::Bytes piece) { bytes += io::textOf(piece); }, 100);
        writer.add("small", { io::bytesOf("abc") });
        writer.add("large", { io::bytesOf(body), io::bytesOf("tail") });
        writer.finish();
        QVERIFY(writeFileAtomically(path("wide.zip"), bytes));
        QVERIFY2(judge.oracle("io_oracle.py", { "zip", judge.path("wide.zip") }), judge.error);
        QCOMPARE(judge.json().object()["large"].toArray()[0].toInteger(), 1004);
        const io::ZipReader zip(io::bytesOf(bytes));
        QCOMPARE(zip.members().size(), size_t(2));
        QCOMPARE(std::string(io::textOf(zip.stored(*zip.find("large"), true))), body + "tail");
    }

    void numpyArraysRead()
    {
        QVERIFY(QDir().mkpath(judge.path("arrays")));
        QVERIFY2(judge.oracle("io_oracle.py", { "arrays", judge.path("arrays") }), judge.error);
        const QJsonObject files = judge.json().object();
        QVERIFY(files.size() > 20);
        for (const QString &name : files.keys()) {
            auto arrays = readArrays(judge.path("arrays/" + name).toStdString());
            QVERIFY2(arrays, fbtest::why(arrays));
            QCOMPARE(name + difference(*arrays, files[name].toObject()), name);
        }
        for (const char *name : { "objects.npy", "fields.npy", "text.npy" }) {
            auto refused = readNpy(path("arrays/") + name);
            QVERIFY(!refused);
            QVERIFY2(refused.message().starts_with(path("arrays/") + name + ": the array has "), refused.message().c_str());
        }
    }

    void arraysWritten()
    {
        for (const char *name : { "out.npz", "out.safetensors" }) {
            const NamedTensors tensors = samples();
            const Status s = writeArrays(tensors, path(name));
            QVERIFY2(s, fbtest::why(s));
            auto back = readArrays(path(name));
            QVERIFY2(back, fbtest::why(back));
            QCOMPARE(back->size(), tensors.size());
            for (const auto &[key, t] : tensors) {
                auto it = std::find_if(back->begin(), back->end(), [&](const auto &b) { return b.first == key; });
                QVERIFY(it != back->end() && sameContents(it->second, t));
            }
        }
        QVERIFY(writeArrays({ { "", samples()[1].second } }, path("out.npy")));
        QVERIFY2(
            judge.oracle("io_oracle.py", { "read", judge.path("out.npz"), judge.path("out.safetensors"), judge.path("out.npy") }),
            judge.error);
        const QJsonObject files = judge.json().object();
        QCOMPARE(difference(samples(), files["out.npz"].toObject()), QString());
        QCOMPARE(difference(samples(), files["out.safetensors"].toObject()), QString());
        QCOMPARE(difference(samples()[1].second, files["out.npy"].toObject()[""].toObject()), QString());

        QVERIFY(writeArrays(samples(), path("out.npy")).message().find("holds one tensor") != std::string::npos);
        QVERIFY(writeArrays(samples(), path("out.txt")).message().find(".npy, .npz or .safetensors") != std::string::npos);
    }

    void torchLoadsTheWeights()
    {
        NamedTensors tensors = samples();
        tensors.emplace_back("tied", tensors[0].second);
        const int8_t raw[] = { -128, -1, 0, 1, 5, 127 };
        tensors.emplace_back("perTensor", makeTensor(DType::QUInt8, { 6 }, raw, QuantParams{ { 0.1 }, { 7 }, -1 }));
        tensors.emplace_back(
            "perChannel", makeTensor(DType::QInt8, { 2, 3 }, raw, QuantParams{ { 0.1, 1.0 / 3, 2 }, { 0, -3, 9 }, 1 }));
        QVERIFY(writeTorchWeights(tensors, path("weights.pt")));
        QStringList pythons{ fbtest::python() };
        if (!fbtest::secondPython().isEmpty())
            pythons << fbtest::secondPython();
        for (const QString &python : pythons) {
            judge.program = python;
            QVERIFY2(judge.oracle("io_oracle.py", { "weights", judge.path("weights.pt") }), judge.error);
            const QJsonObject loaded = judge.json().object();
            QCOMPARE(loaded.size(), qsizetype(tensors.size()));
            for (const auto &[name, t] : tensors) {
                const QJsonObject facts = loaded[QString::fromStdString(name)].toObject();
                if (!t->quant) {
                    QCOMPARE(QString::fromStdString(name) + difference(t, facts), QString::fromStdString(name));
                    continue;
                }
                QCOMPARE(facts["dtype"].toString().toStdString(), std::string(dtypeName(t->dtype)));
                QCOMPARE(facts["axis"].toInt(), t->quant->axis);
                for (size_t i = 0; i < t->quant->scales.size(); ++i) {
                    QCOMPARE(facts["scales"].toArray()[qsizetype(i)].toDouble(), t->quant->scales[i]);
                    QCOMPARE(facts["zeros"].toArray()[qsizetype(i)].toInteger(), t->quant->zeroPoints[i]);
                }
                for (qsizetype i = 0; i < 6; ++i)
                    QCOMPARE(facts["raw"].toArray()[i].toInt(), t->dtype == DType::QInt8 ? raw[i] : uint8_t(raw[i]));
            }
            QCOMPARE(loaded["tied"].toObject()["tied"].toString(), QString("f"));
        }
        judge.program = fbtest::python();
    }

    void failedWritesLeaveTheOldFile()
    {
        const std::string target = path("kept.txt");
        QVERIFY(writeFileAtomically(target, "old"));
        rlimit old = {};
        getrlimit(RLIMIT_FSIZE, &old);
        const rlimit tight{ 4096, old.rlim_max };
        std::signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &tight);
        const Status s = writeFileAtomically(target, std::string(100000, 'x'));
        setrlimit(RLIMIT_FSIZE, &old);
        QVERIFY(!s);
        QCOMPARE(s.message(), target + ": cannot be written: the disk is full; free some space or choose another folder");
        QCOMPARE(*readFile(target), std::string("old"));
        QCOMPARE(QDir(judge.path(".")).entryList({ "kept.txt*" }).size(), 1); // and no litter

        QVERIFY(!writeFxt(fbtest::everything(), "/dev/full"));
        QVERIFY(exists("/dev/full"));
        const Status none = writeFileAtomically(path("none/x.txt"), "x");
        QCOMPARE(none.message(),
            path("none/x.txt") + ": cannot be written: there is no folder " + path("none") + "; make it or choose another");
        QVERIFY(writeFileAtomically(judge.path(".").toStdString(), "x").message().find("it is a folder") != std::string::npos);
        if (::geteuid() != 0) {
            QVERIFY(QDir().mkpath(judge.path("locked")));
            ::chmod(path("locked").c_str(), 0555);
            QVERIFY(writeFileAtomically(path("locked/x"), "x").message().find("no permission to write in") != std::string::npos);
        }
    }

    void symbolicLinksAndModesStay()
    {
        QVERIFY(writeFileAtomically(path("real.txt"), "a"));
        ::chmod(path("real.txt").c_str(), 0640);
        QVERIFY(::symlink(path("real.txt").c_str(), path("link.txt").c_str()) == 0);
        QVERIFY(writeFileAtomically(path("link.txt"), "b"));
        QCOMPARE(*readFile(path("real.txt")), std::string("b"));
        struct stat st = {};
        QVERIFY(::lstat(path("link.txt").c_str(), &st) == 0 && S_ISLNK(st.st_mode));
        QVERIFY(::stat(path("real.txt").c_str(), &st) == 0 && (st.st_mode & 0777) == 0640);
    }
};

QTEST_GUILESS_MAIN(TestIo)
#include "tst_io.moc"
