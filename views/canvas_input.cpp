// Fuseboard: the canvas under mouse, keys and search. GPL-3.0-or-later.
#include <QContextMenuEvent>
#include <QGestureEvent>
#include <QMouseEvent>
#include <QPinchGesture>
#include <QRegularExpression>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

#include "views/canvas.h"
#include "views/canvas_metrics.h"
#include "views/minimap.h"

namespace fb
{

namespace
{

double distanceToSegment(QPointF p, QPointF a, QPointF b)
{
    const QPointF d = b - a;
    const double length = d.x() * d.x() + d.y() * d.y();
    const double t = length > 0 ? std::clamp(QPointF::dotProduct(p - a, d) / length, 0.0, 1.0) : 0;
    const QPointF q = a + d * t - p;
    return std::hypot(q.x(), q.y());
}

bool contains(const std::string &text, const QString &word)
{
    return QString::fromStdString(text).contains(word, Qt::CaseInsensitive);
}

} // namespace

// --- finding ---

// The innermost box; an unfolded module only by its title or its ground.
int Canvas::itemAt(QPointF widget) const
{
    const QPointF at = toScene(widget);
    int found = -1;
    for (int i : scene_->itemsIn(QRectF(at - QPointF(0.5, 0.5), QSizeF(1, 1))))
        if (scene_->rect(i).contains(at))
            found = i; // children come after their parents
    return found;
}

int Canvas::edgeAt(QPointF widget) const
{
    const QPointF at = toScene(widget);
    const double reach = 5 / zoom_;
    int found = -1;
    double least = reach;
    for (int e : scene_->edgesIn(QRectF(at - QPointF(reach, reach), QSizeF(2 * reach, 2 * reach)))) {
        const auto &line = scene_->layout.edges[size_t(e)];
        for (size_t k = 1; k < line.size(); ++k) {
            const double d = distanceToSegment(at, { line[k - 1].x, line[k - 1].y }, { line[k].x, line[k].y });
            if (d < least) {
                least = d;
                found = e;
            }
        }
    }
    return found;
}

int Canvas::currentItem() const
{
    if (current_)
        return scene_->itemShowing(current_);
    return currentModule_.empty() ? -1 : scene_->itemOfModule.value(QString::fromStdString(currentModule_), -1);
}

// --- selection ---

QList<NodeId> Canvas::selectedNodes() const
{
    QList<NodeId> nodes;
    for (uint32_t id : selected_)
        nodes << NodeId{ id };
    if (graph_)
        std::sort(nodes.begin(), nodes.end(),
            [&](NodeId a, NodeId b) { return graph_->graph.position(a) < graph_->graph.position(b); });
    return nodes;
}

QStringList Canvas::selectedModules() const
{
    QStringList keys(selectedModules_.begin(), selectedModules_.end());
    keys.sort();
    return keys;
}

void Canvas::emitSelection()
{
    minimap_->refresh();
    update();
    emit selectionChanged(selectedNodes(), selectedModules());
}

void Canvas::select(int item, bool add)
{
    selectedEdge_ = -1;
    edgeProducer_ = edgeConsumer_ = {};
    if (!add) {
        selected_.clear();
        selectedModules_.clear();
    }
    if (item >= 0) {
        const ViewItem &i = scene_->view.items[size_t(item)];
        current_ = i.node;
        currentModule_ = i.module;
        if (i.node)
            add &&selected_.contains(i.node.value) ? void(selected_.remove(i.node.value)) : void(selected_.insert(i.node.value));
        else {
            const QString key = QString::fromStdString(i.module);
            add &&selectedModules_.contains(key) ? void(selectedModules_.remove(key)) : void(selectedModules_.insert(key));
        }
    } else if (!add) {
        current_ = {};
        currentModule_.clear();
    }
    emitSelection();
}

void Canvas::selectEdge(int edge)
{
    selected_.clear();
    selectedModules_.clear();
    current_ = {};
    currentModule_.clear();
    selectedEdge_ = edge;
    edgeProducer_ = scene_->view.edges[size_t(edge)].producer;
    edgeConsumer_ = scene_->view.edges[size_t(edge)].consumer;
    emitSelection();
    emit edgeSelected(edgeProducer_, edgeConsumer_);
    emit hoverText(describeEdge(edge));
}

// After a layout: the edge index belonged to the last scene.
void Canvas::refreshSelection()
{
    selectedEdge_ = -1;
    for (size_t e = 0; edgeProducer_ && e < scene_->view.edges.size(); ++e)
        if (scene_->view.edges[e].producer == edgeProducer_ && scene_->view.edges[e].consumer == edgeConsumer_)
            selectedEdge_ = int(e);
}

void Canvas::setSelection(const QList<NodeId> &nodes, bool reveal)
{
    QSet<uint32_t> wanted;
    for (NodeId id : nodes)
        if (graph_ && graph_->graph.contains(id))
            wanted.insert(id.value);
    const bool changed = wanted != selected_ || !selectedModules_.isEmpty() || selectedEdge_ >= 0;
    selected_ = wanted;
    selectedModules_.clear();
    selectedEdge_ = -1;
    edgeProducer_ = edgeConsumer_ = {};
    currentModule_.clear();
    current_ = wanted.isEmpty() ? NodeId() : nodes.first();
    if (changed)
        emitSelection();
    if (reveal && current_)
        unfoldFor(current_, true);
}

void Canvas::selectModule(const QString &key, bool reveal)
{
    if (!graph_)
        return;
    const auto all = allModuleKeys(*graph_);
    if (!all.count(key.toStdString()))
        return;
    selected_.clear();
    selectedModules_ = { key };
    selectedEdge_ = -1;
    edgeProducer_ = edgeConsumer_ = {};
    current_ = {};
    currentModule_ = key.toStdString();
    emitSelection();
    if (!reveal)
        return;
    if (const int item = scene_->itemOfModule.value(key, -1); item >= 0) {
        ensureVisible(scene_->rect(item), true);
        return;
    }
    for (NodeId id : graph_->graph.order()) {
        auto chain = boxAncestors(graph_->graph[id]);
        auto at = std::find(chain.begin(), chain.end(), currentModule_);
        if (at == chain.end())
            continue;
        unfolded_.insert(chain.begin(), at);
        revealAfter_ = { id };
        relayout(anchorAt(QRectF(rect()).center()));
        return;
    }
}

void Canvas::clearSelection()
{
    if (selected_.isEmpty() && selectedModules_.isEmpty() && selectedEdge_ < 0)
        return;
    select(-1, false);
}

// Opens what hides a node, then brings it into sight.
void Canvas::unfoldFor(NodeId id, bool centre)
{
    if (!graph_ || !graph_->graph.contains(id))
        return;
    bool hidden = false;
    for (const auto &key : boxAncestors(graph_->graph[id]))
        hidden |= unfolded_.insert(key).second;
    if (hidden || pending_) {
        remember();
        revealAfter_ = { id };
        relayout(anchorAt(QRectF(rect()).center()));
        return;
    }
    const int item = scene_->itemShowing(id);
    if (item >= 0)
        ensureVisible(scene_->rect(item), centre);
}

// --- search ---

int Canvas::search(const QString &query)
{
    query_ = query.trimmed();
    hits_.clear();
    hitSet_.clear();
    hit_ = -1;
    if (graph_ && !query_.isEmpty()) {
        struct Term {
            QString field, word;
            QRegularExpression re;
        };
        QList<Term> terms;
        // A regular expression takes the rest of the line: it may hold spaces.
        for (qsizetype i = 0; i < query_.size();) {
            if (query_[i].isSpace()) {
                ++i;
                continue;
            }
            const bool re = QStringView(query_).mid(i).startsWith(QLatin1String("re:"));
            qsizetype end = re ? query_.size() : i;
            while (end < query_.size() && !query_[end].isSpace())
                ++end;
            const QString token = query_.mid(i, end - i);
            i = end;
            Term t{ {}, token, {} };
            for (const char *field : { "re", "op", "shape", "dtype", "module" })
                if (token.startsWith(QLatin1String(field) + QLatin1Char(':')))
                    t = { QString::fromLatin1(field), token.mid(qsizetype(strlen(field)) + 1), {} };
            if (t.field == QLatin1String("re"))
                t.re = QRegularExpression(t.word);
            terms << t;
        }
        if (!facts_)
            facts_ = CanvasFacts::of(graph_);
        for (NodeId id : graph_->graph.order()) {
            const Node &n = graph_->graph[id];
            const NodeText t = facts_->texts.value(id.value);
            const bool all = std::all_of(terms.begin(), terms.end(), [&](const Term &term) {
                if (term.field.isEmpty())
                    return contains(n.name, term.word) || contains(n.target, term.word)
                        || t.title.contains(term.word, Qt::CaseInsensitive);
                if (term.field == QLatin1String("re"))
                    return term.re.isValid()
                        && (term.re.match(QString::fromStdString(n.name)).hasMatch() || term.re.match(t.subtitle).hasMatch());
                if (term.field == QLatin1String("shape"))
                    return !t.shape.isEmpty() && t.shape.contains(term.word, Qt::CaseInsensitive);
                if (term.field == QLatin1String("dtype"))
                    return t.dtype && contains(std::string(dtypeName(*t.dtype)), term.word);
                if (term.field == QLatin1String("module"))
                    return contains(n.op == Opcode::CallModule ? n.target : n.modulePath(), term.word);
                const OpInfo *info = opInfo(*graph_, n);
                return contains(std::string(opcodeName(n.op)), term.word) || t.title.contains(term.word, Qt::CaseInsensitive)
                    || (n.op != Opcode::CallModule && contains(n.target, term.word))
                    || (info && contains(std::string(info->kind), term.word));
            });
            if (all && !terms.isEmpty()) {
                hits_ << id;
                hitSet_.insert(id.value);
            }
        }
    }
    minimap_->refresh();
    update();
    return hitCount();
}

bool Canvas::nextHit()
{
    stepHit(1);
    return hit_ >= 0;
}

bool Canvas::previousHit()
{
    stepHit(-1);
    return hit_ >= 0;
}

void Canvas::stepHit(int by)
{
    if (hits_.isEmpty())
        return;
    const int count = hitCount();
    hit_ = hit_ < 0 ? (by > 0 ? 0 : count - 1) : (hit_ + by + count) % count;
    setSelection({ hits_[hit_] }, true);
    update();
}

// --- mouse ---

void Canvas::wheelEvent(QWheelEvent *event)
{
    const double turn = event->angleDelta().y() ? event->angleDelta().y() : event->pixelDelta().y() * 3;
    if (turn != 0)
        zoomAt(event->position(), std::pow(1.0015, turn));
    event->accept();
}

bool Canvas::event(QEvent *event)
{
    if (event->type() == QEvent::Gesture) {
        auto *gesture = static_cast<QGestureEvent *>(event)->gesture(Qt::PinchGesture);
        if (auto *pinch = static_cast<QPinchGesture *>(gesture)) {
            zoomAt(mapFromGlobal(pinch->hotSpot()), pinch->scaleFactor());
            return true;
        }
    }
    if (event->type() == QEvent::NativeGesture) {
        auto *native = static_cast<QNativeGestureEvent *>(event);
        if (native->gestureType() == Qt::ZoomNativeGesture) {
            zoomAt(native->position(), 1 + native->value());
            return true;
        }
    }
    return QWidget::event(event);
}

void Canvas::mousePressEvent(QMouseEvent *event)
{
    setFocus(Qt::MouseFocusReason);
    if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton)
        return;
    pressed_ = dragged_ = event->position();
    panAtPress_ = pan_;
    drag_ = event->button() == Qt::MiddleButton ? Drag::Pan : Drag::Press;
}

