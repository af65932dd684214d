/* test_crc.c: CRC-32C against published values, and its two implementations against each other. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "events/crc32c.h"

/* RFC 3720, appendix B.4, and the check value of the catalogue of CRCs. */
static void known_values(void)
{
    uint8_t bytes[32];
    CHECK_EQ_INT(ls_crc32c(0, "", 0), 0);
    CHECK_EQ_INT(ls_crc32c(0, "123456789", 9), 0xE3069283);
    memset(bytes, 0, sizeof bytes);
    CHECK_EQ_INT(ls_crc32c(0, bytes, 32), 0x8A9136AA);
    memset(bytes, 0xFF, sizeof bytes);
    CHECK_EQ_INT(ls_crc32c(0, bytes, 32), 0x62A8AB43);
    for (int i = 0; i < 32; i++) bytes[i] = (uint8_t)i;
    CHECK_EQ_INT(ls_crc32c(0, bytes, 32), 0x46DD794E);
    for (int i = 0; i < 32; i++) bytes[i] = (uint8_t)(31 - i);
    CHECK_EQ_INT(ls_crc32c(0, bytes, 32), 0x113FDB5C);
}

/* The head of a record of 24 bytes, as TensorFlow writes it. */
static void masked(void)
{
    uint32_t crc = ls_crc32c(0, "123456789", 9);
    CHECK_EQ_INT(ls_crc32c_masked("123456789", 9), (uint32_t)(((crc >> 15) | (crc << 17)) + 0xA282EAD8u));
    CHECK_EQ_INT(ls_crc32c_masked("\x18\0\0\0\0\0\0\0", 8), 0x224B7FA3);
}

static void both_agree(void)
{
    uint8_t bytes[300];
    for (int i = 0; i < 300; i++) bytes[i] = (uint8_t)(i * 167 + 13);
    if (!lsi_crc32c_has_hardware()) {
        printf("no crc32 instruction: only the table was tried\n");
        return;
    }
    for (size_t at = 0; at < 8; at++) {
        for (size_t n = 0; at + n <= 300; n++) {
            if (!CHECK_EQ_INT(lsi_crc32c_table(7, bytes + at, n), lsi_crc32c_hardware(7, bytes + at, n)))
                return;
        }
    }
}

static void in_parts(void)
{
    const char *text = "the quick brown fox jumps over the lazy dog";
    size_t n = strlen(text);
    for (size_t cut = 0; cut <= n; cut++) {
        CHECK_EQ_INT(ls_crc32c(ls_crc32c(0, text, cut), text + cut, n - cut), ls_crc32c(0, text, n));
        CHECK_EQ_INT(lsi_crc32c_table(lsi_crc32c_table(0, text, cut), text + cut, n - cut),
                     ls_crc32c(0, text, n));
    }
}

int main(void)
{
    CHECK_RUN(known_values);
    CHECK_RUN(masked);
    CHECK_RUN(both_agree);
    CHECK_RUN(in_parts);
    return CHECK_DONE();
}
