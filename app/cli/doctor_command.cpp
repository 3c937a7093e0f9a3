// doctor: what was found on this machine and what is missing. GPL-3.0-or-later.
#include <QFileInfo>
#include <QProcess>

#include "app/cli/cli.h"
#include "app/document/tracer.h"
#include "model/exec/interpreter.h"
#include "passes/quantize.h"

namespace fb::cli
{

namespace
{

struct DoctorOptions {
    bool json = false;
};

// The first line that a program prints, empty where it does not run.
std::string firstLine(const QString &program, const QStringList &arguments)
{
    QProcess p;
    p.setProcessChannelMode(QProcess::MergedChannels);
    p.start(program, arguments);
    if (!p.waitForFinished(60000) || p.exitStatus() != QProcess::NormalExit || p.exitCode() != 0)
        return {};
    return QString::fromUtf8(p.readAll()).section(QLatin1Char('\n'), 0, 0).trimmed().toStdString();
}

Status runDoctor(const DoctorOptions &o, const Common &)
{
    const QString python = pythonProgram(), script = resourcePath(QStringLiteral("python/fuseboard_trace.py"));
    const std::string version
        = firstLine(python, { QStringLiteral("-c"), QStringLiteral("import sys; print(sys.version.split()[0])") });
    const std::string torch = firstLine(python,
        { QStringLiteral("-W"), QStringLiteral("ignore"), QStringLiteral("-c"),
            QStringLiteral("import torch; print(torch.__version__)") });
    const std::string dot = firstLine(QStringLiteral("dot"), { QStringLiteral("-V") });
    const auto engines = quantizedEngines();

    Json missing = Json::array();
    if (version.empty())
        missing.push_back("Python at " + python.toStdString() + " does not run: name one with FUSEBOARD_PYTHON or --python");
    else if (torch.empty())
        missing.push_back(python.toStdString()
            + " has no torch, so it cannot trace: install torch there or name another Python with FUSEBOARD_PYTHON");
    if (!QFileInfo::exists(script))
        missing.push_back(
            "the tracer " + script.toStdString() + " is not there: set FUSEBOARD_RESOURCES to the resources folder");
    for (const std::string &backend : quantBackends())
        if (std::find(engines.begin(), engines.end(), backend) == engines.end())
            missing.push_back("this PyTorch has no engine " + backend + ", so int8 models for it do not run here");

    const Json found{ { "torch", torchVersion() }, { "engines", engines }, { "qt", qVersion() },
        { "graphviz", dot.empty() ? Json(nullptr) : Json(dot) },
        { "python", { { "path", python.toStdString() }, { "version", version }, { "torch", torch } } },
        { "tracer", script.toStdString() }, { "missing", missing } };
    if (o.json) {
        print(found);
        return {};
    }
    std::string list, out;
    for (const std::string &e : engines)
        list += (list.empty() ? "" : ", ") + e;
    out += "torch     " + torchVersion() + " (engines: " + list + ")\n";
    out += std::string("Qt        ") + qVersion() + "\n";
    out += "Graphviz  " + (dot.empty() ? "linked; the program dot is not there" : dot) + "\n";
    out += "Python    " + python.toStdString() + (version.empty() ? "" : " " + version)
        + (torch.empty() ? "" : " with torch " + torch) + "\n";
    for (const Json &m : missing)
        out += "missing   " + m.get<std::string>() + "\n";
    print(out);
    return {};
}

} // namespace

void addDoctorCommand(Program &program)
{
    auto [c, o] = program.add<DoctorOptions>("doctor", "what was found here and what is missing", runDoctor);
    c->add_flag("--json", o->json, "one JSON document");
}

} // namespace fb::cli
