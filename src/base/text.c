/* text.c: a growing string, nearest names, numbers for people, globs. */
#include "base/text.h"

#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* --- growing string --- */

static bool reserve(ls_text *t, size_t more)
{
    t->failed = !LS_GROW(LS_MEM_CLI, t->data, t->length + more + 1, t->capacity);
    return !t->failed;
}

void ls_text_add(ls_text *t, const char *fmt, ...)
{
    if (t->failed) return;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    LS_BUG_IF(n < 0);
    if (!reserve(t, (size_t)n)) return;
    va_start(ap, fmt);
    vsnprintf(t->data + t->length, (size_t)n + 1, fmt, ap);
    va_end(ap);
    t->length += (size_t)n;
}

void ls_text_add_quoted(ls_text *t, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";

    if (word[0] != '\0' && strspn(word, plain) == strlen(word)) {
        ls_text_add(t, "%s", word);
        return;
    }
    ls_text_add(t, "'");
    for (const char *p = word; *p != '\0'; p++) {
        if (*p == '\'')
            ls_text_add(t, "'\"'\"'"); /* which Slurm's sbatch understands, too, unlike '\'' */
        else
            ls_text_add(t, "%c", *p);
    }
    ls_text_add(t, "'");
}

const char *ls_text_quoted(const char *word, char *buf, size_t size)
{
    ls_text t = {0};
    int n;

    ls_text_add_quoted(&t, word);
    n = snprintf(buf, size, "%s", t.failed || t.data == NULL ? "..." : t.data);
    if (n < 0 || (size_t)n >= size) snprintf(buf, size, "...");
    ls_text_release(&t);
    return buf;
}

void ls_text_release(ls_text *t)
{
    ls_free(t->data);
    *t = (ls_text){0};
}

/* --- texts that are cut --- */

/* Ends a text of n bytes, which was cut, before its last character where that lacks a byte. */
static void drop_half(char *text, size_t n)
{
    size_t first = n, whole;

    while (first > 0 && ((unsigned char)text[first - 1] & 0xc0) == 0x80) first--;
    if (first == 0 || (unsigned char)text[first - 1] < 0xc0) return;
    first--;
    whole = (unsigned char)text[first] >= 0xf0 ? 4 : (unsigned char)text[first] >= 0xe0 ? 3 : 2;
    if (n - first < whole) text[first] = '\0';
}

const char *ls_text_fit(char *buf, size_t size, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(buf, size, fmt, ap);
    va_end(ap);
    if (size > 0 && (n < 0 || (size_t)n >= size)) drop_half(buf, strlen(buf));
    return buf;
}

/* --- nearest name --- */

#define WORD_MAX 127

/* Letters that are missing, too many, other ones, or in the place of their neighbour ("fdsp"), by three rows
 * of the table; words longer than WORD_MAX are never near anything. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    if (na > WORD_MAX || nb > WORD_MAX) return SIZE_MAX;
    size_t rows[3][WORD_MAX + 1];
    for (size_t j = 0; j <= nb; j++) rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best) best = above[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two_above[j - 2] + 1 < best)
                best = two_above[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[na % 3][nb];
}

const char *ls_text_nearest(const char *word, const char *const *candidates, size_t n)
{
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        size_t longer = strlen(word), length = strlen(candidates[i]);
        if (length > longer) longer = length;
        size_t distance = edit_distance(word, candidates[i]);
        if (distance <= (longer + 2) / 3 && distance < best_distance) {
            best = candidates[i];
            best_distance = distance;
        }
    }
    return best;
}

/* --- numbers --- */

#define NUMBER_BUF 32

/* Divides *value by `base` until it prints below `base`, and returns how often (at most `max`). */
static int scale_down(double *value, double base, int max)
{
    int steps = 0;
    /* 999.995 would print as 1000.00 of the smaller unit. */
    while (steps < max && fabs(*value) >= base - 0.005) {
        *value /= base;
        steps++;
    }
    return steps;
}

const char *ls_text_bytes(double bytes, char *buf)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int step = scale_down(&bytes, 1024, 6);
    double size = fabs(bytes);
    int digits = step == 0 ? 0 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
    snprintf(buf, NUMBER_BUF, "%.*f %s", digits, bytes, unit[step]);
    return buf;
}

ls_status ls_text_parse_bytes(const char *text, const char *what, size_t *out, ls_err *err)
{
    static const char letters[] = "KMGTP";
    char *end;
    const double number = strtod(text, &end);
    double unit = 1;
    const char *at = end + strspn(end, " ");
    const char *letter = *at != '\0' ? strchr(letters, *at == 'k' ? 'K' : *at) : NULL;
    const bool digits = (text[0] >= '0' && text[0] <= '9') || text[0] == '.';

    if (letter != NULL) {
        const bool decimal = at[1] == 'B';
        for (const char *p = letters; p <= letter; p++) unit *= decimal ? 1000 : 1024;
        at += at[1] == 'i' && at[2] == 'B' ? 3 : decimal ? 2 : 1;
    } else if (*at == 'B') {
        at++;
    }
    if (!digits || end == text || *at != '\0' || !(number * unit >= 1) || number * unit > 0x1p62)
        return ls_fail(err, LS_INVALID,
                       "%s: \"%s\" is no size in bytes; write a number and a unit: 16GiB, 800MiB", what,
                       text);
    *out = (size_t)(number * unit);
    return LS_OK;
}

const char *ls_text_si(double value, char *buf)
{
    static const char *const unit[] = {"", " k", " M", " G", " T", " P", " E"};
    int step = isfinite(value) ? scale_down(&value, 1000, 6) : 0;
    if (step > 0) {
        snprintf(buf, NUMBER_BUF, "%.2f%s", value, unit[step]);
    } else {
        snprintf(buf, NUMBER_BUF, "%.*g", fabs(value) < 1 ? 3 : 5, value);
    }
    return buf;
}

const char *ls_text_count(int64_t value, char *buf)
{
    char digits[24];
    /* The magnitude is taken in unsigned arithmetic: -INT64_MIN does not exist. */
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)magnitude);
    char *p = buf;
    if (value < 0) *p++ = '-';
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) *p++ = ',';
        *p++ = digits[i];
    }
    *p = '\0';
    return buf;
}

/* --- glob --- */

bool ls_text_glob(const char *pattern, const char *text)
{
    return fnmatch(pattern, text, 0) == 0;
}
