#include "app/document/tracer.h"

#include <QCoreApplication>
#include <QDir>
#include <QEventLoop>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QTimer>

#include <csignal>
#include <sys/prctl.h>
#include <unistd.h>

namespace fb
{

QStringList TraceRequest::arguments() const
{
    QStringList list{ resourcePath(QStringLiteral("python/fuseboard_trace.py")), source };
    auto add = [&list](const QString &flag, const QStringList &values) {
        for (const QString &value : values)
            list << flag << value;
    };
    if (!output.isEmpty())
        list << QStringLiteral("-o") << output;
    add(QStringLiteral("--input"), inputs);
    add(QStringLiteral("--kwarg"), kwargs);
    add(QStringLiteral("--concrete"), concrete);
    add(QStringLiteral("--leaf"), leaves);
    add(QStringLiteral("--leaf-class"), leafClasses);
    add(QStringLiteral("--wrap"), wraps);
    add(QStringLiteral("--submodule"), submodules);
    if (!samples.isEmpty())
        list << QStringLiteral("--samples") << samples;
    if (keepMode)
        list << QStringLiteral("--keep-mode");
    if (sizes)
        list << QStringLiteral("--sizes");
    if (doctor)
        list << QStringLiteral("--doctor");
    list << QStringLiteral("--seed") << QString::number(seed) << QStringLiteral("--json");
    return list;
}

QString TraceProblem::where() const
{
    QString where = module;
    if (!className.isEmpty())
        where += where.isEmpty() ? className : QStringLiteral(" (%1)").arg(className);
    if (!file.isEmpty())
        where += QStringLiteral("%1%2:%3").arg(where.isEmpty() ? QString() : QStringLiteral(", "), file).arg(line);
    return where;
}

QString TraceProblem::sentence() const
{
    QString text = where();
    if (!source.isEmpty())
        text += QStringLiteral(" `%1`").arg(source.trimmed());
    return text.isEmpty() ? message : text + QStringLiteral(": ") + message;
}

QString TraceResult::sentence() const
{
    return problems.isEmpty() ? error : problems.first().sentence();
}

QString TraceFix::text() const
{
    return kind == QLatin1String("leaf") ? QStringLiteral("%1: %2").arg(label, value) : label;
}

QStringList pythonsFor(const QString &source)
{
    QStringList found{ pythonProgram() };
    auto offer = [&found](const QString &path) {
        if (QFileInfo(path).isExecutable() && !found.contains(path))
            found << path;
    };
    QStringList environments{ qEnvironmentVariable("VIRTUAL_ENV"), qEnvironmentVariable("CONDA_PREFIX") };
    QDir folder = QFileInfo(source.left(source.lastIndexOf(QLatin1Char(':')))).absoluteDir();
    for (int level = 0; !source.isEmpty() && level < 4; ++level) {
        for (const QString &name :
            { QStringLiteral(".venv"), QStringLiteral("venv"), QStringLiteral("env"), QStringLiteral(".conda") })
            environments << folder.filePath(name);
        if (!folder.cdUp())
            break;
    }
    const QDir home = QDir::home();
    for (const QString &name :
        { QStringLiteral("miniconda3"), QStringLiteral("anaconda3"), QStringLiteral("miniforge3"), QStringLiteral(".conda") }) {
        environments << home.filePath(name);
        const QDir inside(home.filePath(name + QStringLiteral("/envs")));
        for (const QString &environment : inside.entryList(QDir::Dirs | QDir::NoDotAndDotDot))
            environments << inside.filePath(environment);
    }
    for (const QString &environment : environments)
        if (!environment.isEmpty())
            offer(environment + QStringLiteral("/bin/python"));
    for (const QString &name : { QStringLiteral("python3"), QStringLiteral("python") })
        offer(QStandardPaths::findExecutable(name));
    return found;
}

namespace
{

// The parameters without default in "self, a, b=(1, 2), *, c: int = 3".
QStringList requiredParameters(const QString &list)
{
    QStringList required;
    int depth = 0;
    QString part;
    for (const QChar c : list + QLatin1Char(',')) {
        depth += QStringLiteral("([{").contains(c) - QStringLiteral(")]}").contains(c);
        if (c != QLatin1Char(',') || depth) {
            part += c;
            continue;
        }
        const QString name = part.section(QLatin1Char(':'), 0, 0).trimmed();
        if (!part.contains(QLatin1Char('=')) && !name.isEmpty() && name != QLatin1String("self")
            && !name.startsWith(QLatin1Char('*')) && name != QLatin1String("/"))
            required << name;
        part.clear();
    }
    return required;
}

// What stands between the parenthesis at `open` and its counterpart.
QString parenthesized(const QString &text, qsizetype open)
{
    int depth = 0;
    for (qsizetype i = open; i < text.size(); ++i) {
        depth += (text[i] == QLatin1Char('(')) - (text[i] == QLatin1Char(')'));
        if (!depth)
            return text.mid(open + 1, i - open - 1);
    }
    return {};
}

} // namespace

QList<PythonName> pythonNames(const QString &text)
{
    QString code = text; // without comments and documentation, which might look like code
    code.remove(
        QRegularExpression(QStringLiteral("\"\"\".*?\"\"\"|\'\'\'.*?\'\'\'"), QRegularExpression::DotMatchesEverythingOption));
    code.remove(QRegularExpression(QStringLiteral("#[^\n]*")));
    static const QRegularExpression top(QStringLiteral("^(?:(def|class)\\s+(\\w+)|(\\w+)\\s*(?::[^=\\n]+)?=(?!=)\\s*([^\\n]*))"),
        QRegularExpression::MultilineOption);
    QList<PythonName> functions, classes, objects;
    for (auto it = top.globalMatch(code); it.hasNext();) {
        const QRegularExpressionMatch m = it.next();
        const qsizetype after = m.capturedEnd();
        if (m.captured(1) == QLatin1String("def")) {
            functions.append({ m.captured(2), requiredParameters(parenthesized(code, code.indexOf(QLatin1Char('('), after))) });
        } else if (m.captured(1) == QLatin1String("class")) {
            static const QRegularExpression next(QStringLiteral("^\\S"), QRegularExpression::MultilineOption);
            static const QRegularExpression init(
                QStringLiteral("^\\s+def\\s+__init__\\s*(?=\\()"), QRegularExpression::MultilineOption);
            const qsizetype end = code.indexOf(next, after);
            const QString body = code.mid(after, end < 0 ? -1 : end - after);
            const QRegularExpressionMatch made = init.match(body);
            if (body.contains(QLatin1String("def forward")))
                classes.append({ m.captured(2),
                    made.hasMatch() ? requiredParameters(parenthesized(body, made.capturedEnd())) : QStringList() });
        } else if (static const QRegularExpression call(QStringLiteral("^[\\w.]+\\(")); m.captured(4).contains(call)) {
            objects.append({ m.captured(3), {} });
        }
    }
    QList<PythonName> all = functions + classes + objects;
    std::stable_partition(
        all.begin(), all.end(), [](const PythonName &n) { return n.needs.isEmpty() && !n.name.startsWith(QLatin1Char('_')); });
    return all;
}

QString pythonProgram(const QString &asked)
{
    if (!asked.isEmpty())
        return asked;
    if (const QString named = qEnvironmentVariable("FUSEBOARD_PYTHON"); !named.isEmpty())
        return named;
    if (const QString env = qEnvironmentVariable("VIRTUAL_ENV"); !env.isEmpty())
        return env + QStringLiteral("/bin/python");
    const QString built = QStringLiteral(FUSEBOARD_PYTHON);
    return QFileInfo::exists(built) ? built : QStringLiteral("python3");
}

QString resourcePath(const QString &name)
{
    if (const QString named = qEnvironmentVariable("FUSEBOARD_RESOURCES"); !named.isEmpty())
        return named + QLatin1Char('/') + name;
    const QString beside = QCoreApplication::applicationDirPath() + QStringLiteral("/../resources/") + name;
    return QFileInfo::exists(beside) ? QFileInfo(beside).canonicalFilePath()
                                     : QStringLiteral(FUSEBOARD_SOURCE_DIR "/resources/") + name;
}

namespace
{

TraceResult parseAnswer(const QByteArray &json)
{
    TraceResult result;
    result.json = json;
    const QJsonDocument document = QJsonDocument::fromJson(json);
    if (!document.isObject())
        return result;
    const QJsonObject answer = document.object();
    result.ok = answer[QLatin1String("ok")].toBool();
    for (const QJsonValue &value : answer[QLatin1String("problems")].toArray()) {
        const QJsonObject p = value.toObject();
        TraceProblem problem{ p[QLatin1String("kind")].toString(), p[QLatin1String("module")].toString(),
            p[QLatin1String("class")].toString(), p[QLatin1String("file")].toString(), p[QLatin1String("source")].toString(),
            p[QLatin1String("message")].toString(), p[QLatin1String("line")].toInt(), {} };
        for (const QJsonValue &f : p[QLatin1String("fixes")].toArray()) {
            const QJsonObject fix = f.toObject();
            auto text = [&fix](const char *key) { return fix[QLatin1String(key)].toString(); };
            const QString kind = text("kind");
            const QString value = kind == QLatin1String("leaf-class") ? text("class")
                : kind == QLatin1String("concrete")                   ? text("argument") + QLatin1Char('=') + text("value")
                : kind == QLatin1String("wrap")                       ? text("function")
                : kind == QLatin1String("rewrite")                    ? text("before")
                                                                      : text("module");
            problem.fixes.append({ kind, value, text("label"), text("after") });
        }
        result.problems.append(problem);
    }
    result.sizes = answer[QLatin1String("sizes")].toBool();
    for (const QJsonValue &leaf : answer[QLatin1String("leaves")].toArray())
        result.leaves << leaf.toString();
    for (const QJsonValue &part : answer[QLatin1String("submodules")].toArray()) {
        result.submodules << part[QLatin1String("path")].toString();
        for (const QJsonValue &leaf : part[QLatin1String("leaves")].toArray())
            result.leaves << leaf.toString();
    }
    for (const QJsonValue &m : answer[QLatin1String("modules")].toArray())
        result.modules.append({ m[0].toString(), m[1].toString() });
    for (const QJsonValue &w : answer[QLatin1String("warnings")].toArray())
        result.warnings << (w.isObject() ? w.toObject()[QLatin1String("message")].toString() : w.toString());
    return result;
}

} // namespace

Tracer::Tracer(QObject *parent)
    : QObject(parent)
{
    connect(&process_, &QProcess::readyReadStandardError, this, &Tracer::readProgress);
    connect(&process_, &QProcess::finished, this, &Tracer::finish);
    connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart)
            finish();
    });
}

