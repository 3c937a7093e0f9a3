#include "app/window/trace_panel.h"

#include <QClipboard>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDir>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QFrame>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QRegularExpression>
#include <QScrollArea>
#include <QSettings>
#include <QShortcut>
#include <QSplitter>
#include <QStandardItemModel>
#include <QStyle>
#include <QToolButton>
#include <QTreeWidget>
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

template <class Widget> Widget *named(Widget *widget, const char *name, const QString &accessible)
{
    widget->setObjectName(QLatin1String(name));
    widget->setAccessibleName(accessible);
    return widget;
}

// What the tracer says to a person at a terminal, without the options to type: here they are buttons.
QString withoutOptions(QString message)
{
    static const QRegularExpression options(QStringLiteral(" \\(--[^)]*\\)"));
    return message.remove(options);
}

QWidget *row(std::initializer_list<QWidget *> widgets)
{
    auto *holder = new QWidget;
    auto *layout = new QHBoxLayout(holder);
    layout->setContentsMargins(0, 0, 0, 0);
    for (QWidget *widget : widgets)
        layout->addWidget(widget);
    return holder;
}

// Enter in it is for it alone, not for the dialog's default button.
class EntryEdit : public QLineEdit
{
protected:
    void keyPressEvent(QKeyEvent *event) override
    {
        if (event->key() != Qt::Key_Return && event->key() != Qt::Key_Enter)
            return QLineEdit::keyPressEvent(event);
        emit returnPressed();
        event->accept();
    }
};

// Words between spaces or commas; a file with either in its name stands in double quotes.
QStringList words(const QString &text)
{
    QStringList list;
    for (const QString &word : QProcess::splitCommand(text))
        list << (QFileInfo::exists(word) ? QStringList{ word } : word.split(QLatin1Char(','), Qt::SkipEmptyParts));
    return list;
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
    resize(760, 560);

    status_ = wrapped(tr("Tracing runs the file in that interpreter, as a separate process."), QStringLiteral("traceStatus"));
    progress_ = new QProgressBar;
    progress_->setVisible(false);
    auto *buttons = new QDialogButtonBox;
    run_ = buttons->addButton(tr("Trace"), QDialogButtonBox::AcceptRole);
    run_->setObjectName(QStringLiteral("traceRun"));
    run_->setDefault(true);
    doctor_ = buttons->addButton(tr("Find leaves"), QDialogButtonBox::ActionRole);
    doctor_->setObjectName(QStringLiteral("traceDoctor"));
    doctor_->setAutoDefault(false);
    doctor_->setToolTip(
        tr("Traces with the smallest set of leaves that lets the model trace; where none does, traces its submodules"));
    cancel_ = buttons->addButton(tr("Close"), QDialogButtonBox::RejectRole);
    cancel_->setObjectName(QStringLiteral("traceClose"));
    cancel_->setAutoDefault(false);

    auto *layout = new QVBoxLayout(this);
    layout->addWidget(makeForm());
    layout->addWidget(status_);
    layout->addWidget(progress_);
    layout->addWidget(makeAnswer(), 1);
    layout->addStretch();
    layout->addWidget(buttons);

    connect(run_, &QPushButton::clicked, this, &TracePanel::run);
    connect(doctor_, &QPushButton::clicked, this, &TracePanel::findLeaves);
    connect(cancel_, &QPushButton::clicked, this, [this] {
        if (tracer_.isRunning())
            tracer_.cancel();
        else
            reject();
    });
    connect(&tracer_, &Tracer::progress, this, [this](double fraction, const QString &text) {
        progress_->setValue(int(fraction * 100));
        status_->setText(text);
    });
    connect(&tracer_, &Tracer::logged, this, [this](const QString &line) {
        answer_->show();
        log_->show();
        log_->appendPlainText(line);
    });
    connect(&tracer_, &Tracer::finished, this, &TracePanel::finish);
    refresh();
}

TracePanel::~TracePanel()
{
    tracer_.disconnect(this);
}

