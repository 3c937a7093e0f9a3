// Fuseboard: everything that can be done to a selection, and nothing else. GPL-3.0-or-later.
#pragma once

#include <functional>

#include <QList>
#include <QStringList>

#include "app/document/document.h"

class QMenu;

namespace fb
{

// What the menu wants of the window beyond the document.
struct NodeMenuActions {
    std::function<void(NodeId)> showHistogram;
    std::function<void(const QString &file, int line)> goToSource;
    std::function<void(const QString &key)> toggleFold;
};

// Fills `menu` for the selected nodes and module boxes.
void fillNodeMenu(
    QMenu *menu, GraphDocument *doc, const QList<NodeId> &nodes, const QStringList &modules, const NodeMenuActions &actions);

// The edits as EDITS.json entries, named for undo.
void fuseNodes(GraphDocument *doc, const QList<NodeId> &nodes); // empty: everything that can be fused
void removeNodes(GraphDocument *doc, const QList<NodeId> &nodes);
void setLeaf(GraphDocument *doc, const QString &path, bool leaf);
void keepFloat(GraphDocument *doc, const QList<NodeId> &nodes, bool keep);
void keepModuleFloat(GraphDocument *doc, const QString &path, bool keep);

} // namespace fb
