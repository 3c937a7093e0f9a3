// Fuseboard tests: files that are empty, cut short, foreign, damaged or hostile give one sentence that begins with the file,
// and nothing else happens. Meant to be run with the address and undefined behaviour sanitizers as well. GPL-3.0-or-later.
#include <QTest>

#include <fstream>
#include <random>

#include "model/io/files.h"
#include "model/io/fxt.h"
#include "model/ir/lint.h"
#include "support/graphs.h"
#include "support/python.h"

using namespace fb;

namespace
{

// x -> conv -> output, as the tracer writes it; cases change one thing in it.
const std::string kGraph = R"({"format":"fuseboard-fxt","version":1,"torch":"2.13.0","root_class":"Net","nodes":[
{"op":"placeholder","name":"x","target":"x","args":[],"kwargs":{}},
{"op":"call_module","name":"conv","target":"conv","args":[{"node":"x"}],"kwargs":{}},
{"op":"output","name":"output","target":"output","args":[{"node":"conv"}],"kwargs":{}}],
"modules":[{"path":"","class":"net.Net","kind":"container"},
{"path":"conv","class":"torch.nn.modules.conv.Conv2d","kind":"nn","parameters":["weight"]}],
"tensors":{"conv.weight":"w"}})";
const std::string kTensors = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

std::string safetensors(const std::string &header, size_t body = 8)
{
    std::string out;
    io::appendLittle<uint64_t>(out, header.size());
    return out + header + std::string(body, '\1');
}

std::string archive(const std::string &graph, const std::string &tensors)
{
    std::string bytes;
    io::ZipWriter zip([&](io::Bytes piece) { bytes += io::textOf(piece); });
    zip.add("graph.json", { io::bytesOf(graph) });
    zip.add("tensors.safetensors", { io::bytesOf(tensors) });
    zip.finish();
    return bytes;
}

void put(const std::string &path, const std::string &bytes)
{
    std::ofstream(path, std::ios::binary) << bytes;
}

std::string replaced(std::string text, const std::string &what, const std::string &by)
{
    const size_t at = text.find(what);
    if (at == std::string::npos)
        qFatal("the case looks for %s, which is not there", what.c_str());
    return text.replace(at, what.size(), by);
}

void patch(std::string &bytes, size_t at, uint64_t value, int width)
{
    for (int i = 0; i < width; ++i)
        bytes[at + size_t(i)] = char(value >> (8 * i));
}

} // namespace

class TestBadFiles : public QObject
{
    Q_OBJECT
    QTemporaryDir folder;
    std::string path(const std::string &name) { return folder.filePath(QString::fromStdString(name)).toStdString(); }

    // Reads bytes as a trace; what comes out is sound, or one line that begins with the file. -> the sentence, "" when it opened
    std::string open(const std::string &bytes)
    {
        const std::string file = path("case.fxt");
        put(file, bytes);
        return openFile(file);
    }
    std::string openFile(const std::string &file)
    {
        const auto gm = readFxt(file);
        if (gm)
            return lint(*gm).empty() ? "" : "opened, but it is not sound";
        const std::string &message = gm.message();
        if (!message.starts_with(file + ": ") || message.find('\n') != std::string::npos)
            return "badly said: " + message;
        return message.substr(file.size() + 2);
    }

private slots:
    void theCaseItselfOpens() { QCOMPARE(open(archive(kGraph, safetensors(kTensors))), std::string()); }

