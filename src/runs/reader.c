/* reader.c: one run as its files have it, and as it truly is. */
#include "runs/reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "ckpt/ckpt.h"
#include "runs/owner_internal.h"
#include "runs/run_internal.h"

/* -- states -----------------------------------------------------------------------------------------------
 */

static const char *const state_names[] = {"unknown", "running", "completed", "paused", "failed", "killed"};

enum { N_STATES = sizeof state_names / sizeof state_names[0] };

const char *ls_run_state_name(ls_run_state s)
{
    return state_names[(int)s >= 0 && (int)s < N_STATES ? (int)s : 0];
}

ls_run_state ls_run_state_of(const char *name)
{
    for (int i = 1; name != NULL && i < N_STATES; i++)
        if (strcmp(name, state_names[i]) == 0) return (ls_run_state)i;
    return LS_RUN_UNKNOWN;
}

/* What is written is the truth of its time.  Who has the run now may be at work since (running), may be about
 * to leave (its own last word stands), or may be gone without one (killed). */
ls_run_state lsi_info_state(const ls_run_info *i)
{
    const json_int_t of = json_integer_value(json_object_get(i->summary, "owner_epoch"));
    const bool own_word = i->has_owner && i->summary != NULL && of == i->owner.epoch;

    if (i->alive && !(own_word && i->written != LS_RUN_UNKNOWN)) return LS_RUN_RUNNING;
    if (i->alive) return i->written;
    /* It began, and was gone before its first word. */
    if (i->has_owner && i->owner.begun && !isfinite(i->owner.ended) && !own_word) return LS_RUN_KILLED;
    if (i->has_owner && i->owner.end != LS_RUN_UNKNOWN && isfinite(i->owner.ended)) return i->owner.end;
    return i->written == LS_RUN_RUNNING ? LS_RUN_KILLED : i->written;
}

/* -- one run ----------------------------------------------------------------------------------------------
 */

static bool has(const char *folder, const char *name)
{
    char path[LS_PATH_MAX];

    return lsi_run_path(path, folder, name, NULL) == LS_OK && access(path, F_OK) == 0;
}

bool ls_run_is_one(const char *path)
{
    return path[0] != '\0' && (has(path, LSI_SUMMARY_FILE) || has(path, "config.yaml"));
}

/* The last part of a path, without slashes at its end. */
static void last_part(char *name, size_t size, const char *path)
{
    size_t end = strlen(path), begin;

    while (end > 1 && path[end - 1] == '/') end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';) begin--;
    snprintf(name, size, "%.*s", (int)(end - begin), path + begin);
}

static void take_text(const json_t *from, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(from, key));

    if (text != NULL) snprintf(out, size, "%s", text);
}

static double take_time(const json_t *from, const char *key)
{
    return lsi_time_parse(json_string_value(json_object_get(from, key)));
}

void lsi_info_take_summary(ls_run_info *i, json_t *summary)
{
    const json_t *v;

    i->summary = summary;
    i->written = ls_run_state_of(json_string_value(json_object_get(i->summary, "state")));
    take_text(i->summary, "name", i->name, sizeof i->name);
    take_text(i->summary, "host", i->host, sizeof i->host);
    i->started = take_time(i->summary, "started");
    i->written_at = take_time(i->summary, "written");
    v = json_object_get(i->summary, "ranks");
    if (json_is_integer(v) && json_integer_value(v) > 0 && json_integer_value(v) <= INT32_MAX)
        i->ranks = (int)json_integer_value(v);
    v = json_object_get(i->summary, "steps");
    if (json_is_integer(v) && json_integer_value(v) >= 0) i->steps = json_integer_value(v);
    v = json_object_get(i->summary, "epochs");
    if (json_is_number(v)) i->epochs = json_number_value(v);
}

static ls_status read_summary(ls_run_info *i, ls_err *err)
{
    char path[LS_PATH_MAX];
    json_t *summary;
    ls_err why = {0};

    if (!has(i->path, LSI_SUMMARY_FILE) || lsi_run_path(path, i->path, LSI_SUMMARY_FILE, NULL) != LS_OK)
        return LS_OK;
    summary = lsi_summary_load(path, &why);
    if (summary != NULL)
        lsi_info_take_summary(i, summary);
    else
        snprintf(i->trouble, sizeof i->trouble, "%.255s", why.text);
    return why.status == LS_NOMEM ? ls_fail(err, LS_NOMEM, "%s", why.text) : LS_OK;
}

static void read_owner(ls_run_info *i)
{
    char path[LS_PATH_MAX];
    bool sure;
    int fd;

    if (lsi_run_path(path, i->path, LSI_OWNER_FILE, NULL) != LS_OK) return;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    lsi_owner_read(fd, &i->owner, &i->has_owner);
    i->heartbeat = lsi_owner_heartbeat(fd);
    i->alive = lsi_owner_alive(fd, &i->owner, &sure);
    if (i->has_owner && i->owner.name[0] != '\0') snprintf(i->name, sizeof i->name, "%s", i->owner.name);
    close(fd);
}

/* When the run was begun last.  What has no content of that kind was written before there was one. */
static double time_opened(const ls_run_info *i)
{
    char path[LS_PATH_MAX];
    struct stat info;

    if (i->has_owner && (i->owner.begun || !isfinite(i->started))) return i->owner.start;
    if (isfinite(i->started)) return i->started;
    if (lsi_run_path(path, i->path, i->summary != NULL ? LSI_SUMMARY_FILE : "config.yaml", NULL) == LS_OK &&
        stat(path, &info) == 0)
        return (double)info.st_mtim.tv_sec + (double)info.st_mtim.tv_nsec * 1e-9;
    return NAN;
}