void Canvas::mouseMoveEvent(QMouseEvent *event)
{
    dragged_ = event->position();
    if (drag_ == Drag::Press && (dragged_ - pressed_).manhattanLength() >= 5) {
        drag_ = event->modifiers() & Qt::ShiftModifier ? Drag::Band : Drag::Pan;
        setCursor(drag_ == Drag::Band ? Qt::CrossCursor : Qt::ClosedHandCursor);
        if (drag_ == Drag::Pan)
            remember();
    }
    if (drag_ == Drag::Pan)
        moveTo(panAtPress_ + dragged_ - pressed_, zoom_);
    else if (drag_ == Drag::Band)
        update();
    else if (drag_ == Drag::None) {
        const int item = itemAt(dragged_);
        const bool onBox = item >= 0 && !scene_->isContainer(item);
        const int edge = onBox ? -1 : edgeAt(dragged_);
        if (item != hover_ || edge != hoverEdge_) {
            hover_ = item;
            hoverEdge_ = edge;
            update();
            const QString words = edge >= 0 ? describeEdge(edge) : item >= 0 ? describe(item) : QString();
            setToolTip(onBox || edge >= 0 ? words : QString());
            emit hoverText(words.section(QLatin1Char('\n'), 0, 0));
        }
    }
}

void Canvas::mouseReleaseEvent(QMouseEvent *event)
{
    const Drag was = drag_;
    drag_ = Drag::None;
    unsetCursor();
    const bool add = event->modifiers() & Qt::ShiftModifier;
    if (was == Drag::Band) {
        const QRectF band(toScene(pressed_), toScene(event->position()));
        bool any = false;
        for (int i : scene_->itemsIn(band.normalized())) {
            if (scene_->isContainer(i))
                continue;
            const ViewItem &item = scene_->view.items[size_t(i)];
            item.node ? void(selected_.insert(item.node.value))
                      : void(selectedModules_.insert(QString::fromStdString(item.module)));
            if (!any) {
                current_ = item.node;
                currentModule_ = item.module;
            }
            any = true;
        }
        selectedEdge_ = -1;
        edgeProducer_ = edgeConsumer_ = {};
        emitSelection();
        return;
    }
    if (was != Drag::Press || event->button() != Qt::LeftButton)
        return;
    const int item = itemAt(event->position());
    // The little triangle of a module.
    if (item >= 0 && scene_->isContainer(item)) {
        const QRectF r = moduleRect(QString::fromStdString(scene_->view.items[size_t(item)].module));
        if (foldMark(r, zoom_).contains(event->position())) {
            activate(item, event->position());
            return;
        }
    }
    const int edge = item < 0 || scene_->isContainer(item) ? edgeAt(event->position()) : -1;
    if (edge >= 0 && !add)
        selectEdge(edge);
    else if (item >= 0 && scene_->isContainer(item) && toScene(event->position()).y() - scene_->rect(item).top() > canvas::kHeader
        && !add)
        clearSelection(); // the ground inside a module
    else if (item >= 0)
        select(item, add);
    else if (!add)
        clearSelection();
}

