// Fuseboard: every command by name (Ctrl+Shift+P). GPL-3.0-or-later.
//
//     palette->popUp(window->findChildren<QAction *>());       // triggers the chosen action itself
#pragma once

#include <QFrame>
#include <QList>
#include <QPointer>

class QAction;
class QLineEdit;
class QListWidget;

namespace fb
{

// How well `query` fits `text`: its letters in order, better at word starts and in a row; -1 where they do not occur.
int fuzzyScore(QStringView query, QStringView text);

class CommandPalette : public QFrame
{
    Q_OBJECT
public:
    explicit CommandPalette(QWidget *window);

    void popUp(const QList<QAction *> &actions); // those without text, separators and menus are left out
    QStringList shown() const; // titles in their order

signals:
    void closed();

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;
    void paintEvent(QPaintEvent *event) override;

private:
    void filter(const QString &query);
    void run();
    void dismiss();
    void place();

    QLineEdit *edit_;
    QListWidget *list_;
    QList<QPointer<QAction>> actions_;
    QPointer<QWidget> focusBefore_;
};

} // namespace fb
