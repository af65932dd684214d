/* test_diff.c: differences between plans are found and named; equal plans are equal. */
#include <string.h>

#include "check.h"
#include "plans_test.h"

static ls_doc_difference diff(const small_plan *a, const small_plan *b, ls_text *text)
{
    ls_document x, y;
    ls_doc_difference o;
    ls_err err = {0};

    small_plan_document(a, &x);
    small_plan_document(b, &y);
    REQUIRE_OK(ls_document_diff(&x, &y, 20, text, &o, &err), &err);
    ls_document_release(&x);
    ls_document_release(&y);
    return o;
}

static const small_plan usual;

static void equal_plans(void)
{
    ls_text text = {0};
    const ls_doc_difference o = diff(&usual, &usual, &text);

    CHECK(o.equal);
    CHECK(text.length == 0);
    ls_text_release(&text);
}

static void a_node_more(void)
{
    ls_text text = {0};
    const ls_doc_difference o = diff(&usual, &(small_plan){.more = true}, &text);

    CHECK(!o.equal && o.hash && o.flops);
    CHECK_EQ_INT(o.added, 1);
    CHECK_EQ_INT(o.removed, 0);
    CHECK_EQ_INT(o.changed, 1); /* who reads it read another one before */
    CHECK_CONTAINS(text.data, "first difference: node 3");
    CHECK_CONTAINS(text.data, "+ tanh of layer \"second\"");
    CHECK_CONTAINS(text.data, "wiring");
    ls_text_release(&text);
}

static void the_other_way_round_it_is_removed(void)
{
    ls_text text = {0};
    const ls_doc_difference o = diff(&(small_plan){.more = true}, &usual, &text);

    CHECK_EQ_INT(o.removed, 1);
    CHECK_EQ_INT(o.added, 0);
    CHECK_CONTAINS(text.data, "- tanh of layer \"second\"");
    ls_text_release(&text);
}

static void wiring_alone(void)
{
    ls_text text = {0};
    const ls_doc_difference o = diff(&usual, &(small_plan){.swapped = true}, &text);

    CHECK(!o.equal && o.hash && !o.memory && !o.flops);
    CHECK_EQ_INT(o.changed, 1);
    CHECK_CONTAINS(text.data, "~ sub of layer \"first\": wiring");
    CHECK_CONTAINS(text.data, "reads x, leaky_relu");
    CHECK_CONTAINS(text.data, "reads leaky_relu of layer \"first\", x");
    ls_text_release(&text);
}

static void an_attribute(void)
{
    ls_text text = {0};
    const ls_doc_difference o = diff(&usual, &(small_plan){.slope = 0.3}, &text);

    CHECK_EQ_INT(o.changed, 1);
    CHECK_CONTAINS(text.data, "leaky_relu of layer \"first\": attributes");
    ls_text_release(&text);
}

static void shapes_and_memory(void)
{
    ls_text text = {0};
    const ls_doc_difference o = diff(&usual, &(small_plan){.rows = 64}, &text);

    CHECK(!o.equal && o.memory && o.flops && o.inputs);
    CHECK_CONTAINS(text.data, "- input \"x\" f32 (4, 8)");
    CHECK_CONTAINS(text.data, "+ input \"x\" f32 (64, 8)");
    CHECK_CONTAINS(text.data, "type or shape");
    CHECK_CONTAINS(text.data, "activations");
    ls_text_release(&text);
}

static void the_name_of_an_input(void)
{
    ls_text text = {0};
    const ls_doc_difference o = diff(&usual, &(small_plan){.input = "z"}, &text);

    CHECK(!o.equal && o.inputs && o.hash);
    CHECK_CONTAINS(text.data, "- input \"x\"");
    CHECK_CONTAINS(text.data, "+ input \"z\"");
    ls_text_release(&text);
}

static void long_lists_are_cut(void)
{
    ls_text text = {0};
    const ls_doc_difference o = diff(&usual, &(small_plan){.long_chain = true}, &text);

    CHECK(o.added > 100);
    CHECK_CONTAINS(text.data, "more of");
    CHECK(text.length < 20000);
    ls_text_release(&text);
}

/* -- pictures ---------------------------------------------------------------------------------------------
 */

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)) != NULL; text += strlen(part)) n++;
    return n;
}

