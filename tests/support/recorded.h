// Fuseboard tests: values that tests/oracle/recorder.py wrote. GPL-3.0-or-later.
#pragma once

#include "model/io/argument_text.h"
#include "model/io/fxt.h"

namespace fbtest
{

// OUT.KIND.json with the tensors of OUT.npz.
inline fb::Result<fb::Arg> recorded(const std::string &out, const std::string &kind)
{
    const auto arrays = fb::readNpz(out + ".npz");
    const auto text = fb::readFile(out + "." + kind + ".json");
    if (!arrays || !text)
        return arrays ? text.error() : arrays.error();
    return fb::argumentFromText(*text, [&](const std::string &key) -> fb::Result<fb::Tensor> {
        for (const auto &[k, t] : *arrays)
            if (k == key)
                return t;
        return fb::Error{ "no array " + key };
    });
}

// Tensors as numpy can hold them, row by row.
inline fb::Arg plain(const fb::Arg &a)
{
    return mapTensors(a, [](const fb::Tensor &t) {
        if (t->dtype == fb::DType::BFloat16) {
            const std::vector<double> values = toDoubles(*t);
            return fb::Arg(fb::makeFloat(t->sizes, std::vector<float>(values.begin(), values.end())));
        }
        return fb::Arg(t);
    });
}

// With the numbers of its tensors, to be looked at.
inline std::string textOf(const fb::Arg &a)
{
    return argumentText(a, [](const fb::Tensor &t) {
        std::string out = std::string(dtypeName(t->dtype)) + " " + t->shapeText() + ":";
        for (const double v : toDoubles(*t))
            out += " " + std::to_string(v);
        return out;
    });
}

} // namespace fbtest
