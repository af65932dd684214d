/* kinds.c: see bodies.h: collectives other than the all-reduce, and leaves. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "bodies.h"
#include "ranks.h"

static int differs(const ls_comm *c, const ls_exchange_options *o, int64_t i, float got, float want)
{
    if (memcmp(&got, &want, sizeof got) == 0) return 0;
    printf("rank %d of %d: %s of %lld in group %d: element %lld is %.9g, expected %.9g\n", ls_comm_rank(c),
           ls_comm_size(c), ls_collective_name(o->kind), (long long)o->n, (int)o->group, (long long)i,
           (double)got, (double)want);
    return 1;
}

/* What a rank of a group gives in a step: different in every group. */
static float given(const ls_comm *c, const ls_exchange_options *o, int step, int rank, int64_t i)
{
    const int size = ls_group_size(c, o->group);
    const int group = o->group == LS_GROUP_ALL ? 0 : 1 + 8 * ls_comm_host(c) + ls_comm_local_rank(c) / size;

    return noise((uint64_t)(100 * step + group), (uint64_t)rank, (uint64_t)i);
}

static float weight_of(int rank)
{
    return (float)(rank + 1) * 0.25f;
}

/* The weighted sum along the tree over ranks. */
static float total(const ls_comm *c, const ls_exchange_options *o, int step, int first, int width, int64_t i)
{
    float left;

    if (width == 1) return weight_of(first) * given(c, o, step, first, i);
    left = total(c, o, step, first, width / 2, i);
    if (first + width / 2 >= ls_group_size(c, o->group)) return left;
    return left + total(c, o, step, first + width / 2, width / 2, i);
}

/* Fills what this rank gives; returns the stretch [*lo, *hi) of the result that it may look at. */
static void fill(const ls_comm *c, ls_exchange *x, const ls_exchange_options *o, int step, int64_t *lo,
                 int64_t *hi)
{
    const int rank = ls_group_rank(c, o->group);
    const int64_t piece = ls_exchange_piece(o->n, ls_group_size(c, o->group));
    const bool gathers = o->kind == LS_COLL_ALL_GATHER;
    float *part = ls_exchange_part(x, 0);

    *lo = rank * piece < o->n ? rank * piece : o->n;
    *hi = *lo + piece < o->n ? *lo + piece : o->n;
    for (int64_t i = gathers ? *lo : 0; part != NULL && i < (gathers ? *hi : o->n); i++)
        part[gathers ? i - *lo : i] = given(c, o, step, rank, i);
    if (o->kind == LS_COLL_REDUCE_SCATTER) return;
    *lo = 0;
    *hi = o->n;
}

static float expected(const ls_comm *c, const ls_exchange_options *o, int step, int64_t i)
{
    const int size = ls_group_size(c, o->group);
    int width = 1;

    if (o->kind == LS_COLL_BROADCAST) return given(c, o, step, o->root, i);
    if (o->kind == LS_COLL_ALL_GATHER) return given(c, o, step, (int)(i / ls_exchange_piece(o->n, size)), i);
    while (width < size) width *= 2;
    return total(c, o, step, 0, width, i);
}

static int run_kind(ls_comm *c, const ls_exchange_options *o)
{
    uint64_t pace = (uint64_t)ls_comm_rank(c);
    ls_exchange *x;
    ls_err err = {0};
    int wrong = expect_status(c, ls_exchange_create(&x, c, o, &err), LS_OK, &err, "create");

    for (int step = 0; step < 3 && wrong == 0; step++) {
        int64_t lo, hi;
        fill(c, x, o, step, &lo, &hi);
        dawdle(&pace);
        ls_exchange_start(x, weight_of(ls_group_rank(c, o->group)));
        for (int k = 0; k < 3; k++) {
            ls_exchange_progress(x);
            dawdle(&pace);
        }
        wrong += expect_status(c, ls_exchange_wait(x, &err), LS_OK, &err, "wait");
        for (int64_t i = lo; i < hi && wrong == 0; i++)
            wrong += differs(c, o, i, ls_exchange_result(x)[i], expected(c, o, step, i));
    }
    ls_exchange_destroy(x);
    return wrong;
}

int rank_moves(ls_comm *c, const void *arg)
{
    static const int64_t lengths[] = {0, 1, 3, 1001, 70001};
    int wrong = 0;

    (void)arg;
    ls_comm_set_shard_group(c, ls_comm_local_size(c) % 2 == 0 ? ls_comm_local_size(c) / 2 : 0);
    for (int kind = LS_COLL_ALL_REDUCE; kind <= LS_COLL_BROADCAST; kind++)
        for (int group = LS_GROUP_ALL; group <= LS_GROUP_SHARD; group++)
            for (size_t i = 0; i < sizeof lengths / sizeof *lengths && wrong == 0; i++) {
                const int size = ls_group_size(c, (ls_group)group);
                const ls_exchange_options o = {.name = "moving",
                                               .kind = (ls_collective)kind,
                                               .group = (ls_group)group,
                                               /* the same on all ranks, whatever their machines are */
                                               .root = group == LS_GROUP_ALL ? (int)i % size : 0,
                                               .n = lengths[i]};
                wrong += run_kind(c, &o);
            }
    return wrong;
}

int rank_moves_long(ls_comm *c, const void *arg)
{
    static const int64_t lengths[] = {400003, 1200001};
    static const ls_collective kinds[] = {LS_COLL_REDUCE_SCATTER, LS_COLL_ALL_GATHER};
    const int n = ls_comm_size(c) <= 4 ? 2 : 1; /* of lengths: others have many slices each already */
    int wrong = 0;

    (void)arg;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2 && wrong == 0; k++)
            wrong += run_kind(c, &(ls_exchange_options){.name = "long", .kind = kinds[k], .n = lengths[i]});
    return wrong;
}

