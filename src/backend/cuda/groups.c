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
