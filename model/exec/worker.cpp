#include "model/exec/worker.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include "model/exec/aten_bridge.h"
#include "model/io/argument_text.h"

extern char **environ;

namespace fb
{

namespace
{

using Clock = std::chrono::steady_clock;

// The descriptors that fuseboard_worker.py expects, and how tensors are aligned.
constexpr int kSocket = 3, kMemory = 4;
constexpr int64_t kAlignment = 64;
constexpr std::string_view kWholeModel = "model";
constexpr size_t kLongestAnswer = size_t(64) << 20;
constexpr auto kCancelPoll = std::chrono::milliseconds(20);

class Descriptor
{
public:
    Descriptor() = default;
    explicit Descriptor(int fd)
        : fd_(fd)
    {
    }
    Descriptor(Descriptor &&other) noexcept
        : fd_(std::exchange(other.fd_, -1))
    {
    }
    Descriptor &operator=(Descriptor &&other) noexcept
    {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor()
    {
        if (fd_ >= 0)
            ::close(fd_);
    }
    int get() const { return fd_; }
    // A copy above the numbers that the child gets, so that these can be given out in any order.
    Descriptor above() const { return Descriptor(::fcntl(fd_, F_DUPFD_CLOEXEC, 16)); }

private:
    int fd_ = -1;
};

[[noreturn]] void failed(const char *what)
{
    throw ExecError(std::string("the Python worker cannot start: ") + what + ": " + std::strerror(errno));
}

// Memory of both processes. Sealed so that neither can make it smaller: what is mapped stays there.
class SharedMemory
{
public:
    SharedMemory()
        : file_(::memfd_create("fuseboard", MFD_CLOEXEC | MFD_ALLOW_SEALING))
    {
        if (file_.get() < 0 || ::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
            failed("no shared memory");
    }
    ~SharedMemory() { unmap(); }
    SharedMemory(const SharedMemory &) = delete;
    SharedMemory &operator=(const SharedMemory &) = delete;

    const Descriptor &file() const { return file_; }

    // The first `size` bytes, or null where there are not so many and `grow` is false.
    std::byte *bytes(int64_t size, bool grow)
    {
        if (size <= size_)
            return data_;
        struct stat s = {};
        ::fstat(file_.get(), &s);
        if (s.st_size < size) {
            if (!grow)
                return nullptr;
            if (::ftruncate(file_.get(), size) < 0)
                throw ExecError("there is not enough memory to hand " + std::to_string(size) + " bytes to Python");
            s.st_size = size;
        }
        unmap();
        void *p = ::mmap(nullptr, size_t(s.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
        if (p == MAP_FAILED)
            throw ExecError("there is not enough memory to exchange " + std::to_string(s.st_size) + " bytes with Python");
        data_ = static_cast<std::byte *>(p);
        size_ = s.st_size;
        return data_;
    }

private:
    void unmap()
    {
        if (data_)
            ::munmap(data_, size_t(size_));
        data_ = nullptr;
        size_ = 0;
    }
    Descriptor file_;
    std::byte *data_ = nullptr;
    int64_t size_ = 0;
};

// A child process that dies with us. The kernel ties it to the thread that made it, so it has a thread of its own, which
// waits for its end.
class Child
{
public:
    Child(const WorkerOptions &options, const Descriptor &socket, const Descriptor &memory)
    {
        keeper_ = std::thread([&, this] { keep(options, socket, memory); });
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return started_; });
        if (pid_ < 0) {
            lock.unlock();
            keeper_.join();
            throw ExecError("there is no Python at " + options.python + ": name an interpreter that has torch (--python)");
        }
    }
    ~Child()
    {
        kill();
        keeper_.join();
    }
    Child(const Child &) = delete;
    Child &operator=(const Child &) = delete;

    void kill()
    {
        const std::lock_guard lock(mutex_);
        if (!ended_)
            ::kill(-pid_, SIGKILL);
    }

    // How it ended, once its end of the socket is closed.
    std::string obituary()
    {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, std::chrono::seconds(2), [this] { return ended_; }))
            return "the Python worker does not answer any more";
        if (how_.si_code == CLD_EXITED)
            return "the Python worker ended with exit status " + std::to_string(how_.si_status) + " while it ran";
        return std::string("the Python worker crashed (") + ::strsignal(how_.si_status) + ")";
    }

private:
    // The new process, or -1.
    static pid_t spawn(const WorkerOptions &options, const Descriptor &socket, const Descriptor &memory)
    {
        const Descriptor channel = socket.above(), shared = memory.above();
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO); // standard output holds results only
        posix_spawn_file_actions_adddup2(&actions, channel.get(), kSocket);
        posix_spawn_file_actions_adddup2(&actions, shared.get(), kMemory);
        posix_spawnattr_t attributes; // a process group of its own, to be killed as one
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        sigset_t all, none;
        sigfillset(&all);
        sigemptyset(&none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setsigmask(&attributes, &none);
        std::string words[] = { options.python, "-u", "-B", options.script, std::to_string(::getpid()), options.source };
        std::vector<char *> argv;
        for (std::string &w : words)
            argv.push_back(w.data());
        argv.push_back(nullptr);
        pid_t pid = -1;
        const int error = ::posix_spawnp(&pid, options.python.c_str(), &actions, &attributes, argv.data(), environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        return error ? -1 : pid;
    }

    void keep(const WorkerOptions &options, const Descriptor &socket, const Descriptor &memory)
    {
        const pid_t pid = spawn(options, socket, memory);
        {
            const std::lock_guard lock(mutex_);
            pid_ = pid;
            started_ = true;
        }
        changed_.notify_all(); // the arguments are gone from here on
        if (pid < 0)
            return;
        siginfo_t how = {};
        while (::waitid(P_PID, id_t(pid), &how, WEXITED | WNOWAIT) < 0 && errno == EINTR) { }
        {
            const std::lock_guard lock(mutex_);
            ::kill(-pid, SIGKILL); // what it started
            ::waitpid(pid, nullptr, 0);
            how_ = how;
            ended_ = true;
        }
        changed_.notify_all();
    }

    std::thread keeper_;
    std::mutex mutex_;
    std::condition_variable changed_;
    pid_t pid_ = -1;
    bool started_ = false, ended_ = false;
    siginfo_t how_ = {};
};

struct Cancelled {
};

int64_t extentOf(const std::vector<int64_t> &sizes, const std::vector<int64_t> &strides)
{
    int64_t last = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == 0)
            return 0;
        last += (sizes[i] - 1) * strides[i];
    }
    return last + 1;
}

std::string joined(const std::vector<int64_t> &numbers)
{
    std::string out;
    for (const int64_t n : numbers)
        out += (out.empty() ? "" : ",") + std::to_string(n);
    return out;
}

// "3,4": what a stranger says is bounded here, so that products of it cannot overflow unseen.
std::vector<int64_t> numbers(std::string_view text)
{
    std::vector<int64_t> out;
    while (!text.empty()) {
        const std::string_view part = text.substr(0, text.find(','));
        int64_t n = -1;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), n);
        if (error != std::errc() || end != part.data() + part.size() || n < 0 || n > (int64_t(1) << 40) || out.size() == 64)
            throw ExecError("\"" + std::string(part) + "\" is no size");
        out.push_back(n);
        text.remove_prefix(std::min(text.size(), part.size() + 1));
    }
    return out;
}

