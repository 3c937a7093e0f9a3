#include "views/rules_view.h"

#include <QComboBox>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QTableWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/panel_style.h"
#include "views/theme.h"

namespace fb
{

namespace
{
enum Column { KindColumn, PatternColumn, EffectColumn, DecidesColumn, ColumnCount };

// The default may well have nothing left to decide.
bool idles(const RuleRow &r)
{
    return r.decides == 0 && !r.pattern.isEmpty();
}

} // namespace

RulesView::RulesView(QWidget *parent)
    : QWidget(parent)
    , backend_(new QComboBox(this))
    , table_(new QTableWidget(0, ColumnCount, this))
    , remove_(textButton(tr("Remove rule"), this))
    , note_(new QLabel(this))
{
    auto *label = new QLabel(tr("&Backend"), this);
    label->setBuddy(backend_);
    backend_->setAccessibleName(tr("Quantization backend"));
    backend_->setToolTip(tr("Decides which operators run in int8, and how weights are quantized"));
    remove_->setToolTip(tr("Remove the selected rule (Delete)"));
    note_->setWordWrap(true);
    note_->setFont(Theme::font(kSmallPixels));
    note_->setForegroundRole(QPalette::PlaceholderText);

    table_->setAccessibleName(tr("Quantization rules, the first that fits wins"));
    table_->setHorizontalHeaderLabels({ tr("For"), tr("Which"), tr("Rule"), tr("Nodes") });
    for (int c = 0; c < ColumnCount; ++c)
        table_->horizontalHeaderItem(c)->setTextAlignment(
            (c == DecidesColumn ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    table_->verticalHeader()->hide();
    table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 8);
    table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    table_->horizontalHeader()->setSectionResizeMode(PatternColumn, QHeaderView::Stretch);
    table_->horizontalHeader()->setHighlightSections(false);
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table_->setShowGrid(false);
    table_->setWordWrap(false);
    table_->setTextElideMode(Qt::ElideMiddle);
    table_->setTabKeyNavigation(false);
    table_->setFrameShape(QFrame::NoFrame);
    table_->installEventFilter(this);

    auto *top = new QHBoxLayout;
    top->setContentsMargins(8, 6, 8, 4);
    top->addWidget(label);
    top->addSpacing(4);
    top->addWidget(backend_);
    top->addStretch();
    top->addWidget(remove_);
    auto *column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addLayout(top);
    column->addWidget(table_, 1);
    note_->setContentsMargins(8, 4, 8, 6);
    column->addWidget(note_);

    connect(backend_, &QComboBox::activated, this, [this] { emit backendRequested(backend_->currentText()); });
    connect(remove_, &QToolButton::clicked, this, &RulesView::removeCurrent);
    connect(table_, &QTableWidget::itemSelectionChanged, this, &RulesView::selectionChanged);
    connect(table_, &QTableWidget::cellActivated, this, [this](int row) { emit ruleActivated(rules_[row].id); });
    setRules({});
}

void RulesView::setBackends(const QStringList &names, const QString &current)
{
    backend_->clear();
    backend_->addItems(names);
    backend_->setCurrentText(current);
}

void RulesView::setRules(const QVector<RuleRow> &rules)
{
    const QString kept
        = table_->currentRow() >= 0 && table_->currentRow() < rules_.size() ? rules_[table_->currentRow()].id : QString();
    rules_ = rules;
    table_->clearSelection();
    table_->setRowCount(int(rules.size()));
    int idle = 0;
    for (int row = 0; row < rules.size(); ++row) {
        const RuleRow &r = rules[row];
        const QString cells[] = { r.kind, r.pattern, r.effect, idles(r) ? tr("decides nothing") : countText(r.decides) };
        for (int c = 0; c < ColumnCount; ++c) {
            auto *item = new QTableWidgetItem(cells[c]);
            item->setTextAlignment((c == DecidesColumn ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
            item->setToolTip(r.pattern.isEmpty() ? r.effect : r.pattern + ": " + r.effect);
            table_->setItem(row, c, item);
        }
        if (idles(r)) {
            ++idle;
            table_->item(row, DecidesColumn)->setIcon(markIcon(Mark::Warning));
            for (int c = 0; c < ColumnCount; ++c)
                table_->item(row, c)->setToolTip(
                    tr("No node is decided by this rule: nothing fits it, or rules above it decide first."));
        }
        if (!kept.isEmpty() && r.id == kept)
            table_->selectRow(row);
    }
    note_->setText(idle ? tr("Rules that decide nothing: %1. Nothing fits them, or a rule above decides first.").arg(idle)
                        : tr("The first rule that fits a node decides. \"Keep in float\" on a node or module makes a rule."));
    selectionChanged();
}

QString RulesView::text() const
{
    QString out;
    for (const RuleRow &r : rules_)
        out += QStringList{ r.kind, r.pattern, r.effect, idles(r) ? tr("decides nothing") : QString::number(r.decides) }.join(
                   " | ")
            + '\n';
    return out;
}

int RulesView::currentRule() const
{
    return table_->selectionModel()->hasSelection() && table_->currentRow() < rules_.size() ? table_->currentRow() : -1;
}

void RulesView::selectionChanged()
{
    const int row = currentRule();
    remove_->setEnabled(row >= 0 && rules_[row].removable);
}

void RulesView::removeCurrent()
{
    if (const int row = currentRule(); row >= 0 && rules_[row].removable)
        emit removeRequested(rules_[row].id);
}

bool RulesView::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == table_ && (event->type() == QEvent::KeyPress || event->type() == QEvent::ShortcutOverride)
        && static_cast<QKeyEvent *>(event)->key() == Qt::Key_Delete) { // ours before the canvas's Delete
        if (event->type() == QEvent::KeyPress)
            removeCurrent();
        event->accept();
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

} // namespace fb
