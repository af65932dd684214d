/* fuzz_plan.c: arbitrary bytes as the file of a plan (`lockstep plan --json`). */
#include <stdint.h>
#include <stdlib.h>

#include "plans/plans.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is accepted is read again as the same plan, and can be drawn. */
static void use(const ls_document *d)
{
    json_t *json = ls_document_json(d);
    ls_document again;
    ls_doc_difference o;
    ls_text text = {0}, dot = {0}, svg = {0};
    ls_err err = {0};

    if (json == NULL || ls_document_read(&again, json, &err) != LS_OK) abort();
    if (ls_document_diff(d, &again, 5, &text, &o, &err) != LS_OK || !o.equal) abort();
    ls_document_dot(d, "input", &dot);
    ls_document_svg(d, "input", &svg);
    ls_document_release(&again);
    json_decref(json);
    ls_text_release(&text);
    ls_text_release(&dot);
    ls_text_release(&svg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_document d;
    int n_plans;
    ls_err err = {0};

    if (ls_document_parse(&d, (const char *)data, size, "input", 0, &n_plans, &err) == LS_OK)
        use(&d);
    else if (err.text[0] == '\0')
        abort(); /* a refusal says why */
    ls_document_release(&d);
    return 0;
}
