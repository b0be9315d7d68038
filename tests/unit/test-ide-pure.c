/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The pure parts of hw/ide: FISes, task file, scatter lists, identify data.
 */
#include <glib.h>
#include <string.h>

#include "hw/ide/ata-geometry.h"
#include "hw/ide/ata-identify.h"
#include "hw/ide/fis.h"
#include "hw/ide/sgl.h"
#include "util/bytes.h"

/* SATA 3 10.5.5: register host to device. */
static void test_fis_h2d(void)
{
    static const uint8_t fis[FIS_H2D_SIZE] = {0x27, 0x80, 0x25, 0xf1, 0x11, 0x22, 0x33, 0x40,
                                              0x44, 0x55, 0x66, 0xf2, 0xc1, 0xc2, 0,    0x08};
    Taskfile tf = {.status = 0x50, .error = 7};
    bool command;

    g_assert_true(fis_decode_h2d(fis, sizeof fis, &tf, &command));
    g_assert_true(command);
    g_assert_cmphex(tf.command, ==, 0x25);
    g_assert_cmphex(tf.features, ==, 0xf2f1);
    g_assert_cmphex(tf.count, ==, 0xc2c1);
    g_assert_cmphex(taskfile_lba48(&tf), ==, G_GUINT64_CONSTANT(0x665544332211));
    g_assert_cmphex(tf.device, ==, 0x40);
    g_assert_cmphex(tf.control, ==, 0x08);
    g_assert_cmphex(tf.status, ==, 0x50);
    g_assert_cmphex(tf.error, ==, 7);
}

static void test_fis_h2d_refused(void)
{
    uint8_t fis[FIS_H2D_SIZE] = {0x27};
    Taskfile tf = {.command = 0x99};
    bool command = true;

    for (size_t len = 0; len < sizeof fis; len++) {
        g_assert_false(fis_decode_h2d(fis, len, &tf, &command));
    }
    for (unsigned type = 0; type < 256; type++) {
        fis[0] = (uint8_t)type;
        g_assert_true(fis_decode_h2d(fis, sizeof fis, &tf, &command) == (type == 0x27));
    }
    fis[0] = 0x34;
    tf.command = 0x99;
    command = true;
    g_assert_false(fis_decode_h2d(fis, sizeof fis, &tf, &command));
    g_assert_cmphex(tf.command, ==, 0x99);
    g_assert_true(command);
}

static void test_fis_to_host(void)
{
    Taskfile tf = {.status = 0x58, .error = 0x04, .device = 0xa0, .count = 0x0203};
    static const uint8_t d2h[] = {0x34, 0x40, 0x58, 0x04, 1, 2, 3, 0xa0, 4, 5, 6, 0, 3, 2, 0, 0, 0, 0, 0, 0};
    static const uint8_t pio[] = {0x5f, 0x60, 0x58, 0x04, 1, 2,    3, 0xa0, 4, 5,
                                  6,    0,    3,    2,    0, 0xd0, 0, 8,    0, 0};
    static const uint8_t sdb[] = {0xa1, 0x40, 0x51, 0x84, 0x01, 0, 0, 0x80};
    uint8_t out[FIS_D2H_SIZE];

    taskfile_set_lba48(&tf, G_GUINT64_CONSTANT(0x060504030201));
    memset(out, 0xee, sizeof out);
    fis_encode_d2h(out, &tf, true);
    g_assert_cmpmem(out, sizeof out, d2h, sizeof d2h);
    fis_encode_d2h(out, &tf, false);
    g_assert_cmphex(out[1], ==, 0);
    memset(out, 0xee, sizeof out);
    fis_encode_pio_setup(out, &tf, true, true, 0xd0, 2048);
    g_assert_cmpmem(out, sizeof out, pio, sizeof pio);
    fis_encode_pio_setup(out, &tf, false, false, 0xd0, 2048);
    g_assert_cmphex(out[1], ==, 0);
    fis_encode_sdb(out, 0xd9, 0x84, 0x80000001, true); /* BSY and DRQ do not go into it */
    g_assert_cmpmem(out, sizeof sdb, sdb, sizeof sdb);
}

static void test_taskfile_signatures(void)
{
    Taskfile tf = {.device = 0xff, .count = 0xffff, .features = 0xffff};

    memset(tf.lba, 0xff, sizeof tf.lba);
    taskfile_set_signature(&tf, TASKFILE_PACKET);
    g_assert_cmphex(tf.count, ==, 1);
    g_assert_cmphex(taskfile_lba48(&tf), ==, 0xeb1401);
    g_assert_cmphex(tf.status, ==, 0);
    g_assert_cmphex(tf.error, ==, 1);
    g_assert_cmphex(tf.device, ==, 0xb0);
    taskfile_set_signature(&tf, TASKFILE_ATA);
    g_assert_cmphex(taskfile_lba48(&tf), ==, 1);
    g_assert_cmphex(tf.status, ==, 0x50);
    g_assert_cmphex(taskfile_signature_word(TASKFILE_PACKET), ==, 0xeb140101);
    g_assert_cmphex(taskfile_signature_word(TASKFILE_ATA), ==, 0x00000101);
}

