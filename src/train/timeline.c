/* timeline.c: traces of ranks as spans of one step.
 *
 * Ranks of one machine share its clock; those of several do not.  Where the begins of the step lie further
 * apart than the step takes, clocks cannot be meant, and every rank's step begins at zero. */
#include "train/timeline.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/whole.h"

#define TRACE_MAX_BYTES ((size_t)64 << 20)

const char *ls_span_kind_name(ls_span_kind kind)
{
    static const char *const names[LS_SPAN_KINDS] = {"forward", "backward", "update", "exchange", "waiting"};

    return names[kind];
}

/* One rank's trace. */
typedef struct trace {
    json_t *events;
    const char *path;
    double begin, end; /* of the step, in microseconds of its clock */
} trace;

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));

    return text != NULL ? text : "";
}

/* The number of the step that an event is, or -1. */
static long long step_of(const json_t *event)
{
    long long step;

    if (strcmp(text_of(event, "cat"), "step") != 0) return -1;
    return sscanf(text_of(event, "name"), "step %lld", &step) == 1 && step >= 0 ? step : -1;
}

static bool times_of(const json_t *event, double *begin, double *end)
{
    const json_t *ts = json_object_get(event, "ts"), *dur = json_object_get(event, "dur");

    if (!json_is_number(ts) || !json_is_number(dur)) return false;
    *begin = json_number_value(ts);
    *end = *begin + json_number_value(dur);
    return isfinite(*begin) && isfinite(*end) && *end >= *begin;
}

static ls_span_kind kind_of(const char *category, const char *op)
{
    static const char *const updates[] = {"sgd", "adam", "lamb", "lars", "rmsprop", "accumulate", "assign"};

    if (strcmp(category, "wait") == 0) return LS_SPAN_WAIT;
    if (strcmp(category, "update") == 0) return LS_SPAN_UPDATE;
    /* Traces of earlier versions know no more than ops and directions. */
    if (strcmp(op, "all_reduce_wait") == 0) return LS_SPAN_WAIT;
    if (strcmp(category, "exchange") == 0 || strcmp(op, "all_reduce_start") == 0) return LS_SPAN_EXCHANGE;
    if (strcmp(category, "backward") == 0) return LS_SPAN_BACKWARD;
    for (size_t i = 0; i < sizeof updates / sizeof updates[0]; i++)
        if (strcmp(op, updates[i]) == 0) return LS_SPAN_UPDATE;
    return LS_SPAN_FORWARD;
}

/* -- one rank ----------------------------------------------------------------------------------------------
 */

static ls_status load(trace *r, const char *text, size_t n, const char *path, ls_err *err)
{
    json_error_t why;

    r->path = path;
    r->events = json_loadb(text, n, 0, &why);
    if (json_is_array(r->events)) return LS_OK;
    return ls_fail(
        err, LS_DATA,
        "%s is no whole trace%s%s; remove it, or run again with train.trace=N until N steps are done", path,
        r->events == NULL ? ": " : "", r->events == NULL ? why.text : "");
}

static long long last_step(const trace *r)
{
    long long last = -1;
    json_t *event;
    size_t i;

    json_array_foreach(r->events, i, event)
    {
        const long long step = step_of(event);
        if (step > last) last = step;
    }
    return last;
}

static ls_status find_step(trace *r, long long step, ls_err *err)
{
    json_t *event;
    size_t i;

    json_array_foreach(r->events, i,
                       event) if (step_of(event) == step && times_of(event, &r->begin, &r->end)) return LS_OK;
    return ls_fail(err, LS_DATA,
                   "%s: step %lld is not in it, as in the traces of other ranks; remove all of them", r->path,
                   step);
}

static ls_status add_span(ls_timeline *t, const ls_timeline_span *span, const json_t *event, ls_err *err)
{
    const char *op = text_of(event, "name"), *layer = text_of(json_object_get(event, "args"), "layer");

    if (!LS_GROW(LS_MEM_CLI, t->spans, t->n_spans + 1, t->capacity))
        return ls_fail(err, LS_NOMEM, "no memory for a timeline");
    t->spans[t->n_spans] = *span;
    t->spans[t->n_spans].name = ls_arena_printf(t->arena, "%s%s%s", op, layer[0] != '\0' ? " " : "", layer);
    if (t->spans[t->n_spans++].name == NULL) return ls_fail(err, LS_NOMEM, "no memory for a timeline");
    return LS_OK;
}

