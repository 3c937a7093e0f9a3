#include "views/problems_view.h"

#include <QEvent>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QTableWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "views/panel_style.h"

namespace fb
{

namespace
{
enum Column { SeverityColumn, WhereColumn, SentenceColumn, FixColumn, ColumnCount };

QString severityWord(ProblemRow::Severity severity)
{
    return severity == ProblemRow::Error  ? ProblemsView::tr("error")
        : severity == ProblemRow::Warning ? ProblemsView::tr("warning")
                                          : ProblemsView::tr("note");
}

Mark severityMark(ProblemRow::Severity severity)
{
    return severity == ProblemRow::Error ? Mark::Error : severity == ProblemRow::Warning ? Mark::Warning : Mark::Note;
}
} // namespace

ProblemsView::ProblemsView(QWidget *parent)
    : QWidget(parent)
    , table_(new QTableWidget(0, ColumnCount, this))
    , empty_(emptyLabel(tr("No problems."), this))
{
    table_->setAccessibleName(tr("Problems"));
    table_->setHorizontalHeaderLabels({ tr("Severity"), tr("Where"), tr("Problem"), tr("Fix") });
    for (int c : { SeverityColumn, WhereColumn, SentenceColumn, FixColumn })
        table_->horizontalHeaderItem(c)->setTextAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    table_->verticalHeader()->hide();
    table_->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    table_->horizontalHeader()->setSectionResizeMode(SentenceColumn, QHeaderView::Stretch);
    table_->horizontalHeader()->setHighlightSections(false);
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table_->setFrameShape(QFrame::NoFrame);
    table_->setShowGrid(false);
    table_->setTabKeyNavigation(false);
    table_->setWordWrap(true);
    table_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    auto *column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(table_);
    column->addWidget(empty_, 1);
    setFocusProxy(table_);
    fill();

    const auto activate = [this](int row) {
        const ProblemRow p = problems_[row];
        emit problemActivated(p.id);
        if (p.node)
            emit nodeActivated(p.node);
    };
    connect(table_, &QTableWidget::cellClicked, this, activate);
    connect(table_, &QTableWidget::cellActivated, this, activate);
}

void ProblemsView::setProblems(const QVector<ProblemRow> &problems)
{
    QVector<ProblemRow> sorted = problems;
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) { return a.severity > b.severity; });
    if (sorted == problems_)
        return;
    const bool counted = sorted.size() != problems_.size();
    problems_ = sorted;
    fill();
    if (counted)
        emit countChanged(count());
}

void ProblemsView::fill()
{
    table_->setRowCount(0); // drops the buttons too
    table_->setRowCount(count());
    for (int row = 0; row < count(); ++row) {
        const ProblemRow &p = problems_[row];
        const QString cells[]
            = { severityWord(p.severity), p.where, p.detail.isEmpty() ? p.sentence : p.sentence + '\n' + p.detail };
        for (int c = 0; c < FixColumn; ++c) {
            auto *item = new QTableWidgetItem(cells[c]);
            item->setTextAlignment(Qt::AlignLeft | Qt::AlignVCenter);
            table_->setItem(row, c, item);
        }
        table_->item(row, SeverityColumn)->setIcon(markIcon(severityMark(p.severity)));
        table_->item(row, SentenceColumn)->setToolTip(cells[SentenceColumn]);
        if (p.fix.isEmpty())
            continue;
        auto *button = new QPushButton(p.fix, table_);
        button->setAccessibleName(tr("%1: %2").arg(p.fix, p.where));
        button->setObjectName(QStringLiteral("fix%1").arg(p.id));
        connect(button, &QPushButton::clicked, this, [this, id = p.id] { emit fixRequested(id); });
        table_->setCellWidget(row, FixColumn, button);
    }
    table_->setVisible(count() > 0);
    empty_->setVisible(count() == 0);
}

QString ProblemsView::text() const
{
    QString out;
    for (const ProblemRow &p : problems_) {
        QStringList cells{ severityWord(p.severity), p.where, p.sentence };
        if (!p.fix.isEmpty())
            cells += '[' + p.fix + ']';
        out += cells.join(" | ") + '\n';
    }
    return out;
}

void ProblemsView::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        for (int row = 0; row < count(); ++row)
            table_->item(row, SeverityColumn)->setIcon(markIcon(severityMark(problems_[row].severity)));
}

} // namespace fb
