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
#include "support/python.h"

using namespace fb;

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
        std::set<std::string> names, whole_;
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
            if (c.match != Match::Equal)
                failed(std::string(c.match == Match::Close ? "close: " : "unlike: ") + c.why);
        }
        Row all;
        std::printf("%-28s %7s %7s %7s %7s %7s\n", "family", "cases", "equal", "1e-6", "unlike", "refused");
        const auto print = [](const std::string &name, const Row &r) {
            std::printf("%-28s %7d %7d %7d %7d %7d\n", name.c_str(), r.cases, r.equal, r.close, r.unlike, r.refused);
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
        QCOMPARE(all.unlike, 0);
        QCOMPARE(all.refused, 0);
    }
};

QTEST_GUILESS_MAIN(TstCoverage)
#include "tst_coverage.moc"
