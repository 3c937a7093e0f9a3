// Fuseboard: the panels driven by mouse and key. GPL-3.0-or-later.
//
// Each panel is filled with values as the application fills it, used as a hand would, and asked what it shows and says. The
// last test draws every panel in both themes into the folder `panels` beside this program, to be looked at.

#include <QAbstractItemView>
#include <QAction>
#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTableWidget>
#include <QTest>
#include <QTextBrowser>
#include <QToolButton>
#include <QTreeView>
#include <QVBoxLayout>
#include <QWheelEvent>
#include <cmath>
#include <numeric>

#include "views/code_view.h"
#include "views/command_palette.h"
#include "views/empty_state.h"
#include "views/histogram_view.h"
#include "views/inspector.h"
#include "views/jobs_view.h"
#include "views/layers_view.h"
#include "views/module_tree.h"
#include "views/problems_view.h"
#include "views/rules_view.h"
#include "views/search_box.h"
#include "views/step_row.h"
#include "views/theme.h"

using namespace fb;

namespace
{

ModuleInfo module(const std::string &path, const std::string &className, ModuleKind kind, Kwargs attrs = {})
{
    ModuleInfo m;
    m.path = path;
    m.className = className;
    m.kind = kind;
    m.attrs = std::move(attrs);
    return m;
}

// x -> layer1.conv -> layer1.relu -> add(., x) -> fc -> output.
std::shared_ptr<GraphModule> smallModel()
{
    auto gm = std::make_shared<GraphModule>();
    gm->rootClass = "Net";
    gm->modules.set("", module("", "net.Net", ModuleKind::Container));
    gm->modules.set("layer1", module("layer1", "net.Block", ModuleKind::Container));
    gm->modules.set("layer1.conv",
        module("layer1.conv", "torch.nn.modules.conv.Conv2d", ModuleKind::Nn,
            { { "in_channels", 16 }, { "out_channels", 16 }, { "kernel_size", Arg::ints({ 3, 3 }) },
                { "padding", Arg::ints({ 1, 1 }) } }));
    gm->modules.set("layer1.relu", module("layer1.relu", "torch.nn.modules.activation.ReLU", ModuleKind::Nn));
    gm->modules.set(
        "fc", module("fc", "torch.nn.modules.linear.Linear", ModuleKind::Nn, { { "in_features", 16 }, { "out_features", 10 } }));
    gm->tensors.set("layer1.conv.weight", { makeTensor(DType::Float32, { 16, 16, 3, 3 }), true, true });
    gm->tensors.set("fc.weight", { makeTensor(DType::Float32, { 10, 16 }), true, true });

    const auto stack = std::make_shared<const ModuleStack>(ModuleStack{ { "layer1", "net.Block", 0 } });
    const auto source
        = std::make_shared<const SourceLine>(SourceLine{ "/home/me/net.py", 21, "y = self.relu(self.conv(x))", "forward" });
    const auto node
        = [&](Opcode op, const char *name, const char *target, ArgList args, Kwargs kwargs = {}, bool inside = false) {
              Node n;
              n.op = op;
              n.name = name;
              n.target = target;
              n.args = std::move(args);
              n.kwargs = std::move(kwargs);
              n.meta = TensorMeta{ { 1, 16, 8, 8 }, DType::Float32 };
              if (inside) {
                  n.stack = stack;
                  n.source = source;
              }
              return gm->graph.append(std::move(n));
          };
    const NodeId x = node(Opcode::Placeholder, "x", "x", {});
    const NodeId conv = node(Opcode::CallModule, "layer1_conv", "layer1.conv", { x }, {}, true);
    const NodeId relu = node(Opcode::CallModule, "layer1_relu", "layer1.relu", { conv }, {}, true);
    const NodeId add = node(Opcode::CallFunction, "add", "operator.add", { relu, x }, { { "alpha", 2 } });
    const NodeId fc = node(Opcode::CallModule, "fc", "fc", { add });
    node(Opcode::Output, "output", "output", { fc });
    return gm;
}

// A normal distribution around `centre`, as a histogram that bins any range exactly.
HistogramData histogram(uint32_t node, const QString &name, double centre, double width, bool rectified = false)
{
    const double total = 200000;
    HistogramData h;
    h.node = NodeId{ node };
    h.name = name;
    h.dtype = "float32";
    h.min = rectified ? 0 : centre - 4 * width;
    h.max = centre + 4 * width;
    h.mean = centre;
    h.count = quint64(total);
    h.rebin = [=, lo0 = h.min](double lo, double hi, int bins) {
        const auto below = [&](double v) { return v < lo0 ? 0. : total * 0.5 * std::erfc((centre - v) / width / std::sqrt(2)); };
        std::vector<double> out(static_cast<size_t>(bins));
        for (int i = 0; i < bins; ++i)
            out[size_t(i)] = below(lo + (hi - lo) * (i + 1) / bins) - below(lo + (hi - lo) * i / bins);
        return out;
    };
    h.hasRange = true;
    h.clipMin = std::min(0., h.min);
    h.clipMax = h.max;
    h.scale = (h.clipMax - h.clipMin) / 255;
    h.zeroPoint = int(std::lround(-h.clipMin / h.scale));
    h.observer = "MinMaxObserver";
    return h;
}

double sum(const std::vector<double> &v)
{
    return std::accumulate(v.begin(), v.end(), 0.);
}

template <class T> T *shown(T *widget, QSize size)
{
    widget->resize(size);
    widget->show();
    (void)QTest::qWaitForWindowExposed(widget);
    return widget;
}

QVector<NodeId> nodesOf(const QList<QVariant> &arguments)
{
    return arguments.first().value<QVector<NodeId>>();
}

QVector<LayerRow> layers()
{
    LayerRow conv{ NodeId{ 1 }, "conv1", "Conv2d", "quint8", "MinMaxObserver", 0.05, -1.5, 11.25, 30, "" };
    LayerRow clamp{ NodeId{ 2 }, "clamp", "torch.clamp", "float32", "", {}, {}, {}, {},
        "float: no int8 form, \"clamp\" is not in x86" };
    LayerRow fc{ NodeId{ 3 }, "fc", "Linear", "quint8", "MinMaxObserver", 0.2, -3.0, 48.0, 15, "" };
    return { conv, clamp, fc };
}

} // namespace

