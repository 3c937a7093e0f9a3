// Fuseboard tests: a person at the window, by mouse and keys on the real widgets. GPL-3.0-or-later.
#pragma once

#include <QAction>
#include <QApplication>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QLineEdit>
#include <QMenu>
#include <QPointer>
#include <QPushButton>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>
#include <QToolButton>

#include "app/window/main_window.h"
#include "app/window/trace_panel.h"
#include "tests/support/python.h"
#include "views/canvas.h"
#include "views/search_box.h"

namespace fbtest
{

inline QString demo(const QString &name)
{
    return sourceDir() + QStringLiteral("/resources/demo/") + name;
}

class Driver
{
public:
    fb::MainWindow window;
    QStringList failures, results;

    explicit Driver(QSize size = { 1280, 800 })
    {
        QObject::connect(window.document(), &fb::GraphDocument::failed, &window,
            [this](const QString &what, const QString &why) { failures << what + QStringLiteral(": ") + why; });
        QObject::connect(window.document(), &fb::GraphDocument::done, &window,
            [this](const QString &what, const QString &text) { results << what + QStringLiteral(": ") + text; });
        window.canvas()->setAnimated(false);
        window.setProperty("discardOnClose", true);
        window.resize(size);
        window.show();
        (void)QTest::qWaitForWindowExposed(&window);
    }

    fb::GraphDocument &doc() { return *window.document(); }
    const fb::Graph &graph() { return doc().graph()->graph; }
    fb::NodeId id(const char *name) { return graph().find(name); }

    // Until nothing runs and the newest layout is on screen.
    bool settle(int milliseconds = 120000)
    {
        return QTest::qWaitFor([this] { return !doc().jobs()->anyRunning() && !window.canvas()->isLayingOut(); }, milliseconds);
    }

    template <class W> W *find(const QString &name)
    {
        for (QWidget *top : QApplication::topLevelWidgets())
            for (W *w : top->findChildren<W *>(name))
                if (w->isVisible())
                    return w;
        return nullptr;
    }

    bool click(const QString &name)
    {
        QWidget *w = find<QWidget>(name);
        if (!w || !w->isEnabled())
            return false;
        QTest::mouseClick(w, Qt::LeftButton);
        return true;
    }

    // The button that says this.
    bool press(const QString &text)
    {
        for (QPushButton *button : window.findChildren<QPushButton *>())
            if (button->isVisible() && button->isEnabled() && button->text() == text) {
                QTest::mouseClick(button, Qt::LeftButton);
                return true;
            }
        return false;
    }

    void keys(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier)
    {
        window.activateWindow();
        (void)QTest::qWaitForWindowActive(&window);
        QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : &window, key, modifiers);
    }

    // Types a path into the file dialog that is open and accepts it.
    bool choose(const QString &path)
    {
        QFileDialog *dialog = nullptr;
        if (!QTest::qWaitFor([&] {
                for (QWidget *top : QApplication::topLevelWidgets())
                    if (auto *d = qobject_cast<QFileDialog *>(top); d && d->isVisible())
                        dialog = d;
                return dialog != nullptr;
            }))
            return false;
        auto *edit = dialog->findChild<QLineEdit *>(QStringLiteral("fileNameEdit"));
        if (!edit)
            return false;
        edit->setText(path); // no typing: the completer's popup would take the Return
        auto *buttons = dialog->findChild<QDialogButtonBox *>();
        QPointer<QFileDialog> open(dialog);
        QTest::mouseClick(buttons->button(QDialogButtonBox::Open), Qt::LeftButton);
        return QTest::qWaitFor([&] { return !open || !open->isVisible(); });
    }

    // Opens the context menu of a node on the canvas and takes the entry at this path ("Replace with", "torch.sigmoid").
    bool menu(fb::NodeId node, QStringList path)
    {
        window.canvas()->setSelection({ node }, true);
        if (!settle())
            return false;
        const QPoint at = window.canvas()->itemRect(node).center().toPoint();
        QTest::mouseClick(window.canvas(), Qt::LeftButton, {}, at);
        QContextMenuEvent event(QContextMenuEvent::Mouse, at, window.canvas()->mapToGlobal(at));
        QApplication::sendEvent(window.canvas(), &event);
        QMenu *menu = nullptr;
        if (!QTest::qWaitFor([&] { return (menu = find<QMenu>(QStringLiteral("nodeMenu"))) != nullptr; }))
            return false;
        offered.clear();
        for (QAction *a : menu->actions())
            offered << a->text();
        QMenu *level = menu;
        while (!path.isEmpty()) {
            const QString wanted = path.takeFirst();
            QAction *found = nullptr;
            for (QAction *a : level->actions())
                if (a->text() == wanted || (wanted.endsWith(QLatin1Char('*')) && a->text().startsWith(wanted.chopped(1))))
                    found = a;
            if (!found) {
                menu->close();
                return false;
            }
            if (found->menu()) {
                level = found->menu();
                continue;
            }
            found->trigger();
            menu->close();
        }
        return settle();
    }
    // An entry of the menu bar.
    bool trigger(const QString &text)
    {
        for (QAction *a : window.findChildren<QAction *>())
            if (a->text() == text && a->isEnabled()) {
                a->trigger();
                return true;
            }
        return false;
    }
    QStringList offered; // entries of the last context menu
};

// Settings of their own, so that a test neither reads nor leaves anything.
inline void isolateSettings(QTemporaryDir &folder)
{
    QStandardPaths::setTestModeEnabled(true);
    QCoreApplication::setOrganizationName(QStringLiteral("Fuseboard"));
    QCoreApplication::setApplicationName(QStringLiteral("fuseboard-test"));
    QSettings::setDefaultFormat(QSettings::IniFormat);
    QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, folder.path());
}

} // namespace fbtest
