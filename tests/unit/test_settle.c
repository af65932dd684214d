/* ls_parallel_settle starts the program again with OpenMP's spin limited, once, and respects the user's
 * choice. */
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "check.h"

#define STARTED "LS_TEST_SETTLE_STARTED"

static char **arguments;

/* Reached only by a process that has nothing to settle. */
static void returns_with_a_spin_count(void)
{
    if (strcmp(ls_parallel_name(), "openmp") == 0) {
        const char *count = getenv("GOMP_SPINCOUNT");
        REQUIRE(count != NULL);
        CHECK(atoi(count) > 0 && atoi(count) < 300000);
        CHECK_EQ_STR(arguments[1], "kept");
    }
    ls_parallel_settle(arguments);
    CHECK(getenv("OMP_WAIT_POLICY") == NULL);
}

static void returns_when_the_user_has_chosen(void)
{
    unsetenv("GOMP_SPINCOUNT");
    setenv("OMP_WAIT_POLICY", "active", 1);
    ls_parallel_settle(arguments);
    CHECK(getenv("GOMP_SPINCOUNT") == NULL);
    CHECK_EQ_STR(getenv("OMP_WAIT_POLICY"), "active");
}

int main(int argc, char **argv)
{
    static char kept[] = "kept";
    char *again[] = {argv[0], kept, NULL};

    arguments = argc > 1 ? argv : again;
    if (getenv(STARTED) == NULL) {
        setenv(STARTED, "1", 1);
        unsetenv("GOMP_SPINCOUNT");
        unsetenv("OMP_WAIT_POLICY");
        ls_parallel_settle(again); /* with OpenMP this starts main again, with `again` as arguments */
    }
    CHECK_RUN(returns_with_a_spin_count);
    CHECK_RUN(returns_when_the_user_has_chosen);
    return CHECK_DONE();
}
