// fuse and edit. GPL-3.0-or-later.
#include "app/cli/cli.h"
#include "passes/edits.h"
#include "passes/fuse.h"

namespace fb::cli
{

namespace
{

struct PassOptions {
    std::string file, edits, output;
    bool json = false;
};

Status change(const PassOptions &o, const std::string &name, const Pass &pass, const Common &common)
{
    if (!o.output.ends_with(".fxt"))
        throw UsageError("-o names a .fxt file, not " + o.output);
    Result<GraphModule> gm = openModel(o.file, common);
    if (!gm)
        return gm.error();
    Result<PassReport> report = runPass(name, pass, *gm);
    if (!report)
        return Error{ o.file + ": " + report.message() };
    if (Status written = writeFxt(*gm, o.output); !written)
        return written;
    if (o.json)
        print(reportJson(*report));
    else
        print(reportText(*report));
    return {};
}

Status runFuse(const PassOptions &o, const Common &common)
{
    return change(o, "Fuse all", fuseAll, common);
}

Status runEdit(const PassOptions &o, const Common &common)
{
    Result<std::string> edits = readFile(o.edits);
    if (!edits)
        return edits.error();
    return change(
        o, "Edit", [&](GraphModule &gm) { return applyEdits(gm, *edits); }, common);
}

} // namespace

void addPassCommands(Program &program)
{
    for (const bool edit : { false, true }) {
        auto [c, o] = edit
            ? program.add<PassOptions>("edit", "apply a list of edits, all or none", runEdit)
            : program.add<PassOptions>("fuse", "fuse convolutions, BatchNorm and activations where that is right", runFuse);
        c->add_option("FILE", o->file)->required();
        if (edit) {
            c->add_option("--apply", o->edits, "EDITS.json")->required();
            c->footer(kEditsHelp);
        }
        c->add_option("-o", o->output, "OUT.fxt")->required();
        c->add_flag("--json", o->json, "the report as one JSON document");
    }
}

} // namespace fb::cli