static void test_taskfile_addresses(void)
{
    Taskfile tf = {.device = 0xe0};

    taskfile_set_lba28(&tf, 0xabcdef1);
    g_assert_cmphex(tf.device, ==, 0xea);
    g_assert_cmphex(taskfile_lba28(&tf), ==, 0xabcdef1);
    taskfile_set_lba48(&tf, G_GUINT64_CONSTANT(0xffff123456789abc));
    g_assert_cmphex(taskfile_lba48(&tf), ==, G_GUINT64_CONSTANT(0x123456789abc));
    taskfile_set_byte_count(&tf, 0xfffe);
    g_assert_cmphex(taskfile_byte_count(&tf), ==, 0xfffe);
}

/* 48-bit registers through 8-bit ports: second-last write is the previous value, HOB shows it. */
static void test_taskfile_ports(void)
{
    Taskfile tf = {0};

    for (unsigned reg = TASKFILE_FEATURES; reg <= TASKFILE_LBA_HIGH; reg++) {
        taskfile_port_write(&tf, reg, 0x11);
        taskfile_port_write(&tf, reg, (uint8_t)(0x20 + reg));
        taskfile_port_write(&tf, reg, (uint8_t)(0x30 + reg));
    }
    g_assert_cmphex(tf.features, ==, 0x2131);
    g_assert_cmphex(taskfile_lba48(&tf), ==, G_GUINT64_CONSTANT(0x252423353433));
    g_assert_cmphex(taskfile_port_read(&tf, TASKFILE_COUNT), ==, 0x32);
    tf.control = 0x80;
    g_assert_cmphex(taskfile_port_read(&tf, TASKFILE_COUNT), ==, 0x22);
    g_assert_cmphex(taskfile_port_read(&tf, TASKFILE_LBA_MID), ==, 0x24);
    taskfile_port_write(&tf, TASKFILE_DEVICE, 0x10);
    g_assert_cmphex(taskfile_port_read(&tf, TASKFILE_DEVICE), ==, 0xb0);
    tf.status = 0x50;
    tf.error = 4;
    g_assert_cmphex(taskfile_port_read(&tf, TASKFILE_FEATURES), ==, 4);
    g_assert_cmphex(taskfile_port_read(&tf, TASKFILE_COMMAND), ==, 0x50);
    g_assert_cmphex(taskfile_port_read(&tf, 99), ==, 0);
}

typedef struct SglCase {
    const char *name;
    SglRun add[5];
    SglRun expect[5]; /* runs taken with `max` */
    size_t max;
} SglCase;

static const SglCase sgl_cases[] = {
    {"empty", {{0}}, {{0}}, 100},
    {"one", {{100, 10}}, {{100, 10}}, 100},
    {"adjacent", {{100, 10}, {110, 20}, {130, 5}}, {{100, 35}}, 100},
    {"gap", {{100, 10}, {111, 20}}, {{100, 10}, {111, 20}}, 100},
    {"backwards", {{110, 10}, {100, 10}}, {{110, 10}, {100, 10}}, 100},
    {"capped", {{100, 25}, {200, 5}}, {{100, 10}, {110, 10}, {120, 5}, {200, 5}}, 10},
    {"zero-ignored", {{100, 0}, {200, 4}}, {{200, 4}}, 10},
    {"same-twice", {{100, 4}, {100, 4}}, {{100, 4}, {100, 4}}, 10},
    {"end-of-space", {{UINT64_MAX - 4, 100}}, {{UINT64_MAX - 4, 4}}, 100},
};

static void test_sgl(gconstpointer data)
{
    const SglCase *c = data;
    Sgl sgl = {0}, peek;
    uint64_t addr, left = 0;
    size_t len;

    for (unsigned round = 0; round < 2; round++) {
        sgl_reset(&sgl);
        left = 0;
        for (unsigned i = 0; i < 5; i++) {
            sgl_add(&sgl, c->add[i].addr, c->add[i].len);
        }
        for (unsigned i = 0; i < 5; i++) {
            left += c->expect[i].len;
        }
        g_assert_cmpuint(sgl.left, ==, left);
        g_assert_false(sgl_take(&sgl, 0, &addr, &len));
        peek = sgl_peek(&sgl);
        for (unsigned i = 0; i < 5 && c->expect[i].len; i++) {
            g_assert_true(sgl_take(&sgl, c->max, &addr, &len));
            g_assert_cmphex(addr, ==, c->expect[i].addr);
            g_assert_cmpuint(len, ==, c->expect[i].len);
            left -= len;
            g_assert_cmpuint(sgl.left, ==, left);
        }
        g_assert_false(sgl_take(&sgl, c->max, &addr, &len));
        left = peek.left;
        g_assert_cmpuint(sgl_skip(&peek, UINT64_MAX), ==, left);
        g_assert_cmpuint(peek.left, ==, 0);
    }
    sgl_clear(&sgl);
}

