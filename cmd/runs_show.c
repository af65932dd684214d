/* runs_show.c: `lockstep runs show RUN`: everything about one run. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "grid.h"
#include "runs.h"

enum { LINE = 600 };

/* "state         running": names in the width that all commands have. */
static void line(const char *name, const char *value)
{
    char buf[LINE];

    if (value != NULL && value[0] != '\0') printf("%-13s %s\n", name, grid_shown(value, buf, sizeof buf));
}

/* What is no number (null: it was not finite) has nothing to show. */
static void metrics_line(const char *name, const json_t *o)
{
    char buf[128];
    ls_text text = {0};
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)o, key, value)
    {
        if (!json_is_number(value)) continue;
        ls_text_add(&text, "%s%s %.6g", text.length > 0 ? ", " : "", grid_shown(key, buf, sizeof buf),
                    json_number_value(value));
    }
    line(name, text.data);
    ls_text_release(&text);
}

static double number_at(const json_t *o, const char *within, const char *key)
{
    const json_t *v = json_object_get(within != NULL ? json_object_get(o, within) : o, key);

    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static void show_time(const char *name, double t)
{
    char at[32], text[48];

    ls_run_time_text(t, at);
    snprintf(text, sizeof text, "%s%s", at, at[0] != '\0' ? " (UTC)" : "");
    line(name, text);
}

static void show_owner(const ls_run_info *i)
{
    char text[LINE + 1100], at[32];

    if (!i->has_owner) return;
    snprintf(text, sizeof text, "process %lld on %.200s since %s%s", (long long)i->owner.pid, i->owner.host,
             ls_run_time_text(i->owner.start, at), i->alive ? "" : ", gone");
    line("owner", text);
    show_time(i->alive ? "sign of life" : "last sign", i->heartbeat);
    line("command", i->owner.command);
}

/* Of the process, and of a device with memory of its own. */
static void show_memory(const json_t *s)
{
    const double host = number_at(s, NULL, "peak_bytes"), device = number_at(s, "device_bytes", "peak");
    char text[LINE], a[32], b[32];

    if (!isfinite(host)) return;
    if (isfinite(device))
        snprintf(text, sizeof text, "%s of the host's, %s of the device's at most", ls_text_bytes(host, a),
                 ls_text_bytes(device, b));
    line("memory", isfinite(device) ? text : ls_text_bytes(host, a));
}

static void show_results(const ls_run_row *r)
{
    const json_t *s = r->info->summary, *m = json_object_get(s, "metrics");
    const double rate = number_at(s, "samples_per_s", "p50"),
                 best_step = number_at(json_object_get(m, "best"), NULL, "step");
    char text[LINE], a[32];
    const char *of;

    metrics_line("validation", json_object_get(m, "last"));
    if (isfinite(ls_run_best(r, &of))) {
        snprintf(text, sizeof text, "%.200s%s%.6g at step %.0f", of, of[0] != '\0' ? " " : "",
                 ls_run_best(r, &of), best_step);
        line("best", text);
    }
    metrics_line("test", json_object_get(m, "test"));
    if (isfinite(rate)) {
        char lo[LS_UNITS_TEXT], hi[LS_UNITS_TEXT];
        snprintf(text, sizeof text, "%s (%s to %s)", ls_units_rate(rate, a),
                 ls_units_rate(number_at(s, "samples_per_s", "p16"), lo),
                 ls_units_rate(number_at(s, "samples_per_s", "p84"), hi));
        line("samples/s", text);
    }
    metrics_line("ledger s", json_object_get(s, "ledger_s"));
    line("weights", json_string_value(json_object_get(s, "weights_xxh3")));
    show_memory(s);
    line("version", json_string_value(json_object_get(s, "version")));
}

static void show_checkpoints(const ls_run_checkpoints *c)
{
    ls_text text = {0};

    for (int i = 0; i < c->n; i++)
        ls_text_add(&text, "%s%lld%s%s", i > 0 ? ", " : "step ", (long long)c->steps[i],
                    c->steps[i] == c->last ? " (last)" : "", c->steps[i] == c->best ? " (best)" : "");
    line("checkpoints", text.data);
    ls_text_release(&text);
}

/* Bytes of all plain files below; folders are three deep. */
static double bytes_below(const char *path, int depth)
{
    char below[LS_PATH_MAX + 300];
    const struct dirent *e;
    struct stat info;
    double sum = 0;
    DIR *d = opendir(path);

    while (d != NULL && (e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (snprintf(below, sizeof below, "%s/%s", path, e->d_name) >= LS_PATH_MAX ||
            lstat(below, &info) != 0)
            continue;
        if (S_ISREG(info.st_mode)) sum += (double)info.st_size;
        if (S_ISDIR(info.st_mode) && depth < 4) sum += bytes_below(below, depth + 1);
    }
    if (d != NULL) closedir(d);
    return sum;
}

static void show_text(const ls_run_row *r, const ls_run_checkpoints *c)
{
    const ls_run_info *i = r->info;
    char text[LINE], a[32], b[32];

    line("run", i->path);
    line("name", i->name);
    runs_state_text(i, text, sizeof text);
    line("state", text);
    line("error", json_string_value(json_object_get(i->summary, "error")));
    line("trouble", i->trouble);
    show_time("started", i->started);
    line("took", runs_duration(ls_run_seconds(i), a));
    show_owner(i);
    if (i->ranks > 0) {
        snprintf(text, sizeof text, "%d%s%.200s", i->ranks, i->host[0] != '\0' ? ", the first on " : "",
                 i->host);
        line("ranks", text);
    }
    if (i->steps >= 0) {
        snprintf(text, sizeof text, "%s in %.6g epochs", ls_text_count(i->steps, a),
                 isfinite(i->epochs) ? i->epochs : 0);
        line("steps", text);
    }
    show_results(r);
    show_checkpoints(c);
    line("files", ls_text_bytes(bytes_below(i->path, 0), b));
    if (r->settings.n > 0) printf("\n");
    for (int k = 0; k < r->settings.n; k++) {
        char key[128];
        printf("%-28s %s\n", grid_shown(r->settings.items[k].key, key, sizeof key),
               grid_shown(r->settings.items[k].value, text, sizeof text));
    }
}

static void show_json(const ls_run_row *r, const ls_run_checkpoints *c)
{
    const ls_run_info *i = r->info;
    json_t *o = runs_json(r, NULL), *steps = json_array(), *settings = json_object();

    for (int k = 0; k < c->n; k++) json_array_append_new(steps, json_integer((json_int_t)c->steps[k]));
    for (int k = 0; k < r->settings.n; k++)
        json_object_set_new(settings, r->settings.items[k].key, runs_text_json(r->settings.items[k].value));
    json_object_set_new(o, "event", json_string("run"));
    json_object_set_new(o, "settings", settings);
    json_object_set_new(o, "summary", i->summary != NULL ? json_incref(i->summary) : json_null());
    json_object_set_new(o, "owner",
                        i->has_owner
                            ? json_pack("{s:I, s:o, s:o, s:I, s:o}", "pid", (json_int_t)i->owner.pid, "host",
                                        runs_text_json(i->owner.host), "start",
                                        runs_time_json(i->owner.start), "epoch", (json_int_t)i->owner.epoch,
                                        "command", runs_text_json(i->owner.command))
                            : json_null());
    json_object_set_new(o, "checkpoints",
                        json_pack("{s:o, s:o, s:o}", "steps", steps, "last",
                                  c->last >= 0 ? json_integer((json_int_t)c->last) : json_null(), "best",
                                  c->best >= 0 ? json_integer((json_int_t)c->best) : json_null()));
    json_object_set_new(o, "bytes", json_real(bytes_below(i->path, 0)));
    cli_print_json_take(o);
}

int runs_show(const cli_args *args)
{
    ls_run_checkpoints c = {0};
    runs_rows r;
    ls_err err = {0};
    ls_status st = LS_OK;

    LS_TRY(runs_rows_named(&r, args, &err));
    LS_TRY(ls_run_checkpoints_list(&c, r.rows[0].info->path, &err));
    if (args->json)
        show_json(&r.rows[0], &c);
    else
        show_text(&r.rows[0], &c);
out:
    ls_run_checkpoints_release(&c);
    runs_rows_release(&r);
    return st == LS_OK ? CLI_DONE : cli_fail("runs", &err);
}
