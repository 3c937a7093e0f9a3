// A traced graph is flat; people write modules. The nodes remember which module's forward made them, so a forward can be
// written back for every module whose nodes are still one piece: contiguous, reading only what lies below the module, and the
// same for every call of it. A module that edits have torn is written out in its parent, which is always right.
//
// Three steps. `Scopes` cuts the node list into nested calls. `write` turns each into the text of a forward. `defineClasses`
// gives modules with the same text one class, whose constructor takes the facts in which they differ.
#include "passes/python_source.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "model/ir/ops.h"
#include "model/text/python.h"
#include "model/text/text.h"
#include "passes/edit_tools.h"
#include "passes/edits.h"
#include "passes/nn_signatures.h"

namespace fb
{

namespace
{

constexpr size_t kWidth = 118;
constexpr const char *kNotPersistent = ", persistent=False";

bool plainName(std::string_view s)
{
    return isPythonIdentifier(s) && !isPythonKeyword(s);
}
bool allDigits(std::string_view s)
{
    return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string lastPart(std::string_view path)
{
    return std::string(path.substr(path.rfind('.') + 1));
}
std::vector<std::string> split(std::string_view path)
{
    std::vector<std::string> out;
    for (size_t begin = 0; !path.empty() && begin <= path.size();) {
        const size_t dot = std::min(path.find('.', begin), path.size());
        out.emplace_back(path.substr(begin, dot - begin));
        begin = dot + 1;
    }
    return out;
}

std::string identifier(std::string_view text)
{
    std::string out;
    for (char c : text)
        out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])))
        out.insert(0, "_");
    return isPythonKeyword(out) ? out + "_" : out;
}

// A constructor call: facts as text, and modules inside it as further calls.
struct Ctor {
    struct Field {
        std::string name; // empty: positional
        std::string text; // literal, unless there is a child
        std::string unlessDefault; // not written when text equals this
        std::shared_ptr<Ctor> child;
    };
    std::string callee;
    std::vector<Field> fields;
    enum Style : uint8_t {
        Plain,                                  // f(a, name=b)
        Names,                                  // f(**{"0": a}): names that are no identifiers
        Ordered,                                // nn.Sequential(OrderedDict([("0", a), ("3", b)]))
        List                                    // nn.ModuleList([a, b])
    } style = Plain;

    // Everything but the literals: what must agree for two modules to share a class.
    std::string shape() const
    {
        std::string out = callee + "(";
        for (const Field &f : fields)
            out += f.name + (f.child ? f.child->shape() : "") + ",";
        return out + ")";
    }
    void literals(std::vector<Field *> &out)
    {
        for (Field &f : fields)
            if (f.child)
                f.child->literals(out);
            else
                out.push_back(&f);
    }
};

std::string render(const Ctor &c, size_t indent, size_t used)
{
    std::vector<std::string> flat;
    const auto entry = [&](const Ctor::Field &f, const std::string &value) {
        if (c.style == Ctor::Ordered)
            return "(" + doubleQuoted(f.name) + ", " + value + ")";
        if (c.style == Ctor::Names)
            return doubleQuoted(f.name) + ": " + value;
        return f.name.empty() ? value : f.name + "=" + value;
    };
    const auto written = [](const Ctor::Field &f) { return f.child || f.unlessDefault.empty() || f.text != f.unlessDefault; };
    static constexpr struct {
        const char *open, *close;
    } brackets[] = { { "(", ")" }, { "(**{", "})" }, { "(OrderedDict([", "]))" }, { "([", "])" } };
    const std::string open = brackets[c.style].open, close = brackets[c.style].close;
    const size_t quotes = c.style == Ctor::Ordered || c.style == Ctor::Names ? 5 : 0;
    std::string line = c.callee + open;
    bool first = true;
    for (const Ctor::Field &f : c.fields)
        if (written(f)) {
            line += (first ? "" : ", ") + entry(f, f.child ? render(*f.child, 0, 0) : f.text);
            first = false;
        }
    line += close;
    if (line.find('\n') == std::string::npos && line.size() + used <= kWidth)
        return line;
    const std::string pad(indent + 4, ' ');
    line = c.callee + open + "\n";
    for (const Ctor::Field &f : c.fields)
        if (written(f))
            line += pad + entry(f, f.child ? render(*f.child, indent + 4, indent + 6 + f.name.size() + quotes) : f.text) + ",\n";
    return line + std::string(indent, ' ') + close;
}

// One call of a module (or the root): its own nodes and the calls within, in order.
struct Scope {
    std::string path;
    int call = 0;
    struct Item {
        NodeId node; // or
        std::shared_ptr<Scope> inner;
    };
    std::vector<Item> items;
    std::vector<NodeId> inputs, outputs; // values that enter and leave

    std::vector<NodeId> nodes() const
    {
        std::vector<NodeId> out;
        for (const Item &i : items) {
            if (!i.inner) {
                out.push_back(i.node);
                continue;
            }
            const auto more = i.inner->nodes();
            out.insert(out.end(), more.begin(), more.end());
        }
        return out;
    }
};

// The forward of a module as text, with everything that two modules must share to share a class.
struct Forward {
    std::vector<std::string> lines; // first is the def line
    struct Buffer {
        std::string name, initial; // registered in __init__, loaded with the state
        Tensor value;
    };
    std::vector<Buffer> buffers;
    bool chain = false; // exactly its children, one after the other
    std::string key() const
    {
        std::string out;
        for (const std::string &l : lines)
            out += l + "\n";
        for (const Buffer &b : buffers)
            out += b.name + "=" + b.initial + "\n";
        return out;
    }
};

struct ClassDef {
    std::string name, doc;
    Forward forward;
    std::vector<std::pair<std::string, std::shared_ptr<Ctor>>> children;
    std::vector<std::pair<std::string, std::string>> tensors; // own parameters and buffers: name, constructor text
    std::vector<std::string> params;
    std::map<std::string, std::string> aliases; // children that are another module: what they are
    std::vector<std::string> ties; // statements that make weights one
};

class Writer
{
public:
    Writer(const GraphModule &gm, const ExportOptions &options)
        : gm_(gm)
        , g_(gm.graph)
        , options_(options)
    {
    }

    Result<PythonSource> write()
    {
        for (NodeId id : g_.order())
            if (Status s = checkArgs(g_[id]); !s)
                return s.error();
        for (NodeId id : g_.order())
            if (g_[id].target.starts_with("torch.ops.quantized_decomposed."))
                imports_.insert("import torch.ao.quantization.fx._decomposed  # makes torch.ops.quantized_decomposed");
        for (NodeId id : g_.order())
            if (const Node &n = g_[id];
                n.op == Opcode::CallFunction && !n.target.starts_with("torch.") && !n.target.starts_with("operator."))
                imported_.insert(lastPart(n.target));
        cut();
        writeForwards();
        defineClasses();
        for (const auto &[fqn, e] : gm_.tensors)
            usesBuffers_ |= !inStateDict(*e);
        out_.text = header() + classes() + footer();
        return std::move(out_);
    }

private:
    Status checkArgs(const Node &n) const
    {
        std::string bad;
        std::function<void(const Arg &)> look = [&](const Arg &a) {
            if (auto *o = a.as<ArgOpaque>())
                bad = o->repr;
            if (auto *s = a.sequence())
                for (const Arg &i : s->items)
                    look(i);
            if (auto *d = a.dictionary())
                for (const auto &[k, v] : d->items)
                    look(v);
        };
        for (const Arg &a : n.args)
            look(a);
        for (const auto &[k, v] : n.kwargs)
            look(v);
        if (bad.empty())
            return {};
        return Error{ "Cannot export node " + n.name + " as Python: its argument " + bad
            + " has no literal; replace the argument or mark its module as leaf." };
    }

    // --- cutting the node list into calls ---

    using FrameKey = std::pair<std::string, int>;

    std::vector<const ModuleFrame *> frames(NodeId id) const
    {
        std::vector<const ModuleFrame *> out;
        const Node &n = g_[id];
        if (n.stack && n.op != Opcode::Placeholder && n.op != Opcode::Output)
            for (const ModuleFrame &f : *n.stack)
                if (!torn_.contains(f.path))
                    out.push_back(&f);
        return out;
    }

    static bool within(const std::string &path, const std::string &root)
    {
        return root.empty() || (path.size() > root.size() && path.starts_with(root) && path[root.size()] == '.');
    }

