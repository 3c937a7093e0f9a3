// Fuseboard: the generated forward beside the canvas. GPL-3.0-or-later.
//
// Read-only Python with line numbers; what is selected on the canvas is lit here, and a click on a line selects its node.
//
//     code->setModule(snapshot);                        // or setLines(torchCodeLines(*snapshot)) made in a worker
//     connect(code, &CodeView::nodesSelected, ...);     // only for what the hand did, never for setSelected()
#pragma once

#include <QByteArray>
#include <QHash>
#include <QVector>
#include <QWidget>
#include <memory>

#include "model/ir/module.h"
#include "model/text/text.h"

class QsciLexerPython;
class QsciScintilla;

namespace fb
{

class SearchBox;

class CodeView : public QWidget
{
    Q_OBJECT
public:
    explicit CodeView(QWidget *parent = nullptr);

    void setModule(std::shared_ptr<const GraphModule> gm);
    void setLines(const std::vector<CodeLine> &lines);
    void setSelected(const QVector<NodeId> &nodes); // lights their lines, scrolls to the first when none is in sight
    QVector<NodeId> selected() const { return selected_; }
    QVector<int> litLines() const; // counted from 0
    QString text() const;
    void openSearch(); // Ctrl+F

signals:
    void nodesSelected(const QVector<fb::NodeId> &nodes);

protected:
    void changeEvent(QEvent *event) override;
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void applyTheme();
    void selectionChanged();
    void search(const QString &text);
    void showHit();
    void step(int by);
    void select(const QVector<NodeId> &nodes);
    QVector<NodeId> nodesOfLines(long fromByte, long toByte) const;
    void closeSearch();

    QsciScintilla *editor_;
    QsciLexerPython *lexer_;
    SearchBox *search_;
    QByteArray text_; // as shown, UTF-8
    std::vector<NodeId> nodeOfLine_;
    QHash<NodeId, QVector<int>> linesOfNode_;
    QVector<NodeId> selected_;
    QVector<std::pair<int, int>> hits_; // byte ranges
    int hit_ = -1;
    bool quiet_ = false;
};

} // namespace fb
