/* machine_file.c: machines as files of format "lockstep-machine". */
#include <string.h>

#include "predict/machine_internal.h"

/* Rates and times beyond these are slips, and would be infinite when they are multiplied. */
#define MOST_RATE    1e24
#define MOST_SECONDS 1e9
#define MOST_BATCH   1e9
enum { MOST_NODES = 1 << 20, MOST_RANKS = 1 << 20 };

static void *room(lsi_member *m, size_t n, size_t item_bytes)
{
    void *items = ls_arena_alloc(m->arena, item_bytes * (n + 1));

    if (items == NULL && m->st == LS_OK) m->st = ls_fail(m->err, LS_NOMEM, "no memory for a machine");
    return items;
}

static lsi_member item_of(const lsi_member *m, const json_t *list, const char *name, size_t at)
{
    lsi_member it = *m;

    it.o = json_array_get(list, at);
    it.list = name;
    it.at = (int64_t)at;
    return it;
}

/* -- reading ----------------------------------------------------------------------------------------------
 */

static void read_ops(lsi_member *m, ls_machine *out)
{
    static const char *const names[] = {"op", "backward", "flop_s", "bytes_s", "launch_s", "error"};
    const json_t *list = lsi_member_list(m, "ops", false, MOST_NODES);

    out->ops = room(m, json_array_size(list), sizeof *out->ops);
    for (size_t i = 0; m->st == LS_OK && i < json_array_size(list); i++) {
        lsi_member it = item_of(m, list, "ops", i);
        lsi_member_known(&it, names, 6);
        out->ops[out->n_ops++] =
            (ls_machine_op){.op = lsi_member_text(&it, "op", true),
                            .backward = lsi_member_flag(&it, "backward", true),
                            .flop_s = lsi_member_number(&it, "flop_s", true, 0, MOST_RATE),
                            .bytes_s = lsi_member_number(&it, "bytes_s", true, 0, MOST_RATE),
                            .launch_s = lsi_member_number(&it, "launch_s", true, 0, MOST_SECONDS),
                            .error = lsi_member_number(&it, "error", true, 0, 10)};
        m->st = it.st;
    }
}

static void read_points(lsi_member *it, ls_machine_node *n)
{
    const json_t *list = lsi_member_list(it, "points", true, LS_MACHINE_POINTS);

    if (it->st == LS_OK && json_array_size(list) == 0) lsi_member_refuse(it, "its \"points\" are empty");
    for (size_t k = 0; it->st == LS_OK && k < json_array_size(list); k++) {
        const json_t *p = json_array_get(list, k);
        double x[4];
        for (size_t j = 0; j < 4; j++) {
            const json_t *v = json_array_get(p, j);
            x[j] = json_is_number(v) ? json_number_value(v) : -1;
            if (json_array_size(p) != 4 || x[j] < 0 ||
                x[j] > (j == 0   ? MOST_BATCH
                        : j == 1 ? MOST_SECONDS
                                 : MOST_RATE)) {
                lsi_member_refuse(it,
                                  "point %zu must be a list of four numbers that are not negative: samples, "
                                  "seconds, FLOPs, bytes",
                                  k);
                return;
            }
        }
        if (k > 0 && x[0] <= n->point[k - 1].batch) {
            lsi_member_refuse(it, "point %zu has %g samples after %g: they rise", k, x[0],
                              n->point[k - 1].batch);
            return;
        }
        n->point[n->n_points++] = (ls_machine_point){x[0], x[1], x[2], x[3]};
    }
}

static void read_nodes(lsi_member *m, ls_machine *out)
{
    static const char *const names[] = {"op", "attributes", "layer", "backward", "points"};
    const json_t *list = lsi_member_list(m, "nodes", false, MOST_NODES);

    out->nodes = room(m, json_array_size(list), sizeof *out->nodes);
    for (size_t i = 0; m->st == LS_OK && i < json_array_size(list); i++) {
        lsi_member it = item_of(m, list, "nodes", i);
        ls_machine_node *n = &out->nodes[out->n_nodes++];
        lsi_member_known(&it, names, 5);
        *n = (ls_machine_node){.op = lsi_member_text(&it, "op", true),
                               .attributes = lsi_member_text(&it, "attributes", true),
                               .layer = lsi_member_text(&it, "layer", true),
                               .backward = lsi_member_flag(&it, "backward", true)};
        read_points(&it, n);
        m->st = it.st;
    }
}