Tracer::~Tracer()
{
    process_.disconnect(this);
    kill(SIGKILL);
    process_.waitForFinished(1000);
}

void Tracer::start(const TraceRequest &request)
{
    errors_.clear();
    partial_.clear();
    cancelled_ = reported_ = false;
    group_ = 0;
    program_ = pythonProgram(request.python);
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QStringLiteral("PYTHONDONTWRITEBYTECODE"), QStringLiteral("1"));
    environment.insert(QStringLiteral("PYTHONUNBUFFERED"), QStringLiteral("1"));
    process_.setProcessEnvironment(environment);
    process_.setStandardInputFile(QProcess::nullDevice());
    // A group of its own, so that what the model starts ends with it, and it ends with us however we end.
    process_.setChildProcessModifier([] {
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    });
    process_.start(program_, request.arguments());
    group_ = process_.processId();
}

void Tracer::kill(int signal)
{
    if (group_ > 0)
        ::kill(-pid_t(group_), signal);
    if (signal == SIGKILL)
        group_ = 0;
}

void Tracer::cancel()
{
    if (!isRunning())
        return;
    cancelled_ = true;
    kill(SIGTERM); // time to remove its temporary file
    QTimer::singleShot(100, this, [this, group = group_] {
        if (group_ == group)
            kill(SIGKILL);
    });
}

