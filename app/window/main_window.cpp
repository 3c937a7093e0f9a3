#include "app/window/main_window.h"

#include <unistd.h>

#include <QAction>
#include <QActionGroup>
#include <QApplication>
#include <QCloseEvent>
#include <QComboBox>
#include <QDesktopServices>
#include <QDialog>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QMenuBar>
#include <QMessageBox>
#include <QMimeData>
#include <QProgressBar>
#include <QSaveFile>
#include <QSettings>
#include <QStackedWidget>
#include <QStatusBar>
#include <QTextBrowser>
#include <QThreadPool>
#include <QTimer>
#include <QToolBar>
#include <QToolButton>
#include <QUrl>
#include <QVBoxLayout>

#include "app/document/parts.h"
#include "app/window/node_menu.h"
#include "app/window/present.h"
#include "app/window/trace_panel.h"
#include "model/text/text.h"
#include "passes/raise.h"
#include "views/canvas.h"
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

namespace fb
{

namespace
{

// Runs `work` on a pool thread and hands its answer to `deliver` on this thread, while `owner` lives.
template <class Work, class Deliver> void inBackground(QObject *owner, Work work, Deliver deliver)
{
    QPointer<QObject> guard(owner);
    QThreadPool::globalInstance()->start([guard, work, deliver] {
        auto answer = work();
        QMetaObject::invokeMethod(
            qApp,
            [guard, deliver, answer = std::move(answer)] {
                if (guard)
                    deliver(answer);
            },
            Qt::QueuedConnection);
    });
}

QString dataFilter()
{
    return MainWindow::tr("Arrays (*.npy *.npz *.safetensors);;All files (*)");
}

QVector<NodeId> vectorOf(const QList<NodeId> &nodes)
{
    return nodes;
}

QString memoryText()
{
    QFile file(QStringLiteral("/proc/self/statm"));
    if (!file.open(QIODevice::ReadOnly))
        return {};
    const qint64 pages = file.readAll().split(' ').value(1).toLongLong();
    return MainWindow::tr("%1 MB").arg(pages * sysconf(_SC_PAGESIZE) / 1048576);
}

} // namespace

MainWindow::MainWindow(QWidget *parent)
    : QMainWindow(parent)
    , pages_(new QStackedWidget)
    , empty_(new EmptyState)
    , canvas_(new Canvas)
    , tree_(new ModuleTree)
    , rules_(new RulesView)
    , inspector_(new Inspector)
    , code_(new CodeView)
    , histograms_(new HistogramView)
    , layers_(new LayersView)
    , problems_(new ProblemsView)
    , jobs_(new JobsView)
    , palette_(new CommandPalette(this))
{
    setAcceptDrops(true);
    setDockOptions(AnimatedDocks | AllowNestedDocks | AllowTabbedDocks);
    pages_->addWidget(empty_);
    pages_->addWidget(canvas_);
    setCentralWidget(pages_);
    makeDocks();
    makeToolBar();
    makeActions();
    makeStatusBar();
    connectViews();
    connectDocument();
    resize(1280, 800);
    layout()->activate();
    resizeDocks({ treeDock_, rulesDock_ }, { 420, 200 }, Qt::Vertical);
    resizeDocks({ treeDock_, inspectorDock_ }, { 250, 280 }, Qt::Horizontal);
    resizeDocks({ codeDock_ }, { 250 }, Qt::Vertical);
    firstState_ = saveState();
    QSettings settings;
    restoreGeometry(settings.value(QStringLiteral("geometry")).toByteArray());
    restoreState(settings.value(QStringLiteral("docks")).toByteArray());
    fillRecent();
    refresh();
}

MainWindow::~MainWindow() = default;

// --- assembly ---

QDockWidget *MainWindow::dock(const QString &title, QWidget *view, Qt::DockWidgetArea area, const QString &name)
{
    auto *d = new QDockWidget(title, this);
    d->setObjectName(name);
    d->setWidget(view);
    addDockWidget(area, d);
    return d;
}

void MainWindow::makeDocks()
{
    setCorner(Qt::BottomLeftCorner, Qt::BottomDockWidgetArea);
    setCorner(Qt::BottomRightCorner, Qt::BottomDockWidgetArea);
    treeDock_ = dock(tr("Modules"), tree_, Qt::LeftDockWidgetArea, QStringLiteral("modules"));
    rulesDock_ = dock(tr("Rules"), rules_, Qt::LeftDockWidgetArea, QStringLiteral("rules"));
    inspectorDock_ = dock(tr("Inspector"), inspector_, Qt::RightDockWidgetArea, QStringLiteral("inspector"));
    codeDock_ = dock(tr("Code"), code_, Qt::BottomDockWidgetArea, QStringLiteral("code"));
    histogramDock_ = dock(tr("Histograms"), histograms_, Qt::BottomDockWidgetArea, QStringLiteral("histograms"));
    layersDock_ = dock(tr("Layers"), layers_, Qt::BottomDockWidgetArea, QStringLiteral("layers"));
    problemsDock_ = dock(tr("Problems"), problems_, Qt::BottomDockWidgetArea, QStringLiteral("problems"));
    jobsDock_ = dock(tr("Jobs"), jobs_, Qt::BottomDockWidgetArea, QStringLiteral("jobs"));
    for (QDockWidget *d : { histogramDock_, layersDock_, problemsDock_, jobsDock_ })
        tabifyDockWidget(codeDock_, d);
    codeDock_->raise();
}

QAction *MainWindow::action(const QString &text, const QKeySequence &keys, std::function<void()> run)
{
    auto *a = new QAction(text, this);
    a->setShortcut(keys);
    connect(a, &QAction::triggered, this, [run = std::move(run)] { run(); });
    addAction(a);
    return a;
}

void MainWindow::makeActions()
{
    auto graphAction = [this](const QString &text, const QKeySequence &keys, std::function<void()> run) {
        QAction *a = action(text, keys, std::move(run));
        needGraph_ << a;
        return a;
    };
    auto floatAction = [this](const QString &text, const QKeySequence &keys, std::function<void()> run) {
        QAction *a = action(text, keys, std::move(run));
        needFloat_ << a;
        return a;
    };

    QMenu *file = menuBar()->addMenu(tr("&File"));
    QAction *open = action(tr("Open..."), QKeySequence::Open, [this] { chooseFile(); });
    QAction *traceAction = action(tr("Trace a Python model..."), QKeySequence(tr("Ctrl+T")), [this] { trace(); });
    file->addActions({ open, traceAction });
    file->addAction(graphAction(tr("Trace again..."), {}, [this] { traceAgain(); }));
    file->addAction(action(tr("Open the demo"), {}, [this] { openDemo(); }));
    recentMenu_ = file->addMenu(tr("Recent files"));
    file->addSeparator();
    file->addAction(graphAction(tr("Save graph as..."), QKeySequence::SaveAs, [this] { saveAs(); }));
    file->addAction(graphAction(tr("Export float model..."), {}, [this] { chooseExportFolder(false); }));
    file->addAction(graphAction(tr("Export int8 model..."), QKeySequence(tr("Ctrl+E")), [this] { step(StepRow::Export); }));
    file->addSeparator();
    file->addAction(action(tr("Close window"), QKeySequence::Close, [this] { close(); }));
    file->addAction(action(tr("Quit"), QKeySequence::Quit, [] { QApplication::closeAllWindows(); }));

    QMenu *edit = menuBar()->addMenu(tr("&Edit"));
    undo_ = action(tr("Undo"), QKeySequence::Undo, [this] { doc_.undo(); });
    redo_ = action(tr("Redo"), QKeySequence(tr("Ctrl+Shift+Z")), [this] { doc_.redo(); });
    edit->addActions({ undo_, redo_ });
    edit->addSeparator();
    edit->addAction(floatAction(tr("Fuse all"), QKeySequence(tr("Ctrl+Shift+F")), [this] { fuseNodes(&doc_, {}); }));
    edit->addAction(floatAction(tr("Fuse selection"), {}, [this] {
        if (selected_.size() > 1)
            fuseNodes(&doc_, selected_);
        else
            say(tr("select two or more nodes to fuse"), true);
    }));
    edit->addAction(floatAction(tr("Regroup into modules"), {}, [this] {
        if (isFlat(*doc_.graph()))
            doc_.edit(tr("Regroup into modules"), kRegroupEdit);
        else
            say(tr("nothing in this graph calls ATen operators"), true);
    }));
    edit->addAction(floatAction(tr("Remove"), QKeySequence::Delete, [this] {
        if (selected_.size() == 1)
            removeNodes(&doc_, selected_);
        else
            say(tr("select the one node to remove"), true);
    }));
    edit->addAction(floatAction(tr("Keep in float"), QKeySequence(tr("Ctrl+K")), [this] {
        if (!selected_.isEmpty())
            keepFloat(&doc_, selected_, true);
    }));
    edit->addSeparator();
    edit->addAction(graphAction(tr("Find"), QKeySequence::Find, [this] { search_->activate(); }));
    edit->addAction(graphAction(tr("Select all"), {},
        [this] { select(QList<NodeId>(doc_.graph()->graph.order().begin(), doc_.graph()->graph.order().end()), nullptr); }));

    QMenu *quantize = menuBar()->addMenu(tr("&Quantize"));
    quantize->addAction(
        floatAction(tr("Calibrate on a file..."), QKeySequence(tr("Ctrl+R")), [this] { chooseCalibrationData(); }));
    quantize->addAction(floatAction(tr("Calibrate on a folder..."), {}, [this] {
        auto *dialog = new QFileDialog(this, tr("Folder of calibration data"));
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        dialog->setFileMode(QFileDialog::Directory);
        connect(dialog, &QFileDialog::fileSelected, &doc_, &GraphDocument::calibrate);
        dialog->open();
    }));
    quantize->addAction(floatAction(tr("Convert to int8"), QKeySequence(tr("Ctrl+I")), [this] { doc_.convertToInt8(); }));
    quantize->addAction(graphAction(tr("Evaluate on labelled data..."), {}, [this] { chooseEvaluationData(); }));

    QMenu *view = menuBar()->addMenu(tr("&View"));
    view->addAction(graphAction(tr("Fit"), QKeySequence(tr("Ctrl+0")), [this] { canvas_->fit(); }));
    view->addAction(graphAction(tr("True size"), QKeySequence(tr("Ctrl+1")), [this] { canvas_->trueSize(); }));
    view->addAction(graphAction(tr("Unfold all modules"), {}, [this] { canvas_->unfoldAll(); }));
    view->addAction(graphAction(tr("Fold all modules"), {}, [this] { canvas_->foldAll(); }));
    QAction *leftToRight = new QAction(tr("Left to right"), this);
    leftToRight->setCheckable(true);
    leftToRight->setChecked(QSettings().value(QStringLiteral("leftToRight")).toBool());
    canvas_->setLeftToRight(leftToRight->isChecked());
    connect(leftToRight, &QAction::toggled, this, [this](bool on) {
        QSettings().setValue(QStringLiteral("leftToRight"), on);
        canvas_->setLeftToRight(on);
    });
    view->addAction(leftToRight);
    view->addSeparator();
    QMenu *theme = view->addMenu(tr("Theme"));
    auto *themes = new QActionGroup(this);
    for (auto [text, mode] : { std::pair{ tr("As the system"), Theme::Mode::System },
             std::pair{ tr("Light"), Theme::Mode::Light }, std::pair{ tr("Dark"), Theme::Mode::Dark } }) {
        QAction *a = theme->addAction(text);
        a->setCheckable(true);
        a->setChecked(Theme::mode() == mode);
        themes->addAction(a);
        connect(a, &QAction::triggered, this, [this, mode = mode] { setTheme(mode); });
    }
    QMenu *panels = view->addMenu(tr("Panels"));
    for (QDockWidget *d :
        { treeDock_, rulesDock_, inspectorDock_, codeDock_, histogramDock_, layersDock_, problemsDock_, jobsDock_ })
        panels->addAction(d->toggleViewAction());
    view->addAction(action(tr("Reset layout"), {}, [this] { resetLayout(); }));

    QMenu *help = menuBar()->addMenu(tr("&Help"));
    help->addAction(action(tr("Help"), QKeySequence::HelpContents, [this] { showHelp(); }));
    QAction *commands = action(tr("All commands..."), QKeySequence(tr("Ctrl+Shift+P")), [this] {
        QList<QAction *> enabled;
        for (QAction *a : findChildren<QAction *>())
            if (a->isEnabled() && !a->menu())
                enabled << a;
        palette_->popUp(enabled);
    });
    help->addAction(commands);
}

void MainWindow::makeToolBar()
{
    QToolBar *bar = addToolBar(tr("Main"));
    bar->setObjectName(QStringLiteral("toolbar"));
    bar->setMovable(false);
    auto button = [bar](const QString &text, const QString &tip, const QString &name) {
        auto *b = new QToolButton;
        b->setText(text);
        b->setToolTip(tip);
        b->setAccessibleName(tip);
        b->setObjectName(name);
        b->setAutoRaise(true);
        b->setFocusPolicy(Qt::TabFocus);
        bar->addWidget(b);
        return b;
    };
    connect(button(tr("Open"), tr("Open a trace (Ctrl+O)"), QStringLiteral("openButton")), &QToolButton::clicked, this,
        &MainWindow::chooseFile);
    connect(button(tr("Trace..."), tr("Trace a Python model (Ctrl+T)"), QStringLiteral("traceButton")), &QToolButton::clicked,
        this, [this] { trace(); });
    bar->addSeparator();
    steps_ = new StepRow;
    bar->addWidget(steps_);
    parts_ = new QComboBox;
    parts_->setObjectName(QStringLiteral("parts"));
    parts_->setAccessibleName(tr("Graph"));
    parts_->setToolTip(tr("The model does not trace as a whole. Each of its submodules that does is a graph of its own."));
    parts_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    partsAction_ = bar->addWidget(parts_);
    connect(parts_, &QComboBox::activated, this, [this](int index) { doc_.showPart(parts_->itemData(index).toString()); });
    auto *spacer = new QWidget;
    spacer->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    bar->addWidget(spacer);
    search_ = new SearchBox(tr("Search: name, op:, shape:, re:"));
    search_->setMaximumWidth(300);
    bar->addWidget(search_);
}

void MainWindow::makeStatusBar()
{
    facts_ = new QLabel;
    selectionText_ = new QLabel;
    memory_ = new QLabel;
    memory_->setToolTip(tr("Memory in use"));
    message_ = new QLabel;
    message_->setObjectName(QStringLiteral("message"));
    message_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    progress_ = new QProgressBar;
    progress_->setMaximumWidth(140);
    progress_->setTextVisible(false);
    cancel_ = new QToolButton;
    cancel_->setText(tr("Cancel"));
    cancel_->setAutoRaise(true);
    statusBar()->addWidget(message_, 1);
    for (QWidget *w : { static_cast<QWidget *>(selectionText_), static_cast<QWidget *>(facts_), static_cast<QWidget *>(memory_),
             static_cast<QWidget *>(progress_), static_cast<QWidget *>(cancel_) })
        statusBar()->addPermanentWidget(w);
    progress_->hide();
    cancel_->hide();
    connect(cancel_, &QToolButton::clicked, this, [this] { doc_.jobs()->cancelAll(); });
    auto *timer = new QTimer(this);
    connect(timer, &QTimer::timeout, this, [this] { memory_->setText(memoryText()); });
    timer->start(2000);
    memory_->setText(memoryText());
}

void MainWindow::connectViews()
{
    connect(empty_, &EmptyState::openRequested, this, &MainWindow::chooseFile);
    connect(empty_, &EmptyState::traceRequested, this, [this] { trace(); });
    connect(empty_, &EmptyState::demoRequested, this, &MainWindow::openDemo);
    connect(empty_, &EmptyState::recentRequested, this, &MainWindow::openFile);
    connect(empty_, &EmptyState::recentCleared, this, [this] {
        QSettings().remove(QStringLiteral("recent"));
        fillRecent();
    });
    connect(steps_, &StepRow::stepPressed, this, &MainWindow::step);

    connect(canvas_, &Canvas::selectionChanged, this, [this](const QList<NodeId> &nodes, const QStringList &modules) {
        select(nodes, canvas_);
        if (nodes.isEmpty() && !modules.isEmpty())
            tree_->setCurrent(modules.first().section(QLatin1Char('@'), 0, 0));
    });
    connect(canvas_, &Canvas::contextMenuRequested, this,
        [this](const QList<NodeId> &nodes, const QStringList &modules, const QPoint &at) {
            auto *menu = new QMenu(this);
            menu->setAttribute(Qt::WA_DeleteOnClose);
            menu->setObjectName(QStringLiteral("nodeMenu"));
            fillNodeMenu(menu, &doc_, nodes, modules,
                { [this](NodeId id) { showHistogramOf(id); }, [this](const QString &file, int line) { goToSource(file, line); },
                    [this](const QString &key) { canvas_->toggleFold(key); } });
            if (menu->isEmpty())
                delete menu;
            else
                menu->popup(at);
        });
    connect(canvas_, &Canvas::nodeActivated, this, [this](NodeId) { raise(inspectorDock_); });
    connect(canvas_, &Canvas::hoverText, this, [this](const QString &text) { message_->setText(text); });
    connect(canvas_, &Canvas::layoutFailed, this, [this](const QString &text) { say(text, true); });

    connect(search_, &SearchBox::textChanged, this, [this](const QString &text) {
        canvas_->search(text);
        search_->setHits(canvas_->currentHit(), text.isEmpty() ? -1 : canvas_->hitCount());
    });
    auto stepped = [this](bool) { search_->setHits(canvas_->currentHit(), canvas_->hitCount()); };
    connect(search_, &SearchBox::next, this, [this, stepped] { stepped(canvas_->nextHit()); });
    connect(search_, &SearchBox::previous, this, [this, stepped] { stepped(canvas_->previousHit()); });
    connect(search_, &SearchBox::dismissed, this, [this] { canvas_->setFocus(); });
    auto *slash = new QAction(tr("Search"), this);
    slash->setShortcut(QKeySequence(QStringLiteral("/")));
    slash->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    connect(slash, &QAction::triggered, search_, &SearchBox::activate);
    canvas_->addAction(slash);

    connect(tree_, &ModuleTree::moduleSelected, this, [this](const QString &path) { canvas_->selectModule(path, true); });
    connect(tree_, &ModuleTree::moduleActivated, this, [this](const QString &path) {
        if (doc_.parts().contains(path))
            return doc_.showPart(path);
        canvas_->selectModule(path, true);
        canvas_->setFocus();
    });
    connect(tree_, &ModuleTree::leafRequested, this, [this](const QString &path, bool leaf) { setLeaf(&doc_, path, leaf); });
    connect(tree_, &ModuleTree::keepFloatRequested, this,
        [this](const QString &path, bool keep) { keepModuleFloat(&doc_, path, keep); });

    connect(rules_, &RulesView::backendRequested, this, [this](const QString &name) {
        QuantConfig config = doc_.state().config;
        config.backend = name.toStdString();
        doc_.configure(tr("Backend %1").arg(name), config);
    });
    connect(rules_, &RulesView::removeRequested, this, [this](const QString &id) {
        QuantConfig config = doc_.state().config;
        const std::string pattern = id.section(QLatin1Char(':'), 1).toStdString();
        config.floatNodes.erase(id.startsWith(QLatin1String("node:")) ? pattern : std::string());
        config.floatModules.erase(id.startsWith(QLatin1String("module:")) ? pattern : std::string());
        config.floatTypes.erase(id.startsWith(QLatin1String("type:")) ? pattern : std::string());
        doc_.configure(tr("Remove rule %1").arg(qs(pattern)), config);
    });

    connect(inspector_, &Inspector::nodeActivated, this, [this](NodeId id) { select({ id }, inspector_); });
    connect(inspector_, &Inspector::moduleActivated, this, [this](const QString &path) { canvas_->selectModule(path, true); });
    connect(inspector_, &Inspector::sourceActivated, this, &MainWindow::goToSource);
    connect(inspector_, &Inspector::keepFloatRequested, this,
        [this](const QVector<NodeId> &nodes, bool keep) { keepFloat(&doc_, nodes, keep); });
    connect(inspector_, &Inspector::quantizationWanted, this,
        [this](NodeId id) { inspector_->setQuantization(id, presentQuantization(doc_, id)); });
    connect(inspector_, &Inspector::weightStatsWanted, this, [this](NodeId id) {
        inBackground(
            this, [gm = doc_.graph(), id] { return presentWeights(*gm, id); },
            [this, id](const QVector<WeightStats> &stats) { inspector_->setWeightStats(id, stats); });
    });

    connect(code_, &CodeView::nodesSelected, this, [this](const QVector<NodeId> &nodes) { select(nodes, code_); });
    connect(histograms_, &HistogramView::nodeActivated, this, [this](NodeId id) { select({ id }, histograms_); });
    connect(histograms_, &HistogramView::actionRequested, this, &MainWindow::chooseCalibrationData);
    connect(layers_, &LayersView::nodesSelected, this, [this](const QVector<NodeId> &nodes) { select(nodes, layers_); });
    connect(layers_, &LayersView::nodeActivated, this, [this](NodeId id) {
        select({ id }, layers_);
        canvas_->setFocus();
    });
    connect(layers_, &LayersView::saveRequested, this, [this](const QString &csv) {
        auto *dialog = new QFileDialog(this, tr("Save the table"), QStringLiteral("layers.csv"), tr("CSV (*.csv)"));
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        dialog->setAcceptMode(QFileDialog::AcceptSave);
        connect(dialog, &QFileDialog::fileSelected, this, [this, csv](const QString &path) {
            QSaveFile file(path);
            if (!file.open(QIODevice::WriteOnly) || file.write(csv.toUtf8()) < 0 || !file.commit())
                say(tr("cannot write %1: %2").arg(path, file.errorString()), true);
        });
        dialog->open();
    });
    connect(problems_, &ProblemsView::nodeActivated, this, [this](NodeId id) { select({ id }, problems_); });
    connect(problems_, &ProblemsView::fixRequested, this, &MainWindow::fixProblem);
    connect(problems_, &ProblemsView::countChanged, this,
        [this](int count) { problemsDock_->setWindowTitle(count ? tr("Problems (%1)").arg(count) : tr("Problems")); });
    connect(jobs_, &JobsView::cancelRequested, this, [this](int id) { doc_.jobs()->cancel(id); });
}

void MainWindow::connectDocument()
{
    connect(&doc_, &GraphDocument::opened, this, [this] {
        selected_.clear();
        if (!TracePanel::isScratch(doc_.path()))
            remember(doc_.path());
        parts_->clear();
        parts_->addItem(tr("whole model"), QString());
        for (const QString &path : doc_.parts()) {
            parts_->addItem(qs(pathInModel(path.toStdString())), path);
            parts_->setItemData(
                parts_->count() - 1, qs(shareText(*doc_.model()->modules.find(path.toStdString())->graph)), Qt::ToolTipRole);
        }
        pages_->setCurrentWidget(canvas_);
        canvas_->setGraph(doc_.graph(), true);
        canvas_->setFocus();
    });
    connect(&doc_, &GraphDocument::changed, this, &MainWindow::refresh);
    connect(&doc_, &GraphDocument::planChanged, this, &MainWindow::refreshQuantization);
    connect(&doc_, &GraphDocument::problemsChanged, this, [this] {
        problems_->setProblems(presentProblems(doc_));
        canvas_->setBadges(presentBadges(doc_));
    });
    connect(doc_.jobs(), &Jobs::changed, this, &MainWindow::refreshJobs);
    connect(&doc_, &GraphDocument::failed, this, [this](const QString &what, const QString &message) {
        say(tr("%1: %2").arg(what, message), true);
        if (!doc_.isOpen())
            empty_->setMessage(message);
        QList<Problem> extra = traceProblems_;
        extra.prepend({ Problem::Fault, {}, tr("%1: %2").arg(what, message), {}, {}, {}, {} });
        doc_.setExtraProblems(extra);
    });
    connect(&doc_, &GraphDocument::done, this, [this](const QString &what, const QString &message) {
        const QStringList lines = message.split(QLatin1Char('\n'));
        say(lines.size() > 1 ? tr("%1: %2 (and %3 more, see Jobs)").arg(what, lines.first()).arg(lines.size() - 1)
                             : tr("%1: %2").arg(what, message));
        statusBar()->setToolTip(message);
    });
}

// --- following the document ---

void MainWindow::refresh()
{
    const auto gm = doc_.graph();
    setWindowTitle(doc_.isOpen() ? tr("%1[*] - Fuseboard").arg(doc_.title()) : tr("Fuseboard"));
    setWindowModified(doc_.isModified());
    undo_->setEnabled(doc_.canUndo());
    redo_->setEnabled(doc_.canRedo());
    undo_->setText(doc_.canUndo() ? tr("Undo %1").arg(doc_.undoText()) : tr("Undo"));
    redo_->setText(doc_.canRedo() ? tr("Redo %1").arg(doc_.redoText()) : tr("Redo"));
    for (QAction *a : std::as_const(needGraph_))
        a->setEnabled(doc_.isOpen());
    for (QAction *a : std::as_const(needFloat_))
        a->setEnabled(doc_.isOpen() && !doc_.isInt8());
    search_->setEnabled(doc_.isOpen());
    for (int s = StepRow::Edit; s < StepRow::StepCount; ++s)
        steps_->setStepEnabled(StepRow::Step(s), doc_.isOpen());
    for (QDockWidget *d : { treeDock_, rulesDock_, inspectorDock_, codeDock_, histogramDock_, layersDock_ })
        d->widget()->setEnabled(doc_.isOpen());

    partsAction_->setVisible(doc_.isPartial());
    if (gm) {
        if (doc_.part() != shownPart_) { // another graph, whose nodes have ids of their own
            shownPart_ = doc_.part();
            selected_.clear();
            canvas_->setGraph(gm, true);
        } else if (canvas_->graph() != gm) {
            canvas_->setGraph(gm);
        }
        parts_->setCurrentIndex(parts_->findData(shownPart_));
        QList<NodeId> still;
        for (NodeId id : std::as_const(selected_))
            if (gm->graph.contains(id))
                still << id;
        selected_ = still;
        tree_->setModule(gm);
        QSet<QString> kept;
        for (const std::string &path : doc_.state().config.floatModules)
            kept.insert(qs(path));
        tree_->setKeptFloat(kept);
        inspector_->setModule(gm);
        inspector_->setSelected(vectorOf(selected_));
        const quint64 revision = ++codeRevision_;
        inBackground(
            this, [gm] { return torchCodeLines(*gm); },
            [this, revision](const std::vector<CodeLine> &lines) {
                if (revision != codeRevision_)
                    return;
                code_->setLines(lines);
                code_->setSelected(vectorOf(selected_));
            });
    }
    refreshQuantization();
    refreshStatus();
}

void MainWindow::refreshQuantization()
{
    QStringList backends;
    for (const std::string &name : quantBackends())
        backends << qs(name);
    rules_->setBackends(backends, qs(doc_.state().config.backend));
    rules_->setRules(presentRules(doc_));
    canvas_->setBadges(presentBadges(doc_));
    layers_->setRows(presentLayers(doc_));
    problems_->setProblems(presentProblems(doc_));
    if (selected_.size() == 1)
        inspector_->setQuantization(selected_.first(), presentQuantization(doc_, selected_.first()));
    if (doc_.state().calibration)
        histograms_->setHistograms(presentHistograms(doc_, selected_));
    else
        histograms_->setHistograms({});
    histograms_->setEmptyText(doc_.state().calibration ? tr("Nothing selected was calibrated.")
                                                       : tr("Calibrate on data to see what values the activations take."),
        doc_.state().calibration || !doc_.isOpen() ? QString() : tr("Calibrate..."));
    refreshJobs();
}

void MainWindow::refreshJobs()
{
    jobs_->setJobs(presentJobs(*doc_.jobs()));
    const JobInfo *running = nullptr;
    for (const JobInfo &j : doc_.jobs()->list())
        if (j.running && !j.quiet)
            running = &j;
    progress_->setVisible(running);
    cancel_->setVisible(running);
    if (running) {
        progress_->setRange(0, running->fraction < 0 ? 0 : 100);
        progress_->setValue(int(running->fraction * 100));
        progress_->setToolTip(running->name);
    }
    jobsDock_->setWindowTitle(running ? tr("Jobs (1)") : tr("Jobs"));
    for (int s = 0; s < StepRow::StepCount; ++s)
        steps_->setState(StepRow::Step(s), presentStep(doc_, StepRow::Step(s)));
    steps_->setNext(nextStep(doc_));
}

void MainWindow::refreshStatus()
{
    if (!doc_.isOpen()) {
        facts_->clear();
        selectionText_->clear();
        return;
    }
    const GraphModule &gm = *doc_.graph();
    QStringList facts{ doc_.title(), tr("torch %1").arg(qs(gm.provenance.torchVersion)), nodesText(qsizetype(gm.graph.size())) };
    if (doc_.isInt8())
        facts << tr("int8, %1").arg(qs(doc_.state().config.backend));
    if (const std::string share = shareText(gm); !share.empty())
        facts << qs(share);
    if (const auto &e = doc_.state().evaluation; e && e->accuracyFloat >= 0)
        facts << tr("top-1 float %1 %, int8 %2 %").arg(e->accuracyFloat * 100, 0, 'f', 2).arg(e->accuracyInt8 * 100, 0, 'f', 2);
    facts_->setText(facts.join(QStringLiteral("  |  ")) + QStringLiteral("  |"));
    selectionText_->setText(selected_.isEmpty()
            ? QString()
            : (selected_.size() == 1 ? qs(gm.graph[selected_.first()].name) : tr("%1 selected").arg(selected_.size()))
                + QStringLiteral("  |"));
}

void MainWindow::select(const QList<NodeId> &nodes, QObject *from)
{
    if (selecting_)
        return;
    selecting_ = true;
    selected_ = nodes;
    if (from != canvas_)
        canvas_->setSelection(nodes, true);
    if (from != code_)
        code_->setSelected(vectorOf(nodes));
    if (from != layers_)
        layers_->setSelected(vectorOf(nodes));
    inspector_->setSelected(vectorOf(nodes));
    if (doc_.state().calibration) {
        if (from != histograms_)
            histograms_->setHistograms(presentHistograms(doc_, nodes));
        histograms_->setSelected(vectorOf(nodes));
        if (nodes.size() != 1)
            histograms_->showWall();
    }
    if (nodes.size() == 1 && doc_.isOpen()) {
        const Node &n = doc_.graph()->graph[nodes.first()];
        tree_->setCurrent(qs(n.op == Opcode::CallModule ? n.target : n.modulePath()));
    }
    refreshStatus();
    selecting_ = false;
}

void MainWindow::showHistogramOf(NodeId node)
{
    select({ node }, nullptr);
    raise(histogramDock_);
}

void MainWindow::fixProblem(int id)
{
    if (id < 0 || id >= doc_.problems().size())
        return;
    const Problem p = doc_.problems()[id];
    if (p.fixKind == QLatin1String("leaf") && tracePanel_) {
        tracePanel_->addLeaf(p.fixArgument);
        tracePanel_->show();
        tracePanel_->run();
    } else if (p.fixKind == QLatin1String("recalibrate")) {
        doc_.calibrate(doc_.dataPath());
    } else if (p.fixKind == QLatin1String("worker")) {
        startWorker();
    } else if (p.fixKind == QLatin1String("eval")) {
        doc_.setExtraProblems({});
        doc_.edit(tr("Evaluation mode"), R"({"op": "eval"})");
    } else if (p.fixKind == QLatin1String("calibrate-in-training")) {
        doc_.calibrateInTraining();
    }
}

QString MainWindow::sourceHere() const
{
    if (const Result<std::string> found = sourceOf(*doc_.model(), doc_.path().toStdString()))
        return qs(*found);
    const QString source = qs(doc_.model()->provenance.source), name = source.section(QLatin1Char(':'), -1),
                  file = QFileInfo(source.section(QLatin1Char(':'), 0, -2)).fileName();
    const bool traced = tracePanel_ && !file.isEmpty() && tracePanel_->sourceFolder().exists(file);
    return traced ? tracePanel_->sourceFolder().filePath(file) + QLatin1Char(':') + name : QString();
}

void MainWindow::traceAgain()
{
    const QString source = sourceHere();
    trace(source.isEmpty() ? qs(doc_.model()->provenance.source) : source);
    tracePanel_->setInput(doc_.sampleInputs().join(QLatin1Char(' ')));
    tracePanel_->setOptions(doc_.model()->provenance.options);
}

// With the model's source from where it was traced, or from where the user says.
void MainWindow::startWorker()
{
    const QString python = QSettings().value(QStringLiteral("tracePython")).toString();
    const QString traced = qs(doc_.model()->provenance.source), source = sourceHere();
    if (!source.isEmpty() || !traced.contains(QLatin1Char(':')))
        return doc_.startWorker(python, source);
    const QString file = QFileInfo(traced.section(QLatin1Char(':'), 0, -2)).fileName();
    auto *dialog = new QFileDialog(this, tr("Where is %1?").arg(file), QFileInfo(doc_.path()).path(), tr("Python files (*.py)"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    connect(dialog, &QFileDialog::fileSelected, this, [this, python, traced](const QString &path) {
        doc_.startWorker(python, path + QLatin1Char(':') + traced.section(QLatin1Char(':'), -1));
    });
    dialog->open();
}

void MainWindow::goToSource(const QString &file, int line)
{
    // The trace keeps names, not places: look beside the opened file and where it was traced from.
    QStringList places{ file, QFileInfo(doc_.path()).dir().filePath(file) };
    if (tracePanel_)
        places << tracePanel_->sourceFolder().filePath(file);
    for (const QString &place : places)
        if (QFileInfo(place).isFile() && QFileInfo(place).isAbsolute()) {
            QDesktopServices::openUrl(QUrl::fromLocalFile(place));
            return;
        }
    say(tr("%1:%2 is not on this machine").arg(file).arg(line), true);
}

void MainWindow::raise(QDockWidget *dock)
{
    dock->show();
    dock->raise();
}

void MainWindow::say(const QString &text, bool failed)
{
    QPalette palette = message_->palette();
    palette.setColor(QPalette::WindowText, Theme::color(failed ? Theme::Role::Error : Theme::Role::Text));
    message_->setPalette(palette);
    message_->setText(text);
    message_->setToolTip(text);
}

// --- what the hand asks for ---

void MainWindow::step(int step)
{
    switch (step) {
    case StepRow::Trace:
        return trace();
    case StepRow::Edit:
        if (!doc_.isInt8())
            fuseNodes(&doc_, {});
        return;
    case StepRow::Configure:
        canvas_->setColourBy(ColourBy::Quantization);
        return raise(rulesDock_);
    case StepRow::Calibrate:
        if (doc_.isInt8())
            return say(tr("the graph is in int8; undo the conversion to calibrate again"), true);
        if (doc_.staleNodes() > 0 && !doc_.dataPath().isEmpty())
            return doc_.calibrate(doc_.dataPath());
        return chooseCalibrationData();
    case StepRow::Review:
        if (!doc_.isInt8()) {
            if (!doc_.state().calibration)
                return say(tr("calibrate on data first"), true);
            canvas_->setColourBy(ColourBy::Quantization);
            raise(layersDock_);
            return doc_.convertToInt8();
        }
        raise(layersDock_);
        return chooseEvaluationData();
    case StepRow::Export:
        if (doc_.isInt8())
            return chooseExportFolder(true);
        return say(doc_.state().calibration ? tr("convert to int8 first (Review), or export the float model from the File menu")
                                            : tr("calibrate and convert first, or export the float model from the File menu"),
            true);
    }
}

void MainWindow::openFile(const QString &path)
{
    if (doc_.isOpen()) {
        auto *other = new MainWindow;
        other->setAttribute(Qt::WA_DeleteOnClose);
        other->show();
        other->openFile(path);
        return;
    }
    empty_->setMessage({});
    doc_.open(path);
}

void MainWindow::openDemo()
{
    openFile(resourcePath(QStringLiteral("demo/digits.fxt")));
}

void MainWindow::chooseFile()
{
    auto *dialog = new QFileDialog(this, tr("Open a model"), QSettings().value(QStringLiteral("folder")).toString(),
        tr("Models (*.fxt *.pt2);;All files (*)"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString &path) {
        QSettings().setValue(QStringLiteral("folder"), QFileInfo(path).absolutePath());
        openFile(path);
    });
    dialog->open();
}

void MainWindow::trace(const QString &source)
{
    if (!tracePanel_) {
        tracePanel_ = new TracePanel(this);
        connect(tracePanel_, &TracePanel::traced, this, [this](const QString &file) {
            traceProblems_.clear();
            doc_.setExtraProblems({});
            openFile(file);
        });
        connect(tracePanel_, &TracePanel::failed, this, [this](const TraceResult &result) {
            traceProblems_.clear();
            for (const TraceProblem &p : result.problems) {
                Problem row{ Problem::Fault, p.module, p.sentence(), p.source.trimmed(), {}, {}, {} };
                for (const TraceFix &fix : p.fixes)
                    if (fix.kind == QLatin1String("leaf") && row.fix.isEmpty()) {
                        row.fix = fix.label;
                        row.fixKind = fix.kind;
                        row.fixArgument = fix.value;
                    }
                traceProblems_ << row;
            }
            if (result.problems.isEmpty())
                traceProblems_ << Problem{ Problem::Fault, {}, result.error, {}, {}, {}, {} };
            doc_.setExtraProblems(traceProblems_);
            raise(problemsDock_);
        });
    }
    if (!source.isEmpty())
        tracePanel_->setSource(source);
    tracePanel_->show();
    tracePanel_->raise();
    tracePanel_->activateWindow();
}

void MainWindow::chooseCalibrationData()
{
    auto *dialog = new QFileDialog(this, tr("Calibration data"), QFileInfo(doc_.path()).absolutePath(), dataFilter());
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setObjectName(QStringLiteral("calibrationDialog"));
    dialog->setFileMode(QFileDialog::ExistingFile);
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString &path) {
        raise(histogramDock_);
        doc_.calibrate(path);
    });
    dialog->open();
}

void MainWindow::chooseEvaluationData()
{
    auto *dialog = new QFileDialog(this, tr("Data with labels"), QFileInfo(doc_.path()).absolutePath(), dataFilter());
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setObjectName(QStringLiteral("evaluationDialog"));
    dialog->setFileMode(QFileDialog::ExistingFile);
    connect(dialog, &QFileDialog::fileSelected, &doc_, &GraphDocument::evaluate);
    dialog->open();
}

void MainWindow::chooseExportFolder(bool int8Form)
{
    auto *dialog = new QFileDialog(this, int8Form ? tr("Folder for the int8 model") : tr("Folder for the float model"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setObjectName(QStringLiteral("exportDialog"));
    dialog->setFileMode(QFileDialog::Directory);
    connect(
        dialog, &QFileDialog::fileSelected, this, [this, int8Form](const QString &folder) { doc_.exportTo(folder, int8Form); });
    dialog->open();
}

void MainWindow::saveAs()
{
    auto *dialog
        = new QFileDialog(this, tr("Save the graph"), QFileInfo(doc_.path()).absolutePath(), tr("Trace archives (*.fxt)"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setDefaultSuffix(QStringLiteral("fxt"));
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString &path) { doc_.saveAs(path); });
    dialog->open();
}

void MainWindow::resetLayout()
{
    restoreState(firstState_);
    codeDock_->raise();
}

void MainWindow::showHelp()
{
    auto *dialog = new QDialog(this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(tr("Fuseboard help"));
    auto *text = new QTextBrowser;
    QFile file(QStringLiteral(":/help/help.md"));
    if (file.open(QIODevice::ReadOnly))
        text->setMarkdown(QString::fromUtf8(file.readAll()));
    auto *layout = new QVBoxLayout(dialog);
    layout->addWidget(text);
    dialog->resize(720, 560);
    dialog->show();
}

void MainWindow::setTheme(Theme::Mode mode)
{
    QSettings().setValue(QStringLiteral("theme"), int(mode));
    Theme::apply(*qApp, mode);
}

// --- files and settings ---

void MainWindow::remember(const QString &path)
{
    QSettings settings;
    QStringList recent = settings.value(QStringLiteral("recent")).toStringList();
    recent.removeAll(path);
    recent.prepend(path);
    settings.setValue(QStringLiteral("recent"), QStringList(recent.mid(0, 10)));
    fillRecent();
}

void MainWindow::fillRecent()
{
    const QStringList recent = QSettings().value(QStringLiteral("recent")).toStringList();
    empty_->setRecent(recent);
    recentMenu_->clear();
    recentMenu_->setEnabled(!recent.isEmpty());
    for (const QString &path : recent)
        connect(recentMenu_->addAction(path), &QAction::triggered, this, [this, path] { openFile(path); });
}

void MainWindow::closeEvent(QCloseEvent *event)
{
    if (doc_.isModified() && !property("discardOnClose").toBool()) {
        QMessageBox box(QMessageBox::Question, tr("Fuseboard"), tr("Save the changes to %1?").arg(doc_.title()),
            QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, this);
        switch (box.exec()) {
        case QMessageBox::Save:
            event->ignore();
            return saveAs();
        case QMessageBox::Discard:
            break;
        default:
            return event->ignore();
        }
    }
    doc_.jobs()->cancelAll();
    QSettings settings;
    settings.setValue(QStringLiteral("geometry"), saveGeometry());
    settings.setValue(QStringLiteral("docks"), saveState());
    event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent *event)
{
    if (event->mimeData()->hasUrls()) {
        event->acceptProposedAction();
        empty_->setDropActive(true);
    }
}

void MainWindow::dragLeaveEvent(QDragLeaveEvent *)
{
    empty_->setDropActive(false);
}

void MainWindow::dropEvent(QDropEvent *event)
{
    empty_->setDropActive(false);
    for (const QUrl &url : event->mimeData()->urls()) {
        const QString path = url.toLocalFile();
        const QString suffix = QFileInfo(path).suffix().toLower();
        if (suffix == QLatin1String("py"))
            trace(path + QStringLiteral(":make"));
        else if (doc_.isOpen()
            && (suffix == QLatin1String("npy") || suffix == QLatin1String("npz") || suffix == QLatin1String("safetensors")
                || QFileInfo(path).isDir()))
            doc_.calibrate(path);
        else
            openFile(path);
    }
    event->acceptProposedAction();
}

} // namespace fb
