// Fuseboard: painting a scene with levels of detail. GPL-3.0-or-later.
//
// Everything is computed in pixels and text is set at whole pixel sizes, never below 11 px: when a box has no room for a line
// at that size, the line goes. Farther out boxes become blocks of colour and lines become hairlines.
#include <QFontMetricsF>
#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <cmath>

#include "views/canvas_metrics.h"
#include "views/canvas_scene.h"
#include "views/theme.h"

namespace fb
{

using namespace canvas;

namespace
{

using Role = Theme::Role;

QString tr(const char *text)
{
    return QCoreApplication::translate("fb::Canvas", text);
}

NodeColour runsColour(NodeBadge::Runs runs, bool dark)
{
    switch (runs) {
    case NodeBadge::Runs::Int8:
        return { Theme::color(Role::Int8, dark), tr("int8") };
    case NodeBadge::Runs::FloatByChoice:
        return { Theme::color(Role::FloatByChoice, dark), tr("float by choice") };
    case NodeBadge::Runs::FloatUnsupported:
        return { Theme::color(Role::FloatUnsupported, dark), tr("float, unsupported") };
    case NodeBadge::Runs::Observed:
        return { Theme::color(Role::Observed, dark), tr("observed") };
    case NodeBadge::Runs::Leaf:
        return { Theme::color(Role::LeafNode, dark), tr("leaf") };
    case NodeBadge::Runs::Unknown:
        break;
    }
    return { Theme::color(Role::Undecided, dark), tr("not quantized") };
}

struct Line {
    QPolygonF points;
    QColor colour;
    double width;
};

class Painter
{
public:
    Painter(QPainter &painter, const CanvasScene &scene, const CanvasStyle &style, const QRectF &visible, double zoom)
        : p(painter)
        , s(scene)
        , st(style)
        , area(visible)
        , z(zoom)
        , title(Theme::font(std::max(11.0, kTitlePx * zoom), QFont::DemiBold))
        , detail(Theme::font(std::max(11.0, kDetailPx * zoom)))
        , sign(Theme::font(std::max(11.0, kDetailPx * zoom), QFont::DemiBold))
        , titleMetrics(title)
        , detailMetrics(detail)
        , signMetrics(sign)
    {
        ground = role(Role::Ground);
        container = role(Role::Container);
    }

    void paint()
    {
        const double margin = 40 / z;
        const std::vector<int> items = s.itemsIn(area.adjusted(-margin, -margin, margin, margin));
        p.setRenderHint(QPainter::Antialiasing, z > 0.12);
        p.setRenderHint(QPainter::TextAntialiasing);
        for (int i : items)
            if (s.isContainer(i))
                paintContainer(i);
        const double settled = std::clamp((st.progress - 0.35) / 0.65, 0.0, 1.0);
        if (settled > 0) {
            p.setOpacity(settled);
            paintEdges();
            p.setOpacity(1);
        }
        for (int i : items)
            if (!s.isContainer(i))
                paintBox(i);
        for (int i : items)
            if (s.isContainer(i))
                paintHeader(i);
        if (settled == 1 && z >= 0.8)
            paintLabels();
    }

private:
    QColor role(Role r) const { return Theme::color(r, st.dark); }
    QRectF px(const QRectF &r) const { return { r.topLeft() * z, r.size() * z }; }

    QRectF box(int i) const
    {
        QRectF now = s.rect(i);
        if (st.from && st.progress < 1) {
            auto it = st.from->constFind(s.key(i));
            if (it != st.from->constEnd()) {
                auto mix = [&](double a, double b) { return a + (b - a) * st.progress; };
                now = { mix(it->x(), now.x()), mix(it->y(), now.y()), mix(it->width(), now.width()),
                    mix(it->height(), now.height()) };
            }
        }
        return px(now);
    }

    QColor containerFill(int depth) const
    {
        return Theme::mix(container, st.dark ? QColor(Qt::white) : QColor(Qt::black), 0.022 * std::min(depth, 6));
    }

    QColor groundUnder(int item) const { return s.depth[size_t(item)] == 0 ? ground : containerFill(s.depth[size_t(item)] - 1); }

