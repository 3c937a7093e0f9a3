// Fuseboard: nn.MultiheadAttention.forward. GPL-3.0-or-later.
//
// The one torch.nn module whose forward is a small program of its own: it takes torch's fast path exactly when torch does
// (torch/nn/modules/activation.py), else torch.nn.functional.multi_head_attention_forward step by step, so that results are
// equal bit for bit.
#include "model/exec/calls.h"

#include <cmath>

namespace fb
{

namespace
{

using OptionalTensor = std::optional<at::Tensor>;

struct Attention {
    at::Tensor query, key, value;
    int64_t embedding = 0, heads = 0;
    OptionalTensor inWeight, inBias, qWeight, kWeight, vWeight, biasK, biasV;
    bool addZero = false, training = false;
    double dropout = 0;
    at::Tensor outWeight;
    OptionalTensor outBias, padding, mask;
    bool needWeights = true, average = true, causal = false, batchFirst = false;

    // A bool mask becomes what is added to the scores.
    static void canonical(OptionalTensor &mask, const at::Tensor &like)
    {
        if (mask && !at::isFloatingType(mask->scalar_type()))
            mask = at::zeros_like(*mask, like.options()).masked_fill_(*mask, -std::numeric_limits<double>::infinity());
    }

    bool fast() const
    {
        return query.dim() == 3 && query.is_same(key) && key.is_same(value) && inWeight && inBias && !training && heads % 2 == 0
            && batchFirst && !biasK && !biasV && !addZero;
    }

    Arg runFast() const
    {
        OptionalTensor merged = padding;
        std::optional<int64_t> type = padding ? std::optional<int64_t>(1) : std::nullopt;
        const int64_t batch = query.size(0), length = query.size(1);
        if (mask) {
            merged = mask->dim() == 3 ? mask->view({ batch, -1, length, length })
                                      : mask->view({ 1, 1, length, length }).expand({ batch, heads, -1, -1 });
            if (padding)
                merged = *merged + padding->view({ batch, 1, 1, length }).expand({ -1, heads, -1, -1 });
            type = 2;
        }
        auto [out, weights] = at::_native_multi_head_attention(query, key, value, embedding, heads, *inWeight, *inBias, outWeight,
            outBias.value_or(at::Tensor()), merged, needWeights, average, type);
        return fromIValue(c10::ivalue::Tuple::create(out, weights.defined() ? c10::IValue(weights) : c10::IValue()));
    }

    // q, k, v after the input projection.
    std::array<at::Tensor, 3> project() const
    {
        const auto rows
            = [](const OptionalTensor &t, int64_t from, int64_t n) { return t ? OptionalTensor(t->narrow(0, from, n)) : t; };
        const int64_t e = embedding;
        const auto packed = [](const at::Tensor &t, int64_t n, int64_t size) {
            return t.unflatten(-1, { n, size }).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous();
        };
        if (!inWeight)
            return { at::linear(query, *qWeight, rows(inBias, 0, e)), at::linear(key, *kWeight, rows(inBias, e, e)),
                at::linear(value, *vWeight, rows(inBias, 2 * e, e)) };
        if (key.is_same(value) && query.is_same(key)) {
            const at::Tensor p = packed(at::linear(query, *inWeight, inBias), 3, e);
            return { p[0], p[1], p[2] };
        }
        if (key.is_same(value)) {
            const at::Tensor p = packed(at::linear(key, inWeight->narrow(0, e, 2 * e), rows(inBias, e, 2 * e)), 2, e);
            return { at::linear(query, inWeight->narrow(0, 0, e), rows(inBias, 0, e)), p[0], p[1] };
        }
        return { at::linear(query, inWeight->narrow(0, 0, e), rows(inBias, 0, e)),
            at::linear(key, inWeight->narrow(0, e, e), rows(inBias, e, e)),
            at::linear(value, inWeight->narrow(0, 2 * e, e), rows(inBias, 2 * e, e)) };
    }