class TestPanels : public QObject
{
    Q_OBJECT
private slots:
    void init() { Theme::apply(*qApp, Theme::Mode::Light); }

    void searchBoxStepsAndCounts()
    {
        SearchBox box("Find");
        shown(&box, { 400, 40 });
        box.activate();
        QSignalSpy typed(&box, &SearchBox::textChanged), next(&box, &SearchBox::next), previous(&box, &SearchBox::previous),
            dismissed(&box, &SearchBox::dismissed);
        QTest::keyClicks(box.lineEdit(), "relu");
        QCOMPARE(typed.size(), 4);
        QCOMPARE(box.text(), "relu");
        box.setHits(-1, 12);
        QCOMPARE(box.countText(), "hits: 12");
        QTest::keyClick(box.lineEdit(), Qt::Key_Return);
        QTest::keyClick(box.lineEdit(), Qt::Key_F3);
        QTest::keyClick(box.lineEdit(), Qt::Key_Return, Qt::ShiftModifier);
        QCOMPARE(next.size(), 2);
        QCOMPARE(previous.size(), 1);
        box.setHits(2, 12);
        QCOMPARE(box.countText(), "3 of 12");
        box.setHits(-1, 0);
        QCOMPARE(box.countText(), "no hits");
        QTest::keyClick(box.lineEdit(), Qt::Key_Escape);
        QCOMPARE(box.text(), "");
        QCOMPARE(dismissed.size(), 0);
        QTest::keyClick(box.lineEdit(), Qt::Key_Escape);
        QCOMPARE(dismissed.size(), 1);
    }

    void codeFollowsSelectionBothWays()
    {
        CodeView code;
        code.setLines({ { "def forward(self, x):", {} }, { "    conv = self.conv(x)", NodeId{ 2 } },
            { "    relu = torch.relu(conv);  conv = None", NodeId{ 3 } }, { "    return relu", NodeId{ 4 } } });
        shown(&code, { 600, 300 });
        QSignalSpy chosen(&code, &CodeView::nodesSelected);
        code.setSelected({ NodeId{ 3 } });
        QTest::qWait(30);
        QCOMPARE(code.litLines(), QVector<int>{ 2 });
        QCOMPARE(chosen.size(), 0);

        auto *editor = code.findChild<QAbstractScrollArea *>();
        const int line = QFontMetrics(Theme::monospace(13)).height();
        editor->setFocus();
        QTest::mouseClick(editor->viewport(), Qt::LeftButton, {}, { 120, line + line / 2 });
        QTRY_COMPARE(chosen.size(), 1);
        QCOMPARE(nodesOf(chosen.first()), QVector<NodeId>{ NodeId{ 2 } });
        QCOMPARE(code.litLines(), QVector<int>{ 1 });
        QTest::keyClick(editor, Qt::Key_Down);
        QTRY_COMPARE(chosen.size(), 2);
        QCOMPARE(nodesOf(chosen.last()), QVector<NodeId>{ NodeId{ 3 } });
        QTest::keyClick(editor, Qt::Key_A, Qt::ControlModifier);
        QTRY_COMPARE(chosen.size(), 3);
        QCOMPARE(nodesOf(chosen.last()).size(), 3);
        QVERIFY(code.text().startsWith("def forward(self, x):\n"));
        QTest::keyClicks(editor, "zzz"); // read only
        QVERIFY(!code.text().contains("zzz"));
    }

