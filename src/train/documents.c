/* documents.c: documents of a session's plans. */
#include "train/documents.h"

static ls_status add(ls_documents *d, const ls_batch_plan *p, const char *part, int64_t runs, ls_err *err)
{
    ls_document *one = &d->of[d->n];
    const ls_status st = ls_document_make(one, p->plan, err);

    d->plan[d->n++] = p;
    one->part = part;
    one->stage = p->stage;
    one->batch = p->batch;
    one->runs = runs;
    return st;
}

ls_status ls_documents_make(ls_documents *d, const ls_session *s, int64_t batches, ls_err *err)
{
    ls_status st = LS_OK;

    *d = (ls_documents){.n = 0};
    for (int i = 0; i < s->n_stages; i++) {
        LS_TRY(add(d, ls_session_usual(s, i), s->split ? "gradients" : "step", s->split ? batches : 1, err));
        if (s->split) LS_TRY(add(d, &s->updates[i], "update", 1, err));
    }
out:
    return st;
}

void ls_documents_release(ls_documents *d)
{
    for (int i = 0; i < d->n; i++) ls_document_release(&d->of[i]);
    *d = (ls_documents){.n = 0};
}
