// Fuseboard: the canvas under real mouse and keys, and the contrast of the theme. GPL-3.0-or-later.
#include <QSignalSpy>
#include <QWheelEvent>
#include <QtTest>

#include "views/canvas.h"
#include "views/minimap.h"
#include "views/theme.h"

using namespace fb;

namespace
{

// Two residual blocks of one stage, then a head.
std::shared_ptr<const GraphModule> net()
{
    GraphModule gm;
    NodeId last;
    auto add = [&](Opcode op, const std::string &name, const std::string &target, std::vector<NodeId> inputs,
                   std::vector<std::string> modules) {
        Node n;
        n.op = op;
        n.name = name;
        n.target = target;
        n.meta = TensorMeta{ { 1, 64, 56, 56 }, DType::Float32 };
        for (NodeId id : inputs)
            n.args.push_back(Arg(id));
        ModuleStack stack;
        for (const auto &path : modules)
            stack.push_back(
                { path, path.find('.') == std::string::npos ? "torch.nn.modules.container.Sequential" : "net.BasicBlock", 0 });
        if (!stack.empty())
            n.stack = std::make_shared<const ModuleStack>(stack);
        return last = gm.graph.append(std::move(n));
    };
    add(Opcode::Placeholder, "x", "x", {}, {});
    for (const std::string block : { "layer1.0", "layer1.1" }) {
        const NodeId skip = last;
        const std::string tag = block == "layer1.0" ? "_a" : "_b";
        add(Opcode::CallFunction, "relu" + tag, "torch.relu", { last }, { "layer1", block });
        add(Opcode::CallFunction, "sigmoid" + tag, "torch.sigmoid", { last }, { "layer1", block });
        add(Opcode::CallFunction, "add" + tag, "operator.add", { last, skip }, { "layer1", block });
    }
    add(Opcode::CallFunction, "flat", "torch.flatten",
        {
            last,
        },
        {});
    add(Opcode::Output, "output", "output", { last }, {});
    return std::make_shared<const GraphModule>(std::move(gm));
}

} // namespace

class TestCanvas : public QObject
{
    Q_OBJECT

    std::unique_ptr<Canvas> canvas;
    std::shared_ptr<const GraphModule> gm;

    NodeId id(const char *name) const { return gm->graph.find(name); }
    QPoint at(const char *name) const { return canvas->itemRect(id(name)).center().toPoint(); }
    QList<NodeId> selected() const { return canvas->selectedNodes(); }

private slots:
    void initTestCase() { Theme::apply(*qApp, Theme::Mode::Light); }

    void init()
    {
        gm = net();
        canvas = std::make_unique<Canvas>();
        canvas->setAnimated(false);
        canvas->resize(900, 900);
        canvas->show();
        QVERIFY(QTest::qWaitForWindowExposed(canvas.get()));
        canvas->setGraph(gm);
        QVERIFY(canvas->waitForLayout());
        canvas->setUnfolded({ "layer1" });
        QVERIFY(canvas->waitForLayout());
        canvas->fit();
    }
    void cleanup() { canvas.reset(); }

    void opensFoldedToFit()
    {
        Canvas fresh;
        fresh.resize(900, 700);
        fresh.setGraph(gm);
        QVERIFY(fresh.waitForLayout());
        QVERIFY(fresh.isUnfolded("layer1") && fresh.isUnfolded("layer1.0")); // 13 boxes fit
        QVERIFY(!fresh.accessibleName().isEmpty());
    }

    void clickSelects()
    {
        QSignalSpy spy(canvas.get(), &Canvas::selectionChanged);
        QTest::mouseClick(canvas.get(), Qt::LeftButton, {}, at("flat"));
        QCOMPARE(selected(), QList<NodeId>{ id("flat") });
        QTest::mouseClick(canvas.get(), Qt::LeftButton, Qt::ShiftModifier, at("x"));
        QCOMPARE(selected(), (QList<NodeId>{ id("x"), id("flat") }));
        QTest::mouseClick(canvas.get(), Qt::LeftButton, Qt::ShiftModifier, at("x"));
        QCOMPARE(selected(), QList<NodeId>{ id("flat") });
        QTest::mouseClick(canvas.get(), Qt::LeftButton, {}, { 3, 3 });
        QVERIFY(selected().isEmpty());
        QCOMPARE(spy.count(), 4);
        QTest::mouseClick(canvas.get(), Qt::LeftButton, {}, canvas->moduleRect("layer1.0").center().toPoint());
        QCOMPARE(canvas->selectedModules(), QStringList{ "layer1.0" });
    }

