/* results.c: reads results of bench. */
#include "bench/results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/whole.h"
#include "bench/fields.h"

enum { FILE_BYTES_MAX = 64 << 20 };

/* -- one object -------------------------------------------------------------------------------------------
 */

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
        ls_field_copy(to + at, size - at, text);
        at += strlen(to + at);
    }
}

/* {p16, p50, p84} of samples_per_s: all positive and in order, or not said at all. */
static ls_status read_spread(ls_bench_result *r, const json_t *o, ls_err *err)
{
    const json_t *v = json_object_get(o, "samples_per_s");

    r->spread = (ls_spread){ls_field_number(v, "p16"), ls_field_number(v, "p50"), ls_field_number(v, "p84")};
    if (v == NULL || (r->spread.p16 > 0 && r->spread.p16 <= r->spread.p50 && r->spread.p50 <= r->spread.p84))
        return LS_OK;
    return ls_fail(err, LS_DATA, "\"samples_per_s\" is no p16 <= p50 <= p84");
}

static ls_status read_result(ls_bench_result *r, const json_t *o, ls_err *err)
{
    const int64_t batches = ls_field_count(o, "batches", INT64_MAX);

    *r = (ls_bench_result){.ranks = ls_field_count(o, "ranks", INT64_MAX),
                           .threads = ls_field_count(o, "threads", INT64_MAX),
                           .hosts = ls_field_count(o, "hosts", INT64_MAX),
                           .cores = ls_field_count(o, "cores", INT64_MAX),
                           .batch_per_rank = ls_field_count(o, "batch_per_rank", INT64_MAX),
                           .batch_global = ls_field_count(o, "batch_global", INT64_MAX),
                           .steps = ls_field_count(o, "steps", INT64_MAX),
                           .time = ls_field_count(o, "time", INT64_MAX),
                           .beside = ls_field_count(o, "beside", INT64_MAX),
                           .oversubscribed = json_is_true(json_object_get(o, "oversubscribed")),
                           .rate = {.mean = ls_field_number(o, "mean_samples_per_s"),
                                    .error = ls_field_number(o, "stderr_samples_per_s")}};
    ls_field_text(o, "experiment", r->experiment, sizeof r->experiment);
    ls_field_text(o, "device", r->device, sizeof r->device);
    ls_field_text(o, "mode", r->mode, sizeof r->mode);
    ls_field_text(o, "host", r->host, sizeof r->host);
    ls_field_text(o, "version", r->version, sizeof r->version);
    ls_field_text(o, "plan_hash", r->plan_hash, sizeof r->plan_hash);
    ls_field_text(o, "strategy", r->strategy, sizeof r->strategy);
    settings_of(o, r->settings, sizeof r->settings);
    if (batches > 1 && batches <= r->steps && r->steps <= INT32_MAX) r->rate.batches = (int)batches;
    if (!(r->rate.mean > 0 && r->rate.mean < 1e30))
        return ls_fail(err, LS_DATA, "\"mean_samples_per_s\" is no positive number");
    if (!(r->rate.error >= 0 && r->rate.error < 1e30) || r->rate.batches == 0)
        r->rate = (ls_estimate){r->rate.mean, NAN, 1}; /* a single step */
    if (r->experiment[0] == '\0' || r->ranks == 0 || r->steps == 0)
        return ls_fail(err, LS_DATA, "\"experiment\", \"ranks\" or \"steps\" is missing");
    return read_spread(r, o, err);
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
    ls_status st = LS_OK;

    if (!json_is_object(o)) return ls_fail(err, LS_DATA, "no JSON object");
    if (event == NULL || strcmp(event, "bench") != 0) return LS_OK;
    LS_TRY(read_result(&one, o, err));
    if (r->n > 0 && !r->any) LS_TRY(check_repeat(&r->of[0], &one, err));
    if (r->n == LS_BENCH_RESULTS_MAX)
        return ls_fail(err, LS_DATA, "more than %d results", LS_BENCH_RESULTS_MAX);
    if (!LS_GROW(LS_MEM_CLI, r->of, r->n + 1, r->capacity))
        return ls_fail(err, LS_NOMEM, "no memory for results");
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

static ls_status parse(ls_bench_results *r, const char *text, size_t length, ls_err *err)
{
    /* One object may be written over several lines. */
    json_t *whole = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    ls_status st;

    st = json_is_object(whole) ? ls_fail_in(err, add(r, whole, err), "line 1")
                               : parse_lines(r, text, length, err);
    json_decref(whole);
    if (st == LS_OK && r->n == 0)
        st =
            ls_fail(err, LS_DATA,
                    "line 1: there is no result of `lockstep bench --json` here; write its output to a file");
    return st;
}

ls_status ls_bench_results_parse(ls_bench_results *r, const char *text, size_t length, ls_err *err)
{
    *r = (ls_bench_results){0};
    return parse(r, text, length, err);
}

static ls_status read_file(ls_bench_results *r, bool any, const char *path, ls_err *err)
{
    char *text = NULL;
    size_t length;
    ls_status st = LS_OK;

    *r = (ls_bench_results){.any = any};
    LS_TRY(ls_whole_file(&text, &length, path, FILE_BYTES_MAX, err));
    st = ls_fail_in(err, parse(r, text, length, err), "%s", path);
out:
    ls_free(text);
    return st;
}

ls_status ls_bench_results_read(ls_bench_results *r, const char *path, ls_err *err)
{
    return read_file(r, false, path, err);
}

ls_status ls_bench_results_read_any(ls_bench_results *r, const char *path, ls_err *err)
{
    return read_file(r, true, path, err);
}

void ls_bench_results_release(ls_bench_results *r)
{
    ls_free(r->of);
    *r = (ls_bench_results){0};
}
