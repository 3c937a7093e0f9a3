// Graphs made at random of everything that torch.fx can hold (tests/oracle/random_graphs.py), judged by both PyTorches: the
// texts byte for byte, the text that parses back, the archive, the code that runs, and the interpreter. GPL-3.0-or-later.
#include <QTest>

#include <QElapsedTimer>
#include <QJsonArray>

#include "model/exec/interpreter.h"
#include "model/exec/worker.h"
#include "model/io/fxt.h"
#include "model/ir/hash.h"
#include "model/text/text.h"
#include "support/graphs.h"
#include "support/python.h"
#include "support/recorded.h"

using namespace fb;
using fbtest::Judge;

namespace
{

QByteArray contents(const QString &path)
{
    QFile f(path);
    return f.open(QIODevice::ReadOnly) ? f.readAll() : QByteArray();
}

// The first line that differs.
QByteArray difference(const QByteArray &ours, const QByteArray &torch)
{
    const auto a = ours.split('\n'), b = torch.split('\n');
    for (qsizetype i = 0; i < qMax(a.size(), b.size()); ++i)
        if (a.value(i) != b.value(i))
            return "line " + QByteArray::number(i + 1) + "\n  ours:  " + a.value(i) + "\n  torch: " + b.value(i);
    return "nothing";
}

} // namespace

class TestRandomGraphs : public QObject
{
    Q_OBJECT

    int failures_ = 0, refused_ = 0;
    void fail(int seed, const char *what, const QByteArray &why)
    {
        if (++failures_ <= 10)
            qWarning().noquote() << "graph" << seed << what << "differs:" << why;
    }

    // The interpreter's result is the one that was recorded; functions of Python's alone run in the worker.
    bool runsEqual(int seed, const GraphModule &gm, const std::string &name, Worker &worker)
    {
        const auto inputs = fbtest::recorded(name, "in"), right = fbtest::recorded(name, "out");
        if (!inputs || !right) {
            fail(seed, "record", fbtest::why(!inputs ? inputs : right));
            return false;
        }
        auto interpreter = Interpreter::create(gm);
        RunOptions options;
        options.modules = &worker;
        const Result<Arg> result
            = interpreter ? interpreter->run(inputs->sequence()->items, options) : Result<Arg>(interpreter.error());
        if (result && fbtest::plain(*result) == *right)
            return true;
        // An object of the user's own class that the graph reads from the module: only its repr is in the archive.
        if (!result && result.message().ends_with("is random_graphs.Thing, which cannot be sent to Python")) {
            ++refused_;
            return false;
        }
        fail(seed, "run",
            QByteArray::fromStdString(
                result ? "gives\n  " + fbtest::textOf(*result) + "\n  not\n  " + fbtest::textOf(*right) : result.message()));
        return false;
    }

private slots:
    void equalTorch_data()
    {
        QTest::addColumn<QString>("python");
        QTest::newRow("own") << fbtest::python();
        QTest::newRow("second") << fbtest::secondPython();
    }

