/* report.c: `lockstep report RUN|STUDY|FOLDER...`: a page about runs that are over, or still go on; and the
 * page of a scaling study made again from its points. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/folders.h"
#include "base/output.h"
#include "base/replace.h"
#include "browser.h"
#include "cli.h"
#include "report/report.h"
#include "report_page.h"
#include "runs/manage.h"
#include "study/study.h"
#include "train/run_pages.h"

enum { RELOAD_S = 5 }; /* between two looks of a page at a run that goes on */

/* The runs that were named, one by one or by the folder that holds them. */
typedef struct chosen {
    ls_past_run *runs; /* room for LS_RUN_PAGES_MOST */
    int n;
    json_t *studies; /* [{"study": folder, "report": page}] */
} chosen;

static bool has(const char *folder, const char *file)
{
    char path[4200];
    struct stat info;

    if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path) return false;
    return stat(path, &info) == 0;
}

/* Either will do: a run that was ended early may have left one of them only. */
static bool is_run(const char *folder)
{
    return has(folder, "summary.json") || has(folder, "metrics.jsonl");
}

static ls_status add_run(chosen *c, const char *path, ls_err *err)
{
    if (c->n == LS_RUN_PAGES_MOST)
        return ls_fail(err, LS_INVALID, "more than %d runs cannot be told apart in one report; name fewer",
                       LS_RUN_PAGES_MOST);
    return ls_past_run_open(&c->runs[c->n++], path, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The runs in a folder such as runs/, in the order of their names.  0: there are none. */
static ls_status add_folder(chosen *c, const char *folder, int *found, ls_err *err)
{
    char names[LS_RUN_PAGES_MOST + 1][NAME_MAX + 1], path[LS_PATH_MAX + NAME_MAX + 2];
    DIR *d = opendir(folder);
    const struct dirent *e;
    ls_status st = LS_OK;
    int n = 0;

    while (d != NULL && n <= LS_RUN_PAGES_MOST && (e = readdir(d)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.' && is_run(path)) snprintf(names[n++], sizeof names[0], "%s", e->d_name);
    }
    if (d != NULL) closedir(d);
    qsort(names, (size_t)n, sizeof names[0], by_name);
    *found = n;
    for (int i = 0; i < n; i++) {
        if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) >= (int)sizeof path) continue;
        LS_TRY(add_run(c, path, err)); /* of too many, one more than can be shown is refused */
    }
out:
    return st;
}

/* A study's page lies in its folder, and is written there at once. */
static ls_status rebuild(chosen *c, const char *folder, const cli_args *args, ls_err *err)
{
    char page[LS_STUDY_PATH_MAX];
    ls_status st = LS_OK;

    if (args->out != NULL) {
        st = ls_fail(err, LS_INVALID, "%s is a study, whose report lies in its folder; --out is for runs",
                     folder);
        goto out;
    }
    LS_TRY(ls_study_rebuild(folder, page, err));
    json_array_append_new(c->studies, json_pack("{s:s, s:s}", "study", folder, "report", page));
    if (!args->json) printf("study         %s\nreport        %s\n", folder, page);
out:
    return st;
}

static ls_status add_word(chosen *c, const char *word, const cli_args *args, ls_err *err)
{
    char named[LS_PATH_MAX];
    ls_status st = LS_OK;
    int found = 0;

    /* What is no path may be a run's name, as in `lockstep runs`. */
    if (!has(word, ".") && ls_run_find(named, word, "runs", NULL) == LS_OK) word = named;
    if (ls_study_is_one(word)) return rebuild(c, word, args, err);
    if (!is_run(word)) LS_TRY(add_folder(c, word, &found, err));
    if (found == 0 && has(word, ".") && !is_run(word))
        st = ls_fail(
            err, LS_DATA,
            "%s holds no run and is no study: summary.json and metrics.jsonl are in none of its folders; "
            "name a directory that `lockstep train` or `lockstep scale` wrote",
            word);
    else if (found == 0)
        st = add_run(c, word, err);
out:
    return st;
}

/* Beside a single run; for several, in the folder where the command is given. */
static void default_folder(const chosen *c, char *out, size_t size)
{
    if (c->n == 1)
        snprintf(out, size, "%s/report", c->runs[0].path);
    else
        snprintf(out, size, "report");
}

static void announce_text(const chosen *c, const char *folder)
{
    for (int k = 0; k < c->n; k++)
        printf("run           %s (%s)\n", c->runs[k].path, ls_past_run_text(&c->runs[k], "state"));
    if (c->n > 0)
        printf("report        %s/report.html%s\n", folder,
               ls_report_interactive() ? "" : " (without interaction: esbuild was not there at build time)");
}

static void announce_json(const chosen *c, const char *folder)
{
    json_t *runs = json_array(), *page;

    for (int k = 0; k < c->n; k++)
        json_array_append_new(runs,
                              json_pack("{s:s, s:s, s:s, s:I}", "run", c->runs[k].path, "name",
                                        c->runs[k].name, "state", ls_past_run_text(&c->runs[k], "state"),
                                        "damaged_lines", (json_int_t)c->runs[k].history.damage.lines));
    page = c->n > 0 ? json_pack("s+", folder, "/report.html")
                    : json_incref(json_object_get(json_array_get(c->studies, 0), "report"));
    cli_print_json_take(json_pack("{s:s, s:o, s:b, s:o, s:O}", "event", "report", "report", page,
                                  "interactive", ls_report_interactive(), "runs", runs, "studies",
                                  c->studies));
}

/* `live`: it is written again and again, and loads itself. */
static ls_status make_page(const chosen *c, const char *folder, bool live, ls_err *err)
{
    ls_report *page = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_report_create(&page, c->n == 1 ? c->runs[0].name : "Runs", err));
    if (live) ls_report_reload(page, RELOAD_S);
    if (c->n == 1)
        ls_report_paragraph(page, "A run of Lockstep %s on host %s.",
                            ls_past_run_text(&c->runs[0], "version"), ls_past_run_text(&c->runs[0], "host"));
    else
        ls_report_paragraph(page, "%d runs beside each other; one colour is one run in all charts.", c->n);
    if (live)
        ls_report_paragraph(page, "This page loads itself every %d seconds until the runs have ended.",
                            RELOAD_S);
    LS_TRY(ls_run_pages(page, c->runs, c->n, err));
    LS_TRY(ls_report_write(page, folder, err));
out:
    ls_report_destroy(page);
    return st;
}

