#include "views/inspector.h"

#include <QCheckBox>
#include <QFrame>
#include <QGridLayout>
#include <QLabel>
#include <QRegularExpression>
#include <QTextBrowser>
#include <QUrl>
#include <QVBoxLayout>
#include <cmath>
#include <map>

#include "model/ir/ops.h"
#include "model/text/text.h"
#include "views/panel_style.h"
#include "views/theme.h"

namespace fb
{

namespace
{
constexpr int kMostLinks = 24; // users, or selected nodes, that are listed by name

QString qstr(std::string_view s)
{
    return QString::fromUtf8(s.data(), qsizetype(s.size()));
}

QString shapeText(const std::vector<int64_t> &shape)
{
    QStringList sizes;
    for (int64_t size : shape)
        sizes += QString::number(size);
    return sizes.isEmpty() ? Inspector::tr("scalar") : sizes.join('x');
}

QString link(const QString &target, const QString &text)
{
    return QStringLiteral("<a href=\"%1\">%2</a>")
        .arg(QString::fromLatin1(QUrl::toPercentEncoding(target, ":/")), text.toHtmlEscaped());
}

// Rich text as high as its words need, which breaks a name that is longer than a line rather than hide its end.
class WrappedText : public QTextBrowser
{
public:
    WrappedText(const QString &html, const QFont &font, QWidget *parent)
        : QTextBrowser(parent)
    {
        setFrameShape(QFrame::NoFrame);
        setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        viewport()->setAutoFillBackground(false);
        setWordWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
        setOpenLinks(false);
        document()->setDocumentMargin(0);
        document()->setDefaultFont(font);
        setHtml(html);
        setMinimumWidth(1);
        QSizePolicy policy(QSizePolicy::Ignored, QSizePolicy::Fixed);
        policy.setHeightForWidth(true);
        setSizePolicy(policy);
    }

    int heightForWidth(int width) const override
    {
        document()->setTextWidth(width);
        return int(std::ceil(document()->size().height()));
    }
    QSize sizeHint() const override { return { width(), heightForWidth(width()) }; }
    QSize minimumSizeHint() const override { return { 1, QFontMetrics(document()->defaultFont()).height() }; }

protected:
    void wheelEvent(QWheelEvent *event) override { event->ignore(); } // the inspector scrolls, not its rows
};

QString nodeLink(const Graph &graph, NodeId id)
{
    return graph.contains(id) ? link(QStringLiteral("node:%1").arg(id.value), qstr(graph[id].name)) : QString();
}

// One argument as code prints it, its nodes as links.
QString argHtml(const GraphModule &gm, const Arg &arg)
{
    if (const NodeId id = arg.node())
        return nodeLink(gm.graph, id);
    if (const Tensor *t = arg.as<Tensor>(); t && *t)
        return Inspector::tr("tensor %1 %2").arg(shapeText((*t)->sizes), qstr(dtypeName((*t)->dtype)));
    if (const ArgSequence *s = arg.sequence(); s && s->kind != ArgSequence::Size) {
        QStringList items;
        for (const Arg &item : s->items)
            items += argHtml(gm, item);
        const bool list = s->kind == ArgSequence::List;
        return (list ? "[" : "(") + items.join(", ") + (list ? "]" : items.size() == 1 ? ",)" : ")");
    }
    return qstr(argText(gm, arg)).toHtmlEscaped();
}

QString nodeLinks(const Graph &graph, const std::vector<NodeId> &nodes)
{
    QStringList out;
    for (NodeId id : nodes) {
        if (out.size() == kMostLinks)
            return out.join(", ") + Inspector::tr(" and %1 more").arg(nodes.size() - kMostLinks);
        out += nodeLink(graph, id);
    }
    return out.join(", ");
}

// Names of the positional arguments: from the op table, by number where it does not know them. A module's forward takes
// its first argument as `input`.
QString argName(const OpInfo *info, const Node &n, size_t index)
{
    if (n.op == Opcode::Output)
        return Inspector::tr("value");
    if (n.op == Opcode::Placeholder)
        return Inspector::tr("default");
    if (info && n.op != Opcode::CallModule && index < info->params.size())
        return qstr(info->params[index].name);
    if (index == 0 && (n.op == Opcode::CallModule || n.op == Opcode::CallMethod))
        return n.op == Opcode::CallModule ? QStringLiteral("input") : QStringLiteral("self");
    return QStringLiteral("args[%1]").arg(index);
}
} // namespace

// A heading and rows of "name: value".
class Inspector::Section : public QWidget
{
public:
    Section(const QString &title, Inspector *inspector)
        : QWidget(inspector)
        , title_(title)
        , inspector_(inspector)
    {
        auto *column = new QVBoxLayout(this);
        column->setContentsMargins(0, 0, 0, 0);
        column->setSpacing(3);
        auto *head = new QLabel(title, this);
        head->setFont(Theme::font(kTextPixels, QFont::DemiBold));
        auto *line = new QFrame(this);
        line->setFrameShape(QFrame::HLine);
        line->setFrameShadow(QFrame::Plain);
        line->setForegroundRole(QPalette::Mid);
        column->addWidget(head);
        column->addWidget(line);
        grid_ = new QGridLayout;
        grid_->setContentsMargins(0, 1, 0, 4);
        grid_->setHorizontalSpacing(10);
        grid_->setVerticalSpacing(3);
        grid_->setColumnStretch(1, 1);
        column->addLayout(grid_);
    }

