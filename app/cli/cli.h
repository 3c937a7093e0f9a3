// Fuseboard: what the commands of fuseboard-cli share. GPL-3.0-or-later.
//
// Every command is a function from its parsed options to a Status: an error is the one sentence that main prints. Standard
// output carries results only, progress goes to standard error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "model/io/fxt.h"
#include "model/io/models.h"
#include "model/ir/module.h"
#include "passes/pass.h"

namespace fb::cli
{

using Json = nlohmann::ordered_json;

// The options that every command takes.
struct Common {
    bool quiet = false;
    uint64_t seed = 0;
    int threads = 0;
    bool aten = false;
};

// The commands and what to run for the one that was given.
class Program
{
public:
    explicit Program(const Common &common)
        : common(common)
    {
    }
    const Common &common;
    std::function<Status()> action;
    CLI::App app{ "Takes PyTorch models to int8 without a screen.", "fuseboard-cli" };

    // A command whose options live in an Options and whose work is a function of it.
    template <class Options>
    std::pair<CLI::App *, Options *> add(const char *name, const char *what, Status (*work)(const Options &, const Common &))
    {
        auto options = std::make_shared<Options>();
        CLI::App *command = app.add_subcommand(name, what);
        command->callback([this, options, work] { action = [this, options, work] { return work(*options, common); }; });
        return { command, options.get() };
    }
};

void addModelCommands(Program &program); // trace, info, print, code, run, shapes, verify
void addPassCommands(Program &program); // fuse, edit
void addQuantCommands(Program &program); // calibrate, merge, quantize, export
void addDoctorCommand(Program &program);

// Wrong use that only shows once the options are known: main prints it with the usage and exits 2.
struct UsageError : CLI::ParseError {
    explicit UsageError(const std::string &message)
        : CLI::ParseError("UsageError", message, 2)
    {
    }
};

void print(const std::string &text); // to standard output as it is
void print(const Json &document); // pretty, with a newline

// Graphs that call ATen operators come regrouped into modules, unless --aten says otherwise.
Result<GraphModule> openModel(const std::string &file, const Common &common);
// One value per placeholder from SHAPE and FILE texts; none given: seeded random ones in the shapes it was traced with.
Result<std::vector<Arg>> inputsFor(
    const GraphModule &gm, const std::string &file, const std::vector<std::string> &texts, uint64_t seed);
// Every tensor of a model's answer with its key: output, output.0, output.name ...
NamedTensors namedTensors(const std::string &key, const Arg &value);

// One line on standard error that rewrites itself on a terminal, and a line every few seconds otherwise.
class ProgressLine
{
public:
    explicit ProgressLine(bool quiet);
    ~ProgressLine();
    void show(double fraction, const std::string &text);

private:
    bool quiet_, terminal_, dirty_ = false;
    double last_ = 0;
};

// What a pass did, as text or as JSON.
std::string reportText(const PassReport &report);
Json reportJson(const PassReport &report);

} // namespace fb::cli
