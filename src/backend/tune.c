/* tune.c: a list of remembered choices, its file, and the stopwatch. */
#include "backend/tune.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/replace.h"
#include "base/text.h"
#include "base/whole.h"

#define FILE_MAX_BYTES (8u << 20) /* a larger file is not ours */

typedef struct choice {
    char *problem, *name;
} choice;

struct lsi_tuner {
    bool off;
    bool changed;
    char *path; /* NULL: nowhere to remember */
    choice *choices;
    size_t n, cap;
};

/* -- the list of choices ------------------------------------------------------------------------------------
 */

static const char *find(const lsi_tuner *t, const char *problem)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->choices[i].problem, problem) == 0) return t->choices[i].name;
    return NULL;
}

static char *copy_bytes(const char *text, size_t n)
{
    char *p = ls_alloc(LS_MEM_PLAN, n + 1);

    if (p != NULL) memcpy(p, text, n);
    return p;
}

/* Losing a choice for want of memory only means that it is measured again. */
static void add(lsi_tuner *t, const char *problem, size_t problem_n, const char *name, size_t name_n)
{
    choice c;

    if (!LS_GROW(LS_MEM_PLAN, t->choices, t->n + 1, t->cap)) return;
    c = (choice){copy_bytes(problem, problem_n), copy_bytes(name, name_n)};
    if (c.problem == NULL || c.name == NULL) {
        ls_free(c.problem);
        ls_free(c.name);
        return;
    }
    t->choices[t->n++] = c;
}

void lsi_tuner_parse(lsi_tuner *t, const char *text, size_t n)
{
    const char *end = text + n;

    while (text < end) {
        const char *eol = memchr(text, '\n', (size_t)(end - text));
        const char *stop = eol != NULL ? eol : end;
        const char *tab = memchr(text, '\t', (size_t)(stop - text));
        bool whole = eol != NULL; /* a torn last line is not trusted */
        if (whole && tab != NULL && tab > text && tab + 1 < stop &&
            memchr(text, '\0', (size_t)(stop - text)) == NULL)
            add(t, text, (size_t)(tab - text), tab + 1, (size_t)(stop - tab - 1));
        text = stop + 1;
    }
}

/* -- the file
 * ------------------------------------------------------------------------------------------------ */

static void load(lsi_tuner *t)
{
    ls_err why = {0};
    char *text = NULL;
    size_t n;

    if (access(t->path, F_OK) != 0) return;
    if (ls_whole_plain(&text, &n, t->path, FILE_MAX_BYTES, &why) == LS_OK)
        lsi_tuner_parse(t, text, n);
    else
        ls_log(LS_LOG_WARN, "kernel choices are measured again: %s", why.text);
    ls_free(text);
}

static void save(const lsi_tuner *t)
{
    ls_text text = {0};
    ls_err why = {0};

    for (size_t i = 0; i < t->n; i++)
        ls_text_add(&text, "%s\t%s\n", t->choices[i].problem, t->choices[i].name);
    if (!text.failed && ls_replace_file(t->path, text.data, text.length, &why) != LS_OK)
        ls_log(
            LS_LOG_WARN,
            "kernel choices are not remembered, so that another run may choose others and differ in the last "
            "digits: %s; LOCKSTEP_CACHE names a folder for them",
            why.text);
    ls_text_release(&text);
}

/* First line of the processor's name in /proc/cpuinfo, or "unknown". */
static void processor_name(char *buf, size_t n)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[512];

    snprintf(buf, n, "unknown");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
        snprintf(buf, n, "%s", colon + 2);
        break;
    }
    if (f != NULL) fclose(f);
}

