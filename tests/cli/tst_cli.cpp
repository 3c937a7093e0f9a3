// Fuseboard tests: the command line as scripts use it: the real program, its exit status, its words, its files.
// GPL-3.0-or-later.
//
// Real PyTorch judges what is printed, run and exported; one process of each PyTorch makes the models and its own answers
// (tests/oracle/cli_oracle.py). Everything that fails must say so in one line, end with 1 and leave the target as it was.
#include <cmath>

#include <QJsonArray>
#include <QRegularExpression>
#include <QTest>

#include "model/io/fxt.h"
#include "support/graphs.h"
#include "support/python.h"

using namespace fbtest;

namespace
{

struct Ran {
    int code = -1;
    QByteArray out, err;
    const char *why() const { return err.constData(); }
};

// Exactly one JSON document, else an empty object.
QJsonObject document(const Ran &ran)
{
    return QJsonDocument::fromJson(ran.out).object();
}

QByteArray contents(const QString &path)
{
    QFile f(path);
    return f.open(QIODevice::ReadOnly) ? f.readAll() : QByteArray();
}

const QByteArray kBefore = "what was here before";

} // namespace

class TstCli : public QObject
{
    Q_OBJECT

    Judge judge_, second_; // made by the product's PyTorch and by the system's
    QString demo_, data_, test_, source_;

    Ran cli(const QStringList &arguments, const QMap<QString, QString> &environment = {}, const QString &stdoutFile = {})
    {
        QProcess p;
        QProcessEnvironment env = QProcessEnvironment::systemEnvironment();
        env.insert(QStringLiteral("FUSEBOARD_RESOURCES"), sourceDir() + QStringLiteral("/resources"));
        env.insert(QStringLiteral("OMP_NUM_THREADS"), QStringLiteral("1")); // small work; two threads wait for each other
        for (auto it = environment.begin(); it != environment.end(); ++it)
            env.insert(it.key(), it.value());
        p.setProcessEnvironment(env);
        p.setWorkingDirectory(judge_.path({}));
        if (!stdoutFile.isEmpty())
            p.setStandardOutputFile(stdoutFile);
        p.start(qEnvironmentVariable("FUSEBOARD_CLI"), arguments);
        Ran ran;
        if (!p.waitForFinished(180000) || p.exitStatus() != QProcess::NormalExit) {
            ran.err = "crashed or did not end: " + p.errorString().toUtf8() + "\n" + p.readAllStandardError();
            return ran;
        }
        ran.code = p.exitCode();
        ran.err = p.readAllStandardError();
        if (stdoutFile.isEmpty())
            ran.out = p.readAllStandardOutput();
        return ran;
    }
    QString here(const char *name) const { return judge_.path(QString::fromLatin1(name)); }
    QByteArray read(const char *name) const { return contents(here(name)); }

    // The work fails: status 1, one line on standard error that says `needle`, nothing on standard output.
    bool fails(const QStringList &arguments, const char *needle, const QMap<QString, QString> &environment = {})
    {
        const Ran ran = cli(arguments + QStringList{ QStringLiteral("--quiet") }, environment);
        if (ran.code == 1 && ran.out.isEmpty() && ran.err.count('\n') == 1 && ran.err.endsWith('\n') && ran.err.contains(needle))
            return true;
        qWarning("%s\nstatus %d, wanted: %s\n%s%s", qPrintable(arguments.join(QLatin1Char(' '))), ran.code, needle,
            ran.out.constData(), ran.err.constData());
        return false;
    }
    // The command was used wrongly: status 2, the reason and the usage on standard error.
    bool misused(const QStringList &arguments, const char *needle)
    {
        const Ran ran = cli(arguments);
        if (ran.code == 2 && ran.out.isEmpty() && ran.err.contains(needle) && ran.err.contains("Usage: fuseboard-cli"))
            return true;
        qWarning("%s\nstatus %d, wanted: %s\n%s%s", qPrintable(arguments.join(QLatin1Char(' '))), ran.code, needle,
            ran.out.constData(), ran.err.constData());
        return false;
    }
    // Done: status 0 and nothing on standard error.
    bool done(const QStringList &arguments, const char *out = nullptr)
    {
        const Ran ran = cli(arguments + QStringList{ QStringLiteral("--quiet") });
        if (ran.code == 0 && ran.err.isEmpty() && (!out || ran.out == out))
            return true;
        qWarning("%s\nstatus %d\n%s%s", qPrintable(arguments.join(QLatin1Char(' '))), ran.code, ran.out.constData(),
            ran.err.constData());
        return false;
    }
    static QStringList words(const QString &line) { return line.split(QLatin1Char(' ')); }

private slots:
    void initTestCase()
    {
        QVERIFY2(QFileInfo(qEnvironmentVariable("FUSEBOARD_CLI")).isExecutable(), "FUSEBOARD_CLI names no program");
        demo_ = sourceDir() + QStringLiteral("/resources/demo/digits.fxt");
        data_ = sourceDir() + QStringLiteral("/resources/demo/calib.npy");
        test_ = sourceDir() + QStringLiteral("/resources/demo/test.npz");
        source_ = sourceDir() + QStringLiteral("/resources/demo/digits_net.py:make");
        QVERIFY2(judge_.oracle(QStringLiteral("cli_oracle.py"), { judge_.path({}) }), judge_.error);
        if (second_.program = secondPython(); !second_.program.isEmpty())
            QVERIFY2(second_.oracle(QStringLiteral("cli_oracle.py"), { second_.path({}) }), second_.error);
    }

