// Quantization against torch.ao's prepare_fx and convert_fx, live, and the cases QO, QS and CG that concern it. GPL-3.0-or-later.
#include <QTest>

#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "model/exec/interpreter.h"
#include "model/io/fxt.h"
#include "model/ir/lint.h"
#include "passes/edits.h"
#include "passes/export_python.h"
#include "passes/fuse.h"
#include "passes/quantize.h"
#include "support/graphs.h"
#include "support/python.h"

using namespace fb;
using json = nlohmann::json;

class TstQuantize : public QObject
{
    Q_OBJECT

    fbtest::Judge judge_;
    std::map<std::string, json> truth_; // by backend
    std::map<std::string, std::vector<std::string>> folders_; // what was exported, by engine ("" is float)

    std::string path(const std::string &name) { return judge_.path(QString::fromStdString(name)).toStdString(); }

    // A fused model, its calibration and its int8 form.
    struct Made {
        GraphModule fused;
        std::vector<Arg> inputs;
        Calibration calibration;
        QuantPlan plan;
        std::optional<QuantResult> result;
        std::string error;
    };
    Made make(const std::string &name, QuantConfig config, const std::string &leaf = "", uint64_t batch = 4)
    {
        Made m;
        const auto failed = [&](const std::string &why) {
            m.error = name + ": " + why;
            return m;
        };
        auto gm = readFxt(path(name + ".fxt"));
        if (!gm)
            return failed(gm.message());
        m.fused = *gm;
        if (auto r = fuseAll(m.fused); !r)
            return failed(r.message());
        if (!leaf.empty())
            if (auto r = markLeaf(m.fused, leaf); !r)
                return failed(r.message());
        auto data = openData(path(name + ".npy"), m.fused);
        if (!data)
            return failed(data.message());
        m.inputs.assign(data->inputs.begin(), data->inputs.end());
        CalibrateOptions options;
        options.batch = batch;
        auto calibration = calibrate(m.fused, *data, options);
        if (!calibration)
            return failed(calibration.message());
        m.calibration = *calibration;
        auto plan = planQuantization(m.fused, config);
        if (!plan)
            return failed(plan.message());
        m.plan = *plan;
        auto result = convert(m.fused, m.plan, m.calibration);
        if (!result)
            return failed(result.message());
        m.result = std::move(*result);
        return m;
    }

    static QuantConfig on(const std::string &backend)
    {
        QuantConfig config;
        config.backend = backend;
        return config;
    }

    static Result<Arg> run(const GraphModule &gm, const std::vector<Arg> &inputs, const std::string &engine)
    {
        auto interpreter = Interpreter::create(gm);
        if (!interpreter)
            return interpreter.error();
        RunOptions options;
        options.engine = engine;
        return interpreter->run(inputs, options);
    }

    // Exports for `exported` to load, with what it gives here.
    Status keep(const std::string &name, const GraphModule &gm, const std::vector<Arg> &inputs, const Arg &output,
        const std::string &engine)
    {
        ExportOptions options;
        options.directory = path(name + "_" + (engine.empty() ? "float" : engine));
        options.engine = engine;
        options.sampleInputs = inputs;
        options.sampleOutput = output;
        options.tolerance = engine.empty() ? 1e-5 : 0;
        folders_[engine].push_back(options.directory);
        return exportPython(gm, options);
    }

    // Every node has a row, and every row that is not int8 says why.
    static std::string rowsWrong(const Made &m)
    {
        std::set<std::string> seen;
        for (const QuantRow &row : m.result->rows) {
            seen.insert(row.node);
            const bool end = row.state == "input" || row.state == "output" || row.state == "constant";
            if (row.reason.empty() != (row.state == "int8" || end))
                return row.node + " is " + row.state + ": '" + row.reason + "'";
            const NodeQuant &q = m.plan.nodes.at(m.fused.graph.find(row.node));
            if (row.state == "int8" && (row.converted.empty() != (m.fused.graph[q.last].name != row.node) || q.pattern.empty()))
                return row.node + " is int8 without its facts";
            if (q.group >= 0 && !(row.scale > 0))
                return row.node + " is observed without a scale";
        }
        for (NodeId id : m.fused.graph.order())
            if (m.fused.graph[id].op != Opcode::GetAttr && !seen.contains(m.fused.graph[id].name))
                return m.fused.graph[id].name + " has no row";
        for (NodeId id : m.result->graph.graph.order()) {
            const Node &n = m.result->graph.graph[id];
            if (n.op != Opcode::Output && n.target != "getattr" && !n.meta && !m.fused.graph.contains(id))
                return n.name + " was put in without a shape";
            if (n.target == "torch.quantize_per_tensor" && n.meta->dtype != DType::QUInt8)
                return n.name + " does not say that it is quint8";
        }
        for (const LintProblem &p : lint(m.result->graph))
            return "lint: " + p.node + " " + p.message;
        return {};
    }

