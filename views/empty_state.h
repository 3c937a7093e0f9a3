// Fuseboard: what an empty window offers. GPL-3.0-or-later.
//
// Open, trace, the demo, recent files. The window itself takes dropped files; setDropActive() lights the frame meanwhile.
#pragma once

#include <QStringList>
#include <QWidget>

class QLabel;
class QListWidget;
class QPushButton;

namespace fb
{

class EmptyState : public QWidget
{
    Q_OBJECT
public:
    explicit EmptyState(QWidget *parent = nullptr);

    void setRecent(const QStringList &paths); // newest first
    void setDropActive(bool active);
    void setMessage(const QString &sentence); // an error that belongs here ("net.fxt: not a zip file..."); empty hides it

signals:
    void openRequested();
    void traceRequested();
    void demoRequested();
    void recentRequested(const QString &path);
    void recentCleared();

protected:
    void paintEvent(QPaintEvent *event) override;

private:
    QPushButton *choice(const QString &title, const QString &text, const QString &name);

    QLabel *message_, *recentTitle_;
    QListWidget *recent_;
    QPushButton *clear_;
    bool dropActive_ = false;
};

} // namespace fb
