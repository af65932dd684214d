/* samples.c: from the images of a plan to pictures in files.
 *
 * The pictures belong to the thread that trains while no thread is at work, else to that thread; `ready` is
 * the one thing that both look at. */
#include "train/samples.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/replace.h"
#include "data/png.h"

enum { GAP = 2, MAX_PICTURES = 16, MAX_ROWS = 16, NAME = 128 };
#define PREFIX "samples/"

typedef struct picture {
    char name[NAME]; /* as declared by the trial */
    uint8_t *pixels, *png;
    int64_t width, height;
    int channels;
    size_t bytes;
} picture;

struct ls_samples {
    ls_samples_options o;
    char folder[4096]; /* the run's samples/ */
    ls_batch_plan plan;
    bool open, none; /* the plan is there; there are no images, or they cannot be had */
    picture pictures[MAX_PICTURES];
    int n_pictures;
    int64_t step; /* of the pictures */
    pthread_t thread;
    bool has_thread;
    atomic_bool ready; /* the thread has nothing more to do; what it wrote comes before */
};

/* -- pixels -----------------------------------------------------------------------------------------------
 */

static int64_t at_most(int64_t n, int64_t most)
{
    return n < most ? n : most;
}

/* How many of size `size` fit beside each other. */
static int64_t fitting(int64_t size)
{
    const int64_t n = (LS_SAMPLES_PIXELS + GAP) / (size + GAP);

    return n < 1 ? 1 : at_most(n, LS_SAMPLES_ACROSS);
}

static uint8_t shade(float v)
{
    return v >= 1 ? 255 : v > 0 ? (uint8_t)(v * 255 + 0.5F) : 0; /* also of what is not a number */
}

/* One image, channel by channel, into pixels of a picture that is `stride` pixels wide. */
static void place(const float *image, int64_t channels, int64_t height, int64_t width, uint8_t *to,
                  int64_t stride)
{
    for (int64_t c = 0; c < channels; c++)
        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < width; x++)
                to[(y * stride + x) * channels + c] = shade(image[(c * height + y) * width + x]);
}

ls_status ls_samples_grid(const ls_sample_row *rows, int n_rows, int64_t channels, int64_t height,
                          int64_t width, uint8_t **out, int64_t *out_width, int64_t *out_height, ls_err *err)
{
    int64_t longest = 0, across, lines;

    for (int k = 0; k < n_rows; k++)
        if (rows[k].n > longest) longest = rows[k].n;
    across = at_most(longest, fitting(width));
    lines = n_rows > 1 ? n_rows : at_most((longest + across - 1) / across, fitting(height));
    *out_width = across * (width + GAP) - GAP;
    *out_height = lines * (height + GAP) - GAP;
    *out = ls_alloc(LS_MEM_CLI, (size_t)(*out_width * *out_height * channels));
    if (*out == NULL) return ls_fail(err, LS_NOMEM, "samples: no memory for a picture");
    memset(*out, 0, (size_t)(*out_width * *out_height * channels));
    for (int64_t line = 0; line < lines; line++) {
        const ls_sample_row *row = &rows[n_rows > 1 ? line : 0];
        const int64_t first = n_rows > 1 ? 0 : line * across;
        for (int64_t i = 0; i < across && first + i < row->n; i++)
            place(row->images + (first + i) * channels * height * width, channels, height, width,
                  *out + (line * (height + GAP) * *out_width + i * (width + GAP)) * channels, *out_width);
    }
    return LS_OK;
}

/* -- the thread -------------------------------------------------------------------------------------------
 */

static ls_status write_file(const ls_samples *s, const picture *p, ls_err *err)
{
    char path[sizeof s->folder + NAME + 32];

    snprintf(path, sizeof path, "%s/%s-%08lld.png", s->folder, p->name, (long long)s->step);
    for (char *c = path + strlen(s->folder) + 1; *c != '\0'; c++)
        if (*c == '/') *c = '-';
    return ls_replace_file(path, p->png, p->bytes, err);
}

static void *serve(void *arg)
{
    ls_samples *s = arg;

    for (int i = 0; i < s->n_pictures; i++) {
        picture *p = &s->pictures[i];
        ls_err err = {0};
        if (ls_png_encode(p->pixels, p->width, p->height, p->channels, &p->png, &p->bytes, &err) != LS_OK ||
            write_file(s, p, &err) != LS_OK)
            ls_log(LS_LOG_WARN, "samples: %s", err.text);
    }
    atomic_store(&s->ready, true);
    return NULL;
}

