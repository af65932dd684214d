/* config_test.c: experiments from texts, in a folder of their own. */
#include "config_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static char folder[256];

void config_test_begin(void)
{
    check_new_folder(folder, sizeof folder);
}

void config_test_end(void)
{
    char command[300];

    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_EQ_INT(system(command), 0);
}

const char *config_test_file(const char *name, const char *text)
{
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    FILE *f;

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    f = fopen(path, "w");
    REQUIRE(f != NULL);
    CHECK(fwrite(text, 1, strlen(text), f) == strlen(text));
    CHECK_EQ_INT(fclose(f), 0);
    return path;
}

ls_status config_test_load(ls_experiment *x, const char *text, const char *const *overrides, ls_err *err)
{
    int n = 0;

    while (overrides != NULL && overrides[n] != NULL) n++;
    return ls_experiment_load(x, config_test_file("x.yaml", text), overrides, n, err);
}

void config_test_refuses(const char *text, const char *override, const char *message)
{
    ls_experiment x;
    ls_err err = {0};
    char want[1024];
    const char *const overrides[] = {override, NULL};

    CHECK_STATUS(config_test_load(&x, text, overrides, &err), LS_INVALID, &err);
    if (override != NULL)
        snprintf(want, sizeof want, "%s", message);
    else
        snprintf(want, sizeof want, "%s/x.yaml:%s", folder, message);
    CHECK_EQ_STR(err.text, want);
    ls_experiment_release(&x);
}
