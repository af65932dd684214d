/* events.c: builds Event messages and appends them to the file as TFRecords. */
#include "events/events.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "events/append.h"
#include "events/crc32c.h"
#include "events/events_internal.h"
#include "events/wire.h"

#define NAME      "events.out.tfevents."
#define STAMP_MAX 9999999999 /* ten digits, as all times until 2286: texts of one length sort as numbers */
#define FILES_MAX 10000      /* names tried before giving up: far more than a process opens in one second */

struct ls_events {
    ls_append file;
    lsi_wire record;
};

static double wall_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t); /* cannot fail with this clock and a valid address */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- records --- */

static void event_begin(ls_events *ev, int64_t step)
{
    lsi_wire_clear(&ev->record);
    /* Room for the head, which needs the length. */
    lsi_wire_raw(&ev->record, (const uint8_t[LSI_RECORD_HEAD]){0}, LSI_RECORD_HEAD);
    lsi_wire_double(&ev->record, LSI_EVENT_WALL_TIME, wall_time());
    if (step != 0) lsi_wire_varint(&ev->record, LSI_EVENT_STEP, (uint64_t)step);
}

/* Fills in the head, appends the tail.  False when memory ran out. */
static bool record_finish(lsi_wire *w)
{
    if (w->failed) return false;
    size_t n = w->length - LSI_RECORD_HEAD;
    lsi_wire_fixed32(w, ls_crc32c_masked(w->data + LSI_RECORD_HEAD, n));
    if (w->failed) return false;
    size_t end = w->length;
    w->length = 0; /* what follows overwrites the room left by event_begin */
    lsi_wire_fixed64(w, n);
    lsi_wire_fixed32(w, ls_crc32c_masked(w->data, 8));
    w->length = end;
    return true;
}

/* What all records end with. */
static void event_end(ls_events *ev)
{
    if (record_finish(&ev->record)) {
        ls_append_write(&ev->file, ev->record.data, ev->record.length);
    } else {
        ls_append_lost(&ev->file);
    }
}

/* --- the file --- */

static void add_host(ls_text *t)
{
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') snprintf(host, sizeof host, "localhost");
    for (char *p = host; *p; p++) {
        if (*p == '/') *p = '-'; /* it becomes part of a file name */
    }
    ls_text_add(t, "%s", host);
}

/* Readers take the files of a folder in the order of their names: a new one comes after all that are there,
 * also one of this second, or of a machine whose clock is ahead. */
static long long next_stamp(const char *folder)
{
    long long stamp = (long long)wall_time();
    DIR *d = opendir(folder);
    const struct dirent *e;

    while (d != NULL && (e = readdir(d)) != NULL) {
        const size_t n = strlen(NAME);
        char *end;
        long long there;
        if (strncmp(e->d_name, NAME, n) != 0 || e->d_name[n] < '1' || e->d_name[n] > '9') continue;
        there = strtoll(e->d_name + n, &end, 10);
        if (*end == '.' && there >= stamp && there < STAMP_MAX) stamp = there + 1;
    }
    if (d != NULL) closedir(d);
    return stamp;
}

static ls_status create_file(ls_events *ev, const char *folder, ls_err *err)
{
    ls_status st = LS_IO;
    ls_text stem = {0}, path = {0};

    ls_text_add(&stem, "%s/" NAME "%lld.", folder, next_stamp(folder));
    add_host(&stem);
    ls_text_add(&stem, ".%ld", (long)getpid());
    for (int n = 0; st == LS_IO && n < FILES_MAX; n++) {
        ls_err why = {0};
        path.length = 0;
        if (!stem.failed) ls_text_add(&path, "%s.%d", stem.data, n);
        if (stem.failed || path.failed) {
            st = ls_fail(err, LS_NOMEM, "event file: out of memory");
            break;
        }
        st = ls_append_open(&ev->file, path.data, O_WRONLY | O_EXCL, "event records", &why);
        if (st == LS_IO && errno == EEXIST) continue;
        if (st != LS_OK) ls_fail(err, st, "%s", why.text);
        break;
    }
    if (st != LS_OK) ls_fail(err, st, "%s: no name is free", path.data); /* unless the cause is known */
    ls_text_release(&stem);
    ls_text_release(&path);
    return st;
}