/* The spans of the step, from `origin` on. */
static ls_status add_rank(ls_timeline *t, const trace *r, int rank, double origin, ls_err *err)
{
    ls_status st = LS_OK;
    json_t *event;
    size_t i;

    json_array_foreach(r->events, i, event)
    {
        ls_timeline_span s = {.rank = rank};
        double begin, end;
        if (strcmp(text_of(event, "cat"), "step") == 0 || !times_of(event, &begin, &end)) continue;
        if (begin < r->begin || end > r->end + 1) continue; /* of another step; times are rounded */
        s.kind = kind_of(text_of(event, "cat"), text_of(event, "name"));
        s.begin_ms = (begin - origin) / 1e3;
        s.end_ms = (end - origin) / 1e3;
        LS_TRY(add_span(t, &s, event, err));
    }
out:
    return st;
}

/* -- all ranks ---------------------------------------------------------------------------------------------
 */

static ls_status add_all(ls_timeline *t, trace *ranks, int n, ls_err *err)
{
    double first = INFINITY, last = -INFINITY, longest = 0;
    ls_status st = LS_OK;

    t->step = last_step(&ranks[0]);
    for (int k = 1; k < n; k++) {
        const long long step = last_step(&ranks[k]);
        if (step < t->step) t->step = step;
    }
    for (int k = 0; k < n; k++) {
        LS_TRY(find_step(&ranks[k], t->step, err));
        first = fmin(first, ranks[k].begin);
        last = fmax(last, ranks[k].begin);
        longest = fmax(longest, ranks[k].end - ranks[k].begin);
    }
    for (int k = 0; k < n; k++)
        LS_TRY(add_rank(t, &ranks[k], k, last - first > longest ? ranks[k].begin : first, err));
    t->n_ranks = n;
out:
    return st;
}

ls_status ls_timeline_parse(ls_timeline *t, int n, const char *const *texts, const size_t *lengths,
                            const char *const *paths, ls_err *err)
{
    trace *ranks = ls_alloc(LS_MEM_CLI, (size_t)n * sizeof *ranks);
    ls_status st = LS_OK;

    *t = (ls_timeline){0};
    if (ranks == NULL) return ls_fail(err, LS_NOMEM, "no memory for a timeline");
    LS_TRY(ls_arena_create(&t->arena, LS_MEM_CLI, err));
    for (int k = 0; k < n; k++) LS_TRY(load(&ranks[k], texts[k], lengths[k], paths[k], err));
    if (n > 0) LS_TRY(add_all(t, ranks, n, err));
out:
    for (int k = 0; k < n; k++) json_decref(ranks[k].events);
    ls_free(ranks);
    return st;
}

ls_status ls_timeline_open(ls_timeline *t, const char *folder, ls_err *err)
{
    char *texts[LS_TIMELINE_RANKS] = {0}, *paths[LS_TIMELINE_RANKS] = {0};
    size_t lengths[LS_TIMELINE_RANKS];
    ls_status st = LS_OK;
    int n = 0;

    *t = (ls_timeline){0};
    for (; n < LS_TIMELINE_RANKS; n++) {
        char path[4200];
        snprintf(path, sizeof path, "%s/trace-%05d.json", folder, n);
        if (access(path, F_OK) != 0) break;
        paths[n] = ls_strdup(LS_MEM_CLI, path);
        if (paths[n] == NULL) {
            st = ls_fail(err, LS_NOMEM, "no memory for a timeline");
            goto out;
        }
        LS_TRY(ls_whole_file(&texts[n], &lengths[n], path, TRACE_MAX_BYTES, err));
    }
    LS_TRY(ls_timeline_parse(t, n, (const char *const *)texts, lengths, (const char *const *)paths, err));
out:
    for (int k = 0; k < LS_TIMELINE_RANKS; k++) {
        ls_free(texts[k]);
        ls_free(paths[k]);
    }
    return st;
}

void ls_timeline_release(ls_timeline *t)
{
    ls_free(t->spans);
    ls_arena_destroy(t->arena);
    *t = (ls_timeline){0};
}
