#include "app/document/jobs.h"

namespace fb
{

Jobs::Jobs(QObject *parent)
    : QObject(parent)
{
    pool_.setMaxThreadCount(2);
    pool_.setStackSize(16 << 20); // deeply nested arguments recurse
}

Jobs::~Jobs()
{
    cancelAll();
    pool_.waitForDone();
}

int Jobs::start(const JobName &name, std::function<JobAnswer(JobContext &)> work)
{
    const int id = nextId_++;
    auto context = std::make_shared<JobContext>();
    // The destructor waits for the pool, so `this` outlives every job; queued calls die with it.
    context->report = [this, id](double fraction, const QString &text) {
        QMetaObject::invokeMethod(
            this,
            [this, id, fraction, text] {
                JobInfo *info = find(id);
                if (!info || !info->running)
                    return;
                info->fraction = fraction;
                info->text = text;
                const double elapsed = double(clocks_[id].elapsed()) / 1000;
                info->secondsLeft = fraction > 0.01 ? elapsed * (1 - fraction) / fraction : -1;
                emit changed();
            },
            Qt::QueuedConnection);
    };
    contexts_[id] = context;
    clocks_[id].start();
    JobInfo info;
    info.id = id;
    info.name = name.title;
    info.kind = name.kind;
    info.quiet = name.quiet;
    infos_.prepend(info);
    while (infos_.size() > 20 && !infos_.back().running)
        infos_.removeLast();
    pool_.start([this, id, context, work = std::move(work)] {
        JobAnswer answer = context->cancelled ? JobAnswer{} : work(*context);
        QMetaObject::invokeMethod(
            this, [this, id, answer = std::move(answer)] { finish(id, answer); }, Qt::QueuedConnection);
    });
    emit changed();
    return id;
}

void Jobs::cancel(int id)
{
    if (auto context = contexts_.value(id))
        context->cancelled = true;
}

void Jobs::cancelAll()
{
    for (const auto &context : std::as_const(contexts_))
        context->cancelled = true;
}

bool Jobs::anyRunning() const
{
    return !contexts_.isEmpty();
}

JobInfo *Jobs::find(int id)
{
    for (JobInfo &info : infos_)
        if (info.id == id)
            return &info;
    return nullptr;
}

void Jobs::finish(int id, const JobAnswer &answer)
{
    const bool cancelled = contexts_.take(id)->cancelled;
    if (JobInfo *info = find(id)) {
        info->running = false;
        info->seconds = double(clocks_.take(id).elapsed()) / 1000;
        info->failed = answer.failed && !cancelled;
        info->text = cancelled ? tr("cancelled") : answer.result;
    }
    emit changed();
    if (!cancelled && answer.deliver)
        answer.deliver();
}

} // namespace fb
