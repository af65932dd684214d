/* files.c: where experiments are found, and how files based on other files become one list of entries. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/program.h"
#include "base/text.h"
#include "config/config_internal.h"

/* -- entries ----------------------------------------------------------------------------------------------
 */

lsi_entry *lsi_find(const lsi_entries *entries, const char *key)
{
    for (int i = 0; i < entries->n; i++)
        if (strcmp(entries->items[i].key, key) == 0) return &entries->items[i];
    return NULL;
}

/* Exactly one of the two sizes of a batch counts; a later file or override may change which. */
static ls_status settle_batch(lsi_entries *to, const lsi_entry *e, ls_err *err)
{
    bool global = strcmp(e->key, "batch.global") == 0;
    lsi_entry *other;

    if ((!global && strcmp(e->key, "batch.per_rank") != 0) || e->kind != LSI_VALUE) return LS_OK;
    other = lsi_find(to, global ? "batch.per_rank" : "batch.global");
    if (other == NULL || other->kind != LSI_VALUE) return LS_OK;
    if (strcmp((global ? e : other)->value, "0") == 0) return LS_OK; /* that is: not set */
    if (other->layer == e->layer || (other->layer >= LSI_OVERRIDE_LAYER && e->layer >= LSI_OVERRIDE_LAYER))
        return lsi_fail_at(err, &e->at, "\"%s\" and \"%s\" exclude each other; set one", e->written,
                           other->written);
    other->kind = LSI_NULL;
    return LS_OK;
}

static ls_status merge_one(lsi_entries *to, const lsi_entry *e, ls_err *err)
{
    lsi_entry *old = lsi_find(to, e->key);
    ls_status st = LS_OK;

    LS_TRY(settle_batch(to, e, err));
    if (old != NULL && old->layer == e->layer) {
        st =
            lsi_fail_at(err, &e->at, "key \"%s\" is there twice, first in line %d", e->written, old->at.line);
        goto out;
    }
    if (old == NULL && to->n == LSI_ENTRIES_MAX) {
        st = lsi_fail_at(err, &e->at, "more than %d keys", LSI_ENTRIES_MAX);
        goto out;
    }
    if (old == NULL) old = &to->items[to->n++];
    *old = *e;
out:
    return st;
}

ls_status lsi_merge(lsi_entries *to, const lsi_entries *from, int layer, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < from->n; i++) {
        lsi_entry e = from->items[i];
        e.layer = layer;
        lsi_rename(&e);
        LS_TRY(merge_one(to, &e, err));
    }
out:
    return st;
}

/* -- reading ----------------------------------------------------------------------------------------------
 */

/* A file that is being read, and the one it is a base of. */
typedef struct open_file {
    const struct open_file *parent;
    const lsi_place *named_at; /* NULL: by the user */
    dev_t device;
    ino_t inode;
} open_file;

typedef struct file_walk {
    lsi_entries *to;
    int n_files, n_layers;
    ls_err *err;
} file_walk;

static ls_status fail_file(const open_file *f, const char *path, const char *why, ls_err *err)
{
    if (f->named_at != NULL) return lsi_fail_at(err, f->named_at, "defaults: %s: %s", path, why);
    return ls_fail(err, LS_INVALID, "%s: %s", path, why);
}

/* All bytes of a regular file of at most LSI_FILE_MAX; fills in device and inode of `f`. */
static ls_status slurp(open_file *f, const char *path, ls_arena *arena, char **out, size_t *n, ls_err *err)
{
    ls_status st = LS_OK;
    struct stat info;
    ssize_t got = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a pipe must not wait */

    *n = 0;
    if (fd < 0 || fstat(fd, &info) != 0) {
        st = fail_file(f, path, strerror(errno), err);
        goto out;
    }
    if (!S_ISREG(info.st_mode) || (size_t)info.st_size > LSI_FILE_MAX) {
        st = fail_file(f, path, S_ISREG(info.st_mode) ? "larger than 1 MiB; no experiment is" : "not a file",
                       err);
        goto out;
    }
    f->device = info.st_dev;
    f->inode = info.st_ino;
    *out = ls_arena_alloc(arena, (size_t)info.st_size + 1);
    if (*out == NULL) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory", path);
        goto out;
    }
    for (; got > 0 && *n < (size_t)info.st_size; *n += (size_t)got) {
        got = read(fd, *out + *n, (size_t)info.st_size - *n);
        if (got >= 0) continue;
        st = fail_file(f, path, strerror(errno), err);
        goto out;
    }
