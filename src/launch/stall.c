/* stall.c: judges whether ranks get on, and says who waits where for whom. */
#include "launch/stall.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

#define CPU_LOOK_S  0.3 /* between two readings of a process's time */
#define CPU_SHARE   0.1 /* of a core: less is not computing */
#define OWN_SLEEP_S 2.0 /* between two looks: the watcher was stopped itself */
#define DEFAULT_LAST                                                                                         \
    60 /* seconds that a step may compute without a sign after a request, without a limit                    \
        */

ls_status lsi_stall_open(lsi_stall *s, const ls_comm_heap *heap, int n, ls_err *err)
{
    *s = (lsi_stall){.heap = heap, .n = n, .looked_at = -(double)INFINITY};
    s->seen = ls_alloc(LS_MEM_CLI, sizeof *s->seen * (size_t)n);
    return s->seen != NULL ? LS_OK : ls_fail(err, LS_NOMEM, "no memory for %d ranks", n);
}

void lsi_stall_release(lsi_stall *s)
{
    ls_free(s->seen);
    *s = (lsi_stall){0};
}

/* -- one rank ---------------------------------------------------------------------------------------------
 */

/* State and time of a process, from /proc/PID/stat; the name in it may hold anything but ends with the last
 * parenthesis.  '?' where it cannot be read. */
static char read_process(pid_t pid, uint64_t *cpu)
{
    char path[64], text[1024], state = '?';
    const char *end;
    unsigned long long user = 0, kernel = 0;
    FILE *f;
    size_t n;

    *cpu = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (f == NULL) return '?';
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    end = strrchr(text, ')');
    if (end == NULL ||
        sscanf(end, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &state, &user, &kernel) != 3)
        return '?';
    *cpu = user + kernel;
    return state;
}

static bool is_stopped(char state)
{
    return state == 'T' || state == 't';
}

bool lsi_process_is_stopped(pid_t pid)
{
    uint64_t cpu;

    return is_stopped(read_process(pid, &cpu));
}

/* Whether the process has used its processor since an earlier reading; true where there is none since the
 * last beat.
 */
static bool computes(const lsi_stall *s, lsi_seen *p, uint64_t cpu, double now)
{
    const double passed = now - p->cpu_at, tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    const bool first = p->cpu_at <= s->beaten;

    if (!first && passed < CPU_LOOK_S) return p->computed;
    p->computed = first || (double)(cpu - p->cpu) * tick >= CPU_SHARE * passed;
    p->cpu = cpu;
    p->cpu_at = now;
    return p->computed;
}

/* What of ranks that are to stop soon counts as getting on, though it does not otherwise. */
typedef struct patience {
    bool computing; /* a step whose process runs */
    bool loading;   /* a wait for samples */
} patience;

/* Whether a rank that has not beaten since the last look gets on nevertheless. */
static bool gets_on(lsi_stall *s, int i, const ls_comm_look *look, double now, patience with)
{
    uint64_t cpu;
    char state;

    if (look->left) return false;
    state = read_process(look->pid, &cpu);
    if (is_stopped(state) || look->waiting) return false;
    switch (look->doing) {
    case LS_COMM_AT_LENGTH: return look->pid != 0;
    case LS_COMM_LOADING: return computes(s, &s->seen[i], cpu, now) || with.loading;
    case LS_COMM_STEPPING: break;
    }
    if (s->n == 1 && s->elsewhere == 0) return true; /* nobody waits for it, and its nodes do not beat */
    return with.computing && (state == 'R' || state == 'D' || computes(s, &s->seen[i], cpu, now));
}

/* -- all of them ------------------------------------------------------------------------------------------
 */

/* Whether somebody has done something since the last look; *held: a rank waits for others or for samples, or
 * may do so on another machine, which is not known here. */
static bool anybody_beats(lsi_stall *s, bool *held)
{
    bool any = false;

    *held = false;
    for (int i = 0; i < s->n; i++) {
        ls_comm_look look;
        ls_comm_heap_look(s->heap, i, &look);
        if (look.beats != s->seen[i].beats) any = true;
        s->seen[i].beats = look.beats;
        *held = *held || (!look.left && (s->elsewhere != 0 || look.waiting || look.doing == LS_COMM_LOADING));
    }
    return any;
}

/* Whether all ranks have done their work; *running: the process of one is there and not stopped. */
static bool all_have_left(const lsi_stall *s, bool *running)
{
    *running = false;
    for (int i = 0; i < s->n; i++) {
        ls_comm_look look;
        ls_comm_heap_look(s->heap, i, &look);
        if (!look.left) return false;
        *running = *running || !lsi_process_is_stopped(look.pid);
    }
    return true;
}

static bool anybody_gets_on(lsi_stall *s, double now, patience with)
{
    bool any = false, running;

    for (int i = 0; i < s->n; i++) {
        ls_comm_look look;
        ls_comm_heap_look(s->heap, i, &look);
        any = gets_on(s, i, &look, now, with) || any;
    }
    /* Nobody waits any more: what they still do is to give back what they had, and to end. */
    return any || (with.computing && all_have_left(s, &running) && running);
}

static void add(char *text, size_t bytes, const char *fmt, ...) LS_PRINTF(3, 4);
static void add(char *text, size_t bytes, const char *fmt, ...)
{
    const size_t used = strlen(text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text + used, bytes - used, fmt, ap);
    va_end(ap);
}

/* " in "bucket 3" of step 41" */
static void add_place(char *text, size_t bytes, const ls_comm_look *look)
{
    if (look->what[0] != '\0') add(text, bytes, " in \"%s\"", look->what);
    if (look->step >= 0)
        add(text, bytes, "%s step %lld", look->what[0] != '\0' ? " of" : " in", (long long)look->step);
}