    void cut()
    {
        std::vector<NodeId> all;
        for (NodeId id : g_.order())
            if (g_[id].op != Opcode::Placeholder && g_[id].op != Opcode::Output)
                all.push_back(id);
        for (;;) {
            const size_t before = torn_.size();
            findTorn(all);
            if (torn_.size() != before)
                continue;
            root_ = std::make_shared<Scope>();
            root_->path = "";
            scopes_.clear();
            fill(*root_, all, 0, all.size(), 0);
            findEnds(*root_);
            if (torn_.size() != before)
                continue;
            scopes_.emplace_back(root_);
            if (!sameCalls())
                continue;
            break;
        }
    }

    void findTorn(const std::vector<NodeId> &all)
    {
        std::map<FrameKey, std::pair<size_t, size_t>> span; // first index and count
        std::map<std::string, std::string> parents;
        for (size_t i = 0; i < all.size(); ++i) {
            const auto stack = frames(all[i]);
            std::string above;
            for (const ModuleFrame *f : stack) {
                auto [it, fresh] = span.try_emplace({ f->path, f->call }, i, 0);
                if (i != it->second.first + it->second.second++)
                    torn_.insert(f->path);
                const Node &n = g_[all[i]];
                if ((n.op == Opcode::CallModule || n.op == Opcode::GetAttr) && !within(n.target, f->path))
                    torn_.insert(f->path);
                const ModuleInfo *m = gm_.modules.find(f->path);
                if (!m || m->kind != ModuleKind::Container || !m->aliasOf.empty() || !within(f->path, above))
                    torn_.insert(f->path);
                above = f->path;
            }
        }
    }

    void fill(Scope &scope, const std::vector<NodeId> &all, size_t begin, size_t end, size_t depth)
    {
        for (size_t i = begin; i < end;) {
            const auto stack = frames(all[i]);
            if (stack.size() <= depth) {
                scope.items.push_back({ all[i++], nullptr });
                continue;
            }
            auto inner = std::make_shared<Scope>();
            inner->path = stack[depth]->path;
            inner->call = stack[depth]->call;
            size_t j = i;
            for (; j < end; ++j) {
                const auto s = frames(all[j]);
                if (s.size() <= depth || s[depth]->path != inner->path || s[depth]->call != inner->call)
                    break;
            }
            fill(*inner, all, i, j, depth + 1);
            scope.items.push_back({ NodeId{}, inner });
            scopes_.push_back(inner);
            i = j;
        }
    }

    void findEnds(Scope &scope)
    {
        for (Scope::Item &item : scope.items)
            if (item.inner) {
                findEnds(*item.inner);
                if (item.inner->outputs.empty())
                    torn_.insert(item.inner->path);
            }
        if (scope.path.empty())
            return;
        const auto own = scope.nodes();
        const std::unordered_set<NodeId> inside(own.begin(), own.end());
        for (NodeId id : own) {
            for (NodeId in : g_.inputs(id))
                if (!inside.contains(in) && std::find(scope.inputs.begin(), scope.inputs.end(), in) == scope.inputs.end())
                    scope.inputs.push_back(in);
            const auto &users = g_.users(id);
            if (std::any_of(users.begin(), users.end(), [&](NodeId u) { return !inside.contains(u); }))
                scope.outputs.push_back(id);
        }
    }

    // All calls of a module must be written alike.
    bool sameCalls()
    {
        std::map<std::string, std::string> first;
        const size_t before = torn_.size();
        for (const auto &s : scopes_) {
            const std::string key = forwardOf(*s, nullptr).key();
            const auto [it, fresh] = first.try_emplace(s->path, key);
            if (!fresh && it->second != key)
                torn_.insert(s->path);
        }
        return torn_.size() == before;
    }

    // --- one forward ---

    struct Local {
        std::unordered_map<NodeId, std::string> names;
        std::set<std::string> taken{ "self", "torch", "nn", "F", "os", "math", "OrderedDict" };
        std::string fresh(std::string wanted)
        {
            wanted = identifier(wanted);
            if (isPythonBuiltin(wanted))
                wanted += "_";
            std::string name = wanted;
            for (int i = 1; !taken.insert(name).second; ++i)
                name = wanted + "_" + std::to_string(i);
            return name;
        }
    };

    std::string relative(const std::string &path, const std::string &scope) const
    {
        return scope.empty() ? path : path.substr(scope.size() + 1);
    }

    // Children of `path` are 0, 1, 2 ..: they can be reached by index.
    bool indexed(const std::string &path) const
    {
        const ModuleInfo *m = gm_.modules.find(path);
        if (!m)
            return false;
        const bool list = m->className == "torch.nn.modules.container.ModuleList" || chains_.contains(path);
        const auto it = childrenOf_.find(path);
        if (!list || it == childrenOf_.end())
            return false;
        for (size_t i = 0; i < it->second.size(); ++i)
            if (it->second[i] != std::to_string(i))
                return false;
        return true;
    }

    std::string attribute(const std::string &path, const std::string &scope) const
    {
        std::string at = scope, text = "self";
        for (const std::string &part : split(relative(path, scope))) {
            if (plainName(part))
                text += "." + part;
            else if (allDigits(part) && indexed(at))
                text += "[" + part + "]";
            else
                text = "getattr(" + text + ", " + doubleQuoted(part) + ")";
            at = joinPath(at, part);
        }
        return text;
    }

    std::string moduleWord(const std::string &path, const std::string &scope) const
    {
        const std::string rel = relative(path, scope);
        const std::string last = lastPart(rel);
        if (!allDigits(last))
            return last;
        if (const std::string above = lastPart(parentPath(rel)); !above.empty() && !allDigits(above))
            return above + "_" + last;
        std::string word;
        const ModuleInfo *m = gm_.modules.find(path);
        for (char c : m ? m->shortClass() : "block")
            word += char(std::tolower(static_cast<unsigned char>(c)));
        while (word.size() > 2 && (word.ends_with("2d") || word.ends_with("1d") || word.ends_with("3d")))
            word.resize(word.size() - 2);
        return word;
    }

    static std::string functionWord(const Node &n)
    {
        std::string word = lastPart(n.target);
        while (word.size() > 1 && word.back() == '_')
            word.pop_back();
        if (word == "quantize_per_tensor")
            return "quantized";
        if (word == "getitem" || word == "getattr")
            return "part";
        return word;
    }

    std::string functionName(const std::string &target)
    {
        static const std::set<std::string> builtinFunctional{ "linear", "avg_pool2d", "avg_pool3d", "hardtanh_", "gelu",
            "softplus", "pad", "scaled_dot_product_attention", "leaky_relu_", "elu_", "one_hot", "logsigmoid" };
        const std::string name = lastPart(target);
        if (target.starts_with("torch.nn.functional.")
            || (target.starts_with("torch._C._nn.") && builtinFunctional.contains(name))) {
            usesFunctional_ = true;
            return "F." + name;
        }
        if (target.starts_with("builtins."))
            return name;
        if (target.starts_with("operator.")) {
            imports_.insert("import operator");
            return target;
        }
        if (target.starts_with("torch."))
            return target;
        const std::string module = parentPath(target);
        if (module == "math") {
            imports_.insert("import math");
            return target;
        }
        if (module.empty())
            return target;
        imports_.insert("from " + module + " import " + name);
        return name;
    }

