// Leaves that only Python can run, against eager PyTorch, and what becomes of a worker that fails. GPL-3.0-or-later.
//
// tests/oracle/worker_models.py traces each model and writes what eager PyTorch gives; here the same archive runs with a worker
// in the same Python, and everything that comes out must be equal bit for bit, values that are no tensors included.
#include <QTest>

#include <chrono>
#include <cmath>
#include <map>
#include <thread>

#include <signal.h>
#include <unistd.h>

#include "model/exec/statistics.h"
#include "model/exec/tensor_ops.h"
#include "model/exec/worker.h"
#include "model/io/argument_text.h"
#include "model/io/fxt.h"
#include "support/graphs.h"
#include "support/python.h"
#include "support/recorded.h"

using namespace fb;
using fbtest::plain;
using fbtest::textOf;
using fbtest::why;

namespace
{

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

bool alive(pid_t pid)
{
    QFile stat(QStringLiteral("/proc/%1/stat").arg(pid));
    return stat.open(QIODevice::ReadOnly) && !stat.readAll().contains(") Z ");
}

Result<Arg> runOnce(const GraphModule &gm, const std::vector<Arg> &inputs, const RunOptions &options)
{
    auto i = Interpreter::create(gm);
    return i ? i->run(inputs, options) : Result<Arg>(i.error());
}

} // namespace

class TestWorker : public QObject
{
    Q_OBJECT

    fbtest::Judge judge_;

    static constexpr const char *kModels[] = { "branch", "twice", "arrays", "values", "strides", "types", "in_place", "random",
        "objects", "counter", "functions", "detector" };
    static constexpr const char *kFaults[]
        = { "raises", "exits", "vanishes", "crashes", "hangs", "talks", "huge", "sparse", "quantized", "deep", "ends_on_import" };

    static std::string source(const std::string &name)
    {
        return (fbtest::sourceDir() + QStringLiteral("/tests/oracle/worker_models.py:")).toStdString() + name;
    }
    static WorkerOptions options(const std::string &name, const QString &python = fbtest::python())
    {
        return { python.toStdString(),
            (fbtest::sourceDir() + QStringLiteral("/resources/python/fuseboard_worker.py")).toStdString(), source(name), 60 };
    }

    std::string file(const std::string &name) const { return judge_.path(QString::fromStdString(name)).toStdString(); }
    GraphModule graph(const std::string &name) const { return *readFxt(file(name + ".fxt")); }
    static std::vector<Arg> rows(int64_t n) { return { *randomTensor(std::to_string(n) + "x6", 3) }; }

    Arg recorded(const std::string &name, const std::string &kind) const { return *fbtest::recorded(file(name), kind); }

    std::string failure(const std::string &name, WorkerOptions o)
    {
        Worker worker(std::move(o));
        const auto r = runOnce(graph(name), rows(2), { .modules = &worker });
        return r ? std::string() : r.message();
    }

    // The same but for what the kernels of two PyTorches differ in: 1e-6 of the largest value.
    static bool alike(const Arg &a, const Arg &b)
    {
        std::vector<Tensor> left, right;
        const Arg shape = mapTensors(a, [&](const Tensor &t) { return left.push_back(t), Arg(); });
        if (!(shape == mapTensors(b, [&](const Tensor &t) { return right.push_back(t), Arg(); })) || left.size() != right.size())
            return false;
        for (size_t i = 0; i < left.size(); ++i) {
            const std::vector<double> x = toDoubles(*left[i]), y = toDoubles(*right[i]);
            double worst = 0, largest = 0;
            for (size_t k = 0; k < std::min(x.size(), y.size()); ++k) {
                worst = std::max(worst, x[k] == y[k] ? 0 : std::abs(x[k] - y[k]));
                largest = std::max(largest, std::abs(y[k]));
            }
            if (left[i]->dtype != right[i]->dtype || left[i]->sizes != right[i]->sizes || !(worst <= 1e-6 * largest))
                return false;
        }
        return true;
    }

