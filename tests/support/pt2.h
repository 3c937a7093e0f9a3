// Fuseboard tests: an exported program made by hand. GPL-3.0-or-later.
#pragma once

#include <map>
#include <string>

#include "model/io/files.h"

namespace fbtest
{

using Members = std::map<std::string, std::string>;

// One linear layer, a buffer that counts calls, and what torch 2.13 writes around them (case LD-04).
inline Members handMadePt2()
{
    const std::string meta
        = R"("requires_grad":false,"device":{"type":"cpu","index":null},"storage_offset":{"as_int":0},"layout":7)";
    const std::string one = R"({"dtype":7,"sizes":[{"as_int":1}],"strides":[{"as_int":1}],)" + meta + "}";
    const std::string square
        = R"({"dtype":7,"sizes":[{"as_int":1},{"as_int":1}],"strides":[{"as_int":1},{"as_int":1}],)" + meta + "}";
    const std::string batch = R"({"dtype":7,"sizes":[{"as_expr":{"expr_str":"s77",)"
                              R"("hint":{"as_int":4}}},{"as_int":1}],"strides":[{"as_int":1},{"as_int":1}],)"
        + meta + "}";
    auto input = [](const char *name, const std::string &arg) {
        return std::string(R"({"name":")") + name + R"(","arg":)" + arg + R"(,"kind":1})";
    };
    auto tensor = [](const char *name) { return std::string(R"({"as_tensor":{"name":")") + name + "\"}}"; };
    auto linear = [&](const char *name, const char *from, const char *call) {
        return std::string(R"({"target":"torch.ops.aten.linear.default","inputs":[)") + input("input", tensor(from)) + ","
            + input("weight", tensor("p_l_weight")) + R"(],"outputs":[)" + tensor(name)
            + R"(],"metadata":{"nn_module_stack":"L__self__,,net.Net;L__self__l)" + call
            + R"(,l,torch.nn.modules.linear.Linear"},"name":")" + name + "\"}";
    };
    const std::string graph = R"({"inputs":[)" + tensor("p_l_weight") + "," + tensor("b_counter") + "," + tensor("x")
        + R"(],"outputs":[)" + tensor("add") + "," + tensor("linear_1") + R"(],"nodes":[)" + linear("linear", "x", "") + ","
        + linear("linear_1", "linear", "@1") + R"(,{"target":"torch.ops.aten.add.Tensor","inputs":[)"
        + input("self", tensor("b_counter")) + "," + input("other", R"({"as_int":1})") + R"(],"outputs":[)" + tensor("add")
        + R"(],"metadata":{},"name":"add"}],"tensor_values":{"p_l_weight":)" + square + R"(,"b_counter":)" + one + R"(,"x":)"
        + batch + R"(,"linear":)" + batch + R"(,"linear_1":)" + batch + R"(,"add":)" + one
        + R"(},"sym_int_values":{},"sym_bool_values":{},"is_single_tensor_return":false,"custom_obj_values":{}})";
    const std::string signature = R"({"input_specs":[{"parameter":{"arg":{"name":"p_l_weight"},"parameter_name":"l.weight"}},)"
                                  R"({"buffer":{"arg":{"name":"b_counter"},"buffer_name":"counter","persistent":true}},)"
                                  R"({"user_input":{"arg":{"as_tensor":{"name":"x"}}}}],"output_specs":[)"
                                  R"({"buffer_mutation":{"arg":{"name":"add"},"buffer_name":"counter"}},)"
                                  R"({"user_output":{"arg":{"as_tensor":{"name":"linear_1"}}}}]})";
    const std::string leaf = R"({\"type\":null,\"context\":null,\"children_spec\":[]})";
    const std::string calls = R"([{"fqn":"","signature":{"inputs":[],"outputs":[],"in_spec":"[1, {\"type\":\"builtins.tuple\",)"
                              R"(\"context\":\"null\",\"children_spec\":[{\"type\":\"builtins.tuple\",\"context\":\"null\",)"
                              R"(\"children_spec\":[)"
        + leaf + R"(]},{\"type\":\"builtins.dict\",\"context\":\"[]\",\"children_spec\":[]}]}]","out_spec":"[1, )" + leaf
        + R"(]","forward_arg_names":["x"]}}])";
    auto raw = [](float v) { return std::string(reinterpret_cast<const char *>(&v), sizeof v); };
    auto payload = [](const char *file, const std::string &meta, bool parameter) {
        return std::string(R"({"path_name":")") + file + R"(","is_param":)" + (parameter ? "true" : "false")
            + R"(,"use_pickle":false,"tensor_meta":)" + meta + "}";
    };
    return { { "m/archive_format", "pt2" }, { "m/archive_version", "0" }, { "m/byteorder", "little" },
        { "m/models/model.json",
            R"({"graph_module":{"graph":)" + graph + R"(,"signature":)" + signature + R"(,"module_call_graph":)" + calls
                + R"(,"metadata":{},"treespec_namedtuple_fields":{}},"opset_version":{"aten":10},)"
                  R"("range_constraints":{"s77":{"min_val":2,"max_val":64}},"schema_version":{"major":8,"minor":20},)"
                  R"("verifiers":["ATEN"],"torch_version":"2.13.0","guards_code":[]})" },
        { "m/data/weights/weight_0", raw(10) }, { "m/data/weights/weight_1", raw(7) },
        { "m/data/weights/model_weights_config.json",
            R"({"config":{"l.weight":)" + payload("weight_0", square, true) + R"(,"counter":)" + payload("weight_1", one, false)
                + "}}" },
        { "m/data/constants/model_constants_config.json", R"({"config":{}})" } };
}

inline std::string zipped(const Members &members)
{
    std::string bytes;
    fb::io::ZipWriter zip([&](fb::io::Bytes piece) { bytes += fb::io::textOf(piece); });
    for (const auto &[name, content] : members)
        zip.add(name, { fb::io::bytesOf(content) });
    zip.finish();
    return bytes;
}

} // namespace fbtest
