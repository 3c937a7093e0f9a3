// The canonical text: everything of a graph, one node a line, and the parser that reads it back. GPL-3.0-or-later.
//
//   %add = call_function "operator.add" (%x, 1, alpha=0.5) : "torch.Tensor" is float32[1, 64] in "layer1.0" "pkg.Block" 0 at
//   "net.py" 12 "forward" "x + y" meta (note="kept")
//
// Only what follows the arguments may be left out; the order is fixed. Values are Python literals, `%name` for a node, and calls
// of a few words for what Python has no literal for: dtype("torch.int8"), slice(0, None, 2), size(1, 3), tensor(...).
#include "model/text/text.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_map>

#include "model/text/python.h"

namespace fb
{

namespace
{

constexpr std::string_view kHeader = "fuseboard graph 1";
constexpr int kMaxDepth = 2000; // of nested arguments: a hostile text must not overflow the stack

// --- writing ---------------------------------------------------------------------------------------------------------

class Writer
{
public:
    explicit Writer(const Graph &graph)
        : graph_(graph)
    {
    }

    std::string text()
    {
        (out_ += kHeader) += '\n';
        for (NodeId id : graph_.order())
            node(graph_[id]);
        return std::move(out_);
    }

private:
    void name(std::string_view name)
    {
        out_ += '%';
        out_ += isPythonIdentifier(name) ? std::string(name) : doubleQuoted(name);
    }

    void node(const Node &n)
    {
        name(n.name);
        out_ += " = " + std::string(opcodeName(n.op)) + " " + doubleQuoted(n.target) + " (";
        const char *separator = "";
        for (const Arg &a : n.args) {
            out_ += separator;
            value(a);
            separator = ", ";
        }
        keywords(n.kwargs, separator);
        out_ += ")";
        if (!n.type.empty() || !n.typeText.empty())
            out_ += " : " + doubleQuoted(n.type) + (n.typeText.empty() ? "" : " " + doubleQuoted(n.typeText));
        if (n.meta) {
            (out_ += " is ") += dtypeName(n.meta->dtype);
            ints("[", n.meta->shape, "]");
        }
        if (n.stack) {
            out_ += " in";
            for (const ModuleFrame &f : *n.stack)
                out_ += " " + doubleQuoted(f.path) + " " + doubleQuoted(f.className) + " " + std::to_string(f.call);
        }
        if (n.source)
            out_ += " at " + doubleQuoted(n.source->file) + " " + std::to_string(n.source->line) + " "
                + doubleQuoted(n.source->function) + " " + doubleQuoted(n.source->code);
        if (n.metadata) {
            out_ += " meta (";
            keywords(*n.metadata, "");
            out_ += ")";
        }
        out_ += '\n';
    }

    void keywords(const Kwargs &kwargs, const char *separator)
    {
        for (const auto &[key, a] : kwargs) {
            out_ += separator + (isPythonIdentifier(key) ? key : doubleQuoted(key)) + "=";
            value(a);
            separator = ", ";
        }
    }

    template <class T> void ints(const char *open, const std::vector<T> &values, const char *close)
    {
        out_ += open;
        for (size_t i = 0; i < values.size(); ++i)
            out_ += (i ? ", " : "") + std::to_string(values[i]);
        out_ += close;
    }

    void items(const char *open, const ArgList &list, const char *close)
    {
        out_ += open;
        for (size_t i = 0; i < list.size(); ++i) {
            if (i)
                out_ += ", ";
            value(list[i]);
        }
        out_ += close;
    }

    // Strings, without the empty ones at the end.
    void texts(const char *what, std::vector<std::string_view> list)
    {
        while (list.size() > 1 && list.back().empty())
            list.pop_back();
        (out_ += what) += "(";
        for (size_t i = 0; i < list.size(); ++i)
            out_ += (i ? ", " : "") + doubleQuoted(list[i]);
        out_ += ")";
    }

    void word(const char *what, std::string_view text) { out_ += std::string(what) + "(" + doubleQuoted(text) + ")"; }

    void value(const Arg &a)
    {
        std::visit([this](const auto &v) { put(v); }, a.value());
    }

