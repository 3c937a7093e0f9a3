// Fuseboard: mapped files, files that appear whole or not at all, and zip archives. Private to model/io. GPL-3.0-or-later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/io/json.h"
#include "model/ir/tensor.h"

namespace fb::io
{

using Bytes = std::span<const std::byte>;

inline Bytes bytesOf(std::string_view s)
{
    return std::as_bytes(std::span(s.data(), s.size()));
}
inline std::string_view textOf(Bytes b)
{
    return { reinterpret_cast<const char *>(b.data()), b.size() };
}

// Little-endian number at `offset`; the caller has checked that it lies inside.
template <class T> T readLittle(Bytes b, size_t offset)
{
    T v = 0;
    for (size_t i = sizeof(T); i-- > 0;)
        v = T(v << 8 | T(std::to_integer<uint8_t>(b[offset + i])));
    return v;
}
template <> inline uint8_t readLittle<uint8_t>(Bytes b, size_t offset)
{
    return std::to_integer<uint8_t>(b[offset]);
}

template <class T> void appendLittle(std::string &out, T v)
{
    for (size_t i = 0; i < sizeof(T); ++i)
        out += char(uint64_t(v) >> (8 * i) & 0xff);
}

uint32_t crc32(Bytes bytes, uint32_t crc = 0);

// A file's contents, mapped read-only. Throws FormatError when it cannot be opened.
class MappedFile
{
public:
    static std::shared_ptr<const MappedFile> open(const std::string &path);
    ~MappedFile();
    MappedFile(const MappedFile &) = delete;
    MappedFile &operator=(const MappedFile &) = delete;
    Bytes bytes() const { return bytes_; }

private:
    MappedFile() = default;
    Bytes bytes_;
};

// A temporary file beside `path` that takes its place on commit(), and vanishes otherwise. A path that exists and is no
// regular file (a pipe, /dev/stdout) is written in place. Throws FormatError.
class AtomicFile
{
public:
    explicit AtomicFile(const std::string &path);
    ~AtomicFile();
    AtomicFile(const AtomicFile &) = delete;
    AtomicFile &operator=(const AtomicFile &) = delete;
    void write(Bytes bytes);
    void write(std::string_view text) { write(bytesOf(text)); }
    void commit();

private:
    std::string target_, temporary_;
    int fd_ = -1;
};

// The directory of a zip archive held in memory. Every offset and size in it has been checked against the archive, and no
// two members overlap. Throws FormatError.
class ZipReader
{
public:
    struct Member {
        std::string name;
        uint16_t method = 0;
        uint32_t crc = 0;
        uint64_t size = 0; // unpacked
        Bytes data; // as stored in the archive
    };
    explicit ZipReader(Bytes archive);
    const std::vector<Member> &members() const { return members_; }
    const Member *find(std::string_view name) const;
    // Contents of a stored member.
    Bytes stored(const Member &m, bool checkCrc) const;

private:
    std::vector<Member> members_;
    std::unordered_map<std::string_view, size_t> index_;
};

// Bytes and what keeps them in memory.
struct Held {
    Bytes bytes;
    std::shared_ptr<const void> owner;
};

// A zip file whose members are stored or deflated. Throws FormatError.
class Archive
{
public:
    Archive(std::string path, std::shared_ptr<const MappedFile> file)
        : path_(std::move(path))
        , file_(std::move(file))
        , zip_(file_->bytes())
    {
    }
    const ZipReader &zip() const { return zip_; }
    Held read(const ZipReader::Member &m, bool checkCrc) const;

private:
    std::string path_;
    std::shared_ptr<const MappedFile> file_;
    ZipReader zip_;
};

// Writes stored members with their data aligned to 64 bytes. Zip64 where a size or an offset reaches `limit`.
class ZipWriter
{
public:
    using Sink = std::function<void(Bytes)>;
    explicit ZipWriter(Sink sink, uint64_t limit = 0xffffffff)
        : sink_(std::move(sink))
        , limit_(limit)
    {
    }
    explicit ZipWriter(AtomicFile &file)
        : ZipWriter([&file](Bytes bytes) { file.write(bytes); })
    {
    }
    void add(const std::string &name, const std::vector<Bytes> &pieces);
    void finish();

private:
    void write(Bytes bytes);
    Sink sink_;
    uint64_t limit_;
    uint64_t size_ = 0, count_ = 0;
    std::string directory_;
};

// A tensor's elements in row-major order: its own memory where it is contiguous, else a copy in `holder`.
Bytes rowMajorBytes(const TensorData &t, std::string &holder);

// Elements in a shape, or a FormatError: a negative size, more than 64 dimensions, or a product that overflows.
int64_t checkedNumel(const std::vector<int64_t> &sizes, size_t width, std::string_view what);

// A tensor that lies in `storage` as torch says it does: strides and offset in elements. FormatError: it reaches beyond it.
Tensor stridedTensor(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset, const Held &storage,
    std::string_view what);

// What a message quotes from a file, as one line of bearable length.
std::string oneLine(std::string text);

// Runs `work`; whatever it throws becomes one sentence that begins with the file.
template <class F> auto guarded(const std::string &path, F work) -> Result<decltype(work())>
{
    try {
        if constexpr (std::is_void_v<decltype(work())>) {
            work();
            return {};
        } else {
            return work();
        }
    } catch (const std::bad_alloc &) {
        return Error{ path + ": not enough memory to hold it" };
    } catch (const std::exception &e) {
        return Error{ path + ": " + oneLine(e.what()) };
    }
}

} // namespace fb::io