    std::string literal(const Arg &arg, const Local &local)
    {
        struct Visitor {
            Writer &w;
            const Local &local;
            std::string items(const ArgList &list)
            {
                std::string out;
                for (const Arg &a : list)
                    out += (out.empty() ? "" : ", ") + w.literal(a, local);
                return out;
            }
            std::string operator()(const ArgNone &) { return "None"; }
            std::string operator()(bool v) { return v ? "True" : "False"; }
            std::string operator()(int64_t v) { return std::to_string(v); }
            std::string operator()(double v)
            {
                const std::string text = pythonRepr(v);
                return text.find_first_of("in") == std::string::npos ? text : "float(\"" + text + "\")";
            }
            std::string operator()(const std::complex<double> &v) { return pythonRepr(v); }
            std::string operator()(const std::string &v) { return doubleQuoted(v); }
            std::string operator()(NodeId v) { return local.names.at(v); }
            std::string operator()(const ArgBigInt &v) { return v.digits; }
            std::string operator()(const ArgDType &v) { return v.name; }
            std::string operator()(const ArgDevice &v) { return "torch.device(" + doubleQuoted(v.name) + ")"; }
            std::string operator()(const ArgLayout &v) { return v.name; }
            std::string operator()(const ArgMemoryFormat &v) { return v.name; }
            std::string operator()(const ArgEllipsis &) { return "..."; }
            std::string operator()(const ArgSymbol &v) { return v.name.starts_with("self.") ? v.name : w.functionName(v.name); }
            std::string operator()(const ArgOpaque &v) { return v.repr; }
            std::string operator()(const Tensor &) { return "None"; }
            std::string operator()(const std::shared_ptr<const ArgSequence> &v)
            {
                const std::string inner = items(v->items);
                if (v->kind == ArgSequence::List)
                    return "[" + inner + "]";
                const std::string tuple = "(" + inner + (v->items.size() == 1 ? ",)" : ")");
                return v->kind == ArgSequence::Size ? "torch.Size(" + tuple + ")" : tuple;
            }
            std::string operator()(const std::shared_ptr<const ArgDict> &v)
            {
                std::string out;
                for (const auto &[k, x] : v->items)
                    out += (out.empty() ? "" : ", ") + w.literal(k, local) + ": " + w.literal(x, local);
                return "{" + out + "}";
            }
            std::string operator()(const std::shared_ptr<const ArgSlice> &v)
            {
                return std::string(v->isRange ? "range(" : "slice(") + w.literal(v->start, local) + ", "
                    + w.literal(v->stop, local) + ", " + w.literal(v->step, local) + ")";
            }
            std::string operator()(const std::shared_ptr<const ArgNamedTuple> &v)
            {
                std::string out;
                for (const auto &[k, x] : v->fields)
                    out += (out.empty() ? "" : ", ") + k + "=" + w.literal(x, local);
                return w.functionName(v->type) + "(" + out + ")";
            }
        };
        return std::visit(Visitor{ *this, local }, arg.value());
    }

    // What stands between brackets: x[:, 1:-1, None].
    std::string index(const Arg &arg, const Local &local)
    {
        const auto one = [&](const Arg &a) {
            const ArgSlice *s = a.sliceOrRange();
            if (!s || s->isRange)
                return literal(a, local);
            const auto part = [&](const Arg &p) { return p.isNone() ? std::string() : literal(p, local); };
            return part(s->start) + ":" + part(s->stop) + (s->step.isNone() ? "" : ":" + part(s->step));
        };
        const ArgSequence *s = arg.sequence();
        if (!s || s->kind != ArgSequence::Tuple || s->items.empty())
            return one(arg);
        std::string out;
        for (const Arg &a : s->items)
            out += (out.empty() ? "" : ", ") + one(a);
        return out + (s->items.size() == 1 ? "," : "");
    }

    std::string expression(const Node &n, const Local &local, const std::string &scope)
    {
        static const std::map<std::string, std::string> infix{ { "add", "+" }, { "sub", "-" }, { "mul", "*" }, { "truediv", "/" },
            { "floordiv", "//" }, { "mod", "%" }, { "pow", "**" }, { "matmul", "@" }, { "eq", "==" }, { "ne", "!=" },
            { "lt", "<" }, { "le", "<=" }, { "gt", ">" }, { "ge", ">=" }, { "and_", "&" }, { "or_", "|" }, { "xor", "^" } };
        const auto arguments = [&](size_t from) {
            std::string out;
            for (size_t i = from; i < n.args.size(); ++i)
                out += (out.empty() ? "" : ", ") + literal(n.args[i], local);
            for (const auto &[k, v] : n.kwargs)
                out += (out.empty() ? "" : ", ") + k + "=" + literal(v, local);
            return "(" + out + ")";
        };
        switch (n.op) {
        case Opcode::GetAttr:
            if (const Arg *value = gm_.attributes.find(n.target); value && !gm_.tensor(n.target))
                return literal(*value, local);
            return attribute(n.target, scope);
        case Opcode::CallModule:
            return attribute(n.target, scope) + arguments(0);
        case Opcode::CallMethod:
            return n.args.empty() ? n.target + arguments(0) : literal(n.args[0], local) + "." + n.target + arguments(1);
        default:
            break;
        }
        if (n.target.starts_with("operator.") && n.kwargs.empty()) {
            const std::string name = n.target.substr(9);
            if (n.args.size() == 2 && infix.contains(name)) {
                const auto operand = [&](const Arg &a) {
                    const auto number = a.toDouble();
                    return number && *number < 0 ? "(" + literal(a, local) + ")" : literal(a, local);
                };
                return operand(n.args[0]) + " " + infix.at(name) + " " + operand(n.args[1]);
            }
            if (name == "getitem" && n.args.size() == 2)
                return literal(n.args[0], local) + "[" + index(n.args[1], local) + "]";
            if (name == "neg" && n.args.size() == 1)
                return "-" + literal(n.args[0], local);
        }
        if (n.target == "builtins.getattr" && n.args.size() == 2)
            if (const auto *name = n.args[1].as<std::string>(); name && plainName(*name))
                return literal(n.args[0], local) + "." + *name;
        return functionName(n.target) + arguments(0);
    }

    // The lines of the root's forward before its body. The arguments keep the names that callers know. One that would hide what
    // the body needs (torch, self) has another name inside: the body is a method of its own then.
    std::vector<std::string> signatureOfRoot(Local &local, std::set<std::string> &flowing)
    {
        std::set<std::string> outside, hidden{ "float", "range", "slice", "getattr" };
        for (NodeId id : g_.order())
            if (g_[id].target.starts_with("builtins."))
                hidden.insert(lastPart(g_[id].target));
        std::vector<std::string> groups[3], inner[3], calls[3], prologue; // by position, behind a star, **keywords
        bool defaults = false, star = false, differ = false;
        for (NodeId id : g_.placeholders()) {
            const Node &n = g_[id];
            const std::string stars = n.target.substr(0, std::min(n.target.find_first_not_of('*'), n.target.size()));
            std::string raw = n.target.substr(stars.size());
            const bool usable
                = plainName(raw) && !hidden.contains(raw) && !outside.contains(raw) && local.taken.insert(raw).second;
            const std::string name = usable ? raw : local.fresh(raw);
            if (!plainName(raw) || !outside.insert(raw).second)
                outside.insert(raw = name);
            differ |= raw != name;
            std::string value;
            if (!n.args.empty()) {
                Local known = local;
                bool inBody = false; // tensors are known there alone
                forEachNode(n.args[0], [&](NodeId in) {
                    if (known.names.try_emplace(in, attribute(g_[in].target, "")).second)
                        inBody = true;
                });
                value = literal(n.args[0], known);
                if (inBody) {
                    prologue.push_back("    " + name + " = " + value + " if " + name + " is None else " + name);
                    value = "None";
                }
            }
            // Python allows no required argument behind one with a default, unless it is given by keyword.
            const size_t group = stars == "**" ? 2 : stars.empty() && !star && (!value.empty() || !defaults) ? 0 : 1;
            if (group == 1 && stars.empty() && !star)
                for (auto *list : { groups, inner })
                    list[1].emplace_back("*");
            star |= group == 1;
            defaults |= !value.empty();
            groups[group].push_back(stars + raw + (value.empty() ? "" : "=" + value));
            inner[group].push_back(stars + name);
            calls[group].push_back(group == 1 && stars.empty() ? name + "=" + raw : stars + raw);
            local.names[id] = name;
            flowing.insert(name);
        }
        const auto list = [](std::string out, const std::vector<std::string>(&parts)[3]) {
            for (const auto &group : parts)
                for (const std::string &part : group)
                    out += (out.empty() ? "" : ", ") + part;
            return out;
        };
        std::vector<std::string> lines;
        std::string method = "forward";
        if (differ) {
            std::string self = "self";
            while (outside.contains(self))
                self = self == "self" ? "this" : self + "_";
            do
                method.insert(0, "_");
            while (gm_.modules.contains(method) || gm_.tensors.contains(method));
            lines
                = { "def forward(" + list(self, groups) + "):", "    return " + self + "." + method + "(" + list("", calls) + ")",
                      "" };
        }
        lines.push_back("def " + method + "(" + list("self", differ ? inner : groups) + "):");
        lines.insert(lines.end(), prologue.begin(), prologue.end());
        return lines;
    }

    // A tensor that is there only as the default of an argument.
    bool onlyDefault(const Scope::Item &item) const
    {
        if (item.inner || g_[item.node].op != Opcode::GetAttr)
            return false;
        const auto &users = g_.users(item.node);
        return !users.empty()
            && std::all_of(users.begin(), users.end(), [&](NodeId user) { return g_[user].op == Opcode::Placeholder; });
    }