    void put(const ArgNone &) { out_ += "None"; }
    void put(bool v) { out_ += v ? "True" : "False"; }
    void put(int64_t v) { out_ += std::to_string(v); }
    void put(double v) { out_ += pythonRepr(v); }
    void put(const std::complex<double> &v) { out_ += "complex(" + pythonRepr(v.real()) + ", " + pythonRepr(v.imag()) + ")"; }
    void put(const std::string &v) { out_ += doubleQuoted(v); }
    void put(NodeId v) { name(graph_[v].name); }
    void put(const ArgBigInt &v) { word("int", v.digits); }
    void put(const ArgDType &v) { word("dtype", v.name); }
    void put(const ArgDevice &v) { word("device", v.name); }
    void put(const ArgLayout &v) { word("layout", v.name); }
    void put(const ArgMemoryFormat &v) { word("memory_format", v.name); }
    void put(const ArgEllipsis &) { out_ += "..."; }
    void put(const ArgSymbol &v) { texts("symbol", { v.name, v.repr, v.str }); }
    void put(const ArgOpaque &v) { texts("opaque", { v.type, v.repr, v.str }); }
    void put(const Tensor &t)
    {
        (out_ += "tensor(") += dtypeName(t->dtype);
        ints("[", t->sizes, "], ");
        out_ += '"';
        contents(*t);
        out_ += '"';
        if (t->quant) {
            out_ += ", " + std::to_string(t->quant->axis) + ", [";
            for (size_t i = 0; i < t->quant->scales.size(); ++i)
                out_ += (i ? ", " : "") + pythonRepr(t->quant->scales[i]);
            ints("], [", t->quant->zeroPoints, "]");
        }
        out_ += ")";
    }
    void put(const std::shared_ptr<const ArgSequence> &v)
    {
        if (v->kind == ArgSequence::List)
            items("[", v->items, "]");
        else
            items(v->kind == ArgSequence::Tuple ? "(" : "size(", v->items,
                v->kind == ArgSequence::Tuple && v->items.size() == 1 ? ",)" : ")");
    }
    void put(const std::shared_ptr<const ArgDict> &v)
    {
        out_ += "{";
        for (size_t i = 0; i < v->items.size(); ++i) {
            if (i)
                out_ += ", ";
            value(v->items[i].first);
            out_ += ": ";
            value(v->items[i].second);
        }
        out_ += "}";
    }
    void put(const std::shared_ptr<const ArgSlice> &v)
    {
        items(v->isRange ? "range(" : "slice(", { v->start, v->stop, v->step }, ")");
    }
    void put(const std::shared_ptr<const ArgNamedTuple> &v)
    {
        out_ += "named(" + doubleQuoted(v->type);
        for (const auto &[field, a] : v->fields) {
            out_ += ", " + (isPythonIdentifier(field) ? field : doubleQuoted(field)) + "=";
            value(a);
        }
        out_ += ")";
    }

    // The elements' bytes in row-major order, as hex.
    void contents(const TensorData &t)
    {
        constexpr char kHex[] = "0123456789abcdef";
        const size_t width = dtypeSize(t.dtype);
        std::vector<int64_t> index(t.sizes.size());
        for (int64_t left = t.numel(); left > 0; --left) {
            int64_t offset = 0;
            for (size_t d = 0; d < index.size(); ++d)
                offset += index[d] * t.strides[d];
            for (size_t b = 0; b < width; ++b) {
                const auto byte = std::to_integer<unsigned>(t.data[size_t(offset) * width + b]);
                out_ += { kHex[byte >> 4], kHex[byte & 15] };
            }
            for (size_t d = index.size(); d-- > 0 && ++index[d] == t.sizes[d];)
                index[d] = 0;
        }
    }

    const Graph &graph_;
    std::string out_;
};

// --- reading ---------------------------------------------------------------------------------------------------------

// Thrown inside the parser only.
struct Fault {
    std::string message;
};

class Reader
{
public:
    explicit Reader(std::string_view text)
        : text_(text)
    {
    }