    void graphs_data()
    {
        QTest::addColumn<QByteArray>("from");
        QTest::addColumn<QByteArray>("to");
        QTest::addColumn<QByteArray>("says");
        auto row = [](const char *name, const char *from, const char *to, const char *says) {
            QTest::newRow(name) << QByteArray(from) << QByteArray(to) << QByteArray(says);
        };
        row("no json", "{\"format\"", "{format", "graph.json is not valid JSON at byte 3");
        row("other format", "fuseboard-fxt", "other", "graph.json is not a Fuseboard document");
        row("newer version", "\"version\":1", "\"version\":7", "it is of .fxt version 7, and this Fuseboard reads version 1");
        row("no version", "\"version\":1,", "", "graph.json has no \"version\"");
        row("unknown opcode", "call_module", "call_magic", "conv has the unknown opcode \"call_magic\"");
        row("unknown node", "{\"node\":\"x\"}", "{\"node\":\"y\"}", "conv uses y, and no node has that name");
        row("cycle of one", "{\"node\":\"x\"}", "{\"node\":\"conv\"}", "conv uses conv before it is defined");
        row("use before definition", "{\"node\":\"x\"}", "{\"node\":\"output\"}", "conv uses output before it is defined");
        row("duplicate name", "\"name\":\"conv\"", "\"name\":\"x\"", "two nodes are named x");
        row("name with code in it", "\"name\":\"conv\"", "\"name\":\"a; import os\"",
            "the name of node 1 is not a Python identifier");
        row("target with code in it", "\"target\":\"conv\"", "\"target\":\"f(); g\"",
            "conv calls module f(); g, which does not exist");
        row("missing module", "\"target\":\"conv\"", "\"target\":\"gone\"", "conv calls module gone, which does not exist");
        row("missing attribute", "\"call_module\"", "\"get_attr\"", "");
        row("missing tensor", "\"conv.weight\":\"w\"", "\"conv.weight\":\"v\"",
            "conv.weight needs tensor v, which the archive does not hold");
        row("nodes are no list", "\"nodes\":[", "\"nodes\":3,\"old\":[", "\"nodes\" is not a list");
        row("node is no object", "\"nodes\":[", "\"nodes\":[7,", "node 0 has no \"name\"");
        row("argument of two members", "{\"node\":\"x\"}", "{\"node\":\"x\",\"b\":1}",
            "an argument of conv is an object of 2 members");
        row("argument of unknown kind", "{\"node\":\"x\"}", "{\"wat\":\"x\"}",
            "an argument of conv is of the unknown kind \"wat\"");
        row("slice of two", "{\"node\":\"x\"}", "{\"slice\":[1,2]}", "a slice of conv has not three parts");
        row("big integer of letters", "{\"node\":\"x\"}", "{\"int\":\"1e5\"}", "conv has an integer that is not made of digits");
        row("second output", "\"op\":\"call_module\"", "\"op\":\"output\"", "");
        row("no output", "{\"op\":\"output\"", "{\"op\":\"call_method\"", "");
        row("module kind", "\"kind\":\"nn\"", "\"kind\":\"x\"", "module conv is of the unknown kind \"x\"");
        row("script without script", "\"kind\":\"nn\"", "\"kind\":\"script\"",
            "module conv is of the kind \"script\" but names no script");
        row("script that is not there", "\"kind\":\"nn\"", "\"kind\":\"script\",\"script\":\"scripts/9.pt\"",
            "module conv needs scripts/9.pt");
        row("module twice", "\"path\":\"conv\"", "\"path\":\"\"", "the root module stands twice");
        row("alias of nothing", "\"kind\":\"nn\"", "\"kind\":\"nn\",\"alias_of\":\"z\"", "module conv is another name of z");
        row("huge shape", "\"args\":[],", "\"args\":[],\"dtype\":\"float32\",\"shape\":[9223372036854775807,2],",
            "the shape of x claims a size beyond");
        row("negative shape", "\"args\":[],", "\"args\":[],\"dtype\":\"float32\",\"shape\":[-1],",
            "the shape of x has the negative size -1");
        row("quantized nothing", "\"tensors\":", "\"quantized\":{\"z\":{}},\"tensors\":", "the quantization of z is given");
        row("quantized floats", "\"tensors\":",
            "\"quantized\":{\"w\":{\"dtype\":\"qint8\",\"scales\":[1],\"zero_points\":[0],\"axis\":-1}},\"tensors\":",
            "the quantization of w does not go with its data");
        row("quantized wrongly", "\"tensors\":",
            "\"quantized\":{\"w\":{\"dtype\":\"qint32\",\"scales\":[1],\"zero_points\":[0],\"axis\":0}},\"tensors\":",
            "the quantization of w does not go with its");
    }
    void graphs()
    {
        QFETCH(QByteArray, from);
        QFETCH(QByteArray, to);
        QFETCH(QByteArray, says);
        const std::string said = open(archive(replaced(kGraph, from.toStdString(), to.toStdString()), safetensors(kTensors)));
        if (says.isEmpty()) {
            QVERIFY2(!said.starts_with("badly") && !said.starts_with("opened"), said.c_str());
            return;
        }
        QVERIFY2(said.starts_with(says.toStdString()), said.c_str());
    }