    // `state` collects keys and values of the buffers; null while calls are only compared.
    Forward forwardOf(const Scope &scope, std::vector<std::pair<std::string, Tensor>> *state)
    {
        Forward f;
        Local local;
        local.taken.insert(imported_.begin(), imported_.end());
        std::set<std::string> flowing; // parameters of forward: a value that replaces one may take its name
        if (scope.path.empty()) {
            f.lines = signatureOfRoot(local, flowing);
        } else {
            static const char *names[] = { "x", "y", "z" };
            std::string signature = "def forward(self";
            for (size_t i = 0; i < scope.inputs.size(); ++i) {
                const std::string name = local.fresh(i < 3 ? names[i] : "x" + std::to_string(i));
                local.names[scope.inputs[i]] = name;
                flowing.insert(name);
                signature += ", " + name;
            }
            f.lines.push_back(signature + "):");
        }

        // Where each value is read for the last time, counted in items.
        std::unordered_map<NodeId, size_t> lastUse;
        const auto inputsOf = [&](const Scope::Item &item) { return item.inner ? item.inner->inputs : g_.inputs(item.node); };
        for (size_t i = 0; i < scope.items.size(); ++i)
            for (NodeId in : inputsOf(scope.items[i]))
                lastUse[in] = i;
        for (NodeId out : scope.path.empty() ? g_.inputs(g_.output()) : scope.outputs)
            lastUse[out] = scope.items.size();

        f.chain = scope.inputs.size() == 1 && scope.outputs.size() == 1;
        NodeId previous = scope.inputs.empty() ? NodeId{} : scope.inputs[0];
        std::vector<std::string> called;
        std::vector<std::pair<std::string, std::string>> statements; // variable and expression
        for (size_t i = 0; i < scope.items.size(); ++i) {
            const Scope::Item &item = scope.items[i];
            if (onlyDefault(item))
                continue;
            const std::vector<NodeId> ins = inputsOf(item);
            std::string text, word, child;
            std::vector<NodeId> results;
            if (item.inner) {
                child = item.inner->path;
                for (NodeId in : ins)
                    text += (text.empty() ? "" : ", ") + local.names.at(in);
                text = attribute(child, scope.path) + "(" + text + ")";
                word = moduleWord(child, scope.path);
                results = item.inner->outputs;
            } else {
                Node n = g_[item.node];
                word = n.op == Opcode::CallModule ? moduleWord(n.target, scope.path)
                    : n.op == Opcode::GetAttr     ? lastPart(n.target)
                                                  : functionWord(n);
                results = { item.node };
                child = n.op == Opcode::CallModule && n.args.size() == 1 && n.kwargs.empty() && n.args[0].node() ? n.target : "";
                literalsToBuffers(n, scope, f, state);
                text = expression(n, local, scope.path);
            }
            f.chain = f.chain && !child.empty() && parentPath(child) == scope.path && ins.size() == 1 && ins[0] == previous
                && results.size() == 1;
            called.push_back(lastPart(child));
            previous = results.empty() ? NodeId{} : results[0];
            std::string left;
            if (results.size() == 1 && g_.users(results[0]).empty() && !item.inner) {
                statements.emplace_back("", text);
                continue;
            }
            for (NodeId r : results) {
                std::string name;
                if (results.size() == 1 && !ins.empty() && flowing.contains(local.names.at(ins[0])) && lastUse.at(ins[0]) == i)
                    name = local.names.at(ins[0]);
                else
                    name = local.fresh(results.size() == 1 ? word : word + "_" + std::to_string(left.empty() ? 0 : 1));
                local.names[r] = name;
                left += (left.empty() ? "" : ", ") + name;
            }
            statements.emplace_back(left, text);
        }
        std::string result;
        if (scope.path.empty()) {
            const Node &out = g_[g_.output()];
            result = out.args.empty() ? "None" : literal(out.args[0], local);
        } else {
            for (NodeId out : scope.outputs)
                result += (result.empty() ? "" : ", ") + local.names.at(out);
            f.chain = f.chain && previous == scope.outputs[0];
        }
        const auto it = childrenOf_.find(scope.path);
        f.chain = f.chain && !scope.path.empty() && it != childrenOf_.end() && it->second == called && f.buffers.empty()
            && std::all_of(called.begin(), called.end(), allDigits);
        if (!statements.empty() && statements.back().first == result) {
            result = statements.back().second;
            statements.pop_back();
        }
        for (const auto &[left, right] : statements)
            f.lines.push_back("    " + (left.empty() ? "" : left + " = ") + right);
        f.lines.push_back("    return " + result);
        return f;
    }

    // Scales and zero points and tensors that the graph holds as literals become buffers: they belong to the weights, not to the
    // code.
    void literalsToBuffers(Node &n, const Scope &scope, Forward &f, std::vector<std::pair<std::string, Tensor>> *state)
    {
        const auto add = [&](const std::string &wanted, const std::string &initial, Tensor value, bool persistent = true) {
            std::string name = wanted;
            const auto used
                = [&] { return std::any_of(f.buffers.begin(), f.buffers.end(), [&](const auto &b) { return b.name == name; }); };
            for (int i = 1;
                 used() || gm_.modules.contains(joinPath(scope.path, name)) || gm_.tensors.contains(joinPath(scope.path, name));
                 ++i)
                name = wanted.substr(0, wanted.size() - (wanted.ends_with("_0") ? 2 : 0)) + "_" + std::to_string(i);
            f.buffers.push_back({ name, persistent ? initial : initial + kNotPersistent, value });
            usesBuffers_ |= !persistent;
            if (state)
                state->emplace_back(weightsKey(joinPath(scope.path, name), persistent), std::move(value));
            return ArgSymbol{ "self." + name };
        };
        const auto scales = [&](size_t at, const std::string &word) {
            if (at + 1 >= n.args.size() || !n.args[at].as<double>() || !n.args[at + 1].as<int64_t>())
                return;
            const float scale = float(*n.args[at].as<double>());
            const int64_t zero = *n.args[at + 1].as<int64_t>();
            n.args[at] = add(word + "_scale_0", "torch.tensor(1.0)", makeTensor(DType::Float32, {}, &scale));
            n.args[at + 1] = add(word + "_zero_point_0", "torch.tensor(0)", makeTensor(DType::Int64, {}, &zero));
        };
        if (n.target == "torch.quantize_per_tensor" && n.op == Opcode::CallFunction) {
            const auto &users = g_.users(n.id);
            std::string word = "input";
            if (!users.empty() && g_[users[0]].op == Opcode::CallModule && within(g_[users[0]].target, scope.path))
                word = identifier(relative(g_[users[0]].target, scope.path)) + "_input";
            else if (!users.empty())
                word = functionWord(g_[users[0]]) + "_input";
            if (word.starts_with("_") && word.size() > 1)
                word.erase(0, 1), word = std::isdigit(static_cast<unsigned char>(word[0])) ? "_" + word : word;
            scales(1, word);
        } else if (n.op == Opcode::CallFunction && n.target.starts_with("torch.ops.quantized.")) {
            for (size_t i = 0; i + 1 < n.args.size(); ++i)
                if (n.args[i].as<double>() && n.args[i + 1].as<int64_t>() && isScaleAt(n, i)) {
                    scales(i, functionWord(n));
                    break;
                }
        }
        const auto toBuffer = [&](const Arg &a) -> Arg {
            const Tensor *t = a.as<Tensor>();
            if (!t)
                return a;
            std::string shape;
            for (int64_t s : (*t)->sizes)
                shape += std::to_string(s) + ", ";
            return add(
                "constant_0", "torch.empty((" + shape + "), dtype=torch." + std::string(dtypeName((*t)->dtype)) + ")", *t, false);
        };
        for (Arg &a : n.args)
            a = toBuffer(a);
        for (auto &[k, v] : n.kwargs)
            v = toBuffer(v);
    }

    static bool isScaleAt(const Node &n, size_t i)
    {
        // (a, b, scale, zero_point), (x, scale, zero_point, ..), (.., scale, zero_point)
        return i + 2 == n.args.size() || i == 1;
    }

    // --- modules and classes ---

    bool leaf(const ModuleInfo &m) const { return m.kind != ModuleKind::Container && !opened_.contains(m.path); }

    // Modules of torch.nn that are never called, while a child of theirs may be: FloatFunctional of eager quantization.
    void findOpened()
    {
        for (const auto &[path, m] : gm_.modules)
            if (m->className.starts_with("torch.ao.nn.quantized.modules.functional_modules.") && gm_.callers(path).empty())
                opened_.insert(path);
    }

    void listChildren()
    {
        childrenOf_.clear();
        std::set<std::string> leaves;
        for (const auto &[path, m] : gm_.modules)
            if (!path.empty() && leaf(*m))
                leaves.insert(path);
        for (const auto &[path, m] : gm_.modules) {
            if (path.empty())
                continue;
            bool hidden = false; // what a leaf holds is made by its constructor
            for (std::string up = parentPath(path); !up.empty() && !hidden; up = parentPath(up))
                hidden = leaves.contains(up);
            if (!hidden)
                childrenOf_[parentPath(path)].push_back(lastPart(path));
        }
    }

