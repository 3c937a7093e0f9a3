#include "views/module_tree.h"

#include <QAbstractItemModel>
#include <QHeaderView>
#include <QLineEdit>
#include <QMenu>
#include <QSortFilterProxyModel>
#include <QTreeView>
#include <QVBoxLayout>
#include <unordered_map>
#include <unordered_set>

#include "views/panel_style.h"
#include "views/theme.h"

namespace fb
{

namespace
{
QString qstr(std::string_view s)
{
    return QString::fromUtf8(s.data(), qsizetype(s.size()));
}
} // namespace

// Rows in module order; a parent stands before its children, so one pass builds it all.
class ModuleTreeModel : public QAbstractItemModel
{
public:
    enum Column { NameColumn, ClassColumn, NodesColumn, ParametersColumn, ColumnCount };
    enum { PathRole = Qt::UserRole };

    struct Row {
        QString path, name, className;
        ModuleKind kind = ModuleKind::Container;
        int parent = -1, place = 0; // place among its siblings
        std::vector<int> children;
        int nodes = 0;
        qint64 parameters = 0;
        bool leafMark = false;
    };

    using QAbstractItemModel::QAbstractItemModel;

    QSet<QString> keptFloat;

    void build(const GraphModule *gm)
    {
        beginResetModel();
        rows_.clear();
        byPath_.clear();
        if (gm)
            fill(*gm);
        endResetModel();
    }

    const Row *row(const QModelIndex &index) const { return index.isValid() ? &rows_[size_t(index.internalId())] : nullptr; }

    QModelIndex find(const QString &path) const
    {
        const auto it = byPath_.find(path.toStdString());
        return it == byPath_.end() ? QModelIndex() : createIndex(rows_[size_t(it->second)].place, 0, quintptr(it->second));
    }

    void repaint()
    {
        if (!rows_.empty())
            emit dataChanged(index(0, 0, {}), index(0, ColumnCount - 1, {}));
    }

    QModelIndex index(int row, int column, const QModelIndex &parent) const override
    {
        if (row < 0 || column < 0 || column >= ColumnCount)
            return {};
        if (!parent.isValid())
            return row == 0 && !rows_.empty() ? createIndex(0, column, quintptr(0)) : QModelIndex();
        const auto &children = rows_[size_t(parent.internalId())].children;
        return size_t(row) < children.size() ? createIndex(row, column, quintptr(children[size_t(row)])) : QModelIndex();
    }

    QModelIndex parent(const QModelIndex &child) const override
    {
        const Row *r = row(child);
        return r && r->parent >= 0 ? createIndex(rows_[size_t(r->parent)].place, 0, quintptr(r->parent)) : QModelIndex();
    }

    int rowCount(const QModelIndex &parent) const override
    {
        if (!parent.isValid())
            return rows_.empty() ? 0 : 1;
        return parent.column() == 0 ? int(row(parent)->children.size()) : 0;
    }

    int columnCount(const QModelIndex &) const override { return ColumnCount; }

