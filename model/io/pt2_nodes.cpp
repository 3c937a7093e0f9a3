// What the nodes of an exported graph say, as nodes of ours.
#include "model/io/pt2_nodes.h"

#include <limits>

#include "model/io/files.h"
#include "model/io/names.h"
#include "model/io/pt2_archive.h"

namespace fb::io
{

namespace
{

// Floats that JSON cannot spell are strings.
double real(const Json &j, const std::string &what)
{
    if (const std::string *text = j.as<std::string>()) {
        if (*text == "Infinity")
            return std::numeric_limits<double>::infinity();
        if (*text == "-Infinity")
            return -std::numeric_limits<double>::infinity();
        if (*text == "NaN")
            return std::numeric_limits<double>::quiet_NaN();
    }
    return j.number(what);
}

Arg layoutOf(int64_t n)
{
    static constexpr const char *names[] = { "torch.strided", "torch.sparse_coo", "torch.sparse_csr", "torch.sparse_csc",
        "torch.sparse_bsr", "torch.sparse_bsc", "torch._mkldnn", "torch.strided" };
    return ArgLayout{ names[n > 0 && n < 8 ? n : 0] };
}

Arg memoryFormatOf(int64_t n)
{
    static constexpr const char *names[] = { "torch.preserve_format", "torch.contiguous_format", "torch.channels_last",
        "torch.channels_last_3d", "torch.preserve_format" };
    return ArgMemoryFormat{ names[n > 0 && n < 5 ? n : 0] };
}

Arg deviceOf(const Json &j, const std::string &what)
{
    const Json *index = j.find("index");
    return ArgDevice{ j.at("type", what).text(what) + (index ? ":" + std::to_string(index->integer(what)) : std::string()) };
}

template <class Read> Arg list(const Json &j, const std::string &what, Read read)
{
    ArgList items;
    for (const Json &item : j.list(what))
        items.push_back(read(item));
    return Arg::list(std::move(items));
}

std::string targetOf(std::string target, const std::string &what)
{
    if (target.starts_with("_operator."))
        target.erase(0, 1);
    if (!isQualifiedName(target))
        throw FormatError(what + " has a target that is no name; export the model again");
    return target;
}

// The name of an output that is one value, else null.
const Json *nameOf(const Json &output)
{
    const auto &[kind, v] = variant(output, "an output");
    if (kind == "as_tensor" || kind == "as_custom_obj")
        return v.find("name");
    if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool")
        return v.find("as_name");
    if (kind == "as_optional_tensor")
        if (const Json *tensor = v.find("as_tensor"))
            return tensor->find("name");
    return nullptr;
}

// The innermost line that is not torch's own: what the user wrote.
std::optional<SourceLine> sourceOf(const std::string &trace)
{
    std::optional<SourceLine> found;
    for (size_t at = trace.find("File \""); at != trace.npos; at = trace.find("File \"", at + 1)) {
        const size_t file = at + 6, fileEnd = trace.find("\", line ", file), lineEnd = trace.find('\n', file);
        if (fileEnd == trace.npos || fileEnd > lineEnd)
            continue;
        SourceLine s;
        s.file = trace.substr(file, fileEnd - file);
        for (size_t i = fileEnd + 8; i < trace.size() && trace[i] >= '0' && trace[i] <= '9' && s.line < 100'000'000; ++i)
            s.line = s.line * 10 + (trace[i] - '0');
        if (const size_t in = trace.find(", in ", fileEnd); in < lineEnd)
            s.function = trace.substr(in + 5, std::min(lineEnd, trace.size()) - in - 5);
        if (lineEnd != trace.npos) {
            const size_t begin = std::min(trace.find_first_not_of(' ', lineEnd + 1), trace.size());
            s.code = trace.substr(begin, std::min(trace.find('\n', begin), trace.size()) - begin);
        }
        const bool torchs = s.file.find("/torch/") != s.file.npos || s.file.starts_with("torch/");
        if (!torchs)
            found = std::move(s);
    }
    return found;
}

} // namespace

// A union of the schema: an object with one member, which says what it is.
const std::pair<std::string, Json> &variant(const Json &j, const std::string &what)
{
    const Json::Object &o = j.object(what);
    if (o.size() != 1)
        throw FormatError(what + " is no value of the export schema; export the model again");
    return o.front();
}

// "L['self'].layer1.0" of exports that Dynamo made is "layer1.0".
std::string modulePath(std::string path)
{
    if (path.starts_with("L['")) {
        const size_t end = path.find("']");
        path = end == path.npos ? path : path.substr(std::min(end + 3, path.size()));
    }
    return path;
}

// "key,path,class;key,path,class": the key ends in @n at the n-th further call of a module.
ModuleStack framesOf(const Json &node)
{
    ModuleStack frames;
    const Json *metadata = node.find("metadata");
    const std::string text = metadata ? metadata->textOr("nn_module_stack") : std::string();
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(';', at), text.size());
        const std::string entry = text.substr(at, end - at);
        at = end + 1;
        const size_t first = entry.find(','), second = entry.find(',', first + 1);
        if (second == entry.npos || entry.starts_with("_empty_nn_module_stack"))
            continue;
        const std::string key = entry.substr(0, first);
        ModuleFrame f{ modulePath(entry.substr(first + 1, second - first - 1)), entry.substr(second + 1), 0 };
        if (const size_t call = key.rfind('@'); call != key.npos && key.size() - call < 8)
            for (size_t i = call + 1; i < key.size() && key[i] >= '0' && key[i] <= '9'; ++i)
                f.call = f.call * 10 + (key[i] - '0');
        if (const size_t call = f.path.rfind('@'); call != f.path.npos)
            f.path.resize(call);
        if (isPath(f.path) && isQualifiedName(f.className))
            frames.push_back(std::move(f));
    }
    return frames;
}

