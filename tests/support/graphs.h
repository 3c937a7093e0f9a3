// Fuseboard tests: a graph made by hand that has one of everything a trace archive can hold. GPL-3.0-or-later.
#pragma once

#include <cmath>
#include <limits>

#include "model/ir/module.h"

namespace fbtest
{

// What a result says, for QVERIFY2, which asks for it in any case.
template <class R> const char *why(const R &result)
{
    return result ? "" : result.error().message.c_str();
}

inline fb::ModuleInfo moduleInfo(std::string path, std::string className, fb::ModuleKind kind)
{
    fb::ModuleInfo m;
    m.path = std::move(path);
    m.className = std::move(className);
    m.kind = kind;
    return m;
}

inline fb::Node node(fb::Opcode op, std::string name, std::string target, fb::ArgList args = {}, fb::Kwargs kwargs = {})
{
    fb::Node n;
    n.op = op;
    n.name = std::move(name);
    n.target = std::move(target);
    n.args = std::move(args);
    n.kwargs = std::move(kwargs);
    return n;
}

// "2x3"
inline std::string shapeOf(const std::vector<int64_t> &sizes)
{
    std::string text;
    for (const int64_t n : sizes)
        text += (text.empty() ? "" : "x") + std::to_string(n);
    return text;
}

// y = leaf(x) + w, with tied tensors: what a marked leaf holds inside.
inline fb::GraphModule innerGraph(const fb::Tensor &w)
{
    fb::GraphModule gm;
    gm.rootClass = "Inner";
    gm.modules.set("", moduleInfo("", "net.Inner", fb::ModuleKind::Container));
    gm.tensors.set("w", { w, true, true });
    const fb::NodeId x = gm.graph.append(node(fb::Opcode::Placeholder, "x", "x"));
    const fb::NodeId a = gm.graph.append(node(fb::Opcode::GetAttr, "w", "w"));
    const fb::NodeId y = gm.graph.append(node(fb::Opcode::CallFunction, "add", "operator.add", { x, a }));
    gm.graph.append(node(fb::Opcode::Output, "output", "output", { y }));
    return gm;
}

inline fb::GraphModule everything()
{
    using namespace fb;
    GraphModule gm;
    gm.rootClass = "Net";
    gm.provenance.torchVersion = "2.13.0";
    gm.provenance.source = "net.py:make";
    gm.provenance.inputs = { { "x", { 1, 3, 4, 4 }, "float32" } };
    gm.provenance.warnings = { { "shared", "two names", "conv", "y", "net.py", 3 } };
    gm.provenance.wrapped = { "helper" };
    gm.provenance.globals = { { "helper", "net.helper" } };

    const Tensor w = makeFloat({ 2, 2 }, { 1, -2, 0.1f, std::numeric_limits<float>::infinity() });
    const int8_t raw[] = { -128, 0, 5, 127 };
    const std::vector<double> halves{ 1, 2, 3 };
    gm.modules.set("", moduleInfo("", "net.Net", ModuleKind::Container));
    ModuleInfo conv = moduleInfo("conv", "torch.nn.modules.conv.Conv2d", ModuleKind::Nn);
    conv.attrs = { { "stride", Arg::ints({ 1, 1 }) }, { "padding_mode", "zeros" }, { "bias", Arg() }, { "eps", 1e-5 } };
    conv.parameters = { "weight" };
    conv.buffers = { "count", "scratch" };
    conv.none = { "bias" };
    conv.extraRepr = "2, 2, kernel_size=(1, 1)";
    conv.training = true;
    gm.modules.set("conv", conv);
    ModuleInfo alias = conv;
    alias.path = "again";
    alias.aliasOf = "conv";
    gm.modules.set("again", alias);
    ModuleInfo script = moduleInfo("gate", "net.Gate", ModuleKind::Script);
    script.script = std::make_shared<const std::string>(std::string("PK\x03\x04 any bytes \0 \xff", 18));
    gm.modules.set("gate", script);
    ModuleInfo opaque = moduleInfo("odd", "net.Odd", ModuleKind::Opaque);
    opaque.scriptError = "does not script: \"quoted\"\n\tand more";
    gm.modules.set("odd", opaque);
    ModuleInfo leaf = moduleInfo("leaf", "net.Inner", ModuleKind::Graph);
    leaf.keepFloat = true;
    GraphModule inner = innerGraph(w);
    ModuleInfo deeper = moduleInfo("deeper", "net.Inner", ModuleKind::Graph);
    deeper.graph = std::make_shared<const GraphModule>(innerGraph(makeFloat({ 1 }, { 7 })));
    inner.modules.set("deeper", deeper);
    leaf.graph = std::make_shared<const GraphModule>(inner);
    gm.modules.set("leaf", leaf);

    gm.tensors.set("conv.weight", { w, true, true });
    gm.tensors.set("again.weight", { w, true, true });
    gm.tensors.set("conv.count", { makeTensor(DType::Int64, {}), false, true });
    gm.tensors.set("conv.scratch", { makeTensor(DType::Bool, { 3 }), false, false });
    gm.tensors.set("loose", { makeTensor(DType::Float64, { 3 }, halves.data()), true, true });
    gm.tensors.set("empty", { makeTensor(DType::Float32, { 0, 4 }), false, false });
    gm.tensors.set("q", { makeTensor(DType::QInt8, { 2, 2 }, raw, QuantParams{ { 0.1, 0.25 }, { 0, 3 }, 1 }), true, true });
    gm.tensors.set("p", { makeTensor(DType::QUInt8, { 4 }, raw, QuantParams{ { 1.0 / 3 }, { 128 }, -1 }), true, true });

    Graph &g = gm.graph;
    auto stack = std::make_shared<const ModuleStack>(ModuleStack{ { "conv", "torch.nn.modules.conv.Conv2d", 1 } });
    auto source = std::make_shared<const SourceLine>(SourceLine{ "net.py", 12, "x = self.conv(x)", "forward" });
    const NodeId x = g.append(node(Opcode::Placeholder, "x", "x"));
    g.append(node(Opcode::Placeholder, "k", "k", { 3 }));
    Node call = node(Opcode::CallModule, "conv", "conv", { x });
    call.type = "torch.Tensor";
    call.stack = stack;
    call.source = source;
    call.meta = TensorMeta{ { 1, 2, 4, 4 }, DType::Float32 };
    const NodeId c = g.append(call);
    g.append(node(Opcode::GetAttr, "q", "q"));
    const double inf = std::numeric_limits<double>::infinity();
    ArgList args{ Arg(), true, 1, 1.0, -0.0, 1e300, inf, -inf, std::nan(""), std::complex<double>(1, -inf),
        "text \"q\" \x01 \xc3\xa9", c, ArgBigInt{ "123456789012345678901234567890" }, int64_t(-9223372036854775807 - 1),
        ArgDType{ "torch.float32" }, ArgDevice{ "cuda:0" }, ArgLayout{ "torch.strided" },
        ArgMemoryFormat{ "torch.channels_last" }, ArgEllipsis{}, ArgSymbol{ "net.helper" }, ArgOpaque{ "net.Thing", "<Thing>" },
        w, makeFloat({ 1 }, { 9 }), Arg::list({ x, Arg::tuple({}) }), Arg::tuple({ c, Arg::list({ c }) }), Arg::size({ 1, 2 }),
        Arg::dict({ { "b", x }, { 1, c }, { "a", 2.5 } }), Arg::slice(Arg(), c, -1), Arg::range(0, 3, 1),
        Arg::namedTuple("net.Pair", { { "first", x }, { "second", 2 } }) };
    const NodeId all = g.append(node(Opcode::CallFunction, "helper", "net.helper", args, { { "z", x }, { "a", c } }));
    const NodeId m = g.append(node(Opcode::CallMethod, "relu", "relu", { all }));
    const NodeId l = g.append(node(Opcode::CallModule, "leaf", "leaf", { m }));
    g.append(node(Opcode::Output, "output", "output", { Arg::tuple({ l, m }) }));
    return gm;
}

} // namespace fbtest