    void writeForwards()
    {
        std::sort(scopes_.begin(), scopes_.end(),
            [](const auto &a, const auto &b) { return std::pair(a->path, a->call) < std::pair(b->path, b->call); });
        // Which modules are chains decides how their children are reached, so that is found out first.
        for (const auto &s : scopes_)
            if (!forwards_.contains(s->path)) {
                const Forward f = forwardOf(*s, nullptr);
                if (f.chain)
                    chains_.insert(s->path);
                forwards_[s->path] = f;
            }
        forwards_.clear();
        for (const auto &s : scopes_)
            if (!forwards_.contains(s->path))
                forwards_[s->path] = forwardOf(*s, &out_.state);
    }

    std::string literalOf(const Arg &a) { return literal(a, Local{}); }

    static bool equalsDefault(const std::string &text, const std::string &def)
    {
        if (text == def)
            return true;
        if (text.size() > 2 && text.front() == '(') { // (1, 1) is 1
            std::string body = text.substr(1, text.size() - 2);
            for (size_t at = 0; at <= body.size();) {
                size_t comma = std::min(body.find(',', at), body.size());
                std::string one = body.substr(at, comma - at);
                one.erase(0, one.find_first_not_of(' ') == std::string::npos ? one.size() : one.find_first_not_of(' '));
                if (!one.empty() && one != def)
                    return false;
                at = comma + 1;
            }
            return true;
        }
        return false;
    }

    // A graph that torch.cond and its like call: a class with torch's own code for it.
    std::string graphClass(const std::string &path, const GraphModule &graph)
    {
        const std::string name = uniqueClassName(identifier(camelCase(path)));
        std::string children;
        for (const auto &[inner, m] : graph.modules)
            if (m->kind == ModuleKind::Graph && m->graph)
                children += "        self." + inner + " = " + graphClass(inner, *m->graph) + "()\n";
        std::string text = "\n\nclass " + name + "(nn.Module):\n    \"\"\"A graph that an operator calls.\"\"\"\n";
        if (!children.empty())
            text += "\n    def __init__(self):\n        super().__init__()\n" + children;
        for (const CodeLine &line : torchCodeLines(graph))
            if (line.text.find_first_not_of(' ') != line.text.npos)
                text += (line.text.starts_with("def ") ? "\n    " : "    ") + line.text + "\n";
        if (text.find("device(") != text.npos)
            imports_.insert("from torch import device");
        if (text.find("inf") != text.npos || text.find("nan") != text.npos)
            imports_.insert("from math import inf, nan");
        graphClasses_ += text;
        return name;
    }

    std::shared_ptr<Ctor> leafCtor(const ModuleInfo &m)
    {
        auto c = std::make_shared<Ctor>();
        const std::string &name = m.className;
        if (m.kind == ModuleKind::Script) {
            const std::string file = identifier(m.path) + ".pt";
            if (std::none_of(out_.scripts.begin(), out_.scripts.end(), [&](const auto &s) { return s.first == m.path; }))
                out_.scripts.emplace_back(m.path, file);
            c->callee = "script";
            c->fields.push_back({ "", doubleQuoted(file), "", nullptr });
            return c;
        }
        if (m.kind == ModuleKind::Graph && m.graph) {
            c->callee = graphClass(m.path, *m.graph);
            return c;
        }
        std::string params;
        if (name.starts_with("torch.ao.nn.intrinsic.modules.fused.")) {
            c->callee = "nn.Sequential";
            for (const char *child : { "0", "1" })
                if (const ModuleInfo *inner = gm_.modules.find(m.path + "." + child))
                    c->fields.push_back({ "", "", "", leafCtor(*inner) });
            return c;
        }
        if (isQuantizedWeight(m)) {
            c->callee = "Quantized" + m.shortClass();
            quantizedClasses_.insert(m.shortClass());
            params = name.find("inear") != std::string::npos
                ? "in_features, out_features"
                : "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1";
        } else {
            for (const NnSignature &s : kNnSignatures)
                if (s.className == name)
                    params = s.params;
            if (m.kind == ModuleKind::Opaque) {
                imports_.insert("from " + parentPath(name) + " import " + m.shortClass()
                    + "  # yours; made from the facts it keeps, with its weights from weights.pt");
                c->callee = m.shortClass();
            } else if (name.starts_with("torch.nn.modules.")) {
                c->callee = "nn." + m.shortClass();
            } else {
                c->callee = name;
            }
        }
        const auto known = std::find_if(
            std::begin(kNnSignatures), std::end(kNnSignatures), [&](const auto &s) { return s.className == name; });
        if (params.empty() && known == std::end(kNnSignatures)) {
            for (const auto &[k, v] : m.attrs) { // a class that the table does not know: say everything
                const bool tensor = v == Arg(true) && has(m.parameters, k) && k != "bias";
                if (!tensor && k != "device" && k != "dtype")
                    c->fields.push_back({ k, constructorText(m, k, v), k == "bias" ? "True" : "", nullptr });
            }
            return c;
        }
        bool positional = true;
        size_t begin = 0;
        while (begin < params.size()) {
            size_t end = begin; // to the next comma at this level
            for (int depth = 0; end < params.size() && (params[end] != ',' || depth); ++end)
                depth += params[end] == '(' ? 1 : params[end] == ')' ? -1 : 0;
            std::string one = params.substr(begin, end - begin);
            begin = end + 2;
            const size_t eq = one.find('=');
            const std::string pname = one.substr(0, eq), def = eq == std::string::npos ? "" : one.substr(eq + 1);
            const bool bare = positional && def.empty() && pname != "kernel_size";
            const auto [owner, fact] = keeps(m, pname);
            if (const ModuleInfo *inner = gm_.modules.find(joinPath(owner, fact))) {
                c->fields.push_back({ bare ? "" : pname, "", "", leafCtor(*inner) });
                positional = positional && def.empty();
                continue;
            }
            const ModuleInfo *keeper = gm_.modules.find(owner);
            static const Arg yes(true);
            const Arg *value = !keeper ? nullptr : has(keeper->parameters, fact) ? &yes : keeper->attr(fact);
            if (!value) {
                positional = false;
                continue;
            }
            std::string text = constructorText(*keeper, fact, *value);
            const std::string shownDefault = def.empty() ? "" : parseLiteral(def) ? literalOf(*parseLiteral(def)) : def;
            if (!def.empty() && equalsDefault(text, shownDefault))
                text = shownDefault;
            // The stride of a pool is its kernel size unless said otherwise.
            if (pname == "stride" && def == "None" && m.attr("kernel_size") && *m.attr("kernel_size") == *value)
                text = "None";
            c->fields.push_back({ bare ? "" : pname, text, shownDefault, nullptr });
            positional = positional && def.empty();
        }
        return c;
    }

    // The module and the name under which it keeps a constructor's argument.
    static std::pair<std::string, std::string> keeps(const ModuleInfo &m, const std::string &param)
    {
        for (const NnFact &f : kNnFacts)
            if (f.className == m.className && f.param == param) {
                const std::string from = joinPath(m.path, f.from);
                return { parentPath(from), from.substr(from.rfind('.') + 1) };
            }
        return { m.path, param };
    }

    std::string constructorText(const ModuleInfo &m, const std::string &fact, const Arg &value)
    {
        if (fact == "bias")
            return value.isNone() || value == Arg(false) ? "False" : "True";
        if (value == Arg(true) && has(m.buffers, fact)) { // a tensor; its values come with the weights
            std::string sizes;
            for (int64_t size : gm_.moduleTensor(m.path, fact)->sizes)
                sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
            return "torch.ones(" + (sizes.empty() ? "()" : sizes) + ")";
        }
        if (const auto list = value.as<std::shared_ptr<const ArgSequence>>();
            list && fact == "cutoffs") { // torch added n_classes
            ArgList cutoffs = (*list)->items;
            cutoffs.resize(cutoffs.empty() ? 0 : cutoffs.size() - 1);
            return literalOf(Arg::list(cutoffs));
        }
        if (const std::string *mode = value.as<std::string>(); mode && fact == "mode" && mode->starts_with("RNN_"))
            return *mode == "RNN_RELU" ? "\"relu\"" : "\"tanh\"";
        if ((fact == "kdim" || fact == "vdim") && m.attr("embed_dim") && *m.attr("embed_dim") == value)
            return "None";
        const std::string text = literalOf(value);
        if (fact == "activation")
            for (const char *word : { "relu", "gelu" })
                if (text.ends_with(std::string(".") + word))
                    return doubleQuoted(word);
        return text;
    }

