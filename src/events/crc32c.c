/* crc32c.c: CRC-32C by table and by the crc32 instruction of SSE4.2. */
#include "events/crc32c.h"

#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#include "lockstep/status.h"

#define MASK_DELTA UINT32_C(0xA282EAD8)

/* Entry i is i after four steps of division by the polynomial 0x82F63B78 (0x1EDC6F41 with its bits
 * reversed).  Half a byte at a time keeps the table short enough to be a constant that a reader can check. */
static const uint32_t nibble[16] = {
    0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1, 0x417B1DBC, 0x5125DAD3, 0x61C69362, 0x7198540D,
    0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9, 0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75,
};

uint32_t lsi_crc32c_table(uint32_t crc, const void *data, size_t n)
{
    const uint8_t *p = data;
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = (crc >> 4) ^ nibble[crc & 15];
        crc = (crc >> 4) ^ nibble[crc & 15];
    }
    return ~crc;
}

#if defined(__x86_64__)

bool lsi_crc32c_has_hardware(void)
{
    return __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) uint32_t lsi_crc32c_hardware(uint32_t crc, const void *data, size_t n)
{
    const uint8_t *p = data;
    uint64_t wide = (uint32_t)~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        wide = _mm_crc32_u64(wide, word);
    }
    uint32_t narrow = (uint32_t)wide;
    for (; n > 0; n--) narrow = _mm_crc32_u8(narrow, *p++);
    return ~narrow;
}

#else

bool lsi_crc32c_has_hardware(void)
{
    return false;
}

uint32_t lsi_crc32c_hardware(uint32_t crc, const void *data, size_t n)
{
    LS_BUG_IF(!lsi_crc32c_has_hardware());
    return lsi_crc32c_table(crc, data, n);
}

#endif

uint32_t ls_crc32c(uint32_t crc, const void *data, size_t n)
{
    return lsi_crc32c_has_hardware() ? lsi_crc32c_hardware(crc, data, n) : lsi_crc32c_table(crc, data, n);
}

uint32_t ls_crc32c_masked(const void *data, size_t n)
{
    uint32_t crc = ls_crc32c(0, data, n);
    return ((crc >> 15) | (crc << 17)) + MASK_DELTA;
}