    void paintContainer(int i)
    {
        const QRectF r = box(i);
        p.setBrush(containerFill(s.depth[size_t(i)]));
        const bool selected = st.selected.contains(i);
        p.setPen(QPen(selected ? role(Role::Accent) : role(Role::Border), selected ? 2 : 1));
        const double radius = std::min(8.0, 8 * z);
        p.drawRoundedRect(r, radius, radius);
        if (i == st.focus)
            focusRing(r, radius);
    }

    void paintHeader(int i)
    {
        const QRectF r = box(i);
        const double h = kHeader * z;
        if (r.width() < 60 || (h < 15 && r.width() < 220))
            return;
        const double line = std::max(h, 16.0);
        QRectF at(r.left() + 8 * std::min(z, 1.0), r.top(), r.width() - 16 * std::min(z, 1.0), line);
        const auto &item = s.view.items[size_t(i)];
        paintMark(foldMark(r, z), true);
        at.setLeft(at.left() + std::max(12.0, kMark * z));
        QString name = titleMetrics.elidedText(moduleTitle(item), Qt::ElideRight, at.width());
        const double w = titleMetrics.horizontalAdvance(name);
        // Lines that come in pass under the words.
        const QColor under = containerFill(s.depth[size_t(i)]);
        const QString path = QString::fromStdString(item.module) + QStringLiteral("  ·  ") + nodesInside(item.count);
        const QString rest
            = at.width() - w > 50 ? detailMetrics.elidedText(path, Qt::ElideMiddle, at.width() - w - 10) : QString();
        const double total = w + (rest.isEmpty() ? 0 : 10 + detailMetrics.horizontalAdvance(rest));
        const double th = titleMetrics.height();
        p.setPen(Qt::NoPen);
        p.setBrush(under);
        p.drawRect(QRectF(at.left() - 2, at.center().y() - th / 2, total + 4, th));
        p.setPen(role(Role::Text));
        p.setFont(title);
        p.drawText(at, Qt::AlignLeft | Qt::AlignVCenter, name);
        p.setPen(role(Role::TextMuted));
        p.setFont(detail);
        p.drawText(at.adjusted(w + 10, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, rest);
    }

    void paintMark(const QRectF &r, bool open)
    {
        const QPointF c = r.center();
        const double k = std::clamp(4 * z, 3.0, 9.0);
        QPolygonF t;
        if (open)
            t << c + QPointF(-k, -k * 0.55) << c + QPointF(k, -k * 0.55) << c + QPointF(0, k * 0.75);
        else
            t << c + QPointF(-k * 0.55, -k) << c + QPointF(-k * 0.55, k) << c + QPointF(k * 0.75, 0);
        p.setPen(Qt::NoPen);
        p.setBrush(role(Role::TextMuted));
        p.drawPolygon(t);
    }

    void focusRing(const QRectF &r, double radius)
    {
        p.setBrush(Qt::NoBrush);
        p.setPen(QPen(role(Role::Text), 1, Qt::DashLine));
        p.drawRoundedRect(r.adjusted(-4, -4, 4, 4), radius + 3, radius + 3);
    }

    void paintBox(int i)
    {
        const QRectF r = box(i);
        const auto &item = s.view.items[size_t(i)];
        const bool module = s.isModule(i), selected = st.selected.contains(i), hit = st.hits.contains(i);
        const bool producer = st.producers.contains(i), consumer = st.consumers.contains(i);
        const QColor colour = module ? role(Role::BorderStrong) : nodeColour(*s.facts, item.node, st).colour;
        QColor outline = role(Role::Border);
        double pen = 1;
        if (producer || consumer) {
            outline = role(producer ? Role::Producer : Role::Consumer);
            pen = 2;
        }
        if (hit) {
            outline = role(Role::SearchHit);
            pen = i == st.currentHit ? 3 : 2;
        }
        if (selected) {
            outline = role(Role::Accent);
            pen = 2;
        }

        // Far out: a block of colour.
        if (r.height() < 9) {
            const QRectF block = r.width() < 1.5 || r.height() < 1.5
                ? QRectF(r.topLeft(), QSizeF(std::max(1.5, r.width()), std::max(1.5, r.height())))
                : r;
            if (module)
                paintShares(i, block, false);
            else
                p.fillRect(block, Theme::mix(colour, role(Role::Surface), 0.15));
            if (pen > 1) {
                p.setBrush(Qt::NoBrush);
                p.setPen(QPen(outline, pen));
                p.drawRect(block.adjusted(-1.5, -1.5, 1.5, 1.5));
            }
            return;
        }

        const double radius = std::min(s.text(i) && s.text(i)->terminal ? r.height() / 2 : kRadius * z, 24.0 * std::max(z, 1.0));
        // Without words the colour speaks louder.
        QColor fill = Theme::mix(role(Role::Surface), colour, module ? 0 : r.width() < 60 ? 0.35 : 0.05);
        if (selected)
            fill = Theme::mix(role(Role::Surface), role(Role::Accent), 0.16);
        else if (hit)
            fill = Theme::mix(role(Role::Surface), role(Role::SearchHit), i == st.currentHit ? 0.26 : 0.14);
        else if (i == st.hover)
            fill = Theme::mix(fill, role(Role::Hover), 0.8);

        if (module) {
            // The stack edge: there is more below.
            p.setPen(QPen(role(Role::Border), 1));
            for (double k : { 6.0, 3.0 }) {
                p.setBrush(Theme::mix(role(Role::Surface), role(Role::Border), k == 6 ? 0.7 : 0.35));
                p.drawRoundedRect(r.translated(k * std::min(z, 1.5), k * std::min(z, 1.5)), radius, radius);
            }
        }
        QPainterPath path;
        path.addRoundedRect(r, radius, radius);
        p.setPen(Qt::NoPen);
        p.setBrush(fill);
        p.drawPath(path);
        const double band = std::max(3.0, kBand * z);
        p.save();
        p.setClipPath(path, Qt::IntersectClip);
        const QRectF stripe(r.left(), r.top(), s.text(i) && s.text(i)->terminal ? band + 3 * z : band, r.height());
        if (module)
            paintShares(i, stripe, true);
        else
            p.fillRect(stripe, colour);
        p.restore();
        p.setBrush(Qt::NoBrush);
        p.setPen(QPen(outline, pen));
        p.drawPath(path);
        if (i == st.focus)
            focusRing(r, radius);
        paintText(i, r.adjusted(band, 0, 0, 0));
        if (const int hidden = st.hiddenHits.value(i)) {
            const QString found = tr("%1 found").arg(hidden);
            chip(QPointF(r.right() - 2, r.top()), found, role(Role::SearchHit), true);
        }
    }

    // The colours of what is inside a folded box, by their share.
    void paintShares(int i, const QRectF &r, bool vertical)
    {
        const auto &ids = s.inside[size_t(i)];
        std::vector<std::pair<QRgb, int>> shares;
        for (NodeId id : ids) {
            const QRgb c = nodeColour(*s.facts, id, st).colour.rgb();
            auto it = std::find_if(shares.begin(), shares.end(), [c](const auto &x) { return x.first == c; });
            it == shares.end() ? shares.emplace_back(c, 1) : std::pair<QRgb, int>(c, ++it->second);
        }
        std::stable_sort(shares.begin(), shares.end(), [](const auto &a, const auto &b) { return a.second > b.second; });
        double done = 0;
        for (const auto &[c, count] : shares) {
            const double share = double(count) / double(ids.size());
            if (vertical)
                p.fillRect(QRectF(r.left(), r.top() + done * r.height(), r.width(), share * r.height()), QColor::fromRgb(c));
            else
                p.fillRect(QRectF(r.left() + done * r.width(), r.top(), share * r.width(), r.height()),
                    Theme::mix(QColor::fromRgb(c), role(Role::Surface), 0.15));
            done += share;
        }
    }

    double chipWidth(const QString &word) const { return signMetrics.horizontalAdvance(word) + 8; }

    // A small label whose top right corner hangs at `corner`; returns its left edge.
    double chip(QPointF corner, const QString &word, const QColor &colour, bool above = false)
    {
        const double w = chipWidth(word), h = signMetrics.height();
        const QRectF r(corner.x() - w, above ? corner.y() - h / 2 : corner.y(), w, h);
        p.setPen(Qt::NoPen);
        p.setBrush(colour);
        p.drawRoundedRect(r, 3, 3);
        p.setPen(Theme::textOn(colour));
        p.setFont(sign);
        p.drawText(r, Qt::AlignCenter, word);
        return r.left();
    }

    void paintText(int i, const QRectF &r)
    {
        const auto &item = s.view.items[size_t(i)];
        const NodeText *t = s.text(i);
        const double padX = std::min(kPadX * z, 12.0 * std::max(z, 1.0));
        QRectF in = r.adjusted(padX, 0, -padX, 0);
        const double th = titleMetrics.height(), dh = detailMetrics.height() + 1;
        if (r.height() < th - 1 || in.width() < 36)
            return; // two letters and an ellipsis tell nothing

        QString name = t ? t->title : moduleTitle(item), second = t ? t->subtitle : QString::fromStdString(item.module),
                third = t ? t->summary : nodesInside(item.count);
        NodeBadge badge;
        if (t && st.badges)
            badge = st.badges->value(item.node.value);
        const auto runs = runsColour(badge.runs, st.dark);
        if (st.colourBy == ColourBy::Quantization && !badge.reason.isEmpty())
            third = badge.reason;
        if (st.colourBy == ColourBy::DType && t && t->dtype)
            third = QString::fromUtf8(dtypeName(*t->dtype).data(), qsizetype(dtypeName(*t->dtype).size()));
        QStringList lines;
        for (const QString &line : { second, third })
            if (!line.isEmpty() && r.height() >= th + dh * double(lines.size() + 1) + 2)
                lines << line;
        double y = r.center().y() - (th + dh * double(lines.size())) / 2;

        // Badges, from the right.
        double right = in.right();
        if (t && in.width() > 90) {
            QString word;
            switch (badge.runs) {
            case NodeBadge::Runs::Int8:
                word = QStringLiteral("int8");
                break;
            case NodeBadge::Runs::FloatByChoice:
            case NodeBadge::Runs::FloatUnsupported:
                word = QStringLiteral("float");
                break;
            case NodeBadge::Runs::Observed:
                word = tr("obs");
                break;
            case NodeBadge::Runs::Leaf:
                word = tr("leaf");
                break;
            case NodeBadge::Runs::Unknown:
                word = badge.leaf ? tr("leaf") : QString();
                break;
            }
            const QPointF corner(right, y + 1);
            // From afar letters stay readable and boxes do not grow with them: then the title goes first.
            const bool fits = z >= 0.95 || chipWidth(word) + 4 <= in.width() - titleMetrics.horizontalAdvance(name);
            if (!word.isEmpty() && fits)
                right = chip(corner, word, badge.runs == NodeBadge::Runs::Unknown ? role(Role::LeafNode) : runs.colour) - 4;
            const double k = std::max(11.0, 11 * z);
            auto sign = [&](auto draw) {
                draw(QRectF(right - k, y + (th - k) / 2, k, k));
                right -= k + 4;
            };
            if (!badge.warning.isEmpty())
                sign([&](const QRectF &b) { warningSign(b); });
            if (badge.edited)
                sign([&](const QRectF &b) { pencil(b); });
            if (badge.shared)
                sign([&](const QRectF &b) { twoSheets(b); });
            if (t->mutates)
                sign([&](const QRectF &b) { bang(b); });
        } else if (!t && in.width() > 90) {
            auto it = s.facts->identical.find(item.module);
            if (it != s.facts->identical.end() && it->second > 1) {
                p.setFont(title);
                p.setPen(role(Role::TextMuted));
                const QString times = QStringLiteral("×%1").arg(it->second);
                p.drawText(QRectF(in.left(), y, right - in.left(), th), Qt::AlignRight | Qt::AlignVCenter, times);
                right -= titleMetrics.horizontalAdvance(times) + 6;
            }
        }

        double left = in.left();
        if (!t && in.width() > 60) {
            paintMark(QRectF(in.left() - 2, y, std::max(9.0, 9 * z), th), false);
            left += std::max(11.0, 12 * z);
        }
        p.setFont(title);
        p.setPen(role(Role::Text));
        p.drawText(QRectF(left, y, right - left, th), Qt::AlignLeft | Qt::AlignVCenter,
            titleMetrics.elidedText(name, Qt::ElideRight, std::max(right - left, 0.0)));
        y += th;
        p.setFont(detail);
        for (qsizetype k = 0; k < lines.size(); ++k, y += dh) {
            p.setPen(role(k == 0 && lines[0] == second ? Role::TextMuted : Role::Text));
            p.drawText(QRectF(in.left(), y, in.width(), dh), Qt::AlignLeft | Qt::AlignVCenter,
                detailMetrics.elidedText(lines[k], k == 0 ? Qt::ElideMiddle : Qt::ElideRight, in.width()));
        }
    }

    void warningSign(const QRectF &r)
    {
        p.setPen(Qt::NoPen);
        p.setBrush(role(Role::Warning));
        p.drawPolygon(QPolygonF{ r.bottomLeft(), r.bottomRight(), QPointF(r.center().x(), r.top()) });
        p.setPen(QPen(Theme::textOn(role(Role::Warning)), r.width() / 8));
        p.drawLine(QPointF(r.center().x(), r.top() + r.height() * 0.4), QPointF(r.center().x(), r.top() + r.height() * 0.68));
        p.drawPoint(QPointF(r.center().x(), r.top() + r.height() * 0.85));
    }

    void pencil(const QRectF &r)
    {
        p.setPen(QPen(role(Role::Accent), r.width() / 4, Qt::SolidLine, Qt::FlatCap));
        p.drawLine(r.bottomLeft() + QPointF(r.width() * 0.25, -r.height() * 0.25),
            r.topRight() + QPointF(-r.width() * 0.1, r.height() * 0.1));
        p.setPen(QPen(role(Role::Accent), r.width() / 9));
        p.drawLine(r.bottomLeft() + QPointF(0.5, -0.5), r.bottomLeft() + QPointF(r.width() * 0.25, -r.height() * 0.25));
    }

    void twoSheets(const QRectF &r)
    {
        p.setBrush(Qt::NoBrush);
        p.setPen(QPen(role(Role::TextMuted), 1.2));
        p.drawRect(QRectF(r.left() + 1, r.top() + 1, r.width() * 0.6, r.height() * 0.6));
        p.drawRect(QRectF(r.left() + r.width() * 0.3, r.top() + r.height() * 0.3, r.width() * 0.6, r.height() * 0.6));
    }

    // Changes its input in place.
    void bang(const QRectF &r)
    {
        p.setPen(role(Role::TextMuted));
        p.setFont(title);
        p.drawText(r, Qt::AlignCenter, QStringLiteral("!"));
    }

    // --- lines ---

    QPolygonF polyline(int e) const
    {
        QPolygonF line;
        for (const Point &q : s.layout.edges[size_t(e)])
            line << QPointF(q.x, q.y) * z;
        return line;
    }

    void paintEdges()
    {
        const std::vector<int> edges = s.edgesIn(area);
        std::vector<int> lit;
        const double width = z < 0.2 ? 1 : std::clamp(1.3 * z, 1.0, 2.2);
        QColor plain = role(Role::Edge);
        if (z < 0.2)
            plain.setAlpha(120);
        for (int e : edges) {
            const auto &edge = s.view.edges[size_t(e)];
            if (e == st.selectedEdge || e == st.hoverEdge || st.selected.contains(edge.from) || st.selected.contains(edge.to))
                lit.push_back(e);
            else
                paintEdge(e, plain, width);
        }
        for (int e : lit) {
            const auto &edge = s.view.edges[size_t(e)];
            const QColor c = e == st.selectedEdge ? role(Role::Accent)
                : st.selected.contains(edge.from) ? role(Role::Consumer)
                : st.selected.contains(edge.to)   ? role(Role::Producer)
                                                  : role(Role::Text);
            paintEdge(e, c, e == st.selectedEdge ? width + 1.4 : width + 0.8);
        }
    }

    void paintEdge(int e, const QColor &colour, double width)
    {
        QPolygonF line = polyline(e);
        if (line.size() < 2)
            return;
        p.setBrush(Qt::NoBrush);
        p.setPen(QPen(colour, width, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin));
        const double head = std::min(7 * z, 12.0);
        if (z < 0.3) {
            p.drawPolyline(line);
            return;
        }
        const QPointF tip = line.back(), before = line[line.size() - 2];
        const QPointF d = tip - before;
        const double length = std::hypot(d.x(), d.y());
        if (length > 0) {
            const QPointF u = d / length, side(-u.y(), u.x());
            line.back() = tip - u * std::min(length, head * 0.8);
            p.drawPolyline(line);
            p.setPen(Qt::NoPen);
            p.setBrush(colour);
            p.drawPolygon(QPolygonF{ tip, tip - u * head + side * head * 0.45, tip - u * head - side * head * 0.45 });
        }
    }

    // What a line carries: beside its start, and again at its end when that is far.
    void paintLabels()
    {
        QSet<quint64> done;
        for (int e : s.edgesIn(area)) {
            const auto &edge = s.view.edges[size_t(e)];
            const auto &line = s.layout.edges[size_t(e)];
            if (line.size() < 2)
                continue;
            const QString word
                = edge.bundled > 1 ? tr("%1 values").arg(edge.bundled) : s.facts->texts.value(edge.producer.value).shape;
            if (word.isEmpty())
                continue;
            const QPointF start = QPointF(line.front().x, line.front().y) * z, end = QPointF(line.back().x, line.back().y) * z;
            const quint64 key = quint64(edge.from) << 32 | (edge.bundled > 1 ? quint64(edge.to) | 1u << 31 : edge.producer.value);
            if (!done.contains(key)) {
                done.insert(key);
                // On the side that the line does not turn to.
                size_t k = 1;
                while (k + 1 < line.size() && line[k].y < line.front().y + 16)
                    ++k;
                const bool right = line[k].x <= line.front().x + 2;
                const double w = detailMetrics.horizontalAdvance(word);
                label(start + QPointF(right ? 6 * z : -6 * z - w, 4 * z + detailMetrics.height() / 2), word,
                    groundUnder(edge.from));
            }
            if (std::hypot(end.x() - start.x(), end.y() - start.y()) > 420 * z)
                label(end + QPointF(7 * z, -9 * z - detailMetrics.height() / 2), word, groundUnder(edge.to));
        }
    }

    void label(QPointF left, const QString &word, QColor under)
    {
        const double w = detailMetrics.horizontalAdvance(word), h = detailMetrics.height();
        const QRectF r(left.x(), left.y() - h / 2, w, h);
        under.setAlpha(225);
        p.setPen(Qt::NoPen);
        p.setBrush(under);
        p.drawRect(r.adjusted(-1, 0, 1, 0));
        p.setFont(detail);
        p.setPen(role(Role::TextMuted));
        p.drawText(r, Qt::AlignCenter | Qt::TextDontClip, word);
    }

    QPainter &p;
    const CanvasScene &s;
    const CanvasStyle &st;
    QRectF area;
    double z;
    QFont title, detail, sign;
    QFontMetricsF titleMetrics, detailMetrics, signMetrics;
    QColor ground, container;
};

} // namespace

NodeColour nodeColour(const CanvasFacts &facts, NodeId id, const CanvasStyle &style)
{
    auto it = facts.texts.constFind(id.value);
    if (it == facts.texts.constEnd())
        return { Theme::color(Role::Undecided, style.dark), {} };
    switch (style.colourBy) {
    case ColourBy::Category: {
        const auto name = categoryName(it->category);
        return { Theme::category(it->category, style.dark), QString::fromUtf8(name.data(), qsizetype(name.size())) };
    }
    case ColourBy::DType: {
        if (!it->dtype)
            return { Theme::color(Role::Undecided, style.dark), tr("unknown") };
        const auto name = dtypeName(*it->dtype);
        return { Theme::dtype(*it->dtype, style.dark), QString::fromUtf8(name.data(), qsizetype(name.size())) };
    }
    case ColourBy::Quantization:
        break;
    }
    return runsColour(style.badges ? style.badges->value(id.value).runs : NodeBadge::Runs::Unknown, style.dark);
}

QRectF foldMark(const QRectF &box, double zoom)
{
    const double k = std::max(16.0, 18 * zoom);
    return { box.left() + 3, box.top() + (kHeader * zoom - k) / 2, k, k };
}

void paintScene(QPainter &painter, const CanvasScene &scene, const CanvasStyle &style, const QRectF &visible, double zoom)
{
    painter.save();
    Painter(painter, scene, style, visible, zoom).paint();
    painter.restore();
}

} // namespace fb
