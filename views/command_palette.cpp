#include "views/command_palette.h"

#include <QAction>
#include <QApplication>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>

#include "views/panel_style.h"
#include "views/theme.h"

namespace fb
{

using R = Theme::Role;

int fuzzyScore(QStringView query, QStringView text)
{
    int score = 0, streak = 0;
    qsizetype at = 0;
    for (QChar wanted : query) {
        if (wanted.isSpace())
            continue;
        const qsizetype from = at;
        while (at < text.size() && text[at].toCaseFolded() != wanted.toCaseFolded())
            ++at;
        if (at == text.size())
            return -1;
        const bool wordStart = at == 0 || !text[at - 1].isLetterOrNumber();
        streak = at == from ? streak + 1 : 0;
        score += 1 + (wordStart ? 8 : 0) + std::min(streak, 6) * 3;
        ++at;
    }
    return score * 4 + std::max<int>(0, 64 - int(text.size())) / 16; // of two that fit alike the shorter
}

namespace
{
// "&Open..." as a person reads it.
QString title(const QAction *action)
{
    QString text = action->text();
    text.replace("&&", "\1").remove('&').replace('\1', '&');
    return text.remove("...").remove(QChar(0x2026));
}

class CommandDelegate : public QStyledItemDelegate
{
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QSize sizeHint(const QStyleOptionViewItem &, const QModelIndex &) const override
    {
        return { 100, QFontMetrics(Theme::font(14)).height() + 12 };
    }