// Where a tensor is said to lie: "float32:2,3:3,1:64".
struct Place {
    std::string kind;
    std::vector<int64_t> sizes, strides;
    int64_t offset = 0;

    explicit Place(const std::string &name)
    {
        std::vector<std::string_view> parts;
        for (std::string_view rest = name;;) {
            const size_t colon = rest.find(':');
            parts.push_back(rest.substr(0, colon));
            if (colon == rest.npos)
                break;
            rest.remove_prefix(colon + 1);
        }
        if (parts.size() != 4)
            throw ExecError("\"" + name + "\" is no tensor");
        kind = parts[0];
        sizes = numbers(parts[1]);
        strides = numbers(parts[2]);
        const std::vector<int64_t> at = numbers(parts[3]);
        if (sizes.size() != strides.size() || at.size() != 1)
            throw ExecError("\"" + name + "\" is no tensor");
        offset = at[0];
        double elements = 1, extent = 1; // a double overflows into a large number, not into a small one
        for (size_t i = 0; i < sizes.size(); ++i) {
            elements *= double(sizes[i]);
            extent += double(sizes[i]) * double(strides[i]);
        }
        if (elements > 1e15 || extent > 1e15)
            throw ExecError("\"" + name + "\" is too large");
    }
};

const Arg *field(const Arg &a, std::string_view name)
{
    if (const ArgDict *d = a.dictionary())
        for (const auto &[key, value] : d->items)
            if (key == Arg(std::string(name)))
                return &value;
    return nullptr;
}

