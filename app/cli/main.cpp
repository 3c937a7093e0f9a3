// fuseboard-cli: every step without a screen. The words are cli.md's; scripts rely on them. GPL-3.0-or-later.
#include <cstdio>
#include <new>

#include <QCoreApplication>

#include "app/cli/cli.h"
#include "model/exec/interpreter.h"

using namespace fb;

int main(int argc, char **argv)
{
    QCoreApplication qt(argc, argv);
    cli::Common common;
    cli::Program program(common);
    CLI::App &app = program.app;
    app.require_subcommand(1);
    app.fallthrough();
    app.add_flag("--quiet", common.quiet, "no progress on standard error");
    app.add_option("--seed", common.seed, "of random inputs (0)");
    app.add_option("--threads", common.threads, "how many threads compute (as PyTorch chooses)")->check(CLI::PositiveNumber);
    app.add_flag(
        "--aten", common.aten, "leave the ATen operators of a .pt2 as they are, instead of regrouping them into modules");
    cli::addModelCommands(program);
    cli::addPassCommands(program);
    cli::addQuantCommands(program);
    cli::addDoctorCommand(program);

    try {
        app.parse(argc, argv);
        if (common.threads > 0)
            setThreads(common.threads);
        if (const Status done = program.action(); !done) {
            std::fprintf(stderr, "%s\n", done.message().c_str());
            return 1;
        }
        if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
            std::fprintf(stderr, "standard output cannot be written: look for a full disk or a closed pipe\n");
            return 1;
        }
        return 0;
    } catch (const CLI::CallForHelp &help) {
        return app.exit(help);
    } catch (const CLI::CallForAllHelp &help) {
        return app.exit(help);
    } catch (const CLI::ParseError &error) {
        const auto commands = app.get_subcommands();
        const bool unknown = commands.empty() && argc > 1 && argv[1][0] != '-';
        const std::string message = unknown ? std::string("there is no command ") + argv[1] : error.what();
        std::fprintf(stderr, "%s\n\n%s", message.c_str(), app.help().c_str());
        return 2;
    } catch (const std::bad_alloc &) {
        std::fprintf(stderr, "the memory does not suffice for this; take smaller inputs or a smaller --batch\n");
        return 1;
    }
}