static void test_sgl_many(void)
{
    Sgl sgl = {0};
    uint64_t addr;
    size_t len;

    for (unsigned i = 0; i < 65535; i++) {
        sgl_add(&sgl, (uint64_t)i * 0x800000, 0x400000);
    }
    g_assert_cmpuint(sgl.count, ==, 65535);
    g_assert_cmpuint(sgl.left, ==, G_GUINT64_CONSTANT(65535) * 0x400000);
    g_assert_cmpuint(sgl_skip(&sgl, G_GUINT64_CONSTANT(60000) * 0x400000 + 5), ==,
                     G_GUINT64_CONSTANT(60000) * 0x400000 + 5);
    g_assert_true(sgl_take(&sgl, 16, &addr, &len));
    g_assert_cmphex(addr, ==, G_GUINT64_CONSTANT(60000) * 0x800000 + 5);
    sgl_clear(&sgl);
    g_assert_cmpuint(sgl.left, ==, 0);
}

/* A run added behind the cursor's end does not grow the run that is used up (bus-master tables come in
 * pieces). */
static void test_sgl_add_after_end(void)
{
    Sgl sgl = {0};
    uint64_t addr;
    size_t len;

    sgl_add(&sgl, 100, 10);
    g_assert_true(sgl_take(&sgl, 10, &addr, &len));
    sgl_add(&sgl, 110, 10);
    g_assert_true(sgl_take(&sgl, 99, &addr, &len));
    g_assert_cmphex(addr, ==, 110);
    g_assert_cmpuint(len, ==, 10);
    sgl_clear(&sgl);
}

static uint16_t word(const uint8_t *id, unsigned n)
{
    return load_le16(id + 2 * n);
}

static void test_identify_packet(void)
{
    static const struct {
        unsigned word;
        uint16_t serial_link, parallel_master, parallel_slave;
    } rows[] = {
        {0, 0x85c0, 0x85c0, 0x85c0},  {49, 0x0f00, 0x0f00, 0x0f00}, {53, 6, 6, 6},
        {63, 0x0007, 0x0007, 0x0007}, {76, 0x0006, 0, 0},           {88, 0x203f, 0x203f, 0x203f},
        {93, 0, 0x600b, 0x6b01},      {222, 0x101f, 0, 0},          {62, 0, 0, 0},
    };
    IdeIdentity identity = {
        .serial = "S1", .model = "A model", .firmware = "1.02", .wwn = 0x5000c50012345678};
    AtaTransferMode mode = ATA_TRANSFER_MODE_DEFAULT;
    uint8_t id[ATA_IDENTIFY_SIZE];

    for (unsigned kind = 0; kind < 3; kind++) {
        uint8_t sum = 0;

        memset(id, 0xee, sizeof id);
        ata_identify_packet(id, &identity, &mode, kind == 0, kind == 2);
        for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
            g_assert_cmphex(word(id, rows[i].word), ==,
                            kind == 0   ? rows[i].serial_link
                            : kind == 1 ? rows[i].parallel_master
                                        : rows[i].parallel_slave);
        }
        for (unsigned i = 0; i < sizeof id; i++) {
            sum += id[i];
        }
        g_assert_cmphex(sum, ==, 0);
    }
    g_assert_cmpmem(id + 20, 20, "1S                  ", 20);
    g_assert_cmpmem(id + 46, 8, ".120    ", 8);
    g_assert_cmpmem(id + 54, 8, " Aomed l", 8);
    g_assert_cmphex(word(id, 84), ==, 0x4100);
    g_assert_cmphex(word(id, 108), ==, 0x5000);
    g_assert_cmphex(word(id, 109), ==, 0xc500);
    g_assert_cmphex(word(id, 111), ==, 0x5678);
}

static void test_identify_strings(void)
{
    uint8_t out[64];

    memset(out, 0xee, sizeof out);
    ata_identify_put_string(out, 2, 3, "123456789"); /* cut */
    g_assert_cmpmem(out + 4, 7, "214365\xee", 7);
    ata_identify_put_string(out, 2, 3, NULL);
    g_assert_cmpmem(out + 4, 7, "      \xee", 7);
}

