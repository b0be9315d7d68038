/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/protocol.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "block/block.h"
#include "util/bytes.h"

#define WORDS_MAX  8
#define DATA_MAX   (QTEST_LINE_MAX / 2) /* bytes of memory in one command */
#define IRQ_INPUTS 24                   /* of the I/O APIC */

struct QtestProtocol {
    Pc *pc;
    void (*send)(const char *line, void *opaque);
    void *opaque;
    bool intercept;
    bool lines[IRQ_INPUTS]; /* as last told */
};

/* words[0] is the verb, the others are its `n` arguments. */
typedef struct Call {
    QtestProtocol *protocol;
    Pc *pc;
    char **words;
    unsigned size; /* of a register access */
    bool done;     /* answered */
} Call;

static void answer(Call *call, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void answer(Call *call, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    call->done = true;
    call->protocol->send(text, call->protocol->opaque);
}

static bool parse_number(Call *call, unsigned i, uint64_t *ret)
{
    char *end;

    errno = 0;
    uint64_t value = strtoull(call->words[i], &end, 0);
    if (errno || *end || end == call->words[i]) {
        answer(call, "FAIL '%.64s' is not a number\n", call->words[i]);
        return false;
    }
    *ret = value;
    return true;
}

/* Address and length of a piece of memory. */
static bool parse_range(Call *call, uint64_t *ret_addr, uint64_t *ret_len)
{
    if (!parse_number(call, 1, ret_addr) || !parse_number(call, 2, ret_len)) {
        return false;
    }
    if (*ret_len > DATA_MAX) {
        answer(call, "FAIL length '%s' is more than %d bytes\n", call->words[2], DATA_MAX);
        return false;
    }
    return true;
}

static void run_endianness(Call *call)
{
    answer(call, "OK little\n");
}

static void run_in(Call *call)
{
    uint64_t port;

    if (parse_number(call, 1, &port)) {
        answer(call, "OK 0x%04x\n", pc_port_read(call->pc, (uint16_t)port, call->size));
    }
}

static void run_out(Call *call)
{
    uint64_t port, value;

    if (parse_number(call, 1, &port) && parse_number(call, 2, &value)) {
        pc_port_write(call->pc, (uint16_t)port, call->size, (uint32_t)value);
    }
}

static void run_read_value(Call *call)
{
    uint8_t bytes[8] = {0};
    uint64_t addr;

    if (parse_number(call, 1, &addr)) {
        pc_memory_read(call->pc, addr, bytes, call->size);
        answer(call, "OK 0x%016" G_GINT64_MODIFIER "x\n", load_le64(bytes));
    }
}

static void run_write_value(Call *call)
{
    uint8_t bytes[8];
    uint64_t addr, value;

    if (parse_number(call, 1, &addr) && parse_number(call, 2, &value)) {
        store_le64(bytes, value);
        pc_memory_write(call->pc, addr, bytes, call->size);
    }
}

static void run_read(Call *call)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t addr, len;

    if (!parse_range(call, &addr, &len)) {
        return;
    }
    g_autofree uint8_t *bytes = g_malloc(len + 1);
    g_autofree char *text = g_malloc(2 * len + 1);
    pc_memory_read(call->pc, addr, bytes, len);
    for (uint64_t i = 0; i < len; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * len] = '\0';
    answer(call, "OK 0x%s\n", text);
}

