/* test_table.c: columns are aligned, also with letters of more than one byte. */
#include "base/text.h"
#include "check.h"
#include "events/table.h"
#include "faults.h"

static ls_status print_table(void *arg, ls_err *err)
{
    ls_text *out = arg;
    ls_table *t = NULL;
    ls_status st = LS_OK;
    ls_text_release(out);
    LS_TRY(ls_table_create(&t, "lrl", err));
    ls_table_row(t, (const char *const[]){"layer", "parameters", "shape"});
    ls_table_rule(t);
    ls_table_row(t, (const char *const[]){"conv1", "320", "(N, 32, 26, 26)"});
    ls_table_row(t, (const char *const[]){"caf\xC3\xA9", "18,496", NULL});
    ls_table_row(t, (const char *const[]){"flatten", NULL, "(N, 9216)"});
    ls_table_rule(t);
    ls_table_row(t, (const char *const[]){NULL, "1,199,882", NULL});
    ls_table_row(t, (const char *const[]){NULL, NULL, NULL});
    LS_TRY(ls_table_print(t, out, err));
out:
    if (st != LS_OK) ls_text_release(out);
    ls_table_destroy(t);
    return st;
}

static void aligned(void)
{
    ls_err err = {0};
    ls_text out = {0};
    REQUIRE_OK(print_table(&out, &err), &err);
    CHECK_EQ_STR(out.data, "layer    parameters  shape\n"
                           "-------  ----------  ---------------\n"
                           "conv1           320  (N, 32, 26, 26)\n"
                           "caf\xC3\xA9         18,496\n"
                           "flatten              (N, 9216)\n"
                           "-------  ----------  ---------------\n"
                           "          1,199,882\n"
                           "\n");
    ls_text_release(&out);
}

static void empty(void)
{
    ls_err err = {0};
    ls_text out = {0};
    ls_table *t;
    REQUIRE_OK(ls_table_create(&t, "ll", &err), &err);
    CHECK_OK(ls_table_print(t, &out, &err), &err);
    CHECK_EQ_INT(out.length, 0);
    ls_table_destroy(t);
    ls_text_release(&out);
}

static ls_status print_and_release(void *arg, ls_err *err)
{
    ls_status st = print_table(arg, err);
    ls_text_release(arg);
    return st;
}

static void out_of_memory(void)
{
    ls_text out = {0};
    check_faults("table", print_and_release, &out);
}

int main(void)
{
    CHECK_RUN(aligned);
    CHECK_RUN(empty);
    CHECK_RUN(out_of_memory);
    return CHECK_DONE();
}
