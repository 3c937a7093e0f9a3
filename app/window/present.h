// Fuseboard: what the document knows, in the words of the views. GPL-3.0-or-later.
//
// Pure functions from a document to the plain values that panels and canvas show. Nothing here changes anything.
#pragma once

#include "app/document/document.h"
#include "views/canvas.h"
#include "views/histogram_view.h"
#include "views/inspector.h"
#include "views/jobs_view.h"
#include "views/layers_view.h"
#include "views/problems_view.h"
#include "views/rules_view.h"
#include "views/step_row.h"

namespace fb
{

QHash<uint32_t, NodeBadge> presentBadges(const GraphDocument &doc);
// Of those of `nodes` that were calibrated; of every observed node where `nodes` is empty.
QVector<HistogramData> presentHistograms(const GraphDocument &doc, const QList<NodeId> &nodes);
QuantFacts presentQuantization(const GraphDocument &doc, NodeId node);
QVector<WeightStats> presentWeights(const GraphModule &gm, NodeId node); // slow: reads every weight
QVector<LayerRow> presentLayers(const GraphDocument &doc);
QVector<RuleRow> presentRules(const GraphDocument &doc);
QVector<ProblemRow> presentProblems(const GraphDocument &doc); // ids are indexes into doc.problems()
QVector<JobRow> presentJobs(const Jobs &jobs);
StepState presentStep(const GraphDocument &doc, StepRow::Step step);
StepRow::Step nextStep(const GraphDocument &doc);

} // namespace fb
