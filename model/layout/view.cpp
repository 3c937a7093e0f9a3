// Fuseboard: which boxes a folding shows, and which lines between them. GPL-3.0-or-later.
#include <algorithm>
#include <functional>
#include <tuple>

#include "model/ir/ops.h"
#include "model/layout/layout.h"

namespace fb
{

namespace
{

std::string boxKey(const ModuleFrame &frame)
{
    return frame.call > 0 ? frame.path + "@" + std::to_string(frame.call) : frame.path;
}

// Module boxes as a tree. After edits one key may be met under two parents; the first one stays.
struct Boxes {
    struct Box {
        std::string key, className;
        int parent = -1; // -1: the root
        int count = 0; // nodes inside, all levels
        int children = 0; // boxes and nodes directly inside
        int depth = 0;
    };
    std::vector<Box> boxes; // parents before children
    std::unordered_map<std::string, int> index;
    std::vector<NodeId> nodes; // shown ones in order
    std::vector<int> innermost; // by nodes; -1: the root

    Boxes(const GraphModule &gm, bool showParameters)
    {
        const ModuleStack *lastStack = nullptr;
        int lastBox = -1;
        for (NodeId id : gm.graph.order()) {
            const Node &n = gm.graph[id];
            if (!showParameters && n.op == Opcode::GetAttr) {
                const auto *tensor = gm.tensors.find(n.target);
                if (tensor && tensor->parameter)
                    continue;
            }
            int box = -1;
            if (n.stack && n.stack.get() == lastStack)
                box = lastBox;
            else if (n.stack)
                for (const auto &frame : *n.stack) {
                    auto [it, fresh] = index.try_emplace(boxKey(frame), int(boxes.size()));
                    if (fresh) {
                        boxes.push_back({ it->first, frame.className, box, 0, 0, box < 0 ? 0 : boxes[size_t(box)].depth + 1 });
                        if (box >= 0)
                            ++boxes[size_t(box)].children;
                    }
                    box = it->second;
                }
            lastStack = n.stack.get();
            lastBox = box;
            nodes.push_back(id);
            innermost.push_back(box);
            if (box >= 0)
                ++boxes[size_t(box)].children;
            for (int b = box; b >= 0; b = boxes[size_t(b)].parent)
                ++boxes[size_t(b)].count;
        }
    }

