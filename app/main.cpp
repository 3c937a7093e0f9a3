// Fuseboard: the program with the window. GPL-3.0-or-later.
//
//     fuseboard [FILE]                      opens the window, with FILE in it
//     fuseboard --screenshot OUT.png FILE   draws the window with FILE into a picture and ends (works without a display)
#include <QApplication>
#include <QCommandLineParser>
#include <QElapsedTimer>
#include <QSettings>
#include <QTimer>

#include <cstdio>

#include "app/window/main_window.h"
#include "views/canvas.h"

namespace
{

// Waits until the document is open and drawn, or says why it is not.
int screenshot(fb::MainWindow &window, const QString &file, const QString &picture)
{
    QString error;
    QObject::connect(window.document(), &fb::GraphDocument::failed, &window,
        [&error](const QString &what, const QString &message) { error = what + QStringLiteral(": ") + message; });
    window.openFile(file);
    QElapsedTimer clock;
    clock.start();
    while (error.isEmpty() && clock.elapsed() < 60000
        && (!window.document()->isOpen() || window.document()->jobs()->anyRunning() || window.canvas()->isLayingOut()))
        QCoreApplication::processEvents(QEventLoop::AllEvents, 50);
    for (int i = 0; i < 20; ++i)
        QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
    if (error.isEmpty() && !window.grab().save(picture))
        error = QStringLiteral("cannot write %1: name a file in a folder that can be written").arg(picture);
    if (!error.isEmpty())
        std::fprintf(stderr, "%s\n", qPrintable(error));
    return error.isEmpty() ? 0 : 1;
}

} // namespace

int main(int argc, char **argv)
{
    QApplication app(argc, argv);
    QCoreApplication::setOrganizationName(QStringLiteral("Fuseboard"));
    QCoreApplication::setApplicationName(QStringLiteral("fuseboard"));

    QCommandLineParser parser;
    parser.setApplicationDescription(QStringLiteral("A workbench for taking PyTorch models to int8."));
    parser.addHelpOption();
    QCommandLineOption picture(
        QStringLiteral("screenshot"), QStringLiteral("Draw the window into a picture and end."), QStringLiteral("OUT.png"));
    QCommandLineOption size(
        QStringLiteral("size"), QStringLiteral("Size of that picture."), QStringLiteral("WxH"), QStringLiteral("1280x800"));
    QCommandLineOption theme(QStringLiteral("theme"), QStringLiteral("light, dark or system."), QStringLiteral("NAME"));
    parser.addOptions({ picture, size, theme });
    parser.addPositionalArgument(QStringLiteral("FILE"), QStringLiteral("What to open."));
    parser.process(app);

    auto mode = fb::Theme::Mode(QSettings().value(QStringLiteral("theme"), 0).toInt());
    if (parser.isSet(theme))
        mode = parser.value(theme) == QLatin1String("dark") ? fb::Theme::Mode::Dark
            : parser.value(theme) == QLatin1String("light") ? fb::Theme::Mode::Light
                                                            : fb::Theme::Mode::System;
    fb::Theme::apply(app, mode);

    auto *window = new fb::MainWindow;
    window->setAttribute(Qt::WA_DeleteOnClose);
    const QStringList files = parser.positionalArguments();
    if (parser.isSet(picture)) {
        const QStringList wh = parser.value(size).split(QLatin1Char('x'));
        window->resize(wh.value(0).toInt(), wh.value(1).toInt());
        window->show();
        const int status = screenshot(*window, files.value(0), parser.value(picture));
        delete window;
        return status;
    }
    window->show();
    for (const QString &file : files)
        window->openFile(file);
    return app.exec();
}
