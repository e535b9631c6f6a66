/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * See latscope_responder.h. The twin in Rust is crates/latscope-rpmsg/src/echo.rs.
 *
 * The host is not trusted: what it writes is loaded once, into a variable, and then checked. A
 * breach is counted, and nothing outside of the window is touched.
 */
#include "latscope_responder.h"

enum { TO_HOST = 0, FROM_HOST = 1 };

/* The resource table: a header, offsets, and the device with its rings. */
enum { VDEV = 3, RPMSG = 7, DRIVER_OK = 4, NEEDS_RESET = 0x40 };
enum { TABLE_HEADER = 16, DEVICE_SIZE = 28, RING_SIZE = 20, MOST_RESOURCES = 256 };
/* In the device: what we offer, what the host accepted, bytes of configuration behind the rings, the status, the number of rings. */
enum { OFFERED = 12, ACCEPTED = 16, CONFIGURATION = 20, STATUS = 24, RINGS = 25, ANNOUNCES_NAMES = 1 };

/* A descriptor: u64 address, u32 length, u16 flags, u16 next. */
enum { NEXT = 1, WRITE = 2, INDIRECT = 4, DESCRIPTOR_SIZE = 16 };

/* Either ring: u16 flags, u16 index, then entries. */
enum { INDEX = 2, ENTRIES = 4, MUTED = 1, LARGEST_RING = 32768 };

/* A message: u32 source, u32 destination, u32 reserved, u16 length, u16 flags, then the payload. */
enum { HEADER_SIZE = 16, NAME_SERVICE = 53, NAME_SIZE = 32, ANNOUNCEMENT_SIZE = 40 };

/* The endpoints have these addresses, in the order of their names. */
enum { PING = 0x400, LONG_PING, PTY, BANDWIDTH, SINK, STATUS_SERVICE, ENDPOINTS_END };
static const char *const names[ENDPOINTS_END - PING] = {
    "rpc-ping", "rpc-long-ping", "pty-ping", "bandwidth", "bandwidth-sink", "latscope-status",
};

enum { PATTERN = 2023, LONG_PACKET = 480, RECEIPT_SIZE = 24 };

/* A status: words of eight bytes, then two names with a zero at the end of each. */
enum { STATUS_WORDS = 10, CORE_SIZE = 32, FIRMWARE_SIZE = 64 };
enum { STATUS_SIZE = STATUS_WORDS * 8 + CORE_SIZE + FIRMWARE_SIZE };

/* So that a receipt and an announcement have room. */
typedef char payload_is_long_enough[LATSCOPE_PAYLOAD >= ANNOUNCEMENT_SIZE ? 1 : -1];

/* Loads and stores: one volatile access of the natural width each, which device memory demands, too.
 * Bytes in memory are little-endian on every machine; compilers turn this into a plain access. */

static volatile uint8_t *place(const struct latscope_memory *memory, uint32_t at)
{
    return (volatile uint8_t *)memory->base + at;
}

