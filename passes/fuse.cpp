// Fuse: BatchNorm folds into the convolution before it, and the ReLU after it joins the convolution's module. GPL-3.0-or-later.
//
// conv -> bn -> relu are three nodes, but in int8 they should be one: BatchNorm is a scale and a shift per channel, which the
// weights can carry, and ReLU is the lower end of the output's range. That is right only when nobody else sees the values in
// between and nobody else calls the convolution whose weights change. So every convolution is looked at in three steps: what
// follows it (`follow`), do all calls of the same module agree (`agree`), and only then is anything changed (`apply`). Whatever
// almost fused is reported with the reason.
//
// Names, module classes and the order of nodes are those of torch.ao.quantization.fuse_fx: the fused node is the convolution's,
// at the place of the last node that it swallowed.
#include "passes/fuse.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "model/exec/tensor_ops.h"
#include "model/ir/ops.h"
#include "passes/edits.h"

namespace fb
{

namespace
{

// What may begin a chain, the BatchNorm that folds into it, and the class of the fused module (empty: torch.ao has none).
struct Root {
    std::string_view module, batchNorm, fused;
};
constexpr Root kRoots[] = {
    { "torch.nn.modules.conv.Conv1d", "torch.nn.modules.batchnorm.BatchNorm1d", "ConvReLU1d" },
    { "torch.nn.modules.conv.Conv2d", "torch.nn.modules.batchnorm.BatchNorm2d", "ConvReLU2d" },
    { "torch.nn.modules.conv.Conv3d", "torch.nn.modules.batchnorm.BatchNorm3d", "ConvReLU3d" },
    { "torch.nn.modules.conv.ConvTranspose1d", "torch.nn.modules.batchnorm.BatchNorm1d", "" },
    { "torch.nn.modules.conv.ConvTranspose2d", "torch.nn.modules.batchnorm.BatchNorm2d", "" },
    { "torch.nn.modules.conv.ConvTranspose3d", "torch.nn.modules.batchnorm.BatchNorm3d", "" },
    { "torch.nn.modules.linear.Linear", "torch.nn.modules.batchnorm.BatchNorm1d", "LinearReLU" },
    { "torch.nn.modules.batchnorm.BatchNorm2d", "", "BNReLU2d" },
    { "torch.nn.modules.batchnorm.BatchNorm3d", "", "BNReLU3d" },
};
constexpr std::string_view kReLU = "torch.nn.modules.activation.ReLU";
constexpr std::string_view kFusedModule = "torch.ao.nn.intrinsic.modules.fused.";

struct Chain {
    NodeId root, bn, act;
    const Root *kind = nullptr;
    NodeId last() const { return act ? act : bn ? bn : root; }
    bool fuses() const { return bn || act; }
};

// The module table's new content for one path.
struct Replacement {
    std::vector<ModuleInfo> modules;
    std::vector<std::pair<std::string, TensorEntry>> tensors;
    bool tensorsWritten = false;
};

std::string dims(const std::vector<int64_t> &sizes)
{
    std::string text;
    for (int64_t s : sizes)
        text += (text.empty() ? "" : "x") + std::to_string(s);
    return text;
}

std::string parentPath(const std::string &fqn)
{
    const size_t dot = fqn.rfind('.');
    return dot == std::string::npos ? std::string() : fqn.substr(0, dot);
}

std::string times(size_t n)
{
    return n == 2 ? "twice" : std::to_string(n) + " times";
}

class Fuser
{
public:
    Fuser(GraphModule &gm, const std::set<NodeId> *selection)
        : gm_(gm)
        , g_(gm.graph)
        , selection_(selection)
    {
        for (NodeId id : g_.order()) {
            if (g_[id].op == Opcode::CallModule)
                callers_[g_[id].target].push_back(id);
            else if (g_[id].op == Opcode::GetAttr)
                readers_[parentPath(g_[id].target)] = id;
        }
    }