    void paint(QPainter *p, const QStyleOptionViewItem &option, const QModelIndex &index) const override
    {
        p->save();
        p->setRenderHint(QPainter::Antialiasing);
        const bool current = option.state & QStyle::State_Selected, enabled = index.data(Qt::UserRole + 1).toBool();
        if (current || (option.state & QStyle::State_MouseOver)) {
            p->setPen(Qt::NoPen);
            p->setBrush(Theme::color(current ? R::AccentSoft : R::Hover));
            p->drawRoundedRect(QRectF(option.rect).adjusted(1, 1, -1, -1), 5, 5);
        }
        const QRectF row = QRectF(option.rect).adjusted(12, 0, -12, 0);
        const QString keys = index.data(Qt::UserRole).toString();
        p->setFont(Theme::font(kTextPixels));
        p->setPen(Theme::color(R::TextMuted));
        p->drawText(row, Qt::AlignRight | Qt::AlignVCenter, keys);
        const double used = QFontMetricsF(p->font()).horizontalAdvance(keys);
        p->setFont(Theme::font(14));
        p->setPen(Theme::color(enabled ? R::Text : R::TextMuted));
        const QString text
            = QFontMetricsF(p->font()).elidedText(index.data().toString(), Qt::ElideRight, row.width() - used - 16);
        p->drawText(row, Qt::AlignLeft | Qt::AlignVCenter, text);
        p->restore();
    }
};
} // namespace

CommandPalette::CommandPalette(QWidget *window)
    : QFrame(window)
    , edit_(new QLineEdit(this))
    , list_(new QListWidget(this))
{
    setAccessibleName(tr("Commands"));
    edit_->setPlaceholderText(tr("Type a command"));
    edit_->setAccessibleName(edit_->placeholderText());
    edit_->setFont(Theme::font(15));
    edit_->installEventFilter(this);
    list_->setAccessibleName(tr("Matching commands"));
    list_->setItemDelegate(new CommandDelegate(list_));
    list_->setFrameShape(QFrame::NoFrame);
    list_->setFocusPolicy(Qt::NoFocus); // the line edit drives it
    list_->setMouseTracking(true);
    list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto *column = new QVBoxLayout(this);
    column->setContentsMargins(10, 10, 10, 10);
    column->addWidget(edit_);
    column->addWidget(list_, 1);
    hide();

    connect(edit_, &QLineEdit::textChanged, this, &CommandPalette::filter);
    connect(list_, &QListWidget::itemClicked, this, &CommandPalette::run);
    window->installEventFilter(this);
}

void CommandPalette::popUp(const QList<QAction *> &actions)
{
    actions_.clear();
    QStringList seen;
    for (QAction *action : actions) {
        if (action->isSeparator() || action->menu() || title(action).isEmpty() || !action->isVisible())
            continue;
        const QString key = title(action) + action->shortcut().toString();
        if (!seen.contains(key))
            actions_.append(action);
        seen += key;
    }
    focusBefore_ = QApplication::focusWidget();
    edit_->clear();
    filter({});
    place();
    show();
    raise();
    edit_->setFocus(Qt::PopupFocusReason);
}

QStringList CommandPalette::shown() const
{
    QStringList out;
    for (int i = 0; i < list_->count(); ++i)
        out += list_->item(i)->text();
    return out;
}

void CommandPalette::filter(const QString &query)
{
    QList<std::pair<int, QAction *>> fits;
    for (const QPointer<QAction> &action : actions_)
        if (const int score = action ? fuzzyScore(query, title(action)) : -1; score >= 0)
            fits.append({ query.trimmed().isEmpty() ? 0 : score, action });
    // What can be done now stands before what cannot.
    std::stable_sort(fits.begin(), fits.end(), [](const auto &a, const auto &b) {
        const bool on = a.second->isEnabled(), other = b.second->isEnabled();
        return on != other ? on : a.first > b.first;
    });
    list_->clear();
    for (const auto &[score, action] : fits) {
        auto *item = new QListWidgetItem(title(action), list_);
        item->setData(Qt::UserRole, action->shortcut().toString(QKeySequence::NativeText));
        item->setData(Qt::UserRole + 1, action->isEnabled());
        item->setData(Qt::UserRole + 2, int(actions_.indexOf(action)));
        if (action->toolTip() != action->text())
            item->setToolTip(action->toolTip());
    }
    list_->setCurrentRow(0);
    place();
}

void CommandPalette::run()
{
    const QListWidgetItem *item = list_->currentItem();
    if (!item)
        return;
    const QPointer<QAction> action = actions_[item->data(Qt::UserRole + 2).toInt()];
    if (!action || !action->isEnabled())
        return;
    dismiss();
    action->trigger();
}

void CommandPalette::dismiss()
{
    if (isHidden())
        return;
    const QPointer<QWidget> back = focusBefore_; // hiding moves the focus
    hide();
    if (back)
        back->setFocus(Qt::OtherFocusReason);
    emit closed();
}

void CommandPalette::place()
{
    const QRect window = parentWidget()->rect();
    const int wide = std::min(620, window.width() - 40), rows = std::clamp(list_->count(), 1, 14);
    const int high = std::min(70 + rows * (QFontMetrics(Theme::font(14)).height() + 12), window.height() - 80);
    setGeometry((window.width() - wide) / 2, std::min(70, window.height() / 8), wide, high);
}

bool CommandPalette::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == parentWidget()) {
        if (event->type() == QEvent::Resize && isVisible())
            place();
        return false;
    }
    if (watched != edit_)
        return QFrame::eventFilter(watched, event);
    if (event->type() == QEvent::FocusOut && static_cast<QFocusEvent *>(event)->reason() != Qt::ActiveWindowFocusReason
        && static_cast<QFocusEvent *>(event)->reason() != Qt::PopupFocusReason) {
        focusBefore_ = nullptr; // someone else took the focus: leave it there
        dismiss();
        return false;
    }
    if (event->type() != QEvent::KeyPress && event->type() != QEvent::ShortcutOverride)
        return QFrame::eventFilter(watched, event);
    const int page = std::max(1, list_->viewport()->height() / std::max(1, list_->sizeHintForRow(0)));
    const bool press = event->type() == QEvent::KeyPress;
    const auto move = [&](int by) {
        if (press && list_->count())
            list_->setCurrentRow(std::clamp(list_->currentRow() + by, 0, list_->count() - 1));
    };
    switch (static_cast<QKeyEvent *>(event)->key()) {
    case Qt::Key_Down:
        move(1);
        break;
    case Qt::Key_Up:
        move(-1);
        break;
    case Qt::Key_PageDown:
        move(page);
        break;
    case Qt::Key_PageUp:
        move(-page);
        break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (press)
            run();
        break;
    case Qt::Key_Escape:
        if (press)
            dismiss();
        break;
    case Qt::Key_Tab:
    case Qt::Key_Backtab:
        break;
    default:
        return false;
    }
    event->accept();
    return true;
}

void CommandPalette::paintEvent(QPaintEvent *)
{
    QPainter p(this);
    p.setRenderHint(QPainter::Antialiasing);
    p.setPen(QPen(Theme::color(R::BorderStrong), 1));
    p.setBrush(Theme::color(R::Surface));
    p.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8);
}

} // namespace fb
