#include "views/histogram_view.h"

#include <qcustomplot.h>

#include <QAbstractListModel>
#include <QHBoxLayout>
#include <QLabel>
#include <QListView>
#include <QPushButton>
#include <QStackedWidget>
#include <QStyledItemDelegate>
#include <QToolButton>
#include <algorithm>
#include <cmath>

#include "views/panel_style.h"
#include "views/theme.h"

namespace fb
{

using R = Theme::Role;

namespace
{
// The range that shows everything: all values and what the observer chose, with some air.
std::pair<double, double> fullRange(const HistogramData &h)
{
    double lo = h.count ? h.min : 0, hi = h.count ? h.max : 0;
    if (h.hasRange) {
        lo = std::min(lo, h.clipMin);
        hi = std::max(hi, h.clipMax);
    }
    const double air = hi > lo ? 0.08 * (hi - lo) : std::max(1e-3, std::abs(lo) * 0.5);
    return { lo - air, hi + air };
}
} // namespace

QString HistogramData::warning() const
{
    QStringList out;
    if (nan && inf)
        out += HistogramView::tr("%1 nan and %2 inf were left out.").arg(countText(qint64(nan)), countText(qint64(inf)));
    else if (nan || inf)
        out += HistogramView::tr("%1 %2 were left out.").arg(countText(qint64(nan ? nan : inf)), nan ? "nan" : "inf");
    if (!count)
        out += HistogramView::tr("No finite value was seen.");
    else if (min == 0 && max == 0)
        out += HistogramView::tr("Every value is zero: calibration data may not reach this node.");
    else if (min == max)
        out += HistogramView::tr("Every value is %1.").arg(numberText(min));
    return out.join(' ');
}

// --- One large plot -------------------------------------------------------------------------------------------------

class HistogramPlot : public QCustomPlot
{
    Q_OBJECT
public:
    explicit HistogramPlot(QWidget *parent)
        : QCustomPlot(parent)
        , bars_(new QCPBars(xAxis, yAxis))
        , lit_(new QCPBars(xAxis, yAxis))
        , band_(new QCPItemRect(this))
    {
        setAccessibleName(HistogramView::tr("Histogram"));
        setFocusPolicy(Qt::StrongFocus);
        setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
        axisRect()->setRangeDrag(Qt::Horizontal);
        axisRect()->setRangeZoom(Qt::Horizontal);
        setNotAntialiasedElement(QCP::aePlottables);
        yAxis->setNumberFormat("gb");
        yAxis->setNumberPrecision(4);
        xAxis->setNumberPrecision(5);
        for (QCPBars *bars : { bars_, lit_ }) {
            bars->setWidthType(QCPBars::wtPlotCoords);
            bars->setPen(Qt::NoPen);
            bars->removeFromLegend();
        }
        // The band lies behind the bars, its two lines and labels before them.
        addLayer("band", layer("grid"), QCustomPlot::limBelow);
        band_->setLayer("band");
        band_->setPen(Qt::NoPen);
        band_->topLeft->setTypeY(QCPItemPosition::ptAxisRectRatio);
        band_->bottomRight->setTypeY(QCPItemPosition::ptAxisRectRatio);
        for (int i : { 0, 1 }) {
            lines_[i] = new QCPItemStraightLine(this);
            labels_[i] = new QCPItemText(this);
            for (QCPItemPosition *point : { lines_[i]->point1, lines_[i]->point2, labels_[i]->position })
                point->setTypeY(QCPItemPosition::ptAxisRectRatio);
            labels_[i]->setPadding(QMargins(5, 2, 5, 2));
            for (auto *item : { static_cast<QCPAbstractItem *>(lines_[i]), static_cast<QCPAbstractItem *>(labels_[i]) })
                item->setLayer("overlay");
        }
        applyTheme();
        connect(xAxis, qOverload<const QCPRange &>(&QCPAxis::rangeChanged), this, &HistogramPlot::bin);
        connect(this, &QCustomPlot::mouseDoubleClick, this, &HistogramPlot::showAll);
        connect(this, &QCustomPlot::beforeReplot, this, &HistogramPlot::placeLabels);
    }