    void helpAndWrongUse()
    {
        const Ran help = cli({ QStringLiteral("--help") });
        QCOMPARE(help.code, 0);
        QVERIFY(help.err.isEmpty());
        for (const char *command : { "trace", "info", "print", "code", "run", "shapes", "fuse", "edit", "verify", "calibrate",
                 "merge", "quantize", "export", "doctor" })
            QVERIFY2(help.out.contains(command), command);
        QVERIFY(misused({}, "subcommand is required"));
        QVERIFY(misused({ QStringLiteral("nonsense") }, "there is no command nonsense"));
        QVERIFY(misused({ QStringLiteral("info") }, "FILE is required"));
        QVERIFY(misused({ QStringLiteral("info"), demo_, QStringLiteral("--bogus") }, "--bogus"));
        QVERIFY(misused({ QStringLiteral("run"), demo_, QStringLiteral("-o"), QStringLiteral("x.txt") }, "x.txt"));
        QVERIFY(misused({ QStringLiteral("fuse"), demo_, QStringLiteral("-o"), QStringLiteral("x.onnx") }, "x.onnx"));
        QVERIFY(misused({ QStringLiteral("run"), demo_, QStringLiteral("-o"), QStringLiteral("x.npy"),
                            QStringLiteral("--threads"), QStringLiteral("0") },
            "--threads"));
        QVERIFY(
            misused({ QStringLiteral("quantize"), demo_, QStringLiteral("-o"), QStringLiteral("q") }, "--data DATA or --stats"));
        QVERIFY(misused({ QStringLiteral("quantize"), demo_, QStringLiteral("--data"), data_, QStringLiteral("--backend"),
                            QStringLiteral("abacus"), QStringLiteral("-o"), QStringLiteral("q") },
            "abacus"));
        QVERIFY(misused({ QStringLiteral("export"), demo_, QStringLiteral("--form"), QStringLiteral("poem"), QStringLiteral("-o"),
                            QStringLiteral("q") },
            "poem"));
        QVERIFY(misused({ QStringLiteral("trace"), source_ }, "-o OUT.fxt"));
        QVERIFY(misused({ QStringLiteral("trace"), source_, QStringLiteral("-o"), QStringLiteral("t.fxt"),
                            QStringLiteral("--kwarg"), QStringLiteral("x") },
            "--kwarg"));
    }

    void info()
    {
        QVERIFY(done({ QStringLiteral("info"), demo_ },
            "format      fxt, traced with torch 2.13.0+cpu\n"
            "nodes       31 (1 placeholder, 4 call_function, 25 call_module, 1 output)\n"
            "modules     35\n"
            "parameters  10650\n"
            "input       x  1x1x8x8  float32\n"
            "output      classifier  1x10  float32\n"));
        const Ran ran = cli({ QStringLiteral("info"), demo_, QStringLiteral("--json") });
        QCOMPARE(ran.code, 0);
        const QJsonObject o = document(ran);
        QCOMPARE(o[QLatin1String("format")].toString(), QStringLiteral("fxt"));
        QCOMPARE(o[QLatin1String("torch")].toString(), QStringLiteral("2.13.0+cpu"));
        QCOMPARE(o[QLatin1String("nodes")].toInt(), 31);
        QCOMPARE(o[QLatin1String("modules")].toInt(), 35);
        QCOMPARE(o[QLatin1String("parameters")].toInt(), 10650);
        QCOMPARE(o[QLatin1String("opcodes")].toObject()[QLatin1String("call_module")].toInt(), 25);
        QCOMPARE(o[QLatin1String("opcodes")].toObject().size(), 6);
        const QJsonObject input{ { QStringLiteral("name"), QStringLiteral("x") },
            { QStringLiteral("shape"), QJsonArray{ 1, 1, 8, 8 } }, { QStringLiteral("dtype"), QStringLiteral("float32") } };
        QCOMPARE(o[QLatin1String("inputs")].toArray(), QJsonArray{ input });
        const QJsonObject output{ { QStringLiteral("name"), QStringLiteral("classifier") },
            { QStringLiteral("shape"), QJsonArray{ 1, 10 } }, { QStringLiteral("dtype"), QStringLiteral("float32") } };
        QCOMPARE(o[QLatin1String("outputs")].toArray(), QJsonArray{ output });
        QVERIFY(o[QLatin1String("problems")].isArray());
    }

    // A .pt2 comes regrouped into modules; --aten leaves its own operators, and the edit regroups those.
    void exportedProgram()
    {
        const QString file = sourceDir() + "/tests/oracle/pt2/2.9.1.pt2", given = sourceDir() + "/tests/oracle/pt2/2.9.1-in.npz";
        const QJsonObject flat = document(cli({ "info", file, "--json", "--aten" })),
                          raised = document(cli({ "info", file, "--json" }));
        QCOMPARE(raised["format"], "pt2");
        QVERIFY(raised["torch"].toString().startsWith("2.9.1"));
        QCOMPARE(flat["opcodes"]["call_module"], 0);
        QCOMPARE(raised["opcodes"]["call_module"], 6); // conv, bn, relu, twice the linear of the block, the head
        QCOMPARE(raised["inputs"].toArray().size(), 2);
        QVERIFY(cli({ "print", file }).out.contains("%block_lin_1 : [num_users=1] = call_module[target=block.lin]"));
        QVERIFY(cli({ "print", file, "--aten" }).out.contains("call_function[target=torch.ops.aten.linear.default]"));

        judge_.write("regroup.json", R"([{"op": "regroup"}])");
        QVERIFY(done({ "edit", file, "--aten", "--apply", "regroup.json", "-o", "regrouped.fxt" }));
        QCOMPARE(cli({ "print", "regrouped.fxt" }).out, cli({ "print", file }).out);
        QVERIFY(done({ "run", file, "--aten", "--input", given, "-o", "flat.npz" }));
        QVERIFY(done({ "run", file, "--input", given, "-o", "raised.npz" }));
        QVERIFY(done({ "run", "regrouped.fxt", "--input", given, "-o", "again.npz" }));
        QVERIFY(read("flat.npz") == read("raised.npz") && read("again.npz") == read("raised.npz"));

        // The exported code runs in PyTorch and gives the same; the int8 model checks itself.
        QVERIFY(done({ "export", file, "--form", "python", "-o", "code" }));
        QVERIFY2(judge_.run({ here("code/model.py") }), judge_.error);
        QVERIFY(done({ "quantize", file, "--data", given, "-o", "int8" }));
        QVERIFY2(judge_.run({ here("int8/model.py") }), judge_.error);
        QVERIFY(document(cli({ "quantize", file, "--data", given, "-o", "int8", "--json" }))["int8_nodes"].toInt() > 4);
        // Nothing of the operators themselves has an int8 form; that is said for each.
        const Ran stays = cli({ "quantize", file, "--aten", "--data", given, "-o", "flat8" });
        QVERIFY2(stays.code == 0 && stays.out.contains("stays float: no int8 form of torch.ops.aten.linear.default"),
            stays.err + stays.out);
    }

