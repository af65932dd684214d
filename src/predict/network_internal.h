/* network_internal.h: an object of a network's file while it is read, and how its switches are numbered. */
#ifndef LS_PREDICT_NETWORK_INTERNAL_H
#define LS_PREDICT_NETWORK_INTERNAL_H

#include <jansson.h>

#include "predict/network.h"

/* -- members of an object (network_fields.c) --------------------------------------------------------------
 */

/* One object, whose members are looked at one by one.  The first thing that is wrong is told, with the place
 * and the value; what follows is then read as nothing. */
typedef struct lsi_part {
    const json_t *o;
    char place[64]; /* "topology.levels[1]."; "": the file's own members */
    ls_network *n;
    const char *path; /* of the file */
    ls_err *err;
    ls_status *st; /* one for all parts of a file */
} lsi_part;

/* Ranges of figures, wide enough for all that was ever built and narrow enough that no sum overflows. */
#define LSI_SECONDS_MOST 1e3
#define LSI_RATE_LEAST   1.0
#define LSI_RATE_MOST    1e18
enum { LSI_MACHINES_MOST = 1 << 24 };

/* "FILE: node.bytes_s: ...". */
ls_status lsi_part_refuse(lsi_part *p, const char *key, const char *fmt, ...) LS_PRINTF(3, 4);
/* Refuses members that are none of `known`, with the nearest that is. */
void lsi_part_known(lsi_part *p, const char *const *known, size_t n_known);
/* Members; where `must` is false, those that are missing are 0 or "". */
double lsi_part_number(lsi_part *p, const char *key, bool must, double least, double most);
int32_t lsi_part_whole(lsi_part *p, const char *key, bool must, int32_t least, int32_t most);
const char *lsi_part_text(lsi_part *p, const char *key, bool must);
/* The member as a part of its own; `o` is NULL where it is not there or no object. */
lsi_part lsi_part_object(lsi_part *p, const char *key);
/* The list, of least to most objects; NULL after a refusal. */
const json_t *lsi_part_list(lsi_part *p, const char *key, size_t least, size_t most);
lsi_part lsi_part_item(lsi_part *p, const char *key, const json_t *list, size_t i);
/* Memory of the network for n items; NULL after a refusal. */
void *lsi_part_room(lsi_part *p, size_t n, size_t item_bytes);

/* Reads "topology" (network_topology.c). */
void lsi_read_topology(lsi_part *file);

/* A machine of the job in the network; contiguous where `node` is NULL. */
static inline int32_t lsi_place(const ls_job_placement *p, int32_t machine)
{
    return p->node != NULL ? p->node[machine] : machine;
}

#endif