    static std::string observed(const QuantResult &r)
    {
        std::string out;
        char text[64];
        for (const QuantRow &row : r.rows)
            if (row.group >= 0) {
                std::snprintf(text, sizeof text, " %.6f %d", row.scale, int(row.zeroPoint));
                out += (out.empty() ? "" : ", ") + row.node + text;
            }
        return out;
    }

    static const QuantRow *rowOf(const QuantResult &r, const std::string &node)
    {
        for (const QuantRow &row : r.rows)
            if (row.node == node)
                return &row;
        return nullptr;
    }

private slots:
    void initTestCase()
    {
        QStringList names{ "trace" };
        for (const char *name : { "nested", "residual", "residual_relu", "cat", "view", "sequential", "odd_names", "zeros",
                 "bad_data", "sigmoid", "tanh", "softmax", "alpha", "tiny", "masked", "leaf", "opaque", "keywords",
                 "keywords_conv", "lstm", "embedding", "gelu", "norm", "drop_path", "number" })
            names << QString::fromLatin1(name);
        QVERIFY2(judge_.oracle("quant_oracle.py", names), judge_.error);
    }

    void qparams()
    {
        const auto is = [](QuantParams q, double scale, int64_t zero) {
            return std::abs(q.scales[0] - scale) < 1e-7 && q.zeroPoints[0] == zero;
        };
        QVERIFY(is(minMaxQParams(0, 0, false), 1.1920929e-07, 0)); // QO-01
        QVERIFY(is(minMaxQParams(1, 3, false), 0.0117647, 0)); // QO-05
        QVERIFY(is(minMaxQParams(-3, -1, false), 0.0117647, 255));
        QVERIFY(is(minMaxQParams(5, 5, false), 0.0196078, 0));
        QVERIFY(is(minMaxQParams(-1, 1, false), 0.0078431, 127)); // QS-08
        QVERIFY(is(minMaxQParams(-1, 1, true), 0.0157480, 64));
        const auto w = weightQParams(makeFloat({ 2, 1, 1, 1 }, { 1, 100 }), 0);
        QVERIFY(
            w.ok() && w->scales.size() == 2 && w->scales[0] == double(1.0f / 127.5f) && w->scales[1] == double(100.0f / 127.5f));
    }

    void againstTorch_data()
    {
        QTest::addColumn<QString>("backend");
        QTest::addColumn<QString>("name");
        for (const char *backend : { "x86", "qnnpack" })
            for (const char *name : { "demo", "nested", "residual", "residual_relu", "cat", "view", "gelu", "norm", "masked",
                     "resnet18", "mobilenet_v2" })
                QTest::addRow("%s %s", backend, name) << backend << name;
    }
    void againstTorch()
    {
        QFETCH(QString, backend);
        QFETCH(QString, name);
        const std::string engine = backend.toStdString(), model = name.toStdString();
        if (!truth_.contains(engine)) {
            QVERIFY2(judge_.oracle("quant_oracle.py",
                         { "observe", backend, "demo", "nested", "residual", "residual_relu", "cat", "view", "gelu", "norm",
                             "masked", "resnet18", "mobilenet_v2" }),
                judge_.error);
            truth_[engine] = json::parse(judge_.output.toStdString());
        }
        const json &truth = truth_.at(engine).at(model);
        const Made m = make(model, on(engine));
        QVERIFY2(m.result, m.error.c_str());
        const QuantResult &r = *m.result;
        QCOMPARE(rowsWrong(m), std::string());

        // The same observed places, groups, scales and zero points.
        json observed = json::object(), weights = json::object();
        std::map<int, std::vector<std::string>> groups;
        double step = 0;
        for (const QuantRow &row : r.rows) {
            if (row.group >= 0) {
                observed[row.node] = { row.scale, row.zeroPoint };
                groups[row.group].push_back(row.node);
                step = row.scale;
            }
            if (!row.weightScales.empty())
                weights[r.graph.graph[r.graph.graph.find(row.converted)].target] = row.weightScales;
        }
        QCOMPARE(observed.dump(1), truth.at("observed").dump(1));
        QCOMPARE(weights.dump(), truth.at("weights").dump());
        std::vector<std::vector<std::string>> sorted;
        for (auto &[id, names] : groups) {
            std::sort(names.begin(), names.end());
            sorted.push_back(names);
        }
        std::sort(sorted.begin(), sorted.end());
        QCOMPARE(json(sorted).dump(), truth.at("groups").dump());

        // The same result, within one step of the last scale on 99.9 % of elements.
        const auto out = run(r.graph, m.inputs, engine);
        QVERIFY2(out.ok(), fbtest::why(out));
        const auto expected = readNpy(path(model + ".out.npy"));
        QVERIFY2(expected.ok(), fbtest::why(expected));
        const auto a = toDoubles(**out->as<Tensor>()), b = toDoubles(**expected);
        QCOMPARE(a.size(), b.size());
        size_t close = 0;
        for (size_t i = 0; i < a.size(); ++i)
            close += a[i] == b[i] || std::abs(a[i] - b[i]) <= step * 1.001;
        QVERIFY2(double(close) >= 0.999 * double(a.size()), (std::to_string(close) + " of " + std::to_string(a.size())).c_str());
        const Status written = keep(model, r.graph, m.inputs, *out, engine);
        QVERIFY2(written.ok(), fbtest::why(written));
    }