    Result<PassReport> run()
    {
        plan();
        if (chains_.empty())
            return std::move(report_);
        if (Status s = prepare(); !s)
            return s.error();
        apply();
        report_.changed = true;
        return std::move(report_);
    }

private:
    const Node &node(NodeId id) const { return g_[id]; }
    const std::string &name(NodeId id) const { return g_[id].name; }
    void keep(NodeId id, const std::string &why) { report_.kept.push_back({ name(id), name(id) + " kept: " + why }); }
    bool chosen(NodeId id) const { return !selection_ || selection_->contains(id); }

    // The nn module that a node calls, null where it is none.
    const ModuleInfo *nn(NodeId id) const
    {
        const ModuleInfo *m = gm_.moduleOf(node(id));
        return m && m->kind == ModuleKind::Nn ? m : nullptr;
    }
    const Root *rootOf(NodeId id) const
    {
        const ModuleInfo *m = nn(id);
        if (!m)
            return nullptr;
        auto it = std::find_if(std::begin(kRoots), std::end(kRoots), [&](const Root &r) { return r.module == m->className; });
        return it == std::end(kRoots) ? nullptr : it;
    }
    bool isBatchNorm(NodeId id) const
    {
        const ModuleInfo *m = nn(id);
        return m && m->className.starts_with("torch.nn.modules.batchnorm.");
    }
    // nn.ReLU and F.relu, in place or not: the spellings that torch.ao fuses.
    bool isReLU(NodeId id) const
    {
        const Node &n = node(id);
        if (n.args.size() != 1)
            return false;
        const ModuleInfo *m = nn(id);
        return m ? m->className == kReLU : n.op == Opcode::CallFunction && n.target == "torch.nn.functional.relu";
    }
    // How an activation that does not fuse is written, empty for other nodes.
    std::string otherActivation(NodeId id) const
    {
        const Node &n = node(id);
        const OpInfo *op = opInfo(gm_, n);
        if (!op)
            return {};
        const bool clampsAtZero = op->kind == "clamp" || op->kind == "clamp_min";
        if (op->category != Category::Activation && op->kind != "dropout" && !clampsAtZero)
            return {};
        if (const ModuleInfo *m = gm_.moduleOf(n))
            return m->shortClass();
        return n.op == Opcode::CallMethod ? "." + n.target + "()" : n.target;
    }
    static bool isReluKind(const OpInfo *op) { return op && (op->kind == "relu" || op->kind == "relu_"); }
    // Of a value that `next` would take with it.
    std::string otherUsers(NodeId id, NodeId next) const
    {
        std::string list;
        size_t count = 0;
        for (NodeId u : g_.users(id))
            if (u != next) {
                list += (count ? ", " : "") + name(u);
                ++count;
            }
        return "output has " + std::to_string(count) + (count == 1 ? " other user (" : " other users (") + list + ")";
    }

    void plan()
    {
        std::map<std::string, std::vector<Chain>> byPath; // every call of each root
        std::vector<std::string> paths;
        auto look = [&](NodeId id, const Root *kind) {
            auto &calls = byPath[node(id).target];
            if (calls.empty())
                paths.push_back(node(id).target);
            calls.push_back(follow(id, kind));
        };
        auto settle = [&] {
            for (const std::string &path : paths)
                agree(path, byPath[path]);
            byPath.clear();
            paths.clear();
        };
        for (NodeId id : g_.order())
            if (const Root *kind = rootOf(id); kind && !kind->batchNorm.empty())
                look(id, kind);
        settle();
        // BatchNorm + ReLU of the BatchNorms that are left.
        for (NodeId id : g_.order()) {
            if (!isBatchNorm(id) || taken_.contains(id))
                continue;
            if (afterFunctional(id) || beforeRoot(id))
                continue;
            if (const Root *kind = rootOf(id))
                look(id, kind);
        }
        settle();
    }

