/* program.c: documents of a step's plans as the list of what a rank does.
 *
 * Everything that depends on the number of ranks is kept so that it follows by formula: which tensors travel
 * (from which the padded bytes of any number of pieces follow) and what members of a scope divide. */
#include "predict/program.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "comm/collective.h"
#include "predict/machine_internal.h"

enum { ALIGN = 16, FEW = 64, MOST_RUNS = 4096 }; /* floats, as exec/collectives.c has them; runs of a plan */

/* -- taking part ------------------------------------------------------------------------------------------
 */

int32_t ls_program_members(const ls_program *p, ls_scope scope, int32_t ranks, int32_t here)
{
    if (here < 1 || here > ranks) here = ranks;
    if (scope == LS_SCOPE_NODE) return here;
    if (scope == LS_SCOPE_GROUP && p->shard_group > 0 && p->shard_group < ranks) return p->shard_group;
    return ranks;
}

/* Pieces of a tensor begin at cache lines unless it is alone; without pieces tensors do. */
double ls_program_bytes(const ls_program *p, int32_t transfer, int32_t members)
{
    const ls_program_transfer *t = &p->transfers[transfer];
    const bool pieces = t->kind == LS_TRANSFER_REDUCE_SCATTER || t->kind == LS_TRANSFER_ALL_GATHER;
    const int64_t stretches = pieces ? members : 1;
    double floats = 0;

    for (int32_t i = 0; i < t->n_tensors; i++) {
        const int64_t count = pieces ? ls_exchange_piece(t->counts[i], members) : t->counts[i];
        const int64_t own = (count * t->sizes[i] + (int64_t)sizeof(float) - 1) / (int64_t)sizeof(float);
        floats += (double)(pieces && t->n_tensors == 1 ? own : (own + ALIGN - 1) / ALIGN * ALIGN);
    }
    return floats * (double)stretches * (double)sizeof(float);
}

double ls_program_traffic(const ls_program *p, int32_t ranks)
{
    double sum = 0;

    for (int32_t i = 0; i < p->n_transfers; i++) {
        const int32_t members = ls_program_members(p, p->transfers[i].scope, ranks, 1);
        const double bytes = ls_program_bytes(p, i, members) * (members - 1) / members;
        if (p->transfers[i].kind == LS_TRANSFER_BARRIER) continue;
        sum += p->transfers[i].kind == LS_TRANSFER_ALL_REDUCE ? 2 * bytes : bytes;
    }
    return sum;
}

double ls_program_compute(const ls_program *p, int32_t ranks, int32_t here)
{
    double sum = p->rest_s;

    for (int32_t i = 0; i < p->n_deeds; i++) {
        sum += p->deeds[i].seconds;
        for (int s = 0; s < LS_SCOPE_N; s++)
            sum += p->deeds[i].owned_s[s] / ls_program_members(p, (ls_scope)s, ranks, here);
    }
    return sum;
}

/* -- making -----------------------------------------------------------------------------------------------
 */

typedef struct maker {
    ls_program *p;
    const ls_program_args *a;
    const ls_machine *m;
    size_t cap_deeds, cap_transfers;
    ls_deed *deeds; /* grow; copied to the arena in the end */
    ls_program_transfer *transfers;
    double errors[LS_COST_N]; /* seconds x relative error, by source; but of rates by op: */
    double *op_errors;
    ls_err *err;
} maker;

/* What is known of one plan while its nodes are gone through. */
typedef struct part {
    const ls_document *d;
    int32_t at;        /* of the document in the step */
    ls_scope *owned;   /* of each node; LS_SCOPE_N: it is done by all */
    bool *pieces;      /* of each value: it is a piece */
    int32_t *starts;   /* of each node: the collective that it starts; -1 */
    int32_t *ends;     /* the same: waits for */
    int32_t *transfer; /* of each collective, once it was met in this run; -1 */
} part;

static ls_status no_memory(const maker *k)
{
    return ls_fail(k->err, LS_NOMEM, "no memory for a step of %d plans", k->a->n_plans);
}