static char *make_path(const char *device, const char *fingerprint)
{
    const char *own = getenv("LOCKSTEP_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[4000], cpu[256], id[1024], path[4100];

    if (own != NULL && own[0] != '\0')
        snprintf(folder, sizeof folder, "%s", own);
    else if (xdg != NULL && xdg[0] != '\0')
        snprintf(folder, sizeof folder, "%s/lockstep", xdg);
    else if (home != NULL && home[0] != '\0')
        snprintf(folder, sizeof folder, "%s/.cache/lockstep", home);
    else
        return NULL;
    for (char *p = folder + 1; *p != '\0'; p++) {
        if (*p != '/') continue;
        *p = '\0';
        (void)mkdir(folder, 0777);
        *p = '/';
    }
    (void)mkdir(folder, 0777);
    processor_name(cpu, sizeof cpu);
    snprintf(id, sizeof id, "%s|%s|%s", cpu, fingerprint, LS_VERSION);
    snprintf(path, sizeof path, "%s/%s-%016llx.txt", folder, device,
             (unsigned long long)XXH3_64bits(id, strlen(id)));
    return ls_strdup(LS_MEM_PLAN, path);
}

ls_status lsi_tuner_create(lsi_tuner **out, const char *device, const char *fingerprint, ls_err *err)
{
    const char *tune = getenv("LOCKSTEP_TUNE");
    lsi_tuner *t = ls_alloc(LS_MEM_PLAN, sizeof *t);

    *out = t;
    if (t == NULL) return ls_fail(err, LS_NOMEM, "no memory for choices of kernels");
    t->off = tune != NULL && strcmp(tune, "off") == 0;
    if (t->off) return LS_OK;
    t->path = make_path(device, fingerprint);
    if (t->path != NULL) load(t);
    return LS_OK;
}

void lsi_tuner_destroy(lsi_tuner *t)
{
    if (t == NULL) return;
    if (t->changed && t->path != NULL) save(t);
    for (size_t i = 0; i < t->n; i++) {
        ls_free(t->choices[i].problem);
        ls_free(t->choices[i].name);
    }
    ls_free(t->choices);
    ls_free(t->path);
    ls_free(t);
}

/* -- measuring
 * ------------------------------------------------------------------------------------------------- */

#define MAX_CANDIDATES 16
#define MIN_ROUNDS     6
#define MAX_ROUNDS     60
#define CLEAR_LEAD     1.05
#define ENOUGH_SECONDS 0.06 /* for one candidate; slow kernels need few rounds, fast ones get many */

#define LONG_SECONDS 2.0 /* beyond, no further round: what takes so long is told apart at once */

#define CANNOT 1e30

/* Nobody wants to know any more. */
static bool is_ended(const lsi_candidates *c)
{
    return c->dev != NULL && c->dev->stop != NULL && *c->dev->stop != 0;
}

/* Seconds of one run of candidate i; CANNOT when it cannot be run. */
static double time_once(const lsi_candidates *c, int i)
{
    double start = ls_clock_seconds();

    if (is_ended(c)) return CANNOT;
    if (c->dev != NULL && c->dev->progress != NULL) c->dev->progress(c->dev->progress_arg, -1, -1);
    return c->run(c->ctx, i) ? ls_clock_seconds() - start : CANNOT;
}

/* Candidates take turns, so that whatever else the machine does hits all of them alike, and the best time of
 * each counts: noise only ever adds.  One that is far behind is left out of later rounds.  -1: none could be
 * run. */
static int fastest(const lsi_candidates *c)
{
    double best[MAX_CANDIDATES], spent = 0;
    int n = c->n < MAX_CANDIDATES ? c->n : MAX_CANDIDATES, winner = 0;

    /* The first run of each touches memory for the first time, of which the first candidate gets the most. */
    for (int i = 0; i < n; i++) best[i] = time_once(c, i);
    for (int i = 0; i < n; i++)
        if (best[i] < CANNOT) best[i] = time_once(c, i);
    for (int i = 0; i < n; i++)
        if (best[i] < best[winner]) winner = i;
    if (best[winner] >= CANNOT) return -1;
    for (int round = 0; round < MAX_ROUNDS; round++) {
        double lead;
        for (int i = 0; i < n; i++)
            if (best[i] < best[winner]) winner = i;
        lead = best[winner];
        for (int i = 0; i < n; i++) {
            double t;
            if (best[i] > (round < 5 ? 3.0 : 1.4) * lead) continue;
            t = time_once(c, i);
            if (t < best[i]) best[i] = t;
            if (i == winner) spent += t;
        }
        if (spent > (round >= MIN_ROUNDS ? ENOUGH_SECONDS : LONG_SECONDS)) break;
    }
    for (int i = 0; i < n; i++)
        if (best[i] < best[winner]) winner = i;
    for (int i = 0; i < n; i++)
        ls_log(LS_LOG_DEBUG, "tune: %s: %s %.4g ms", c->problem, c->names[i], best[i] * 1e3);
    /* The list is ordered by best guess; a small lead, measured on warm caches, does not overrule it. */
    for (int i = 0; i < n; i++)
        if (best[i] <= CLEAR_LEAD * best[winner]) return i;
    return winner;
}

int lsi_tune(lsi_tuner *t, const lsi_candidates *c)
{
    const char *known;
    int winner;

    if (t->off || c->n < 2) return c->guess;
    known = find(t, c->problem);
    for (int i = 0; known != NULL && i < c->n; i++)
        if (strcmp(c->names[i], known) == 0) return i;
    if (c->dev != NULL && c->dev->untimed) {
        atomic_fetch_add(&((ls_device *)c->dev)->guessed, 1);
        return c->guess;
    }
    winner = fastest(c);
    if (is_ended(c)) return c->guess; /* of half a measurement nothing is remembered */
    if (winner < 0) return c->guess;  /* for want of memory, perhaps: nothing to be remembered */
    add(t, c->problem, strlen(c->problem), c->names[winner], strlen(c->names[winner]));
    t->changed = true;
    return winner;
}

bool lsi_tuned(const lsi_tuner *t, const char *problem)
{
    return !t->off && find(t, problem) != NULL;
}

/* -- tensors for trials
 * ---------------------------------------------------------------------------------------- */

#define RING_COPIES 3
#define RING_FLOATS (24 << 20) /* beyond, one copy is as cold as it gets */

int lsi_ring_copies(int64_t floats)
{
    for (int copies = RING_COPIES; copies > 1; copies--)
        if (floats * (copies - 1) < RING_FLOATS) return copies;
    return 1;
}

bool lsi_ring_make(lsi_ring *r, int64_t count, int copies)
{
    const int64_t all = count * copies;

    ls_free(r->base); /* of a try that had no memory for the rest */
    *r = (lsi_ring){ls_alloc(LS_MEM_TUNE, (size_t)all * sizeof(float)), count, copies};
    /* Anything but denormals; the pattern is irrelevant to the time. */
    for (int64_t i = 0; r->base != NULL && i < all; i++) r->base[i] = (float)(i % 13) * 0.125f - 0.75f;
    return r->base != NULL;
}

float *lsi_ring_at(const lsi_ring *r, int turn)
{
    return r->base + turn % r->copies * r->count;
}

void lsi_ring_free(lsi_ring *r)
{
    ls_free(r->base);
}