static void a_picture_shows_every_node_of_a_small_plan(void)
{
    ls_document d;
    ls_text svg = {0}, dot = {0};

    small_plan_document(&(small_plan){.layer = "a<b>&\"c\""}, &d);
    ls_document_svg(&d, "title <&>", &svg);
    ls_document_dot(&d, "title \"q\"", &dot);
    REQUIRE(!svg.failed && !dot.failed);
    CHECK_EQ_INT(count(svg.data, "<g><rect"), d.n_nodes);
    CHECK_CONTAINS(svg.data, "title &lt;&amp;&gt;");
    CHECK_CONTAINS(svg.data, "a&lt;b&gt;&amp;&quot;c&quot;");
    CHECK(strstr(svg.data, "<script") == NULL && strstr(svg.data, "nan") == NULL);
    CHECK_EQ_INT(count(dot.data, "fillcolor"), d.n_nodes);
    CHECK_CONTAINS(dot.data, "title \\\"q\\\"");
    ls_text_release(&svg);
    ls_text_release(&dot);
    ls_document_release(&d);
}

/* Whether a text is UTF-8, as JSON has to be. */
static bool is_utf8(const char *text)
{
    json_t *s = json_string(text);
    const bool good = s != NULL;

    json_decref(s);
    return good;
}

/* Names of `bytes` letters of one byte and then 300 of two or three: each place where a text may be cut lies
 * inside a character once. */
static void names_are_cut_between_characters(void)
{
    static const char *const letters[] = {"\xc3\xa9", "\xe5\xb1\x82"};

    for (size_t k = 0; k < 6; k++) {
        const char *letter = letters[k / 3];
        char layer[1024] = "";
        ls_document d, other;
        ls_text svg = {0}, dot = {0}, text = {0};
        ls_doc_difference o;
        ls_err err = {0};
        memset(layer, 'a', k % 3);
        for (int i = 0; i < 300; i++) strcat(layer, letter);
        small_plan_document(&(small_plan){.layer = layer}, &d);
        small_plan_document(&usual, &other);
        ls_document_svg(&d, layer, &svg);
        ls_document_dot(&d, layer, &dot);
        REQUIRE_OK(ls_document_diff(&d, &other, 20, &text, &o, &err), &err);
        REQUIRE(!svg.failed && !dot.failed);
        CHECK(is_utf8(svg.data) && is_utf8(dot.data) && is_utf8(text.data));
        ls_text_release(&svg);
        ls_text_release(&dot);
        ls_text_release(&text);
        ls_document_release(&d);
        ls_document_release(&other);
    }
}

static void many_nodes_are_drawn_by_layer(void)
{
    ls_document d;
    ls_text svg = {0};

    small_plan_document(&(small_plan){.long_chain = true}, &d);
    ls_document_svg(&d, "long", &svg);
    REQUIRE(!svg.failed);
    CHECK(d.n_nodes > 400);
    CHECK(count(svg.data, "<g><rect") < 60);
    CHECK_CONTAINS(svg.data, "drawn by layer");
    CHECK_CONTAINS(svg.data, "block7");
    ls_text_release(&svg);
    ls_document_release(&d);
}

static void widths_are_measured_times_where_there_are_some(void)
{
    ls_document d;
    ls_text svg = {0};

    small_plan_document(&usual, &d);
    for (int32_t i = 0; i < d.n_nodes; i++) d.nodes[i].seconds = i == 1 ? 3e-3 : 1e-3;
    ls_document_svg(&d, "measured", &svg);
    REQUIRE(!svg.failed);
    CHECK(strstr(svg.data, "estimated") == NULL);
    CHECK_CONTAINS(svg.data, "3.000 ms");
    ls_text_release(&svg);
    ls_document_release(&d);
}

int main(void)
{
    CHECK_RUN(equal_plans);
    CHECK_RUN(a_node_more);
    CHECK_RUN(the_other_way_round_it_is_removed);
    CHECK_RUN(wiring_alone);
    CHECK_RUN(an_attribute);
    CHECK_RUN(shapes_and_memory);
    CHECK_RUN(the_name_of_an_input);
    CHECK_RUN(long_lists_are_cut);
    CHECK_RUN(a_picture_shows_every_node_of_a_small_plan);
    CHECK_RUN(names_are_cut_between_characters);
    CHECK_RUN(many_nodes_are_drawn_by_layer);
    CHECK_RUN(widths_are_measured_times_where_there_are_some);
    return CHECK_DONE();
}
