#include "model/io/files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/io/fxt.h"

namespace fb::io
{

namespace
{

std::string reason(int error)
{
    switch (error) {
    case ENOENT:
        return "there is no such file; check the path";
    case EISDIR:
        return "it is a folder, not a file";
    case EACCES:
    case EPERM:
        return "access is denied; check its permissions";
    case EROFS:
        return "the file system is read-only; choose another folder";
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return "the disk is full; free some space or choose another folder";
    default:
        return std::string(std::strerror(error));
    }
}

std::string folderOf(const std::string &path)
{
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

[[noreturn]] void cannotWrite(int error, const std::string &folder)
{
    if (error == ENOENT || error == ENOTDIR)
        throw FormatError("cannot be written: there is no folder " + folder + "; make it or choose another");
    if (error == EACCES || error == EPERM)
        throw FormatError("cannot be written: no permission to write in " + folder + "; choose another folder");
    throw FormatError("cannot be written: " + reason(error));
}

} // namespace

uint32_t crc32(Bytes bytes, uint32_t crc)
{
    // Slicing by 8: table[k][b] is the effect of byte b followed by k zero bytes.
    static const auto table = [] {
        std::array<std::array<uint32_t, 256>, 8> t{};
        for (uint32_t i = 0; i < 256; ++i) {
            uint32_t c = i;
            for (int k = 0; k < 8; ++k)
                c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
            t[0][i] = c;
        }
        for (size_t k = 1; k < 8; ++k)
            for (size_t i = 0; i < 256; ++i)
                t[k][i] = t[0][t[k - 1][i] & 0xff] ^ (t[k - 1][i] >> 8);
        return t;
    }();
    uint32_t c = ~crc;
    const auto *p = reinterpret_cast<const uint8_t *>(bytes.data());
    size_t n = bytes.size();
    for (; n >= 8; p += 8, n -= 8) {
        uint32_t low, high;
        std::memcpy(&low, p, 4);
        std::memcpy(&high, p + 4, 4);
        low ^= c;
        c = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^ table[4][low >> 24]
            ^ table[3][high & 0xff] ^ table[2][high >> 8 & 0xff] ^ table[1][high >> 16 & 0xff] ^ table[0][high >> 24];
    }
    for (; n > 0; ++p, --n)
        c = table[0][(c ^ *p) & 0xff] ^ (c >> 8);
    return ~c;
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string &path)
{
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        throw FormatError("cannot be opened: " + reason(errno));
    struct stat st = {};
    std::shared_ptr<MappedFile> file(new MappedFile);
    int error = fstat(fd, &st) ? errno : S_ISDIR(st.st_mode) ? EISDIR : 0;
    const bool regular = S_ISREG(st.st_mode);
    if (!error && regular && st.st_size > 0) {
        void *p = mmap(nullptr, size_t(st.st_size), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            error = errno;
        else
            file->bytes_ = { static_cast<const std::byte *>(p), size_t(st.st_size) };
    }
    close(fd);
    if (error)
        throw FormatError("cannot be opened: " + reason(error));
    if (!regular)
        throw FormatError("cannot be opened: it is not a regular file");
    return file;
}

MappedFile::~MappedFile()
{
    if (!bytes_.empty())
        munmap(const_cast<std::byte *>(bytes_.data()), bytes_.size());
}

AtomicFile::AtomicFile(const std::string &path)
    : target_(path)
{
    struct stat st = {};
    mode_t mode = 0;
    if (stat(path.c_str(), &st) == 0) {
        if (S_ISDIR(st.st_mode))
            throw FormatError("cannot be written: it is a folder; give a file name");
        if (!S_ISREG(st.st_mode)) {
            fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
            if (fd_ < 0)
                cannotWrite(errno, folderOf(path));
            return;
        }
        mode = st.st_mode & 07777;
        if (char *real = realpath(path.c_str(), nullptr)) { // a symbolic link stays one
            target_ = real;
            free(real);
        }
    }
    temporary_ = target_ + ".XXXXXX";
    fd_ = mkostemp(temporary_.data(), O_CLOEXEC);
    if (fd_ < 0)
        cannotWrite(errno, folderOf(target_));
    if (!mode) {
        const mode_t mask = umask(0);
        umask(mask);
        mode = 0666 & ~mask;
    }
    (void)fchmod(fd_, mode);
}

AtomicFile::~AtomicFile()
{
    if (fd_ >= 0)
        close(fd_);
    if (!temporary_.empty())
        unlink(temporary_.c_str());
}

void AtomicFile::write(Bytes bytes)
{
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd_, bytes.data(), std::min(bytes.size(), size_t(1) << 30));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            cannotWrite(n < 0 ? errno : ENOSPC, folderOf(target_));
        bytes = bytes.subspan(size_t(n));
    }
}

void AtomicFile::commit()
{
    int error = !temporary_.empty() && fsync(fd_) ? errno : 0;
    if (close(std::exchange(fd_, -1)) && !error)
        error = errno;
    if (!error && !temporary_.empty() && rename(temporary_.c_str(), target_.c_str()))
        error = errno;
    if (error)
        cannotWrite(error, folderOf(target_));
    if (temporary_.empty())
        return;
    temporary_.clear();
    if (const int folder = ::open(folderOf(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder >= 0) {
        (void)fsync(folder); // so that the new name survives a power cut too
        close(folder);
    }
}

Bytes rowMajorBytes(const TensorData &t, std::string &holder)
{
    const size_t width = dtypeSize(t.dtype), n = size_t(t.numel());
    if (n == 0 || t.isContiguous())
        return { t.data, n * width };
    holder.resize(n * width);
    std::vector<int64_t> index(t.sizes.size(), 0);
    int64_t offset = 0;
    for (size_t i = 0; i < n; ++i) {
        std::memcpy(holder.data() + i * width, t.data + offset * int64_t(width), width);
        for (size_t d = index.size(); d-- > 0;) {
            offset += t.strides[d];
            if (++index[d] < t.sizes[d])
                break;
            offset -= t.strides[d] * t.sizes[d];
            index[d] = 0;
        }
    }
    return bytesOf(holder);
}

int64_t checkedNumel(const std::vector<int64_t> &sizes, size_t width, std::string_view what)
{
    if (sizes.size() > 64)
        throw FormatError(
            std::string(what) + " has " + std::to_string(sizes.size()) + " dimensions; 64 is the most there can be");
    int64_t numel = 1, span = int64_t(width); // span: as if no size were 0, which strides are made of
    for (int64_t s : sizes) {
        if (s < 0)
            throw FormatError(std::string(what) + " has the negative size " + std::to_string(s));
        if (__builtin_mul_overflow(span, std::max<int64_t>(s, 1), &span))
            throw FormatError(std::string(what) + " claims a size beyond any memory");
        numel *= s;
    }
    return numel;
}

std::string oneLine(std::string text)
{
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    constexpr size_t kLongest = 600;
    if (text.size() > kLongest)
        text.replace(kLongest / 2, text.size() - kLongest, " ... ");
    return text;
}

Tensor stridedTensor(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset, const Held &storage,
    std::string_view what)
{
    const size_t width = dtypeSize(dtype);
    const int64_t numel = checkedNumel(sizes, width, what);
    if (strides.size() != sizes.size())
        throw FormatError(std::string(what) + " has " + std::to_string(sizes.size()) + " sizes and "
            + std::to_string(strides.size()) + " strides; make the file again");
    const std::string outside = std::string(what) + " reaches beyond its data of " + std::to_string(storage.bytes.size())
        + " bytes: the file is cut short or damaged; copy or make it again";
    // The last element that is touched. Where strides are 0 (an expanded tensor) the data may be much smaller than the tensor.
    int64_t last = offset;
    for (size_t d = 0; d < sizes.size(); ++d) {
        int64_t reach = 0;
        if (strides[d] < 0 || __builtin_mul_overflow(std::max<int64_t>(sizes[d] - 1, 0), strides[d], &reach)
            || __builtin_add_overflow(last, reach, &last))
            throw FormatError(outside);
    }
    const uint64_t held = storage.bytes.size() / width;
    if (offset < 0 || (numel > 0 && uint64_t(last) >= held))
        throw FormatError(outside);
    constexpr int64_t kMostExpanded = int64_t(1) << 28;
    if (numel > kMostExpanded && uint64_t(numel) > held)
        throw FormatError(
            std::string(what) + " claims a size that its data cannot have; the file is damaged or not to be trusted");
    if (numel == 0)
        return makeTensor(dtype, std::move(sizes));
    const size_t alignment = dtype == DType::Complex128 ? 8 : width;
    const std::byte *first = storage.bytes.data();
    std::shared_ptr<const void> owner = storage.owner;
    if (reinterpret_cast<uintptr_t>(first) % alignment) {
        auto copy = std::make_shared<std::vector<std::byte>>(storage.bytes.begin(), storage.bytes.end());
        first = copy->data();
        owner = copy;
    }
    auto t = std::make_shared<TensorData>();
    t->dtype = dtype;
    t->sizes = std::move(sizes);
    t->strides = std::move(strides);
    t->data = first + offset * int64_t(width);
    t->owner = std::move(owner);
    return t;
}

} // namespace fb::io

namespace fb
{

Status writeFileAtomically(const std::string &path, std::string_view bytes)
{
    return io::guarded(path, [&] {
        io::AtomicFile file(path);
        file.write(bytes);
        file.commit();
    });
}

uint32_t crc32(std::string_view bytes)
{
    return io::crc32(io::bytesOf(bytes));
}

Result<std::string> readFile(const std::string &path)
{
    return io::guarded(path, [&] {
        const auto file = io::MappedFile::open(path);
        return std::string(io::textOf(file->bytes()));
    });
}

} // namespace fb
