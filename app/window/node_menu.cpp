#include "app/window/node_menu.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QMenu>
#include <nlohmann/json.hpp>

#include "app/document/parts.h"
#include "passes/edits.h"

namespace fb
{

using Json = nlohmann::ordered_json;

namespace
{

QStringList namesOf(const GraphModule &gm, const QList<NodeId> &nodes)
{
    QStringList names;
    for (NodeId id : nodes)
        if (gm.graph.contains(id))
            names << qs(gm.graph[id].name);
    return names;
}

// "torch.nn.functional.relu" as people write it.
QString shortName(const OpRef &op)
{
    QString name = qs(op.target);
    if (op.op == Opcode::CallModule)
        return QStringLiteral("nn.") + name.mid(name.lastIndexOf(QLatin1Char('.')) + 1);
    if (op.op == Opcode::CallMethod)
        return QStringLiteral(".%1()").arg(name);
    return name.replace(QStringLiteral("torch.nn.functional."), QStringLiteral("F."));
}

// As OpRef::parse reads it back.
std::string writeOp(const OpRef &op)
{
    return op.op == Opcode::CallMethod ? "." + op.target + "()" : op.target;
}

void replace(GraphDocument *doc, const Json &what, const OpRef &to, const QString &name)
{
    Json edit{ { "op", "replace" } };
    edit.update(what);
    edit["with"] = writeOp(to);
    doc->edit(name, edit.dump());
}

} // namespace

void fuseNodes(GraphDocument *doc, const QList<NodeId> &nodes)
{
    Json edit{ { "op", "fuse" } };
    if (!nodes.isEmpty())
        for (const QString &name : namesOf(*doc->graph(), nodes))
            edit["nodes"].push_back(name.toStdString());
    doc->edit(nodes.isEmpty() ? GraphDocument::tr("Fuse all") : GraphDocument::tr("Fuse selection"), edit.dump());
}

void removeNodes(GraphDocument *doc, const QList<NodeId> &nodes)
{
    for (const QString &name : namesOf(*doc->graph(), nodes))
        doc->edit(GraphDocument::tr("Remove %1").arg(name), Json{ { "op", "remove" }, { "node", name.toStdString() } }.dump());
}

void setLeaf(GraphDocument *doc, const QString &path, bool leaf)
{
    doc->edit(leaf ? GraphDocument::tr("Mark %1 as leaf").arg(path) : GraphDocument::tr("Unmark leaf %1").arg(path),
        Json{ { "op", leaf ? "leaf" : "unleaf" }, { "module", path.toStdString() } }.dump());
}

void keepFloat(GraphDocument *doc, const QList<NodeId> &nodes, bool keep)
{
    QuantConfig config = doc->state().config;
    const QStringList names = namesOf(*doc->graph(), nodes);
    for (const QString &name : names) {
        if (keep)
            config.floatNodes.insert(name.toStdString());
        else
            config.floatNodes.erase(name.toStdString());
    }
    const QString what = names.size() == 1 ? names.first() : nodesText(names.size());
    doc->configure(
        keep ? GraphDocument::tr("Keep %1 in float").arg(what) : GraphDocument::tr("Let %1 be int8").arg(what), config);
}

void keepModuleFloat(GraphDocument *doc, const QString &path, bool keep)
{
    QuantConfig config = doc->state().config;
    if (keep)
        config.floatModules.insert(path.toStdString());
    else
        config.floatModules.erase(path.toStdString());
    doc->configure(
        keep ? GraphDocument::tr("Keep %1 in float").arg(path) : GraphDocument::tr("Let %1 be int8").arg(path), config);
}

void fillNodeMenu(
    QMenu *menu, GraphDocument *doc, const QList<NodeId> &nodes, const QStringList &modules, const NodeMenuActions &actions)
{
    const auto gm = doc->graph();
    auto add = [menu](const QString &text, auto run) { QObject::connect(menu->addAction(text), &QAction::triggered, menu, run); };

    if (!modules.isEmpty()) {
        const QString key = modules.first();
        const QString path = key.section(QLatin1Char('@'), 0, 0);
        add(GraphDocument::tr("Fold or unfold"), [=] { actions.toggleFold(key); });
        if (!doc->isInt8()) {
            add(GraphDocument::tr("Mark %1 as leaf").arg(path), [=] { setLeaf(doc, path, true); });
            const bool kept = doc->state().config.floatModules.count(path.toStdString()) > 0;
            add(kept ? GraphDocument::tr("Let %1 be int8").arg(path) : GraphDocument::tr("Keep %1 in float").arg(path),
                [=] { keepModuleFloat(doc, path, !kept); });
        }
        add(GraphDocument::tr("Copy name"), [=] { QGuiApplication::clipboard()->setText(path); });
        if (nodes.isEmpty())
            return;
        menu->addSeparator();
    }
    if (nodes.isEmpty() || !gm)
        return;
    const NodeId first = nodes.first();
    const Node &n = gm->graph[first];
    const bool computes = n.op == Opcode::CallFunction || n.op == Opcode::CallMethod || n.op == Opcode::CallModule;

    if (doc->part().isEmpty() && n.op == Opcode::CallModule)
        for (const QString &part : doc->parts())
            add(GraphDocument::tr("Show the graph of %1").arg(qs(pathInModel(part.toStdString()))), [=] { doc->showPart(part); });
    if (!doc->isInt8()) {
        if (nodes.size() > 1)
            add(GraphDocument::tr("Fuse"), [=] { fuseNodes(doc, nodes); });
        if (nodes.size() == 1 && computes) {
            const std::vector<OpRef> targets = replacements(*gm, first);
            if (!targets.empty()) {
                const OpRef from = opRefOf(*gm, n);
                QMenu *one = menu->addMenu(GraphDocument::tr("Replace with"));
                QMenu *all = menu->addMenu(GraphDocument::tr("Replace every %1 with").arg(shortName(from)));
                for (const OpRef &to : targets) {
                    QObject::connect(one->addAction(shortName(to)), &QAction::triggered, menu, [=, name = n.name] {
                        replace(
                            doc, { { "node", name } }, to, GraphDocument::tr("Replace %1 with %2").arg(qs(name), shortName(to)));
                    });
                    QObject::connect(all->addAction(shortName(to)), &QAction::triggered, menu, [=] {
                        replace(doc, { { "all", writeOp(from) } }, to,
                            GraphDocument::tr("Replace every %1 with %2").arg(shortName(from), shortName(to)));
                    });
                }
            }
            add(GraphDocument::tr("Remove"), [=] { removeNodes(doc, { first }); });
        }
        if (const ModuleInfo *m = gm->moduleOf(n); m && nodes.size() == 1 && m->kind == ModuleKind::Graph)
            add(GraphDocument::tr("Unmark leaf"), [=, path = qs(n.target)] { setLeaf(doc, path, false); });
        if (nodes.size() == 1 && !n.modulePath().empty())
            add(GraphDocument::tr("Mark module %1 as leaf").arg(qs(n.modulePath())),
                [=, path = qs(n.modulePath())] { setLeaf(doc, path, true); });
        if (computes) {
            bool kept = true;
            for (NodeId id : nodes)
                kept = kept && doc->state().config.floatNodes.count(gm->graph[id].name) > 0;
            add(kept ? GraphDocument::tr("Let it be int8") : GraphDocument::tr("Keep in float"),
                [=] { keepFloat(doc, nodes, !kept); });
        }
    }
    if (doc->state().calibration && doc->state().calibration->nodes.count(n.name))
        add(GraphDocument::tr("Histogram"), [=] { actions.showHistogram(first); });
    if (nodes.size() == 1 && n.source)
        add(GraphDocument::tr("Go to source"), [=, source = n.source] { actions.goToSource(qs(source->file), source->line); });
    add(GraphDocument::tr("Copy name"),
        [=] { QGuiApplication::clipboard()->setText(namesOf(*gm, nodes).join(QLatin1Char('\n'))); });
}

} // namespace fb