static ls_deed *add_deed(maker *k, ls_deed_kind kind)
{
    if (!LS_GROW(LS_MEM_CLI, k->deeds, k->p->n_deeds + 1, k->cap_deeds)) return NULL;
    k->deeds[k->p->n_deeds] = (ls_deed){.kind = kind, .transfer = -1};
    return &k->deeds[k->p->n_deeds++];
}

static ls_scope scope_of(const ls_doc_node *start)
{
    if (strstr(start->attributes, " group=shard") != NULL) return LS_SCOPE_GROUP;
    if (strstr(start->attributes, " group=machine") != NULL) return LS_SCOPE_NODE;
    return LS_SCOPE_ALL;
}

/* -- what is divided --------------------------------------------------------------------------------------
 */

/* A slice of a flat tensor that is as long as a rank's piece of it. */
static bool takes_piece(const part *t, const ls_doc_node *n, int32_t members)
{
    const ls_doc_value *in, *out;

    if (strcmp(n->op, "slice") != 0 || n->n_in < 1 || n->n_out < 1 || members < 2) return false;
    in = &t->d->values[n->in[0]];
    out = &t->d->values[n->out[0]];
    return in->shape.rank == 1 && out->shape.rank == 1 &&
           ls_shape_count(out->shape) == ls_exchange_piece(ls_shape_count(in->shape), (int)members);
}

static bool in_pieces(const maker *k)
{
    for (int i = 0; i < k->a->n_plans; i++)
        for (int32_t b = 0; b < k->a->plans[i].n_buffers; b++)
            if (strcmp(k->a->plans[i].buffers[b].home, "sharded") == 0) return true;
    return false;
}

/* Values that are pieces: variables that are kept so, what was scattered, and what is made of them. */
static void find_owned(const maker *k, part *t, ls_scope scope)
{
    const ls_document *d = t->d;
    const int32_t members = ls_program_members(k->p, scope, k->a->ranks, k->a->here);
    const bool sharded = in_pieces(k);

    for (int32_t v = 0; v < d->n_values; v++)
        t->pieces[v] = d->values[v].buffer >= 0 && strcmp(d->values[v].kind, "variable") == 0 &&
                       strcmp(d->buffers[d->values[v].buffer].home, "sharded") == 0;
    for (int32_t i = 0; i < d->n_nodes; i++) {
        const ls_doc_node *n = &d->nodes[i];
        const bool scatters = strncmp(n->op, "reduce_scatter", 14) == 0;
        const bool cuts = sharded && takes_piece(t, n, members); /* which reads the whole, by its bytes */
        bool own = scatters;
        t->owned[i] = LS_SCOPE_N;
        if (strstr(n->attributes, " piece=") != NULL) t->owned[i] = LS_SCOPE_NODE;
        for (int j = 0; j < n->n_in; j++) own |= t->pieces[n->in[j]];
        if ((!own && !cuts) || strncmp(n->op, "all_gather", 10) == 0) continue;
        if (own) t->owned[i] = scope;
        for (int j = 0; j < n->n_out; j++)
            t->pieces[n->out[j]] = ls_shape_count(d->values[n->out[j]].shape) > 1;
    }
}

/* -- nodes ------------------------------------------------------------------------------------------------
 */

/* Neighbours are one deed. */
static ls_status add_run(maker *k, const part *t, int32_t node)
{
    const ls_scope owned = t->owned[node];
    ls_node_cost c = ls_machine_node_cost(k->m, t->d, &t->d->nodes[node]);
    ls_deed *last = k->p->n_deeds > 0 ? &k->deeds[k->p->n_deeds - 1] : NULL;
    int pieces = 1;

    k->p->found[c.source] += c.seconds;
    *(c.op >= 0 ? &k->op_errors[c.op] : &k->errors[c.source]) += c.seconds * c.error;
    if (last == NULL || last->kind != LS_DEED_RUN || last->plan != t->at || last->first + last->n != node) {
        last = add_deed(k, LS_DEED_RUN);
        if (last == NULL) return no_memory(k);
        last->plan = t->at;
        last->first = node;
    }
    last->n = node - last->first + 1;
    if (owned == LS_SCOPE_N) {
        last->seconds += c.seconds;
        return LS_OK;
    }
    /* The FLOPs of an update that ranks of a machine divide are those of all of it; elsewhere a piece's. */
    if (owned != LS_SCOPE_NODE) pieces = ls_program_members(k->p, owned, k->a->ranks, k->a->here);
    last->seconds += c.launch_s;
    last->owned_s[owned] += (c.seconds - c.launch_s) * pieces;
    return LS_OK;
}

