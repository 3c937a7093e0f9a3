#include "model/ir/bind.h"

#include <algorithm>

namespace fb
{

Result<std::vector<std::optional<Arg>>> bindArguments(const Graph &callee, const ArgList &args, const Kwargs &kwargs)
{
    std::vector<std::optional<Arg>> bound;
    size_t position = 0;
    bool variadic = false;
    std::vector<bool> named(kwargs.size());
    for (const NodeId id : callee.placeholders()) {
        const Node &p = callee[id];
        if (p.target.starts_with("**")) {
            std::vector<std::pair<Arg, Arg>> rest;
            for (size_t i = 0; i < kwargs.size(); ++i)
                if (!named[i])
                    rest.emplace_back(kwargs[i].first, kwargs[i].second);
            named.assign(named.size(), true);
            bound.push_back(Arg::dict(std::move(rest)));
            continue;
        }
        if (p.target.starts_with('*')) {
            bound.push_back(Arg::tuple(ArgList(args.begin() + ptrdiff_t(position), args.end())));
            position = args.size();
            variadic = true;
            continue;
        }
        const auto it = std::find_if(kwargs.begin(), kwargs.end(), [&](const auto &k) { return k.first == p.target; });
        const bool positional = !variadic && position < args.size();
        if (it != kwargs.end()) {
            if (positional)
                return Error{ "it got two values for its argument '" + p.target + "'" };
            named[size_t(it - kwargs.begin())] = true;
            bound.push_back(it->second);
        } else if (positional) {
            bound.push_back(args[position++]);
        } else if (!p.args.empty()) {
            bound.emplace_back();
        } else {
            return Error{ "its argument '" + p.target + "' is missing" };
        }
    }
    if (position < args.size())
        return Error{ "it takes " + std::to_string(bound.size()) + " arguments and got " + std::to_string(args.size()) };
    if (const auto it = std::find(named.begin(), named.end(), false); it != named.end())
        return Error{ "it takes no argument named '" + kwargs[size_t(it - named.begin())].first + "'" };
    return bound;
}

} // namespace fb