Pt2Nodes::Pt2Nodes(const Json &graph, GraphModule &gm)
    : graph_(graph)
    , gm_(gm)
{
    if (const Json *values = graph.find("tensor_values"))
        for (const auto &[name, meta] : values->object("\"tensor_values\""))
            tensorValues_.emplace(name, &meta);
}

Node Pt2Nodes::named(Opcode op, const std::string &name, const std::string &what) const
{
    if (!isIdentifier(name))
        throw FormatError(what + " has a name that is no Python identifier; export the model again");
    if (values_.contains(name))
        throw FormatError("two values are named " + name + "; export the model again");
    Node n;
    n.op = op;
    n.name = name;
    return n;
}

NodeId Pt2Nodes::value(const std::string &name, const std::string &what) const
{
    const auto it = values_.find(name);
    if (it == values_.end())
        throw FormatError(what + " uses " + name + ", which nothing before it gives; export the model again");
    return it->second;
}

Arg Pt2Nodes::argument(const Json &j, const std::string &what)
{
    const auto &[kind, v] = variant(j, what);
    auto tensor = [&](const Json &t) { return Arg(value(t.at("name", what).text(what), what)); };
    auto integer = [&](const Json &i) { return Arg(i.integer(what)); };
    auto number = [&](const Json &f) { return Arg(real(f, what)); };
    auto text = [&](const Json &s) { return Arg(s.text(what)); };
    auto truth = [&](const Json &b) {
        const bool *known = b.as<bool>();
        if (!known)
            throw FormatError(what + " has a value that is no bool; export the model again");
        return Arg(*known);
    };
    auto symbolic = [&](const Json &s) -> Arg {
        const auto &[form, given] = variant(s, what);
        if (form == "as_name")
            return Arg(value(given.text(what), what));
        return form == "as_int" ? integer(given) : form == "as_float" ? number(given) : truth(given);
    };
    auto optional = [&](const Json &t) -> Arg {
        const auto &[form, given] = variant(t, what);
        return form == "as_none" ? Arg() : tensor(given);
    };
    if (kind == "as_none")
        return Arg();
    if (kind == "as_tensor")
        return tensor(v);
    if (kind == "as_tensors")
        return list(v, what, tensor);
    if (kind == "as_nested_tensors")
        return list(v, what, [&](const Json &inner) { return list(inner, what, tensor); });
    if (kind == "as_optional_tensor")
        return optional(v);
    if (kind == "as_optional_tensors")
        return list(v, what, optional);
    if (kind == "as_int")
        return integer(v);
    if (kind == "as_ints")
        return list(v, what, integer);
    if (kind == "as_int_lists")
        return list(v, what, [&](const Json &inner) { return list(inner, what, integer); });
    if (kind == "as_float")
        return number(v);
    if (kind == "as_floats")
        return list(v, what, number);
    if (kind == "as_float_lists")
        return list(v, what, [&](const Json &inner) { return list(inner, what, number); });
    if (kind == "as_string")
        return text(v);
    if (kind == "as_strings")
        return list(v, what, text);
    if (kind == "as_bool")
        return truth(v);
    if (kind == "as_bools")
        return list(v, what, truth);
    if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool")
        return symbolic(v);
    if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools")
        return list(v, what, symbolic);
    if (kind == "as_scalar_type")
        return ArgDType{ "torch." + std::string(dtypeName(pt2DType(v, what))) };
    if (kind == "as_memory_format")
        return memoryFormatOf(v.integer(what));
    if (kind == "as_layout")
        return layoutOf(v.integer(what));
    if (kind == "as_device")
        return deviceOf(v, what);
    if (kind == "as_complex")
        return std::complex<double>(real(v.at("real", what), what), real(v.at("imag", what), what));
    if (kind == "as_operator")
        return ArgSymbol{ targetOf(v.text(what), what) };
    if (kind == "as_string_to_argument") {
        std::vector<std::pair<Arg, Arg>> items;
        for (const auto &[key, inner] : v.object(what))
            items.emplace_back(Arg(key), argument(inner, what));
        return Arg::dict(std::move(items));
    }
    if (kind == "as_graph")
        return innerGraph(v, what);
    if (kind == "as_custom_obj")
        return Arg(value(v.at("name", what).text(what), what));
    throw FormatError(what + " has an argument of the kind \"" + kind + "\", which this Fuseboard does not know");
}

