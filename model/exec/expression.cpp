#include "model/exec/expression.h"

#include <cctype>
#include <initializer_list>

#include "model/ir/ops.h"

namespace fb
{

namespace
{

struct SyntaxError {
    std::string what;
};

// Recursive descent over Python's precedence: conditional, or, and, not, comparison, sum, product, primary.
class Parser
{
public:
    explicit Parser(std::string_view text)
        : text_(text)
    {
        next();
    }

    // One line of a body; `block` is true for one that opens a deeper one.
    Expr statement(bool &block)
    {
        block = false;
        Expr e;
        if (accept("if") || token_ == "elif" || token_ == "else") {
            e.kind = Expr::Kind::If;
            e.text = token_ == "elif" || token_ == "else" ? token_ : "if";
            if (e.text != "if")
                next();
            if (e.text != "else")
                e.items.push_back(conditional());
            block = true;
        } else if (accept("for")) {
            e.kind = Expr::Kind::For;
            e.keywords = names();
            expect("in");
            e.items.push_back(conditional());
            block = true;
        } else if (accept("return")) {
            e.kind = Expr::Kind::Return;
            e.items.push_back(conditional());
        } else {
            e = conditional();
            if (token_ == "," || token_ == "=") {
                std::vector<Expr> targets{ std::move(e) };
                while (accept(","))
                    targets.push_back(conditional());
                expect("=");
                e = { .kind = Expr::Kind::Assign };
                for (const Expr &t : targets) {
                    if (t.kind != Expr::Kind::Name)
                        throw SyntaxError{ "only names are assigned to" };
                    e.keywords.push_back(t.text);
                }
                e.items.push_back(conditional());
            }
        }
        if (block)
            expect(":");
        if (!token_.empty())
            throw SyntaxError{ "unexpected '" + token_ + "'" };
        return e;
    }

    Expr whole()
    {
        Expr e = conditional();
        if (!token_.empty())
            throw SyntaxError{ "unexpected '" + token_ + "'" };
        return e;
    }

private:
    std::vector<std::string> names()
    {
        std::vector<std::string> out;
        do {
            out.push_back(token_);
            next();
        } while (accept(","));
        return out;
    }
    void next()
    {
        while (at_ < text_.size() && text_[at_] == ' ')
            ++at_;
        const size_t start = at_;
        const auto word = [&](size_t i) { return i < text_.size() && (std::isalnum(uint8_t(text_[i])) || text_[i] == '_'); };
        if (at_ == text_.size()) {
        } else if (text_[at_] == '\'') {
            at_ = text_.find('\'', at_ + 1);
            if (at_ == text_.npos)
                throw SyntaxError{ "a string does not end" };
            ++at_;
        } else if (std::isdigit(uint8_t(text_[at_]))) {
            while (word(at_) || (at_ < text_.size() && (text_[at_] == '.' || (text_[at_] == '-' && text_[at_ - 1] == 'e'))))
                ++at_;
        } else if (word(at_)) { // a name may hold '::' and then '.', or be torch.float32
            while (word(at_) || (at_ + 1 < text_.size() && text_[at_] == '.' && word(at_ + 1))
                || (text_.substr(at_, 2) == "::" && ++at_))
                ++at_;
        } else {
            const std::string_view two = text_.substr(at_, 2);
            at_ += two == "==" || two == "!=" || two == "<=" || two == ">=" || two == "//" ? 2 : 1;
        }
        token_ = text_.substr(start, at_ - start);
    }
    bool accept(std::string_view t)
    {
        if (token_ != t)
            return false;
        next();
        return true;
    }
    void expect(std::string_view t)
    {
        if (!accept(t))
            throw SyntaxError{ "expected '" + std::string(t) + "' before '" + token_ + "'" };
    }

