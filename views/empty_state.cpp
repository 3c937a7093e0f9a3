#include "views/empty_state.h"

#include <QFileInfo>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QListWidget>
#include <QPainter>
#include <QPushButton>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include "views/panel_style.h"
#include "views/theme.h"

namespace fb
{

using R = Theme::Role;

namespace
{
// A card: what it does, and one quieter line on when to use it.
class Choice : public QPushButton
{
public:
    Choice(const QString &title, const QString &text, QWidget *parent)
        : QPushButton(title, parent)
        , text_(text)
    {
        setAccessibleName(title);
        setAccessibleDescription(text);
        setAttribute(Qt::WA_Hover);
        setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
        setCursor(Qt::PointingHandCursor);
    }

    QSize sizeHint() const override
    {
        return { 420, QFontMetrics(Theme::font(15)).height() + QFontMetrics(Theme::font(kTextPixels)).height() + 26 };
    }

protected:
    void paintEvent(QPaintEvent *) override
    {
        QPainter p(this);
        p.setRenderHint(QPainter::Antialiasing);
        const QRectF card = QRectF(rect()).adjusted(1.5, 1.5, -1.5, -1.5);
        const bool lit = hasFocus() || underMouse();
        p.setPen(QPen(Theme::color(lit ? R::Accent : R::Border), hasFocus() ? 2 : 1));
        p.setBrush(Theme::color(isDown() ? R::AccentSoft : underMouse() ? R::Hover : R::Surface));
        p.drawRoundedRect(card, 7, 7);
        const QRectF inside = card.adjusted(16, 10, -16, -10);
        p.setFont(Theme::font(15, QFont::DemiBold));
        p.setPen(Theme::color(R::Text));
        p.drawText(inside, Qt::AlignTop | Qt::AlignLeft, text());
        p.setFont(Theme::font(kTextPixels));
        p.setPen(Theme::color(R::TextMuted));
        p.drawText(inside, Qt::AlignBottom | Qt::AlignLeft, text_);
    }

private:
    QString text_;
};

// A recent file: name, and its folder after it, quieter.
class RecentDelegate : public QStyledItemDelegate
{
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QSize sizeHint(const QStyleOptionViewItem &, const QModelIndex &) const override
    {
        return { 100, QFontMetrics(Theme::font(kTextPixels)).height() + 12 };
    }