    void codeSearch()
    {
        CodeView code;
        std::vector<CodeLine> lines;
        for (uint32_t i = 1; i <= 10000; ++i)
            lines.push_back({ "    relu_" + std::to_string(i) + " = torch.relu(x)", NodeId{ i } });
        code.setLines(lines);
        shown(&code, { 600, 300 });
        auto *editor = code.findChild<QAbstractScrollArea *>();
        editor->setFocus();
        QTest::keyClick(editor, Qt::Key_F, Qt::ControlModifier);
        auto *box = code.findChild<SearchBox *>();
        QVERIFY(box->isVisible());
        QSignalSpy chosen(&code, &CodeView::nodesSelected);
        QTest::keyClicks(box->lineEdit(), "RELU_777");
        QCOMPARE(box->countText(), "1 of 11"); // 777 and 7770 to 7779
        QCOMPARE(chosen.size(), 0);
        QTest::keyClick(box->lineEdit(), Qt::Key_Return);
        QCOMPARE(nodesOf(chosen.last()), QVector<NodeId>{ NodeId{ 7770 } });
        QTest::keyClick(box->lineEdit(), Qt::Key_Return, Qt::ShiftModifier);
        QCOMPARE(nodesOf(chosen.last()), QVector<NodeId>{ NodeId{ 777 } });
        QTest::keyClick(box->lineEdit(), Qt::Key_Escape);
        QTest::keyClick(box->lineEdit(), Qt::Key_Escape);
        QVERIFY(!box->isVisible());
        code.setSelected({ NodeId{ 9000 } }); // out of sight: scrolled to
        QCOMPARE(code.litLines(), QVector<int>{ 8999 });
    }

