// What a graph of 100,000 nodes costs: Fuseboard's half of bench_graph.py. GPL-3.0-or-later.
//
// `bench_graph NODES`: a line "NAME MILLISECONDS" each for opening the archive, copying, printing and checking the graph; the
// median of five. Blocks of 100 nodes, each with its module, source line and shape, as a trace of a deep model has them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "model/io/fxt.h"
#include "model/ir/lint.h"
#include "model/text/text.h"

using namespace fb;

namespace
{

GraphModule deepModel(int nodes)
{
    GraphModule gm;
    gm.rootClass = "Deep";
    gm.provenance.torchVersion = "2.13.0";
    const auto module = [&gm](const std::string &path, const std::string &className, ModuleKind kind) {
        ModuleInfo m;
        m.path = path;
        m.className = className;
        m.kind = kind;
        gm.modules.set(path, std::move(m));
    };
    module("", "Deep", ModuleKind::Container);
    module("blocks", "torch.nn.modules.container.ModuleList", ModuleKind::Nn);
    Node input;
    input.op = Opcode::Placeholder;
    input.name = input.target = "x";
    NodeId last = gm.graph.append(std::move(input)), skip = last;
    std::shared_ptr<const ModuleStack> stack;
    std::shared_ptr<const SourceLine> source;
    std::string path;
    for (int i = 0; i < nodes - 2; ++i) {
        if (i % 100 == 0) {
            path = "blocks." + std::to_string(i / 100);
            module(path, "deep.Block", ModuleKind::Container);
            module(path + ".act", "torch.nn.modules.activation.ReLU", ModuleKind::Nn);
            stack = std::make_shared<const ModuleStack>(ModuleStack{ { path, "deep.Block", 0 } });
            source = std::make_shared<const SourceLine>(SourceLine{ "deep.py", 20 + i % 7, "x = self.act(x) + x", "forward" });
        }
        Node n;
        n.stack = stack;
        n.source = source;
        n.meta = TensorMeta{ { 1, 64, 56, 56 }, DType::Float32 };
        if (i % 2 == 0) {
            n.op = Opcode::CallModule;
            n.target = path + ".act";
            n.args = { Arg(last) };
            skip = last;
        } else {
            n.target = "operator.add";
            n.args = { Arg(last), Arg(skip) };
        }
        last = gm.graph.append(std::move(n));
    }
    Node output;
    output.op = Opcode::Output;
    output.name = output.target = "output";
    output.args = { Arg(last) };
    gm.graph.append(std::move(output));
    return gm;
}

void measure(const char *name, const std::function<bool()> &work)
{
    double times[5];
    for (double &t : times) {
        const auto start = std::chrono::steady_clock::now();
        if (!work()) {
            std::fprintf(stderr, "%s failed\n", name);
            std::exit(1);
        }
        t = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    }
    std::sort(std::begin(times), std::end(times));
    std::printf("%s %.2f\n", name, times[2]);
    std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv)
{
    const GraphModule gm = deepModel(argc > 1 ? std::atoi(argv[1]) : 100000);
    const std::string file
        = (std::filesystem::temp_directory_path() / ("bench_graph_" + std::to_string(gm.graph.size()) + ".fxt")).string();
    if (Status written = writeFxt(gm, file); !written) {
        std::fprintf(stderr, "%s\n", written.message().c_str());
        return 1;
    }
    measure("open", [&] { return bool(readFxt(file)); });
    measure("copy", [&] { return GraphModule(gm).graph.size() == gm.graph.size(); });
    measure("print", [&] { return !torchGraphText(gm).empty(); });
    measure("code", [&] { return !torchCode(gm).empty(); });
    measure("lint", [&] { return lint(gm).empty(); });
    measure("write", [&] { return bool(writeFxt(gm, file)); });
    std::filesystem::remove(file);
    return 0;
}
