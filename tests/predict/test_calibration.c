/* test_calibration.c: a file of a calibration is read as the network that was fitted. */
#include <stdio.h>
#include <string.h>

#include "base/replace.h"
#include "base/text.h"
#include "check.h"
#include "predict/calibration.h"
#include "predict/network.h"

static char folder[4096], times[5000], out[5000];

/* An all-reduce between machines of one rank, of links with 10 us and 2 GB/s and no time of a core. */
static void write_times(const char *path, int hosts)
{
    ls_text text = {0};
    ls_err err = {0};

    for (int64_t bytes = 1 << 20; bytes <= 64 << 20; bytes *= 2) {
        const double s = 2 * 10e-6 + 2.0 * (double)bytes * (hosts - 1) / hosts / 2e9;
        ls_text_add(
            &text,
            "{\"event\":\"collectives\",\"format\":1,\"kind\":\"all_reduce\",\"wire\":\"f32\",\"bytes\":"
            "%lld,\"ranks\":%d,\"hosts\":%d,\"most_ranks_of_host\":1,\"rounds\":9,\"repeats\":1,"
            "\"seconds\":{\"p16\":%.9g,\"p50\":%.9g,\"p84\":%.9g},\"core_s\":0,\"sent_bytes\":0,"
            "\"host\":\"somewhere\"}\n",
            (long long)bytes, hosts, hosts, s, s, s);
    }
    REQUIRE_OK(ls_replace_file(path, text.data, text.length, &err), &err);
    ls_text_release(&text);
}

static void the_network_comes_back(void)
{
    char second[5008];
    const char *paths[] = {times, second};
    ls_calibration c;
    ls_network n;
    ls_machine m;
    ls_err err = {0};

    snprintf(second, sizeof second, "%s.4", times);
    write_times(times, 2);
    write_times(second, 4);
    REQUIRE_OK(ls_calibration_make(&c, paths, 2, &err), &err);
    CHECK(c.has_network && !c.has_machine);
    REQUIRE_OK(ls_calibration_write(&c, out, &err), &err);
    REQUIRE_OK(ls_network_open(&n, out, &err), &err);
    CHECK_NEAR(n.node.bytes_s / 2e9, 1, 0.01);
    CHECK_NEAR(n.node.bytes_s / c.fit.node.figure[LS_FIT_RATE], 1, 1e-6);
    CHECK_NEAR(n.error, c.fit.error, 1e-6);
    CHECK_EQ_INT(n.measured_ranks, 4);
    CHECK_EQ_INT(n.measured_nodes, 4);
    CHECK_CONTAINS(n.name, "somewhere");
    CHECK_EQ_INT(n.n_sources, LS_FIT_FIGURES); /* of the link inside machines, which was not measured */
    /* There is no machine in it, and who looks for one is told. */
    CHECK(ls_machine_open(&m, out, &err) != LS_OK);
    ls_machine_release(&m);
    ls_network_release(&n);
    ls_calibration_release(&c);
}

static void what_is_no_measurement_is_named(void)
{
    const char *paths[] = {times, out}; /* a calibration is none */
    ls_calibration c;
    ls_err err = {0};

    CHECK_STATUS(ls_calibration_make(&c, paths, 2, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, out);
    CHECK_CONTAINS(err.text, "has neither exchanges");
    ls_calibration_release(&c);
    err = (ls_err){0};
    paths[1] = "/nowhere/at.json";
    CHECK_STATUS(ls_calibration_make(&c, paths, 2, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "/nowhere/at.json");
    ls_calibration_release(&c);
}

int main(void)
{
    check_new_folder(folder, sizeof folder);
    snprintf(times, sizeof times, "%s/times.json", folder);
    snprintf(out, sizeof out, "%s/out.json", folder);
    CHECK_RUN(the_network_comes_back);
    CHECK_RUN(what_is_no_measurement_is_named);
    return CHECK_DONE();
}
