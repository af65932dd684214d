/* ckpt.c: `lockstep ckpt`: look into a checkpoint, check it, convert it. */
#include "ckpt/ckpt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/replace.h"
#include "base/text.h"
#include "cli.h"
#include "runs/reader.h"

#define PATH_MAX_BYTES LS_PATH_MAX
#define SUFFIX         ".safetensors"

static bool is_folder(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* Whether a folder is one of a checkpoint, whatever it has lost: by its name, or by what is in it. */
static bool is_checkpoint(const char *folder)
{
    static const char *const parts[] = {"manifest.json", "model.safetensors"};
    char path[PATH_MAX_BYTES], *name = path;
    size_t n = strlen(folder);

    while (n > 1 && folder[n - 1] == '/') n--;
    snprintf(path, sizeof path, "%.*s", (int)n, folder);
    if (strrchr(path, '/') != NULL) name = strrchr(path, '/') + 1;
    if (ls_ckpt_step_of(name) >= 0) return true;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, parts[i]);
        if (access(path, F_OK) == 0) return true;
    }
    return false;
}

/* A run's directory stands for its newest checkpoint.  NULL: there is none, as `err` says. */
static const char *checkpoint_at(const char *path, char buf[PATH_MAX_BYTES], ls_err *err)
{
    if (ls_run_checkpoint(path, true, buf)) return buf;
    if (access(path, F_OK) != 0)
        ls_fail(err, LS_INVALID, "%s: there is no such checkpoint or run; `lockstep runs list` shows runs",
                path);
    else if (ls_run_is_one(path))
        ls_fail(err, LS_INVALID, "%s has no checkpoint yet; --resume goes on with the run", path);
    else if (!is_folder(path))
        ls_fail(err, LS_INVALID,
                "%s is a file, and a checkpoint is a folder: name a run or a step-... folder; `lockstep ckpt "
                "import` makes one of a safetensors file",
                path);
    else if (!is_checkpoint(path))
        ls_fail(err, LS_INVALID, "%s is no checkpoint: name a run or a step-... folder", path);
    return err->status == LS_OK ? path : NULL;
}

/* -- show -------------------------------------------------------------------------------------------------
 */

static void show_json(const ls_ckpt *c, const char *path)
{
    json_t *list = json_array();
    char hash[24];

    for (int i = 0; i < ls_ckpt_count(c); i++) {
        ls_ckpt_tensor x = ls_ckpt_at(c, i);
        json_t *shape = json_array();
        for (int k = 0; k < x.shape.rank; k++) json_array_append_new(shape, json_integer(x.shape.dim[k]));
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)x.xxh3);
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:s}", "name", x.name, "file", x.file,
                                        "role", ls_ckpt_role_name(x.role), "dtype", ls_dtype_name(x.dtype),
                                        "shape", shape, "bytes", (json_int_t)x.bytes, "xxh3", hash));
    }
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)ls_ckpt_plan_hash(c));
    cli_print_json_take(json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:O}", "event", "ckpt", "action",
                                  "show", "path", path, "version", ls_ckpt_version(c), "plan_hash", hash,
                                  "metric",
                                  isfinite(ls_ckpt_metric(c)) ? json_real(ls_ckpt_metric(c)) : json_null(),
                                  "tensors", list, "state", (json_t *)ls_ckpt_state(c)));
}

static void show_text(const ls_ckpt *c, const char *path)
{
    char shape[LS_SHAPE_TEXT], a[32], b[32];
    double model = 0, optimiser = 0;

    printf("%-44s %-10s %-5s %-22s %10s\n", "tensor", "role", "type", "shape", "bytes");
    for (int i = 0; i < ls_ckpt_count(c); i++) {
        ls_ckpt_tensor x = ls_ckpt_at(c, i);
        printf("%-44s %-10s %-5s %-22s %10s\n", x.name, ls_ckpt_role_name(x.role), ls_dtype_name(x.dtype),
               ls_shape_text(x.shape, shape), ls_text_bytes((double)x.bytes, a));
        *(x.role == LS_VAR_PARAM || x.role == LS_VAR_BUFFER ? &model : &optimiser) += (double)x.bytes;
    }
    printf("\ncheckpoint    %s, written by lockstep %s\n", path, ls_ckpt_version(c));
    printf("tensors       %d: %s of the model, %s of the optimiser\n", ls_ckpt_count(c),
           ls_text_bytes(model, a), ls_text_bytes(optimiser, b));
    printf("plan hash     %016llx\n", (unsigned long long)ls_ckpt_plan_hash(c));
    if (isfinite(ls_ckpt_metric(c))) printf("metric        %g\n", ls_ckpt_metric(c));
    printf("state         ");
    json_dumpf(ls_ckpt_state(c), stdout, JSON_INDENT(2));
    printf("\n");
}

