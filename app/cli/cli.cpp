#include "app/cli/cli.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>

#include <unistd.h>

#include <QFileInfo>

#include "model/exec/interpreter.h"
#include "model/exec/tensor_ops.h"
#include "model/ir/pinned.h"
#include "passes/raise.h"

namespace fb::cli
{

void print(const std::string &text)
{
    std::fwrite(text.data(), 1, text.size(), stdout);
}
void print(const Json &document)
{
    print(document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<GraphModule> openModel(const std::string &file, const Common &common)
{
    Result<GraphModule> gm = readModel(file);
    if (gm && !common.aten && isFlat(*gm))
        if (const auto raised = runPass("Regroup into modules", raiseModules, *gm); !raised)
            return Error{ file + ": " + raised.message() };
    return gm;
}

namespace
{

bool isArrayFile(const std::string &text)
{
    return text.ends_with(".npy") || text.ends_with(".npz") || text.ends_with(".safetensors");
}

std::string listed(const std::vector<std::string> &names)
{
    std::string out;
    for (const std::string &n : names)
        out += (out.empty() ? "" : ", ") + n;
    return out;
}

} // namespace

Result<std::vector<Arg>> inputsFor(
    const GraphModule &gm, const std::string &file, const std::vector<std::string> &texts, uint64_t seed)
{
    const std::vector<NodeId> placeholders = gm.graph.placeholders();
    std::vector<std::string> names; // of what has to be given
    for (NodeId id : placeholders)
        if (!pinnedValue(gm.graph, id))
            names.push_back(gm.graph[id].target);

    std::vector<std::string> wanted = texts;
    if (wanted.empty())
        for (const InputSpec &spec : gm.provenance.inputs)
            wanted.push_back(inputText(spec));

    std::map<std::string, Tensor> byName;
    std::vector<Tensor> inOrder;
    int random = 0;
    for (const std::string &text : wanted) {
        if (!isArrayFile(text)) {
            Result<Tensor> t = randomTensor(text, seed, random++);
            if (!t)
                return t.error();
            inOrder.push_back(*t);
            continue;
        }
        Result<NamedTensors> members = readArrays(text);
        if (!members)
            return members.error();
        for (const auto &[name, tensor] : *members)
            if (std::find(names.begin(), names.end(), name) != names.end())
                byName[name] = tensor;
            else if (members->size() == 1)
                inOrder.push_back(tensor);
            else
                return Error{ text + " holds " + (name.empty() ? "an unnamed tensor" : "\"" + name + "\"")
                    + ", which is no input of " + file + "; it takes " + listed(names) };
    }
    if (byName.size() + inOrder.size() > names.size())
        return Error{ file + " takes " + std::to_string(names.size()) + " inputs (" + listed(names) + "), but "
            + std::to_string(byName.size() + inOrder.size()) + " were given; leave some --input out" };

    std::vector<Arg> values;
    size_t next = 0;
    size_t given = 0; // what follows are defaults, which the interpreter knows
    for (NodeId id : placeholders) {
        const Node &n = gm.graph[id];
        if (std::optional<Arg> pinned = pinnedValue(gm.graph, id))
            values.push_back(*pinned);
        else if (auto it = byName.find(n.target); it != byName.end())
            values.emplace_back(it->second);
        else if (next < inOrder.size())
            values.emplace_back(inOrder[next++]);
        else if (n.args.empty())
            return Error{ file + " needs a value for its input " + n.target + "; give one with --input SHAPE or FILE" };
        else {
            values.push_back(n.args[0]);
            continue;
        }
        given = values.size();
    }
    values.resize(given);
    return values;
}

NamedTensors namedTensors(const std::string &key, const Arg &value)
{
    NamedTensors out;
    auto take = [&](const std::string &name, const Arg &v) {
        NamedTensors inner = namedTensors(key + "." + name, v);
        std::move(inner.begin(), inner.end(), std::back_inserter(out));
    };
    if (auto *tensor = value.as<Tensor>()) {
        out.emplace_back(key, *tensor);
    } else if (auto *sequence = value.sequence()) {
        for (size_t i = 0; i < sequence->items.size(); ++i)
            take(std::to_string(i), sequence->items[i]);
    } else if (auto *named = value.named()) {
        for (const auto &[name, v] : named->fields)
            take(name, v);
    } else if (auto *dict = value.dictionary()) {
        for (const auto &[k, v] : dict->items)
            if (auto *text = k.as<std::string>())
                take(*text, v);
            else if (auto number = k.toInt())
                take(std::to_string(*number), v);
    } else if (auto *i = value.as<int64_t>()) {
        out.emplace_back(key, makeTensor(DType::Int64, {}, i));
    } else if (auto *d = value.as<double>()) {
        out.emplace_back(key, makeTensor(DType::Float64, {}, d));
    } else if (auto *b = value.as<bool>()) {
        out.emplace_back(key, makeTensor(DType::Bool, {}, b));
    }
    return out;
}

namespace
{

double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace

ProgressLine::ProgressLine(bool quiet)
    : quiet_(quiet)
    , terminal_(isatty(STDERR_FILENO))
    , last_(now())
{
}

ProgressLine::~ProgressLine()
{
    if (dirty_)
        std::fprintf(stderr, "\r\033[K");
}

void ProgressLine::show(double fraction, const std::string &text)
{
    if (quiet_ || now() - last_ < (terminal_ ? 0.1 : 3))
        return;
    last_ = now();
    const int percent = int(std::lround(100 * fraction));
    if (terminal_)
        std::fprintf(stderr, "\r\033[K%3d %%  %s", percent, text.c_str());
    else
        std::fprintf(stderr, "%3d %%  %s\n", percent, text.c_str());
    std::fflush(stderr);
    dirty_ = terminal_;
}

std::string reportText(const PassReport &report)
{
    std::string out;
    for (const PassItem &item : report.done)
        out += item.what + "\n";
    for (const PassItem &item : report.kept)
        out += item.what + "\n";
    return out.empty() ? "nothing to do\n" : out;
}

Json reportJson(const PassReport &report)
{
    auto items = [](const std::vector<PassItem> &list) {
        Json out = Json::array();
        for (const PassItem &item : list)
            out.push_back({ { "node", item.node }, { "what", item.what } });
        return out;
    };
    return { { "pass", report.pass }, { "changed", report.changed }, { "done", items(report.done) },
        { "kept", items(report.kept) } };
}

} // namespace fb::cli
