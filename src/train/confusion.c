/* confusion.c: counts of a classifier's answers. */
#include "train/confusion.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/replace.h"
#include "train/team.h"

ls_status ls_confusion_open(ls_confusion *c, int64_t classes, ls_err *err)
{
    const size_t n = (size_t)classes;

    *c = (ls_confusion){.classes = classes,
                        .samples = ls_alloc(LS_MEM_DATA, sizeof *c->samples * n),
                        .right = ls_alloc(LS_MEM_DATA, sizeof *c->right * n)};
    if (classes <= LS_CONFUSION_MATRIX) c->matrix = ls_alloc(LS_MEM_DATA, sizeof *c->matrix * n * n);
    if (c->samples != NULL && c->right != NULL && (c->matrix != NULL || classes > LS_CONFUSION_MATRIX))
        return LS_OK;
    return ls_fail(err, LS_NOMEM, "no memory for the counts of %lld classes", (long long)classes);
}

void ls_confusion_release(ls_confusion *c)
{
    ls_free(c->samples);
    ls_free(c->right);
    ls_free(c->matrix);
    *c = (ls_confusion){0};
}

int64_t ls_confusion_answer(const float *scores, int64_t n)
{
    int64_t best = 0;

    for (int64_t k = 0; k < n; k++) {
        if (isnan(scores[k])) return -1;
        if (scores[k] > scores[best]) best = k;
    }
    return best;
}

void ls_confusion_count(ls_confusion *c, int64_t label, int64_t answer)
{
    if (label < 0 || label >= c->classes) return;
    c->samples[label] += 1;
    c->right[label] += label == answer;
    if (c->matrix != NULL && answer >= 0) c->matrix[label * c->classes + answer] += 1;
}

ls_status ls_confusion_add_up(ls_confusion *c, ls_comm *comm, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(ls_team_add(comm, c->samples, c->classes, "adding up classes", err));
    LS_TRY(ls_team_add(comm, c->right, c->classes, "adding up classes", err));
    if (c->matrix != NULL)
        LS_TRY(ls_team_add(comm, c->matrix, c->classes * c->classes, "adding up classes", err));
out:
    return st;
}

/* -- JSON -------------------------------------------------------------------------------------------------
 */

static json_t *class_json(const ls_confusion *c, int64_t k, const char *name)
{
    json_t *o = json_pack("{s:I, s:s*, s:I, s:I}", "class", (json_int_t)k, "name", name, "samples",
                          (json_int_t)c->samples[k], "right", (json_int_t)c->right[k]);

    json_object_set_new(o, "accuracy",
                        c->samples[k] > 0 ? json_real(c->right[k] / c->samples[k]) : json_null());
    return o;
}

static json_t *matrix_json(const ls_confusion *c)
{
    json_t *rows;

    if (c->matrix == NULL) return json_null();
    rows = json_array();
    for (int64_t i = 0; i < c->classes; i++) {
        json_t *row = json_array();
        for (int64_t k = 0; k < c->classes; k++)
            json_array_append_new(row, json_integer((json_int_t)c->matrix[i * c->classes + k]));
        json_array_append_new(rows, row);
    }
    return rows;
}

json_t *ls_confusion_json(const ls_confusion *c, const char *const *names, int64_t n_names)
{
    json_t *per_class = json_array(), *list = n_names > 0 ? json_array() : json_null();
    double samples = 0, right = 0;

    for (int64_t k = 0; k < n_names; k++) json_array_append_new(list, json_string(names[k]));
    for (int64_t k = 0; k < c->classes; k++) {
        samples += c->samples[k];
        right += c->right[k];
        json_array_append_new(per_class, class_json(c, k, k < n_names ? names[k] : NULL));
    }
    return json_pack("{s:o, s:I, s:o, s:o, s:o}", "classes", list, "samples", (json_int_t)samples, "accuracy",
                     samples > 0 ? json_real(right / samples) : json_null(), "per_class", per_class, "matrix",
                     matrix_json(c));
}

ls_status ls_confusion_write(const json_t *o, const char *run, ls_err *err)
{
    const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(9), n = json_dumpb(o, NULL, 0, flags);
    char path[4300], *text = ls_alloc(LS_MEM_CLI, n + 1);
    ls_status st;

    if (text == NULL || n == 0) {
        ls_free(text);
        return ls_fail(err, LS_NOMEM, "%s: no memory", LS_CONFUSION_FILE);
    }
    (void)json_dumpb(o, text, n, flags);
    snprintf(path, sizeof path, "%s/%s", run, LS_CONFUSION_FILE);
    st = ls_replace_file(path, text, n, err);
    ls_free(text);
    return st;
}
