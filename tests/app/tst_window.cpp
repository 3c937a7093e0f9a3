// What the window does with bad input, drops, undo and closing. GPL-3.0-or-later.
#include <QDir>
#include <QDropEvent>
#include <QFile>
#include <QLabel>
#include <QListWidget>
#include <QMimeData>

#include "app/window/present.h"
#include "model/io/fxt.h"
#include "model/text/text.h"
#include "passes/edits.h"
#include "tests/app/window_driver.h"
#include "views/command_palette.h"
#include "views/empty_state.h"
#include "views/jobs_view.h"

using namespace fb;
using namespace fbtest;

class Window : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase() { isolateSettings(settings_); }
    void emptyWindow();
    void badFiles_data();
    void badFiles();
    void badFileKeepsDocument();
    void dropOpens();
    void wrongCalibrationData();
    void closedDuringCalibration();
    void cancelCalibration();
    void staleCalibration();
    void exportedProgram();
    void planOfAnotherGraph();
    void trainingMode_data();
    void trainingMode();
    void commandPalette();
    void unwritableExport();
    void traceWithoutPython();
    void traceAgain();
    void recentFiles();

private:
    QTemporaryDir settings_, dir_;
    QString write(const QString &name, const QByteArray &bytes)
    {
        QFile f(dir_.filePath(name));
        if (f.open(QIODevice::WriteOnly))
            f.write(bytes);
        return f.fileName();
    }
    bool open(Driver &d, const QString &path = demo(QStringLiteral("digits.fxt")))
    {
        d.window.openFile(path);
        return QTest::qWaitFor([&] { return d.doc().isOpen(); }, 60000) && d.settle();
    }
};

void Window::emptyWindow()
{
    Driver d;
    for (const char *name : { "open", "trace", "demo" })
        QVERIFY2(d.find<QPushButton>(QLatin1String(name)), name);
    QVERIFY(d.click(QStringLiteral("demo")));
    QTRY_VERIFY_WITH_TIMEOUT(d.doc().isOpen(), 60000);
    QVERIFY(d.settle());
    QVERIFY(d.graph().size() > 20);
}

void Window::badFiles_data()
{
    QTest::addColumn<QByteArray>("bytes");
    QFile demoFile(demo(QStringLiteral("digits.fxt")));
    QVERIFY(demoFile.open(QIODevice::ReadOnly));
    const QByteArray good = demoFile.readAll();
    QTest::newRow("empty") << QByteArray();
    QTest::newRow("text") << QByteArray("hello");
    QTest::newRow("half") << good.left(good.size() / 2);
    QTest::newRow("no end") << good.left(good.size() - 10);
    QTest::newRow("pickle") << QByteArray("\x80\x02}q\x00.", 6);
}

void Window::badFiles()
{
    QFETCH(QByteArray, bytes);
    Driver d;
    d.window.openFile(write(QStringLiteral("bad.fxt"), bytes));
    QTRY_COMPARE_WITH_TIMEOUT(d.failures.size(), 1, 60000);
    QVERIFY2(d.failures.first().contains(QLatin1String("bad.fxt")), qPrintable(d.failures.first()));
    QVERIFY(!d.failures.first().contains(QLatin1Char('\n')));
    QVERIFY(!d.doc().isOpen());
}

void Window::badFileKeepsDocument()
{
    Driver d;
    QVERIFY(open(d));
    const std::string before = torchGraphText(*d.doc().graph());
    d.doc().open(dir_.filePath(QStringLiteral("missing.fxt")));
    QTRY_COMPARE_WITH_TIMEOUT(d.failures.size(), 1, 60000);
    QCOMPARE(torchGraphText(*d.doc().graph()), before);
    QVERIFY(!d.doc().problems().isEmpty());
}

void Window::dropOpens()
{
    Driver d;
    QMimeData mime;
    mime.setUrls({ QUrl::fromLocalFile(demo(QStringLiteral("digits.fxt"))) });
    QDragEnterEvent enter(QPoint(200, 200), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&d.window, &enter);
    QVERIFY(enter.isAccepted());
    QDropEvent drop(QPointF(200, 200), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&d.window, &drop);
    QTRY_VERIFY_WITH_TIMEOUT(d.doc().isOpen(), 60000);
    QVERIFY(d.settle());
}

void Window::wrongCalibrationData()
{
    Driver d;
    QVERIFY(open(d));
    d.doc().calibrate(demo(QStringLiteral("digits_weights.pt")));
    QTRY_COMPARE_WITH_TIMEOUT(d.failures.size(), 1, 60000);
    QDir().mkpath(dir_.filePath(QStringLiteral("nothing")));
    QVERIFY(d.settle());
    d.doc().calibrate(dir_.filePath(QStringLiteral("nothing")));
    QTRY_COMPARE_WITH_TIMEOUT(d.failures.size(), 2, 60000);
    QVERIFY(!d.doc().state().calibration);
}

