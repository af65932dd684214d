/* fuzz_submit.c: arbitrary bytes as what Slurm's commands print, and as times and names of a request. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "submit/submit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_have_words(ls_status st, const ls_err *err)
{
    if (st != LS_OK && (err->status != st || err->text[0] == '\0')) __builtin_trap();
}

static void cluster(const char *text)
{
    static ls_submit_cluster c;
    ls_submit_request q = {.nodes = 3, .ranks_per_node = 2};
    ls_err err = {0}, why = {0};
    const ls_status st = ls_submit_parse_cluster(&c, text, &err);

    must_have_words(st, &err);
    if (st != LS_OK) return;
    if (c.n < 1 || c.n > LS_SUBMIT_PARTITIONS_MAX) __builtin_trap();
    if (ls_submit_fit(&q, &c, &why) == LS_OK && q.threads < 1) __builtin_trap();
    must_have_words(why.status, &why);
}

static void job(const char *text)
{
    ls_submit_job j;
    ls_err err = {0}, why = {0};
    ls_status st = ls_submit_parse_job(&j, text, &err);

    must_have_words(st, &err);
    if (st == LS_OK && (ls_submit_exit_code(&j) < 0 || ls_submit_exit_code(&j) > 128)) __builtin_trap();
    must_have_words(ls_submit_parse_account(&j, text, &why), &why);
}

/* What passes as a name cannot end its line of a script, or begin a second word. */
static void request(const char *text)
{
    ls_submit_request q = {.nodes = 1, .ranks_per_node = 1, .name = text};
    int64_t seconds = 0;
    char back[32];

    if (ls_submit_check(&q, NULL) == LS_OK && strpbrk(text, " \t\n'\"\\$`;#&|<>()") != NULL) __builtin_trap();
    if (ls_submit_time(text, &seconds, NULL) == LS_OK &&
        (ls_submit_time(ls_submit_time_text(seconds, back), &seconds, NULL) != LS_OK || seconds <= 0))
        __builtin_trap();
    (void)!ls_submit_check_id(text, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (text == NULL) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    cluster(text);
    job(text);
    request(text);
    free(text);
    return 0;
}
