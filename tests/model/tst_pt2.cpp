// Exported programs against real PyTorch: tests/oracle/pt2_oracle.py exports and runs each model, here the archive opens and runs
// on the same inputs. Archives of older versions stand in tests/oracle/pt2, with what those computed. GPL-3.0-or-later.
#include <QTest>

#include <cmath>
#include <fstream>
#include <map>

#include "model/exec/interpreter.h"
#include "model/io/files.h"
#include "model/io/fxt.h"
#include "model/io/models.h"
#include "support/graphs.h"
#include "support/pt2.h"
#include "support/python.h"

using namespace fb;
using fbtest::why;

namespace
{

using fbtest::Members;
using fbtest::zipped;

std::vector<Tensor> tensorsOf(const Arg &value)
{
    std::vector<Tensor> out;
    forEachTensor(value, [&](const Tensor &t) { out.push_back(t); });
    return out;
}

// torch.utils._pytree's order: dictionaries by their keys' order of insertion.
bool equal(const Tensor &a, const Tensor &b)
{
    if (a->sizes != b->sizes)
        return false;
    const auto x = toDoubles(*a), y = toDoubles(*b);
    return std::equal(
        x.begin(), x.end(), y.begin(), y.end(), [](double p, double q) { return p == q || (std::isnan(p) && std::isnan(q)); });
}

} // namespace

class TestPt2 : public QObject
{
    Q_OBJECT
    fbtest::Judge judge_;
    QTemporaryDir folder_;

    std::string file(const std::string &bytes)
    {
        const std::string path = folder_.filePath("case.pt2").toStdString();
        std::ofstream(path, std::ios::binary) << bytes;
        return path;
    }
    // What is said about it after the name of the file; "" when it opens.
    std::string says(const Members &members)
    {
        const std::string path = file(zipped(members));
        const auto gm = readModel(path);
        if (gm)
            return "";
        const std::string &message = gm.message();
        return message.starts_with(path + ": ") && message.find('\n') == message.npos ? message.substr(path.size() + 2)
                                                                                      : "badly said: " + message;
    }
    std::string says(const std::string &member, const std::string &content)
    {
        Members members = fbtest::handMadePt2();
        members[member] = content;
        return says(members);
    }
    std::string says(const char *member, const std::string &what, const std::string &by)
    {
        std::string text = fbtest::handMadePt2()[member];
        const size_t at = text.find(what);
        return at == text.npos ? "no such text in the case" : says(member, text.replace(at, what.size(), by));
    }
    // The archive's graph on the inputs beside it, against the outputs beside it.
    void runsEqual(const QString &stem)
    {
        setThreads(2);
        const auto gm = readModel((stem + ".pt2").toStdString());
        QVERIFY2(gm.ok(), why(gm));
        const auto given = readNpz((stem + "-in.npz").toStdString()), expected = readNpz((stem + "-out.npz").toStdString());
        QVERIFY(given && expected);
        std::map<std::string, Tensor> byName(given->begin(), given->end());
        ArgList args;
        for (const NodeId id : gm->graph.placeholders()) {
            const Node &p = gm->graph[id];
            if (!byName.contains(p.target)) {
                QVERIFY2(!p.args.empty(), p.target.c_str());
                args.push_back(p.args.front());
            } else {
                args.emplace_back(byName.at(p.target));
            }
        }
        auto interpreter = Interpreter::create(*gm);
        QVERIFY2(interpreter.ok(), why(interpreter));
        const auto output = interpreter->run(args);
        QVERIFY2(output.ok(), why(output));
        const std::vector<Tensor> ours = tensorsOf(*output);
        QCOMPARE(ours.size(), expected->size());
        for (size_t i = 0; i < ours.size(); ++i)
            QVERIFY2(equal(ours[i], (*expected)[i].second), ("output " + std::to_string(i)).c_str());
    }

private slots:
    void initTestCase() { QVERIFY2(judge_.oracle("pt2_oracle.py", { "make", judge_.path(".") }), judge_.error); }

    void equalsTorch_data()
    {
        QTest::addColumn<QString>("stem");
        for (const QString &name : QDir(judge_.path(".")).entryList({ "*.pt2" }))
            QTest::newRow(qPrintable(name)) << judge_.path(name.chopped(4));
    }
    void equalsTorch()
    {
        QFETCH(QString, stem);
        runsEqual(stem);
    }

