// Fuseboard: the nodes of an exported graph. Private to model/io. GPL-3.0-or-later.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "model/io/json.h"
#include "model/ir/module.h"

namespace fb::io
{

// A union of the schema: an object with one member, which says what it is.
const std::pair<std::string, Json> &variant(const Json &j, const std::string &what);

// "L['self'].layer1.0" of exports that Dynamo made is "layer1.0".
std::string modulePath(std::string path);

// The modules whose forwards made a node, the root included.
ModuleStack framesOf(const Json &node);

// Makes nodes in `gm` of what a Graph of torch/_export/serde/schema.py says. Throws FormatError.
class Pt2Nodes
{
public:
    Pt2Nodes(const Json &graph, GraphModule &gm);

    // A node of that name, which no value may have yet.
    Node named(Opcode op, const std::string &name, const std::string &what) const;
    NodeId add(Node n, const std::string &name); // a value by that name from here on
    NodeId value(const std::string &name, const std::string &what) const;
    std::optional<TensorMeta> metaOf(const std::string &name) const; // with hints for symbolic sizes
    Arg argument(const Json &j, const std::string &what);
    NodeId placeholder(const Json &argument, const std::string &what); // an Argument that is a tensor or a symbolic number
    void readNodes();

private:
    void readNode(const Json &j);
    void items(const Json::Array *outputs, NodeId from, bool unions, const std::shared_ptr<const ModuleStack> &stack,
        const std::shared_ptr<const SourceLine> &source, const std::string &what);
    void readMetadata(const Json &j, Node &n);
    NodeId innerGraph(const Json &argument, const std::string &what);

    const Json &graph_;
    GraphModule &gm_;
    std::unordered_map<std::string, NodeId> values_; // by the program's names
    std::unordered_map<std::string, const Json *> tensorValues_;
    std::shared_ptr<const ModuleStack> lastStack_;
    std::shared_ptr<const SourceLine> lastSource_;
};

} // namespace fb::io
