/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The responder as a process of Linux: to try it without a board, and as an example of a port.
 *
 *     cc -std=c99 -O2 -o responder linux.c latscope_responder.c
 *     latscope remote window --create /dev/shm/window
 *     ./responder --file /dev/shm/window --socket /tmp/kicks
 *     latscope remote --transport openamp --openamp-shm /dev/shm/window --openamp-socket /tmp/kicks
 *
 * It serves one host after the other, ends by SIGINT (Ctrl-C) or SIGTERM, and then tells what it counted.
 */
#define _GNU_SOURCE
#include "latscope_responder.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* How often a waiting responder looks whether a host came or went, which it is not kicked for. */
enum { WATCH_MS = 5 };

/* How many steps are taken for a byte of standard input, with --steps. */
enum { STEPS = 100 };

static const char usage[] =
    "usage: responder (--file PATH | --fd NUMBER) KICKS\n"
    "  --file PATH, --fd NUMBER  the window: a file, or a descriptor that was inherited\n"
    "KICKS:\n"
    "  --poll            none: looks all the time\n"
    "  --eventfd IN OUT  two inherited descriptors\n"
    "  --socket PATH     a byte each on a stream socket, which is listened at, as OpenAMP has it\n"
    "  --steps           none: 100 steps for each byte of standard input, then a line of standard output\n";

/* The machine: what the hooks need. */
struct machine {
    struct latscope_responder responder;
    int in, out;      /* kicks; -1 without */
    const char *path; /* of the socket; NULL without */
    int listening;    /* the socket to accept on; -1 while a host is there, so that there is one host at a time */
    bool told_online;
};

/* Whether a signal told it to end. */
static volatile sig_atomic_t ended;

static struct machine machine = { .in = -1, .out = -1, .listening = -1 };

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Maps the window between two pages that must not be touched, so that an access outside is seen. */
static void *map(int file, uint32_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t whole = (size + page - 1) / page * page;
    char *guarded = mmap(NULL, whole + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (guarded == MAP_FAILED)
        fail("mmap");
    void *base = mmap(guarded + page, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    if (base == MAP_FAILED)
        fail("mmap");
    return base;
}

static struct latscope_memory window(int file)
{
    struct stat about;
    if (file < 0 || fstat(file, &about) != 0)
        fail("the window");
    if (about.st_size <= 0 || about.st_size > UINT32_MAX) {
        fputs("the window is empty, or larger than 4 GiB\n", stderr);
        exit(1);
    }
    uint32_t size = (uint32_t)about.st_size;
    return (struct latscope_memory){ map(file, size), size, 0 };
}

/* Tells whether a host is there, when that changed. */
static void tell(struct machine *m)
{
    if (m->told_online != m->responder.online) {
        m->told_online = m->responder.online;
        puts(m->told_online ? "online" : "offline");
        fflush(stdout);
    }
}

/* Takes what there is to read, and tells whether more may come. Kicks are hints: how many there were does not matter. */
static bool drain(int descriptor)
{
    char bytes[64];
    return read(descriptor, bytes, sizeof bytes) != 0;
}

/* Removes a socket, and nothing else that has its name. */
static void remove_socket(const char *path)
{
    struct stat about;
    if (lstat(path, &about) == 0 && S_ISSOCK(about.st_mode))
        unlink(path);
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (strlen(path) >= sizeof address.sun_path) {
        fputs("the socket's path is too long\n", stderr);
        exit(1);
    }
    strcpy(address.sun_path, path);
    remove_socket(path);
    if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listening, 1) != 0)
        fail(path);
    return listening;
}

static void kick(void *context, unsigned ring, uint32_t notify)
{
    const struct machine *m = context;
    static const uint64_t one = 1;
    (void)ring;
    (void)notify;
    if (m->out < 0)
        return;
    /* What cannot be sent is there already: the host has not looked at earlier kicks yet. */
    size_t length = m->path ? 1 : sizeof one;
    ssize_t sent = m->path ? send(m->out, &one, length, MSG_NOSIGNAL) : write(m->out, &one, length);
    (void)sent;
}