    void histogramZoomsExactly()
    {
        HistogramView view;
        const HistogramData h = histogram(7, "layer1_conv", 0.5, 1);
        view.setHistograms({ h });
        shown(&view, { 800, 400 });
        QVERIFY(view.isLarge());
        QCOMPARE(view.current(), NodeId{ 7 });
        QVERIFY(view.visibleRange().first < h.min && view.visibleRange().second > h.max);
        QVERIFY(std::abs(sum(view.bars()) - double(h.count)) < 0.01 * double(h.count));

        auto *plot = view.findChild<QWidget *>("plot");
        const QPointF middle = plot->rect().center();
        const auto before = view.visibleRange();
        QWheelEvent wheel(
            middle, plot->mapToGlobal(middle), {}, { 0, 120 }, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
        QApplication::sendEvent(plot, &wheel);
        const auto after = view.visibleRange();
        QVERIFY(after.second - after.first < before.second - before.first);
        // What is drawn is what the statistics say for this range, not the old bars magnified.
        QCOMPARE(view.bars(), h.rebin(after.first, after.second, int(view.bars().size())));

        QTest::mouseMove(plot, middle.toPoint() + QPoint(3, 0));
        QTest::mouseMove(plot, middle.toPoint());
        QTRY_VERIFY(view.pointerText().contains("values ("));
        QTest::mouseDClick(plot, Qt::LeftButton, {}, middle.toPoint());
        QCOMPARE(view.visibleRange(), before);

        plot->setFocus();
        QTest::keyClick(plot, Qt::Key_Plus);
        QVERIFY(view.visibleRange().second < before.second);
        QTest::keyClick(plot, Qt::Key_Home);
        QCOMPARE(view.visibleRange(), before);
        view.setVisibleRange(1e9, 2e9); // the values are never lost
        QVERIFY(view.visibleRange().first <= h.max && view.visibleRange().second < 1e6);
    }

    void histogramWallGoesToTheNodeAndBack()
    {
        HistogramView view;
        QSignalSpy action(&view, &HistogramView::actionRequested), activated(&view, &HistogramView::nodeActivated);
        shown(&view, { 800, 400 });
        auto *button = view.findChild<QPushButton *>("emptyAction");
        QVERIFY(button->isVisible());
        QTest::mouseClick(button, Qt::LeftButton);
        QCOMPARE(action.size(), 1);

        view.setHistograms({ histogram(1, "conv1", 0, 1), histogram(2, "relu", 0, 1, true), histogram(3, "fc", 3, 2) });
        QVERIFY(!view.isLarge());
        auto *wall = view.findChild<QAbstractItemView *>("wall");
        QTest::mouseClick(wall->viewport(), Qt::LeftButton, {}, wall->visualRect(wall->model()->index(1, 0)).center());
        QCOMPARE(activated.size(), 1);
        QCOMPARE(activated.last().first().value<NodeId>(), NodeId{ 2 });
        QVERIFY(view.isLarge());
        QCOMPARE(view.current(), NodeId{ 2 });
        QTest::keyClick(view.findChild<QWidget *>("plot"), Qt::Key_Escape);
        QVERIFY(!view.isLarge());
        QTest::keyClick(wall, Qt::Key_Right);
        QTest::keyClick(wall, Qt::Key_Return);
        QCOMPARE(view.current(), NodeId{ 3 });
        QCOMPARE(activated.size(), 2);

        view.setSelected({ NodeId{ 1 }, NodeId{ 3 } });
        QVERIFY(!view.isLarge());
        QCOMPARE(wall->model()->rowCount(), 2);
        view.setSelected({ NodeId{ 1 } });
        QCOMPARE(view.current(), NodeId{ 1 });
        QCOMPARE(activated.size(), 2); // only the hand is told of
    }

    void histogramFlags()
    {
        HistogramData h;
        h.count = 10;
        QVERIFY(h.warning().startsWith("Every value is zero"));
        h.max = 1;
        QCOMPARE(h.warning(), "");
        h.nan = 12;
        h.inf = 1500;
        QCOMPARE(h.warning(), "12 nan and 1,500 inf were left out.");
        h.count = 0;
        QVERIFY(h.warning().endsWith("No finite value was seen."));
    }

    void moduleTree()
    {
        ModuleTree tree;
        tree.setModule(smallModel());
        shown(&tree, { 500, 400 });
        QCOMPARE(tree.text(),
            "Net | Net | 6 | 2,464\n"
            "  layer1 | Block | 2 | 2,304\n"
            "  fc | Linear | 1 | 160\n");
        QSignalSpy selected(&tree, &ModuleTree::moduleSelected), leaf(&tree, &ModuleTree::leafRequested),
            keep(&tree, &ModuleTree::keepFloatRequested);
        tree.setCurrent("layer1.conv");
        QCOMPARE(tree.current(), "layer1.conv");
        QCOMPARE(selected.size(), 0);
        QTest::keyClick(tree.view(), Qt::Key_Down);
        QCOMPARE(selected.last().first().toString(), "layer1.relu");

        QTest::keyClicks(tree.findChild<QLineEdit *>(), "conv2d");
        QCOMPARE(tree.text(),
            "Net | Net | 6 | 2,464\n"
            "  layer1 | Block | 2 | 2,304\n"
            "    conv | Conv2d | 1 | 2,304\n");
        tree.findChild<QLineEdit *>()->clear();

        tree.setCurrent("layer1");
        emit tree.view()->customContextMenuRequested(tree.view()->visualRect(tree.view()->currentIndex()).center());
        auto *menu = tree.findChild<QMenu *>();
        QVERIFY(menu);
        const auto press = [&](const QString &text) {
            for (QAction *a : menu->actions())
                if (a->text() == text)
                    a->trigger();
        };
        press("Mark as leaf");
        QCOMPARE(leaf.size(), 1);
        QCOMPARE(leaf.last(), (QList<QVariant>{ "layer1", true }));
        press("Keep in float");
        QCOMPARE(keep.last(), (QList<QVariant>{ "layer1", true }));
        menu->close();
        tree.setKeptFloat({ "layer1" });
        QVERIFY(tree.text().contains("layer1  [float]"));

        tree.setModule(smallModel()); // unfolded and current stay
        QCOMPARE(tree.current(), "layer1");
        QVERIFY(tree.text().contains("    relu | ReLU"));
    }

    void inspectorShowsAllAndFollowsLinks()
    {
        Inspector inspector;
        const auto gm = smallModel();
        QSignalSpy wanted(&inspector, &Inspector::weightStatsWanted), activated(&inspector, &Inspector::nodeActivated),
            source(&inspector, &Inspector::sourceActivated), keep(&inspector, &Inspector::keepFloatRequested);
        inspector.setModule(gm);
        shown(&inspector, { 380, 700 });
        const NodeId conv = gm->graph.find("layer1_conv"), add = gm->graph.find("add");
        inspector.setSelected({ conv });
        QCOMPARE(wanted.size(), 1);
        inspector.setWeightStats(add, { { "late", "1", "float32" } }); // an answer for another node
        inspector.setWeightStats(conv, { { "weight", "16x16x3x3", "float32", 2304, -0.5, 0.5, 0.01, 0.2, 0, 0, 0 } });
        QuantFacts facts;
        facts.state = "int8";
        facts.scale = 0.0125;
        facts.zeroPoint = 64;
        inspector.setQuantization(conv, facts);
        for (const char *line :
            { "op: call_module\n", "target: layer1.conv\n", "shape: 1x16x8x8\n", "dtype: float32\n", "input: x\n",
                "kernel_size: (3, 3)\n", "inputs: x\n", "users: layer1_relu\n", "source: net.py:21\n", "module: layer1\n",
                "weight: 16x16x3x3 float32, -0.5 to 0.5, mean 0.01, deviation 0.2\n", "scale: 0.0125\n", "zero point: 64\n" })
            QVERIFY2(inspector.text().contains(line), qPrintable(inspector.text()));
        QVERIFY(!inspector.text().contains("late"));

        const auto click = [&](const QString &name) {
            for (auto *row : inspector.widget()->findChildren<QTextBrowser *>())
                if (row->accessibleName() == name)
                    QTest::mouseClick(row->viewport(), Qt::LeftButton, {}, { 6, row->height() / 2 });
        };
        click("users");
        QTRY_COMPARE(activated.size(), 1);
        QCOMPARE(activated.last().first().value<NodeId>(), gm->graph.find("layer1_relu"));
        click("source");
        QTRY_COMPARE(source.size(), 1);
        QCOMPARE(source.last(), (QList<QVariant>{ "/home/me/net.py", 21 }));
        auto *box = inspector.findChild<QCheckBox *>("keepFloat");
        QTest::keyClick(box, Qt::Key_Space);
        QCOMPARE(keep.size(), 1);
        QCOMPARE(keep.last().at(0).value<QVector<NodeId>>(), QVector<NodeId>{ conv });
        QCOMPARE(keep.last().at(1).toBool(), true);

        inspector.setSelected({ add });
        QVERIFY2(inspector.text().contains("inputs: layer1_relu, x\n"), qPrintable(inspector.text()));
        QVERIFY2(inspector.text().contains("alpha: 2\n"), qPrintable(inspector.text()));
        inspector.setSelected({ add, conv });
        QVERIFY2(inspector.text().contains("names: add, layer1_conv\n"), qPrintable(inspector.text()));
        inspector.setSelected({ NodeId{ 999 } });
        QCOMPARE(inspector.text(), "");
    }

    void problems()
    {
        ProblemsView view;
        QSignalSpy counted(&view, &ProblemsView::countChanged), fix(&view, &ProblemsView::fixRequested),
            node(&view, &ProblemsView::nodeActivated);
        shown(&view, { 700, 240 });
        view.setProblems({ { 1, ProblemRow::Warning, NodeId{ 4 }, "conv1", "Its calibration data held 3 nan.", "", "" },
            { 2, ProblemRow::Error, {}, "gate", "Tracing failed.", "if x.sum() > 0:", "Mark as leaf" } });
        QCOMPARE(
            view.text(), "error | gate | Tracing failed. | [Mark as leaf]\nwarning | conv1 | Its calibration data held 3 nan.\n");
        QCOMPARE(counted.last().first().toInt(), 2);
        QTest::mouseClick(view.findChild<QPushButton *>("fix2"), Qt::LeftButton);
        QCOMPARE(fix.last().first().toInt(), 2);
        auto *table = view.findChild<QTableWidget *>();
        QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualItemRect(table->item(1, 2)).center());
        QCOMPARE(node.last().first().value<NodeId>(), NodeId{ 4 });
        view.setProblems({});
        QCOMPARE(counted.last().first().toInt(), 0);
    }

