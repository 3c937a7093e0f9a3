// Fuseboard: "Trace a Python model", beside the window and never in its way. GPL-3.0-or-later.
//
// Fills in what the tracer needs, runs it in the user's interpreter, and where tracing fails shows module and line with
// "Mark as leaf" to press: the leaf is added and the trace tried again.
#pragma once

#include <QDialog>
#include <QDir>
#include <QTemporaryDir>

#include "app/document/tracer.h"

class QLabel;
class QLineEdit;
class QListWidget;
class QProgressBar;
class QPushButton;
class QVBoxLayout;

namespace fb
{

class TracePanel : public QDialog
{
    Q_OBJECT
public:
    explicit TracePanel(QWidget *parent = nullptr);

    void setSource(const QString &source);
    void setInput(const QString &input);
    void addLeaf(const QString &path);
    QStringList leaves() const;
    QDir sourceFolder() const; // of the Python file named
    bool isRunning() const { return tracer_.isRunning(); }
    // Whether a file is a fresh trace that goes away with the panel that made it, so nobody should remember its path.
    static bool isScratch(const QString &path);

public slots:
    void run();

signals:
    void traced(const QString &file);
    void failed(const fb::TraceResult &result);

private:
    void finish(const TraceResult &result);
    void showProblems(const TraceResult &result);
    void refresh();
    TraceRequest request() const;

    Tracer tracer_;
    QTemporaryDir folder_;
    int runs_ = 0;
    QString output_;
    QLineEdit *source_, *inputs_, *python_, *leaf_;
    QListWidget *leaves_;
    QLabel *status_;
    QProgressBar *progress_;
    QPushButton *run_, *cancel_;
    QVBoxLayout *problems_;
};

} // namespace fb