    // QNNPACK's clamp reads channels_last wrongly; with a `contiguous` before it int8 follows float as it does on x86.
    void clampOnQnnpack()
    {
        const Made m = make("mobilenet_v2", on("qnnpack"));
        QVERIFY2(m.result, m.error.c_str());
        size_t clamps = 0, made = 0;
        const Graph &g = m.result->graph.graph;
        for (NodeId id : g.order()) {
            const ModuleInfo *module = m.result->graph.moduleOf(g[id]);
            clamps += module && module->shortClass() == "ReLU6";
            made += g[id].target == "contiguous";
        }
        QCOMPARE(clamps, size_t(35));
        QCOMPARE(made, clamps);
        const auto whole = run(m.fused, m.inputs, ""), int8 = run(m.result->graph, m.inputs, "qnnpack");
        QVERIFY2(whole.ok() && int8.ok(), fbtest::why(whole));
        const auto a = toDoubles(**whole->as<Tensor>()), b = toDoubles(**int8->as<Tensor>());
        double signal = 0, noise = 0;
        for (size_t i = 0; i < a.size(); ++i) {
            signal += a[i] * a[i];
            noise += (a[i] - b[i]) * (a[i] - b[i]);
        }
        QVERIFY2(noise < 0.01 * signal, std::to_string(noise / signal).c_str());
    }

