// Fuseboard tests: a model that traces only in parts, in the window: its parts are calibrated, converted and exported together,
// and each is looked at and edited as a graph of its own. GPL-3.0-or-later.
#include <QComboBox>
#include <QDockWidget>
#include <QJsonObject>

#include "app/document/parts.h"
#include "model/exec/tensor_ops.h"
#include "model/io/fxt.h"
#include "tests/app/window_driver.h"
#include "views/canvas.h"

using namespace fb;
using fbtest::Driver;
using fbtest::Judge;

class Parts : public QObject
{
    Q_OBJECT
    QTemporaryDir settings_;
    Judge judge_;

    // The entry of the toolbar's list of graphs that begins so, by keys as a person does.
    bool show(Driver &d, const QString &beginning)
    {
        auto *list = d.find<QComboBox>(QStringLiteral("parts"));
        if (!list)
            return false;
        for (int i = 0; i < list->count(); ++i)
            if (list->itemText(i).startsWith(beginning)) {
                list->setFocus();
                QTest::keyClick(list, Qt::Key_Home);
                for (int k = 0; k < i; ++k)
                    QTest::keyClick(list, Qt::Key_Down);
                return d.settle() && list->currentIndex() == i;
            }
        return false;
    }

private slots:
    void initTestCase()
    {
        fbtest::isolateSettings(settings_);
        // The model's source beside the trace, as people keep it.
        QVERIFY(QFile::copy(fbtest::sourceDir() + "/tests/oracle/worker_models.py", judge_.path("worker_models.py")));
        QVERIFY2(judge_.trace(judge_.path("worker_models.py") + ":detector", "detector.fxt",
                     { "--submodule", "backbone", "--submodule", "head", "--input", "2x3x16x16" }),
            judge_.error);
        QVERIFY(writeNpy(*randomTensor("8x3x16x16", 3), judge_.path("data.npy").toStdString()).ok());
    }

