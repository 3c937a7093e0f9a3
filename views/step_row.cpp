#include "views/step_row.h"

#include <QAbstractButton>
#include <QHBoxLayout>
#include <QPainter>
#include <QPainterPath>

#include "views/panel_style.h"
#include "views/theme.h"

namespace fb
{

// A number or mark in a disc, the step's name, and percent or a warning triangle after it; a chevron to the next step.
class StepButton : public QAbstractButton
{
    using R = Theme::Role;

public:
    StepButton(int number, const QString &name, bool last, QWidget *parent)
        : QAbstractButton(parent)
        , number_(number)
        , last_(last)
    {
        setText(name);
        setFocusPolicy(Qt::TabFocus);
        setAttribute(Qt::WA_Hover);
        setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
        describe();
    }

    StepState state;
    bool next = false;

    void describe()
    {
        static const char *const words[] = { QT_TRANSLATE_NOOP("fb::StepRow", "to do"), QT_TRANSLATE_NOOP("fb::StepRow", "done"),
            QT_TRANSLATE_NOOP("fb::StepRow", "running"), QT_TRANSLATE_NOOP("fb::StepRow", "out of date") };
        QString word = StepRow::tr(words[state.kind]);
        if (state.kind == StepState::Running && state.percent >= 0)
            word += QStringLiteral(" %1 %").arg(state.percent);
        setAccessibleName(QStringLiteral("%1 %2").arg(number_).arg(text()));
        setAccessibleDescription(state.text.isEmpty() ? word : word + ": " + state.text);
        setToolTip(text() + ": " + accessibleDescription());
        updateGeometry();
        update();
    }

    QSize sizeHint() const override
    {
        const QFontMetrics fm(Theme::font(kTextPixels, QFont::DemiBold));
        const int badge = state.kind == StepState::Running && state.percent >= 0 ? fm.horizontalAdvance("100 %") + 4
            : state.kind == StepState::OutOfDate                                 ? 20
                                                                                 : 0;
        return { Disc + 24 + fm.horizontalAdvance(text()) + badge + (last_ ? 0 : Chevron), std::max(30, fm.height() + 12) };
    }

protected:
    void paintEvent(QPaintEvent *) override
    {
        const QColor accent = Theme::color(R::Accent), quiet = Theme::color(R::TextMuted), line = Theme::color(R::Border);
        QPainter p(this);
        p.setRenderHint(QPainter::Antialiasing);
        if (!isEnabled())
            p.setOpacity(0.5);
        const QRectF body(1.5, 1.5, width() - (last_ ? 3 : Chevron + 3), height() - 3);

        QColor fill = next ? Theme::color(R::AccentSoft) : Qt::transparent;
        if (isDown())
            fill = Theme::mix(Theme::color(R::AccentSoft), accent, 0.25);
        else if (underMouse() && isEnabled() && !next)
            fill = Theme::color(R::Hover);
        p.setBrush(fill);
        p.setPen(hasFocus() ? QPen(accent, 2) : next ? QPen(accent, 1) : QPen(Qt::NoPen));
        p.drawRoundedRect(body, 6, 6);

        // Running: the button itself is the progress bar.
        if (state.kind == StepState::Running && state.percent >= 0) {
            const QRectF rail(body.left() + 6, body.bottom() - 3.5, body.width() - 12, 2);
            p.setPen(Qt::NoPen);
            p.setBrush(line);
            p.drawRoundedRect(rail, 1, 1);
            p.setBrush(accent);
            p.drawRoundedRect(QRectF(rail.topLeft(), QSizeF(rail.width() * std::min(state.percent, 100) / 100, 2)), 1, 1);
        }

        const QRectF disc(body.left() + 7, body.center().y() - Disc / 2., Disc, Disc);
        const bool done = state.kind == StepState::Done;
        const QColor ring = done                       ? Theme::color(R::Success)
            : state.kind == StepState::OutOfDate       ? Theme::color(R::Warning)
            : state.kind == StepState::Running || next ? accent
                                                       : quiet;
        p.setPen(QPen(ring, 1.4));
        p.setBrush(done ? ring : Qt::transparent);
        p.drawEllipse(disc);
        if (done) {
            p.setPen(QPen(Theme::textOn(ring), 1.8, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
            const QPointF m = disc.center();
            p.drawPolyline(QPolygonF({ m + QPointF(-3.6, 0.2), m + QPointF(-1, 2.9), m + QPointF(3.8, -2.7) }));
        } else {
            p.setPen(ring);
            p.setFont(Theme::font(11, QFont::DemiBold));
            p.drawText(disc, Qt::AlignCenter, QString::number(number_));
        }

        p.setFont(Theme::font(kTextPixels, next ? QFont::DemiBold : QFont::Normal));
        p.setPen(state.kind == StepState::Todo && !next ? quiet : palette().color(QPalette::WindowText));
        const QRectF label(disc.right() + 6, body.top(), body.right() - disc.right() - 6, body.height());
        QRectF used;
        p.drawText(label, Qt::AlignVCenter | Qt::AlignLeft, text(), &used);
        const QRectF badge(used.right() + 6, body.top(), body.right() - used.right() - 8, body.height());
        if (state.kind == StepState::Running && state.percent >= 0) {
            p.setPen(accent);
            p.setFont(Theme::font(kTextPixels));
            p.drawText(badge, Qt::AlignVCenter | Qt::AlignLeft, QStringLiteral("%1 %").arg(state.percent));
        } else if (state.kind == StepState::OutOfDate) {
            markIcon(Mark::Warning).paint(&p, QRect(int(badge.left()), int(badge.center().y()) - 7, 14, 14));
        }

        if (!last_) {
            const QPointF tip(width() - 3.5, height() / 2.);
            p.setPen(QPen(quiet, 1.4, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
            p.drawPolyline(QPolygonF({ tip - QPointF(4, 4.5), tip, tip - QPointF(4, -4.5) }));
        }
    }

private:
    static constexpr int Disc = 17, Chevron = 11;
    int number_;
    bool last_;
};

StepRow::StepRow(QWidget *parent)
    : QWidget(parent)
{
    setAccessibleName(tr("Steps"));
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    auto *row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(3);
    const QString names[StepCount] = { tr("Trace"), tr("Edit"), tr("Configure"), tr("Calibrate"), tr("Review"), tr("Export") };
    for (int i = 0; i < StepCount; ++i) {
        auto *button = new StepButton(i + 1, names[i], i + 1 == StepCount, this);
        button->setObjectName(QStringLiteral("step%1").arg(i + 1));
        connect(button, &QAbstractButton::clicked, this, [this, i] { emit stepPressed(i); });
        row->addWidget(button);
        buttons_[size_t(i)] = button;
    }
}

void StepRow::setState(Step step, const StepState &state)
{
    StepButton *b = buttons_[size_t(step)];
    if (b->state == state)
        return;
    b->state = state;
    b->describe();
}

StepState StepRow::state(Step step) const
{
    return buttons_[size_t(step)]->state;
}

void StepRow::setNext(int step)
{
    for (int i = 0; i < StepCount; ++i) {
        buttons_[size_t(i)]->next = i == step;
        buttons_[size_t(i)]->update();
    }
}

void StepRow::setStepEnabled(Step step, bool enabled)
{
    buttons_[size_t(step)]->setEnabled(enabled);
}

QWidget *StepRow::button(Step step) const
{
    return buttons_[size_t(step)];
}

} // namespace fb