void Tracer::readProgress()
{
    partial_ += process_.readAllStandardError();
    for (qsizetype end; (end = partial_.indexOf('\n')) >= 0;) {
        const QByteArray line = partial_.left(end).trimmed();
        partial_.remove(0, end + 1);
        if (line.startsWith("progress: ")) {
            const QByteArray rest = line.mid(10);
            const qsizetype space = rest.indexOf(' ');
            emit progress(rest.left(space).toDouble(), QString::fromUtf8(space < 0 ? QByteArray() : rest.mid(space + 1)));
        } else {
            errors_ += line + '\n';
            emit logged(QString::fromUtf8(line));
        }
    }
}

void Tracer::finish()
{
    if (reported_)
        return;
    reported_ = true;
    kill(SIGKILL); // what the model started and left behind
    readProgress();
    errors_ += partial_;
    TraceResult result = parseAnswer(process_.readAllStandardOutput());
    result.cancelled = cancelled_;
    result.exitCode = process_.exitStatus() == QProcess::NormalExit ? process_.exitCode() : 1;
    if (cancelled_) {
        result.ok = false;
        result.error = tr("cancelled");
    } else if (process_.error() == QProcess::FailedToStart) {
        result.exitCode = 1;
        result.error = tr("no Python at %1: name an interpreter that has torch (--python)").arg(program_);
    } else if (!result.ok && result.problems.isEmpty()) {
        const QList<QByteArray> lines = errors_.trimmed().split('\n');
        result.error = QString::fromUtf8(lines.last());
        if (const QLatin1String usage("fuseboard_trace.py: error: "); result.error.startsWith(usage))
            result.error.remove(0, usage.size());
        if (result.error.contains(QLatin1String("No module named 'torch'")))
            result.error = tr("%1 has no torch: install it there, or name another interpreter (--python)").arg(program_);
        else if (result.error.isEmpty())
            result.error = tr("%1 ended without an answer (exit status %2): name an interpreter that has torch (--python)")
                               .arg(program_)
                               .arg(result.exitCode);
    }
    emit finished(result);
}

TraceResult trace(const TraceRequest &request, const std::function<void(double, const QString &)> &progress)
{
    Tracer tracer;
    TraceResult result;
    QEventLoop loop;
    bool finished = false;
    if (progress)
        QObject::connect(&tracer, &Tracer::progress, progress);
    QObject::connect(&tracer, &Tracer::finished, [&](const TraceResult &r) {
        result = r;
        finished = true;
        loop.quit();
    });
    tracer.start(request);
    if (!finished)
        loop.exec();
    return result;
}

} // namespace fb