    void olderLayouts_data()
    {
        QTest::addColumn<QString>("stem");
        for (const char *version : { "2.5.1", "2.7.1", "2.8.0", "2.9.1" })
            QTest::newRow(version) << fbtest::sourceDir() + "/tests/oracle/pt2/" + version;
    }
    void olderLayouts()
    {
        QFETCH(QString, stem);
        runsEqual(stem);
        if (QTest::currentTestFailed())
            return;
        const auto gm = readModel((stem + ".pt2").toStdString());
        QCOMPARE(gm->rootClass.c_str(), "Layout");
        QVERIFY(gm->tensor("head.weight") && gm->tensor("head.weight") == gm->tensor("block.lin.weight")); // tied
        QVERIFY(!gm->tensors.find("block.shift")->persistent && gm->tensors.find("block.shift")->tensor);
        QCOMPARE(gm->tensors.find("turned")->tensor->strides, (std::vector<int64_t>{ 1, 3 }));
        QCOMPARE(gm->provenance.torchVersion.substr(0, 5).c_str(), qPrintable(stem.right(5)));
    }

    void containersOfTheForward()
    {
        const auto gm = readModel(judge_.path("nested.pt2").toStdString());
        QVERIFY2(gm.ok(), why(gm));
        const Graph &g = gm->graph;
        QStringList names;
        for (const NodeId id : g.placeholders())
            names << QString::fromStdString(g[id].target);
        QCOMPARE(names, (QStringList{ "x", "d_q", "d_p_0", "d_p_1", "k" }));
        QVERIFY(g[g.find("k")].args.front().isNone());
        const auto &call = gm->provenance.call;
        QVERIFY(call);
        QCOMPARE(call->args[0].node(), g.find("x"));
        QCOMPARE(call->args[1].dictionary()->items[1].second.sequence()->items[1].node(), g.find("d_p_1"));
        QCOMPARE(call->kwargs.front().first.c_str(), "k");
        const Arg &out = g[g.output()].args.front();
        QCOMPARE(out.sequence()->items.size(), size_t(4));
        QCOMPARE(out.sequence()->items[0].dictionary()->items[1].first, Arg("z"));
        QCOMPARE(out.sequence()->items[2], Arg(5));
        QVERIFY(!g.find("unused_weight") && gm->tensors.contains("unused.weight"));
        const NodeId second = g.find("linear_1");
        QCOMPARE(g[second].stack->back().path.c_str(), "again.lin");
        QCOMPARE(g[second].stack->back().className.c_str(), "torch.nn.modules.linear.Linear");
        QVERIFY(g[second].source->file.ends_with("pt2_oracle.py")
            && g[second].source->code == "return self.lin(x) + self.shift * self.counter");
        QCOMPARE(g[second].meta->shape, (std::vector<int64_t>{ 3, 4 }));
    }

    void LD_04_layoutsVersionsAndState()
    {
        QCOMPARE(says(fbtest::handMadePt2()), std::string());
        const auto gm = readModel(file(zipped(fbtest::handMadePt2())));
        const Graph &g = gm->graph;
        // One input, one output; the parameter is a weight, the new value of the buffer goes into the buffer.
        QCOMPARE(g.placeholders().size(), size_t(1));
        QCOMPARE(g[g.output()].args.front().node(), g.find("linear_1"));
        QCOMPARE(g[g.find("l_weight")].target.c_str(), "l.weight");
        QVERIFY(gm->tensors.find("l.weight")->parameter && !gm->tensors.find("counter")->parameter);
        const NodeId copy = g.find("copy_");
        QVERIFY(copy && g[copy].args[0].node() == g.find("counter") && g[copy].args[1].node() == g.find("add"));
        QCOMPARE(gm->provenance.inputs.front().shape, (std::vector<int64_t>{ 4, 1 }));

        const char *program = "m/models/model.json";
        QVERIFY(says(program, "\"major\":8,\"minor\":20", "\"major\":8,\"minor\":999").empty()); // minor versions add
        QVERIFY(says(program, "\"major\":8", "\"major\":999")
                    .starts_with("its schema version is 999, and this Fuseboard reads 7 and 8"));
        QVERIFY(says(program, "\"major\":8", "\"major\":5").starts_with("its schema version is 5"));
        QVERIFY(says("m/archive_version", "99").starts_with("its archive_version is 99"));
        QVERIFY(says("m/archive_format", "zip").starts_with("its archive_format is \"zip\""));
        QVERIFY(says("m/byteorder", "big").starts_with("its weights were written on a big-endian machine"));
        QVERIFY(says("m/data/weights/weight_0", "ab").starts_with("weight l.weight reaches beyond its data of 2 bytes"));
        Members members = fbtest::handMadePt2();
        members.erase("m/data/weights/weight_1");
        QCOMPARE(says(members).c_str(),
            "its weights are incomplete: m/data/weights/weight_1 (counter) is missing; copy or export it again");
        members = fbtest::handMadePt2();
        members.erase("m/models/model.json");
        QVERIFY(says(members).starts_with("it holds no models/NAME.json"));
        members["m/data/aotinductor/model/x.so"] = "";
        QVERIFY(says(members).starts_with("it is a compiled package (AOTInductor) and holds no graph"));
        members = fbtest::handMadePt2();
        members["m/models/other.json"] = "{}";
        QVERIFY(says(members).starts_with("it holds 2 models (model, other)"));
        QVERIFY(says(program, "\"as_int\":1}", "\"as_secret\":1}").find("as_secret") != std::string::npos);
        QCOMPARE(says(program, R"("name":"b_counter"}},"kind")", R"("name":"gone"}},"kind")").c_str(),
            "add uses gone, which nothing before it gives; export the model again");
        QVERIFY(says("m/data/weights/model_weights_config.json", "\"layout\":7", "\"layout\":1")
                    .starts_with("weight l.weight is not a dense tensor"));
        QVERIFY(says("m/data/weights/model_weights_config.json", "\"strides\":[{\"as_int\":1}", "\"strides\":[{\"as_int\":-1}")
                    .find("reaches beyond")
            != std::string::npos);
    }