out:
    if (fd >= 0) close(fd);
    return st;
}

static ls_status walk(file_walk *w, const char *path, const open_file *parent, const lsi_place *named_at,
                      int depth);

/* The base's path is relative to the folder of the file that names it. */
static ls_status walk_base(file_walk *w, const char *path, const open_file *file, const lsi_document *doc,
                           int i, int depth)
{
    const char *slash = strrchr(path, '/'), *base = doc->bases[i];
    int folder = base[0] == '/' || slash == NULL ? 0 : (int)(slash - path) + 1;
    const char *joined = ls_arena_printf(w->to->arena, "%.*s%s", folder, path, base);

    if (joined == NULL) return ls_fail(w->err, LS_NOMEM, "%s: no memory", path);
    return walk(w, joined, file, &doc->bases_at[i], depth + 1);
}

static ls_status walk(file_walk *w, const char *path, const open_file *parent, const lsi_place *named_at,
                      int depth)
{
    open_file file = {.parent = parent, .named_at = named_at};
    lsi_document *doc = ls_arena_alloc(w->to->arena, sizeof *doc);
    ls_status st = LS_OK;
    char *text = NULL;
    size_t n;

    if (doc == NULL) return ls_fail(w->err, LS_NOMEM, "%s: no memory", path);
    if (++w->n_files > LSI_FILES_MAX || depth > LSI_DEPTH_MAX)
        return fail_file(&file, path, "too many files based on files", w->err);
    LS_TRY(slurp(&file, path, w->to->arena, &text, &n, w->err));
    for (const open_file *p = parent; p != NULL; p = p->parent)
        if (p->device == file.device && p->inode == file.inode)
            return fail_file(&file, path, "the file is based on itself", w->err);
    LS_TRY(lsi_entries_create(&doc->entries, w->to->arena, w->err));
    LS_TRY(lsi_yaml_parse(doc, text, n, path, "", w->err));
    for (int i = 0; i < doc->n_bases; i++) LS_TRY(walk_base(w, path, &file, doc, i, depth));
    LS_TRY(lsi_merge(w->to, &doc->entries, ++w->n_layers, w->err));
out:
    return st;
}

ls_status lsi_read_file(lsi_entries *to, const char *path, ls_err *err)
{
    file_walk w = {.to = to, .err = err};

    return walk(&w, path, NULL, NULL, 0);
}

/* -- names ------------------------------------------------------------------------------------------------
 */

/* Folder number i that shipped experiments may be in, or NULL after the last; "" is none. */
static const char *folder_at(int i, char *buf, size_t size)
{
    const char *set = getenv("LOCKSTEP_EXPERIMENTS");

    switch (i) {
    case 0: return set != NULL ? set : "";
    case 1: /* beside the program, wherever it was installed to */
        return ls_program_beside(buf, size, "../share/lockstep/experiments") ? buf : "";
    case 2: return LS_EXPERIMENTS_INSTALLED;
    case 3: return LS_EXPERIMENTS_SOURCE;
    default: return NULL;
    }
}

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n > m && strcmp(text + n - m, end) == 0;
}

