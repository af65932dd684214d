/* documents.h: the plans of a training step, written down (exec/document.h). */
#ifndef LS_TRAIN_DOCUMENTS_H
#define LS_TRAIN_DOCUMENTS_H

#include "exec/document.h"
#include "train/session.h"

enum { LS_SESSION_DOCUMENTS = 2 * LS_SESSION_STAGES };

typedef struct ls_documents {
    ls_document of[LS_SESSION_DOCUMENTS];
    const ls_batch_plan *plan[LS_SESSION_DOCUMENTS]; /* what each is of; the session's */
    int n;
} ls_documents;

/* In the order in which they run: "step", or "gradients" and "update" for every stage.  `batches`: how many
 * make an update.  Release in any case. */
ls_status ls_documents_make(ls_documents *d, const ls_session *s, int64_t batches, ls_err *err) LS_MUST_CHECK;
void ls_documents_release(ls_documents *d);

#endif
