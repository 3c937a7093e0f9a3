// Fuseboard: the whole graph in a corner, with the visible part as a frame to drag. GPL-3.0-or-later.
#pragma once

#include <QPixmap>
#include <QWidget>

namespace fb
{

class Canvas;

class Minimap : public QWidget
{
    Q_OBJECT
public:
    explicit Minimap(Canvas *canvas);
    void refresh(); // the picture is out of date

protected:
    void paintEvent(QPaintEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;

private:
    double scale() const;
    QPointF origin() const; // of the scene, in widget coordinates
    void go(QPointF to);

    Canvas *canvas_;
    QPixmap picture_;
};

} // namespace fb
