// Fuseboard: the canvas, what it shows. Mouse, keys and search are in canvas_input.cpp. GPL-3.0-or-later.
#include "views/canvas.h"

#include <QComboBox>
#include <QCoreApplication>
#include <QEvent>
#include <QPainter>
#include <QPointer>
#include <QResizeEvent>

#include <algorithm>
#include <cmath>

#include "views/canvas_metrics.h"
#include "views/minimap.h"
#include "views/theme.h"

namespace fb
{

namespace
{

constexpr double kLeastZoom = 0.002, kMostZoom = 4;
constexpr int kAnimation = 170; // milliseconds

std::string toKey(const QString &s)
{
    return s.toStdString();
}

} // namespace

Canvas::Canvas(QWidget *parent)
    : QWidget(parent)
    , scene_(std::make_shared<CanvasScene>())
{
    qRegisterMetaType<fb::NodeId>("fb::NodeId");
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAttribute(Qt::WA_OpaquePaintEvent);
    grabGesture(Qt::PinchGesture);
    setAccessibleName(tr("Graph canvas"));
    setAccessibleDescription(tr("Boxes are nodes and modules. Arrow keys walk along edges, Enter folds or unfolds."));
    pool_.setMaxThreadCount(1);
    timer_.setInterval(15);
    connect(&timer_, &QTimer::timeout, this, &Canvas::tick);

    minimap_ = new Minimap(this);
    minimap_->hide();
    colourBox_ = new QComboBox(this);
    colourBox_->addItems({ tr("category"), tr("quantization"), tr("dtype") });
    colourBox_->setAccessibleName(tr("Colour by"));
    colourBox_->setToolTip(tr("What the colours mean"));
    colourBox_->setFocusPolicy(Qt::TabFocus);
    colourBox_->hide();
    connect(colourBox_, &QComboBox::currentIndexChanged, this, [this](int i) { setColourBy(ColourBy(i)); });
}

Canvas::~Canvas()
{
    if (cancel_)
        *cancel_ = true;
    pool_.clear();
    pool_.waitForDone();
}

// --- what is shown ---

void Canvas::setGraph(std::shared_ptr<const GraphModule> graph, bool fresh)
{
    fresh |= !graph_;
    graph_ = std::move(graph);
    facts_ = nullptr;
    if (!graph_) {
        if (cancel_)
            *cancel_ = true;
        ++revision_;
        pending_ = false;
        scene_ = std::make_shared<CanvasScene>();
        fresh = true;
    }
    if (fresh) {
        selected_.clear();
        selectedModules_.clear();
        current_ = {};
        currentModule_.clear();
        selectedEdge_ = -1;
        hits_.clear();
        hitSet_.clear();
        hit_ = -1;
        query_.clear();
        back_.clear();
        badges_.clear();
    }
    if (!graph_) {
        adopt(scene_, {}, {});
        return;
    }
    Anchor anchor;
    if (fresh) {
        unfolded_ = foldToFit(*graph_, std::clamp(height() / 46, 12, 40)); // that many layers fit, readably
        anchor.kind = Anchor::Fresh;
    } else {
        // Whatever is in the middle stays there.
        anchor = currentItem() >= 0 && rect().contains(toWidget(scene_->rect(currentItem()).center()).toPoint())
            ? anchorFor(currentItem(), toWidget(scene_->rect(currentItem()).center()))
            : anchorAt(QRectF(rect()).center());
        for (uint32_t id : QSet<uint32_t>(selected_))
            if (!graph_->graph.contains(NodeId{ id }))
                selected_.remove(id);
        if (current_ && !graph_->graph.contains(current_))
            current_ = {};
    }
    relayout(anchor);
    if (!fresh && !query_.isEmpty()) {
        const int at = hit_;
        search(query_);
        hit_ = std::min(at, hitCount() - 1);
    }
}

void Canvas::relayout(Anchor anchor)
{
    if (!graph_)
        return;
    if (cancel_)
        *cancel_ = true;
    cancel_ = std::make_shared<std::atomic<bool>>(false);
    pool_.clear();
    const quint64 revision = ++revision_;
    if (!pending_) {
        pending_ = true;
        emit layoutStarted();
    }
    if (anchor.kind == Anchor::None && lastAnchor_.kind == Anchor::Fresh)
        anchor = lastAnchor_; // the opening view was overtaken before it was seen
    lastAnchor_ = anchor;
    pool_.start([this, revision, anchor, graph = graph_, facts = facts_, unfolded = unfolded_, leftToRight = leftToRight_,
                    parameters = showParameters_, normal = TextMeter::of(Theme::font(100)),
                    bold = TextMeter::of(Theme::font(100, QFont::DemiBold)), cancel = cancel_]() mutable {
        if (!facts)
            facts = CanvasFacts::of(graph);
        auto scene = CanvasScene::build(facts, unfolded, leftToRight, parameters, normal, bold, cancel.get());
        QMetaObject::invokeMethod(
            this,
            [this, revision, anchor, unfolded = std::move(unfolded), facts, scene = std::move(scene)] {
                if (facts->graph == graph_)
                    facts_ = facts;
                if (revision != revision_)
                    return; // overtaken
                pending_ = false;
                if (scene)
                    adopt(*scene, unfolded, anchor);
                else
                    emit layoutFailed(QString::fromStdString(scene.message()));
                emit layoutFinished();
            },
            Qt::QueuedConnection);
    });
}

void Canvas::adopt(std::shared_ptr<const CanvasScene> scene, std::set<std::string> unfolded, const Anchor &anchor)
{
    const bool first = scene_->view.items.empty();
    oldRects_.clear();
    const bool animate = animated_ && !first && isVisible() && anchor.kind != Anchor::Fresh && scene->view.items.size() < 3000;
    const auto old = scene_;
    scene_ = std::move(scene);
    unfolded_ = std::move(unfolded);
    hover_ = hoverEdge_ = -1;
    legend_.clear();

    // The anchored thing stays under its place on the screen.
    const QPointF panBefore = pan_;
    lastAnchor_ = {};
    if (anchor.kind == Anchor::Fresh || (first && anchor.kind != Anchor::Item)) {
        openingView();
        back_.clear();
    } else if (anchor.kind == Anchor::Fit)
        fit();
    else if (anchor.kind == Anchor::Item) {
        const int item = anchor.node ? scene_->itemShowing(anchor.node)
                                     : scene_->itemOfModule.value(QString::fromStdString(anchor.module), -1);
        if (item >= 0) {
            const QRectF r = scene_->rect(item);
            const QPointF inside(anchor.fraction.x() * r.width(), std::min(anchor.offset.y(), r.height() * 0.8));
            pan_ = anchor.widget - (r.topLeft() + inside) * zoom_;
        }
    }
    clampPan();
    if (animate) {
        // Old places in terms of the new pan, so that things move on the screen from where they were.
        const QPointF moved = (panBefore - pan_) / zoom_;
        for (size_t i = 0; i < scene_->view.items.size(); ++i) {
            const int index = int(i);
            const QString key = scene_->key(index);
            int before = -1;
            if (scene_->view.items[i].node)
                before = old->itemShowing(scene_->view.items[i].node);
            else
                before = old->itemOfModule.value(key, -1);
            for (int c = index; before < 0 && (c = scene_->containerOf(c)) >= 0;)
                before = old->itemOfModule.value(scene_->key(c), -1);
            if (before >= 0)
                oldRects_.insert(key, old->rect(before).translated(moved));
        }
        progress_ = 0;
        clock_.start();
        timer_.start();
    } else {
        progress_ = 1;
    }
    refreshSelection();
    minimap_->refresh();
    placeChildren();
    update();
    if (!revealAfter_.isEmpty()) {
        const NodeId id = revealAfter_.takeFirst();
        revealAfter_.clear();
        const int item = scene_->itemShowing(id);
        if (item >= 0)
            ensureVisible(scene_->rect(item), true);
    }
    emit foldingChanged();
}

void Canvas::tick()
{
    progress_ = std::min(1.0, double(clock_.elapsed()) / kAnimation);
    if (progress_ >= 1) {
        timer_.stop();
        oldRects_.clear();
    }
    progress_ = 1 - std::pow(1 - progress_, 3);
    update();
}

bool Canvas::waitForLayout(int milliseconds)
{
    QElapsedTimer clock;
    clock.start();
    while (pending_ && clock.elapsed() < milliseconds) {
        pool_.waitForDone(5);
        QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
    }
    return !pending_;
}

void Canvas::setBadges(QHash<uint32_t, NodeBadge> badges)
{
    badges_ = std::move(badges);
    legend_.clear();
    minimap_->refresh();
    update();
}

void Canvas::setColourBy(ColourBy by)
{
    if (by == colourBy_)
        return;
    colourBy_ = by;
    legend_.clear();
    colourBox_->setCurrentIndex(int(by));
    minimap_->refresh();
    update();
    emit colourByChanged(by);
}

void Canvas::setLeftToRight(bool on)
{
    if (on == leftToRight_)
        return;
    leftToRight_ = on;
    Anchor anchor;
    anchor.kind = Anchor::Fresh;
    relayout(anchor);
}

void Canvas::setShowParameters(bool on)
{
    if (on == showParameters_)
        return;
    showParameters_ = on;
    relayout(anchorAt(QRectF(rect()).center()));
}

// --- folding ---

QStringList Canvas::unfolded() const
{
    QStringList keys;
    for (const auto &key : unfolded_)
        keys << QString::fromStdString(key);
    return keys;
}

void Canvas::setUnfolded(const QStringList &keys)
{
    unfolded_.clear();
    for (const QString &key : keys)
        unfolded_.insert(toKey(key));
    relayout(anchorAt(QRectF(rect()).center()));
}

void Canvas::toggleFold(const QString &key)
{
    const int item = scene_->itemOfModule.value(key, -1);
    const Anchor anchor = item >= 0 ? anchorFor(item, toWidget(scene_->rect(item).topLeft() + QPointF(20, 10)))
                                    : anchorAt(QRectF(rect()).center());
    if (!unfolded_.erase(toKey(key)))
        unfolded_.insert(toKey(key));
    relayout(anchor);
}

void Canvas::foldAll()
{
    unfolded_.clear();
    Anchor anchor;
    anchor.kind = Anchor::Fresh;
    relayout(anchor);
}

void Canvas::unfoldAll()
{
    if (!graph_)
        return;
    const Anchor anchor = anchorAt(QRectF(rect()).center());
    unfolded_ = allModuleKeys(*graph_);
    relayout(anchor);
}

Canvas::Anchor Canvas::anchorFor(int item, QPointF widget) const
{
    Anchor a;
    const QRectF r = scene_->rect(item);
    a.kind = Anchor::Item;
    a.node = scene_->view.items[size_t(item)].node;
    a.module = scene_->view.items[size_t(item)].module;
    a.offset = toScene(widget) - r.topLeft();
    a.fraction = { std::clamp(a.offset.x() / std::max(r.width(), 1.0), 0.0, 1.0),
        std::clamp(a.offset.y() / std::max(r.height(), 1.0), 0.0, 1.0) };
    a.offset.setY(std::max(0.0, a.offset.y()));
    a.widget = widget;
    return a;
}

// The box at a place of the widget, or the nearest one.
Canvas::Anchor Canvas::anchorAt(QPointF widget) const
{
    const int hit = itemAt(widget);
    if (hit >= 0)
        return anchorFor(hit, widget);
    const QPointF at = toScene(widget);
    int nearest = -1;
    double least = 1e300;
    for (int i : scene_->itemsIn(QRectF(toScene({ 0, 0 }), toScene({ double(width()), double(height()) })))) {
        const QPointF d = scene_->rect(i).center() - at;
        if (d.x() * d.x() + d.y() * d.y() < least) {
            least = d.x() * d.x() + d.y() * d.y();
            nearest = i;
        }
    }
    return nearest < 0 ? Anchor() : anchorFor(nearest, toWidget(scene_->rect(nearest).center()));
}

// --- view ---

void Canvas::openingView()
{
    fit();
    if (zoom_ >= 0.52 || scene_->view.items.empty())
        return;
    // Too small to read: begin at the top, as wide as it goes.
    const QRectF b = scene_->bounds;
    const double readable = std::clamp((leftToRight_ ? (height() - 60) / b.height() : (width() - 60) / b.width()), 0.0, 1.0);
    if (readable < 0.6 || scene_->view.items.size() > 400)
        return; // the overview says more
    zoom_ = readable;
    pan_ = leftToRight_ ? QPointF(24, (height() - b.height() * zoom_) / 2) : QPointF((width() - b.width() * zoom_) / 2, 24);
    pan_ -= b.topLeft() * zoom_;
    wasFit_ = false;
    clampPan();
    emit zoomChanged(zoom_);
}

void Canvas::fit()
{
    const QRectF b = scene_->bounds;
    if (b.isEmpty())
        return;
    remember();
    const double margin = 28;
    zoom_ = std::clamp(std::min((width() - 2 * margin) / b.width(), (height() - 2 * margin) / b.height()), kLeastZoom, 1.25);
    pan_ = QPointF(width(), height()) / 2 - b.center() * zoom_;
    wasFit_ = true;
    update();
    minimap_->update();
    emit zoomChanged(zoom_);
}

void Canvas::setZoom(double zoom)
{
    remember();
    zoomAt(QPointF(width(), height()) / 2, zoom / zoom_);
}

void Canvas::zoomAt(QPointF widget, double factor)
{
    const double zoom = std::clamp(zoom_ * factor, kLeastZoom, kMostZoom);
    moveTo(widget - (widget - pan_) * (zoom / zoom_), zoom);
}

void Canvas::moveTo(QPointF pan, double zoom)
{
    const bool zoomed = zoom != zoom_;
    pan_ = pan;
    zoom_ = zoom;
    wasFit_ = false;
    clampPan();
    update();
    minimap_->update();
    if (zoomed)
        emit zoomChanged(zoom_);
}

// Some of the graph is always in sight.
void Canvas::clampPan()
{
    const QRectF b = scene_->bounds;
    if (b.isEmpty())
        return;
    auto keep = [this](double pan, double first, double last, double room) {
        const double least = 80 - last * zoom_, most = room - 80 - first * zoom_;
        return least < most ? std::clamp(pan, least, most) : (least + most) / 2;
    };
    pan_ = { keep(pan_.x(), b.left(), b.right(), width()), keep(pan_.y(), b.top(), b.bottom(), height()) };
}

void Canvas::remember()
{
    const Place here{ toScene(QPointF(width(), height()) / 2), zoom_ };
    if (!back_.isEmpty() && back_.last().zoom == here.zoom && back_.last().centre == here.centre)
        return;
    back_ << here;
    if (back_.size() > 100)
        back_.removeFirst();
}

void Canvas::goBack()
{
    const QPointF centre = toScene(QPointF(width(), height()) / 2);
    while (!back_.isEmpty()) {
        const Place place = back_.takeLast();
        if (place.zoom == zoom_ && QLineF(place.centre, centre).length() * zoom_ < 1)
            continue;
        moveTo(QPointF(width(), height()) / 2 - place.centre * place.zoom, place.zoom);
        return;
    }
}

void Canvas::ensureVisible(const QRectF &r, bool centre)
{
    const QRectF seen(toWidget(r.topLeft()), r.size() * zoom_);
    const QRectF room = QRectF(rect()).adjusted(30, 30, -30, -30);
    if (room.contains(seen))
        return;
    double zoom = zoom_;
    if (centre) {
        remember();
        if (zoom < 0.7)
            zoom = 0.9;
        const QPointF middle = r.height() * zoom > room.height() || r.width() * zoom > room.width() ? r.topLeft()
                + QPointF(std::min(r.width() / 2, room.width() / 2 / zoom), std::min(r.height() / 2, room.height() / 2 / zoom))
                                                                                                    : r.center();
        moveTo(QPointF(width(), height()) / 2 - middle * zoom, zoom);
        return;
    }
    QPointF pan = pan_;
    if (seen.left() < room.left() || seen.width() > room.width())
        pan.rx() += room.left() - seen.left();
    else if (seen.right() > room.right())
        pan.rx() -= seen.right() - room.right();
    if (seen.top() < room.top() || seen.height() > room.height())
        pan.ry() += room.top() - seen.top();
    else if (seen.bottom() > room.bottom())
        pan.ry() -= seen.bottom() - room.bottom();
    moveTo(pan, zoom_);
}

void Canvas::centreOn(NodeId id)
{
    const int item = scene_->itemShowing(id);
    if (item < 0)
        return;
    remember();
    const double zoom = zoom_ < 0.7 ? 0.9 : zoom_;
    moveTo(QPointF(width(), height()) / 2 - scene_->rect(item).center() * zoom, zoom);
}

QRectF Canvas::itemRect(NodeId id) const
{
    const int item = scene_->itemOfNode.value(id.value, -1);
    if (item < 0 || scene_->isModule(item))
        return {};
    const QRectF r = scene_->rect(item);
    return { toWidget(r.topLeft()), r.size() * zoom_ };
}

QRectF Canvas::moduleRect(const QString &key) const
{
    const int item = scene_->itemOfModule.value(key, -1);
    if (item < 0)
        return {};
    const QRectF r = scene_->rect(item);
    return { toWidget(r.topLeft()), r.size() * zoom_ };
}

// --- painting ---

CanvasStyle Canvas::style() const
{
    CanvasStyle st;
    st.dark = Theme::isDark();
    st.colourBy = colourBy_;
    st.badges = &badges_;
    st.from = &oldRects_;
    st.progress = progress_;
    st.hover = hover_;
    st.hoverEdge = hoverEdge_;
    st.selectedEdge = selectedEdge_;
    st.focus = hasFocus() ? currentItem() : -1;
    for (uint32_t id : selected_) {
        const int item = scene_->itemShowing(NodeId{ id });
        if (item >= 0)
            st.selected.insert(item);
    }
    for (const QString &key : selectedModules_) {
        const int item = scene_->itemOfModule.value(key, -1);
        if (item >= 0)
            st.selected.insert(item);
    }
    for (int item : st.selected) {
        for (int e : scene_->in[size_t(item)])
            st.producers.insert(scene_->view.edges[size_t(e)].from);
        for (int e : scene_->out[size_t(item)])
            st.consumers.insert(scene_->view.edges[size_t(e)].to);
    }
    if (selectedEdge_ >= 0) {
        st.producers.insert(scene_->view.edges[size_t(selectedEdge_)].from);
        st.consumers.insert(scene_->view.edges[size_t(selectedEdge_)].to);
    }
    for (NodeId id : hits_) {
        const int item = scene_->itemShowing(id);
        if (item < 0)
            continue;
        if (scene_->isModule(item))
            ++st.hiddenHits[item];
        else
            st.hits.insert(item);
    }
    if (hit_ >= 0)
        st.currentHit = scene_->itemShowing(hits_[hit_]);
    return st;
}

void Canvas::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    painter.fillRect(rect(), Theme::color(Theme::Role::Ground));
    if (!scene_->view.items.empty()) {
        const QRectF visible(toScene({ 0, 0 }), toScene({ double(width()), double(height()) }));
        painter.save();
        painter.translate(std::round(pan_.x()), std::round(pan_.y()));
        paintScene(painter, *scene_, style(), visible, zoom_);
        painter.restore();
        paintLegend(painter);
    } else if (pending_) {
        painter.setPen(Theme::color(Theme::Role::TextMuted));
        painter.setFont(Theme::font(13));
        painter.drawText(rect(), Qt::AlignCenter, tr("Laying out the graph…"));
    }
    if (drag_ == Drag::Band) {
        QColor c = Theme::color(Theme::Role::Accent);
        painter.setPen(QPen(c, 1, Qt::DashLine));
        c.setAlpha(30);
        painter.setBrush(c);
        painter.drawRect(QRectF(pressed_, dragged_).normalized());
    }
    if (hasFocus()) {
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(Theme::color(Theme::Role::Accent), 1));
        painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
    }
}

