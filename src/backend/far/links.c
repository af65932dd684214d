/* links.c: the library of GPUs on memory of the host's: what calls it is tried without a GPU, with a library
 * of the tests' own (tests/tools/fake_nccl.c), and only where LOCKSTEP_FAR_LINKS=1 says so. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/far/far_internal.h"
#include "backend/links.h"
#include "backend/nccl.h"
#include "base/alloc.h"

struct ls_link {
    const lsi_far *dev;
    lsi_nccl_comm comm;
    int rank;
    atomic_bool given_up; /* the rest is as it was */
};

static ls_status probe(ls_device *dev, char *about, size_t size, char place[LS_LINK_PLACE], ls_err *err)
{
    const char *wanted = getenv("LOCKSTEP_FAR_LINKS");
    int version;
    ls_status st = LS_OK;

    (void)dev;
    if (wanted == NULL || strcmp(wanted, "1") != 0)
        return ls_fail(err, LS_UNSUPPORTED, "LOCKSTEP_FAR_LINKS is not 1");
    LS_TRY(lsi_nccl_load(&version, err));
    lsi_nccl_text(version, about, size);
    /* Every process has a device of its own, unless all are to have one. */
    snprintf(place, LS_LINK_PLACE, "far %ld", getenv("LOCKSTEP_FAR_SHARED") != NULL ? 0 : (long)getpid());
out:
    return st;
}

static ls_status name_group(ls_device *dev, char id[LS_LINK_ID], ls_err *err)
{
    (void)dev;
    return lsi_nccl_name_group(id, err);
}

static ls_status open_link(ls_link **out, ls_device *dev, const char id[LS_LINK_ID], int rank, int ranks,
                           ls_err *err)
{
    ls_link *l = ls_alloc(LS_MEM_COMM, sizeof *l);
    ls_status st = LS_OK;

    *out = NULL;
    if (l == NULL) return ls_fail(err, LS_NOMEM, "far: no memory for a link");
    l->dev = (const lsi_far *)dev;
    l->rank = rank;
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
    (void)err;
    for (int i = 0; i < n; i++) {
        const ls_link_piece *p = &pieces[i];
        char *to = lsi_far_find(l->dev, p->to);
        const char *from = lsi_far_find(l->dev, p->from);
        const float *weight = lsi_far_find(l->dev, p->weight);
        if (p->bytes == 0) continue;
        LS_BUG_IF(to == NULL || (p->from != NULL && from == NULL) || (p->weight != NULL && weight == NULL));
        if (p->from == NULL || (weight != NULL && *weight == 0))
            memset(to, 0, (size_t)p->bytes);
        else if (weight == NULL)
            memcpy(to, from, (size_t)p->bytes);
        else
            for (int64_t k = 0; k < p->bytes / 4; k++) ((float *)to)[k] = *weight * ((const float *)from)[k];
    }
    return LS_OK;
}

static ls_status run(ls_link *l, ls_collective kind, float *vector, int64_t n, int root, ls_err *err)
{
    if (atomic_load(&l->given_up)) return ls_fail(err, LS_LOST, "collectives of devices were given up");
    return lsi_nccl_run(l->comm, l->rank, kind, lsi_far_find(l->dev, vector), n, root, NULL, err);
}

static ls_status check(ls_link *l, ls_err *err)
{
    return atomic_load(&l->given_up) ? LS_OK : lsi_nccl_check(l->comm, err);
}

const ls_links lsi_far_links = {.name = "nccl",
                                .probe = probe,
                                .name_group = name_group,
                                .open = open_link,
                                .give_up = give_up,
                                .close = close_link,
                                .move = move,
                                .run = run,
                                .check = check};
