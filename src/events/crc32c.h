/* crc32c.h: the checksum of TFRecord files: CRC-32C (Castagnoli polynomial, reflected), as in RFC 3720.
 *
 * Both implementations give the same number; ls_crc32c asks the processor which of them it can run.  All
 * functions here may be called from any thread. */
#ifndef LS_EVENTS_CRC32C_H
#define LS_EVENTS_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The checksum of `n` bytes that follow bytes with the checksum `crc` (0 at the start). */
uint32_t ls_crc32c(uint32_t crc, const void *data, size_t n);
/* What a TFRecord stores: the checksum of bytes that themselves contain checksums would be weak, so it is
 * turned by 15 bits and moved by a constant. */
uint32_t ls_crc32c_masked(const void *data, size_t n);

/* The readable version, half a byte at a time by a table. */
uint32_t lsi_crc32c_table(uint32_t crc, const void *data, size_t n);
/* The version with the processor's crc32 instruction; only where lsi_crc32c_has_hardware. */
uint32_t lsi_crc32c_hardware(uint32_t crc, const void *data, size_t n);
bool lsi_crc32c_has_hardware(void);

#endif
