// Everything that a graph can call, against real PyTorch. GPL-3.0-or-later.
//
// tests/oracle/coverage_oracle.py writes one archive of many small graphs, each of which gives (what came out, what torch gave).
// Here they all run; the table says how many are equal bit for bit, and why the others are not. By default that is every module
// of torch.nn and a sample of each function; FUSEBOARD_ZOO=1 makes it every sample of torch's own database.
#include <QTest>

#include <QFile>
#include <QJsonArray>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "model/exec/interpreter.h"
#include "model/io/fxt.h"
#include "support/graphs.h"
#include "support/python.h"

using namespace fb;
using fbtest::node;

namespace
{

enum class Match { Equal, Close, Unlike };

struct Comparison {
    Match match = Match::Equal;
    std::string why;

    void note(Match m, std::string text)
    {
        if (m > match) {
            match = m;
            why = std::move(text);
        }
    }
};

std::string shown(const Arg &a)
{
    if (const Tensor *t = a.as<Tensor>())
        return *t ? std::string(dtypeName((*t)->dtype)) + " " + (*t)->shapeText() : "no tensor";
    if (a.sequence() || a.named())
        return "a sequence";
    if (const auto *s = a.as<std::string>())
        return *s;
    if (const auto d = a.toDouble())
        return std::to_string(*d);
    return a.isNone() ? "None" : "a value of another kind";
}

void compareTensors(const Tensor &mine, const Tensor &torchs, Comparison &c)
{
    if (mine->dtype != torchs->dtype || mine->sizes != torchs->sizes)
        return c.note(Match::Unlike, shown(mine) + " instead of " + shown(torchs));
    if (sameContents(mine, torchs))
        return;
    const std::vector<double> a = toDoubles(*mine), b = toDoubles(*torchs);
    double worst = 0, largest = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        if (std::isfinite(b[i]))
            largest = std::max(largest, std::abs(b[i]));
        if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
            continue;
        worst = std::max(worst, std::isfinite(a[i]) && std::isfinite(b[i]) ? std::abs(a[i] - b[i]) : 1e300);
    }
    if (worst == 0 && torchs->dtype != DType::Complex64 && torchs->dtype != DType::Complex128)
        return; // zeros or nans of another sign
    c.note(worst <= 1e-6 * largest ? Match::Close : Match::Unlike, "the values differ");
}

void compare(const Arg &mine, const Arg &torchs, Comparison &c)
{
    const Tensor *a = mine.as<Tensor>(), *b = torchs.as<Tensor>();
    if (a && b && *a && *b)
        return compareTensors(*a, *b, c);
    const auto items = [](const Arg &x) -> std::optional<ArgList> {
        if (const ArgSequence *s = x.sequence())
            return s->items;
        if (const ArgNamedTuple *n = x.named()) {
            ArgList list;
            for (const auto &field : n->fields)
                list.push_back(field.second);
            return list;
        }
        if (const ArgDict *d = x.dictionary()) {
            ArgList list;
            for (const auto &[key, value] : d->items) {
                list.push_back(key);
                list.push_back(value);
            }
            return list;
        }
        return std::nullopt;
    };
    const auto x = items(mine), y = items(torchs);
    if (x && y) {
        if (x->size() != y->size())
            return c.note(Match::Unlike, std::to_string(x->size()) + " items instead of " + std::to_string(y->size()));
        for (size_t i = 0; i < x->size(); ++i)
            compare((*x)[i], (*y)[i], c);
        return;
    }
    if (mine == torchs)
        return;
    const double *d = mine.as<double>(), *e = torchs.as<double>();
    const bool close = d && e && std::abs(*d - *e) <= 1e-15 * std::abs(*e);
    c.note(close ? Match::Close : Match::Unlike, shown(mine) + " instead of " + shown(torchs));
}

using Metas = std::map<NodeId, TensorMeta>;

// Shapes and dtypes as a run gives them, and as propagateShapes says; empty where they agree.
std::string shapesDiffer(const GraphModule &gm, const Metas &run)
{
    GraphModule copy = gm;
    for (const NodeId id : gm.graph.order())
        copy.graph.setMeta(id, std::nullopt);
    if (const auto s = propagateShapes(copy, {}); !s)
        return s.error().message;
    for (const auto &[id, meta] : run)
        if (copy.graph[id].meta != meta)
            return copy.graph[id].name + " differs";
    return {};
}

} // namespace

