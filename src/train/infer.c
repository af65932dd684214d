/* infer.c: a pass over a data set that writes the outputs of every sample. */
#include "train/infer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/replace.h"
#include "data/npy_write.h"
#include "train/init.h"
#include "train/run.h"

static bool ends_in(const char *path, const char *ending)
{
    const size_t n = strlen(path), m = strlen(ending);

    return n > m && strcmp(path + n - m, ending) == 0;
}

ls_status ls_infer_check(const ls_infer_options *o, ls_err *err)
{
    char folder[LS_PATH_MAX];
    const char *slash;
    struct stat info;
    ls_err why = {0};

    if (o->out == NULL) return LS_OK;
    if (!ends_in(o->out, ".csv") && !ends_in(o->out, ".npy"))
        return ls_fail(err, LS_INVALID, "--out %s: the name must end in .csv or .npy", o->out);
    if (stat(o->out, &info) == 0 && S_ISDIR(info.st_mode))
        return ls_fail(err, LS_INVALID, "--out %s: is a folder", o->out);
    slash = strrchr(o->out, '/');
    if (snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - o->out) + 1 : 1,
                 slash != NULL ? o->out : ".") >= (int)sizeof folder)
        return ls_fail(err, LS_INVALID, "--out %.60s...: the path is too long", o->out);
    if (access(folder, W_OK | X_OK) != 0)
        return ls_fail(err, LS_INVALID, "--out %s: cannot be written: %s: %s", o->out, folder,
                       strerror(errno));
    if (ls_replace_check(o->out, &why) != LS_OK) /* what has all permissions may still take no files */
        return ls_fail(err, LS_INVALID, "--out: cannot be written: %s; name a file where you may write",
                       why.text);
    return LS_OK;
}

/* -- the file ---------------------------------------------------------------------------------------------
 */

/* Rank 0's: where rows go. */
typedef struct writer {
    const ls_infer_options *how;
    const ls_rows *rows;
    int64_t samples; /* of the set */
    int64_t written; /* rows of an array, those of samples that were left out included */
    bool begun;
    ls_replace_stream file;
    float *row; /* one, where it is changed before it is written */
} writer;

static ls_status refuse(const writer *w, ls_err *err)
{
    return ls_fail(err, LS_IO, "%s: cannot be written: %s", w->how->out, strerror(errno));
}

static bool begin_csv(const writer *w)
{
    const bool p = w->how->probabilities;

    if (fprintf(w->file.f, "sample%s%s", w->rows->scores && !w->rows->unlabelled ? ",label" : "",
                w->rows->scores ? ",predicted" : "") < 0)
        return false;
    for (int k = 0; k < w->rows->n_outputs; k++)
        for (int64_t i = 0; i < w->rows->outputs[k].width; i++)
            if (fprintf(w->file.f, ",%s_%lld",
                        k == 0 && w->rows->scores && p ? "probability" : w->rows->outputs[k].name,
                        (long long)i) < 0)
                return false;
    return fputc('\n', w->file.f) != EOF;
}

static bool begin_npy(const writer *w)
{
    char header[LS_NPY_HEADER];
    const size_t n = ls_npy_header(header, "<f4", LS_SHAPE(w->samples, w->rows->width));

    return fwrite(header, 1, n, w->file.f) == n;
}

static ls_status begin(writer *w, ls_err *err)
{
    const bool npy = ends_in(w->how->out, ".npy");

    w->begun = true;
    if (npy && w->rows->n_outputs > 1)
        return ls_fail(err, LS_INVALID,
                       "--out %s: an array holds one output, and the model has several (%s, %s, ...); "
                       "choose one with --output NAME, or write CSV",
                       w->how->out, w->rows->outputs[0].name, w->rows->outputs[1].name);
    w->row = ls_alloc(LS_MEM_DATA, sizeof *w->row * (size_t)w->rows->width);
    if (w->row == NULL) return ls_fail(err, LS_NOMEM, "infer: no memory for a row");
    return (npy ? begin_npy(w) : begin_csv(w)) ? LS_OK : refuse(w, err);
}

static void softmax(float *x, int64_t n)
{
    double largest = (double)x[0], sum = 0;

    for (int64_t i = 1; i < n; i++) largest = (double)x[i] > largest ? (double)x[i] : largest;
    for (int64_t i = 0; i < n; i++) sum += exp((double)x[i] - largest);
    for (int64_t i = 0; i < n; i++) x[i] = (float)(exp((double)x[i] - largest) / sum);
}

static bool write_csv(const writer *w, int64_t index, const float *row, const int32_t *label, int64_t answer)
{
    if (fprintf(w->file.f, "%lld", (long long)index) < 0) return false;
    if (label != NULL && fprintf(w->file.f, ",%d", (int)*label) < 0) return false;
    if (w->rows->scores && fprintf(w->file.f, ",%lld", (long long)answer) < 0) return false;
    for (int64_t i = 0; i < w->rows->width; i++)
        if (fprintf(w->file.f, ",%.9g", (double)row[i]) < 0) return false;
    return fputc('\n', w->file.f) != EOF;
}