    void everyPartInOneGo()
    {
        Driver d;
        d.doc().open(judge_.path("detector.fxt"));
        QVERIFY(d.settle() && d.doc().isPartial());
        QCOMPARE(d.doc().parts(), (QStringList{ "model.backbone", "model.head" }));
        QCOMPARE(d.graph().size(), size_t(3));

        judge_.program = qEnvironmentVariable("FUSEBOARD_CLI");
        QVERIFY2(judge_.run({ "info", "detector.fxt" }), judge_.error);
        judge_.program = fbtest::python();
        QVERIFY2(judge_.output.contains("submodule   backbone  8 nodes, ") && judge_.output.contains(" % of the multiply-adds\n"),
            judge_.output);

        // Without the user's Python there are no ranges, and that is said.
        d.doc().calibrate(judge_.path("data.npy"));
        QVERIFY(d.settle());
        QVERIFY2(d.failures.value(0).contains("Python worker"), qPrintable(d.failures.join('\n')));
        d.failures.clear();

        // From the menu of the model's box to a part and an edit of it.
        QVERIFY(d.menu(d.id("model"), { "Show the graph of backbone" }));
        QCOMPARE(d.doc().part(), "model.backbone");
        QVERIFY(d.id("conv2"));
        QCOMPARE(d.window.canvas()->graph(), d.doc().graph());
        QVERIFY(d.menu(d.id("conv2"), { "Keep in float" }));
        QVERIFY(d.doc().state().config.floatNodes.contains("conv2"));
        QVERIFY(show(d, "head"));
        QVERIFY(d.doc().state().config.floatNodes.empty());
        QVERIFY(!d.id("conv2"));

        // The button in Problems starts the worker; one calibration is for all parts.
        d.window.findChild<QDockWidget *>("problems")->raise();
        QCoreApplication::processEvents();
        QVERIFY(d.press("Start the Python worker"));
        QVERIFY(QTest::qWaitFor([&] { return d.doc().hasWorker(); }, 60000));
        d.doc().calibrate(judge_.path("data.npy"));
        QVERIFY(d.settle());
        QVERIFY2(d.failures.isEmpty(), qPrintable(d.failures.join('\n')));
        QVERIFY(d.doc().state().calibration->nodes.contains("conv"));
        QCOMPARE(d.doc().state().calibration->nodes.at("conv").count, uint64_t(8 * 4 * (8 * 8 + 4 * 4)));
        QVERIFY(show(d, "backbone"));
        QVERIFY(d.doc().state().calibration->nodes.contains("conv2"));
        QVERIFY(!d.id("bn1")); // calibrating has fused

        // Convert, compare, export; what is exported runs in the user's model.
        d.keys(Qt::Key_I, Qt::ControlModifier);
        QVERIFY(d.settle() && d.doc().isInt8());
        const auto &rows = d.doc().state().converted->rows;
        QVERIFY(std::any_of(rows.begin(), rows.end(), [](const QuantRow &r) { return r.int8(); }));
        QVERIFY(std::any_of(rows.begin(), rows.end(), [](const QuantRow &r) { return r.node == "conv2" && r.staysFloat(); }));
        d.doc().evaluate(judge_.path("data.npy"));
        QVERIFY(d.settle());
        QVERIFY(d.doc().state().evaluation && d.doc().state().evaluation->sqnrDb > 25);
        QVERIFY2(d.results.last().contains("backbone: ") && d.results.last().contains("head: "), qPrintable(d.results.last()));
        d.doc().exportTo(judge_.path("parts"), true);
        QVERIFY(d.settle());
        QVERIFY2(d.failures.isEmpty(), qPrintable(d.failures.join('\n')));
        QVERIFY2(judge_.run({ judge_.path("parts/model.py") }), judge_.error); // each checks itself bit for bit
        QVERIFY2(judge_.oracle(
                     "worker_models.py", { "apply", judge_.path("parts"), judge_.path("data.npy"), judge_.path("applied.npz") }),
            judge_.error);

        // The trace with its edited parts is kept whole; undo goes back to the graph that it changes.
        QVERIFY(show(d, "whole model"));
        QVERIFY(d.doc().isInt8());
        while (d.doc().canUndo())
            d.keys(Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(d.settle());
        QCOMPARE(d.doc().part(), "model.backbone");
        QVERIFY(d.id("bn1") && d.doc().state().config.floatNodes.empty());
        d.doc().exportTo(judge_.path("float"), false);
        QVERIFY(d.settle());
        QVERIFY2(d.failures.isEmpty(), qPrintable(d.failures.join('\n')));
        QVERIFY2(judge_.run({ judge_.path("float/model.py") }), judge_.error);
        d.doc().saveAs(judge_.path("again.fxt"));
        QVERIFY(d.settle());
        d.doc().open(judge_.path("again.fxt"));
        QVERIFY(d.settle() && d.doc().isPartial());
        QCOMPARE(d.doc().part(), "");
    }

    // The rows of all parts tell whose node they are: both parts may have a node of one name.
    void rowsOfTheWhole()
    {
        Driver d;
        d.doc().open(judge_.path("detector.fxt"));
        QVERIFY(d.settle());
        d.doc().startWorker();
        QVERIFY(QTest::qWaitFor([&] { return d.doc().hasWorker(); }, 60000));
        d.doc().calibrate(judge_.path("data.npy"));
        QVERIFY(d.settle());
        d.doc().convertToInt8();
        QVERIFY(d.settle() && d.doc().isInt8());
        QCOMPARE(d.doc().part(), "");
        for (const QuantRow &r : d.doc().state().converted->rows)
            QVERIFY2(r.node.starts_with("model.backbone/") || r.node.starts_with("model.head/"), r.node.c_str());
        QVERIFY(d.failures.isEmpty());
    }

    // A file's part cannot be written outside of the folder of the export.
    void namesThatLeaveTheFolder()
    {
        QVERIFY(QDir(judge_.path("deep/out")).mkpath(QStringLiteral(".")));
        for (const char *name : { "model.a/../../b", "model...", "model./b" }) {
            const Status s = exportParts({ { name, {} } }, judge_.path("deep/out").toStdString());
            QVERIFY2(!s.ok() && s.message().find("cannot be exported") != std::string::npos, name);
        }
        QVERIFY(QDir(judge_.path("deep/out")).isEmpty());
        QCOMPARE(QDir(judge_.path("deep")).entryList(QDir::AllEntries | QDir::NoDotAndDotDot), QStringList{ "out" });
    }
};

QTEST_MAIN(Parts)
#include "tst_parts.moc"