// What goes out in one message, and what the names in the answer stand for.
class Exchange
{
public:
    explicit Exchange(SharedMemory &memory)
        : memory_(memory)
    {
    }

    std::string name(const Tensor &t)
    {
        if (t->quant)
            throw ExecError("a quantized tensor cannot be sent to Python; keep its input in float");
        for (const auto &[place, other] : sent_)
            if (other->data == t->data && other->dtype == t->dtype && other->sizes == t->sizes && other->strides == t->strides)
                return named(*t, place);
        const int64_t place = end_;
        const int64_t size = extentOf(t->sizes, t->strides) * int64_t(dtypeSize(t->dtype));
        end_ += std::max(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
        sent_.emplace_back(place, t);
        return named(*t, place);
    }

    void writeTensors()
    {
        std::byte *const bytes = memory_.bytes(end_, true);
        for (const auto &[place, t] : sent_)
            if (const int64_t n = extentOf(t->sizes, t->strides))
                std::memcpy(bytes + place, t->data, size_t(n) * dtypeSize(t->dtype));
    }

    const Tensor &given(int64_t place) const
    {
        for (const auto &[p, t] : sent_)
            if (p == place)
                return t;
        throw ExecError("nothing was sent at " + std::to_string(place));
    }

    void forget() { received_.clear(); } // the next message has other tensors by the same names

    Result<Tensor> tensor(const std::string &name)
    {
        if (const auto it = received_.find(name); it != received_.end())
            return it->second;
        try {
            const Place place(name);
            return received_[name] = place.kind.starts_with("given ") ? view(place) : copy(place);
        } catch (...) {
            return Error{ currentMessage() };
        }
    }

private:
    static std::string named(const TensorData &t, int64_t place)
    {
        return std::string(dtypeName(t.dtype)) + ":" + joined(t.sizes) + ":" + joined(t.strides) + ":" + std::to_string(place);
    }
    Tensor view(const Place &p) const
    {
        const std::vector<int64_t> at = numbers(std::string_view(p.kind).substr(6));
        if (at.size() != 1)
            throw ExecError("\"" + p.kind + "\" names nothing that was sent");
        const at::Tensor base = toAten(given(at[0]));
        return fromAten(base.as_strided(p.sizes, p.strides, base.storage_offset() + p.offset)); // checks the bounds
    }
    Tensor copy(const Place &p)
    {
        const auto dtype = dtypeFromName(p.kind);
        if (!dtype || isQuantized(*dtype))
            throw ExecError("a tensor of dtype " + p.kind + " came out, which Fuseboard cannot take from Python");
        const int64_t size = extentOf(p.sizes, p.strides) * int64_t(dtypeSize(*dtype));
        const std::byte *bytes = memory_.bytes(p.offset + size, false);
        if (size && !bytes)
            throw ExecError("it names more memory than there is");
        at::Tensor t = at::empty_strided(p.sizes, p.strides, at::TensorOptions().dtype(scalarType(*dtype)));
        if (size)
            std::memcpy(t.data_ptr(), bytes + p.offset, size_t(size));
        return fromAten(t);
    }

    SharedMemory &memory_;
    int64_t end_ = 0;
    std::vector<std::pair<int64_t, Tensor>> sent_;
    std::map<std::string, Tensor> received_;
};

} // namespace

struct Worker::Impl {
    WorkerOptions options;
    std::recursive_timed_mutex mutex; // of everything below; a part may call into Python again
    Descriptor socket;
    std::unique_ptr<SharedMemory> memory;
    std::unique_ptr<Child> child;
    std::map<std::string, Tensor> state; // what the modules there hold
    std::map<std::string, int> training; // -1: unknown
    std::string received;
    int depth = 0; // calls under way
    struct Part {
        std::shared_ptr<const GraphModule> graph;
        std::unique_ptr<Interpreter> interpreter;
    };
    std::map<std::string, Part> parts; // by path, as they were last run

