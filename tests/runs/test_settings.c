/* test_settings.c: config.yaml of runs as keys and values, and in which of them runs differ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "faults.h"
#include "runs/settings.h"

static const char plain[] = "name: \"mnist\"\n"
                            "ranks: 2\n"
                            "data:\n"
                            "  path: \"a \\\"b\\\" \\\\ $${env:X}: c\"\n"
                            "  split: 0.1\n"
                            "optimizer:\n"
                            "  lr: 0.01\n"
                            "seed: 1\n";

static ls_run_settings parse(const char *text)
{
    ls_run_settings s = {0};
    ls_err err = {0};

    REQUIRE_OK(ls_run_settings_parse(&s, text, strlen(text), &err), &err);
    return s;
}

static void keys_have_their_groups(void)
{
    ls_run_settings s = parse(plain);

    CHECK_EQ_INT(s.n, 6);
    CHECK_EQ_STR(s.items[0].key, "name");
    CHECK_EQ_STR(s.items[0].value, "mnist");
    CHECK_EQ_STR(ls_run_setting_value(&s, "data.path", -1), "a \"b\" \\ ${env:X}: c");
    CHECK_EQ_STR(ls_run_setting_value(&s, "optimizer.lr", 99), "0.01");
    CHECK_EQ_STR(ls_run_setting_value(&s, "seed", 5), "1");
    CHECK(ls_run_setting_value(&s, "lr", 0) == NULL);
    ls_run_settings_release(&s);
}

/* What nobody of us wrote is left out, and breaks nothing. */
static void strange_lines_are_left_out(void)
{
    ls_run_settings s = parse("# a note\n\n:\n  x: 1\na b: 2\n{a: 3}\nlist:\n  - 1\n    deep: 4\nend: \"cut");

    CHECK_EQ_INT(s.n, 1);
    CHECK_EQ_STR(ls_run_setting_value(&s, "end", 0), "cut");
    ls_run_settings_release(&s);

    char many[8000] = "";
    for (int i = 0; i < 2600; i++) memcpy(many + 3 * i, "a:\n", 3);
    ls_err err = {0};
    CHECK_STATUS(ls_run_settings_parse(&s, many, 7800, &err), LS_DATA, &err);
    ls_run_settings_release(&s);
}

static void runs_differ(void)
{
    ls_run_settings runs[3] = {parse(plain),
                               parse("name: \"mnist\"\nranks: 4\nseed: 1\noptimizer:\n  lr: 0.01\n"
                                     "data:\n  path: \"x\"\n  split: 0.1\n"),
                               parse(plain)};
    ls_run_keys k;
    ls_err err = {0};
    int seen = 0;

    REQUIRE_OK(ls_run_keys_of(&k, runs, 3, &err), &err);
    CHECK_EQ_INT(k.n, 6);
    CHECK_EQ_INT(k.n_differing, 2);
    for (int i = 0; i < k.n; i++)
        if (k.differs[i]) seen += strcmp(k.keys[i], "ranks") == 0 || strcmp(k.keys[i], "data.path") == 0;
    CHECK_EQ_INT(seen, 2);
    ls_run_keys_release(&k);

    /* A run without a setting differs from one with it. */
    ls_run_settings_release(&runs[1]);
    REQUIRE_OK(ls_run_keys_of(&k, runs, 3, &err), &err);
    CHECK_EQ_INT(k.n_differing, 6);
    ls_run_keys_release(&k);
    ls_run_settings_release(&runs[0]);
    ls_run_settings_release(&runs[2]);
}

static ls_status read_one(void *arg, ls_err *err)
{
    ls_run_settings s = {0};
    ls_run_keys k = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_run_settings_read(&s, arg, err));
    LS_TRY(ls_run_keys_of(&k, &s, 1, err));
out:
    ls_run_keys_release(&k);
    ls_run_settings_release(&s);
    return st;
}

static void files(void)
{
    char folder[] = "/tmp/ls_settings_XXXXXX", path[64];
    ls_run_settings s = {0};
    ls_err err = {0};
    FILE *f;

    REQUIRE(mkdtemp(folder) != NULL);
    REQUIRE_OK(ls_run_settings_read(&s, folder, &err), &err); /* a run without one has none */
    CHECK_EQ_INT(s.n, 0);
    snprintf(path, sizeof path, "%s/config.yaml", folder);
    f = fopen(path, "w");
    REQUIRE(f != NULL && fputs(plain, f) >= 0 && fclose(f) == 0);
    REQUIRE_OK(ls_run_settings_read(&s, folder, &err), &err);
    CHECK_EQ_INT(s.n, 6);
    ls_run_settings_release(&s);
    check_faults("the settings of a run", read_one, folder);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    CHECK_RUN(keys_have_their_groups);
    CHECK_RUN(strange_lines_are_left_out);
    CHECK_RUN(runs_differ);
    CHECK_RUN(files);
    return CHECK_DONE();
}