static ls_status write_header(ls_events *ev, ls_err *err)
{
    event_begin(ev, 0);
    lsi_wire_string(&ev->record, LSI_EVENT_FILE_VERSION, LSI_EVENT_VERSION);
    event_end(ev);
    if (ls_append_missing(&ev->file) == 0) return LS_OK;
    unlink(ev->file.path); /* an event file without its header is none */
    return ls_fail(err, ev->record.failed ? LS_NOMEM : LS_IO, "%s: the header cannot be written",
                   ev->file.path);
}

ls_status ls_events_open(ls_events **out, const char *folder, ls_err *err)
{
    ls_status st = LS_OK;
    *out = NULL;
    ls_events *ev = ls_alloc(LS_MEM_CLI, sizeof *ev);
    if (!ev) return ls_fail(err, LS_NOMEM, "event file: out of memory");
    ev->file.fd = -1;
    LS_TRY(create_file(ev, folder, err));
    LS_TRY(write_header(ev, err));
    *out = ev;
    ev = NULL;
out:
    ls_events_close(ev);
    return st;
}

void ls_events_flush(ls_events *ev)
{
    if (ev) ls_append_flush(&ev->file);
}

void ls_events_close(ls_events *ev)
{
    if (!ev) return;
    ls_append_close(&ev->file);
    lsi_wire_release(&ev->record);
    ls_free(ev);
}

const char *ls_events_path(const ls_events *ev)
{
    return ev ? ev->file.path : "";
}

int64_t ls_events_missing(const ls_events *ev)
{
    return ev ? ls_append_missing(&ev->file) : 0;
}

/* --- messages --- */

typedef struct value_marks {
    size_t summary, value;
} value_marks;

/* Opens an Event with a Summary of one Value with `tag`. */
static value_marks value_begin(ls_events *ev, const char *tag, int64_t step)
{
    value_marks m;
    event_begin(ev, step);
    m.summary = lsi_wire_begin(&ev->record, LSI_EVENT_SUMMARY);
    m.value = lsi_wire_begin(&ev->record, LSI_SUMMARY_VALUE);
    lsi_wire_string(&ev->record, LSI_VALUE_TAG, tag);
    return m;
}

static void value_end(ls_events *ev, value_marks m)
{
    lsi_wire_end(&ev->record, m.value);
    lsi_wire_end(&ev->record, m.summary);
    event_end(ev);
}

void ls_events_restart(ls_events *ev, int64_t step)
{
    if (!ev) return;
    event_begin(ev, step);
    size_t log = lsi_wire_begin(&ev->record, LSI_EVENT_SESSION_LOG);
    lsi_wire_varint(&ev->record, LSI_SESSION_LOG_STATUS, LSI_SESSION_LOG_START);
    lsi_wire_end(&ev->record, log);
    event_end(ev);
}

void ls_events_scalar(ls_events *ev, const char *tag, int64_t step, double value)
{
    if (!ev) return;
    value_marks m = value_begin(ev, tag, step);
    lsi_wire_float(&ev->record, LSI_VALUE_SIMPLE, (float)value);
    value_end(ev, m);
}

void ls_events_text(ls_events *ev, const char *tag, int64_t step, const char *text)
{
    if (!ev) return;
    value_marks m = value_begin(ev, tag, step);
    lsi_wire *w = &ev->record;
    size_t tensor = lsi_wire_begin(w, LSI_VALUE_TENSOR);
    lsi_wire_varint(w, LSI_TENSOR_DTYPE, LSI_DT_STRING);
    size_t shape = lsi_wire_begin(w, LSI_TENSOR_SHAPE);
    size_t dim = lsi_wire_begin(w, LSI_SHAPE_DIM);
    lsi_wire_varint(w, LSI_DIM_SIZE, 1);
    lsi_wire_end(w, dim);
    lsi_wire_end(w, shape);
    lsi_wire_string(w, LSI_TENSOR_STRING, text);
    lsi_wire_end(w, tensor);
    size_t metadata = lsi_wire_begin(w, LSI_VALUE_METADATA);
    size_t plugin = lsi_wire_begin(w, LSI_METADATA_PLUGIN);
    lsi_wire_string(w, LSI_PLUGIN_NAME, "text");
    lsi_wire_end(w, plugin);
    lsi_wire_end(w, metadata);
    value_end(ev, m);
}