static int show(const char *path, const char *to, bool json)
{
    ls_ckpt *c = NULL;
    ls_err err = {0};

    (void)to;
    if (ls_ckpt_advise(path, ls_ckpt_open(&c, path, &err), &err) != LS_OK) return cli_fail("ckpt", &err);
    if (json)
        show_json(c, path);
    else
        show_text(c, path);
    ls_ckpt_close(c);
    return CLI_DONE;
}

/* -- verify -----------------------------------------------------------------------------------------------
 */

/* Kept until all is read: with --json they are one object. */
static void note_damage(void *list, const char *file, const char *tensor, const char *text)
{
    json_array_append_new(list, json_pack("{s:s, s:s?, s:s}", "file", file, "tensor", tensor, "text", text));
}

/* All damages are told, not the first alone: what is left to mend should be known at once. */
static int verify(const char *path, const char *to, bool json)
{
    json_t *list = json_array(), *o;
    char remedy[PATH_MAX_BYTES + 128] = "";
    ls_err err = {0};
    size_t i;
    int bad = 0;
    ls_status st = ls_ckpt_verify(path, &bad, note_damage, list, &err);

    (void)to;
    if (st != LS_OK && st != LS_DATA) {
        json_decref(list);
        return cli_fail("ckpt", &err);
    }
    json_array_foreach(list, i, o)
        fprintf(stderr, "lockstep ckpt: %s\n", json_string_value(json_object_get(o, "text")));
    if (st == LS_DATA) {
        ls_ckpt_remedy(path, remedy, sizeof remedy);
        fprintf(stderr, "lockstep ckpt: what to do: %s\n", remedy);
    }
    if (json)
        cli_print_json_take(json_pack("{s:s, s:s, s:s, s:b, s:o, s:s*}", "event", "ckpt", "action", "verify",
                                      "path", path, "ok", st == LS_OK, "damages", list, "remedy",
                                      st == LS_DATA ? remedy : NULL));
    else if (st == LS_OK)
        printf("%s: every byte is as it was written\n", path);
    if (!json) json_decref(list);
    return st == LS_OK ? CLI_DONE : CLI_DAMAGED;
}

/* -- export, import ---------------------------------------------------------------------------------------
 */

static int converted(const char *action, const char *path, const char *to, bool json, int left_out)
{
    if (json)
        cli_print_json_take(json_pack("{s:s, s:s, s:s, s:s, s:i}", "event", "ckpt", "action", action, "path",
                                      path, "to", to, "left_out", left_out));
    else
        printf("%s: written\n", to);
    return CLI_DONE;
}

static int export(const char *path, const char *to, bool json)
{
    char name[PATH_MAX_BYTES];
    ls_err err = {0}, why = {0};

    if (to == NULL) {
        size_t n = strlen(path);
        while (n > 1 && path[n - 1] == '/') n--;
        snprintf(name, sizeof name, "%.*s%s", (int)n, path, SUFFIX);
        to = name;
    }
    if (access(to, F_OK) == 0) { /* it may be part of the very checkpoint */
        ls_fail(&err, LS_INVALID, "%s is there already; name another file, or remove it", to);
        return cli_fail("ckpt", &err);
    }
    if (ls_replace_check(to, &why) != LS_OK) {
        ls_fail(&err, LS_INVALID, "export: %s; name a file where you may write", why.text);
        return cli_fail("ckpt", &err);
    }
    if (ls_ckpt_export(path, to, &err) != LS_OK) return cli_fail("ckpt", &err);
    return converted("export", path, to, json, 0);
}