    void equalTorch()
    {
        QFETCH(QString, python);
        if (python.isEmpty())
            QSKIP("the system's Python has no torch");
        const int count = qEnvironmentVariableIsSet("FUSEBOARD_ZOO") ? 500 : 120;
        const int first = qEnvironmentVariableIntValue("FUSEBOARD_SEED");
        QElapsedTimer timer;
        timer.start();
        Judge judge;
        judge.program = python;
        const QString folder = judge.path(".");
        QVERIFY2(
            judge.oracle("random_graphs.py", { "write", folder, QString::number(first), QString::number(count) }), judge.error);
        failures_ = refused_ = 0;
        // The values are judged by the PyTorch whose operators run.
        const bool own = python == fbtest::python();
        const std::string sources = fbtest::sourceDir().toStdString();
        Worker worker({ python.toStdString(), sources + "/resources/python/fuseboard_worker.py",
            sources + "/tests/oracle/random_graphs.py:nothing" });
        int values = 0;
        int nodes = 0, texts = 0, codes = 0, back = 0, archives = 0;
        QStringList run{ "run", folder };
        std::map<uint64_t, int> hashes;
        for (int seed = first; seed < first + count; ++seed) {
            const QString name = judge.path(QString::number(seed));
            const std::string file = (name + ".fxt").toStdString(), again = (name + ".again.fxt").toStdString(),
                              third = (name + ".third.fxt").toStdString();
            const Result<GraphModule> gm = readFxt(file);
            if (!gm) {
                fail(seed, "reading", fbtest::why(gm));
                continue;
            }
            nodes += int(gm->graph.size());
            const auto compare = [&](const char *what, const std::string &ours, const QByteArray &torch, int &equal) {
                if (QByteArray::fromStdString(ours) == torch)
                    ++equal;
                else
                    fail(seed, what, difference(QByteArray::fromStdString(ours), torch));
            };
            compare("print", torchGraphText(*gm), contents(name + ".graph.txt"), texts);
            compare("code --strict-torch", torchCode(*gm, { true }), contents(name + ".code.txt"), codes);

            const std::string canonical = canonicalText(gm->graph);
            const Result<Graph> parsed = parseCanonical(canonical);
            if (!parsed || !(*parsed == gm->graph) || canonicalText(*parsed) != canonical || hashOf(*parsed) != hashOf(gm->graph))
                fail(seed, "canonical text", fbtest::why(parsed));
            else
                ++back;
            const Status written = writeFxt(*gm, again);
            const Result<GraphModule> reread = readFxt(again);
            if (!written || !reread || !(*reread == *gm) || hashOf(*reread) != hashOf(*gm)
                || canonicalText(reread->graph) != canonical || !writeFxt(*reread, third) || *readFile(third) != *readFile(again))
                fail(seed, "archive", written ? fbtest::why(reread) : fbtest::why(written));
            else
                ++archives;
            ++hashes[hashOf(*gm)];
            // One that has a node more is another graph.
            GraphModule other = *gm;
            other.graph.insertBefore(other.graph.output(), fbtest::node(Opcode::CallFunction, "", "torch.zeros", { 1 }));
            if (other == *gm || hashOf(other) == hashOf(*gm))
                fail(seed, "hash", "of another graph is the same");

            if (own && runsEqual(seed, *gm, name.toStdString(), worker))
                ++values;

            QJsonObject globals;
            for (const auto &[key, value] : torchCodeGlobals(*gm))
                globals[QString::fromStdString(key)] = QString::fromStdString(value);
            judge.write(QString::number(seed) + ".json", QJsonDocument(globals).toJson());
            judge.write(QString::number(seed) + ".py",
                "import torch\nfrom torch import device\nNoneType = type(None)\n" + QByteArray::fromStdString(torchCode(*gm)));
            run << QString::number(seed);
        }
        QCOMPARE(int(hashes.size()), count);
        QVERIFY2(judge.oracle("random_graphs.py", run), judge.error);
        const QJsonObject answers = judge.json().object();
        int ran = 0;
        for (const QString &seed : answers.keys())
            if (answers[seed] == QStringLiteral("equal"))
                ++ran;
            else
                fail(seed.toInt(), "the code that runs",
                    answers[seed].toString().toUtf8() + "\n" + contents(judge.path(seed + ".py")));
        qInfo("zoo| random graphs, %s: %d graphs of %d nodes in %.1f s; equal to torch: print %d, code --strict-torch %d, "
              "code when run %d; canonical text parses back %d, archive written again %d, run %d, refused for an object of the "
              "user's own %d",
            qPrintable(python), count, nodes, double(timer.elapsed()) / 1000, texts, codes, ran, back, archives, values,
            refused_);
        QCOMPARE(failures_, 0);
        QCOMPARE(ran, count);
        QCOMPARE(values + refused_, own ? count : 0);
        QVERIFY(refused_ * 100 <= count);
    }
};

QTEST_GUILESS_MAIN(TestRandomGraphs)
#include "tst_random_graphs.moc"