    // What follows one call of a root: the chain as far as it is right, and the reason where it stops early.
    Chain follow(NodeId root, const Root *kind)
    {
        Chain chain{ root, {}, {}, kind };
        if (!chosen(root))
            return chain;
        const bool folds = !kind->batchNorm.empty();
        auto fusable = [&](NodeId u) { return isReLU(u) || (folds && isBatchNorm(u)); };
        const auto &users = g_.users(root);
        if (users.size() > 1) {
            if (const auto next = std::find_if(users.begin(), users.end(), fusable); next != users.end())
                keep(root, "its " + otherUsers(root, *next));
            return chain;
        }
        if (users.empty())
            return chain;
        NodeId next = users.front();
        if (folds && isBatchNorm(next)) {
            if (!chosen(next))
                return chain;
            if (const std::string why = whyNotFolded(root, kind, next); !why.empty()) {
                keep(root, why);
                return chain;
            }
            chain.bn = next;
            const auto &after = g_.users(next);
            if (after.size() > 1) {
                for (NodeId u : after)
                    if (isReLU(u))
                        keep(u, name(next) + "'s " + otherUsers(next, u));
                return chain;
            }
            if (after.empty())
                return chain;
            next = after.front();
        }
        if (!chosen(next))
            return chain;
        if (isReLU(next)) {
            if (kind->fused.empty())
                keep(next, "torch.ao has no module for " + nn(root)->shortClass() + " with ReLU");
            else
                chain.act = next;
        } else if (const std::string what = otherActivation(next); !what.empty()) {
            if (isReluKind(opInfo(gm_, node(next))))
                keep(next, what + " does not fuse with " + name(root) + "; replace it by nn.ReLU and it does");
            else
                keep(next, what + " never fuses with " + name(root) + "; only ReLU does");
        }
        return chain;
    }

    // Empty when folding `bn` into the module that `root` calls is right.
    std::string whyNotFolded(NodeId root, const Root *kind, NodeId bn) const
    {
        const ModuleInfo &conv = *nn(root), &norm = *nn(bn);
        const std::string &b = name(bn);
        if (norm.className != kind->batchNorm)
            return norm.shortClass() + " (" + b + ") does not fold into " + conv.shortClass();
        if (conv.training || norm.training)
            return (norm.training ? b : "it")
                + " is in training mode, where BatchNorm follows each batch; call eval() before tracing";
        const Tensor weight = gm_.moduleTensor(node(root).target, "weight");
        const Tensor mean = gm_.moduleTensor(node(bn).target, "running_mean");
        if (!mean || !gm_.moduleTensor(node(bn).target, "running_var"))
            return b + " has no running statistics (track_running_stats=False), so it follows each batch";
        if (!weight || weight->sizes.empty())
            return "its weight is not in the file";
        const Arg *groups = conv.attr("groups");
        const bool transposed = conv.className.find("Transpose") != std::string::npos;
        const int64_t channels = transposed && weight->sizes.size() > 1 && groups ? weight->sizes[1] * groups->toInt().value_or(1)
                                                                                  : weight->sizes[0];
        if (mean->numel() != channels)
            return b + " has " + std::to_string(mean->numel()) + " features, but it gives " + std::to_string(channels)
                + " channels";
        if (conv.shortClass() == "Linear") {
            const auto &meta = node(root).meta ? node(root).meta : node(bn).meta;
            if (!meta)
                return "its output is not known to be 2-D, and " + b
                    + " would then work on another axis; trace with a sample input";
            if (meta->shape.size() != 2)
                return "its output is " + std::to_string(meta->shape.size()) + "-D (" + dims(meta->shape) + "), where " + b
                    + " works on axis 1 and Linear on the last";
        }
        return {};
    }