static int import(const char *path, const char *to, bool json)
{
    size_t n = strlen(path), m = strlen(SUFFIX);
    char name[PATH_MAX_BYTES];
    ls_err err = {0};
    int left_out = 0;

    if (ls_ckpt_refuse_foreign(path, &err) != LS_OK) return cli_fail("ckpt", &err);
    if (to == NULL) {
        if (n <= m || strcmp(path + n - m, SUFFIX) != 0) {
            ls_fail(&err, LS_INVALID, "import %s: to which directory?  `lockstep ckpt import %s TO`", path,
                    ls_text_quoted(path, name, sizeof name));
            return cli_fail("ckpt", &err);
        }
        snprintf(name, sizeof name, "%.*s", (int)(n - m), path);
        to = name;
    }
    if (access(path, F_OK) != 0)
        ls_fail(&err, LS_INVALID, "import %s: there is no such file", path);
    else if (is_folder(path))
        ls_fail(&err, LS_INVALID,
                "import %s: is a folder; import makes a checkpoint of a safetensors file, such as `lockstep "
                "ckpt export` writes",
                path);
    if (err.status != LS_OK || ls_ckpt_import(path, to, &left_out, &err) != LS_OK)
        return cli_fail("ckpt", &err);
    return converted("import", path, to, json, left_out);
}

/* -- the command ------------------------------------------------------------------------------------------
 */

static const struct {
    const char *name, *about;
    bool of_checkpoint; /* PATH is a checkpoint, or a run */
    int max_words;
    int (*run)(const char *path, const char *to, bool json);
} actions[] = {
    {"show", "list tensors and state", true, 1, show},
    {"verify", "read all of it; exit code 3 when a byte is not as it was written", true, 1, verify},
    {"export", "write parameters and buffers to the file TO (default: PATH.safetensors)", true, 2, export},
    {"import", "make the checkpoint TO of the safetensors file PATH (default: PATH without its ending)",
     false, 2, import},
};

#define N_ACTIONS (sizeof actions / sizeof actions[0])

static size_t find(const char *name)
{
    size_t i = 0;

    while (i < N_ACTIONS && strcmp(actions[i].name, name) != 0) i++;
    return i;
}

ls_status cli_ckpt_check(const cli_args *args, ls_err *err)
{
    const char *names[N_ACTIONS], *near;
    size_t i;

    if (args->model == NULL)
        return ls_fail(err, LS_INVALID, "show, verify, export or import?  `lockstep ckpt --help` says more");
    i = find(args->model);
    if (i == N_ACTIONS) {
        for (size_t k = 0; k < N_ACTIONS; k++) names[k] = actions[k].name;
        near = ls_text_nearest(args->model, names, N_ACTIONS);
        return ls_fail(
            err, LS_INVALID, "cannot \"%s\"; %s%s%s", args->model, near != NULL ? "did you mean \"" : "",
            near != NULL ? near : "`lockstep ckpt --help` says what it can", near != NULL ? "\"?" : "");
    }
    if (args->n_settings < 1) return ls_fail(err, LS_INVALID, "%s: which checkpoint?", args->model);
    if (args->n_settings > actions[i].max_words)
        return ls_fail(err, LS_INVALID, "\"%s\" is one word too many", args->settings[actions[i].max_words]);
    return LS_OK;
}

void cli_ckpt_help(void)
{
    printf("\nPATH is a checkpoint's directory, a link to one, or a run, which stands for its\nnewest.\n");
    for (size_t i = 0; i < N_ACTIONS; i++)
        cli_print_wrapped(actions[i].about, printf("  %-18s ", actions[i].name), 21);
}

int cli_ckpt(const cli_args *args)
{
    size_t i = find(args->model);
    const char *path = args->settings[0];
    char buf[PATH_MAX_BYTES];
    ls_err err = {0};

    if (actions[i].of_checkpoint && (path = checkpoint_at(path, buf, &err)) == NULL)
        return cli_fail("ckpt", &err);
    return actions[i].run(path, args->n_settings > 1 ? args->settings[1] : NULL, args->json);
}
