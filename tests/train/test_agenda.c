/* test_agenda.c: what is due after an update, by a clock and counters that the test invents; and that a
 * decision survives its journey between ranks. */
#include <stdio.h>

#include "check.h"
#include "train/agenda.h"

static const ls_ruler ruler = {1000, 10};

static ls_moment at(int64_t samples, double minutes)
{
    return (ls_moment){ls_ruler_steps(&ruler, samples), samples, minutes};
}

static bool has(unsigned due, ls_due what)
{
    return (due >> what & 1) != 0;
}

/* Goes on by one update and obeys; returns what was due. */
static unsigned next(ls_agenda *a, int64_t samples, double minutes)
{
    const unsigned due = ls_agenda_decide(a, at(samples, minutes));

    ls_agenda_note(a, at(samples, minutes), due);
    return due;
}

/* Every thing there is, each in minutes, fires when its time has passed since the last, and not before. */
static void minutes_for_everything(void)
{
    for (int what = 0; what < LS_DUE_PERIODS; what++) {
        ls_agenda a = {.ruler = ruler, .end = 1e9};
        int fired = 0, wrong = 0;
        double last = 3;
        a.every[what] = (ls_period){0.5, LS_PERIOD_MINUTES};
        if (what == LS_DUE_OUTPUT) a.every[LS_DUE_VALIDATE] = (ls_period){1, LS_PERIOD_STEPS};
        ls_agenda_begin(&a, at(0, last), NULL);
        for (int k = 1; k <= 100; k++) {
            const double now = 3 + k * 0.125; /* an eighth of a minute for every step: exact */
            const bool due = has(next(&a, k * 10, now), (ls_due)what);
            wrong += due != (now - last >= 0.5);
            if (!due) continue;
            last = now;
            fired++;
        }
        CHECK_EQ_INT(wrong, 0);
        if (!CHECK(fired == 25)) printf("  %s: %d times\n", ls_due_name((ls_due)what), fired);
    }
}

/* A slow step or a long pause of the clock makes a thing due once, not once for every period that has passed.
 */
static void a_late_clock_catches_up_once(void)
{
    ls_agenda a = {.ruler = ruler, .end = 1e9, .every = {[LS_DUE_CHECKPOINT] = {1, LS_PERIOD_MINUTES}}};

    ls_agenda_begin(&a, at(0, 0), NULL);
    CHECK(!has(next(&a, 10, 0.9), LS_DUE_CHECKPOINT));
    CHECK(has(next(&a, 20, 7.3), LS_DUE_CHECKPOINT));
    CHECK(!has(next(&a, 30, 7.4), LS_DUE_CHECKPOINT));
    CHECK(!has(next(&a, 40, 8.2), LS_DUE_CHECKPOINT));
    CHECK(has(next(&a, 50, 8.3), LS_DUE_CHECKPOINT));
}

/* Ten minutes of which four had passed when the process before ended: six are left. */
static void a_resumed_run_counts_on(void)
{
    const double last[LS_DUE_PERIODS] = {
        [LS_DUE_VALIDATE] = 20, [LS_DUE_SAMPLE] = -1, [LS_DUE_CHECKPOINT] = 1e9};
    const ls_period ten = {10, LS_PERIOD_MINUTES};
    ls_agenda a = {.ruler = ruler, .end = 1e9};

    a.every[LS_DUE_VALIDATE] = a.every[LS_DUE_SAMPLE] = a.every[LS_DUE_CHECKPOINT] = ten;
    ls_agenda_begin(&a, at(500, 24), last);
    CHECK_EQ_INT(next(&a, 510, 29.5), 0);
    CHECK_EQ_INT(next(&a, 520, 30), 1 << LS_DUE_VALIDATE);
    CHECK_EQ_INT(next(&a, 530, 33.5), 0);
    CHECK_EQ_INT(next(&a, 540, 34), 1 << LS_DUE_SAMPLE | 1 << LS_DUE_CHECKPOINT); /* since it began */
}