static void accept_host(struct machine *m)
{
    int host = accept4(m->listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (host < 0)
        return;
    m->in = m->out = host;
    close(m->listening);
    m->listening = -1;
    /* What was done before could not be told. */
    kick(m, 0, 0);
}

/* The host hung up, or was killed. The next one can connect when the status says that there is no host. */
static void hang_up(struct machine *m)
{
    if (!m->path)
        return;
    close(m->in);
    m->in = m->out = -1;
    latscope_responder_host_gone(&m->responder);
    m->listening = listen_at(m->path);
}

/* Waits for a kick, some milliseconds at most; false when it is to end. */
static bool wait(struct machine *m, int milliseconds)
{
    struct pollfd event = { .fd = m->in >= 0 ? m->in : m->listening, .events = POLLIN };
    tell(m);
    if (poll(&event, 1, milliseconds) <= 0)
        return !ended;
    if (m->in < 0)
        accept_host(m);
    else if (!drain(m->in))
        hang_up(m);
    return !ended;
}

static bool kicked(void *context)
{
    return wait(context, WATCH_MS);
}

static void barrier(void *context, enum latscope_barrier what, volatile void *at, size_t length)
{
    (void)context;
    (void)at;
    (void)length;
    if (what == LATSCOPE_FENCE)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static uint64_t monotonic(void *context)
{
    struct timespec now;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Looks all the time, and now and then whether it shall end. */
static void poll_all_the_time(struct machine *m)
{
    unsigned idle = 0;
    while (!ended) {
        if (latscope_responder_poll(&m->responder) == LATSCOPE_AGAIN)
            continue;
        sched_yield();
        if (++idle % 256 == 0)
            wait(m, 0);
    }
}

/* Steps on demand: where a test shall know what was seen of what it wrote. */
static void step_on_demand(struct machine *m)
{
    char byte;
    while (!ended && read(STDIN_FILENO, &byte, 1) == 1) {
        for (int step = 0; step < STEPS; step++)
            latscope_responder_poll(&m->responder);
        puts(m->responder.online ? "online" : "offline");
        fflush(stdout);
    }
}

static void end(int signal)
{
    (void)signal;
    ended = 1;
}

/* Ends by signals: a standard input that ends at once, as under systemd and nohup, says nothing. */
static void end_by_signals(void)
{
    struct sigaction action = { .sa_handler = end };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void report(const struct latscope_counts *counts)
{
    static const char *const faults[LATSCOPE_FAULTS] = {
        "out-of-window", "index", "descriptor", "chained", "direction", "length", "ring", "table",
    };
    const struct { const char *name; uint64_t value; } lines[] = {
        { "started", counts->started },       { "replied", counts->replied },   { "sunk", counts->sunk },
        { "mismatched", counts->mismatched }, { "unknown", counts->unknown },   { "too-long", counts->too_long },
        { "stalls", counts->stalls },         { "busy-ns", counts->busy_ns },   { "longest-ns", counts->longest_ns },
    };
    for (size_t line = 0; line < sizeof lines / sizeof *lines; line++)
        printf("%s=%llu\n", lines[line].name, (unsigned long long)lines[line].value);
    for (size_t fault = 0; fault < LATSCOPE_FAULTS; fault++)
        printf("fault-%s=%llu\n", faults[fault], (unsigned long long)counts->faults[fault]);
}

int main(int count, char **words)
{
    struct latscope_hooks hooks = {
        .context = &machine, .kick = kick, .barrier = barrier, .clock = monotonic, .firmware = "latscope's responder for Linux",
    };
    const char *kicks = count > 3 ? words[3] : "";
    bool polling = !strcmp(kicks, "--poll") && count == 4, steps = !strcmp(kicks, "--steps") && count == 4;

    if (count > 3 && !strcmp(words[1], "--file"))
        hooks.memory = window(open(words[2], O_RDWR | O_CLOEXEC));
    else if (count > 3 && !strcmp(words[1], "--fd"))
        hooks.memory = window(atoi(words[2]));

    if (!strcmp(kicks, "--eventfd") && count == 6) {
        machine.in = atoi(words[4]);
        machine.out = atoi(words[5]);
    } else if (!strcmp(kicks, "--socket") && count == 5) {
        machine.path = words[4];
        machine.listening = listen_at(machine.path);
    } else if (!polling && !steps) {
        hooks.memory.base = NULL;
    }
    hooks.kicked = polling || steps ? NULL : kicked;

    if (!latscope_responder_init(&machine.responder, &hooks)) {
        fputs(usage, stderr);
        return 2;
    }
    end_by_signals();
    if (steps)
        step_on_demand(&machine);
    else if (polling)
        poll_all_the_time(&machine);
    else
        latscope_responder_run(&machine.responder);
    if (machine.path)
        remove_socket(machine.path);
    report(&machine.responder.counts);
    return 0;
}
