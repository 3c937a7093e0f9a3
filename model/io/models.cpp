#include "model/io/models.h"

#include "model/io/fxt.h"
#include "model/io/pt2_archive.h"

namespace fb
{

Result<GraphModule> readModel(const std::string &path)
{
    using namespace io;
    const Result<bool> exported = guarded(path, [&] {
        const auto file = MappedFile::open(path);
        return textOf(file->bytes()).starts_with("PK") && isPt2(ZipReader(file->bytes()));
    });
    if (!exported)
        return exported.error();
    return *exported ? readPt2(path) : readFxt(path);
}

} // namespace fb