void Window::closedDuringCalibration()
{
    auto *d = new Driver;
    QVERIFY(open(*d));
    d->doc().calibrate(demo(QStringLiteral("calib.npy")));
    QTRY_VERIFY_WITH_TIMEOUT(d->doc().jobs()->anyRunning(), 10000);
    d->window.close();
    delete d; // waits for the job and crashes nothing
}

void Window::cancelCalibration()
{
    Driver d;
    QVERIFY(open(d));
    d.doc().edit(QStringLiteral("Fuse all"), R"({"op": "fuse"})");
    QVERIFY(d.settle());
    const std::string before = torchGraphText(*d.doc().graph());
    d.doc().calibrate(demo(QStringLiteral("calib.npy")));
    d.doc().jobs()->cancelAll();
    QVERIFY(d.settle());
    QVERIFY(!d.doc().state().calibration);
    QCOMPARE(torchGraphText(*d.doc().graph()), before);
}

void Window::staleCalibration()
{
    Driver d;
    QVERIFY(open(d));
    d.doc().calibrate(demo(QStringLiteral("calib.npy")));
    QTRY_VERIFY_WITH_TIMEOUT(d.doc().state().calibration, 120000);
    QVERIFY(d.settle());
    QCOMPARE(presentStep(d.doc(), StepRow::Calibrate).kind, StepState::Done);
    d.doc().edit(QStringLiteral("Rename"), R"({"op": "rename", "node": "classifier", "name": "head"})");
    QVERIFY(d.settle());
    QCOMPARE(presentStep(d.doc(), StepRow::Calibrate).kind, StepState::OutOfDate);
    d.doc().convertToInt8();
    QTRY_COMPARE_WITH_TIMEOUT(d.failures.size(), 1, 60000);
    QVERIFY2(d.failures.first().contains(QLatin1String("head")), qPrintable(d.failures.first()));
}

// A .pt2 opens regrouped into modules. Undo shows the operators of the file, and the menu regroups them again.
void Window::exportedProgram()
{
    Driver d;
    d.doc().open(fbtest::sourceDir() + "/tests/oracle/pt2/2.9.1.pt2");
    QVERIFY(d.settle() && d.doc().isOpen());
    QVERIFY2(d.failures.isEmpty(), qPrintable(d.failures.join('\n')));
    QVERIFY(!d.doc().isModified());
    QCOMPARE(presentStep(d.doc(), StepRow::Edit).kind, StepState::Todo); // nothing was edited by hand
    QVERIFY(d.id("block_lin_1"));
    const std::string raised = torchGraphText(*d.doc().graph());
    QCOMPARE(d.window.canvas()->graph(), d.doc().graph());
    d.keys(Qt::Key_Z, Qt::ControlModifier);
    QVERIFY(d.settle() && d.id("linear_1") && !d.id("block_lin_1"));
    QVERIFY(d.trigger("Regroup into modules"));
    QVERIFY(d.settle());
    QCOMPARE(torchGraphText(*d.doc().graph()), raised);
    d.doc().calibrate(fbtest::sourceDir() + "/tests/oracle/pt2/2.9.1-in.npz");
    QTRY_VERIFY_WITH_TIMEOUT(d.doc().state().calibration, 120000);
    QVERIFY(d.settle());
    d.doc().convertToInt8();
    QVERIFY(d.settle() && d.doc().isInt8());
    QVERIFY2(d.failures.isEmpty(), qPrintable(d.failures.join('\n')));
}

// A plan that is worked out while the graph becomes another one is dropped: an int8 graph has none.
void Window::planOfAnotherGraph()
{
    Driver d;
    QVERIFY(open(d));
    d.doc().calibrate(demo(QStringLiteral("calib.npy")));
    QTRY_VERIFY_WITH_TIMEOUT(d.doc().state().calibration, 120000);
    QVERIFY(d.settle() && d.doc().plan());
    d.doc().convertToInt8();
    QVERIFY(d.settle() && d.doc().isInt8() && !d.doc().plan());
    d.doc().undo();
    d.doc().redo();
    QVERIFY(d.settle() && d.doc().isInt8() && !d.doc().plan());
}

void Window::trainingMode_data()
{
    QTest::addColumn<QString>("button");
    QTest::addColumn<bool>("dropoutStays");
    QTest::newRow("evaluation mode") << QStringLiteral("Evaluation mode") << false;
    QTest::newRow("all the same") << QStringLiteral("Calibrate all the same") << true;
}