void Canvas::mouseDoubleClickEvent(QMouseEvent *event)
{
    drag_ = Drag::None;
    if (event->button() != Qt::LeftButton)
        return;
    const int item = itemAt(event->position());
    if (item >= 0)
        activate(item, event->position());
}

void Canvas::activate(int item, QPointF widget)
{
    const ViewItem &i = scene_->view.items[size_t(item)];
    if (i.node) {
        emit nodeActivated(i.node);
        return;
    }
    const Anchor anchor = anchorFor(item, widget);
    remember();
    if (!unfolded_.erase(i.module))
        unfolded_.insert(i.module);
    relayout(anchor);
}

void Canvas::leaveEvent(QEvent *)
{
    hover_ = hoverEdge_ = -1;
    update();
    emit hoverText({});
}

void Canvas::contextMenuEvent(QContextMenuEvent *event)
{
    if (event->reason() == QContextMenuEvent::Mouse) {
        const int item = itemAt(event->pos());
        if (item >= 0) {
            const ViewItem &i = scene_->view.items[size_t(item)];
            const bool chosen
                = i.node ? selected_.contains(i.node.value) : selectedModules_.contains(QString::fromStdString(i.module));
            if (!chosen)
                select(item, false);
        }
        emit contextMenuRequested(selectedNodes(), selectedModules(), event->globalPos());
    } else {
        const int item = currentItem();
        const QPointF at = item < 0 ? QPointF(width(), height()) / 2 : toWidget(scene_->rect(item).center());
        emit contextMenuRequested(selectedNodes(), selectedModules(), mapToGlobal(at.toPoint()));
    }
    event->accept();
}

