#include "model/exec/higher_order.h"

#include "model/exec/aten_bridge.h"
#include "model/exec/calls.h"

namespace fb
{

namespace
{

constexpr std::string_view kPrefix = "torch.ops.higher_order.";

ArgList joined(ArgList a, const ArgList &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

ArgList rest(const ArgList &args, size_t from)
{
    return args.size() > from ? ArgList(args.begin() + ptrdiff_t(from), args.end()) : ArgList();
}

at::Tensor tensorAt(const ArgList &items, size_t i)
{
    const Tensor *t = nth(items, i).as<Tensor>();
    if (!t)
        throw ExecError("it runs over something that is no tensor");
    return toAten(*t);
}

// Items i of `xs` along their first dimension.
ArgList slices(const ArgList &xs, int64_t i)
{
    ArgList out;
    for (size_t k = 0; k < xs.size(); ++k)
        out.emplace_back(hold(tensorAt(xs, k).select(0, i)));
    return out;
}

// The results of all steps, one tensor for each of them.
ArgList stacked(const std::vector<ArgList> &steps)
{
    ArgList out;
    for (size_t k = 0; !steps.empty() && k < steps.front().size(); ++k) {
        std::vector<at::Tensor> parts;
        for (const ArgList &step : steps)
            parts.push_back(tensorAt(step, k));
        out.emplace_back(hold(at::stack(parts)));
    }
    return out;
}

int64_t steps(const ArgList &xs)
{
    const at::Tensor first = tensorAt(xs, 0);
    if (first.dim() == 0 || first.size(0) == 0)
        throw ExecError("it runs over a tensor without a first dimension");
    return first.size(0);
}

} // namespace

bool isHigherOrder(const std::string &target)
{
    return target.starts_with(kPrefix);
}

Arg callHigherOrder(const std::string &target, const std::vector<GraphFunction> &graphs, const ArgList &args)
{
    const std::string name = target.substr(kPrefix.size());
    const auto graph = [&](size_t i) -> const GraphFunction & {
        if (i >= graphs.size())
            throw ExecError("it has no graph to call");
        return graphs[i];
    };
    if (name == "cond")
        return graph(truth(nth(args, 0)) ? 0 : 1)(args.size() > 1 ? itemsOf(args[1]) : ArgList());
    if (name == "while_loop") {
        ArgList carried = itemsOf(nth(args, 0));
        const ArgList more = args.size() > 1 ? itemsOf(args[1]) : ArgList();
        while (truth(graph(0)(joined(carried, more))))
            carried = itemsOf(graph(1)(joined(carried, more)));
        return Arg::tuple(std::move(carried));
    }
    if (name == "scan") {
        ArgList carried = itemsOf(nth(args, 0));
        const ArgList xs = itemsOf(nth(args, 1)), more = args.size() > 2 ? itemsOf(args[2]) : ArgList();
        std::vector<ArgList> results;
        for (int64_t i = 0, n = steps(xs); i < n; ++i) {
            const ArgList out = itemsOf(graph(0)(joined(joined(carried, slices(xs, i)), more)));
            if (out.size() < carried.size())
                throw ExecError("its graph gives fewer values than it carries");
            results.push_back(rest(out, carried.size()));
            std::copy(out.begin(), out.begin() + ptrdiff_t(carried.size()), carried.begin());
        }
        return Arg::tuple(joined(std::move(carried), stacked(results)));
    }
    if (name == "map_impl") {
        const ArgList xs = itemsOf(nth(args, 0)), more = args.size() > 1 ? itemsOf(args[1]) : ArgList();
        std::vector<ArgList> results;
        for (int64_t i = 0, n = steps(xs); i < n; ++i)
            results.push_back(itemsOf(graph(0)(joined(slices(xs, i), more))));
        return Arg::tuple(stacked(results));
    }
    // Regions: in inference there is no gradient to switch, and autocast is off on the CPU unless it asks for it.
    if (name == "wrap_with_set_grad_enabled" || name == "invoke_subgraph")
        return graph(0)(rest(args, 1));
    if (name == "wrap_with_autocast") {
        if (nth(args, 0) == Arg("cpu") && truth(nth(args, 2)))
            throw ExecError("autocast on the CPU is not run here; export the model without it");
        return graph(0)(rest(args, 4));
    }
    if (name == "wrap")
        return graph(0)(args);
    throw ExecError("the operator " + name + " calls graphs in a way that is not known here");
}

} // namespace fb
