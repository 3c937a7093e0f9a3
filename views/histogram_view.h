// Fuseboard: histograms of activations, one large or a wall of small ones. GPL-3.0-or-later.
//
// Statistics hold fixed bins (see model/exec/statistics.h), so what is drawn is binned anew for the range in sight: zooming
// in shows more, never a magnified bar.
//
//     view->setHistograms({...});      // one: large; several: the wall; none: the empty line, "Calibrate"
//     view->setSelected({node});       // large where it is among them
#pragma once

#include <QVector>
#include <QWidget>
#include <functional>
#include <utility>
#include <vector>

#include "model/ir/arg.h"

class QLabel;
class QPushButton;
class QStackedWidget;
class QToolButton;

namespace fb
{

struct HistogramData {
    NodeId node;
    QString name; // "layer1_0_conv1"
    QString dtype; // "float32"
    std::function<std::vector<double>(double lo, double hi, int bins)> rebin; // counts over [lo, hi), exact for any range
    double min = 0, max = 0, mean = 0;
    quint64 count = 0; // finite values
    quint64 nan = 0, inf = 0; // kept out of everything else
    bool hasRange = false; // an observer chose a range:
    double clipMin = 0, clipMax = 0, scale = 0;
    int zeroPoint = 0;
    QString observer; // "MinMaxObserver"
    quint64 revision = 0; // of the document it was made from
    QString warning() const; // "12 nan and 3 inf were left out. Every value is zero." or empty
};

class HistogramPlot; // large
class HistogramWall;

class HistogramView : public QWidget
{
    Q_OBJECT
public:
    explicit HistogramView(QWidget *parent = nullptr);

    void setHistograms(const QVector<HistogramData> &histograms);
    const QVector<HistogramData> &histograms() const { return histograms_; }
    void setSelected(const QVector<NodeId> &nodes);
    // What the empty view says and what its button is called (no button where `action` is empty).
    void setEmptyText(const QString &sentence, const QString &action = {});
    void setLogarithmic(bool on);
    bool isLarge() const; // one large plot is in front
    NodeId current() const; // of the large plot, NodeId{} on the wall
    void showWall();
    std::pair<double, double> visibleRange() const; // of the large plot
    void setVisibleRange(double lo, double hi);
    std::vector<double> bars() const; // counts as drawn
    QString pointerText() const; // bin and count under the pointer, or empty

signals:
    void nodeActivated(fb::NodeId node); // a plot on the wall was clicked, or the large plot's name
    void actionRequested(); // the button of the empty view

protected:
    void keyPressEvent(QKeyEvent *event) override;
    void changeEvent(QEvent *event) override;

private:
    void showLarge(NodeId node);
    const HistogramData *find(NodeId node) const;
    void updateHeader();

    QVector<HistogramData> histograms_;
    NodeId current_;
    QStackedWidget *pages_;
    HistogramPlot *plot_;
    HistogramWall *wall_;
    QWidget *header_;
    QToolButton *back_, *linear_, *log_, *reset_;
    QPushButton *title_;
    QLabel *facts_, *warning_, *pointer_;
    QLabel *emptyText_;
    QPushButton *emptyButton_;
};

} // namespace fb