/* Fewer digits than `len` asks for leave zeroes. */
static void run_write(Call *call)
{
    const char *text = call->words[3];
    uint64_t addr, len;

    if (!parse_range(call, &addr, &len)) {
        return;
    }
    if (strncmp(text, "0x", 2) != 0) {
        answer(call, "FAIL '%.64s' is not hexadecimal data\n", text);
        return;
    }
    g_autofree uint8_t *bytes = g_malloc0(len + 1);
    text += 2;
    for (uint64_t i = 0; i < len && text[0] && text[1]; i++, text += 2) {
        int high = g_ascii_xdigit_value(text[0]), low = g_ascii_xdigit_value(text[1]);
        if (high < 0 || low < 0) {
            answer(call, "FAIL '%.2s' is not a hexadecimal byte\n", text);
            return;
        }
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    pc_memory_write(call->pc, addr, bytes, len);
}

static void run_memset(Call *call)
{
    uint64_t addr, len, value;

    if (parse_range(call, &addr, &len) && parse_number(call, 3, &value)) {
        g_autofree uint8_t *bytes = g_malloc(len + 1);
        memset(bytes, (int)(value & 0xff), len);
        pc_memory_write(call->pc, addr, bytes, len);
    }
}

static void run_b64read(Call *call)
{
    uint64_t addr, len;

    if (parse_range(call, &addr, &len)) {
        g_autofree uint8_t *bytes = g_malloc(len + 1);
        pc_memory_read(call->pc, addr, bytes, len);
        g_autofree char *text = g_base64_encode(bytes, len);
        answer(call, "OK %s\n", text);
    }
}

static void run_b64write(Call *call)
{
    uint64_t addr, len;
    gsize decoded;

    if (!parse_range(call, &addr, &len)) {
        return;
    }
    if (call->words[3][0]) {
        g_base64_decode_inplace(call->words[3], &decoded);
    } else {
        decoded = 0;
    }
    if (decoded < len) {
        answer(call, "FAIL there are fewer than %" G_GUINT64_FORMAT " bytes of base64 data\n", len);
        return;
    }
    pc_memory_write(call->pc, addr, call->words[3], len);
}

static void run_intercept(Call *call)
{
    if (strcmp(call->words[1], "ioapic") || pc_model(call->pc) == PC_NONE) {
        answer(call, "FAIL Unknown device\n");
        return;
    }
    call->protocol->intercept = true;
}

/* The I/O APIC's outputs go to the CPU, and there is none. */
static void run_intercept_out(Call *call)
{
    if (strcmp(call->words[1], "ioapic") || pc_model(call->pc) == PC_NONE) {
        answer(call, "FAIL Unknown device\n");
    }
}

/* Without a number: to the next thing that happens by itself. */
static void run_clock_step(Call *call)
{
    int64_t now = pc_clock(call->pc);
    uint64_t step;

    if (!call->words[1]) {
        step = (uint64_t)(pc_clock_next(call->pc) - now);
    } else if (!parse_number(call, 1, &step)) {
        return;
    }
    if (step == 0 || step > (uint64_t)(INT64_MAX - now) || !pc_clock_set(call->pc, now + (int64_t)step)) {
        answer(call, "FAIL could not advance time\n");
    } else {
        answer(call, "OK %" G_GINT64_FORMAT "\n", pc_clock(call->pc));
    }
}

static void run_clock_set(Call *call)
{
    uint64_t to;

    if (!parse_number(call, 1, &to)) {
        return;
    }
    bool ok = to <= INT64_MAX && pc_clock_set(call->pc, (int64_t)to);
    answer(call, "%s %" G_GINT64_FORMAT "\n", ok ? "OK" : "FAIL", pc_clock(call->pc));
}

static const struct Verb {
    const char *name;
    void (*run)(Call *call);
    unsigned size;
    int min, max; /* arguments */
} verbs[] = {
    {"endianness", run_endianness, 0, 0, 0},
    {"inb", run_in, 1, 1, 1},
    {"inw", run_in, 2, 1, 1},
    {"inl", run_in, 4, 1, 1},
    {"outb", run_out, 1, 2, 2},
    {"outw", run_out, 2, 2, 2},
    {"outl", run_out, 4, 2, 2},
    {"readb", run_read_value, 1, 1, 1},
    {"readw", run_read_value, 2, 1, 1},
    {"readl", run_read_value, 4, 1, 1},
    {"readq", run_read_value, 8, 1, 1},
    {"writeb", run_write_value, 1, 2, 2},
    {"writew", run_write_value, 2, 2, 2},
    {"writel", run_write_value, 4, 2, 2},
    {"writeq", run_write_value, 8, 2, 2},
    {"read", run_read, 0, 2, 2},
    {"write", run_write, 0, 3, 3},
    {"memset", run_memset, 0, 3, 3},
    {"b64read", run_b64read, 0, 2, 2},
    {"b64write", run_b64write, 0, 2, 3},
    {"irq_intercept_in", run_intercept, 0, 1, 1},
    {"irq_intercept_out", run_intercept_out, 0, 1, 2},
    {"clock_step", run_clock_step, 0, 0, 1},
    {"clock_set", run_clock_set, 0, 1, 1},
};

/* Splits at spaces, in place; words behind the last one are NULL. The count of them. */
static int split(char *line, char *words[WORDS_MAX + 1])
{
    int n = 0;

    for (char *word = line; word && n < WORDS_MAX; n++) {
        char *space = strchr(word, ' ');
        words[n] = word;
        if (space) {
            *space++ = '\0';
            space += strspn(space, " ");
        }
        word = space && *space ? space : NULL;
    }
    return n;
}

void qtest_protocol_run(QtestProtocol *protocol, char *line)
{
    static char empty[] = "";
    char *words[WORDS_MAX + 1] = {NULL};
    Call call = {.protocol = protocol, .pc = protocol->pc, .words = words};
    int n = split(line, words);

    for (size_t i = 0; i < G_N_ELEMENTS(verbs); i++) {
        const struct Verb *verb = &verbs[i];
        if (strcmp(verb->name, words[0]) != 0) {
            continue;
        }
        if (n - 1 < verb->min || n - 1 > verb->max) {
            answer(&call, "FAIL '%s' takes %d arguments, not %d\n", verb->name, verb->min, n - 1);
            return;
        }
        if (verb->run == run_b64write && !words[3]) {
            words[3] = empty;
        }
        call.size = verb->size;
        verb->run(&call);
        if (!call.done) {
            block_deliver_ready();
            answer(&call, "OK\n");
        }
        return;
    }
    answer(&call, "FAIL Unknown command '%.64s'\n", words[0]);
}

static void on_irq(unsigned line, bool level, void *opaque)
{
    QtestProtocol *protocol = opaque;

    if (line >= IRQ_INPUTS || protocol->lines[line] == level) {
        return;
    }
    protocol->lines[line] = level;
    if (protocol->intercept) {
        char text[32];
        g_snprintf(text, sizeof text, "IRQ %s %u\n", level ? "raise" : "lower", line);
        protocol->send(text, protocol->opaque);
    }
}

QtestProtocol *qtest_protocol_new(Pc *pc, void (*send)(const char *line, void *opaque), void *opaque)
{
    QtestProtocol *protocol = g_new0(QtestProtocol, 1);

    protocol->pc = pc;
    protocol->send = send;
    protocol->opaque = opaque;
    pc_on_irq(pc, on_irq, protocol);
    return protocol;
}

void qtest_protocol_free(QtestProtocol *protocol)
{
    if (protocol) {
        pc_on_irq(protocol->pc, NULL, NULL);
        g_free(protocol);
    }
}

void qtest_protocol_reset(QtestProtocol *protocol)
{
    protocol->intercept = false;
}
