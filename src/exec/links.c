/* links.c: kernels that start and wait for collectives of devices. */
#include "exec/links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/grow.h"
#include "exec/collectives_internal.h"
#include "exec/join_link.h"

#define LOOK_EVERY_NS UINT64_C(20000000)

bool lsi_links_run(const ls_peers *p, const ls_node *n)
{
    const ls_collective_attr *a = n->attr;

    return p != NULL && p->links != NULL && lsi_coll_runs(p, n) && a->shards == 0 && a->plain == 0 &&
           (n->op->coll_op == LS_COLL_OP_START || n->op->coll_op == LS_COLL_OP_WAIT);
}

/* -- who has a device, and which --------------------------------------------------------------------------
 */

/* What each rank tells all others. */
typedef struct standing {
    char place[LS_LINK_PLACE];
    int32_t host, can;
} standing;

static bool all_apart(const standing *all, int n)
{
    for (int i = 0; i < n; i++) {
        if (!all[i].can) return false;
        for (int k = 0; k < i; k++)
            if (all[i].host == all[k].host && strcmp(all[i].place, all[k].place) == 0) return false;
    }
    return true;
}

static bool is_off(void)
{
    const char *text = getenv("LOCKSTEP_NCCL");

    return text != NULL && strcmp(text, "off") == 0;
}

ls_status ls_peers_link(ls_peers *p, ls_device *dev, ls_err *err)
{
    const ls_links *links = dev->backend->links;
    const int ranks = ls_comm_size(p->comm);
    standing mine = {.host = ls_comm_host(p->comm)}, *all = NULL;
    char about[64] = "";
    ls_err why = {0};
    ls_status st = LS_OK;

    if (ranks < 2 || links == NULL) return LS_OK; /* on all alike: it is the same device everywhere */
    all = ls_alloc(LS_MEM_COMM, sizeof *all * (size_t)ranks);
    if (all == NULL) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    mine.can = !is_off() && links->probe(dev, about, sizeof about, mine.place, &why) == LS_OK;
    LS_TRY(ls_comm_gather_all(p->comm, &mine, sizeof mine, all, "looking for devices", err));
    if (all_apart(all, ranks)) {
        p->links = links;
        p->dev = dev;
        snprintf(p->links_text, sizeof p->links_text, "by %s: every rank has a device of its own", about);
    } else {
        snprintf(p->links_text, sizeof p->links_text, "through the host: %.280s",
                 mine.can              ? "ranks share a device, or one lacks the library"
                 : why.text[0] != '\0' ? why.text
                                       : "LOCKSTEP_NCCL=off");
    }
out:
    ls_free(all);
    return st;
}

const char *ls_peers_links_text(const ls_peers *p)
{
    return p != NULL ? p->links_text : "";
}

bool ls_peers_linked(const ls_peers *p)
{
    return p != NULL && p->links != NULL;
}

/* What members of one group have in common, and those of others have not. */
static int64_t key_of(const ls_comm *c, ls_group group)
{
    if (group == LS_GROUP_ALL) return 0;
    if (group == LS_GROUP_MACHINE) return ls_comm_host(c);
    return (int64_t)ls_comm_host(c) << 32 | ls_comm_local_rank(c) / ls_group_size(c, group);
}

typedef struct invitation {
    char id[LS_LINK_ID];
    int64_t key;
    int32_t first; /* it is of the group's first member */
} invitation;

/* Collective among all ranks: their groups are made at the same time. */
static ls_status join_group(ls_peers *p, ls_group group, ls_err *err)
{
    const int ranks = ls_comm_size(p->comm), own = ls_group_rank(p->comm, group);
    invitation mine = {.key = key_of(p->comm, group), .first = own == 0}, *all = NULL;
    const char *id = NULL;
    ls_status st = LS_OK;

    if (p->link[group] != NULL) return LS_OK;
    all = ls_alloc(LS_MEM_COMM, sizeof *all * (size_t)ranks);
    if (all == NULL) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    if (own == 0) LS_TRY(p->links->name_group(p->dev, mine.id, err));
    LS_TRY(ls_comm_gather_all(p->comm, &mine, sizeof mine, all, "naming groups of devices", err));
    for (int i = 0; i < ranks && id == NULL; i++)
        if (all[i].first && all[i].key == mine.key) id = all[i].id;
    LS_BUG_IF(id == NULL);
    LS_TRY(lsi_join_link(p, &p->link[group], id, own, ls_group_size(p->comm, group), err));
out:
    ls_free(all);
    return st;
}

/* -- memory ------------------------------------------------------------------------------------------------
 */