    Result<Graph> graph()
    {
        try {
            line();
            if (line_ != kHeader)
                fail("it does not begin with \"" + std::string(kHeader) + "\"");
            // Nodes first and arguments after, because an argument may name a later node.
            std::vector<NodeId> ids;
            std::vector<std::string_view> lines;
            std::vector<int> numbers;
            while (line()) {
                if (line_.empty())
                    continue;
                Node n = head();
                const std::string name = n.name;
                if (graph_.find(name))
                    fail("a second node is named " + name);
                ids.push_back(graph_.append(std::move(n)));
                lines.push_back(line_);
                numbers.push_back(number_);
            }
            resolving_ = true;
            for (size_t i = 0; i < ids.size(); ++i) {
                line_ = lines[i];
                number_ = numbers[i];
                at_ = 0;
                Node n = head();
                graph_.setArgs(ids[i], std::move(n.args), std::move(n.kwargs));
            }
            return std::move(graph_);
        } catch (const Fault &fault) {
            return Error{ "line " + std::to_string(number_) + " of the graph's text: " + fault.message };
        }
    }

private:
    [[noreturn]] void fail(const std::string &message) { throw Fault{ message }; }
    [[noreturn]] void expected(const std::string &what)
    {
        const std::string_view rest = line_.substr(std::min(at_, line_.size())).substr(0, 20);
        fail("expected " + what + " at column " + std::to_string(at_ + 1)
            + (rest.empty() ? ", where the line ends" : ", not \"" + std::string(rest) + "\""));
    }

    bool line()
    {
        if (next_ >= text_.size() && number_ > 0)
            return false;
        const size_t end = std::min(text_.find('\n', next_), text_.size());
        line_ = text_.substr(next_, end - next_);
        next_ = end + 1;
        at_ = 0;
        ++number_;
        if (!isUtf8(line_))
            fail("it is not UTF-8");
        return true;
    }

    void space()
    {
        while (at_ < line_.size() && line_[at_] == ' ')
            ++at_;
    }
    bool accept(std::string_view token)
    {
        space();
        if (!line_.substr(at_).starts_with(token))
            return false;
        at_ += token.size();
        return true;
    }
    void expect(std::string_view token)
    {
        if (!accept(token))
            expected("\"" + std::string(token) + "\"");
    }
    char peek()
    {
        space();
        return at_ < line_.size() ? line_[at_] : '\0';
    }
    std::string word()
    {
        space();
        const size_t begin = at_;
        while (
            at_ < line_.size() && (std::isalnum(static_cast<unsigned char>(line_[at_])) || line_[at_] == '_' || line_[at_] < 0))
            ++at_;
        if (begin == at_)
            expected("a name");
        return std::string(line_.substr(begin, at_ - begin));
    }
    std::string wordOrString() { return peek() == '"' ? string() : word(); }

    int hex(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }
    int hexByte()
    {
        const int high = at_ + 1 < line_.size() ? hex(line_[at_]) : -1;
        const int low = high < 0 ? -1 : hex(line_[at_ + 1]);
        if (low < 0)
            expected("two hexadecimal digits");
        at_ += 2;
        return high * 16 + low;
    }

    std::string string()
    {
        expect("\"");
        std::string out;
        while (at_ < line_.size() && line_[at_] != '"') {
            char c = line_[at_++];
            if (c != '\\') {
                out += c;
                continue;
            }
            c = at_ < line_.size() ? line_[at_++] : '\0';
            if (c == 'x' || c == 'u' || c == 'U') { // a code point, as in Python
                uint32_t code = 0;
                for (int bytes = c == 'x' ? 1 : c == 'u' ? 2 : 4; bytes > 0; --bytes)
                    code = code << 8 | uint32_t(hexByte());
                if (code > 0x10ffff)
                    fail("no code point in an escape at column " + std::to_string(at_));
                appendUtf8(out, code);
            } else if (c == 'n' || c == 'r' || c == 't') {
                out += c == 'n' ? '\n' : c == 'r' ? '\r' : '\t';
            } else if (c == '\\' || c == '"') {
                out += c;
            } else {
                fail("unknown escape in a string at column " + std::to_string(at_));
            }
        }
        if (at_ >= line_.size())
            fail("a string does not end");
        ++at_;
        return out;
    }

    int64_t integer()
    {
        space();
        int64_t v = 0;
        const auto [end, error] = std::from_chars(line_.data() + at_, line_.data() + line_.size(), v);
        if (error != std::errc())
            expected("an integer");
        at_ = size_t(end - line_.data());
        return v;
    }

    // An int, or a float as repr() prints it.
    [[gnu::noinline]] Arg number()
    {
        space();
        if (accept("nan"))
            return Arg(std::numeric_limits<double>::quiet_NaN());
        if (accept("-inf"))
            return Arg(-std::numeric_limits<double>::infinity());
        if (accept("inf"))
            return Arg(std::numeric_limits<double>::infinity());
        const char *begin = line_.data() + at_, *stop = line_.data() + line_.size();
        int64_t i = 0;
        const auto asInt = std::from_chars(begin, stop, i);
        double d = 0;
        const auto asDouble = std::from_chars(begin, stop, d);
        if (asInt.ec == std::errc() && (asDouble.ec != std::errc() || asInt.ptr == asDouble.ptr)) {
            at_ += size_t(asInt.ptr - begin);
            return Arg(i);
        }
        if (asDouble.ec != std::errc())
            expected("a value");
        at_ += size_t(asDouble.ptr - begin);
        return Arg(d);
    }
    double real()
    {
        const Arg v = number();
        return *v.toDouble();
    }