/* -- once, and while runs go on ---------------------------------------------------------------------------
 */

static void release(chosen *c)
{
    for (int k = 0; k < c->n; k++) ls_past_run_release(&c->runs[k]);
    ls_free(c->runs);
    json_decref(c->studies);
    *c = (chosen){0};
}

static ls_status choose(chosen *c, const char *const *words, int n, const cli_args *args, ls_err *err)
{
    ls_status st = LS_OK;

    *c = (chosen){.runs = ls_alloc(LS_MEM_CLI, LS_RUN_PAGES_MOST * sizeof *c->runs), .studies = json_array()};
    if (c->runs == NULL) return ls_fail(err, LS_NOMEM, "no memory for the runs");
    for (int i = 0; i < n; i++) LS_TRY(add_word(c, words[i], args, err));
out:
    return st;
}

static bool any_alive(const chosen *c)
{
    for (int k = 0; k < c->n; k++)
        if (c->runs[k].alive) return true;
    return false;
}

/* Changes when a run has news: its files' sizes and times, and how many runs there are. */
static double news_of(const chosen *c)
{
    static const char *const files[] = {"summary.json", "metrics.jsonl"};
    double sum = c->n;
    struct stat info;
    char path[4200];

    for (int k = 0; k < c->n; k++) {
        for (int i = 0; i < 2; i++) {
            snprintf(path, sizeof path, "%s/%s", c->runs[k].path, files[i]);
            if (stat(path, &info) != 0) continue;
            sum += (double)info.st_size + (double)info.st_mtim.tv_sec + (double)info.st_mtim.tv_nsec * 1e-9;
        }
        sum += c->runs[k].alive ? 0.5 : 0;
    }
    return sum;
}

/* LS_IO when the directory of a run is gone.  Nothing is written then: the page may lie in it. */
static ls_status check_there(const chosen *c, const char *folder, ls_err *err)
{
    for (int k = 0; k < c->n; k++)
        if (!has(c->runs[k].path, "."))
            return ls_fail(
                err, LS_IO,
                "%s was moved or removed: it is watched no longer, and %s/report.html is not written again",
                c->runs[k].path, folder);
    return LS_OK;
}

