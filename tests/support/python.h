// Fuseboard tests: real PyTorch as the judge, in a process of its own. GPL-3.0-or-later.
//
// A test makes its archives and its expected values at run time: `Judge` is a temporary folder with the Python that ctest
// names (FUSEBOARD_PYTHON) and the oracle scripts of tests/oracle. A failed run returns false and keeps what Python said in
// `error`, so that `QVERIFY2(judge.trace(...), judge.error)` shows it.
#pragma once

#include <QByteArray>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QProcessEnvironment>
#include <QStringList>
#include <QTemporaryDir>

namespace fbtest
{

inline QString sourceDir()
{
    const QString named = qEnvironmentVariable("FUSEBOARD_SOURCE_DIR");
    return named.isEmpty() ? QFileInfo(QStringLiteral(__FILE__)).dir().absoluteFilePath(QStringLiteral("../..")) : named;
}

// The PyTorch that the product is built against.
inline QString python()
{
    const QString named = qEnvironmentVariable("FUSEBOARD_PYTHON");
    if (!named.isEmpty())
        return named;
    const QString own = sourceDir() + QStringLiteral("/.venv/bin/python");
    return QFileInfo::exists(own) ? own : QStringLiteral("python3");
}

// The system's own Python where it has torch (Debian 12: 1.13.1), else empty: the second judge.
inline QString secondPython()
{
    static const QString found = [] {
        const QString system = QStringLiteral("/usr/bin/python3");
        QProcess p;
        p.start(system, { QStringLiteral("-c"), QStringLiteral("import torch, torchvision") });
        return p.waitForFinished(120000) && p.exitStatus() == QProcess::NormalExit && p.exitCode() == 0 ? system : QString();
    }();
    return found;
}

class Judge
{
public:
    QByteArray error; // what the last failed run said
    QByteArray output; // standard output of the last run
    QString program = python();

    // A file in the judge's folder.
    QString path(const QString &name) const { return folder_.filePath(name); }

    bool run(const QStringList &arguments)
    {
        QProcess p;
        QProcessEnvironment env = QProcessEnvironment::systemEnvironment();
        env.insert(QStringLiteral("PYTHONWARNINGS"), QStringLiteral("ignore"));
        env.insert(QStringLiteral("PYTHONDONTWRITEBYTECODE"), QStringLiteral("1"));
        env.insert(QStringLiteral("PYTHONPATH"), sourceDir() + QStringLiteral("/tests/oracle"));
        p.setProcessEnvironment(env);
        p.setWorkingDirectory(folder_.path());
        p.start(program, arguments);
        const bool ended = p.waitForFinished(300000);
        output = p.readAllStandardOutput();
        error = ended ? p.readAllStandardError() : program.toUtf8() + " did not end: " + p.errorString().toUtf8();
        return ended && p.exitStatus() == QProcess::NormalExit && p.exitCode() == 0;
    }
    // tests/oracle/`script` with arguments.
    bool oracle(const QString &script, const QStringList &arguments = {})
    {
        return run(QStringList{ sourceDir() + QStringLiteral("/tests/oracle/") + script } + arguments);
    }
    // resources/python/fuseboard_trace.py: SOURCE to `out` in the judge's folder; `more` as ["--input", "1x3x8x8"].
    bool trace(const QString &source, const QString &out, const QStringList &more = {})
    {
        return run(QStringList{ sourceDir() + QStringLiteral("/resources/python/fuseboard_trace.py"), source,
                       QStringLiteral("-o"), path(out) }
            + more);
    }
    // Text of a Python file put into the folder, for small models made by a test.
    QString write(const QString &name, const QByteArray &text)
    {
        QFile f(path(name));
        if (f.open(QIODevice::WriteOnly))
            f.write(text);
        return f.fileName();
    }
    QJsonDocument json() const { return QJsonDocument::fromJson(output); }

private:
    QTemporaryDir folder_;
};

} // namespace fbtest