    // Whatever went wrong with the process, there is none afterwards, and what waits further out finds none.
    [[noreturn]] void giveUp(const std::string &why)
    {
        child.reset();
        throw ExecError(why);
    }

    void wait(short events, Clock::time_point deadline, const CancelFlag *cancel)
    {
        for (;;) {
            if (cancel && cancel->load()) {
                child.reset();
                throw Cancelled();
            }
            pollfd p{ socket.get(), events, 0 };
            if (const int n = ::poll(&p, 1, int(kCancelPoll.count())); n > 0)
                return;
            if (Clock::now() > deadline) {
                char seconds[32];
                std::snprintf(seconds, sizeof seconds, "%g", options.timeout);
                giveUp(std::string("the Python worker gave no answer within ") + seconds
                    + " s and was stopped; give it longer with --worker-timeout");
            }
        }
    }

    std::string receive(Clock::time_point deadline, const CancelFlag *cancel)
    {
        received.clear();
        for (;;) {
            wait(POLLIN, deadline, cancel);
            char buffer[1 << 16];
            const ssize_t n = ::recv(socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
            if (n < 0 && (errno == EAGAIN || errno == EINTR))
                continue;
            if (n <= 0)
                giveUp(child->obituary());
            received.append(buffer, size_t(n));
            if (received.back() == '\n')
                return std::move(received);
            if (received.size() > kLongestAnswer)
                giveUp(
                    "the Python worker's answer does not end; it may return tensors of any size, but not so many other values");
        }
    }

    void send(std::string_view text, Clock::time_point deadline, const CancelFlag *cancel)
    {
        while (!text.empty()) {
            wait(POLLOUT, deadline, cancel);
            const ssize_t n = ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n < 0 && errno != EAGAIN && errno != EINTR)
                giveUp(child->obituary());
            text.remove_prefix(size_t(std::max<ssize_t>(n, 0)));
        }
    }

