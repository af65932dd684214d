/* region_writer.h (internal): what the writers of a region's first kernel share: barriers where memory that
 * one call has written is read by another, or used again, and names of what calls work on. */
#ifndef LS_BACKEND_CUDA_REGION_WRITER_H
#define LS_BACKEND_CUDA_REGION_WRITER_H

#include "backend/cuda/region.h"

enum { LSI_REGION_TOUCHED = 512 };

/* Memory of the sample that a call touches. */
typedef struct lsi_region_range {
    int from, to;
    bool written;
    const lsi_region_place
        *own; /* a thread touches every THREADS-th element of it alone; NULL: it does not */
} lsi_region_range;

typedef struct lsi_region_writer {
    ls_text *out;
    const lsi_region *r;
    lsi_region_range touched[LSI_REGION_TOUCHED]; /* since the last barrier */
    int n_touched;
    lsi_region_range next[64]; /* what the call that is being written touches */
    int n_next;
    bool cleared[LSI_REGION_PLACES];
} lsi_region_writer;

/* -- barriers (region_writer.c) ---------------------------------------------------------------------------
 */

/* What the next call touches. */
void lsi_touch(lsi_region_writer *w, int from, int size, bool written);
/* `own`: a thread touches elements ME, ME + THREADS, and so on: it waits for nobody who does the same. */
void lsi_touch_place(lsi_region_writer *w, int place, bool written, bool own);
void lsi_touch_value(lsi_region_writer *w, int32_t id, bool written, bool own);
/* Whether a barrier must stand before it; with one, or without, the call can be written. */
bool lsi_must_wait(const lsi_region_writer *w);
void lsi_add_barrier(lsi_region_writer *w);
void lsi_add_call(lsi_region_writer *w);

/* -- names (region_writer.c) ------------------------------------------------------------------------------
 */

int lsi_place_of(const lsi_region_writer *w, int32_t id);
/* Where a value lies in global memory. */
void lsi_add_pointer(lsi_region_writer *w, int32_t id, const char *type);
/* The same of weights, or where they lie in shared memory. */
void lsi_add_weights(lsi_region_writer *w, int32_t id);
/* The very float, as bits. */
void lsi_add_float(lsi_region_writer *w, double x);
void lsi_add_taps(lsi_region_writer *w, const ls_node *n);
/* How product i is cut. */
void lsi_add_cut(lsi_region_writer *w, int i);
/* Numbers of their own: a sample's label, and what all elements share. */
void lsi_add_label(lsi_region_writer *w, int32_t id);
void lsi_add_single(lsi_region_writer *w, int32_t id);

/* -- region_members.c -------------------------------------------------------------------------------------
 */

/* The call of member i. */
void lsi_add_member(lsi_region_writer *w, int i);

#endif
