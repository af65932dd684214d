/* together_internal.h: ranks that write and read one file together, each its pieces of variables. */
#ifndef LS_CKPT_TOGETHER_INTERNAL_H
#define LS_CKPT_TOGETHER_INTERNAL_H

#include <xxhash.h>

#include "ckpt/ckpt_internal.h"
#include "comm/comm.h"

enum { LSI_WORD = 32 };
#define LSI_NOWHERE UINT64_MAX /* of a variable that is not in pieces, or not in the file */

/* What rank 0 tells. */
typedef struct lsi_errand {
    char path[LSI_PATH], word[LSI_WORD];
    uint64_t file_bytes, header_bytes, header_xxh3; /* of a file that is read: whether it is the same one */
    int32_t n;                                      /* variables */
    int32_t loads;
} lsi_errand;

typedef struct lsi_together {
    const ls_state *vars;
    ls_comm *comm;
    lsi_errand e;
    uint64_t *at;   /* of each variable in pieces: where it begins in the file */
    uint64_t *hash; /* of each: when it is there, or what it must be */
    char *chunk;    /* LS_TENSOR_CHUNK */
} lsi_together;

ls_status lsi_together_open(lsi_together *s, const ls_state *vars, ls_err *err) LS_MUST_CHECK;
void lsi_together_close(lsi_together *s);
/* The hash of variable i as the file has it; h is the caller's, to be used again. */
ls_status lsi_together_hash(const lsi_together *s, int fd, int i, XXH3_state_t *h, uint64_t *hash,
                            ls_err *err) LS_MUST_CHECK;
/* Whether all have come so far; a rank that has not says why, the others know that one has not. */
ls_status lsi_together_all_well(const lsi_together *s, ls_status mine, ls_err *err);

/* All ranks, when they know the errand and its places: reads what rank 0 has asked for, every rank its
 * pieces. *done: all see the file.  *status and *trouble are what rank 0 makes of the file; *bad the variable
 * that is damaged, or -1.  Failures of the file are no failures of this. */
ls_status lsi_together_load(lsi_together *s, bool *done, int *bad, ls_status *status, ls_err *trouble,
                            ls_err *err) LS_MUST_CHECK;

#endif
