// Fuseboard: the module hierarchy as a tree. GPL-3.0-or-later.
//
//     tree->setModule(snapshot);               // keeps what was unfolded, selected and filtered
//     tree->setKeptFloat({"layer4"});          // by the rules of the document
//     tree->setCurrent("layer1.0");            // emits nothing
#pragma once

#include <QSet>
#include <QWidget>
#include <memory>

#include "model/ir/module.h"

class QLineEdit;
class QTreeView;

namespace fb
{

class ModuleTreeModel;
class ModuleFilter;

class ModuleTree : public QWidget
{
    Q_OBJECT
public:
    explicit ModuleTree(QWidget *parent = nullptr);

    void setModule(std::shared_ptr<const GraphModule> gm);
    void setKeptFloat(const QSet<QString> &paths);
    void setCurrent(const QString &path);
    QString current() const; // "" is the root or nothing
    QString text() const; // the rows in sight, two spaces a level, for tests
    QTreeView *view() const { return view_; }

signals:
    void moduleSelected(const QString &path);
    void moduleActivated(const QString &path); // Enter or double click: show it on the canvas
    void leafRequested(const QString &path, bool leaf); // mark as leaf, or unmark
    void keepFloatRequested(const QString &path, bool keepFloat);

protected:
    void resizeEvent(QResizeEvent *event) override;

private:
    void showMenu(const QPoint &at);
    void restoreUnfolded();
    void filter(const QString &text);

    QLineEdit *filter_;
    QTreeView *view_;
    ModuleTreeModel *model_;
    ModuleFilter *proxy_;
    QSet<QString> unfolded_;
    bool quiet_ = false;
};

} // namespace fb
