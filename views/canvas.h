// Fuseboard: the graph as boxes and lines. GPL-3.0-or-later.
//
// One widget paints everything: a scene (canvas_scene.h) is built by a worker thread from a snapshot of the graph and painted
// with levels of detail and a grid for culling; there is no object per node. Folding, selection and scroll are kept by node id
// and module key, so they survive an edit, a pass and undo. A layout that was overtaken by a newer one is dropped.
#pragma once

#include <QElapsedTimer>
#include <QHash>
#include <QImage>
#include <QList>
#include <QPointF>
#include <QSet>
#include <QStringList>
#include <QThreadPool>
#include <QTimer>
#include <QWidget>

#include <atomic>
#include <memory>
#include <set>
#include <string>

#include "model/ir/module.h"
#include "views/canvas_scene.h"

class QComboBox;

namespace fb
{

class Minimap;

class Canvas : public QWidget
{
    Q_OBJECT
public:
    explicit Canvas(QWidget *parent = nullptr);
    ~Canvas() override;

    // --- what is shown ---
    // `fresh`: another document, so folding, selection and scroll start anew.
    void setGraph(std::shared_ptr<const GraphModule> graph, bool fresh = false);
    std::shared_ptr<const GraphModule> graph() const { return graph_; }
    void setBadges(QHash<uint32_t, NodeBadge> badges); // by NodeId::value
    void setColourBy(ColourBy by);
    ColourBy colourBy() const { return colourBy_; }
    void setLeftToRight(bool on);
    void setShowParameters(bool on);
    void setAnimated(bool on) { animated_ = on; }
    const CanvasScene &scene() const { return *scene_; }
    bool isLayingOut() const { return pending_; }
    bool waitForLayout(int milliseconds = 30000); // runs the event loop until the newest layout is shown

    // --- selection ---
    QList<NodeId> selectedNodes() const; // in execution order; a selected module box stands for itself, not for its nodes
    QStringList selectedModules() const; // keys of selected module boxes
    // `reveal` unfolds what hides the first one and brings it into sight.
    void setSelection(const QList<NodeId> &nodes, bool reveal = false);
    void selectModule(const QString &key, bool reveal = false); // key or path
    void clearSelection();

    // --- folding ---
    bool isUnfolded(const QString &key) const { return unfolded_.count(key.toStdString()) != 0; }
    QStringList unfolded() const;
    void setUnfolded(const QStringList &keys);
    void toggleFold(const QString &key);
    void foldAll();
    void unfoldAll();

    // --- search: words are ANDed; name, op:, shape:, dtype:, module:, re: (a regular expression on the name) ---
    int search(const QString &query); // number of nodes found
    int hitCount() const { return int(hits_.size()); }
    int currentHit() const { return hit_; } // -1 before the first step
    bool nextHit();
    bool previousHit();

    // --- view ---
    double zoom() const { return zoom_; }
    void setZoom(double zoom); // about the middle
    void fit();
    void trueSize() { setZoom(1); }
    void centreOn(NodeId id);
    void goBack();
    QPointF toScene(QPointF widget) const { return (widget - pan_) / zoom_; }
    QPointF toWidget(QPointF scene) const { return scene * zoom_ + pan_; }
    QRectF itemRect(NodeId id) const; // in widget coordinates; null where it is folded away
    QRectF moduleRect(const QString &key) const;

    // --- pictures ---
    void paintTo(QPainter &painter, const QRectF &target); // the whole graph, with text as at 100 %
    QImage renderToImage(QSize size); // the same, fitted; the zoom is as on a screen of that size

