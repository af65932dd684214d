/* collectives_json.c: times of exchanges as lines of JSON; docs/bench.md has the fields. */
#include <string.h>

#include "base/grow.h"
#include "bench/collectives.h"
#include "bench/fields.h"

static const char *const wires[] = {"f32", "bf16", "f16"};

#define LEAST_SECONDS 1e-9
#define MOST_SECONDS  86400.0
#define MOST_SENT     1e18

enum { N_WIRES = sizeof wires / sizeof wires[0], MOST_RANKS = 1 << 22 };

/* -- writing ----------------------------------------------------------------------------------------------
 */

json_t *ls_collective_json(const ls_collective_times *all, int i, const char *version, int64_t when)
{
    const ls_collective_time *t = &all->of[i];
    json_t *cores = json_array();

    for (int r = 0; r < t->ranks; r++)
        json_array_append_new(cores, json_real(all->rank_core_s[(size_t)i * (size_t)t->ranks + (size_t)r]));
    return json_pack(
        "{s:s, s:i, s:s, s:s, s:I, s:f, s:i, s:i, s:i, s:i, s:i, s:{s:f, s:f, s:f}, s:f, "
        "s:o, s:f, s:s, s:i, s:b, s:s, s:I}",
        "event", "collectives", "format", (int)LS_COLLECTIVES_FORMAT, "kind", ls_collective_name(t->kind),
        "wire", wires[t->wire], "bytes", (json_int_t)t->bytes, "wire_bytes", ls_collective_wire_bytes(t),
        "ranks", t->ranks, "hosts", t->hosts, "most_ranks_of_host", t->most_on_host, "rounds", t->rounds,
        "repeats", t->repeats, "seconds", "p16", t->seconds.p16, "p50", t->seconds.p50, "p84", t->seconds.p84,
        "core_s", t->core_s, "rank_core_s", cores, "sent_bytes", t->sent_bytes, "host", all->host, "cores",
        all->cores, "oversubscribed", (int)t->oversubscribed, "version", version, "time", (json_int_t)when);
}

/* -- reading: bytes from outside --------------------------------------------------------------------------
 */

static ls_status read_kind(ls_collective_time *t, const json_t *o, ls_err *err)
{
    static const ls_collective kinds[] = {LS_COLL_ALL_REDUCE, LS_COLL_REDUCE_SCATTER, LS_COLL_ALL_GATHER};
    char kind[32], wire[16];
    int w = 0;

    ls_field_text(o, "kind", kind, sizeof kind);
    ls_field_text(o, "wire", wire, sizeof wire);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        if (strcmp(kind, ls_collective_name(kinds[k])) == 0) t->kind = kinds[k];
    while (w < N_WIRES && strcmp(wire, wires[w]) != 0) w++;
    if (t->kind == LS_COLL_NONE)
        return ls_fail(err, LS_DATA, "\"kind\" is \"%s\": expected all_reduce, reduce_scatter or all_gather",
                       kind);
    if (w == N_WIRES) return ls_fail(err, LS_DATA, "\"wire\" is \"%s\": expected f32, bf16 or f16", wire);
    t->wire = (ls_wire)w;
    return LS_OK;
}

static ls_status read_times(ls_collective_time *t, const json_t *o, ls_err *err)
{
    const json_t *s = json_object_get(o, "seconds");

    t->seconds = (ls_spread){ls_field_number(s, "p16"), ls_field_number(s, "p50"), ls_field_number(s, "p84")};
    if (!(t->seconds.p16 >= LEAST_SECONDS && t->seconds.p16 <= t->seconds.p50 &&
          t->seconds.p50 <= t->seconds.p84 && t->seconds.p84 <= MOST_SECONDS))
        return ls_fail(err, LS_DATA,
                       "\"seconds\" needs p16, p50 and p84, in order, from a nanosecond to a day");
    t->core_s = ls_field_number(o, "core_s");
    t->sent_bytes = ls_field_number(o, "sent_bytes");
    if (!(t->core_s <= MOST_SECONDS) || !(t->sent_bytes <= MOST_SENT))
        return ls_fail(err, LS_DATA, "\"%s\" is missing, or makes no sense",
                       t->core_s <= MOST_SECONDS ? "sent_bytes" : "core_s");
    return LS_OK;
}