    void textsEqualTorch_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<bool>("system");
        for (const bool system : { false, true })
            for (const char *model : { "demo", "resnet18", "mobilenet_v2" })
                QTest::addRow("%s, %s", model, system ? "the system's torch" : "torch") << QString::fromLatin1(model) << system;
    }
    void textsEqualTorch()
    {
        QFETCH(QString, model);
        QFETCH(bool, system);
        if (system && second_.program.isEmpty())
            QSKIP("the system's Python has no torch");
        const Judge &judge = system ? second_ : judge_;
        const QString file = judge.path(model + QStringLiteral(".fxt"));
        const QByteArray graph = contents(judge.path(model + QStringLiteral(".graph.txt"))),
                         code = contents(judge.path(model + QStringLiteral(".code.txt")));
        QVERIFY(!graph.isEmpty() && !code.isEmpty());
        QVERIFY(done({ QStringLiteral("print"), file }, graph + "\n"));
        QVERIFY(done({ QStringLiteral("code"), file }, code + "\n"));
        if (model == QLatin1String("demo"))
            QVERIFY(done({ QStringLiteral("code"), file, QStringLiteral("--strict-torch") }, code + "\n"));
    }

    void runEqualsTorch_data()
    {
        QTest::addColumn<QString>("model");
        for (const char *model : { "demo", "resnet18", "mobilenet_v2" })
            QTest::newRow(model) << QString::fromLatin1(model);
    }
    void runEqualsTorch()
    {
        QFETCH(QString, model);
        QVERIFY(done(
            { QStringLiteral("run"), model + QStringLiteral(".fxt"), QStringLiteral("--input"), model + QStringLiteral(".in.npy"),
                QStringLiteral("-o"), model + QStringLiteral(".got.npy"), QStringLiteral("--threads"), QStringLiteral("2") }));
        const auto got = fb::readArrays(judge_.path(model + QStringLiteral(".got.npy")).toStdString());
        const auto wanted = fb::readArrays(judge_.path(model + QStringLiteral(".out.npy")).toStdString());
        QVERIFY2(got, why(got));
        QVERIFY2(wanted, why(wanted));
        QCOMPARE(got->size(), size_t(1));
        QVERIFY(got->at(0).second->sizes == wanted->at(0).second->sizes);
        const std::vector<double> a = fb::toDoubles(*got->at(0).second), b = fb::toDoubles(*wanted->at(0).second);
        double worst = 0, largest = 0;
        for (size_t i = 0; i < a.size(); ++i) {
            worst = std::max(worst, std::abs(a[i] - b[i]));
            largest = std::max(largest, std::abs(b[i]));
        }
        QVERIFY2(worst <= 1e-6 * largest, qPrintable(QStringLiteral("%1 of %2").arg(worst).arg(largest)));
    }

    void run()
    {
        // Random inputs are the seed's and nothing else's.
        QVERIFY(done({ QStringLiteral("run"), demo_, QStringLiteral("-o"), QStringLiteral("a.npy") }));
        QVERIFY(done({ QStringLiteral("run"), demo_, QStringLiteral("--input"), QStringLiteral("1x1x8x8"), QStringLiteral("-o"),
            QStringLiteral("b.npy"), QStringLiteral("--seed"), QStringLiteral("0") }));
        QVERIFY(done({ QStringLiteral("--seed"), QStringLiteral("1"), QStringLiteral("run"), demo_, QStringLiteral("-o"),
            QStringLiteral("c.npy") }));
        QVERIFY(!read("a.npy").isEmpty());
        QCOMPARE(read("a.npy"), read("b.npy"));
        QVERIFY(read("a.npy") != read("c.npy"));

        QVERIFY(done({ QStringLiteral("run"), demo_, QStringLiteral("-o"), QStringLiteral("a.safetensors") }));
        const auto one = fb::readArrays(here("a.safetensors").toStdString());
        QVERIFY2(one, why(one));
        QCOMPARE(one->size(), size_t(1));
        QCOMPARE(QString::fromStdString(one->at(0).first), QStringLiteral("output"));

        QVERIFY(done({ QStringLiteral("run"), demo_, QStringLiteral("-o"), QStringLiteral("n.npz"), QStringLiteral("--node"),
            QStringLiteral("stem_conv"), QStringLiteral("flatten") }));
        const auto nodes = fb::readArrays(here("n.npz").toStdString());
        QVERIFY2(nodes, why(nodes));
        QCOMPARE(nodes->size(), size_t(2));
        QCOMPARE(QString::fromStdString(nodes->at(0).first), QStringLiteral("stem_conv"));
        QVERIFY((nodes->at(1).second->sizes == std::vector<int64_t>{ 1, 64 }));

        QVERIFY(fails({ QStringLiteral("run"), demo_, QStringLiteral("-o"), QStringLiteral("x.npy"), QStringLiteral("--node"),
                          QStringLiteral("nobody") },
            "has no node nobody"));
        QVERIFY(fails({ QStringLiteral("run"), demo_, QStringLiteral("-o"), QStringLiteral("x.npy"), QStringLiteral("--node"),
                          QStringLiteral("stem_conv"), QStringLiteral("flatten") },
            "gave 2 tensors and a .npy file holds one"));
        QVERIFY(!QFile::exists(here("x.npy")));
    }

    void shapes()
    {
        const Ran text = cli({ QStringLiteral("shapes"), demo_, QStringLiteral("--input"), QStringLiteral("3x1x8x8") });
        QCOMPARE(text.code, 0);
        const QList<QByteArray> lines = text.out.trimmed().split('\n');
        QCOMPARE(lines.size(), 31);
        QVERIFY2(lines[1].startsWith("stem_conv ") && lines[1].endsWith("  Nx16x8x8  float32"), lines[1]);
        const QJsonArray nodes
            = document(cli({ QStringLiteral("shapes"), demo_, QStringLiteral("--json") }))[QLatin1String("nodes")].toArray();
        QCOMPARE(nodes.size(), 31);
        const QJsonObject conv{ { QStringLiteral("name"), QStringLiteral("stem_conv") },
            { QStringLiteral("shape"), QJsonArray{ 1, 16, 8, 8 } }, { QStringLiteral("dtype"), QStringLiteral("float32") },
            { QStringLiteral("batch"), QJsonArray{ 1, 0, 0, 0 } } };
        QCOMPARE(nodes[1].toObject(), conv);
    }

    void fuseAndVerify()
    {
        QVERIFY(done({ QStringLiteral("fuse"), demo_, QStringLiteral("-o"), QStringLiteral("fused.fxt") },
            "stem_conv + stem_bn + stem_relu -> ConvReLU2d\n"
            "residual_first_conv + residual_first_bn + residual_first_relu -> ConvReLU2d\n"
            "residual_conv + residual_bn -> Conv2d\n"
            "scales_narrow_conv + scales_narrow_bn + scales_narrow_relu -> ConvReLU2d\n"
            "scales_wide_conv + scales_wide_bn + scales_wide_relu -> ConvReLU2d\n"
            "separable_depthwise_conv + separable_depthwise_bn + separable_depthwise_relu -> ConvReLU2d\n"
            "separable_pointwise_conv + separable_pointwise_bn + separable_pointwise_relu -> ConvReLU2d\n"));
        const QByteArray first = read("fused.fxt");
        const QJsonObject report = document(
            cli({ QStringLiteral("fuse"), demo_, QStringLiteral("-o"), QStringLiteral("fused.fxt"), QStringLiteral("--json") }));
        QVERIFY(report[QLatin1String("changed")].toBool());
        QCOMPARE(report[QLatin1String("done")].toArray().size(), 7);
        QCOMPARE(report[QLatin1String("kept")].toArray().size(), 0);
        QCOMPARE(read("fused.fxt"), first);
        QVERIFY(done({ QStringLiteral("fuse"), QStringLiteral("fused.fxt"), QStringLiteral("-o"), QStringLiteral("again.fxt") },
            "nothing to do\n"));

        const Ran ran = cli({ QStringLiteral("verify"), demo_, QStringLiteral("fused.fxt"), QStringLiteral("--input"), data_,
            QStringLiteral("--json") });
        QCOMPARE(ran.code, 0);
        const QJsonArray outputs = document(ran)[QLatin1String("outputs")].toArray();
        QCOMPARE(outputs.size(), 1);
        const QJsonObject o = outputs[0].toObject();
        QCOMPARE(o[QLatin1String("name")].toString(), QStringLiteral("output"));
        QVERIFY(o[QLatin1String("max_abs")].toDouble() > 0 && o[QLatin1String("max_abs")].toDouble() < 1e-5);
        QVERIFY(o[QLatin1String("relative")].toDouble() < 1e-5);
        QVERIFY(o[QLatin1String("cosine")].toDouble() > 0.999999);
        QVERIFY(o[QLatin1String("sqnr_db")].toDouble() > 100);
        QVERIFY(cli({ QStringLiteral("verify"), demo_, demo_ }).out.contains("output"));
        QVERIFY(fails({ QStringLiteral("verify"), demo_, QStringLiteral("resnet18.fxt") }, "resnet18.fxt: "));
    }

    void edit()
    {
        judge_.write(QStringLiteral("edits.json"),
            R"([{"op": "replace", "all": "torch.clamp", "with": "torch.sigmoid"}, {"op": "leaf", "module": "residual"}, {"op": "fuse"}])");
        const QStringList words{ QStringLiteral("edit"), demo_, QStringLiteral("--apply"), QStringLiteral("edits.json"),
            QStringLiteral("-o"), QStringLiteral("edited.fxt") };
        const Ran ran = cli(words + QStringList{ QStringLiteral("--json") });
        QVERIFY2(ran.code == 0, ran.why());
        QVERIFY(document(ran)[QLatin1String("changed")].toBool());
        const Ran code = cli({ QStringLiteral("code"), QStringLiteral("edited.fxt") });
        QVERIFY2(code.out.contains("torch.sigmoid(") && !code.out.contains("torch.clamp"), code.out);
        QVERIFY2(code.out.contains("self.residual("), code.out);
        QVERIFY(done({ QStringLiteral("run"), QStringLiteral("edited.fxt"), QStringLiteral("-o"), QStringLiteral("e.npy") }));

        // All or nothing: the second edit is wrong, so nothing is written.
        judge_.write(QStringLiteral("edits.json"),
            R"([{"op": "replace", "all": "torch.clamp", "with": "torch.sigmoid"}, {"op": "remove", "node": "nobody"}])");
        judge_.write(QStringLiteral("edited.fxt"), kBefore);
        QVERIFY(fails(words, "nobody"));
        judge_.write(QStringLiteral("edits.json"), "[{");
        QVERIFY(fails(words, "JSON"));
        QCOMPARE(read("edited.fxt"), kBefore);
        QVERIFY(fails({ QStringLiteral("edit"), demo_, QStringLiteral("--apply"), QStringLiteral("none.json"),
                          QStringLiteral("-o"), QStringLiteral("edited.fxt") },
            "none.json"));
    }

    void calibrationMergesExactly()
    {
        const auto data = fb::readArrays(data_.toStdString());
        QVERIFY2(data, why(data));
        // Four shards of 64 samples.
        const fb::Tensor all = data->at(0).second;
        QCOMPARE(all->sizes[0], int64_t(256));
        const std::vector<double> values = fb::toDoubles(*all);
        for (int i = 0; i < 4; ++i) {
            const auto begin = values.begin() + std::ptrdiff_t(values.size()) * i / 4;
            const fb::Tensor part
                = fb::makeFloat({ 64, 1, 8, 8 }, std::vector<float>(begin, begin + std::ptrdiff_t(values.size()) / 4));
            const auto written
                = fb::writeArrays({ { "x", part } }, here(qPrintable(QStringLiteral("part%1.npy").arg(i))).toStdString());
            QVERIFY2(written, why(written));
            QVERIFY(done({ QStringLiteral("calibrate"), demo_, QStringLiteral("--data"), QStringLiteral("part%1.npy").arg(i),
                             QStringLiteral("-o"), QStringLiteral("part%1.stats").arg(i) },
                "64 samples, 17 observed values\n"));
        }
        QVERIFY(done({ QStringLiteral("calibrate"), demo_, QStringLiteral("--data"), data_, QStringLiteral("-o"),
                         QStringLiteral("s.stats") },
            "256 samples, 17 observed values\n"));
        QVERIFY(done(words(QStringLiteral("merge part0.stats part1.stats part2.stats part3.stats -o m0.stats")), ""));
        QVERIFY(done(words(QStringLiteral("merge part2.stats part0.stats part3.stats part1.stats -o m1.stats")), ""));
        QVERIFY(!read("s.stats").isEmpty());
        QCOMPARE(read("m0.stats"), read("s.stats"));
        QCOMPARE(read("m1.stats"), read("s.stats"));

        const QJsonObject o = document(cli({ QStringLiteral("calibrate"), demo_, QStringLiteral("--data"), data_,
            QStringLiteral("-o"), QStringLiteral("t.stats"), QStringLiteral("--samples"), QStringLiteral("100"),
            QStringLiteral("--batch"), QStringLiteral("10"), QStringLiteral("--json") }));
        QCOMPARE(o[QLatin1String("samples")].toInt(), 100);
        QCOMPARE(o[QLatin1String("batches")].toInt(), 10);
        const QJsonObject x = o[QLatin1String("nodes")].toObject()[QLatin1String("x")].toObject();
        QCOMPARE(x[QLatin1String("count")].toInt(), 6400);
        QCOMPARE(x[QLatin1String("min")].toDouble(), double(*std::min_element(values.begin(), values.begin() + 6400)));
        QCOMPARE(x[QLatin1String("max")].toDouble(), double(*std::max_element(values.begin(), values.begin() + 6400)));

        // Statistics of another model, and files that are none.
        judge_.write(QStringLiteral("m.stats"), kBefore);
        QVERIFY(done(words(QStringLiteral("calibrate resnet18.fxt --data resnet18.in.npy -o other.stats"))));
        QVERIFY(fails(words(QStringLiteral("merge s.stats other.stats -o m.stats")), "other.stats"));
        QVERIFY(fails(words(QStringLiteral("merge s.stats demo.code.txt -o m.stats")), "demo.code.txt"));
        QVERIFY(fails(words(QStringLiteral("merge s.stats gone.stats -o m.stats")), "gone.stats"));
        const QByteArray stats = read("s.stats");
        judge_.write(QStringLiteral("cut.stats"), stats.left(stats.size() / 2));
        QVERIFY(fails(words(QStringLiteral("merge cut.stats -o m.stats")), "cut.stats"));
        QVERIFY(fails({ QStringLiteral("quantize"), demo_, QStringLiteral("--stats"), QStringLiteral("other.stats"),
                          QStringLiteral("-o"), QStringLiteral("none") },
            "another model"));
        QVERIFY(!QFile::exists(here("none")));
        QCOMPARE(read("m.stats"), kBefore);
    }

    void nonFiniteValuesAreTold()
    {
        std::vector<float> values(3 * 64, 0.5F);
        values[7] = NAN;
        values[70] = INFINITY;
        const auto written = fb::writeArrays({ { "x", fb::makeFloat({ 3, 1, 8, 8 }, values) } }, here("nan.npy").toStdString());
        QVERIFY2(written, why(written));
        const QStringList words{ QStringLiteral("calibrate"), demo_, QStringLiteral("--data"), QStringLiteral("nan.npy"),
            QStringLiteral("-o"), QStringLiteral("nan.stats") };
        const Ran text = cli(words);
        QCOMPARE(text.code, 0);
        QVERIFY2(text.out.contains("\nx: 2 values are nan or inf and were kept out\n"), text.out);
        const QJsonObject x = document(cli(words + QStringList{ QStringLiteral("--json") }))[QLatin1String("nodes")]
                                  .toObject()[QLatin1String("x")]
                                  .toObject();
        QCOMPARE(x[QLatin1String("nan")].toInt(), 1);
        QCOMPARE(x[QLatin1String("inf")].toInt(), 1);
        QCOMPARE(x[QLatin1String("max")].toDouble(), 0.5);
        const Ran quantized = cli({ QStringLiteral("quantize"), demo_, QStringLiteral("--stats"), QStringLiteral("nan.stats"),
            QStringLiteral("-o"), QStringLiteral("nan_int8") });
        QCOMPARE(quantized.code, 0);
        QVERIFY2(quantized.out.contains("\nx: 2 values are nan or inf and were kept out\n"), quantized.out);
    }

    // Labels that say nothing about the data are not passed over.
    void labelsThatDoNotFit()
    {
        Judge judge;
        QVERIFY2(judge.run({ "-c",
                     "import numpy, sys\n"
                     "x = numpy.load(sys.argv[1])[:4]\n"
                     "numpy.savez('few.npz', x=x, labels=numpy.zeros(3, 'int64'))\n"
                     "numpy.savez('beyond.npz', x=x, labels=numpy.array([0, 1, 99, 2]))\n"
                     "numpy.savez('none.npz', x=x)\n",
                     data_ }),
            judge.error);
        const auto quantized = [&](const char *test) {
            return cli({ "quantize", demo_, "--data", data_, "--test", judge.path(test), "-o", judge.path("q"), "--quiet" });
        };
        const Ran few = quantized("few.npz"), beyond = quantized("beyond.npz"), none = quantized("none.npz");
        QCOMPARE(few.code, 1);
        QVERIFY2(few.err.contains("labels holds 3 labels for 4 samples"), few.err);
        QCOMPARE(beyond.code, 1);
        QVERIFY2(beyond.err.contains("label 99 of sample 2 is none of the model's 10 classes"), beyond.err);
        QCOMPARE(none.code, 0);
        QVERIFY2(none.err.contains("warning: no accuracy: "), none.err);
    }

    void quantizeAndExport()
    {
        QVERIFY(done({ QStringLiteral("calibrate"), demo_, QStringLiteral("--data"), data_, QStringLiteral("-o"),
            QStringLiteral("q.stats") }));
        const Ran fromData = cli({ QStringLiteral("quantize"), demo_, QStringLiteral("--data"), data_, QStringLiteral("--test"),
            test_, QStringLiteral("-o"), QStringLiteral("q_data"), QStringLiteral("--json"), QStringLiteral("--quiet") });
        QVERIFY2(fromData.code == 0 && fromData.err.isEmpty(), fromData.why());
        const Ran fromStats = cli({ QStringLiteral("quantize"), demo_, QStringLiteral("--stats"), QStringLiteral("q.stats"),
            QStringLiteral("--test"), test_, QStringLiteral("-o"), QStringLiteral("q_stats"), QStringLiteral("--quiet") });
        QVERIFY2(fromStats.code == 0 && fromStats.err.isEmpty(), fromStats.why());
        QVERIFY2(fromStats.out.contains(" nodes in int8 for x86\n") && fromStats.out.contains("gain stays float")
                && fromStats.out.endsWith("written to q_stats\n"),
            fromStats.out);

        const QJsonObject a = document(fromData), b = QJsonDocument::fromJson(read("q_stats/report.json")).object();
        QCOMPARE(QJsonDocument::fromJson(read("q_data/report.json")).object(), a);
        QVERIFY(a[QLatin1String("layers")].toArray().size() > 10);
        for (const char *key : { "layers", "evaluation", "int8_nodes", "float_nodes", "fused" })
            QVERIFY2(!a[QLatin1String(key)].isUndefined() && a[QLatin1String(key)] == b[QLatin1String(key)], key);
        const QJsonObject evaluation = a[QLatin1String("evaluation")].toObject();
        QVERIFY(evaluation[QLatin1String("top1_float")].toDouble() >= 0.97);
        QVERIFY(evaluation[QLatin1String("top1_int8")].toDouble() >= evaluation[QLatin1String("top1_float")].toDouble() - 0.01);
        QCOMPARE(QJsonDocument::fromJson(read("q_stats/recipe.json"))
                     .object()[QLatin1String("calibrate")]
                     .toObject()[QLatin1String("stats")],
            QJsonValue(QStringLiteral("q.stats")));
        QVERIFY(read("q_stats/model.py").contains("calibrated on q.stats (256 samples"));
        for (const char *name : { "model.py", "weights.pt", "report.json", "recipe.json" })
            QVERIFY2(QFile::exists(here("q_data/") + QLatin1String(name)), name);

        QVERIFY(done({ QStringLiteral("export"), demo_, QStringLiteral("--form"), QStringLiteral("quantized"),
            QStringLiteral("--stats"), QStringLiteral("q.stats"), QStringLiteral("-o"), QStringLiteral("x_int8") }));
        QVERIFY(done({ QStringLiteral("export"), demo_, QStringLiteral("--form"), QStringLiteral("python"), QStringLiteral("-o"),
            QStringLiteral("x_float") }));

        // In plain PyTorch: each folder checks itself.
        for (const char *folder : { "q_data", "x_int8", "x_float" })
            QVERIFY2(judge_.run({ here(folder) + QStringLiteral("/model.py") }), judge_.output + judge_.error);
        if (!second_.program.isEmpty())
            QVERIFY2(second_.run({ here("x_float") + QStringLiteral("/model.py") }), second_.output + second_.error);

        // What a recipe says can be asked for again.
        const QByteArray recipe
            = QJsonDocument(QJsonDocument::fromJson(read("q_data/recipe.json")).object()[QLatin1String("quantize")].toObject())
                  .toJson();
        judge_.write(QStringLiteral("qconfig.json"),
            QByteArray(recipe).replace("\"float_nodes\": [\n    ]", "\"float_nodes\": [\"classifier\"]"));
        const QStringList again{ QStringLiteral("quantize"), demo_, QStringLiteral("--stats"), QStringLiteral("q.stats"),
            QStringLiteral("--qconfig"), QStringLiteral("qconfig.json"), QStringLiteral("-o"), QStringLiteral("q_again") };
        const Ran kept = cli(again + QStringList{ QStringLiteral("--quiet") });
        QVERIFY2(kept.code == 0 && kept.out.contains("classifier"), kept.out + kept.err);
        judge_.write(QStringLiteral("qconfig.json"), R"({"backend": "x86", "observer": "CrystalBall"})");
        QVERIFY(fails(again, "observer"));
    }

    void doctor()
    {
        const Ran ran = cli({ QStringLiteral("doctor"), QStringLiteral("--json") });
        QCOMPARE(ran.code, 0);
        const QJsonObject o = document(ran);
        QVERIFY(o[QLatin1String("torch")].toString().startsWith(QLatin1String("2.")));
        QVERIFY(o[QLatin1String("engines")].toArray().contains(QStringLiteral("x86")));
        QVERIFY(o[QLatin1String("python")].toObject()[QLatin1String("torch")].toString().startsWith(QLatin1String("2.")));
        QCOMPARE(o[QLatin1String("missing")].toArray().size(), 0);
        const Ran none
            = cli({ QStringLiteral("doctor") }, { { QStringLiteral("FUSEBOARD_PYTHON"), QStringLiteral("/nowhere/python") } });
        QCOMPARE(none.code, 0);
        QVERIFY2(none.out.contains("missing   Python at /nowhere/python does not run"), none.out);
    }

    void trace()
    {
        // A block that branches on its data: the JSON says where and what to do, the sentence too.
        judge_.write(QStringLiteral("t.fxt"), kBefore);
        const QStringList words{ QStringLiteral("trace"), source_, QStringLiteral("-o"), QStringLiteral("t.fxt"),
            QStringLiteral("--input"), QStringLiteral("1x1x8x8"), QStringLiteral("--quiet") };
        const Ran failed = cli(words + QStringList{ QStringLiteral("--json") });
        QCOMPARE(failed.code, 1);
        QCOMPARE(failed.err.count('\n'), 1);
        QVERIFY2(failed.err.contains("digits_net.py:33") && failed.err.contains("--leaf gain"), failed.err);
        const QJsonObject answer = document(failed);
        QVERIFY(!answer[QLatin1String("ok")].toBool(true));
        QCOMPARE(answer[QLatin1String("problems")].toArray().size(), 1);
        const QJsonObject p = answer[QLatin1String("problems")].toArray()[0].toObject();
        QCOMPARE(p[QLatin1String("module")].toString(), QStringLiteral("gain"));
        QCOMPARE(p[QLatin1String("class")].toString(), QStringLiteral("digits_net.GainLimit"));
        QCOMPARE(p[QLatin1String("file")].toString(), QStringLiteral("digits_net.py"));
        QCOMPARE(p[QLatin1String("line")].toInt(), 33);
        QCOMPARE(p[QLatin1String("source")].toString(), QStringLiteral("if bool((peak > self.limit).any()):"));
        QVERIFY(!p[QLatin1String("kind")].toString().isEmpty() && !p[QLatin1String("message")].toString().isEmpty());
        const QJsonObject fix = p[QLatin1String("fixes")].toArray()[0].toObject();
        QCOMPARE(fix[QLatin1String("kind")].toString(), QStringLiteral("leaf"));
        QCOMPARE(fix[QLatin1String("module")].toString(), QStringLiteral("gain"));
        QCOMPARE(read("t.fxt"), kBefore);
        QVERIFY(fails(words, "gain (digits_net.GainLimit), digits_net.py:33 `if bool((peak > self.limit).any()):`"));

        QVERIFY(done({ QStringLiteral("trace"), source_, QStringLiteral("--doctor") }, "gain\n"));
        const Ran traced = cli(words + QStringList{ QStringLiteral("--leaf"), QStringLiteral("gain"), QStringLiteral("--json") });
        QVERIFY2(traced.code == 0 && traced.err.isEmpty(), traced.why());
        QVERIFY(document(traced)[QLatin1String("ok")].toBool());
        QVERIFY(document(traced)[QLatin1String("warnings")].isArray());
        const Ran code = cli({ QStringLiteral("code"), demo_ });
        QVERIFY(done({ QStringLiteral("code"), QStringLiteral("t.fxt") }, code.out));

        // Every option reaches the tracer.
        judge_.write(QStringLiteral("net.py"),
            "import torch\nfrom torch import nn\n\n"
            "def twice(x):\n    return x * 2 if x.sum() > 0 else x\n\n"
            "class Net(nn.Module):\n"
            "    def __init__(self):\n        super().__init__()\n        self.drop = nn.Dropout()\n\n"
            "    def forward(self, x, flag=None, *, gain=1.0):\n"
            "        x = twice(x)\n        return self.drop(x) * gain if flag else x\n\n"
            "made = Net()\n");
        const Ran options = cli({ QStringLiteral("trace"), QStringLiteral("net.py:made"), QStringLiteral("-o"),
            QStringLiteral("net.fxt"), QStringLiteral("--input"), QStringLiteral("2x3"), QStringLiteral("--kwarg"),
            QStringLiteral("gain=1"), QStringLiteral("--concrete"), QStringLiteral("flag=True"), QStringLiteral("--wrap"),
            QStringLiteral("net.twice"), QStringLiteral("--keep-mode"), QStringLiteral("--leaf-class"),
            QStringLiteral("torch.nn.modules.dropout.Dropout"), QStringLiteral("--python"), python() });
        QVERIFY2(options.code == 0, options.why());
        QVERIFY2(options.err.contains("warning: "), options.err); // dropout in training mode
        const Ran net = cli({ QStringLiteral("code"), QStringLiteral("net.fxt") });
        QVERIFY2(net.out.contains("net_twice(") && net.out.contains("self.drop("), net.out);

        QVERIFY(fails({ QStringLiteral("trace"), QStringLiteral("gone.py:make"), QStringLiteral("-o"), QStringLiteral("g.fxt") },
            "gone.py"));
        QVERIFY(fails(
            { QStringLiteral("trace"), QStringLiteral("net.py:gone"), QStringLiteral("-o"), QStringLiteral("g.fxt") }, "gone"));
        QVERIFY(fails({ QStringLiteral("trace"), source_, QStringLiteral("--leaf"), QStringLiteral("gain"), QStringLiteral("-o"),
                          QStringLiteral("/dev/full/g.fxt") },
            "/dev/full/g.fxt"));
    }

    void noPythonOrNoTorch()
    {
        // An interpreter without torch, and a program that is no Python at all.
        const QString bare = judge_.write(QStringLiteral("bare_python"), "#!/bin/sh\nexec /usr/bin/python3 -I -S \"$@\"\n");
        QVERIFY(QFile::setPermissions(bare, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
        const QStringList words{ QStringLiteral("trace"), source_, QStringLiteral("-o"), QStringLiteral("p.fxt"),
            QStringLiteral("--python") };
        judge_.write(QStringLiteral("p.fxt"), kBefore);
        QVERIFY(fails(words + QStringList{ bare }, "has no torch"));
        QVERIFY(fails(words + QStringList{ QStringLiteral("/nowhere/python") }, "no Python at /nowhere/python"));
        QVERIFY(fails(words + QStringList{ QStringLiteral("/bin/true") }, "/bin/true ended without an answer"));
        QVERIFY(fails(words.first(4), "no Python at /nowhere/python",
            { { QStringLiteral("FUSEBOARD_PYTHON"), QStringLiteral("/nowhere/python") } }));
        const Ran json = cli(words + QStringList{ bare, QStringLiteral("--json"), QStringLiteral("--quiet") });
        QCOMPARE(json.code, 1);
        const QJsonObject p = document(json)[QLatin1String("problems")].toArray()[0].toObject();
        QVERIFY(p[QLatin1String("message")].toString().contains(QLatin1String("has no torch")));
        for (const char *key : { "kind", "module", "class", "file", "line", "source", "message", "fixes" })
            QVERIFY2(p.contains(QLatin1String(key)), key);
        QCOMPARE(read("p.fxt"), kBefore);
    }

    void badArchives_data()
    {
        QTest::addColumn<QString>("file");
        judge_.write(QStringLiteral("bad_empty.fxt"), {});
        judge_.write(QStringLiteral("bad_foreign.fxt"), "\x89PNG\r\n\x1a\n and no archive");
        const QByteArray whole = contents(demo_);
        judge_.write(QStringLiteral("bad_cut.fxt"), whole.left(whole.size() * 2 / 3));
        judge_.write(QStringLiteral("bad_flipped.fxt"), QByteArray(whole).replace("PK\x01\x02", "PK\x01\x07"));
        QDir folder(judge_.path({}));
        folder.mkdir(QStringLiteral("bad_folder.fxt"));
        const QStringList files = folder.entryList({ QStringLiteral("bad_*.fxt") });
        for (const QString &file : files)
            QTest::newRow(qPrintable(file)) << file;
        QTest::newRow("missing") << QStringLiteral("bad_missing.fxt");
        QVERIFY(files.size() >= 15);
    }
    void badArchives()
    {
        QFETCH(QString, file);
        judge_.write(QStringLiteral("kept.npy"), kBefore);
        QVERIFY(fails({ QStringLiteral("run"), file, QStringLiteral("-o"), QStringLiteral("kept.npy") },
            qPrintable(file + QStringLiteral(": "))));
        QCOMPARE(read("kept.npy"), kBefore);
    }

    void badInputs()
    {
        judge_.write(QStringLiteral("kept.npy"), kBefore);
        auto run = [this](const char *input, const char *needle) {
            return fails({ QStringLiteral("run"), demo_, QStringLiteral("--input"), QString::fromLatin1(input),
                             QStringLiteral("-o"), QStringLiteral("kept.npy") },
                needle);
        };
        QVERIFY(run("1x3x8x8", "stem_conv"));
        QVERIFY(run("1x3x8x8", "its input x is 1x3x8x8 float32 and was 1x1x8x8 float32 when the model was traced"));
        QVERIFY(run("1x1x8x8:int64", "its input x is 1x1x8x8 int64"));
        QVERIFY(run("1x1x8x8:float99", "float99"));
        QVERIFY(run("1xax8", "1xax8"));
        QVERIFY(run("gone.npy", "gone.npy"));
        QVERIFY(run("99999999999x99999999999", "99999999999"));
        judge_.write(QStringLiteral("cut.npy"), contents(data_).left(1000));
        QVERIFY(run("cut.npy", "cut.npy"));
        QVERIFY(fails({ QStringLiteral("run"), demo_, QStringLiteral("--input"), QStringLiteral("1x1x8x8"),
                          QStringLiteral("1x1x8x8"), QStringLiteral("-o"), QStringLiteral("kept.npy") },
            "takes 1 input"));
        QVERIFY(fails({ QStringLiteral("shapes"), demo_, QStringLiteral("--input"), QStringLiteral("1x3x8x8") }, "stem_conv"));
        QCOMPARE(read("kept.npy"), kBefore);
    }

    void badData()
    {
        QDir folder(judge_.path({}));
        folder.mkdir(QStringLiteral("empty"));
        folder.mkdir(QStringLiteral("prose"));
        judge_.write(QStringLiteral("prose/readme.txt"), "no data");
        judge_.write(QStringLiteral("kept.stats"), kBefore);
        const auto none = fb::writeArrays({ { "x", fb::makeFloat({ 0, 1, 8, 8 }, {}) } }, here("none.npy").toStdString());
        QVERIFY2(none, why(none));
        auto calibrate = [this](const char *data, const char *needle) {
            return fails({ QStringLiteral("calibrate"), demo_, QStringLiteral("--data"), QString::fromLatin1(data),
                             QStringLiteral("-o"), QStringLiteral("kept.stats") },
                needle);
        };
        QVERIFY(calibrate("empty", "empty: the folder holds no .npy, .npz or .safetensors file"));
        QVERIFY(calibrate("prose", "prose: the folder holds no .npy, .npz or .safetensors file"));
        QVERIFY(calibrate("gone", "gone: there is no such data"));
        QVERIFY(calibrate("none.npy", "no samples"));
        QVERIFY(calibrate("prose/readme.txt", "readme.txt"));
        QVERIFY(calibrate("resnet18.in.npy", "float32 Nx1x8x8"));
        QCOMPARE(read("kept.stats"), kBefore);
        QVERIFY(fails({ QStringLiteral("quantize"), demo_, QStringLiteral("--data"), QStringLiteral("empty"),
                          QStringLiteral("-o"), QStringLiteral("q_none") },
            "empty: the folder holds no"));
        QVERIFY(!QFile::exists(here("q_none")));
    }

    void badTargets()
    {
        QDir folder(judge_.path({}));
        folder.mkdir(QStringLiteral("taken.fxt"));
        folder.mkdir(QStringLiteral("taken.npy"));
        folder.mkdir(QStringLiteral("taken.stats"));
        judge_.write(QStringLiteral("file"), kBefore);
        auto all = [this](const QString &place, const char *needle) {
            return fails({ QStringLiteral("fuse"), demo_, QStringLiteral("-o"), place + QStringLiteral(".fxt") }, needle)
                && fails({ QStringLiteral("run"), demo_, QStringLiteral("-o"), place + QStringLiteral(".npy") }, needle)
                && fails({ QStringLiteral("calibrate"), demo_, QStringLiteral("--data"), data_, QStringLiteral("-o"),
                             place + QStringLiteral(".stats") },
                    needle);
        };
        QVERIFY(all(QStringLiteral("taken"), "taken."));
        QVERIFY(all(QStringLiteral("file/x"), "file/x."));
        QVERIFY(all(QStringLiteral("nowhere/x"), "nowhere/x."));
        QVERIFY(all(QStringLiteral("/proc/x"), "/proc/x.")); // takes no files, not even root's
        for (const char *place : { "file", "file/x", "/proc/x" })
            QVERIFY(fails({ QStringLiteral("export"), demo_, QStringLiteral("--form"), QStringLiteral("python"),
                              QStringLiteral("-o"), QString::fromLatin1(place) },
                place));
        QCOMPARE(read("file"), kBefore);

        // A result that cannot be written is a failure too.
        const Ran full = cli({ QStringLiteral("code"), demo_ }, {}, QStringLiteral("/dev/full"));
        QCOMPARE(full.code, 1);
        QVERIFY2(full.err.count('\n') == 1 && full.err.contains("standard output"), full.err);
    }

    void fullDisk()
    {
        // A limit on file sizes is a full disk in small: what is there stays, and nothing crashes.
        const QString limited = judge_.write(
            QStringLiteral("limited"), "#!/bin/sh\ntrap '' XFSZ\nulimit -f 8\nexec \"$FUSEBOARD_CLI\" \"$@\" --quiet\n");
        for (const char *command : { "fuse DEMO -o full.fxt", "run DEMO --input 256x1x8x8 --node stem_conv -o full.npy",
                 "calibrate DEMO --data DATA -o full.stats", "trace SOURCE --leaf gain -o full.fxt",
                 "export DEMO --form python -o full" }) {
            QStringList arguments = words(QString::fromLatin1(command));
            arguments.replaceInStrings(QStringLiteral("DEMO"), demo_);
            arguments.replaceInStrings(QStringLiteral("DATA"), data_);
            arguments.replaceInStrings(QStringLiteral("SOURCE"), source_);
            const bool folder = !arguments.last().contains(QLatin1Char('.'));
            if (!folder)
                judge_.write(arguments.last(), kBefore);
            QProcess p;
            p.setWorkingDirectory(judge_.path({}));
            p.start(QStringLiteral("/bin/sh"), QStringList{ limited } + arguments);
            QVERIFY(p.waitForFinished(180000));
            const QByteArray err = p.readAllStandardError();
            QVERIFY2(p.exitStatus() == QProcess::NormalExit && p.exitCode() == 1, command);
            QVERIFY2(err.count('\n') == 1 && err.contains("cannot be written"), err);
            if (!folder)
                QCOMPARE(contents(judge_.path(arguments.last())), kBefore);
        }
    }

    void nothingIsLeftBehind()
    {
        // Temporary files lie beside their target, under its name and a suffix.
        const QRegularExpression temporary(QStringLiteral("(^\\.|\\.(fxt|npy|npz|stats|safetensors|pt)[._-]|tmp)"));
        QCOMPARE(QDir(judge_.path({})).entryList(QDir::Files | QDir::Hidden).filter(temporary), QStringList());
    }
};

QTEST_GUILESS_MAIN(TstCli)
#include "tst_cli.moc"