static void read_crowding(lsi_member *m, ls_machine *out)
{
    static const char *const names[] = {"ranks", "batch", "factor"};
    const json_t *list = lsi_member_list(m, "crowding", false, MOST_RANKS);

    out->crowding = room(m, json_array_size(list), sizeof *out->crowding);
    for (size_t i = 0; m->st == LS_OK && i < json_array_size(list); i++) {
        lsi_member it = item_of(m, list, "crowding", i);
        ls_crowding *c = &out->crowding[out->n_crowding++];
        lsi_member_known(&it, names, 3);
        *c = (ls_crowding){lsi_member_whole(&it, "ranks", true, 1, MOST_RANKS),
                           lsi_member_number(&it, "batch", false, 0, 1e9),
                           lsi_member_number(&it, "factor", true, 0.01, 1e6)};
        if (it.st == LS_OK && i > 0 && c->ranks < c[-1].ranks)
            lsi_member_refuse(&it, "%d ranks come after %d: they rise", (int)c->ranks, (int)c[-1].ranks);
        if (it.st == LS_OK && i > 0 && c->ranks == c[-1].ranks &&
            !(c[-1].batch > 0 && c->batch > c[-1].batch))
            lsi_member_refuse(&it,
                              "%d ranks with batch %g come after as many with batch %g: batches rise, and "
                              "one entry without goes for all",
                              (int)c->ranks, c->batch, c[-1].batch);
        m->st = it.st;
    }
}

static void read_together(lsi_member *m, ls_machine *out)
{
    static const char *const names[] = {"experiment", "ranks", "nodes", "batch", "measured_s", "computed_s"};
    const json_t *list = lsi_member_list(m, "together", false, MOST_NODES);

    out->together = room(m, json_array_size(list), sizeof *out->together);
    for (size_t i = 0; m->st == LS_OK && i < json_array_size(list); i++) {
        lsi_member it = item_of(m, list, "together", i);
        lsi_member_known(&it, names, 6);
        out->together[out->n_together++] =
            (ls_together){.experiment = lsi_member_text(&it, "experiment", true),
                          .ranks = lsi_member_whole(&it, "ranks", true, 2, MOST_RANKS),
                          .nodes = lsi_member_whole(&it, "nodes", true, 1, MOST_RANKS),
                          .batch = lsi_member_number(&it, "batch", true, 1, MOST_BATCH),
                          .measured_s = lsi_member_number(&it, "measured_s", true, 1e-9, MOST_SECONDS),
                          .computed_s = lsi_member_number(&it, "computed_s", true, 1e-9, MOST_SECONDS)};
        m->st = it.st;
    }
}

/* Rising factors: `least` to `most` of them, or none; how many. */
static size_t read_factors(lsi_member *m, const char *key, size_t least, size_t most, double *to)
{
    const json_t *list = lsi_member_list(m, key, false, most);
    const size_t n = json_array_size(list);

    if (m->st != LS_OK || n == 0) return 0;
    if (n < least) {
        lsi_member_refuse(m, "\"%s\" has %zu numbers, must have %zu%s, or none", key, n, least,
                          least < most ? " or more" : ", the percentiles from 0 to 100");
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        const double x = json_is_number(v) ? json_number_value(v) : -1;
        if (x < 0.001 || x > 1000 || (i > 0 && x < to[i - 1])) {
            lsi_member_refuse(m,
                              "\"%s\" %zu must be a number from 0.001 to 1000, and not less than the one "
                              "before",
                              key, i);
            return 0;
        }
        to[i] = x;
    }
    return n;
}