// --- keys ---

void Canvas::keyPressEvent(QKeyEvent *event)
{
    const bool control = event->modifiers() & Qt::ControlModifier, alt = event->modifiers() & Qt::AltModifier;
    switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right:
    case Qt::Key_Up:
    case Qt::Key_Down:
        if (alt && event->key() == Qt::Key_Left)
            goBack();
        else if (!alt && !control)
            step(Qt::Key(event->key()));
        else
            break;
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (const int item = currentItem(); item >= 0)
            activate(item, toWidget(scene_->rect(item).topLeft() + QPointF(20, 10)));
        return;
    case Qt::Key_Escape:
        if (selected_.isEmpty() && selectedModules_.isEmpty() && selectedEdge_ < 0 && hits_.isEmpty())
            break;
        clearSelection();
        search({});
        return;
    case Qt::Key_Menu: {
        QContextMenuEvent menu(QContextMenuEvent::Keyboard, rect().center(), mapToGlobal(rect().center()));
        contextMenuEvent(&menu);
        return;
    }
    case Qt::Key_0:
        if (!control)
            break;
        fit();
        return;
    case Qt::Key_1:
        if (!control)
            break;
        trueSize();
        return;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        zoomAt(QPointF(width(), height()) / 2, 1.2);
        return;
    case Qt::Key_Minus:
        zoomAt(QPointF(width(), height()) / 2, 1 / 1.2);
        return;
    case Qt::Key_A:
        if (!control)
            break;
        selected_.clear();
        selectedModules_.clear();
        for (const ViewItem &i : scene_->view.items)
            if (i.node)
                selected_.insert(i.node.value);
            else if (i.folded)
                selectedModules_.insert(QString::fromStdString(i.module));
        emitSelection();
        return;
    default:
        break;
    }
    QWidget::keyPressEvent(event);
}