QWidget *TracePanel::makeForm()
{
    source_ = named(new QLineEdit, "traceSource", tr("Model to trace"));
    source_->setPlaceholderText(tr("net.py:make   or   package.module:name"));
    auto *browse = named(new QToolButton, "traceBrowse", tr("Choose a Python file"));
    browse->setText(tr("Browse..."));
    name_ = named(new QComboBox, "traceName", tr("Name in the file"));
    name_->setToolTip(tr("What the file defines: a module, or something without arguments that returns one"));
    name_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    name_->setMinimumContentsLength(12);
    inputs_ = named(new QLineEdit, "traceInputs", tr("Sample inputs"));
    inputs_->setPlaceholderText(tr("1x3x224x224, several separated by spaces; 1x77:int64; or a .npy file"));
    auto *file = named(new QToolButton, "traceInputFile", tr("Add a file as sample input"));
    file->setText(tr("File..."));
    python_ = named(new QComboBox, "tracePythons", tr("Python interpreter"));
    python_->setEditable(true);
    python_->setInsertPolicy(QComboBox::NoInsert);
    python_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    named(python_->lineEdit(), "tracePython", tr("Python interpreter"));
    python_->lineEdit()->setPlaceholderText(pythonProgram());
    python_->addItems(pythonsFor({}));
    python_->setEditText(QSettings().value(QStringLiteral("tracePython")).toString());

    kind_ = named(new QComboBox, "traceKind", tr("Kind of option"));
    const struct {
        QString kind, label, hint;
    } kinds[] = { { QStringLiteral("leaf"), tr("Leaf module"), tr("path of a module not to trace into, such as layer1.0") },
        { QStringLiteral("leaf-class"), tr("Leaf class"), tr("class whose modules are not traced into, such as net.Blk") },
        { QStringLiteral("concrete"), tr("Fixed argument"), tr("argument of forward and its value, such as flag=True") },
        { QStringLiteral("wrap"), tr("Wrapped function"), tr("function to keep as one call, such as net.helper") },
        { QStringLiteral("kwarg"), tr("Keyword input"), tr("sample for an argument by its name, such as mask=1x77:bool") },
        { QStringLiteral("samples"), tr("Sample function"),
            tr("function in the file that gives the sample inputs, such as example") },
        { QStringLiteral("submodule"), tr("Submodule"), tr("path of a module to trace on its own, such as backbone") },
        { QStringLiteral("sizes"), tr("Sizes by sample"), tr("Enter lets the sample inputs decide what depends on sizes") },
        { QStringLiteral("keep-mode"), tr("Training mode"),
            tr("Enter traces in the mode that the model is in, not in eval mode") } };
    for (const auto &k : kinds) {
        kind_->addItem(k.label, k.kind);
        kind_->setItemData(kind_->count() - 1, k.hint, Qt::ToolTipRole);
    }
    option_ = named(new EntryEdit, "traceLeaf", tr("Value of the option"));
    options_ = named(new QListWidget, "traceLeaves", tr("Options to trace with"));
    options_->setMaximumHeight(4 * fontMetrics().height() + 12);
    options_->setToolTip(tr("Double click, Enter or Delete takes an option off the list"));

    auto *holder = new QWidget;
    holder->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Maximum);
    auto *form = new QFormLayout(holder);
    form->setContentsMargins(0, 0, 0, 0);
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    form->addRow(tr("Model"), row({ source_, name_, browse }));
    form->addRow(tr("Inputs"), row({ inputs_, file }));
    form->addRow(tr("Python"), python_);
    form->addRow(tr("Options"), row({ kind_, option_ }));
    form->addRow(QString(), options_);

    connect(browse, &QToolButton::clicked, this, [this] {
        auto *dialog = new QFileDialog(this, tr("Python file of the model"), {}, tr("Python (*.py)"));
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        connect(dialog, &QFileDialog::fileSelected, this, &TracePanel::setSource);
        dialog->open();
    });
    connect(file, &QToolButton::clicked, this, [this] {
        auto *dialog = new QFileDialog(this, tr("Sample input"), {}, tr("Arrays (*.npy *.npz *.safetensors)"));
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        connect(dialog, &QFileDialog::fileSelected, this, [this](const QString &path) {
            const QString quoted = path.contains(QLatin1Char(' ')) ? QLatin1Char('"') + path + QLatin1Char('"') : path;
            inputs_->setText((inputs_->text() + QLatin1Char(' ') + quoted).trimmed());
        });
        dialog->open();
    });
    connect(source_, &QLineEdit::textChanged, this, [this] {
        readNames();
        refresh();
    });
    connect(name_, &QComboBox::activated, this, [this](int index) {
        const QStringList parts = names();
        source_->setText(parts[0] + QLatin1Char(':') + name_->itemData(index).toString());
    });
    auto describe = [this] { option_->setPlaceholderText(kind_->currentData(Qt::ToolTipRole).toString()); };
    connect(kind_, &QComboBox::currentIndexChanged, this, describe);
    describe();
    connect(option_, &QLineEdit::returnPressed, this, [this] {
        addOption(kind_->currentData().toString(), option_->text().trimmed());
        option_->clear();
    });
    connect(options_, &QListWidget::itemActivated, this, [](QListWidgetItem *item) { delete item; });
    auto *remove = new QShortcut(QKeySequence::Delete, options_, nullptr, nullptr, Qt::WidgetShortcut);
    connect(remove, &QShortcut::activated, this, [this] { delete options_->currentItem(); });
    return holder;
}