/* -- transfers --------------------------------------------------------------------------------------------
 */

/* The elements of a gathered tensor without what pads its last pieces: those of a view that is read. */
static int64_t count_of_gathered(const ls_document *d, int32_t wait, int64_t padded, int32_t members)
{
    for (int32_t v = 0; v < d->n_values; v++) {
        const int64_t count = ls_shape_count(d->values[v].shape);
        if (d->values[v].node == wait && count < padded &&
            ls_exchange_piece(count, (int)members) * members == padded)
            return count;
    }
    return padded;
}

static ls_status add_tensors(maker *k, const ls_document *d, const ls_doc_collective *c,
                             ls_program_transfer *x)
{
    const ls_doc_node *start = &d->nodes[c->start], *wait = &d->nodes[c->end];
    const bool gathers = x->kind == LS_TRANSFER_ALL_GATHER;
    const int first = x->kind == LS_TRANSFER_ALL_REDUCE || x->kind == LS_TRANSFER_REDUCE_SCATTER ? 1 : 0;
    const int n = start->n_in - first;
    const int32_t members = ls_program_members(k->p, x->scope, k->a->ranks, k->a->here);

    if (n <= 0 || x->kind == LS_TRANSFER_BARRIER) return LS_OK;
    x->counts = ls_arena_alloc(k->p->arena, sizeof *x->counts * (size_t)n);
    x->sizes = ls_arena_alloc(k->p->arena, sizeof *x->sizes * (size_t)n);
    if (x->counts == NULL || x->sizes == NULL) return no_memory(k);
    for (int i = 0; i < n; i++) {
        const ls_doc_value *given = &d->values[start->in[first + i]];
        const ls_doc_value *whole = gathers && i < wait->n_out ? &d->values[wait->out[i]] : given;
        const int64_t count = ls_shape_count(given->shape);
        x->counts[i] = ls_shape_count(whole->shape);
        if (gathers) x->counts[i] = count_of_gathered(d, c->end, x->counts[i], members);
        x->sizes[i] = count > 0 ? (int32_t)(given->bytes / (size_t)count) : 4;
    }
    x->n_tensors = n;
    return LS_OK;
}

/* What it says of its bytes must be what follows from its tensors: else they would not follow for others. */
static ls_status check_bytes(const maker *k, const ls_doc_collective *c, int32_t transfer)
{
    const ls_program_transfer *x = &k->transfers[transfer];
    const int32_t members = ls_program_members(k->p, x->scope, k->a->ranks, k->a->here);
    ls_program with = *k->p;

    with.transfers = k->transfers;
    if (c->bucket < 0 || ls_program_bytes(&with, transfer, members) == (double)c->bytes) return LS_OK;
    return ls_fail(
        k->err, LS_INVALID,
        "the plan's %s of bucket %d says %zu bytes, and its tensors are %.0f among %d ranks; was it "
        "compiled for another number of ranks?",
        c->kind, (int)c->bucket, c->bytes, ls_program_bytes(&with, transfer, members), (int)members);
}

