/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Sectors against the definitions of ECMA-130: EDC by division of polynomials bit by bit, ECC by the
 * syndromes of every code word, which must all be zero, with a Galois field made from its polynomial here.
 */
#include <glib.h>
#include <string.h>
#include "hw/block/msf.h"
#include "hw/block/sector.h"
#include "util/bytes.h"

/* Remainder of the message (least significant bit of each byte first) times x^32, by
 * (x^16 + x^15 + x^2 + 1)(x^16 + x^2 + x + 1), written as a number whose highest coefficient is bit 0. */
static uint32_t slow_edc(const uint8_t *data, size_t len)
{
    const uint64_t poly = 0x18001801bull; /* highest coefficient x^32 on the left */
    uint64_t rest = 0;
    for (size_t bit = 0; bit < len * 8 + 32; bit++) {
        const unsigned in = bit < len * 8 ? data[bit / 8] >> bit % 8 & 1 : 0;
        rest = rest << 1 | in;
        if (rest >> 32) {
            rest ^= poly;
        }
    }
    uint32_t mirrored = 0;
    for (int bit = 0; bit < 32; bit++) {
        mirrored |= (uint32_t)(rest >> bit & 1) << (31 - bit);
    }
    return mirrored;
}

static uint8_t gf_multiply(uint8_t a, uint8_t b)
{
    unsigned product = 0;
    for (int bit = 0; bit < 8; bit++) {
        product ^= b >> bit & 1 ? (unsigned)a << bit : 0;
    }
    for (int bit = 15; bit >= 8; bit--) {
        product ^= product >> bit & 1 ? 0x11du << (bit - 8) : 0;
    }
    return (uint8_t)product;
}

/* Both syndromes of a code word whose bytes are at raw[12 + 2 * word[i] + odd]. */
static void check_code_word(const uint8_t *raw, const unsigned *word, unsigned n, unsigned odd)
{
    uint8_t plain = 0, weighted = 0;
    for (unsigned i = 0; i < n; i++) {
        const uint8_t byte = raw[12 + 2 * word[i] + odd];
        plain ^= byte;
        weighted = gf_multiply(weighted, 2) ^ byte;
    }
    g_assert_cmphex(plain, ==, 0);
    g_assert_cmphex(weighted, ==, 0);
}

/* ECMA-130 annex A: words of 16 bits numbered from the header; P(column) goes down by 43, Q(row) by 44 modulo
 * 1118 with its parity behind, at 1118 and 1144. */
static void check_ecc(const uint8_t *raw)
{
    unsigned word[45];
    for (unsigned odd = 0; odd < 2; odd++) {
        for (unsigned column = 0; column < 43; column++) {
            for (unsigned i = 0; i < 26; i++) {
                word[i] = 43 * i + column;
            }
            check_code_word(raw, word, 26, odd);
        }
        for (unsigned row = 0; row < 26; row++) {
            for (unsigned i = 0; i < 43; i++) {
                word[i] = (44 * i + 43 * row) % 1118;
            }
            word[43] = 1118 + row;
            word[44] = 1144 + row;
            check_code_word(raw, word, 45, odd);
        }
    }
}

static void fill(uint8_t *data, size_t len, uint32_t seed)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    for (size_t i = 0; i < len; i++) {
        data[i] = (uint8_t)g_rand_int(rand);
    }
}

static void make_sector(uint8_t *raw, uint32_t seed, int64_t lba, SectorType type, bool zero)
{
    memset(raw, 0xa5, SECTOR_RAW); /* whatever a buffer held before */
    if (zero) {
        memset(raw + 16, 0, SECTOR_RAW - 16);
    } else {
        fill(raw + 16, SECTOR_RAW - 16, seed);
    }
    sector_put_header(raw, lba, type == SECTOR_TYPE_MODE1 ? 1 : 2);
    sector_put_edc(raw, type);
}

static void test_edc(void)
{
    uint8_t data[2336];
    for (size_t len = 0; len < sizeof data; len = len * 2 + 1) {
        fill(data, len, (uint32_t)len);
        g_assert_cmphex(sector_edc(data, len), ==, slow_edc(data, len));
    }
    /* the division's own start: one bit gives the polynomial */
    g_assert_cmphex(sector_edc((const uint8_t[]){0x80}, 1), ==, 0xd8018001);
}

static void test_mode1(void)
{
    uint8_t raw[SECTOR_RAW];
    for (uint32_t seed = 0; seed < 20; seed++) {
        make_sector(raw, seed, seed * 1000, SECTOR_TYPE_MODE1, seed == 0);
        g_assert_cmphex(load_le32(raw + 2064), ==, slow_edc(raw, 2064));
        for (unsigned i = 0; i < 8; i++) {
            g_assert_cmphex(raw[2068 + i], ==, 0);
        }
        check_ecc(raw);
    }
}