// Bottom left: the words for the colours in use; with a selection, also the two directions.
void Canvas::paintLegend(QPainter &painter)
{
    const CanvasStyle st = style();
    if (legend_.isEmpty() && scene_->facts) {
        for (auto it = scene_->facts->texts.constBegin(); it != scene_->facts->texts.constEnd(); ++it) {
            const NodeColour c = nodeColour(*scene_->facts, NodeId{ it.key() }, st);
            auto row = std::find_if(legend_.begin(), legend_.end(), [&](const LegendRow &r) { return r.word == c.word; });
            row == legend_.end() ? void(legend_ << LegendRow{ c.colour, c.word, 1 }) : void(++row->count);
        }
        std::sort(legend_.begin(), legend_.end(),
            [](const LegendRow &a, const LegendRow &b) { return std::pair(-a.count, a.word) < std::pair(-b.count, b.word); });
    }
    QList<LegendRow> rows = legend_;
    if (!st.producers.isEmpty())
        rows << LegendRow{ Theme::color(Theme::Role::Producer), tr("gives to the selection"), 0 };
    if (!st.consumers.isEmpty())
        rows << LegendRow{ Theme::color(Theme::Role::Consumer), tr("uses the selection"), 0 };

    const QFont font = Theme::font(11);
    const QFontMetricsF metrics(font);
    const double line = metrics.height() + 3;
    const double top = colourBox_->geometry().top() - 8 - line * double(rows.size());
    double widest = 0;
    for (const LegendRow &r : rows)
        widest = std::max(widest, metrics.horizontalAdvance(r.count ? r.word + QStringLiteral("  %1").arg(r.count) : r.word));
    const QRectF frame(10, top - 7, std::max(widest + 36, double(colourBox_->geometry().right()) + 2), height() - 10 - (top - 7));
    QColor back = Theme::color(Theme::Role::Raised);
    back.setAlpha(235);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Theme::color(Theme::Role::Border));
    painter.setBrush(back);
    painter.drawRoundedRect(frame.adjusted(0.5, 0.5, 0.5, 0.5), 5, 5);
    painter.setFont(font);
    double y = top;
    for (const LegendRow &r : rows) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(r.colour);
        if (!r.count)
            painter.drawRect(QRectF(18, y + line / 2 - 2, 11, 3));
        else
            painter.drawRoundedRect(QRectF(18, y + line / 2 - 5, 9, 9), 2, 2);
        painter.setPen(Theme::color(Theme::Role::Text));
        painter.drawText(QPointF(36 - 2, y + metrics.ascent() + 1), r.word);
        if (r.count) {
            painter.setPen(Theme::color(Theme::Role::TextMuted));
            painter.drawText(QPointF(34 + metrics.horizontalAdvance(r.word + QStringLiteral("  ")), y + metrics.ascent() + 1),
                QString::number(r.count));
        }
        y += line;
    }
    painter.setPen(Theme::color(Theme::Role::TextMuted));
    painter.drawText(QRectF(18, colourBox_->y(), 70, colourBox_->height()), Qt::AlignVCenter, tr("Colour by"));
}

