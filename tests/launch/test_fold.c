/* Lines of several ranks: the same ones once, with their ranks; nothing lost, nothing mixed, memory bounded.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "check.h"
#include "launch/launch_internal.h"

static ls_text shown;

static void show(void *ctx, const char *line, size_t length)
{
    (void)ctx;
    ls_text_add(&shown, "%.*s", (int)length, line);
}

static lsi_fold *open_fold(int n)
{
    lsi_fold *f;
    ls_err err = {0};

    REQUIRE_OK(lsi_fold_create(&f, n, 0, show, NULL, &err), &err);
    lsi_fold_end(f, 0, 0); /* rank 0 has the terminal itself */
    return f;
}

static void say(lsi_fold *f, int rank, const char *text, double now)
{
    lsi_fold_add(f, rank, text, strlen(text), now);
}

static void close_fold(lsi_fold *f, const char *want)
{
    lsi_fold_destroy(f);
    CHECK_EQ_STR(shown.data != NULL ? shown.data : "", want);
    ls_text_release(&shown);
}

static void same_lines_once(void)
{
    lsi_fold *f = open_fold(4);

    say(f, 1, "low on space\n", 0);
    say(f, 3, "low on space\n", 0);
    CHECK(shown.length == 0);
    say(f, 2, "low on space\n", 0);
    CHECK_EQ_STR(shown.data != NULL ? shown.data : "", "[ranks 1-3] low on space\n");
    close_fold(f, "[ranks 1-3] low on space\n");
}

static void others_are_not_waited_for_long(void)
{
    lsi_fold *f = open_fold(8);

    CHECK(isinf(lsi_fold_due(f)));
    say(f, 1, "a\n", 10);
    say(f, 4, "a\n", 10);
    say(f, 6, "b\n", 10);
    CHECK(lsi_fold_due(f) > 10 && lsi_fold_due(f) < 11);
    lsi_fold_flush(f, lsi_fold_due(f));
    say(f, 5, "a\n", 20);
    lsi_fold_flush_all(f);
    close_fold(f, "[ranks 1,4] a\n[rank 6] b\n[rank 5] a\n");
}

static void pieces_and_repeats(void)
{
    lsi_fold *f = open_fold(3);

    say(f, 1, "one ", 0);
    say(f, 2, "two\n", 0);
    say(f, 1, "line\n\n", 0);
    say(f, 1, "two\ntwo\n", 0); /* the second is said again, not folded away */
    say(f, 2, "no newline\x1b[2J\x7f\xc2\x9b \xc3\xbc\xff", 0);
    lsi_fold_end(f, 2, 0);
    lsi_fold_end(f, 1, 0);
    close_fold(f, "[ranks 1,2] two\n[rank 1] one line\n[rank 1] two\n[rank 2] no "
                  "newline\\x1b[2J\\x7f\\xc2\\x9b \xc3\xbc\\xff\n");
}

static void a_flood_is_bounded(void)
{
    lsi_fold *f = open_fold(2);
    char block[1000];
    int lines = 0;

    memset(block, 'x', sizeof block);
    for (int i = 0; i < 100; i++) lsi_fold_add(f, 1, block, sizeof block, 0); /* a line without end */
    lsi_fold_flush_all(f);
    CHECK(shown.length > 90000);
    ls_text_release(&shown);
    for (int i = 0; i < 1000; i++) {
        snprintf(block, sizeof block, "line %d\n", i);
        say(f, 1, block, 0);
    }
    lsi_fold_flush_all(f);
    for (const char *c = shown.data; *c != '\0'; c++) lines += *c == '\n';
    CHECK_EQ_INT(lines, 1000); /* the first continues the long one */
    CHECK_CONTAINS(shown.data, "[rank 1] line 999\n");
    lsi_fold_destroy(f);
    ls_text_release(&shown);
}

static void names_of_ranks(void)
{
    const bool set[10] = {false, true, true, true, false, true, false, false, true, true};
    const bool one[10] = {[7] = true};
    char buf[64];

    lsi_fold_ranks_text(set, 10, 0, buf, sizeof buf);
    CHECK_EQ_STR(buf, "ranks 1-3,5,8,9");
    lsi_fold_ranks_text(one, 10, 100, buf, sizeof buf);
    CHECK_EQ_STR(buf, "rank 107");
}

int main(void)
{
    CHECK_RUN(same_lines_once);
    CHECK_RUN(others_are_not_waited_for_long);
    CHECK_RUN(pieces_and_repeats);
    CHECK_RUN(a_flood_is_bounded);
    CHECK_RUN(names_of_ranks);
    return CHECK_DONE();
}