static void read_jitter(lsi_member *m, ls_machine *out)
{
    static const char *const names[] = {"step_s", "alone", "crowded"};
    const json_t *list = lsi_member_list(m, "jitter", false, LS_MACHINE_JITTERS);

    for (size_t i = 0; m->st == LS_OK && i < json_array_size(list); i++) {
        lsi_member it = item_of(m, list, "jitter", i);
        ls_jitter *j = &out->jitter[out->n_jitter];
        lsi_member_known(&it, names, 3);
        j->step_s = lsi_member_number(&it, "step_s", true, 1e-9, MOST_SECONDS);
        if (it.st == LS_OK && i > 0 && j->step_s <= j[-1].step_s)
            lsi_member_refuse(&it, "\"step_s\" is %g and must be more than that of the one before",
                              j->step_s);
        for (int k = 0; k < LS_JITTER_N; k++) j->alone[k] = j->crowded[k] = 1;
        read_factors(&it, "alone", LS_JITTER_N, LS_JITTER_N, j->alone);
        read_factors(&it, "crowded", LS_JITTER_N, LS_JITTER_N, j->crowded);
        out->n_jitter++;
        m->st = it.st;
    }
}

static void read_uneven(lsi_member *m, ls_machine *out)
{
    out->uneven = room(m, json_array_size(json_object_get(m->o, "uneven")), sizeof *out->uneven);
    if (m->st == LS_OK) out->n_uneven = (int32_t)read_factors(m, "uneven", 2, MOST_RANKS, out->uneven);
    out->uneven_error = lsi_member_number(m, "uneven_error", false, 0, 10);
}

static void read_head(lsi_member *m, ls_machine *out)
{
    const char *format = json_string_value(json_object_get(m->o, "format"));
    int32_t version;

    if (format == NULL || strcmp(format, "lockstep-machine") != 0) {
        lsi_member_refuse(m, "it is no machine: \"format\" must be \"lockstep-machine\"");
        return;
    }
    version = lsi_member_whole(m, "version", true, 0, INT32_MAX);
    if (m->st == LS_OK && version != LS_MACHINE_FORMAT)
        lsi_member_refuse(m, "\"version\" is %d, this program reads %d", (int)version, LS_MACHINE_FORMAT);
    out->name = lsi_member_text(m, "name", true);
    out->about = lsi_member_text(m, "about", false);
    out->source = lsi_member_text(m, "source", true);
    out->device = lsi_member_text(m, "device", true);
    out->threads = lsi_member_whole(m, "threads", true, 1, MOST_RANKS);
    out->ranks_per_node = lsi_member_whole(m, "ranks_per_node", false, 0, MOST_RANKS);
    out->cores = lsi_member_whole(m, "cores", false, 0, MOST_RANKS);
    out->flop_s = lsi_member_number(m, "flop_s", true, 1, MOST_RATE);
    out->bytes_s = lsi_member_number(m, "bytes_s", true, 1, MOST_RATE);
    out->memory_bytes = lsi_member_number(m, "memory_bytes", false, 0, MOST_RATE);
    out->exchanging_s_per_byte = lsi_member_number(m, "exchanging_s_per_byte", false, 0, 1);
    out->rest_s = lsi_member_number(m, "rest_s", false, 0, MOST_SECONDS);
    out->error = lsi_member_number(m, "error", true, 0, 10);
    out->own_exchange = lsi_member_flag(m, "own_exchange", true);
}

static ls_status read_machine(ls_machine *out, const json_t *o, const char *path, ls_err *err)
{
    static const char *const names[] = {"format",
                                        "version",
                                        "name",
                                        "about",
                                        "source",
                                        "device",
                                        "threads",
                                        "ranks_per_node",
                                        "cores",
                                        "flop_s",
                                        "bytes_s",
                                        "rest_s",
                                        "memory_bytes",
                                        "error",
                                        "ops",
                                        "nodes",
                                        "jitter",
                                        "crowding",
                                        "own_exchange",
                                        "uneven",
                                        "uneven_error",
                                        "together",
                                        "exchanging_s_per_byte"};
    lsi_member m = {.o = o, .path = path, .arena = out->arena, .err = err};

    read_head(&m, out);
    lsi_member_known(&m, names, (int)(sizeof names / sizeof names[0]));
    read_ops(&m, out);
    read_nodes(&m, out);
    read_crowding(&m, out);
    read_jitter(&m, out);
    read_uneven(&m, out);
    read_together(&m, out);
    return m.st;
}

