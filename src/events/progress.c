/* progress.c: when to draw, and the line that is drawn. */
#include "events/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/units.h"
#include "events/table.h"

#define REDRAW_S        0.1
#define LINES_S         5.0
#define COLUMNS_DEFAULT 80
#define BAR_MIN         10
#define BAR_MAX         40
#define PHASE_MAX       32

struct ls_progress {
    ls_progress_options opt;
    pthread_mutex_t lock; /* of all that follows */
    ls_text front, back;  /* the line before and after the bar, or the whole plain line */
    ls_text shown;        /* what is about to be written */
    char phase[PHASE_MAX];
    int64_t n_steps, first_step; /* where the time left is measured from, at first_s */
    double first_s, drawn_s;
    bool started;  /* first_* are set */
    bool drawn;    /* something was shown, at drawn_s */
    bool standing; /* a bar is on the screen, the cursor behind it */
    bool pending;  /* front and back hold a state that was not shown */
    double fraction;
};

/* --- what suits --- */

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] != '\0';
}

static bool locale_is_utf8(void)
{
    /* The first that is set decides; the program itself may well run in the C locale. */
    const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        if (!is_set(names[i])) continue;
        const char *value = getenv(names[i]);
        return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

ls_progress_options ls_progress_detect(int fd, bool quiet)
{
    const char *term = getenv("TERM");
    bool screen = isatty(fd) && term && term[0] != '\0' && strcmp(term, "dumb") != 0;
    return (ls_progress_options){
        .mode = quiet    ? LS_PROGRESS_NONE
                : screen ? LS_PROGRESS_BAR
                         : LS_PROGRESS_LINES,
        .fd = fd,
        .utf8 = locale_is_utf8(),
        .colour = screen && !is_set("NO_COLOR"),
        .interval_s = LINES_S,
    };
}

static double now(const ls_progress *p)
{
    return p->opt.clock ? p->opt.clock(p->opt.clock_arg) : ls_clock_seconds();
}

static int columns(const ls_progress *p)
{
    struct winsize size;
    if (p->opt.columns > 0) return p->opt.columns;
    if (ioctl(p->opt.fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return COLUMNS_DEFAULT;
}

/* --- text --- */

/* Seconds until the last step at the speed so far, or a negative number when that is not known. */
static double time_left(ls_progress *p, const ls_progress_state *s, double time)
{
    const char *phase = s->phase ? s->phase : "";
    if (!p->started || s->n_steps != p->n_steps || s->step < p->first_step ||
        strncmp(phase, p->phase, PHASE_MAX - 1) != 0) {
        p->started = true;
        p->n_steps = s->n_steps;
        p->first_step = s->step;
        p->first_s = time;
        snprintf(p->phase, sizeof p->phase, "%s", phase);
    }
    int64_t done = s->step - p->first_step;
    if (done <= 0 || s->n_steps < s->step) return -1;
    double left = (time - p->first_s) / (double)done * (double)(s->n_steps - s->step);
    return left < 1e9 ? left : -1;
}

/* Fills `front` and `back` with `state`, their fields separated by `gap`. */
static void compose(ls_progress *p, const ls_progress_state *s, const char *gap, double time)
{
    char number[32];
    ls_text *f = &p->front, *b = &p->back;
    double left = time_left(p, s, time);

    f->length = b->length = 0;
    f->failed = b->failed = false;
    ls_text_add(f, "%s", s->phase ? s->phase : "");
    ls_text_add(b, "%s", ""); /* an empty text, not the last one */
    if (s->n_epochs > 0) {
        ls_text_add(f, "%sepoch %" PRId64 "/%" PRId64, f->length ? gap : "", s->epoch, s->n_epochs);
    }
    ls_text_add(f, "%sstep %" PRId64, f->length ? gap : "", s->step);
    if (s->n_steps > 0) ls_text_add(f, "/%" PRId64, s->n_steps);
    p->fraction = s->n_steps > 0 ? fmin(1, fmax(0, (double)s->step / (double)s->n_steps)) : -1;

    /* Rounded down: 100 % means that all is done. */
    if (p->fraction >= 0)
        ls_text_add(b, "%s%*d%%", gap, p->opt.mode == LS_PROGRESS_BAR ? 3 : 0, (int)(p->fraction * 100));
    for (int64_t i = 0; i < s->n_values; i++) {
        ls_text_add(b, "%s%s %.4g", gap, s->values[i].name, s->values[i].value);
    }
    if (s->samples_per_s > 0) ls_text_add(b, "%s%s samples/s", gap, ls_units_rate(s->samples_per_s, number));
    if (left >= 0) ls_text_add(b, "%s%s left", gap, ls_units_clock(left, number));
    p->pending = !f->failed && !b->failed;
}

/* --- drawing --- */

static void write_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, data, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return; /* nobody is there to see it */
        data += done;
        n -= (size_t)done;
    }
}

static void flush(ls_progress *p)
{
    if (!p->shown.failed && p->shown.data) write_all(p->opt.fd, p->shown.data, p->shown.length);
    p->shown.length = 0;
    p->shown.failed = false;
}

static void add_bar(ls_progress *p, int cells)
{
    static const char *const eighth[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    ls_text *t = &p->shown;
    int filled = (int)(p->fraction * cells * 8);
    if (p->opt.colour) ls_text_add(t, "\033[32m");
    for (int i = 0; i < filled / 8; i++) ls_text_add(t, "%s", p->opt.utf8 ? "█" : "#");
    int used = filled / 8;
    if (p->opt.utf8 && filled % 8 > 0) {
        ls_text_add(t, "%s", eighth[filled % 8]);
        used++;
    }
    if (p->opt.colour) ls_text_add(t, "\033[0;2m");
    for (int i = used; i < cells; i++) ls_text_add(t, "%s", p->opt.utf8 ? "░" : ".");
    if (p->opt.colour) ls_text_add(t, "\033[0m");
}

/* Appends as much of `text` as fits into `room` columns. */
static void add_cut(ls_text *t, const char *text, int room)
{
    size_t n = 0;
    for (int used = 0; text && text[n]; n++) {
        if (((unsigned char)text[n] & 0xC0) != 0x80 && ++used > room) break;
    }
    if (n > 0) ls_text_add(t, "%.*s", (int)n, text);
}

/* The line gets narrower by a shorter bar, then by none, then loses its end.  The last column stays free:
 * some terminals go to the next line when it is written. */
static void draw_bar(ls_progress *p)
{
    int room = columns(p) - 1, front = lsi_width(p->front.data), back = lsi_width(p->back.data);
    int cells = room - front - back - 1;
    if (cells > BAR_MAX) cells = BAR_MAX;

    ls_text_add(&p->shown, "\r");
    add_cut(&p->shown, p->front.data, room);
    if (p->fraction >= 0 && cells >= BAR_MIN) {
        ls_text_add(&p->shown, " ");
        add_bar(p, cells);
    }
    add_cut(&p->shown, p->back.data, room - front);
    ls_text_add(&p->shown, "\033[K");
    p->standing = true;
}

static void draw(ls_progress *p, double time)
{
    if (p->opt.mode == LS_PROGRESS_BAR) {
        draw_bar(p);
    } else {
        ls_text_add(&p->shown, "%s%s\n", p->front.data, p->back.data);
    }
    flush(p);
    p->drawn = true;
    p->drawn_s = time;
    p->pending = false;
}

/* Takes the bar away; the caller holds the lock. */
static void clear(ls_progress *p)
{
    if (!p->standing) return;
    ls_text_add(&p->shown, "\r\033[K");
    p->standing = false;
    p->drawn = false;
}

/* --- interface --- */

ls_status ls_progress_create(ls_progress **out, const ls_progress_options *options, ls_err *err)
{
    *out = ls_alloc(LS_MEM_CLI, sizeof **out);
    if (!*out) return ls_fail(err, LS_NOMEM, "progress: out of memory");
    (*out)->opt = *options;
    pthread_mutex_init(&(*out)->lock, NULL);
    return LS_OK;
}

void ls_progress_update(ls_progress *p, const ls_progress_state *state)
{
    if (!p || p->opt.mode == LS_PROGRESS_NONE) return;
    bool bar = p->opt.mode == LS_PROGRESS_BAR;
    double time = now(p);
    pthread_mutex_lock(&p->lock);
    compose(p, state, bar ? "  " : ", ", time);
    if (p->pending && (!p->drawn || time - p->drawn_s >= (bar ? REDRAW_S : p->opt.interval_s))) draw(p, time);
    pthread_mutex_unlock(&p->lock);
}

void ls_progress_clear(ls_progress *p)
{
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    clear(p);
    flush(p);
    pthread_mutex_unlock(&p->lock);
}

void ls_progress_say(ls_progress *p, const char *fmt, ...)
{
    if (!p || p->opt.mode == LS_PROGRESS_NONE) return;
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    pthread_mutex_lock(&p->lock);
    clear(p);
    ls_text_add(&p->shown, "%s\n", line);
    flush(p);
    pthread_mutex_unlock(&p->lock);
}

void ls_progress_interrupt(ls_progress *p, const char *text, size_t n)
{
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    bool standing = p->standing;
    double drawn_s = p->drawn_s;
    clear(p);
    flush(p);
    write_all(p->opt.fd, text, n);
    if (standing) draw(p, drawn_s);
    pthread_mutex_unlock(&p->lock);
}

void ls_progress_finish(ls_progress *p)
{
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    if (p->pending) draw(p, now(p));
    if (p->standing) {
        ls_text_add(&p->shown, "\n");
        flush(p);
    }
    p->standing = p->drawn = p->started = false;
    pthread_mutex_unlock(&p->lock);
}

void ls_progress_destroy(ls_progress *p)
{
    if (!p) return;
    ls_progress_finish(p);
    pthread_mutex_destroy(&p->lock);
    ls_text_release(&p->front);
    ls_text_release(&p->back);
    ls_text_release(&p->shown);
    ls_free(p);
}
