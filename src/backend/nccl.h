/* nccl.h: NVIDIA's collectives library, loaded when it is first asked for.
 *
 * Nothing is linked with it and no header of it is needed: the functions that are called, and the numbers of
 * types and sums in their arguments, have been the same since 2.10 (2021), which is what `lsi_nccl_load` asks
 * for; a later major version is refused, since it may mean others.  Streams are CUDA's. */
#ifndef LS_BACKEND_NCCL_H
#define LS_BACKEND_NCCL_H

#include "backend/links.h"

typedef struct lsi_nccl_comm *lsi_nccl_comm; /* an ncclComm_t */

/* LS_UNSUPPORTED with what is missing; the second call is free.  *version is 22707 for 2.27.7. */
ls_status lsi_nccl_load(int *version, ls_err *err) LS_MUST_CHECK;
/* "NCCL 2.27.7". */
void lsi_nccl_text(int version, char *buf, size_t size);

/* All after lsi_nccl_load has said LS_OK. */
ls_status lsi_nccl_name_group(char id[LS_LINK_ID], ls_err *err) LS_MUST_CHECK;
ls_status lsi_nccl_open(lsi_nccl_comm *out, const char id[LS_LINK_ID], int rank, int ranks,
                        ls_err *err) LS_MUST_CHECK;
void lsi_nccl_close(lsi_nccl_comm c, bool broken);
/* As ls_links.run, for member `rank`, into the stream. */
ls_status lsi_nccl_run(lsi_nccl_comm c, int rank, ls_collective kind, float *vector, int64_t n, int root,
                       void *stream, ls_err *err) LS_MUST_CHECK;
ls_status lsi_nccl_check(lsi_nccl_comm c, ls_err *err) LS_MUST_CHECK;

#endif