    // All calls of one module must end in the same chain, since they share the weights that change.
    void agree(const std::string &path, std::vector<Chain> &calls)
    {
        const auto open = [&](NodeId id) { return !taken_.contains(id); };
        const size_t total = size_t(std::count_if(callers_[path].begin(), callers_[path].end(), open));
        if (std::none_of(calls.begin(), calls.end(), [](const Chain &c) { return c.fuses(); }))
            return;
        const NodeId first = calls.front().root;
        if (auto reader = readers_.find(path); reader != readers_.end())
            return keep(first, "its weight is also read directly by " + name(reader->second));
        if (total > 1) {
            std::string list;
            for (NodeId id : callers_[path])
                if (open(id))
                    list += (list.empty() ? "" : ", ") + name(id);
            const std::string called = "it is called " + times(total) + " (" + list + ")";
            const auto withNorm = size_t(std::count_if(calls.begin(), calls.end(), [](const Chain &c) { return bool(c.bn); }));
            if (withNorm && withNorm < total)
                return keep(first, called + ", BatchNorm on only " + (withNorm == 1 ? "one" : std::to_string(withNorm)));
            if (withNorm) {
                const std::string &norm = node(calls.front().bn).target;
                for (const Chain &c : calls)
                    if (node(c.bn).target != norm)
                        return keep(
                            first, called + " with different BatchNorms (" + name(calls.front().bn) + ", " + name(c.bn) + ")");
            }
            const auto withReLU = size_t(std::count_if(calls.begin(), calls.end(), [](const Chain &c) { return bool(c.act); }));
            if (withReLU && withReLU < total) {
                if (!withNorm)
                    return keep(first, called + ", ReLU on only " + (withReLU == 1 ? "one" : std::to_string(withReLU)));
                for (Chain &c : calls) {
                    if (c.act)
                        keep(c.act,
                            name(first) + " is called " + times(total) + " (" + list + "), ReLU on only "
                                + (withReLU == 1 ? "one" : std::to_string(withReLU)));
                    c.act = {};
                }
            }
        }
        for (const Chain &c : calls) {
            for (NodeId id : { c.root, c.bn, c.act })
                if (id)
                    taken_.insert(id);
            chains_.push_back(c);
        }
    }

    // FU-08: a functional convolution has no module to fold into; fusing the rest alone would look like success.
    bool afterFunctional(NodeId bn)
    {
        const NodeId in = node(bn).args.empty() ? NodeId{} : node(bn).args.front().node();
        if (!in || node(in).op == Opcode::CallModule)
            return false;
        const OpInfo *op = opInfo(gm_, node(in));
        if (!op || op->category != Category::ConvLinear)
            return false;
        if (chosen(bn))
            keep(bn,
                "it follows " + name(in) + ", a call of " + node(in).target
                    + " whose weight is no module's; make that an nn module and trace again");
        return true;
    }

    // FU-03: BatchNorm in front of a convolution is never folded forward.
    bool beforeRoot(NodeId bn)
    {
        const auto &users = g_.users(bn);
        const Root *kind = users.size() == 1 ? rootOf(users.front()) : nullptr;
        if (!kind || kind->batchNorm.empty())
            return false;
        if (chosen(bn)) {
            const ModuleInfo &conv = *nn(users.front());
            const Arg *padding = conv.attr("padding");
            const auto pads = padding ? padding->toInts() : std::nullopt;
            const bool padded = padding && (!pads || std::any_of(pads->begin(), pads->end(), [](int64_t p) { return p != 0; }));
            keep(bn,
                "it stands before " + name(users.front())
                    + (padded ? ", which pads with zeros after it; folding it forward would be wrong at the border"
                              : "; only a BatchNorm after a convolution is folded"));
        }
        return true;
    }

    // New module entries for every path, computed before anything changes.
    Status prepare()
    {
        for (const Chain &c : chains_) {
            const std::string &path = node(c.root).target;
            if (replacements_.contains(path))
                continue;
            ModuleInfo info = *nn(c.root);
            info.path = path;
            info.aliasOf.clear();
            std::map<std::string, TensorEntry> own;
            for (const auto *names : { &info.parameters, &info.buffers })
                for (const std::string &t : *names) {
                    const TensorEntry *e = gm_.tensors.find(joinPath(path, t));
                    own[t] = e ? *e : TensorEntry{ gm_.moduleTensor(path, t), names == &info.parameters, true };
                }
            if (c.bn)
                if (Status s = fold(c, info, own); !s)
                    return s;

            Replacement &r = replacements_[path];
            std::string at = path;
            if (c.act) {
                ModuleInfo fused;
                fused.path = path;
                fused.className = std::string(kFusedModule) + std::string(c.kind->fused);
                fused.kind = ModuleKind::Nn;
                fused.training = info.training;
                fused.keepFloat = info.keepFloat;
                r.modules.push_back(std::move(fused));
                at = joinPath(path, "0");
                info.path = at;
            }
            for (const auto *names : { &info.parameters, &info.buffers })
                for (const std::string &t : *names)
                    r.tensors.emplace_back(joinPath(at, t), own[t]);
            const bool training = info.training;
            r.modules.push_back(std::move(info));
            if (c.act) {
                ModuleInfo relu;
                if (const ModuleInfo *m = nn(c.act)) {
                    relu = *m;
                    relu.aliasOf.clear();
                } else {
                    relu.className = kReLU;
                    relu.kind = ModuleKind::Nn;
                    relu.training = training;
                    relu.attrs = { { "inplace", false } };
                }
                relu.path = joinPath(path, "1");
                r.modules.push_back(std::move(relu));
            }
        }
        return {};
    }

