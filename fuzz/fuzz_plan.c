/* fuzz_plan.c: arbitrary bytes as the file of a plan (`lockstep plan --json`). */
#include <stdint.h>
#include <stdlib.h>

#include "plans/plans.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is accepted is equal to itself and can be drawn for Graphviz. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_document d;
    int n_plans;
    ls_doc_difference o;
    ls_text text = {0}, dot = {0};
    ls_err err = {0};

    if (ls_document_parse(&d, (const char *)data, size, "input", 0, &n_plans, &err) == LS_OK) {
        if (ls_document_diff(&d, &d, 5, &text, &o, &err) != LS_OK || !o.equal) abort();
        ls_document_dot(&d, "input", &dot);
    } else if (err.text[0] == '\0') {
        abort(); /* a refusal says why */
    }
    ls_document_release(&d);
    ls_text_release(&text);
    ls_text_release(&dot);
    return 0;
}