    static bool has(const std::vector<std::string> &list, const std::string &s)
    {
        return std::find(list.begin(), list.end(), s) != list.end();
    }

    std::vector<std::pair<std::string, std::string>> ownTensors(const std::string &path)
    {
        std::vector<std::pair<std::string, std::string>> out;
        const std::string prefix = path.empty() ? "" : path + ".";
        for (const auto &[fqn, e] : gm_.tensors) {
            if (!fqn.starts_with(prefix) || parentPath(fqn) != path)
                continue;
            std::string shape;
            for (size_t i = 0; i < e->tensor->sizes.size(); ++i)
                shape += (i ? ", " : "") + std::to_string(e->tensor->sizes[i]);
            if (e->tensor->sizes.size() == 1)
                shape += ",";
            const bool parameter = e->parameter && isFloatingPoint(e->tensor->dtype);
            std::string text = "torch.empty((" + shape + ")"
                + (e->tensor->dtype == DType::Float32 ? "" : ", dtype=torch." + std::string(dtypeName(e->tensor->dtype))) + ")";
            out.emplace_back(lastPart(fqn),
                parameter             ? "nn.Parameter(" + text + ")"
                    : inStateDict(*e) ? text
                                      : text + kNotPersistent);
        }
        return out;
    }

    // Modules bottom up: those of one height with the same shape and forward become one class.
    void defineClasses()
    {
        std::map<std::string, int> height;
        std::function<int(const std::string &)> heightOf = [&](const std::string &path) {
            int h = 0;
            if (const auto it = childrenOf_.find(path); it != childrenOf_.end())
                for (const std::string &c : it->second) {
                    const std::string p = joinPath(path, c);
                    h = std::max(h, leaf(*gm_.modules.find(p)) ? 1 : heightOf(p) + 1);
                }
            return height[path] = h;
        };
        const int top = heightOf("");
        std::vector<std::string> containers;
        for (const auto &[path, m] : gm_.modules)
            if (height.contains(path))
                containers.push_back(path);
        for (int h = 0; h <= top; ++h) {
            std::map<std::string, std::vector<std::string>> alike;
            std::vector<std::string> order;
            for (const std::string &path : containers) {
                if (height[path] != h)
                    continue;
                const std::string key = signature(path);
                if (key.empty())
                    continue;
                if (alike[key].empty())
                    order.push_back(key);
                alike[key].push_back(path);
            }
            for (const std::string &key : order)
                defineClass(alike[key]);
        }
    }

    std::shared_ptr<Ctor> ctorOf(const std::string &path)
    {
        const ModuleInfo &m = *gm_.modules.find(path);
        if (leaf(m))
            return leafCtor(m);
        return ctors_.at(path);
    }

    // Makes the constructor of a container that needs no class of its own; else gives the key of its class.
    std::string signature(const std::string &path)
    {
        const ModuleInfo &m = *gm_.modules.find(path);
        const std::vector<std::string> children = childrenOf_.contains(path) ? childrenOf_.at(path) : std::vector<std::string>{};
        const auto tensors = ownTensors(path);
        const auto forward = forwards_.find(path);
        const bool digits = std::all_of(children.begin(), children.end(), allDigits);
        if (!path.empty() && tensors.empty() && (forward == forwards_.end() || chains_.contains(path))) {
            auto c = std::make_shared<Ctor>();
            bool counted = digits;
            for (size_t i = 0; i < children.size(); ++i)
                counted = counted && children[i] == std::to_string(i);
            const bool chain = forward != forwards_.end();
            const bool list = !chain && m.className == "torch.nn.modules.container.ModuleList" && counted;
            c->callee = chain ? "nn.Sequential" : list ? "nn.ModuleList" : "Holder";
            usesHolder_ |= c->callee == "Holder";
            const bool names = !chain && !list && !std::all_of(children.begin(), children.end(), plainName);
            c->style = chain && !counted ? Ctor::Ordered : list ? Ctor::List : names ? Ctor::Names : Ctor::Plain;
            usesOrdered_ |= c->style == Ctor::Ordered;
            for (const std::string &child : children)
                c->fields.push_back({ counted && (chain || list) ? "" : child, "", "", ctorOf(joinPath(path, child)) });
            ctors_[path] = c;
            return {};
        }
        std::string key
            = (path.empty() ? "root|" : "") + (forward == forwards_.end() ? std::string("holds") : forward->second.key());
        for (const std::string &child : children)
            key += "|" + child + ":" + ctorOf(joinPath(path, child))->shape();
        for (const auto &[name, text] : tensors)
            key += "|" + name + "=" + text;
        return key;
    }

    std::string uniqueClassName(const std::string &wanted)
    {
        std::string name = wanted;
        for (int i = 2; !classNames_.insert(name).second; ++i)
            name = wanted + std::to_string(i);
        return name;
    }

    void defineClass(const std::vector<std::string> &paths)
    {
        ClassDef def;
        const std::string &first = paths.front();
        const ModuleInfo &m = *gm_.modules.find(first);
        std::string wanted = first.empty() ? gm_.rootClass : m.shortClass();
        if (!first.empty() && m.className.starts_with("torch.nn.modules."))
            wanted
                = camelCase(allDigits(lastPart(first)) ? lastPart(parentPath(first)) + "_" + lastPart(first) : lastPart(first));
        def.name = uniqueClassName(identifier(wanted));
        if (const auto f = forwards_.find(first); f != forwards_.end())
            def.forward = f->second;
        def.tensors = ownTensors(first);
        if (first.empty())
            tie(def);

        // Facts in which the modules differ become parameters of the constructor; facts that differ alike become one.
        std::vector<std::vector<std::shared_ptr<Ctor>>> trees; // per module, per child
        std::vector<std::vector<Ctor::Field *>> facts;
        const std::vector<std::string> children
            = childrenOf_.contains(first) ? childrenOf_.at(first) : std::vector<std::string>{};
        for (const std::string &path : paths) {
            trees.emplace_back();
            facts.emplace_back();
            for (const std::string &child : children) {
                trees.back().push_back(std::make_shared<Ctor>(deepCopy(*ctorOf(joinPath(path, child)))));
                trees.back().back()->literals(facts.back());
            }
        }
        std::vector<std::string> owner; // child that each fact belongs to
        for (size_t c = 0; c < children.size(); ++c) {
            std::vector<Ctor::Field *> own;
            trees.front()[c]->literals(own);
            owner.insert(owner.end(), own.size(), children[c]);
        }
        std::map<std::vector<std::string>, std::string> known;
        std::vector<std::pair<std::string, size_t>> params; // name, column
        std::set<std::string> names{ "self" };
        for (size_t col = 0; col < owner.size(); ++col) {
            std::vector<std::string> column;
            for (const auto &row : facts)
                column.push_back(row[col]->text);
            if (std::all_of(column.begin(), column.end(), [&](const auto &t) { return t == column.front(); }))
                continue;
            const auto [it, fresh] = known.try_emplace(column, "");
            if (fresh) {
                std::string name = facts.front()[col]->name;
                if (name.empty())
                    name = positionalName(
                        *trees.front()[size_t(std::find(children.begin(), children.end(), owner[col]) - children.begin())],
                        facts.front()[col]);
                std::string full = identifier(name);
                if (!names.insert(full).second) {
                    full = identifier(owner[col] + "_" + name);
                    for (int i = 2; !names.insert(full).second; ++i)
                        full = identifier(owner[col] + "_" + name) + std::to_string(i);
                }
                it->second = full;
                params.emplace_back(full, col);
            }
            facts.front()[col]->unlessDefault.clear();
            parameterOf_[facts.front()[col]] = it->second;
        }
        for (size_t i = 0; i < paths.size(); ++i) {
            auto c = std::make_shared<Ctor>();
            c->callee = def.name;
            for (const auto &[name, col] : params)
                c->fields.push_back({ name, facts[i][col]->text, "", nullptr });
            ctors_[paths[i]] = c;
        }
        for (auto &[field, name] : parameterOf_)
            field->text = name;
        parameterOf_.clear();
        for (size_t c = 0; c < children.size(); ++c)
            def.children.emplace_back(children[c], trees.front()[c]);
        for (const auto &[name, col] : params)
            def.params.push_back(name);
        classes_.push_back(std::move(def));
    }