    void doubleClickUnfoldsUnderThePointer()
    {
        QVERIFY(canvas->itemRect(id("relu_a")).isNull());
        const QPoint p = canvas->moduleRect("layer1.0").center().toPoint();
        QTest::mouseDClick(canvas.get(), Qt::LeftButton, {}, p);
        QVERIFY(canvas->waitForLayout());
        QVERIFY(canvas->isUnfolded("layer1.0"));
        QVERIFY(!canvas->itemRect(id("relu_a")).isNull());
        QVERIFY(canvas->moduleRect("layer1.0").contains(p));
        // Its title folds it again.
        const QPoint title = canvas->moduleRect("layer1.0").topLeft().toPoint() + QPoint(60, 8);
        QTest::mouseDClick(canvas.get(), Qt::LeftButton, {}, title);
        QVERIFY(canvas->waitForLayout());
        QVERIFY(!canvas->isUnfolded("layer1.0"));
        QVERIFY(canvas->moduleRect("layer1.0").contains(title));
        QSignalSpy activated(canvas.get(), &Canvas::nodeActivated);
        QTest::mouseDClick(canvas.get(), Qt::LeftButton, {}, at("flat"));
        QCOMPARE(activated.count(), 1);
    }

    void wheelZoomsAtThePointer()
    {
        const QPointF p(300, 200);
        const QPointF under = canvas->toScene(p);
        const double before = canvas->zoom();
        QWheelEvent wheel(p, canvas->mapToGlobal(p), {}, { 0, 240 }, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
        QCoreApplication::sendEvent(canvas.get(), &wheel);
        QVERIFY(canvas->zoom() > before * 1.2);
        QVERIFY(QLineF(canvas->toWidget(under), p).length() < 1);
        QTest::keyClick(canvas.get(), Qt::Key_1, Qt::ControlModifier);
        QCOMPARE(canvas->zoom(), 1.0);
        QTest::keyClick(canvas.get(), Qt::Key_0, Qt::ControlModifier);
        QVERIFY(canvas->rect().contains(at("x")) && canvas->rect().contains(at("output")));
        QTest::keyClick(canvas.get(), Qt::Key_Left, Qt::AltModifier);
        QCOMPARE(canvas->zoom(), 1.0);
    }

    void dragPansAndBands()
    {
        const QPoint from(5, 300), by(0, 40);
        const QPoint before = at("flat");
        QTest::mousePress(canvas.get(), Qt::LeftButton, {}, from);
        QTest::mouseMove(canvas.get(), from + by / 2);
        QTest::mouseMove(canvas.get(), from + by);
        QTest::mouseRelease(canvas.get(), Qt::LeftButton, {}, from + by);
        QVERIFY((at("flat") - before - by).manhattanLength() <= 2);

        canvas->fit();
        const QRectF box = canvas->itemRect(id("flat")).united(canvas->itemRect(id("output"))).adjusted(-8, -8, 8, 8);
        QTest::mousePress(canvas.get(), Qt::LeftButton, Qt::ShiftModifier, box.topLeft().toPoint());
        QMouseEvent move(
            QEvent::MouseMove, box.center(), canvas->mapToGlobal(box.center()), Qt::NoButton, Qt::LeftButton, Qt::ShiftModifier);
        QCoreApplication::sendEvent(canvas.get(), &move);
        QTest::mouseRelease(canvas.get(), Qt::LeftButton, Qt::ShiftModifier, box.bottomRight().toPoint());
        QCOMPARE(selected(), (QList<NodeId>{ id("flat"), id("output") }));
        QTest::keyClick(canvas.get(), Qt::Key_Escape);
        QVERIFY(selected().isEmpty());
        QTest::keyClick(canvas.get(), Qt::Key_A, Qt::ControlModifier);
        QCOMPARE(selected().size(), 3);
        QCOMPARE(canvas->selectedModules().size(), 2);
    }

    void arrowsWalkAndEnterFolds()
    {
        canvas->setFocus();
        QTest::keyClick(canvas.get(), Qt::Key_Down);
        QCOMPARE(selected(), QList<NodeId>{ id("x") });
        QTest::keyClick(canvas.get(), Qt::Key_Down);
        QCOMPARE(canvas->selectedModules(), QStringList{ "layer1.0" });
        QTest::keyClick(canvas.get(), Qt::Key_Return);
        QVERIFY(canvas->waitForLayout());
        QVERIFY(canvas->isUnfolded("layer1.0"));
        QTest::keyClick(canvas.get(), Qt::Key_Down);
        QCOMPARE(selected(), QList<NodeId>{ id("relu_a") });
        QTest::keyClick(canvas.get(), Qt::Key_Down);
        QCOMPARE(selected(), QList<NodeId>{ id("sigmoid_a") });
        QTest::keyClick(canvas.get(), Qt::Key_Up);
        QCOMPARE(selected(), QList<NodeId>{ id("relu_a") });
    }

    void searchRevealsAndCentres()
    {
        QCOMPARE(canvas->search("sigmoid"), 2);
        QCOMPARE(canvas->search("op:add module:layer1.1"), 1);
        QCOMPARE(canvas->search("shape:1x64x56"), int(gm->graph.size()));
        QCOMPARE(canvas->search("dtype:int8"), 0);
        QCOMPARE(canvas->search("re:^relu_[ab]$"), 2);
        QCOMPARE(canvas->search("re:("), 0);
        QCOMPARE(canvas->search("sigmoid"), 2);
        QVERIFY(canvas->nextHit());
        QVERIFY(canvas->waitForLayout());
        QCOMPARE(selected(), QList<NodeId>{ id("sigmoid_a") });
        QVERIFY(canvas->rect().contains(at("sigmoid_a")));
        QVERIFY(canvas->nextHit());
        QVERIFY(canvas->waitForLayout());
        QVERIFY(canvas->isUnfolded("layer1.1"));
        QVERIFY(canvas->rect().contains(at("sigmoid_b")));
        QVERIFY(canvas->previousHit());
        QCOMPARE(selected(), QList<NodeId>{ id("sigmoid_a") });
    }

    void contextMenuNamesTheSelection()
    {
        QSignalSpy spy(canvas.get(), &Canvas::contextMenuRequested);
        QContextMenuEvent menu(QContextMenuEvent::Mouse, at("flat"), canvas->mapToGlobal(at("flat")));
        QCoreApplication::sendEvent(canvas.get(), &menu);
        QCOMPARE(spy.count(), 1);
        QCOMPARE(spy[0][0].value<QList<NodeId>>(), QList<NodeId>{ id("flat") });
        QTest::keyClick(canvas.get(), Qt::Key_Menu);
        QCOMPARE(spy.count(), 2);
    }

    void edgesAreSelectedAndFollowed()
    {
        const QRectF from = canvas->itemRect(id("flat")), to = canvas->itemRect(id("output"));
        QSignalSpy spy(canvas.get(), &Canvas::edgeSelected);
        QTest::mouseClick(canvas.get(), Qt::LeftButton, {},
            ((QPointF(from.center().x(), from.bottom()) + QPointF(to.center().x(), to.top())) / 2).toPoint());
        QCOMPARE(spy.count(), 1);
        QTest::keyClick(canvas.get(), Qt::Key_Down);
        QCOMPARE(selected(), QList<NodeId>{ id("output") });
    }

    // An edit keeps folding, selection and scroll.
    void survivesAnEdit()
    {
        QTest::mouseClick(canvas.get(), Qt::LeftButton, {}, at("flat"));
        const QPoint before = at("flat");
        GraphModule edited = *gm;
        Node n;
        n.target = "torch.relu";
        n.args = { Arg(id("x")) };
        const NodeId fresh = edited.graph.insertAfter(id("x"), n);
        edited.graph.replaceAllUses(id("x"), fresh, fresh);
        gm = std::make_shared<const GraphModule>(edited);
        canvas->setGraph(gm);
        QVERIFY(canvas->waitForLayout());
        QCOMPARE(selected(), QList<NodeId>{ id("flat") });
        QVERIFY(canvas->isUnfolded("layer1") && !canvas->isUnfolded("layer1.0"));
        QVERIFY((at("flat") - before).manhattanLength() <= 2);
        QVERIFY(!canvas->itemRect(fresh).isNull());
    }

    void onlyTheNewestLayoutIsShown()
    {
        QSignalSpy finished(canvas.get(), &Canvas::layoutFinished);
        canvas->foldAll();
        canvas->unfoldAll();
        canvas->toggleFold("layer1.1");
        QVERIFY(canvas->waitForLayout());
        QCOMPARE(finished.count(), 1);
        QVERIFY(canvas->isUnfolded("layer1.0") && !canvas->isUnfolded("layer1.1"));
    }

    void pictures()
    {
        QHash<uint32_t, NodeBadge> badges;
        badges[id("flat").value] = { NodeBadge::Runs::FloatUnsupported, "no int8 kernel", "overflow", true, true, false };
        canvas->setBadges(badges);
        for (ColourBy by : { ColourBy::Category, ColourBy::Quantization, ColourBy::DType }) {
            canvas->setColourBy(by);
            const QImage image = canvas->renderToImage({ 640, 480 });
            QSet<QRgb> colours;
            for (int y = 0; y < image.height(); y += 2)
                for (int x = 0; x < image.width(); x += 2)
                    colours.insert(image.pixel(x, y));
            QVERIFY(colours.size() > 20);
        }
        QVERIFY(canvas->findChild<Minimap *>()->isVisible());
        QPoint before = at("flat");
        canvas->setZoom(2);
        before = at("flat");
        QTest::mouseClick(canvas->findChild<Minimap *>(), Qt::LeftButton, {}, { 86, 10 });
        QVERIFY(at("flat") != before);
    }

    void contrast()
    {
        using Role = Theme::Role;
        for (bool dark : { false, true }) {
            for (Role ground : { Role::Ground, Role::Surface, Role::Raised }) {
                const QColor g = Theme::color(ground, dark);
                for (Role text : { Role::Text, Role::TextMuted, Role::Link, Role::Error, Role::Warning, Role::Success,
                         Role::CodeKeyword, Role::CodeString, Role::CodeNumber, Role::CodeComment, Role::CodeFunction })
                    QVERIFY2(Theme::contrast(Theme::color(text, dark), g) >= 4.5,
                        qPrintable(QString("text role %1 dark %2").arg(int(text)).arg(dark)));
                for (Role mark : { Role::BorderStrong, Role::Accent, Role::Producer, Role::Consumer, Role::SearchHit, Role::Edge,
                         Role::Int8, Role::FloatByChoice, Role::FloatUnsupported, Role::Observed, Role::LeafNode, Role::Undecided,
                         Role::PlotCurve, Role::PlotRange })
                    QVERIFY2(Theme::contrast(Theme::color(mark, dark), g) >= 3,
                        qPrintable(QString("mark role %1 dark %2").arg(int(mark)).arg(dark)));
                for (int c = 0; c <= int(Category::Other); ++c)
                    QVERIFY2(
                        Theme::contrast(Theme::category(Category(c), dark), g) >= 3, qPrintable(QString("category %1").arg(c)));
            }
            for (Role chip :
                { Role::Int8, Role::FloatByChoice, Role::FloatUnsupported, Role::Observed, Role::LeafNode, Role::SearchHit })
                QVERIFY(Theme::contrast(Theme::color(chip, dark), Theme::textOn(Theme::color(chip, dark))) >= 4.5);
            QVERIFY(Theme::contrast(Theme::color(Role::Accent, dark), Theme::color(Role::AccentText, dark)) >= 4.5);
        }
    }
};

QTEST_MAIN(TestCanvas)
#include "tst_canvas.moc"
