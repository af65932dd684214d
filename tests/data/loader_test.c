/* loader_test.c: ends the test where a loader fails. */
#include "loader_test.h"

#include "check.h"

ls_loader *loader_open(const ls_dataset *d, ls_loader_options o)
{
    ls_err err = {0};
    ls_loader *l;

    REQUIRE_OK(ls_loader_create(&l, d, &o, &err), &err);
    return l;
}

ls_batch loader_next(ls_loader *l)
{
    ls_err err = {0};
    ls_batch b;

    REQUIRE_OK(ls_loader_next(l, &b, &err), &err);
    return b;
}