QWidget *TracePanel::makeAnswer()
{
    modules_ = named(new QTreeWidget, "traceModules", tr("Modules of the model"));
    modules_->setHeaderLabels({ tr("Module"), tr("Class") });
    modules_->header()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
    modules_->setUniformRowHeights(true);
    auto *found = new QWidget;
    problems_ = new QVBoxLayout(found);
    problems_->setContentsMargins(0, 0, 0, 0);
    problems_->setAlignment(Qt::AlignTop);
    auto *scroll = named(new QScrollArea, "traceProblems", tr("What is in the way"));
    scroll->setWidget(found);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    log_ = named(new QPlainTextEdit, "traceLog", tr("What the model prints"));
    log_->setReadOnly(true);
    log_->setFont(Theme::monospace(11));
    log_->setMaximumBlockCount(5000);
    log_->hide();

    auto *upper = new QSplitter(Qt::Horizontal);
    upper->addWidget(modules_);
    upper->addWidget(scroll);
    upper->setSizes({ 300, 460 });
    upper->setChildrenCollapsible(false);
    answer_ = new QSplitter(Qt::Vertical);
    answer_->addWidget(upper);
    answer_->addWidget(log_);
    answer_->setSizes({ 240, 90 });
    answer_->hide();
    upper->hide();
    return answer_;
}

void TracePanel::setSource(const QString &source)
{
    source_->setText(source);
    if (const QStringList parts = names(); parts[1].isEmpty() && name_->count()) // a file alone: its likeliest name
        source_->setText(parts[0] + QLatin1Char(':') + name_->itemData(0).toString());
}
void TracePanel::setInput(const QString &input)
{
    inputs_->setText(input);
}

void TracePanel::setOptions(const TraceOptions &options)
{
    options_->clear();
    const std::pair<const char *, const std::vector<std::string> &> lists[] = { { "leaf", options.leaves },
        { "leaf-class", options.leafClasses }, { "wrap", options.wraps }, { "submodule", options.submodules } };
    for (const auto &[kind, values] : lists)
        for (const std::string &value : values)
            addOption(QLatin1String(kind), QString::fromStdString(value));
    for (const auto &[name, value] : options.concrete)
        addOption(QStringLiteral("concrete"), QString::fromStdString(name + "=" + value));
    addOption(QStringLiteral("samples"), QString::fromStdString(options.samples));
    if (options.keepMode)
        addOption(QStringLiteral("keep-mode"), {});
    if (options.sizes)
        addOption(QStringLiteral("sizes"), {});
}

void TracePanel::addLeaf(const QString &path)
{
    addOption(QStringLiteral("leaf"), path);
}

void TracePanel::addOption(const QString &kind, const QString &value)
{
    const bool flag = kind == QLatin1String("keep-mode") || kind == QLatin1String("sizes");
    if (value.isEmpty() != flag || options(kind).contains(value))
        return;
    auto *item
        = new QListWidgetItem(QStringLiteral("%1   %2").arg(kind_->itemText(kind_->findData(kind)), value).trimmed(), options_);
    item->setData(Qt::UserRole, kind);
    item->setData(Qt::UserRole + 1, value);
}

QStringList TracePanel::options(const QString &kind) const
{
    QStringList list;
    for (int i = 0; i < options_->count(); ++i)
        if (options_->item(i)->data(Qt::UserRole) == kind)
            list << options_->item(i)->data(Qt::UserRole + 1).toString();
    return list;
}

QStringList TracePanel::names() const
{
    const QString text = source_->text().trimmed();
    const qsizetype colon = text.lastIndexOf(QLatin1Char(':'));
    return colon < 0 ? QStringList{ text, {} } : QStringList{ text.left(colon), text.mid(colon + 1) };
}

