// Fuseboard: the open document, which alone owns change. GPL-3.0-or-later.
//
// Load, edit, pass, configuration and conversion are one kind of step: a name and the whole state after it. States are values
// that share what did not change, so undo is going back to the state before. Work happens in the background on a snapshot; an
// answer made from a state that is no longer the current one is dropped, and the user told.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include <QObject>
#include <QString>
#include <QStringList>

#include "app/document/jobs.h"
#include "app/document/python_worker.h"
#include "app/document/workflow.h"
#include "model/exec/statistics.h"
#include "passes/pass.h"
#include "passes/quantize.h"

namespace fb
{

// Of one graph.
struct DocumentState {
    std::shared_ptr<const GraphModule> graph;
    QuantConfig config;
    std::shared_ptr<const Calibration> calibration; // null before calibrating
    std::shared_ptr<const QuantResult> converted; // set when `graph` is the int8 graph
    std::shared_ptr<const GraphModule> floatGraph; // the graph that was converted
    std::optional<Evaluation> evaluation;
    std::vector<std::string> edits; // so far, each one entry of EDITS.json: the recipe replays them
    PassReport fused; // what fusing did and did not, for the report
};

// What is open: the graph of the file by the path "", and where that model traces only in parts, each of those by its path in the
// module table ("model.backbone"). Edits and rules are of one graph; calibration, conversion and export take all parts at once.
using DocumentStates = std::map<std::string, DocumentState>;

// Problems panel: what is wrong or suspicious.
struct Problem {
    enum Severity { Note, Warning, Fault } severity = Warning;
    QString node; // node or module the user can go to, or empty
    QString text;
    QString detail; // the source line that failed, or empty
    QString fix; // label of the button, or empty
    QString fixKind; // "leaf" (of a failed trace), "recalibrate", "worker", "eval", "calibrate-in-training"
    QString fixArgument;
    bool operator==(const Problem &) const = default;
};

class GraphDocument : public QObject
{
    Q_OBJECT
public:
    explicit GraphDocument(QObject *parent = nullptr);

    bool isOpen() const { return bool(state().graph); }
    const DocumentState &state() const { return states().at(part_); } // of the graph that is shown
    std::shared_ptr<const GraphModule> graph() const { return state().graph; }
    std::shared_ptr<const GraphModule> model() const { return states().at("").graph; } // the file's graph, whatever is shown
    std::shared_ptr<const QuantPlan> plan() const { return plan_; } // of the float graph; null until worked out
    bool isPartial() const { return states().size() > 1; }
    QStringList parts() const; // paths, of a model that traces only in parts
    QString part() const; // whose graph is shown; empty: the model's own
    void showPart(const QString &path); // one of parts(), or empty
    bool isInt8() const { return bool(state().converted); }
    QString path() const { return path_; }
    QString title() const;
    bool isModified() const { return current_ != saved_; }
    Jobs *jobs() { return &jobs_; }
    const Jobs *jobs() const { return &jobs_; }
    const QList<Problem> &problems() const { return problems_; }

    // How many nodes that would be calibrated have no statistics of this graph; -1: never calibrated.
    int staleNodes() const;
    QString dataPath() const { return dataPath_; }
    QStringList sampleInputs() const; // SHAPE of each tensor that the trace had as sample, none where a function gave them
    QString exportedTo() const { return exportedTo_; } // folder of the last export of this state, or empty

    bool canUndo() const { return current_ > 0; }
    bool canRedo() const { return current_ + 1 < history_.size(); }
    QString undoText() const { return canUndo() ? history_[current_].name : QString(); }
    QString redoText() const { return canRedo() ? history_[current_ + 1].name : QString(); }

public slots:
    void undo();
    void redo();

public:
    // Each starts a job and answers by signals. On failure the document stays as it was and failed() says why.
    void open(const QString &path);
    // `edit` is one entry of EDITS.json (cli.md), the only way a graph is edited: so every session can be replayed.
    void edit(const QString &name, const std::string &edit);
    void configure(const QString &name, QuantConfig config);
    // Fuses what prepare_fx would fuse (its own step), then runs the float graph over the data.
    // Refused where dropout or batch norm act as in training, until that is accepted.
    void calibrate(const QString &dataPath);
    void calibrateInTraining(); // on the data for which that was refused
    void convertToInt8();
    void exportTo(const QString &folder, bool int8Form);
    void saveAs(const QString &path);
    // How the document's float and int8 graphs do on labelled data (also done after converting, on the calibration data).
    void evaluate(const QString &dataPath);

    // Runs the user's code for what only Python can run, from then on until another document is opened. Empty: the default
    // Python, the source that the file names.
    void startWorker(const QString &python = {}, const QString &source = {});
    bool hasWorker() const { return bool(worker_); }

    // Trace failures and the like, shown with the document's own problems until cleared.
    void setExtraProblems(QList<Problem> problems);

signals:
    void changed(); // the state is another one
    void planChanged();
    void problemsChanged();
    void opened();
    void failed(const QString &what, const QString &message);
    void done(const QString &what, const QString &message); // a pass or an export ended well

private:
    struct Step {
        QString name;
        DocumentStates states;
        std::string part; // that was shown
    };
    const DocumentStates &states() const { return history_[current_].states; }
    void adopt(std::shared_ptr<const GraphModule> gm, std::shared_ptr<const GraphModule> regrouped, const QString &path,
        const QString &title);
    void push(const QString &name, DocumentStates states);
    void moveTo(qsizetype step, const std::string &part);
    void stateChanged();
    void graphChanged(); // what is shown is another graph
    void updatePlan();
    void updateProblems();
    // Runs `work` on the current states in the background; delivers when they are still the same.
    using Deliver = std::function<void()>;
    void runOnStates(
        const QString &name, const QString &kind, std::function<Result<Deliver>(const DocumentStates &, JobContext &)> work);
    bool lacksWorker(const QString &name); // and says so
    void calibrateNow(const QString &dataPath);

    QList<Step> history_{ Step{ {}, { { "", {} } }, {} } };
    qsizetype current_ = 0, saved_ = 0;
    std::string part_;
    quint64 revision_ = 0, planRevision_ = 0;
    QString path_, name_, dataPath_, exportedTo_;
    std::shared_ptr<const QuantPlan> plan_;
    QList<Problem> problems_, extraProblems_;
    QString waitingData_; // calibration on it was refused
    bool trainingAccepted_ = false;
    std::shared_ptr<Worker> worker_; // null before it is started
    Jobs jobs_;
};

QString qs(std::string_view s);
QString nodesText(qsizetype count); // "1 node", "31 nodes"

} // namespace fb
