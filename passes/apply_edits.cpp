// EDITS.json: a list of edits, applied in order, all or nothing. GPL-3.0-or-later.
//
// The list is what a person writes for the command line and what a session replays. Every error begins with the number of the
// edit (1 is the first) and names the node, since the file may be long and the graph is not on screen.
#include "passes/edits.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "model/ir/lint.h"
#include "passes/call.h"
#include "passes/fuse.h"
#include "passes/raise.h"

namespace fb
{

namespace
{

using json = nlohmann::ordered_json;

// Thrown inside this file only, and told as an Error with the edit's number.
struct BadEdit {
    std::string message;
};

NodeId nodeNamed(const GraphModule &gm, const json &name, const std::string &member)
{
    if (!name.is_string())
        throw BadEdit{ "\"" + member + "\" must be the name of a node" };
    const std::string text = name.get<std::string>();
    if (NodeId id = gm.graph.find(text))
        return id;
    std::string near;
    for (NodeId id : gm.graph.order())
        if (const std::string &n = gm.graph[id].name;
            near.empty() && (n.starts_with(text) || text.starts_with(n + ".") || n.find(text) != std::string::npos))
            near = n;
    throw BadEdit{ "there is no node \"" + text + "\"" + (near.empty() ? std::string() : "; did you mean " + near + "?") };
}

// An argument as fxt-format.md writes it.
Arg argOf(const GraphModule &gm, const json &j)
{
    auto list = [&](const json &items) {
        ArgList out;
        for (const json &i : items)
            out.push_back(argOf(gm, i));
        return out;
    };
    if (j.is_null())
        return {};
    if (j.is_boolean())
        return j.get<bool>();
    if (j.is_number_float())
        return j.get<double>();
    if (j.is_number_unsigned() && j.get<uint64_t>() > uint64_t(INT64_MAX))
        return ArgBigInt{ j.dump() };
    if (j.is_number())
        return j.get<int64_t>();
    if (j.is_string())
        return j.get<std::string>();
    if (j.is_array())
        return Arg::list(list(j));
    if (j.size() == 1) {
        const std::string kind = j.begin().key();
        const json &v = j.begin().value();
        if (kind == "node")
            return nodeNamed(gm, v, "node");
        if (kind == "tuple" && v.is_array())
            return Arg::tuple(list(v));
        if (kind == "size" && v.is_array())
            return Arg::size(list(v));
        if ((kind == "slice" || kind == "range") && v.is_array() && v.size() == 3)
            return kind == "slice" ? Arg::slice(argOf(gm, v[0]), argOf(gm, v[1]), argOf(gm, v[2]))
                                   : Arg::range(argOf(gm, v[0]), argOf(gm, v[1]), argOf(gm, v[2]));
        if (kind == "dict" && v.is_array()) {
            std::vector<std::pair<Arg, Arg>> items;
            for (const json &pair : v)
                if (pair.is_array() && pair.size() == 2)
                    items.emplace_back(argOf(gm, pair[0]), argOf(gm, pair[1]));
            if (items.size() == v.size())
                return Arg::dict(std::move(items));
        }
        if (kind == "complex" && v.is_array() && v.size() == 2 && v[0].is_number() && v[1].is_number())
            return std::complex<double>(v[0].get<double>(), v[1].get<double>());
        if (kind == "ellipsis")
            return ArgEllipsis{};
        if (v.is_string()) {
            const std::string text = v.get<std::string>();
            if (kind == "float" && (text == "inf" || text == "-inf" || text == "nan"))
                return text == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                     : (text == "inf" ? 1 : -1) * std::numeric_limits<double>::infinity();
            if (kind == "int")
                return ArgBigInt{ text };
            if (kind == "dtype")
                return ArgDType{ text };
            if (kind == "device")
                return ArgDevice{ text };
            if (kind == "layout")
                return ArgLayout{ text };
            if (kind == "memory_format")
                return ArgMemoryFormat{ text };
            if (kind == "symbol")
                return ArgSymbol{ text };
        }
    }
    throw BadEdit{ j.dump()
        + " is no argument; write numbers, strings and lists as they are, others like {\"node\": \"conv1\"}" };
}

// One edit: its members, asked for by name, and those nobody asked for.
class Edit
{
public:
    Edit(const GraphModule &gm, const json &j)
        : gm_(gm)
        , j_(j)
    {
        if (!j.is_object())
            throw BadEdit{ "an edit is an object like {\"op\": \"remove\", \"node\": \"relu\"}" };
        asked_.insert("op");
        op = text("op");
    }
    std::string op;

