/* calibration.c: which file holds what, and the file that comes of them. */
#include "predict/calibration.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/replace.h"
#include "base/whole.h"
#include "bench/fields.h"
#include "predict/calibration_internal.h"
#include "predict/network.h"

#define FILE_BYTES_MAX ((size_t)256 << 20)

typedef struct found {
    const char *exports[LS_CALIBRATION_FILES];
    int n_exports;
    ls_collective_times times;
} found;

/* -- reading ----------------------------------------------------------------------------------------------
 */

/* The event of a file that is one object, however many lines it has; "" of one that is not. */
static bool is_object(const char *text, size_t length, char event[32])
{
    json_t *o = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    const bool is = json_is_object(o);

    ls_field_text(o, "event", event, 32);
    json_decref(o);
    return is;
}

static ls_status read_times(found *f, const char *path, const char *text, size_t length, ls_err *err)
{
    ls_err why = {0};
    const ls_status st = ls_collectives_parse(&f->times, text, length, &why);

    if (st == LS_OK) return LS_OK;
    return ls_fail(err, st == LS_NOMEM ? st : LS_INVALID, "%s: %s", path, why.text);
}

static ls_status look_at(found *f, const char *path, ls_err *err)
{
    const int before = f->times.n;
    char *text = NULL, event[32];
    size_t length;
    ls_err why = {0};
    bool one;
    ls_status st = LS_OK;

    if (ls_whole_plain(&text, &length, path, FILE_BYTES_MAX, &why) != LS_OK)
        LS_TRY(ls_fail(err, LS_INVALID, "%s", why.text));
    one = is_object(text, length, event);
    if (strcmp(event, "bench-export") == 0) {
        f->exports[f->n_exports++] = path;
        goto out;
    }
    if (!one || strcmp(event, "collectives") == 0) LS_TRY(read_times(f, path, text, length, err));
    if (f->times.n == before)
        LS_TRY(ls_fail(err, LS_INVALID,
                       "%s: has neither exchanges (`lockstep bench --collectives --export`) nor the costs of "
                       "a step (`lockstep bench EXPERIMENT --export`)",
                       path));
out:
    ls_free(text);
    return st;
}

ls_status ls_calibration_make(ls_calibration *c, const char *const *paths, int n, ls_err *err)
{
    found f = {0};
    ls_status st = LS_OK;

    *c = (ls_calibration){0};
    if (n > LS_CALIBRATION_FILES)
        return ls_fail(err, LS_INVALID, "more than %d files", (int)LS_CALIBRATION_FILES);
    for (int i = 0; i < n; i++) LS_TRY(look_at(&f, paths[i], err));
    if (f.times.n > 0) {
        LS_TRY(ls_fit_network(&c->fit, f.times.of, f.times.n, err));
        snprintf(c->host, sizeof c->host, "%s", f.times.host);
        c->has_network = true;
    }
    if (f.n_exports > 0) {
        LS_TRY(ls_machine_from_exports(&c->machine, f.exports, f.n_exports, err));
        c->has_machine = true;
    }
    if (c->has_network && c->has_machine) {
        ls_network n = {.name = "measured"};
        ls_fit_fill(&c->fit, &n);
        LS_TRY(lsi_calibration_steps(&c->machine, &n, f.exports, f.n_exports, err));
    }
out:
    if (st == LS_DATA) st = err->status = LS_INVALID;
    ls_collective_times_release(&f.times);
    return st;
}

void ls_calibration_release(ls_calibration *c)
{
    ls_machine_release(&c->machine);
    *c = (ls_calibration){0};
}

/* -- writing ----------------------------------------------------------------------------------------------
 */

static json_t *network_json(const ls_calibration *c)
{
    const ls_fit *f = &c->fit;
    char name[96], about[160];
    ls_network n = {.name = name, .about = about, .source = "lockstep bench --collectives"};
    const char *missing = !f->node.measured ? "node" : !f->inside.measured ? "inside" : NULL;
    ls_network_source sources[LS_FIT_FIGURES];
    char figures[LS_FIT_FIGURES][40];
    ls_text text = {0};
    json_t *o = NULL;

    ls_fit_fill(f, &n);
    snprintf(name, sizeof name, "measured on %s", c->host);
    snprintf(about, sizeof about, "%d times of exchanges, of up to %d ranks on %d machine%s", f->used,
             (int)f->measured_ranks, (int)f->measured_nodes, f->measured_nodes == 1 ? "" : "s");
    for (int k = 0; missing != NULL && k < LS_FIT_FIGURES; k++) {
        snprintf(figures[k], sizeof figures[k], "%s.%s", missing, ls_fit_figure_name((ls_fit_figure)k));
        sources[k] = (ls_network_source){figures[k], "not measured: the figure of the other link"};
    }
    if (missing != NULL) {
        n.sources = sources;
        n.n_sources = LS_FIT_FIGURES;
    }
    ls_network_write(&n, &text);
    if (!text.failed && text.data != NULL) o = json_loadb(text.data, text.length, 0, NULL);
    ls_text_release(&text);
    return o;
}

json_t *ls_calibration_json(const ls_calibration *c)
{
    json_t *o =
        json_pack("{s:s, s:i}", "format", "lockstep-calibration", "version", (int)LS_CALIBRATION_FORMAT);
    int failed = o == NULL;

    if (!failed && c->has_machine) failed = json_object_set_new(o, "machine", ls_machine_json(&c->machine));
    if (!failed && c->has_network) failed = json_object_set_new(o, "network", network_json(c));
    if (!failed) return o;
    json_decref(o);
    return NULL;
}

/* Measurements of a machine that others use may come to figures that no reader takes: better now than when
 * somebody predicts. */
static ls_status read_back(const ls_calibration *c, const ls_text *text, ls_err *err)
{
    ls_network n = {0};
    ls_machine m = {0};
    ls_status st = LS_OK;

    if (c->has_network) LS_TRY(ls_network_parse(&n, text->data, text->length, "the measured network", err));
    if (c->has_machine) LS_TRY(ls_machine_parse(&m, text->data, text->length, "the measured machine", err));
out:
    ls_network_release(&n);
    ls_machine_release(&m);
    return st;
}

ls_status ls_calibration_write(const ls_calibration *c, const char *path, ls_err *err)
{
    json_t *o = ls_calibration_json(c);
    ls_text text = {0};
    ls_status st = LS_OK;

    if (o != NULL) ls_json_add(&text, o, LS_JSON_FILE_FLAGS);
    ls_text_add(&text, "\n");
    if (o == NULL || text.failed) LS_TRY(ls_fail(err, LS_NOMEM, "no memory for %s", path));
    LS_TRY(read_back(c, &text, err));
    LS_TRY(ls_replace_file(path, text.data, text.length, err));
out:
    json_decref(o);
    ls_text_release(&text);
    return st;
}