    // Outermost first.
    std::vector<int> chain(int box) const
    {
        std::vector<int> result;
        for (; box >= 0; box = boxes[size_t(box)].parent)
            result.push_back(box);
        std::reverse(result.begin(), result.end());
        return result;
    }
};

void combine(uint64_t &seed, uint64_t value)
{
    seed ^= value + 0x9e3779b97f4a7c15ull + (seed << 12) + (seed >> 4);
    seed *= 0xff51afd7ed558ccdull;
}

} // namespace

std::vector<std::string> boxAncestors(const Node &n)
{
    std::vector<std::string> keys;
    if (n.stack)
        for (const auto &frame : *n.stack)
            keys.push_back(boxKey(frame));
    return keys;
}

std::set<std::string> allModuleKeys(const GraphModule &gm)
{
    std::set<std::string> keys;
    for (const auto &box : Boxes(gm, false).boxes)
        keys.insert(box.key);
    return keys;
}

ViewGraph buildView(const GraphModule &gm, const std::set<std::string> &unfolded, bool showParameters)
{
    const Boxes tree(gm, showParameters);
    ViewGraph view;
    std::vector<int> itemOfBox(tree.boxes.size(), -1);
    std::vector<char> open(tree.boxes.size());
    for (size_t b = 0; b < open.size(); ++b)
        open[b] = unfolded.count(tree.boxes[b].key) != 0;

    std::unordered_map<uint32_t, int> itemOfNode;
    for (size_t i = 0; i < tree.nodes.size(); ++i) {
        std::string parent;
        int item = -1;
        for (int b : tree.chain(tree.innermost[i])) {
            const auto &box = tree.boxes[size_t(b)];
            if (itemOfBox[size_t(b)] < 0) {
                itemOfBox[size_t(b)] = int(view.items.size());
                view.items.push_back({ {}, box.key, parent, !open[size_t(b)], box.count, box.className });
            }
            if (!open[size_t(b)]) {
                item = itemOfBox[size_t(b)];
                break;
            }
            parent = box.key;
        }
        if (item < 0) {
            item = int(view.items.size());
            view.items.push_back({ tree.nodes[i], {}, parent, false, 0, {} });
        }
        itemOfNode[tree.nodes[i].value] = item;
    }

    std::unordered_map<uint64_t, int> known; // (from, to)
    std::unordered_map<uint64_t, int> counted; // (edge, producer)
    for (NodeId id : tree.nodes)
        for (NodeId producer : gm.graph.inputs(id)) {
            auto from = itemOfNode.find(producer.value);
            const int to = itemOfNode[id.value];
            if (from == itemOfNode.end() || from->second == to)
                continue;
            auto [it, fresh] = known.try_emplace(uint64_t(uint32_t(from->second)) << 32 | uint32_t(to), int(view.edges.size()));
            if (fresh)
                view.edges.push_back({ from->second, to, producer, id, 0 });
            view.edges[size_t(it->second)].bundled
                += counted.try_emplace(uint64_t(uint32_t(it->second)) << 32 | producer.value, 0).second;
        }
    return view;
}

std::set<std::string> foldToFit(const GraphModule &gm, int maxItems)
{
    const Boxes tree(gm, false);
    std::set<std::string> open;
    int shown = 0;
    for (size_t i = 0; i < tree.nodes.size(); ++i)
        shown += tree.innermost[i] < 0;
    for (const auto &box : tree.boxes)
        shown += box.parent < 0;
    for (int depth = 0;; ++depth) {
        int more = 0;
        std::vector<const std::string *> keys;
        for (const auto &box : tree.boxes)
            if (box.depth == depth) {
                keys.push_back(&box.key);
                more += box.children;
            }
        // A wrapper around everything is opened in any case.
        const bool wrapper = keys.size() == 1 && shown <= 5;
        if (keys.empty() || (shown + more > maxItems && !wrapper))
            return open;
        for (const auto *key : keys)
            open.insert(*key);
        shown += more;
    }
}

std::map<std::string, int> identicalBlocks(const GraphModule &gm)
{
    const Boxes tree(gm, false);
    std::vector<uint64_t> hash(tree.boxes.size());
    for (size_t b = 0; b < hash.size(); ++b)
        hash[b] = std::hash<std::string>{}(tree.boxes[b].className);
    std::unordered_map<uint32_t, size_t> position;
    std::vector<size_t> first(tree.boxes.size(), SIZE_MAX);
    for (size_t i = 0; i < tree.nodes.size(); ++i) {
        const Node &n = gm.graph[tree.nodes[i]];
        position[n.id.value] = i;
        uint64_t own = std::hash<std::string>{}(nodeTitle(gm, n));
        combine(own, std::hash<std::string>{}(nodeSummary(gm, n)));
        const auto inputs = gm.graph.inputs(n.id);
        for (int b = tree.innermost[i]; b >= 0; b = tree.boxes[size_t(b)].parent) {
            first[size_t(b)] = std::min(first[size_t(b)], i);
            combine(hash[size_t(b)], own);
            // Inputs by distance; those from outside count as such.
            for (NodeId input : inputs) {
                auto at = position.find(input.value);
                const bool inside = at != position.end() && at->second >= first[size_t(b)];
                combine(hash[size_t(b)], inside ? i - at->second : 0);
            }
        }
    }
    std::unordered_map<uint64_t, int> alike;
    for (uint64_t h : hash)
        ++alike[h];
    std::map<std::string, int> result;
    for (size_t b = 0; b < hash.size(); ++b)
        result[tree.boxes[b].key] = alike[hash[b]];
    return result;
}

} // namespace fb
