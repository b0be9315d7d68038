/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Replies byte for byte, as MMC-6, SPC-4 and SFF-8020i lay them out; and every one of them cut by its
 * allocation length.
 */
#include <string.h>
#include "tests/lib/mmc-guest.h"
#include "util/bytes.h"

#define CD    "mem,size=1M"              /* 512 sectors */
#define DVD   "null-co,size=4G"          /* 2097152 sectors: one layer */
#define DVD9  "null-co,size=8500000000"  /* 4150391: two layers */
#define BD    "null-co,size=25000000000" /* 12207032 */
#define EMPTY NULL

typedef struct Row {
    const char *name;
    const char *disc;
    uint8_t cdb[12];
    unsigned n; /* bytes of the reply that are compared, and all of it unless `more` */
    bool more;
    uint8_t bytes[128];
} Row;

static const Row rows[] = {
    /* INQUIRY */
    {"inquiry/standard",
     CD,
     {0x12, 0, 0, 0, 255},
     96,
     false,
     {0x05, 0x80, 0x05, 0x02, 91,  0,   0,   0,   'S', 'P', 'I',  'N',  'D',  'L', 'E', ' ',
      'C',  'D',  '/',  'D',  'V', 'D', ' ', 'D', 'r', 'i', 'v',  'e',  ' ',  ' ', ' ', ' ',
      '1',  '.',  '0',  ' ',  0,   0,   0,   0,   0,   0,   0,    0,    0,    0,   0,   0,
      0,    0,    0,    0,    0,   0,   0,   0,   0,   0,   0x03, 0x00, 0x04, 0xe0}},
    {"inquiry/vpd-00", CD, {0x12, 1, 0x00, 0, 255}, 7, false, {0x05, 0x00, 0, 3, 0x00, 0x80, 0x83}},
    {"inquiry/vpd-80",
     CD,
     {0x12, 1, 0x80, 0, 255},
     11,
     false,
     {0x05, 0x80, 0, 7, 'Q', 'M', '0', '0', '0', '0', '1'}},
    {"inquiry/vpd-83", CD, {0x12, 1, 0x83, 0, 255}, 39, false, {0x05, 0x83, 0,   35,  0x02, 0x01, 0,   31,
                                                                'S',  'P',  'I', 'N', 'D',  'L',  'E', ' ',
                                                                'C',  'D',  '/', 'D', 'V',  'D',  ' ', 'D',
                                                                'r',  'i',  'v', 'e', ' ',  ' ',  ' ', ' ',
                                                                'Q',  'M',  '0', '0', '0',  '0',  '1'}},
    {"report-luns", CD, {0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 255}, 16, false, {0, 0, 0, 8}},
    {"report-luns/well-known-only", CD, {0xa0, 0, 1, 0, 0, 0, 0, 0, 0, 255}, 8, false, {0}},
    /* READ CAPACITY */
    {"capacity/cd", CD, {0x25}, 8, false, {0, 0, 0x01, 0xff, 0, 0, 8, 0}},
    {"capacity/bd", BD, {0x25}, 8, false, {0, 0xba, 0x43, 0xb7, 0, 0, 8, 0}},
    /* READ TOC */
    {"toc/lba", CD, {0x43, 0, 0, 0, 0, 0, 0, 0, 255}, 20, false, {0, 18, 1, 1,    0,    0x14, 1, 0, 0, 0,
                                                                  0, 0,  0, 0x14, 0xaa, 0,    0, 0, 2, 0}},
    {"toc/msf", CD, {0x43, 2, 0, 0, 0, 0, 0, 0, 255}, 20, false, {0, 18, 1, 1,    0,    0x14, 1, 0, 0, 0,
                                                                  2, 0,  0, 0x14, 0xaa, 0,    0, 0, 8, 62}},
    {"toc/from-track-1", CD, {0x43, 0, 0, 0, 0, 0, 1, 0, 255}, 7, true, {0, 18, 1, 1, 0, 0x14, 1}},
    {"toc/lead-out-only",
     CD,
     {0x43, 0, 0, 0, 0, 0, 0xaa, 0, 255},
     12,
     false,
     {0, 10, 1, 1, 0, 0x14, 0xaa, 0, 0, 0, 2, 0}},
    {"toc/sessions",
     CD,
     {0x43, 0, 1, 0, 0, 0, 0, 0, 255},
     12,
     false,
     {0, 10, 1, 1, 0, 0x14, 1, 0, 0, 0, 0, 0}},
    {"toc/sessions-msf-old-byte-9",
     CD,
     {0x43, 2, 0, 0, 0, 0, 0, 0, 255, 0x40},
     12,
     false,
     {0, 10, 1, 1, 0, 0x14, 1, 0, 0, 0, 2, 0}},
    {"toc/full", CD, {0x43, 2, 2, 0, 0, 0, 0, 0, 255}, 48, false, {0, 46, 1, 1,  1, 0x14, 0, 0xa0, 0, 0, 0,
                                                                   0, 1,  0, 0,  1, 0x14, 0, 0xa1, 0, 0, 0,
                                                                   0, 1,  0, 0,  1, 0x14, 0, 0xa2, 0, 0, 0,
                                                                   0, 0,  8, 62, 1, 0x14, 0, 1,    0, 0, 0,
                                                                   0, 0,  2, 0}},
    {"toc/full-old-byte-9",
     CD,
     {0x43, 2, 0, 0, 0, 0, 0, 0, 255, 0x80},
     8,
     true,
     {0, 46, 1, 1, 1, 0x14, 0, 0xa0}},
    {"toc/cd-text-none", CD, {0x43, 0, 5, 0, 0, 0, 0, 0, 255}, 4, false, {0, 2, 0, 0}},
    {"toc/dvd", DVD, {0x43, 0, 0, 0, 0, 0, 0, 0, 255}, 20, false, {0,    18, 1, 1,    0, 0x14, 1,
                                                                   0,    0,  0, 0,    0, 0,    0x14,
                                                                   0xaa, 0,  0, 0x20, 0, 0}},
    {"toc/dvd-msf-stops-at-the-last-one",
     DVD,
     {0x43, 2, 0, 0, 0, 0, 0xaa, 0, 255},
     12,
     false,
     {0, 10, 1, 1, 0, 0x14, 0xaa, 0, 0, 255, 59, 74}},
    /* READ DISC and TRACK INFORMATION */
    {"disc-information", CD, {0x51, 0, 0, 0, 0, 0, 0, 0, 255}, 34, false, {0,   32,   0x0e, 1,   1,   1,
                                                                           1,   0x20, 0,    0,   0,   0,
                                                                           0,   0,    0,    0,   255, 255,
                                                                           255, 255,  255,  255, 255, 255}},
    {"track-information/by-number", CD, {0x52, 1, 0, 0, 0, 1, 0, 0, 255}, 36, false, {0, 34, 1, 1, 0, 4, 1,
                                                                                      0, 0,  0, 0, 0, 0, 0,
                                                                                      0, 0,  0, 0, 0, 0, 0,
                                                                                      0, 0,  0, 0, 0, 2, 0}},
    {"track-information/by-lba", CD, {0x52, 0, 0, 0, 1, 0xff, 0, 0, 255}, 4, true, {0, 34, 1, 1}},
    {"track-information/by-session", CD, {0x52, 2, 0, 0, 0, 1, 0, 0, 255}, 4, true, {0, 34, 1, 1}},
    /* READ DISC STRUCTURE */
    {"structure/dvd-list",
     EMPTY,
     {0xad, 0, 0, 0, 0, 0, 0, 0xff, 1, 0},
     20,
     false,
     {0, 18, 0, 0, 0x00, 0x40, 8, 4, 0x01, 0x40, 0, 8, 0x04, 0x40, 8, 4, 0xff, 0x40, 0, 20}},
    {"structure/bd-list",
     EMPTY,
     {0xad, 1, 0, 0, 0, 0, 0, 0xff, 1, 0},
     12,
     false,
     {0, 10, 0, 0, 0x00, 0x40, 0x10, 4, 0xff, 0x40, 0, 12}},
    {"structure/dvd-physical",
     DVD,
     {0xad, 0, 0, 0, 0, 0, 0, 0, 0x10, 0},
     24,
     true,
     {8, 2, 0, 0, 0x01, 0x0f, 0x01, 0, 0, 3, 0, 0, 0, 0x22, 0xff, 0xff, 0, 0, 0, 0}},
    /* 4150391 = 259408 * 16 / 2 rounded up to an ECC block: 2075200 on the first layer */
    {"structure/dvd-physical-two-layers",
     DVD9,
     {0xad, 0, 0, 0, 0, 0, 1, 0, 0x10, 0},
     20,
     true,
     {8, 2, 0, 0, 0x01, 0x0f, 0x31, 0, 0, 3, 0, 0, 0, 0xfc, 0xff, 0xf6, 0, 0x22, 0xaa, 0x3f}},
    {"structure/dvd-copyright", DVD, {0xad, 0, 0, 0, 0, 0, 0, 1, 0x10, 0}, 8, false, {0, 6}},
    {"structure/dvd-manufacturer", DVD, {0xad, 0, 0, 0, 0, 0, 0, 4, 0x10, 0}, 100, true, {8, 2}},
    {"structure/bd-information",
     BD,
     {0xad, 1, 0, 0, 0, 0, 0, 0, 0x20, 0},
     17,
     true,
     {0x10, 2, 0, 0, 'D', 'I', 1, 1, 1, 0, 0, 64 | 0x80, 'B', 'D', 'O', 1, 0x11}},
    /* GET CONFIGURATION */
    {"configuration/empty-profile",
     EMPTY,
     {0x46, 2, 0, 0, 0, 0, 0, 0, 255},
     24,
     false,
     {0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 3, 12, 0, 0x40, 0, 0, 0, 0x10, 0, 0, 0, 8, 0, 0}},
    {"configuration/cd-profile", CD, {0x46, 2, 0, 0, 0, 0, 0, 0, 255}, 24, false, {0, 0,    0, 20, 0, 0,
                                                                                   0, 8,    0, 0,  3, 12,
                                                                                   0, 0x40, 0, 0,  0, 0x10,
                                                                                   0, 0,    0, 8,  1, 0}},
    {"configuration/dvd-profile", DVD9, {0x46, 2, 0, 0, 0, 0, 0, 0, 255}, 24, false, {0, 0,    0, 20, 0, 0,
                                                                                      0, 0x10, 0, 0,  3, 12,
                                                                                      0, 0x40, 0, 0,  0, 0x10,
                                                                                      1, 0,    0, 8,  0, 0}},
    {"configuration/bd-profile", BD, {0x46, 2, 0, 0, 0, 0, 0, 0, 255}, 24, false, {0, 0,    0, 20, 0, 0,
                                                                                   0, 0x40, 0, 0,  3, 12,
                                                                                   0, 0x40, 1, 0,  0, 0x10,
                                                                                   0, 0,    0, 8,  0, 0}},
    {"configuration/one/core", CD, {0x46, 2, 0, 1, 0, 0, 0, 0, 255}, 20, false, {0, 0, 0, 16,   0, 0, 0,
                                                                                 8, 0, 1, 0x0b, 8, 0, 0,
                                                                                 0, 2, 3, 0,    0, 0}},
    {"configuration/one/morphing",
     CD,
     {0x46, 2, 0, 2, 0, 0, 0, 0, 255},
     16,
     false,
     {0, 0, 0, 12, 0, 0, 0, 8, 0, 2, 7, 4, 2, 0, 0, 0}},
    {"configuration/one/removable",
     CD,
     {0x46, 2, 0, 3, 0, 0, 0, 0, 255},
     16,
     false,
     {0, 0, 0, 12, 0, 0, 0, 8, 0, 3, 0x0b, 4, 0x39, 0, 0, 0}},
    {"configuration/one/random-readable",
     DVD,
     {0x46, 2, 0, 0x10, 0, 0, 0, 0, 255},
     20,
     false,
     {0, 0, 0, 16, 0, 0, 0, 0x10, 0, 0x10, 1, 8, 0, 0, 8, 0, 0, 16, 1, 0}},
    {"configuration/one/cd-read",
     CD,
     {0x46, 2, 0, 0x1e, 0, 0, 0, 0, 255},
     16,
     false,
     {0, 0, 0, 12, 0, 0, 0, 8, 0, 0x1e, 9, 4, 1, 0, 0, 0}},
    {"configuration/one/cd-read-not-current",
     BD,
     {0x46, 2, 0, 0x1e, 0, 0, 0, 0, 255},
     16,
     false,
     {0, 0, 0, 12, 0, 0, 0, 0x40, 0, 0x1e, 8, 4, 1, 0, 0, 0}},
    {"configuration/one/dvd-read",
     DVD,
     {0x46, 2, 0, 0x1f, 0, 0, 0, 0, 255},
     16,
     false,
     {0, 0, 0, 12, 0, 0, 0, 0x10, 0, 0x1f, 5, 4, 0, 0, 0, 0}},
    {"configuration/one/bd-read",
     BD,
     {0x46, 2, 0, 0x40, 0, 0, 0, 0, 255},
     40,
     false,
     {0, 0, 0, 36, 0, 0, 0, 0x40, 0, 0x40, 5, 28, 0, 0, 0, 0, 0,
      0, 0, 0, 0,  0, 0, 0, 0,    0, 0,    0, 0,  0, 0, 0, 0, 2}},
    {"configuration/one/serial", CD, {0x46, 2, 1, 8, 0, 0, 0, 0, 255}, 20, false, {0,   0,   0,   16,  0,
                                                                                   0,   0,   8,   1,   8,
                                                                                   3,   8,   'Q', 'M', '0',
                                                                                   '0', '0', '0', '1', ' '}},
    {"configuration/one/unknown-is-a-header",
     CD,
     {0x46, 2, 0, 0x2a, 0, 0, 0, 0, 255},
     8,
     false,
     {0, 0, 0, 4, 0, 0, 0, 8}},
    {"configuration/behind-the-last",
     CD,
     {0x46, 0, 0xff, 0xff, 0, 0, 0, 0, 255},
     8,
     false,
     {0, 0, 0, 4, 0, 0, 0, 8}},
    {"configuration/all-from-0107",
     EMPTY,
     {0x46, 0, 1, 7, 0, 0, 0, 0, 255},
     28,
     false,
     {0, 0, 0, 24, 0, 0, 0,   0,   1,   7,   0x10, 4,   0x18, 0,
      0, 0, 1, 8,  3, 8, 'Q', 'M', '0', '0', '0',  '0', '1',  ' '}},
    {"configuration/current-from-0010-when-empty",
     EMPTY,
     {0x46, 1, 0, 0x10, 0, 0, 0, 0, 255},
     32,
     false,
     {0, 0, 0, 28, 0, 0, 0, 0, 1,   0,   3,   0,   1,   5,   7,   4,
      0, 0, 0, 0,  1, 8, 3, 8, 'Q', 'M', '0', '0', '0', '0', '1', ' '}},
    /* GET EVENT STATUS NOTIFICATION */
    {"events/none-supported", CD, {0x4a, 1, 0, 0, 0x20, 0, 0, 0, 255}, 4, false, {0, 2, 0x80, 0x5e}},
    {"events/media", CD, {0x4a, 1, 0, 0, 0x10, 0, 0, 0, 255}, 8, false, {0, 6, 4, 0x5e, 0, 2, 0, 0}},
    {"events/media-empty", EMPTY, {0x4a, 1, 0, 0, 0x10, 0, 0, 0, 255}, 8, false, {0, 6, 4, 0x5e, 0, 0, 0, 0}},
    {"events/operational", CD, {0x4a, 1, 0, 0, 0x02, 0, 0, 0, 255}, 8, false, {0, 6, 1, 0x5e, 0, 0, 0, 0}},
    {"events/power", CD, {0x4a, 1, 0, 0, 0x04, 0, 0, 0, 255}, 8, false, {0, 6, 2, 0x5e, 0, 1, 0, 0}},
    {"events/external", CD, {0x4a, 1, 0, 0, 0x08, 0, 0, 0, 255}, 8, false, {0, 6, 3, 0x5e, 0, 0, 0, 0}},
    {"events/busy", CD, {0x4a, 1, 0, 0, 0x40, 0, 0, 0, 255}, 8, false, {0, 6, 6, 0x5e, 0, 0, 0, 0}},
    {"events/all-asked-none-there",
     CD,
     {0x4a, 1, 0, 0, 0xff, 0, 0, 0, 255},
     8,
     false,
     {0, 6, 1, 0x5e, 0, 0, 0, 0}},
    /* MECHANISM STATUS, SUB-CHANNEL, HEADER, BUFFER, PERFORMANCE */
    {"mechanism", CD, {0xbd, 0, 0, 0, 0, 0, 0, 0, 0, 255}, 8, false, {0, 0, 0, 0, 0, 1, 0, 0}},
    {"sub-channel/status-only", CD, {0x42, 0, 0, 0, 0, 0, 0, 0, 255}, 4, false, {0, 0x15, 0, 0}},
    {"sub-channel/position",
     CD,
     {0x42, 0, 0x40, 1, 0, 0, 0, 0, 255},
     16,
     false,
     {0, 0x15, 0, 12, 1, 0x14, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"sub-channel/position-msf",
     CD,
     {0x42, 2, 0x40, 1, 0, 0, 0, 0, 255},
     16,
     false,
     {0, 0x15, 0, 12, 1, 0x14, 1, 1, 0, 0, 2, 0, 0, 0, 0, 0}},
    {"sub-channel/catalogue-number-none",
     CD,
     {0x42, 0, 0x40, 2, 0, 0, 0, 0, 255},
     24,
     false,
     {0, 0x15, 0, 20, 2}},
    {"sub-channel/isrc-none",
     CD,
     {0x42, 0, 0x40, 3, 0, 0, 1, 0, 255},
     24,
     false,
     {0, 0x15, 0, 20, 3, 0x14, 1, 0}},
    {"header/lba", CD, {0x44, 0, 0, 0, 0, 16, 0, 0, 255}, 8, false, {1, 0, 0, 0, 0, 0, 0, 16}},
    {"header/msf", CD, {0x44, 2, 0, 0, 0, 16, 0, 0, 255}, 8, false, {1, 0, 0, 0, 0, 0, 2, 16}},
    {"buffer-capacity",
     CD,
     {0x5c, 0, 0, 0, 0, 0, 0, 0, 255},
     12,
     false,
     {0, 10, 0, 0, 0, 0x20, 0, 0, 0, 0x20, 0, 0}},
    {"buffer-capacity/blocks",
     CD,
     {0x5c, 1, 0, 0, 0, 0, 0, 0, 255},
     12,
     false,
     {0, 10, 0, 1, 0, 0, 0, 0, 0, 0, 4, 0}},
    {"performance", CD, {0xac, 0x10, 0, 0, 0, 1, 0, 0, 0, 4}, 24, false, {0, 0, 0, 20,   0, 0, 0,    0,
                                                                          0, 0, 0, 1,    0, 0, 0x23, 0xd5,
                                                                          0, 0, 1, 0xff, 0, 0, 0x23, 0xd5}},
    {"performance/dvd",
     DVD,
     {0xac, 0x10, 0, 0, 0, 0, 0, 0, 0, 1},
     24,
     false,
     {0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x56, 0x90, 0, 0x1f, 0xff, 0xff, 0, 0, 0x56, 0x90}},
    {"performance/exceptions-none", CD, {0xac, 0x11, 0, 0, 0, 0, 0, 0, 0, 4}, 8, false, {0, 0, 0, 4, 1}},
    /* REQUEST SENSE without anything to say */
    {"request-sense/nothing", CD, {0x03, 0, 0, 0, 255}, 18, false, {0x70, 0, 0, 0, 0, 0, 0, 10}},
    /* MODE SENSE */
    {"mode/recovery-10",
     CD,
     {0x5a, 0, 0x01, 0, 0, 0, 0, 0, 255},
     20,
     false,
     {0, 18, 1, 0, 0, 0, 0, 0, 0x01, 0x0a, 0, 5}},
    {"mode/recovery-6", CD, {0x1a, 0, 0x01, 0, 255}, 16, false, {15, 1, 0, 0, 0x01, 0x0a, 0, 5}},
    {"mode/recovery-6-empty", EMPTY, {0x1a, 0, 0x01, 0, 255}, 16, false, {15, 0x70, 0, 0, 0x01, 0x0a, 0, 5}},
    {"mode/recovery-mask",
     CD,
     {0x5a, 0, 0x41, 0, 0, 0, 0, 0, 255},
     20,
     false,
     {0, 18, 1, 0, 0, 0, 0, 0, 0x01, 0x0a, 0x37, 0xff}},
    {"mode/recovery-default",
     CD,
     {0x5a, 0, 0x81, 0, 0, 0, 0, 0, 255},
     20,
     false,
     {0, 18, 1, 0, 0, 0, 0, 0, 0x01, 0x0a, 0, 5}},
    {"mode/device-parameters",
     CD,
     {0x5a, 8, 0x0d, 0, 0, 0, 0, 0, 255},
     16,
     false,
     {0, 14, 1, 0, 0, 0, 0, 0, 0x0d, 6, 0, 0x0d, 0, 60, 0, 75}},
    {"mode/audio", CD, {0x5a, 0, 0x0e, 0, 0, 0, 0, 0, 255}, 24, false, {0,    22,   1, 0,   0, 0, 0, 0,
                                                                        0x0e, 0x0e, 4, 0,   0, 0, 0, 75,
                                                                        1,    255,  2, 255, 0, 0, 0, 0}},
    {"mode/power", CD, {0x5a, 0, 0x1a, 0, 0, 0, 0, 0, 255}, 20, false, {0, 18, 1, 0, 0, 0, 0, 0, 0x1a, 0x0a}},
    {"mode/timeout",
     CD,
     {0x5a, 0, 0x1d, 0, 0, 0, 0, 0, 255},
     18,
     false,
     {0, 16, 1, 0, 0, 0, 0, 0, 0x1d, 8, 0, 0, 0, 0, 0, 30, 0, 60}},
    {"mode/capabilities",
     CD,
     {0x5a, 0, 0x2a, 0, 0, 0, 0, 0, 255},
     40,
     false,
     {0, 38, 1, 0, 0, 0, 0, 0, 0x2a, 30, 0x3b, 0, 0x70, 0x63, 0x29, 0, 0x23, 0xd5, 1, 0, 8, 0, 0x23, 0xd5}},
    {"mode/capabilities-dvd-speed",
     DVD,
     {0x5a, 0, 0x2a, 0, 0, 0, 0, 0, 255},
     18,
     true,
     {0, 38, 0, 0, 0, 0, 0, 0, 0x2a, 30, 0x3b, 0, 0x70, 0x63, 0x29, 0, 0x56, 0x90}},
    {"mode/all-6", CD, {0x1a, 0, 0x3f, 0, 255}, 6, true, {93, 1, 0, 0, 0x01, 0x0a}},
    {"mode/all-10", CD, {0x5a, 0, 0x3f, 0, 0, 0, 0, 1, 0}, 10, true, {0, 96, 1, 0, 0, 0, 0, 0, 0x01, 0x0a}},
    {"mode/all-pages-and-sub-pages",
     CD,
     {0x5a, 0, 0x3f, 0xff, 0, 0, 0, 1, 0},
     10,
     true,
     {0, 96, 1, 0, 0, 0, 0, 0, 0x01, 0x0a}},
};

static void test_bytes(gconstpointer data)
{
    const Row *row = data;
    MmcGuest g;
    mmc_guest_setup(&g, row->disc);
    g_assert_cmphex(mmc_guest_run(&g, row->cdb, sizeof row->cdb), ==, 0);
    if (row->more) {
        g_assert_cmpuint(g.data->len, >=, row->n);
        g_assert_cmpmem(g.data->data, row->n, row->bytes, row->n);
    } else {
        g_assert_cmpmem(g.data->data, g.data->len, row->bytes, row->n);
    }
    mmc_guest_teardown(&g);
}

/* Where the CDB has its allocation length: byte, and bytes. 0: it has none. */
static unsigned allocation_field(uint8_t opcode, unsigned *ret_bytes)
{
    switch (opcode) {
    case 0x03:
    case 0x1a:
        *ret_bytes = 1;
        return 4;
    case 0x12:
        *ret_bytes = 2;
        return 3;
    case 0x25:
    case 0xac:
        *ret_bytes = 0;
        return 0;
    case 0xa0:
        *ret_bytes = 4;
        return 6;
    case 0xad:
    case 0xbd:
        *ret_bytes = 2;
        return 8;
    default:
        *ret_bytes = 2;
        return 7;
    }
}

static void set_allocation(uint8_t *cdb, unsigned at, unsigned bytes, uint32_t value)
{
    for (unsigned i = 0; i < bytes; i++) {
        cdb[at + i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    }
}

/* For each length from 0 to more than there is: exactly that much of the same reply, whose length field still
 * tells all of it (DOS's OAKCDROM.SYS asks in small pieces). */
static void test_cut(gconstpointer data)
{
    const Row *row = data;
    unsigned bytes;
    const unsigned at = allocation_field(row->cdb[0], &bytes);
    const unsigned most = bytes == 1 ? 255 : 5000;
    uint8_t cdb[12];
    MmcGuest g;
    memcpy(cdb, row->cdb, sizeof cdb);
    mmc_guest_setup(&g, row->disc);
    set_allocation(cdb, at, bytes, most);
    g_assert_cmphex(mmc_guest_run(&g, cdb, sizeof cdb), ==, 0);
    g_autoptr(GByteArray) whole = g_byte_array_new();
    g_byte_array_append(whole, g.data->data, g.data->len);
    for (unsigned length = 0; length <= MIN(most, whole->len + 3); length += length < 300 ? 1 : 97) {
        set_allocation(cdb, at, bytes, length);
        g_assert_cmphex(mmc_guest_run(&g, cdb, sizeof cdb), ==, 0);
        g_assert_cmpmem(g.data->data, g.data->len, whole->data, MIN(length, whole->len));
        g_assert_cmpuint(g.chunks, ==, length > 0);
    }
    mmc_guest_teardown(&g);
}

/* The number of descriptors is the limit there. */
static void test_performance_cut(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, CD);
    assert_good(&g, 0xac, 0x10, 0, 0, 0, 0, 0, 0, 0, 0);
    assert_data(&g, 0, 0, 0, 20, 0, 0, 0, 0);
    mmc_guest_teardown(&g);
}

typedef struct Refusal {
    const char *name, *disc;
    uint8_t cdb[12];
    uint32_t sense;
} Refusal;

static const Refusal refusals[] = {
    {"inquiry/unknown-page", CD, {0x12, 1, 0xb1, 0, 96}, 0x052400},
    {"inquiry/page-without-evpd", CD, {0x12, 0, 0x80, 0, 96}, 0x052400},
    {"inquiry/cmddt", CD, {0x12, 2, 0, 0, 96}, 0x052400},
    {"report-luns/select", CD, {0xa0, 0, 3, 0, 0, 0, 0, 0, 0, 255}, 0x052400},
    {"request-sense/descriptor", CD, {0x03, 1, 0, 0, 18}, 0x052400},
    {"capacity/lba-without-pmi", CD, {0x25, 0, 0, 0, 0, 1}, 0x052400},
    {"toc/track-beyond", CD, {0x43, 0, 0, 0, 0, 0, 2, 0, 255}, 0x052400},
    {"toc/session-beyond", CD, {0x43, 0, 2, 0, 0, 0, 2, 0, 255}, 0x052400},
    {"toc/pma", CD, {0x43, 0, 3, 0, 0, 0, 0, 0, 255}, 0x052400},
    {"toc/atip", CD, {0x43, 0, 4, 0, 0, 0, 0, 0, 255}, 0x052400},
    {"toc/reserved", CD, {0x43, 0, 9, 0, 0, 0, 0, 0, 255}, 0x052400},
    {"toc/full-of-a-dvd", DVD, {0x43, 0, 2, 0, 0, 0, 0, 0, 255}, 0x052400},
    {"disc-information/resources", CD, {0x51, 1, 0, 0, 0, 0, 0, 0, 34}, 0x052400},
    {"track-information/lba-beyond", CD, {0x52, 0, 0, 0, 2, 0, 0, 0, 36}, 0x052100},
    {"track-information/track-0", CD, {0x52, 1, 0, 0, 0, 0, 0, 0, 36}, 0x052400},
    {"track-information/track-2", CD, {0x52, 1, 0, 0, 0, 2, 0, 0, 36}, 0x052400},
    {"track-information/session-0", CD, {0x52, 2, 0, 0, 0, 0, 0, 0, 36}, 0x052400},
    {"track-information/reserved", CD, {0x52, 3, 0, 0, 0, 1, 0, 0, 36}, 0x052400},
    {"structure/of-a-cd", CD, {0xad, 0, 0, 0, 0, 0, 0, 0, 8, 4}, 0x053002},
    {"structure/bd-of-a-dvd", DVD, {0xad, 1, 0, 0, 0, 0, 0, 0, 8, 4}, 0x053002},
    {"structure/unknown-medium", DVD, {0xad, 2, 0, 0, 0, 0, 0, 0xff, 8, 4}, 0x052400},
    {"structure/no-such-layer", DVD, {0xad, 0, 0, 0, 0, 0, 1, 0, 8, 4}, 0x052400},
    {"structure/no-bca", DVD, {0xad, 0, 0, 0, 0, 0, 0, 3, 8, 4}, 0x052400},
    {"structure/empty", EMPTY, {0xad, 0, 0, 0, 0, 0, 0, 0, 8, 4}, 0x023a01},
    {"configuration/rt-3", CD, {0x46, 3, 0, 0, 0, 0, 0, 0, 255}, 0x052400},
    {"events/asynchronous", CD, {0x4a, 0, 0, 0, 0x10, 0, 0, 0, 8}, 0x052400},
    {"sub-channel/format", CD, {0x42, 0, 0x40, 4, 0, 0, 0, 0, 24}, 0x052400},
    {"sub-channel/isrc-track", CD, {0x42, 0, 0x40, 3, 0, 0, 2, 0, 24}, 0x052400},
    {"sub-channel/dvd", DVD, {0x42, 0, 0x40, 1, 0, 0, 0, 0, 24}, 0x053002},
    {"header/beyond", CD, {0x44, 0, 0, 0, 2, 0, 0, 0, 8}, 0x052100},
    {"seek/beyond", CD, {0x2b, 0, 0, 0, 2, 0}, 0x052100},
    {"verify/bytchk", CD, {0x2f, 2, 0, 0, 0, 0, 0, 0, 1}, 0x052400},
    {"verify/beyond", CD, {0x2f, 0, 0, 0, 1, 0xff, 0, 0, 2}, 0x052100},
    {"play/beyond", CD, {0x45, 0, 0, 0, 1, 0xff, 0, 0, 2}, 0x052100},
    {"play/bad-msf", CD, {0x47, 0, 0, 0, 2, 75, 0, 3, 0}, 0x052400},
    {"play/backwards", CD, {0x47, 0, 0, 0, 3, 0, 0, 2, 0}, 0x052400},
    {"play/no-such-track", CD, {0x48, 0, 0, 0, 2, 1, 0, 2, 1}, 0x052400},
    {"start-stop/sleep-6", CD, {0x1b, 0, 0, 0, 0x60}, 0x052400},
    {"start-stop/format-layer", CD, {0x1b, 0, 0, 1, 0x01}, 0x052400},
    {"performance/tolerance", CD, {0xac, 0x00, 0, 0, 0, 0, 0, 0, 0, 1}, 0x052400},
    {"performance/writing", CD, {0xac, 0x14, 0, 0, 0, 0, 0, 0, 0, 1}, 0x052400},
    {"performance/type", CD, {0xac, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 3}, 0x052400},
    {"performance/beyond", CD, {0xac, 0x10, 0, 0, 2, 0, 0, 0, 0, 1}, 0x052100},
    {"speed/none", CD, {0xbb, 0, 0, 0}, 0x052400},
    {"streaming/type", CD, {0xb6, 0, 0, 0, 0, 0, 0, 0, 5, 0, 28}, 0x052400},
    {"streaming/length", CD, {0xb6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 27}, 0x051a00},
    {"mode/saved", CD, {0x5a, 0, 0xc1, 0, 0, 0, 0, 0, 255}, 0x053900},
    {"mode/unknown-page", CD, {0x5a, 0, 0x05, 0, 0, 0, 0, 0, 255}, 0x052400},
    {"mode/sub-page", CD, {0x5a, 0, 0x01, 1, 0, 0, 0, 0, 255}, 0x052400},
    {"mode-select/save", CD, {0x55, 0x11, 0, 0, 0, 0, 0, 0, 20}, 0x052400},
    {"mode-select/too-long", CD, {0x55, 0x10, 0, 0, 0, 0, 0, 0xff, 0xff}, 0x051a00},
};

static void test_refusal(gconstpointer data)
{
    const Refusal *row = data;
    MmcGuest g;
    mmc_guest_setup(&g, row->disc);
    g_assert_cmphex(mmc_guest_run(&g, row->cdb, sizeof row->cdb), ==, row->sense);
    g_assert_cmpuint(g.data->len, ==, 0);
    g_assert_cmphex(mmc_guest_request_sense(&g), ==, row->sense);
    mmc_guest_teardown(&g);
}

/* Data that was in memory before never shows (FreeBSD-SA-24:11, QEMU's page 0E). */
static void test_no_stale_bytes(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, "mem,size=1M,pattern=238"); /* EEh */
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (g_strcmp0(rows[i].disc, CD) != 0 || rows[i].more) {
            continue;
        }
        assert_good(&g, 0x28, 0, 0, 0, 0, 0, 0, 1, 0); /* dirties what buffers there are */
        assert_good(&g, 0x2b);                         /* the position that some replies hold */
        g_assert_cmphex(mmc_guest_run(&g, rows[i].cdb, sizeof rows[i].cdb), ==, 0);
        g_assert_cmpmem(g.data->data, g.data->len, rows[i].bytes, rows[i].n);
    }
    mmc_guest_teardown(&g);
}

static void add_named(const char *group, const char *name, gconstpointer row, GTestDataFunc test)
{
    g_autofree char *path = g_strdup_printf("/mmc/%s/%s", group, name);
    g_test_add_data_func(path, row, test);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        unsigned bytes;
        add_named("replies", rows[i].name, &rows[i], test_bytes);
        if (allocation_field(rows[i].cdb[0], &bytes)) {
            add_named("cut", rows[i].name, &rows[i], test_cut);
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(refusals); i++) {
        add_named("refusals", refusals[i].name, &refusals[i], test_refusal);
    }
    g_test_add_func("/mmc/cut/performance", test_performance_cut);
    g_test_add_func("/mmc/replies/no-stale-bytes", test_no_stale_bytes);
    return g_test_run();
}