/* Rows of an array are in the places of their samples: those that were left out are no numbers. */
static bool fill_npy(writer *w, int64_t until)
{
    const float none = NAN;

    for (; w->written < until; w->written++)
        for (int64_t i = 0; i < w->rows->width; i++)
            if (fwrite(&none, sizeof none, 1, w->file.f) != 1) return false;
    return true;
}

static bool write_npy(writer *w, int64_t index, const float *row)
{
    if (!fill_npy(w, index)) return false;
    w->written++;
    return fwrite(row, sizeof *row, (size_t)w->rows->width, w->file.f) == (size_t)w->rows->width;
}

static ls_status take(void *arg, int64_t n, const int64_t *indices, const float *values,
                      const int32_t *labels, ls_err *err)
{
    writer *w = arg;
    const int64_t width = w->rows->width, classes = w->rows->outputs[0].width;
    const bool npy = w->how->out != NULL && ends_in(w->how->out, ".npy");
    ls_status st = LS_OK;

    if (w->how->out == NULL) return LS_OK;
    if (!w->begun) LS_TRY(begin(w, err));
    for (int64_t i = 0; i < n; i++) {
        const int64_t answer = w->rows->scores ? ls_confusion_answer(values + i * width, classes) : -1;
        memcpy(w->row, values + i * width, sizeof *w->row * (size_t)width);
        if (w->how->probabilities && w->rows->scores) softmax(w->row, classes);
        if (!(npy ? write_npy(w, indices[i], w->row)
                  : write_csv(w, indices[i], w->row, labels != NULL ? &labels[i] : NULL, answer)))
            return refuse(w, err);
    }
out:
    return st;
}

static ls_status finish_file(writer *w, ls_err *err)
{
    ls_status st = LS_OK;

    if (w->how->out == NULL) return LS_OK;
    if (!w->begun) LS_TRY(begin(w, err)); /* every sample was left out */
    if (ends_in(w->how->out, ".npy") && !fill_npy(w, w->samples)) return refuse(w, err);
    st = ls_replace_commit(&w->file, err);
out:
    return st;
}

/* -- the pass ---------------------------------------------------------------------------------------------
 */

static ls_status describe(const ls_metric_sums *sums, const ls_rows *rows, const ls_confusion *confusion,
                          const ls_dataset *data, json_t **result, ls_err *err)
{
    /* Without labels there is nothing that the outputs could be compared with. */
    json_t *outputs = json_object(), *o = rows->unlabelled ? json_object() : ls_metrics_json(sums);
    const char *const *names = NULL;
    const int64_t n = ls_dataset_classes(data, &names);

    for (int k = 0; k < rows->n_outputs; k++)
        json_object_set_new(outputs, rows->outputs[k].name, json_integer((json_int_t)rows->outputs[k].width));
    json_object_set_new(o, "outputs", outputs);
    json_object_set_new(o, "samples", json_integer((json_int_t)sums->samples));
    if (rows->scores) json_object_set_new(o, "labels", json_boolean(!rows->unlabelled));
    if (confusion->classes > 0)
        json_object_set_new(o, "classification", ls_confusion_json(confusion, names, n));
    *result = o;
    return o != NULL ? LS_OK : ls_fail(err, LS_NOMEM, "infer: no memory");
}

ls_status ls_train_infer(const ls_experiment *x, const ls_train_options *o, const ls_infer_options *how,
                         json_t **result, ls_err *err)
{
    lsi_run r = {.x = x, .o = o, .cfg = x->cfg, .saved = -1};
    ls_confusion confusion = {0};
    writer w = {.how = how};
    ls_rows rows = {.sink = take, .arg = &w, .only = how->output};
    ls_gather gather = {.confusion = &confusion, .rows = &rows};
    const ls_dataset *data = NULL;
    ls_metric_sums sums;
    ls_status st = LS_OK;

    *result = NULL;
    w.rows = &rows;
    LS_TRY(lsi_run_open_split(&r, how->split, true, &data, err));
    rows.unlabelled = r.session.unlabelled;
    if (rows.unlabelled) gather.confusion = NULL;
    w.samples = gather.samples = ls_dataset_count(data);
    if (lsi_run_leads(&r) && how->out != NULL) LS_TRY(ls_replace_begin(&w.file, how->out, err));
    LS_TRY(ls_init_to_evaluate(&r.session, how->weights, err));
    LS_TRY(ls_evaluate(&r.session, data, &gather, &sums, err));
    if (lsi_run_leads(&r)) LS_TRY(finish_file(&w, err));
    if (lsi_run_leads(&r)) LS_TRY(describe(&sums, &rows, &confusion, data, result, err));
out:
    if (st != LS_OK) lsi_run_tell_others(&r, err);
    if (w.file.f != NULL) ls_replace_abandon(&w.file);
    ls_free(w.row);
    ls_gather_release(&gather);
    ls_rows_release(&rows);
    ls_confusion_release(&confusion);
    lsi_run_release(&r);
    return st;
}
