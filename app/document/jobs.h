// Fuseboard: work off the GUI thread. GPL-3.0-or-later.
//
// A job gets a snapshot by value, works on a pool thread, and returns what is to be done with its answer; that runs on the
// thread of Jobs. It reports progress and looks at its cancel flag. When Jobs goes away everything is cancelled and waited for.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include <QElapsedTimer>
#include <QHash>
#include <QList>
#include <QObject>
#include <QString>
#include <QThreadPool>

namespace fb
{

class JobContext
{
public:
    std::atomic<bool> cancelled = false;
    void progress(double fraction, const QString &text = {}) const { report(fraction, text); }

private:
    friend class Jobs;
    std::function<void(double, const QString &)> report;
};

struct JobName {
    QString title; // "Calibrate"
    QString kind; // "calibrate", to find it by
    bool quiet = false; // housekeeping: listed only when it fails
};

struct JobInfo {
    int id = 0;
    QString name, kind;
    bool quiet = false;
    double fraction = -1; // -1: unknown
    double secondsLeft = -1; // -1: unknown
    QString text; // what it is at, or how it ended
    bool running = true;
    bool failed = false;
    double seconds = 0; // how long it took, once ended
};

// What a job hands back: a one-line result for the list, and what to do with the answer on the owner's thread.
struct JobAnswer {
    QString result;
    bool failed = false;
    std::function<void()> deliver;
};

class Jobs : public QObject
{
    Q_OBJECT
public:
    explicit Jobs(QObject *parent = nullptr);
    ~Jobs() override;

    int start(const JobName &name, std::function<JobAnswer(JobContext &)> work);
    void cancel(int id);
    void cancelAll();
    bool anyRunning() const;
    const QList<JobInfo> &list() const { return infos_; } // newest first; ended ones are kept, 20 at most

signals:
    void changed();

private:
    JobInfo *find(int id);
    void finish(int id, const JobAnswer &answer);

    QThreadPool pool_;
    QList<JobInfo> infos_;
    QHash<int, std::shared_ptr<JobContext>> contexts_;
    QHash<int, QElapsedTimer> clocks_;
    int nextId_ = 1;
};

} // namespace fb