static ls_status new_transfer(maker *k, const ls_document *d, const ls_doc_collective *c, int32_t *number)
{
    const ls_doc_node *start = &d->nodes[c->start];
    ls_program_transfer *x;
    ls_status st = LS_OK;

    if (!LS_GROW(LS_MEM_CLI, k->transfers, k->p->n_transfers + 1, k->cap_transfers)) return no_memory(k);
    x = &k->transfers[k->p->n_transfers];
    *x = (ls_program_transfer){.bucket = c->bucket, .scope = scope_of(start), .carried = c->end < c->start};
    if (!ls_transfer_from(c->kind, &x->kind))
        return ls_fail(k->err, LS_INVALID, "the plan has a collective \"%s\", which nobody can predict",
                       c->kind);
    if (x->kind == LS_TRANSFER_BARRIER) x->scope = LS_SCOPE_NODE; /* of ranks that keep variables once */
    LS_TRY(add_tensors(k, d, c, x));
    x->narrow = (x->kind == LS_TRANSFER_ALL_REDUCE || x->kind == LS_TRANSFER_REDUCE_SCATTER) &&
                strstr(start->attributes, " exact") == NULL && c->bytes > FEW * sizeof(float);
    *number = k->p->n_transfers++;
    st = check_bytes(k, c, *number);
out:
    return st;
}

static ls_status add_move(maker *k, part *t, ls_deed_kind kind, int32_t collective)
{
    ls_deed *e;
    ls_status st = LS_OK;

    if (t->transfer[collective] < 0)
        LS_TRY(new_transfer(k, t->d, &t->d->collectives[collective], &t->transfer[collective]));
    e = add_deed(k, kind);
    if (e == NULL) return no_memory(k);
    e->plan = t->at;
    e->transfer = t->transfer[collective];
out:
    return st;
}

/* A carried wait stands before its start: that of the step before. */
static ls_status add_node(maker *k, part *t, int32_t node)
{
    const int32_t s = t->starts[node], e = t->ends[node];
    const bool carried = s >= 0 && t->d->collectives[s].end < t->d->collectives[s].start;
    ls_status st = LS_OK;

    if (s < 0 && e < 0) return strcmp(t->d->nodes[node].queue, "comm") == 0 ? LS_OK : add_run(k, t, node);
    if (s >= 0 && (k->a->overlap || carried || s == e)) LS_TRY(add_move(k, t, LS_DEED_START, s));
    if (e < 0) goto out;
    if (!k->a->overlap && s != e && t->d->collectives[e].end > t->d->collectives[e].start)
        LS_TRY(add_move(k, t, LS_DEED_START, e));
    LS_TRY(add_move(k, t, LS_DEED_WAIT, e));
out:
    return st;
}

static ls_status open_part(maker *k, part *t, int32_t at)
{
    const ls_document *d = &k->a->plans[at];
    const size_t nodes = (size_t)d->n_nodes + 1, n_colls = (size_t)d->n_collectives + 1;
    ls_scope scope = LS_SCOPE_ALL;

    *t = (part){.d = d,
                .at = at,
                .owned = ls_arena_alloc(k->p->arena, nodes * sizeof *t->owned),
                .pieces = ls_arena_alloc(k->p->arena, (size_t)d->n_values + 1),
                .starts = ls_arena_alloc(k->p->arena, nodes * sizeof *t->starts),
                .ends = ls_arena_alloc(k->p->arena, nodes * sizeof *t->ends),
                .transfer = ls_arena_alloc(k->p->arena, n_colls * sizeof *t->transfer)};
    if (t->owned == NULL || t->pieces == NULL || t->starts == NULL || t->ends == NULL || t->transfer == NULL)
        return no_memory(k);
    for (int32_t i = 0; i < d->n_nodes; i++) t->starts[i] = t->ends[i] = -1;
    for (int32_t i = 0; i < d->n_collectives; i++) {
        const ls_doc_collective *c = &d->collectives[i];
        if (c->start < 0 || c->end < 0 || t->starts[c->start] >= 0 || t->ends[c->end] >= 0)
            return ls_fail(k->err, LS_INVALID, "collective %d of plan %d shares its nodes with another",
                           (int)i, (int)at);
        t->starts[c->start] = t->ends[c->end] = i;
        if (scope_of(&d->nodes[c->start]) == LS_SCOPE_GROUP) scope = LS_SCOPE_GROUP;
    }
    find_owned(k, t, scope);
    return LS_OK;
}

