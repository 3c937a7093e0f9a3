// Fuseboard: the window, which puts document and views together. GPL-3.0-or-later.
//
// Views say what the hand did; the document says what is true; the window connects the two and keeps files, settings and
// docks. It holds no graph and no logic of its own: see present.h for what views are given and node_menu.h for the edits.
#pragma once

#include <QMainWindow>
#include <QPointer>

#include "app/document/document.h"
#include "views/theme.h"

class QComboBox;
class QDockWidget;
class QLabel;
class QMenu;
class QProgressBar;
class QStackedWidget;
class QToolButton;

namespace fb
{

class Canvas;
class CodeView;
class CommandPalette;
class EmptyState;
class HistogramView;
class Inspector;
class JobsView;
class LayersView;
class ModuleTree;
class ProblemsView;
class RulesView;
class SearchBox;
class StepRow;
class TracePanel;

class MainWindow : public QMainWindow
{
    Q_OBJECT
public:
    explicit MainWindow(QWidget *parent = nullptr);
    ~MainWindow() override;

    GraphDocument *document() { return &doc_; }
    Canvas *canvas() { return canvas_; }

public slots:
    void openFile(const QString &path); // in this window when it is empty, else in a new one
    void openDemo();
    void trace(const QString &source = {});
    void chooseFile();
    void chooseCalibrationData();
    void chooseEvaluationData();
    void chooseExportFolder(bool int8Form);
    void saveAs();
    void step(int step);
    void resetLayout();
    void showHelp();

protected:
    void closeEvent(QCloseEvent *event) override;
    void dragEnterEvent(QDragEnterEvent *event) override;
    void dragLeaveEvent(QDragLeaveEvent *event) override;
    void dropEvent(QDropEvent *event) override;

private:
    void makeDocks();
    void makeActions();
    void makeToolBar();
    void makeStatusBar();
    void connectViews();
    void connectDocument();

    QAction *action(const QString &text, const QKeySequence &keys, std::function<void()> run);
    QDockWidget *dock(const QString &title, QWidget *view, Qt::DockWidgetArea area, const QString &name);
    void refresh(); // everything that follows the document's state
    void refreshQuantization(); // what follows plan and calibration
    void refreshJobs();
    void refreshStatus();
    void select(const QList<NodeId> &nodes, QObject *from);
    void showHistogramOf(NodeId node);
    void fixProblem(int id);
    void startWorker();
    void traceAgain(); // with what the open graph remembers of its trace
    QString sourceHere() const; // FILE.py:NAME or package.module:NAME of the open graph where it is found, else empty
    void goToSource(const QString &file, int line);
    void raise(QDockWidget *dock);
    void setTheme(Theme::Mode mode);
    void remember(const QString &path);
    void fillRecent();
    void say(const QString &text, bool failed = false);

    GraphDocument doc_;
    QStackedWidget *pages_;
    EmptyState *empty_;
    Canvas *canvas_;
    ModuleTree *tree_;
    RulesView *rules_;
    Inspector *inspector_;
    CodeView *code_;
    HistogramView *histograms_;
    LayersView *layers_;
    ProblemsView *problems_;
    JobsView *jobs_;
    StepRow *steps_ = nullptr;
    SearchBox *search_ = nullptr;
    CommandPalette *palette_;
    QPointer<TracePanel> tracePanel_;
    QComboBox *parts_ = nullptr; // which graph of a model that traces only in parts
    QAction *partsAction_ = nullptr;
    QString shownPart_;

    QDockWidget *treeDock_, *rulesDock_, *inspectorDock_, *codeDock_, *histogramDock_, *layersDock_, *problemsDock_, *jobsDock_;
    QMenu *recentMenu_ = nullptr;
    QAction *undo_ = nullptr, *redo_ = nullptr;
    QList<QAction *> needGraph_, needFloat_;
    QLabel *facts_ = nullptr, *selectionText_ = nullptr, *memory_ = nullptr, *message_ = nullptr;
    QProgressBar *progress_ = nullptr;
    QToolButton *cancel_ = nullptr;
    QByteArray firstState_;
    QList<NodeId> selected_;
    QList<Problem> traceProblems_;
    bool selecting_ = false;
    quint64 codeRevision_ = 0;
};

} // namespace fb