void ls_events_image(ls_events *ev, const char *tag, int64_t step, int64_t width, int64_t height,
                     int channels, const void *png, size_t n_bytes)
{
    if (!ev) return;
    value_marks m = value_begin(ev, tag, step);
    lsi_wire *w = &ev->record;
    size_t image = lsi_wire_begin(w, LSI_VALUE_IMAGE);
    lsi_wire_varint(w, LSI_IMAGE_HEIGHT, (uint64_t)height);
    lsi_wire_varint(w, LSI_IMAGE_WIDTH, (uint64_t)width);
    lsi_wire_varint(w, LSI_IMAGE_COLORSPACE, (uint64_t)channels);
    lsi_wire_bytes(w, LSI_IMAGE_ENCODED, png, n_bytes);
    lsi_wire_end(w, image);
    value_end(ev, m);
}

/* --- hyperparameters --- */

static void put_experiment(lsi_wire *w, const ls_hparam *params, int64_t n)
{
    size_t experiment = lsi_wire_begin(w, LSI_HPARAMS_EXPERIMENT);
    for (int64_t i = 0; i < n; i++) {
        size_t info = lsi_wire_begin(w, LSI_EXPERIMENT_HPARAM);
        lsi_wire_string(w, LSI_HPARAM_NAME, params[i].name);
        lsi_wire_varint(w, LSI_HPARAM_TYPE, params[i].text ? LSI_HPARAM_TYPE_STRING : LSI_HPARAM_TYPE_NUMBER);
        lsi_wire_end(w, info);
    }
    size_t metric = lsi_wire_begin(w, LSI_EXPERIMENT_METRIC);
    size_t name = lsi_wire_begin(w, LSI_METRIC_NAME);
    lsi_wire_string(w, LSI_METRIC_NAME_TAG, "hp_metric");
    lsi_wire_end(w, name);
    lsi_wire_end(w, metric);
    lsi_wire_end(w, experiment);
}

static void put_session_start(lsi_wire *w, const ls_hparam *params, int64_t n)
{
    size_t start = lsi_wire_begin(w, LSI_HPARAMS_START);
    for (int64_t i = 0; i < n; i++) {
        size_t entry = lsi_wire_begin(w, LSI_START_HPARAM);
        lsi_wire_string(w, LSI_MAP_KEY, params[i].name);
        size_t value = lsi_wire_begin(w, LSI_MAP_VALUE);
        if (params[i].text) {
            lsi_wire_string(w, LSI_PB_STRING, params[i].text);
        } else {
            lsi_wire_double(w, LSI_PB_NUMBER, params[i].number);
        }
        lsi_wire_end(w, value);
        lsi_wire_end(w, entry);
    }
    lsi_wire_double(w, LSI_START_TIME, wall_time());
    lsi_wire_end(w, start);
}

/* A Value without data of its own: the plugin's content is in its metadata. */
static void hparams_record(ls_events *ev, const char *tag,
                           void (*put)(lsi_wire *, const ls_hparam *, int64_t), const ls_hparam *params,
                           int64_t n)
{
    value_marks m = value_begin(ev, tag, 0);
    lsi_wire *w = &ev->record;
    size_t metadata = lsi_wire_begin(w, LSI_VALUE_METADATA);
    size_t plugin = lsi_wire_begin(w, LSI_METADATA_PLUGIN);
    lsi_wire_string(w, LSI_PLUGIN_NAME, "hparams");
    size_t content = lsi_wire_begin(w, LSI_PLUGIN_CONTENT);
    put(w, params, n);
    lsi_wire_end(w, content);
    lsi_wire_end(w, plugin);
    lsi_wire_end(w, metadata);
    value_end(ev, m);
}

void ls_events_hparams(ls_events *ev, const ls_hparam *params, int64_t n_params)
{
    if (!ev) return;
    hparams_record(ev, LSI_HPARAMS_EXPERIMENT_TAG, put_experiment, params, n_params);
    hparams_record(ev, LSI_HPARAMS_START_TAG, put_session_start, params, n_params);
    ls_events_scalar(ev, "hp_metric", 0, -1);
}
