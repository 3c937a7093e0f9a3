// Fuseboard: the archive of an exported program: its JSON and its tensors. Private to model/io. GPL-3.0-or-later.
#pragma once

#include <map>
#include <string>

#include "model/io/files.h"

namespace fb::io
{

struct Pt2Archive {
    Json program; // ExportedProgram of torch/_export/serde/schema.py
    std::map<std::string, Tensor> tensors; // by fully qualified name; one handle where torch has one storage and view
    std::map<std::string, std::string> unread; // names of what is pickled and no plain tensor, with the reason
};

bool isPt2(const ZipReader &zip);

// Throws FormatError.
Pt2Archive readPt2Archive(const std::string &path);

// torch.ScalarType of the schema (not ATen's numbering); throws FormatError.
DType pt2DType(const Json &number, const std::string &what);

} // namespace fb::io
