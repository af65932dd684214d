/* Error text: the first cause wins, contexts are put in front, nothing overflows. */
#include <stdio.h>
#include <string.h>

#include "check.h"

static void first_failure_wins(void)
{
    ls_err err = {0};
    CHECK_EQ_INT(ls_fail(&err, LS_FORMAT, "expected %d, found %d", 3, 4), LS_FORMAT);
    CHECK_EQ_INT(ls_fail(&err, LS_IO, "later"), LS_IO);
    CHECK_EQ_INT(err.status, LS_FORMAT);
    CHECK_EQ_STR(err.text, "expected 3, found 4");
    CHECK_EQ_INT(ls_fail(NULL, LS_IO, "nobody listens"), LS_IO);
}

static void context_is_prefixed(void)
{
    ls_err err = {0};
    ls_fail(&err, LS_FORMAT, "expected int64");
    CHECK_EQ_INT(ls_fail_in(&err, LS_FORMAT, "dataset \"%s\"", "label"), LS_FORMAT);
    CHECK_EQ_INT(ls_fail_in(&err, LS_FORMAT, "train"), LS_FORMAT);
    CHECK_EQ_STR(err.text, "train: dataset \"label\": expected int64");
    CHECK_EQ_INT(ls_fail_in(&err, LS_OK, "unused"), LS_OK);
    CHECK_EQ_STR(err.text, "train: dataset \"label\": expected int64");
    CHECK_EQ_INT(ls_fail_in(NULL, LS_IO, "x"), LS_IO);
}

static void wordless_failure_gets_its_name(void)
{
    ls_err err = {0};
    CHECK_EQ_INT(ls_fail_in(&err, LS_TIMEOUT, "step %d", 7), LS_TIMEOUT);
    CHECK_EQ_INT(err.status, LS_TIMEOUT);
    CHECK_EQ_STR(err.text, "step 7: timeout");
}

static void long_texts_are_cut(void)
{
    char big[LS_ERR_TEXT_MAX * 2];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    ls_err err = {0};
    ls_fail(&err, LS_IO, "%s", big);
    CHECK_EQ_INT(strlen(err.text), LS_ERR_TEXT_MAX - 1);
    ls_fail_in(&err, LS_IO, "front");
    CHECK_EQ_INT(strlen(err.text), LS_ERR_TEXT_MAX - 1);
    CHECK(strncmp(err.text, "front: xxx", 10) == 0);
    ls_fail_in(&err, LS_IO, "%s", big);
    CHECK_EQ_INT(strlen(err.text), LS_ERR_TEXT_MAX - 1);
    CHECK_CONTAINS(err.text, "x: front: xxx");
}

static void every_status_has_a_name(void)
{
    for (int s = LS_DATA; s <= LS_OK; s++) {
        CHECK(strcmp(ls_status_name((ls_status)s), "unknown status") != 0);
        for (int t = LS_DATA; t < s; t++) {
            CHECK(strcmp(ls_status_name((ls_status)s), ls_status_name((ls_status)t)) != 0);
        }
    }
    CHECK_EQ_STR(ls_status_name((ls_status)-1000), "unknown status");
    CHECK_EQ_STR(ls_status_name(LS_NOMEM), "no memory");
}

int main(void)
{
    CHECK_RUN(first_failure_wins);
    CHECK_RUN(context_is_prefixed);
    CHECK_RUN(wordless_failure_gets_its_name);
    CHECK_RUN(long_texts_are_cut);
    CHECK_RUN(every_status_has_a_name);
    return CHECK_DONE();
}