    QSize sizeHint() const override { return { 900, 640 }; }
    QSize minimumSizeHint() const override { return { 200, 150 }; }

signals:
    void selectionChanged(const QList<fb::NodeId> &nodes, const QStringList &modules);
    void nodeActivated(fb::NodeId id); // double click or Enter on a node
    void contextMenuRequested(const QList<fb::NodeId> &nodes, const QStringList &modules, const QPoint &globalPos);
    void edgeSelected(fb::NodeId producer, fb::NodeId consumer);
    void foldingChanged();
    void colourByChanged(fb::ColourBy by);
    void layoutStarted();
    void layoutFinished();
    void layoutFailed(const QString &message);
    void hoverText(const QString &text);
    void zoomChanged(double zoom);

protected:
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void wheelEvent(QWheelEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void mouseReleaseEvent(QMouseEvent *event) override;
    void mouseDoubleClickEvent(QMouseEvent *event) override;
    void leaveEvent(QEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    void contextMenuEvent(QContextMenuEvent *event) override;
    void changeEvent(QEvent *event) override;
    bool event(QEvent *event) override;

private:
    friend class Minimap;

    // Keeps a place of the old scene under a place of the widget when the next scene arrives.
    struct Anchor {
        enum Kind { None, Item, Fit, Fresh } kind = None;
        NodeId node;
        std::string module;
        QPointF fraction; // inside the item, 0 to 1
        QPointF offset; // inside the item, in scene units from its top left
        QPointF widget;
    };
    struct Place {
        QPointF centre;
        double zoom = 1;
    };

    void relayout(Anchor anchor);
    void adopt(std::shared_ptr<const CanvasScene> scene, std::set<std::string> unfolded, const Anchor &anchor);
    Anchor anchorAt(QPointF widget) const;
    Anchor anchorFor(int item, QPointF widget) const;
    void openingView();
    void zoomAt(QPointF widget, double factor);
    void clampPan();
    void moveTo(QPointF pan, double zoom);
    void remember();
    void ensureVisible(const QRectF &sceneRect, bool centre = false);
    QRectF obstructed() const;

    int itemAt(QPointF widget) const;
    int edgeAt(QPointF widget) const;
    int currentItem() const;
    void select(int item, bool add);
    void selectEdge(int edge);
    void refreshSelection();
    void emitSelection();
    void unfoldFor(NodeId id, bool centre);
    void step(Qt::Key key);
    void activate(int item, QPointF widget);
    QString describe(int item) const;
    QString describeEdge(int edge) const;
    void stepHit(int by);
    CanvasStyle style() const;
    void placeChildren();
    void paintLegend(QPainter &painter);
    void tick();

    std::shared_ptr<const GraphModule> graph_;
    std::shared_ptr<const CanvasFacts> facts_; // texts of the nodes of graph_
    std::shared_ptr<const CanvasScene> scene_;
    std::set<std::string> unfolded_;
    bool leftToRight_ = false;
    bool showParameters_ = false;
    bool animated_ = true;
    ColourBy colourBy_ = ColourBy::Category;
    QHash<uint32_t, NodeBadge> badges_;

    // Layout jobs
    QThreadPool pool_;
    std::shared_ptr<std::atomic<bool>> cancel_;
    quint64 revision_ = 0;
    bool pending_ = false;
    QList<NodeId> revealAfter_;

    // View
    double zoom_ = 1;
    QPointF pan_;
    QList<Place> back_;
    Anchor lastAnchor_;
    bool wasFit_ = false;

    // Animation from the last scene to this one
    QHash<QString, QRectF> oldRects_;
    double progress_ = 1;
    QElapsedTimer clock_;
    QTimer timer_;

    struct LegendRow {
        QColor colour;
        QString word;
        int count; // 0: not a colour of nodes
    };
    QList<LegendRow> legend_; // empty: to be made

    // Interaction
    QSet<uint32_t> selected_;
    QSet<QString> selectedModules_;
    NodeId current_;
    std::string currentModule_;
    int selectedEdge_ = -1;
    NodeId edgeProducer_, edgeConsumer_;
    int hover_ = -1, hoverEdge_ = -1;
    enum class Drag { None, Press, Pan, Band } drag_ = Drag::None;
    QPointF pressed_, dragged_, panAtPress_;

    // Search
    QString query_;
    QList<NodeId> hits_;
    QSet<uint32_t> hitSet_;
    int hit_ = -1;

    Minimap *minimap_ = nullptr;
    QComboBox *colourBox_ = nullptr;
};

} // namespace fb