/* <name>-<yyyymmdd>-<hhmmss>-<4 hex> without what follows the name. */
static void name_from_folder(ls_run_info *i)
{
    const size_t n = strlen(i->folder), tail = strlen("-yyyymmdd-hhmmss-0000");

    snprintf(i->name, sizeof i->name, "%.127s", i->folder);
    if (n > tail && n - tail < sizeof i->name && i->folder[n - tail] == '-' && i->folder[n - 5] == '-')
        i->name[n - tail] = '\0';
}

void lsi_info_clear(ls_run_info *i)
{
    const double nan = (double)NAN;

    *i = (ls_run_info){
        .steps = -1, .epochs = nan, .heartbeat = nan, .started = nan, .opened = nan, .written_at = nan};
}

ls_status ls_run_read(ls_run_info *i, const char *path, ls_err *err)
{
    struct stat info;

    lsi_info_clear(i);
    if (strlen(path) + 32 >= sizeof i->path)
        return ls_fail(err, LS_INVALID, "the path %.60s... is longer than %d bytes", path, LS_PATH_MAX - 32);
    if (path[0] == '\0' || stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return ls_fail(err, LS_INVALID, "there is no folder %s; `lockstep runs` lists the runs there are",
                       path[0] != '\0' ? path : "without a name");
    snprintf(i->path, sizeof i->path, "%s", path);
    last_part(i->folder, sizeof i->folder, path);
    if (read_summary(i, err) != LS_OK) return LS_NOMEM;
    read_owner(i);
    if (i->summary == NULL && i->trouble[0] == '\0' && !(i->has_owner && (i->alive || i->owner.begun)) &&
        !has(path, "config.yaml"))
        return ls_fail(err, LS_INVALID, "%s is no run directory: config.yaml and summary.json are not there",
                       path);
    if (i->name[0] == '\0') name_from_folder(i);
    if (!isfinite(i->started) && i->has_owner) i->started = i->owner.start;
    i->state = lsi_info_state(i);
    i->opened = time_opened(i);
    return LS_OK;
}

void ls_run_info_release(ls_run_info *i)
{
    json_decref(i->summary);
    i->summary = NULL;
}

double ls_run_metric(const ls_run_info *i, const char *which, const char *name)
{
    const json_t *metrics = json_object_get(i->summary, "metrics");
    const json_t *v = json_object_get(json_object_get(metrics, which), name);

    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

/* -- checkpoints ------------------------------------------------------------------------------------------
 */

static int by_step(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The step that a link of the folder points to. */
static int64_t linked(const char *folder, const char *name)
{
    char path[LS_PATH_MAX], to[256];
    ssize_t n = -1;

    if (lsi_run_path(path, folder, name, NULL) == LS_OK) n = readlink(path, to, sizeof to - 1);
    if (n <= 0 || access(path, F_OK) != 0) return -1;
    to[n] = '\0';
    return ls_ckpt_step_of(to);
}

ls_status ls_run_checkpoints_list(ls_run_checkpoints *c, const char *run, ls_err *err)
{
    char folder[LS_PATH_MAX];
    const struct dirent *e;
    ls_status st = LS_OK;
    DIR *d = NULL;

    *c = (ls_run_checkpoints){.last = -1, .best = -1};
    LS_TRY(lsi_run_path(folder, run, "checkpoints", err));
    d = opendir(folder);
    while (d != NULL && (e = readdir(d)) != NULL) {
        const int64_t step = ls_ckpt_step_of(e->d_name);
        if (step < 0) continue;
        if (!LS_GROW(LS_MEM_CLI, c->steps, c->n + 1, c->capacity)) {
            st = ls_fail(err, LS_NOMEM, "%s: no memory", folder);
            goto out;
        }
        c->steps[c->n++] = step;
    }
    if (c->n > 1) qsort(c->steps, (size_t)c->n, sizeof *c->steps, by_step);
    c->last = linked(folder, "last");
    c->best = linked(folder, "best");
out:
    if (d != NULL) closedir(d);
    return st;
}

void ls_run_checkpoints_release(ls_run_checkpoints *c)
{
    ls_free(c->steps);
    *c = (ls_run_checkpoints){.last = -1, .best = -1};
}

static bool find(char out[LS_PATH_MAX], const char *folder, const char *name)
{
    return lsi_run_path(out, folder, name, NULL) == LS_OK && access(out, R_OK) == 0;
}

bool ls_run_checkpoint(const char *run, bool newest, char checkpoint[LS_PATH_MAX])
{
    if (run[0] == '\0') return false;
    return (!newest && find(checkpoint, run, "checkpoints/best")) ||
           find(checkpoint, run, "checkpoints/last");
}

ls_status ls_run_locate(const char *given, bool newest, char config[LS_PATH_MAX],
                        char checkpoint[LS_PATH_MAX], ls_err *err)
{
    char manifest[LS_PATH_MAX];

    if (given[0] != '\0' && find(config, given, "config.yaml")) {
        if (ls_run_checkpoint(given, newest, checkpoint)) return LS_OK;
        return ls_fail(err, LS_INVALID, "%s has no checkpoint yet; --resume goes on with the run", given);
    }
    if (given[0] != '\0' && find(manifest, given, "manifest.json") &&
        find(config, given, "../../config.yaml")) {
        snprintf(checkpoint, LS_PATH_MAX, "%s", given);
        return LS_OK;
    }
    return ls_fail(err, LS_INVALID, "%s is neither a run directory nor a checkpoint of one",
                   given[0] != '\0' ? given : "an empty name");
}
