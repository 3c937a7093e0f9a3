// Throws damaged inputs at what reads them: `fuzz CORPUS [--seconds N | --runs N] [--seed S]`. GPL-3.0-or-later.
//
// CORPUS is a folder of trace archives (.fxt), exported programs (.pt2) and canonical texts (.txt). Inputs are cut, doubled,
// spliced and sprinkled with the numbers and words that formats break on; half of the archives are damaged inside their texts and
// pickles and zipped anew, since a damaged zip never gets as far as a graph. Whatever draws a sentence not seen before joins the
// corpus of this run. Every input must give one line that begins with the file, or a sound graph that prints, writes and reads
// back. The input that does not is left in fuzz-input.zip or fuzz-input.txt of the working folder. Meant for the sanitizers'
// build.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

#include "model/io/files.h"
#include "model/io/fxt.h"
#include "model/io/models.h"
#include "model/ir/lint.h"
#include "model/text/text.h"

using namespace fb;

namespace
{

struct Input {
    bool archive = false;
    std::string bytes;
};

std::mt19937_64 random_;
size_t below(size_t n)
{
    return n ? size_t(random_() % n) : 0;
}

constexpr const char *kWords[] = { "0", "-1", "1", "64", "65536", "2147483648", "4294967295", "9223372036854775807",
    "-9223372036854775808", "18446744073709551616", "1e308", "1e999", "NaN", "null", "true", "[]", "{}", "[[[[[[[[", "}}}}",
    "\"\"", "\"node\"", "\"tuple\"", "\"dict\"", "\"slice\"", "\"tensor\"", "\"graph\"", "\"opaque\"", "\"output\"",
    "\"call_module\"", "\"placeholder\"", "\"..\"", "\"\\u0000\"", "\"\\ud800\"", "%x", "{1}", "(", ")", ",", "=", "\n", "\\",
    "'", "\xff", "\xc3\xa9" };

void mutate(std::string &s, const std::vector<Input> &corpus)
{
    for (size_t round = 1 + below(6); round-- > 0;) {
        const size_t at = below(s.size()), length = std::min(1 + below(below(4) ? 8 : 200), s.size() - std::min(at, s.size()));
        switch (below(9)) {
        case 0:
            if (!s.empty())
                s[at] = char(s[at] ^ (1 << below(8)));
            break;
        case 1:
            if (!s.empty())
                s[at] = char(random_());
            break;
        case 2:
            s.erase(at, length);
            break;
        case 3:
            s.insert(at, s.substr(at, length));
            break;
        case 4:
        case 5:
            s.insert(at, kWords[below(std::size(kWords))]);
            break;
        case 6: { // another number where one stands
            const size_t digit = s.find_first_of("0123456789", at);
            if (digit != std::string::npos)
                s.replace(digit, s.find_first_not_of("0123456789", digit) - digit, kWords[below(12)]);
            break;
        }
        case 7: {
            const std::string &other = corpus[below(corpus.size())].bytes;
            s.insert(at, other.substr(below(other.size()), 1 + below(300)));
            break;
        }
        case 8: { // one word takes the place of another
            const size_t a = s.find('"', at), b = a == s.npos ? a : s.find('"', a + 1);
            const size_t c = s.find('"', below(s.size())), d = c == s.npos ? c : s.find('"', c + 1);
            if (b != s.npos && d != s.npos)
                s.replace(a, b - a + 1, s.substr(c, d - c + 1));
            break;
        }
        }
        if (s.size() > 1 << 20)
            s.resize(1 << 20);
    }
}

// Damages the documents in it and zips it anew; false when the archive is no archive any more.
bool mutateInside(std::string &archive, const std::vector<Input> &corpus)
{
    try {
        const io::ZipReader reader(io::bytesOf(archive));
        std::string out;
        io::ZipWriter writer([&](io::Bytes piece) { out += io::textOf(piece); });
        for (const auto &member : reader.members()) {
            std::string bytes(io::textOf(reader.stored(member, false)));
            const bool inner = bytes.starts_with("PK") && below(4) && mutateInside(bytes, corpus);
            if (!inner && (member.name.ends_with(".json") || member.name.ends_with(".pkl") || below(10) == 0))
                mutate(bytes, corpus);
            writer.add(member.name, { io::bytesOf(bytes) });
        }
        writer.finish();
        archive = std::move(out);
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

[[noreturn]] void fail(const std::string &file, const std::string &what)
{
    std::fprintf(stderr, "fuzz: %s; the input is kept in %s\n", what.c_str(), file.c_str());
    std::abort();
}

// What was said: the sentence with digits taken out, or how far a good graph came.
std::string tryGraph(const Graph &g, const std::string &file)
{
    const std::string text = canonicalText(g);
    auto again = parseCanonical(text);
    if (!again)
        fail(file, "its canonical text does not parse back: " + again.message());
    if (!(*again == g))
        fail(file, "its canonical text parses back to another graph");
    return "graph of " + std::to_string(std::min<size_t>(g.size(), 40));
}

std::string tryArchive(const std::string &file)
{
    const auto gm = readModel(file);
    if (!gm) {
        if (!gm.message().starts_with(file) || gm.message().find('\n') != std::string::npos)
            fail(file, "the error is not one sentence that begins with the file: " + gm.message());
        return gm.message().substr(file.size());
    }
    if (const auto problems = lint(*gm); !problems.empty())
        fail(file, "a graph was read that lint refuses: " + problems.front().message);
    (void)torchGraphText(*gm);
    (void)torchCode(*gm);
    (void)torchCode(*gm, { true });
    const std::string copy = file + ".copy";
    if (const Status written = writeFxt(*gm, copy); !written)
        fail(file, "it does not write: " + written.message());
    auto back = readFxt(copy);
    if (!back || !(*back == *gm))
        fail(file, back ? "it reads back as another graph" : "it does not read back: " + back.message());
    std::filesystem::remove(copy);
    return tryGraph(gm->graph, file);
}

std::string tryText(const std::string &file, const std::string &bytes)
{
    const auto g = parseCanonical(bytes);
    return g ? tryGraph(*g, file) : g.message();
}

std::string withoutDigits(std::string s)
{
    std::erase_if(s, [](unsigned char c) { return std::isdigit(c); });
    return s.substr(0, 60);
}

} // namespace

int main(int argc, char **argv)
{
    uint64_t seconds = 0, runs = 0, seed = 1;
    for (int i = 2; i + 1 < argc; i += 2) {
        const uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
        (std::strcmp(argv[i], "--seconds") == 0 ? seconds : std::strcmp(argv[i], "--runs") == 0 ? runs : seed) = value;
    }
    std::vector<Input> corpus;
    std::error_code error;
    if (argc > 1)
        for (const auto &entry : std::filesystem::directory_iterator(argv[1], error)) {
            std::ifstream in(entry.path(), std::ios::binary);
            corpus.push_back({ entry.path().extension() != ".txt",
                std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()) });
        }
    if (corpus.empty() || (!seconds && !runs)) {
        std::fprintf(stderr, "usage: fuzz CORPUS [--seconds N | --runs N] [--seed S]\n");
        return 2;
    }
    std::sort(corpus.begin(), corpus.end(), [](const Input &a, const Input &b) { return a.bytes < b.bytes; });
    random_.seed(seed);
    std::set<std::string> said;
    const auto start = std::chrono::steady_clock::now();
    auto elapsed = [&] { return uint64_t(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()); };
    const size_t given = corpus.size();
    uint64_t done = 0;
    for (; runs ? done < runs : elapsed() < seconds; ++done) {
        Input input = corpus[done < given ? done : below(corpus.size())]; // first as they are
        if (done >= given && !(input.archive && below(2) && mutateInside(input.bytes, corpus)))
            mutate(input.bytes, corpus);
        const std::string file = input.archive ? "fuzz-input.zip" : "fuzz-input.txt";
        std::ofstream(file, std::ios::binary) << input.bytes;
        alarm(60); // a hang ends the run and leaves its input
        const std::string answer = withoutDigits(input.archive ? tryArchive(file) : tryText(file, input.bytes));
        if (said.insert((input.archive ? "zip" : "txt") + answer).second && done >= given && input.bytes.size() < 1 << 16)
            corpus.push_back(std::move(input));
        std::filesystem::remove(file);
    }
    std::printf("fuzz: %llu inputs in %llu s, %zu different answers, no failure\n", static_cast<unsigned long long>(done),
        static_cast<unsigned long long>(elapsed()), said.size());
    return 0;
}
