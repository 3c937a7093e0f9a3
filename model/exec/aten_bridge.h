// Fuseboard: between our values and ATen's. GPL-3.0-or-later. Private to model/exec.
//
// A tensor crosses in both directions without a copy of its elements: towards ATen as a blob that keeps the owner alive, back as
// a handle whose owner is the ATen tensor (which the next crossing finds again, so aliases stay aliases). Other values cross by
// the type that an operator's schema asks for, with the conversions that Python's argument parser makes: an int where a
// Scalar or a list of ints is wanted, a number where a Tensor is, "mean" for a reduction.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>

#include "model/exec/aten_pch.h"
#include "model/ir/arg.h"
#include "model/ir/result.h"

namespace fb
{

// Failures inside model/exec; never leaves a public function.
struct ExecError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// While it lives, this thread's ATen keeps its deprecation warnings to itself: standard error belongs to our own sentences.
class QuietScope
{
    struct Handler : c10::WarningHandler {
        void process(const c10::Warning &) override { }
    };
    Handler handler_;
    c10::WarningUtils::WarningHandlerGuard guard_{ &handler_ };
};

at::ScalarType scalarType(DType dtype);
DType dtypeOf(at::ScalarType type); // throws ExecError for a type that Fuseboard has no name for

at::Tensor toAten(const Tensor &t); // null gives an undefined tensor
Tensor fromAten(const at::Tensor &t); // undefined gives null; throws ExecError for what is not dense memory of the CPU
// Between the nodes of a run any tensor may flow (sparse, meta, a lazy conjugate, one that an in-place operator has reshaped);
// its handle then has no data. `settled` gives what may leave the run: the same handle where it still describes the tensor.
Tensor hold(const at::Tensor &t);
Tensor settled(const Tensor &t);
bool isMeta(const Tensor &t);
bool isDense(const Tensor &t); // `settled` can give it

// While it lives and is `on`, what this thread's operators make on the CPU is held as meta tensors: factories know of no inputs.
class MetaScope
{
public:
    explicit MetaScope(bool on);
    ~MetaScope();
    MetaScope(const MetaScope &) = delete;
    MetaScope &operator=(const MetaScope &) = delete;

private:
    bool before_;
};

// The value as the schema type wants it, or nullopt where Python would not take it. `cost` grows by how far the conversion
// went: 0 exact, 1 a number of another kind, more for a number that becomes a tensor. `listSize` is N of `int[N]`.
std::optional<c10::IValue> toIValue(
    const Arg &arg, const c10::TypePtr &type, int &cost, std::optional<int> listSize = std::nullopt);
Arg fromIValue(const c10::IValue &value); // lists of tensors come back as tuples, as Python gives them
// By the value's own type, for TorchScript inputs without a declared one.
c10::IValue toIValue(const Arg &arg);

at::Scalar toScalar(const Arg &number); // throws ExecError for anything but a number
// Number of the Python kind that the scalar has.
Arg fromScalar(const at::Scalar &s);

// The first line of what ATen says, without its address trace; to be called from a catch (...) block.
std::string currentMessage();

} // namespace fb
