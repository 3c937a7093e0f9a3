#include "views/code_view.h"

#include <Qsci/qscilexerpython.h>
#include <Qsci/qsciscintilla.h>

#include <QKeyEvent>
#include <QSet>
#include <QVBoxLayout>
#include <algorithm>

#include "views/search_box.h"
#include "views/theme.h"

namespace fb
{

namespace
{
using Sci = QsciScintilla;
enum Marker { LitMarker = 1 };
enum Indicator { HitIndicator = 8, CurrentHitIndicator = 9 };
} // namespace

CodeView::CodeView(QWidget *parent)
    : QWidget(parent)
    , editor_(new QsciScintilla(this))
    , lexer_(new QsciLexerPython(editor_))
    , search_(new SearchBox(tr("Search in the code"), this))
{
    editor_->setAccessibleName(tr("Generated code"));
    editor_->setUtf8(true);
    editor_->setLexer(lexer_);
    editor_->setReadOnly(true);
    editor_->setFrameShape(QFrame::NoFrame);
    editor_->setMarginType(0, QsciScintilla::NumberMargin);
    for (int margin = 1; margin < 5; ++margin)
        editor_->setMarginWidth(margin, 0);
    editor_->setCaretLineVisible(false);
    editor_->setTabWidth(4);
    editor_->markerDefine(QsciScintilla::Background, LitMarker);
    // The horizontal scroll bar follows the longest line in sight; measuring all lines up front would cost time.
    editor_->SendScintilla(Sci::SCI_SETSCROLLWIDTH, 1L);
    editor_->SendScintilla(Sci::SCI_SETSCROLLWIDTHTRACKING, 1L);
    editor_->SendScintilla(Sci::SCI_INDICSETSTYLE, ulong(HitIndicator), long(Sci::INDIC_ROUNDBOX));
    editor_->SendScintilla(Sci::SCI_INDICSETSTYLE, ulong(CurrentHitIndicator), long(Sci::INDIC_STRAIGHTBOX));
    editor_->installEventFilter(this);
    editor_->viewport()->installEventFilter(this);

    auto *column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(search_);
    column->addWidget(editor_, 1);
    search_->setContentsMargins(6, 4, 6, 4);
    search_->hide();
    setFocusProxy(editor_);
    applyTheme();

    connect(search_, &SearchBox::textChanged, this, &CodeView::search);
    connect(search_, &SearchBox::next, this, [this] { step(1); });
    connect(search_, &SearchBox::previous, this, [this] { step(-1); });
    connect(search_, &SearchBox::dismissed, this, &CodeView::closeSearch);
}

void CodeView::setModule(std::shared_ptr<const GraphModule> gm)
{
    setLines(gm ? torchCodeLines(*gm) : std::vector<CodeLine>());
}

void CodeView::setLines(const std::vector<CodeLine> &lines)
{
    size_t bytes = 0;
    for (const CodeLine &line : lines)
        bytes += line.text.size() + 1;
    QByteArray text;
    text.reserve(qsizetype(bytes));
    nodeOfLine_.clear();
    linesOfNode_.clear();
    for (const CodeLine &line : lines) {
        if (line.node)
            linesOfNode_[line.node].append(int(nodeOfLine_.size()));
        nodeOfLine_.push_back(line.node);
        text.append(line.text.data(), qsizetype(line.text.size())).append('\n');
    }
    text.chop(1); // no empty last line
    if (text != text_) {
        const auto forward
            = std::find_if(lines.begin(), lines.end(), [](const CodeLine &l) { return l.text.starts_with("def "); });
        const long top = !text_.isEmpty() ? editor_->SendScintilla(Sci::SCI_GETFIRSTVISIBLELINE)
            : forward != lines.end()      ? long(forward - lines.begin())
                                          : 0;
        text_ = text;
        // Straight to Scintilla: QScintilla's setText would convert to QString and back.
        editor_->SendScintilla(Sci::SCI_SETREADONLY, 0L);
        editor_->SendScintilla(Sci::SCI_SETTEXT, text.constData());
        editor_->SendScintilla(Sci::SCI_EMPTYUNDOBUFFER);
        editor_->SendScintilla(Sci::SCI_SETREADONLY, 1L);
        editor_->SendScintilla(Sci::SCI_SETFIRSTVISIBLELINE, ulong(top));
        editor_->setMarginWidth(0, QString(int(std::to_string(lines.size()).size()) + 2, QLatin1Char('0')));
        if (search_->isVisibleTo(this))
            search(search_->text());
    }
    setSelected(selected_);
}

void CodeView::setSelected(const QVector<NodeId> &nodes)
{
    selected_ = nodes;
    editor_->markerDeleteAll(LitMarker);
    const QVector<int> lines = litLines();
    for (int line : lines)
        editor_->SendScintilla(Sci::SCI_MARKERADD, ulong(line), long(LitMarker));
    if (lines.isEmpty() || quiet_)
        return;
    const int top = editor_->firstVisibleLine(), sight = int(editor_->SendScintilla(Sci::SCI_LINESONSCREEN));
    const auto seen = std::lower_bound(lines.begin(), lines.end(), top);
    if (seen == lines.end() || *seen >= top + sight)
        editor_->setFirstVisibleLine(std::max(0, lines.first() - sight / 3));
}

QVector<int> CodeView::litLines() const
{
    QVector<int> lines;
    for (NodeId id : selected_)
        lines += linesOfNode_.value(id);
    std::sort(lines.begin(), lines.end());
    return lines;
}

QString CodeView::text() const
{
    return editor_->text();
}

QVector<NodeId> CodeView::nodesOfLines(long fromByte, long toByte) const
{
    const long last = editor_->SendScintilla(Sci::SCI_LINEFROMPOSITION, toByte);
    QVector<NodeId> nodes;
    QSet<NodeId> seen;
    for (long line = editor_->SendScintilla(Sci::SCI_LINEFROMPOSITION, fromByte); line <= last; ++line) {
        const NodeId node = size_t(line) < nodeOfLine_.size() ? nodeOfLine_[size_t(line)] : NodeId();
        if (node && !seen.contains(node))
            nodes.append(node);
        seen.insert(node);
    }
    return nodes;
}

// By the hand: lights and tells, and leaves the text where it is.
void CodeView::select(const QVector<NodeId> &nodes)
{
    if (nodes.isEmpty() || nodes == selected_)
        return;
    quiet_ = true;
    setSelected(nodes);
    emit nodesSelected(nodes);
    quiet_ = false;
}

// The nodes of every line that the editor's selection touches.
void CodeView::selectionChanged()
{
    select(nodesOfLines(editor_->SendScintilla(Sci::SCI_GETSELECTIONSTART), editor_->SendScintilla(Sci::SCI_GETSELECTIONEND)));
}

void CodeView::openSearch()
{
    search_->show();
    search_->activate();
    search(search_->text());
}

void CodeView::closeSearch()
{
    search_->hide();
    search({});
    editor_->setFocus();
}

void CodeView::search(const QString &text)
{
    for (int indicator : { HitIndicator, CurrentHitIndicator }) {
        editor_->SendScintilla(Sci::SCI_SETINDICATORCURRENT, ulong(indicator));
        editor_->SendScintilla(Sci::SCI_INDICATORCLEARRANGE, 0UL, long(editor_->length()));
    }
    hits_.clear();
    hit_ = -1;
    if (text.isEmpty()) {
        search_->setHits(-1, -1);
        return;
    }
    const QByteArray needle = text.toUtf8().toLower(), hay = text_.toLower();
    editor_->SendScintilla(Sci::SCI_SETINDICATORCURRENT, ulong(HitIndicator));
    for (qsizetype at = hay.indexOf(needle); at >= 0; at = hay.indexOf(needle, at + needle.size())) {
        hits_.append({ int(at), int(needle.size()) });
        editor_->SendScintilla(Sci::SCI_INDICATORFILLRANGE, ulong(at), long(needle.size()));
    }
    search_->setHits(-1, int(hits_.size()));
    if (hits_.isEmpty())
        return;
    // The first hit in sight or below, as the letters come.
    const long top = editor_->SendScintilla(Sci::SCI_POSITIONFROMLINE, ulong(std::max(0, editor_->firstVisibleLine())));
    const auto first = std::find_if(hits_.begin(), hits_.end(), [&](auto h) { return h.first >= top; });
    hit_ = first == hits_.end() ? 0 : int(first - hits_.begin());
    showHit();
}

void CodeView::showHit()
{
    const auto [at, length] = hits_[hit_];
    editor_->SendScintilla(Sci::SCI_SETINDICATORCURRENT, ulong(CurrentHitIndicator));
    editor_->SendScintilla(Sci::SCI_INDICATORCLEARRANGE, 0UL, long(editor_->length()));
    editor_->SendScintilla(Sci::SCI_INDICATORFILLRANGE, ulong(at), long(length));
    editor_->SendScintilla(Sci::SCI_SCROLLRANGE, ulong(at + length), long(at));
    search_->setHits(hit_, int(hits_.size()));
}

void CodeView::step(int by)
{
    if (hits_.isEmpty())
        return;
    const int n = int(hits_.size());
    hit_ = ((hit_ + by) % n + n) % n;
    showHit();
    select(nodesOfLines(hits_[hit_].first, hits_[hit_].first));
}

bool CodeView::eventFilter(QObject *watched, QEvent *event)
{
    const auto later = [this] { QMetaObject::invokeMethod(this, &CodeView::selectionChanged, Qt::QueuedConnection); };
    if (watched == editor_->viewport() && event->type() == QEvent::MouseButtonRelease) {
        later();
    } else if (watched == editor_ && (event->type() == QEvent::ShortcutOverride || event->type() == QEvent::KeyPress)) {
        auto *key = static_cast<QKeyEvent *>(event);
        const bool press = event->type() == QEvent::KeyPress;
        if (key->matches(QKeySequence::Find)) { // ours before the window's own Ctrl+F
            if (press)
                openSearch();
            event->accept();
            return true;
        }
        if (press)
            later();
    }
    return QWidget::eventFilter(watched, event);
}

void CodeView::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange)
        applyTheme();
}