    bool record(fbtest::Judge &judge, bool faults)
    {
        QStringList words{ judge.path(QString()) };
        for (const char *name : kModels)
            words << QString::fromLatin1(name);
        for (const char *name : kFaults)
            if (faults && QLatin1String(name) != QLatin1String("ends_on_import"))
                words << QString::fromLatin1(name);
        return judge.oracle(QStringLiteral("worker_models.py"), words);
    }

private slots:
    void initTestCase() { QVERIFY2(record(judge_, true), judge_.error); }

    void equalsEager_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<bool>("second");
        for (const char *name : kModels)
            QTest::addRow("%s", name) << QString::fromLatin1(name) << false;
        // Starting a worker takes seconds: the older torch is asked for what differs between versions.
        const bool all = qEnvironmentVariableIsSet("FUSEBOARD_ZOO");
        if (!fbtest::secondPython().isEmpty())
            for (const char *name : kModels)
                if (all || QByteArray("values types detector").contains(name))
                    QTest::addRow("%s, the system's torch", name) << QString::fromLatin1(name) << true;
    }
    void equalsEager()
    {
        QFETCH(QString, name);
        QFETCH(bool, second);
        const std::string n = name.toStdString();
        const GraphModule gm = graph(n);
        Worker worker(options(n, second ? fbtest::secondPython() : fbtest::python()));
        const auto r = runOnce(gm, { recorded(n, "in") }, { .modules = &worker });
        QVERIFY2(r.ok(), why(r));
        const Arg expected = recorded(n, "out");
        if (second && alike(plain(*r), expected)) // the last bit is that PyTorch's own
            return;
        if (!(plain(*r) == expected))
            QCOMPARE(QString::fromStdString(textOf(plain(*r))), QString::fromStdString(textOf(expected)));
        QVERIFY(plain(*r) == expected);
    }

    // Between two values that are told apart by their bits alone.
    void weightsAreTheDocuments()
    {
        GraphModule gm = graph("branch");
        const std::vector<Arg> x{ recorded("branch", "in") };
        Worker worker(options("branch"));
        const auto before = runOnce(gm, x, { .modules = &worker });
        QVERIFY2(before.ok(), why(before));
        gm.replaceTensor("blk.scale", makeFloat({ 6 }, { 0, 0, 0, 0, 0, 0 }));
        const auto zero = runOnce(gm, x, { .modules = &worker });
        QVERIFY2(zero.ok(), why(zero));
        QVERIFY(*zero != *before);
        for (const double v : toDoubles(**zero->as<Tensor>()))
            QCOMPARE(v, 0.0);
        const auto again = runOnce(graph("branch"), x, { .modules = &worker });
        QVERIFY(*again == *before);
    }

    void withoutAWorker()
    {
        const GraphModule gm = graph("branch");
        QCOMPARE(notExecutable(gm).size(), size_t(1));
        const auto r = runOnce(gm, rows(2), {});
        QVERIFY(!r.ok());
        QVERIFY2(r.message().starts_with("blk: Branch: custom module Branch does not script: "), why(r));
        QVERIFY2(r.message().ends_with("; start the Python worker (--worker) to run it"), why(r));
    }

    // An archive may name any function: only those of the user's source, and those it has torch.fx.wrap keep, are run.
    void foreignFunctions()
    {
        GraphModule gm = graph("functions");
        QCOMPARE(notExecutable(gm).size(), size_t(1));
        QVERIFY(notExecutable(gm)[0].inPython);
        Worker worker(options("functions"));
        const NodeId call = gm.graph.find("busiest");
        for (const char *name : { "os.system", "posix.system", "shutil.rmtree", "subprocess.run", "importlib.import_module",
                 "numpy.load", "worker_models.os.system", "worker_models.nothing", "this.s", "fuseboard_trace.main" }) {
            gm.graph.setTarget(call, Opcode::CallFunction, name);
            const auto r = runOnce(gm, rows(3), { .modules = &worker });
            QVERIFY(!r.ok());
            QVERIFY2(r.message().find("is no function of worker_models.py:functions") != std::string::npos, why(r));
        }
    }

    void shapesAndCalibration()
    {
        GraphModule gm = graph("branch");
        Worker worker(options("branch"));
        const Status shapes = propagateShapes(gm, rows(5), nullptr, &worker);
        QVERIFY2(shapes.ok(), why(shapes));
        QCOMPARE(gm.graph[gm.graph.find("relu")].meta->shape, (std::vector<int64_t>{ 5, 6 }));
        DataSet data;
        data.inputs = { *rows(8)[0].as<Tensor>() };
        data.samples = 8;
        CalibrateOptions calibration;
        calibration.batch = 4;
        calibration.modules = &worker;
        const auto c = calibrate(gm, data, calibration);
        QVERIFY2(c.ok(), why(c));
        QCOMPARE(c->nodes.at("blk").count, uint64_t(48));
        QCOMPARE(c->nodes.at("relu").min, 0.f);
    }

    // The user's model runs in Python, its traced submodules here: what they are given is calibrated on.
    void partialModel()
    {
        const GraphModule gm = graph("detector");
        QVERIFY(isPartial(gm));
        QCOMPARE(partsOf(gm), (std::vector<std::string>{ "model.backbone", "model.head" }));
        Worker worker(options("detector"));
        DataSet data;
        data.inputs = { *randomTensor("6x3x16x16", 3) };
        data.samples = 6;
        CalibrateOptions calibration;
        calibration.batch = 2;
        calibration.modules = &worker;
        const auto c = calibrate(gm, data, calibration);
        QVERIFY2(c.ok(), why(c));
        QCOMPARE(c->nodes.at("model.backbone/conv2").count, uint64_t(6 * 8 * 4 * 4));
        QCOMPARE(c->nodes.at("model.head/conv").count, uint64_t(6 * 4 * (8 * 8 + 4 * 4))); // called twice
        QVERIFY(!c->nodes.contains("model.backbone/output"));

        // Another weight in a part is another result of the whole; a part that fails says so.
        const std::vector<Arg> x{ recorded("detector", "in") };
        const auto before = runOnce(gm, x, { .modules = &worker });
        QVERIFY2(before.ok(), why(before));
        GraphModule edited = gm;
        ModuleInfo info = *gm.modules.find("model.backbone");
        GraphModule inner = *info.graph;
        inner.replaceTensor("conv2.bias", makeFloat({ 8 }, { 9, 9, 9, 9, 9, 9, 9, 9 }));
        info.graph = std::make_shared<const GraphModule>(inner);
        edited.modules.set(info.path, info);
        const auto after = runOnce(edited, x, { .modules = &worker });
        QVERIFY2(after.ok(), why(after));
        QVERIFY(*after != *before);
        inner.replaceTensor("conv2.bias", makeFloat({ 3 }, { 1, 1, 1 }));
        info.graph = std::make_shared<const GraphModule>(inner);
        edited.modules.set(info.path, info);
        const auto broken = runOnce(edited, x, { .modules = &worker });
        QVERIFY(!broken.ok() && broken.message().starts_with("model: Detector: backbone: conv2: Conv2d: "));
        QVERIFY(*runOnce(gm, x, { .modules = &worker }) == *before);
    }

    void partialModelExported()
    {
        QVERIFY(writeNpy(*randomTensor("8x3x16x16", 3), file("data.npy")).ok());
        const auto cli = [&](const QStringList &words) {
            judge_.program = qEnvironmentVariable("FUSEBOARD_CLI");
            const bool done = judge_.run(words);
            judge_.program = fbtest::python();
            return done;
        };
        const QStringList how{ QStringLiteral("--python"), fbtest::python(), QStringLiteral("--source"),
            QString::fromStdString(source("detector")) };
        QVERIFY2(cli(QStringList{ QStringLiteral("calibrate"), QStringLiteral("detector.fxt"), QStringLiteral("--data"),
                         QStringLiteral("data.npy"), QStringLiteral("-o"), QStringLiteral("d.stats") }
                     + how),
            judge_.error);
        QVERIFY(!cli({ QStringLiteral("quantize"), QStringLiteral("detector.fxt"), QStringLiteral("--data"),
            QStringLiteral("data.npy"), QStringLiteral("-o"), QStringLiteral("none") }));
        QVERIFY2(judge_.error.contains("--worker"), judge_.error);
        for (const QString &from : { QStringLiteral("--stats=d.stats"), QStringLiteral("--data=data.npy") }) {
            QVERIFY2(cli(QStringList{ QStringLiteral("quantize"), QStringLiteral("detector.fxt"), from, QStringLiteral("-o"),
                             QStringLiteral("parts"), QStringLiteral("--json") }
                         + how),
                judge_.error);
            const QJsonObject parts = judge_.json()[QStringLiteral("submodules")].toObject();
            QCOMPARE(parts.keys(), (QStringList{ QStringLiteral("backbone"), QStringLiteral("head") }));
            QVERIFY(parts[QStringLiteral("backbone")].toObject()[QStringLiteral("int8_nodes")].toInt() >= 2);
        }
        // Every part checks itself bit for bit, and the user's own model runs with them in it.
        QVERIFY2(judge_.run({ judge_.path(QStringLiteral("parts/model.py")) }), judge_.error);
        QVERIFY2(judge_.oracle(QStringLiteral("worker_models.py"),
                     { QStringLiteral("apply"), judge_.path(QStringLiteral("parts")), judge_.path(QStringLiteral("data.npy")),
                         judge_.path(QStringLiteral("applied.npz")) }),
            judge_.error);
        std::map<std::string, Tensor> seen;
        const NamedTensors applied = *readNpz(file("applied.npz"));
        for (const auto &[name, t] : applied)
            seen[name] = t;
        const auto d = difference(seen.at("int8"), seen.at("float"));
        QVERIFY2(d.ok(), why(d));
        QVERIFY2(d->sqnrDb > 25, qPrintable(QString::number(d->sqnrDb)));
        QVERIFY(d->maxAbs > 0); // it is int8 indeed
    }

    void failures_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("message");
        const auto row = [](const char *name, const char *message) {
            QTest::newRow(name) << QString::fromLatin1(name) << QString::fromLatin1(message);
        };
        row("raises", "blk: Raises: worker_models.py:* `raise ValueError(\"the third\\nline counts\")`: ValueError: the third");
        row("exits", "blk: Exits: worker_models.py:* `sys.exit(3)`: it calls sys.exit(3)");
        row("vanishes", "blk: Vanishes: the Python worker ended with exit status 9 while it ran");
        row("crashes", "blk: Crashes: the Python worker crashed (Segmentation fault)");
        row("sparse", "blk: Sparse: a sparse_coo tensor came out, which Fuseboard cannot take from Python");
        row("quantized", "blk: Quantized: a quantized tensor came out, which Fuseboard cannot take from Python");
        row("deep", "blk: Deep: *"); // deeper than JSON is read
    }
    void failures()
    {
        QFETCH(QString, name);
        QFETCH(QString, message);
        const std::string n = name.toStdString();
        const QString said = QString::fromStdString(failure(n, options(n)));
        const QString before = message.section(QLatin1Char('*'), 0, 0), after = message.section(QLatin1Char('*'), 1);
        QVERIFY2(said.startsWith(before) && said.endsWith(after), qPrintable(said));
        QVERIFY2(!said.contains(QLatin1Char('\n')), qPrintable(said));
    }

    void startFails()
    {
        WorkerOptions o = options("branch");
        o.source = source("brunch");
        QVERIFY(Worker(o).start().message().find("has no 'brunch' (did you mean 'branch'") != std::string::npos);
        o.source = "nowhere/net.py:make";
        QCOMPARE(Worker(o).start().message(),
            std::string("the Python worker cannot load nowhere/net.py:make: nowhere/net.py is not there; check the path"));
        o.source = source("ends_on_import");
        const std::string ends = Worker(o).start().message();
        QVERIFY2(ends.find("it ends the process (sys.exit)") != ends.npos, ends.c_str());
        o = options("branch");
        o.python = "/nowhere/python";
        QCOMPARE(Worker(o).start().message(),
            std::string("there is no Python at /nowhere/python: name an interpreter that has torch (--python)"));
        o.python = "/bin/false";
        const std::string none = Worker(o).start().message();
        QVERIFY2(none.find("ended with exit status 1") != none.npos, none.c_str());
        // Another model than the one that was traced.
        const std::string other = failure("branch", options("arrays"));
        QVERIFY2(
            other.find("'blk' is a Numpy in worker_models.py:arrays and was a Branch when the model was traced") != other.npos,
            other.c_str());
    }

    // A worker that ended is started again by the next call.
    void startsAgain()
    {
        Worker worker(options("vanishes"));
        for (int i = 0; i < 2; ++i) {
            const auto r = runOnce(graph("vanishes"), rows(2), { .modules = &worker });
            QVERIFY(!r.ok() && r.message().find("exit status 9") != std::string::npos);
        }
    }

    void cancelAndTimeout()
    {
        qputenv("FUSEBOARD_TEST_PIDS", judge_.path(QStringLiteral("pids")).toUtf8());
        const GraphModule gm = graph("hangs");
        WorkerOptions o = options("hangs");
        Worker worker(o);
        QVERIFY2(worker.start().ok(), "start");
        CancelFlag cancel = false;
        Clock::time_point cancelled;
        std::thread later([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(700));
            cancelled = Clock::now();
            cancel = true;
        });
        const auto r = runOnce(gm, rows(2), { .cancel = &cancel, .modules = &worker });
        later.join();
        const double took = secondsSince(cancelled);
        QVERIFY(!r.ok());
        QCOMPARE(r.message(), std::string(Interpreter::kCancelled));
        QVERIFY2(took < 0.2, qPrintable(QString::number(took)));
        nobodyLeft();

        o.timeout = 20; // loading takes seconds
        Worker patient(o);
        QVERIFY2(patient.start().ok(), "start");
        Worker hasty([&] {
            o.timeout = 0.05;
            return o;
        }());
        QCOMPARE(hasty.start().message(),
            "the Python worker cannot load " + o.source
                + ": the Python worker gave no answer within 0.05 s and was stopped; give it longer with --worker-timeout");
        const auto late = runOnce(gm, rows(2), { .modules = &patient });
        QCOMPARE(late.message(),
            std::string("blk: Hangs: the Python worker gave no answer within 20 s and was stopped; give it longer with "
                        "--worker-timeout"));
        nobodyLeft();
        qunsetenv("FUSEBOARD_TEST_PIDS");
    }

    // What the user's module prints goes to standard error, and disturbs nothing.
    void printsAndHugeAnswers()
    {
        Worker worker(options("talks"));
        const GraphModule gm = graph("talks");
        const auto r = runOnce(gm, rows(2), { .modules = &worker });
        QVERIFY2(r.ok(), why(r));
        QCOMPARE((*r->as<Tensor>())->sizes, (std::vector<int64_t>{ 2, 6 }));
        Worker big(options("huge"));
        const auto h = runOnce(graph("huge"), rows(2), { .modules = &big });
        QVERIFY2(h.ok(), why(h));
        QCOMPARE((*h->sequence()->items[0].as<Tensor>())->sizes, (std::vector<int64_t>{ 40'000'000 }));
        QCOMPARE(h->sequence()->items[1].sequence()->items.size(), size_t(200'000));
    }

    // A worker that is another program altogether: nothing that it says is trusted.
    void hostileAnswers_data()
    {
        QTest::addColumn<QByteArray>("answer");
        const auto value = [](const QByteArray &tensor) {
            return "{\"dict\": [[\"value\", {\"tensor\": \"" + tensor + "\"}], [\"changed\", []], [\"random\", null]]}";
        };
        QTest::newRow("no JSON") << QByteArray("hello");
        QTest::newRow("no value") << QByteArray("{\"dict\": []}");
        QTest::newRow("nested without end") << QByteArray(100'000, '[');
        QTest::newRow("beyond the memory") << value("float32:1000000:1:0");
        QTest::newRow("far away") << value("float32:1:1:1099511627776");
        QTest::newRow("overflow") << value("float32:1099511627776,1099511627776,1099511627776:1,1,1:0");
        QTest::newRow("large strides") << value("float32:2,2:1099511627776,1099511627776:0");
        QTest::newRow("negative size") << value("float32:-1:1:0");
        QTest::newRow("negative offset") << value("float32:1:1:-8");
        QTest::newRow("unlike strides") << value("float32:2:1,1:0");
        QTest::newRow("dtype") << value("string:2:1:0");
        QTest::newRow("quantized") << value("quint8:2:1:0");
        QTest::newRow("view of nothing") << value("given 999:1:1:0");
        QTest::newRow("view beyond") << value("given 0:1000000:1:0");
        QTest::newRow("node") << QByteArray(
            "{\"dict\": [[\"value\", {\"node\": \"x\"}], [\"changed\", []], [\"random\", null]]}");
        QTest::newRow("change of nothing") << QByteArray(
            "{\"dict\": [[\"value\", 1], [\"changed\", [{\"tuple\": [77, {\"tensor\": "
            "\"float32:1:1:0\"}]}]], [\"random\", null]]}");
        QTest::newRow("change of another size") << QByteArray("{\"dict\": [[\"value\", 1], [\"changed\", [{\"tuple\": [0, "
                                                              "{\"tensor\": \"float32:5:1:0\"}]}]], [\"random\", null]]}");
        QTest::newRow("random state") << QByteArray(
            "{\"dict\": [[\"value\", 1], [\"changed\", []], [\"random\", {\"tensor\": \"uint8:5:1:0\"}]]}");
    }
    void hostileAnswers()
    {
        QFETCH(QByteArray, answer);
        WorkerOptions o = options("branch");
        o.python = fbtest::python().toStdString();
        o.script
            = judge_
                  .write(QStringLiteral("hostile.py"),
                      "import socket\ns = socket.socket(fileno=3)\ns.sendall(b'{\"dict\": []}\\n')\ns.makefile().readline()\n"
                      "s.sendall(open(__file__ + '.answer', 'rb').read() + b'\\n')\ns.recv(1)\n")
                  .toStdString();
        judge_.write(QStringLiteral("hostile.py.answer"), answer);
        const std::string said = failure("branch", o);
        QVERIFY2(QByteArray::fromStdString(said).startsWith("blk: Branch: "), said.c_str());
        QVERIFY2(said.size() < 300, said.c_str());
    }

    // It may not take back memory that is mapped here.
    void memoryIsSealed()
    {
        WorkerOptions o = options("branch");
        o.script
            = judge_
                  .write(QStringLiteral("shrinks.py"),
                      "import os, socket\ns = socket.socket(fileno=3)\ns.sendall(b'{\"dict\": []}\\n')\ns.makefile().readline()\n"
                      "try:\n    os.ftruncate(4, 0)\n    said = 'shrunk'\nexcept OSError:\n    said = 'sealed'\n"
                      "s.sendall(b'{\"dict\": [[\"error\", \"%s\"]]}\\n' % said.encode())\ns.recv(1)\n")
                  .toStdString();
        QCOMPARE(failure("branch", o), std::string("blk: Branch: sealed"));
    }

    // A killed Fuseboard leaves no process behind, whatever the user's code is doing.
    void diesWithParent()
    {
        QFile::remove(judge_.path(QStringLiteral("pids")));
        QProcess cli;
        QProcessEnvironment env = QProcessEnvironment::systemEnvironment();
        env.insert(QStringLiteral("FUSEBOARD_TEST_PIDS"), judge_.path(QStringLiteral("pids")));
        cli.setProcessEnvironment(env);
        cli.setWorkingDirectory(judge_.path(QString()));
        cli.start(qEnvironmentVariable("FUSEBOARD_CLI"),
            { QStringLiteral("run"), QStringLiteral("hangs.fxt"), QStringLiteral("--input"), QStringLiteral("2x6"),
                QStringLiteral("-o"), QStringLiteral("out.npy"), QStringLiteral("--python"), fbtest::python(),
                QStringLiteral("--source"), QString::fromStdString(source("hangs")) });
        QTRY_VERIFY_WITH_TIMEOUT(QFileInfo(judge_.path(QStringLiteral("pids"))).size() > 0, 60000);
        cli.kill();
        QVERIFY(cli.waitForFinished());
        nobodyLeft();
    }

private:
    // The processes that the leaf wrote down are gone.
    void nobodyLeft()
    {
        QFile file(judge_.path(QStringLiteral("pids")));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QList<QByteArray> pids = file.readAll().trimmed().split(' ');
        QCOMPARE(pids.size(), 2);
        for (const QByteArray &pid : pids)
            QTRY_VERIFY_WITH_TIMEOUT(!alive(pid.toInt()), 2000);
    }
};

QTEST_GUILESS_MAIN(TestWorker)
#include "tst_worker.moc"