    std::vector<int64_t> ints()
    {
        expect("[");
        std::vector<int64_t> out;
        while (!accept("]")) {
            out.push_back(integer());
            if (peek() != ']')
                expect(",");
        }
        return out;
    }

    DType dtype()
    {
        const std::string name = word();
        const auto found = dtypeFromName(name);
        if (!found)
            fail("unknown dtype " + name);
        return *found;
    }

    ArgList items(std::string_view close)
    {
        ArgList out;
        while (!accept(close)) {
            out.push_back(value());
            if (!accept(",") && peek() != close[0])
                expected("\"" + std::string(close) + "\"");
        }
        return out;
    }

    Arg value()
    {
        if (++depth_ > kMaxDepth)
            fail("arguments are nested too deeply");
        Arg v = plainValue();
        --depth_;
        return v;
    }

    // What goes into each other here takes little of the stack; all else stands in functions of its own.
    Arg plainValue()
    {
        const char c = peek();
        if (c == '%')
            return reference();
        if (c == '"')
            return Arg(string());
        if (accept("..."))
            return Arg(ArgEllipsis{});
        if (accept("["))
            return Arg::list(items("]"));
        if (accept("("))
            return Arg::tuple(items(")"));
        if (accept("{"))
            return dictionary();
        if (c == '-' || (c >= '0' && c <= '9'))
            return number();
        return namedValue();
    }

    [[gnu::noinline]] Arg namedValue()
    {
        const size_t begin = at_;
        const std::string name = word();
        if (name == "None")
            return Arg();
        if (name == "True" || name == "False")
            return Arg(name == "True");
        if (name == "nan" || name == "inf") {
            at_ = begin;
            return number();
        }
        expect("(");
        Arg v = name == "size"                   ? sizeValue()
            : name == "slice" || name == "range" ? sliceValue(name == "range")
            : name == "named"                    ? namedTuple()
                                                 : flatValue(name, begin);
        expect(")");
        return v;
    }

    [[gnu::noinline]] Arg sizeValue()
    {
        ArgList list = items(")");
        --at_; // the caller's
        return Arg::size(std::move(list));
    }

    [[gnu::noinline]] Arg sliceValue(bool isRange)
    {
        Arg start = value();
        expect(",");
        Arg stop = value();
        expect(",");
        Arg step = value();
        return isRange ? Arg::range(start, stop, step) : Arg::slice(start, stop, step);
    }

    [[gnu::noinline]] Arg namedTuple()
    {
        std::string type = string();
        std::vector<std::pair<std::string, Arg>> fields;
        while (accept(",")) {
            std::string field = wordOrString();
            expect("=");
            fields.emplace_back(std::move(field), value());
        }
        return Arg::namedTuple(std::move(type), std::move(fields));
    }

    [[gnu::noinline]] Arg flatValue(const std::string &name, size_t begin)
    {
        if (name == "int")
            return Arg(ArgBigInt{ string() });
        if (name == "dtype")
            return Arg(ArgDType{ string() });
        if (name == "device")
            return Arg(ArgDevice{ string() });
        if (name == "layout")
            return Arg(ArgLayout{ string() });
        if (name == "memory_format")
            return Arg(ArgMemoryFormat{ string() });
        if (name == "symbol" || name == "opaque") {
            std::string first = string(), repr = accept(",") ? string() : "", str = accept(",") ? string() : "";
            return name == "symbol" ? Arg(ArgSymbol{ std::move(first), std::move(repr), std::move(str) })
                                    : Arg(ArgOpaque{ std::move(first), std::move(repr), std::move(str) });
        }
        if (name == "complex") {
            const double re = real();
            expect(",");
            return Arg(std::complex<double>(re, real()));
        }
        if (name == "tensor")
            return tensor();
        at_ = begin;
        expected("a value");
    }

