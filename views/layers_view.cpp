#include "views/layers_view.h"

#include <QAction>
#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QSet>
#include <QSortFilterProxyModel>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <limits>
#include <numeric>

#include "views/panel_style.h"

namespace fb
{

// --- LayersModel ----------------------------------------------------------------------------------------------------

void LayersModel::setRows(const QVector<LayerRow> &rows)
{
    if (rows.size() == rows_.size()) { // same layers, new figures: selection and scroll stay
        rows_ = rows;
        if (!rows.isEmpty())
            emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
        return;
    }
    beginResetModel();
    rows_ = rows;
    endResetModel();
}

int LayersModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : int(rows_.size());
}

int LayersModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant LayersModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    const LayerRow &r = rows_[index.row()];
    const int column = index.column();
    const bool numeric = column >= Scale && column <= Max;
    if (role == Qt::TextAlignmentRole)
        return int((numeric ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    // Numbers sort as numbers, what is missing goes last.
    const auto number = [&](const auto &value, int digits) -> QVariant {
        if (role == Qt::UserRole)
            return value ? double(*value) : std::numeric_limits<double>::infinity();
        return value ? numberText(double(*value), digits) : QString();
    };
    if (role != Qt::DisplayRole && role != Qt::UserRole && role != Qt::ToolTipRole)
        return {};
    switch (column) {
    case Name:
        return r.name;
    case Op:
        return r.op;
    case DType:
        return r.dtype;
    case Observer:
        return r.observer;
    case Scale:
        return number(r.scale, 6);
    case ZeroPoint:
        return number(r.zeroPoint, 12);
    case Min:
        return number(r.min, 6);
    case Max:
        return number(r.max, 6);
    case Reason:
        return r.reason;
    }
    return {};
}

QVariant LayersModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return int((section >= Scale && section <= Max ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    if (role != Qt::DisplayRole)
        return {};
    const QString names[] = { tr("Name"), tr("Op"), tr("Dtype"), tr("Observer"), tr("Scale"), tr("Zero point"), tr("Min"),
        tr("Max"), tr("Why float") };
    return names[section];
}

// --- LayersView -----------------------------------------------------------------------------------------------------

LayersView::LayersView(QWidget *parent)
    : QWidget(parent)
    , model_(new LayersModel(this))
    , proxy_(new QSortFilterProxyModel(this))
    , filter_(new QLineEdit(this))
    , table_(new QTableView(this))
    , count_(new QLabel(this))
{
    filter_->setPlaceholderText(tr("Filter layers"));
    filter_->setAccessibleName(filter_->placeholderText());
    filter_->setClearButtonEnabled(true);
    filter_->setMaximumWidth(360);
    count_->setAccessibleName(tr("Layers shown"));
    QToolButton *copy = textButton(tr("Copy"), this), *save = textButton(tr("Save as CSV..."), this);
    copy->setToolTip(tr("Copy the selected rows, or all (Ctrl+C)"));

    proxy_->setSourceModel(model_);
    proxy_->setSortRole(Qt::UserRole);
    proxy_->setFilterKeyColumn(-1);
    proxy_->setFilterCaseSensitivity(Qt::CaseInsensitive);
    proxy_->setSortCaseSensitivity(Qt::CaseInsensitive);
    table_->setAccessibleName(tr("Layers"));
    table_->setModel(proxy_);
    table_->setSortingEnabled(true);
    table_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder); // graph order until a header is clicked
    table_->horizontalHeader()->setSortIndicatorClearable(true);
    table_->horizontalHeader()->setHighlightSections(false);
    table_->horizontalHeader()->setStretchLastSection(true);
    table_->verticalHeader()->hide();
    table_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 8);
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setAlternatingRowColors(true);
    table_->setShowGrid(false);
    table_->setWordWrap(false);
    table_->setTabKeyNavigation(false);
    table_->setFrameShape(QFrame::NoFrame);
    table_->installEventFilter(this);
    const int em = table_->fontMetrics().averageCharWidth();
    const int widths[] = { 24, 20, 11, 21, 13, 13, 12, 12 };
    for (int c = 0; c < LayersModel::Reason; ++c)
        table_->setColumnWidth(c, widths[c] * em);

    auto *top = new QHBoxLayout;
    top->setContentsMargins(6, 4, 6, 4);
    top->addWidget(filter_, 1);
    top->addSpacing(8);
    top->addWidget(count_);
    top->addStretch();
    top->addWidget(copy);
    top->addWidget(save);
    auto *column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addLayout(top);
    column->addWidget(table_, 1);

    connect(filter_, &QLineEdit::textChanged, this, [this](const QString &text) {
        quiet_ = true; // rows leaving are nobody's choice
        proxy_->setFilterFixedString(text.trimmed());
        quiet_ = false;
        updateCount();
    });
    connect(copy, &QToolButton::clicked, this, &LayersView::copySelection);
    connect(save, &QToolButton::clicked, this, [this] { emit saveRequested(csv()); });
    connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this, [this] {
        if (quiet_)
            return;
        QVector<NodeId> nodes;
        for (const QModelIndex &index : table_->selectionModel()->selectedRows())
            nodes.append(rowAt(index.row()).node);
        emit nodesSelected(nodes);
    });
    connect(
        table_, &QTableView::activated, this, [this](const QModelIndex &index) { emit nodeActivated(rowAt(index.row()).node); });
    updateCount();
}