/* The vector of a bucket, or of a room, which may be larger than it must. */
static ls_status find_vector(ls_peers *p, const lsi_vector *want, bool at_least, float **out, ls_err *err)
{
    lsi_vector *v;
    ls_status st = LS_OK;

    for (int i = 0; i < p->n_vectors; i++) {
        v = p->vectors[i];
        if (v->room != want->room || v->number != want->number || v->group != want->group ||
            v->kind != want->kind || (at_least ? v->floats < want->floats : v->floats != want->floats))
            continue;
        *out = ls_buffer_address(&v->memory, 0);
        return LS_OK;
    }
    if (!LS_GROW(LS_MEM_COMM, p->vectors, p->n_vectors + 1, p->cap_vectors) ||
        (v = ls_alloc(LS_MEM_COMM, sizeof *v)) == NULL)
        return ls_fail(err, LS_NOMEM, "ranks: no memory");
    *v = *want;
    p->vectors[p->n_vectors++] = v;
    LS_TRY(ls_buffer_alloc(&v->memory, p->dev, sizeof(float) * (size_t)(v->floats > 0 ? v->floats : 1), err));
    LS_TRY(ls_buffer_zero(&v->memory, 0, v->memory.bytes, err)); /* between tensors nobody writes */
    *out = ls_buffer_address(&v->memory, 0);
out:
    return st;
}

/* Where the node's vector is looked for. */
static lsi_vector vector_of(const ls_node *n, const lsi_transfer *t)
{
    const ls_collective_attr *a = n->attr;

    return (lsi_vector){.room = a->room > 0,
                        .number = a->room > 0 ? a->room : a->bucket,
                        .group = a->group,
                        .kind = a->room > 0 ? LS_COLL_NONE : n->op->collective,
                        .floats = t->length * t->stretches};
}

/* The larger one of *out and the node's. */
static ls_status largest(ls_peers *p, const ls_graph *g, const ls_node *n, lsi_vector *out, ls_err *err)
{
    lsi_transfer *t = lsi_coll_transfer(p, n);
    lsi_vector v;
    ls_status st = LS_OK;

    if (t == NULL) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    LS_TRY(lsi_coll_lay_out(p, g, n, t, err));
    v = vector_of(n, t);
    if (v.floats > out->floats) *out = v;
out:
    ls_free(t);
    return st;
}

static bool has_room(const ls_peers *p, const ls_node *n)
{
    return !n->dead && lsi_links_run(p, n) && n->op->coll_op == LS_COLL_OP_START &&
           ((const ls_collective_attr *)n->attr)->room > 0;
}

ls_status lsi_links_rooms(ls_peers *p, const ls_graph *g, ls_err *err)
{
    ls_status st = LS_OK;

    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_collective_attr *a = g->nodes[i]->attr;
        lsi_vector most = {.floats = -1};
        float *unused;
        if (!has_room(p, g->nodes[i])) continue;
        for (int32_t k = 0; k < g->n_nodes; k++) {
            const ls_collective_attr *b = g->nodes[k]->attr;
            if (has_room(p, g->nodes[k]) && b->room == a->room && b->group == a->group)
                LS_TRY(largest(p, g, g->nodes[k], &most, err));
        }
        LS_TRY(find_vector(p, &most, true, &unused, err));
    }
out:
    return st;
}

size_t lsi_links_bytes(const ls_peers *p)
{
    size_t sum = 0;

    for (int i = 0; i < p->n_vectors; i++) sum += p->vectors[i]->memory.bytes;
    return sum;
}

/* -- running ------------------------------------------------------------------------------------------------
 */

static char *at_float(float *vector, int64_t i)
{
    return (char *)(vector + i);
}

static void add_piece(lsi_transfer *t, int *n, void *to, const void *from, int64_t bytes, const float *weight)
{
    if (bytes > 0) t->pieces[(*n)++] = (ls_link_piece){to, from, bytes, weight};
}

/* Tensor i, stretch by stretch where it is cut, with zeros behind what is shorter than its place. */
static void give(lsi_transfer *t, int i, const char *from, const float *weight, int *n)
{
    const lsi_place *at = &t->at[i];
    const int first = t->gathers ? t->own : 0, stretches = t->scatters ? t->stretches : 1;
    const int64_t size = at->size, room = (at->count * size + 3) / 4 * 4;

    for (int r = 0; r < stretches; r++) {
        const int64_t left = at->whole - r * at->count;
        const int64_t count = left < at->count ? (left > 0 ? left : 0) : at->count;
        char *to = at_float(t->vector, (first + r) * t->length + at->offset);
        add_piece(t, n, to, from + r * at->count * size, count * size, weight);
        add_piece(t, n, to + count * size, NULL, room - count * size, NULL);
    }
}