    void nesting()
    {
        const std::string deep = std::string(200000, '[') + std::string(200000, ']');
        QCOMPARE(open(archive(deep, safetensors(kTensors))), std::string("graph.json is nested more than 3000 deep"));
        std::string tuples = "1";
        for (int i = 0; i < 400; ++i)
            tuples = "{\"tuple\":[" + tuples + "]}";
        QCOMPARE(open(archive(replaced(kGraph, "{\"node\":\"x\"}", tuples), safetensors(kTensors))), std::string());
        std::string graphs = "1"; // a graph in a module in a graph ...
        for (int i = 0; i < 200; ++i)
            graphs = "{\"nodes\":[],\"modules\":[{\"path\":\"a\",\"class\":\"b\",\"kind\":\"graph\",\"graph\":" + graphs + "}]}";
        QVERIFY(
            !open(archive(replaced(kGraph, "\"kind\":\"nn\"", "\"kind\":\"graph\",\"graph\":" + graphs), safetensors(kTensors)))
                 .empty());
    }

    void tensors_data()
    {
        QTest::addColumn<QByteArray>("header");
        QTest::addColumn<QByteArray>("says");
        auto row = [](const char *name, const char *header, const char *says) {
            QTest::newRow(name) << QByteArray(header) << QByteArray(says);
        };
        row("past the end", R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", "tensor w claims bytes 0 to 12 of 8");
        row("10 GB", R"({"w":{"dtype":"F32","shape":[2500000000],"data_offsets":[0,10000000000]}})",
            "tensor w claims bytes 0 to 10000000000 of 8");
        row("shape without bytes", R"({"w":{"dtype":"F32","shape":[2500000000],"data_offsets":[0,8]}})",
            "tensor w claims 8 bytes, but its shape needs");
        row("backwards", R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "tensor w claims bytes 8 to 0");
        row("negative", R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", "tensor w claims bytes -8 to 0");
        row("overflow", R"({"w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})",
            "tensor w claims a size beyond any memory");
        row("overflow hidden by zero", R"({"w":{"dtype":"F32","shape":[0,4611686018427387904,4],"data_offsets":[0,0]}})",
            "tensor w claims a size beyond any memory");
        row("negative size", R"({"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "tensor w has the negative size -2");
        row("dtype", R"({"w":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})", "tensor w has the dtype F99");
        row("no offsets", R"({"w":{"dtype":"F32","shape":[2]}})", "tensor w has no \"data_offsets\"");
        row("twice",
            R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
            "tensor w stands twice");
        row("list", "[]", "the safetensors header is not an object");
        row("text", "nonsense", "the safetensors header is not valid JSON");
    }
    void tensors()
    {
        QFETCH(QByteArray, header);
        QFETCH(QByteArray, says);
        const std::string bytes = safetensors(header.toStdString());
        const std::string said = open(archive(kGraph, bytes));
        QVERIFY2(said.starts_with(says.toStdString()), said.c_str());
        QVERIFY(writeFileAtomically(path("c.safetensors"), bytes));
        QVERIFY(!readSafetensors(path("c.safetensors")));
    }
    void tensorLengths()
    {
        std::string huge = safetensors(kTensors);
        patch(huge, 0, UINT64_MAX, 8);
        QVERIFY(open(archive(kGraph, huge)).starts_with("the safetensors header claims"));
        QVERIFY(open(archive(kGraph, "")).starts_with("it is too short for a safetensors file"));
        // Data that is not aligned for its type is read all the same.
        QCOMPARE(open(archive(kGraph, safetensors(kTensors + " "))), std::string());
    }

