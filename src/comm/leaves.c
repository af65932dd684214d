/* leaves.c: the leaves of a rank become its parts: neighbours in the tree are added by whoever comes second.
 *
 * Which thread adds, and when, changes nothing: a sum of two subtrees is the same whoever makes it.  Where
 * leaves come `lanes` at a time, in ascending order, at most one sum per height waits for what was not begun
 * yet, and each lane has one buffer besides. */
#include <string.h>

#include "base/alloc.h"
#include "comm/exchange_internal.h"

/* A sum that waits for its neighbour. */
typedef struct waiting {
    lsi_node node;
    float *at;
} waiting;

struct lsi_leaves {
    pthread_mutex_t lock; /* guards all below; additions happen outside of it */
    int64_t first, end;   /* the rank's leaves */
    bool *given;
    float **free;
    int n_free, n_all;
    waiting *list;
    int n_waiting;
};

int lsi_leaves_buffers(int64_t n_leaves, int64_t first, int64_t end, int lanes)
{
    lsi_node parts[LSI_MAX_PARTS];
    const int n = lanes > 0 ? lsi_tree_parts(n_leaves, first, end, parts) : 0;
    int heights = 1;

    for (int j = 0; j < n; j++)
        while ((int64_t)1 << (heights - 1) < parts[j].end - parts[j].first) heights++;
    return lanes > 0 ? lanes + heights : 0;
}

ls_status lsi_leaves_create(ls_exchange *x, int64_t first, int64_t end, int buffers, float *memory,
                            size_t stride, ls_err *err)
{
    lsi_leaves *v = ls_alloc(LS_MEM_COMM, sizeof *v);

    x->leaves = v;
    if (v == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
    pthread_mutex_init(&v->lock, NULL);
    v->first = first;
    v->end = end;
    v->n_all = v->n_free = buffers;
    v->given = ls_alloc(LS_MEM_COMM, sizeof *v->given * (size_t)(end - first));
    v->free = ls_alloc(LS_MEM_COMM, sizeof *v->free * (size_t)buffers);
    v->list = ls_alloc(LS_MEM_COMM, sizeof *v->list * (size_t)buffers);
    if (v->given == NULL || v->free == NULL || v->list == NULL)
        return ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
    for (int i = 0; i < buffers; i++) v->free[i] = (float *)((char *)memory + (size_t)i * stride);
    return LS_OK;
}

void lsi_leaves_destroy(ls_exchange *x)
{
    lsi_leaves *v = x->leaves;

    if (v == NULL) return;
    pthread_mutex_destroy(&v->lock);
    ls_free(v->list);
    ls_free(v->free);
    ls_free(v->given);
    ls_free(v);
}

float *ls_exchange_leaf(ls_exchange *x)
{
    lsi_leaves *v = x->leaves;
    float *leaf;

    pthread_mutex_lock(&v->lock);
    LS_BUG_IF(v->n_free == 0);
    leaf = v->free[--v->n_free];
    pthread_mutex_unlock(&v->lock);
    return leaf;
}

static void put_back(lsi_leaves *v, float *buffer)
{
    pthread_mutex_lock(&v->lock);
    v->free[v->n_free++] = buffer;
    pthread_mutex_unlock(&v->lock);
}

/* Takes out the neighbour with which *mine makes up a larger subtree; false, and `mine` waits: it is not
 * there yet. */
static bool take_neighbour(lsi_leaves *v, int64_t n_leaves, const waiting *mine, waiting *other)
{
    bool found = false;

    pthread_mutex_lock(&v->lock);
    for (int i = 0; i < v->n_waiting && !found; i++) {
        *other = v->list[i];
        found = lsi_tree_siblings(n_leaves, other->node, mine->node) ||
                lsi_tree_siblings(n_leaves, mine->node, other->node);
        if (found) v->list[i] = v->list[--v->n_waiting];
    }
    if (!found) v->list[v->n_waiting++] = *mine;
    pthread_mutex_unlock(&v->lock);
    return found;
}

/* The part that the sum is all of, or -1. */
static int part_of(const ls_exchange *x, lsi_node node)
{
    for (int j = 0; j < x->n_parts; j++)
        if (x->part[j].first == node.first && x->part[j].end == node.end) return j;
    return -1;
}

void ls_exchange_give(ls_exchange *x, float *leaf, int64_t shard)
{
    lsi_leaves *v = x->leaves;
    waiting mine = {{shard, shard + 1}, leaf}, other;
    int part;

    LS_BUG_IF(shard < v->first || shard >= v->end || v->given[shard - v->first]);
    v->given[shard - v->first] = true;
    while ((part = part_of(x, mine.node)) < 0 && take_neighbour(v, x->n_shards, &mine, &other)) {
        const waiting left = mine.node.first < other.node.first ? mine : other,
                      right = mine.node.first < other.node.first ? other : mine;
        ls_sum_into(left.at, right.at, x->n);
        put_back(v, right.at);
        mine = (waiting){{left.node.first, right.node.end}, left.at};
    }
    if (part < 0) return;
    memcpy(x->part_at[part], mine.at, sizeof *mine.at * (size_t)x->n);
    put_back(v, mine.at);
}

void ls_exchange_complete(ls_exchange *x)
{
    lsi_leaves *v = x->leaves;

    for (int64_t s = v->first; s < v->end; s++) {
        if (v->given[s - v->first]) continue;
        float *leaf = ls_exchange_leaf(x);
        memset(leaf, 0, sizeof *leaf * (size_t)x->n);
        ls_exchange_give(x, leaf, s);
    }
    LS_BUG_IF(v->n_waiting != 0 || v->n_free != v->n_all);
    memset(v->given, 0, sizeof *v->given * (size_t)(v->end - v->first));
}
