/* test_list.c: the list of passes, the files that they are in, and the page that shows them say the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "passes/list.h"

static char *text_of(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);

    if (!CHECK(f != NULL)) printf("  %s\n", path);
    REQUIRE(f != NULL && text != NULL);
    REQUIRE(fread(text, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    return text;
}

/* What stands in the comment at the head. */
static void every_pass_says_what_it_needs_and_leaves(void)
{
    for (const ls_pass *p = ls_passes; p->name != NULL; p++) {
        char path[128], *text, *end;
        snprintf(path, sizeof path, "src/passes/%s.c", p->name);
        text = text_of(path);
        end = strstr(text, "*/");
        REQUIRE(end != NULL);
        *end = '\0';
        if (!CHECK(strstr(text, "Needs: ") != NULL && strstr(text, "Leaves: ") != NULL))
            printf("  %s\n", path);
        CHECK(p->needs[0] != '\0' && p->leaves[0] != '\0');
        free(text);
    }
}

static void the_page_has_them_in_their_order(void)
{
    char *page = text_of("docs/architecture.md"), *at = page;

    for (const ls_pass *p = ls_passes; p->name != NULL; p++) {
        char row[128], *found;
        snprintf(row, sizeof row, "\n| `%s.c`", p->name);
        found = strstr(at, row);
        if (!CHECK(found != NULL))
            printf("  %s is not in docs/architecture.md, or not in its place\n", p->name);
        if (found != NULL) at = found + 1;
    }
    free(page);
}

static void phases_come_one_after_the_other(void)
{
    ls_phase last = LS_PHASE_PROGRAM;
    int n = 0;

    for (const ls_pass *p = ls_passes; p->name != NULL; p++, n++) {
        CHECK(p->phase >= last);
        last = p->phase;
    }
    CHECK(last == LS_PHASE_MEMORY);
    CHECK(n + 1 < LS_PASS_NOTES); /* one more for kernels */
}

int main(void)
{
    CHECK_RUN(every_pass_says_what_it_needs_and_leaves);
    CHECK_RUN(the_page_has_them_in_their_order);
    CHECK_RUN(phases_come_one_after_the_other);
    return CHECK_DONE();
}