// QScintilla asks a font for points alone.
static QFont editorFont(const QWidget *widget, double pixels)
{
    QFont font = Theme::monospace(pixels);
    font.setPointSizeF(pixels * 72 / widget->logicalDpiY());
    return font;
}

void CodeView::applyTheme()
{
    using R = Theme::Role;
    using L = QsciLexerPython;
    const QColor paper = Theme::color(R::Surface), ink = Theme::color(R::Text);
    lexer_->setDefaultPaper(paper);
    lexer_->setDefaultColor(ink);
    lexer_->setPaper(paper);
    lexer_->setColor(ink);
    lexer_->setFont(editorFont(this, 13));
    for (int style : { L::Keyword })
        lexer_->setColor(Theme::color(R::CodeKeyword), style);
    for (int style : { L::Comment, L::CommentBlock })
        lexer_->setColor(Theme::color(R::CodeComment), style);
    for (int style : { L::SingleQuotedString, L::DoubleQuotedString, L::TripleSingleQuotedString, L::TripleDoubleQuotedString,
             L::UnclosedString })
        lexer_->setColor(Theme::color(R::CodeString), style);
    for (int style : { L::ClassName, L::FunctionMethodName, L::Decorator })
        lexer_->setColor(Theme::color(R::CodeFunction), style);
    lexer_->setColor(Theme::color(R::CodeNumber), L::Number);

    editor_->setMarginsFont(editorFont(this, 12));
    editor_->setMarginsBackgroundColor(paper);
    editor_->setMarginsForegroundColor(Theme::color(R::TextMuted));
    editor_->setCaretForegroundColor(ink);
    editor_->setSelectionBackgroundColor(Theme::color(R::Accent));
    editor_->setSelectionForegroundColor(Theme::color(R::AccentText));
    editor_->setMarkerBackgroundColor(Theme::color(R::AccentSoft), LitMarker);
    editor_->setIndicatorForegroundColor(Theme::color(R::SearchHit), HitIndicator);
    editor_->setIndicatorForegroundColor(Theme::color(R::SearchHit), CurrentHitIndicator);
    editor_->SendScintilla(Sci::SCI_INDICSETALPHA, ulong(HitIndicator), 60L);
    editor_->SendScintilla(Sci::SCI_INDICSETALPHA, ulong(CurrentHitIndicator), 140L);
    editor_->SendScintilla(Sci::SCI_INDICSETUNDER, ulong(HitIndicator), 1L);
    editor_->SendScintilla(Sci::SCI_INDICSETUNDER, ulong(CurrentHitIndicator), 1L);
    editor_->setMarginWidth(0, QString(int(std::to_string(nodeOfLine_.size()).size()) + 2, QLatin1Char('0')));
}

} // namespace fb
