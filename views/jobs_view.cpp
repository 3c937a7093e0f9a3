#include "views/jobs_view.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <algorithm>
#include <cmath>

#include "views/panel_style.h"
#include "views/theme.h"

namespace fb
{

QString remainingText(double seconds)
{
    if (!(seconds >= 0))
        return {};
    if (seconds < 5)
        return JobsView::tr("a few seconds left");
    if (seconds < 90)
        return JobsView::tr("about %1 s left").arg(int(std::ceil(seconds / 5)) * 5);
    if (seconds < 90 * 60)
        return JobsView::tr("about %1 min left").arg(int(std::lround(seconds / 60)));
    return JobsView::tr("about %1 h left").arg(int(std::lround(seconds / 3600)));
}

class JobsView::Row : public QWidget
{
public:
    explicit Row(JobsView *view)
        : QWidget(view)
    {
        auto *row = new QHBoxLayout(this);
        row->setContentsMargins(8, 4, 8, 4);
        row->setSpacing(8);
        row->addWidget(icon_);
        auto *texts = new QVBoxLayout;
        texts->setSpacing(1);
        texts->addWidget(name_);
        texts->addWidget(result_);
        row->addLayout(texts, 1);
        bar_->setFixedWidth(180);
        bar_->setMaximum(1000);
        bar_->setTextVisible(false);
        row->addWidget(bar_);
        percent_->setFixedWidth(QFontMetrics(Theme::font(kTextPixels)).horizontalAdvance("100 %") + 4);
        percent_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
        row->addWidget(percent_);
        left_->setMinimumWidth(QFontMetrics(Theme::font(kTextPixels)).horizontalAdvance(tr("a few seconds left")) + 6);
        row->addWidget(left_);
        row->addWidget(cancel_);
        result_->setWordWrap(true);
        result_->setFont(Theme::font(kSmallPixels));
        result_->setForegroundRole(QPalette::PlaceholderText);
        result_->setTextInteractionFlags(Qt::TextSelectableByMouse);
        connect(cancel_, &QPushButton::clicked, this, [this, view] {
            cancel_->setEnabled(false);
            cancel_->setText(tr("Cancelling"));
            emit view->cancelRequested(job.id);
        });
    }

    JobRow job;

    void set(const JobRow &to)
    {
        const bool running = to.state == JobRow::Running;
        job = to;
        name_->setText(to.name);
        result_->setText(to.text);
        result_->setVisible(!to.text.isEmpty());
        bar_->setMaximum(to.fraction < 0 ? 0 : 1000); // 0: moves to and fro
        bar_->setValue(int(std::lround(std::clamp(to.fraction, 0., 1.) * 1000)));
        bar_->setAccessibleName(tr("Progress of %1").arg(to.name));
        percent_->setText(percent());
        left_->setText(remainingText(to.secondsLeft));
        cancel_->setAccessibleName(tr("Cancel %1").arg(to.name));
        cancel_->setObjectName(QStringLiteral("cancel%1").arg(to.id));
        for (QWidget *w : std::initializer_list<QWidget *>{ bar_, percent_, left_, cancel_ })
            w->setVisible(running);
        setIcon();
    }

    QString percent() const
    {
        return job.fraction < 0 ? QString() : tr("%1 %").arg(int(std::floor(std::min(job.fraction, 1.) * 100)));
    }

    QString line() const
    {
        QStringList cells{ job.name };
        if (job.state == JobRow::Running)
            cells += { percent(), left_->text() };
        else
            cells += job.state == JobRow::Failed ? tr("failed") : tr("done");
        cells += job.text;
        cells.removeAll(QString());
        return cells.join(" | ");
    }

protected:
    void changeEvent(QEvent *event) override
    {
        QWidget::changeEvent(event);
        if (event->type() == QEvent::PaletteChange)
            setIcon();
    }

private:
    void setIcon()
    {
        const Mark mark = job.state == JobRow::Running ? Mark::Running : job.state == JobRow::Failed ? Mark::Error : Mark::Done;
        icon_->setPixmap(markIcon(mark).pixmap(16, 16));
        icon_->setAccessibleName(job.state == JobRow::Running ? tr("running")
                : job.state == JobRow::Failed                 ? tr("failed")
                                                              : tr("done"));
    }

    QLabel *icon_ = new QLabel(this), *name_ = new QLabel(this), *result_ = new QLabel(this);
    QProgressBar *bar_ = new QProgressBar(this);
    QLabel *percent_ = new QLabel(this), *left_ = new QLabel(this);
    QPushButton *cancel_ = new QPushButton(tr("Cancel"), this);
};

JobsView::JobsView(QWidget *parent)
    : QWidget(parent)
    , empty_(emptyLabel(tr("Nothing is running."), this))
{
    auto *area = new QScrollArea(this);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setAccessibleName(tr("Jobs"));
    auto *inside = new QWidget(area);
    inside->setBackgroundRole(QPalette::Base);
    area->setWidget(inside);
    layout_ = new QVBoxLayout(inside);
    layout_->setContentsMargins(0, 4, 0, 4);
    layout_->setSpacing(0);
    layout_->addWidget(empty_);
    layout_->addStretch();
    auto *column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(area);
}

void JobsView::setJobs(const QVector<JobRow> &jobs)
{
    QHash<int, Row *> old = std::exchange(rows_, {});
    int running = 0;
    for (qsizetype i = 0; i < jobs.size(); ++i) {
        const JobRow &job = jobs[i];
        Row *row = old.take(job.id);
        if (!row)
            row = new Row(this);
        if (layout_->indexOf(row) != i)
            layout_->insertWidget(int(i), row);
        row->set(job);
        rows_.insert(job.id, row);
        running += job.state == JobRow::Running;
    }
    for (Row *gone : old) {
        gone->hide();
        gone->deleteLater();
    }
    jobs_ = jobs;
    empty_->setVisible(jobs.isEmpty());
    if (std::exchange(running_, running) != running)
        emit runningChanged(running);
}

int JobsView::running() const
{
    return running_;
}

QString JobsView::text() const
{
    QString out;
    for (const JobRow &job : jobs_)
        out += rows_[job.id]->line() + '\n';
    return out;
}

} // namespace fb
