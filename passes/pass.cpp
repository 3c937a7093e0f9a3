#include "passes/pass.h"

#include "model/ir/lint.h"

namespace fb
{

Result<PassReport> runPass(const std::string &name, const Pass &pass, GraphModule &gm, const std::atomic<bool> *cancel)
{
    if (cancel && *cancel)
        return Error{ "cancelled" };
    GraphModule work = gm;
    Result<PassReport> report = pass(work);
    if (!report)
        return Error{ name + ": " + report.message() };
    report->pass = name;
    if (cancel && *cancel)
        return Error{ "cancelled" };
    const auto problems = lint(work);
    if (!problems.empty() && lint(gm).empty())
        return Error{ name + " would leave a graph that is not valid (" + problems.front().message + "); nothing was changed" };
    if (report->changed == (work == gm))
        return Error{ name + " reports " + (report->changed ? "a change that did not happen" : "no change, but the graph differs")
            + "; nothing was changed" };
    gm = std::move(work);
    return report;
}

} // namespace fb
