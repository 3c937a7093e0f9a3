// Three layouts hold an exported program. Up to PyTorch 2.7: "serialized_exported_program.json" at the top, with state dict and
// constants as torch.save files beside it. 2.8: a folder with "models/NAME.json", the tensors still as torch.save files,
// "data/weights/NAME.pt". From 2.9 on: raw storages, "data/weights/weight_0", with a table of what lies where.
#include "model/io/pt2_archive.h"

#include <algorithm>
#include <array>

#include "model/io/unpickle.h"

namespace fb::io
{

namespace
{

constexpr std::string_view kOldProgram = "serialized_exported_program.json";

constexpr std::array<std::pair<int64_t, DType>, 17> kDTypes{ { { 1, DType::UInt8 }, { 2, DType::Int8 }, { 3, DType::Int16 },
    { 4, DType::Int32 }, { 5, DType::Int64 }, { 6, DType::Float16 }, { 7, DType::Float32 }, { 8, DType::Float64 },
    { 10, DType::Complex64 }, { 11, DType::Complex128 }, { 12, DType::Bool }, { 13, DType::BFloat16 }, { 28, DType::UInt16 },
    { 29, DType::Float8E4M3 }, { 30, DType::Float8E5M2 }, { 34, DType::UInt32 }, { 35, DType::UInt64 } } };

// "m/" of "m/archive_format"; nothing where there is none.
std::optional<std::string> rootOf(const ZipReader &zip)
{
    for (const auto &m : zip.members())
        if (m.name.ends_with("archive_format") && std::count(m.name.begin(), m.name.end(), '/') <= 1)
            return m.name.substr(0, m.name.size() - std::string_view("archive_format").size());
    return std::nullopt;
}

class Reader
{
public:
    explicit Reader(const std::string &path)
        : archive_(path, MappedFile::open(path))
    {
    }

    Pt2Archive read()
    {
        if (archive_.zip().find(kOldProgram))
            readOldLayout();
        else
            readFolder();
        return std::move(out_);
    }

private:
    Held member(const std::string &name) const
    {
        const auto *m = archive_.zip().find(name);
        if (!m)
            throw FormatError("it is incomplete: " + name + " is missing; copy or export it again");
        return archive_.read(*m, true);
    }
    std::string text(const std::string &name) const { return std::string(textOf(member(name).bytes)); }
    Json json(const std::string &name) const
    {
        const Held held = member(name);
        try {
            return parseJson(textOf(held.bytes));
        } catch (const FormatError &e) {
            throw FormatError(name + " " + e.what());
        }
    }

    void readOldLayout()
    {
        out_.program = json(std::string(kOldProgram));
        for (const char *name : { "serialized_state_dict.pt", "serialized_constants.pt" })
            if (archive_.zip().find(name))
                readPickled(name);
    }

    void readFolder()
    {
        const std::string root = *rootOf(archive_.zip());
        if (const std::string format = text(root + "archive_format"); format != "pt2")
            throw FormatError("its archive_format is \"" + format + "\", and torch.export writes \"pt2\"; export it again");
        if (const std::string version = text(root + "archive_version"); version != "0")
            throw FormatError(
                "its archive_version is " + version + ", and this Fuseboard reads version 0; use a newer Fuseboard");
        if (archive_.zip().find(root + "byteorder") && text(root + "byteorder") == "big")
            throw FormatError("its weights were written on a big-endian machine; export it again on a little-endian one");
        const std::string models = root + "models/";
        std::vector<std::string> names;
        for (const auto &m : archive_.zip().members())
            if (m.name.starts_with(models) && m.name.ends_with(".json"))
                names.push_back(m.name.substr(models.size(), m.name.size() - models.size() - 5));
        if (names.empty()) {
            const bool compiled = std::any_of(archive_.zip().members().begin(), archive_.zip().members().end(),
                [&](const auto &m) { return m.name.starts_with(root + "data/aotinductor/"); });
            throw FormatError(compiled ? "it is a compiled package (AOTInductor) and holds no graph; save the exported program "
                                         "with torch.export.save"
                                       : "it holds no models/NAME.json; export it again");
        }
        if (names.size() > 1) {
            std::string all;
            for (const std::string &n : names)
                all += (all.empty() ? "" : ", ") + n;
            throw FormatError(
                "it holds " + std::to_string(names.size()) + " models (" + all + "); save each with torch.export.save");
        }
        const std::string &name = names.front();
        out_.program = json(models + name + ".json");
        for (const auto &[folder, table] :
            { std::pair("data/weights/", "_weights_config.json"), std::pair("data/constants/", "_constants_config.json") }) {
            if (archive_.zip().find(root + folder + name + table))
                readRaw(root + folder, json(root + folder + name + table));
            else if (archive_.zip().find(root + folder + name + ".pt"))
                readPickled(root + folder + name + ".pt");
        }
    }

    void readPickled(const std::string &name)
    {
        const Held held = archive_.read(*archive_.zip().find(name), false);
        if (held.bytes.empty()) // older versions write nothing where there are no constants
            return;
        NamedTensors tensors;
        try {
            tensors = readTorchDict(held);
        } catch (const FormatError &e) {
            throw FormatError(name + ": " + e.what());
        }
        for (auto &[fqn, t] : tensors)
            if (t)
                out_.tensors.emplace(fqn, std::move(t));
            else
                out_.unread.emplace(fqn, "it is a pickled object, which can run code");
    }

    static std::vector<int64_t> integers(const Json &list, const std::string &what)
    {
        std::vector<int64_t> out;
        for (const Json &item : list.list(what))
            out.push_back(item.at("as_int", what).integer(what));
        return out;
    }

    // {"config": {FQN: PayloadMeta}}
    void readRaw(const std::string &folder, const Json &table)
    {
        std::map<std::pair<std::string, std::string>, Tensor> one; // by file and view: tied weights are one handle
        for (const auto &[fqn, payload] : table.at("config", "the table of weights").object("the table of weights")) {
            const std::string what = "weight " + fqn, &file = payload.at("path_name", what).text(what);
            const auto *m = archive_.zip().find(folder + file);
            if (!m)
                throw FormatError(
                    "its weights are incomplete: " + folder + file + " (" + fqn + ") is missing; copy or export it again");
            const Json *meta = payload.find("tensor_meta");
            if (payload.boolOr("use_pickle", false) || !meta) {
                out_.unread.emplace(fqn, "it is a pickled object, which can run code");
                continue;
            }
            if (const int64_t layout = meta->at("layout", what).integer(what); layout != 7)
                throw FormatError(what + " is not a dense tensor; export the model with dense weights");
            Tensor &t = one[{ file, meta->dump() }];
            if (!t)
                t = stridedTensor(pt2DType(meta->at("dtype", what), what), integers(meta->at("sizes", what), what),
                    integers(meta->at("strides", what), what), meta->at("storage_offset", what).at("as_int", what).integer(what),
                    archive_.read(*m, false), what);
            out_.tensors.emplace(fqn, t);
        }
    }

    Archive archive_;
    Pt2Archive out_;
};

} // namespace

bool isPt2(const ZipReader &zip)
{
    return zip.find(kOldProgram) || rootOf(zip);
}

DType pt2DType(const Json &number, const std::string &what)
{
    const int64_t n = number.integer("the dtype of " + what);
    for (const auto &[known, dtype] : kDTypes)
        if (known == n)
            return dtype;
    throw FormatError(what + " has the dtype number " + std::to_string(n) + ", which Fuseboard does not know");
}

Pt2Archive readPt2Archive(const std::string &path)
{
    return Reader(path).read();
}

} // namespace fb::io
