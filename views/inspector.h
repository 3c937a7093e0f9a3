// Fuseboard: everything about the selected node. GPL-3.0-or-later.
//
// Structure comes from the snapshot. What costs time is given in when it is known: the inspector asks once for each node
// it shows (weightStatsWanted), the application answers with setWeightStats(). Late answers for another node are ignored.
#pragma once

#include <QScrollArea>
#include <QVector>
#include <memory>
#include <optional>

#include "model/ir/module.h"

class QLabel;
class QVBoxLayout;

namespace fb
{

struct WeightStats {
    QString name; // "weight"
    QString shape, dtype; // "64x3x7x7", "float32"
    qint64 count = 0;
    double min = 0, max = 0, mean = 0, deviation = 0;
    qint64 zeros = 0, nan = 0, inf = 0;
};

struct QuantFacts {
    QString state; // "int8", "float by choice", "float (unsupported)"
    QString reason; // one sentence, where it stays float
    QString rule; // which rule said so, or empty
    QString observer;
    std::optional<double> scale, min, max;
    std::optional<qint64> zeroPoint;
    int channels = 0; // weight scales, where per channel
    bool keepFloat = false; // the check box
    bool canKeepFloat = true; // false hides it (inputs, outputs, what is never quantized)
    bool operator==(const QuantFacts &) const = default;
};

class Inspector : public QScrollArea
{
    Q_OBJECT
public:
    explicit Inspector(QWidget *parent = nullptr);

    void setModule(std::shared_ptr<const GraphModule> gm);
    void setSelected(const QVector<NodeId> &nodes);
    void setWeightStats(NodeId node, const QVector<WeightStats> &stats);
    void setQuantization(NodeId node, const QuantFacts &facts);
    QString text() const; // every line, "name: value", for tests and Copy

signals:
    void weightStatsWanted(fb::NodeId node);
    void quantizationWanted(fb::NodeId node);
    void nodeActivated(fb::NodeId node);
    void moduleActivated(const QString &path);
    void sourceActivated(const QString &file, int line);
    void keepFloatRequested(const QVector<fb::NodeId> &nodes, bool keepFloat);

private:
    void rebuild();
    void showOne(NodeId id);
    void showMany();
    void showWeights();
    void showQuantization();
    void follow(const QString &link);

    class Section;
    Section *section(const QString &title);

    std::shared_ptr<const GraphModule> gm_;
    QVector<NodeId> selected_;
    QVector<WeightStats> weights_;
    std::optional<QuantFacts> quant_;
    QVBoxLayout *rows_ = nullptr;
    QVector<Section *> sections_;
    Section *weightSection_ = nullptr;
    Section *quantSection_ = nullptr;
};

} // namespace fb
