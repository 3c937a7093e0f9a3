// The README's tour, by mouse and keys on the real widgets, down to the exported model in plain PyTorch. GPL-3.0-or-later.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QProcess>

#include "app/window/present.h"
#include "model/text/text.h"
#include "tests/app/window_driver.h"
#include "views/code_view.h"
#include "views/histogram_view.h"
#include "views/layers_view.h"
#include "views/problems_view.h"

using namespace fb;
using namespace fbtest;

class Tour : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase();
    void traceFailsAndLeafIsMarked();
    void lookAround();
    void fuse();
    void replaceAndUndo();
    void markLeafOnOpenGraph();
    void keepInFloat();
    void calibrate();
    void histograms();
    void review();
    void exportAndRun();
    void cleanupTestCase();

private:
    QTemporaryDir settings_, out_;
    Driver *d_ = nullptr;
};

void Tour::initTestCase()
{
    isolateSettings(settings_);
    d_ = new Driver;
    QVERIFY(!d_->doc().isOpen());
    QVERIFY(d_->find<QPushButton>(QStringLiteral("demo")));
}

// 1. Trace the Python model: it fails, says where, and the fix is a button.
void Tour::traceFailsAndLeafIsMarked()
{
    QVERIFY(d_->click(QStringLiteral("traceButton")));
    auto *source = d_->find<QLineEdit>(QStringLiteral("traceSource"));
    QVERIFY(source);
    QTest::keyClicks(source, demo(QStringLiteral("digits_net.py:make")));
    QTest::keyClicks(d_->find<QLineEdit>(QStringLiteral("traceInputs")), QStringLiteral("1x1x8x8"));
    QVERIFY(d_->click(QStringLiteral("traceRun")));
    QTRY_VERIFY_WITH_TIMEOUT(d_->find<QPushButton>(QStringLiteral("traceFix")), 120000);
    const QString problem = d_->find<QLabel>(QStringLiteral("traceProblem"))->text();
    QVERIFY2(problem.contains(QLatin1String("gain")) && problem.contains(QLatin1String("digits_net.py:33")), qPrintable(problem));
    QVERIFY(d_->find<QLabel>(QStringLiteral("traceLine"))->text().contains(QLatin1String("if bool(")));
    QVERIFY(!d_->doc().isOpen());
    QCOMPARE(d_->doc().problems().size(), 1);
    QCOMPARE(d_->doc().problems().first().fixKind, QStringLiteral("leaf"));

    QVERIFY(d_->click(QStringLiteral("traceFix")));
    QTRY_VERIFY_WITH_TIMEOUT(d_->doc().isOpen(), 120000);
    QVERIFY(d_->settle());
    QVERIFY(d_->id("gain"));
    QCOMPARE(d_->graph()[d_->id("gain")].op, Opcode::CallModule);
    QVERIFY(d_->failures.isEmpty());
}

// 2. Search, select, follow the selection into code and back.
void Tour::lookAround()
{
    d_->window.canvas()->setFocus();
    d_->keys(Qt::Key_F, Qt::ControlModifier);
    QTRY_VERIFY(qobject_cast<QLineEdit *>(QApplication::focusWidget()));
    QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("classifier"));
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
    QVERIFY(d_->settle());
    const NodeId classifier = d_->id("classifier");
    QTRY_VERIFY(!d_->window.canvas()->itemRect(classifier).isNull());
    const QRectF box = d_->window.canvas()->itemRect(classifier);
    QVERIFY(d_->window.canvas()->rect().contains(box.center().toPoint()));
    QTest::mouseClick(d_->window.canvas(), Qt::LeftButton, {}, box.center().toPoint());
    QCOMPARE(d_->window.canvas()->selectedNodes(), QList<NodeId>{ classifier });
    auto *code = d_->window.findChild<CodeView *>();
    QTRY_VERIFY(!code->litLines().isEmpty());
    QVERIFY(code->text().split(QLatin1Char('\n'))[code->litLines().first()].contains(QLatin1String("self.classifier(")));
}

