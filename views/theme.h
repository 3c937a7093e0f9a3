// Fuseboard: colours and fonts, light and dark. GPL-3.0-or-later.
//
// Views ask for a colour by what it means, never by value. Every text role reaches 4.5:1 on Ground, Surface and Raised, every
// graphic role 3:1 (WCAG AA), in both modes; tests/views/tst_canvas.cpp measures it. Colour never stands alone: a word or a shape
// is beside it. apply() changes the application's palette, so widgets hear of it by QEvent::PaletteChange.
#pragma once

#include <QColor>
#include <QFont>

#include "model/ir/ops.h"

class QApplication;

namespace fb
{

class Theme
{
public:
    enum class Mode { System, Light, Dark };

    enum class Role {
        // Grounds
        Ground, // behind the canvas and plots
        Surface, // node boxes, editors, tables
        Raised, // tool bars, legends, chips
        Container, // an unfolded module
        Border, // hairlines
        BorderStrong, // outlines that must be seen (3:1)
        // Text
        Text,
        TextMuted,
        Link,
        // Interaction
        Accent, // selection, focus, the running step
        AccentText, // text on Accent
        AccentSoft, // ground of a selected row
        Hover,
        Producer, // inputs of the selection
        Consumer, // users of the selection
        SearchHit,
        Edge,
        // Meaning
        Error,
        Warning,
        Success,
        // What runs how
        Int8,
        FloatByChoice,
        FloatUnsupported,
        Observed,
        LeafNode,
        Undecided,
        // Plots
        PlotCurve,
        PlotFill,
        PlotRange,
        PlotGrid,
        // Code
        CodeKeyword,
        CodeString,
        CodeNumber,
        CodeComment,
        CodeFunction,
        Count
    };

    static void apply(QApplication &app, Mode mode);
    static Mode mode();
    static bool isDark();

    static QColor color(Role role) { return color(role, isDark()); }
    static QColor color(Role role, bool dark);
    static QColor category(Category c) { return category(c, isDark()); }
    static QColor category(Category c, bool dark);
    static QColor dtype(DType t) { return dtype(t, isDark()); }
    static QColor dtype(DType t, bool dark);

    static double contrast(const QColor &a, const QColor &b); // WCAG 2 ratio, 1 to 21
    static QColor textOn(const QColor &ground); // black or white, whichever reads better
    static QColor mix(const QColor &a, const QColor &b, double t); // 0: a, 1: b

    static QFont font(double pixels, QFont::Weight weight = QFont::Normal); // the application's family
    static QFont monospace(double pixels);
};

} // namespace fb
