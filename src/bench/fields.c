/* fields.c: reads fields of results. */
#include "bench/fields.h"

#include <math.h>
#include <string.h>

double ls_field_number(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    const double x = json_is_number(v) ? json_number_value(v) : NAN;

    return isfinite(x) && x >= 0 && x < 1e30 ? x : NAN;
}

int64_t ls_field_count(const json_t *o, const char *key, int64_t most)
{
    const json_int_t x = json_integer_value(json_object_get(o, key));

    return x > 0 && x <= most ? (int64_t)x : 0;
}

void ls_field_copy(char *to, size_t size, const char *text)
{
    size_t n = strlen(text);

    if (n >= size) {
        n = size - 1;
        /* Bytes that begin with 10 go on with a character of several. */
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
    }
    memcpy(to, text, n);
    to[n] = '\0';
}

void ls_field_text(const json_t *o, const char *key, char *to, size_t size)
{
    const char *text = json_string_value(json_object_get(o, key));

    ls_field_copy(to, size, text != NULL ? text : "");
}