static uint16_t load16(const struct latscope_memory *memory, uint32_t at)
{
    uint16_t raw = *(volatile uint16_t *)place(memory, at);
    const uint8_t *bytes = (const uint8_t *)&raw;
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static uint32_t load32(const struct latscope_memory *memory, uint32_t at)
{
    uint32_t raw = *(volatile uint32_t *)place(memory, at);
    const uint8_t *bytes = (const uint8_t *)&raw;
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void store16(const struct latscope_memory *memory, uint32_t at, uint16_t value)
{
    uint16_t raw;
    uint8_t *bytes = (uint8_t *)&raw;
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
    *(volatile uint16_t *)place(memory, at) = raw;
}

static void store32(const struct latscope_memory *memory, uint32_t at, uint32_t value)
{
    uint32_t raw;
    uint8_t *bytes = (uint8_t *)&raw;
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
    bytes[2] = (uint8_t)(value >> 16);
    bytes[3] = (uint8_t)(value >> 24);
    *(volatile uint32_t *)place(memory, at) = raw;
}

/* Our own memory: a word of up to eight bytes, little-endian. */

static uint64_t get(const uint8_t *from, uint32_t size)
{
    uint64_t value = 0;
    while (size-- > 0)
        value = value << 8 | from[size];
    return value;
}

static void put(uint8_t *into, uint64_t value, uint32_t size)
{
    for (uint32_t at = 0; at < size; at++)
        into[at] = (uint8_t)(value >> 8 * at);
}

/* Copies by words where the place allows it. The compiler must not make it a memcpy, which may use
 * accesses that device memory refuses: hence volatile. */

static void copy_out(const struct latscope_memory *memory, uint32_t from, uint8_t *into, uint32_t length)
{
    uint32_t at = 0;
    if (from % 4 == 0)
        for (; length - at >= 4; at += 4)
            put(into + at, load32(memory, from + at), 4);
    for (; at < length; at++)
        into[at] = *place(memory, from + at);
}

static void copy_in(const struct latscope_memory *memory, uint32_t into, const uint8_t *from, uint32_t length)
{
    uint32_t at = 0;
    if (into % 4 == 0)
        for (; length - at >= 4; at += 4)
            store32(memory, into + at, (uint32_t)get(from + at, 4));
    for (; at < length; at++)
        *place(memory, into + at) = from[at];
}

/* Order and caches. What we write is cleaned at once, so that no line is ever dirty when it is invalidated. */

static void barrier(struct latscope_responder *r, enum latscope_barrier what,
                    const struct latscope_memory *memory, uint32_t at, uint32_t length)
{
    r->hooks.barrier(r->hooks.context, what, place(memory, at), length);
}

static void fence(struct latscope_responder *r)
{
    r->hooks.barrier(r->hooks.context, LATSCOPE_FENCE, NULL, 0);
}

static void refresh(struct latscope_responder *r, uint32_t at, uint32_t length)
{
    barrier(r, LATSCOPE_INVALIDATE, &r->hooks.memory, at, length);
}

static void flush(struct latscope_responder *r, uint32_t at, uint32_t length)
{
    barrier(r, LATSCOPE_CLEAN, &r->hooks.memory, at, length);
}

static uint64_t now(const struct latscope_responder *r)
{
    return r->hooks.clock ? r->hooks.clock(r->hooks.context) : 0;
}

/* Counts a breach. False, so that a check ends with it. */
static bool fault(struct latscope_responder *r, enum latscope_fault what)
{
    r->counts.faults[what]++;
    return false;
}

/* Whether all of `length` bytes at a host's address are in the memory: then `at` is their offset. */
static bool locate(const struct latscope_memory *memory, uint64_t address, uint32_t length, uint32_t *at)
{
    uint64_t offset = address - memory->origin;
    if (address < memory->origin || offset > memory->size || length > memory->size - offset)
        return false;
    *at = (uint32_t)offset;
    return true;
}

/* Rings. */

static bool is_power_of_two(uint32_t number)
{
    return number != 0 && (number & (number - 1)) == 0;
}

static bool is_in_window(const struct latscope_responder *r, uint64_t at, uint64_t length)
{
    return at <= r->hooks.memory.size && length <= r->hooks.memory.size - at;
}

/* Loads a ring's index: what the host wrote before it is seen from here on. */
static uint16_t load_index(struct latscope_responder *r, uint32_t part)
{
    refresh(r, part + INDEX, 2);
    uint16_t index = load16(&r->hooks.memory, part + INDEX);
    fence(r);
    return index;
}

/* How many entries wait that the host published; more than there are is a jump of the index. */
static uint16_t waiting(struct latscope_responder *r, const struct latscope_ring *ring)
{
    return (uint16_t)(load_index(r, ring->available) - ring->consumed);
}

static void set_muted(struct latscope_responder *r, struct latscope_ring *ring, bool muted)
{
    ring->muted = muted;
    store16(&r->hooks.memory, ring->used, muted ? MUTED : 0);
    flush(r, ring->used, 2);
    /* Who unmutes looks at the host's index afterwards, or a kick could be lost. */
    fence(r);
}

/* Opens the ring whose entry in the table is at `entry`, at the position where it was left. */
static bool open_ring(struct latscope_responder *r, struct latscope_ring *ring, const struct latscope_memory *table,
                      uint32_t entry)
{
    uint32_t address = load32(table, entry);
    uint32_t align = load32(table, entry + 4);
    uint32_t num = load32(table, entry + 8);
    uint32_t base;
    bool sound = is_power_of_two(num) && num <= LARGEST_RING && is_power_of_two(align) && align >= 4;
    if (!sound || !locate(&r->hooks.memory, address, num * DESCRIPTOR_SIZE, &base) || base % 16 != 0 ||
        address % align != 0)
        return fault(r, LATSCOPE_RING);
    uint64_t available = (uint64_t)base + num * DESCRIPTOR_SIZE;
    uint64_t end = available + ENTRIES + 2 * num + 2;
    /* It is the address that is aligned: the offset follows. */
    uint64_t used = end + (-(address + (end - base)) & (align - 1));
    if (used % 4 != 0 || !is_in_window(r, used, ENTRIES + 8 * num + 2))
        return fault(r, LATSCOPE_RING);
    ring->descriptors = base;
    ring->available = (uint32_t)available;
    ring->used = (uint32_t)used;
    ring->num = (uint16_t)num;
    ring->notify = load32(table, entry + 12);
    ring->published = ring->consumed = load_index(r, ring->used);
    return waiting(r, ring) <= ring->num || fault(r, LATSCOPE_INDEX);
}

/* Loads a descriptor and checks it. */
static bool check_buffer(struct latscope_responder *r, const struct latscope_ring *ring,
                         struct latscope_buffer *buffer)
{
    const struct latscope_memory *memory = &r->hooks.memory;
    uint32_t at = ring->descriptors + buffer->descriptor * (uint32_t)DESCRIPTOR_SIZE;
    refresh(r, at, DESCRIPTOR_SIZE);
    uint64_t address = load32(memory, at) | (uint64_t)load32(memory, at + 4) << 32;
    uint16_t flags = load16(memory, at + 12);
    buffer->length = load32(memory, at + 8);
    if (flags & (NEXT | INDIRECT))
        return fault(r, LATSCOPE_CHAINED);
    if ((flags & WRITE) != ring->direction)
        return fault(r, LATSCOPE_DIRECTION);
    return locate(memory, address, buffer->length, &buffer->at) || fault(r, LATSCOPE_OUT_OF_WINDOW);
}

enum taken { NONE, TAKEN, REFUSED, BROKEN };

/* Takes the next buffer that the host offers. One that is wrong is consumed, and not given back. */
static enum taken take(struct latscope_responder *r, struct latscope_ring *ring, struct latscope_buffer *buffer)
{
    uint16_t entries = waiting(r, ring);
    if (entries == 0)
        return NONE;
    if (entries > ring->num) {
        fault(r, LATSCOPE_INDEX);
        return BROKEN;
    }
    if (!ring->muted)
        set_muted(r, ring, true);
    uint32_t at = ring->available + ENTRIES + 2 * (uint32_t)(ring->consumed % ring->num);
    refresh(r, at, 2);
    buffer->descriptor = load16(&r->hooks.memory, at);
    ring->consumed++;
    if (buffer->descriptor >= ring->num) {
        fault(r, LATSCOPE_DESCRIPTOR);
        return REFUSED;
    }
    return check_buffer(r, ring, buffer) ? TAKEN : REFUSED;
}

/* Gives a buffer back, and kicks if the host wants it. OpenAMP's host takes `written` for the length of the buffer when
 * it uses that again, so it is the whole length, as OpenAMP's own remotes say. */
static void give_back(struct latscope_responder *r, unsigned number, uint16_t descriptor, uint32_t written)
{
    const struct latscope_memory *memory = &r->hooks.memory;
    struct latscope_ring *ring = &r->rings[number];
    uint32_t at = ring->used + ENTRIES + 8 * (uint32_t)(ring->published % ring->num);
    store32(memory, at, descriptor);
    store32(memory, at + 4, written);
    flush(r, at, 8);
    fence(r);
    store16(memory, ring->used + INDEX, ++ring->published);
    flush(r, ring->used + INDEX, 2);
    /* The host's flag is looked at after the index is out, or a kick could be lost. */
    fence(r);
    refresh(r, ring->available, 2);
    if ((load16(memory, ring->available) & MUTED) == 0)
        r->hooks.kick(r->hooks.context, number, ring->notify);
}

/* The host: found, and lost again. */

static const struct latscope_memory *table_of(const struct latscope_responder *r)
{
    return r->hooks.table.base ? &r->hooks.table : &r->hooks.memory;
}

/* Whether the table has room for `length` bytes at an offset from its own beginning. */
static bool is_in_table(const struct latscope_memory *table, uint32_t at, uint32_t length)
{
    return at % 4 == 0 && at <= table->size && length <= table->size - at;
}

/* Finds the RPMsg device in the table; false, and no fault, if there is no table yet. */
static bool find_device(struct latscope_responder *r, const struct latscope_memory *table, uint32_t *device)
{
    if (!is_in_table(table, 0, TABLE_HEADER))
        return fault(r, LATSCOPE_TABLE);
    uint32_t version = load32(table, 0), count = load32(table, 4);
    if (version == 0)
        return false;
    for (uint32_t index = 0; version == 1 && count <= MOST_RESOURCES && index < count; index++) {
        if (!is_in_table(table, TABLE_HEADER + 4 * index, 4))
            break;
        uint32_t at = load32(table, TABLE_HEADER + 4 * index);
        if (!is_in_table(table, at, DEVICE_SIZE + 2 * RING_SIZE))
            continue;
        /* What the configuration says of buffers is for the host: descriptors have their lengths. */
        uint32_t configuration = load32(table, at + CONFIGURATION);
        bool found = load32(table, at) == VDEV && load32(table, at + 4) == RPMSG;
        if (found && *place(table, at + RINGS) == 2 &&
            configuration <= table->size - at - (DEVICE_SIZE + 2 * RING_SIZE)) {
            *device = at;
            return true;
        }
    }
    return fault(r, LATSCOPE_TABLE);
}

static bool is_ready(struct latscope_responder *r)
{
    const struct latscope_memory *table = table_of(r);
    barrier(r, LATSCOPE_INVALIDATE, table, r->status, 1);
    uint8_t status = *place(table, r->status);
    fence(r);
    return (status & (DRIVER_OK | NEEDS_RESET)) == DRIVER_OK;
}

/* Whether the host is still that which we began with: one that begins again clears our index. */
static bool is_same_host(struct latscope_responder *r)
{
    return is_ready(r) && load_index(r, r->rings[TO_HOST].used) == r->rings[TO_HOST].published &&
           load_index(r, r->rings[FROM_HOST].used) == r->rings[FROM_HOST].published;
}

static bool find_host(struct latscope_responder *r)
{
    const struct latscope_memory *table = table_of(r);
    uint32_t device;
    barrier(r, LATSCOPE_INVALIDATE, table, 0, table->size < 4096 ? table->size : 4096);
    if (!find_device(r, table, &device))
        return false;
    r->status = device + STATUS;
    if (!is_ready(r))
        return false;
    barrier(r, LATSCOPE_INVALIDATE, table, device, DEVICE_SIZE + 2 * RING_SIZE);
    r->silent = (load32(table, device + OFFERED) & load32(table, device + ACCEPTED) & ANNOUNCES_NAMES) == 0;
    for (uint32_t ring = TO_HOST; ring <= FROM_HOST; ring++)
        if (!open_ring(r, &r->rings[ring], table, device + DEVICE_SIZE + ring * RING_SIZE))
            return false;
    r->rings[TO_HOST].direction = WRITE;
    r->rings[FROM_HOST].direction = 0;
    set_muted(r, &r->rings[TO_HOST], true);
    set_muted(r, &r->rings[FROM_HOST], true);
    return true;
}

static enum latscope_next begin(struct latscope_responder *r)
{
    r->online = find_host(r);
    if (!r->online)
        return LATSCOPE_OFFLINE;
    r->counts.started++;
    r->has_room = r->held = r->stalled = false;
    r->receipt[0] = r->receipt[1] = r->receipt[2] = 0;
    latscope_responder_announce(r);
    return LATSCOPE_AGAIN;
}

static enum latscope_next lose_host(struct latscope_responder *r)
{
    r->online = false;
    return LATSCOPE_OFFLINE;
}

/* Nothing is in a ring: asks for a kick first, and has the ring looked at once more. */
static enum latscope_next wait_for(struct latscope_responder *r, struct latscope_ring *ring)
{
    if (!ring->muted || !r->hooks.kicked)
        return LATSCOPE_WAIT;
    set_muted(r, ring, false);
    return LATSCOPE_AGAIN;
}

/* Sending. */

/* Writes the message that is held to the buffer that was taken. */
static void write_message(struct latscope_responder *r)
{
    const struct latscope_memory *memory = &r->hooks.memory;
    uint8_t header[HEADER_SIZE];
    put(header, r->source, 4);
    put(header + 4, r->destination, 4);
    put(header + 8, 0, 4);
    put(header + 12, r->length, 4); /* the upper half is the flags: none */
    copy_in(memory, r->room.at, header, HEADER_SIZE);
    copy_in(memory, r->room.at + HEADER_SIZE, r->payload, r->length);
    flush(r, r->room.at, HEADER_SIZE + r->length);
}

static void count_reply(struct latscope_responder *r)
{
    uint64_t took = now(r) - r->since;
    r->counts.replied++;
    r->counts.busy_ns += took;
    if (took > r->counts.longest_ns)
        r->counts.longest_ns = took;
    if (took > r->longest_ns)
        r->longest_ns = took;
}

/* Sends the message that is held; without a buffer it stays held, so that nothing is lost. */
static enum latscope_next send(struct latscope_responder *r)
{
    if (!r->has_room) {
        enum taken taken = take(r, &r->rings[TO_HOST], &r->room);
        if (taken == BROKEN)
            return lose_host(r);
        if (taken == REFUSED)
            return LATSCOPE_AGAIN;
        if (taken == NONE) {
            r->counts.stalls += !r->stalled;
            r->stalled = true;
            return wait_for(r, &r->rings[TO_HOST]);
        }
        r->has_room = true;
    }
    r->held = r->stalled = false;
    if (r->room.length < HEADER_SIZE || r->length > r->room.length - HEADER_SIZE) {
        r->counts.too_long++;
        return LATSCOPE_AGAIN;
    }
    write_message(r);
    r->has_room = false;
    give_back(r, TO_HOST, r->room.descriptor, r->room.length);
    /* What it costs to tell of the replies is none of them. */
    if (!r->announcing && r->source != STATUS_SERVICE)
        count_reply(r);
    return LATSCOPE_AGAIN;
}

static void hold_announcement(struct latscope_responder *r)
{
    const char *name = names[r->announced];
    for (uint32_t at = 0; at < NAME_SIZE; at++) {
        r->payload[at] = (uint8_t)*name;
        name += *name != 0;
    }
    r->source = PING + r->announced++;
    r->destination = NAME_SERVICE;
    r->length = ANNOUNCEMENT_SIZE;
    put(r->payload + NAME_SIZE, r->source, 8); /* the upper half is the flags: it exists */
    r->held = r->announcing = true;
}

/* What the endpoints do. */

/* Whether a message has `least` words of this size or more, and all but the first ones are the pattern. */
static bool is_pattern(const struct latscope_responder *r, uint32_t word, uint32_t first, uint32_t least)
{
    if (r->length % word != 0 || r->length < least * word)
        return false;
    for (uint32_t at = first * word; at < r->length; at += word)
        if (get(r->payload + at, word) != PATTERN)
            return false;
    return true;
}

/* A number, a size, and four words: of eight bytes, or of four where the host's `long` is short. */
static bool is_ping(const struct latscope_responder *r)
{
    return (r->length == 48 && is_pattern(r, 8, 2, 6)) || (r->length == 24 && is_pattern(r, 4, 2, 6));
}

/* A flag, then words. */
static bool is_long_ping(const struct latscope_responder *r)
{
    return r->length <= LONG_PACKET && (is_pattern(r, 8, 1, 2) || is_pattern(r, 4, 1, 2));
}

/* A sequence number, then words that each are the last one plus a constant. */
static bool is_block(const struct latscope_responder *r)
{
    const uint64_t step = (uint64_t)0x9E3779B9 << 32 | 0x7F4A7C15;
    if (r->length < 8)
        return false;
    uint64_t word = get(r->payload, 8);
    for (uint32_t at = 0; at < r->length; at++) {
        if (r->payload[at] != (uint8_t)(word >> 8 * (at % 8)))
            return false;
        if (at % 8 == 7)
            word += step;
    }
    return true;
}

/* Counts a block; an empty message is answered with the receipt, which begins anew. */
static bool sink(struct latscope_responder *r)
{
    if (r->length > 0) {
        bool sound = is_block(r);
        r->receipt[0] += sound;
        r->receipt[1] += sound ? r->length : 0;
        r->receipt[2] += !sound;
        r->counts.sunk++;
        return false;
    }
    for (uint32_t field = 0; field < 3; field++) {
        put(r->payload + 8 * field, r->receipt[field], 8);
        r->receipt[field] = 0;
    }
    r->length = RECEIPT_SIZE;
    return true;
}

/* Writes a name, cut to its room, and zeros up to the end of that. */
static void put_name(uint8_t *into, const char *name, uint32_t size)
{
    if (!name)
        name = "";
    for (uint32_t at = 0; at < size; at++) {
        into[at] = at < size - 1 ? (uint8_t)*name : 0;
        name += *name != 0;
    }
}

/* Makes the message the status, if there is room for one. The longest time begins anew. */
static bool answer_status(struct latscope_responder *r)
{
    if (LATSCOPE_PAYLOAD < STATUS_SIZE) {
        r->counts.too_long++;
        return false;
    }
    const struct latscope_counts *counts = &r->counts;
    uint64_t words[STATUS_WORDS] = {
        counts->replied, counts->sunk, counts->mismatched, counts->unknown, counts->too_long, counts->stalls,
        0,               counts->busy_ns, r->longest_ns,   r->hooks.clock_hz,
    };
    for (uint32_t fault = 0; fault < LATSCOPE_FAULTS; fault++)
        words[6] += counts->faults[fault];
    for (uint32_t word = 0; word < STATUS_WORDS; word++)
        put(r->payload + 8 * word, words[word], 8);
    put_name(r->payload + 8 * STATUS_WORDS, r->hooks.core, CORE_SIZE);
    put_name(r->payload + 8 * STATUS_WORDS + CORE_SIZE, r->hooks.firmware, FIRMWARE_SIZE);
    r->longest_ns = 0;
    r->length = STATUS_SIZE;
    return true;
}

/* Makes the message a reply; false if it gets none. */
static bool answer(struct latscope_responder *r, uint32_t endpoint)
{
    /* The host tells of endpoints of its own: what they are called changes nothing here. */
    if (endpoint == NAME_SERVICE && r->length == ANNOUNCEMENT_SIZE)
        return false;
    if (endpoint < PING || endpoint >= ENDPOINTS_END) {
        r->counts.unknown++;
        return false;
    }
    bool whole = r->length <= LATSCOPE_PAYLOAD;
    if (!whole || (endpoint == PING && !is_ping(r)) || (endpoint == LONG_PING && !is_long_ping(r))) {
        r->counts.mismatched++;
        return false;
    }
    if (endpoint == STATUS_SERVICE)
        return answer_status(r);
    return endpoint != SINK || sink(r);
}

/* Receiving. */

/* Copies a message out, before anything in it is looked at. A longer payload than ours is cut. */
static bool read_message(struct latscope_responder *r, const struct latscope_buffer *buffer)
{
    const struct latscope_memory *memory = &r->hooks.memory;
    uint8_t header[HEADER_SIZE];
    if (buffer->length < HEADER_SIZE)
        return fault(r, LATSCOPE_LENGTH);
    refresh(r, buffer->at, HEADER_SIZE);
    copy_out(memory, buffer->at, header, HEADER_SIZE);
    /* The reply goes back: source and destination change places. */
    r->destination = (uint32_t)get(header, 4);
    r->source = (uint32_t)get(header + 4, 4);
    r->length = (uint32_t)get(header + 12, 2);
    if (r->length > buffer->length - HEADER_SIZE)
        return fault(r, LATSCOPE_LENGTH);
    uint32_t ours = r->length < LATSCOPE_PAYLOAD ? r->length : LATSCOPE_PAYLOAD;
    refresh(r, buffer->at + HEADER_SIZE, ours);
    copy_out(memory, buffer->at + HEADER_SIZE, r->payload, ours);
    return true;
}

static enum latscope_next receive(struct latscope_responder *r)
{
    struct latscope_buffer buffer;
    enum taken taken = take(r, &r->rings[FROM_HOST], &buffer);
    if (taken == BROKEN)
        return lose_host(r);
    if (taken == NONE)
        return wait_for(r, &r->rings[FROM_HOST]);
    if (taken == REFUSED)
        return LATSCOPE_AGAIN;
    r->since = now(r);
    bool sound = read_message(r, &buffer);
    /* Loads of the message come before the host may use its buffer again. */
    fence(r);
    give_back(r, FROM_HOST, buffer.descriptor, buffer.length);
    r->announcing = false;
    r->held = sound && answer(r, r->source);
    return r->held ? send(r) : LATSCOPE_AGAIN;
}

/* For the port. */

bool latscope_responder_init(struct latscope_responder *r, const struct latscope_hooks *hooks)
{
    volatile uint8_t *bytes = (volatile uint8_t *)r;
    for (size_t at = 0; at < sizeof *r; at++)
        bytes[at] = 0;
    r->hooks = *hooks;
    bool aligned = (uintptr_t)hooks->memory.base % 16 == 0 && (uintptr_t)hooks->table.base % 4 == 0;
    return aligned && hooks->memory.base && hooks->kick && hooks->barrier;
}

void latscope_responder_announce(struct latscope_responder *r)
{
    r->announced = r->silent ? ENDPOINTS_END - PING : 0;
}

void latscope_responder_host_gone(struct latscope_responder *r)
{
    const struct latscope_memory *table = table_of(r);
    lose_host(r);
    if (r->status == 0)
        return;
    *place(table, r->status) = 0;
    barrier(r, LATSCOPE_CLEAN, table, r->status, 1);
}

enum latscope_next latscope_responder_poll(struct latscope_responder *r)
{
    if (!r->online)
        return begin(r);
    if (!is_same_host(r))
        return lose_host(r);
    if (!r->held && r->announced < ENDPOINTS_END - PING)
        hold_announcement(r);
    return r->held ? send(r) : receive(r);
}

void latscope_responder_run(struct latscope_responder *r)
{
    for (;;) {
        bool wait = latscope_responder_poll(r) != LATSCOPE_AGAIN;
        if (wait && r->hooks.kicked && !r->hooks.kicked(r->hooks.context))
            return;
    }
}
