/* test_ledger.c: the time of a run adds up, through checkpoints, losses and restarts. */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "train/ledger.h"

static char folder[] = "/tmp/lockstep-ledger-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "w");
    REQUIRE(f != NULL);
    fputs(text, f);
    fclose(f);
}

static bool near(double a, double b)
{
    return a - b < 1e-9 && b - a < 1e-9;
}

static void a_first_process_and_a_second(void)
{
    ls_ledger l = {0};

    ls_ledger_begin(&l, false, 0, 2);
    CHECK(near(l.setup, 2) && near(ls_ledger_total(&l), 2));
    l.compute = 10;
    l.data = 1;
    /* It had gone on for 5 seconds after the checkpoint when it was killed. */
    ls_ledger_begin(&l, true, 18, 3);
    CHECK(near(l.redone, 5));
    CHECK(near(l.restart, 3));
    CHECK(near(ls_ledger_total(&l), 18 + 3));
    /* A run that is known to have taken less than its checkpoint says has lost nothing. */
    ls_ledger_begin(&l, true, 4, 1);
    CHECK(near(l.redone, 5));
    CHECK(near(ls_ledger_total(&l), 18 + 3 + 1));
}

static void json_and_back(void)
{
    const ls_ledger l = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    ls_ledger back;
    json_t *o = ls_ledger_json(&l);

    REQUIRE(o != NULL);
    CHECK_EQ_INT(json_object_size(o), 9);
    ls_ledger_read(&back, o, 100);
    CHECK(near(ls_ledger_total(&back), 45));
    CHECK(near(back.redone, 8) && near(back.idle, 9) && near(back.setup, 1));
    json_decref(o);
    ls_ledger_read(&back, NULL, 12); /* a checkpoint of a version without a ledger */
    CHECK(near(back.idle, 12) && near(ls_ledger_total(&back), 12));
    o = json_pack("{s:f, s:s}", "compute", -1.0, "idle", "much");
    ls_ledger_read(&back, o, 12);
    CHECK(near(ls_ledger_total(&back), 0));
    json_decref(o);
}

static void what_a_run_is_known_to_have_taken(void)
{
    ls_ledger l = {.compute = 1};

    CHECK(near(ls_ledger_known_seconds(folder), 0));
    write_file("summary.json",
               "{\"wall_s\": 12.5, \"steps\": 7, \"ledger_s\": {\"compute\": 9, \"idle\": 3.5}}");
    CHECK(near(ls_ledger_known_seconds(folder), 12.5));
    write_file("metrics.jsonl",
               "{\"step\": 1, \"time_s\": 3}\n{\"step\": 9, \"time_s\": 20.25}\n{\"step\": 10, \"ti");
    CHECK(near(ls_ledger_known_seconds(folder), 20.25));
    write_file("summary.json", "{\"wall_s\": 12.5, \"state\": \"paused\", \"steps\": 7, "
                               "\"ledger_s\": {\"compute\": 9, \"idle\": 3.5}}");
    CHECK(near(ls_ledger_known_seconds(folder), 12.5)); /* it had its last word */
    write_file("metrics.jsonl", "no line");
    CHECK(near(ls_ledger_known_seconds(folder), 12.5));

    ls_ledger_recall(&l, folder, 6);
    CHECK(near(ls_ledger_total(&l), 1));
    ls_ledger_recall(&l, folder, 7);
    CHECK(near(l.compute, 9) && near(ls_ledger_total(&l), 12.5));
    write_file("summary.json", "not JSON");
    ls_ledger_recall(&l, folder, 7);
    CHECK(near(ls_ledger_total(&l), 12.5));
    CHECK(near(ls_ledger_known_seconds(folder), 0));
}

int main(void)
{
    char command[128];
    int rc;

    if (mkdtemp(folder) == NULL) return 1;
    CHECK_RUN(a_first_process_and_a_second);
    CHECK_RUN(json_and_back);
    CHECK_RUN(what_a_run_is_known_to_have_taken);
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
