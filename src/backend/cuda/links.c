/* links.c: collectives between GPUs by NCCL, on the stream of the queue that asks for them. */
#include <stdatomic.h>
#include <stdio.h>

#include "backend/cuda/kernel_util.h"
#include "backend/links.h"
#include "backend/nccl.h"

struct ls_link {
    const lsi_cuda_device *dev;
    lsi_nccl_comm comm;
    int rank;
    atomic_bool given_up; /* the rest is as it was */
};

static ls_status probe(ls_device *dev, char *about, size_t size, char place[LS_LINK_PLACE], ls_err *err)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);
    int version;
    ls_status st = LS_OK;

    LS_TRY(lsi_nccl_load(&version, err));
    lsi_nccl_text(version, about, size);
    if (d->bus[0] == '\0')
        return ls_fail(err, LS_UNSUPPORTED, "nobody knows where the GPU is in the machine");
    snprintf(place, LS_LINK_PLACE, "%s", d->bus);
out:
    return st;
}

static ls_status name_group(ls_device *dev, char id[LS_LINK_ID], ls_err *err)
{
    (void)dev;
    return lsi_nccl_name_group(id, err);
}

/* NCCL takes the device that the thread uses. */
static ls_status open_link(ls_link **out, ls_device *dev, const char id[LS_LINK_ID], int rank, int ranks,
                           ls_err *err)
{
    ls_link *l = ls_alloc(LS_MEM_COMM, sizeof *l);
    size_t free, all;
    ls_status st = LS_OK;

    *out = NULL;
    if (l == NULL) return ls_fail(err, LS_NOMEM, "cuda: no memory for a link");
    l->dev = lsi_cuda_of(dev);
    l->rank = rank;
    (void)l->dev->api->memory(&free, &all); /* any call of the module's has the thread use the device */
    LS_TRY(lsi_nccl_open(&l->comm, id, rank, ranks, err));
    *out = l;
    l = NULL;
out:
    ls_free(l);
    return st;
}

static void give_up(ls_link *l)
{
    if (!atomic_exchange(&l->given_up, true)) lsi_nccl_close(l->comm, true);
}

static void close_link(ls_link *l)
{
    if (l == NULL) return;
    if (!atomic_load(&l->given_up)) lsi_nccl_close(l->comm, false);
    ls_free(l);
}

static ls_status move(ls_link *l, const ls_link_piece *pieces, int n, ls_err *err)
{
    lsi_cuda_pieces_args a = {.n = 0};
    int code = 0;

    for (int i = 0; i < n && code == 0; i++) {
        if (pieces[i].bytes > 0) a.of[a.n++] = pieces[i];
        if (a.n < LSI_CUDA_PIECES && i + 1 < n) continue;
        code = l->dev->api->launch.pieces(l->dev->now, &a);
        a.n = 0;
    }
    return code == 0 ? LS_OK : ls_fail(err, LS_DEVICE, "cuda: %s", l->dev->api->error(code));
}

static ls_status run(ls_link *l, ls_collective kind, float *vector, int64_t n, int root, ls_err *err)
{
    if (atomic_load(&l->given_up)) return ls_fail(err, LS_LOST, "collectives of devices were given up");
    return lsi_nccl_run(l->comm, l->rank, kind, vector, n, root, l->dev->now, err);
}

static ls_status check(ls_link *l, ls_err *err)
{
    return atomic_load(&l->given_up) ? LS_OK : lsi_nccl_check(l->comm, err);
}

const ls_links lsi_cuda_links = {.name = "nccl",
                                 .probe = probe,
                                 .name_group = name_group,
                                 .open = open_link,
                                 .give_up = give_up,
                                 .close = close_link,
                                 .move = move,
                                 .run = run,
                                 .check = check};