class TstCoverage : public QObject
{
    Q_OBJECT

    fbtest::Judge judge_;

private slots:
    void everyCall()
    {
        const bool whole = qEnvironmentVariableIsSet("FUSEBOARD_ZOO");
        QString stem = qEnvironmentVariable("FUSEBOARD_COVERAGE"); // an archive made before
        if (stem.isEmpty()) {
            stem = judge_.path(QStringLiteral("cases"));
            QVERIFY2(judge_.oracle(QStringLiteral("coverage_oracle.py"),
                         QStringList{ stem } + (whole ? QStringList{ QStringLiteral("--all") } : QStringList())),
                judge_.error);
        }
        setThreads(1);
        const auto archive = readFxt((stem + QStringLiteral(".fxt")).toStdString());
        QVERIFY2(archive, archive ? "" : archive.message().c_str());
        std::ofstream trail(qEnvironmentVariable("FUSEBOARD_COVERAGE_TRAIL").toStdString()); // which case was running
        struct Row {
            int cases = 0, equal = 0, close = 0, unlike = 0, refused = 0;
        };
        std::map<std::string, Row> rows; // by family
        std::map<std::string, std::vector<std::string>> reasons; // of what is not equal
        std::set<std::string> names;
        int shapes = 0; // cases whose shapes without values are others
        for (const auto &[path, info] : archive->modules) {
            if (info->kind != ModuleKind::Graph)
                continue;
            const std::string title = info->graph->provenance.source, name = title.substr(0, title.find(' '));
            names.insert(name);
            trail << title << std::endl;
            Row &row = rows[name.starts_with("torch.ops.") ? "torch.ops" : name.substr(0, name.rfind('.'))];
            ++row.cases;
            const auto failed = [&](const std::string &why) { reasons[why].push_back(title); };
            auto interpreter = Interpreter::create(*info->graph);
            RunOptions options;
            options.seed = 5;
            Metas metas;
            options.observer = [&](NodeId id, const Arg &value) {
                if (const Tensor *t = value.as<Tensor>(); t && *t)
                    metas[id] = { (*t)->sizes, (*t)->dtype };
            };
            const auto result = interpreter ? interpreter->run({}, options) : Result<Arg>(interpreter.error());
            if (!result) {
                ++row.refused;
                const std::string &m = result.message();
                failed("refused: " + m.substr(m.find(": ") + 2));
                continue;
            }
            const ArgSequence *pair = result->sequence();
            QVERIFY(pair && pair->items.size() == 2);
            Comparison c;
            compare(pair->items[0], pair->items[1], c);
            ++(c.match == Match::Equal ? row.equal : c.match == Match::Close ? row.close : row.unlike);
            if (const std::string differs = shapesDiffer(*info->graph, metas); !differs.empty()) {
                ++shapes;
                failed("shapes: " + differs);
            }
            if (c.match != Match::Equal)
                failed(std::string(c.match == Match::Close ? "close: " : "unlike: ") + c.why);
        }
        Row all;
        std::printf("zoo| %-28s %7s %7s %7s %7s %7s\n", "family", "cases", "equal", "1e-6", "unlike", "refused");
        const auto print = [](const std::string &name, const Row &r) {
            std::printf("zoo| %-28s %7d %7d %7d %7d %7d\n", name.c_str(), r.cases, r.equal, r.close, r.unlike, r.refused);
        };
        for (const auto &[name, r] : rows) {
            print(name, r);
            all.cases += r.cases, all.equal += r.equal, all.close += r.close, all.unlike += r.unlike, all.refused += r.refused;
        }
        print("all", all);
        std::printf("%zu names\n", names.size());
        std::vector<std::pair<std::string, std::vector<std::string>>> ordered(reasons.begin(), reasons.end());
        std::stable_sort(
            ordered.begin(), ordered.end(), [](const auto &a, const auto &b) { return a.second.size() > b.second.size(); });
        const size_t shownCases = qEnvironmentVariableIsSet("FUSEBOARD_COVERAGE") ? 100 : 2;
        for (const auto &[why, titles] : ordered) {
            std::printf("%5zu  %s\n", titles.size(), why.c_str());
            for (size_t i = 0; i < std::min(titles.size(), shownCases); ++i)
                std::printf("           %s\n", titles[i].c_str());
        }
        std::fflush(stdout);
        QVERIFY(all.cases > 1000);
        QCOMPARE(shapes, 0);
        QCOMPARE(all.unlike, 0);
        QCOMPARE(all.refused, 0);
    }

