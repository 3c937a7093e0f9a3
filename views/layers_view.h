// Fuseboard: every layer in a table that sorts, filters, copies and saves. GPL-3.0-or-later.
#pragma once

#include <QAbstractTableModel>
#include <QVector>
#include <QWidget>
#include <functional>
#include <optional>

#include "model/ir/arg.h"

class QLabel;
class QLineEdit;
class QSortFilterProxyModel;
class QTableView;

namespace fb
{

struct LayerRow {
    NodeId node;
    QString name, op, dtype, observer;
    std::optional<double> scale, min, max;
    std::optional<qint64> zeroPoint;
    QString reason; // why it stays float
    bool operator==(const LayerRow &) const = default;
};

class LayersModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Name, Op, DType, Observer, Scale, ZeroPoint, Min, Max, Reason, ColumnCount };

    using QAbstractTableModel::QAbstractTableModel;
    void setRows(const QVector<LayerRow> &rows);
    const QVector<LayerRow> &rows() const { return rows_; }

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    QVector<LayerRow> rows_;
};

class LayersView : public QWidget
{
    Q_OBJECT
public:
    explicit LayersView(QWidget *parent = nullptr);

    void setRows(const QVector<LayerRow> &rows);
    void setSelected(const QVector<NodeId> &nodes); // emits nothing
    QString csv() const; // all rows in sight, in their order, RFC 4180
    void copySelection() const; // Ctrl+C: tab separated, with a header line
    QTableView *table() const { return table_; }

signals:
    void nodesSelected(const QVector<fb::NodeId> &nodes);
    void nodeActivated(fb::NodeId node); // Enter or double click
    void saveRequested(const QString &csv); // the window asks where and writes

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void updateCount();
    const LayerRow &rowAt(int row) const; // as shown
    QString lines(const QList<int> &rows, const std::function<QString(QStringList)> &join) const;

    LayersModel *model_;
    QSortFilterProxyModel *proxy_;
    QLineEdit *filter_;
    QTableView *table_;
    QLabel *count_;
    bool quiet_ = false;
};

} // namespace fb
