// Fuseboard tests: the Trace dialog, by mouse and keys, with the real tracer. GPL-3.0-or-later.
#include <csignal>

#include <QClipboard>
#include <QComboBox>
#include <QLabel>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QSignalSpy>
#include <QTreeWidget>

#include "tests/app/window_driver.h"
#include "views/theme.h"

namespace
{

const char *const kNets = R"(import subprocess, time
import torch
from torch import nn

WIDTH = 4


class Blk(nn.Module):
    def forward(self, x):
        return x * 2 if x.mean() > 0 else x


class Net(nn.Module):
    """def hidden(): not code"""

    def __init__(self, width,
                 depth=(1, 2)):
        super().__init__()
        self.first, self.blk = nn.Linear(width, width), Blk()

    def forward(self, x, flag=False, *, mask=None):
        return self.blk(self.first(x))


class Switch(nn.Module):
    def forward(self, x, flag):
        return x + 1 if flag else x


def _private():
    return Net(4)


def net():
    print("making the net")
    return Net(4)


def wide(width, *, depth: int = 2):
    return Net(width)


def endless():
    child = subprocess.Popen(["sleep", "1000"])
    print("child", child.pid)
    while True:
        time.sleep(0.01)


switch = Switch()
)";

} // namespace

class TracePanelTest : public QObject
{
    Q_OBJECT
    std::unique_ptr<fb::TracePanel> panel_;
    QTemporaryDir folder_, settings_;
    QString file_;

    template <class T> T *find(const char *name) { return panel_->findChild<T *>(QLatin1String(name)); }
    QStringList options()
    {
        QStringList list;
        auto *options = find<QListWidget>("traceLeaves");
        for (int i = 0; i < options->count(); ++i)
            list << options->item(i)->text().simplified();
        return list;
    }
    void type(const char *name, const QString &text)
    {
        auto *edit = find<QLineEdit>(name);
        edit->setFocus();
        edit->selectAll();
        QTest::keyClick(edit, Qt::Key_Delete);
        QTest::keyClicks(edit, text);
    }
    void click(const char *name) { QTest::mouseClick(find<QPushButton>(name), Qt::LeftButton); }
    QPushButton *fix(const QString &text)
    {
        for (auto *button : panel_->findChildren<QPushButton *>(QStringLiteral("traceFix")))
            if (button->text() == text)
                return button;
        return nullptr;
    }
    bool done()
    {
        return QTest::qWaitFor([this] { return !panel_->isRunning(); }, 120000);
    }

private slots:
    void initTestCase()
    {
        fbtest::isolateSettings(settings_);
        file_ = folder_.filePath(QStringLiteral("nets.py"));
        QFile file(file_);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(kNets);
    }
    void init()
    {
        panel_ = std::make_unique<fb::TracePanel>();
        panel_->show();
        QVERIFY(QTest::qWaitForWindowExposed(panel_.get()));
    }
    void cleanup() { panel_.reset(); }

    void namesAreParsedNotRun()
    {
        const QList<fb::PythonName> names = fb::pythonNames(QString::fromLatin1(kNets));
        const QList<fb::PythonName> wanted{ { QStringLiteral("net"), {} }, { QStringLiteral("endless"), {} },
            { QStringLiteral("Blk"), {} }, { QStringLiteral("Switch"), {} }, { QStringLiteral("switch"), {} },
            { QStringLiteral("_private"), {} }, { QStringLiteral("wide"), { QStringLiteral("width") } },
            { QStringLiteral("Net"), { QStringLiteral("width") } } };
        QCOMPARE(names, wanted);
    }

    void aFileOffersItsNames()
    {
        panel_->setSource(file_); // as the file dialog does
        QCOMPARE(find<QLineEdit>("traceSource")->text(), file_ + QStringLiteral(":net"));
        auto *names = find<QComboBox>("traceName");
        QCOMPARE(names->currentText(), QStringLiteral("net"));
        names->setFocus();
        QTest::keyClick(names, Qt::Key_Down);
        QCOMPARE(find<QLineEdit>("traceSource")->text(), file_ + QStringLiteral(":endless"));
        type("traceSource", QStringLiteral("torchvision.models:resnet18"));
        QVERIFY(!names->isVisible());
        QVERIFY(find<QPushButton>("traceRun")->isEnabled());
        type("traceSource", QStringLiteral("nothing"));
        QVERIFY(!find<QPushButton>("traceRun")->isEnabled());
    }