    Arg run()
    {
        canonical(padding, query);
        canonical(mask, query);
        if (fast())
            return runFast();
        const bool batched = query.dim() == 3;
        const auto each = [&](auto change) { // the same tensor stays the same tensor
            const bool selfAttention = query.is_same(key), together = key.is_same(value);
            const at::Tensor q = change(query), k = selfAttention ? q : change(key);
            value = together ? k : change(value);
            query = q;
            key = k;
        };
        if (!batched) {
            each([](const at::Tensor &t) { return t.unsqueeze(1); });
            if (padding)
                padding = padding->unsqueeze(0);
        } else if (batchFirst) {
            each([](const at::Tensor &t) { return t.transpose(1, 0); });
        }
        if (causal && !mask)
            throw ExecError("is_causal needs an attn_mask");
        if (causal && !padding && !needWeights)
            mask.reset();
        else if (padding)
            causal = false;
        const int64_t length = query.size(0), batch = query.size(1), head = embedding / heads;
        auto [q, k, v] = project();
        if (mask && mask->dim() == 2)
            mask = mask->unsqueeze(0);
        const auto widen = [&] {
            for (OptionalTensor *m : { &mask, &padding })
                if (*m)
                    *m = at::pad(**m, { 0, 1 });
        };
        if (biasK && biasV) {
            k = at::cat({ k, biasK->repeat({ 1, batch, 1 }) });
            v = at::cat({ v, biasV->repeat({ 1, batch, 1 }) });
            widen();
        }
        q = q.view({ length, batch * heads, head }).transpose(0, 1);
        k = k.view({ k.size(0), batch * heads, head }).transpose(0, 1);
        v = v.view({ v.size(0), batch * heads, head }).transpose(0, 1);
        if (addZero) {
            k = at::cat({ k, at::zeros({ batch * heads, 1, head }, k.options()) }, 1);
            v = at::cat({ v, at::zeros({ batch * heads, 1, head }, v.options()) }, 1);
            widen();
        }
        const int64_t source = k.size(1);
        if (padding) {
            const at::Tensor p
                = padding->view({ batch, 1, 1, source }).expand({ -1, heads, -1, -1 }).reshape({ batch * heads, 1, source });
            mask = mask ? *mask + p : p;
        }
        const double p = training ? dropout : 0;
        at::Tensor out, weights;
        if (needWeights) {
            const at::Tensor scaled = q * std::sqrt(1.0 / double(head));
            weights = mask ? at::baddbmm(*mask, scaled, k.transpose(-2, -1)) : at::bmm(scaled, k.transpose(-2, -1));
            weights = at::softmax(weights, -1);
            if (p > 0)
                weights = at::dropout(weights, p, true);
            out = at::bmm(weights, v).transpose(0, 1).reshape({ length * batch, embedding });
            weights = weights.view({ batch, heads, length, source });
            if (average)
                weights = weights.mean(1);
            if (!batched)
                weights = weights.squeeze(0);
        } else {
            if (mask)
                mask = mask->size(0) == 1 && mask->dim() == 3 ? mask->unsqueeze(0) : mask->view({ batch, heads, -1, source });
            out = at::scaled_dot_product_attention(q.view({ batch, heads, length, head }), k.view({ batch, heads, source, head }),
                v.view({ batch, heads, source, head }), mask, p, causal);
            out = out.permute({ 2, 0, 1, 3 }).reshape({ batch * length, embedding });
        }
        out = at::linear(out, outWeight, outBias);
        out = out.view({ length, batch, out.size(1) });
        if (!batched)
            out = out.squeeze(1);
        else if (batchFirst)
            out = out.transpose(1, 0);
        return fromIValue(c10::ivalue::Tuple::create(out, weights.defined() ? c10::IValue(weights) : c10::IValue()));
    }
};

} // namespace

Arg multiHeadAttention(const ArgList &args, const Kwargs &kwargs)
{
    size_t next = 0;
    const auto tensor = [&](const Arg &a) {
        const Tensor *t = a.as<Tensor>();
        return t && *t ? OptionalTensor(toAten(*t)) : std::nullopt;
    };
    const auto take = [&]() -> const Arg & { return args.at(next++); };
    Attention a;
    for (at::Tensor *t : { &a.query, &a.key, &a.value }) {
        const auto given = tensor(take());
        if (!given)
            throw ExecError("query, key and value must be tensors");
        *t = *given;
    }
    a.embedding = take().toInt().value_or(0);
    a.heads = std::max<int64_t>(take().toInt().value_or(1), 1);
    for (const auto &[name, value] : kwargs) {
        const std::pair<const char *, OptionalTensor *> tensors[] = { { "in_proj_weight", &a.inWeight },
            { "in_proj_bias", &a.inBias }, { "q_proj_weight", &a.qWeight }, { "k_proj_weight", &a.kWeight },
            { "v_proj_weight", &a.vWeight }, { "bias_k", &a.biasK }, { "bias_v", &a.biasV }, { "out_bias", &a.outBias },
            { "key_padding_mask", &a.padding }, { "attn_mask", &a.mask } };
        const std::pair<const char *, bool *> flags[]
            = { { "add_zero_attn", &a.addZero }, { "training", &a.training }, { "need_weights", &a.needWeights },
                  { "average_attn_weights", &a.average }, { "is_causal", &a.causal }, { "batch_first", &a.batchFirst } };
        for (const auto &[key, target] : tensors)
            if (name == key)
                *target = tensor(value);
        for (const auto &[key, target] : flags)
            if (name == key)
                *target = value.toBool().value_or(*target);
        if (name == "dropout")
            a.dropout = value.toDouble().value_or(0);
        if (name == "out_weight")
            a.outWeight = tensor(value).value_or(at::Tensor());
    }
    if (!a.outWeight.defined() || (!a.inWeight && !(a.qWeight && a.kWeight && a.vWeight)))
        throw ExecError("its weights are missing");
    return a.run();
}

} // namespace fb