/* Deciding alone changes nothing: what was not obeyed is due again. */
static void only_what_was_obeyed_counts(void)
{
    ls_agenda a = {.ruler = ruler, .end = 1e9, .every = {[LS_DUE_VALIDATE] = {3, LS_PERIOD_STEPS}}};

    ls_agenda_begin(&a, at(0, 0), NULL);
    CHECK_EQ_INT(next(&a, 20, 0), 0);
    CHECK_EQ_INT(ls_agenda_decide(&a, at(30, 0)), 1 << LS_DUE_VALIDATE);
    CHECK_EQ_INT(next(&a, 30, 0), 1 << LS_DUE_VALIDATE);
    CHECK_EQ_INT(next(&a, 40, 0), 0);
}

static void outputs_come_with_a_validation(void)
{
    ls_agenda a = {
        .ruler = ruler,
        .end = 1e9,
        .every = {[LS_DUE_VALIDATE] = {4, LS_PERIOD_STEPS}, [LS_DUE_OUTPUT] = {10, LS_PERIOD_STEPS}}};
    int64_t when[4] = {0};
    int n = 0;

    ls_agenda_begin(&a, at(0, 0), NULL);
    for (int64_t step = 1; step <= 40; step++)
        if (has(next(&a, step * 10, 0), LS_DUE_OUTPUT) && n < 4) when[n++] = step;
    CHECK_EQ_INT(n, 4);
    CHECK_EQ_INT(when[0], 12);
    CHECK_EQ_INT(when[1], 20);
    CHECK_EQ_INT(when[2], 32);
    CHECK_EQ_INT(when[3], 40);
}

static void pause_and_end(void)
{
    ls_agenda a = {.ruler = ruler, .end = 102, .pause = {2, LS_PERIOD_MINUTES}};

    ls_agenda_begin(&a, at(980, 60), NULL);
    CHECK_EQ_INT(next(&a, 990, 61.9), 0);
    CHECK_EQ_INT(next(&a, 1000, 62), 1 << LS_DUE_PAUSE);
    CHECK_EQ_INT(next(&a, 1010, 61), 0);
    CHECK_EQ_INT(next(&a, 1020, 61), 1 << LS_DUE_END);
}

/* With twice the samples in an update, the same things happen after the same samples. */
static void another_batch_keeps_the_rhythm(void)
{
    const ls_period every[] = {{6, LS_PERIOD_STEPS}, {0.5, LS_PERIOD_EPOCHS}, {120, LS_PERIOD_SAMPLES}};

    for (int i = 0; i < 3; i++)
        for (int64_t update = 10; update <= 40; update += 10) {
            ls_agenda a = {.ruler = ruler, .end = 300, .every = {[LS_DUE_CHECKPOINT] = every[i]}};
            int fired = 0;
            int64_t seen = 0;
            ls_agenda_begin(&a, at(0, 0), NULL);
            for (bool end = false; !end && seen < 10000;) {
                unsigned due;
                seen += 1000 - seen % 1000 < update ? 1000 - seen % 1000 : update;
                due = next(&a, seen, 0);
                fired += has(due, LS_DUE_CHECKPOINT);
                end = has(due, LS_DUE_END);
            }
            CHECK_EQ_INT(seen, 3000);
            CHECK_EQ_INT(fired, i == 0 ? 50 : i == 1 ? 6 : 25);
        }
}

/* Rank 0's decision and the others' nothing, added up; a wish to stop from any of them. */
static void a_decision_travels(void)
{
    for (unsigned due = 0; due < 1u << LS_DUE_N; due++)
        for (int asked = -1; asked < 3; asked++) {
            ls_control sum = {0};
            for (int rank = 0; rank < 3; rank++) {
                const ls_control one = ls_control_make(rank == 0 ? due : 0, rank == asked);
                for (int i = 0; i < LS_CONTROL_SLOTS; i++) sum.slot[i] += one.slot[i];
            }
            if (!CHECK(ls_control_due(&sum) == due && ls_control_stop(&sum) == (asked >= 0))) return;
        }
}

int main(void)
{
    CHECK_RUN(minutes_for_everything);
    CHECK_RUN(a_late_clock_catches_up_once);
    CHECK_RUN(a_resumed_run_counts_on);
    CHECK_RUN(only_what_was_obeyed_counts);
    CHECK_RUN(outputs_come_with_a_validation);
    CHECK_RUN(pause_and_end);
    CHECK_RUN(another_batch_keeps_the_rhythm);
    CHECK_RUN(a_decision_travels);
    return CHECK_DONE();
}
