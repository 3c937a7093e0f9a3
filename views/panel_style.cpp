#include "views/panel_style.h"

#include <QGuiApplication>
#include <QLabel>
#include <QLocale>
#include <QPainter>
#include <QPainterPath>
#include <QToolButton>
#include <cmath>

#include "views/theme.h"

namespace fb
{

QLabel *emptyLabel(const QString &text, QWidget *parent)
{
    auto *label = new QLabel(text, parent);
    label->setAlignment(Qt::AlignCenter);
    label->setWordWrap(true);
    label->setMargin(16);
    label->setForegroundRole(QPalette::PlaceholderText);
    return label;
}

QToolButton *textButton(const QString &text, QWidget *parent)
{
    auto *button = new QToolButton(parent);
    button->setText(text);
    button->setAccessibleName(text);
    button->setToolButtonStyle(Qt::ToolButtonTextOnly);
    return button;
}

QIcon markIcon(Mark mark)
{
    using R = Theme::Role;
    const qreal ratio = qApp->devicePixelRatio();
    QPixmap pixmap(QSizeF(16 * ratio, 16 * ratio).toSize());
    pixmap.setDevicePixelRatio(ratio);
    pixmap.fill(Qt::transparent);
    QPainter p(&pixmap);
    p.setRenderHint(QPainter::Antialiasing);
    p.setPen(Qt::NoPen);
    const QPen stroke(Theme::color(R::Surface), 1.8, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin);
    switch (mark) {
    case Mark::Error:
        p.setBrush(Theme::color(R::Error));
        p.drawEllipse(QRectF(1, 1, 14, 14));
        p.setPen(stroke);
        p.drawLine(QPointF(5.5, 5.5), QPointF(10.5, 10.5));
        p.drawLine(QPointF(10.5, 5.5), QPointF(5.5, 10.5));
        break;
    case Mark::Warning: {
        QPainterPath triangle(QPointF(8, 1.5));
        triangle.lineTo(15.2, 14.5);
        triangle.lineTo(0.8, 14.5);
        triangle.closeSubpath();
        p.setBrush(Theme::color(R::Warning));
        p.drawPath(triangle);
        p.setPen(stroke);
        p.drawLine(QPointF(8, 6), QPointF(8, 9.6));
        p.drawPoint(QPointF(8, 12.2));
        break;
    }
    case Mark::Note:
        p.setBrush(Theme::color(R::Accent));
        p.drawRoundedRect(QRectF(1.5, 1.5, 13, 13), 3, 3);
        p.setPen(stroke);
        p.drawPoint(QPointF(8, 4.6));
        p.drawLine(QPointF(8, 7.4), QPointF(8, 11.6));
        break;
    case Mark::Done:
        p.setPen(QPen(Theme::color(R::Success), 2.2, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
        p.drawPolyline(QPolygonF({ QPointF(2.5, 8.5), QPointF(6.3, 12.2), QPointF(13.5, 4) }));
        break;
    case Mark::Running:
        p.setPen(QPen(Theme::color(R::Accent), 2, Qt::SolidLine, Qt::RoundCap));
        p.drawArc(QRectF(2.5, 2.5, 11, 11), 90 * 16, -270 * 16);
        break;
    }
    return pixmap;
}

QString numberText(double value, int digits)
{
    return std::isfinite(value) ? QString::number(value, 'g', digits) : value != value ? "nan" : value > 0 ? "inf" : "-inf";
}

QString countText(qint64 count)
{
    return QLocale(QLocale::English, QLocale::UnitedStates).toString(count); // the C locale does not group digits
}

} // namespace fb