// 3. The Edit step fuses; undo brings every byte back.
void Tour::fuse()
{
    const std::string before = torchGraphText(*d_->doc().graph());
    const size_t nodes = d_->graph().size();
    QVERIFY(d_->click(QStringLiteral("step2")));
    QVERIFY(d_->settle());
    QVERIFY(d_->graph().size() < nodes);
    QVERIFY2(d_->failures.isEmpty(), qPrintable(d_->failures.join(QLatin1Char('\n'))));
    QVERIFY(torchGraphText(*d_->doc().graph()).find("_bn ") == std::string::npos);
    d_->window.canvas()->setFocus();
    d_->keys(Qt::Key_Z, Qt::ControlModifier);
    QVERIFY(d_->settle());
    QCOMPARE(torchGraphText(*d_->doc().graph()), before);
    d_->keys(Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    QVERIFY(d_->settle());
    QVERIFY(d_->graph().size() < nodes);
}

// 4. Replace torch.clamp by torch.sigmoid from the context menu, and take it back.
void Tour::replaceAndUndo()
{
    const std::string before = torchGraphText(*d_->doc().graph());
    QVERIFY2(d_->menu(d_->id("clamp"), { QStringLiteral("Replace with"), QStringLiteral("torch.sigmoid") }),
        qPrintable(d_->offered.join(QLatin1Char('\n'))));
    QVERIFY(torchCode(*d_->doc().graph()).find("torch.sigmoid(") != std::string::npos);
    d_->window.canvas()->setFocus();
    d_->keys(Qt::Key_Z, Qt::ControlModifier);
    QVERIFY(d_->settle());
    QCOMPARE(torchGraphText(*d_->doc().graph()), before);
}

// 5. A module of the open graph becomes a leaf and comes back byte for byte.
void Tour::markLeafOnOpenGraph()
{
    const std::string before = torchGraphText(*d_->doc().graph());
    const size_t nodes = d_->graph().size();
    const NodeId inside = d_->id("separable_depthwise_conv");
    QVERIFY(inside);
    QVERIFY2(d_->menu(inside, { QStringLiteral("Mark module *") }), qPrintable(d_->offered.join(QLatin1Char('\n'))));
    QVERIFY2(d_->graph().size() <= nodes && torchGraphText(*d_->doc().graph()) != before,
        qPrintable(d_->failures.join(QLatin1Char('\n'))));
    NodeId leaf;
    for (NodeId id : d_->graph().order())
        if (const ModuleInfo *m = d_->doc().graph()->moduleOf(d_->graph()[id]); m && m->kind == ModuleKind::Graph)
            leaf = id;
    QVERIFY(leaf);
    QVERIFY2(d_->menu(leaf, { QStringLiteral("Unmark leaf") }), qPrintable(d_->offered.join(QLatin1Char('\n'))));
    QCOMPARE(torchGraphText(*d_->doc().graph()), before);
}

// 6. Keep the classifier in float by key, see the rule, take it back.
void Tour::keepInFloat()
{
    const NodeId classifier = d_->id("classifier");
    QVERIFY(d_->doc().plan());
    QCOMPARE(d_->doc().plan()->nodes.at(classifier).state, QuantState::Int8);
    d_->window.canvas()->setSelection({ classifier }, true);
    d_->window.canvas()->setFocus();
    d_->keys(Qt::Key_K, Qt::ControlModifier);
    QVERIFY(d_->settle());
    QCOMPARE(d_->doc().plan()->nodes.at(classifier).state, QuantState::FloatByChoice);
    QCOMPARE(presentRules(d_->doc()).size(), 2);
    d_->keys(Qt::Key_Z, Qt::ControlModifier);
    QVERIFY(d_->settle());
    QCOMPARE(d_->doc().plan()->nodes.at(classifier).state, QuantState::Int8);
    QCOMPARE(d_->doc().plan()->nodes.at(d_->id("gain")).state, QuantState::Leaf);
}

// 7. Calibrate on the demo's data.
void Tour::calibrate()
{
    QVERIFY(d_->click(QStringLiteral("step4")));
    QVERIFY(d_->choose(demo(QStringLiteral("calib.npy"))));
    QTRY_VERIFY_WITH_TIMEOUT(d_->doc().state().calibration, 120000);
    QVERIFY(d_->settle());
    QCOMPARE(d_->doc().state().calibration->samples, uint64_t(256));
    QCOMPARE(d_->doc().staleNodes(), 0);
}

// 8. Histograms: one large for one node, a wall for several, a click goes to the node.
void Tour::histograms()
{
    auto *view = d_->window.findChild<HistogramView *>();
    const NodeId conv = d_->id("stem_conv");
    d_->window.canvas()->setSelection({ conv }, true);
    QVERIFY(d_->settle());
    QTRY_COMPARE(view->histograms().size(), 1);
    QVERIFY(view->isLarge());
    const HistogramData &h = view->histograms().first();
    QVERIFY(h.hasRange);
    QCOMPARE(h.count, quint64(256 * 16 * 8 * 8));
    double total = 0;
    for (double count : h.rebin(h.min, std::nextafter(h.max, INFINITY), 50))
        total += count;
    QVERIFY2(std::abs(total - double(h.count)) < double(h.count) * 0.02, qPrintable(QString::number(total)));
    d_->window.canvas()->clearSelection();
    QTRY_VERIFY(view->histograms().size() > 5);
    QVERIFY(!view->isLarge());
}

// 9. Review converts, then compares float and int8 on held-out digits.
void Tour::review()
{
    QVERIFY(d_->click(QStringLiteral("step5")));
    QTRY_VERIFY2_WITH_TIMEOUT(d_->doc().isInt8(), qPrintable(d_->failures.join(QLatin1Char('\n'))), 120000);
    QVERIFY(d_->settle());
    QVERIFY(d_->click(QStringLiteral("step5")));
    QVERIFY(d_->choose(demo(QStringLiteral("test.npz"))));
    QTRY_VERIFY_WITH_TIMEOUT(d_->doc().state().evaluation, 120000);
    const Evaluation e = *d_->doc().state().evaluation;
    QVERIFY2(e.accuracyFloat >= 0.97, qPrintable(QString::number(e.accuracyFloat)));
    QVERIFY2(e.accuracyInt8 >= e.accuracyFloat - 0.01, qPrintable(QString::number(e.accuracyInt8)));
    int int8 = 0;
    for (const NodeBadge &b : presentBadges(d_->doc()))
        int8 += b.runs == NodeBadge::Runs::Int8;
    QVERIFY(int8 >= 8);
    for (const QuantRow &row : d_->doc().state().converted->rows)
        if (row.dtype == "float32" && row.state != "int8")
            QVERIFY2(!row.reason.empty() || row.op == "placeholder", row.node.c_str());
}

// 10. Export; the folder runs in plain PyTorch and holds both accuracies.
void Tour::exportAndRun()
{
    QVERIFY(d_->click(QStringLiteral("step6")));
    QVERIFY(d_->choose(out_.path()));
    QTRY_VERIFY2_WITH_TIMEOUT(!d_->doc().exportedTo().isEmpty(), qPrintable(d_->failures.join(QLatin1Char('\n'))), 120000);
    for (const char *name : { "model.py", "weights.pt", "report.json", "recipe.json" })
        QVERIFY2(QFile::exists(out_.filePath(QLatin1String(name))), name);
    QProcess python;
    python.setWorkingDirectory(out_.path());
    python.start(fbtest::python(), { QStringLiteral("model.py") });
    QVERIFY(python.waitForFinished(120000));
    QVERIFY2(python.exitCode() == 0, python.readAllStandardError().constData());
    QFile report(out_.filePath(QStringLiteral("report.json")));
    QVERIFY(report.open(QIODevice::ReadOnly));
    const QJsonObject written = QJsonDocument::fromJson(report.readAll()).object();
    QCOMPARE(written[QLatin1String("model")].toString(), QStringLiteral("digits_net.fxt"));
    QCOMPARE(written[QLatin1String("fused")].toArray().size(), 7); // by the Edit step, long before the export
    const QJsonObject evaluation = written[QLatin1String("evaluation")].toObject();
    QVERIFY(evaluation[QLatin1String("top1_float")].toDouble() >= 0.97);
    QVERIFY(evaluation[QLatin1String("top1_int8")].toDouble() >= 0.96);
    QVERIFY2(d_->failures.isEmpty(), qPrintable(d_->failures.join(QLatin1Char('\n'))));
}

void Tour::cleanupTestCase()
{
    delete d_;
}

QTEST_MAIN(Tour)
#include "tst_tour.moc"
