#include "app/window/trace_panel.h"

#include <QDialogButtonBox>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QProgressBar>
#include <QPushButton>
#include <QRegularExpression>
#include <QSettings>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/theme.h"

namespace fb
{

namespace
{

QLabel *wrapped(const QString &text, const QString &name)
{
    auto *label = new QLabel(text);
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    label->setObjectName(name);
    return label;
}

} // namespace

static QString scratchPrefix()
{
    return QDir::tempPath() + QStringLiteral("/fuseboard-trace-");
}

bool TracePanel::isScratch(const QString &path)
{
    return path.startsWith(scratchPrefix());
}

TracePanel::TracePanel(QWidget *parent)
    : QDialog(parent)
    , folder_(scratchPrefix() + QStringLiteral("XXXXXX"))
{
    setWindowTitle(tr("Trace a Python model"));
    setModal(false);
    resize(620, 440);

    source_ = new QLineEdit;
    source_->setObjectName(QStringLiteral("traceSource"));
    source_->setPlaceholderText(tr("net.py:make   or   package.module:name"));
    source_->setAccessibleName(tr("Model to trace"));
    auto *browse = new QToolButton;
    browse->setText(tr("Browse..."));
    auto *sourceRow = new QHBoxLayout;
    sourceRow->addWidget(source_);
    sourceRow->addWidget(browse);
    inputs_ = new QLineEdit;
    inputs_->setObjectName(QStringLiteral("traceInputs"));
    inputs_->setPlaceholderText(tr("1x3x224x224, several separated by spaces; 1x77:int64; or a .npy file"));
    inputs_->setAccessibleName(tr("Sample inputs"));
    python_ = new QLineEdit(QSettings().value(QStringLiteral("tracePython")).toString());
    python_->setObjectName(QStringLiteral("tracePython"));
    python_->setPlaceholderText(pythonProgram());
    python_->setAccessibleName(tr("Python interpreter"));
    leaves_ = new QListWidget;
    leaves_->setObjectName(QStringLiteral("traceLeaves"));
    leaves_->setAccessibleName(tr("Leaf modules"));
    leaves_->setMaximumHeight(72);
    leaf_ = new QLineEdit;
    leaf_->setObjectName(QStringLiteral("traceLeaf"));
    leaf_->setPlaceholderText(tr("path of a module not to trace into, then Enter"));
    leaf_->setAccessibleName(tr("Add a leaf module"));

    auto *form = new QFormLayout;
    form->addRow(tr("Model"), sourceRow);
    form->addRow(tr("Inputs"), inputs_);
    form->addRow(tr("Python"), python_);
    form->addRow(tr("Leaves"), leaf_);
    form->addRow(QString(), leaves_);

    status_ = wrapped(tr("Tracing runs the file in that interpreter, as a separate process."), QStringLiteral("traceStatus"));
    progress_ = new QProgressBar;
    progress_->setVisible(false);
    problems_ = new QVBoxLayout;
    auto *buttons = new QDialogButtonBox;
    run_ = buttons->addButton(tr("Trace"), QDialogButtonBox::AcceptRole);
    run_->setObjectName(QStringLiteral("traceRun"));
    run_->setDefault(true);
    cancel_ = buttons->addButton(tr("Close"), QDialogButtonBox::RejectRole);
    cancel_->setObjectName(QStringLiteral("traceClose"));

    auto *layout = new QVBoxLayout(this);
    layout->addLayout(form);
    layout->addWidget(status_);
    layout->addWidget(progress_);
    layout->addLayout(problems_);
    layout->addStretch();
    layout->addWidget(buttons);

    connect(browse, &QToolButton::clicked, this, [this] {
        auto *dialog = new QFileDialog(this, tr("Python file of the model"), {}, tr("Python (*.py)"));
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        connect(
            dialog, &QFileDialog::fileSelected, this, [this](const QString &file) { setSource(file + QStringLiteral(":make")); });
        dialog->open();
    });
    connect(run_, &QPushButton::clicked, this, &TracePanel::run);
    connect(cancel_, &QPushButton::clicked, this, [this] {
        if (tracer_.isRunning())
            tracer_.cancel();
        else
            reject();
    });
    connect(leaf_, &QLineEdit::returnPressed, this, [this] {
        addLeaf(leaf_->text().trimmed());
        leaf_->clear();
    });
    connect(leaves_, &QListWidget::itemActivated, this, [](QListWidgetItem *item) { delete item; });
    leaves_->setToolTip(tr("Double click or Enter takes a leaf off the list"));
    connect(source_, &QLineEdit::textChanged, this, &TracePanel::refresh);
    connect(&tracer_, &Tracer::progress, this, [this](double fraction, const QString &text) {
        progress_->setValue(int(fraction * 100));
        status_->setText(text);
    });
    connect(&tracer_, &Tracer::finished, this, &TracePanel::finish);
    refresh();
}

void TracePanel::setSource(const QString &source)
{
    source_->setText(source);
}
void TracePanel::setInput(const QString &input)
{
    inputs_->setText(input);
}

void TracePanel::addLeaf(const QString &path)
{
    if (!path.isEmpty() && leaves_->findItems(path, Qt::MatchExactly).isEmpty())
        leaves_->addItem(path);
}

QStringList TracePanel::leaves() const
{
    QStringList list;
    for (int i = 0; i < leaves_->count(); ++i)
        list << leaves_->item(i)->text();
    return list;
}

QDir TracePanel::sourceFolder() const
{
    return QFileInfo(source_->text().trimmed()).absoluteDir();
}

void TracePanel::refresh()
{
    const bool running = tracer_.isRunning();
    run_->setEnabled(!running && source_->text().contains(QLatin1Char(':')));
    cancel_->setText(running ? tr("Cancel") : tr("Close"));
    progress_->setVisible(running);
}

TraceRequest TracePanel::request() const
{
    TraceRequest r;
    r.source = source_->text().trimmed();
    r.inputs = inputs_->text().split(QRegularExpression(QStringLiteral("[\\s,]+")), Qt::SkipEmptyParts);
    r.leaves = leaves();
    r.python = python_->text().trimmed();
    r.output = output_;
    return r;
}

void TracePanel::run()
{
    if (tracer_.isRunning())
        return;
    while (QLayoutItem *item = problems_->takeAt(0)) {
        delete item->widget();
        delete item;
    }
    QSettings().setValue(QStringLiteral("tracePython"), python_->text().trimmed());
    // A folder for each run, so that the trace bears its model's name and an open one stays as it is.
    const QString source = source_->text().trimmed();
    const QString name = QFileInfo(source.left(source.lastIndexOf(QLatin1Char(':')))).completeBaseName();
    const QString place = folder_.filePath(QString::number(++runs_));
    QDir().mkpath(place);
    output_ = place + QLatin1Char('/') + name + QStringLiteral(".fxt");
    progress_->setValue(0);
    status_->setText(tr("Tracing..."));
    tracer_.start(request());
    refresh();
}

void TracePanel::finish(const TraceResult &result)
{
    refresh();
    progress_->setVisible(false);
    cancel_->setText(tr("Close"));
    run_->setEnabled(true);
    if (result.ok) {
        status_->setText(tr("Traced."));
        emit traced(output_);
        accept();
        return;
    }
    status_->setText(result.cancelled   ? tr("Cancelled.")
            : result.problems.isEmpty() ? result.error
                                        : tr("Tracing stopped here:"));
    showProblems(result);
    if (!result.cancelled)
        emit failed(result);
}

void TracePanel::showProblems(const TraceResult &result)
{
    for (const TraceProblem &p : result.problems) {
        auto *box = new QFrame;
        box->setFrameShape(QFrame::StyledPanel);
        auto *layout = new QVBoxLayout(box);
        layout->addWidget(wrapped(p.sentence(), QStringLiteral("traceProblem")));
        if (!p.source.isEmpty()) {
            auto *line = wrapped(p.source.trimmed(), QStringLiteral("traceLine"));
            line->setFont(Theme::monospace(12));
            layout->addWidget(line);
        }
        for (const TraceFix &fix : p.fixes) {
            if (fix.kind != QLatin1String("leaf"))
                continue;
            auto *button = new QPushButton(tr("%1: %2").arg(fix.label, fix.module));
            button->setObjectName(QStringLiteral("traceFix"));
            connect(button, &QPushButton::clicked, this, [this, path = fix.module] {
                addLeaf(path);
                run();
            });
            layout->addWidget(button, 0, Qt::AlignLeft);
        }
        problems_->addWidget(box);
    }
}

} // namespace fb
