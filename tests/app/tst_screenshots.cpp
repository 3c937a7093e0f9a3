// Pictures of the tour at two sizes, light and dark, into the folder FUSEBOARD_SHOTS (./dev shots), to be looked at.
// GPL-3.0-or-later.
#include <QDir>
#include <QDockWidget>

#include "tests/app/window_driver.h"

using namespace fb;
using namespace fbtest;

class Screenshots : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase() { isolateSettings(settings_); }
    void tour_data();
    void tour();

private:
    QTemporaryDir settings_;
};

void Screenshots::tour_data()
{
    QTest::addColumn<QSize>("size");
    QTest::addColumn<bool>("dark");
    for (QSize size : { QSize(1280, 800), QSize(1920, 1080) })
        for (bool dark : { false, true })
            QTest::addRow("%dx%d-%s", size.width(), size.height(), dark ? "dark" : "light") << size << dark;
}

void Screenshots::tour()
{
    QFETCH(QSize, size);
    QFETCH(bool, dark);
    const QString folder
        = qEnvironmentVariable("FUSEBOARD_SHOTS", QCoreApplication::applicationDirPath() + QStringLiteral("/../screenshots"));
    QVERIFY(QDir().mkpath(folder));
    Theme::apply(*qApp, dark ? Theme::Mode::Dark : Theme::Mode::Light);
    Driver d(size);
    int count = 0;
    auto shoot = [&](const char *name) {
        if (!d.settle())
            return false;
        QTest::qWait(120);
        const QString file = QStringLiteral("%1/%2-%3-%4.png")
                                 .arg(folder, QLatin1String(QTest::currentDataTag()))
                                 .arg(++count)
                                 .arg(QLatin1String(name));
        const QPixmap picture = d.window.grab();
        return picture.size() == d.window.size() * d.window.devicePixelRatio() && picture.save(file);
    };
    auto raise = [&](const char *title) {
        for (QDockWidget *dock : d.window.findChildren<QDockWidget *>())
            if (dock->objectName() == QLatin1String(title))
                dock->raise();
    };

    QVERIFY(shoot("empty"));
    QVERIFY(d.click(QStringLiteral("demo")));
    QTRY_VERIFY_WITH_TIMEOUT(d.doc().isOpen(), 60000);
    QVERIFY(shoot("demo"));
    QVERIFY(d.click(QStringLiteral("step2")));
    QVERIFY(d.settle());
    d.window.canvas()->setSelection({ d.id("stem_conv") }, true);
    QVERIFY(shoot("fused"));
    QVERIFY(d.click(QStringLiteral("step3")));
    QVERIFY(shoot("configure"));
    d.doc().calibrate(demo(QStringLiteral("calib.npy")));
    QTRY_VERIFY_WITH_TIMEOUT(d.doc().state().calibration, 120000);
    raise("histograms");
    QVERIFY(shoot("histogram"));
    d.window.canvas()->clearSelection();
    QVERIFY(shoot("wall"));
    QVERIFY(d.click(QStringLiteral("step5")));
    QTRY_VERIFY_WITH_TIMEOUT(d.doc().isInt8(), 120000);
    QVERIFY(d.settle());
    d.doc().evaluate(demo(QStringLiteral("test.npz")));
    QTRY_VERIFY_WITH_TIMEOUT(d.doc().state().evaluation, 120000);
    raise("layers");
    QVERIFY(shoot("int8"));
    raise("problems");
    d.window.canvas()->unfoldAll();
    QVERIFY(shoot("unfolded"));
    QCOMPARE(d.failures, QStringList());
}

QTEST_MAIN(Screenshots)
#include "tst_screenshots.moc"
