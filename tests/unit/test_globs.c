/* Lists of patterns: what they match, and what is said of one that matches nothing. */
#include "base/globs.h"

#include <string.h>

#include "check.h"

static void words(void)
{
    const char *at = " conv?.*,, fc.* ,\tx";
    char glob[LS_GLOB_MAX];

    CHECK(ls_globs_next(&at, glob));
    CHECK_EQ_STR(glob, "conv?.*");
    CHECK(ls_globs_next(&at, glob));
    CHECK_EQ_STR(glob, "fc.*");
    CHECK(ls_globs_next(&at, glob));
    CHECK_EQ_STR(glob, "x");
    CHECK(!ls_globs_next(&at, glob));
}

static void matches(void)
{
    CHECK(ls_globs_match("conv1.*,*.bias", "conv1.weight"));
    CHECK(ls_globs_match("conv1.*,*.bias", "fc.bias"));
    CHECK(!ls_globs_match("conv1.*,*.bias", "fc.weight"));
    CHECK(!ls_globs_match("", "fc.weight"));
    CHECK(!ls_globs_match(" , ", "fc.weight"));
    CHECK(!ls_globs_match("fc", "fc.weight")); /* the whole name */
}

static void misses(void)
{
    const char *const names[] = {"conv1.weight", "conv1.bias", "fc.weight", "fc.bias"};
    ls_err err = {0};

    CHECK(ls_globs_check("conv1.*, fc.bias", names, 4, "here", &err) == LS_OK);
    CHECK(ls_globs_check("conv1.*,fc.bais", names, 4, "here", &err) == LS_INVALID);
    CHECK_EQ_STR(err.text, "here: nothing matches \"fc.bais\"; did you mean \"fc.bias\"?");
    err = (ls_err){0};
    CHECK(ls_globs_check("convolution.of.the.first.layer", names, 4, "here", &err) == LS_INVALID);
    CHECK(strstr(err.text, "there are \"conv1.weight\", \"conv1.bias\"") != NULL);
    err = (ls_err){0};
    CHECK(ls_globs_check("x", NULL, 0, "here", &err) == LS_INVALID);
    CHECK_EQ_STR(err.text, "here: nothing matches \"x\"");
}

int main(void)
{
    CHECK_RUN(words);
    CHECK_RUN(matches);
    CHECK_RUN(misses);
    return CHECK_DONE();
}