// Fills the list of names when the file changes, and shows the one that is named.
void TracePanel::readNames()
{
    const QStringList parts = names();
    if (parts[0] != read_) {
        read_ = parts[0];
        name_->clear();
        QFile file(read_);
        if (read_.endsWith(QLatin1String(".py")) && file.open(QIODevice::ReadOnly))
            for (const PythonName &n : pythonNames(QString::fromUtf8(file.read(1 << 22)))) {
                name_->addItem(n.name, n.name);
                if (n.needs.isEmpty())
                    continue;
                const int last = name_->count() - 1;
                name_->setItemData(last, tr("needs %1").arg(n.needs.join(QStringLiteral(", "))), Qt::ToolTipRole);
                if (auto *model = qobject_cast<QStandardItemModel *>(name_->model()))
                    model->item(last)->setEnabled(false);
            }
        const QString typed = python_->currentText();
        python_->clear();
        python_->addItems(pythonsFor(read_ + QLatin1Char(':')));
        python_->setEditText(typed);
    }
    name_->setVisible(name_->count());
    name_->setCurrentIndex(name_->findData(parts[1]));
}

QDir TracePanel::sourceFolder() const
{
    return QFileInfo(names()[0]).absoluteDir();
}

void TracePanel::refresh()
{
    const bool running = tracer_.isRunning(), ready = !running && !names()[1].isEmpty();
    run_->setEnabled(ready);
    doctor_->setEnabled(ready);
    cancel_->setText(running ? tr("Cancel") : tr("Close"));
    progress_->setVisible(running);
}

TraceRequest TracePanel::request() const
{
    TraceRequest r;
    r.source = source_->text().trimmed();
    r.inputs = words(inputs_->text());
    r.kwargs = options(QStringLiteral("kwarg"));
    r.samples = options(QStringLiteral("samples")).value(0);
    r.concrete = options(QStringLiteral("concrete"));
    r.leaves = leaves();
    r.leafClasses = options(QStringLiteral("leaf-class"));
    r.wraps = options(QStringLiteral("wrap"));
    r.submodules = options(QStringLiteral("submodule"));
    r.sizes = !options(QStringLiteral("sizes")).isEmpty();
    r.keepMode = !options(QStringLiteral("keep-mode")).isEmpty();
    r.python = python_->currentText().trimmed();
    r.output = output_;
    return r;
}

void TracePanel::run()
{
    start(false);
}

void TracePanel::findLeaves()
{
    start(true);
}

void TracePanel::clearAnswer()
{
    while (QLayoutItem *item = problems_->takeAt(0)) {
        delete item->widget();
        delete item;
    }
    modules_->clear();
    answer_->widget(0)->hide();
    log_->clear();
    log_->hide();
    answer_->hide();
}

void TracePanel::start(bool doctor)
{
    if (tracer_.isRunning())
        return;
    if (!option_->text().trimmed().isEmpty()) { // typed, but not entered
        addOption(kind_->currentData().toString(), option_->text().trimmed());
        option_->clear();
    }
    clearAnswer();
    QSettings().setValue(QStringLiteral("tracePython"), python_->currentText().trimmed());
    // A folder for each run, so that the trace bears its model's name and an open one stays as it is.
    const QString place = folder_.filePath(QString::number(++runs_));
    QDir().mkpath(place);
    output_ = place + QLatin1Char('/') + QFileInfo(names()[0]).completeBaseName() + QStringLiteral(".fxt");
    progress_->setValue(0);
    status_->setText(tr("Tracing..."));
    TraceRequest wanted = request();
    wanted.doctor = doctor;
    tracer_.start(wanted);
    refresh();
}

void TracePanel::reject()
{
    if (tracer_.isRunning())
        tracer_.cancel();
    QDialog::reject();
}

void TracePanel::finish(const TraceResult &result)
{
    refresh();
    progress_->setVisible(false);
    cancel_->setText(tr("Close"));
    run_->setEnabled(true);
    doctor_->setEnabled(true);
    if (result.ok) {
        for (const QString &leaf : result.leaves)
            addLeaf(leaf);
        for (const QString &part : result.submodules)
            addOption(QStringLiteral("submodule"), part);
        if (result.sizes)
            addOption(QStringLiteral("sizes"), {});
        status_->setText(tr("Traced."));
        emit traced(output_);
        accept();
        return;
    }
    status_->setText(result.cancelled   ? tr("Cancelled.")
            : result.problems.isEmpty() ? result.error
                                        : tr("Tracing stopped here:"));
    if (result.cancelled)
        return;
    showModules(result);
    showProblems(result);
    emit failed(result);
}

