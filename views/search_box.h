// Fuseboard: a line edit that counts hits and steps through them. GPL-3.0-or-later.
//
// Every place that searches (canvas, code, a list) uses this one. It knows nothing of what is searched: it says what was
// typed and "next" or "previous"; the owner answers with setHits().
#pragma once

#include <QWidget>

class QLabel;
class QLineEdit;
class QToolButton;

namespace fb
{

class SearchBox : public QWidget
{
    Q_OBJECT
public:
    explicit SearchBox(const QString &placeholder = {}, QWidget *parent = nullptr);

    QString text() const;
    void setText(const QString &text); // emits textChanged when it differs
    // `current` counts from 0, -1 where no hit is current yet. total -1 shows no count.
    void setHits(int current, int total);
    QString countText() const; // "3 of 12", "no hits", or empty
    void activate(); // focus, everything selected
    QLineEdit *lineEdit() const { return edit_; }

signals:
    void textChanged(const QString &text);
    void next(); // Enter, F3, arrow down
    void previous(); // Shift+Enter, Shift+F3, arrow up
    void dismissed(); // Escape with nothing typed (the first Escape clears)

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    QLineEdit *edit_;
    QLabel *count_;
    QToolButton *previous_, *next_;
};

} // namespace fb
