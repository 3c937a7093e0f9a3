// Fuseboard: "Trace a Python model", beside the window and never in its way. GPL-3.0-or-later.
//
// Says what to trace and how by pointing: a file, one of the names in it, inputs, an interpreter, options. Runs the tracer in
// that interpreter, and where tracing fails shows the module tree with the culprit lit, its source line, and a button for each
// remedy: a button adds its option to the list and tries again, with everything else as it was.
#pragma once

#include <QDialog>
#include <QDir>
#include <QTemporaryDir>

#include "app/document/tracer.h"
#include "model/ir/module.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QListWidget;
class QPlainTextEdit;
class QProgressBar;
class QPushButton;
class QSplitter;
class QTreeWidget;
class QVBoxLayout;

namespace fb
{

class TracePanel : public QDialog
{
    Q_OBJECT
public:
    explicit TracePanel(QWidget *parent = nullptr);
    ~TracePanel() override;

    void setSource(const QString &source);
    void setInput(const QString &input);
    void setOptions(const TraceOptions &options); // in place of those it had
    void addLeaf(const QString &path);
    QStringList leaves() const { return options(QStringLiteral("leaf")); }
    QDir sourceFolder() const; // of the Python file named
    bool isRunning() const { return tracer_.isRunning(); }
    // Whether a file is a fresh trace that goes away with the panel that made it, so nobody should remember its path.
    static bool isScratch(const QString &path);

public slots:
    void run();
    void findLeaves(); // traces with the smallest set of leaves, or submodules, that lets it
    void reject() override; // ends a running trace, too

signals:
    void traced(const QString &file);
    void failed(const fb::TraceResult &result);

private:
    QWidget *makeForm();
    QWidget *makeAnswer();
    void addOption(const QString &kind, const QString &value);
    QStringList options(const QString &kind) const;
    QStringList names() const; // the source's file, then the name after the colon
    void readNames();
    void start(bool doctor);
    void finish(const TraceResult &result);
    void showProblems(const TraceResult &result);
    void showModules(const TraceResult &result);
    void addFix(const TraceFix &fix, QVBoxLayout *layout);
    void clearAnswer();
    void refresh();
    TraceRequest request() const;

    Tracer tracer_;
    QTemporaryDir folder_;
    int runs_ = 0;
    QString output_, read_;
    QLineEdit *source_, *inputs_, *option_;
    QComboBox *name_, *python_, *kind_;
    QListWidget *options_;
    QLabel *status_;
    QProgressBar *progress_;
    QPushButton *run_, *doctor_, *cancel_;
    QSplitter *answer_;
    QTreeWidget *modules_;
    QPlainTextEdit *log_;
    QVBoxLayout *problems_;
};

} // namespace fb
