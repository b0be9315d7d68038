/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Constants of the ATA and ATAPI standards (ATA8-ACS, ATA/ATAPI-6 for the parallel parts, SATA 3). No code.
 */
#ifndef SPINDLE_HW_IDE_ATA_REGS_H
#define SPINDLE_HW_IDE_ATA_REGS_H

/* Status register (ACS 6.2.9). */
#define ATA_STATUS_ERR  0x01
#define ATA_STATUS_DRQ  0x08
#define ATA_STATUS_DSC  0x10 /* seek complete / service */
#define ATA_STATUS_DF   0x20
#define ATA_STATUS_DRDY 0x40
#define ATA_STATUS_BSY  0x80
#define ATA_STATUS_IDLE (ATA_STATUS_DRDY | ATA_STATUS_DSC)

/* Error register. */
#define ATA_ERROR_ABRT 0x04
#define ATA_ERROR_IDNF 0x10
#define ATA_ERROR_UNC  0x40
#define ATA_ERROR_ICRC 0x80
/* After a reset or a diagnostic the register holds the diagnostic code: 1 is "passed" (ACS 7.12). */
#define ATA_DIAGNOSTIC_OK 0x01

/* Device register. */
#define ATA_DEVICE_SELECT 0x10
#define ATA_DEVICE_LBA    0x40
#define ATA_DEVICE_OBS    0xa0 /* bits that read as ones */
#define ATA_DEVICE_FUA    0x80 /* in FPDMA QUEUED commands */

/* Device control register. */
#define ATA_CONTROL_NIEN 0x02
#define ATA_CONTROL_SRST 0x04
#define ATA_CONTROL_HOB  0x80

/* Interrupt reason, in the count register during and after PACKET (ACS 7.18). */
#define ATAPI_REASON_CD 0x01
#define ATAPI_REASON_IO 0x02

/* Features register of PACKET. */
#define ATAPI_FEATURE_DMA 0x01
#define ATAPI_FEATURE_OVL 0x02

#define ATAPI_PACKET_SIZE 12 /* IDENTIFY PACKET DEVICE word 0 bits 1:0 */

#define ATA_SECTOR_SIZE   512
#define ATA_IDENTIFY_SIZE 512

/* Command codes that somebody here implements. */
#define ATA_CMD_NOP                    0x00
#define ATA_CMD_DATA_SET_MANAGEMENT    0x06
#define ATA_CMD_DEVICE_RESET           0x08
#define ATA_CMD_RECALIBRATE            0x10
#define ATA_CMD_READ_SECTORS           0x20
#define ATA_CMD_READ_SECTORS_NORETRY   0x21
#define ATA_CMD_READ_SECTORS_EXT       0x24
#define ATA_CMD_READ_DMA_EXT           0x25
#define ATA_CMD_READ_NATIVE_MAX_EXT    0x27
#define ATA_CMD_READ_MULTIPLE_EXT      0x29
#define ATA_CMD_READ_LOG_EXT           0x2f
#define ATA_CMD_WRITE_SECTORS          0x30
#define ATA_CMD_WRITE_SECTORS_NORETRY  0x31
#define ATA_CMD_WRITE_SECTORS_EXT      0x34
#define ATA_CMD_WRITE_DMA_EXT          0x35
#define ATA_CMD_WRITE_MULTIPLE_EXT     0x39
#define ATA_CMD_WRITE_VERIFY           0x3c /* of ATA-1 to 3 */
#define ATA_CMD_WRITE_DMA_FUA_EXT      0x3d
#define ATA_CMD_READ_VERIFY            0x40
#define ATA_CMD_READ_VERIFY_NORETRY    0x41
#define ATA_CMD_READ_VERIFY_EXT        0x42
#define ATA_CMD_READ_FPDMA             0x60
#define ATA_CMD_WRITE_FPDMA            0x61
#define ATA_CMD_SEEK                   0x70
#define ATA_CMD_DIAGNOSTIC             0x90
#define ATA_CMD_INITIALIZE_PARAMETERS  0x91
#define ATA_CMD_PACKET                 0xa0
#define ATA_CMD_IDENTIFY_PACKET        0xa1
#define ATA_CMD_SMART                  0xb0
#define ATA_CMD_READ_MULTIPLE          0xc4
#define ATA_CMD_WRITE_MULTIPLE         0xc5
#define ATA_CMD_SET_MULTIPLE           0xc6
#define ATA_CMD_READ_DMA               0xc8
#define ATA_CMD_READ_DMA_NORETRY       0xc9
#define ATA_CMD_WRITE_DMA              0xca
#define ATA_CMD_WRITE_DMA_NORETRY      0xcb
#define ATA_CMD_WRITE_MULTIPLE_FUA_EXT 0xce
#define ATA_CMD_STANDBY_IMMEDIATE      0xe0
#define ATA_CMD_IDLE_IMMEDIATE         0xe1
#define ATA_CMD_STANDBY                0xe2
#define ATA_CMD_IDLE                   0xe3
#define ATA_CMD_CHECK_POWER_MODE       0xe5
#define ATA_CMD_SLEEP                  0xe6
#define ATA_CMD_FLUSH_CACHE            0xe7
#define ATA_CMD_FLUSH_CACHE_EXT        0xea
#define ATA_CMD_IDENTIFY               0xec
#define ATA_CMD_SET_FEATURES           0xef
#define ATA_CMD_READ_NATIVE_MAX        0xf8
/* The power commands' codes of ATA-1, still sent by old firmware. */
#define ATA_CMD_OLD_STANDBY_IMMEDIATE 0x94
#define ATA_CMD_OLD_IDLE_IMMEDIATE    0x95
#define ATA_CMD_OLD_STANDBY           0x96
#define ATA_CMD_OLD_IDLE              0x97
#define ATA_CMD_OLD_CHECK_POWER_MODE  0x98
#define ATA_CMD_OLD_SLEEP             0x99

/* SET FEATURES subcommands (ACS 7.45). */
#define ATA_FEATURE_ENABLE_WRITE_CACHE  0x02
#define ATA_FEATURE_SET_TRANSFER_MODE   0x03
#define ATA_FEATURE_ENABLE_APM          0x05
#define ATA_FEATURE_DISABLE_READ_AHEAD  0x55
#define ATA_FEATURE_DISABLE_REVERT      0x66
#define ATA_FEATURE_DISABLE_WRITE_CACHE 0x82
#define ATA_FEATURE_ENABLE_READ_AHEAD   0xaa
#define ATA_FEATURE_ENABLE_REVERT       0xcc

/* CHECK POWER MODE's answer in the count register (ACS 7.3). */
#define ATA_POWER_STANDBY 0x00
#define ATA_POWER_IDLE    0x80
#define ATA_POWER_ACTIVE  0xff

#endif