    void interpretersBesideTheSource()
    {
        QDir(folder_.path()).mkpath(QStringLiteral(".venv/bin"));
        const QString python = folder_.filePath(QStringLiteral(".venv/bin/python"));
        QVERIFY(QFile::link(fb::pythonProgram(), python));
        panel_->setSource(file_);
        auto *pythons = find<QComboBox>("tracePythons");
        QVERIFY(pythons->findText(python) > 0);
        QCOMPARE(pythons->itemText(0), fb::pythonProgram());
        QVERIFY(QFile::remove(python));
    }

    void failureShowsTheCulpritAndEveryFix()
    {
        type("traceSource", file_ + QStringLiteral(":net"));
        type("traceInputs", QStringLiteral("2x4"));
        QSignalSpy failed(panel_.get(), &fb::TracePanel::failed), traced(panel_.get(), &fb::TracePanel::traced);
        QTest::keyClick(find<QLineEdit>("traceInputs"), Qt::Key_Return);
        QVERIFY(panel_->isRunning());
        QVERIFY(done());
        QCOMPARE(failed.count(), 1);
        QVERIFY(find<QLabel>("traceProblem")->text().contains(QLatin1String("blk")));
        QCOMPARE(find<QLabel>("traceLine")->text(), QStringLiteral("return x * 2 if x.mean() > 0 else x"));
        auto *tree = find<QTreeWidget>("traceModules");
        QVERIFY(tree->isVisible());
        QCOMPARE(tree->currentItem()->text(0), QStringLiteral("blk"));
        QVERIFY(tree->currentItem()->font(0).bold());
        QCOMPARE(tree->topLevelItem(0)->childCount(), 2);
        QCOMPARE(find<QPlainTextEdit>("traceLog")->toPlainText(), QStringLiteral("making the net"));
        QVERIFY(fix(QStringLiteral("Mark every Blk as leaf")));
        click("traceCopy");
        QCOMPARE(QGuiApplication::clipboard()->text(), QStringLiteral("torch.where(x.mean() > 0, x * 2, x)"));

        QTest::mouseClick(fix(QStringLiteral("Mark as leaf: blk")), Qt::LeftButton);
        QCOMPARE(options(), { QStringLiteral("Leaf module blk") });
        QCOMPARE(find<QLineEdit>("traceInputs")->text(), QStringLiteral("2x4")); // everything else stays
        QVERIFY(done());
        QCOMPARE(traced.count(), 1);
        QVERIFY(QFileInfo(traced[0][0].toString()).size() > 0);
        QVERIFY(!panel_->isVisible());
    }

    void optionsByKeys()
    {
        type("traceSource", file_ + QStringLiteral(":net"));
        auto *kind = find<QComboBox>("traceKind");
        kind->setFocus();
        QTest::keyClick(kind, Qt::Key_Down);
        QCOMPARE(kind->currentText(), QStringLiteral("Leaf class"));
        type("traceLeaf", QStringLiteral("nets.Bkl"));
        QTest::keyClick(find<QLineEdit>("traceLeaf"), Qt::Key_Return);
        QCOMPARE(options(), { QStringLiteral("Leaf class nets.Bkl") });
        QVERIFY(!panel_->isRunning()); // Enter there adds an option
        click("traceRun");
        QVERIFY(done());
        const QString hint = find<QLabel>("traceProblem")->text();
        QVERIFY2(hint.contains(QLatin1String("did you mean 'nets.Blk'")), qPrintable(hint)); // a near match
        auto *list = find<QListWidget>("traceLeaves");
        list->setFocus();
        list->setCurrentRow(0);
        QTest::keyClick(list, Qt::Key_Delete);
        QVERIFY(options().isEmpty());
        type("traceLeaf", QStringLiteral("nets.Blk")); // typed and not entered counts, too
        QSignalSpy traced(panel_.get(), &fb::TracePanel::traced);
        click("traceRun");
        QVERIFY(done());
        QCOMPARE(traced.count(), 1);
    }

