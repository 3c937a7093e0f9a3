#include "app/document/jobs.h"

#include <QPointer>

namespace fb {

Jobs::Jobs(QObject *parent) : QObject(parent)
{
    pool_.setMaxThreadCount(2);
    pool_.setStackSize(16 << 20);          // deeply nested arguments recurse
}

Jobs::~Jobs()
{
    cancelAll();
    pool_.waitForDone();
}

int Jobs::start(const QString &name, std::function<JobAnswer(JobContext &)> work)
{
    const int id = nextId_++;
    auto context = std::make_shared<JobContext>();
    QPointer<Jobs> self(this);
    context->report = [self, id](double fraction, const QString &text) {
        if (!self)
            return;
        QMetaObject::invokeMethod(
            self.data(),
            [self, id, fraction, text] {
                JobInfo *info = self ? self->find(id) : nullptr;
                if (!info || !info->running)
                    return;
                info->fraction = fraction;
                info->text = text;
                const double elapsed = double(self->clocks_[id].elapsed()) / 1000;
                info->secondsLeft = fraction > 0.01 ? elapsed * (1 - fraction) / fraction : -1;
                emit self->changed();
            },
            Qt::QueuedConnection);
    };
    contexts_[id] = context;
    clocks_[id].start();
    JobInfo info;
    info.id = id;
    info.name = name;
    infos_.prepend(info);
    while (infos_.size() > 20 && !infos_.back().running)
        infos_.removeLast();
    pool_.start([self, id, context, work = std::move(work)] {
        JobAnswer answer = context->cancelled ? JobAnswer{} : work(*context);
        if (!self)
            return;
        QMetaObject::invokeMethod(
            self.data(), [self, id, answer = std::move(answer)] { if (self) self->finish(id, answer); }, Qt::QueuedConnection);
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

bool Jobs::anyRunning() const { return !contexts_.isEmpty(); }

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
