// Zip archives, as little of them as trace archives need. A zip is read from its end: the end record names the directory,
// whose entries name the local headers in front of the data. All three can lie, so each is checked against the others.
#include <algorithm>

#include <zip.h>

#include "model/io/files.h"

namespace fb::io
{

namespace
{

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20;
constexpr uint64_t kMax32 = 0xffffffff;

bool fits(Bytes archive, uint64_t offset, uint64_t size)
{
    return offset <= archive.size() && size <= archive.size() - offset;
}

size_t findEnd(Bytes archive)
{
    if (archive.size() >= kEndSize)
        for (size_t i = archive.size() - kEndSize, stop = i > 0xffff ? i - 0xffff : 0;; --i) {
            if (readLittle<uint32_t>(archive, i) == kEnd
                && i + kEndSize + readLittle<uint16_t>(archive, i + 20) == archive.size())
                return i;
            if (i == stop)
                break;
        }
    throw FormatError("the zip archive is cut short: its directory is missing; copy or make the file again");
}

} // namespace

ZipReader::ZipReader(Bytes archive)
{
    const FormatError broken("the zip directory is damaged; copy or make the file again");
    const size_t end = findEnd(archive);
    uint64_t count = readLittle<uint16_t>(archive, end + 10), size = readLittle<uint32_t>(archive, end + 12),
             start = readLittle<uint32_t>(archive, end + 16), limit = end;
    if (end >= kLocatorSize && readLittle<uint32_t>(archive, end - kLocatorSize) == kLocator64) {
        const uint64_t at = readLittle<uint64_t>(archive, end - kLocatorSize + 8);
        if (!fits(archive, at, kEnd64Size) || at + kEnd64Size > end - kLocatorSize || readLittle<uint32_t>(archive, at) != kEnd64)
            throw broken;
        count = readLittle<uint64_t>(archive, at + 32);
        size = readLittle<uint64_t>(archive, at + 40);
        start = readLittle<uint64_t>(archive, at + 48);
        limit = at;
    }
    if (start > limit || size > limit - start || count > size / kCentralSize)
        throw broken;

    struct Extent {
        uint64_t begin, end;
    };
    std::vector<Extent> extents;
    uint64_t at = start;
    for (uint64_t i = 0; i < count; ++i) {
        if (start + size - at < kCentralSize || readLittle<uint32_t>(archive, at) != kCentral)
            throw broken;
        Member m;
        const uint16_t flags = readLittle<uint16_t>(archive, at + 8);
        const size_t nameSize = readLittle<uint16_t>(archive, at + 28), extraSize = readLittle<uint16_t>(archive, at + 30),
                     commentSize = readLittle<uint16_t>(archive, at + 32);
        if (start + size - at - kCentralSize < nameSize + extraSize + commentSize)
            throw broken;
        m.method = readLittle<uint16_t>(archive, at + 10);
        m.crc = readLittle<uint32_t>(archive, at + 16);
        m.name = textOf(archive.subspan(at + kCentralSize, nameSize));
        m.size = readLittle<uint32_t>(archive, at + 24);
        uint64_t packed = readLittle<uint32_t>(archive, at + 20), header = readLittle<uint32_t>(archive, at + 42);
        const Bytes extra = archive.subspan(at + kCentralSize + nameSize, extraSize);
        for (size_t e = 0; e + 4 <= extra.size();) {
            const size_t length = readLittle<uint16_t>(extra, e + 2);
            if (length > extra.size() - e - 4)
                throw broken;
            if (readLittle<uint16_t>(extra, e) == 1) { // zip64: only what did not fit, in this order
                size_t f = e + 4;
                for (uint64_t *value : { &m.size, &packed, &header })
                    if (*value == kMax32) {
                        if (f + 8 > e + 4 + length)
                            throw broken;
                        *value = readLittle<uint64_t>(extra, f);
                        f += 8;
                    }
            }
            e += 4 + length;
        }
        if (flags & 0x2041)
            throw FormatError("its member " + m.name + " is encrypted; make the archive without a password");
        if (!fits(archive, header, kLocalSize) || readLittle<uint32_t>(archive, header) != kLocal)
            throw broken;
        const uint64_t localName = readLittle<uint16_t>(archive, header + 26),
                       localExtra = readLittle<uint16_t>(archive, header + 28);
        const uint64_t data = header + kLocalSize + localName + localExtra;
        if (!fits(archive, header + kLocalSize, localName + localExtra) || !fits(archive, data, packed) || data + packed > start
            || textOf(archive.subspan(header + kLocalSize, localName)) != m.name || (m.method == 0 && packed != m.size))
            throw broken;
        m.data = archive.subspan(data, packed);
        extents.push_back({ header, data + packed });
        members_.push_back(std::move(m));
        at += kCentralSize + nameSize + extraSize + commentSize;
    }
    std::sort(extents.begin(), extents.end(), [](const Extent &a, const Extent &b) { return a.begin < b.begin; });
    for (size_t i = 1; i < extents.size(); ++i)
        if (extents[i].begin < extents[i - 1].end)
            throw FormatError("members of the zip archive overlap; the file is damaged or not to be trusted");
    for (size_t i = 0; i < members_.size(); ++i)
        if (!index_.emplace(members_[i].name, i).second)
            throw FormatError("the zip archive holds " + members_[i].name + " twice; the file is damaged or not to be trusted");
}

const ZipReader::Member *ZipReader::find(std::string_view name) const
{
    auto it = index_.find(name);
    return it == index_.end() ? nullptr : &members_[it->second];
}

Bytes ZipReader::stored(const Member &m, bool checkCrc) const
{
    if (m.method != 0)
        throw FormatError("its member " + m.name + " is compressed; members must be stored as they are");
    if (checkCrc && crc32(m.data) != m.crc)
        throw FormatError("its member " + m.name + " is damaged (checksum differs); copy or make the file again");
    return m.data;
}

// By libzip. The member's claimed size is believed only as far as deflate can reach.
static std::shared_ptr<const std::vector<std::byte>> inflate(const std::string &path, const ZipReader::Member &m)
{
    if (m.size / 1032 > m.data.size() + 64)
        throw FormatError(
            "its member " + m.name + " claims a size that its data cannot have; the file is damaged or not to be trusted");
    auto out = std::make_shared<std::vector<std::byte>>(m.size);
    zip_t *archive = zip_open(path.c_str(), ZIP_RDONLY, nullptr);
    zip_file_t *file = archive ? zip_fopen(archive, m.name.c_str(), 0) : nullptr;
    uint64_t done = 0;
    while (file && done < m.size) {
        const zip_int64_t n = zip_fread(file, out->data() + done, m.size - done);
        if (n <= 0)
            break;
        done += uint64_t(n);
    }
    if (file)
        zip_fclose(file);
    if (archive)
        zip_discard(archive);
    if (done != m.size || crc32(*out) != m.crc)
        throw FormatError("its member " + m.name + " is damaged; copy or make the file again");
    return out;
}

Held Archive::read(const ZipReader::Member &m, bool checkCrc) const
{
    if (m.method == 0)
        return { zip_.stored(m, checkCrc), file_ };
    if (m.method != 8)
        throw FormatError("its member " + m.name + " is compressed by method " + std::to_string(m.method)
            + ", which Python does not write; make the file again");
    const auto bytes = inflate(path_, m);
    return { *bytes, bytes };
}

void ZipWriter::write(Bytes bytes)
{
    sink_(bytes);
    size_ += bytes.size();
}

void ZipWriter::add(const std::string &name, const std::vector<Bytes> &pieces)
{
    const uint64_t header = size_;
    uint64_t size = 0;
    uint32_t crc = 0;
    for (Bytes piece : pieces) {
        size += piece.size();
        crc = crc32(piece, crc);
    }
    const bool big = size >= limit_, far = header >= limit_;
    // From the version needed on; local header and directory share it.
    std::string common;
    appendLittle<uint16_t>(common, big || far ? 45 : 20);
    appendLittle<uint16_t>(common, 0x800); // names are UTF-8
    appendLittle<uint16_t>(common, 0); // stored
    appendLittle<uint16_t>(common, 0);
    appendLittle<uint16_t>(common, 0x21); // 1 January 1980: equal contents give equal files
    appendLittle<uint32_t>(common, crc);
    appendLittle<uint32_t>(common, uint32_t(big ? kMax32 : size));
    appendLittle<uint32_t>(common, uint32_t(big ? kMax32 : size));
    appendLittle<uint16_t>(common, uint16_t(name.size()));

    std::string local, extra;
    if (big) {
        appendLittle<uint16_t>(extra, 1);
        appendLittle<uint16_t>(extra, 16);
        appendLittle<uint64_t>(extra, size);
        appendLittle<uint64_t>(extra, size);
    }
    const uint64_t unpadded = header + kLocalSize + name.size() + extra.size() + 4;
    const auto padding = uint16_t((64 - unpadded % 64) % 64);
    appendLittle<uint16_t>(extra, 0x4246); // "FB": padding, as torch.save writes it
    appendLittle<uint16_t>(extra, padding);
    extra.append(padding, 'Z');
    appendLittle<uint32_t>(local, kLocal);
    local += common;
    appendLittle<uint16_t>(local, uint16_t(extra.size()));
    write(bytesOf(local + name + extra));
    for (Bytes piece : pieces)
        write(piece);

    std::string wide;
    if (big || far) {
        appendLittle<uint16_t>(wide, 1);
        appendLittle<uint16_t>(wide, uint16_t((big ? 16 : 0) + (far ? 8 : 0)));
        if (big) {
            appendLittle<uint64_t>(wide, size);
            appendLittle<uint64_t>(wide, size);
        }
        if (far)
            appendLittle<uint64_t>(wide, header);
    }
    appendLittle<uint32_t>(directory_, kCentral);
    appendLittle<uint16_t>(directory_, 45);
    directory_ += common;
    appendLittle<uint16_t>(directory_, uint16_t(wide.size()));
    directory_.append(10, '\0'); // comment, disk, attributes
    appendLittle<uint32_t>(directory_, uint32_t(far ? kMax32 : header));
    directory_ += name + wide;
    ++count_;
}

void ZipWriter::finish()
{
    const uint64_t start = size_, size = directory_.size();
    const bool wide = start >= limit_ || size >= limit_ || count_ >= std::min<uint64_t>(limit_, 0xffff);
    std::string out;
    if (wide) {
        appendLittle<uint32_t>(out, kEnd64);
        appendLittle<uint64_t>(out, kEnd64Size - 12);
        appendLittle<uint16_t>(out, 45);
        appendLittle<uint16_t>(out, 45);
        appendLittle<uint32_t>(out, 0);
        appendLittle<uint32_t>(out, 0);
        for (uint64_t v : { count_, count_, size, start })
            appendLittle<uint64_t>(out, v);
        appendLittle<uint32_t>(out, kLocator64);
        appendLittle<uint32_t>(out, 0);
        appendLittle<uint64_t>(out, start + size);
        appendLittle<uint32_t>(out, 1);
    }
    appendLittle<uint32_t>(out, kEnd);
    appendLittle<uint32_t>(out, 0);
    appendLittle<uint16_t>(out, uint16_t(wide ? 0xffff : count_));
    appendLittle<uint16_t>(out, uint16_t(wide ? 0xffff : count_));
    appendLittle<uint32_t>(out, uint32_t(wide ? kMax32 : size));
    appendLittle<uint32_t>(out, uint32_t(wide ? kMax32 : start));
    appendLittle<uint16_t>(out, 0);
    write(bytesOf(directory_ + out));
}

} // namespace fb::io