// Along the flow: to a user or a producer, nearest first. Across it: to the neighbour on that side.
void Canvas::step(Qt::Key key)
{
    if (scene_->view.items.empty())
        return;
    if (leftToRight_)
        key = key == Qt::Key_Left  ? Qt::Key_Up
            : key == Qt::Key_Right ? Qt::Key_Down
            : key == Qt::Key_Up    ? Qt::Key_Left
                                   : Qt::Key_Right;
    int next = -1;
    if (selectedEdge_ >= 0) {
        const ViewEdge &e = scene_->view.edges[size_t(selectedEdge_)];
        next = key == Qt::Key_Down ? e.to : key == Qt::Key_Up ? e.from : -1;
    } else if (const int from = currentItem(); from < 0) {
        for (size_t i = 0; i < scene_->view.items.size() && next < 0; ++i)
            if (!scene_->isContainer(int(i)))
                next = int(i);
    } else {
        const QPointF c = scene_->rect(from).center();
        auto across = [&](QPointF p) { return leftToRight_ ? p.y() : p.x(); };
        auto along = [&](QPointF p) { return leftToRight_ ? p.x() : p.y(); };
        double least = 1e300;
        if (key == Qt::Key_Down || key == Qt::Key_Up) {
            const bool down = key == Qt::Key_Down;
            for (int e : down ? scene_->out[size_t(from)] : scene_->in[size_t(from)]) {
                const int to = down ? scene_->view.edges[size_t(e)].to : scene_->view.edges[size_t(e)].from;
                const QPointF d = scene_->rect(to).center() - c;
                const double far = std::abs(along(d)) + 0.5 * std::abs(across(d));
                if (far < least) {
                    least = far;
                    next = to;
                }
            }
            // Of an unfolded module: its first or last box.
            if (scene_->isContainer(from))
                for (size_t i = 0; i < scene_->view.items.size(); ++i)
                    if (scene_->containerOf(int(i)) == from && !scene_->isContainer(int(i)) && (next < 0 || !down)) {
                        next = int(i);
                        if (down)
                            break;
                    }
        } else {
            const QRectF r = scene_->rect(from);
            const double reach = 1200;
            for (int i : scene_->itemsIn(r.adjusted(-reach, -reach, reach, reach))) {
                const QPointF d = scene_->rect(i).center() - c;
                const double side = key == Qt::Key_Left ? -across(d) : across(d);
                if (i == from || scene_->isContainer(i) || side < 10 || std::abs(along(d)) > side)
                    continue;
                const double far = side + 3 * std::abs(along(d));
                if (far < least) {
                    least = far;
                    next = i;
                }
            }
        }
    }
    if (next < 0)
        return;
    select(next, false);
    ensureVisible(scene_->rect(next));
    emit hoverText(describe(next).section(QLatin1Char('\n'), 0, 0));
}