    Clock::time_point deadline() const
    {
        return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.timeout));
    }

    // The answer as a value; what it reports as an error is thrown.
    Arg parse(const std::string &line, Exchange &exchange)
    {
        exchange.forget();
        auto answer = argumentFromText(line, [&](const std::string &name) { return exchange.tensor(name); });
        if (!answer)
            giveUp("the Python worker gave an answer that is none: " + answer.message());
        if (const Arg *error = field(*answer, "error"); error && error->as<std::string>())
            throw ExecError(*error->as<std::string>());
        return std::move(*answer);
    }

    void start(const CancelFlag *cancel)
    {
        if (child)
            return;
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
            failed("no socket");
        socket = Descriptor(ends[0]);
        memory = std::make_unique<SharedMemory>();
        state.clear();
        training.clear();
        {
            const Descriptor theirs(ends[1]);
            child = std::make_unique<Child>(options, theirs, memory->file());
        }
        Exchange exchange(*memory);
        try {
            parse(receive(deadline(), cancel), exchange);
        } catch (const ExecError &e) {
            child.reset();
            throw ExecError("the Python worker cannot load " + options.source + ": " + e.what());
        }
    }

    // What the modules at and below `path` must hold and do not yet.
    std::vector<std::pair<Arg, Arg>> changedState(const GraphModule &gm, const std::string &path)
    {
        std::vector<std::pair<Arg, Arg>> out;
        for (const auto &[name, entry] : gm.tensors)
            if (isAtOrBelow(name, path) && name != path && !entry->tensor->quant)
                if (Tensor &held = state[name]; held != entry->tensor) {
                    held = entry->tensor;
                    out.emplace_back(inModel(gm, name), entry->tensor);
                }
        return out;
    }
    std::vector<std::pair<Arg, Arg>> changedModes(const GraphModule &gm, const std::string &path)
    {
        std::vector<std::pair<Arg, Arg>> out;
        for (const auto &[name, info] : gm.modules)
            if (isAtOrBelow(name, path))
                if (const auto [it, fresh] = training.try_emplace(name, -1); it->second != info->training) {
                    it->second = info->training;
                    out.emplace_back(inModel(gm, name), info->training);
                }
        return out;
    }

    // "model.backbone" of a partial graph is "backbone" of the user's model.
    static std::string inModel(const GraphModule &gm, const std::string &path)
    {
        return isPartial(gm) ? path.substr(std::min(path.size(), kWholeModel.size() + 1)) : path;
    }

    Arg partsRequest(const GraphModule &gm)
    {
        if (depth > 1)
            return {}; // the model runs already
        std::vector<std::pair<Arg, Arg>> out;
        for (const std::string &path : partsOf(gm)) {
            const ModuleInfo &m = *gm.modules.find(path);
            ArgList names;
            for (const NodeId id : m.graph->graph.placeholders())
                names.emplace_back(m.graph->graph[id].target);
            out.emplace_back(inModel(gm, path), Arg::tuple({ m.className, Arg::list(std::move(names)) }));
        }
        return Arg::dict(std::move(out));
    }

    Arg runPart(const GraphModule &gm, const std::string &path, const ArgList &inputs, const RunOptions &options)
    {
        const ModuleInfo *m = gm.modules.find(path);
        if (!m || !m->graph)
            giveUp("the Python worker asks for " + path + ", which is no graph here");
        Part &part = parts[path];
        if (part.graph != m->graph) {
            auto made = Interpreter::create(*m->graph);
            if (!made)
                throw ExecError(made.message());
            part = { m->graph, std::make_unique<Interpreter>(std::move(*made)) };
        }
        RunOptions inner = options;
        inner.observer = nullptr;
        inner.seed.reset();
        if (options.inside)
            inner.observer = [&](NodeId id, const Arg &value) { options.inside(path, id, value); };
        auto r = part.interpreter->run(inputs, inner);
        if (!r && r.message() == Interpreter::kCancelled)
            throw Cancelled();
        if (!r)
            throw ExecError(r.message());
        return std::move(*r);
    }

    static Arg randomState() { return fromAten(at::detail::getDefaultCPUGenerator().get_state()); }
    static void setRandomState(const Arg &answer)
    {
        const Arg *state = field(answer, "random");
        if (const Tensor *t = state ? state->as<Tensor>() : nullptr; t && *t) {
            at::Generator random = at::detail::getDefaultCPUGenerator();
            random.set_state(toAten(*t));
        }
    }

    void send(const Arg &message, Exchange &exchange, const CancelFlag *cancel)
    {
        const std::string line = argumentText(message, [&](const Tensor &t) { return exchange.name(t); }) + "\n";
        exchange.writeTensors();
        send(line, deadline(), cancel);
    }

    // Runs what the model asks for on the way, then returns what the call gave.
    Arg answer(const GraphModule *gm, Exchange &exchange, const RunOptions &options)
    {
        std::optional<std::string> failedPart;
        for (;;) {
            Arg message;
            try {
                message = parse(receive(deadline(), options.cancel), exchange);
            } catch (const ExecError &) {
                if (failedPart) // which the user's code was told, too
                    throw ExecError(*failedPart);
                throw;
            }
            const Arg *path = field(message, "part"), *inputs = field(message, "inputs");
            if (!gm || !path || !path->as<std::string>() || !inputs || !inputs->sequence())
                return message;
            setRandomState(message);
            Exchange back(*memory);
            try {
                const Arg value
                    = runPart(*gm, std::string(kWholeModel) + "." + *path->as<std::string>(), inputs->sequence()->items, options);
                send(Arg::dict({ { "value", value }, { "random", randomState() } }), back, options.cancel);
            } catch (const ExecError &e) {
                if (!child)
                    throw;
                failedPart = *path->as<std::string>() + ": " + e.what();
                send(Arg::dict({ { "error", *failedPart } }), back, options.cancel);
            }
        }
    }

    Arg runModule(
        const GraphModule &gm, const std::string &path, const ArgList &args, const Kwargs &kwargs, const RunOptions &options)
    {
        start(options.cancel);
        return run(&gm, inModel(gm, path),
            { { "class", gm.modules.find(path)->className }, { "state", Arg::dict(changedState(gm, path)) },
                { "training", Arg::dict(changedModes(gm, path)) }, { "parts", partsRequest(gm) } },
            args, kwargs, options);
    }

    Arg runFunction(const std::string &name, const ArgList &args, const Kwargs &kwargs, const RunOptions &options)
    {
        start(options.cancel);
        return run(nullptr, name, {}, args, kwargs, options);
    }

    // `gm` is the graph whose parts run here; null where there is no module that could ask for one.
    Arg run(const GraphModule *gm, const std::string &what, const std::vector<std::pair<Arg, Arg>> &more, const ArgList &args,
        const Kwargs &kwargs, const RunOptions &options)
    {
        const c10::InferenceMode inference;
        std::vector<std::pair<Arg, Arg>> named;
        for (const auto &[key, value] : kwargs)
            named.emplace_back(key, value);
        std::vector<std::pair<Arg, Arg>> items{ { "call", what }, { "args", Arg::list(args) },
            { "kwargs", Arg::dict(std::move(named)) }, { "threads", at::get_num_threads() }, { "random", randomState() } };
        items.insert(items.end(), more.begin(), more.end());
        const Arg request = Arg::dict(std::move(items));
        Exchange exchange(*memory);
        Arg result;
        try {
            send(request, exchange, options.cancel);
            result = answer(gm, exchange, options);
        } catch (...) {
            state.clear(); // it may have been refused
            training.clear();
            throw;
        }

        const Arg *value = field(result, "value"), *changed = field(result, "changed");
        if (!value || !changed || !changed->sequence())
            giveUp("the Python worker gave an answer without a value");
        for (const Arg &item : changed->sequence()->items) {
            const ArgSequence *pair = item.sequence();
            const Tensor *t = pair && pair->items.size() == 2 ? pair->items[1].as<Tensor>() : nullptr;
            if (!t || !pair->items[0].toInt())
                giveUp("the Python worker gave an answer with a change that is none");
            at::Tensor target = toAten(exchange.given(*pair->items[0].toInt()));
            if (target.use_count() > 1) // else memory that is not ATen's: a constant of the graph
                target.copy_(toAten(*t));
        }
        setRandomState(result);
        return *value;
    }

    // One call at a time; who waits for another can be cancelled, too.
    std::unique_lock<std::recursive_timed_mutex> turn(const CancelFlag *cancel)
    {
        std::unique_lock lock(mutex, std::defer_lock);
        while (!lock.try_lock_for(kCancelPoll))
            if (cancel && cancel->load())
                throw Cancelled();
        return lock;
    }

    template <typename Work> Result<Arg> inTurn(const RunOptions &options, const Work &work)
    {
        try {
            const auto lock = turn(options.cancel);
            struct Depth {
                int &depth;
                explicit Depth(int &d)
                    : depth(++d)
                {
                }
                ~Depth() { --depth; }
            } const inside(depth);
            return work();
        } catch (const Cancelled &) {
            return Error{ Interpreter::kCancelled };
        } catch (...) {
            return Error{ currentMessage() };
        }
    }
};