void Pt2Nodes::readNode(const Json &j)
{
    const Json::Array &outputs = j.at("outputs", "a node").list("\"outputs\"");
    // Operators that call graphs give a tuple of one where the others give the one.
    const Json *alone = j.find("is_hop_single_tensor_return");
    const bool tuple = alone && alone->as<bool>() && !*alone->as<bool>();
    const Json *single = outputs.size() == 1 && !tuple ? nameOf(outputs.front()) : nullptr;
    Node n;
    n.op = Opcode::CallFunction;
    n.name = j.textOr("name", single ? std::string_view(single->text("a node")) : std::string_view());
    const std::string what = n.name.empty() ? "node " + std::to_string(gm_.graph.size()) : n.name;
    n.target = targetOf(j.at("target", what).text(what), what);
    for (const Json &input : j.at("inputs", what).list(what)) {
        Arg a = argument(input.at("arg", what), what);
        // Up to schema 7 it does not say which are positional; the first one always can be.
        const Json *kind = input.find("kind");
        if (kind ? kind->integer(what) != 2 : n.args.empty() && n.kwargs.empty())
            n.args.push_back(std::move(a));
        else
            n.kwargs.emplace_back(input.at("name", what).text(what), std::move(a));
    }
    readMetadata(j, n);
    if (single) {
        const std::string name = single->text(what);
        n.name = named(Opcode::CallFunction, name, what).name;
        n.meta = metaOf(name);
        add(std::move(n), name);
        return;
    }
    if (!n.name.empty() && !isIdentifier(n.name))
        throw FormatError(what + " has a name that is no Python identifier; export the model again");
    const auto stack = n.stack;
    const auto source = n.source;
    const NodeId id = gm_.graph.append(std::move(n));
    const auto *list = outputs.size() == 1 ? variant(outputs.front(), what).second.as<Json::Array>() : nullptr;
    items(list ? list : &outputs, id, !list, stack, source, what);
}

// getitem nodes for the values of a node that gives several. `unions`: each is a union of the schema, else a tensor.
void Pt2Nodes::items(const Json::Array *outputs, NodeId from, bool unions, const std::shared_ptr<const ModuleStack> &stack,
    const std::shared_ptr<const SourceLine> &source, const std::string &what)
{
    if (!outputs)
        return;
    for (size_t i = 0; i < outputs->size(); ++i) {
        const Json &output = (*outputs)[i];
        const Json *name = unions ? nameOf(output) : output.find("name") ? output.find("name") : nameOf(output);
        const auto *inner = !name && unions ? variant(output, what).second.as<Json::Array>() : nullptr;
        if (!name && !inner)
            continue; // None
        Node n;
        if (name)
            n = named(Opcode::CallFunction, name->text(what), what);
        n.target = "operator.getitem";
        n.args = { from, int64_t(i) };
        n.stack = stack;
        n.source = source;
        if (name)
            n.meta = metaOf(n.name);
        const std::string key = n.name;
        const NodeId id = gm_.graph.append(std::move(n));
        if (name)
            values_[key] = id;
        else
            items(inner, id, false, stack, source, what);
    }
}

