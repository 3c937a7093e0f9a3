// NumPy arrays: "\x93NUMPY", a version, a header that is a Python dict literal, then raw data. Only the three keys that NumPy
// writes are understood; object arrays hold pickles and are refused. An .npz is a zip of them, stored or deflated.
#include <algorithm>
#include <array>
#include <cstring>

#include "model/io/safetensors.h"

namespace fb
{

namespace
{

using namespace io;

constexpr std::array<std::pair<std::string_view, DType>, 14> kTypes{ {
    { "b1", DType::Bool },
    { "u1", DType::UInt8 },
    { "i1", DType::Int8 },
    { "i2", DType::Int16 },
    { "u2", DType::UInt16 },
    { "f2", DType::Float16 },
    { "i4", DType::Int32 },
    { "u4", DType::UInt32 },
    { "f4", DType::Float32 },
    { "i8", DType::Int64 },
    { "u8", DType::UInt64 },
    { "f8", DType::Float64 },
    { "c8", DType::Complex64 },
    { "c16", DType::Complex128 },
} };

// The text behind 'key': in the header; NumPy writes one flat dict.
std::string_view valueOf(std::string_view header, std::string_view key)
{
    for (const char quote : { '\'', '"' }) {
        const std::string quoted = quote + std::string(key) + quote;
        const size_t at = header.find(quoted);
        if (at == std::string_view::npos)
            continue;
        const size_t start = header.find_first_not_of(" :", at + quoted.size());
        if (start != std::string_view::npos)
            return header.substr(start);
    }
    throw FormatError("the .npy header has no '" + std::string(key) + "'; save the array again with numpy.save");
}

std::vector<int64_t> shapeOf(std::string_view text)
{
    const FormatError bad("the .npy header has a shape that cannot be read; save the array again with numpy.save");
    const size_t close = text.find(')');
    if (!text.starts_with('(') || close == std::string_view::npos)
        throw bad;
    std::vector<int64_t> sizes;
    int64_t value = 0;
    bool digits = false;
    for (const char c : text.substr(1, close)) {
        if (c >= '0' && c <= '9') {
            if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, c - '0', &value))
                throw bad;
            digits = true;
        } else if (c == ',' || c == ')') {
            if (digits)
                sizes.push_back(value);
            value = 0;
            digits = false;
        } else if (c != ' ' && c != 'L') {
            throw bad;
        }
    }
    return sizes;
}

Tensor parseNpy(Bytes bytes, const std::shared_ptr<const void> &owner)
{
    const std::string again = "; save the array again with numpy.save";
    if (bytes.size() < 10 || !textOf(bytes).starts_with("\x93NUMPY"))
        throw FormatError("it is not a .npy array" + again);
    const uint8_t version = readLittle<uint8_t>(bytes, 6);
    const size_t front = version == 1 ? 10 : 12;
    if (version < 1 || version > 3 || bytes.size() < front)
        throw FormatError("its .npy version " + std::to_string(version) + " is not known" + again);
    const size_t length = version == 1 ? readLittle<uint16_t>(bytes, 8) : readLittle<uint32_t>(bytes, 8);
    if (length > bytes.size() - front)
        throw FormatError("the .npy header is cut short; copy or make the file again");
    const std::string_view header = textOf(bytes.subspan(front, length));
    const Bytes data = bytes.subspan(front + length);

    const std::string_view descr = valueOf(header, "descr");
    const size_t end = descr.find_first_of("'\"", 1);
    if ((descr[0] != '\'' && descr[0] != '"') || end == std::string_view::npos || end < 3)
        throw FormatError("the array has several fields; save each as an array of its own");
    const char order = descr[1];
    const std::string_view type = descr.substr(2, end - 2);
    auto row = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto &t) { return t.first == type; });
    if (row == kTypes.end())
        throw FormatError("the array has the dtype '" + std::string(descr.substr(1, end - 1)) + "', which tensors cannot have; "
            + (type.starts_with('O') ? "objects are pickles, which are not opened"
                                     : "convert it first, say with astype('float32')"));
    const std::string_view fortran = valueOf(header, "fortran_order");
    std::vector<int64_t> sizes = shapeOf(valueOf(header, "shape"));
    const size_t width = dtypeSize(row->second);
    const int64_t numel = checkedNumel(sizes, width, "the array");
    const size_t needed = size_t(numel) * width;
    if (data.size() < needed)
        throw FormatError("the array is cut short: " + std::to_string(needed) + " bytes are needed, "
            + std::to_string(data.size()) + " are there; copy or make the file again");

    const std::byte *first = data.data();
    const bool swapped = order == '>' && width > 1;
    const size_t unit = row->second == DType::Complex64 || row->second == DType::Complex128 ? width / 2 : width;
    const bool columns = fortran.starts_with("True") && sizes.size() > 1 && numel > 0;
    if (!swapped && !columns && reinterpret_cast<uintptr_t>(first) % unit == 0)
        return viewTensor(row->second, std::move(sizes), first, owner);
    std::vector<std::byte> raw(first, first + needed);
    if (swapped)
        for (size_t i = 0; i < needed; i += unit)
            std::reverse(raw.begin() + std::ptrdiff_t(i), raw.begin() + std::ptrdiff_t(i + unit));
    if (!columns)
        return makeTensor(row->second, std::move(sizes), raw.data());
    TensorData view; // column-major strides, then copied in row-major order
    view.dtype = row->second;
    view.sizes = sizes;
    view.strides.assign(sizes.size(), 1);
    for (size_t d = 1; d < sizes.size(); ++d)
        view.strides[d] = view.strides[d - 1] * sizes[d - 1];
    view.data = raw.data();
    std::string holder;
    return makeTensor(row->second, std::move(sizes), rowMajorBytes(view, holder).data());
}

