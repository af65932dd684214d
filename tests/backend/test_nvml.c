/* test_nvml.c: the driver's library as nvml.h has it, here one of the tests' own (tools/fake_nvml.c). */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/nvml.h"
#include "check.h"

/* Who asks for libnvidia-ml.so.1 from here on gets this one: libraries are known by the name in them. */
static void load_fake(void)
{
    char path[4200];

    snprintf(path, sizeof path, "%s/tests/fake/libnvidia-ml.so.1", getenv("LS_BUILD_DIR"));
    REQUIRE(dlopen(path, RTLD_NOW) != NULL);
}

static void looks(void)
{
    char why[200] = "";
    ls_gauge g;

    load_fake();
    CHECK_EQ_STR(lsi_nvml_version(why, sizeof why), "1.2.fake");
    CHECK(lsi_nvml_look("0000:1b:00.0", &g));
    CHECK(g.utilization == 0.4 && g.memory_bytes == 1025.0 * (1 << 20) && g.memory_of == 8.0 * (1 << 30));
    CHECK(g.power_w == 345.678 && g.temperature_c == 61);
    CHECK(lsi_nvml_look(NULL, &g) && g.utilization == 0.41);
    CHECK(!lsi_nvml_look("0000:ff:00.0", &g) && isnan(g.power_w));
    CHECK(lsi_nvml_lost("0000:1b:00.0") == NULL);
    CHECK(lsi_nvml_lost("0000:ff:00.0") == NULL);
    setenv("FAKE_NVML", "quiet", 1);
    CHECK(lsi_nvml_look(NULL, &g) && isnan(g.power_w) && isnan(g.utilization) && g.temperature_c == 61);
    setenv("FAKE_NVML", "lost", 1);
    CHECK(lsi_nvml_lost("0000:1b:00.0") != NULL);
}

int main(void)
{
    REQUIRE(getenv("LS_BUILD_DIR") != NULL);
    CHECK_RUN(looks);
    return CHECK_DONE();
}
