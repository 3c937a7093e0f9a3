// torch.save's file for a dict of tensors: a zip with a pickle (protocol 2) that calls torch's rebuild functions, and one
// member of raw data for each storage. Only functions that torch.load(weights_only=True) allows are named.
#include <unordered_map>

#include "model/io/safetensors.h"

namespace fb
{

namespace
{

using namespace io;

// torch/storage.py's class for a dtype; empty for dtypes that only have untyped storages.
std::string_view storageClass(DType dtype)
{
    switch (dtype) {
    case DType::UInt8:
        return "ByteStorage";
    case DType::Int8:
        return "CharStorage";
    case DType::Int16:
        return "ShortStorage";
    case DType::Int32:
        return "IntStorage";
    case DType::Int64:
        return "LongStorage";
    case DType::Float16:
        return "HalfStorage";
    case DType::Float32:
        return "FloatStorage";
    case DType::Float64:
        return "DoubleStorage";
    case DType::Complex64:
        return "ComplexFloatStorage";
    case DType::Complex128:
        return "ComplexDoubleStorage";
    case DType::Bool:
        return "BoolStorage";
    case DType::BFloat16:
        return "BFloat16Storage";
    case DType::QUInt8:
        return "QUInt8Storage";
    case DType::QInt8:
        return "QInt8Storage";
    case DType::QInt32:
        return "QInt32Storage";
    default:
        return {};
    }
}

class Pickle
{
public:
    // Storages in the order of their keys "0", "1", ...
    std::vector<Tensor> storages;

    std::string dictionary(const NamedTensors &tensors)
    {
        out_ = "\x80\x02}("; // PROTO 2, EMPTY_DICT, MARK
        for (const auto &[name, t] : tensors) {
            text(name);
            tensor(t);
        }
        return out_ + "u."; // SETITEMS, STOP
    }

private:
    void text(std::string_view s)
    {
        out_ += 'X';
        appendLittle<uint32_t>(out_, uint32_t(s.size()));
        out_ += s;
    }
    void integer(int64_t v)
    {
        if (v >= INT32_MIN && v <= INT32_MAX) {
            out_ += 'J';
            appendLittle<uint32_t>(out_, uint32_t(v));
        } else {
            out_ += std::string_view("\x8a\x08", 2); // LONG1 of 8 bytes
            appendLittle<uint64_t>(out_, uint64_t(v));
        }
    }
    void real(double v)
    {
        const auto bits = std::bit_cast<uint64_t>(v);
        out_ += 'G'; // BINFLOAT is big-endian
        for (int shift = 56; shift >= 0; shift -= 8)
            out_ += char(bits >> shift & 0xff);
    }
    void global(std::string_view module, std::string_view name) { ((((out_ += 'c') += module) += '\n') += name) += '\n'; }
    void integers(const std::vector<int64_t> &values)
    {
        out_ += '(';
        for (int64_t v : values)
            integer(v);
        out_ += 't';
    }

    // The arguments that all rebuild functions begin with: storage, offset, size, stride.
    void storage(const Tensor &t, bool untyped)
    {
        auto [it, fresh] = keys_.try_emplace(t.get(), storages.size());
        if (fresh)
            storages.push_back(t);
        out_ += '('; // persistent id: ("storage", class, key, device, size)
        text("storage");
        if (untyped)
            global("torch.storage", "UntypedStorage");
        else
            global("torch", storageClass(t->dtype));
        text(std::to_string(it->second));
        text("cpu");
        integer(t->numel() * int64_t(untyped ? dtypeSize(t->dtype) : 1));
        out_ += "tQ";
        integer(0);
        integers(t->sizes);
        integers(contiguousStrides(t->sizes));
    }
    // requires_grad and backward_hooks
    void closing()
    {
        out_ += '\x89';
        global("collections", "OrderedDict");
        out_ += ")R";
    }

    void tensor(const Tensor &t)
    {
        const bool untyped = storageClass(t->dtype).empty();
        global("torch._utils", t->quant ? "_rebuild_qtensor" : untyped ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2");
        out_ += '(';
        storage(t, untyped);
        if (t->quant) {
            const QuantParams &q = *t->quant;
            out_ += '(';
            if (q.perChannel()) {
                global("torch", "per_channel_affine");
                tensor(kept(makeTensor(DType::Float64, { int64_t(q.scales.size()) }, q.scales.data())));
                tensor(kept(makeTensor(DType::Int64, { int64_t(q.zeroPoints.size()) }, q.zeroPoints.data())));
                integer(q.axis);
            } else {
                global("torch", "per_tensor_affine");
                real(q.scales.at(0));
                integer(q.zeroPoints.at(0));
            }
            out_ += 't';
        }
        closing();
        if (untyped)
            global("torch", dtypeName(t->dtype));
        out_ += "tR";
    }

    Tensor kept(Tensor t)
    {
        kept_.push_back(t); // so that no later tensor gets its address
        return t;
    }

    std::string out_;
    std::unordered_map<const TensorData *, size_t> keys_;
    std::vector<Tensor> kept_;
};

} // namespace

Status writeTorchWeights(const NamedTensors &tensors, const std::string &path)
{
    return guarded(path, [&] {
        Pickle pickle;
        const std::string data = pickle.dictionary(tensors);
        AtomicFile file(path);
        ZipWriter zip(file);
        zip.add("archive/data.pkl", { bytesOf(data) });
        zip.add("archive/byteorder", { bytesOf("little") });
        for (size_t i = 0; i < pickle.storages.size(); ++i) {
            std::string holder;
            zip.add("archive/data/" + std::to_string(i), { rowMajorBytes(*pickle.storages[i], holder) });
        }
        zip.add("archive/version", { bytesOf("3\n") });
        zip.finish();
        file.commit();
    });
}

} // namespace fb