std::optional<TensorMeta> Pt2Nodes::metaOf(const std::string &name) const
{
    const auto known = tensorValues_.find(name);
    const Json *meta = known == tensorValues_.end() ? nullptr : known->second;
    if (!meta)
        return std::nullopt;
    TensorMeta out;
    for (const Json &size : meta->at("sizes", name).list(name)) {
        const auto &[kind, v] = variant(size, "the shape of " + name);
        const Json *hint = kind == "as_expr" ? v.find("hint") : &size;
        const Json *known = hint ? hint->find("as_int") : nullptr;
        if (!known)
            return std::nullopt; // a size that depends on values
        out.shape.push_back(known->integer(name));
    }
    const int64_t dtype = meta->at("dtype", name).integer(name);
    if (dtype == 9 || dtype == 0 || dtype > 30)
        return std::nullopt;
    out.dtype = pt2DType(meta->at("dtype", name), name);
    checkedNumel(out.shape, 16, "the shape of " + name);
    return out;
}

void Pt2Nodes::readMetadata(const Json &j, Node &n)
{
    const Json *metadata = j.find("metadata");
    if (!metadata)
        return;
    if (std::string made = metadata->textOr("torch_fn"); !made.empty()) // "chunk_1;method_descriptor.chunk"
        n.metadata = std::make_shared<const Kwargs>(Kwargs{ { "torch_fn", Arg(std::move(made)) } });
    ModuleStack frames = framesOf(j);
    std::erase_if(frames, [](const ModuleFrame &f) { return f.path.empty(); });
    if (!frames.empty()) {
        if (!lastStack_ || !(*lastStack_ == frames))
            lastStack_ = std::make_shared<const ModuleStack>(std::move(frames));
        n.stack = lastStack_;
    }
    if (auto source = sourceOf(metadata->textOr("stack_trace"))) {
        if (!lastSource_ || !(*lastSource_ == *source))
            lastSource_ = std::make_shared<const SourceLine>(std::move(*source));
        n.source = lastSource_;
    }
}

NodeId Pt2Nodes::add(Node n, const std::string &name)
{
    return values_[name] = gm_.graph.append(std::move(n));
}

NodeId Pt2Nodes::placeholder(const Json &argument, const std::string &what)
{
    const auto &[kind, value] = variant(argument, what);
    const std::string &name = kind == "as_tensor" ? value.at("name", what).text(what) : value.at("as_name", what).text(what);
    Node n = named(Opcode::Placeholder, name, what);
    n.target = n.name;
    n.meta = metaOf(name);
    return add(std::move(n), name);
}

void Pt2Nodes::readNodes()
{
    for (const Json &n : graph_.at("nodes", "the graph").list("\"nodes\""))
        readNode(n);
}

// The graph that an operator like cond calls: a module of the kind Graph, read by a get_attr node as torch does.
NodeId Pt2Nodes::innerGraph(const Json &argument, const std::string &what)
{
    const std::string &name = argument.at("name", what).text(what);
    Node n = named(Opcode::GetAttr, name, what);
    const Json &graph = argument.at("graph", what);
    GraphModule inner;
    inner.provenance.torchVersion = gm_.provenance.torchVersion;
    ModuleInfo root;
    root.className = "torch.nn.modules.module.Module";
    inner.modules.set("", std::move(root));
    Pt2Nodes nodes(graph, inner);
    for (const Json &input : graph.at("inputs", what).list(what))
        nodes.placeholder(input, what);
    nodes.readNodes();
    ArgList outputs;
    for (const Json &output : graph.at("outputs", what).list(what))
        outputs.push_back(nodes.argument(output, what));
    const bool single = graph.boolOr("is_single_tensor_return", false) && outputs.size() == 1;
    Node result;
    result.op = Opcode::Output;
    result.name = "output";
    result.target = "output";
    result.args = { single ? outputs[0] : Arg::tuple(std::move(outputs)) };
    inner.graph.append(std::move(result));

    ModuleInfo m;
    m.path = gm_.uniqueModulePath(name);
    m.className = "torch.fx.graph_module.GraphModule";
    m.kind = ModuleKind::Graph;
    m.graph = std::make_shared<const GraphModule>(std::move(inner));
    n.target = m.path;
    gm_.addModule(std::move(m));
    return add(std::move(n), name);
}

} // namespace fb::io
