// Fuseboard: what runs, how far, how long still, cancel; and how it ended. GPL-3.0-or-later.
#pragma once

#include <QHash>
#include <QVector>
#include <QWidget>

class QLabel;
class QVBoxLayout;

namespace fb
{

struct JobRow {
    enum State { Running, Done, Failed };
    int id = 0;
    QString name; // "Calibrate on digits.npz"
    State state = Running;
    double fraction = -1; // 0 to 1; below 0: not known
    double secondsLeft = -1; // below 0: not known
    QString text; // running: what it does now; ended: its result or why not, in a line
};

QString remainingText(double seconds); // "about 2 min left", "a few seconds left"; empty where not known

class JobsView : public QWidget
{
    Q_OBJECT
public:
    explicit JobsView(QWidget *parent = nullptr);

    void setJobs(const QVector<JobRow> &jobs); // newest first; rows are kept by id
    int running() const;
    QString text() const; // "Calibrate | 40 % | about 2 min left" a line

signals:
    void cancelRequested(int id);
    void runningChanged(int count);

private:
    class Row;

    QVector<JobRow> jobs_;
    QHash<int, Row *> rows_;
    QVBoxLayout *layout_;
    QLabel *empty_;
    int running_ = 0;
};

} // namespace fb