    Arg tensor()
    {
        const DType type = dtype();
        std::vector<int64_t> sizes = ints();
        expect(",");
        expect("\"");
        const size_t begin = at_;
        std::vector<unsigned char> bytes;
        while (at_ < line_.size() && line_[at_] != '"')
            bytes.push_back(static_cast<unsigned char>(hexByte()));
        expect("\"");
        size_t count = dtypeSize(type);
        for (int64_t s : sizes) {
            if (s < 0 || (s > 0 && count > line_.size() / size_t(s)))
                fail("a tensor's sizes do not fit its contents");
            count *= size_t(s);
        }
        if (count != bytes.size()) {
            at_ = begin;
            expected(std::to_string(count) + " bytes of a tensor");
        }
        std::optional<QuantParams> quant;
        if (accept(",")) {
            quant.emplace();
            quant->axis = int(integer());
            expect(",");
            expect("[");
            while (!accept("]")) {
                quant->scales.push_back(real());
                if (peek() != ']')
                    expect(",");
            }
            expect(",");
            quant->zeroPoints = ints();
        }
        return Arg(makeTensor(type, std::move(sizes), bytes.data(), std::move(quant)));
    }

    [[gnu::noinline]] Arg dictionary()
    {
        std::vector<std::pair<Arg, Arg>> entries;
        while (!accept("}")) {
            Arg key = value();
            expect(":");
            entries.emplace_back(std::move(key), value());
            if (peek() != '}')
                expect(",");
        }
        return Arg::dict(std::move(entries));
    }

    [[gnu::noinline]] Arg reference()
    {
        expect("%");
        const std::string name = wordOrString();
        if (!resolving_)
            return Arg();
        const NodeId id = graph_.find(name);
        if (!id)
            fail("there is no node named " + name);
        return Arg(id);
    }

    // Does the argument that comes begin with `name=`?
    bool isKeyword()
    {
        const size_t begin = at_;
        bool found = false;
        const char c = peek();
        if (c == '"') {
            string();
            found = accept("=");
        } else if (std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c < 0) {
            word();
            found = accept("=");
        }
        at_ = begin;
        return found;
    }

    Node head()
    {
        Node n;
        expect("%");
        n.name = wordOrString();
        if (n.name.empty())
            fail("a node without a name");
        expect("=");
        const std::string op = word();
        const auto opcode = opcodeFromName(op);
        if (!opcode)
            fail("unknown opcode " + op);
        n.op = *opcode;
        n.target = string();
        expect("(");
        while (!accept(")")) {
            if (isKeyword()) {
                std::string key = wordOrString();
                expect("=");
                n.kwargs.emplace_back(std::move(key), value());
            } else if (n.kwargs.empty()) {
                n.args.push_back(value());
            } else {
                fail("a positional argument follows a keyword argument at column " + std::to_string(at_ + 1));
            }
            if (peek() != ')')
                expect(",");
        }
        if (accept(":")) {
            n.type = string();
            if (peek() == '"')
                n.typeText = string();
        }
        if (accept("is ")) {
            TensorMeta meta;
            meta.dtype = dtype();
            meta.shape = ints();
            n.meta = std::move(meta);
        }
        if (accept("in")) {
            ModuleStack stack;
            while (peek() == '"') {
                ModuleFrame f;
                f.path = string();
                space();
                f.className = string();
                f.call = int(integer());
                stack.push_back(std::move(f));
            }
            n.stack = std::make_shared<const ModuleStack>(std::move(stack));
        }
        if (accept("at ")) {
            SourceLine source;
            source.file = string();
            source.line = int(integer());
            space();
            source.function = string();
            space();
            source.code = string();
            n.source = std::make_shared<const SourceLine>(std::move(source));
        }
        if (accept("meta ")) {
            Kwargs metadata;
            expect("(");
            while (!accept(")")) {
                std::string key = wordOrString();
                expect("=");
                metadata.emplace_back(std::move(key), value());
                if (peek() != ')')
                    expect(",");
            }
            n.metadata = std::make_shared<const Kwargs>(std::move(metadata));
        }
        if (peek())
            expected("the end of the line");
        return n;
    }

    std::string_view text_, line_;
    size_t next_ = 0, at_ = 0;
    int number_ = 0, depth_ = 0;
    bool resolving_ = false;
    Graph graph_;
};

} // namespace

std::string canonicalText(const Graph &graph)
{
    return Writer(graph).text();
}

Result<Graph> parseCanonical(std::string_view text)
{
    return Reader(text).graph();
}

} // namespace fb