// --- words ---

QString Canvas::describe(int item) const
{
    const ViewItem &i = scene_->view.items[size_t(item)];
    if (!i.node) {
        QString words
            = tr("%1  %2, %3").arg(QString::fromStdString(i.module), canvas::moduleTitle(i), canvas::nodesInside(i.count));
        const auto alike = scene_->facts->identical.find(i.module);
        if (alike != scene_->facts->identical.end() && alike->second > 1)
            words += tr("\n%1 blocks are like this one").arg(alike->second);
        return words;
    }
    const Node &n = scene_->facts->graph->graph[i.node];
    const NodeText *t = scene_->text(item);
    QStringList lines{ QString::fromStdString(n.name) + QStringLiteral("  ") + t->title
        + (t->shape.isEmpty() ? QString() : QStringLiteral("  ") + t->shape) };
    if (!t->summary.isEmpty() && t->summary != t->shape)
        lines << t->summary;
    if (n.source && !n.source->file.empty())
        lines << tr("%1:%2").arg(QString::fromStdString(n.source->file)).arg(n.source->line);
    const NodeBadge badge = badges_.value(i.node.value);
    if (!badge.reason.isEmpty())
        lines << badge.reason;
    if (!badge.warning.isEmpty())
        lines << badge.warning;
    if (badge.edited)
        lines << tr("edited");
    if (badge.shared)
        lines << tr("shares its weights");
    if (badge.leaf)
        lines << tr("marked as leaf");
    if (t->mutates)
        lines << tr("changes its input in place");
    return lines.join(QLatin1Char('\n'));
}

QString Canvas::describeEdge(int edge) const
{
    const ViewEdge &e = scene_->view.edges[size_t(edge)];
    const auto &graph = scene_->facts->graph->graph;
    QString words
        = QString::fromStdString(graph[e.producer].name) + QStringLiteral(" → ") + QString::fromStdString(graph[e.consumer].name);
    const QString shape = scene_->facts->texts.value(e.producer.value).shape;
    if (e.bundled > 1)
        words += tr("  and %1 more values").arg(e.bundled - 1);
    else if (!shape.isEmpty())
        words += QStringLiteral("  ") + shape;
    return words;
}

void Canvas::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange) {
        legend_.clear();
        minimap_->refresh();
        update();
    } else if (event->type() == QEvent::FontChange && graph_) {
        relayout(anchorAt(QRectF(rect()).center()));
    }
    QWidget::changeEvent(event);
}

} // namespace fb
