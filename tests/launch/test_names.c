/* test_names.c: machines of a run have different names, whatever their hosts are called. */
#include "launch/names.h"

#include <string.h>

#include "base/alloc.h"
#include "check.h"

/* Names of up to four machines. */
static void are_called(int n, char (*own)[LSI_HOST_NAME], const char *expected)
{
    char *names;
    ls_err err = {0};

    REQUIRE_OK(lsi_host_names(&names, own, n, &err), &err);
    CHECK_EQ_STR(names, expected);
    ls_free(names);
}

#define CALLED(n, expected, ...) are_called(n, (char[][LSI_HOST_NAME]){__VA_ARGS__}, expected)

static void hosts_of_different_names_keep_them(void)
{
    CALLED(1, "alpha", "alpha");
    CALLED(3, "alpha,beta.example.org,alpha-2", "alpha", "beta.example.org", "alpha-2");
}

static void launchers_on_one_host_get_numbers(void)
{
    CALLED(3, "h,h-1,h-2", "h", "h", "h");
}

/* Where the number makes the name of another machine, an earlier or a later one, the next is taken. */
static void made_names_are_nobodys(void)
{
    CALLED(3, "h,h-2,h-3", "h", "h-2", "h");
    CALLED(3, "h,h-2,h-1", "h", "h", "h-1");
    CALLED(4, "h,h-3,h-1,h-2", "h", "h", "h-1", "h-2");
    CALLED(4, "h,h-2,h-2-2,h-3", "h", "h-2", "h-2", "h");
}

/* Names that differ in letters which MPI does not take. */
static void odd_letters(void)
{
    CALLED(3, "a-b,a-b-1,c", "a_b", "a-b", "c");
    CALLED(2, "a-b,a-b-1", "a,b", "a b");
    CALLED(2, "machine,machine-1", "", "");
}

/* Names of the greatest length stay whole, and different. */
static void long_names(void)
{
    char own[2][LSI_HOST_NAME], expected[2 * LSI_HOST_NAME + 8];
    char *names;
    ls_err err = {0};

    memset(own, 'x', sizeof own);
    own[0][LSI_HOST_NAME - 1] = own[1][LSI_HOST_NAME - 1] = '\0';
    memset(expected, 'x', sizeof expected);
    expected[LSI_HOST_NAME - 1] = ',';
    memcpy(expected + 2 * LSI_HOST_NAME - 1, "-1", 3);
    REQUIRE_OK(lsi_host_names(&names, own, 2, &err), &err);
    CHECK_EQ_STR(names, expected);
    ls_free(names);
}

int main(void)
{
    CHECK_RUN(hosts_of_different_names_keep_them);
    CHECK_RUN(launchers_on_one_host_get_numbers);
    CHECK_RUN(made_names_are_nobodys);
    CHECK_RUN(odd_letters);
    CHECK_RUN(long_names);
    return CHECK_DONE();
}