/* -- rooms ------------------------------------------------------------------------------------------------
 */

static int move_in_turn(ls_comm *c, ls_exchange **x, const ls_exchange_options *o, int n)
{
    uint64_t pace = 7 * (uint64_t)ls_comm_rank(c);
    ls_err err = {0};
    int wrong = 0;

    for (int step = 0; step < 12 && wrong == 0; step++) {
        const int k = step % n;
        int64_t lo, hi;
        fill(c, x[k], &o[k], step, &lo, &hi);
        ls_exchange_start(x[k], weight_of(ls_group_rank(c, o[k].group)));
        dawdle(&pace);
        wrong += expect_status(c, ls_exchange_wait(x[k], &err), LS_OK, &err, "wait");
        for (int64_t i = lo; i < hi && wrong == 0; i++)
            wrong += differs(c, &o[k], i, ls_exchange_result(x[k])[i], expected(c, &o[k], step, i));
    }
    return wrong;
}

/* Exchanges of different kinds and lengths that use the same memory one after the other. */
int rank_moves_in(ls_comm *c, const void *arg)
{
    ls_exchange_room room = {0};
    const ls_exchange_options o[] = {
        {.name = "long", .kind = LS_COLL_ALL_GATHER, .n = 40003, .room = &room},
        {.name = "short", .kind = LS_COLL_REDUCE_SCATTER, .n = 1001, .room = &room},
        {.name = "longest", .kind = LS_COLL_ALL_REDUCE, .n = 70001, .room = &room},
    };
    enum { N = sizeof o / sizeof *o };
    ls_exchange *x[N] = {NULL};
    ls_shared *memory = NULL;
    ls_err err = {0};
    int wrong;

    (void)arg;
    for (int i = 0; i < N; i++) ls_exchange_need_room(c, &o[i], &room);
    wrong =
        expect_status(c, ls_shared_create(&memory, c, ls_exchange_room_bytes(c, LS_GROUP_ALL, &room), &err),
                      LS_OK, &err, "room");
    if (wrong == 0) room.at = ls_shared_data(memory);
    for (int i = 0; i < N && wrong == 0; i++)
        wrong += expect_status(c, ls_exchange_create(&x[i], c, &o[i], &err), LS_OK, &err, "create");
    if (wrong == 0) wrong = move_in_turn(c, x, o, N);
    for (int i = 0; i < N; i++) ls_exchange_destroy(x[i]);
    ls_shared_destroy(memory);
    return wrong;
}

/* -- leaves -----------------------------------------------------------------------------------------------
 */

enum { LANES = 3, LEAF_FLOATS = 3001 };

typedef struct lane {
    ls_exchange *x;
    uint64_t seed, pace;
    int64_t shard;
} lane;

static void *give_one(void *arg)
{
    lane *l = arg;
    float *leaf = ls_exchange_leaf(l->x);

    for (int64_t i = 0; i < LEAF_FLOATS; i++) leaf[i] = noise(l->seed, (uint64_t)l->shard, (uint64_t)i);
    dawdle(&l->pace);
    ls_exchange_give(l->x, leaf, l->shard);
    return NULL;
}

/* As many at once as there are lanes. */
static void give_leaves(ls_exchange *x, uint64_t seed, int64_t first, int64_t end)
{
    for (int64_t s = first; s < end; s += LANES) {
        pthread_t thread[LANES];
        lane lanes[LANES];
        const int n = end - s < LANES ? (int)(end - s) : LANES;
        for (int i = 0; i < n; i++) lanes[i] = (lane){x, seed, (uint64_t)(s + i), s + n - 1 - i};
        for (int i = 0; i < n; i++) pthread_create(&thread[i], NULL, give_one, &lanes[i]);
        for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
    }
}

/* The readable tree; shards from `given` on are zero. */
static float tree_of_given(uint64_t seed, int64_t shards, int64_t given_to, int64_t first, int64_t width,
                           int64_t i)
{
    float left;

    if (width == 1) return first < given_to ? noise(seed, (uint64_t)first, (uint64_t)i) : 0;
    left = tree_of_given(seed, shards, given_to, first, width / 2, i);
    if (first + width / 2 >= shards) return left;
    return left + tree_of_given(seed, shards, given_to, first + width / 2, width / 2, i);
}

int rank_gives_leaves(ls_comm *c, const void *arg)
{
    const int64_t shards = *(const int64_t *)arg;
    ls_exchange_options o = {
        .name = "leaves", .kind = LS_COLL_ALL_REDUCE, .n = LEAF_FLOATS, .n_shards = shards, .lanes = LANES};
    int64_t width = 1;
    ls_exchange *x;
    ls_err err = {0};
    int wrong = 0;

    while (width < shards) width *= 2;
    deal(shards, ls_comm_size(c), ls_comm_rank(c), &o.first_shard, &o.end_shard);
    wrong += expect_status(c, ls_exchange_create(&x, c, &o, &err), LS_OK, &err, "create");
    for (int step = 0; step < 3 && wrong == 0; step++) {
        const int64_t given_to = step == 2 ? shards - 2 : shards; /* the last ones have no samples */
        give_leaves(x, (uint64_t)step, o.first_shard, o.end_shard < given_to ? o.end_shard : given_to);
        ls_exchange_complete(x);
        ls_exchange_start(x, 1);
        wrong += expect_status(c, ls_exchange_wait(x, &err), LS_OK, &err, "wait");
        for (int64_t i = 0; i < o.n && wrong == 0; i++)
            wrong += differs(c, &o, i, ls_exchange_result(x)[i],
                             tree_of_given((uint64_t)step, shards, given_to, 0, width, i));
    }
    ls_exchange_destroy(x);
    return wrong;
}