    QVariant headerData(int section, Qt::Orientation orientation, int role) const override
    {
        if (orientation != Qt::Horizontal)
            return {};
        if (role == Qt::TextAlignmentRole)
            return int((section >= NodesColumn ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
        if (role != Qt::DisplayRole)
            return {};
        const QString names[]
            = { ModuleTree::tr("Module"), ModuleTree::tr("Class"), ModuleTree::tr("Nodes"), ModuleTree::tr("Parameters") };
        return names[section];
    }

    QVariant data(const QModelIndex &index, int role) const override
    {
        const Row *r = row(index);
        if (!r)
            return {};
        const bool kept = keptFloat.contains(r->path);
        switch (role) {
        case Qt::SizeHintRole:
            return QSize(0, QFontMetrics(Theme::font(kTextPixels)).height() + 6);
        case PathRole:
            return r->path;
        case Qt::DisplayRole:
            switch (index.column()) {
            case NameColumn:
                return r->name + (r->leafMark ? ModuleTree::tr("  [leaf]") : kept ? ModuleTree::tr("  [float]") : QString());
            case ClassColumn:
                return r->className;
            case NodesColumn:
                return r->nodes;
            case ParametersColumn:
                return r->parameters ? countText(r->parameters) : QString();
            }
            break;
        case Qt::ToolTipRole:
            return (r->path.isEmpty() ? ModuleTree::tr("the whole model") : r->path)
                + ModuleTree::tr("\n%1, %2 nodes, %3 parameters").arg(r->className).arg(r->nodes).arg(countText(r->parameters))
                + (r->leafMark ? ModuleTree::tr("\nMarked as leaf: its inside is kept, in float.") : QString())
                + (kept ? ModuleTree::tr("\nKept in float by a rule.") : QString());
        case Qt::TextAlignmentRole:
            return int((index.column() >= NodesColumn ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
        case Qt::ForegroundRole:
            if (index.column() != NameColumn)
                return Theme::color(Theme::Role::TextMuted);
            break;
        }
        return {};
    }

private:
    void fill(const GraphModule &gm)
    {
        auto add = [&](const std::string &path) {
            if (byPath_.contains(path))
                return;
            const size_t dot = path.rfind('.');
            const std::string up = dot == std::string::npos ? std::string() : path.substr(0, dot);
            Row r;
            r.path = qstr(path);
            r.name = path.empty() ? qstr(gm.rootClass) : qstr(path.substr(dot == std::string::npos ? 0 : dot + 1));
            if (!path.empty()) {
                const auto parent = byPath_.find(up);
                r.parent = parent == byPath_.end() ? 0 : parent->second;
                auto &siblings = rows_[size_t(r.parent)].children;
                r.place = int(siblings.size());
                siblings.push_back(int(rows_.size()));
            }
            byPath_.emplace(path, int(rows_.size()));
            rows_.push_back(std::move(r));
        };
        add("");
        for (const auto &[path, info] : gm.modules) {
            for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
                add(path.substr(0, dot));
            add(path);
            Row &r = rows_[size_t(byPath_[path])];
            r.className = qstr(info->shortClass());
            r.kind = info->kind;
            r.leafMark = info->kind == ModuleKind::Graph && info->keepFloat;
        }
        rows_[0].className = qstr(gm.rootClass);

        // A node counts for the module it was made in, the module it calls, and all above these.
        for (NodeId id : gm.graph.order()) {
            const Node &n = gm.graph[id];
            const std::string &inside = n.op == Opcode::CallModule && byPath_.contains(n.target) ? n.target : n.modulePath();
            for (int at = place(inside); at >= 0; at = rows_[size_t(at)].parent)
                ++rows_[size_t(at)].nodes;
        }
        std::unordered_set<const TensorData *> seen;
        for (const auto &[name, entry] : gm.tensors) {
            if (!entry->parameter || !entry->tensor || !seen.insert(entry->tensor.get()).second)
                continue;
            const size_t dot = name.rfind('.');
            for (int at = place(dot == std::string::npos ? std::string() : name.substr(0, dot)); at >= 0;
                 at = rows_[size_t(at)].parent)
                rows_[size_t(at)].parameters += entry->tensor->numel();
        }
    }

    // The row of the nearest module that exists at or above `path`.
    int place(std::string path) const
    {
        for (;;) {
            if (auto it = byPath_.find(path); it != byPath_.end())
                return it->second;
            const size_t dot = path.rfind('.');
            path.resize(dot == std::string::npos ? 0 : dot);
        }
    }

    std::vector<Row> rows_;
    std::unordered_map<std::string, int> byPath_;
};

// Matches path or class; the parents of what matches stay.
class ModuleFilter : public QSortFilterProxyModel
{
public:
    using QSortFilterProxyModel::QSortFilterProxyModel;

    void setNeedle(const QString &text)
    {
        needle_ = text.trimmed();
        invalidateFilter();
    }

protected:
    bool filterAcceptsRow(int row, const QModelIndex &parent) const override
    {
        if (needle_.isEmpty())
            return true;
        const auto *model = static_cast<const ModuleTreeModel *>(sourceModel());
        const auto *r = model->row(model->index(row, 0, parent));
        return r->path.contains(needle_, Qt::CaseInsensitive) || r->className.contains(needle_, Qt::CaseInsensitive);
    }

private:
    QString needle_;
};

ModuleTree::ModuleTree(QWidget *parent)
    : QWidget(parent)
    , filter_(new QLineEdit(this))
    , view_(new QTreeView(this))
    , model_(new ModuleTreeModel(this))
    , proxy_(new ModuleFilter(this))
{
    filter_->setPlaceholderText(tr("Filter modules"));
    filter_->setAccessibleName(filter_->placeholderText());
    filter_->setClearButtonEnabled(true);
    proxy_->setRecursiveFilteringEnabled(true);
    proxy_->setSourceModel(model_);
    view_->setAccessibleName(tr("Modules"));
    view_->setModel(proxy_);
    view_->setUniformRowHeights(true);
    view_->setFrameShape(QFrame::NoFrame);
    view_->setContextMenuPolicy(Qt::CustomContextMenu);
    view_->setExpandsOnDoubleClick(false);
    view_->header()->setStretchLastSection(false);
    view_->header()->setSectionResizeMode(ModuleTreeModel::NameColumn, QHeaderView::Stretch);
    view_->header()->setMinimumSectionSize(40);
    for (int column : { ModuleTreeModel::ClassColumn, ModuleTreeModel::NodesColumn, ModuleTreeModel::ParametersColumn })
        view_->header()->setSectionResizeMode(column, QHeaderView::Interactive);

    auto *column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    auto *top = new QVBoxLayout;
    top->setContentsMargins(6, 4, 6, 4);
    top->addWidget(filter_);
    column->addLayout(top);
    column->addWidget(view_, 1);

    connect(filter_, &QLineEdit::textChanged, this, &ModuleTree::filter);
    connect(view_, &QWidget::customContextMenuRequested, this, &ModuleTree::showMenu);
    connect(view_->selectionModel(), &QItemSelectionModel::currentChanged, this, [this](const QModelIndex &index) {
        if (!quiet_ && index.isValid())
            emit moduleSelected(index.data(ModuleTreeModel::PathRole).toString());
    });
    const auto activate
        = [this](const QModelIndex &index) { emit moduleActivated(index.data(ModuleTreeModel::PathRole).toString()); };
    connect(view_, &QTreeView::activated, this, activate);
    connect(view_, &QTreeView::expanded, this,
        [this](const QModelIndex &index) { unfolded_.insert(index.data(ModuleTreeModel::PathRole).toString()); });
    connect(view_, &QTreeView::collapsed, this,
        [this](const QModelIndex &index) { unfolded_.remove(index.data(ModuleTreeModel::PathRole).toString()); });
}

void ModuleTree::setModule(std::shared_ptr<const GraphModule> gm)
{
    const QString kept = current();
    quiet_ = true;
    model_->build(gm.get());
    restoreUnfolded();
    if (!kept.isEmpty())
        setCurrent(kept);
    const QFontMetrics fm(view_->font());
    view_->setColumnWidth(ModuleTreeModel::ClassColumn, fm.averageCharWidth() * 18);
    view_->setColumnWidth(ModuleTreeModel::NodesColumn, fm.horizontalAdvance(tr("Nodes")) + 22);
    view_->setColumnWidth(ModuleTreeModel::ParametersColumn, fm.horizontalAdvance(tr("Parameters")) + 22);
    quiet_ = false;
}

void ModuleTree::restoreUnfolded()
{
    const QSignalBlocker block(view_);
    view_->expand(proxy_->index(0, 0));
    for (const QString &path : unfolded_)
        view_->expand(proxy_->mapFromSource(model_->find(path)));
}

// In a narrow dock the names come first; the figures are in the tool tip as well.
void ModuleTree::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    view_->setColumnHidden(ModuleTreeModel::ParametersColumn, width() < 400);
    view_->setColumnHidden(ModuleTreeModel::NodesColumn, width() < 320);
    view_->setColumnHidden(ModuleTreeModel::ClassColumn, width() < 220);
}

void ModuleTree::setKeptFloat(const QSet<QString> &paths)
{
    model_->keptFloat = paths;
    model_->repaint();
    view_->viewport()->update();
}

void ModuleTree::setCurrent(const QString &path)
{
    const bool before = std::exchange(quiet_, true);
    const QModelIndex index = proxy_->mapFromSource(model_->find(path));
    view_->setCurrentIndex(index);
    if (index.isValid())
        view_->scrollTo(index);
    quiet_ = before;
}

QString ModuleTree::current() const
{
    return view_->currentIndex().data(ModuleTreeModel::PathRole).toString();
}

QString ModuleTree::text() const
{
    QString out;
    const auto walk = [&](auto &&self, const QModelIndex &parent, int depth) -> void {
        for (int i = 0; i < proxy_->rowCount(parent); ++i) {
            QStringList cells;
            for (int c = 0; c < proxy_->columnCount(parent); ++c)
                cells += proxy_->index(i, c, parent).data().toString();
            out += QString(2 * depth, ' ') + cells.join(" | ") + '\n';
            const QModelIndex at = proxy_->index(i, 0, parent);
            if (view_->isExpanded(at))
                self(self, at, depth + 1);
        }
    };
    walk(walk, {}, 0);
    return out;
}

void ModuleTree::filter(const QString &text)
{
    const QString kept = current();
    quiet_ = true;
    {
        const QSignalBlocker block(view_); // what the filter unfolds is not what the user unfolded
        proxy_->setNeedle(text);
        if (text.isEmpty())
            view_->collapseAll();
        else
            view_->expandAll();
    }
    if (text.isEmpty())
        restoreUnfolded();
    if (!kept.isEmpty())
        setCurrent(kept);
    quiet_ = false;
}

void ModuleTree::showMenu(const QPoint &at)
{
    QModelIndex index = view_->indexAt(at);
    if (!index.isValid())
        index = view_->currentIndex();
    const auto *row = model_->row(proxy_->mapToSource(index));
    if (!row || row->path.isEmpty())
        return;
    const QString path = row->path;
    auto *menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    menu->addAction(tr("Show on the canvas"), this, [this, path] { emit moduleActivated(path); });
    menu->addSeparator();
    if (row->leafMark)
        menu->addAction(tr("Unmark leaf"), this, [this, path] { emit leafRequested(path, false); });
    else if (row->kind == ModuleKind::Container && row->nodes > 0)
        menu->addAction(tr("Mark as leaf"), this, [this, path] { emit leafRequested(path, true); });
    QAction *keep = menu->addAction(tr("Keep in float"), this, [this, path](bool on) { emit keepFloatRequested(path, on); });
    keep->setCheckable(true);
    keep->setChecked(model_->keptFloat.contains(path));
    keep->setVisible(!row->leafMark);
    menu->popup(view_->viewport()->mapToGlobal(at));
}

} // namespace fb