void Canvas::placeChildren()
{
    const bool any = !scene_->view.items.empty();
    minimap_->setVisible(any && width() > 420 && height() > 320);
    minimap_->move(width() - minimap_->width() - 12, height() - minimap_->height() - 12);
    colourBox_->setVisible(any);
    colourBox_->setFont(Theme::font(11));
    const int label = int(QFontMetricsF(Theme::font(11)).horizontalAdvance(tr("Colour by"))) + 26;
    colourBox_->resize(std::max(116, colourBox_->sizeHint().width()), 24);
    colourBox_->move(label, height() - 10 - 24 - 6);
}

void Canvas::resizeEvent(QResizeEvent *event)
{
    if (wasFit_ && !scene_->view.items.empty()) {
        fit();
    } else if (event->oldSize().isValid()) {
        // What is in the middle stays in the middle, except that the opening view starts at the top.
        pan_ += QPointF(event->size().width() - event->oldSize().width(), 0) / 2;
        clampPan();
    }
    placeChildren();
    minimap_->refresh();
}

void Canvas::paintTo(QPainter &painter, const QRectF &target)
{
    const QRectF b = scene_->bounds;
    if (b.isEmpty())
        return;
    CanvasStyle st = style();
    st.progress = 1;
    st.hover = st.hoverEdge = st.focus = -1;
    const double k = std::min(target.width() / b.width(), target.height() / b.height());
    painter.save();
    painter.translate(target.center() - b.center() * k);
    painter.scale(k, k);
    paintScene(painter, *scene_, st, b, 1);
    painter.restore();
}

QImage Canvas::renderToImage(QSize size)
{
    QImage image(size, QImage::Format_ARGB32_Premultiplied);
    image.fill(Theme::color(Theme::Role::Ground));
    const QRectF b = scene_->bounds;
    if (b.isEmpty() || size.isEmpty())
        return image;
    CanvasStyle st = style();
    st.progress = 1;
    st.hover = st.hoverEdge = st.focus = -1;
    const double k = std::min({ (size.width() - 24) / b.width(), (size.height() - 24) / b.height(), 2.0 });
    QPainter painter(&image);
    const QPointF origin = QPointF(size.width(), size.height()) / 2 - b.center() * k;
    painter.translate(std::round(origin.x()), std::round(origin.y()));
    paintScene(painter, *scene_, st, b, k);
    return image;
}

} // namespace fb
