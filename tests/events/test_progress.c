/* test_progress.c: what is shown for a fixed clock, on a terminal, elsewhere, and with --quiet. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "check.h"
#include "events/progress.h"
#include "faults.h"

/* A progress that writes into a pipe, with a clock that stands still unless it is set. */
typedef struct screen {
    ls_progress *p;
    int in, out;
    double time;
    char text[8192];
} screen;

static double screen_clock(void *arg)
{
    return ((screen *)arg)->time;
}

static void screen_open(screen *s, ls_progress_options options)
{
    ls_err err = {0};
    int fds[2];
    *s = (screen){.time = 1000};
    REQUIRE(pipe2(fds, O_NONBLOCK) == 0);
    s->in = fds[0];
    s->out = options.fd = fds[1];
    options.clock = screen_clock;
    options.clock_arg = s;
    REQUIRE_OK(ls_progress_create(&s->p, &options, &err), &err);
}

/* What was written since the last call. */
static const char *seen(screen *s)
{
    ssize_t n = read(s->in, s->text, sizeof s->text - 1);
    s->text[n > 0 ? n : 0] = '\0';
    return s->text;
}

static void screen_close(screen *s)
{
    ls_progress_destroy(s->p);
    close(s->in);
    close(s->out);
}

static void show(screen *s, double time, int64_t step)
{
    const ls_metric values[] = {{"loss", 0.43211234}, {"acc", 0.912}};
    s->time = 1000 + time;
    ls_progress_update(s->p, &(ls_progress_state){.epoch = 1 + step / 501,
                                                  .n_epochs = 2,
                                                  .step = step,
                                                  .n_steps = 1000,
                                                  .values = values,
                                                  .n_values = 2,
                                                  .samples_per_s = 2612});
}

static const ls_progress_options plain_bar = {.mode = LS_PROGRESS_BAR, .columns = 100};

static void bar(void)
{
    screen s;
    screen_open(&s, plain_bar);
    show(&s, 0, 0);
    CHECK_EQ_STR(seen(&s), "\repoch 1/2  step 0/1000 ............................."
                           "    0%  loss 0.4321  acc 0.912  2,612 samples/s\033[K");
    show(&s, 10, 250);
    CHECK_EQ_STR(seen(&s), "\repoch 1/2  step 250/1000 ####............"
                           "   25%  loss 0.4321  acc 0.912  2,612 samples/s  0:30 left\033[K");
    show(&s, 40, 1000);
    CHECK_EQ_STR(seen(&s), "\repoch 2/2  step 1000/1000 ###############"
                           "  100%  loss 0.4321  acc 0.912  2,612 samples/s  0:00 left\033[K");
    ls_progress_finish(s.p);
    CHECK_EQ_STR(seen(&s), "\n");
    screen_close(&s);
}

/* Ten redraws a second, however often it is called; what was held back comes with the end. */
static void redraw_limit(void)
{
    screen s;
    int n = 0;
    screen_open(&s, plain_bar);
    for (int i = 0; i < 1000; i++) {
        show(&s, i * 0.001, i);
        n += seen(&s)[0] != '\0';
    }
    CHECK_EQ_INT(n, 10);
    ls_progress_finish(s.p);
    CHECK_CONTAINS(seen(&s), "step 999/1000");
    CHECK_EQ_INT(s.text[strlen(s.text) - 1], '\n');
    ls_progress_finish(s.p);
    CHECK_EQ_STR(seen(&s), "");
    screen_close(&s);
}

/* Columns that a line takes on the screen: without the start, the colours and the end. */
static int columns_of(const char *line)
{
    int n = 0;
    for (; *line; line++) {
        if (*line == '\033') {
            while (*line != 'm' && *line != 'K') line++;
        } else if (*line != '\r') {
            n += ((unsigned char)*line & 0xC0) != 0x80;
        }
    }
    return n;
}

static void any_width(void)
{
    for (int columns = 1; columns <= 200; columns++) {
        for (int utf8 = 0; utf8 <= 1; utf8++) {
            screen s;
            ls_progress_options options = plain_bar;
            options.columns = columns;
            options.utf8 = options.colour = utf8;
            screen_open(&s, options);
            for (int64_t step = 1; step <= 1000; step += 333) {
                show(&s, (double)step, step);
                if (!CHECK(columns_of(seen(&s)) <= columns - 1)) printf("%d: %s\n", columns, s.text);
            }
            ls_progress_finish(s.p);
            seen(&s);
            screen_close(&s);
        }
    }
}

static void narrow(void)
{
    screen s;
    ls_progress_options options = plain_bar;
    options.columns = 50;
    screen_open(&s, options);
    show(&s, 0, 250);
    CHECK_EQ_STR(seen(&s), "\repoch 1/2  step 250/1000   25%  loss 0.4321  acc \033[K");
    ls_progress_clear(s.p);
    seen(&s);
    screen_close(&s);
}

