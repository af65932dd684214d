/* Other programs: what they say comes back whole, and one that hangs is ended. */
#include <string.h>

#include "base/command.h"
#include "check.h"

static ls_status run(ls_command_result *r, const char *script, const char *input, double limit_s, ls_err *err)
{
    return ls_command_run(r, (const char *const[]){"sh", "-c", script, NULL}, input, limit_s, err);
}

static void both_outputs_and_the_code(void)
{
    ls_command_result r = {0};
    ls_err err = {0};

    CHECK_OK(run(&r, "cat; echo said >&2; exit 7", "one\ntwo\n", 60, &err), &err);
    CHECK_EQ_STR(r.out.data, "one\ntwo\n");
    CHECK_EQ_STR(r.said.data, "said\n");
    CHECK_EQ_INT(r.code, 7);
    ls_command_release(&r);
    CHECK_OK(run(&r, "kill -9 $$", NULL, 60, &err), &err);
    CHECK_EQ_INT(r.code, 128 + 9);
    CHECK(r.out.data == NULL);
    ls_command_release(&r);
}

/* More than a pipe holds, both ways; the child reads nothing until it has written. */
static void long_texts(void)
{
    static char input[300000];
    ls_command_result r = {0};
    ls_err err = {0};

    memset(input, 'x', sizeof input - 1);
    CHECK_OK(run(&r, "head -c 200000 /dev/zero | tr '\\0' y; cat >&2", input, 60, &err), &err);
    CHECK_EQ_INT(r.out.length, 200000);
    CHECK_EQ_INT(r.said.length, sizeof input - 1);
    ls_command_release(&r);
    CHECK_OK(run(&r, "head -c 6000000 /dev/zero | tr '\\0' y", NULL, 60, &err), &err);
    CHECK(r.out.length <= LS_COMMAND_OUTPUT_MAX && r.out.length + 4096 > LS_COMMAND_OUTPUT_MAX);
    ls_command_release(&r);
    CHECK_OK(run(&r, "exit 0", input, 60, &err), &err); /* it reads nothing at all */
    ls_command_release(&r);
}

static void no_program_and_no_answer(void)
{
    ls_command_result r = {0};
    ls_err err = {0};

    CHECK_STATUS(ls_command_run(&r, (const char *const[]){"no-such-program-anywhere", NULL}, NULL, 60, &err),
                 LS_UNSUPPORTED, &err);
    CHECK_CONTAINS(err.text, "no-such-program-anywhere");
    ls_command_release(&r);
    err = (ls_err){0};
    CHECK_STATUS(run(&r, "sleep 1000 & wait", NULL, 0.2, &err), LS_TIMEOUT, &err);
    CHECK_EQ_INT(r.code, 128 + 9);
    ls_command_release(&r);
}

int main(void)
{
    CHECK_RUN(both_outputs_and_the_code);
    CHECK_RUN(long_texts);
    CHECK_RUN(no_program_and_no_answer);
    return CHECK_DONE();
}