    // What is one object in the model is one in its code, said where every path is known: in the root.
    void tie(ClassDef &root) const
    {
        const auto below = [&](const std::string &name) { return root.aliases.contains(name.substr(0, name.find('.'))); };
        for (const auto &[path, m] : gm_.modules)
            if (!m->aliasOf.empty() && parentPath(path).empty())
                root.aliases[path] = attribute(m->aliasOf, "");
        std::map<const TensorData *, std::string> first;
        for (const auto &[name, e] : gm_.tensors) {
            const ModuleInfo *owner = gm_.modules.find(parentPath(name));
            if (!inStateDict(*e) || !isFloatingPoint(e->tensor->dtype) || below(name) || !owner
                || (owner->kind != ModuleKind::Nn && owner->kind != ModuleKind::Container) || isQuantizedWeight(*owner))
                continue;
            const auto [it, fresh] = first.try_emplace(e->tensor.get(), name);
            if (fresh)
                continue;
            const std::string value = attribute(it->second, ""), last = lastPart(name);
            root.ties.push_back(plainName(last)
                    ? attribute(name, "") + " = " + value
                    : "setattr(" + attribute(parentPath(name), "") + ", " + doubleQuoted(last) + ", " + value + ")");
        }
    }

    static std::string positionalName(const Ctor &c, const Ctor::Field *field)
    {
        const bool linear = c.callee.find("Linear") != std::string::npos, conv = c.callee.find("Conv") != std::string::npos;
        for (size_t i = 0; i < c.fields.size(); ++i)
            if (&c.fields[i] == field)
                return linear                                                      ? (i ? "out_features" : "in_features")
                    : conv                                                         ? (i ? "out_channels" : "in_channels")
                    : c.callee == "nn.BatchNorm2d" || c.callee == "nn.BatchNorm1d" ? "num_features"
                                                                                   : "value";
        for (const Ctor::Field &f : c.fields)
            if (f.child)
                if (const std::string name = positionalName(*f.child, field); !name.empty())
                    return name;
        return {};
    }

    static Ctor deepCopy(const Ctor &c)
    {
        Ctor out = c;
        for (Ctor::Field &f : out.fields)
            if (f.child)
                f.child = std::make_shared<Ctor>(deepCopy(*f.child));
        return out;
    }

    // --- the file ---

    static std::string wrapped(const std::string &text, const std::string &first, const std::string &rest)
    {
        std::string out = first;
        size_t column = first.size();
        for (size_t at = 0; at < text.size();) {
            size_t end = std::min(text.find(' ', at), text.size());
            if (column + (end - at) > kWidth - 8 && column > rest.size()) {
                out += "\n" + rest;
                column = rest.size();
            }
            out += text.substr(at, end - at) + (end < text.size() ? " " : "");
            column += end - at + 1;
            at = end + 1;
        }
        while (out.ends_with(" "))
            out.pop_back();
        return out;
    }

    static std::string docText(std::string s)
    {
        for (size_t at = 0; (at = s.find_first_of("\\\"", at)) != std::string::npos; at += 2)
            s.insert(at, "\\");
        return s;
    }

    std::string header()
    {
        const bool int8 = !options_.engine.empty();
        std::string out = "\"\"\"" + docText(gm_.rootClass) + (int8 ? " in int8 (engine " + options_.engine + ")" : "")
            + ", exported by Fuseboard" + (options_.madeFrom.empty() ? "" : " from " + docText(options_.madeFrom)) + ".\n";
        if (!gm_.provenance.source.empty())
            out += "\nTraced from " + docText(gm_.provenance.source) + " with PyTorch " + docText(gm_.provenance.torchVersion)
                + ".\n";
        if (!options_.steps.empty()) {
            out += "\nHow it was made:\n";
            for (size_t i = 0; i < options_.steps.size(); ++i) {
                const std::string mark = std::to_string(i + 1) + ". ";
                out += wrapped(docText(options_.steps[i]), "  " + mark, std::string(2 + mark.size(), ' ')) + "\n";
            }
        }
        out += "\nload() gives the model in eval mode with the weights of weights.pt; `python model.py` checks it against a "
               "stored sample.\n\"\"\"\n";
        out += "import os\n";
        if (!options_.engine.empty())
            out += "import warnings\n";
        for (const std::string &line : imports_)
            if (line.starts_with("import "))
                out += line + "\n";
        if (usesOrdered_)
            out += "from collections import OrderedDict\n";
        out += "\nimport torch\nfrom torch import nn\n";
        if (usesFunctional_)
            out += "from torch.nn import functional as F\n";
        for (const std::string &line : imports_)
            if (line.starts_with("from "))
                out += line + "\n";
        out += "\nHERE = os.path.dirname(os.path.abspath(__file__))\n";
        return out;
    }

    std::string classes()
    {
        std::string out;
        if (!out_.scripts.empty())
            out += "\n\ndef script(name):\n    \"\"\"A module of yours that was not traced through: it travels as TorchScript "
                   "beside this file.\"\"\"\n"
                   "    return torch.jit.load(os.path.join(HERE, name), map_location=\"cpu\")\n";
        if (usesHolder_)
            out += "\n\nclass Holder(nn.Module):\n    \"\"\"Modules that are called one by one from outside.\"\"\"\n\n"
                   "    def __init__(self, **modules):\n        super().__init__()\n        for name, module in "
                   "modules.items():\n"
                   "            self.add_module(name, module)\n";
        out += quantizedSource();
        out += graphClasses_;
        for (const ClassDef &c : classes_)
            out += classText(c);
        return out;
    }