// The tree of modules, each culprit lit and in sight.
void TracePanel::showModules(const TraceResult &result)
{
    QHash<QString, QTreeWidgetItem *> items;
    for (const auto &[path, cls] : result.modules) {
        const qsizetype dot = path.lastIndexOf(QLatin1Char('.'));
        QTreeWidgetItem *above = path.isEmpty() ? nullptr : items.value(dot < 0 ? QString() : path.left(dot));
        auto *item
            = new QTreeWidgetItem({ path.isEmpty() ? tr("(the model)") : path.mid(dot + 1), cls.section(QLatin1Char('.'), -1) });
        item->setToolTip(0, path);
        item->setToolTip(1, cls);
        if (above)
            above->addChild(item);
        else
            modules_->addTopLevelItem(item);
        items[path] = item;
    }
    modules_->setVisible(!items.isEmpty());
    if (QTreeWidgetItem *root = items.value(QString()))
        root->setExpanded(true);
    for (const TraceProblem &p : result.problems) {
        QTreeWidgetItem *culprit = items.value(p.module);
        if (!culprit)
            continue;
        for (QTreeWidgetItem *up = culprit->parent(); up; up = up->parent())
            up->setExpanded(true);
        for (int column : { 0, 1 }) {
            QFont bold = modules_->font();
            bold.setBold(true);
            culprit->setFont(column, bold);
            culprit->setForeground(column, Theme::color(Theme::Role::Error));
        }
        culprit->setIcon(0, style()->standardIcon(QStyle::SP_MessageBoxWarning));
        culprit->setData(0, Qt::AccessibleDescriptionRole, p.message);
        modules_->setCurrentItem(culprit);
        modules_->scrollToItem(culprit, QAbstractItemView::PositionAtCenter);
    }
}

void TracePanel::showProblems(const TraceResult &result)
{
    for (const TraceProblem &p : result.problems) {
        auto *box = new QFrame;
        box->setFrameShape(QFrame::StyledPanel);
        auto *layout = new QVBoxLayout(box);
        layout->addWidget(wrapped(p.where() + QLatin1Char('\n') + withoutOptions(p.message), QStringLiteral("traceProblem")));
        if (!p.source.isEmpty()) {
            auto *line = wrapped(p.source.trimmed(), QStringLiteral("traceLine"));
            line->setFont(Theme::monospace(12));
            layout->addWidget(line);
        }
        for (const TraceFix &fix : p.fixes)
            addFix(fix, layout);
        problems_->addWidget(box);
    }
    const bool any = !result.problems.isEmpty();
    answer_->widget(0)->setVisible(any);
    answer_->setVisible(any || log_->document()->characterCount() > 1);
    if (any && height() < 700)
        resize(width(), 700);
    answer_->setSizes({ height(), 90 });
}

void TracePanel::addFix(const TraceFix &fix, QVBoxLayout *layout)
{
    if (fix.kind == QLatin1String("rewrite")) {
        layout->addWidget(new QLabel(tr("Or write it so:")));
        auto *lines = wrapped(QStringLiteral("- %1\n+ %2").arg(fix.value, fix.after), QStringLiteral("traceRewrite"));
        lines->setFont(Theme::monospace(12));
        layout->addWidget(lines);
        auto *copy = new QPushButton(tr("Copy the rewrite"));
        copy->setObjectName(QStringLiteral("traceCopy"));
        copy->setAutoDefault(false);
        connect(copy, &QPushButton::clicked, this, [after = fix.after] { QGuiApplication::clipboard()->setText(after); });
        layout->addWidget(copy, 0, Qt::AlignLeft);
        return;
    }
    auto *button = new QPushButton(fix.text());
    button->setObjectName(QStringLiteral("traceFix"));
    button->setToolTip(QStringLiteral("--%1 %2").arg(fix.kind, fix.value));
    button->setAutoDefault(false);
    connect(button, &QPushButton::clicked, this, [this, fix] {
        addOption(fix.kind, fix.kind == QLatin1String("sizes") ? QString() : fix.value);
        run();
    });
    layout->addWidget(button, 0, Qt::AlignLeft);
}

} // namespace fb