    bool has(const char *member)
    {
        asked_.insert(member);
        return j_.contains(member);
    }
    const json &at(const char *member)
    {
        if (!has(member))
            throw BadEdit{ "\"" + op + "\" needs \"" + member + "\"" };
        return j_[member];
    }
    std::string text(const char *member)
    {
        const json &v = at(member);
        if (!v.is_string())
            throw BadEdit{ std::string("\"") + member + "\" must be a string" };
        return v.get<std::string>();
    }
    NodeId node(const char *member) { return nodeNamed(gm_, at(member), member); }
    std::set<NodeId> nodes(const char *member)
    {
        const json &v = at(member);
        if (!v.is_array())
            throw BadEdit{ std::string("\"") + member + "\" must be a list of node names" };
        std::set<NodeId> out;
        for (const json &name : v)
            out.insert(nodeNamed(gm_, name, member));
        return out;
    }
    OpRef ref(const char *member)
    {
        auto r = OpRef::parse(text(member));
        if (!r)
            throw BadEdit{ r.message() };
        return *r;
    }
    Kwargs arguments()
    {
        Kwargs out;
        if (!has("args"))
            return out;
        if (!j_["args"].is_object())
            throw BadEdit{ "\"args\" must be an object of arguments by name" };
        for (const auto &[name, value] : j_["args"].items())
            out.emplace_back(name, argOf(gm_, value));
        return out;
    }
    Arg value() { return argOf(gm_, at("value")); }
    void refuseOthers() const
    {
        for (const auto &[member, value] : j_.items())
            if (!asked_.contains(member))
                throw BadEdit{ "\"" + op + "\" does not take \"" + member + "\"" };
    }

private:
    const GraphModule &gm_;
    const json &j_;
    std::set<std::string> asked_;
};

using Action = std::function<Result<PassReport>(GraphModule &)>;

Action actionOf(Edit &e)
{
    if (e.op == "replace") {
        const OpRef to = e.ref("with");
        const Kwargs extra = e.arguments();
        if (e.has("all")) {
            const OpRef from = e.ref("all");
            return [=](GraphModule &gm) { return replaceAll(gm, from, to, extra); };
        }
        const std::set<NodeId> nodes = e.has("nodes") ? e.nodes("nodes") : std::set<NodeId>{ e.node("node") };
        return [=](GraphModule &gm) { return replaceNodes(gm, nodes, to, extra); };
    }
    if (e.op == "remove")
        return [id = e.node("node")](GraphModule &gm) { return removeNode(gm, id); };
    if (e.op == "insert_after") {
        const NodeId id = e.node("node");
        const OpRef op = e.ref("call");
        const Kwargs arguments = e.arguments();
        const auto users = e.has("users") ? e.nodes("users") : std::set<NodeId>();
        const std::string name = e.has("name") ? e.text("name") : std::string();
        return [=](GraphModule &gm) { return insertAfter(gm, id, op, arguments, users, name); };
    }
    if (e.op == "rewire")
        return [id = e.node("node"), from = e.node("from"), to = e.node("to")](
                   GraphModule &gm) { return rewireInput(gm, id, from, to); };
    if (e.op == "set_arg") {
        const json &which = e.at("arg");
        const std::string argument = which.is_number_unsigned() ? which.dump() : e.text("arg");
        return
            [id = e.node("node"), argument, value = e.value()](GraphModule &gm) { return setArgument(gm, id, argument, value); };
    }
    if (e.op == "set_target")
        return [id = e.node("node"), op = e.ref("target")](GraphModule &gm) { return setTarget(gm, id, op); };
    if (e.op == "rename")
        return [id = e.node("node"), name = e.text("name")](GraphModule &gm) { return renameNode(gm, id, name); };
    if (e.op == "replace_uses")
        return [id = e.node("node"), to = e.node("with")](GraphModule &gm) { return replaceUses(gm, id, to); };
    if (e.op == "move")
        return [id = e.node("node"), before = e.node("before")](GraphModule &gm) { return moveNode(gm, id, before); };
    if (e.op == "extract") {
        const auto nodes = e.nodes("nodes");
        const std::string path = e.text("module"), name = e.has("class") ? e.text("class") : std::string();
        return [=](GraphModule &gm) { return extractNodes(gm, nodes, path, name); };
    }
    if (e.op == "inline")
        return [path = e.text("module")](GraphModule &gm) { return inlineModule(gm, path); };
    if (e.op == "leaf")
        return [path = e.text("module")](GraphModule &gm) { return markLeaf(gm, path); };
    if (e.op == "unleaf")
        return [path = e.text("module")](GraphModule &gm) { return unmarkLeaf(gm, path); };
    if (e.op == "eval")
        return evalMode;
    if (e.op == "regroup")
        return raiseModules;
    if (e.op == "fuse") {
        if (!e.has("nodes"))
            return fuseAll;
        return [nodes = e.nodes("nodes")](GraphModule &gm) { return fuseSelection(gm, nodes); };
    }
    throw BadEdit{ "there is no edit \"" + e.op
        + "\"; there are replace, remove, insert_after, rewire, replace_uses, move, set_arg, set_target, rename, extract, "
          "inline, leaf, unleaf, eval, regroup and fuse" };
}

} // namespace

Result<PassReport> applyEdits(GraphModule &gm, const std::string &text)
{
    json list = json::parse(text, nullptr, false);
    if (list.is_discarded())
        return Error{ "the edits are not valid JSON" };
    if (!list.is_array())
        return Error{ "the edits must be a list of objects like {\"op\": \"remove\", \"node\": \"relu\"}" };
    GraphModule work = gm;
    PassReport all{ "Edits", false, {}, {} };
    for (size_t i = 0; i < list.size(); ++i) {
        std::string failed = "edit " + std::to_string(i + 1);
        try {
            Edit edit(work, list[i]);
            failed += " (" + edit.op + ")";
            const Action action = actionOf(edit);
            edit.refuseOthers();
            auto report = action(work);
            if (!report)
                return Error{ failed + ": " + report.message() };
            if (const auto problems = lint(work); !problems.empty() && lint(gm).empty())
                return Error{ failed + " would leave a graph that is not valid: " + problems.front().message };
            all.changed = all.changed || report->changed;
            all.done.insert(all.done.end(), report->done.begin(), report->done.end());
            all.kept.insert(all.kept.end(), report->kept.begin(), report->kept.end());
        } catch (const BadEdit &bad) {
            return Error{ failed + ": " + bad.message };
        }
    }
    all.changed = all.changed && !(work == gm); // edits may undo each other
    gm = std::move(work);
    return all;
}

} // namespace fb