    void add(const QString &name, const QString &html, bool code = false)
    {
        if (html.isEmpty())
            return;
        auto *label = new QLabel(name, this);
        label->setForegroundRole(QPalette::PlaceholderText);
        label->setFixedWidth(LabelWidth);
        label->setWordWrap(true);
        label->setAlignment(Qt::AlignLeft | Qt::AlignTop);
        auto *value = new WrappedText(html, code ? Theme::monospace(kSmallPixels) : font(), this);
        value->setAccessibleName(name);
        const bool links = html.contains("<a href");
        value->setTextInteractionFlags(Qt::TextSelectableByMouse
            | (links ? Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard : Qt::NoTextInteraction));
        value->setFocusPolicy(links ? Qt::StrongFocus : Qt::ClickFocus);
        label->setBuddy(value);
        connect(value, &QTextBrowser::anchorClicked, inspector_,
            [this](const QUrl &url) { inspector_->follow(QUrl::fromPercentEncoding(url.toEncoded())); });
        grid_->addWidget(label, grid_->rowCount(), 0, Qt::AlignTop);
        grid_->addWidget(value, grid_->rowCount() - 1, 1);
        lines_ += name + ": " + plain(html) + '\n';
    }

    void addText(const QString &name, const QString &text, bool code = false) { add(name, text.toHtmlEscaped(), code); }

    void addWidget(QWidget *widget) { grid_->addWidget(widget, grid_->rowCount(), 0, 1, 2); }

    void clear()
    {
        while (QLayoutItem *item = grid_->takeAt(0)) {
            item->widget()->hide();
            item->widget()->deleteLater(); // it may be the check box that is calling
            delete item;
        }
        lines_.clear();
    }

    QString text() const { return lines_.isEmpty() ? QString() : title_ + '\n' + lines_; }

private:
    static constexpr int LabelWidth = 92;

    static QString plain(QString html)
    {
        static const QRegularExpression tags("<[^>]*>");
        return html.remove(tags).replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    }

