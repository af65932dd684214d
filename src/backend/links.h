/* links.h: collectives that devices run among themselves, by a library of their own (NCCL).
 *
 * A link is one device's end of a group of devices.  What it is told to do is enqueued, by a kernel while
 * that runs (backend.h), behind what its queue holds; the host waits for nothing.  Every member of a group
 * calls the same things in the same order: the turns of a plan see to that (passes/turns.c).
 *
 * A link belongs to one thread at a time, but for what says otherwise. */
#ifndef LS_BACKEND_LINKS_H
#define LS_BACKEND_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/collective.h"
#include "lockstep/status.h"

struct ls_device;
typedef struct ls_link ls_link;

enum { LS_LINK_ID = 128, LS_LINK_PLACE = 96 };

/* A stretch on its way within a device's memory, to a place where it does not lie yet. */
typedef struct ls_link_piece {
    void *to;
    const void *from; /* NULL: zeros */
    int64_t bytes;
    const float *weight; /* in the device's memory: floats are multiplied by it, and 0 makes zeros also of
                            what is not finite; NULL: bytes as they are */
} ls_link_piece;

typedef struct ls_links {
    const char *name; /* "nccl" */
    /* Whether the library is there for this device: LS_UNSUPPORTED says what is missing.  `about`: which one;
     * `place`: the device, by a name that no other on its machine has. */
    ls_status (*probe)(struct ls_device *dev, char *about, size_t size, char place[LS_LINK_PLACE],
                       ls_err *err);
    /* A name for a new group, which all its members are told. */
    ls_status (*name_group)(struct ls_device *dev, char id[LS_LINK_ID], ls_err *err);
    /* Collective among the members: waits for all of them, however long.  Called by a thread that is left in
     * it when one is gone. */
    ls_status (*open)(ls_link **out, struct ls_device *dev, const char id[LS_LINK_ID], int rank, int ranks,
                      ls_err *err);
    /* Others may be gone: what is under way ends, and what comes later fails.  From any thread. */
    void (*give_up)(ls_link *l);
    /* When nothing is under way any more.  Accepts NULL. */
    void (*close)(ls_link *l);

    /* Enqueued: pieces in any order, none of which another one reads or writes. */
    ls_status (*move)(ls_link *l, const ls_link_piece *pieces, int n, ls_err *err);
    /* Enqueued, in place.  all-reduce, broadcast: `n` floats at `vector`; reduce-scatter, all-gather: a
     * stretch of `n` floats for each member, this one's own is what it gets, or gives. */
    ls_status (*run)(ls_link *l, ls_collective kind, float *vector, int64_t n, int root, ls_err *err);
    /* What went wrong since, if anything: LS_LOST or LS_DEVICE.  Cheap; from any thread. */
    ls_status (*check)(ls_link *l, ls_err *err);
} ls_links;

#endif
