// Fuseboard: the quantization rules in order of precedence, with how many nodes each decides. GPL-3.0-or-later.
#pragma once

#include <QVector>
#include <QWidget>

class QComboBox;
class QLabel;
class QTableWidget;
class QToolButton;

namespace fb
{

struct RuleRow {
    QString id; // the application's own; comes back in the signals
    QString kind; // "node", "module", "type", "default" as shown
    QString pattern; // "layer4.1.conv2", "torch.nn.Conv2d"; empty for the default
    QString effect; // "keep in float", "int8, MinMax"
    int decides = 0; // nodes
    bool removable = true;
    bool operator==(const RuleRow &) const = default;
};

class RulesView : public QWidget
{
    Q_OBJECT
public:
    explicit RulesView(QWidget *parent = nullptr);

    void setBackends(const QStringList &names, const QString &current);
    void setRules(const QVector<RuleRow> &rules); // first wins
    QString text() const; // "module | layer4 | keep in float | 7" a line, for tests

signals:
    void backendRequested(const QString &name);
    void removeRequested(const QString &id);
    void ruleActivated(const QString &id); // show the nodes it decides

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void removeCurrent();
    void selectionChanged();
    int currentRule() const; // -1: none selected

    QVector<RuleRow> rules_;
    QComboBox *backend_;
    QTableWidget *table_;
    QToolButton *remove_;
    QLabel *note_;
};

} // namespace fb