static ls_status add_plan(maker *k, int32_t at)
{
    part t;
    ls_status st = LS_OK;

    LS_TRY(open_part(k, &t, at));
    if (t.d->runs < 1 || t.d->runs > MOST_RUNS) {
        st = ls_fail(k->err, LS_INVALID, "plan %d runs %lld times in a step; 1 to %d can be predicted",
                     (int)at, (long long)t.d->runs, MOST_RUNS);
        goto out;
    }
    for (int64_t run = 0; run < t.d->runs; run++) {
        for (int32_t i = 0; i < t.d->n_collectives; i++) t.transfer[i] = -1;
        for (int32_t i = 0; i < t.d->n_nodes; i++) LS_TRY(add_node(k, &t, i));
    }
out:
    return st;
}

/* -- all of it --------------------------------------------------------------------------------------------
 */

/* Errors of one source, or of one op's rates, have one cause and are added up; others are independent. */
static double error_of(const maker *k)
{
    double all = 0, sum = k->m->error * k->m->error;

    for (int s = 0; s < LS_COST_N; s++) all += k->p->found[s];
    for (int s = 0; all > 0 && s < LS_COST_N; s++) sum += k->errors[s] / all * (k->errors[s] / all);
    for (int32_t i = 0; all > 0 && i < k->m->n_ops; i++)
        sum += k->op_errors[i] / all * (k->op_errors[i] / all);
    return sqrt(sum);
}

static ls_status keep(maker *k)
{
    ls_program *p = k->p;

    p->deeds = ls_arena_alloc(p->arena, sizeof *p->deeds * ((size_t)p->n_deeds + 1));
    p->transfers = ls_arena_alloc(p->arena, sizeof *p->transfers * ((size_t)p->n_transfers + 1));
    if (p->deeds == NULL || p->transfers == NULL) return no_memory(k);
    if (p->n_deeds > 0) memcpy(p->deeds, k->deeds, sizeof *p->deeds * (size_t)p->n_deeds);
    if (p->n_transfers > 0) memcpy(p->transfers, k->transfers, sizeof *p->transfers * (size_t)p->n_transfers);
    return LS_OK;
}

ls_status ls_program_make(ls_program *p, const ls_program_args *a, const ls_machine *m, ls_err *err)
{
    maker k = {.p = p, .a = a, .m = m, .err = err};
    ls_status st = LS_OK;

    *p = (ls_program){.ranks = a->ranks,
                      .here = a->here > 0 && a->here < a->ranks ? a->here : a->ranks,
                      .shard_group = a->shard_group,
                      .wire_ratio = a->wire_ratio,
                      .rest_s = m->rest_s,
                      .own_exchange = m->own_exchange};
    if (a->n_plans < 1 || a->ranks < 1) return ls_fail(err, LS_INVALID, "a step has plans and ranks");
    LS_TRY(ls_arena_create(&p->arena, LS_MEM_CLI, err));
    k.op_errors = ls_arena_alloc(p->arena, sizeof *k.op_errors * ((size_t)m->n_ops + 1));
    if (k.op_errors == NULL) {
        st = no_memory(&k);
        goto out;
    }
    for (int i = 0; i < a->n_plans; i++) LS_TRY(add_plan(&k, i));
    p->batch = a->plans[0].batch;
    p->samples = a->plans[0].batch * a->plans[0].runs;
    p->error = error_of(&k);
    LS_TRY(keep(&k));
out:
    ls_free(k.deeds);
    ls_free(k.transfers);
    if (st != LS_OK) p->n_deeds = p->n_transfers = 0;
    return st;
}

ls_status ls_program_take(ls_program *p, double seconds, ls_err *err)
{
    const double all = ls_program_compute(p, 1, 1);

    if (!(all > 0))
        return ls_fail(err, LS_INVALID,
                       "nothing that is computed in a step takes time: what is to take %g s?", seconds);
    p->given_s = seconds;
    p->scale = seconds / all;
    p->rest_s *= p->scale;
    for (int32_t i = 0; i < p->n_deeds; i++) {
        p->deeds[i].seconds *= p->scale;
        for (int s = 0; s < LS_SCOPE_N; s++) p->deeds[i].owned_s[s] *= p->scale;
    }
    p->error = 0;
    return LS_OK;
}

void ls_program_release(ls_program *p)
{
    ls_arena_destroy(p->arena);
    *p = (ls_program){0};
}
