/* printable.c: what of a text may reach a terminal. */
#include "base/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The length of the character at `s`, of which `n` bytes are there, and whether it may be shown. */
static size_t character(const unsigned char *s, size_t n, bool *good)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t code = s[0];
    const size_t k = code < 0x80 ? 1 : code >> 5 == 6 ? 2 : code >> 4 == 14 ? 3 : code >> 3 == 30 ? 4 : 0;

    *good = false;
    if (k == 0 || k > n) return 1;
    if (k > 1) code &= 0x7fu >> k;
    for (size_t i = 1; i < k; i++) {
        if (s[i] >> 6 != 2) return 1;
        code = code << 6 | (s[i] & 0x3f);
    }
    if (code < least[k] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 1;
    *good = (code >= 0x20 && code < 0x7f) || code == '\t' || code == '\n' || code >= 0xa0;
    if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) *good = false;
    return k;
}

size_t ls_printable(const char *text, size_t n, char *buf, size_t size)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t at = 0;

    while (n > 0) {
        bool good;
        const size_t k = character(s, n, &good), need = good ? k : 4 * k;
        if (at + need >= size) break;
        if (good)
            memcpy(buf + at, s, k);
        else
            for (size_t i = 0; i < k; i++) snprintf(buf + at + 4 * i, 5, "\\x%02x", s[i]);
        at += need;
        s += k;
        n -= k;
    }
    if (size > 0) buf[at] = '\0';
    return at;
}

void ls_printable_in_place(char *text)
{
    size_t n = strlen(text);

    while (n > 0) {
        bool good;
        const size_t k = character((const unsigned char *)text, n, &good);
        if (!good) memset(text, '?', k);
        text += k;
        n -= k;
    }
}
