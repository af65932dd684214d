/* plan_diff.c: `lockstep plan --diff A B`: how two plans differ. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "plan.h"

enum { SHOWN = 20, ALL = 1 << 20 };

bool plan_is_file(const char *word)
{
    const size_t n = strlen(word);
    struct stat s;

    return n > 5 && (strcmp(word + n - 5, ".json") == 0 || strcmp(word + n - 6, ".jsonl") == 0) &&
           (stat(word, &s) == 0 || errno == ENOENT);
}

ls_status plan_file_check(const char *word, ls_err *err)
{
    struct stat s;

    if (!plan_is_file(word) || stat(word, &s) != 0 || S_ISREG(s.st_mode)) return LS_OK;
    return ls_fail(
        err, LS_INVALID,
        "%s is %s, and no file with a plan; write one with `lockstep plan ... --json > FILE.json`, "
        "and name that",
        word, S_ISDIR(s.st_mode) ? "a folder" : "a pipe or a device");
}

/* A side: a file, an experiment, or the experiment A with one more setting. */
typedef struct side {
    const char *word, *variant; /* variant: the setting, or NULL */
    ls_document *plans;
    int n_plans;
} side;

static ls_status make_room(side *s, int n, ls_err *err)
{
    s->plans = ls_alloc(LS_MEM_CLI, sizeof *s->plans * (size_t)n);
    if (s->plans == NULL) return ls_fail(err, LS_NOMEM, "no memory for plans");
    for (int i = 0; i < n; i++) s->plans[i] = (ls_document){0};
    s->n_plans = n;
    return LS_OK;
}

static ls_status compile(const cli_args *args, side *s, ls_err *err)
{
    cli_experiment x = {0};
    cli_args own = *args;
    const int n = args->n_settings - 1;
    ls_status st = LS_OK;

    own.model = s->word;
    own.n_settings = 0;
    own.settings = ls_alloc(LS_MEM_CLI, sizeof *own.settings * ((size_t)n + 2));
    if (own.settings == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    for (int i = 0; i < n; i++) own.settings[own.n_settings++] = args->settings[i + 1];
    if (s->variant != NULL) own.settings[own.n_settings++] = s->variant;
    LS_TRY(make_room(s, LS_OUTLINE_PLANS, err));
    LS_TRY(plan_compile(&x, s->plans, &own, err));
    s->n_plans = x.outline.n_plans;
out:
    cli_experiment_release(&x);
    ls_free(own.settings);
    return st;
}

static ls_status open_file(side *s, ls_err *err)
{
    ls_document first = {0};
    int n = 0;
    ls_status st = LS_OK;

    LS_TRY(ls_document_open(&first, s->word, 0, &n, err));
    LS_TRY(make_room(s, n, err));
    s->plans[0] = first;
    first = (ls_document){0};
    for (int i = 1; i < s->n_plans; i++) LS_TRY(ls_document_open(&s->plans[i], s->word, i, &n, err));
out:
    ls_document_release(&first);
    return st;
}

static void close_side(side *s)
{
    for (int i = 0; i < s->n_plans; i++) ls_document_release(&s->plans[i]);
    ls_free(s->plans);
}

static void print_json(const ls_document *a, const ls_document *b, const ls_doc_difference *o,
                       const char *text)
{
    char hash[2][24];

    snprintf(hash[0], sizeof hash[0], "%016llx", (unsigned long long)a->hash);
    snprintf(hash[1], sizeof hash[1], "%016llx", (unsigned long long)b->hash);
    cli_print_json_take(json_pack(
        "{s:s, s:s, s:i, s:b, s:i, s:i, s:i, s:i, s:i, s:b, s:[I,I], s:[f,f], s:[s,s], s:s}", "event",
        "plan-diff", "part", a->part, "stage", a->stage, "equal", o->equal, "added", o->added, "removed",
        o->removed, "changed", o->changed, "moved", o->moved, "edges", o->edges, "inputs", o->inputs,
        "planned_bytes", (json_int_t)a->memory.total, (json_int_t)b->memory.total, "flops", a->flops,
        b->flops, "plan_hash", hash[0], hash[1], "text", text));
}

/* One pair of plans. */
static ls_status compare_plans(const cli_args *args, const side s[2], int plan, bool *equal, ls_err *err)
{
    const ls_document *a = &s[0].plans[plan], *b = &s[1].plans[plan];
    ls_doc_difference o = {0};
    ls_text text = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_document_diff(a, b, args->json ? ALL : SHOWN, &text, &o, err));
    if (!o.equal) *equal = false;
    if (args->json) {
        print_json(a, b, &o, text.data != NULL ? text.data : "");
        goto out;
    }
    if (s[0].n_plans > 1) printf("%s, stage %d: ", a->part, a->stage + 1);
    if (o.equal)
        printf("the plans are equal: %d nodes, hash %016llx\n", (int)a->n_nodes, (unsigned long long)a->hash);
    else
        printf("A  %s\nB  %s%s%s\n%s", s[0].word, s[1].word, s[1].variant != NULL ? " " : "",
               s[1].variant != NULL ? s[1].variant : "", text.data);
out:
    ls_text_release(&text);
    return st;
}

/* The first word that would have a say in how a plan is compiled, as it was written. */
static const char *not_for_files(const cli_args *args)
{
    const char *setting = args->n_settings > 1 ? args->settings[1] : NULL;

    if (setting == NULL) return "--threads";
    return setting == args->ranks_setting ? "-n" : setting == args->device_setting ? "--device" : setting;
}

static ls_status check_words(const cli_args *args, const char *second, const char *variant, ls_err *err)
{
    if (variant != NULL && plan_is_file(args->model))
        return ls_fail(err, LS_INVALID, "%s is a file with a plan: %s cannot be set in it", args->model,
                       variant);
    if (plan_is_file(args->model) && plan_is_file(second) && (args->n_settings > 1 || args->threads > 0))
        return ls_fail(
            err, LS_INVALID,
            "%s and %s are files with plans, which were compiled before: %s cannot be set in them; "
            "leave it out",
            args->model, second, not_for_files(args));
    return LS_OK;
}

/* Both sides are read, and have been found good, before anything is said of them. */
static ls_status compare(const cli_args *args, bool *equal, ls_err *err)
{
    const char *second = args->settings[0],
               *variant = strchr(second, '=') != NULL && !plan_is_file(second) ? second : NULL;
    side s[2] = {{.word = args->model}, {.word = variant != NULL ? args->model : second, .variant = variant}};
    ls_status st = LS_OK;

    LS_TRY(check_words(args, second, variant, err));
    for (int k = 0; k < 2; k++) LS_TRY(plan_file_check(s[k].word, err));
    for (int k = 0; k < 2; k++)
        LS_TRY(plan_is_file(s[k].word) ? open_file(&s[k], err) : compile(args, &s[k], err));
    *equal = s[0].n_plans == s[1].n_plans;
    for (int i = 0; i < s[0].n_plans && i < s[1].n_plans; i++) LS_TRY(compare_plans(args, s, i, equal, err));
    if (s[0].n_plans != s[1].n_plans && !args->json)
        printf("A has %d plan%s, B has %d: what has no like in the other is not compared\n", s[0].n_plans,
               s[0].n_plans == 1 ? "" : "s", s[1].n_plans);
out:
    for (int k = 0; k < 2; k++) close_side(&s[k]);
    return st;
}

int plan_diff(const cli_args *args)
{
    bool equal = false;
    ls_err err = {0};

    if (compare(args, &equal, &err) != LS_OK) return cli_fail("plan", &err);
    return equal ? CLI_DONE : CLI_FAILED;
}