ls_status ls_machine_parse(ls_machine *m, const char *text, size_t length, const char *path, ls_err *err)
{
    json_error_t why;
    json_t *o = NULL;
    const json_t *inner;
    ls_status st = LS_OK;

    *m = (ls_machine){0};
    o = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (o == NULL)
        return ls_fail(err, LS_INVALID, "%s: line %d: %s; a machine is a JSON object (docs/predict.md)", path,
                       why.line, why.text);
    inner = json_object_get(o, "machine");
    st = ls_arena_create(&m->arena, LS_MEM_CLI, err);
    if (st == LS_OK) st = read_machine(m, json_is_object(inner) ? inner : o, path, err);
    json_decref(o);
    return st;
}

/* -- writing ----------------------------------------------------------------------------------------------
 */

static json_t *ops_json(const ls_machine *m)
{
    json_t *list = json_array();

    for (int32_t i = 0; i < m->n_ops; i++) {
        const ls_machine_op *o = &m->ops[i];
        json_array_append_new(list, json_pack("{s:s, s:b, s:f, s:f, s:f, s:f}", "op", o->op, "backward",
                                              (int)o->backward, "flop_s", o->flop_s, "bytes_s", o->bytes_s,
                                              "launch_s", o->launch_s, "error", o->error));
    }
    return list;
}

static json_t *nodes_json(const ls_machine *m)
{
    json_t *list = json_array();

    for (int32_t i = 0; i < m->n_nodes; i++) {
        const ls_machine_node *n = &m->nodes[i];
        json_t *points = json_array();
        for (int k = 0; k < n->n_points; k++)
            json_array_append_new(points, json_pack("[f, f, f, f]", n->point[k].batch, n->point[k].seconds,
                                                    n->point[k].flops, n->point[k].bytes));
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:b, s:o}", "op", n->op, "attributes", n->attributes,
                                        "layer", n->layer, "backward", (int)n->backward, "points", points));
    }
    return list;
}

static json_t *crowding_json(const ls_machine *m)
{
    json_t *list = json_array();

    for (int32_t i = 0; i < m->n_crowding; i++) {
        const ls_crowding *c = &m->crowding[i];
        json_array_append_new(list, json_pack("{s:i, s:f, s:f}", "ranks", (int)c->ranks, "batch", c->batch,
                                              "factor", c->factor));
    }
    return list;
}

static json_t *together_json(const ls_machine *m)
{
    json_t *list = json_array();

    for (int32_t i = 0; i < m->n_together; i++) {
        const ls_together *t = &m->together[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:i, s:i, s:f, s:f, s:f}", "experiment", t->experiment,
                                        "ranks", (int)t->ranks, "nodes", (int)t->nodes, "batch", t->batch,
                                        "measured_s", t->measured_s, "computed_s", t->computed_s));
    }
    return list;
}

static json_t *factors_json(const double *of, int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++) json_array_append_new(list, json_real(of[i]));
    return list;
}

/* None where it spreads like nothing that was measured. */
static json_t *percentiles_json(const double *p)
{
    return factors_json(p, p[0] < 1 || p[LS_JITTER_N - 1] > 1 ? LS_JITTER_N : 0);
}

static json_t *jitter_json(const ls_machine *m)
{
    json_t *list = json_array();

    for (int32_t i = 0; i < m->n_jitter; i++)
        json_array_append_new(list, json_pack("{s:f, s:o, s:o}", "step_s", m->jitter[i].step_s, "alone",
                                              percentiles_json(m->jitter[i].alone), "crowded",
                                              percentiles_json(m->jitter[i].crowded)));
    return list;
}

json_t *ls_machine_json(const ls_machine *m)
{
    return json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:o, s:o, "
        "s:f, s:o, s:o, s:o, s:o}",
        "format", "lockstep-machine", "version", LS_MACHINE_FORMAT, "name", m->name, "about", m->about,
        "source", m->source, "device", m->device, "threads", (int)m->threads, "ranks_per_node",
        (int)m->ranks_per_node, "cores", (int)m->cores, "flop_s", m->flop_s, "bytes_s", m->bytes_s,
        "memory_bytes", m->memory_bytes, "rest_s", m->rest_s, "exchanging_s_per_byte",
        m->exchanging_s_per_byte, "error", m->error, "own_exchange", (int)m->own_exchange, "jitter",
        jitter_json(m), "uneven", factors_json(m->uneven, (int)m->n_uneven), "uneven_error", m->uneven_error,
        "crowding", crowding_json(m), "together", together_json(m), "ops", ops_json(m), "nodes",
        nodes_json(m));
}