    void LD_05_oneModuleTwice()
    {
        const auto gm = readModel(file(zipped(fbtest::handMadePt2())));
        QVERIFY2(gm.ok(), why(gm));
        const Graph &g = gm->graph;
        QCOMPARE(g[g.find("linear")].stack->back(), (ModuleFrame{ "l", "torch.nn.modules.linear.Linear", 0 }));
        QCOMPARE(g[g.find("linear_1")].stack->back(), (ModuleFrame{ "l", "torch.nn.modules.linear.Linear", 1 }));
        auto run = Interpreter::create(*gm);
        const auto r = run->run({ makeFloat({ 1, 1 }, { 2 }) });
        QVERIFY2(r.ok(), why(r));
        QCOMPARE(toDoubles(**r->as<Tensor>()), std::vector<double>{ 200 });
    }

    // SF-01, SF-02: weights that are pickled objects are not read, and nothing of them runs.
    void SF_02_pickledWeights()
    {
        QVERIFY2(judge_.oracle("pt2_oracle.py", { "hostile", judge_.path(".") }), judge_.error);
        const std::string good = judge_.path("old.pt2").toStdString();
        const auto gm = readModel(good);
        QVERIFY2(!gm.ok(), "a pickle that calls os.system must not open");
        QVERIFY2(gm.message().find("posix.system") != std::string::npos, why(gm));
        QVERIFY(!QFile::exists(judge_.path("ran")));
        const auto subclass = readModel(judge_.path("subclass.pt2").toStdString());
        QVERIFY2(subclass.ok(), why(subclass));
        QVERIFY(!subclass->provenance.warnings.empty());
        QVERIFY(!notExecutable(*subclass).empty() || !Interpreter::create(*subclass)->run({ makeFloat({ 4 }, { 1, 2, 3, 4 }) }));
    }

    // Every length of an archive, and thousands of changes in its texts, give one sentence each.
    void damaged()
    {
        const std::string good = zipped(fbtest::handMadePt2());
        for (size_t n = 0; n < good.size(); n += 7) {
            const auto gm = readModel(file(good.substr(0, n)));
            QVERIFY(!gm && gm.message().find('\n') == std::string::npos);
        }
        const std::vector<std::string> words{ "null", "[]", "{}", "-1", "1e999", "\"x\"", "18446744073709551615", "[[[",
            "{\"as_none\":true}", "true", "" };
        uint32_t seed = 1;
        auto random = [&] { return (seed = seed * 1664525 + 1013904223) >> 8; };
        const Members parts = fbtest::handMadePt2();
        for (int i = 0; i < 3000; ++i) {
            const char *member = i % 4 ? "m/models/model.json" : "m/data/weights/model_weights_config.json";
            std::string text = parts.at(member);
            const size_t at = random() % text.size();
            if (random() % 2)
                text.replace(at, random() % 12, words[random() % words.size()]);
            else
                text[at] = char(random());
            const std::string said = says(member, text);
            QVERIFY2(!said.starts_with("badly"), said.c_str());
        }
    }
};

QTEST_MAIN(TestPt2)
#include "tst_pt2.moc"
