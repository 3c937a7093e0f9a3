#include "views/search_box.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QToolButton>

namespace fb
{

SearchBox::SearchBox(const QString &placeholder, QWidget *parent)
    : QWidget(parent)
    , edit_(new QLineEdit(this))
    , count_(new QLabel(this))
    , previous_(new QToolButton(this))
    , next_(new QToolButton(this))
{
    edit_->setPlaceholderText(placeholder.isEmpty() ? tr("Search") : placeholder);
    edit_->setAccessibleName(edit_->placeholderText());
    edit_->setClearButtonEnabled(true);
    edit_->setMinimumWidth(120);
    edit_->installEventFilter(this);
    count_->setAccessibleName(tr("Hits"));
    for (auto [button, arrow, name] : { std::tuple(previous_, Qt::UpArrow, tr("Previous hit (Shift+Enter)")),
             std::tuple(next_, Qt::DownArrow, tr("Next hit (Enter)")) }) {
        button->setArrowType(arrow);
        button->setAutoRaise(true);
        button->setToolTip(name);
        button->setAccessibleName(name);
    }

    auto *row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(4);
    row->addWidget(edit_, 1);
    row->addWidget(count_);
    row->addWidget(previous_);
    row->addWidget(next_);
    setFocusProxy(edit_);
    setHits(-1, -1);

    connect(edit_, &QLineEdit::textChanged, this, &SearchBox::textChanged);
    connect(previous_, &QToolButton::clicked, this, &SearchBox::previous);
    connect(next_, &QToolButton::clicked, this, &SearchBox::next);
}

QString SearchBox::text() const
{
    return edit_->text();
}

void SearchBox::setText(const QString &text)
{
    edit_->setText(text);
}

void SearchBox::setHits(int current, int total)
{
    if (total < 0)
        count_->clear();
    else if (total == 0)
        count_->setText(tr("no hits"));
    else if (current < 0)
        count_->setText(tr("hits: %1").arg(total));
    else
        count_->setText(tr("%1 of %2").arg(current + 1).arg(total));
    count_->setVisible(total >= 0);
    previous_->setVisible(total > 0);
    next_->setVisible(total > 0);
}

QString SearchBox::countText() const
{
    return count_->text();
}

void SearchBox::activate()
{
    edit_->setFocus(Qt::ShortcutFocusReason);
    edit_->selectAll();
}

bool SearchBox::eventFilter(QObject *watched, QEvent *event)
{
    if (watched != edit_ || (event->type() != QEvent::KeyPress && event->type() != QEvent::ShortcutOverride))
        return QWidget::eventFilter(watched, event);
    auto *key = static_cast<QKeyEvent *>(event);
    const bool shift = key->modifiers() & Qt::ShiftModifier;
    const bool press = event->type() == QEvent::KeyPress;
    switch (key->key()) {
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_F3:
        if (press)
            shift ? emit previous() : emit next();
        break;
    case Qt::Key_Down:
        if (press)
            emit next();
        break;
    case Qt::Key_Up:
        if (press)
            emit previous();
        break;
    case Qt::Key_Escape:
        if (press && !edit_->text().isEmpty())
            edit_->clear();
        else if (press)
            emit dismissed();
        break;
    default:
        return QWidget::eventFilter(watched, event);
    }
    event->accept();
    return true;
}

} // namespace fb