static ls_status read_result(ls_collective_time *t, const json_t *o, ls_err *err)
{
    ls_status st = LS_OK;

    if (ls_field_count(o, "format", 1 << 20) != LS_COLLECTIVES_FORMAT)
        return ls_fail(err, LS_DATA, "\"format\" is not %d, which this version reads",
                       (int)LS_COLLECTIVES_FORMAT);
    LS_TRY(read_kind(t, o, err));
    t->bytes = ls_field_count(o, "bytes", LS_COLLECTIVES_BYTES_MAX);
    t->ranks = (int)ls_field_count(o, "ranks", MOST_RANKS);
    t->hosts = (int)ls_field_count(o, "hosts", MOST_RANKS);
    t->most_on_host = (int)ls_field_count(o, "most_ranks_of_host", MOST_RANKS);
    t->rounds = (int)ls_field_count(o, "rounds", LS_COLLECTIVES_ROUNDS);
    t->repeats = (int)ls_field_count(o, "repeats", 1 << 20);
    t->oversubscribed = json_is_true(json_object_get(o, "oversubscribed"));
    if (t->bytes == 0 || t->rounds == 0 || t->repeats == 0)
        return ls_fail(err, LS_DATA, "\"%s\" is missing or no count",
                       t->bytes == 0    ? "bytes"
                       : t->rounds == 0 ? "rounds"
                                        : "repeats");
    if (t->ranks < 2 || t->hosts < 1 || t->most_on_host < 1 || t->hosts > t->ranks ||
        (int64_t)t->hosts * t->most_on_host < t->ranks || t->most_on_host > t->ranks - t->hosts + 1)
        return ls_fail(err, LS_DATA,
                       "%d ranks on %d hosts, of which one has %d: \"ranks\", \"hosts\" and "
                       "\"most_ranks_of_host\" do not fit",
                       t->ranks, t->hosts, t->most_on_host);
    LS_TRY(read_times(t, o, err));
out:
    return st;
}

static ls_status read_line(ls_collective_times *all, const char *line, size_t length, ls_err *err)
{
    json_error_t where;
    json_t *o = json_loadb(line, length, JSON_REJECT_DUPLICATES, &where);
    ls_collective_time one = {0};
    char event[32];
    ls_status st = LS_OK;

    if (o == NULL) return ls_fail(err, LS_DATA, "no JSON: %s", where.text);
    ls_field_text(o, "event", event, sizeof event);
    if (strcmp(event, "collectives") != 0) goto out;
    LS_TRY(read_result(&one, o, err));
    if (all->n == LS_COLLECTIVES_FILE)
        LS_TRY(ls_fail(err, LS_DATA, "more than %d results", (int)LS_COLLECTIVES_FILE));
    if (!LS_GROW(LS_MEM_CLI, all->of, all->n + 1, all->capacity))
        LS_TRY(ls_fail(err, LS_NOMEM, "no memory for results"));
    all->of[all->n++] = one;
    ls_field_text(o, "host", all->host, sizeof all->host);
    all->cores = (int)ls_field_count(o, "cores", 1 << 20);
out:
    json_decref(o);
    return st;
}

static bool is_blank(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (strchr(" \t\r", line[i]) == NULL || line[i] == '\0') return false;
    return true;
}

ls_status ls_collectives_parse(ls_collective_times *t, const char *text, size_t length, ls_err *err)
{
    const char *end = text + length;
    ls_status st = LS_OK;

    for (int number = 1; text < end; number++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        if (stop == NULL) stop = end;
        if (!is_blank(text, (size_t)(stop - text)))
            LS_TRY(ls_fail_in(err, read_line(t, text, (size_t)(stop - text), err), "line %d", number));
        text = stop + (stop < end);
    }
out:
    return st;
}