    void paint(QPainter *p, const QStyleOptionViewItem &option, const QModelIndex &index) const override
    {
        const QFileInfo file(index.data(Qt::UserRole).toString());
        p->save();
        p->setRenderHint(QPainter::Antialiasing);
        const QRectF row = QRectF(option.rect).adjusted(1.5, 1.5, -1.5, -1.5);
        const bool focus = (option.state & QStyle::State_HasFocus) && (option.state & QStyle::State_Selected);
        if (focus || (option.state & QStyle::State_MouseOver)) {
            p->setPen(focus ? QPen(Theme::color(R::Accent), 1.5) : QPen(Qt::NoPen));
            p->setBrush(Theme::color(focus ? R::AccentSoft : R::Hover));
            p->drawRoundedRect(row, 4, 4);
        }
        const QFont font = Theme::font(kTextPixels);
        const QFontMetricsF fm(font);
        p->setFont(font);
        QRectF text = row.adjusted(8, 0, -8, 0);
        const QString name = fm.elidedText(file.fileName(), Qt::ElideMiddle, text.width());
        p->setPen(Theme::color(R::Link));
        p->drawText(text, Qt::AlignVCenter | Qt::AlignLeft, name);
        text.setLeft(text.left() + fm.horizontalAdvance(name) + 12);
        p->setPen(Theme::color(R::TextMuted));
        p->drawText(text, Qt::AlignVCenter | Qt::AlignLeft, fm.elidedText(file.path(), Qt::ElideMiddle, text.width()));
        p->restore();
    }
};
} // namespace

EmptyState::EmptyState(QWidget *parent)
    : QWidget(parent)
    , message_(new QLabel(this))
    , recentTitle_(new QLabel(tr("Recent files"), this))
    , recent_(new QListWidget(this))
    , clear_(new QPushButton(tr("Clear list"), this))
{
    setAccessibleName(tr("Start"));
    auto *column = new QWidget(this);
    column->setMaximumWidth(560);
    auto *rows = new QVBoxLayout(column);
    rows->setSpacing(8);
    auto *title = new QLabel(QStringLiteral("Fuseboard"), column);
    title->setFont(Theme::font(26, QFont::DemiBold));
    auto *subtitle = new QLabel(tr("Take a trained PyTorch model to int8, and see every step."), column);
    subtitle->setForegroundRole(QPalette::PlaceholderText);
    subtitle->setFont(Theme::font(14));
    rows->addWidget(title);
    rows->addWidget(subtitle);
    rows->addSpacing(10);

    message_->setWordWrap(true);
    message_->setObjectName("message");
    message_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    message_->hide();
    rows->addWidget(message_);

    QPushButton *open
        = choice(tr("Open a model..."), tr(".fxt traces and .pt2 exported programs; or drop a file anywhere"), "open");
    QPushButton *trace = choice(tr("Trace a Python model..."), tr("Runs torch.fx in your own Python, when you say so"), "trace");
    QPushButton *demo
        = choice(tr("Open the demo"), tr("A small digits classifier with its data: the whole job in five minutes"), "demo");
    for (QPushButton *button : { open, trace, demo })
        rows->addWidget(button);
    connect(open, &QPushButton::clicked, this, &EmptyState::openRequested);
    connect(trace, &QPushButton::clicked, this, &EmptyState::traceRequested);
    connect(demo, &QPushButton::clicked, this, &EmptyState::demoRequested);

    auto *head = new QHBoxLayout;
    recentTitle_->setFont(Theme::font(14, QFont::DemiBold));
    clear_->setFlat(true);
    head->addWidget(recentTitle_);
    head->addStretch();
    head->addWidget(clear_);
    rows->addSpacing(12);
    rows->addLayout(head);
    recent_->setAccessibleName(tr("Recent files"));
    recent_->setItemDelegate(new RecentDelegate(recent_));
    recent_->setFrameShape(QFrame::NoFrame);
    recent_->setMouseTracking(true);
    recent_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    recent_->viewport()->setAutoFillBackground(false);
    rows->addWidget(recent_);

    auto *page = new QVBoxLayout(this);
    page->addStretch(2);
    auto *middle = new QHBoxLayout;
    middle->addStretch();
    middle->addWidget(column, 100);
    middle->addStretch();
    page->addLayout(middle);
    page->addStretch(3);
    setRecent({});

    const auto chosen = [this](QListWidgetItem *item) { emit recentRequested(item->data(Qt::UserRole).toString()); };
    connect(recent_, &QListWidget::itemClicked, this, chosen);
    connect(recent_, &QListWidget::itemActivated, this, [this, chosen](QListWidgetItem *item) {
        if (!QGuiApplication::mouseButtons()) // Enter; a click has said so already
            chosen(item);
    });
    connect(clear_, &QPushButton::clicked, this, &EmptyState::recentCleared);
}

QPushButton *EmptyState::choice(const QString &title, const QString &text, const QString &name)
{
    auto *button = new Choice(title, text, this);
    button->setObjectName(name);
    return button;
}

void EmptyState::setRecent(const QStringList &paths)
{
    recent_->clear();
    for (const QString &path : paths) {
        auto *item = new QListWidgetItem(QFileInfo(path).fileName(), recent_);
        item->setData(Qt::UserRole, path);
        item->setToolTip(path);
    }
    if (!paths.isEmpty()) {
        recent_->setCurrentRow(0);
        recent_->setFixedHeight(int(std::min<qsizetype>(paths.size(), 8)) * recent_->sizeHintForRow(0) + 4);
    }
    for (QWidget *w : std::initializer_list<QWidget *>{ recentTitle_, recent_, clear_ })
        w->setVisible(!paths.isEmpty());
}

void EmptyState::setDropActive(bool active)
{
    dropActive_ = active;
    update();
}

void EmptyState::setMessage(const QString &sentence)
{
    message_->setText(sentence);
    message_->setVisible(!sentence.isEmpty());
    QPalette p = message_->palette();
    p.setColor(QPalette::WindowText, Theme::color(R::Error));
    message_->setPalette(p);
}

void EmptyState::paintEvent(QPaintEvent *)
{
    QPainter p(this);
    p.fillRect(rect(), Theme::color(R::Ground));
    if (!dropActive_)
        return;
    p.setRenderHint(QPainter::Antialiasing);
    p.setPen(QPen(Theme::color(R::Accent), 2, Qt::DashLine));
    p.setBrush(Theme::color(R::AccentSoft));
    p.drawRoundedRect(QRectF(rect()).adjusted(10, 10, -10, -10), 10, 10);
}

} // namespace fb
