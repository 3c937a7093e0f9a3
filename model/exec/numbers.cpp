// Fuseboard: math.* and the builtins that see numbers and sequences only. GPL-3.0-or-later.
//
// Sizes and factors of a graph are Python numbers, and so is what is computed from them: an int stays an int, a domain error is
// an error.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "model/exec/calls.h"

namespace fb
{

namespace
{

__extension__ using Wide = __int128; // what two int64 multiply to

double real(const Arg &a)
{
    if (const auto d = a.toDouble())
        return *d;
    if (const Tensor *t = a.as<Tensor>(); t && *t)
        return toAten(*t).item().toDouble();
    throw ExecError("a number was expected");
}

int64_t whole(const Arg &a)
{
    if (const auto i = a.toInt())
        return *i;
    throw ExecError("an int was expected");
}

double checked(double result, bool argumentsAreNumbers)
{
    if (std::isnan(result) && argumentsAreNumbers)
        throw ExecError("math domain error");
    return result;
}

template <double (*f)(double)> Arg one(const ArgList &args, const Kwargs &)
{
    const double x = real(nth(args, 0)), r = f(x);
    if (std::isinf(r) && std::isfinite(x))
        throw ExecError("math range error");
    return checked(r, !std::isnan(x));
}

template <double (*f)(double, double)> Arg two(const ArgList &args, const Kwargs &)
{
    const double x = real(nth(args, 0)), y = real(nth(args, 1));
    return checked(f(x, y), !std::isnan(x) && !std::isnan(y));
}

Arg integral(double d)
{
    if (!(std::abs(d) < 9.2e18))
        throw ExecError("the number is no int");
    return int64_t(d);
}

template <double (*f)(double)> Arg rounding(const ArgList &args, const Kwargs &)
{
    return nth(args, 0).toInt() ? Arg(*args[0].toInt()) : integral(f(real(args[0])));
}

Arg logarithm(const ArgList &args, const Kwargs &)
{
    const double x = real(nth(args, 0));
    if (x <= 0)
        throw ExecError("math domain error");
    return args.size() > 1 ? std::log(x) / std::log(real(args[1])) : std::log(x);
}

template <bool (*f)(double)> Arg question(const ArgList &args, const Kwargs &)
{
    return f(real(nth(args, 0)));
}

Arg isClose(const ArgList &args, const Kwargs &kwargs)
{
    const double a = real(nth(args, 0)), b = real(nth(args, 1));
    const double relative = real(named({}, kwargs, 0, "rel_tol", 1e-9)), absolute = real(named({}, kwargs, 0, "abs_tol", 0.0));
    return a == b
        || (std::isfinite(a) && std::isfinite(b)
            && std::abs(a - b) <= std::max(relative * std::max(std::abs(a), std::abs(b)), absolute));
}

Arg common(const ArgList &args, const Kwargs &)
{
    int64_t g = 0;
    for (const Arg &a : args)
        g = std::gcd(g, whole(a));
    return g;
}
Arg multiple(const ArgList &args, const Kwargs &)
{
    int64_t m = 1;
    for (const Arg &a : args)
        m = std::lcm(m, whole(a));
    return m;
}

// n (n - 1) ... over k factors, divided by k! where `combinations`.
Arg choices(int64_t n, int64_t k, bool combinations)
{
    if (n < 0 || k < 0)
        throw ExecError("a number that is not negative was expected");
    if (k > n)
        return 0;
    Wide r = 1;
    for (int64_t i = 0; i < k; ++i) {
        r *= n - i;
        if (combinations)
            r /= i + 1;
        if (r > std::numeric_limits<int64_t>::max())
            throw ExecError("an integer result is too large");
    }
    return int64_t(r);
}
Arg factorial(const ArgList &args, const Kwargs &)
{
    return choices(whole(nth(args, 0)), whole(args[0]), false);
}
Arg permutations(const ArgList &args, const Kwargs &)
{
    return choices(whole(nth(args, 0)), args.size() > 1 && !args[1].isNone() ? whole(args[1]) : whole(args[0]), false);
}
Arg combinations(const ArgList &args, const Kwargs &)
{
    return choices(whole(nth(args, 0)), whole(nth(args, 1)), true);
}
Arg integerRoot(const ArgList &args, const Kwargs &)
{
    const int64_t n = whole(nth(args, 0));
    if (n < 0)
        throw ExecError("isqrt() argument must be nonnegative");
    auto r = int64_t(std::sqrt(double(n)));
    while (r * r > n)
        --r;
    while ((r + 1) * (r + 1) <= n)
        ++r;
    return r;
}

Arg hypotenuse(const ArgList &args, const Kwargs &)
{
    long double total = 0;
    for (const Arg &a : args)
        total += (long double)real(a) * real(a);
    return double(std::sqrt(total));
}
Arg distance(const ArgList &args, const Kwargs &)
{
    const ArgList p = itemsOf(nth(args, 0)), q = itemsOf(nth(args, 1));
    if (p.size() != q.size())
        throw ExecError("both points must have the same number of dimensions");
    long double total = 0;
    for (size_t i = 0; i < p.size(); ++i)
        total += ((long double)real(p[i]) - real(q[i])) * ((long double)real(p[i]) - real(q[i]));
    return double(std::sqrt(total));
}
Arg exactSum(const ArgList &args, const Kwargs &)
{
    long double total = 0;
    for (const Arg &a : itemsOf(nth(args, 0)))
        total += real(a);
    return double(total);
}
Arg sumOfProducts(const ArgList &args, const Kwargs &)
{
    const ArgList p = itemsOf(nth(args, 0)), q = itemsOf(nth(args, 1));
    if (p.size() != q.size())
        throw ExecError("inputs are not the same length");
    double total = 0;
    bool ints = true;
    for (size_t i = 0; i < p.size(); ++i) {
        ints &= p[i].toInt() && q[i].toInt();
        total += real(p[i]) * real(q[i]);
    }
    return ints ? integral(total) : Arg(total);
}

Arg mantissa(const ArgList &args, const Kwargs &)
{
    int exponent = 0;
    const double m = std::frexp(real(nth(args, 0)), &exponent);
    return Arg::tuple({ m, exponent });
}
Arg parts(const ArgList &args, const Kwargs &)
{
    double integer = 0;
    const double fraction = std::modf(real(nth(args, 0)), &integer);
    return Arg::tuple({ fraction, integer });
}
Arg scaled(const ArgList &args, const Kwargs &)
{
    return std::ldexp(real(nth(args, 0)), int(whole(nth(args, 1))));
}
Arg lastPlace(const ArgList &args, const Kwargs &)
{
    const double x = std::abs(real(nth(args, 0)));
    return std::isfinite(x) ? std::nextafter(x, std::numeric_limits<double>::infinity()) - x : x;
}
double degrees(double x)
{
    return x * (180 / M_PI);
}
double radians(double x)
{
    return x * (M_PI / 180);
}

Arg power(const ArgList &args, const Kwargs &)
{
    return std::pow(real(nth(args, 0)), real(nth(args, 1)));
}

Arg product(const ArgList &args, const Kwargs &kwargs)
{
    static const PythonFunction multiply = pythonFunction("operator.mul");
    Arg total = named({}, kwargs, 0, "start", 1);
    for (Arg &a : itemsOf(nth(args, 0)))
        total = multiply({ total, std::move(a) }, {});
    return total;
}

// --- builtins ---

Arg quotientAndRest(const ArgList &args, const Kwargs &k)
{
    static const PythonFunction floor = pythonFunction("operator.floordiv"), mod = pythonFunction("operator.mod");
    return Arg::tuple({ floor(args, k), mod(args, k) });
}
Arg modularPower(const ArgList &args, const Kwargs &k)
{
    static const PythonFunction pow = pythonFunction("operator.pow");
    if (args.size() < 3 || args[2].isNone())
        return pow(args, k);
    const int64_t m = whole(args[2]);
    int64_t e = whole(args[1]);
    if (m == 0 || e < 0)
        throw ExecError("pow() with these three arguments is not supported");
    Wide r = 1, b = whole(args[0]) % m;
    for (; e > 0; e >>= 1, b = b * b % m)
        if (e & 1)
            r = r * b % m;
    r %= m;
    return int64_t(r && (r < 0) != (m < 0) ? r + m : r);
}
Arg complexNumber(const ArgList &args, const Kwargs &kwargs)
{
    return std::complex<double>(real(named(args, kwargs, 0, "real", 0.0)), real(named(args, kwargs, 1, "imag", 0.0)));
}
// The names of the classes that a value is an instance of, but for object.
std::vector<std::string> classesOf(const Arg &a)
{
    if (a.as<Tensor>())
        return { "torch.Tensor" };
    if (a.as<bool>())
        return { "builtins.bool", "builtins.int" };
    if (a.as<int64_t>() || a.as<ArgBigInt>())
        return { "builtins.int" };
    if (a.as<double>())
        return { "builtins.float" };
    if (a.as<std::complex<double>>())
        return { "builtins.complex" };
    if (a.as<std::string>())
        return { "builtins.str" };
    if (a.dictionary())
        return { "builtins.dict" };
    if (const ArgSlice *s = a.sliceOrRange())
        return { s->isRange ? "builtins.range" : "builtins.slice" };
    if (const ArgNamedTuple *n = a.named())
        return { n->type, "builtins.tuple" };
    if (const ArgSequence *s = a.sequence()) {
        if (s->kind == ArgSequence::List)
            return { "builtins.list" };
        return s->kind == ArgSequence::Size ? std::vector<std::string>{ "torch.Size", "builtins.tuple" }
                                            : std::vector<std::string>{ "builtins.tuple" };
    }
    return {};
}
Arg isInstance(const ArgList &args, const Kwargs &)
{
    static const std::set<std::string> known
        = { "torch.Tensor", "torch.Size", "builtins.bool", "builtins.int", "builtins.float", "builtins.complex", "builtins.str",
              "builtins.dict", "builtins.range", "builtins.slice", "builtins.tuple", "builtins.list" };
    const std::vector<std::string> classes = classesOf(nth(args, 0));
    const ArgList single{ nth(args, 1) };
    bool is = false;
    for (const Arg &cls : args[1].sequence() ? args[1].sequence()->items : single) {
        const ArgSymbol *symbol = cls.as<ArgSymbol>();
        const bool found = symbol && std::find(classes.begin(), classes.end(), symbol->name) != classes.end();
        if (!found && !(symbol && known.count(symbol->name) && !classes.empty()))
            throw ExecError(
                "isinstance() of this value and class is for Python to answer; mark the module that calls it as a leaf");
        is = is || found;
    }
    return is;
}
Arg some(const ArgList &args, const Kwargs &)
{
    const ArgList items = itemsOf(nth(args, 0));
    return std::any_of(items.begin(), items.end(), [](const Arg &a) { return truth(a); });
}
Arg every(const ArgList &args, const Kwargs &)
{
    const ArgList items = itemsOf(nth(args, 0));
    return std::all_of(items.begin(), items.end(), [](const Arg &a) { return truth(a); });
}
Arg inOrder(const ArgList &args, const Kwargs &kwargs)
{
    ArgList items = itemsOf(nth(args, 0));
    const bool backwards = truth(named({}, kwargs, 0, "reverse"));
    std::stable_sort(items.begin(), items.end(), [&](const Arg &a, const Arg &b) { return backwards ? less(b, a) : less(a, b); });
    return Arg::list(std::move(items));
}
Arg backwards(const ArgList &args, const Kwargs &)
{
    ArgList items = itemsOf(nth(args, 0));
    std::reverse(items.begin(), items.end());
    return Arg::list(std::move(items));
}
Arg numbered(const ArgList &args, const Kwargs &kwargs)
{
    int64_t i = whole(named(args, kwargs, 1, "start", 0));
    ArgList out;
    for (Arg &a : itemsOf(nth(args, 0)))
        out.push_back(Arg::tuple({ i++, std::move(a) }));
    return Arg::list(std::move(out));
}
Arg zipped(const ArgList &args, const Kwargs &)
{
    std::vector<ArgList> lists;
    size_t shortest = args.empty() ? 0 : std::numeric_limits<size_t>::max();
    for (const Arg &a : args) {
        lists.push_back(itemsOf(a));
        shortest = std::min(shortest, lists.back().size());
    }
    ArgList out;
    for (size_t i = 0; i < shortest; ++i) {
        ArgList row;
        for (ArgList &list : lists)
            row.push_back(list[i]);
        out.push_back(Arg::tuple(std::move(row)));
    }
    return Arg::list(std::move(out));
}
Arg text(const ArgList &args, const Kwargs &)
{
    const Arg &a = nth(args, 0);
    if (const auto *s = a.as<std::string>())
        return *s;
    if (const auto *s = a.as<ArgSymbol>())
        return s->name;
    if (const bool *b = a.as<bool>())
        return *b ? "True" : "False";
    if (const int64_t *i = a.as<int64_t>())
        return std::to_string(*i);
    if (a.isNone())
        return "None";
    if (const auto *d = a.as<ArgDType>())
        return d->name;
    if (const auto *d = a.as<ArgDevice>())
        return d->name;
    throw ExecError("str() of this value is not supported");
}
Arg dictionary(const ArgList &args, const Kwargs &kwargs)
{
    std::vector<std::pair<Arg, Arg>> items;
    if (!args.empty()) {
        if (const ArgDict *d = args[0].dictionary())
            items = d->items;
        else
            for (const Arg &pair : itemsOf(args[0])) {
                const ArgList both = itemsOf(pair);
                items.emplace_back(nth(both, 0), nth(both, 1));
            }
    }
    for (const auto &[key, value] : kwargs)
        items.emplace_back(key, value);
    return Arg::dict(std::move(items));
}
Arg slice(const ArgList &args, const Kwargs &)
{
    return args.size() == 1 ? Arg::slice({}, args[0], {}) : Arg::slice(nth(args, 0), args[1], args.size() > 2 ? args[2] : Arg());
}

} // namespace

PythonFunction numberFunction(std::string_view name)
{
    static const std::unordered_map<std::string_view, PythonFunction> table{
        { "math.acos", one<std::acos> },
        { "math.acosh", one<std::acosh> },
        { "math.asin", one<std::asin> },
        { "math.asinh", one<std::asinh> },
        { "math.atan", one<std::atan> },
        { "math.atan2", two<std::atan2> },
        { "math.atanh", one<std::atanh> },
        { "math.cbrt", one<std::cbrt> },
        { "math.ceil", rounding<std::ceil> },
        { "math.comb", combinations },
        { "math.copysign", two<std::copysign> },
        { "math.cos", one<std::cos> },
        { "math.cosh", one<std::cosh> },
        { "math.degrees", one<degrees> },
        { "math.dist", distance },
        { "math.erf", one<std::erf> },
        { "math.erfc", one<std::erfc> },
        { "math.exp", one<std::exp> },
        { "math.exp2", one<std::exp2> },
        { "math.expm1", one<std::expm1> },
        { "math.fabs", one<std::fabs> },
        { "math.factorial", factorial },
        { "math.floor", rounding<std::floor> },
        { "math.fmod", two<std::fmod> },
        { "math.frexp", mantissa },
        { "math.fsum", exactSum },
        { "math.gamma", one<std::tgamma> },
        { "math.gcd", common },
        { "math.hypot", hypotenuse },
        { "math.isclose", isClose },
        { "math.isfinite", question<std::isfinite> },
        { "math.isinf", question<std::isinf> },
        { "math.isnan", question<std::isnan> },
        { "math.isqrt", integerRoot },
        { "math.lcm", multiple },
        { "math.ldexp", scaled },
        { "math.lgamma", one<std::lgamma> },
        { "math.log", logarithm },
        { "math.log10", one<std::log10> },
        { "math.log1p", one<std::log1p> },
        { "math.log2", one<std::log2> },
        { "math.modf", parts },
        { "math.nextafter", two<std::nextafter> },
        { "math.perm", permutations },
        { "math.pow", power },
        { "math.prod", product },
        { "math.radians", one<radians> },
        { "math.remainder", two<std::remainder> },
        { "math.sin", one<std::sin> },
        { "math.sinh", one<std::sinh> },
        { "math.sqrt", one<std::sqrt> },
        { "math.sumprod", sumOfProducts },
        { "math.tan", one<std::tan> },
        { "math.tanh", one<std::tanh> },
        { "math.trunc", rounding<std::trunc> },
        { "math.ulp", lastPlace },
        { "builtins.all", every },
        { "builtins.any", some },
        { "builtins.complex", complexNumber },
        { "builtins.dict", dictionary },
        { "builtins.divmod", quotientAndRest },
        { "builtins.enumerate", numbered },
        { "builtins.isinstance", isInstance },
        { "builtins.pow", modularPower },
        { "builtins.reversed", backwards },
        { "builtins.slice", slice },
        { "builtins.sorted", inOrder },
        { "builtins.str", text },
        { "builtins.zip", zipped },
    };
    const auto it = table.find(name);
    return it == table.end() ? nullptr : it->second;
}

} // namespace fb