    QString title_, lines_;
    Inspector *inspector_;
    QGridLayout *grid_;
};

Inspector::Inspector(QWidget *parent)
    : QScrollArea(parent)
{
    setAccessibleName(tr("Inspector"));
    setWidgetResizable(true);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    rebuild();
}

void Inspector::setModule(std::shared_ptr<const GraphModule> gm)
{
    if (gm == gm_)
        return;
    gm_ = std::move(gm);
    setSelected(std::exchange(selected_, {}));
}

void Inspector::setSelected(const QVector<NodeId> &nodes)
{
    QVector<NodeId> there;
    for (NodeId id : nodes)
        if (gm_ && gm_->graph.contains(id))
            there.append(id);
    weights_.clear();
    quant_.reset();
    selected_ = there;
    rebuild();
    if (selected_.size() == 1) {
        emit weightStatsWanted(selected_.first());
        emit quantizationWanted(selected_.first());
    }
}

void Inspector::setWeightStats(NodeId node, const QVector<WeightStats> &stats)
{
    if (selected_.size() != 1 || selected_.first() != node)
        return;
    weights_ = stats;
    showWeights();
}

void Inspector::setQuantization(NodeId node, const QuantFacts &facts)
{
    if (selected_.size() != 1 || selected_.first() != node || quant_ == facts)
        return;
    quant_ = facts;
    showQuantization();
}

QString Inspector::text() const
{
    QString out;
    for (const Section *s : sections_)
        out += s->text();
    return out;
}

Inspector::Section *Inspector::section(const QString &title)
{
    auto *s = new Section(title, this);
    rows_->addWidget(s);
    sections_.append(s);
    return s;
}

void Inspector::rebuild()
{
    sections_.clear();
    weightSection_ = quantSection_ = nullptr;
    auto *page = new QWidget(this);
    page->setBackgroundRole(QPalette::Base);
    rows_ = new QVBoxLayout(page);
    rows_->setContentsMargins(10, 8, 10, 8);
    rows_->setSpacing(8);
    if (selected_.isEmpty())
        rows_->addWidget(emptyLabel(gm_ ? tr("Select a node to see all about it.") : tr("No model is open."), page), 1);
    else if (selected_.size() == 1)
        showOne(selected_.first());
    else
        showMany();
    if (!selected_.isEmpty())
        rows_->addStretch();
    if (QWidget *old = takeWidget())
        old->deleteLater(); // something in it may be calling
    setWidget(page);
}

void Inspector::showOne(NodeId id)
{
    const GraphModule &gm = *gm_;
    const Node &n = gm.graph[id];
    const ModuleInfo *module = gm.moduleOf(n);
    const OpInfo *info = opInfo(gm, n);

    auto *title = new QLabel(qstr(n.name), this);
    title->setFont(Theme::font(15, QFont::DemiBold));
    title->setTextInteractionFlags(Qt::TextSelectableByMouse);
    title->setWordWrap(true);
    rows_->addWidget(title);

    Section *what = section(tr("Node"));
    what->addText(tr("op"), qstr(opcodeName(n.op)));
    what->addText(tr("target"), qstr(n.target));
    if (module)
        what->addText(tr("class"), qstr(module->className));
    what->addText(tr("category"), qstr(categoryName(categoryOf(gm, n))));
    what->addText(tr("type"), qstr(n.type));
    if (module && module->kind == ModuleKind::Opaque)
        what->addText(tr("not executable"), qstr(module->scriptError));

    Section *result = section(tr("Result"));
    if (n.meta) {
        result->addText(tr("shape"), shapeText(n.meta->shape));
        result->addText(tr("dtype"), qstr(dtypeName(n.meta->dtype)));
    } else {
        result->addText(tr("shape"), tr("not known"));
    }

    if (!n.args.empty() || !n.kwargs.empty()) {
        Section *args = section(tr("Arguments"));
        for (size_t i = 0; i < n.args.size(); ++i)
            args->add(argName(info, n, i), argHtml(gm, n.args[i]), true);
        for (const auto &[name, value] : n.kwargs)
            args->add(qstr(name), argHtml(gm, value), true);
    }
    if (module && !module->attrs.empty()) {
        Section *facts = section(tr("Module"));
        for (const auto &[name, value] : module->attrs)
            facts->add(qstr(name), argHtml(gm, value), true);
        facts->addText(tr("training"), module->training ? tr("yes") : QString());
    }

    Section *edges = section(tr("Connections"));
    const auto inputs = gm.graph.inputs(id);
    const auto &users = gm.graph.users(id);
    edges->add(tr("inputs"), inputs.empty() ? tr("none") : nodeLinks(gm.graph, inputs));
    edges->add(tr("users"), users.empty() ? tr("none") : nodeLinks(gm.graph, users));

    Section *where = section(tr("Where"));
    const QString path = qstr(n.modulePath());
    where->add(tr("module"), path.isEmpty() ? tr("the model itself") : link("module:" + path, path));
    if (n.source) {
        const QString file = qstr(n.source->file), at = QStringLiteral("%1:%2").arg(file.section('/', -1)).arg(n.source->line);
        where->add(tr("source"), link(QStringLiteral("source:%1:%2").arg(n.source->line).arg(file), at));
        where->addText(tr("function"), qstr(n.source->function));
        where->addText(tr("line"), qstr(n.source->code).trimmed(), true);
    }

    quantSection_ = section(tr("Quantization"));
    weightSection_ = section(tr("Weights"));
    showQuantization();
    showWeights();
}

void Inspector::showMany()
{
    const Graph &graph = gm_->graph;
    Section *all = section(tr("%1 nodes selected").arg(selected_.size()));
    std::map<std::string, int> kinds;
    for (NodeId id : selected_)
        ++kinds[nodeTitle(*gm_, graph[id])];
    QStringList counts;
    for (const auto &[kind, count] : kinds)
        counts += QStringLiteral("%1 %2").arg(count).arg(qstr(kind));
    all->addText(tr("of these"), counts.mid(0, kMostLinks).join(", "));
    all->add(tr("names"), nodeLinks(graph, { selected_.begin(), selected_.end() }));
}

void Inspector::showWeights()
{
    weightSection_->clear();
    for (const WeightStats &w : weights_) {
        QString text = tr("%1 %2, %3 to %4, mean %5, deviation %6")
                           .arg(w.shape, w.dtype, numberText(w.min, 4), numberText(w.max, 4), numberText(w.mean, 3),
                               numberText(w.deviation, 3));
        if (w.count > 0 && w.zeros > 0)
            text += tr(", %1 % zeros").arg(numberText(100. * double(w.zeros) / double(w.count), 3));
        if (w.nan || w.inf)
            text += tr(", %1 nan, %2 inf").arg(w.nan).arg(w.inf);
        weightSection_->addText(w.name, text);
    }
    weightSection_->setVisible(!weights_.isEmpty());
}

void Inspector::showQuantization()
{
    quantSection_->clear();
    quantSection_->setVisible(quant_.has_value());
    if (!quant_)
        return;
    const QuantFacts &q = *quant_;
    quantSection_->addText(tr("runs in"), q.state);
    quantSection_->addText(tr("why"), q.reason);
    quantSection_->addText(tr("rule"), q.rule);
    quantSection_->addText(tr("observer"), q.observer);
    if (q.scale)
        quantSection_->addText(tr("scale"), numberText(*q.scale, 8));
    if (q.zeroPoint)
        quantSection_->addText(tr("zero point"), QString::number(*q.zeroPoint));
    if (q.min && q.max)
        quantSection_->addText(tr("range"), tr("%1 to %2").arg(numberText(*q.min, 6), numberText(*q.max, 6)));
    if (q.channels)
        quantSection_->addText(tr("weight"), tr("per channel, scales: %1").arg(q.channels));
    if (!q.canKeepFloat)
        return;
    auto *keep = new QCheckBox(tr("Keep in float"), quantSection_);
    keep->setObjectName("keepFloat");
    keep->setChecked(q.keepFloat);
    keep->setToolTip(tr("Makes a rule for this node"));
    connect(keep, &QCheckBox::clicked, this, [this](bool on) { emit keepFloatRequested(selected_, on); });
    quantSection_->addWidget(keep);
}

void Inspector::follow(const QString &link)
{
    const QString rest = link.section(':', 1);
    // Whoever listens may select another node, which deletes the label that is calling.
    QMetaObject::invokeMethod(
        this,
        [this, link, rest] {
            if (link.startsWith("node:"))
                emit nodeActivated(NodeId{ rest.toUInt() });
            else if (link.startsWith("module:"))
                emit moduleActivated(rest);
            else if (link.startsWith("source:"))
                emit sourceActivated(rest.section(':', 1), rest.section(':', 0, 0).toInt());
        },
        Qt::QueuedConnection);
}

} // namespace fb