static void blocks_and_colours(void)
{
    screen s;
    ls_progress_options options = {.mode = LS_PROGRESS_BAR, .columns = 39, .utf8 = true, .colour = true};
    screen_open(&s, options);
    ls_progress_update(s.p, &(ls_progress_state){.phase = "test", .step = 29, .n_steps = 80});
    CHECK_EQ_STR(seen(&s), "\rtest  step 29/80 \033[32m█████▍\033[0;2m░░░░░░░░░\033[0m   36%\033[K");
    ls_progress_finish(s.p);
    seen(&s);
    screen_close(&s);
}

static void plain_lines(void)
{
    screen s;
    screen_open(&s, (ls_progress_options){.mode = LS_PROGRESS_LINES, .interval_s = 5, .utf8 = true});
    show(&s, 0, 0);
    CHECK_EQ_STR(seen(&s), "epoch 1/2, step 0/1000, 0%, loss 0.4321, acc 0.912, 2,612 samples/s\n");
    show(&s, 4.9, 49);
    CHECK_EQ_STR(seen(&s), "");
    show(&s, 5, 50);
    CHECK_EQ_STR(seen(&s),
                 "epoch 1/2, step 50/1000, 5%, loss 0.4321, acc 0.912, 2,612 samples/s, 1:35 left\n");
    show(&s, 6, 60);
    CHECK_EQ_STR(seen(&s), "");
    ls_progress_say(s.p, "checkpoint %d", 7);
    CHECK_EQ_STR(seen(&s), "checkpoint 7\n");
    ls_progress_finish(s.p);
    CHECK_EQ_STR(seen(&s),
                 "epoch 1/2, step 60/1000, 6%, loss 0.4321, acc 0.912, 2,612 samples/s, 1:34 left\n");
    screen_close(&s);
}

/* Without an end there is no bar, no percentage and no time left. */
static void no_end(void)
{
    screen s;
    screen_open(&s, plain_bar);
    ls_progress_update(s.p, &(ls_progress_state){.phase = "train", .step = 5});
    CHECK_EQ_STR(seen(&s), "\rtrain  step 5\033[K");
    s.time += 1;
    ls_progress_update(s.p, &(ls_progress_state){.phase = "train", .step = 6});
    CHECK_EQ_STR(seen(&s), "\rtrain  step 6\033[K");
    screen_close(&s);
}

/* The time left is measured from where this run started, and anew for another phase. */
static void time_left(void)
{
    screen s;
    screen_open(&s, (ls_progress_options){.mode = LS_PROGRESS_LINES, .interval_s = 0});
    ls_progress_update(s.p, &(ls_progress_state){.phase = "train", .step = 900000, .n_steps = 1000000});
    seen(&s);
    s.time += 1;
    ls_progress_update(s.p, &(ls_progress_state){.phase = "train", .step = 900001, .n_steps = 1000000});
    CHECK_EQ_STR(seen(&s), "train, step 900001/1000000, 90%, 1d 03:46 h left\n");
    s.time += 9;
    ls_progress_update(s.p, &(ls_progress_state){.phase = "train", .step = 900100, .n_steps = 1000000});
    CHECK_EQ_STR(seen(&s), "train, step 900100/1000000, 90%, 2:46:30 left\n");
    ls_progress_update(s.p, &(ls_progress_state){.phase = "test", .step = 0, .n_steps = 10});
    CHECK_EQ_STR(seen(&s), "test, step 0/10, 0%\n");
    s.time += 30;
    ls_progress_update(s.p, &(ls_progress_state){.phase = "test", .step = 2, .n_steps = 10});
    CHECK_EQ_STR(seen(&s), "test, step 2/10, 20%, 2:00 left\n");
    screen_close(&s);
}

static void say_above_the_bar(void)
{
    screen s;
    screen_open(&s, plain_bar);
    show(&s, 0, 250);
    seen(&s);
    ls_progress_say(s.p, "validation: acc %.2f", 0.5);
    CHECK_EQ_STR(seen(&s), "\r\033[Kvalidation: acc 0.50\n");
    show(&s, 0.001, 251); /* the bar is back at once */
    CHECK_CONTAINS(seen(&s), "step 251/1000");
    ls_progress_clear(s.p);
    CHECK_EQ_STR(seen(&s), "\r\033[K");
    ls_progress_finish(s.p);
    CHECK_EQ_STR(seen(&s), "");
    screen_close(&s);
}

/* A line from elsewhere: the bar goes, the line comes, the bar is back without waiting for an update. */
static void interrupted(void)
{
    screen s;
    screen_open(&s, plain_bar);
    ls_progress_interrupt(s.p, "before\n", 7);
    CHECK_EQ_STR(seen(&s), "before\n");
    show(&s, 0, 250);
    char bar[8300];
    snprintf(bar, sizeof bar, "\r\033[Klockstep: warning: w\n%s", seen(&s));
    ls_progress_interrupt(s.p, "lockstep: warning: w\n", 21);
    CHECK_EQ_STR(seen(&s), bar);
    show(&s, 0.05, 251); /* the limit on redraws still holds */
    CHECK_EQ_STR(seen(&s), "");
    ls_progress_finish(s.p);
    seen(&s);
    screen_close(&s);

    screen_open(&s, (ls_progress_options){.mode = LS_PROGRESS_NONE});
    ls_progress_interrupt(s.p, "quiet is no reason to hide a warning\n", 37);
    CHECK_EQ_STR(seen(&s), "quiet is no reason to hide a warning\n");
    screen_close(&s);
}

