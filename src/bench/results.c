/* results.c: reads results of bench. */
#include "bench/results.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/whole.h"

enum { FILE_BYTES_MAX = 64 << 20 };

/* -- one object -------------------------------------------------------------------------------------------
 */

/* Cuts text that is too long, and never within a character of several bytes. */
static void copy(char *to, size_t size, const char *text)
{
    size_t n = strlen(text);

    if (n >= size) {
        n = size - 1;
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
    }
    memcpy(to, text, n);
    to[n] = '\0';
}

static void text_of(const json_t *o, const char *key, char *to, size_t size)
{
    const char *text = json_string_value(json_object_get(o, key));

    copy(to, size, text != NULL ? text : "");
}

/* A number that is not negative, or 0. */
static int64_t count_of(const json_t *o, const char *key)
{
    const json_int_t x = json_integer_value(json_object_get(o, key));

    return x > 0 ? (int64_t)x : 0;
}

static double number_of(const json_t *o, const char *key)
{
    const json_t *x = json_object_get(o, key);

    return json_is_number(x) ? json_number_value(x) : NAN;
}

static void settings_of(const json_t *o, char *to, size_t size)
{
    const json_t *all = json_object_get(o, "settings"), *one;
    size_t i, at = 0;

    to[0] = '\0';
    json_array_foreach(all, i, one)
    {
        const char *text = json_string_value(one);
        if (text == NULL || at + 2 >= size) continue;
        if (at > 0) to[at++] = ' ';
        copy(to + at, size - at, text);
        at += strlen(to + at);
    }
}

static ls_status read_result(ls_bench_result *r, const json_t *o, ls_err *err)
{
    *r = (ls_bench_result){
        .ranks = count_of(o, "ranks"),
        .threads = count_of(o, "threads"),
        .hosts = count_of(o, "hosts"),
        .cores = count_of(o, "cores"),
        .batch_per_rank = count_of(o, "batch_per_rank"),
        .batch_global = count_of(o, "batch_global"),
        .steps = count_of(o, "steps"),
        .time = count_of(o, "time"),
        .oversubscribed = json_is_true(json_object_get(o, "oversubscribed")),
        .rate = {.mean = number_of(o, "mean_samples_per_s"), .error = number_of(o, "stderr_samples_per_s")}};
    text_of(o, "experiment", r->experiment, sizeof r->experiment);
    text_of(o, "device", r->device, sizeof r->device);
    text_of(o, "mode", r->mode, sizeof r->mode);
    text_of(o, "host", r->host, sizeof r->host);
    text_of(o, "version", r->version, sizeof r->version);
    text_of(o, "plan_hash", r->plan_hash, sizeof r->plan_hash);
    settings_of(o, r->settings, sizeof r->settings);
    if (count_of(o, "batches") > 1 && count_of(o, "batches") <= r->steps && r->steps <= INT32_MAX)
        r->rate.batches = (int)count_of(o, "batches");
    if (!(r->rate.mean > 0 && r->rate.mean < 1e30))
        return ls_fail(err, LS_DATA, "\"mean_samples_per_s\" is no positive number");
    if (!(r->rate.error >= 0 && r->rate.error < 1e30) || r->rate.batches == 0)
        r->rate = (ls_estimate){r->rate.mean, NAN, 1}; /* a single step */
    if (r->experiment[0] == '\0' || r->ranks == 0 || r->steps == 0)
        return ls_fail(err, LS_DATA, "\"experiment\", \"ranks\" or \"steps\" is missing");
    return LS_OK;
}

/* -- files ------------------------------------------------------------------------------------------------
 */

static ls_status check_repeat(const ls_bench_result *a, const ls_bench_result *b, ls_err *err)
{
    if (strcmp(a->experiment, b->experiment) == 0 && a->ranks == b->ranks && a->threads == b->threads &&
        a->batch_global == b->batch_global && strcmp(a->mode, b->mode) == 0 &&
        strcmp(a->settings, b->settings) == 0)
        return LS_OK;
    return ls_fail(err, LS_DATA,
                   "%s on %lld ranks of %lld threads (%s) is another measurement than the first, %s on %lld "
                   "of %lld (%s); a file holds repeats of one",
                   b->experiment, (long long)b->ranks, (long long)b->threads, b->settings, a->experiment,
                   (long long)a->ranks, (long long)a->threads, a->settings);
}

/* Objects of other events (a profile, points of a study) are passed over. */
static ls_status add(ls_bench_results *r, const json_t *o, ls_err *err)
{
    const char *event = json_string_value(json_object_get(o, "event"));
    ls_bench_result one;
    void *more;
    ls_status st = LS_OK;

    if (!json_is_object(o)) return ls_fail(err, LS_DATA, "no JSON object");
    if (event == NULL || strcmp(event, "bench") != 0) return LS_OK;
    LS_TRY(read_result(&one, o, err));
    if (r->n > 0) LS_TRY(check_repeat(&r->of[0], &one, err));
    if (r->n == LS_BENCH_RESULTS_MAX)
        return ls_fail(err, LS_DATA, "more than %d results", LS_BENCH_RESULTS_MAX);
    more = ls_realloc(LS_MEM_CLI, r->of, sizeof *r->of * (size_t)(r->n + 1));
    if (more == NULL) return ls_fail(err, LS_NOMEM, "no memory for results");
    r->of = more;
    r->of[r->n++] = one;
out:
    return st;
}

static bool is_blank(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') return false;
    return true;
}

static ls_status parse_line(ls_bench_results *r, const char *line, size_t length, int number, ls_err *err)
{
    json_error_t where;
    json_t *o;
    ls_status st;

    if (is_blank(line, length)) return LS_OK;
    o = json_loadb(line, length, JSON_REJECT_DUPLICATES, &where);
    if (o == NULL) return ls_fail(err, LS_DATA, "line %d: no JSON: %s", number, where.text);
    st = ls_fail_in(err, add(r, o, err), "line %d", number);
    json_decref(o);
    return st;
}

static ls_status parse_lines(ls_bench_results *r, const char *text, size_t length, ls_err *err)
{
    const char *end = text + length;
    ls_status st = LS_OK;

    for (int number = 1; text < end; number++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        if (stop == NULL) stop = end;
        LS_TRY(parse_line(r, text, (size_t)(stop - text), number, err));
        text = stop + (stop < end);
    }
out:
    return st;
}

ls_status ls_bench_results_parse(ls_bench_results *r, const char *text, size_t length, ls_err *err)
{
    /* One object may be written over several lines. */
    json_t *whole = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    ls_status st;

    *r = (ls_bench_results){0};
    st = json_is_object(whole) ? ls_fail_in(err, add(r, whole, err), "line 1")
                               : parse_lines(r, text, length, err);
    json_decref(whole);
    if (st == LS_OK && r->n == 0)
        st =
            ls_fail(err, LS_DATA,
                    "line 1: there is no result of `lockstep bench --json` here; write its output to a file");
    return st;
}

ls_status ls_bench_results_read(ls_bench_results *r, const char *path, ls_err *err)
{
    char *text = NULL;
    size_t length;
    ls_status st = LS_OK;

    *r = (ls_bench_results){0};
    LS_TRY(ls_whole_file(&text, &length, path, FILE_BYTES_MAX, err));
    st = ls_fail_in(err, ls_bench_results_parse(r, text, length, err), "%s", path);
out:
    ls_free(text);
    return st;
}

void ls_bench_results_release(ls_bench_results *r)
{
    ls_free(r->of);
    *r = (ls_bench_results){0};
}
