// Fuseboard: measures of a box at 100 %, shared by sizing and painting. GPL-3.0-or-later.
#pragma once

#include <QCoreApplication>
#include <QString>

#include "model/layout/layout.h"

namespace fb::canvas
{

inline constexpr double kTitlePx = 13, kDetailPx = 11;
inline constexpr double kBand = 5, kPadX = 9, kMark = 14, kRadius = 6;
inline constexpr double kBadgeRoom = 62; // right of the title: a word and a sign
inline constexpr double kTwoLines = 42, kThreeLines = 58;
inline constexpr double kHeader = 30; // of an unfolded module

inline QString moduleTitle(const ViewItem &item)
{
    const auto dot = item.className.rfind('.');
    return QString::fromStdString(dot == std::string::npos ? item.className : item.className.substr(dot + 1));
}

inline QString nodesInside(int count)
{
    return count == 1 ? QCoreApplication::translate("fb::Canvas", "1 node")
                      : QCoreApplication::translate("fb::Canvas", "%1 nodes").arg(count);
}

} // namespace fb::canvas
