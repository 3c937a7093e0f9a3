// torch's two texts: str(graph) and gm.code. GPL-3.0-or-later.
//
// They follow torch/fx/graph.py (CodeGen._gen_python_code, _Namespace) and node.py (format_node) of the version that traced;
// what differs between versions is the data of TextDialect. Where torch prints Python that does not parse or does not mean
// what the graph means, the default form prints what runs: infinities that an argument could hide, children named by keywords
// or with quotes, arguments named like the globals of the code, tensors as defaults, negative bases of a power.
#include "model/text/text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "model/text/python.h"
#include "model/text/tensor_text.h"

namespace fb
{

namespace
{

struct Operator {
    std::string_view name, format;
};

// torch.fx.graph.magic_methods and inplace_methods
constexpr Operator kMagic[] = { { "eq", "{} == {}" }, { "ne", "{} != {}" }, { "lt", "{} < {}" }, { "gt", "{} > {}" },
    { "le", "{} <= {}" }, { "ge", "{} >= {}" }, { "pos", "+{}" }, { "neg", "-{}" }, { "invert", "~{}" }, { "add", "{} + {}" },
    { "sub", "{} - {}" }, { "mul", "{} * {}" }, { "floordiv", "{} // {}" }, { "truediv", "{} / {}" }, { "div", "{} / {}" },
    { "mod", "{} % {}" }, { "pow", "{} ** {}" }, { "lshift", "{} << {}" }, { "rshift", "{} >> {}" }, { "and_", "{} & {}" },
    { "or_", "{} | {}" }, { "xor", "{} ^ {}" }, { "getitem", "{}[{}]" }, { "matmul", "{} @ {}" } };
constexpr Operator kInplace[] = { { "iadd", "{} += {}" }, { "iand", "{} &= {}" }, { "ifloordiv", "{} //= {}" },
    { "ilshift", "{} <<= {}" }, { "imod", "{} %= {}" }, { "imul", "{} *= {}" }, { "imatmul", "{} @= {}" }, { "ior", "{} |= {}" },
    { "ipow", "{} **= {}" }, { "irshift", "{} >>= {}" }, { "isub", "{} -= {}" }, { "itruediv", "{} /= {}" },
    { "ixor", "{} ^= {}" }, { "setitem", "{}[{}] = {}" } };

template <size_t N> std::string_view formatOf(const Operator (&table)[N], std::string_view target)
{
    if (!target.starts_with("operator."))
        return {};
    target.remove_prefix(9);
    const auto it = std::find_if(std::begin(table), std::end(table), [&](const Operator &o) { return o.name == target; });
    return it == std::end(table) ? std::string_view() : it->format;
}

// Names that every graph's code finds in its globals.
constexpr std::string_view kCustomBuiltins[] = { "inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree" };

bool isCustomBuiltin(std::string_view name)
{
    return std::find(std::begin(kCustomBuiltins), std::end(kCustomBuiltins), name) != std::end(kCustomBuiltins);
}

bool allDigits(std::string_view s)
{
    return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string joined(const std::vector<std::string> &parts, std::string_view separator)
{
    std::string out;
    for (size_t i = 0; i < parts.size(); ++i)
        (i ? out += separator : out) += parts[i];
    return out;
}

// torch.fx.graph._Namespace: unique names that hide neither builtins nor each other.
class Namespace
{
public:
    explicit Namespace(bool keepsNumbers)
        : keepsNumbers_(keepsNumbers)
    {
    }

    // `own`: the name may be a builtin's, because it is for that builtin.
    std::string create(std::string candidate, bool own)
    {
        if (!isPythonIdentifier(candidate) || candidate.find_first_not_of(kWord) != candidate.npos)
            candidate = legal(candidate);
        std::string base = candidate;
        uint64_t number = 0;
        bool numbered = false;
        if (const size_t bar = candidate.rfind('_'); bar != candidate.npos
            && allDigits(std::string_view(candidate).substr(bar + 1)) && candidate.size() - bar < 18
            && (bar > 0 || !keepsNumbers_)) {
            base = candidate.substr(0, bar);
            number = std::strtoull(candidate.c_str() + bar + 1, nullptr, 10);
            numbered = true;
        }
        if (keepsNumbers_) {
            if (!numbered || used_.contains(candidate)) {
                number = counts_[base];
                if (illegal(candidate, own))
                    candidate = base + "_" + std::to_string(++number);
            }
            while (used_.contains(candidate))
                candidate = base + "_" + std::to_string(++number);
            counts_[base] = number;
        } else {
            if (numbered)
                candidate = base + "_" + std::to_string(number);
            while (used_.contains(candidate) || illegal(candidate, own))
                candidate = base + "_" + std::to_string(++number);
        }
        used_.insert(candidate);
        return candidate;
    }

    static std::string legal(std::string_view candidate)
    {
        std::string out;
        bool gap = false;
        for (char c : candidate) {
            const bool word = kWord.find(c) != kWord.npos;
            if (word || !gap)
                out += word ? c : '_';
            gap = !word;
        }
        if (out.empty())
            return "_unnamed";
        return out[0] >= '0' && out[0] <= '9' ? "_" + out : out;
    }

private:
    static constexpr std::string_view kWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

    static bool illegal(std::string_view name, bool own)
    {
        return isPythonKeyword(name) || (!own && (isPythonBuiltin(name) || isCustomBuiltin(name)));
    }

    bool keepsNumbers_;
    std::unordered_set<std::string> used_;
    std::unordered_map<std::string, uint64_t> counts_;
};

std::string_view shortName(std::string_view qualified)
{
    return qualified.substr(qualified.rfind('.') + 1);
}

// An enum member's class and name: "net.Mode.FAST" is ("net.Mode", "FAST"), because its repr is <Mode.FAST: 1> or, where that
// is not known, because classes are capitalised.
std::pair<std::string_view, std::string_view> enumMember(const ArgSymbol &symbol)
{
    const std::string_view name = symbol.name;
    const size_t dot = name.rfind('.');
    if (dot == name.npos)
        return {};
    const std::string_view cls = name.substr(0, dot), member = name.substr(dot + 1), shortClass = shortName(cls);
    const bool is = symbol.repr.empty()
        ? !name.starts_with("torch.") && !shortClass.empty() && shortClass[0] >= 'A' && shortClass[0] <= 'Z'
        : symbol.repr.starts_with("<" + std::string(shortClass) + "." + std::string(member) + ":");
    return is ? std::pair(cls, member) : std::pair<std::string_view, std::string_view>();
}

// Prints arguments. Plain is Python's repr(); Call is torch's _get_repr, which names the globals that it needs.
class ArgPrinter
{
public:
    enum Form { Plain, Call };

    virtual ~ArgPrinter() = default;

    std::string repr(const Arg &arg, Form form)
    {
        struct Visit {
            ArgPrinter &p;
            Form form;
            std::string operator()(const ArgNone &) { return "None"; }
            std::string operator()(bool v) { return v ? "True" : "False"; }
            std::string operator()(int64_t v) { return std::to_string(v); }
            std::string operator()(double v) { return p.number(v); }
            std::string operator()(const std::complex<double> &v) { return p.number(v); }
            std::string operator()(const std::string &v) { return pythonRepr(std::string_view(v)); }
            std::string operator()(NodeId v) { return p.nodeName(v); }
            std::string operator()(const ArgBigInt &v) { return v.digits; }
            std::string operator()(const ArgDType &v) { return p.global(v.name); }
            std::string operator()(const ArgDevice &v)
            {
                const size_t colon = v.name.find(':');
                return p.global("device") + "(type=" + pythonRepr(std::string_view(v.name).substr(0, colon))
                    + (colon == v.name.npos ? "" : ", index=" + v.name.substr(colon + 1)) + ")";
            }
            std::string operator()(const ArgLayout &v) { return p.global(v.name); }
            std::string operator()(const ArgMemoryFormat &v) { return p.global(v.name); }
            std::string operator()(const ArgEllipsis &) { return p.global("builtins.Ellipsis"); }
            std::string operator()(const ArgSymbol &v) { return p.symbol(v, form); }
            std::string operator()(const ArgOpaque &v) { return v.repr; }
            std::string operator()(const Tensor &v) { return p.tensor(*v, form); }
            std::string operator()(const std::shared_ptr<const ArgSequence> &v)
            {
                const Form inner = p.nested_ ? form : Plain;
                std::vector<std::string> items;
                for (const Arg &item : v->items)
                    items.push_back(p.repr(item, inner));
                std::string text = joined(items, ", ");
                if (v->kind == ArgSequence::Size && !(form == Call && p.nested_))
                    return p.global("torch.Size") + "([" + text + "])";
                if (v->kind == ArgSequence::List)
                    return "[" + text + "]";
                return "(" + text + (items.size() == 1 ? ",)" : ")");
            }
            std::string operator()(const std::shared_ptr<const ArgDict> &v)
            {
                const Form inner = p.runnable_ ? form : Plain;
                std::vector<std::string> items;
                for (const auto &[key, value] : v->items)
                    items.push_back(p.repr(key, inner) + ": " + p.repr(value, inner));
                return "{" + joined(items, ", ") + "}";
            }
            std::string operator()(const std::shared_ptr<const ArgSlice> &v)
            {
                const Form inner = p.nested_ ? form : Plain;
                if (v->isRange) {
                    std::string text = p.global("builtins.range") + "(" + p.repr(v->start, inner) + ", " + p.repr(v->stop, inner);
                    return text + (v->step == Arg(1) ? "" : ", " + p.repr(v->step, inner)) + ")";
                }
                return p.global("builtins.slice") + "(" + p.repr(v->start, inner) + ", " + p.repr(v->stop, inner) + ", "
                    + p.repr(v->step, inner) + ")";
            }
            std::string operator()(const std::shared_ptr<const ArgNamedTuple> &v)
            {
                std::vector<std::string> items;
                for (const auto &[name, value] : v->fields)
                    items.push_back((form == Call ? "" : name + "=") + p.repr(value, p.runnable_ ? form : Plain));
                if (form == Plain)
                    return std::string(shortName(v->type)) + "(" + joined(items, ", ") + ")";
                return p.global(v->type) + "(" + joined(items, ", ") + (items.size() == 1 && !p.runnable_ ? ",)" : ")");
            }
        };
        return std::visit(Visit{ *this, form }, arg.value());
    }

protected:
    ArgPrinter(bool nested, bool runnable)
        : nested_(nested || runnable)
        , runnable_(runnable)
    {
    }

    virtual std::string nodeName(NodeId id) = 0;
    virtual std::string global(const std::string &qualified) = 0; // how code refers to it
    virtual std::string symbol(const ArgSymbol &v, Form)
    {
        if (!v.repr.empty())
            return v.repr;
        if (const auto [cls, member] = enumMember(v); !cls.empty())
            return std::string(shortName(cls)) + "." + std::string(member);
        return global(v.name);
    }
    virtual std::string number(double v) { return pythonRepr(v); }
    virtual std::string number(std::complex<double> v) { return pythonRepr(v); }
    virtual std::string tensor(const TensorData &t, Form) { return tensorRepr(t); }

    bool nested_; // does _get_repr go into tuples, lists and slices?
    bool runnable_;
};

// --- str(graph) ------------------------------------------------------------------------------------------------------

class GraphPrinter : ArgPrinter
{
public:
    GraphPrinter(const GraphModule &gm, const TextDialect &dialect)
        : ArgPrinter(false, false)
        , graph_(gm.graph)
        , dialect_(dialect)
    {
    }

    std::string text()
    {
        std::string body;
        for (NodeId id : graph_.order()) {
            const Node &n = graph_[id];
            body += "\n    ";
            if (n.op == Opcode::Output) { // torch leaves its type out
                body += "return " + (n.args.empty() ? "None" : str(n.args[0]));
                continue;
            }
            const std::string &type = n.typeText.empty() ? n.type : n.typeText;
            body += "%" + n.name + " : " + (type.empty() ? "" : type + " ") + (dialect_.numUsers ? "[num_users=" : "[#users=")
                + std::to_string(graph_.users(id).size()) + "] = " + std::string(opcodeName(n.op)) + "[target=" + n.target + "]";
            if (n.op == Opcode::Placeholder) {
                if (!n.args.empty())
                    body += "(default=" + str(n.args[0]) + ")";
            } else if (n.op != Opcode::GetAttr) {
                std::vector<std::string> args, kwargs;
                for (const Arg &a : n.args)
                    args.push_back(format(a));
                for (const auto &[key, value] : n.kwargs)
                    kwargs.push_back(key + ": " + format(value));
                body += "(args = (" + joined(args, ", ") + (args.size() == 1 ? ",)" : ")") + ", kwargs = {" + joined(kwargs, ", ")
                    + "})";
            }
        }
        return "graph():" + body;
    }

private:
    std::string nodeName(NodeId id) override { return graph_[id].name; }
    std::string global(const std::string &qualified) override
    {
        return qualified.starts_with("builtins.") ? qualified.substr(9) : qualified;
    }

    // Python's str()
    std::string str(const Arg &a)
    {
        if (auto *text = a.as<std::string>())
            return *text;
        if (auto *device = a.as<ArgDevice>())
            return device->name;
        if (auto *symbol = a.as<ArgSymbol>(); symbol && !symbol->str.empty())
            return symbol->str;
        if (auto *opaque = a.as<ArgOpaque>(); opaque && !opaque->str.empty())
            return opaque->str;
        return repr(a, Plain);
    }

    // torch.fx.node._format_arg
    std::string format(const Arg &a)
    {
        std::vector<std::string> items;
        if (auto *sequence = a.sequence()) {
            for (const Arg &item : sequence->items)
                items.push_back(format(item));
            if (sequence->kind == ArgSequence::List)
                return "[" + joined(items, ", ") + "]";
        } else if (auto *named = a.named()) {
            for (const auto &field : named->fields)
                items.push_back(format(field.second));
        } else if (auto *dict = a.dictionary()) {
            for (const auto &[key, value] : dict->items)
                items.push_back(str(key) + ": " + format(value));
            return "{" + joined(items, ", ") + "}";
        } else {
            return (a.node() ? "%" : "") + str(a);
        }
        return "(" + joined(items, ", ") + (items.size() == 1 ? ",)" : ")");
    }

    const Graph &graph_;
    TextDialect dialect_;
};

// --- gm.code ---------------------------------------------------------------------------------------------------------

class CodePrinter : ArgPrinter
{
public:
    CodePrinter(const GraphModule &gm, const TextDialect &dialect, bool strict)
        : ArgPrinter(dialect.nestedArguments, !strict)
        , gm_(gm)
        , graph_(gm.graph)
        , dialect_(dialect)
        , strict_(strict)
        , names_(dialect.keepsNumbers)
    {
        for (std::string_view name : kCustomBuiltins)
            names_.create(std::string(name), true);
        if (!strict) {
            for (const auto &[name, value] : gm.provenance.globals)
                if (value.size() > 2 && pythonRepr(std::string_view(value).substr(1, value.size() - 2)) == value)
                    unevaluated_.emplace(name, value);
            findHidden();
        }
    }

    std::vector<CodeLine> lines()
    {
        findLastUses();
        std::vector<CodeLine> body;
        bool statements = false;
        for (NodeId id : graph_.order()) {
            const Node &n = graph_[id];
            std::string text = statement(n);
            if (text.empty())
                continue;
            statements = true;
            if (n.op != Opcode::Placeholder && n.op != Opcode::Output)
                text += frees(n);
            addLines(body, text, id);
        }
        if (!statements && (!strict_ || dialect_.passForNoBody || graph_.size() == 0))
            body.push_back({ "    pass", {} });

        std::vector<CodeLine> out{ { "", {} } };
        std::vector<std::string> before = aliases_;
        for (const std::string &name : gm_.provenance.wrapped)
            if (called_.contains(name))
                before.push_back("torch.fx._symbolic_trace.wrap(" + doubleQuoted(name) + ")");
        if (before.empty())
            before.emplace_back();
        for (std::string &line : before)
            out.push_back({ std::move(line), {} });
        out.push_back({ "", {} });
        out.push_back({ signature(), {} });
        std::move(body.begin(), body.end(), std::back_inserter(out));
        out.push_back({ "    ", {} });
        return out;
    }

    std::string argument(const Arg &arg) { return repr(arg, Call); }

    // What the code refers to that is neither a builtin nor in torch, by its name there.
    std::map<std::string, std::string> globals() const
    {
        std::map<std::string, std::string> out;
        for (const auto &[name, qualified] : gm_.provenance.globals) {
            if (unevaluated_.contains(name))
                continue;
            const auto known = spelled_.find(name);
            out[known == spelled_.end() ? name : known->second] = qualified;
        }
        for (const auto &[qualified, name] : globals_)
            out[name] = qualified;
        return out;
    }

private:
    std::string nodeName(NodeId id) override
    {
        if (nodeNames_.size() <= id.value)
            nodeNames_.resize(std::max<size_t>(graph_.nextId(), id.value + 1));
        std::string &name = nodeNames_[id.value];
        if (name.empty())
            name = names_.create(graph_[id].name, false);
        return name;
    }

    // CodeGen's add_global. A name from torch stays qualified; any other gets a name of its own ("pkg_f").
    std::string global(const std::string &qualified) override
    {
        std::string name = qualified;
        if (name.starts_with("builtins."))
            return visible(name.substr(9));
        if (name.starts_with("operator."))
            name.insert(0, "_");
        if (isCustomBuiltin(name)
            || (name.starts_with("torch.") && !name.starts_with("torch._dynamo.") && !name.starts_with("torch._inductor.")))
            return visible(name);
        return visible(nameOf(name, name));
    }

    // The name that code has for what is called `qualified` elsewhere, made after `hint`.
    const std::string &nameOf(const std::string &qualified, const std::string &hint)
    {
        auto [it, fresh] = globals_.try_emplace(qualified);
        if (!fresh)
            return it->second;
        const std::string spelled = Namespace::legal(qualified); // as an annotation spells it
        auto [known, first] = spelled_.try_emplace(spelled);
        if (first)
            known->second = names_.create(hint, isPythonBuiltin(hint));
        return it->second = known->second;
    }

    // An annotation, with its names as this code has them: a node may be called like one.
    std::string annotation(const Node &n)
    {
        std::string out;
        const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c < 0; };
        for (size_t i = 0; i < n.type.size();) {
            size_t end = i;
            while (end < n.type.size() && word(n.type[end]))
                ++end;
            const std::string name = n.type.substr(i, end - i);
            if (name.empty()) {
                out += n.type[i++];
                continue;
            }
            i = end;
            if (name.find('.') != name.npos || isPythonBuiltin(name) || isCustomBuiltin(name)) {
                out += name;
                continue;
            }
            if (const auto literal = unevaluated_.find(name); literal != unevaluated_.end()) {
                out += literal->second;
                continue;
            }
            auto [known, first] = spelled_.try_emplace(name);
            if (first)
                known->second = names_.create(name, false);
            out += known->second;
        }
        return out;
    }

    // An argument of forward may be called `torch` or `float`; what it hides is reached through another name.
    std::string visible(const std::string &name)
    {
        const std::string root = name.substr(0, name.find('.'));
        if (!hidden_.contains(root))
            return name;
        auto [it, fresh] = hiddenAs_.try_emplace(root);
        if (fresh) {
            it->second = names_.create("_" + root, false);
            aliases_.push_back(it->second + " = " + root);
        }
        return it->second + name.substr(root.size());
    }

    // torch names enums and its own operators; of any other symbol it prints the repr, which is no code.
    std::string symbol(const ArgSymbol &v, Form form) override
    {
        const auto [cls, member] = enumMember(v);
        const bool named = !cls.empty() || v.name.starts_with("torch.ops.") || v.repr.empty();
        if (strict_ && !v.repr.empty() && !(named && form == Call && dialect_.nestedArguments))
            return v.repr;
        if (cls.empty())
            return global(v.name);
        if (cls.starts_with("torch."))
            return global(std::string(cls)) + "." + std::string(member);
        return visible(nameOf(std::string(cls), std::string(shortName(cls)))) + "." + std::string(member);
    }

    std::string number(double v) override
    {
        const std::string text = pythonRepr(v);
        return strict_ || std::isfinite(v) ? text : visible("float") + "('" + text + "')";
    }

    // 1j and (1+2j) are sums, in which infinities and the sign of zero get lost.
    std::string number(std::complex<double> v) override
    {
        const bool exact = std::isfinite(v.real()) && std::isfinite(v.imag()) && !(v.real() == 0 && std::signbit(v.real()))
            && !(v.imag() == 0 && std::signbit(v.imag()));
        return strict_ || exact ? pythonRepr(v) : visible("complex") + "(" + number(v.real()) + ", " + number(v.imag()) + ")";
    }

    std::string tensor(const TensorData &t, Form form) override
    {
        if (strict_ && !(form == Call && dialect_.nestedArguments))
            return tensorRepr(t);
        const std::string dtype(dtypeName(t.dtype));
        std::vector<std::string> sizes;
        for (int64_t s : t.sizes)
            sizes.push_back(std::to_string(s));
        const std::string shape = "[" + joined(sizes, ", ") + "]";
        if (strict_)
            return "torch.Tensor(size=" + shape + ", dtype=" + dtype + ")";
        return visible("torch") + ".tensor(" + tensorLiteral(t, visible("float")) + ", dtype=" + visible("torch") + "." + dtype
            + ")" + (t.numel() == 0 ? ".reshape(" + shape + ")" : "");
    }

    // Operands, defaults and outputs are printed by repr() before _get_repr was asked everywhere.
    std::string operand(const Arg &a) { return repr(a, nested_ ? Call : Plain); }

    std::string arguments(const ArgList &args, size_t from, const Kwargs &kwargs)
    {
        std::vector<std::string> parts;
        for (size_t i = from; i < args.size(); ++i)
            parts.push_back(repr(args[i], Call));
        for (const auto &[key, value] : kwargs)
            if (strict_ || (isPythonIdentifier(key) && !isPythonKeyword(key)))
                parts.push_back(key + " = " + repr(value, Call));
            else
                parts.push_back("**{" + pythonRepr(std::string_view(key)) + ": " + repr(value, Call) + "}");
        return joined(parts, ", ");
    }

    // torch.fx.graph._format_target: self.layer1.conv, getattr(self, "0")
    std::string attribute(std::string base, std::string_view target)
    {
        for (size_t begin = 0; begin <= target.size();) {
            const size_t end = std::min(target.find('.', begin), target.size());
            const std::string_view name = target.substr(begin, end - begin);
            if (isPythonIdentifier(name) && (strict_ || !isPythonKeyword(name)))
                (base += ".") += name;
            else
                base = visible("getattr") + "(" + base + ", " + (strict_ ? "\"" + std::string(name) + "\"" : doubleQuoted(name))
                    + ")";
            begin = end + 1;
        }
        return base;
    }

    // What stands before a dot: 3.real would be a number.
    std::string owner(const Arg &a)
    {
        const std::string text = operand(a);
        return !strict_ && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')) ? "(" + text + ")" : text;
    }

    // `x += y` gives x another value where x is a number or a tuple: right only for a tensor, or when nobody looks at x again.
    bool changesInPlace(const Node &n) const
    {
        const NodeId x = n.args.empty() ? NodeId() : n.args[0].node();
        if (!x)
            return false;
        if (n.target == "operator.setitem" || graph_[x].meta)
            return true;
        const auto last = lastUses_.find(n.id);
        return last != lastUses_.end() && std::find(last->second.begin(), last->second.end(), x) != last->second.end();
    }

    std::string operation(std::string_view format, const ArgList &args)
    {
        std::string out;
        size_t next = 0;
        for (size_t i = 0; i < format.size(); ++i) {
            if (format.substr(i, 2) != "{}") {
                out += format[i];
                continue;
            }
            std::string text = next < args.size() ? operand(args[next]) : "";
            if (!strict_ && format == "{} ** {}" && next == 0 && text.starts_with('-'))
                text = "(" + text + ")"; // -2 ** x is -(2 ** x)
            out += text;
            ++next, ++i;
        }
        return out;
    }

    std::string statement(const Node &n)
    {
        const std::string type = annotation(n), annotation = type.empty() ? "" : " : " + type;
        switch (n.op) {
        case Opcode::Placeholder:
            return parameter(n, annotation);
        case Opcode::Output:
            if (!type.empty())
                returns_ = " -> " + type;
            return "return " + (n.args.empty() ? "None" : operand(n.args[0]));
        case Opcode::GetAttr:
            return nodeName(n.id) + annotation + " = " + attribute(root_, n.target);
        case Opcode::CallModule: {
            const std::string left = nodeName(n.id) + annotation + " = ";
            const std::string callee = attribute(root_, n.target);
            return left + callee + "(" + arguments(n.args, 0, n.kwargs) + ")";
        }
        case Opcode::CallMethod: {
            const std::string left = nodeName(n.id) + annotation + " = ";
            const std::string callee = attribute(n.args.empty() ? "" : owner(n.args[0]), n.target);
            return left + callee + "(" + arguments(n.args, 1, n.kwargs) + ")";
        }
        case Opcode::CallFunction:
            break;
        }
        if (const auto format = formatOf(kMagic, n.target); !format.empty()) {
            const std::string left = nodeName(n.id) + annotation + " = ";
            return left + operation(format, n.args);
        }
        if (const auto format = formatOf(kInplace, n.target); !format.empty() && (strict_ || changesInPlace(n))) {
            const std::string change = operation(format, n.args) + ";  ";
            const bool none = n.args.empty() || (!strict_ && n.target == "operator.setitem");
            return change + nodeName(n.id) + annotation + " = " + (none ? "None" : operand(n.args[0]));
        }
        const std::string callee = global(n.target);
        const std::string left = nodeName(n.id) + annotation + " = ";
        if (n.target == "builtins.getattr" && n.args.size() == 2)
            if (auto *name = n.args[1].as<std::string>(); name && isPythonIdentifier(*name))
                return left + attribute(owner(n.args[0]), *name);
        called_.insert(callee);
        return left + callee + "(" + arguments(n.args, 0, n.kwargs) + ")";
    }

    std::string parameter(const Node &n, const std::string &annotation)
    {
        const std::string stars = n.target.substr(0, std::min(n.target.find_first_not_of('*'), n.target.size()));
        std::string raw = n.target;
        std::erase(raw, '*');
        if (!strict_ && (isPythonKeyword(raw) || !parameterNames_.insert(raw).second))
            raw = nodeName(n.id); // no argument can have that name
        std::string value, body;
        if (!n.args.empty()) {
            value = operand(n.args[0]);
            bool needsNode = false;
            forEachNode(n.args[0], [&](NodeId) { needsNode = true; });
            if (!strict_ && needsNode) { // a default that only the body can know
                body = nodeName(n.id) + " = " + value + " if " + raw + " is None else " + raw;
                value = "None";
            }
        }
        // Python allows no required argument behind one with a default, unless it is given by keyword.
        auto &list = strict_                                                             ? parameters_
            : stars == "*"                                                               ? star_
            : stars == "**"                                                              ? keywords_
            : !keywordOnly_.empty() || !star_.empty() || (sawDefault_ && n.args.empty()) ? keywordOnly_
                                                                                         : parameters_;
        sawDefault_ |= !n.args.empty();
        list.push_back(stars + raw + annotation + (n.args.empty() ? "" : " = " + value));
        const std::string name = nodeName(n.id);
        return !body.empty() ? body : name != raw ? name + " = " + raw : "";
    }

    std::string signature()
    {
        if (parameters_.empty() || parameters_[0] != root_)
            parameters_.insert(parameters_.begin(), root_);
        if (!keywordOnly_.empty() && star_.empty())
            star_.emplace_back("*");
        for (const auto *list : { &star_, &keywordOnly_, &keywords_ })
            parameters_.insert(parameters_.end(), list->begin(), list->end());
        return "def forward(" + joined(parameters_, ", ") + ")" + returns_ + ":";
    }

    void findLastUses()
    {
        const auto &order = graph_.order();
        std::vector<bool> seen(graph_.nextId());
        for (size_t i = order.size(); i-- > 0;)
            for (NodeId in : graph_.inputs(order[i]))
                if (!seen[in.value]) {
                    seen[in.value] = true;
                    lastUses_[order[i]].push_back(in);
                }
    }

    std::string frees(const Node &n)
    {
        std::vector<std::string> names;
        if (auto it = lastUses_.find(n.id); it != lastUses_.end())
            for (NodeId id : it->second)
                names.push_back(nodeName(id));
        if (dialect_.freesUnused && graph_.users(n.id).empty())
            names.push_back(nodeName(n.id));
        return names.empty() ? "" : ";  " + joined(names, " = ") + " = None";
    }

    // Names of arguments, which hide globals and must not be given to other values.
    void findHidden()
    {
        bool takesSelf = false;
        for (NodeId id : graph_.order()) {
            const Node &n = graph_[id];
            takesSelf |= n.name == "self";
            if (n.op != Opcode::Placeholder)
                continue;
            std::string raw = n.target;
            std::erase(raw, '*');
            takesSelf |= raw == "self";
            if (hidden_.insert(raw).second && raw != n.name && !isPythonKeyword(raw) && !isCustomBuiltin(raw))
                names_.create(raw, true);
        }
        if (takesSelf) {
            root_ = "module";
            while (graph_.find(root_) || hidden_.contains(root_))
                root_ += "_";
            names_.create(root_, false);
        }
    }

    static void addLines(std::vector<CodeLine> &out, std::string_view text, NodeId node)
    {
        for (size_t begin = 0; begin <= text.size();) {
            const size_t end = std::min(text.find('\n', begin), text.size());
            out.push_back({ "    " + std::string(text.substr(begin, end - begin)), node });
            begin = end + 1;
        }
    }

    const GraphModule &gm_;
    const Graph &graph_;
    TextDialect dialect_;
    bool strict_;
    // The literals that names of annotations stand for where those are strings (`from __future__ import annotations`): torch
    // gives them names that only its own globals know. Empty in the strict form.
    std::unordered_map<std::string, std::string> unevaluated_;
    Namespace names_;
    std::string root_ = "self";
    std::vector<std::string> nodeNames_; // by id
    std::unordered_map<std::string, std::string> globals_; // qualified name -> name in the code
    std::unordered_map<std::string, std::string> spelled_; // the same by the name with underscores for dots
    std::set<std::string> hidden_; // names of arguments
    std::map<std::string, std::string> hiddenAs_;
    std::vector<std::string> aliases_;
    std::set<std::string> called_; // names of functions
    std::vector<std::string> parameters_, star_, keywordOnly_, keywords_; // the last three are part of the first in strict form
    std::set<std::string> parameterNames_;
    bool sawDefault_ = false;
    std::string returns_;
    std::unordered_map<NodeId, std::vector<NodeId>> lastUses_;
};

} // namespace

TextDialect TextDialect::of(std::string_view version)
{
    // Unknown versions print as the newest one.
    const std::string text(version);
    const int major = text.empty() ? 2 : std::atoi(text.c_str());
    const size_t dot = text.find('.');
    const int minor = dot == text.npos ? 99 : std::atoi(text.c_str() + dot + 1);
    TextDialect d;
    d.numUsers = major >= 2;
    d.freesUnused = d.nestedArguments = d.keepsNumbers = major > 2 || (major == 2 && minor >= 2);
    d.passForNoBody = !d.freesUnused;
    return d;
}

std::string torchGraphText(const GraphModule &gm)
{
    return GraphPrinter(gm, TextDialect::of(gm.provenance.torchVersion)).text();
}

std::vector<CodeLine> torchCodeLines(const GraphModule &gm, const CodeOptions &options)
{
    return CodePrinter(gm, TextDialect::of(gm.provenance.torchVersion), options.strictTorch).lines();
}

std::string torchCode(const GraphModule &gm, const CodeOptions &options)
{
    const auto lines = torchCodeLines(gm, options);
    std::string out;
    for (size_t i = 0; i < lines.size(); ++i)
        (i ? out += "\n" : out) += lines[i].text;
    return out;
}

std::map<std::string, std::string> torchCodeGlobals(const GraphModule &gm, const CodeOptions &options)
{
    CodePrinter printer(gm, TextDialect::of(gm.provenance.torchVersion), options.strictTorch);
    printer.lines();
    return printer.globals();
}

std::string argText(const GraphModule &gm, const Arg &arg)
{
    return CodePrinter(gm, TextDialect::of(gm.provenance.torchVersion), false).argument(arg);
}

} // namespace fb