    void setData(const HistogramData &h)
    {
        const bool same = h.node == data_.node && h.min == data_.min && h.max == data_.max && h.clipMin == data_.clipMin
            && h.clipMax == data_.clipMax;
        data_ = h;
        const double ends[] = { h.clipMin, h.clipMax };
        for (int i : { 0, 1 }) {
            lines_[i]->setVisible(h.hasRange);
            labels_[i]->setVisible(h.hasRange);
            lines_[i]->point1->setCoords(ends[i], 0);
            lines_[i]->point2->setCoords(ends[i], 1);
            labels_[i]->setText((i ? HistogramView::tr("max %1") : HistogramView::tr("min %1")).arg(numberText(ends[i])));
        }
        band_->setVisible(h.hasRange);
        band_->topLeft->setCoords(h.clipMin, 0);
        band_->bottomRight->setCoords(h.clipMax, 1);
        setAccessibleDescription(HistogramView::tr("%1, %2 values").arg(h.name, countText(qint64(h.count))));
        if (same)
            bin();
        else
            showAll();
    }

    void setLogarithmic(bool on)
    {
        log_ = on;
        yAxis->setScaleType(on ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
        yAxis->setTicker(
            on ? QSharedPointer<QCPAxisTicker>(new QCPAxisTickerLog) : QSharedPointer<QCPAxisTicker>(new QCPAxisTicker));
        fitTicks();
        for (QCPBars *bars : { bars_, lit_ })
            bars->setBaseValue(on ? Floor : 0);
        bin();
    }

    void showAll()
    {
        const auto [lo, hi] = fullRange(data_);
        xAxis->setRange(lo, hi);
        bin();
    }

    QCPRange sight() const { return xAxis->range(); }
    const std::vector<double> &counts() const { return counts_; }
    QString pointerText() const { return pointer_; }

signals:
    void pointerMoved(const QString &text);

protected:
    void mouseMoveEvent(QMouseEvent *event) override
    {
        QCustomPlot::mouseMoveEvent(event);
        point(event->buttons() || !axisRect()->rect().contains(event->pos()) ? -1 : binAt(event->pos().x()));
    }

    void leaveEvent(QEvent *event) override
    {
        QCustomPlot::leaveEvent(event);
        point(-1);
    }

    void resizeEvent(QResizeEvent *event) override
    {
        QCustomPlot::resizeEvent(event);
        yAxis->setLabel(height() < 120 ? QString() : HistogramView::tr("values per bin")); // not a part of it
        fitTicks();
        bin();
    }

    // As many labels as the height has room for.
    void fitTicks() { yAxis->ticker()->setTickCount(std::clamp(height() / 45, 2, 6)); }

    void changeEvent(QEvent *event) override
    {
        QCustomPlot::changeEvent(event);
        if (event->type() == QEvent::PaletteChange)
            applyTheme();
    }

    void keyPressEvent(QKeyEvent *event) override
    {
        QCPRange r = sight();
        const double step = r.size() / 10;
        switch (event->key()) {
        case Qt::Key_Left:
            r -= step;
            break;
        case Qt::Key_Right:
            r += step;
            break;
        case Qt::Key_Plus:
        case Qt::Key_Equal:
            r = QCPRange(r.lower + 2 * step, r.upper - 2 * step);
            break;
        case Qt::Key_Minus:
            r = QCPRange(r.lower - 3 * step, r.upper + 3 * step);
            break;
        case Qt::Key_Home:
        case Qt::Key_0:
            return showAll();
        default:
            return QCustomPlot::keyPressEvent(event);
        }
        xAxis->setRange(r);
    }

    void focusInEvent(QFocusEvent *event) override
    {
        QCustomPlot::focusInEvent(event);
        applyTheme();
    }

    void focusOutEvent(QFocusEvent *event) override
    {
        QCustomPlot::focusOutEvent(event);
        applyTheme();
    }

private:
    static constexpr double Floor = 0.5; // where bars of a logarithmic plot stand: half a value

    // Bins what is in sight anew, about three pixels a bar.
    void bin()
    {
        if (!data_.rebin)
            return;
        const auto [all, end] = fullRange(data_);
        const double span = end - all, least = span * 1e-6;
        QCPRange r = sight();
        if (r.size() < least || r.size() > 8 * span || r.lower > end || r.upper < all) { // never lose the values
            const QSignalBlocker block(xAxis);
            const double size = std::clamp(r.size(), least, 8 * span);
            const double centre = std::clamp(r.center(), all, end);
            xAxis->setRange(centre - size / 2, centre + size / 2);
            r = sight();
        }
        const int n = std::clamp(axisRect()->width() / 3, 16, 400);
        counts_ = data_.rebin(r.lower, r.upper, n);
        width_ = r.size() / n;
        QVector<QCPBarsData> rows(static_cast<qsizetype>(counts_.size()));
        double most = 1;
        for (size_t i = 0; i < counts_.size(); ++i) {
            rows[qsizetype(i)] = QCPBarsData(r.lower + (double(i) + 0.5) * width_, counts_[i]);
            most = std::max(most, counts_[i]);
        }
        bars_->setWidth(width_);
        lit_->setWidth(width_);
        bars_->data()->set(rows, true);
        yAxis->setRange(log_ ? Floor : 0, log_ ? most * 3 : most * 1.18);
        point(-1);
        replot(QCustomPlot::rpQueuedReplot);
    }

    int binAt(int x) const
    {
        const double at = (xAxis->pixelToCoord(x) - sight().lower) / width_;
        return at >= 0 && at < double(counts_.size()) ? int(at) : -1;
    }

    void point(int bin)
    {
        QString text;
        QVector<QCPBarsData> lit;
        if (bin >= 0) {
            const double lo = sight().lower + bin * width_, count = counts_[size_t(bin)];
            const double share = data_.count ? 100 * count / double(data_.count) : 0;
            text = HistogramView::tr("%1 to %2: %3 values (%4 %)")
                       .arg(numberText(lo, 4), numberText(lo + width_, 4), countText(qint64(std::llround(count))),
                           numberText(share, 3));
            lit.append(QCPBarsData(lo + width_ / 2, count));
        }
        if (text == pointer_)
            return;
        pointer_ = text;
        lit_->data()->set(lit, true);
        replot(QCustomPlot::rpQueuedReplot);
        emit pointerMoved(text);
    }

    // Outside the band where there is room, else inside; never cut off by the plot's edge.
    void placeLabels()
    {
        const QRect rect = axisRect()->rect();
        for (int i : { 0, 1 }) {
            const double x = i ? data_.clipMax : data_.clipMin, pixel = xAxis->coordToPixel(x);
            const int wide = QFontMetrics(labels_[i]->font()).horizontalAdvance(labels_[i]->text()) + 14;
            const bool left = i == 0 ? pixel - wide > rect.left() : pixel + wide >= rect.right();
            labels_[i]->setPositionAlignment((left ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignTop);
            labels_[i]->position->setCoords(x, 0.015);
            const bool sight = pixel >= rect.left() && pixel <= rect.right();
            labels_[i]->setVisible(data_.hasRange && sight);
        }
    }

    void applyTheme()
    {
        const QColor text = Theme::color(R::Text), muted = Theme::color(R::TextMuted), range = Theme::color(R::PlotRange);
        setBackground(Theme::color(R::Surface));
        for (QCPAxis *axis : { xAxis, yAxis }) {
            axis->setBasePen(QPen(Theme::color(R::BorderStrong)));
            axis->setTickPen(axis->basePen());
            axis->setSubTickPen(axis->basePen());
            axis->setTickLabelColor(muted);
            axis->setLabelColor(muted);
            axis->setTickLabelFont(Theme::font(kSmallPixels));
            axis->setLabelFont(Theme::font(kSmallPixels));
            axis->grid()->setPen(QPen(Theme::color(R::PlotGrid), 1, Qt::SolidLine));
            axis->grid()->setZeroLinePen(axis->grid()->pen());
        }
        xAxis->grid()->setVisible(false);
        bars_->setBrush(Theme::color(R::PlotCurve));
        lit_->setBrush(Theme::color(R::Accent));
        QColor soft = range;
        soft.setAlphaF(Theme::isDark() ? 0.13F : 0.09F);
        band_->setBrush(soft);
        for (int i : { 0, 1 }) {
            lines_[i]->setPen(QPen(range, 1.6, Qt::DashLine));
            labels_[i]->setFont(Theme::font(kSmallPixels, QFont::DemiBold));
            labels_[i]->setColor(text);
            labels_[i]->setBrush(Theme::color(R::Surface));
            labels_[i]->setPen(QPen(range));
        }
        axisRect()->setBackground(Theme::color(R::Surface));
        xAxis2->setVisible(hasFocus());
        yAxis2->setVisible(hasFocus());
        for (QCPAxis *axis : { xAxis2, yAxis2 }) { // the frame that shows focus
            axis->setTicks(false);
            axis->setTickLabels(false);
            axis->setBasePen(QPen(Theme::color(R::Accent), 1.5));
        }
        replot(QCustomPlot::rpQueuedReplot);
    }

    HistogramData data_;
    QCPBars *bars_, *lit_; // lit: the one under the pointer
    QCPItemRect *band_;
    QCPItemStraightLine *lines_[2];
    QCPItemText *labels_[2];
    std::vector<double> counts_;
    double width_ = 1;
    bool log_ = false;
    QString pointer_;
};

// --- The wall -------------------------------------------------------------------------------------------------------

class WallModel : public QAbstractListModel
{
public:
    using QAbstractListModel::QAbstractListModel;
    QVector<HistogramData> rows;
    bool log = false;

    void reset(const QVector<HistogramData> &to)
    {
        beginResetModel();
        rows = to;
        bars_.assign(size_t(to.size()), {});
        endResetModel();
    }

    int rowCount(const QModelIndex &parent = {}) const override { return parent.isValid() ? 0 : int(rows.size()); }

    QVariant data(const QModelIndex &index, int role) const override
    {
        if (!index.isValid())
            return {};
        const HistogramData &h = rows[index.row()];
        if (role == Qt::DisplayRole || role == Qt::AccessibleTextRole)
            return h.name;
        if (role == Qt::ToolTipRole)
            return HistogramView::tr("%1: %2 values, %3 to %4")
                       .arg(h.name, countText(qint64(h.count)), numberText(h.min), numberText(h.max))
                + (h.warning().isEmpty() ? QString() : '\n' + h.warning());
        return {};
    }

    // Binned when first drawn.
    const std::vector<double> &bars(int row) const
    {
        std::vector<double> &b = bars_[size_t(row)];
        const HistogramData &h = rows[row];
        if (b.empty() && h.rebin) {
            const auto [lo, hi] = fullRange(h);
            b = h.rebin(lo, hi, 56);
        }
        return b;
    }

private:
    mutable std::vector<std::vector<double>> bars_;
};

class ThumbnailDelegate : public QStyledItemDelegate
{
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QSize sizeHint(const QStyleOptionViewItem &, const QModelIndex &) const override { return { 190, 112 }; }

    void paint(QPainter *p, const QStyleOptionViewItem &option, const QModelIndex &index) const override
    {
        const auto *model = static_cast<const WallModel *>(index.model());
        const HistogramData &h = model->rows[index.row()];
        p->save();
        p->setRenderHint(QPainter::Antialiasing);
        const QRectF card = QRectF(option.rect).adjusted(4.5, 4.5, -4.5, -4.5);
        const bool focus = option.state & QStyle::State_HasFocus, hover = option.state & QStyle::State_MouseOver;
        p->setPen(QPen(Theme::color(focus || hover ? R::Accent : R::Border), focus ? 2 : 1));
        p->setBrush(Theme::color(R::Surface));
        p->drawRoundedRect(card, 5, 5);

        const QRectF title = card.adjusted(8, 5, -8, 0);
        const QFont font = Theme::font(kSmallPixels);
        const QFontMetricsF fm(font);
        p->setFont(font);
        p->setPen(Theme::color(R::Text));
        const bool warn = !h.warning().isEmpty();
        p->drawText(title, Qt::AlignLeft | Qt::AlignTop, fm.elidedText(h.name, Qt::ElideMiddle, title.width() - (warn ? 18 : 0)));
        if (warn)
            markIcon(Mark::Warning).paint(p, QRect(int(title.right()) - 14, int(title.top()), 14, 14));

        const QRectF area(
            card.left() + 8, title.top() + fm.height() + 4, card.width() - 16, card.height() - 2 * fm.height() - 17);
        const auto [lo, hi] = fullRange(h);
        const auto x = [&, lo = lo, hi = hi](double v) { return area.left() + area.width() * (v - lo) / (hi - lo); };
        p->setRenderHint(QPainter::Antialiasing, false);
        const std::vector<double> &bars = model->bars(index.row());
        const double most = bars.empty() ? 1 : std::max(1., *std::max_element(bars.begin(), bars.end()));
        const auto height = [&](double v) { return model->log ? std::log1p(v) / std::log1p(most) : v / most; };
        const double w = area.width() / double(std::max<size_t>(1, bars.size()));
        for (size_t i = 0; i < bars.size(); ++i) {
            if (bars[i] <= 0)
                continue;
            const double tall = std::max(1., area.height() * height(bars[i]));
            const int left = int(std::lround(area.left() + double(i) * w)),
                      right = int(std::lround(area.left() + double(i + 1) * w));
            p->fillRect(QRectF(left, area.bottom() - tall, std::max(1, right - left), tall), Theme::color(R::PlotCurve));
        }
        p->setPen(Theme::color(R::BorderStrong));
        p->drawLine(area.bottomLeft(), area.bottomRight());
        if (h.hasRange) {
            p->setPen(QPen(Theme::color(R::PlotRange), 1.4, Qt::DashLine));
            for (double at : { h.clipMin, h.clipMax })
                p->drawLine(QPointF(x(at), area.top()), QPointF(x(at), area.bottom()));
        }
        p->setFont(Theme::font(11));
        p->setPen(Theme::color(R::TextMuted));
        const QRectF foot(area.left(), area.bottom() + 2, area.width(), fm.height());
        p->drawText(foot, Qt::AlignLeft | Qt::AlignVCenter, h.count ? numberText(h.min, 3) : QString());
        p->drawText(foot, Qt::AlignRight | Qt::AlignVCenter, h.count ? numberText(h.max, 3) : QString());
        p->restore();
    }
};

class HistogramWall : public QListView
{
public:
    explicit HistogramWall(QWidget *parent)
        : QListView(parent)
        , model(new WallModel(this))
    {
        setAccessibleName(HistogramView::tr("Histograms"));
        setObjectName("wall");
        setModel(model);
        setItemDelegate(new ThumbnailDelegate(this));
        setViewMode(QListView::IconMode);
        setResizeMode(QListView::Adjust);
        setMovement(QListView::Static);
        setUniformItemSizes(true);
        setSelectionMode(QAbstractItemView::SingleSelection);
        setFrameShape(QFrame::NoFrame);
        setMouseTracking(true);
        setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    }
    WallModel *const model;
};

// --- The panel ------------------------------------------------------------------------------------------------------

HistogramView::HistogramView(QWidget *parent)
    : QWidget(parent)
    , pages_(new QStackedWidget(this))
    , plot_(new HistogramPlot(this))
    , wall_(new HistogramWall(this))
    , header_(new QWidget(this))
    , back_(textButton(tr("All histograms"), header_))
    , linear_(textButton(tr("Linear"), header_))
    , log_(textButton(tr("Logarithmic"), header_))
    , reset_(textButton(tr("Show all"), header_))
    , title_(new QPushButton(header_))
    , facts_(new QLabel(this))
    , warning_(new QLabel(this))
    , pointer_(new QLabel(this))
    , emptyText_(emptyLabel({}, this))
    , emptyButton_(new QPushButton(this))
{
    plot_->setObjectName("plot");
    back_->setArrowType(Qt::LeftArrow);
    back_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    back_->setToolTip(tr("Back to the wall of histograms (Escape)"));
    reset_->setToolTip(tr("Show the whole range (double click, Home)"));
    title_->setFlat(true);
    title_->setToolTip(tr("Go to this node"));
    title_->setFont(Theme::font(kTextPixels, QFont::DemiBold));
    for (QToolButton *button : { linear_, log_ }) {
        button->setCheckable(true);
        button->setAutoExclusive(true);
    }
    linear_->setChecked(true);
    facts_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    facts_->setWordWrap(true);
    pointer_->setAccessibleName(tr("Under the pointer"));
    pointer_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);

    auto *head = new QHBoxLayout(header_);
    head->setContentsMargins(6, 3, 6, 3);
    head->setSpacing(4);
    head->addWidget(back_);
    head->addWidget(title_);
    head->addStretch();
    head->addWidget(reset_);
    head->addSpacing(8);
    head->addWidget(linear_);
    head->addWidget(log_);

    auto *large = new QWidget(this);
    auto *warn = new QHBoxLayout;
    auto *warnIcon = new QLabel(large);
    warnIcon->setObjectName("warningIcon");
    warn->setSpacing(6);
    warn->addWidget(warnIcon);
    warn->addWidget(warning_, 1);
    auto *foot = new QHBoxLayout;
    foot->addWidget(facts_, 3);
    foot->addWidget(pointer_, 2);
    auto *column = new QVBoxLayout(large);
    column->setContentsMargins(8, 0, 8, 4);
    column->setSpacing(3);
    column->addLayout(warn);
    column->addWidget(plot_, 1);
    column->addLayout(foot);

    auto *empty = new QWidget(this);
    auto *middle = new QVBoxLayout(empty);
    middle->addStretch();
    middle->addWidget(emptyText_);
    middle->addWidget(emptyButton_, 0, Qt::AlignHCenter);
    middle->addStretch();
    emptyButton_->setObjectName("emptyAction");

    pages_->addWidget(empty);
    pages_->addWidget(wall_);
    pages_->addWidget(large);
    auto *all = new QVBoxLayout(this);
    all->setContentsMargins(0, 0, 0, 0);
    all->setSpacing(0);
    all->addWidget(header_);
    all->addWidget(pages_, 1);
    setEmptyText(tr("Calibrate to see histograms."), tr("Calibrate"));
    setHistograms({});

    connect(back_, &QToolButton::clicked, this, &HistogramView::showWall);
    connect(reset_, &QToolButton::clicked, plot_, &HistogramPlot::showAll);
    connect(log_, &QToolButton::toggled, this, &HistogramView::setLogarithmic);
    connect(title_, &QPushButton::clicked, this, [this] { emit nodeActivated(current()); });
    connect(emptyButton_, &QPushButton::clicked, this, &HistogramView::actionRequested);
    connect(plot_, &HistogramPlot::pointerMoved, pointer_, &QLabel::setText);
    const auto open = [this](const QModelIndex &index) {
        const NodeId node = wall_->model->rows[index.row()].node;
        showLarge(node);
        plot_->setFocus();
        emit nodeActivated(node);
    };
    connect(wall_, &QListView::clicked, this, open);
    connect(wall_, &QListView::activated, this, [this, open](const QModelIndex &index) {
        if (!isLarge()) // a click may activate as well
            open(index);
    });
}

void HistogramView::setHistograms(const QVector<HistogramData> &histograms)
{
    const NodeId shown = current();
    histograms_ = histograms;
    wall_->model->reset(histograms);
    if (histograms.isEmpty()) {
        current_ = {};
        pages_->setCurrentIndex(0);
        updateHeader();
    } else if (histograms.size() == 1) {
        showLarge(histograms.first().node);
    } else if (shown && find(shown)) {
        showLarge(shown);
    } else {
        showWall();
    }
}

void HistogramView::setSelected(const QVector<NodeId> &nodes)
{
    QVector<HistogramData> some;
    for (NodeId node : nodes)
        if (const HistogramData *h = find(node))
            some.append(*h);
    if (some.size() == 1) {
        showLarge(some.first().node);
    } else if (some.size() > 1) {
        wall_->model->reset(some);
        current_ = {};
        pages_->setCurrentIndex(1);
        updateHeader();
    } else if (!isLarge() && wall_->model->rows.size() != histograms_.size()) {
        wall_->model->reset(histograms_);
        updateHeader();
    }
}

const HistogramData *HistogramView::find(NodeId node) const
{
    for (const HistogramData &h : histograms_)
        if (h.node == node)
            return &h;
    return nullptr;
}

void HistogramView::showLarge(NodeId node)
{
    const HistogramData *h = find(node);
    if (!h)
        return;
    current_ = node;
    pages_->setCurrentIndex(2);
    plot_->setData(*h);
    title_->setText(h->name);
    title_->setAccessibleName(tr("Go to node %1").arg(h->name));
    QString facts = tr("%1, %2 values, min %3, max %4, mean %5")
                        .arg(h->dtype, countText(qint64(h->count)), numberText(h->min), numberText(h->max), numberText(h->mean));
    if (h->hasRange)
        facts += ";  "
            + tr("%1: scale %2, zero point %3")
                  .arg(h->observer.isEmpty() ? tr("Range") : h->observer, numberText(h->scale, 6))
                  .arg(h->zeroPoint);
    facts_->setText(facts);
    warning_->setText(h->warning());
    updateHeader();
}

void HistogramView::showWall()
{
    if (histograms_.size() < 2)
        return;
    const NodeId from = current_;
    current_ = {};
    if (wall_->model->rows.size() < 2)
        wall_->model->reset(histograms_);
    pages_->setCurrentIndex(1);
    for (int row = 0; row < wall_->model->rowCount(); ++row)
        if (wall_->model->rows[row].node == from)
            wall_->setCurrentIndex(wall_->model->index(row));
    updateHeader();
    if (from)
        wall_->setFocus();
}

void HistogramView::setEmptyText(const QString &sentence, const QString &action)
{
    emptyText_->setText(sentence);
    emptyButton_->setText(action);
    emptyButton_->setVisible(!action.isEmpty());
}

void HistogramView::setLogarithmic(bool on)
{
    (on ? log_ : linear_)->setChecked(true);
    wall_->model->log = on;
    wall_->viewport()->update();
    plot_->setLogarithmic(on);
}

bool HistogramView::isLarge() const
{
    return pages_->currentIndex() == 2;
}

NodeId HistogramView::current() const
{
    return current_;
}

std::pair<double, double> HistogramView::visibleRange() const
{
    return { plot_->sight().lower, plot_->sight().upper };
}

void HistogramView::setVisibleRange(double lo, double hi)
{
    plot_->xAxis->setRange(lo, hi);
}

std::vector<double> HistogramView::bars() const
{
    return plot_->counts();
}

QString HistogramView::pointerText() const
{
    return plot_->pointerText();
}

void HistogramView::keyPressEvent(QKeyEvent *event)
{
    if (event->key() == Qt::Key_Escape && isLarge() && histograms_.size() > 1)
        showWall();
    else
        QWidget::keyPressEvent(event);
}

void HistogramView::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        updateHeader();
}

void HistogramView::updateHeader()
{
    const bool large = isLarge(), empty = histograms_.isEmpty();
    header_->setVisible(!empty);
    back_->setVisible(large && histograms_.size() > 1);
    reset_->setVisible(large);
    title_->setEnabled(large);
    if (!large && !empty)
        title_->setText(tr("Histograms: %1").arg(wall_->model->rows.size()));
    auto *icon = findChild<QLabel *>("warningIcon");
    icon->setPixmap(markIcon(Mark::Warning).pixmap(16, 16));
    icon->setVisible(!warning_->text().isEmpty());
    warning_->setVisible(!warning_->text().isEmpty());
}

} // namespace fb

#include "histogram_view.moc"
