/* groups.c: see groups.h. */
#include "backend/cuda/groups.h"

lsi_cuda_groups lsi_cuda_groups_of_map(lsi_cuda_map m, bool per_sample)
{
    if (m.channels_last && per_sample) return (lsi_cuda_groups){true, m.n, m.c, m.s, 1, NULL, NULL};
    if (m.channels_last) return (lsi_cuda_groups){true, 1, m.c, m.n * m.s, 1, NULL, NULL};
    if (per_sample) return (lsi_cuda_groups){false, 1, m.n * m.c, m.s, 1, NULL, NULL};
    return (lsi_cuda_groups){false, m.n, m.c, m.s, 1, NULL, NULL};
}

int64_t lsi_cuda_groups_count(const lsi_cuda_groups *g)
{
    return g->columns ? g->outer * g->groups : g->groups;
}

int64_t lsi_cuda_groups_length(const lsi_cuda_groups *g)
{
    return g->columns ? g->inner : g->outer * g->inner;
}

static int width(ls_dtype t)
{
    return t == LS_F32 ? 4 : 8;
}

/* Blocks side by side that cover all columns once. */
static int64_t column_blocks(const lsi_cuda_groups *g, ls_dtype t)
{
    const int64_t w = g->groups % width(t) == 0 ? LSI_SPAN_WIDE : LSI_SPAN_NARROW;

    return (g->groups + w - 1) / w;
}

/* About four blocks a processor, each with at least a few accesses per thread: fewer would leave processors
 * idle, more only makes the sum of partial sums longer. */
void lsi_cuda_groups_split(const lsi_cuda_device *d, ls_dtype t, lsi_cuda_groups *g)
{
    const int64_t alone = g->columns ? column_blocks(g, t) * g->outer : g->groups;
    const int64_t lanes = g->groups % width(t) == 0 ? LSI_SPAN_WIDE / width(t) : LSI_SPAN_NARROW;
    const int64_t rows = LSI_GROUP_THREADS / lanes;
    const int64_t steps =
        g->columns ? g->inner / rows : lsi_cuda_groups_length(g) / (width(t) * LSI_GROUP_THREADS);
    int64_t n = alone > 0 ? 4 * d->about.processors / alone : 1;

    if (n > steps / 4) n = steps / 4;
    g->splits = n < 1 ? 1 : n > 4096 ? 4096 : (int)n;
}

/* -- clusters ---------------------------------------------------------------------------------------------
 */

enum {
    ACCESS = 4,      /* elements that a thread reads at once */
    LEAST_ROWS = 32, /* of a block, unless it has all */
    MOST_BLOCKS = 8, /* of a cluster: more, or such as take most of a processor, wait for one another and for
                        what runs beside them */
    ROOM = 48 << 10, /* bytes of shared memory that a block keeps its rows in */
    FEW = 2          /* blocks a processor: with more, launches no longer count, and two passes are as fast */
};

/* Blocks enough for all processors before wide columns before few blocks. */
static bool better(lsi_cuda_cluster a, int64_t a_blocks, lsi_cuda_cluster b, int64_t b_blocks, int64_t enough)
{
    if (a_blocks < enough || b_blocks < enough) return a_blocks > b_blocks;
    return a.span != b.span ? a.span > b.span : a.blocks < b.blocks;
}

lsi_cuda_cluster lsi_cuda_cluster_of(const lsi_cuda_device *d, ls_dtype t, const lsi_cuda_groups *g,
                                     size_t kept)
{
    static const int spans[] = {LSI_CLUSTER_WIDE, LSI_CLUSTER_NARROW};
    const int64_t enough = d->about.processors * 9 / 10;
    lsi_cuda_cluster best = {0};
    int64_t best_blocks = 0;

    if (d->no_clusters || d->about.major < 9 || !g->columns || g->groups % width(t) != 0 || g->inner == 0 ||
        g->outer == 0 || g->outer > UINT16_MAX || g->inner * g->groups * g->outer > INT32_MAX)
        return best;
    for (int i = 0; i < 2; i++)
        for (int blocks = 1; blocks <= MOST_BLOCKS && g->groups % spans[i] == 0; blocks *= 2) {
            const lsi_cuda_cluster here = {blocks, spans[i]};
            const int64_t all = g->groups / spans[i] * g->outer * blocks;
            const int64_t share = (g->inner + blocks - 1) / blocks;
            const int64_t rows = LSI_CLUSTER_THREADS / (spans[i] / ACCESS);
            if ((size_t)((share + rows - 1) / rows * rows * spans[i]) * kept > ROOM) continue;
            if ((blocks > 1 && share < LEAST_ROWS) || all > FEW * d->about.processors) continue;
            if (best.blocks > 0 && !better(here, all, best, best_blocks, enough)) continue;
            best = here;
            best_blocks = all;
        }
    return best;
}

size_t lsi_cuda_groups_scratch(const lsi_cuda_groups *g, int n)
{
    if (g->splits == 1) return 0;
    return ((size_t)g->splits * (size_t)lsi_cuda_groups_count(g) * (size_t)n * sizeof(float) + 63) / 64 * 64;
}

int64_t lsi_cuda_groups_tickets(const lsi_cuda_groups *g, ls_dtype t)
{
    if (g->splits == 1) return 0;
    return g->columns ? column_blocks(g, t) * g->outer : g->groups;
}

ls_status lsi_cuda_tickets(const lsi_cuda_device *d, int64_t n, unsigned **out, ls_err *err)
{
    const size_t bytes = (size_t)n * sizeof(unsigned);
    int code;

    *out = NULL;
    if (n == 0) return LS_OK;
    code = d->api->alloc((void **)out, bytes);
    if (code == 0) code = d->api->zero(*out, bytes, d->stream[LS_QUEUE_COMPUTE]);
    if (code == 0) code = d->api->stream_sync(d->stream[LS_QUEUE_COMPUTE]);
    if (code == 0) return LS_OK;
    lsi_cuda_tickets_free(d, *out);
    *out = NULL;
    return ls_fail(err, LS_DEVICE, "cuda: %s", d->api->error(code));
}

void lsi_cuda_tickets_free(const lsi_cuda_device *d, unsigned *tickets)
{
    if (tickets != NULL) d->api->free(tickets);
}