ls_status lsi_find_file(const char **path, const char *name, ls_arena *arena, ls_err *err)
{
    bool yaml = ends_in(name, ".yaml") || ends_in(name, ".yml");
    const char *folder;
    char buf[PATH_MAX];

    *path = NULL;
    if (ends_in(name, ".so")) return LS_OK;
    if (strchr(name, '/') != NULL || (yaml && access(name, F_OK) == 0)) {
        *path = name;
        return LS_OK;
    }
    for (int i = 0; (folder = folder_at(i, buf, sizeof buf)) != NULL; i++) {
        char *candidate = ls_arena_printf(arena, "%s/%s%s", folder, name, yaml ? "" : ".yaml");
        if (candidate == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", name);
        if (folder[0] == '\0' || name[0] == '\0' || access(candidate, F_OK) != 0) continue;
        *path = candidate;
        return LS_OK;
    }
    if (yaml) return ls_fail(err, LS_INVALID, "%s: no such file, here or among the experiments", name);
    return LS_OK;
}

bool ls_experiment_is_known(const char *name)
{
    ls_arena *arena = NULL;
    const ls_trial *trial;
    const char *path = NULL;
    const bool known = ls_experiment_trial(&trial, name, NULL) == LS_OK ||
                       (ls_arena_create(&arena, LS_MEM_CLI, NULL) == LS_OK &&
                        lsi_find_file(&path, name, arena, NULL) == LS_OK && path != NULL);

    ls_arena_destroy(arena);
    return known;
}

#define NAMES_MAX 256

static bool is_there(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* Adds the names of the .yaml files in `folder`; *n is -1 when memory runs out. */
static void list_folder(const char *folder, ls_arena *arena, const char **names, int *n)
{
    DIR *dir = folder[0] != '\0' ? opendir(folder) : NULL;
    struct dirent *entry;

    while (dir != NULL && *n >= 0 && *n < NAMES_MAX && (entry = readdir(dir)) != NULL) {
        char *name;
        if (!ends_in(entry->d_name, ".yaml")) continue;
        name = ls_arena_strdup(arena, entry->d_name);
        if (name != NULL) name[strlen(name) - strlen(".yaml")] = '\0';
        if (name == NULL)
            *n = -1;
        else if (!is_there(names, *n, name))
            names[(*n)++] = name;
    }
    if (dir != NULL) closedir(dir);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

ls_status ls_experiment_names(ls_arena *arena, const char *const **out, int *n, ls_err *err)
{
    const char **names = ls_arena_alloc(arena, NAMES_MAX * sizeof *names), *folder;
    char buf[PATH_MAX];

    *n = 0;
    *out = names;
    for (int i = 0; names != NULL && *n >= 0 && (folder = folder_at(i, buf, sizeof buf)) != NULL; i++)
        list_folder(folder, arena, names, n);
    if (names == NULL || *n < 0) {
        *n = 0;
        return ls_fail(err, LS_NOMEM, "experiments: no memory");
    }
    qsort(names, (size_t)*n, sizeof *names, by_name);
    return LS_OK;
}

ls_status lsi_fail_name(const char *name, ls_err *err)
{
    const char *names[2 * NAMES_MAX], *near;
    const char *const *found;
    ls_arena *arena = NULL;
    int n = 0, n_names = 0;
    ls_status st = LS_OK;

    LS_TRY(ls_arena_create(&arena, LS_MEM_CLI, err));
    LS_TRY(ls_experiment_names(arena, &found, &n, err));
    for (int i = 0; i < n; i++) names[n_names++] = found[i];
    for (int i = 0; ls_trials[i] != NULL && n_names < 2 * NAMES_MAX; i++)
        names[n_names++] = ls_trials[i]->name;
    near = ls_text_nearest(name, names, (size_t)n_names);
    if (near != NULL)
        st = ls_fail(err, LS_INVALID, "no experiment or model \"%.200s\"; did you mean \"%s\"?", name, near);
    else
        st = ls_fail(err, LS_INVALID, "no experiment or model \"%.200s\"; `lockstep info` lists them", name);
out:
    ls_arena_destroy(arena);
    return st;
}