std::string npyHeader(const TensorData &t)
{
    auto row = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto &r) { return r.second == t.dtype; });
    if (row == kTypes.end())
        throw FormatError("cannot be written: NumPy has no dtype for " + std::string(dtypeName(t.dtype))
            + "; write .safetensors or convert the tensor");
    std::string text = "{'descr': '" + std::string(dtypeSize(t.dtype) == 1 ? "|" : "<") + std::string(row->first)
        + "', 'fortran_order': False, 'shape': (";
    for (size_t i = 0; i < t.sizes.size(); ++i)
        text += (i ? ", " : "") + std::to_string(t.sizes[i]);
    text += t.sizes.size() == 1 ? ",), }" : "), }";
    text.append(63 - (text.size() + 10) % 64, ' ');
    text += '\n';
    std::string out("\x93NUMPY\x01\x00", 8);
    appendLittle<uint16_t>(out, uint16_t(text.size()));
    return out + text;
}

std::string extension(const std::string &path)
{
    const size_t dot = path.rfind('.'), slash = path.rfind('/');
    return dot == std::string::npos || (slash != std::string::npos && dot < slash) ? "" : path.substr(dot);
}

[[noreturn]] void unknownArrays(const std::string &what)
{
    throw FormatError(what + "; use a .npy, .npz or .safetensors file");
}

} // namespace

Result<Tensor> readNpy(const std::string &path)
{
    return guarded(path, [&] {
        const auto file = MappedFile::open(path);
        return parseNpy(file->bytes(), file);
    });
}

Status writeNpy(const Tensor &t, const std::string &path)
{
    return guarded(path, [&] {
        std::string holder;
        const std::string header = npyHeader(*t);
        AtomicFile file(path);
        file.write(header);
        file.write(rowMajorBytes(*t, holder));
        file.commit();
    });
}

Result<NamedTensors> readNpz(const std::string &path)
{
    return guarded(path, [&] {
        const auto file = MappedFile::open(path);
        if (!textOf(file->bytes()).starts_with("PK"))
            throw FormatError("it is not an .npz archive; save it again with numpy.savez");
        const Archive archive(path, file);
        NamedTensors out;
        for (const auto &m : archive.zip().members()) {
            if (!m.name.ends_with(".npy"))
                continue;
            const std::string name = m.name.substr(0, m.name.size() - 4);
            try {
                const auto held = archive.read(m, true);
                out.emplace_back(name, parseNpy(held.bytes, held.owner));
            } catch (const FormatError &e) {
                throw FormatError("array " + name + ": " + e.what());
            }
        }
        return out;
    });
}

Status writeNpz(const NamedTensors &tensors, const std::string &path)
{
    return guarded(path, [&] {
        std::vector<std::string> headers;
        for (const auto &[name, t] : tensors)
            headers.push_back(npyHeader(*t));
        AtomicFile file(path);
        ZipWriter zip(file);
        for (size_t i = 0; i < tensors.size(); ++i) {
            std::string holder;
            zip.add(tensors[i].first + ".npy", { bytesOf(headers[i]), rowMajorBytes(*tensors[i].second, holder) });
        }
        zip.finish();
        file.commit();
    });
}

Result<NamedTensors> readArrays(const std::string &path)
{
    const std::string kind = extension(path);
    if (kind == ".npz")
        return readNpz(path);
    if (kind == ".safetensors")
        return readSafetensors(path);
    if (kind == ".npy") {
        auto t = readNpy(path);
        return t ? Result<NamedTensors>(NamedTensors{ { "", *t } }) : Result<NamedTensors>(t.error());
    }
    return guarded(path, [&]() -> NamedTensors { unknownArrays("arrays are not read from a \"" + kind + "\" file"); });
}

Status writeArrays(const NamedTensors &tensors, const std::string &path)
{
    const std::string kind = extension(path);
    if (kind == ".npz")
        return writeNpz(tensors, path);
    if (kind == ".safetensors")
        return writeSafetensors(tensors, path);
    return guarded(path, [&] {
        if (kind != ".npy")
            unknownArrays("arrays are not written to a \"" + kind + "\" file");
        if (tensors.size() != 1)
            throw FormatError("cannot be written: a .npy file holds one tensor, and there are " + std::to_string(tensors.size())
                + "; use .npz or .safetensors");
        if (Status s = writeNpy(tensors[0].second, path); !s)
            throw FormatError(s.message().substr(path.size() + 2));
    });
}

} // namespace fb
