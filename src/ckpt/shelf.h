/* shelf.h (internal): the folder in which a run keeps its checkpoints: which ones stay, links, reserved
 * space. */
#ifndef LS_CKPT_SHELF_H
#define LS_CKPT_SHELF_H

#include "ckpt/ckpt_internal.h"

typedef struct lsi_kept {
    int64_t step;
    double metric; /* NaN: none */
    bool stays;    /* by the newest decision */
} lsi_kept;

typedef struct lsi_shelf {
    char folder[LSI_PATH];
    ls_ckpt_keep keep;
    size_t bytes; /* of one checkpoint */
    const lsi_io *io;
    lsi_kept *items; /* whole ones, oldest first */
    int n;
    size_t cap;
} lsi_shelf;

/* See ls_ckpt_writer_create.  Release in any case. */
ls_status lsi_shelf_open(lsi_shelf *s, const char *folder, ls_ckpt_keep keep, size_t bytes, const lsi_io *io,
                         ls_err *err);
void lsi_shelf_release(lsi_shelf *s); /* gives the reserved space back */

/* Takes note of a checkpoint that is safe on the disk, moves the links, and only then removes what need not
 * stay.
 */
ls_status lsi_shelf_add(lsi_shelf *s, int64_t step, double metric, ls_err *err);

/* What a person can do where only so many bytes are free; returns `text`. */
const char *lsi_shelf_remedy(const lsi_shelf *s, double free_bytes, char *text, size_t size);

/* Holds the space of one checkpoint, as far as the disk allows; the next write starts by giving it up. */
void lsi_shelf_reserve(const lsi_shelf *s);
void lsi_shelf_unreserve(const lsi_shelf *s);

#endif
