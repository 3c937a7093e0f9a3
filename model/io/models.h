// Fuseboard: opening the files that models come in. GPL-3.0-or-later.
//
// Nothing here runs code from a file; every size and offset is checked against the file before it is used. What a file is shows
// in its content, whatever it is called.
#pragma once

#include <string>

#include "model/ir/module.h"

namespace fb
{

// A trace archive (.fxt) or an exported program (.pt2). Error: one sentence that begins with the file and says what it is and
// what to do, for any other file too.
Result<GraphModule> readModel(const std::string &path);

// torch.export.save of PyTorch 2.5 and later (torch/_export/serde/schema.py, schema major 7 and 8; torch/export/pt2_archive), in
// the form of torch.export.unflatten's flat graph: call_function nodes of ATen operators, with the lifted parameters, buffers and
// constants as get_attr nodes, mutations as copy_ nodes at the end, and the modules of nn_module_stack as containers. Inputs and
// outputs have the containers of the original forward. Tensors are mapped, not read.
Result<GraphModule> readPt2(const std::string &path);

} // namespace fb