static void run_start(void *state, const ls_call *call)
{
    lsi_transfer *t = state;
    const float *weight = t->first > 0 ? call->in[0] : NULL;
    ls_err err = {0};
    ls_status st = LS_OK;
    int n = 0;

    for (int i = 0; t->gives && i < t->n; i++)
        give(t, i, call->in[t->first + i], i < t->n - t->n_plain ? weight : NULL, &n);
    add_piece(t, &n, call->out[0], weight, sizeof(float), NULL); /* the token */
    LS_TRY(t->peers->links->move(t->peers->link[t->group], t->pieces, n, &err));
    LS_TRY(t->peers->links->run(t->peers->link[t->group], t->kind, t->vector, t->length, t->root, &err));
out:
    if (st != LS_OK) ls_stream_fail(call->stream, st, "%s", err.text);
}

static void run_wait(void *state, const ls_call *call)
{
    lsi_transfer *t = state;
    const int first = t->scatters ? t->own : 0,
              end = t->scatters ? t->own + 1 : (t->gathers ? t->stretches : 1);
    ls_err err = {0};
    int n = 0;

    for (int i = 0; i < t->n; i++)
        for (int r = first; r < end; r++) {
            const lsi_place *at = &t->at[i];
            const int64_t bytes = at->count * at->size;
            add_piece(t, &n, (char *)call->out[i] + (r - first) * bytes,
                      at_float(t->vector, r * t->length + at->offset), bytes, NULL);
        }
    if (t->peers->links->move(t->peers->link[t->group], t->pieces, n, &err) != LS_OK)
        ls_stream_fail(call->stream, err.status, "%s", err.text);
}

static void destroy(void *state)
{
    lsi_transfer *t = state;

    ls_free(t->pieces);
    ls_free(t);
}

ls_status lsi_links_plan(ls_peers *p, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const ls_collective_attr *a = n->attr;
    lsi_transfer *t = lsi_coll_transfer(p, n);
    lsi_vector want;
    ls_status st = LS_OK;

    if (t == NULL) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    *out = (ls_kernel){.run = n->op->coll_op == LS_COLL_OP_START ? run_start : run_wait,
                       .destroy = destroy,
                       .state = t,
                       .impl = p->links->name};
    t->kind = n->op->collective;
    t->root = a->root;
    LS_TRY(lsi_coll_lay_out(p, g, n, t, err));
    t->pieces = ls_alloc(LS_MEM_PLAN, sizeof *t->pieces * (size_t)(2 * t->n * t->stretches + 1));
    if (t->pieces == NULL) {
        st = ls_fail(err, LS_NOMEM, "ranks: no memory");
        goto out;
    }
    LS_TRY(join_group(p, a->group, err));
    want = vector_of(n, t);
    LS_TRY(find_vector(p, &want, want.room, &t->vector, err));
    LS_TRY(lsi_coll_note_bucket(p, n, t, err));
out:
    return st;
}

/* -- what may go wrong --------------------------------------------------------------------------------------
 */

static void give_up(ls_peers *p)
{
    for (int i = 0; i < LS_GROUPS; i++)
        if (p->link[i] != NULL) p->links->give_up(p->link[i]);
}

ls_status lsi_links_watch(ls_peers *p, ls_err *err)
{
    const uint64_t now = ls_clock_ns();
    ls_status st = LS_OK;

    if (p == NULL || p->links == NULL) return LS_OK;
    if (p->links_lost.status != LS_OK) return ls_fail(err, p->links_lost.status, "%s", p->links_lost.text);
    if (now - p->looked_ns < LOOK_EVERY_NS) return LS_OK;
    p->looked_ns = now;
    /* A rank that is gone is why the library fails: asked first. */
    st = ls_comm_alive(p->comm, "collectives of devices", &p->links_lost);
    for (int i = 0; i < LS_GROUPS && st == LS_OK; i++)
        if (p->link[i] != NULL) st = p->links->check(p->link[i], &p->links_lost);
    if (st == LS_OK) return LS_OK;
    give_up(p);
    return ls_fail(err, st, "%s", p->links_lost.text);
}

void lsi_links_release(ls_peers *p)
{
    /* What is under way would wait for whoever is gone. */
    if (p->links != NULL && ls_comm_alive(p->comm, "leaving", NULL) != LS_OK) give_up(p);
    for (int i = 0; i < LS_GROUPS; i++)
        if (p->link[i] != NULL) p->links->close(p->link[i]);
    for (int i = 0; i < p->n_vectors; i++) {
        ls_buffer_free(&p->vectors[i]->memory);
        ls_free(p->vectors[i]);
    }
    ls_free(p->vectors);
}
