#include "app/document/python_worker.h"

#include <algorithm>

#include <QDir>
#include <QFileInfo>

#include "app/document/tracer.h"

namespace fb
{

Result<std::string> sourceOf(const GraphModule &gm, const std::string &file)
{
    const std::string &source = gm.provenance.source;
    const size_t colon = source.rfind(':');
    const QString place = QString::fromStdString(source.substr(0, colon));
    if (colon == source.npos)
        return Error{ file + " does not say what it was traced from; name that with --source file.py:name" };
    if (!place.endsWith(QLatin1String(".py")))
        return source; // package.module:name
    const QDir beside = QFileInfo(QString::fromStdString(file)).absoluteDir();
    for (const QString &candidate : { place, beside.filePath(place), beside.filePath(QFileInfo(place).fileName()) })
        if (QFileInfo(candidate).isFile())
            return QFileInfo(candidate).absoluteFilePath().toStdString() + source.substr(colon);
    return Error{ file + " was traced from " + place.toStdString()
        + ", which is neither here nor beside it; name it with --source file.py:" + source.substr(colon + 1) };
}

bool needsPython(const GraphModule &gm)
{
    const auto obstacles = notExecutable(gm);
    return std::any_of(obstacles.begin(), obstacles.end(), [](const NotExecutable &n) { return n.inPython; });
}

Result<std::shared_ptr<Worker>> workerFor(const GraphModule &gm, const std::string &file, const WorkerRequest &request)
{
    if ((!request.wanted && request.python.empty() && request.source.empty()) || !needsPython(gm))
        return std::shared_ptr<Worker>();
    const Result<std::string> source = request.source.empty() ? sourceOf(gm, file) : Result<std::string>(request.source);
    if (!source)
        return source.error();
    return std::make_shared<Worker>(WorkerOptions{ pythonProgram(QString::fromStdString(request.python)).toStdString(),
        resourcePath(QStringLiteral("python/fuseboard_worker.py")).toStdString(), *source, request.timeout });
}

} // namespace fb