    Expr conditional()
    {
        Expr value = logical(0);
        if (!accept("if"))
            return value;
        Expr condition = logical(0);
        expect("else");
        Expr e{ .kind = Expr::Kind::Conditional };
        e.items = { std::move(condition), std::move(value), conditional() };
        return e;
    }
    static Expr binary(std::string op, Expr a, Expr b)
    {
        Expr e{ .kind = Expr::Kind::Binary, .text = std::move(op) };
        e.items = { std::move(a), std::move(b) };
        return e;
    }
    Expr logical(int level)
    {
        if (level == 2) {
            if (!accept("not"))
                return comparison();
            Expr e{ .kind = Expr::Kind::Not };
            e.items = { logical(2) };
            return e;
        }
        const std::string op = level == 0 ? "or" : "and";
        Expr e = logical(level + 1);
        while (accept(op))
            e = binary(op, std::move(e), logical(level + 1));
        return e;
    }
    Expr comparison()
    {
        Expr e = arithmetic(0);
        for (const std::string op : { "==", "!=", "<=", ">=", "<", ">", "in" })
            if (accept(op))
                return binary(op, std::move(e), arithmetic(0));
        if (accept("is")) {
            const bool negated = accept("not");
            Expr same = binary("is", std::move(e), arithmetic(0));
            if (!negated)
                return same;
            Expr n{ .kind = Expr::Kind::Not };
            n.items = { std::move(same) };
            return n;
        }
        return e;
    }
    Expr arithmetic(int level)
    {
        if (level == 2)
            return primary();
        Expr e = arithmetic(level + 1);
        const std::initializer_list<const char *> sums{ "+", "-" }, products{ "*", "//", "/", "%" };
        for (bool again = true; again;) {
            again = false;
            for (const std::string op : level == 0 ? sums : products)
                if (accept(op)) {
                    e = binary(op, std::move(e), arithmetic(level + 1));
                    again = true;
                }
        }
        return e;
    }
    Expr primary()
    {
        Expr e = atom();
        while (accept("[")) {
            e = binary("[]", std::move(e), conditional());
            expect("]");
        }
        return e;
    }
    Expr atom()
    {
        if (token_.empty())
            throw SyntaxError{ "it ends too early" };
        if (accept("(")) {
            Expr e{ .kind = Expr::Kind::Sequence, .tuple = true };
            bool comma = false;
            while (!accept(")")) {
                e.items.push_back(conditional());
                if (accept(","))
                    comma = true;
                else if (token_ != ")")
                    throw SyntaxError{ "expected ')'" };
            }
            return e.items.size() == 1 && !comma ? Expr(e.items[0]) : e;
        }
        if (accept("[")) {
            Expr e{ .kind = Expr::Kind::Sequence };
            while (!accept("]")) {
                e.items.push_back(conditional());
                if (!accept(",") && token_ != "]")
                    throw SyntaxError{ "expected ']'" };
            }
            return e;
        }
        std::string word = token_;
        next();
        if (word == "-") {
            word += token_;
            next();
        }
        if (auto literal = parseLiteral(word))
            return Expr{ .kind = Expr::Kind::Literal, .literal = std::move(*literal) };
        if (!std::isalpha(uint8_t(word[0])) && word[0] != '_')
            throw SyntaxError{ "unexpected '" + word + "'" };
        if (word.starts_with("torch.") && token_ != "(")
            return Expr{ .kind = Expr::Kind::Literal, .literal = ArgDType{ word } };
        if (!accept("("))
            return Expr{ .kind = Expr::Kind::Name, .text = word };
        Expr call{ .kind = Expr::Kind::Call, .text = word };
        while (!accept(")")) {
            std::string keyword = accept("*") ? "*" : "";
            Expr value = conditional();
            if (keyword.empty() && value.kind == Expr::Kind::Name && accept("=")) {
                keyword = value.text;
                value = conditional();
            }
            call.keywords.push_back(keyword);
            call.items.push_back(std::move(value));
            if (!accept(",") && token_ != ")")
                throw SyntaxError{ "expected ')'" };
        }
        return call;
    }

    std::string_view text_;
    size_t at_ = 0;
    std::string token_;
};

// The lines from `at` on that are indented as the first of them; `at` moves behind them.
Expr block(const std::vector<std::string_view> &lines, size_t &at)
{
    const auto indent = [](std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); };
    Expr out{ .kind = Expr::Kind::Block };
    const size_t depth = indent(lines.at(at));
    while (at < lines.size() && indent(lines[at]) >= depth) {
        bool opens = false;
        Expr e = Parser(lines[at++]).statement(opens);
        if (opens)
            e.items.push_back(block(lines, at));
        if (e.kind == Expr::Kind::If && e.text != "if") { // belongs to the chain before it
            Expr *chain = out.items.empty() ? nullptr : &out.items.back();
            while (chain && chain->kind == Expr::Kind::If && chain->items.size() == 3)
                chain = &chain->items[2].items.front();
            if (!chain || chain->kind != Expr::Kind::If)
                throw SyntaxError{ "'" + e.text + "' without if" };
            if (e.text == "else") {
                chain->items.push_back(std::move(e.items[0]));
            } else {
                Expr nested{ .kind = Expr::Kind::Block };
                nested.items.push_back(std::move(e));
                chain->items.push_back(std::move(nested));
            }
            continue;
        }
        out.items.push_back(std::move(e));
    }
    return out;
}

} // namespace

Result<std::shared_ptr<const Expr>> parseExpression(std::string_view text)
{
    try {
        if (text.find('\n') != text.npos) {
            std::vector<std::string_view> lines;
            for (size_t start = 0; start < text.size();) {
                const size_t end = std::min(text.find('\n', start), text.size());
                lines.push_back(text.substr(start, end - start));
                start = end + 1;
            }
            size_t at = 0;
            return std::make_shared<const Expr>(block(lines, at));
        }
        return std::make_shared<const Expr>(Parser(text).whole());
    } catch (const SyntaxError &e) {
        return Error{ "the call expression '" + std::string(text) + "' does not parse: " + e.what };
    }
}

} // namespace fb