    void anArgumentIsPinnedByAButton()
    {
        type("traceSource", file_ + QStringLiteral(":switch"));
        click("traceRun");
        QVERIFY(done());
        QSignalSpy traced(panel_.get(), &fb::TracePanel::traced);
        QVERIFY(fix(QStringLiteral("Fix flag to True")));
        QTest::mouseClick(fix(QStringLiteral("Fix flag to True")), Qt::LeftButton);
        QVERIFY(done());
        QCOMPARE(traced.count(), 1);
        QCOMPARE(options(), { QStringLiteral("Fixed argument flag=True") });
    }

    void leavesAreFound()
    {
        type("traceSource", file_ + QStringLiteral(":net"));
        QSignalSpy traced(panel_.get(), &fb::TracePanel::traced);
        click("traceDoctor");
        QVERIFY(done());
        QCOMPARE(traced.count(), 1);
        QCOMPARE(options(), { QStringLiteral("Leaf module blk") });
    }

    // Neither the user's process nor what it started outlives a cancel, a closed or a deleted dialog.
    void nothingOutlives_data()
    {
        QTest::addColumn<int>("how");
        QTest::newRow("cancel") << 0;
        QTest::newRow("escape") << 1;
        QTest::newRow("deleted") << 2;
    }
    void nothingOutlives()
    {
        QFETCH(int, how);
        type("traceSource", file_ + QStringLiteral(":endless"));
        click("traceRun");
        auto *log = find<QPlainTextEdit>("traceLog");
        QTRY_VERIFY_WITH_TIMEOUT(log->toPlainText().contains(QLatin1String("child ")), 60000);
        const pid_t child = log->toPlainText().section(QLatin1String("child "), 1).trimmed().toInt();
        QVERIFY(child > 0 && ::kill(child, 0) == 0);
        if (how == 0)
            click("traceClose");
        else if (how == 1)
            QTest::keyClick(panel_.get(), Qt::Key_Escape);
        else
            panel_.reset();
        if (panel_) {
            QElapsedTimer timer;
            timer.start();
            QTRY_VERIFY(!panel_->isRunning());
            QVERIFY2(timer.elapsed() < 1000, qPrintable(QString::number(timer.elapsed())));
        }
        if (how == 0)
            QCOMPARE(find<QLabel>("traceStatus")->text(), QStringLiteral("Cancelled."));
        auto gone = [child] { // a zombie is gone, too: nobody may be there to reap it
            QFile status(QStringLiteral("/proc/%1/status").arg(child));
            return !status.open(QIODevice::ReadOnly) || status.readAll().contains("State:\tZ");
        };
        QTRY_VERIFY(gone());
    }

    void looks()
    {
        const QString shots = qEnvironmentVariable("FUSEBOARD_SHOTS");
        if (shots.isEmpty())
            QSKIP("set FUSEBOARD_SHOTS to a folder for pictures");
        for (const auto mode : { fb::Theme::Mode::Light, fb::Theme::Mode::Dark }) {
            const QString name = mode == fb::Theme::Mode::Light ? QStringLiteral("light") : QStringLiteral("dark");
            fb::Theme::apply(*qApp, mode);
            panel_ = std::make_unique<fb::TracePanel>();
            panel_->resize(1280, 800);
            panel_->show();
            panel_->setSource(file_);
            panel_->grab().save(shots + QStringLiteral("/trace-%1-empty.png").arg(name));
            panel_->setInput(QStringLiteral("2x4"));
            panel_->run();
            QVERIFY(done());
            QTest::qWait(50);
            panel_->grab().save(shots + QStringLiteral("/trace-%1-failed.png").arg(name));
            panel_->resize(760, 700);
            QTest::qWait(50);
            panel_->grab().save(shots + QStringLiteral("/trace-%1-small.png").arg(name));
        }
    }
};

QTEST_MAIN(TracePanelTest)
#include "tst_trace_panel.moc"
