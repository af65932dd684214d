/* confusion.h: which classes a classifier takes for which: counts over an evaluation, as JSON and as tables.
 *
 * Counts are whole numbers, so that they do not depend on which rank had which samples. */
#ifndef LS_TRAIN_CONFUSION_H
#define LS_TRAIN_CONFUSION_H

#include <jansson.h>

#include "base/text.h"
#include "comm/comm.h"
#include "report/report.h"

enum { LS_CONFUSION_MATRIX = 512 }; /* most classes of which all pairs are counted */

/* Starts as {0}; release. */
typedef struct ls_confusion {
    int64_t classes; /* 0: the model is no classifier, or nothing was counted yet */
    double *samples; /* per class: how many have this label */
    double *right;   /* of these: how many the model said so of */
    double *matrix;  /* classes x classes, by label, then by answer; NULL where there are too many classes */
} ls_confusion;

ls_status ls_confusion_open(ls_confusion *c, int64_t classes, ls_err *err) LS_MUST_CHECK;
void ls_confusion_release(ls_confusion *c);
/* The class with the largest of `n` scores: the first of equals, as ls_accuracy has it; -1: one is no number.
 */
int64_t ls_confusion_answer(const float *scores, int64_t n);
/* One sample; a label that is none of the classes is not counted. */
void ls_confusion_count(ls_confusion *c, int64_t label, int64_t answer);
/* What all ranks have counted, on all of them; collective. */
ls_status ls_confusion_add_up(ls_confusion *c, ls_comm *comm, ls_err *err) LS_MUST_CHECK;

/* {classes: [names, or null], samples, accuracy, per_class: [{class, name?, samples, right, accuracy}],
 * matrix: [[...]] or null}; `names` has n_names texts by label.  NULL when memory runs out. */
json_t *ls_confusion_json(const ls_confusion *c, const char *const *names, int64_t n_names);
/* That object for people: the classes, the worst first where there are many, and the matrix where it fits. */
ls_status ls_confusion_text(const json_t *o, ls_text *out, ls_err *err) LS_MUST_CHECK;

#define LS_CONFUSION_FILE "confusion.json"
/* Writes the object (with what the caller has added) into a run directory. */
ls_status ls_confusion_write(const json_t *o, const char *run, ls_err *err) LS_MUST_CHECK;
/* The page's section about the run at `path`: nothing where it has no such file; one that is none of ours is
 * passed over with a note. */
ls_status ls_confusion_page(ls_report *page, const char *path, const char *title, int number,
                            ls_err *err) LS_MUST_CHECK;

#endif
