// Fuseboard: what the canvas paints, as a value. GPL-3.0-or-later.
//
// CanvasFacts holds the texts of every node, made once for a graph. CanvasScene is one folding of it, laid out. Both are built
// off the GUI thread and never change afterwards. paintScene() draws a scene with any painter: the widget, a picture, an SVG.
#pragma once

#include <QColor>
#include <QHash>
#include <QPointF>
#include <QRectF>
#include <QSet>
#include <QString>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/ir/module.h"
#include "model/ir/ops.h"
#include "model/layout/layout.h"

class QFont;
class QPainter;

namespace fb
{

enum class ColourBy { Category, Quantization, DType };

// What the document knows about a node beyond the graph.
struct NodeBadge {
    enum class Runs : uint8_t { Unknown, Int8, FloatByChoice, FloatUnsupported, Observed, Leaf };
    Runs runs = Runs::Unknown;
    QString reason; // why it stays float
    QString warning; // empty: none
    bool edited = false;
    bool shared = false; // its weights are used elsewhere too
    bool leaf = false;
    bool operator==(const NodeBadge &) const = default;
};

struct NodeText {
    QString title, subtitle, summary, shape;
    Category category = Category::Other;
    std::optional<DType> dtype;
    bool terminal = false; // placeholder or output
    bool mutates = false;
};

// Widths of characters at 1 px, measured once on the GUI thread so that a worker can measure text.
struct TextMeter {
    float ascii[128] = {};
    float other = 1;
    static TextMeter of(const QFont &font);
    double width(const QString &text, double pixels) const;
};

struct CanvasFacts {
    std::shared_ptr<const GraphModule> graph;
    QHash<uint32_t, NodeText> texts;
    std::map<std::string, int> identical; // module key: how many blocks are like it
    static std::shared_ptr<const CanvasFacts> of(std::shared_ptr<const GraphModule> graph);
};

struct CanvasScene {
    std::shared_ptr<const CanvasFacts> facts;
    ViewGraph view;
    Layout layout;
    std::vector<std::vector<int>> in, out; // edges by item
    std::vector<int> depth; // of the item's container
    std::vector<std::vector<NodeId>> inside; // nodes in a folded box
    QHash<uint32_t, int> itemOfNode; // shown nodes, and hidden ones by the folded box they are in
    QHash<QString, int> itemOfModule; // shown module boxes
    QRectF bounds;

    QRectF rect(int item) const;
    bool isContainer(int item) const { return !view.items[size_t(item)].node && !view.items[size_t(item)].folded; }
    bool isModule(int item) const { return !view.items[size_t(item)].node; }
    const NodeText *text(int item) const; // null for module boxes
    QString key(int item) const; // stable across layouts
    int itemShowing(NodeId id) const; // the node itself or the folded box it is in; -1: not shown
    int containerOf(int item) const; // -1 at the root

    // Items and edges that may touch `area`, ascending.
    std::vector<int> itemsIn(const QRectF &area) const;
    std::vector<int> edgesIn(const QRectF &area) const;

    static Size boxSize(const CanvasFacts &facts, const ViewItem &item, const TextMeter &normal, const TextMeter &bold);
    static Result<std::shared_ptr<const CanvasScene>> build(std::shared_ptr<const CanvasFacts> facts,
        const std::set<std::string> &unfolded, bool leftToRight, bool showParameters, const TextMeter &normal,
        const TextMeter &bold, const std::atomic<bool> *cancel);

private:
    void index();
    void forCells(const QRectF &area, const std::function<void(size_t)> &visit) const;
    std::vector<int> collect(const std::vector<std::vector<int>> &cells, const QRectF &area) const;
    struct Grid {
        QRectF bounds;
        double cell = 400;
        int columns = 1, rows = 1;
        std::vector<std::vector<int>> items, edges;
    } grid_;
    std::vector<int> containers_; // always tried: they are few and large
};

// How a scene is drawn just now.
struct CanvasStyle {
    bool dark = false;
    ColourBy colourBy = ColourBy::Category;
    const QHash<uint32_t, NodeBadge> *badges = nullptr;
    QSet<int> selected, producers, consumers, hits;
    int currentHit = -1;
    QHash<int, int> hiddenHits; // hits inside a folded box
    int hover = -1;
    int selectedEdge = -1, hoverEdge = -1;
    int focus = -1; // the item the keyboard is at
    const QHash<QString, QRectF> *from = nullptr; // rects before, for the animation
    double progress = 1;
};

// Paints in pixels (scene times zoom, so that text stays crisp); `visible` is in scene coordinates; `zoom` decides the level
// of detail.
void paintScene(QPainter &painter, const CanvasScene &scene, const CanvasStyle &style, const QRectF &visible, double zoom);

// The colour of a node in the current mode, and the word that stands beside it in the legend.
struct NodeColour {
    QColor colour;
    QString word;
};
NodeColour nodeColour(const CanvasFacts &facts, NodeId id, const CanvasStyle &style);
QRectF foldMark(const QRectF &box, double zoom); // the little triangle of a module box, in pixels

} // namespace fb