static void start(ls_samples *s)
{
    sigset_t all, before;

    atomic_store(&s->ready, false);
    /* Signals are for the thread that trains. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->has_thread = pthread_create(&s->thread, NULL, serve, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!s->has_thread) serve(s);
}

void ls_samples_collect(ls_samples *s, ls_events *ev, bool wait)
{
    if (s == NULL || s->n_pictures == 0 || !(wait || atomic_load(&s->ready))) return;
    if (s->has_thread) pthread_join(s->thread, NULL);
    s->has_thread = false;
    for (int i = 0; i < s->n_pictures; i++) {
        picture *p = &s->pictures[i];
        char tag[NAME + sizeof PREFIX];
        snprintf(tag, sizeof tag, PREFIX "%s", p->name);
        if (p->png != NULL)
            ls_events_image(ev, tag, s->step, p->width, p->height, p->channels, p->png, p->bytes);
        ls_free(p->pixels);
        ls_free(p->png);
        *p = (picture){0};
    }
    s->n_pictures = 0;
}

/* -- the plan ---------------------------------------------------------------------------------------------
 */

ls_status ls_samples_open(ls_samples **out, const ls_samples_options *o, ls_err *err)
{
    ls_samples *s = ls_alloc(LS_MEM_CLI, sizeof *s);

    *out = s;
    if (s == NULL) return ls_fail(err, LS_NOMEM, "samples: no memory");
    s->o = *o;
    s->o.n = at_most(o->n, ls_dataset_count(o->data));
    snprintf(s->folder, sizeof s->folder, "%s/samples", o->folder);
    return LS_OK;
}

void ls_samples_close(ls_samples *s, ls_events *ev)
{
    if (s == NULL) return;
    ls_samples_collect(s, ev, true);
    ls_batch_plan_release(&s->plan);
    ls_free(s);
}

static bool is_image(const ls_tensor *t)
{
    return strncmp(t->name, PREFIX, strlen(PREFIX)) == 0 && t->shape.rank == 4;
}

/* The plan, and the folder for what it makes; made at the first picture. */
static ls_status open_plan(ls_samples *s, ls_err *err)
{
    ls_session *session = s->o.session;
    const ls_build build = {.mode = LS_EVAL, .images = true};
    const ls_strategy how = ls_session_how(session, LS_EVAL, 0);
    bool any = false;
    ls_status st = LS_OK;

    if (s->open || s->none) return LS_OK;
    s->none = true;
    LS_TRY(ls_batch_plan_open(&s->plan, session, build, &how, s->o.n, session->state, err));
    for (int i = 0; i < ls_plan_fetch_count(s->plan.plan); i++)
        any = any || is_image(ls_plan_fetch_at(s->plan.plan, i));
    s->open = any;
    s->none = !any;
out:
    return st;
}

static ls_status make_folder(const ls_samples *s, ls_err *err)
{
    if (mkdir(s->folder, 0777) == 0 || errno == EEXIST) return LS_OK;
    return ls_fail(err, LS_IO, "%s: the folder cannot be made: %s", s->folder, strerror(errno));
}

/* Whether other ranks have pieces of the weights: then the plan runs on all of them or on none. */
static bool together(const ls_samples *s)
{
    return s->o.session->place.sharding == LS_SHARD_WEIGHTS;
}

/* The first samples of the set, each read to memory of its own and put into its place. */
static ls_status feed(const ls_samples *s, ls_err *err)
{
    const ls_field *fields;
    const int n = ls_dataset_fields(s->o.data, &fields);
    void *sample[LS_SESSION_INPUTS] = {NULL};
    ls_status st = LS_OK;

    if (n > LS_SESSION_INPUTS) return ls_fail(err, LS_INVALID, "%d fields are too many", n);
    for (int k = 0; k < n; k++) {
        if (ls_plan_input(s->plan.plan, fields[k].name) == NULL) continue; /* nobody wants it */
        sample[k] = ls_alloc(LS_MEM_CLI, ls_dataset_field_bytes(s->o.data, k));
        if (sample[k] == NULL) {
            st = ls_fail(err, LS_NOMEM, "no memory for a sample");
            goto out;
        }
    }
    for (int64_t i = 0; i < s->o.n; i++) {
        LS_TRY(ls_dataset_read(s->o.data, i, NULL, sample, err));
        for (int k = 0; k < n; k++) {
            const size_t bytes = ls_dataset_field_bytes(s->o.data, k);
            if (sample[k] != NULL)
                ls_plan_write_input(s->plan.plan, fields[k].name, (size_t)i * bytes, sample[k], bytes);
        }
    }
    ls_step_write_rng(s->plan.plan, s->o.seed, 0, 0);
out:
    for (int k = 0; k < n; k++) ls_free(sample[k]);
    return st;
}

/* The images of one row in memory that the caller frees. */
static ls_status fetch(const ls_tensor *t, float **images, ls_err *err)
{
    *images = ls_alloc(LS_MEM_CLI, t->bytes);
    if (*images == NULL) return ls_fail(err, LS_NOMEM, "no memory for a row of images");
    return ls_tensor_read(t, 0, *images, t->bytes, err);
}

/* The picture whose first row is `head`; further ones are called <name>#2, <name>#3, ... */
static ls_status compose(ls_samples *s, const ls_tensor *head, ls_err *err)
{
    const int64_t *dim = head->shape.dim;
    picture *p = &s->pictures[s->n_pictures];
    ls_sample_row rows[MAX_ROWS];
    float *images[MAX_ROWS] = {NULL};
    const ls_tensor *t = head;
    int n = 0;
    ls_status st = LS_OK;

    snprintf(p->name, sizeof p->name, "%s", head->name + strlen(PREFIX));
    p->channels = (int)dim[1];
    while (t != NULL && n < MAX_ROWS) {
        char name[NAME + 32];
        if (memcmp(t->shape.dim + 1, dim + 1, 3 * sizeof *dim) != 0) {
            st = ls_fail(err, LS_INVALID, "%s: its rows are of different sizes", p->name);
            goto out;
        }
        LS_TRY(fetch(t, &images[n], err));
        rows[n] = (ls_sample_row){images[n], t->shape.dim[0]};
        n++;
        snprintf(name, sizeof name, "%s#%d", head->name, n + 1);
        t = ls_plan_fetch(s->plan.plan, name);
    }
    LS_TRY(ls_samples_grid(rows, n, dim[1], dim[2], dim[3], &p->pixels, &p->width, &p->height, err));
    s->n_pictures++;
out:
    for (int i = 0; i < MAX_ROWS; i++) ls_free(images[i]);
    return st;
}

/* Whether all ranks that run the plan have it, or none: *st is this rank's. */
static ls_status agree(ls_samples *s, ls_status *st, ls_err *err)
{
    double failed = *st != LS_OK;
    ls_status met;

    if (!together(s)) return LS_OK;
    met = ls_comm_max(s->o.session->comm, &failed, 1, "making pictures", *st == LS_OK ? err : &(ls_err){0});
    if (failed > 0) s->none = true;
    return met;
}

static ls_status make(ls_samples *s, ls_err *err)
{
    ls_status st = open_plan(s, err), fed;

    if (agree(s, &st, err) != LS_OK || st != LS_OK || s->none) return st;
    fed = feed(s, err);
    if (fed == LS_OK || together(s)) LS_TRY(ls_plan_run(s->plan.plan, err));
    if (fed != LS_OK) return fed;
    LS_TRY(make_folder(s, err));
    for (int i = 0; i < ls_plan_fetch_count(s->plan.plan) && s->n_pictures < MAX_PICTURES; i++) {
        const ls_tensor *t = ls_plan_fetch_at(s->plan.plan, i);
        if (is_image(t) && strchr(t->name, '#') == NULL) LS_TRY(compose(s, t, err));
    }
out:
    return st;
}

void ls_samples_make(ls_samples *s, ls_events *ev, int64_t step)
{
    ls_err err = {0};

    if (s == NULL || s->none) return;
    ls_samples_collect(s, ev, true);
    s->step = step;
    if (make(s, &err) != LS_OK) ls_log(LS_LOG_WARN, "samples: %s", err.text);
    if (s->n_pictures > 0) start(s);
}

ls_status ls_samples_assist(ls_samples *s, ls_err *err)
{
    ls_err why = {0};
    ls_status opened, st = LS_OK;

    if (!together(s) || s->none) return LS_OK;
    opened = open_plan(s, &why);
    if (opened != LS_OK) ls_log(LS_LOG_WARN, "samples: %s", why.text);
    LS_TRY(agree(s, &opened, err));
    if (!s->none) LS_TRY(ls_plan_run(s->plan.plan, err));
out:
    return st;
}
