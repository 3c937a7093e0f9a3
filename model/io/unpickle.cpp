#include "model/io/unpickle.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace fb::io
{

namespace
{

struct Object;
using Ref = Object *; // owned by the Unpickler, so that nested and circular ones go without a recursion

// A Python object, as far as tensors need one. Memo and stack share it, as in Python.
struct Object {
    enum Kind : uint8_t { None, Bool, Int, Float, Text, Sequence, Dict, Name, Storage, TensorValue } kind = None;
    int64_t integer = 0; // Bool, Int
    double number = 0; // Float
    std::string text = {}; // Text; Name: module and name with a dot between
    std::vector<Ref> items = {}; // Sequence; Dict: key, value, key, value ..
    std::optional<DType> dtype = {}; // Storage; none: bytes of no type
    Held bytes = {}; // Storage
    Tensor tensor = {}; // TensorValue
};

struct StorageType {
    std::string_view name;
    DType dtype;
};
constexpr StorageType kStorages[] = { { "torch.FloatStorage", DType::Float32 }, { "torch.DoubleStorage", DType::Float64 },
    { "torch.HalfStorage", DType::Float16 }, { "torch.BFloat16Storage", DType::BFloat16 }, { "torch.ByteStorage", DType::UInt8 },
    { "torch.CharStorage", DType::Int8 }, { "torch.ShortStorage", DType::Int16 }, { "torch.IntStorage", DType::Int32 },
    { "torch.LongStorage", DType::Int64 }, { "torch.BoolStorage", DType::Bool },
    { "torch.ComplexFloatStorage", DType::Complex64 }, { "torch.ComplexDoubleStorage", DType::Complex128 },
    { "torch.QUInt8Storage", DType::QUInt8 }, { "torch.QInt8Storage", DType::QInt8 }, { "torch.QInt32Storage", DType::QInt32 } };

[[noreturn]] void damaged()
{
    throw FormatError("its pickle is damaged; copy or make the file again");
}

[[noreturn]] void refused(const std::string &what)
{
    throw FormatError("it holds a pickled Python object (" + what
        + "), and only tensors are read: pickles can run code; save the model's state_dict() alone");
}

class Unpickler
{
public:
    explicit Unpickler(const Held &archive)
        : archive_(archive)
        , zip_(archive.bytes)
    {
        for (const auto &m : zip_.members())
            if (m.name.ends_with("data.pkl") && (m.name.size() == 8 || m.name[m.name.size() - 9] == '/'))
                prefix_ = m.name.substr(0, m.name.size() - 8);
        const auto *pickle = zip_.find(prefix_ + "data.pkl");
        if (!pickle)
            throw FormatError("it is no torch.save file: data.pkl is missing");
        if (const auto *order = zip_.find(prefix_ + "byteorder"); order && textOf(zip_.stored(*order, true)) == "big")
            throw FormatError("its weights were written on a big-endian machine; save them again on a little-endian one");
        code_ = zip_.stored(*pickle, true);
    }

    Ref run()
    {
        while (true) {
            const uint8_t op = byte();
            switch (op) {
            case 0x80: // PROTO
                byte();
                break;
            case '.': // STOP
                return pop();
            case '(':
                marks_.push_back(stack_.size());
                break;
            case 'N':
                push({ .kind = Object::None });
                break;
            case 0x88: // NEWTRUE
            case 0x89: // NEWFALSE
                push({ .kind = Object::Bool, .integer = op == 0x88 });
                break;
            case 'K':
                integer(byte());
                break;
            case 'M':
                integer(little<uint16_t>());
                break;
            case 'J':
                integer(int32_t(little<uint32_t>()));
                break;
            case 0x8a: // LONG1
                longInteger(byte());
                break;
            case 'G': // BINFLOAT, big-endian
                push({ .kind = Object::Float, .number = std::bit_cast<double>(__builtin_bswap64(little<uint64_t>())) });
                break;
            case 'X': // BINUNICODE
                text(little<uint32_t>());
                break;
            case 0x8c: // SHORT_BINUNICODE
            case 'U': // SHORT_BINSTRING
                text(byte());
                break;
            case 'T': // BINSTRING
                text(little<uint32_t>());
                break;
            case ')':
            case ']':
                push({ .kind = Object::Sequence });
                break;
            case '}':
                push({ .kind = Object::Dict });
                break;
            case 't': // TUPLE
            case 'l': // LIST
                push({ .kind = Object::Sequence, .items = popMark() });
                break;
            case 0x85: // TUPLE1, 2, 3
            case 0x86:
            case 0x87:
                push({ .kind = Object::Sequence, .items = popMany(size_t(op - 0x84)) });
                break;
            case 'a': // APPEND
                append(popMany(1));
                break;
            case 'e': // APPENDS
                append(popMark());
                break;
            case 's': // SETITEM
                setItems(popMany(2));
                break;
            case 'u': // SETITEMS
                setItems(popMark());
                break;
            case 'c': { // GLOBAL
                const std::string module = line(), name = line();
                global(module + "." + name);
                break;
            }
            case 0x93: { // STACK_GLOBAL
                const Ref name = pop(), module = pop();
                global(module->text + "." + name->text);
                break;
            }
            case 'Q': // BINPERSID
                stack_.push_back(storage(*pop()));
                break;
            case 'R': { // REDUCE
                const Ref arguments = pop(), function = pop();
                stack_.push_back(call(*function, *arguments));
                break;
            }
            case 'b': // BUILD: state of an OrderedDict (_metadata of a state dict) or of a Parameter; nothing we need
                pop();
                break;
            case 'q':
                memo_[byte()] = top();
                break;
            case 'r':
                memo_[little<uint32_t>()] = top();
                break;
            case 0x94: // MEMOIZE
                memo_[uint32_t(memo_.size())] = top();
                break;
            case 'h':
                recall(byte());
                break;
            case 'j':
                recall(little<uint32_t>());
                break;
            case 0x95: // FRAME
                little<uint64_t>();
                break;
            default:
                refused("opcode " + std::to_string(op) + " at byte " + std::to_string(at_ - 1));
            }
        }
    }

private:
    Bytes take(uint64_t size)
    {
        if (size > code_.size() - at_)
            damaged();
        const Bytes taken = code_.subspan(at_, size);
        at_ += size;
        return taken;
    }
    uint8_t byte() { return std::to_integer<uint8_t>(take(1)[0]); }
    template <class T> T little() { return readLittle<T>(take(sizeof(T)), 0); }
    std::string line()
    {
        const std::string_view rest = textOf(code_.subspan(at_));
        const size_t end = rest.find('\n');
        if (end == rest.npos)
            damaged();
        at_ += end + 1;
        return std::string(rest.substr(0, end));
    }

    Ref made(Object o) { return &objects_.emplace_back(std::move(o)); }
    void push(Object o) { stack_.push_back(made(std::move(o))); }
    void integer(int64_t v) { push({ .kind = Object::Int, .integer = v }); }
    void text(uint64_t size) { push({ .kind = Object::Text, .text = std::string(textOf(take(size))) }); }
    void longInteger(size_t size)
    {
        const Bytes digits = take(size);
        if (size > 8)
            refused("an integer of " + std::to_string(size) + " bytes");
        uint64_t v = size && std::to_integer<int>(digits[size - 1]) > 127 ? ~uint64_t(0) : 0;
        for (size_t i = size; i-- > 0;)
            v = v << 8 | std::to_integer<uint8_t>(digits[i]);
        integer(int64_t(v));
    }

    size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
    Ref top() const
    {
        if (stack_.size() <= floor())
            damaged();
        return stack_.back();
    }
    Ref pop()
    {
        const Ref o = top();
        stack_.pop_back();
        return o;
    }
    std::vector<Ref> popMany(size_t n)
    {
        if (stack_.size() < floor() + n)
            damaged();
        std::vector<Ref> items(stack_.end() - ptrdiff_t(n), stack_.end());
        stack_.resize(stack_.size() - n);
        return items;
    }
    std::vector<Ref> popMark()
    {
        if (marks_.empty())
            damaged();
        std::vector<Ref> items = popMany(stack_.size() - marks_.back());
        marks_.pop_back();
        return items;
    }
    void recall(uint32_t key)
    {
        const auto it = memo_.find(key);
        if (it == memo_.end())
            damaged();
        stack_.push_back(it->second);
    }
    void append(const std::vector<Ref> &items)
    {
        if (top()->kind != Object::Sequence)
            damaged();
        top()->items.insert(top()->items.end(), items.begin(), items.end());
    }
    void setItems(const std::vector<Ref> &items)
    {
        if (top()->kind != Object::Dict || items.size() % 2)
            damaged();
        top()->items.insert(top()->items.end(), items.begin(), items.end());
    }

    // Only names on the list; what they do is in call().
    void global(const std::string &name)
    {
        static constexpr std::string_view known[] = { "collections.OrderedDict", "torch._utils._rebuild_tensor",
            "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3", "torch._utils._rebuild_parameter",
            "torch._utils._rebuild_parameter_with_state", "torch._utils._rebuild_qtensor", "torch.Size",
            "torch.per_tensor_affine", "torch.per_channel_affine", "torch.storage.UntypedStorage" };
        const bool dtype = name.starts_with("torch.") && dtypeFromName(name);
        const bool storage
            = std::any_of(std::begin(kStorages), std::end(kStorages), [&](const auto &s) { return s.name == name; });
        if (!dtype && !storage && std::find(std::begin(known), std::end(known), name) == std::end(known))
            refused(name);
        push({ .kind = Object::Name, .text = name });
    }

    static const Object &item(const Object &sequence, size_t i, Object::Kind kind)
    {
        if (sequence.kind != Object::Sequence || i >= sequence.items.size() || sequence.items[i]->kind != kind)
            damaged();
        return *sequence.items[i];
    }

    // ('storage', type, key, location, numel)
    Ref storage(const Object &id)
    {
        if (item(id, 0, Object::Text).text != "storage")
            refused("persistent " + id.items[0]->text);
        Object o{ .kind = Object::Storage };
        const std::string &type = item(id, 1, Object::Name).text;
        for (const StorageType &s : kStorages)
            if (s.name == type)
                o.dtype = s.dtype;
        const std::string name = prefix_ + "data/" + item(id, 2, Object::Text).text;
        const auto *member = zip_.find(name);
        if (!member)
            throw FormatError("its weights are incomplete: " + name + " is missing; copy or make the file again");
        o.bytes = { zip_.stored(*member, false), archive_.owner };
        return made(std::move(o));
    }

    static std::vector<int64_t> integers(const Object &o)
    {
        std::vector<int64_t> out;
        if (o.kind != Object::Sequence)
            damaged();
        for (size_t i = 0; i < o.items.size(); ++i)
            out.push_back(item(o, i, Object::Int).integer);
        return out;
    }

    Ref call(const Object &function, const Object &arguments)
    {
        if (function.kind != Object::Name || arguments.kind != Object::Sequence)
            damaged();
        const std::string &name = function.text;
        if (name == "collections.OrderedDict") {
            Object dict{ .kind = Object::Dict };
            if (!arguments.items.empty())
                for (const Ref pair : item(arguments, 0, Object::Sequence).items) {
                    if (pair->kind != Object::Sequence || pair->items.size() != 2)
                        damaged();
                    dict.items.insert(dict.items.end(), pair->items.begin(), pair->items.end());
                }
            return made(std::move(dict));
        }
        if (name == "torch.Size" || name.starts_with("torch._utils._rebuild_parameter")) {
            item(arguments, 0, name == "torch.Size" ? Object::Sequence : Object::TensorValue);
            return arguments.items[0];
        }
        if (!name.starts_with("torch._utils._rebuild_"))
            refused("a call of " + name);
        const Object &from = item(arguments, 0, Object::Storage);
        std::optional<DType> dtype = from.dtype;
        if (name.ends_with("_v3"))
            dtype = dtypeFromName(item(arguments, 6, Object::Name).text);
        if (!dtype)
            damaged();
        if (arguments.items.size() < 4)
            damaged();
        Tensor t = stridedTensor(*dtype, integers(*arguments.items[2]), integers(*arguments.items[3]),
            item(arguments, 1, Object::Int).integer, from.bytes, "a tensor of the pickle");
        if (isQuantized(*dtype)) {
            if (!name.ends_with("_rebuild_qtensor"))
                damaged();
            auto quantized = std::make_shared<TensorData>(*t);
            quantized->quant = quantizer(item(arguments, 4, Object::Sequence), *t);
            t = std::move(quantized);
        }
        return made({ .kind = Object::TensorValue, .tensor = std::move(t) });
    }

    // (torch.per_tensor_affine, scale, zero_point) or (torch.per_channel_affine, scales, zero_points, axis)
    static QuantParams quantizer(const Object &parameters, const TensorData &t)
    {
        QuantParams q;
        if (item(parameters, 0, Object::Name).text == "torch.per_tensor_affine") {
            q.scales = { item(parameters, 1, Object::Float).number };
            q.zeroPoints = { item(parameters, 2, Object::Int).integer };
            return q;
        }
        q.scales = toDoubles(*item(parameters, 1, Object::TensorValue).tensor);
        for (const double z : toDoubles(*item(parameters, 2, Object::TensorValue).tensor))
            q.zeroPoints.push_back(int64_t(z));
        const int64_t axis = item(parameters, 3, Object::Int).integer;
        if (axis < 0 || axis >= int64_t(t.sizes.size()) || q.scales.size() != size_t(t.sizes[size_t(axis)])
            || q.zeroPoints.size() != q.scales.size())
            damaged();
        q.axis = int(axis);
        return q;
    }

    Held archive_;
    ZipReader zip_;
    std::string prefix_;
    Bytes code_;
    size_t at_ = 0;
    std::deque<Object> objects_;
    std::vector<Ref> stack_;
    std::vector<size_t> marks_; // heights of the stack
    std::unordered_map<uint32_t, Ref> memo_;
};

} // namespace

NamedTensors readTorchDict(const Held &archive)
{
    Unpickler unpickler(archive);
    const Ref root = unpickler.run();
    if (root->kind != Object::Dict)
        throw FormatError("it holds no dict of tensors; save the model's state_dict()");
    NamedTensors out;
    std::map<std::tuple<const std::byte *, DType, std::vector<int64_t>, std::vector<int64_t>>, Tensor> one; // tied tensors
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i + 1 < root->items.size(); i += 2) {
        const Object &key = *root->items[i], &value = *root->items[i + 1];
        if (key.kind != Object::Text || !seen.insert(key.text).second)
            throw FormatError("its names are not those of a state_dict; save the model's state_dict()");
        Tensor t = value.kind == Object::TensorValue ? value.tensor : nullptr;
        if (t)
            t = one.try_emplace({ t->data, t->dtype, t->sizes, t->strides }, t).first->second;
        out.emplace_back(key.text, std::move(t));
    }
    return out;
}

} // namespace fb::io