    void jobs()
    {
        JobsView view;
        QSignalSpy cancel(&view, &JobsView::cancelRequested), running(&view, &JobsView::runningChanged);
        shown(&view, { 700, 200 });
        view.setJobs({ { 2, "Calibrate", JobRow::Running, 0.405, 130, "batch 81 of 200" },
            { 1, "Open net.fxt", JobRow::Done, 1, -1, "713 nodes in 0.2 s" } });
        QCOMPARE(
            view.text(), "Calibrate | 40 % | about 2 min left | batch 81 of 200\nOpen net.fxt | done | 713 nodes in 0.2 s\n");
        QCOMPARE(view.running(), 1);
        auto *button = view.findChild<QPushButton *>("cancel2");
        QTest::mouseClick(button, Qt::LeftButton);
        QCOMPARE(cancel.last().first().toInt(), 2);
        QVERIFY(!button->isEnabled());
        view.setJobs({ { 2, "Calibrate", JobRow::Failed, 0.4, -1, "cancelled" } });
        QCOMPARE(view.text(), "Calibrate | failed | cancelled\n");
        QCOMPARE(running.last().first().toInt(), 0);
        QCOMPARE(remainingText(-1), "");
        QCOMPARE(remainingText(3), "a few seconds left");
        QCOMPARE(remainingText(7200), "about 2 h left");
    }

    void layersSortFilterCopySave()
    {
        LayersView view;
        view.setRows(layers());
        shown(&view, { 1000, 260 });
        QCOMPARE(view.csv(),
            "Name,Op,Dtype,Observer,Scale,Zero point,Min,Max,Why float\r\n"
            "conv1,Conv2d,quint8,MinMaxObserver,0.05,30,-1.5,11.25,\r\n"
            "clamp,torch.clamp,float32,,,,,,\"float: no int8 form, \"\"clamp\"\" is not in x86\"\r\n"
            "fc,Linear,quint8,MinMaxObserver,0.2,15,-3,48,\r\n");
        QSignalSpy chosen(&view, &LayersView::nodesSelected), save(&view, &LayersView::saveRequested);
        view.setSelected({ NodeId{ 3 } });
        QCOMPARE(chosen.size(), 0);
        auto *table = view.table();
        table->setFocus();
        QTest::keyClick(table, Qt::Key_C, Qt::ControlModifier);
        QCOMPARE(QGuiApplication::clipboard()->text(),
            "Name\tOp\tDtype\tObserver\tScale\tZero point\tMin\tMax\tWhy "
            "float\nfc\tLinear\tquint8\tMinMaxObserver\t0.2\t15\t-3\t48\t\n");
        QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(table->model()->index(1, 0)).center());
        QCOMPARE(nodesOf(chosen.last()), QVector<NodeId>{ NodeId{ 2 } });

