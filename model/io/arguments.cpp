#include "model/io/arguments.h"

#include <cmath>
#include <limits>

#include "model/io/argument_text.h"

namespace fb
{

namespace io
{

namespace
{

// A number, or {"float": "inf"} and its like.
double floatNamed(const Json &j, const std::string &what)
{
    const Json *inner = j.find("float");
    const Json &v = inner ? *inner : j;
    if (!v.as<std::string>())
        return v.number(what);
    const std::string &name = v.text(what);
    if (name == "inf")
        return std::numeric_limits<double>::infinity();
    if (name == "-inf")
        return -std::numeric_limits<double>::infinity();
    if (name == "nan")
        return std::numeric_limits<double>::quiet_NaN();
    throw FormatError(what + " has the unknown number \"" + name + "\"");
}

Arg bigInt(const std::string &digits, const std::string &what)
{
    const std::string_view bare = std::string_view(digits).substr(digits.starts_with('-') ? 1 : 0);
    if (bare.empty() || bare.find_first_not_of("0123456789") != std::string_view::npos)
        throw FormatError(what + " has an integer that is not made of digits");
    return ArgBigInt{ digits };
}

ArgList arguments(const Json &j, const ArgumentNames &names, const std::string &what)
{
    ArgList out;
    for (const Json &item : j.list(what))
        out.push_back(readArgument(item, names, what));
    return out;
}

Json::Object single(const char *key, Json value)
{
    return { { key, std::move(value) } };
}

Json number(double v)
{
    if (std::isfinite(v))
        return v;
    return single("float", std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
}

Json list(const ArgList &items, const ArgumentNaming &naming)
{
    Json::Array out;
    for (const Arg &a : items)
        out.push_back(writeArgument(a, naming));
    return out;
}

} // namespace

Arg readArgument(const Json &j, const ArgumentNames &names, const std::string &what)
{
    if (j.isNull())
        return {};
    if (const auto *v = j.as<bool>())
        return *v;
    if (const auto *v = j.as<int64_t>())
        return *v;
    if (const auto *v = j.as<double>())
        return *v;
    if (const auto *v = j.as<std::string>())
        return *v;
    if (j.as<Json::Array>())
        return Arg::list(arguments(j, names, what));

    const auto &members = j.object(what);
    if (members.size() != 1)
        throw FormatError(
            "an argument of " + what + " is an object of " + std::to_string(members.size()) + " members, not of one");
    const auto &[kind, v] = members[0];
    auto three = [&](auto make) {
        ArgList items = arguments(v, names, what);
        if (items.size() != 3)
            throw FormatError("a " + kind + " of " + what + " has not three parts");
        return make(std::move(items[0]), std::move(items[1]), std::move(items[2]));
    };
    auto pairs = [&](const Json &list, auto take) {
        for (const Json &pair : list.list(what)) {
            const auto &two = pair.list(what);
            if (two.size() != 2)
                throw FormatError("a " + kind + " of " + what + " holds an entry that is no pair");
            take(two[0], readArgument(two[1], names, what));
        }
    };
    if (kind == "node")
        return names.node(v.text(what));
    if (kind == "tuple")
        return Arg::tuple(arguments(v, names, what));
    if (kind == "size")
        return Arg::size(arguments(v, names, what));
    if (kind == "slice")
        return three(Arg::slice);
    if (kind == "range")
        return three(Arg::range);
    if (kind == "dict") {
        std::vector<std::pair<Arg, Arg>> items;
        pairs(v, [&](const Json &key, Arg value) { items.emplace_back(readArgument(key, names, what), std::move(value)); });
        return Arg::dict(std::move(items));
    }
    if (kind == "namedtuple") {
        std::vector<std::pair<std::string, Arg>> fields;
        pairs(v.at("fields", what), [&](const Json &key, Arg value) { fields.emplace_back(key.text(what), std::move(value)); });
        return Arg::namedTuple(v.at("type", what).text(what), std::move(fields));
    }
    if (kind == "float")
        return floatNamed(v, what);
    if (kind == "int")
        return bigInt(v.text(what), what);
    if (kind == "complex") {
        const auto &parts = v.list(what);
        if (parts.size() != 2)
            throw FormatError("a complex number of " + what + " has not two parts");
        return std::complex<double>(floatNamed(parts[0], what), floatNamed(parts[1], what));
    }
    if (kind == "dtype")
        return ArgDType{ v.text(what) };
    if (kind == "device")
        return ArgDevice{ v.text(what) };
    if (kind == "layout")
        return ArgLayout{ v.text(what) };
    if (kind == "memory_format")
        return ArgMemoryFormat{ v.text(what) };
    if (kind == "ellipsis")
        return ArgEllipsis{};
    if (kind == "symbol")
        return v.as<std::string>() ? ArgSymbol{ v.text(what) }
                                   : ArgSymbol{ v.at("name", what).text(what), v.textOr("repr"), v.textOr("str") };
    if (kind == "tensor") {
        if (v.isNull()) // one that the archive could not hold
            return ArgOpaque{ "torch.Tensor", "<tensor>" };
        return names.tensor(v.text(what));
    }
    if (kind == "opaque")
        return ArgOpaque{ v.at("type", what).text(what), v.at("repr", what).text(what), v.textOr("str") };
    throw FormatError("an argument of " + what + " is of the unknown kind \"" + kind + "\"");
}

Json writeArgument(const Arg &a, const ArgumentNaming &naming)
{
    if (const auto *s = a.sequence()) {
        Json items = list(s->items, naming);
        return s->kind == ArgSequence::List ? items
                                            : Json(single(s->kind == ArgSequence::Tuple ? "tuple" : "size", std::move(items)));
    }
    if (const auto *d = a.dictionary()) {
        Json::Array pairs;
        for (const auto &[k, v] : d->items)
            pairs.push_back(Json::Array{ writeArgument(k, naming), writeArgument(v, naming) });
        return single("dict", std::move(pairs));
    }
    if (const auto *s = a.sliceOrRange())
        return single(s->isRange ? "range" : "slice",
            Json::Array{ writeArgument(s->start, naming), writeArgument(s->stop, naming), writeArgument(s->step, naming) });
    if (const auto *n = a.named()) {
        Json::Array fields;
        for (const auto &[k, v] : n->fields)
            fields.push_back(Json::Array{ k, writeArgument(v, naming) });
        return single("namedtuple", Json::Object{ { "type", n->type }, { "fields", std::move(fields) } });
    }
    if (const auto *v = a.as<bool>())
        return *v;
    if (const auto *v = a.as<int64_t>())
        return *v;
    if (const auto *v = a.as<double>())
        return number(*v);
    if (const auto *v = a.as<std::complex<double>>())
        return single("complex", Json::Array{ number(v->real()), number(v->imag()) });
    if (const auto *v = a.as<std::string>())
        return *v;
    if (const auto *v = a.as<NodeId>())
        return single("node", naming.node(*v));
    if (const auto *v = a.as<ArgBigInt>())
        return single("int", v->digits);
    if (const auto *v = a.as<ArgDType>())
        return single("dtype", v->name);
    if (const auto *v = a.as<ArgDevice>())
        return single("device", v->name);
    if (const auto *v = a.as<ArgLayout>())
        return single("layout", v->name);
    if (const auto *v = a.as<ArgMemoryFormat>())
        return single("memory_format", v->name);
    if (a.as<ArgEllipsis>())
        return single("ellipsis", true);
    const auto texts = [](Json::Object members, const std::string &str) {
        if (!str.empty())
            members.emplace_back("str", str);
        return Json(std::move(members));
    };
    if (const auto *v = a.as<ArgSymbol>())
        return single("symbol", v->repr.empty() ? Json(v->name) : texts({ { "name", v->name }, { "repr", v->repr } }, v->str));
    if (const auto *v = a.as<ArgOpaque>())
        return single("opaque", texts({ { "type", v->type }, { "repr", v->repr } }, v->str));
    if (const auto *v = a.as<Tensor>())
        return single("tensor", *v ? Json(naming.tensor(*v)) : Json());
    return {};
}

} // namespace io

std::string argumentText(const Arg &a, const std::function<std::string(const Tensor &)> &name)
{
    return io::writeArgument(a, { [](NodeId) { return std::string(); }, name }).dump();
}

Result<Arg> argumentFromText(std::string_view text, const std::function<Result<Tensor>(const std::string &)> &named)
{
    using io::FormatError;
    try {
        const auto node = [](const std::string &name) -> NodeId { throw FormatError("it names the node " + name); };
        const auto tensor = [&](const std::string &name) {
            Result<Tensor> t = named(name);
            if (!t)
                throw FormatError(t.message());
            return *t;
        };
        return io::readArgument(io::parseJson(text), { node, tensor }, "it");
    } catch (const std::exception &e) {
        return Error{ e.what() };
    }
}

} // namespace fb
