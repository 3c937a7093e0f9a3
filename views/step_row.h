// Fuseboard: the six steps as a row of buttons that say where the document stands. GPL-3.0-or-later.
//
//     steps->setState(StepRow::Calibrate, {StepState::Running, 40});
//     steps->setState(StepRow::Calibrate, {StepState::OutOfDate, 0, tr("3 nodes changed since calibration")});
#pragma once

#include <QString>
#include <QWidget>
#include <array>

namespace fb
{

struct StepState {
    enum Kind { Todo, Done, Running, OutOfDate };
    Kind kind = Todo;
    int percent = -1; // running; below 0: not known
    QString text; // shown as tool tip, and why it is out of date
    bool operator==(const StepState &) const = default;
};

class StepButton;

class StepRow : public QWidget
{
    Q_OBJECT
public:
    enum Step { Trace, Edit, Configure, Calibrate, Review, Export, StepCount };
    Q_ENUM(Step)

    explicit StepRow(QWidget *parent = nullptr);

    void setState(Step step, const StepState &state);
    StepState state(Step step) const;
    void setNext(int step); // the step to do next is emphasised; -1: none
    void setStepEnabled(Step step, bool enabled);
    QWidget *button(Step step) const;

signals:
    void stepPressed(int step);

private:
    std::array<StepButton *, StepCount> buttons_;
};

} // namespace fb