static void test_mode2_form1(void)
{
    uint8_t raw[SECTOR_RAW];
    for (uint32_t seed = 0; seed < 20; seed++) {
        make_sector(raw, seed, seed * 1000, SECTOR_TYPE_MODE2_FORM1, seed == 0);
        g_assert_cmphex(load_le32(raw + 2072), ==, slow_edc(raw + 16, 2056));
        g_assert_cmphex(raw[15], ==, 2);
        memset(raw + 12, 0, 4); /* the ECC is over a header of zeroes */
        check_ecc(raw);
    }
}

static void test_mode2_form2(void)
{
    uint8_t raw[SECTOR_RAW];
    make_sector(raw, 7, 4711, SECTOR_TYPE_MODE2_FORM2, false);
    g_assert_cmphex(load_le32(raw + 2348), ==, slow_edc(raw + 16, 2332));
}

static void test_untouched(void)
{
    uint8_t raw[SECTOR_RAW], before[SECTOR_RAW];
    fill(raw, sizeof raw, 3);
    memcpy(before, raw, sizeof raw);
    sector_put_edc(raw, SECTOR_TYPE_CDDA);
    sector_put_edc(raw, SECTOR_TYPE_MODE2);
    g_assert_cmpmem(raw, sizeof raw, before, sizeof before);
}

static void test_header(void)
{
    static const struct {
        int64_t lba;
        uint8_t m, s, f;
    } rows[] = {
        {0, 0x00, 0x02, 0x00},  {16, 0x00, 0x02, 0x16},     {74, 0x00, 0x02, 0x74},
        {75, 0x00, 0x03, 0x00}, {4350, 0x01, 0x00, 0x00},   {-150, 0x00, 0x00, 0x00},
        {-1, 0x00, 0x01, 0x74}, {333000, 0x74, 0x02, 0x00}, {449849, 0x99, 0x59, 0x74},
    };
    static const uint8_t sync[12] = {0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0};
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint8_t raw[SECTOR_RAW];
        sector_put_header(raw, rows[i].lba, 1);
        g_assert_cmpmem(raw, 12, sync, 12);
        g_assert_cmphex(raw[12], ==, rows[i].m);
        g_assert_cmphex(raw[13], ==, rows[i].s);
        g_assert_cmphex(raw[14], ==, rows[i].f);
        g_assert_cmphex(raw[15], ==, 1);
    }
}

static void test_msf(void)
{
    for (int64_t lba = -150; lba < CD_MAX_SECTOR; lba += 37) {
        const Msf msf = msf_from_lba(lba);
        g_assert_true(msf_is_valid(msf));
        g_assert_cmpint(msf_to_lba(msf), ==, lba);
    }
    g_assert_cmpint(msf_from_lba(0xffffffff).m, ==, 255);
    g_assert_false(msf_is_valid((Msf){0, 60, 0}));
    g_assert_false(msf_is_valid((Msf){0, 0, 75}));
}

/* ECMA-130 22.3.6: x^16 + x^12 + x^5 + 1 over the bits as sent, inverted on the disc. */
static void test_q_crc(void)
{
    uint8_t q[12];
    for (uint32_t seed = 0; seed < 50; seed++) {
        fill(q, 10, seed);
        uint32_t rest = 0;
        for (unsigned bit = 0; bit < 96; bit++) {
            rest = rest << 1 | (bit < 80 ? q[bit / 8] >> (7 - bit % 8) & 1u : 0u);
            rest ^= rest >> 16 ? 0x11021 : 0;
        }
        g_assert_cmphex(sector_q_crc(q), ==, rest ^ 0xffff);
    }
}

static void test_mode2_type(void)
{
    g_assert_cmpint(sector_mode2_type((const uint8_t[]){0, 0, 8, 0, 0, 0, 8, 0}), ==,
                    SECTOR_TYPE_MODE2_FORM1);
    g_assert_cmpint(sector_mode2_type((const uint8_t[]){1, 2, 0x20, 4, 1, 2, 0x20, 4}), ==,
                    SECTOR_TYPE_MODE2_FORM2);
    g_assert_cmpint(sector_mode2_type((const uint8_t[]){1, 2, 3, 4, 5, 6, 7, 8}), ==, SECTOR_TYPE_MODE2);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mmc/sector/edc", test_edc);
    g_test_add_func("/mmc/sector/mode1", test_mode1);
    g_test_add_func("/mmc/sector/mode2-form1", test_mode2_form1);
    g_test_add_func("/mmc/sector/mode2-form2", test_mode2_form2);
    g_test_add_func("/mmc/sector/no-edc-where-there-is-none", test_untouched);
    g_test_add_func("/mmc/sector/header-in-bcd", test_header);
    g_test_add_func("/mmc/sector/mode2-type", test_mode2_type);
    g_test_add_func("/mmc/sector/msf", test_msf);
    g_test_add_func("/mmc/sector/q-crc", test_q_crc);
    return g_test_run();
}