    static std::string quantizedBase()
    {
        return R"(

class QuantizedWeight(nn.Module):
    """An int8 weight, its float bias, and scale and zero point of what it gives; packed for the engine when its state is loaded."""

    def _load_from_state_dict(self, state, prefix, metadata, strict, missing, unexpected, errors):
        absent = [prefix + name for name in ("weight", "scale", "zero_point") if prefix + name not in state]
        if absent:
            missing.extend(absent)
            return
        self.weight, self.bias = state[prefix + "weight"], state.get(prefix + "bias")
        self.scale, self.zero_point = float(state[prefix + "scale"]), int(state[prefix + "zero_point"])
        self.packed = self.pack()

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        destination[prefix + "weight"] = self.weight
        if self.bias is not None:
            destination[prefix + "bias"] = self.bias
        destination[prefix + "scale"] = torch.tensor(self.scale)
        destination[prefix + "zero_point"] = torch.tensor(self.zero_point)
)";
    }

    std::string quantizedSource() const
    {
        if (quantizedClasses_.empty())
            return {};
        std::string out = quantizedBase();
        for (const std::string dims : { "1", "2", "3" }) {
            const bool relu = quantizedClasses_.contains("ConvReLU" + dims + "d");
            if (!relu && !quantizedClasses_.contains("Conv" + dims + "d"))
                continue;
            const std::string conv = "conv" + dims + "d", name = "QuantizedConv" + dims + "d";
            out += "\n\nclass " + name
                + "(QuantizedWeight):\n"
                  "    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1):\n"
                  "        super().__init__()\n"
                  "        wide = lambda v: (v,) * "
                + dims
                + " if isinstance(v, int) else v\n"
                  "        self.stride, self.padding, self.dilation, self.groups = wide(stride), wide(padding), wide(dilation), "
                  "groups\n\n"
                  "    def pack(self):\n"
                  "        return torch.ops.quantized."
                + conv
                + "_prepack(\n"
                  "            self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)\n\n"
                  "    def forward(self, x):\n"
                  "        return torch.ops.quantized."
                + conv + "(x, self.packed, self.scale, self.zero_point)\n";
            if (relu)
                out += "\n\nclass QuantizedConvReLU" + dims + "d(" + name
                    + "):\n    def forward(self, x):\n        return torch.ops.quantized." + conv
                    + "_relu(x, self.packed, self.scale, self.zero_point)\n";
        }
        const bool relu = quantizedClasses_.contains("LinearReLU");
        if (relu || quantizedClasses_.contains("Linear")) {
            out += "\n\nclass QuantizedLinear(QuantizedWeight):\n"
                   "    def __init__(self, in_features, out_features):\n"
                   "        super().__init__()\n\n"
                   "    def pack(self):\n"
                   "        return torch.ops.quantized.linear_prepack(self.weight, self.bias)\n\n"
                   "    def forward(self, x):\n"
                   "        return torch.ops.quantized.linear(x, self.packed, self.scale, self.zero_point)\n";
            if (relu)
                out += "\n\nclass QuantizedLinearReLU(QuantizedLinear):\n    def forward(self, x):\n"
                       "        return torch.ops.quantized.linear_relu(x, self.packed, self.scale, self.zero_point)\n";
        }
        return out;
    }

    static std::string classText(const ClassDef &c)
    {
        std::string out = "\n\nclass " + c.name + "(nn.Module):\n    def __init__(self";
        for (const std::string &p : c.params)
            out += ", " + p;
        out += "):\n        super().__init__()\n";
        for (const auto &[name, ctor] : c.children) {
            if (const auto it = c.aliases.find(name); it != c.aliases.end()) {
                out += "        "
                    + (plainName(name) ? "self." + name + " = " + it->second
                                       : "self.add_module(" + doubleQuoted(name) + ", " + it->second + ")")
                    + "\n";
            } else if (plainName(name)) {
                out += "        self." + name + " = " + render(*ctor, 8, 8 + 5 + name.size() + 3) + "\n";
            } else {
                const std::string start = "self.add_module(" + doubleQuoted(name) + ", ";
                out += "        " + start + render(*ctor, 8, 8 + start.size() + 1) + ")\n";
            }
        }
        for (const auto &[name, text] : c.tensors) {
            if (!text.starts_with("nn.Parameter"))
                out += "        self.register_buffer(" + doubleQuoted(name) + ", " + text + ")\n";
            else if (plainName(name))
                out += "        self." + name + " = " + text + "\n";
            else
                out += "        self.register_parameter(" + doubleQuoted(name) + ", " + text + ")\n";
        }
        for (const Forward::Buffer &b : c.forward.buffers)
            out += "        self.register_buffer(" + doubleQuoted(b.name) + ", " + b.initial + ")\n";
        for (const std::string &statement : c.ties)
            out += "        " + statement + "\n";
        if (c.forward.lines.empty())
            return out;
        out += "\n";
        for (const std::string &line : c.forward.lines)
            out += (line.empty() ? "" : "    ") + line + "\n";
        return out;
    }

    std::string footer() const
    {
        const Ctor &root = *ctors_.at("");
        std::string out = "\n\ndef load():\n    \"\"\"The model in eval mode, with its weights.\"\"\"\n";
        if (!options_.engine.empty()) {
            const std::string engine = doubleQuoted(options_.engine);
            out += "    if " + engine
                + " not in torch.backends.quantized.supported_engines:\n"
                  "        raise RuntimeError(\"this PyTorch has no quantized engine '"
                + options_.engine
                + "'; export again for one of \"\n"
                  "                           + \", \".join(torch.backends.quantized.supported_engines))\n"
                  "    torch.backends.quantized.engine = "
                + engine + "\n";
        }
        out += "    model = " + root.callee
            + "()\n"
              "    state = weights()\n"
              "    model.load_state_dict({name: value for name, value in state.items() if not name.startswith(\"__\")})\n";
        if (usesBuffers_)
            out += R"(    for name, value in state.items():     # what state_dict() leaves out
        if name.startswith("__buffer__."):
            owner, _, last = name[len("__buffer__."):].rpartition(".")
            setattr(model.get_submodule(owner), last, value)
)";
        std::string training;
        for (const auto &[path, m] : gm_.modules)
            if (m->training && !gm_.callers(path).empty())
                training += doubleQuoted(path) + ", ";
        if (training.empty())
            out += "    return model.eval()\n";
        else
            out += "    model.eval()\n    for name in (" + training
                + "):     # they act as in training\n        model.get_submodule(name).train()\n    return model\n";
        const std::string read = R"(torch.load(os.path.join(HERE, "weights.pt"), map_location="cpu", weights_only=True))";
        out += "\n\ndef weights():\n";
        if (options_.engine.empty())
            out += "    return " + read + "\n";
        else
            out += R"(    with warnings.catch_warnings():     # torch's own, about how it reads quantized tensors
        warnings.filterwarnings("ignore", "TypedStorage|torch.quantize_per_tensor")
        return )"
                + read + "\n";
        out += R"(

def tensors(value):
    """The tensors of a result, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in tensors(item)] if isinstance(value, (list, tuple)) else []


def difference(got, expected):
    """The largest one; inf and nan where they are expected are none."""
    same = (got == expected) | ((got != got) & (expected != expected))
    apart = (got.double() - expected.double()).abs().masked_fill(same, 0.0)
    return float(apart.nan_to_num(nan=float("inf")).max()) if got.numel() else 0.0


def check():
    """Runs the stored sample and compares with what Fuseboard got for it."""
    state = weights()
    inputs = [state[name] for name in sorted(state) if name.startswith("__sample__.input.")]
    expected = [state[name] for name in sorted(state) if name.startswith("__sample__.output.")]
    if not inputs:
        print("ok: loads; no sample is stored to compare with")
        load()
        return True
    with torch.no_grad():
        got = tensors(load()(*inputs))
    if [t.shape for t in got] != [t.shape for t in expected]:
        print("FAILED: shapes differ:", [tuple(t.shape) for t in got], "instead of", [tuple(t.shape) for t in expected])
        return False
    worst = max([difference(a, b) for a, b in zip(got, expected)] or [0.0])
)";
        if (options_.tolerance > 0)
            out += "    largest = max([float(t.double().nan_to_num(0.0, 0.0, 0.0).abs().max()) for t in expected if t.numel()] "
                   "or [0.0])\n"
                   "    good = worst <= "
                + pythonRepr(options_.tolerance) + " * max(largest, 1.0)\n";
        else
            out += "    good = worst == 0.0\n";
        out += R"(    print("ok" if good else "FAILED", "largest difference from the stored output:", worst)
    return good


if __name__ == "__main__":
    raise SystemExit(0 if check() else 1)
)";
        return out;
    }

public:
    void prepare()
    {
        findOpened();
        listChildren();
    }

private:
    const GraphModule &gm_;
    const Graph &g_;
    const ExportOptions &options_;
    PythonSource out_;
    std::set<std::string> opened_; // modules of torch.nn that are containers here
    std::set<std::string> torn_; // modules that are written out in their parent
    std::shared_ptr<Scope> root_;
    std::vector<std::shared_ptr<Scope>> scopes_;
    std::map<std::string, Forward> forwards_; // by module path
    std::set<std::string> chains_; // modules that are nn.Sequential
    std::map<std::string, std::vector<std::string>> childrenOf_;
    std::map<std::string, std::shared_ptr<Ctor>> ctors_;
    std::map<Ctor::Field *, std::string> parameterOf_;
    std::vector<ClassDef> classes_;
    std::string graphClasses_; // of graphs that operators call
    std::set<std::string> classNames_{ "Holder", "QuantizedWeight" };
    std::set<std::string> quantizedClasses_;
    std::set<std::string> imports_;
    std::set<std::string> imported_; // functions that are imported by name: no variable may hide them
    bool usesFunctional_ = false, usesHolder_ = false, usesOrdered_ = false, usesBuffers_ = false;
};

// Random operators outside of torch (torchvision's stochastic_depth) give their input once training is over. Written as that, the
// file needs torch alone.
void dropRandomness(GraphModule &gm)
{
    const std::vector<NodeId> order = gm.graph.order();
    for (NodeId id : order) {
        const Node n = gm.graph[id];
        if (n.op != Opcode::CallFunction || n.target.starts_with("torch."))
            continue;
        const OpView op(gm, n);
        if (!op.info() || !op.info()->random || op.arg("training") != Arg(false) || !op.input())
            continue;
        gm.graph.replaceAllUses(id, op.input());
        (void)gm.graph.erase(id);
        const std::string path = n.modulePath();
        const auto below = [&](const auto &table) {
            return std::any_of(table.begin(), table.end(), [&](const auto &e) { return e.first.starts_with(path + "."); });
        };
        const auto &left = gm.graph.order();
        if (!path.empty() && !below(gm.modules) && !below(gm.tensors)
            && std::none_of(left.begin(), left.end(), [&](NodeId other) { return gm.graph[other].modulePath() == path; }))
            gm.modules.erase(path);
    }
}

} // namespace

Result<PythonSource> writePython(const GraphModule &gm, const ExportOptions &options)
{
    // Marked leaves are modules like any other in Python.
    GraphModule flat = gm;
    std::vector<std::string> marked;
    for (const auto &[path, m] : gm.modules)
        if (m->kind == ModuleKind::Graph && !gm.callers(path).empty())
            marked.push_back(path);
    for (const std::string &path : marked)
        if (auto done = unmarkLeaf(flat, path); !done)
            return Error{ "Cannot export the leaf " + path + " as Python: " + done.message() };
    dropRandomness(flat);
    Writer w(flat, options);
    w.prepare();
    return w.write();
}

} // namespace fb