    // Scale and zero point of every observed value, in torch's order of nodes, and the first element of the output. Data X is -1
    // to 3 in eight steps; MinMax, quint8, weights per tensor.
    void cases_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("expected");
        QTest::addColumn<double>("first");
        const QString x = "x 0.015686 64", c = x + ", c 0.015686 64";
        QTest::newRow("QO-01 zeros") << "zeros" << x + ", mul 0.015686 64, c 0.000000 0" << 0.0;
        QTest::newRow("QO-04 nan and inf") << "bad_data" << x + ", c 0.031373 64" << -2.007843;
        QTest::newRow("QS-01 residual") << "residual" << x + ", c 0.031373 64, add 0.047059 64" << -3.011765;
        QTest::newRow("QS-01 add + relu") << "residual_relu" << x + ", c 0.031373 64, relu 0.035294 0" << 0.0;
        QTest::newRow("QS-02 cat") << "cat" << x + ", a 0.156863 64, b 0.156863 64, cat 0.156863 64" << -0.941176;
        QTest::newRow("QS-03 sigmoid") << "sigmoid" << c + ", sigmoid 0.003906 0" << 0.269531;
        QTest::newRow("QS-03 tanh") << "tanh" << c + ", tanh 0.007812 128" << -0.765625;
        QTest::newRow("QS-03 softmax") << "softmax"
                                       << "input_1 0.015686 64, _0 0.015686 64, _1 0.003906 0" << 0.996094;
        QTest::newRow("QS-04 add with alpha") << "alpha" << c << -3.003922;
        QTest::newRow("QS-05 tiny weight") << "tiny"
                                           << "input_1 0.000039 0, _0 0.019608 0" << 5.0;
        QTest::newRow("QS-06 view") << "view" << c + ", view 0.015686 64, l 0.031373 0" << 7.937255;
        QTest::newRow("QS-06 masked_fill") << "masked" << c << -1.003922;
        QTest::newRow("QS-10 leaf") << "leaf" << x + ", a 0.015686 64, leaf 0.031373 64, b 0.062745 64" << -4.015686;
        QTest::newRow("QS-11 linear by keywords") << "keywords"
                                                  << "x 0.007843 127, linear 0.007843 127" << 0.996078;
        QTest::newRow("QS-11 conv2d by keywords") << "keywords_conv"
                                                  << "x 0.007843 127, conv2d 0.007843 127" << 0.996078;
        QTest::newRow("QS-12 GELU") << "gelu" << c << -0.158327;
        QTest::newRow("QS-12 LayerNorm") << "norm"
                                         << "input_1 0.007843 127, _0 0.011765 85, _1 0.010523 128" << 0.441951;
        QTest::newRow("CG-03 bare Sequential") << "sequential"
                                               << "input_1 0.015686 64, _0 0.011765 0" << 0.0;
    }
    void cases()
    {
        QFETCH(QString, name);
        QFETCH(QString, expected);
        QFETCH(double, first);
        const Made m = make(name.toStdString(), on("qnnpack"), "", 1);
        QVERIFY2(m.result, m.error.c_str());
        const QuantResult &r = *m.result;
        QCOMPARE(QString::fromStdString(observed(r)), expected);
        QCOMPARE(rowsWrong(m), std::string());
        const auto out = run(r.graph, m.inputs, "qnnpack");
        QVERIFY2(out.ok(), fbtest::why(out));
        const double got = toDoubles(**out->as<Tensor>()).front();
        QVERIFY2(std::abs(got - first) < 2e-4 || (name == "tiny" && std::abs(got - first) < 0.0197), std::to_string(got).c_str());

        const auto flagged = [&](const char *node, const char *flag) {
            const QuantRow *row = rowOf(r, node);
            return row
                && std::any_of(row->flags.begin(), row->flags.end(), [&](const std::string &f) { return f.starts_with(flag); });
        };
        if (name == "zeros")
            QVERIFY(rowOf(r, "c")->scale == double(std::numeric_limits<float>::epsilon()) && flagged("c", "constant zero"));
        if (name == "bad_data")
            QVERIFY(flagged("x", "nan or inf") && rowOf(r, "x")->nonFinite == 16);
        if (name == "tiny")
            QVERIFY(flagged("_0", "weight scale enlarged"));
        if (name == "residual_relu")
            QVERIFY(bool(r.graph.graph.find("add_relu")));
        if (name == "masked")
            QVERIFY(std::isinf(toDoubles(**out->as<Tensor>()).back()));
        if (name == "leaf")
            QCOMPARE(rowOf(r, "leaf")->state, std::string("leaf"));
        if (name == "alpha" || name == "gelu" || name == "masked")
            QCOMPARE(rowOf(r, name == "alpha" ? "add" : name == "gelu" ? "gelu" : "masked_fill")->state, std::string("float"));
        const Status written = keep(name.toStdString(), r.graph, m.inputs, *out, "qnnpack");
        QVERIFY2(written.ok(), fbtest::why(written));
    }

    // QS-12, CG-02: what stays float runs between what is int8; names that are no identifiers reach their modules.
    void staysFloat_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("leaf");
        QTest::addColumn<QString>("node");
        QTest::addColumn<QString>("state");
        QTest::newRow("LSTM") << "lstm"
                              << ""
                              << "lstm"
                              << "float";
        QTest::newRow("Embedding") << "embedding"
                                   << ""
                                   << "table"
                                   << "float";
        QTest::newRow("stochastic depth") << "drop_path"
                                          << ""
                                          << "stochastic_depth"
                                          << "float";
        QTest::newRow("a number as argument") << "number"
                                              << ""
                                              << "mul"
                                              << "float";
        QTest::newRow("odd names") << "odd_names"
                                   << ""
                                   << "class_1"
                                   << "int8";
        QTest::newRow("marked leaf") << "nested"
                                     << "enc"
                                     << "enc"
                                     << "leaf";
    }
    void staysFloat()
    {
        QFETCH(QString, name);
        QFETCH(QString, leaf);
        QFETCH(QString, node);
        QFETCH(QString, state);
        for (const char *engine : { "x86", "qnnpack" }) {
            const Made m = make(name.toStdString(), on(engine), leaf.toStdString());
            QVERIFY2(m.result, m.error.c_str());
            QCOMPARE(rowsWrong(m), std::string());
            const QuantRow *row = rowOf(*m.result, node.toStdString());
            QVERIFY2(row, observed(*m.result).c_str());
            QCOMPARE(QString::fromStdString(row->state), state);
            const auto out = run(m.result->graph, m.inputs, engine);
            QVERIFY2(out.ok(), fbtest::why(out));
            const Status written = keep((name + leaf).toStdString(), m.result->graph, m.inputs, *out, engine);
            QVERIFY2(written.ok(), fbtest::why(written));
        }
    }

    // A leaf that cannot run here is exported all the same, as a class of the user's.
    void opaqueLeaf()
    {
        auto gm = readFxt(path("opaque.fxt"));
        QVERIFY2(gm.ok(), fbtest::why(gm));
        const std::string source = pythonSource(*gm, {});
        QVERIFY2(source.find("from quant_models import Opaque") != std::string::npos, source.c_str());
        const Made refused = make("opaque", on("x86"));
        QVERIFY(!refused.result);
        QVERIFY2(refused.error.find("leaf") != std::string::npos, refused.error.c_str());
        const Status written = keep("opaque", *gm, {}, {}, "");
        QVERIFY2(written.ok(), fbtest::why(written));
    }

    // QO-06: no statistics, no conversion; the message names the nodes.
    void uncalibrated()
    {
        Made m = make("nested", {});
        QVERIFY2(m.result, m.error.c_str());
        const auto refused = convert(m.fused, m.plan, Calibration{});
        QVERIFY(!refused.ok());
        QVERIFY2(refused.message().find("enc_conv") != std::string::npos, refused.message().c_str());
        m.calibration.nodes.erase("enc2_conv");
        const auto branch = convert(m.fused, m.plan, m.calibration);
        QVERIFY(!branch.ok() && branch.message().find("enc2_conv") != std::string::npos);
    }

    // Nodes, modules and types kept in float by choice, each saying so.
    void byChoice()
    {
        QuantConfig config;
        config.floatModules = { "enc" };
        config.floatNodes = { "head" };
        const Made m = make("nested", config);
        QVERIFY2(m.result, m.error.c_str());
        QCOMPARE(rowsWrong(m), std::string());
        for (const QuantRow &row : m.result->rows) {
            const bool kept = row.node == "enc_conv" || row.node == "enc_conv1" || row.node == "head";
            if (row.op == "Conv2d")
                QCOMPARE(row.state, std::string(kept ? "float by choice" : "int8"));
        }
        config.floatTypes = { "Conv2d" };
        const Made none = make("nested", config);
        QVERIFY2(none.result, none.error.c_str());
        QVERIFY(!none.result->report.changed);
    }

    void floatExport_data()
    {
        QTest::addColumn<QString>("leaf");
        for (const char *name : { "demo", "resnet18", "mobilenet_v2", "odd_names", "sequential", "lstm", "embedding", "keywords",
                 "norm", "drop_path" })
            QTest::newRow(name) << "";
        QTest::newRow("nested") << "enc";
    }
    void floatExport()
    {
        QFETCH(QString, leaf);
        const std::string name = QTest::currentDataTag();
        const Made m = make(name, {}, leaf.toStdString());
        QVERIFY2(m.result, m.error.c_str());
        const auto out = run(m.fused, m.inputs, "");
        QVERIFY2(out.ok(), fbtest::why(out));
        const Status written = keep(name, m.fused, m.inputs, *out, "");
        QVERIFY2(written.ok(), fbtest::why(written));
    }

    // Every folder that was written above, in a clean process: int8 gives what it gave here bit for bit.
    void exported_data()
    {
        QTest::addColumn<QString>("program");
        QTest::addColumn<QString>("engine");
        QTest::newRow("float") << fbtest::python() << "";
        QTest::newRow("x86") << fbtest::python() << "x86";
        QTest::newRow("qnnpack") << fbtest::python() << "qnnpack";
        if (!fbtest::secondPython().isEmpty())
            QTest::newRow("float, the system's torch") << fbtest::secondPython() << "";
    }
    void exported()
    {
        QFETCH(QString, program);
        QFETCH(QString, engine);
        QStringList arguments{ "import" };
        for (const std::string &folder : folders_[engine.toStdString()])
            arguments << QString::fromStdString(folder);
        QVERIFY(arguments.size() > 5);
        judge_.program = program;
        const bool ran = judge_.oracle("quant_oracle.py", arguments);
        const QByteArray said = judge_.output;
        const bool alone = ran && judge_.run({ arguments[1] + "/model.py" }); // as a person runs it
        judge_.program = fbtest::python();
        QVERIFY2(ran && alone, judge_.error);
        const auto wrong = json::parse(said.toStdString()).get<std::map<std::string, std::string>>();
        for (const auto &[folder, what] : wrong)
            QVERIFY2(what.empty(), (folder + ": " + what).c_str());
    }
};

QTEST_GUILESS_MAIN(TstQuantize)
#include "tst_quantize.moc"