        // As numbers, not as text; what has no scale comes last.
        table->sortByColumn(LayersModel::Max, Qt::AscendingOrder);
        QCOMPARE(view.csv().section("\r\n", 1, 1).section(',', 0, 0), "conv1");
        QCOMPARE(view.csv().section("\r\n", 3, 3).section(',', 0, 0), "clamp");
        QTest::keyClicks(view.findChild<QLineEdit *>(), "linear");
        QCOMPARE(view.csv().count("\r\n"), 2);
        for (auto *button : view.findChildren<QToolButton *>())
            if (button->text().startsWith("Save"))
                QTest::mouseClick(button, Qt::LeftButton);
        QCOMPARE(save.last().first().toString(), view.csv());
    }

    void stepRow()
    {
        StepRow steps;
        shown(&steps, steps.sizeHint());
        QSignalSpy pressed(&steps, &StepRow::stepPressed);
        steps.setState(StepRow::Calibrate, { StepState::Running, 40, {} });
        steps.setState(StepRow::Review, { StepState::OutOfDate, -1, "3 nodes changed since calibration" });
        QCOMPARE(steps.button(StepRow::Calibrate)->accessibleName(), "4 Calibrate");
        QCOMPARE(steps.button(StepRow::Calibrate)->accessibleDescription(), "running 40 %");
        QCOMPARE(steps.button(StepRow::Review)->toolTip(), "Review: out of date: 3 nodes changed since calibration");
        QTest::mouseClick(steps.button(StepRow::Export), Qt::LeftButton);
        QCOMPARE(pressed.last().first().toInt(), int(StepRow::Export));
        QTest::keyClick(steps.button(StepRow::Trace), Qt::Key_Space);
        QCOMPARE(pressed.last().first().toInt(), int(StepRow::Trace));
        steps.setStepEnabled(StepRow::Edit, false);
        QTest::mouseClick(steps.button(StepRow::Edit), Qt::LeftButton);
        QCOMPARE(pressed.size(), 2);
    }

    void emptyState()
    {
        EmptyState start;
        QSignalSpy open(&start, &EmptyState::openRequested), trace(&start, &EmptyState::traceRequested),
            demo(&start, &EmptyState::demoRequested), recent(&start, &EmptyState::recentRequested);
        start.setRecent({ "/models/resnet18.fxt", "/models/net.fxt" });
        shown(&start, { 900, 700 });
        QTest::mouseClick(start.findChild<QPushButton *>("open"), Qt::LeftButton);
        QTest::mouseClick(start.findChild<QPushButton *>("trace"), Qt::LeftButton);
        QTest::keyClick(start.findChild<QPushButton *>("demo"), Qt::Key_Space);
        QCOMPARE(open.size() + trace.size() + demo.size(), 3);
        auto *list = start.findChild<QListWidget *>();
        QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, list->visualItemRect(list->item(0)).center());
        QCOMPARE(recent.size(), 1);
        QCOMPARE(recent.last().first().toString(), "/models/resnet18.fxt");
        QTest::keyClick(list, Qt::Key_Down);
        QTest::keyClick(list, Qt::Key_Return);
        QCOMPARE(recent.size(), 2);
        QCOMPARE(recent.last().first().toString(), "/models/net.fxt");
        start.setMessage("net.fxt: this is not a trace archive; trace the model again.");
        QVERIFY(start.findChild<QLabel *>("message")->isVisible());
    }

    void fuzzy()
    {
        QCOMPARE(fuzzyScore(u"xyz", u"Fuse all"), -1);
        QVERIFY(fuzzyScore(u"fa", u"Fuse all") > fuzzyScore(u"fa", u"Safe area"));
        QVERIFY(fuzzyScore(u"fuse", u"Fuse all") > fuzzyScore(u"fuse", u"Find unused elements"));
        QVERIFY(fuzzyScore(u"", u"anything") >= 0);
    }

    void commandPalette()
    {
        QWidget window;
        QLineEdit before(&window);
        QAction fuse("&Fuse all..."), calibrate("&Calibrate"), off("Fall back"), separator;
        fuse.setShortcut(QKeySequence("Ctrl+U"));
        off.setEnabled(false);
        separator.setSeparator(true);
        CommandPalette palette(&window);
        shown(&window, { 800, 600 });
        before.setFocus();
        QSignalSpy fused(&fuse, &QAction::triggered), disabled(&off, &QAction::triggered);
        palette.popUp({ &calibrate, &off, &fuse, &separator });
        QVERIFY(palette.isVisible());
        QCOMPARE(palette.shown(), QStringList({ "Calibrate", "Fuse all", "Fall back" }));
        auto *edit = palette.findChild<QLineEdit *>();
        QTest::keyClicks(edit, "fal");
        QCOMPARE(palette.shown(), QStringList({ "Fuse all", "Fall back" }));
        QTest::keyClick(edit, Qt::Key_Down);
        QTest::keyClick(edit, Qt::Key_Return); // not possible now: nothing happens
        QVERIFY(palette.isVisible());
        QTest::keyClick(edit, Qt::Key_Up);
        QTest::keyClick(edit, Qt::Key_Return);
        QCOMPARE(fused.size(), 1);
        QCOMPARE(disabled.size(), 0);
        QVERIFY(!palette.isVisible());
        QVERIFY(before.hasFocus());
        palette.popUp({ &fuse });
        QTest::keyClick(edit, Qt::Key_Escape);
        QVERIFY(!palette.isVisible());
    }

    void rules()
    {
        RulesView view;
        QSignalSpy backend(&view, &RulesView::backendRequested), removed(&view, &RulesView::removeRequested);
        view.setBackends({ "x86", "qnnpack" }, "x86");
        view.setRules({ { "n", "node", "conv1", "keep in float", 1, true },
            { "m", "module", "old.path", "keep in float", 0, true }, { "d", "default", "", "int8, MinMax", 30, false } });
        shown(&view, { 420, 300 });
        QCOMPARE(view.text(),
            "node | conv1 | keep in float | 1\nmodule | old.path | keep in float | decides nothing\ndefault |  | int8, MinMax | "
            "30\n");
        QCOMPARE(backend.size(), 0);
        QTest::keyClick(view.findChild<QComboBox *>(), Qt::Key_Down);
        QCOMPARE(backend.last().first().toString(), "qnnpack");
        auto *table = view.findChild<QTableWidget *>();
        auto *button = view.findChild<QToolButton *>();
        QVERIFY(!button->isEnabled());
        QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualItemRect(table->item(1, 1)).center());
        QTest::keyClick(table, Qt::Key_Delete);
        QCOMPARE(removed.last().first().toString(), "m");
        QTest::keyClick(table, Qt::Key_Down);
        QVERIFY(!button->isEnabled()); // the default stays
        QTest::keyClick(table, Qt::Key_Delete);
        QCOMPARE(removed.size(), 1);
    }

    // Every control has a name, no text is below 11 px, and both themes draw.
    void mannersAndPictures_data()
    {
        QTest::addColumn<bool>("dark");
        QTest::newRow("light") << false;
        QTest::newRow("dark") << true;
    }

    void mannersAndPictures()
    {
        QFETCH(bool, dark);
        Theme::apply(*qApp, dark ? Theme::Mode::Dark : Theme::Mode::Light);
        const QDir folder(QCoreApplication::applicationDirPath() + "/panels");
        QVERIFY(folder.mkpath("."));
        const auto picture = [&](QWidget *w, QSize size, const char *name) {
            shown(w, size);
            QTest::qWait(60);
            for (QWidget *child : w->findChildren<QWidget *>()) {
                if (!child->isVisible())
                    continue;
                QVERIFY2(child->fontInfo().pixelSize() >= 11, qPrintable(QString(name) + ' ' + child->metaObject()->className()));
                const bool control = qobject_cast<QAbstractButton *>(child) || qobject_cast<QLineEdit *>(child)
                    || qobject_cast<QComboBox *>(child) || qobject_cast<QAbstractItemView *>(child);
                if (control && child->focusPolicy() != Qt::NoFocus) {
                    auto *button = qobject_cast<QAbstractButton *>(child);
                    const QString said = child->accessibleName() + (button ? button->text() : QString());
                    QVERIFY2(!said.isEmpty(), qPrintable(QString(name) + ' ' + child->metaObject()->className()));
                }
            }
            QVERIFY(w->grab().save(folder.filePath(QStringLiteral("%1-%2.png").arg(name, dark ? "dark" : "light"))));
            w->hide();
        };

        const auto gm = smallModel();
        CodeView code;
        code.setLines({ { "def forward(self, x : torch.Tensor):", {} }, { "    conv1 = self.conv1(x);  x = None", NodeId{ 1 } },
            { "    bn1 = self.bn1(conv1);  conv1 = None", NodeId{ 2 } },
            { "    relu = torch.nn.functional.relu(bn1, inplace = True);  bn1 = None", NodeId{ 3 } },
            { "    layer1_0_conv1 = self.layer1.\"0\".conv1(relu)", NodeId{ 4 } },
            { "    add = layer1_0_conv1 + relu;  layer1_0_conv1 = relu = None", NodeId{ 5 } },
            { "    flatten = torch.flatten(add, 1);  add = None", NodeId{ 6 } },
            { "    fc = self.fc(flatten);  flatten = None", NodeId{ 7 } }, { "    return fc  # the logits", NodeId{ 8 } } });
        code.setSelected({ NodeId{ 3 }, NodeId{ 5 } });
        code.openSearch();
        code.findChild<SearchBox *>()->setText("relu");
        picture(&code, { 820, 260 }, "code");

        HistogramView one;
        HistogramData h = histogram(4, "layer1_0_conv1", 0.4, 0.9);
        h.nan = 3;
        h.clipMax = 2.6; // a narrower range than all values
        one.setHistograms({ h, histogram(2, "relu", 0, 1, true) });
        one.setSelected({ NodeId{ 4 } });
        picture(&one, { 900, 360 }, "histogram");
        one.setLogarithmic(true);
        picture(&one, { 900, 360 }, "histogram-log");

        HistogramView wall;
        QVector<HistogramData> many;
        for (uint32_t i = 0; i < 11; ++i)
            many += histogram(i + 1,
                QStringLiteral("layer%1_%2_%3").arg(i / 3 + 1).arg(i % 3).arg(i % 2 ? "relu" : "conv_downsample"),
                i % 2 ? 0 : 0.3 * i, 0.5 + 0.1 * i, i % 2);
        many[3].inf = 2;
        wall.setHistograms(many);
        picture(&wall, { 900, 300 }, "wall");
        HistogramView none;
        picture(&none, { 900, 260 }, "histogram-empty");

        ModuleTree tree;
        tree.setModule(gm);
        tree.setCurrent("layer1.conv");
        tree.setKeptFloat({ "layer1.conv" });
        picture(&tree, { 380, 300 }, "modules");

        Inspector inspector;
        inspector.setModule(gm);
        const NodeId conv = gm->graph.find("layer1_conv");
        inspector.setSelected({ conv });
        inspector.setWeightStats(conv, { { "weight", "16x16x3x3", "float32", 2304, -0.513, 0.4871, 0.0123, 0.1804, 12, 0, 0 } });
        QuantFacts facts;
        facts.state = "float by choice";
        facts.reason = "Kept in float by the rule for module layer1.conv.";
        facts.rule = "module layer1.conv: keep in float";
        facts.observer = "MinMaxObserver";
        facts.scale = 0.012583;
        facts.zeroPoint = 64;
        facts.min = -0.8;
        facts.max = 2.4;
        facts.keepFloat = true;
        inspector.setQuantization(conv, facts);
        picture(&inspector, { 340, 720 }, "inspector");

        ProblemsView problems;
        problems.setProblems(
            { { 1, ProblemRow::Error, {}, "gate (net.Gate)",
                  "Tracing failed: the forward branches on a value of its data, which symbolic tracing cannot follow.",
                  "net.py:34   if x.mean() > 0:", "Mark as leaf" },
                { 2, ProblemRow::Warning, NodeId{ 2 }, "layer1_conv", "Its calibration data held 3 nan, which were left out.", "",
                    "" },
                { 3, ProblemRow::Note, NodeId{ 3 }, "add", "Its output was zero for every sample.", "", "Keep in float" } });
        picture(&problems, { 900, 220 }, "problems");

        JobsView jobs;
        jobs.setJobs({ { 3, "Calibrate on digits.npz", JobRow::Running, 0.42, 74, "sample 420 of 1,000" },
            { 2, "Lay out the graph", JobRow::Running, -1, -1, "" },
            { 1, "Trace net.py:make", JobRow::Failed, 1, -1,
                "Tracing failed in gate, net.py line 34; mark it as a leaf and trace again." },
            { 0, "Open digits.fxt", JobRow::Done, 1, -1, "31 nodes in 0.1 s" } });
        picture(&jobs, { 900, 220 }, "jobs");

        LayersView table;
        table.setRows(layers());
        table.setSelected({ NodeId{ 2 } });
        picture(&table, { 1100, 220 }, "layers");

        QWidget bar;
        auto *steps = new StepRow;
        (new QVBoxLayout(&bar))->addWidget(steps);
        steps->setState(StepRow::Trace, { StepState::Done, -1, {} });
        steps->setState(StepRow::Edit, { StepState::Done, -1, {} });
        steps->setState(StepRow::Configure, { StepState::OutOfDate, -1, "3 nodes changed" });
        steps->setState(StepRow::Calibrate, { StepState::Running, 42, {} });
        steps->setNext(StepRow::Review);
        picture(&bar, { 780, 56 }, "steps");

        EmptyState start;
        start.setRecent({ "/home/me/models/resnet18.fxt", "/home/me/models/mobilenet_v2_calibrated.fxt", "/home/me/digits.fxt" });
        picture(&start, { 1000, 700 }, "start");

        QWidget window;
        CommandPalette palette(&window);
        QAction a("&Fuse all..."), b("&Calibrate..."), c("Fit the graph to the window"), d("Undo fuse");
        a.setShortcut(QKeySequence("Ctrl+U"));
        c.setShortcut(QKeySequence("Ctrl+0"));
        d.setEnabled(false);
        window.resize(800, 420);
        palette.popUp({ &a, &b, &c, &d });
        picture(&window, { 800, 420 }, "palette");

        RulesView rules;
        rules.setBackends({ "x86", "qnnpack" }, "x86");
        rules.setRules({ { "n", "node", "layer1_0_conv1", "keep in float", 1, true },
            { "m", "module", "features.old", "keep in float", 0, true }, { "d", "default", "", "int8, MinMax", 30, false } });
        picture(&rules, { 440, 260 }, "rules");
    }
};

QTEST_MAIN(TestPanels)

#include "tst_panels.moc"