/* Waits a second; false when Ctrl-C or SIGTERM came meanwhile. */
static bool wait_a_second(int stop_fd)
{
    struct pollfd p = {.fd = stop_fd, .events = POLLIN};

    return poll(&p, 1, 1000) == 0;
}

/* Writes the page anew whenever a run has news, until all have ended or somebody asks for the end: then once
 * more, as a page that stays as it is. */
static ls_status watch(chosen *c, const char *const *words, int n, const char *folder, const cli_args *args,
                       ls_err *err)
{
    double seen = news_of(c);
    sigset_t asked;
    bool go_on = true;
    ls_status st = LS_OK;
    int stop_fd;

    sigemptyset(&asked);
    sigaddset(&asked, SIGINT);
    sigaddset(&asked, SIGTERM);
    sigprocmask(SIG_BLOCK, &asked, NULL);
    stop_fd = signalfd(-1, &asked, SFD_CLOEXEC | SFD_NONBLOCK);
    if (stop_fd < 0) return ls_fail(err, LS_IO, "signals cannot be waited for: %s", strerror(errno));
    if (!args->json) printf("watching      until the runs end, or Ctrl-C\n");
    ls_output_flush();
    while (go_on && any_alive(c)) {
        ls_err why = {0};
        chosen now;
        go_on = wait_a_second(stop_fd);
        /* What is just being written is whole a second later; what is not there any more never is. */
        if (choose(&now, words, n, args, &why) != LS_OK) {
            release(&now);
            LS_TRY(check_there(c, folder, err));
            continue;
        }
        release(c);
        *c = now;
        if (news_of(c) == seen) continue;
        seen = news_of(c);
        LS_TRY(make_page(c, folder, true, err));
    }
    LS_TRY(check_there(c, folder, err));
    LS_TRY(make_page(c, folder, false, err));
out:
    close(stop_fd);
    return st;
}

/* Before there is anything to write: pages of many runs take a while. */
static ls_status check_place(const char *folder, ls_err *err)
{
    char page[4300];
    ls_err why = {0};

    snprintf(page, sizeof page, "%s/report.html", folder);
    if (ls_folders_make(folder, &why) != LS_OK)
        return ls_fail(err, LS_INVALID, "the report cannot be written: %s with --out", why.text);
    if (ls_replace_check(page, &why) != LS_OK)
        return ls_fail(err, LS_INVALID,
                       "the report cannot be written: %s; name a folder where you may write with --out",
                       why.text);
    return LS_OK;
}

static int report(const char *const *words, int n, const cli_args *args)
{
    chosen c;
    char folder[4200], page[4300];
    ls_err err = {0};
    ls_status st = LS_OK;

    LS_TRY(choose(&c, words, n, args, &err));
    for (int k = 0; k < c.n; k++) ls_past_run_warn(&c.runs[k]);
    default_folder(&c, folder, sizeof folder);
    if (args->out != NULL) snprintf(folder, sizeof folder, "%s", args->out);
    if (c.n > 0) LS_TRY(check_place(folder, &err));
    if (c.n > 0) LS_TRY(make_page(&c, folder, args->watch && any_alive(&c), &err));
    if (!args->json) announce_text(&c, folder);
    snprintf(page, sizeof page, "%s/report.html", folder);
    if (c.n == 0)
        snprintf(page, sizeof page, "%s",
                 json_string_value(json_object_get(json_array_get(c.studies, 0), "report")));
    /* Before it is watched: who opens it wants to see it grow. */
    if (args->open) LS_TRY(browser_open(page, &err));
    if (args->watch && c.n > 0) LS_TRY(watch(&c, words, n, folder, args, &err));
    if (args->json) announce_json(&c, folder);
out:
    release(&c);
    return st == LS_OK ? CLI_DONE : cli_fail("report", &err);
}

int report_of_runs(const char *const *paths, int n, const cli_args *args)
{
    return report(paths, n, args);
}

int cli_report(const cli_args *args)
{
    const char **words = ls_alloc(LS_MEM_CLI, ((size_t)args->n_settings + 1) * sizeof *words);
    int n = 0, code;

    if (words == NULL) {
        ls_err err = {0};
        ls_fail(&err, LS_NOMEM, "no memory for the runs");
        return cli_fail("report", &err);
    }
    if (args->model != NULL) words[n++] = args->model;
    for (int i = 0; i < args->n_settings; i++) words[n++] = args->settings[i];
    code = report(words, n, args);
    ls_free(words);
    return code;
}