Worker::Worker(WorkerOptions options)
    : impl_(std::make_unique<Impl>())
{
    impl_->options = std::move(options);
}
Worker::~Worker() = default;

Status Worker::start(const CancelFlag *cancel)
{
    try {
        const auto lock = impl_->turn(cancel);
        impl_->start(cancel);
        return {};
    } catch (const Cancelled &) {
        return Error{ Interpreter::kCancelled };
    } catch (...) {
        return Error{ currentMessage() };
    }
}

Result<Arg> Worker::run(
    const GraphModule &gm, const std::string &path, const ArgList &args, const Kwargs &kwargs, const RunOptions &options)
{
    return impl_->inTurn(options, [&] { return impl_->runModule(gm, path, args, kwargs, options); });
}

Result<Arg> Worker::runFunction(
    const std::string &qualifiedName, const ArgList &args, const Kwargs &kwargs, const RunOptions &options)
{
    return impl_->inTurn(options, [&] { return impl_->runFunction(qualifiedName, args, kwargs, options); });
}

bool isPartial(const GraphModule &gm)
{
    const ModuleInfo *root = gm.modules.find(""), *model = gm.modules.find(kWholeModel);
    return root && root->className == "torch.nn.modules.module.Module" && model && model->kind == ModuleKind::Opaque;
}

std::vector<std::string> partsOf(const GraphModule &gm)
{
    std::vector<std::string> out;
    if (isPartial(gm))
        for (const auto &[path, info] : gm.modules)
            if (info->kind == ModuleKind::Graph && info->graph)
                out.push_back(path);
    return out;
}

} // namespace fb
