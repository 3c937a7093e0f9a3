// Fuseboard: tracing a Python model with real torch.fx, in the user's own interpreter. GPL-3.0-or-later.
//
// Opening a file never runs code; tracing does, so it happens only on the user's command and in a process of its own, which
// runs resources/python/fuseboard_trace.py and answers with one JSON document.
#pragma once

#include <functional>

#include <QList>
#include <QObject>
#include <QProcess>
#include <QStringList>

namespace fb
{

struct TraceRequest {
    QString source; // "net.py:make" or "package.module:name"
    QString output; // OUT.fxt
    QStringList inputs; // SHAPE or FILE each
    QStringList kwargs, concrete; // NAME=...
    QString samples; // instead of inputs: a function of the source that gives them
    QStringList leaves, leafClasses, wraps, submodules;
    QString python; // empty: the default one, see pythonProgram()
    bool keepMode = false; // trace in the mode the module is in, not in eval mode
    bool doctor = false;
    bool sizes = false; // the sample inputs decide what depends on sizes
    int seed = 0;

    QStringList arguments() const; // of fuseboard_trace.py, with --json
};

// What to do about a problem: "leaf" and "submodule" (value: path), "leaf-class" (class), "concrete" (NAME=VALUE), "wrap"
// (function): an option to trace with. "rewrite": how to write the line (value) so that it traces (after).
struct TraceFix {
    QString kind, value, label, after;
    QString text() const; // "Mark as leaf: blk"
};

struct TraceProblem {
    QString kind, module, className, file, source, message;
    int line = 0;
    QList<TraceFix> fixes;
    QString where() const; // "gain (GainLimit), net.py:34"
    QString sentence() const; // "gain (GainLimit), net.py:34 `if peak > 3:`: ..."
};

struct TraceResult {
    bool ok = false;
    bool cancelled = false;
    int exitCode = 1;
    QString error; // one sentence where it failed without problems of its own
    QList<TraceProblem> problems;
    QStringList warnings;
    QStringList leaves, submodules; // what --doctor found
    bool sizes = false; // --doctor: it needs TraceRequest::sizes
    QList<std::pair<QString, QString>> modules; // path and class of all modules, where tracing failed
    QByteArray json; // the tracer's whole answer
    QString sentence() const; // why it failed, in one sentence
};

// The interpreter: `asked`, else FUSEBOARD_PYTHON, an active virtual environment, the one Fuseboard was built with.
QString pythonProgram(const QString &asked = {});
// Interpreters worth offering for a source: pythonProgram(), virtual environments beside it and above, conda's, those on PATH.
QStringList pythonsFor(const QString &source);

// A name at the top of a Python file that may be a model.
struct PythonName {
    QString name;
    QStringList needs; // arguments without default: it cannot be called as it is
    bool operator==(const PythonName &) const = default;
};
// The functions, classes and objects that a Python text defines at its top level, likely models first. Parsed, not run.
QList<PythonName> pythonNames(const QString &text);

// A file below resources/: FUSEBOARD_RESOURCES, else beside the program, else the source tree it was built from.
QString resourcePath(const QString &name);

class Tracer : public QObject
{
    Q_OBJECT
public:
    explicit Tracer(QObject *parent = nullptr);
    ~Tracer() override;

    void start(const TraceRequest &request);
    void cancel();
    bool isRunning() const { return process_.state() != QProcess::NotRunning; }

signals:
    void progress(double fraction, const QString &text);
    void logged(const QString &line); // what the model and its packages print
    void finished(const fb::TraceResult &result);

private:
    void readProgress();
    void finish();
    void kill(int signal); // the process and all that it started
    QProcess process_;
    qint64 group_ = 0;
    QByteArray errors_, partial_;
    QString program_;
    bool cancelled_ = false, reported_ = false;
};

// Blocks until it is done. `progress` is called on the way.
TraceResult trace(const TraceRequest &request, const std::function<void(double, const QString &)> &progress = {});

} // namespace fb
