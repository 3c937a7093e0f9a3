// Fuseboard: small things that the panels share. GPL-3.0-or-later.
#pragma once

#include <QIcon>
#include <QString>

class QLabel;
class QToolButton;
class QWidget;

namespace fb
{

constexpr int kTextPixels = 13; // panels
constexpr int kSmallPixels = 12; // second lines

// A quiet sentence in the middle of a panel that has nothing to show.
QLabel *emptyLabel(const QString &text, QWidget *parent);
QToolButton *textButton(const QString &text, QWidget *parent);

enum class Mark { Note, Warning, Error, Done, Running };
QIcon markIcon(Mark mark); // told apart by shape as well as by colour

QString numberText(double value, int digits = 5); // "0.01234", "-1.5e-07", "nan"
QString countText(qint64 count); // "1,234,567"

} // namespace fb