    Status fold(const Chain &c, ModuleInfo &conv, std::map<std::string, TensorEntry> &own) const
    {
        const std::string &bn = node(c.bn).target;
        const Arg *eps = nn(c.bn)->attr("eps"), *groups = conv.attr("groups");
        auto folded = foldBatchNorm(own["weight"].tensor, own["bias"].tensor, gm_.moduleTensor(bn, "running_mean"),
            gm_.moduleTensor(bn, "running_var"), eps ? eps->toDouble().value_or(1e-5) : 1e-5, gm_.moduleTensor(bn, "weight"),
            gm_.moduleTensor(bn, "bias"), conv.className.find("Transpose") != std::string::npos,
            groups ? groups->toInt().value_or(1) : 1);
        if (!folded)
            return Error{ "cannot fold " + name(c.bn) + " into " + name(c.root) + ": " + folded.message() };
        own["weight"] = { folded->weight, true, true };
        own["bias"] = { folded->bias, true, true };
        if (std::find(conv.parameters.begin(), conv.parameters.end(), "bias") == conv.parameters.end()) {
            auto weight = std::find(conv.parameters.begin(), conv.parameters.end(), "weight");
            conv.parameters.insert(weight + 1, "bias");
        }
        std::erase(conv.none, "bias");
        for (auto &[key, value] : conv.attrs)
            if (key == "bias")
                value = true;
        // repr() of a convolution leaves bias=True out, that of Linear shows it.
        const std::string_view shown = conv.shortClass() == "Linear" ? ", bias=True" : "";
        if (const size_t at = conv.extraRepr.find(", bias=False"); at != std::string::npos)
            conv.extraRepr.replace(at, 12, shown);
        return {};
    }

    void apply()
    {
        for (const Chain &c : chains_) {
            std::string parts;
            for (NodeId id : { c.root, c.bn, c.act })
                if (id)
                    parts += (parts.empty() ? "" : " + ") + name(id);
            report_.done.push_back(
                { name(c.root), parts + " -> " + replacements_[node(c.root).target].modules.front().shortClass() });
        }
        place();
        std::vector<NodeId> going;
        for (const Chain &c : chains_) {
            g_.setMeta(c.root, node(c.last()).meta);
            g_.replaceAllUses(c.last(), c.root);
            for (NodeId id : { c.bn, c.act })
                if (id)
                    going.push_back(id);
        }
        (void)g_.erase(going); // cannot fail: their only users are in the chains
        detachAliases();
        replaceEntries();
        gm_.dropUnused();
    }

    // The fused node stands where its chain ended, as fuse_fx puts it, unless something is changed in place on the way there.
    void place()
    {
        std::unordered_map<NodeId, NodeId> endsWith;
        std::unordered_set<NodeId> moving;
        std::vector<uint32_t> mutations(g_.size() + 1);
        for (size_t i = 0; i < g_.size(); ++i)
            mutations[i + 1] = mutations[i] + (!taken_.contains(g_.order()[i]) && mutatesInput(gm_, node(g_.order()[i])));
        for (const Chain &c : chains_) {
            if (mutations[g_.position(c.last())] == mutations[g_.position(c.root)]) {
                endsWith[c.last()] = c.root;
                moving.insert(c.root);
            }
        }
        std::vector<NodeId> order;
        order.reserve(g_.size());
        for (NodeId id : g_.order()) {
            if (!moving.contains(id))
                order.push_back(id);
            if (auto it = endsWith.find(id); it != endsWith.end())
                order.push_back(it->second);
        }
        g_.reorder(std::move(order));
    }