    void zips()
    {
        const std::string good = archive(kGraph, safetensors(kTensors));
        const size_t end = good.size() - 22;
        const size_t directory = io::readLittle<uint32_t>(io::bytesOf(good), end + 16);
        auto changed = [&](size_t at, uint64_t value, int width) {
            std::string bytes = good;
            patch(bytes, at, value, width);
            return open(bytes);
        };
        const std::string damaged = "the zip directory is damaged; copy or make the file again";
        QCOMPARE(
            changed(directory + 8, 1, 2), std::string("its member graph.json is encrypted; make the archive without a password"));
        QCOMPARE(changed(directory + 10, 8, 2),
            std::string("its member graph.json is compressed; members must be stored as they are"));
        QVERIFY(changed(directory + 16, 0, 4).starts_with("its member graph.json is damaged (checksum differs)"));
        QCOMPARE(changed(end + 10, 60000, 2), damaged); // more members than the directory has room for
        QCOMPARE(changed(end + 12, 0xfffffff0, 4), damaged);
        QCOMPARE(changed(end + 16, 0xfffffff0, 4), damaged);
        QCOMPARE(changed(directory + 20, 0xfffffff0, 4), damaged);
        QCOMPARE(changed(directory + 42, 0xfffffff0, 4), damaged);
        QCOMPARE(changed(directory + 28, 0xffff, 2), damaged);
        QCOMPARE(changed(26, 0xffff, 2), damaged);
        QVERIFY(open(good + "x").starts_with("the zip archive is cut short"));

        // Two entries that name one place.
        std::string overlapping = good.substr(0, end);
        const std::string first = good.substr(directory, 46 + 10);
        overlapping = good.substr(0, directory) + first + first + good.substr(end);
        patch(overlapping, overlapping.size() - 22 + 12, 2 * first.size(), 4);
        QCOMPARE(open(overlapping), std::string("members of the zip archive overlap; the file is damaged or not to be trusted"));
    }

    void foreignFiles()
    {
        QVERIFY(open("").starts_with("the file is empty"));
        QVERIFY(open("<!DOCTYPE html><html>404</html>").starts_with("it is a web page"));
        QVERIFY(open("{\"a\": 1}").starts_with("it is a JSON file"));
        QVERIFY(open("version https://git-lfs.github.com/spec/v1\n").starts_with("it is a Git LFS pointer"));
        QVERIFY(open(std::string("\x08\x07\x12\x07pytorch", 11)).starts_with("it is an ONNX model"));
        QVERIFY(open("\x89HDF\r\n").starts_with("it is an HDF5 file"));
        QVERIFY(open("import torch\n").starts_with("it is Python source"));
        QVERIFY(open(safetensors(kTensors)).starts_with("it is a safetensors file"));
        QVERIFY(open(std::string(100, 'x')).starts_with("it is not a .fxt trace"));
        QVERIFY(openFile(path("missing.fxt")).starts_with("cannot be opened: there is no such file"));
        QVERIFY(openFile(folder.path().toStdString()).starts_with("cannot be opened: it is a folder"));
        QVERIFY(openFile("/dev/zero").starts_with("cannot be opened: it is not a regular file"));
        const NamedTensors one{ { "a", makeFloat({ 1 }, { 1 }) } };
        QVERIFY(writeNpz(one, path("a.npz")) && writeNpy(one[0].second, path("a.npy")));
        QVERIFY(openFile(path("a.npz")).starts_with("it is a NumPy .npz archive"));
        QVERIFY(openFile(path("a.npy")).starts_with("it is a NumPy array"));

        fbtest::Judge judge;
        QVERIFY2(judge.oracle("io_oracle.py", { "foreign", judge.path(".") }), judge.error);
        auto says = [&](const char *name) { return openFile(judge.path(name).toStdString()); };
        QVERIFY(says("script.pt").starts_with("it is a TorchScript archive, not a .fxt trace"));
        QVERIFY(says("saved.pt").starts_with("it is a torch.save file"));
        QVERIFY(says("old.pt").starts_with("it is a Python pickle"));
        QVERIFY(says("program.pt2").starts_with("it is a torch.export archive"));
    }