/* Whether others have to wait for it: it does not wait itself, or is stopped while it does. */
static bool is_late(const ls_comm_look *look)
{
    return !look->left && (!look->waiting || lsi_process_is_stopped(look->pid));
}

int lsi_stall_late(const lsi_stall *s)
{
    for (int i = 0; i < s->n; i++) {
        ls_comm_look look;
        ls_comm_heap_look(s->heap, i, &look);
        if (is_late(&look)) return look.rank;
    }
    return -1;
}

/* Who waits where; at most a few. */
static int name_waiting(const lsi_stall *s, char *text, size_t bytes)
{
    enum { MOST = 3 };
    int n = 0;

    for (int i = 0; i < s->n; i++) {
        ls_comm_look look;
        ls_comm_heap_look(s->heap, i, &look);
        if (look.left || is_late(&look) || n++ >= MOST) continue;
        add(text, bytes, "%srank %d waits", n > 1 ? ", " : "", look.rank);
        add_place(text, bytes, &look);
    }
    if (n > MOST) add(text, bytes, " and %d more wait", n - MOST);
    return n;
}

/* And for whom, with what these did last. */
static int name_late(const lsi_stall *s, char *text, size_t bytes)
{
    enum { MOST = 2 };
    int n = 0;

    for (int i = 0; i < s->n; i++) {
        static const char *const doing[] = {"has not come", "is in compute", "is in data: no samples come"};
        ls_comm_look look;
        ls_comm_heap_look(s->heap, i, &look);
        if (!is_late(&look) || n++ >= MOST) continue;
        add(text, bytes, "%srank %d", text[0] != '\0' ? "; " : "", look.rank);
        if (look.pid == 0) {
            add(text, bytes, " has not come yet");
            continue;
        }
        add(text, bytes, " (pid %d) %s, last", (int)look.pid,
            lsi_process_is_stopped(look.pid) ? "is stopped" : doing[look.doing]);
        add_place(text, bytes, &look);
    }
    if (n > MOST) add(text, bytes, " and %d more", n - MOST);
    return n;
}

static void describe(const lsi_stall *s, char *text, size_t bytes)
{
    int waiting, late;

    text[0] = '\0';
    waiting = name_waiting(s, text, bytes);
    late = name_late(s, text, bytes);
    if (late > 0 || waiting == 0) return;
    add(text, bytes, s->elsewhere != 0 ? "; for ranks of other machines" : "; each for another");
}

/* After a request a step may compute for long without a sign, and samples may come slowly: neither for ever.
 */
static patience when_asked(const lsi_stall *s, double now, double report, double limit)
{
    const double silent = now - s->beaten;

    return (patience){.computing = silent < (limit > 0 ? limit : DEFAULT_LAST), .loading = silent < report};
}

/* Whether somebody has got on since the last look. */
static bool look_around(lsi_stall *s, double now, bool asked, double report, double limit)
{
    bool held;

    if (anybody_beats(s, &held)) {
        s->beaten = now;
        return true;
    }
    /* Processes are looked at only when something may follow from it. */
    if (asked) return anybody_gets_on(s, now, when_asked(s, now, report, limit));
    if (limit > 0 && now - s->since >= limit / 4 && now - s->since < limit / 2)
        (void)anybody_gets_on(s, now, (patience){0}); /* first readings, for later ones to be compared with */
    if (limit > 0 && now - s->since >= limit / 2) return !held || anybody_gets_on(s, now, (patience){0});
    return false;
}

/* Whether nobody has got on for too long: after a request (*overdue), and without one (*beyond). */
static void compare_times(const lsi_stall *s, double now, double asked_at, double limit, bool *overdue,
                          bool *beyond)
{
    const bool deaf = s->elsewhere == LSI_STALL_DEAF, tell = s->elsewhere != 0 && !deaf;
    const double since_asked = now - fmax(s->since, asked_at);

    *overdue = since_asked >= (tell ? LSI_STOP_GRACE_FAR_S : LSI_STOP_GRACE_S);
    *beyond = limit > 0 && now - s->since >= limit;
    if (!deaf || !(*overdue || *beyond) || lsi_stall_late(s) >= 0) return;
    /* All wait for ranks of other machines, which may be busy with what takes long. */
    *overdue = since_asked >= LSI_STOP_GRACE_DEAF_S;
    *beyond = false;
}

bool lsi_stall_look(lsi_stall *s, double now, double asked_at, uint64_t elsewhere, char *text, size_t bytes)
{
    const bool asked = now >= asked_at, slept = now - s->looked_at > OWN_SLEEP_S;
    bool here, moved, overdue, beyond, running;
    double report, limit;
    char who[400];

    ls_comm_heap_stall(s->heap, &report, &limit);
    here = look_around(s, now, asked, report, limit) || slept;
    moved = here || elsewhere != s->elsewhere;
    if (slept) s->beaten = now;
    s->looked_at = now;
    s->elsewhere = elsewhere;
    if (here)
        s->moves++; /* what was heard is not said again: two machines would answer each other for ever */
    if (moved) {
        s->since = now;
        return false;
    }
    compare_times(s, now, asked_at, limit, &overdue, &beyond);
    if (!overdue && !beyond) return false;
    describe(s, who, sizeof who);
    if (overdue && all_have_left(s, &running))
        snprintf(text, bytes,
                 "asked to stop, and all ranks have done their work, but a process does not end");
    else if (overdue)
        snprintf(text, bytes, "asked to stop, but nobody gets on: %s; ended without a checkpoint", who);
    else
        snprintf(text, bytes,
                 "no rank%s has got on for %.0f s (parallel.stall_s times parallel.stall_limit): %s",
                 elsewhere == LSI_STALL_DEAF ? " of this machine" : "", now - s->since, who);
    return true;
}