    // Another path of the same module keeps the module as it was.
    void detachAliases()
    {
        std::map<std::string, std::string> heir; // replaced path -> the alias that takes over
        std::vector<ModuleInfo> changed;
        for (const auto &[path, info] : gm_.modules) {
            if (info->aliasOf.empty() || replacements_.contains(path))
                continue;
            if (replacements_.contains(info->aliasOf)) {
                auto [it, first] = heir.try_emplace(info->aliasOf, path);
                ModuleInfo m = *info;
                m.aliasOf = first ? "" : it->second;
                changed.push_back(std::move(m));
            } else if (info->kind == ModuleKind::Container
                && std::any_of(replacements_.begin(), replacements_.end(),
                    [&](const auto &r) { return r.first.starts_with(info->aliasOf + "."); })) {
                changed.push_back(*info);
                changed.back().aliasOf.clear();
            }
        }
        for (const auto &[path, alias] : heir)
            for (const auto *names : { &gm_.modules.find(path)->parameters, &gm_.modules.find(path)->buffers })
                for (const std::string &t : *names)
                    if (const TensorEntry *e = gm_.tensors.find(joinPath(path, t));
                        e && !gm_.tensors.contains(joinPath(alias, t)))
                        gm_.tensors.set(joinPath(alias, t), TensorEntry(*e));
        for (ModuleInfo &m : changed) {
            const std::string path = m.path;
            gm_.modules.set(path, std::move(m));
        }
    }

    // Both tables again, with the new entries in the places of the old.
    void replaceEntries()
    {
        OrderedTable<ModuleInfo> modules;
        for (const auto &[path, info] : gm_.modules) {
            if (auto r = replacements_.find(path); r != replacements_.end())
                for (ModuleInfo &m : r->second.modules) {
                    const std::string key = m.path;
                    modules.set(key, std::move(m));
                }
            else
                modules.share(path, info);
        }
        OrderedTable<TensorEntry> tensors;
        auto write = [&](Replacement &r) {
            for (auto &[fqn, e] : r.tensors)
                tensors.set(fqn, std::move(e));
            r.tensorsWritten = true;
        };
        for (const auto &[fqn, entry] : gm_.tensors) {
            auto r = replacements_.find(parentPath(fqn));
            if (r == replacements_.end())
                tensors.share(fqn, entry);
            else if (!r->second.tensorsWritten)
                write(r->second);
        }
        for (auto &[path, r] : replacements_)
            if (!r.tensorsWritten)
                write(r);
        gm_.modules = std::move(modules);
        gm_.tensors = std::move(tensors);
    }

    GraphModule &gm_;
    Graph &g_;
    const std::set<NodeId> *selection_;
    PassReport report_;
    std::unordered_map<std::string, std::vector<NodeId>> callers_; // by module path
    std::unordered_map<std::string, NodeId> readers_; // get_attr nodes by the module whose tensor they read
    std::unordered_set<NodeId> taken_;
    std::vector<Chain> chains_;
    std::map<std::string, Replacement> replacements_;
};

} // namespace

Result<PassReport> fuseAll(GraphModule &gm)
{
    const PassReport nested = inlineAll(gm); // patterns may lie across the border of a nested graph
    auto report = Fuser(gm, nullptr).run();
    if (!report)
        return report;
    report->pass = "Fuse all";
    report->changed = report->changed || nested.changed;
    report->done.insert(report->done.begin(), nested.done.begin(), nested.done.end());
    report->kept.insert(report->kept.begin(), nested.kept.begin(), nested.kept.end());
    return report;
}

Result<PassReport> fuseSelection(GraphModule &gm, const std::set<NodeId> &selection)
{
    GraphModule work = gm;
    auto report = Fuser(work, &selection).run();
    if (!report)
        return report;
    report->pass = "Fuse selection";
    if (!report->changed)
        return Error{ "nothing in the selection fuses: "
            + (report->kept.empty() ? "select a convolution or linear layer with the BatchNorm or ReLU that follows it"
                                    : report->kept.front().what) };
    gm = std::move(work);
    return report;
}

} // namespace fb