static void quiet(void)
{
    screen s;
    screen_open(&s, (ls_progress_options){.mode = LS_PROGRESS_NONE});
    show(&s, 0, 0);
    show(&s, 100, 1000);
    ls_progress_say(s.p, "text");
    ls_progress_finish(s.p);
    CHECK_EQ_STR(seen(&s), "");
    screen_close(&s);
    ls_progress_update(NULL, &(ls_progress_state){.step = 1});
    ls_progress_say(NULL, "text");
    ls_progress_destroy(NULL);
}

static void environment(const char *term, const char *no_color, const char *lc_all, const char *lang)
{
    const char *const names[] = {"TERM", "NO_COLOR", "LC_ALL", "LANG"};
    const char *const values[] = {term, no_color, lc_all, lang};
    unsetenv("LC_CTYPE");
    for (int i = 0; i < 4; i++) {
        if (values[i])
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
    }
}

static void detected_elsewhere(void)
{
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    environment("xterm", NULL, NULL, "C.UTF-8");
    ls_progress_options o = ls_progress_detect(fds[1], false);
    CHECK_EQ_INT(o.mode, LS_PROGRESS_LINES);
    CHECK(!o.colour);
    CHECK(o.interval_s > 0);
    CHECK_EQ_INT(ls_progress_detect(fds[1], true).mode, LS_PROGRESS_NONE);
    close(fds[0]);
    close(fds[1]);
}

static void detected_terminal(void)
{
    ls_err err = {0};
    ls_progress *p;
    char text[512];
    struct winsize size = {.ws_row = 24, .ws_col = 50};
    int leader = posix_openpt(O_RDWR | O_NOCTTY);
    if (leader < 0 || grantpt(leader) != 0 || unlockpt(leader) != 0) {
        printf("no pseudo-terminal can be had: not tried\n");
        return;
    }
    int fd = open(ptsname(leader), O_RDWR | O_NOCTTY);
    REQUIRE(fd >= 0 && ioctl(fd, TIOCSWINSZ, &size) == 0);

    environment("dumb", NULL, NULL, NULL);
    CHECK_EQ_INT(ls_progress_detect(fd, false).mode, LS_PROGRESS_LINES);
    environment("xterm", "1", "C", "en_US.UTF-8");
    ls_progress_options o = ls_progress_detect(fd, false);
    CHECK_EQ_INT(o.mode, LS_PROGRESS_BAR);
    CHECK(!o.colour);
    CHECK(!o.utf8); /* LC_ALL outranks LANG */
    REQUIRE_OK(ls_progress_create(&p, &o, &err), &err);
    ls_progress_update(p, &(ls_progress_state){.step = 1, .n_steps = 2});
    ssize_t n = read(leader, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    CHECK_EQ_STR(text, "\rstep 1/2 #################.................   50%\033[K");
    ls_progress_destroy(p);

    environment("xterm", NULL, NULL, "de_DE.utf8");
    o = ls_progress_detect(fd, false);
    CHECK(o.colour);
    CHECK(o.utf8);
    CHECK_EQ_INT(ls_progress_detect(fd, true).mode, LS_PROGRESS_NONE);
    close(fd);
    close(leader);
}

/* It is called between steps, which allocate nothing. */
static void no_allocation(void)
{
    screen s;
    screen_open(&s, plain_bar);
    show(&s, 0, 1);
    show(&s, 1000, 2); /* the longest line: days are left */
    uint64_t before = ls_mem_stats_now().n_allocs;
    for (int i = 3; i < 100; i++) {
        show(&s, 1000 + i, i);
        seen(&s);
    }
    CHECK_EQ_INT(ls_mem_stats_now().n_allocs, before);
    ls_progress_finish(s.p);
    screen_close(&s);
}

static ls_status create_and_destroy(void *arg, ls_err *err)
{
    ls_progress *p;
    (void)arg;
    ls_status st = ls_progress_create(&p, &plain_bar, err);
    ls_progress_destroy(p);
    return st;
}

static void out_of_memory(void)
{
    check_faults("create", create_and_destroy, NULL);
}

int main(void)
{
    CHECK_RUN(bar);
    CHECK_RUN(redraw_limit);
    CHECK_RUN(any_width);
    CHECK_RUN(narrow);
    CHECK_RUN(blocks_and_colours);
    CHECK_RUN(plain_lines);
    CHECK_RUN(no_end);
    CHECK_RUN(time_left);
    CHECK_RUN(say_above_the_bar);
    CHECK_RUN(interrupted);
    CHECK_RUN(quiet);
    CHECK_RUN(detected_elsewhere);
    CHECK_RUN(detected_terminal);
    CHECK_RUN(no_allocation);
    CHECK_RUN(out_of_memory);
    return CHECK_DONE();
}
