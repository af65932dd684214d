/* Strings, nearest names, numbers for people, globs; and the clock, which only has to go forward. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "check.h"

static void grows(void)
{
    ls_text t = {0};
    ls_text_add(&t, "%s", "");
    CHECK_EQ_STR(t.data, "");
    for (int i = 0; i < 1000; i++) ls_text_add(&t, "%d,", i);
    CHECK(!t.failed);
    CHECK_EQ_INT(t.length, 10 * 2 + 90 * 3 + 900 * 4);
    CHECK_EQ_INT(strlen(t.data), t.length);
    CHECK(strncmp(t.data, "0,1,2,", 6) == 0);
    CHECK_EQ_STR(t.data + t.length - 8, "998,999,");
    ls_text_release(&t);
    CHECK(t.data == NULL && t.length == 0 && t.capacity == 0);
}

static void keeps_what_it_has_when_memory_ends(void)
{
    ls_text t = {0};
    ls_text_add(&t, "kept");
    ls_mem_fail_at(1);
    ls_text_add(&t, "%*d", 1000, 1);
    ls_mem_fail_at(0);
    CHECK(t.failed);
    ls_text_add(&t, "more");
    CHECK_EQ_STR(t.data, "kept");
    ls_text_release(&t);
    CHECK(!t.failed);
}

static void nearest(void)
{
    static const char *const names[] = {"optimizer.lr", "optimizer.momentum", "batch.per_rank", "seed"};
    CHECK_EQ_STR(ls_text_nearest("optimiser.lr", names, 4), "optimizer.lr");
    CHECK_EQ_STR(ls_text_nearest("batch.perrank", names, 4), "batch.per_rank");
    CHECK_EQ_STR(ls_text_nearest("seed", names, 4), "seed");
    static const char *const strategies[] = {"ddp", "zero1", "fsdp", "hybrid"};
    CHECK_EQ_STR(ls_text_nearest("fdsp", strategies, 4),
                 "fsdp");                                    /* neighbours that were swapped are one slip */
    CHECK_EQ_STR(ls_text_nearest("sede", names, 4), "seed"); /* distance 2 of 4 letters: a third rounded up */
    CHECK_EQ_STR(ls_text_nearest("speedy", names, 4), "seed");
    CHECK_EQ_STR(ls_text_nearest("spends", names, 4), NULL); /* distance 3 of 6 */
    CHECK_EQ_STR(ls_text_nearest("", names, 4), NULL);
    CHECK_EQ_STR(ls_text_nearest("seed", names, 0), NULL);
    char huge[1000];
    memset(huge, 'a', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    CHECK_EQ_STR(ls_text_nearest(huge, names, 4), NULL);
}

static void numbers(void)
{
    char buf[32];
    CHECK_EQ_STR(ls_text_bytes(0, buf), "0 B");
    CHECK_EQ_STR(ls_text_bytes(12, buf), "12 B");
    CHECK_EQ_STR(ls_text_bytes(1023, buf), "1023 B");
    CHECK_EQ_STR(ls_text_bytes(1024, buf), "1.00 KiB");
    CHECK_EQ_STR(ls_text_bytes(87.4 * 1024, buf), "87.4 KiB");
    CHECK_EQ_STR(ls_text_bytes(1.25 * 1024 * 1024 * 1024, buf), "1.25 GiB");
    CHECK_EQ_STR(ls_text_bytes(500.0 * 1024 * 1024, buf), "500 MiB");
    CHECK_EQ_STR(ls_text_bytes(-2048, buf), "-2.00 KiB");

    CHECK_EQ_STR(ls_text_si(12, buf), "12");
    CHECK_EQ_STR(ls_text_si(0, buf), "0");
    CHECK_EQ_STR(ls_text_si(0.125, buf), "0.125");
    CHECK_EQ_STR(ls_text_si(999, buf), "999");
    CHECK_EQ_STR(ls_text_si(999.999, buf), "1.00 k");
    CHECK_EQ_STR(ls_text_si(2.61e6, buf), "2.61 M");
    CHECK_EQ_STR(ls_text_si(47.85e9, buf), "47.85 G");
    CHECK_EQ_STR(ls_text_si(999999.9, buf), "1.00 M");
    CHECK_EQ_STR(ls_text_si(INFINITY, buf), "inf");
    CHECK(strlen(ls_text_si(-1e300, buf)) < 32);

    CHECK_EQ_STR(ls_text_count(0, buf), "0");
    CHECK_EQ_STR(ls_text_count(999, buf), "999");
    CHECK_EQ_STR(ls_text_count(1000, buf), "1,000");
    CHECK_EQ_STR(ls_text_count(11181642, buf), "11,181,642");
    CHECK_EQ_STR(ls_text_count(-123456, buf), "-123,456");
    CHECK_EQ_STR(ls_text_count(INT64_MIN, buf), "-9,223,372,036,854,775,808");
}

