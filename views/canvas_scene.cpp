// Fuseboard: building a scene, off the GUI thread. GPL-3.0-or-later.
#include "views/canvas_scene.h"

#include <QCoreApplication>
#include <QFont>
#include <QFontMetricsF>

#include <algorithm>
#include <cmath>

#include "views/canvas_metrics.h"

namespace fb
{

namespace
{

QString text(const std::string &s)
{
    return QString::fromStdString(s);
}

QString shapeText(const Node &n)
{
    if (!n.meta)
        return {};
    QStringList sizes;
    for (int64_t s : n.meta->shape)
        sizes << QString::number(s);
    return sizes.isEmpty() ? QStringLiteral("scalar") : sizes.join(QLatin1Char('x'));
}

} // namespace

TextMeter TextMeter::of(const QFont &font)
{
    QFont big = font;
    big.setPixelSize(100);
    const QFontMetricsF metrics(big);
    TextMeter m;
    for (int c = 32; c < 127; ++c)
        m.ascii[c] = float(metrics.horizontalAdvance(QChar(c)) / 100);
    return m;
}

double TextMeter::width(const QString &text, double pixels) const
{
    double w = 0;
    for (QChar c : text)
        w += double(c.unicode() < 128 ? ascii[c.unicode()] : other);
    return w * pixels;
}

std::shared_ptr<const CanvasFacts> CanvasFacts::of(std::shared_ptr<const GraphModule> graph)
{
    auto facts = std::make_shared<CanvasFacts>();
    facts->graph = graph;
    facts->texts.reserve(qsizetype(graph->graph.size()));
    for (NodeId id : graph->graph.order()) {
        const Node &n = graph->graph[id];
        NodeText t;
        t.title = text(nodeTitle(*graph, n));
        t.summary = text(nodeSummary(*graph, n));
        t.subtitle = text(n.op == Opcode::CallModule || n.op == Opcode::GetAttr ? n.target : joinPath(n.modulePath(), n.name));
        t.shape = shapeText(n);
        t.category = categoryOf(*graph, n);
        if (n.meta)
            t.dtype = n.meta->dtype;
        t.terminal = n.op == Opcode::Placeholder || n.op == Opcode::Output;
        t.mutates = mutatesInput(*graph, n);
        if (t.terminal && t.summary.isEmpty())
            t.summary = t.shape;
        if (t.title == t.subtitle)
            t.subtitle = n.op == Opcode::Placeholder ? QStringLiteral("input") : QString();
        facts->texts.insert(id.value, t);
    }
    facts->identical = identicalBlocks(*graph);
    return facts;
}

QRectF CanvasScene::rect(int item) const
{
    const Rect &r = layout.items[size_t(item)];
    return { r.x, r.y, r.w, r.h };
}

const NodeText *CanvasScene::text(int item) const
{
    auto it = facts->texts.constFind(view.items[size_t(item)].node.value);
    return it == facts->texts.constEnd() ? nullptr : &*it;
}

QString CanvasScene::key(int item) const
{
    const ViewItem &i = view.items[size_t(item)];
    return i.node ? QLatin1Char('#') + QString::number(i.node.value) : QString::fromStdString(i.module);
}

int CanvasScene::itemShowing(NodeId id) const
{
    return itemOfNode.value(id.value, -1);
}

int CanvasScene::containerOf(int item) const
{
    const auto &parent = view.items[size_t(item)].parent;
    return parent.empty() ? -1 : itemOfModule.value(QString::fromStdString(parent), -1);
}

Size CanvasScene::boxSize(const CanvasFacts &facts, const ViewItem &item, const TextMeter &normal, const TextMeter &bold)
{
    using namespace canvas;
    double title, subtitle, summary;
    bool third = true;
    if (item.node) {
        const NodeText t = facts.texts.value(item.node.value);
        title = bold.width(t.title, kTitlePx) + kBadgeRoom;
        subtitle = normal.width(t.subtitle, kDetailPx);
        summary = normal.width(t.summary, kDetailPx);
        third = !t.summary.isEmpty();
        if (t.subtitle.isEmpty() && !third)
            return { 96, kTwoLines };
        if (t.subtitle.isEmpty())
            third = false;
    } else {
        title = bold.width(moduleTitle(item), kTitlePx) + kBadgeRoom + kMark;
        subtitle = normal.width(QString::fromStdString(item.module), kDetailPx);
        summary = normal.width(nodesInside(item.count), kDetailPx);
        if (!item.folded)
            return { std::min(title + subtitle + summary + 60, 360.0), 0 };
    }
    const double content = std::max({ title, std::min(subtitle, 180.0), std::min(summary, 230.0) });
    const double w = std::clamp(content + kBand + 2 * kPadX, 128.0, 270.0);
    return { std::ceil(w / 8) * 8, third ? kThreeLines : kTwoLines };
}

Result<std::shared_ptr<const CanvasScene>> CanvasScene::build(std::shared_ptr<const CanvasFacts> facts,
    const std::set<std::string> &unfolded, bool leftToRight, bool showParameters, const TextMeter &normal, const TextMeter &bold,
    const std::atomic<bool> *cancel)
{
    auto scene = std::make_shared<CanvasScene>();
    scene->facts = facts;
    scene->view = buildView(*facts->graph, unfolded, showParameters);
    std::vector<Size> sizes;
    for (const auto &item : scene->view.items)
        sizes.push_back(boxSize(*facts, item, normal, bold));
    LayoutOptions options;
    options.leftToRight = leftToRight;
    options.columnAspect = 1.6;
    options.cancel = cancel;
    auto layout = layoutView(scene->view, sizes, options);
    if (!layout)
        return layout.error();
    scene->layout = std::move(*layout);
    scene->index();
    return std::shared_ptr<const CanvasScene>(scene);
}

void CanvasScene::index()
{
    const size_t n = view.items.size();
    in.resize(n);
    out.resize(n);
    inside.resize(n);
    depth.assign(n, 0);
    bounds = { layout.bounds.x, layout.bounds.y, layout.bounds.w, layout.bounds.h };
    for (size_t i = 0; i < n; ++i) {
        const ViewItem &item = view.items[i];
        if (item.node)
            itemOfNode.insert(item.node.value, int(i));
        else
            itemOfModule.insert(QString::fromStdString(item.module), int(i));
        const int container = containerOf(int(i));
        depth[i] = container < 0 ? 0 : depth[size_t(container)] + 1;
    }
    for (NodeId id : facts->graph->graph.order()) {
        if (itemOfNode.contains(id.value))
            continue;
        for (const auto &key : boxAncestors(facts->graph->graph[id])) {
            const int item = itemOfModule.value(QString::fromStdString(key), -1);
            if (item >= 0 && view.items[size_t(item)].folded) {
                itemOfNode.insert(id.value, item);
                inside[size_t(item)].push_back(id);
                break;
            }
        }
    }
    for (size_t e = 0; e < view.edges.size(); ++e) {
        out[size_t(view.edges[e].from)].push_back(int(e));
        in[size_t(view.edges[e].to)].push_back(int(e));
    }

    // The grid: cells grow with the picture so that there are at most some ten thousand.
    grid_.bounds = bounds.adjusted(-200, -200, 200, 200);
    grid_.cell = std::max(400.0, std::sqrt(grid_.bounds.width() * grid_.bounds.height() / 20000));
    grid_.columns = std::max(1, int(std::ceil(grid_.bounds.width() / grid_.cell)));
    grid_.rows = std::max(1, int(std::ceil(grid_.bounds.height() / grid_.cell)));
    grid_.items.resize(size_t(grid_.columns) * size_t(grid_.rows));
    grid_.edges.resize(grid_.items.size());
    auto put = [this](std::vector<std::vector<int>> &cells, const QRectF &r, int index) {
        forCells(r, [&](size_t cell) {
            if (cells[cell].empty() || cells[cell].back() != index)
                cells[cell].push_back(index);
        });
    };
    for (size_t i = 0; i < n; ++i) {
        if (isContainer(int(i)))
            containers_.push_back(int(i));
        else
            put(grid_.items, rect(int(i)), int(i));
    }
    for (size_t e = 0; e < layout.edges.size(); ++e)
        for (size_t k = 1; k < layout.edges[e].size(); ++k) {
            const Point a = layout.edges[e][k - 1], b = layout.edges[e][k];
            put(grid_.edges, QRectF(QPointF(a.x, a.y), QPointF(b.x, b.y)).normalized(), int(e));
        }
}

void CanvasScene::forCells(const QRectF &area, const std::function<void(size_t)> &visit) const
{
    auto clampTo = [](double v, int most) { return int(std::clamp(std::floor(v), 0.0, double(most - 1))); };
    const int c0 = clampTo((area.left() - grid_.bounds.left()) / grid_.cell, grid_.columns);
    const int c1 = clampTo((area.right() - grid_.bounds.left()) / grid_.cell, grid_.columns);
    const int r0 = clampTo((area.top() - grid_.bounds.top()) / grid_.cell, grid_.rows);
    const int r1 = clampTo((area.bottom() - grid_.bounds.top()) / grid_.cell, grid_.rows);
    for (int r = r0; r <= r1; ++r)
        for (int c = c0; c <= c1; ++c)
            visit(size_t(r) * size_t(grid_.columns) + size_t(c));
}

std::vector<int> CanvasScene::collect(const std::vector<std::vector<int>> &cells, const QRectF &area) const
{
    std::vector<int> found;
    if (!cells.empty())
        forCells(area, [&](size_t cell) { found.insert(found.end(), cells[cell].begin(), cells[cell].end()); });
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

std::vector<int> CanvasScene::itemsIn(const QRectF &area) const
{
    std::vector<int> found = collect(grid_.items, area);
    std::erase_if(found, [&](int i) { return !rect(i).intersects(area); });
    for (int i : containers_)
        if (rect(i).intersects(area))
            found.push_back(i);
    std::sort(found.begin(), found.end());
    return found;
}

std::vector<int> CanvasScene::edgesIn(const QRectF &area) const
{
    return collect(grid_.edges, area);
}

} // namespace fb
