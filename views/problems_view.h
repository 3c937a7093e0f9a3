// Fuseboard: what is wrong or suspicious, each with its node and, where there is one, a fix to press. GPL-3.0-or-later.
#pragma once

#include <QVector>
#include <QWidget>

#include "model/ir/arg.h"

class QLabel;
class QTableWidget;

namespace fb
{

struct ProblemRow {
    enum Severity { Note, Warning, Error };
    int id = 0; // the application's own; comes back in fixRequested
    Severity severity = Warning;
    NodeId node; // NodeId{}: of no node
    QString where; // node, module or file as shown: "conv1", "net.py:12"
    QString sentence;
    QString detail; // more lines below it (the source line that failed), or empty
    QString fix; // what the button says ("Mark as leaf"), or empty
    bool operator==(const ProblemRow &) const = default;
};

class ProblemsView : public QWidget
{
    Q_OBJECT
public:
    explicit ProblemsView(QWidget *parent = nullptr);

    void setProblems(const QVector<ProblemRow> &problems); // worst first, else in the order given
    int count() const { return int(problems_.size()); } // for the dock's title
    QString text() const; // "error | conv1 | sentence | [fix]" a line

signals:
    void countChanged(int count);
    void nodeActivated(fb::NodeId node);
    void problemActivated(int id); // also for problems of no node
    void fixRequested(int id);

protected:
    void changeEvent(QEvent *event) override;

private:
    void fill();

    QVector<ProblemRow> problems_;
    QTableWidget *table_;
    QLabel *empty_;
};

} // namespace fb