// A functional dropout that no eval() of the model reaches: calibration waits until a button of Problems says how to go on.
void Window::trainingMode()
{
    QFETCH(QString, button);
    QFETCH(bool, dropoutStays);
    Judge judge;
    const QString source = judge.write(QStringLiteral("net.py"), R"(import torch.nn.functional as F
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)
    def forward(self, x):
        return self.fc(F.dropout(x, .1))
def make():
    return Net().eval()
)");
    QVERIFY2(judge.trace(source + QStringLiteral(":make"), QStringLiteral("net.fxt"),
                 { QStringLiteral("--input"), QStringLiteral("1x6") }),
        judge.error);
    QVERIFY2(
        judge.run({ QStringLiteral("-c"), QStringLiteral("import numpy; numpy.save('x.npy', numpy.ones((8, 6), 'float32'))") }),
        judge.error);
    Driver d;
    QVERIFY(open(d, judge.path(QStringLiteral("net.fxt"))));
    d.doc().calibrate(judge.path(QStringLiteral("x.npy")));
    QTRY_COMPARE_WITH_TIMEOUT(d.failures.size(), 1, 60000);
    QVERIFY2(d.failures.first().contains(QLatin1String("see Problems")), qPrintable(d.failures.first()));
    QVERIFY(d.settle());
    QVERIFY(!d.doc().state().calibration);

    QVERIFY(d.press(button));
    QVERIFY(d.settle());
    if (!dropoutStays) { // one step that can be undone; then calibration is free to go
        QVERIFY(!d.press(button));
        d.doc().calibrate(judge.path(QStringLiteral("x.npy")));
    }
    QTRY_VERIFY_WITH_TIMEOUT(d.doc().state().calibration, 60000);
    QVERIFY(d.settle());
    QCOMPARE(d.failures.size(), 1);
    QCOMPARE(!trainingCalls(*d.doc().graph()).empty(), dropoutStays);
}

void Window::commandPalette()
{
    Driver d;
    QVERIFY(open(d));
    const size_t nodes = d.graph().size();
    d.window.canvas()->setFocus();
    d.keys(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    auto *palette = d.window.findChild<CommandPalette *>();
    QTRY_VERIFY(palette->isVisible());
    QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("fuse all"));
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
    QTRY_VERIFY_WITH_TIMEOUT(d.graph().size() < nodes, 60000);
    QVERIFY(d.settle());
}

void Window::unwritableExport()
{
    Driver d;
    QVERIFY(open(d));
    d.doc().exportTo(QStringLiteral("/proc/nowhere/out"), false);
    QTRY_COMPARE_WITH_TIMEOUT(d.failures.size(), 1, 60000);
    QVERIFY2(d.failures.first().contains(QLatin1String("/proc/nowhere")), qPrintable(d.failures.first()));
}

void Window::traceWithoutPython()
{
    Driver d;
    QVERIFY(d.click(QStringLiteral("traceButton")));
    d.find<QLineEdit>(QStringLiteral("traceSource"))->setText(demo(QStringLiteral("digits_net.py:make")));
    d.find<QLineEdit>(QStringLiteral("tracePython"))->setText(QStringLiteral("/nowhere/python"));
    QVERIFY(d.click(QStringLiteral("traceRun")));
    QTRY_VERIFY(d.find<QLabel>(QStringLiteral("traceStatus"))->text().contains(QLatin1String("/nowhere/python")));
    d.find<QLineEdit>(QStringLiteral("tracePython"))->clear();
}

// A graph remembers how it was traced, also when Fuseboard has written it.
void Window::traceAgain()
{
    const auto gm = readFxt(demo(QStringLiteral("digits.fxt")).toStdString());
    QVERIFY(gm.ok());
    GraphModule changed = *gm;
    changed.provenance.options.concrete = { { "scale", "0.5" } };
    const QString copy = dir_.filePath(QStringLiteral("copy.fxt"));
    QVERIFY(writeFxt(changed, copy.toStdString()).ok());
    QVERIFY(QFile::copy(demo(QStringLiteral("digits_net.py")), dir_.filePath(QStringLiteral("digits_net.py"))));
    Driver d;
    QVERIFY(open(d, copy));
    for (QAction *a : d.window.findChildren<QAction *>())
        if (a->text() == QLatin1String("Trace again..."))
            a->trigger();
    QTRY_VERIFY(d.find<QLineEdit>(QStringLiteral("traceSource")));
    QCOMPARE(d.find<QLineEdit>(QStringLiteral("traceSource"))->text(), dir_.filePath(QStringLiteral("digits_net.py:make")));
    QCOMPARE(d.find<QLineEdit>(QStringLiteral("traceInputs"))->text(), QStringLiteral("1x1x8x8:float32"));
    QCOMPARE(d.window.findChild<TracePanel *>()->leaves(), QStringList{ QStringLiteral("gain") });
    QListWidget *options = d.find<QListWidget>(QStringLiteral("traceLeaves"));
    QVERIFY(options);
    QCOMPARE(options->count(), 2);
    QVERIFY2(options->item(1)->text().endsWith(QLatin1String("scale=0.5")), qPrintable(options->item(1)->text()));
}

void Window::recentFiles()
{
    {
        Driver d;
        QVERIFY(open(d));
    }
    QVERIFY(QSettings().value(QStringLiteral("recent")).toStringList().contains(demo(QStringLiteral("digits.fxt"))));
}

QTEST_MAIN(Window)
#include "tst_window.moc"