const LayerRow &LayersView::rowAt(int row) const
{
    return model_->rows()[proxy_->mapToSource(proxy_->index(row, 0)).row()];
}

void LayersView::setRows(const QVector<LayerRow> &rows)
{
    if (rows == model_->rows())
        return;
    quiet_ = true;
    model_->setRows(rows);
    quiet_ = false;
    updateCount();
}

void LayersView::setSelected(const QVector<NodeId> &nodes)
{
    const QSet<NodeId> wanted(nodes.begin(), nodes.end());
    QItemSelection selection;
    int first = -1;
    for (int row = 0; row < proxy_->rowCount(); ++row) {
        if (!wanted.contains(rowAt(row).node))
            continue;
        selection.select(proxy_->index(row, 0), proxy_->index(row, LayersModel::ColumnCount - 1));
        first = first < 0 ? row : first;
    }
    quiet_ = true;
    table_->selectionModel()->select(selection, QItemSelectionModel::ClearAndSelect);
    if (first >= 0) {
        table_->selectionModel()->setCurrentIndex(proxy_->index(first, 0), QItemSelectionModel::NoUpdate);
        table_->scrollTo(proxy_->index(first, 0));
    }
    quiet_ = false;
}

QString LayersView::lines(const QList<int> &rows, const std::function<QString(QStringList)> &join) const
{
    QStringList cells;
    for (int c = 0; c < LayersModel::ColumnCount; ++c)
        cells += model_->headerData(c, Qt::Horizontal, Qt::DisplayRole).toString();
    QString out = join(cells);
    for (int row : rows) {
        for (int c = 0; c < LayersModel::ColumnCount; ++c)
            cells[c] = proxy_->index(row, c).data().toString();
        out += join(cells);
    }
    return out;
}

QString LayersView::csv() const
{
    QList<int> rows(proxy_->rowCount());
    std::iota(rows.begin(), rows.end(), 0);
    return lines(rows, [](QStringList cells) {
        for (QString &cell : cells)
            if (cell.contains('"') || cell.contains(',') || cell.contains('\n'))
                cell = '"' + cell.replace('"', "\"\"") + '"';
        return cells.join(',') + "\r\n";
    });
}

void LayersView::copySelection() const
{
    QList<int> rows;
    for (const QModelIndex &index : table_->selectionModel()->selectedRows())
        rows += index.row();
    if (rows.isEmpty()) {
        rows.resize(proxy_->rowCount());
        std::iota(rows.begin(), rows.end(), 0);
    }
    std::sort(rows.begin(), rows.end());
    QGuiApplication::clipboard()->setText(lines(rows, [](const QStringList &cells) { return cells.join('\t') + '\n'; }));
}

bool LayersView::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == table_ && (event->type() == QEvent::KeyPress || event->type() == QEvent::ShortcutOverride)
        && static_cast<QKeyEvent *>(event)->matches(QKeySequence::Copy)) {
        if (event->type() == QEvent::KeyPress)
            copySelection();
        event->accept();
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

void LayersView::updateCount()
{
    const int shown = proxy_->rowCount(), all = model_->rowCount();
    count_->setText(shown == all ? tr("Layers: %1").arg(all) : tr("Layers: %1 of %2").arg(shown).arg(all));
}

} // namespace fb
