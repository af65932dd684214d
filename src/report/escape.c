/* escape.c: text from outside on its way into HTML, SVG and JSON.  All three share one decoder of UTF-8, so
 * that a broken byte is the same sign everywhere. */
#include <string.h>

#include "report/report_internal.h"

enum { REPLACEMENT = 0xfffd };

/* The character at *p, which moves on; REPLACEMENT for what is no UTF-8 (over-long, surrogate, cut). */
static unsigned next_character(const unsigned char **p)
{
    static const unsigned least[] = {0, 0x80, 0x800, 0x10000};
    unsigned c = *(*p)++;
    int more;

    if (c < 0x80) return c;
    if (c >= 0xc2 && c <= 0xdf) {
        more = 1;
        c &= 0x1f;
    } else if (c >= 0xe0 && c <= 0xef) {
        more = 2;
        c &= 0x0f;
    } else if (c >= 0xf0 && c <= 0xf4) {
        more = 3;
        c &= 0x07;
    } else {
        return REPLACEMENT;
    }
    const int n = more;
    const unsigned char *q = *p;
    while (more > 0 && (*q & 0xc0) == 0x80) {
        c = c << 6 | (*q++ & 0x3f);
        more--;
    }
    if (more > 0 || c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return REPLACEMENT;
    *p = q;
    return c;
}

static void add_utf8(ls_text *out, unsigned c)
{
    if (c < 0x80)
        ls_text_add(out, "%c", (int)c);
    else if (c < 0x800)
        ls_text_add(out, "%c%c", (int)(0xc0 | c >> 6), (int)(0x80 | (c & 0x3f)));
    else if (c < 0x10000)
        ls_text_add(out, "%c%c%c", (int)(0xe0 | c >> 12), (int)(0x80 | (c >> 6 & 0x3f)),
                    (int)(0x80 | (c & 0x3f)));
    else
        ls_text_add(out, "%c%c%c%c", (int)(0xf0 | c >> 18), (int)(0x80 | (c >> 12 & 0x3f)),
                    (int)(0x80 | (c >> 6 & 0x3f)), (int)(0x80 | (c & 0x3f)));
}

/* XML 1.0 has no other control characters, and not these two. */
static bool is_xml(unsigned c)
{
    return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c != 0xfffe && c != 0xffff);
}

static void add_xml(ls_text *out, unsigned c)
{
    switch (c) {
    case '&': ls_text_add(out, "&amp;"); break;
    case '<': ls_text_add(out, "&lt;"); break;
    case '>': ls_text_add(out, "&gt;"); break;
    case '"': ls_text_add(out, "&quot;"); break;
    case '\'': ls_text_add(out, "&#39;"); break;
    default: add_utf8(out, is_xml(c) ? c : REPLACEMENT);
    }
}

void lsi_xml_text(ls_text *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    while (p != NULL && *p != '\0') add_xml(out, next_character(&p));
}

int lsi_characters(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    int n = 0;

    while (p != NULL && *p != '\0') {
        next_character(&p);
        n++;
    }
    return n;
}

void lsi_xml_short(ls_text *out, const char *text, int max)
{
    const unsigned char *p = (const unsigned char *)text;
    const int all = lsi_characters(text);
    /* The end keeps as much as the beginning, which has the odd one. */
    const int end = all > max ? all - (max - 1) / 2 : 0, begin = all > max ? max - 1 - (max - 1) / 2 : all;

    for (int i = 0; i < all; i++) {
        const unsigned c = next_character(&p);
        if (i < begin || (i >= end && all > max)) add_xml(out, c);
        if (i + 1 == begin && all > max) add_utf8(out, 0x2026);
    }
}

void lsi_script_text(ls_text *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    ls_text_add(out, "\"");
    while (p != NULL && *p != '\0') {
        const unsigned c = next_character(&p);
        /* '<' would begin a tag, U+2028 and U+2029 end a line of a script. */
        if (c < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x2028 ||
            c == 0x2029)
            ls_text_add(out, "\\u%04x", c);
        else
            add_utf8(out, c);
    }
    ls_text_add(out, "\"");
}

ls_status lsi_check_id(const char *id, ls_err *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    const size_t n = id != NULL ? strlen(id) : 0;

    if (n >= 1 && n <= 80 && strspn(id, allowed) == n) return LS_OK;
    return ls_fail(err, LS_INVALID, "\"%s\" cannot name a chart or table: letters, digits, '-' and '_'",
                   id != NULL ? id : "");
}
