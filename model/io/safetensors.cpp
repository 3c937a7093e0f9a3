// safetensors: an 8-byte length, a JSON header {name: {dtype, shape, data_offsets}}, then raw little-endian data. The header
// is checked against the data before anything is believed.
#include "model/io/safetensors.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_set>

namespace fb::io
{

namespace
{

constexpr std::array<std::pair<std::string_view, DType>, 17> kTypes{ {
    { "BOOL", DType::Bool },
    { "U8", DType::UInt8 },
    { "I8", DType::Int8 },
    { "F8_E4M3", DType::Float8E4M3 },
    { "F8_E5M2", DType::Float8E5M2 },
    { "I16", DType::Int16 },
    { "U16", DType::UInt16 },
    { "F16", DType::Float16 },
    { "BF16", DType::BFloat16 },
    { "I32", DType::Int32 },
    { "U32", DType::UInt32 },
    { "F32", DType::Float32 },
    { "C64", DType::Complex64 },
    { "F64", DType::Float64 },
    { "I64", DType::Int64 },
    { "U64", DType::UInt64 },
    { "C128", DType::Complex128 },
} };

std::string_view storedType(DType dtype)
{
    switch (dtype) {
    case DType::QUInt8:
        return "U8";
    case DType::QInt8:
        return "I8";
    case DType::QInt32:
        return "I32";
    default:
        return std::find_if(kTypes.begin(), kTypes.end(), [&](const auto &t) { return t.second == dtype; })->first;
    }
}

} // namespace

NamedTensors parseSafetensors(Bytes data, const std::shared_ptr<const void> &owner)
{
    if (data.size() < 8)
        throw FormatError("it is too short for a safetensors file; copy or make it again");
    const uint64_t length = readLittle<uint64_t>(data, 0);
    if (length > data.size() - 8)
        throw FormatError("the safetensors header claims " + std::to_string(length) + " bytes, and the file has "
            + std::to_string(data.size() - 8) + "; it is cut short or no safetensors file");
    const Bytes body = data.subspan(8 + length);
    Json header;
    try {
        header = parseJson(textOf(data.subspan(8, length)));
    } catch (const FormatError &e) {
        throw FormatError(std::string("the safetensors header ") + e.what());
    }

    NamedTensors out;
    std::unordered_set<std::string_view> seen;
    for (const auto &[name, entry] : header.object("the safetensors header")) {
        if (name == "__metadata__")
            continue;
        const std::string what = "tensor " + name;
        if (!seen.insert(name).second)
            throw FormatError(what + " stands twice in the header");
        const std::string &type = entry.at("dtype", what).text("the dtype of " + what);
        auto row = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto &t) { return t.first == type; });
        if (row == kTypes.end())
            throw FormatError(what + " has the dtype " + type + ", which Fuseboard does not know");
        std::vector<int64_t> sizes;
        for (const Json &s : entry.at("shape", what).list("the shape of " + what))
            sizes.push_back(s.integer("the shape of " + what));
        const Json::Array &offsets = entry.at("data_offsets", what).list("the place of " + what);
        if (offsets.size() != 2)
            throw FormatError("the place of " + what + " is not [begin, end]");
        const int64_t begin = offsets[0].integer("the place of " + what), end = offsets[1].integer("the place of " + what);
        const size_t width = dtypeSize(row->second);
        const int64_t numel = checkedNumel(sizes, width, what);
        if (begin < 0 || end < begin || uint64_t(end) > body.size())
            throw FormatError(what + " claims bytes " + std::to_string(begin) + " to " + std::to_string(end) + " of "
                + std::to_string(body.size()) + ": the file is cut short or damaged; copy or make it again");
        if (end - begin != numel * int64_t(width))
            throw FormatError(what + " claims " + std::to_string(end - begin) + " bytes, but its shape needs "
                + std::to_string(numel * int64_t(width)) + "; make the file again");
        const std::byte *first = body.data() + begin;
        const size_t alignment = row->second == DType::Complex128 ? 8 : width;
        const bool aligned = reinterpret_cast<uintptr_t>(first) % alignment == 0;
        out.emplace_back(name, aligned ? viewTensor(row->second, sizes, first, owner) : makeTensor(row->second, sizes, first));
    }
    return out;
}

SafetensorsPlan planSafetensors(const NamedTensors &tensors)
{
    SafetensorsPlan plan;
    plan.order.resize(tensors.size());
    std::iota(plan.order.begin(), plan.order.end(), size_t(0));
    std::stable_sort(plan.order.begin(), plan.order.end(),
        [&](size_t a, size_t b) { return dtypeSize(tensors[a].second->dtype) > dtypeSize(tensors[b].second->dtype); });
    Json::Object header;
    int64_t offset = 0;
    for (size_t i : plan.order) {
        const auto &[name, t] = tensors[i];
        const int64_t end = offset + t->numel() * int64_t(dtypeSize(t->dtype));
        header.emplace_back(name,
            Json::Object{ { "dtype", storedType(t->dtype) }, { "shape", Json::array(t->sizes) },
                { "data_offsets", Json::Array{ offset, end } } });
        offset = end;
    }
    std::string text = Json(std::move(header)).dump();
    text.append((64 - (text.size() + 8) % 64) % 64, ' ');
    appendLittle<uint64_t>(plan.header, text.size());
    plan.header += text;
    return plan;
}

std::vector<Bytes> safetensorsPieces(const NamedTensors &tensors, const SafetensorsPlan &plan, std::vector<std::string> &holders)
{
    holders.assign(tensors.size(), {});
    std::vector<Bytes> pieces{ bytesOf(plan.header) };
    for (size_t i : plan.order)
        pieces.push_back(rowMajorBytes(*tensors[i].second, holders[i]));
    return pieces;
}

} // namespace fb::io

namespace fb
{

Result<NamedTensors> readSafetensors(const std::string &path)
{
    return io::guarded(path, [&] {
        const auto file = io::MappedFile::open(path);
        return io::parseSafetensors(file->bytes(), file);
    });
}

Status writeSafetensors(const NamedTensors &tensors, const std::string &path)
{
    return io::guarded(path, [&] {
        for (const auto &[name, t] : tensors)
            if (t->quant)
                throw io::FormatError("cannot be written: " + name
                    + " is quantized, which safetensors cannot say; "
                      "dequantize it or write torch weights");
        const io::SafetensorsPlan plan = io::planSafetensors(tensors);
        std::vector<std::string> holders;
        io::AtomicFile file(path);
        for (io::Bytes piece : io::safetensorsPieces(tensors, plan, holders))
            file.write(piece);
        file.commit();
    });
}

} // namespace fb