static void globs(void)
{
    static const struct {
        const char *pattern, *text;
        bool match;
    } cases[] = {
        {"D.*", "D.h0.weight", true},
        {"D.*", "G.h0.weight", false},
        {"*", "", true},
        {"", "", true},
        {"", "a", false},
        {"?", "a", true},
        {"?", "", false},
        {"*.bias", "a.b.bias", true},
        {"*.bias", "a.b.bias2", false},
        {"a*b*c", "a-b-b-c", true},
        {"a*b*c", "a-b-b-d", false},
        {"**x", "x", true},
        {"a?c*", "abcdef", true},
        {"*aab", "aaaaab", true},
        {"conv1", "conv10", false},
        {"conv[12].*", "conv2.weight", true},
        {"conv[12].*", "conv3.weight", false},
        {"a\\*", "a*", true},
        {"a\\*", "ab", false},
        {"*", "a/b", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!CHECK_EQ_INT(ls_text_glob(cases[i].pattern, cases[i].text), cases[i].match)) {
            CHECK_EQ_STR(cases[i].pattern, cases[i].text); /* prints the pair */
        }
    }
}

static void clock_goes_forward(void)
{
    uint64_t last = ls_clock_ns();
    double seconds = ls_clock_seconds();
    CHECK(seconds >= (double)last * 1e-9);
    int back = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t now = ls_clock_ns();
        back += now < last;
        last = now;
    }
    CHECK_EQ_INT(back, 0);
}

static void quoted_for_a_shell(void)
{
    static const char *const cases[][2] = {
        {"optimizer.lr=0.1", "optimizer.lr=0.1"},
        {"", "''"},
        {"a b", "'a b'"},
        {"it's", "'it'\"'\"'s'"},
        {"$(x)", "'$(x)'"},
        {"#", "'#'"},
        {"a\nb", "'a\nb'"},
        {"~", "'~'"},
        {"\"\\`", "'\"\\`'"},
    };
    char word[64];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ls_text t = {0};
        ls_text_add_quoted(&t, cases[i][0]);
        CHECK_EQ_STR(t.data, cases[i][1]);
        ls_text_release(&t);
        CHECK_EQ_STR(ls_text_quoted(cases[i][0], word, sizeof word), cases[i][1]);
    }
    CHECK_EQ_STR(ls_text_quoted("longer than its place", word, 8), "..."); /* half a name is another one */
}

static void cut_between_characters(void)
{
    char buf[6];

    CHECK_EQ_STR(ls_text_fit(buf, sizeof buf, "%s", "abcdefg"), "abcde");
    CHECK_EQ_STR(ls_text_fit(buf, sizeof buf, "%s", "abc\xc3\xa9"), "abc\xc3\xa9"); /* it fits */
    CHECK_EQ_STR(ls_text_fit(buf, sizeof buf, "%s", "abc\xc3\xa9g"), "abc\xc3\xa9");
    CHECK_EQ_STR(ls_text_fit(buf, sizeof buf, "%s", "abcd\xc3\xa9"), "abcd");
    CHECK_EQ_STR(ls_text_fit(buf, sizeof buf, "%s", "abc\xe5\xb1\x82"), "abc");
    CHECK_EQ_STR(ls_text_fit(buf, sizeof buf, "%s", "ab\xf0\x9f\x98\x80"), "ab");
    CHECK_EQ_STR(ls_text_fit(buf, 1, "%s", "abc"), "");
}

static void sizes(void)
{
    static const struct {
        const char *text;
        size_t bytes;
    } good[] = {{"4096", 4096},       {"16GiB", (size_t)16 << 30}, {"16G", (size_t)16 << 30},
                {"1.5 MiB", 3 << 19}, {"800MB", 800000000},        {"2kB", 2000},
                {"2k", 2048},         {"1TiB", (size_t)1 << 40},   {"12 B", 12},
                {"0.5KiB", 512}};
    static const char *const bad[] = {"",     "lots", "-1",    "0",     "GiB", "1.5.2", "16GiBs", "16 GiB x",
                                      "16XB", "nan",  "1e400", "1e30G", "inf", "0.2",   "+5"};
    ls_err err = {0};

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        size_t bytes = 0;
        REQUIRE_OK(ls_text_parse_bytes(good[i].text, "limit", &bytes, &err), &err);
        if (!CHECK(bytes == good[i].bytes)) printf("  %s is %zu\n", good[i].text, bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t bytes = 7;
        if (!CHECK(ls_text_parse_bytes(bad[i], "limit", &bytes, &err) == LS_INVALID && bytes == 7))
            printf("  \"%s\" is %zu\n", bad[i], bytes);
        CHECK_CONTAINS(err.text, "limit: ");
    }
}

int main(void)
{
    CHECK_RUN(sizes);
    CHECK_RUN(cut_between_characters);
    CHECK_RUN(grows);
    CHECK_RUN(quoted_for_a_shell);
    CHECK_RUN(keeps_what_it_has_when_memory_ends);
    CHECK_RUN(nearest);
    CHECK_RUN(numbers);
    CHECK_RUN(globs);
    CHECK_RUN(clock_goes_forward);
    return CHECK_DONE();
}
