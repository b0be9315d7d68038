/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "hw/ide/ata-identify.h"

#include <string.h>

#include "util/bytes.h"

static void put_word(uint8_t *out, unsigned word, uint16_t value)
{
    store_le16(out + 2 * word, value);
}

bool ata_transfer_mode_set(AtaTransferMode *mode, uint8_t count)
{
    unsigned n = count & 7;

    switch (count >> 3) {
    case 0: /* PIO default, and default without IORDY */
        return n <= 1;
    case 1: /* PIO flow control mode n */
        return n <= 4;
    case 4:
        if (n > ATA_MAX_MWDMA) {
            return false;
        }
        *mode = (AtaTransferMode){.mwdma = (int)n, .udma = -1};
        return true;
    case 8:
        if (n > ATA_MAX_UDMA) {
            return false;
        }
        *mode = (AtaTransferMode){.mwdma = -1, .udma = (int)n};
        return true;
    default:
        return false;
    }
}

void ata_transfer_mode_visit(AtaTransferMode *mode, StateIo *io)
{
    uint8_t mwdma = (uint8_t)(mode->mwdma + 1), udma = (uint8_t)(mode->udma + 1);

    state_u8(io, &mwdma);
    state_u8(io, &udma);
    if (mwdma > ATA_MAX_MWDMA + 1 || udma > ATA_MAX_UDMA + 1 || (mwdma && udma)) {
        state_fail(io, "its transfer mode is none");
    }
    mode->mwdma = mwdma - 1;
    mode->udma = udma - 1;
}

void ata_power_visit(uint8_t *power, StateIo *io)
{
    state_u8(io, power);
    if (*power != ATA_POWER_STANDBY && *power != ATA_POWER_IDLE && *power != ATA_POWER_ACTIVE) {
        state_fail(io, "its power mode is 0x%02x", *power);
    }
}

void ata_identify_put_string(uint8_t *out, unsigned word, unsigned words, const char *text)
{
    size_t len = text ? strlen(text) : 0;

    for (unsigned i = 0; i < words * 2; i++) {
        out[word * 2 + (i ^ 1)] = i < len ? (uint8_t)text[i] : ' ';
    }
}

void ata_identify_seal(uint8_t *out)
{
    uint8_t sum = 0;

    out[510] = 0xa5;
    for (unsigned i = 0; i < 511; i++) {
        sum += out[i];
    }
    out[511] = -sum;
}

void ata_identify_put_link(uint8_t *out, const AtaTransferMode *mode, bool serial_link, bool slave)
{
    uint16_t mwdma = (1 << (ATA_MAX_MWDMA + 1)) - 1, udma = (1 << (ATA_MAX_UDMA + 1)) - 1;

    if (mode->mwdma >= 0) {
        mwdma |= 0x100 << mode->mwdma;
    }
    if (mode->udma >= 0) {
        udma |= 0x100 << mode->udma;
    }
    put_word(out, 53, 0x0006); /* words 64-70 and 88 are valid */
    put_word(out, 63, mwdma);
    put_word(out, 64, 0x0003); /* PIO 3 and 4 */
    put_word(out, 65, 120);    /* ns a word: MWDMA least, MWDMA recommended, PIO, PIO with IORDY */
    put_word(out, 66, 120);
    put_word(out, 67, 120);
    put_word(out, 68, 120);
    put_word(out, 88, udma);
    if (serial_link) {
        put_word(out, 76, 0x0006);  /* 1.5 and 3 Gb/s */
        put_word(out, 222, 0x101f); /* serial, up to SATA 2.6 */
    } else {
        put_word(out, 93, slave ? 0x6b01 : 0x600b); /* 80-wire cable, device number by jumper */
    }
}

void ata_identify_packet(uint8_t out[ATA_IDENTIFY_SIZE], const IdeIdentity *identity,
                         const AtaTransferMode *mode, bool serial_link, bool slave)
{
    memset(out, 0, ATA_IDENTIFY_SIZE);
    put_word(out, 0, 0x85c0); /* packet device, CD/DVD, removable, DRQ within 50 us, 12-byte packets */
    ata_identify_put_string(out, 10, 10, identity->serial);
    ata_identify_put_string(out, 23, 4, identity->firmware);
    ata_identify_put_string(out, 27, 20, identity->model);
    put_word(out, 49, 0x0f00); /* IORDY, LBA, DMA; no overlap, no queueing */
    put_word(out, 50, 0x4000);
    ata_identify_put_link(out, mode, serial_link, slave);
    put_word(out, 71, 30); /* us: packet to bus release, service to BSY clear (as drives without overlap) */
    put_word(out, 72, 30);
    put_word(out, 80, 0x01f0); /* ATA/ATAPI-4 to ATA8 */
    put_word(out, 82, 0x4258); /* NOP, DEVICE RESET, look-ahead, PACKET, power management */
    put_word(out, 83, 0x5000); /* FLUSH CACHE */
    put_word(out, 84, identity->wwn ? 0x4100 : 0x4000);
    put_word(out, 85, 0x4258);
    put_word(out, 86, 0x1000);
    put_word(out, 87, identity->wwn ? 0x4100 : 0x4000);
    if (identity->wwn) {
        for (unsigned i = 0; i < 4; i++) {
            put_word(out, 108 + i, identity->wwn >> (48 - 16 * i));
        }
    }
    ata_identify_seal(out);
}
