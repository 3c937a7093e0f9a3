// Fuseboard: the minimap. GPL-3.0-or-later.
#include "views/minimap.h"

#include <QMouseEvent>
#include <QPainter>

#include <algorithm>

#include "views/canvas.h"
#include "views/theme.h"

namespace fb
{

Minimap::Minimap(Canvas *canvas)
    : QWidget(canvas)
    , canvas_(canvas)
{
    setFixedSize(172, 132);
    setCursor(Qt::PointingHandCursor);
    setAccessibleName(tr("Minimap"));
    setToolTip(tr("The whole graph; drag the frame to move"));
}

void Minimap::refresh()
{
    picture_ = {};
    update();
}

double Minimap::scale() const
{
    const QRectF b = canvas_->scene().bounds;
    return std::min((width() - 12) / std::max(1.0, b.width()), (height() - 12) / std::max(1.0, b.height()));
}

QPointF Minimap::origin() const
{
    const QRectF b = canvas_->scene().bounds;
    return QRectF(rect()).center() - b.center() * scale();
}

void Minimap::paintEvent(QPaintEvent *)
{
    const double k = scale();
    if (picture_.isNull()) {
        picture_ = QPixmap(size() * devicePixelRatioF());
        picture_.setDevicePixelRatio(devicePixelRatioF());
        picture_.fill(Theme::mix(Theme::color(Theme::Role::Ground), Theme::color(Theme::Role::Surface), 0.6));
        QPainter painter(&picture_);
        painter.translate(origin());
        CanvasStyle style = canvas_->style();
        style.from = nullptr;
        style.progress = 1;
        style.hover = style.focus = -1;
        paintScene(painter, canvas_->scene(), style, canvas_->scene().bounds, k);
    }
    QPainter painter(this);
    painter.drawPixmap(0, 0, picture_);
    const QRectF seen(canvas_->toScene({ 0, 0 }) * k + origin(),
        canvas_->toScene({ double(canvas_->width()), double(canvas_->height()) }) * k + origin());
    const QRectF frame = seen.intersected(QRectF(rect()).adjusted(2, 2, -2, -2));
    QColor shade = Theme::color(Theme::Role::Accent);
    painter.setPen(QPen(shade, 1.5));
    shade.setAlpha(28);
    painter.setBrush(shade);
    painter.drawRect(frame);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(Theme::color(Theme::Role::Border));
    painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
}

void Minimap::go(QPointF to)
{
    const QPointF centre = (to - origin()) / scale();
    canvas_->moveTo(QPointF(canvas_->width(), canvas_->height()) / 2 - centre * canvas_->zoom(), canvas_->zoom());
}

void Minimap::mousePressEvent(QMouseEvent *event)
{
    canvas_->remember();
    go(event->position());
}

void Minimap::mouseMoveEvent(QMouseEvent *event)
{
    if (event->buttons() & Qt::LeftButton)
        go(event->position());
}

} // namespace fb
