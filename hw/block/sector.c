/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>
#include "hw/block/msf.h"
#include "hw/block/sector.h"
#include "util/bytes.h"

static const SectorLayout layouts[] = {
    [SECTOR_TYPE_CDDA] = {.user = {0, 2352}},
    [SECTOR_TYPE_MODE1] = {{0, 12}, {12, 4}, {16, 0}, {16, 2048}, {2064, 288}},
    [SECTOR_TYPE_MODE2] = {{0, 12}, {12, 4}, {16, 0}, {16, 2336}, {2352, 0}},
    [SECTOR_TYPE_MODE2_FORM1] = {{0, 12}, {12, 4}, {16, 8}, {24, 2048}, {2072, 280}},
    [SECTOR_TYPE_MODE2_FORM2] = {{0, 12}, {12, 4}, {16, 8}, {24, 2328}, {2352, 0}},
};

const SectorLayout *sector_layout(SectorType type)
{
    return &layouts[type];
}

SectorType sector_mode2_type(const uint8_t *subheader)
{
    if (memcmp(subheader, subheader + 4, 4) != 0) {
        return SECTOR_TYPE_MODE2;
    }
    return subheader[2] & 0x20 ? SECTOR_TYPE_MODE2_FORM2 : SECTOR_TYPE_MODE2_FORM1;
}

void sector_put_header(uint8_t raw[SECTOR_RAW], int64_t lba, uint8_t mode)
{
    const Msf msf = msf_from_lba(lba);
    raw[0] = 0;
    memset(&raw[1], 0xff, 10);
    raw[11] = 0;
    raw[12] = bcd_from_int(msf.m);
    raw[13] = bcd_from_int(msf.s);
    raw[14] = bcd_from_int(msf.f);
    raw[15] = mode;
}

uint32_t sector_edc(const uint8_t *data, size_t len)
{
    /* four bits at a time: the whole sector costs some microseconds, and the table is sixteen words */
    static const uint32_t nibble[16] = {
        0x00000000, 0x99011001, 0x82012001, 0x1b003000, 0xb4014001, 0x2d005000, 0x36006000, 0xaf017001,
        0xd8018001, 0x41009000, 0x5a00a000, 0xc301b001, 0x6c00c000, 0xf501d001, 0xee01e001, 0x7700f000,
    };
    uint32_t crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= data[i];
        crc = crc >> 4 ^ nibble[crc & 15];
        crc = crc >> 4 ^ nibble[crc & 15];
    }
    return crc;
}

/* Product with x in GF(2^8), x^8 + x^4 + x^3 + x^2 + 1 (ECMA-130 annex A). */
static inline uint8_t gf_times_x(uint8_t v)
{
    return (uint8_t)(v << 1 ^ (v & 0x80 ? 0x1d : 0));
}

/* Quotient by x + 1: linear over GF(2), so the images of the eight bits are enough. */
static uint8_t gf_div_x1(uint8_t v)
{
    static const uint8_t image[8] = {0xf4, 0xf5, 0xf7, 0xf3, 0xfb, 0xeb, 0xcb, 0x8b};
    uint8_t r = 0;
    for (int bit = 0; bit < 8; bit++) {
        r ^= v >> bit & 1 ? image[bit] : 0;
    }
    return r;
}

/* Two parity bytes for each of `vectors` code words of `words` bytes over p[0, size): word i of vector v lies
 * at the 16-bit-interleaved position that ECMA-130 annex A gives by `major` and `minor` steps. */
static void ecc_put(const uint8_t *p, unsigned vectors, unsigned words, unsigned major, unsigned minor,
                    uint8_t *parity)
{
    const unsigned size = vectors * words;
    for (unsigned v = 0; v < vectors; v++) {
        unsigned at = (v >> 1) * major + (v & 1);
        uint8_t weighted = 0, sum = 0;
        for (unsigned i = 0; i < words; i++) {
            const uint8_t byte = p[at];
            at += minor;
            if (at >= size) {
                at -= size;
            }
            weighted = gf_times_x(weighted ^ byte);
            sum ^= byte;
        }
        const uint8_t first = gf_div_x1(gf_times_x(weighted) ^ sum);
        parity[v] = first;
        parity[v + vectors] = first ^ sum;
    }
}

static void sector_put_ecc(uint8_t raw[SECTOR_RAW])
{
    ecc_put(&raw[12], 86, 24, 2, 86, &raw[2076]);  /* P */
    ecc_put(&raw[12], 52, 43, 86, 88, &raw[2248]); /* Q, over P too */
}

void sector_put_edc(uint8_t raw[SECTOR_RAW], SectorType type)
{
    switch (type) {
    case SECTOR_TYPE_MODE1:
        store_le32(&raw[2064], sector_edc(raw, 2064));
        memset(&raw[2068], 0, 8);
        sector_put_ecc(raw);
        break;
    case SECTOR_TYPE_MODE2_FORM1: {
        store_le32(&raw[2072], sector_edc(&raw[16], 2056));
        /* the header counts as zero here, so that a sector may move (ECMA-130 has mode 1 only; the
         * "Yellow Book" XA rule is MMC-6 4.2.3.8.4) */
        uint8_t header[4];
        memcpy(header, &raw[12], sizeof header);
        memset(&raw[12], 0, sizeof header);
        sector_put_ecc(raw);
        memcpy(&raw[12], header, sizeof header);
        break;
    }
    case SECTOR_TYPE_MODE2_FORM2:
        store_le32(&raw[2348], sector_edc(&raw[16], 2332));
        break;
    default:
        break;
    }
}

uint16_t sector_q_crc(const uint8_t q[10])
{
    uint16_t crc = 0;
    for (int i = 0; i < 10; i++) {
        crc ^= (uint16_t)(q[i] << 8);
        for (int bit = 0; bit < 8; bit++) {
            crc = (uint16_t)(crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0));
        }
    }
    return (uint16_t)~crc;
}
