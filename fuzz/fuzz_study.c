/* fuzz_study.c: arbitrary bytes as study.json and as the result of a point. */
#include <stdint.h>
#include <stdlib.h>

#include "study/study.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is accepted is written again as the same study, and can be shown as a command. */
static void as_study(const char *text, size_t size)
{
    ls_study s, again;
    ls_text written = {0}, command = {0};
    ls_err err = {0};

    if (ls_study_parse(&s, text, size, &err) == LS_OK) {
        if (ls_study_text(&s, &written, &err) != LS_OK) abort();
        if (ls_study_parse(&again, written.data, written.length, &err) != LS_OK) abort();
        if (ls_study_differences(&s, &again, NULL) != 0 || again.n_counts != s.n_counts) abort();
        ls_study_command(&s, &command);
        ls_study_release(&again);
    } else if (err.text[0] == '\0') {
        abort(); /* a refusal says why */
    }
    ls_study_release(&s);
    ls_text_release(&written);
    ls_text_release(&command);
}

/* What is accepted has rates in order, and can be judged. */
static void as_point(const char *text, size_t size)
{
    const ls_study s = {.counts = {1, 2}, .n_counts = 2, .repeats = 1, .threads = 1, .cores = 1, .name = ""};
    ls_study_point of[2];
    bool there[2] = {true, true};
    const ls_study_points p = {.of = of, .there = there, .n_there = 2};
    ls_study_results r;
    ls_err err = {0};

    if (ls_study_point_parse(&of[0], text, size, &err) == LS_OK) {
        if (!(of[0].rate.p16 > 0 && of[0].rate.p16 <= of[0].rate.p84) || of[0].ranks < 1) abort();
        of[1] = of[0];
        ls_study_judge(&s, &p, &r);
        if (!r.complete || r.rows[0].repeats != 1) abort();
    } else if (err.text[0] == '\0') {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    as_study((const char *)data, size);
    as_point((const char *)data, size);
    return 0;
}