    // Every length of a small archive, and thousands of flipped bytes, in the file and in the graph behind a right checksum.
    void truncated()
    {
        const std::string good = archive(kGraph, safetensors(kTensors));
        for (size_t n = 0; n < good.size(); ++n) {
            const std::string said = open(good.substr(0, n));
            QVERIFY2(!said.empty() && !said.starts_with("badly") && !said.starts_with("opened"), said.c_str());
        }
    }
    void flipped()
    {
        QVERIFY(writeFxt(fbtest::everything(), path("all.fxt")));
        const std::string all = *readFile(path("all.fxt")), small = archive(kGraph, safetensors(kTensors));
        std::mt19937 random(1);
        int refused = 0;
        for (int i = 0; i < 4000; ++i) {
            std::string bytes = i % 2 ? all : small;
            // Mostly near the ends and in the headers, where the structure is.
            for (uint32_t k = 0, n = 1 + random() % 3; k < n; ++k) {
                const size_t at
                    = random() % 2 ? bytes.size() - 1 - random() % std::min<size_t>(bytes.size(), 400) : random() % bytes.size();
                bytes[at] = char(random() % 4 ? random() : 0xff);
            }
            const std::string said = open(bytes);
            QVERIFY2(!said.starts_with("badly") && !said.starts_with("opened"), said.c_str());
            refused += !said.empty();
        }
        QVERIFY(refused > 2000);
    }
    void mutatedGraphs()
    {
        QVERIFY(writeFxt(fbtest::everything(), path("all.fxt")));
        const std::string all = *readFile(path("all.fxt"));
        const io::ZipReader zip(io::bytesOf(all));
        const std::string graph(io::textOf(zip.stored(*zip.find("graph.json"), true)));
        const std::string tensors(io::textOf(zip.stored(*zip.find("tensors.safetensors"), true)));
        const std::vector<std::string> words{ "null", "[]", "{}", "-1", "1e999", "\"x\"", "18446744073709551615", "[[[",
            "\"node\"", "true", "" };
        std::mt19937 random(2);
        for (int i = 0; i < 3000; ++i) {
            std::string g = graph, t = tensors;
            std::string &target = i % 4 ? g : t;
            const size_t at = random() % target.size(), length = random() % 12;
            if (random() % 2)
                target.replace(at, length, words[random() % words.size()]);
            else
                target[at] = char(random());
            const std::string said = open(archive(g, t));
            QVERIFY2(!said.starts_with("badly") && !said.starts_with("opened"), said.c_str());
        }
    }

    void arrays()
    {
        QVERIFY(writeNpy(makeFloat({ 2, 3 }, { 1, 2, 3, 4, 5, 6 }), path("a.npy")));
        const std::string npy = *readFile(path("a.npy"));
        auto read = [&](const std::string &bytes) {
            put(path("b.npy"), bytes);
            const auto t = readNpy(path("b.npy"));
            return t ? std::string() : t.message().substr(path("b.npy").size() + 2);
        };
        QCOMPARE(read(npy), std::string());
        QVERIFY(read(npy.substr(0, npy.size() - 1)).starts_with("the array is cut short: 24 bytes are needed, 23 are there"));
        QVERIFY(read(replaced(npy, "(2, 3)", "(2,-3)")).find("shape that cannot be read") != std::string::npos);
        QVERIFY(read(replaced(npy, "(2, 3), }        ", "(99999999999, 3) }")).find("is cut short") != std::string::npos);
        QVERIFY(read(replaced(npy, "(2, 3), }             ", "(9223372036854775807,9)")).find("beyond any memory")
            != std::string::npos);
        QVERIFY(read(replaced(npy, "<f4", "|O8")).find("not opened") != std::string::npos);
        std::mt19937 random(3);
        for (int i = 0; i < 1000; ++i) {
            std::string bytes = npy;
            bytes[random() % 128] = char(random());
            read(bytes);
            read(npy.substr(0, random() % npy.size()));
        }
        QVERIFY(writeNpz({ { "a", makeFloat({ 3 }, { 1, 2, 3 }) }, { "b", makeTensor(DType::Bool, { 2 }) } }, path("a.npz")));
        const std::string npz = *readFile(path("a.npz"));
        for (int i = 0; i < 2000; ++i) {
            std::string bytes = npz;
            bytes[random() % bytes.size()] = char(random());
            put(path("b.npz"), bytes);
            (void)readNpz(path("b.npz"));
        }
    }
};

QTEST_GUILESS_MAIN(TestBadFiles)
#include "tst_badfiles.moc"