static void test_transfer_modes(void)
{
    static const struct {
        uint8_t count;
        bool ok;
        int mwdma, udma;
    } rows[] = {
        {0x00, true, -1, 5},  {0x01, true, -1, 5},  {0x02, false, -1, 5}, {0x08, true, -1, 5},
        {0x0c, true, -1, 5},  {0x0d, false, -1, 5}, {0x10, false, -1, 5}, {0x20, true, 0, -1},
        {0x22, true, 2, -1},  {0x23, false, -1, 5}, {0x40, true, -1, 0},  {0x45, true, -1, 5},
        {0x46, false, -1, 5}, {0x47, false, -1, 5}, {0x60, false, -1, 5}, {0xff, false, -1, 5},
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        AtaTransferMode mode = ATA_TRANSFER_MODE_DEFAULT;

        g_assert_true(ata_transfer_mode_set(&mode, rows[i].count) == rows[i].ok);
        g_assert_cmpint(mode.mwdma, ==, rows[i].mwdma);
        g_assert_cmpint(mode.udma, ==, rows[i].udma);
    }
}

/* Sizes with a blank MBR, one made by translating firmware (128 heads), one by plain CHS. */
static void test_geometry(void)
{
    static const uint8_t translated[16] = {0x80, 1, 1, 0, 6, 127, 63, 0, 63, 0, 0, 0, 0x41, 0x1f};
    static const uint8_t plain[16] = {0x80, 1, 1, 0, 6, 15, 63, 7, 63, 0, 0, 0, 0x41, 0x1f};
    static const uint8_t few_heads[16] = {0, 1, 1, 0, 6, 3, 32, 7, 63, 0, 0, 0, 0x41, 0x1f};
    static const uint8_t nonsense[16] = {0x80, 1, 1, 0, 6, 0, 63, 7, 63, 0, 0, 0, 0x41, 0x1f};
    static const struct {
        uint64_t sectors;
        const uint8_t *entry;
        AtaGeometry expect;
    } rows[] = {
        {61440, NULL, {60, 16, 63, ATA_TRANSLATION_NONE}},
        {61440, translated, {60, 16, 63, ATA_TRANSLATION_LARGE}},
        {61440, plain, {60, 16, 63, ATA_TRANSLATION_NONE}},
        {61440, few_heads, {480, 4, 32, ATA_TRANSLATION_NONE}},
        {61440, nonsense, {60, 16, 63, ATA_TRANSLATION_NONE}},
        {8388608, NULL, {8322, 16, 63, ATA_TRANSLATION_LBA}},
        {8388608, translated, {8322, 16, 63, ATA_TRANSLATION_LBA}},
        {8388608, plain, {8322, 16, 63, ATA_TRANSLATION_NONE}},
        {8388608, few_heads, {8322, 16, 63, ATA_TRANSLATION_LBA}}, /* too many cylinders that way */
        {1, NULL, {2, 16, 63, ATA_TRANSLATION_NONE}},
        {UINT64_C(1) << 40, NULL, {16383, 16, 63, ATA_TRANSLATION_LBA}},
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint8_t mbr[512] = {0};
        AtaGeometry got;

        if (rows[i].entry) {
            memcpy(mbr + 0x1be, rows[i].entry, 16);
            store_le16(mbr + 510, 0xaa55);
        }
        ata_geometry_guess(mbr, rows[i].sectors, &got);
        g_assert_cmpuint(got.cyls, ==, rows[i].expect.cyls);
        g_assert_cmpuint(got.heads, ==, rows[i].expect.heads);
        g_assert_cmpuint(got.secs, ==, rows[i].expect.secs);
        g_assert_cmpint(got.translation, ==, rows[i].expect.translation);
    }
    AtaGeometry unreadable;
    ata_geometry_guess(NULL, 61440, &unreadable);
    g_assert_cmpuint(unreadable.cyls, ==, 60);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fis/h2d", test_fis_h2d);
    g_test_add_func("/fis/h2d-refused", test_fis_h2d_refused);
    g_test_add_func("/fis/to-host", test_fis_to_host);
    g_test_add_func("/taskfile/signatures", test_taskfile_signatures);
    g_test_add_func("/taskfile/addresses", test_taskfile_addresses);
    g_test_add_func("/taskfile/ports", test_taskfile_ports);
    for (unsigned i = 0; i < G_N_ELEMENTS(sgl_cases); i++) {
        g_autofree char *path = g_strdup_printf("/sgl/%s", sgl_cases[i].name);

        g_test_add_data_func(path, &sgl_cases[i], test_sgl);
    }
    g_test_add_func("/sgl/many", test_sgl_many);
    g_test_add_func("/sgl/add-after-end", test_sgl_add_after_end);
    g_test_add_func("/geometry", test_geometry);
    g_test_add_func("/identify/packet", test_identify_packet);
    g_test_add_func("/identify/strings", test_identify_strings);
    g_test_add_func("/identify/transfer-modes", test_transfer_modes);
    return g_test_run();
}
