#include "app/document/tracer.h"

#include <QCoreApplication>
#include <QEventLoop>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QStandardPaths>

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
    if (keepMode)
        list << QStringLiteral("--keep-mode");
    if (doctor)
        list << QStringLiteral("--doctor");
    list << QStringLiteral("--seed") << QString::number(seed) << QStringLiteral("--json");
    return list;
}

QString TraceProblem::sentence() const
{
    QString where = module;
    if (!className.isEmpty())
        where += where.isEmpty() ? className : QStringLiteral(" (%1)").arg(className);
    if (!file.isEmpty())
        where += QStringLiteral("%1%2:%3").arg(where.isEmpty() ? QString() : QStringLiteral(", "), file).arg(line);
    if (!source.isEmpty())
        where += QStringLiteral(" `%1`").arg(source.trimmed());
    return where.isEmpty() ? message : where + QStringLiteral(": ") + message;
}

QString TraceResult::sentence() const
{
    return problems.isEmpty() ? error : problems.first().sentence();
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
            problem.fixes.append({ fix[QLatin1String("kind")].toString(), fix[QLatin1String("module")].toString(),
                fix[QLatin1String("label")].toString() });
        }
        result.problems.append(problem);
    }
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
    process_.kill();
    process_.waitForFinished(1000);
}

void Tracer::start(const TraceRequest &request)
{
    errors_.clear();
    partial_.clear();
    cancelled_ = reported_ = false;
    program_ = pythonProgram(request.python);
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QStringLiteral("PYTHONDONTWRITEBYTECODE"), QStringLiteral("1"));
    process_.setProcessEnvironment(environment);
    process_.setStandardInputFile(QProcess::nullDevice());
    process_.start(program_, request.arguments());
}

void Tracer::cancel()
{
    cancelled_ = true;
    process_.kill();
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
        }
    }
}

void Tracer::finish()
{
    if (reported_)
        return;
    reported_ = true;
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
