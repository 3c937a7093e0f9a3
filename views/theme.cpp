// Fuseboard: colours and fonts. GPL-3.0-or-later.
#include "views/theme.h"

#include <QApplication>
#include <QFontDatabase>
#include <QPalette>
#include <QStyleFactory>

#include <array>
#include <cmath>

namespace fb
{

namespace
{

struct Pair {
    QRgb light, dark;
};

// In the order of Theme::Role.
constexpr std::array<Pair, size_t(Theme::Role::Count)> kRoles = { {
    { 0xfff3f4f6, 0xff1a1d22 }, // Ground
    { 0xffffffff, 0xff252930 }, // Surface
    { 0xfffafbfc, 0xff2b3038 }, // Raised
    { 0xffe9ecf0, 0xff20242a }, // Container
    { 0xffd3d8de, 0xff3c434d }, // Border
    { 0xff7f8995, 0xff7d8895 }, // BorderStrong
    { 0xff1f242b, 0xffe4e7eb }, // Text
    { 0xff57616d, 0xffa4aeba }, // TextMuted
    { 0xff0a5cad, 0xff7ab8ff }, // Link
    { 0xff0b63ba, 0xff62aefc }, // Accent
    { 0xffffffff, 0xff0d1117 }, // AccentText
    { 0xffd8e8f8, 0xff27405c }, // AccentSoft
    { 0xffe6eaef, 0xff333a44 }, // Hover
    { 0xff8a4fc9, 0xffc79bff }, // Producer
    { 0xff0a7a6e, 0xff3fc9b8 }, // Consumer
    { 0xffad6200, 0xfff0b429 }, // SearchHit
    { 0xff7b8590, 0xff808b98 }, // Edge
    { 0xffc4232b, 0xffff8a84 }, // Error
    { 0xff915700, 0xffeab54b }, // Warning
    { 0xff1d7838, 0xff5fcb7d }, // Success
    { 0xff0b63ba, 0xff62aefc }, // Int8
    { 0xff955800, 0xffe0a84a }, // FloatByChoice
    { 0xffb02a4c, 0xffff8fa6 }, // FloatUnsupported
    { 0xff0a7a6e, 0xff3fc9b8 }, // Observed
    { 0xff6f52b5, 0xffb9a1f5 }, // LeafNode
    { 0xff68727e, 0xff99a3af }, // Undecided
    { 0xff0b63ba, 0xff62aefc }, // PlotCurve
    { 0xffb9d6f2, 0xff2d4d70 }, // PlotFill
    { 0xffb02a4c, 0xffff8fa6 }, // PlotRange
    { 0xffdde1e6, 0xff363c45 }, // PlotGrid
    { 0xff7a3ea8, 0xffcf9cf5 }, // CodeKeyword
    { 0xff1d7038, 0xff7fd093 }, // CodeString
    { 0xff0a5cad, 0xff86bfff }, // CodeNumber
    { 0xff5c6773, 0xff98a3b0 }, // CodeComment
    { 0xff8a5200, 0xffe3b866 }, // CodeFunction
} };

Pair categoryPair(Category c)
{
    switch (c) {
    case Category::ConvLinear:
        return { 0xff2a6bc4, 0xff6aa9f7 };
    case Category::Normalization:
        return { 0xff0d7d83, 0xff45c4c8 };
    case Category::Activation:
        return { 0xffb0412f, 0xfff28b76 };
    case Category::Pooling:
        return { 0xff4a7d22, 0xff97cc66 };
    case Category::Shape:
        return { 0xff7b6a1e, 0xffd0bd62 };
    case Category::Arithmetic:
        return { 0xff8a4bb8, 0xffc795f0 };
    case Category::Attention:
        return { 0xffb3368c, 0xfff28fd0 };
    case Category::Recurrent:
        return { 0xff5a55c9, 0xff9f9bff };
    case Category::Leaf:
        return { 0xff94600a, 0xffe6ac4d };
    case Category::InputOutput:
        return { 0xff3d4753, 0xffd0d6dd };
    case Category::Constant:
        return { 0xff7a5f55, 0xffc3a598 };
    case Category::Quantize:
        return { 0xff0f7460, 0xff57d0b2 };
    case Category::Other:
        return { 0xff68727e, 0xff99a3af };
    }
    return { 0xff68727e, 0xff99a3af };
}

Pair dtypePair(DType t)
{
    switch (t) {
    case DType::Float32:
        return { 0xff2a6bc4, 0xff6aa9f7 };
    case DType::Float64:
        return { 0xff5a55c9, 0xff9f9bff };
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float8E4M3:
    case DType::Float8E5M2:
        return { 0xff0d7d83, 0xff45c4c8 };
    case DType::QUInt8:
    case DType::QInt8:
    case DType::UInt8:
    case DType::Int8:
        return { 0xff94600a, 0xffe6ac4d };
    case DType::Bool:
        return { 0xffb3368c, 0xfff28fd0 };
    case DType::Complex64:
    case DType::Complex128:
        return { 0xff8a4bb8, 0xffc795f0 };
    default:
        return { 0xff4a7d22, 0xff97cc66 }; // wider integers
    }
}

Theme::Mode currentMode = Theme::Mode::System;
bool dark = false;

double luminance(const QColor &c)
{
    auto linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
    return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
}

// What the desktop asked for, seen before the first apply().
bool systemIsDark()
{
    static const bool answer = QGuiApplication::palette().color(QPalette::Window).lightnessF() < 0.5;
    return answer;
}

QPalette makePalette()
{
    using Role = Theme::Role;
    QPalette p;
    auto set = [&](QPalette::ColorRole role, Role from) { p.setColor(role, Theme::color(from)); };
    set(QPalette::Window, Role::Raised);
    set(QPalette::WindowText, Role::Text);
    set(QPalette::Base, Role::Surface);
    set(QPalette::AlternateBase, Role::Raised);
    set(QPalette::Text, Role::Text);
    set(QPalette::Button, Role::Raised);
    set(QPalette::ButtonText, Role::Text);
    set(QPalette::BrightText, Role::Error);
    set(QPalette::ToolTipBase, Role::Surface);
    set(QPalette::ToolTipText, Role::Text);
    set(QPalette::PlaceholderText, Role::TextMuted);
    set(QPalette::Link, Role::Link);
    set(QPalette::LinkVisited, Role::Link);
    set(QPalette::Highlight, Role::Accent);
    set(QPalette::HighlightedText, Role::AccentText);
    set(QPalette::Light, Role::Surface);
    set(QPalette::Midlight, Role::Hover);
    set(QPalette::Mid, Role::Border);
    set(QPalette::Dark, Role::BorderStrong);
    p.setColor(QPalette::Shadow, dark ? QColor(0x0d, 0x0f, 0x12) : QColor(0x9a, 0xa2, 0xac));
    const QColor disabled = Theme::mix(Theme::color(Role::TextMuted), Theme::color(Role::Raised), 0.35);
    for (auto role : { QPalette::WindowText, QPalette::Text, QPalette::ButtonText })
        p.setColor(QPalette::Disabled, role, disabled);
    return p;
}

} // namespace

void Theme::apply(QApplication &app, Mode mode)
{
    const bool system = systemIsDark();
    currentMode = mode;
    dark = mode == Mode::Dark || (mode == Mode::System && system);
    app.setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    app.setPalette(makePalette());
    app.setStyleSheet(QStringLiteral("QToolTip { color: %1; background: %2; border: 1px solid %3; padding: 3px; }")
                          .arg(color(Role::Text).name(), color(Role::Surface).name(), color(Role::BorderStrong).name()));
}

Theme::Mode Theme::mode()
{
    return currentMode;
}
bool Theme::isDark()
{
    return dark;
}

QColor Theme::color(Role role, bool darkMode)
{
    const Pair &p = kRoles[size_t(role)];
    return QColor::fromRgb(darkMode ? p.dark : p.light);
}

QColor Theme::category(Category c, bool darkMode)
{
    const Pair p = categoryPair(c);
    return QColor::fromRgb(darkMode ? p.dark : p.light);
}

QColor Theme::dtype(DType t, bool darkMode)
{
    const Pair p = dtypePair(t);
    return QColor::fromRgb(darkMode ? p.dark : p.light);
}

double Theme::contrast(const QColor &a, const QColor &b)
{
    const double x = luminance(a), y = luminance(b);
    return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

QColor Theme::textOn(const QColor &ground)
{
    return contrast(ground, Qt::white) >= contrast(ground, Qt::black) ? QColor(Qt::white) : QColor(Qt::black);
}

QColor Theme::mix(const QColor &a, const QColor &b, double t)
{
    auto blend = [t](double x, double y) { return float(x + (y - x) * t); };
    return QColor::fromRgbF(
        blend(a.redF(), b.redF()), blend(a.greenF(), b.greenF()), blend(a.blueF(), b.blueF()), blend(a.alphaF(), b.alphaF()));
}

QFont Theme::font(double pixels, QFont::Weight weight)
{
    QFont f = QGuiApplication::font();
    f.setPixelSize(std::max(1, int(std::lround(pixels))));
    f.setWeight(weight);
    return f;
}

QFont Theme::monospace(double pixels)
{
    QFont f = QFontDatabase::systemFont(QFontDatabase::FixedFont);
    f.setPixelSize(std::max(1, int(std::lround(pixels))));
    return f;
}

} // namespace fb
