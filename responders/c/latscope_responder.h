/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The side that replies to latscope's benchmarks over RPMsg: the virtio device, as a remote
 * processor's firmware is. Portable C99 for an RTOS or bare metal: no library, no allocation.
 *
 *     static struct latscope_responder responder;
 *     latscope_responder_init(&responder, &hooks);
 *     latscope_responder_run(&responder);
 *
 * The five hooks are explained in docs/porting.md.
 */
#ifndef LATSCOPE_RESPONDER_H
#define LATSCOPE_RESPONDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the longest message that is echoed, its header not counted. */
#ifndef LATSCOPE_PAYLOAD
#define LATSCOPE_PAYLOAD 496
#endif

/* A piece of memory that the host writes, too. */
struct latscope_memory {
    volatile void *base; /* aligned to 16 bytes */
    uint32_t size;
    uint64_t origin; /* the host's address of the first byte: 0 where addresses are offsets */
};

/* What the barrier hook is asked for. */
enum latscope_barrier {
    LATSCOPE_FENCE,      /* order all earlier accesses before all later ones, stores before loads included */
    LATSCOPE_CLEAN,      /* these bytes were written: push them out of our caches */
    LATSCOPE_INVALIDATE, /* these bytes are about to be read: drop them from our caches */
};

/* What the port supplies. `context` is handed to each of them. */
struct latscope_hooks {
    void *context;

    /* 1. The window: rings and buffers, and the resource table at its beginning. Where the table is
     * elsewhere, as in a firmware's own image, `table` says so; otherwise its base is NULL. */
    struct latscope_memory memory;
    struct latscope_memory table;

    /* 2. Tells the host: `ring` is 0 after a message, 1 after a buffer; `notify` is the ring's id in the table. */
    void (*kick)(void *context, unsigned ring, uint32_t notify);

    /* 3. Waits until the host kicked, or some milliseconds at most, since a host that starts or
     * ends does not kick. False ends latscope_responder_run(). NULL: pure polling, and the host is asked not to kick. */
    bool (*kicked)(void *context);

    /* 4. Memory order and caches. Where the window is not cached, or caches are coherent, only
     * LATSCOPE_FENCE has to do something. The bytes are no cache lines: the hook rounds. */
    void (*barrier)(void *context, enum latscope_barrier what, volatile void *at, size_t length);

    /* 5. Nanoseconds of a clock that does not stop, or NULL. */
    uint64_t (*clock)(void *context);

    /* What the remote is, for the host's report: the core (31 bytes), the firmware with its version (63 bytes), the
     * core's frequency. NULL, or 0, where that is not known: zero the hooks before you set them. */
    const char *core, *firmware;
    uint64_t clock_hz;
};

/* What a host can do wrong. */
enum latscope_fault {
    LATSCOPE_OUT_OF_WINDOW, /* an address, or the end of what starts there, is not in the window */
    LATSCOPE_INDEX,         /* a ring's index jumped */
    LATSCOPE_DESCRIPTOR,    /* an entry names a descriptor that does not exist */
    LATSCOPE_CHAINED,       /* a message in more than one buffer, or in a table of them */
    LATSCOPE_DIRECTION,     /* a buffer to read was offered for writing or the other way round */
    LATSCOPE_LENGTH,        /* a length that is less than a header or more than its buffer */
    LATSCOPE_RING,          /* a ring of impossible size, alignment or place */
    LATSCOPE_TABLE,         /* a resource table without RPMsg device of two rings */
    LATSCOPE_FAULTS
};

/* What was done in all. */
struct latscope_counts {
    uint64_t started;    /* times that a host was found ready */
    uint64_t replied;    /* messages */
    uint64_t sunk;       /* blocks that bandwidth-sink took */
    uint64_t mismatched; /* messages that are not what the endpoint expects, or longer than LATSCOPE_PAYLOAD */
    uint64_t unknown;    /* messages to addresses where nobody is */
    uint64_t too_long;   /* replies that no buffer holds */
    uint64_t stalls;     /* times that something had to wait for a buffer */
    uint64_t busy_ns;    /* from a message found to its reply sent, in sum; 0 without clock */
    uint64_t longest_ns; /* the longest of these */
    uint64_t faults[LATSCOPE_FAULTS];
};

/* What to do after a step. */
enum latscope_next {
    LATSCOPE_AGAIN,   /* something was done: take the next step */
    LATSCOPE_WAIT,    /* nothing can be done before the host kicks */
    LATSCOPE_OFFLINE, /* the host is not ready, which no kick ends: look again in a while */
};

/* Inside of a responder: `counts` and `online` are there to be read, nothing to be written. */
struct latscope_ring {
    uint32_t descriptors, available, used; /* offsets in the window */
    uint32_t notify;
    uint16_t num;
    uint16_t published; /* our index of the used ring */
    uint16_t consumed;  /* how far the available ring was consumed */
    uint16_t direction; /* a descriptor's WRITE flag, as it must be here */
    bool muted;         /* the host was asked for no kicks */
};

struct latscope_buffer {
    uint32_t at, length;
    uint16_t descriptor;
};

struct latscope_responder {
    struct latscope_hooks hooks;
    struct latscope_counts counts;
    struct latscope_ring rings[2];  /* to the host, from the host */
    uint32_t status;                /* where it is in the table; 0 before a table was found */
    bool online;
    bool silent;                    /* the host did not accept the name service: nothing is announced */
    unsigned announced;             /* endpoints, so far */
    struct latscope_buffer room;    /* a buffer to send in that was taken and not used */
    bool has_room;
    bool held;                      /* there is a message to send: */
    bool announcing, stalled;
    uint32_t source, destination, length;
    uint64_t since;                 /* when what it replies to was found */
    uint64_t receipt[3];            /* of bandwidth-sink: blocks, bytes, mismatched */
    uint64_t longest_ns;            /* since the last status */
    uint8_t payload[LATSCOPE_PAYLOAD];
};

/* Begins. The hooks are copied. False if one that is needed is missing or a base is not aligned. */
bool latscope_responder_init(struct latscope_responder *responder, const struct latscope_hooks *hooks);

/* Takes one step, of one message at most, and never waits. */
enum latscope_next latscope_responder_poll(struct latscope_responder *responder);

/* Takes steps, and waits with the hook in between, until the hook says false; for ever without one. */
void latscope_responder_run(struct latscope_responder *responder);

/* Announces all endpoints again, in the next steps, to a host that accepted the name service. */
void latscope_responder_announce(struct latscope_responder *responder);

/* The port knows that the host is gone and that no other has begun: its socket ended, its processor was reset. Clears
 * the status, which a host that crashed leaves as it was: the next host would take it for another one at work. */
void latscope_responder_host_gone(struct latscope_responder *responder);

#endif