    // 64 GB of activations, of which a run on values would need two at a time.
    void shapesNeedNoMemory()
    {
        GraphModule gm;
        const NodeId x = gm.graph.append(node(Opcode::Placeholder, "x", "x"));
        const NodeId a = gm.graph.append(node(Opcode::CallFunction, "a", "operator.add", { x, 1 }));
        const NodeId b = gm.graph.append(node(Opcode::CallMethod, "b", "flatten", { a, 0, 1 }));
        const NodeId c = gm.graph.append(node(Opcode::CallFunction, "c", "torch.sum", { b, 0 }));
        gm.graph.append(node(Opcode::Output, "output", "output", { c }));
        const float one = 1;
        TensorData wide = *makeTensor(DType::Float32, { 1 }, &one);
        wide.sizes = { 1 << 10, 1 << 12, 1 << 12 };
        wide.strides = { 0, 0, 0 };
        const Arg input(std::make_shared<const TensorData>(wide));
        const auto s = propagateShapes(gm, { input });
        QVERIFY2(s, s ? "" : s.error().message.c_str());
        QCOMPARE(gm.graph[b].meta->shape, (std::vector<int64_t>{ 1 << 22, 1 << 12 }));

        const auto follows = batchDimensions(gm, { input });
        QCOMPARE(follows.at(a), (std::vector<int64_t>{ 1, 0, 0 }));
        QCOMPARE(shapeText(gm.graph[a].meta->shape, follows.at(a)), std::string("Nx4096x4096"));
        QCOMPARE(shapeText(gm.graph[b].meta->shape, follows.at(b)), std::string("4096Nx4096"));
        QVERIFY(!follows.contains(c));
    }

    // Graphs within graphs, called with names; what a branch does in place stays in it only as far as it does in torch.
    void nestedGraphs()
    {
        GraphModule inner;
        const NodeId x = inner.graph.append(node(Opcode::Placeholder, "x", "x"));
        const NodeId k = inner.graph.append(node(Opcode::Placeholder, "k", "k", { 2 }));
        const NodeId y = inner.graph.append(node(Opcode::CallFunction, "y", "operator.mul", { x, k }));
        inner.graph.append(node(Opcode::Output, "output", "output", { y }));
        for (int depth = 0; depth < 100; ++depth) {
            GraphModule outer;
            ModuleInfo m;
            m.path = "deeper";
            m.className = "GraphModule";
            m.kind = ModuleKind::Graph;
            m.graph = std::make_shared<const GraphModule>(std::move(inner));
            outer.addModule(m);
            const NodeId in = outer.graph.append(node(Opcode::Placeholder, "x", "x"));
            const NodeId by = outer.graph.append(node(Opcode::Placeholder, "k", "k", { 3 }));
            const NodeId call = outer.graph.append(node(Opcode::CallModule, "deeper", "deeper", { in }, { { "k", by } }));
            outer.graph.append(node(Opcode::Output, "output", "output", { call }));
            inner = std::move(outer);
        }
        auto interpreter = Interpreter::create(inner);
        QVERIFY2(interpreter, interpreter ? "" : interpreter.message().c_str());
        const auto r = interpreter->run({ makeFloat({ 2 }, { 1, 2 }) });
        QVERIFY2(r, r ? "" : r.message().c_str());
        QCOMPARE(toDoubles(**r->as<Tensor>()), (std::vector<double>{ 3, 6 }));
        const auto missing = interpreter->run({});
        QVERIFY(!missing && missing.message().find("the input is missing") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TstCoverage)
#include "tst_coverage.moc"
