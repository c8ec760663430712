#include "base/core/nearest.h"

#include <string.h>

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static bool same(pawl_view a, size_t i, pawl_view b, size_t j)
{
    return lower(a.data[i]) == lower(b.data[j]);
}

/* row[j]: the edits from the first i bytes of a to the first j of b. A swap looks two rows back, so
 * three rows are kept and used in turn. */
size_t pawl__edit_distance(pawl_view a, pawl_view b, size_t max)
{
    size_t rows[3][PAWL__NEAREST_BYTES_MAX + 1];

    if (a.len > PAWL__NEAREST_BYTES_MAX || b.len > PAWL__NEAREST_BYTES_MAX) {
        return max + 1;
    }
    for (size_t j = 0; j <= b.len; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *two_above = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t replaced = above[j - 1] + (same(a, i - 1, b, j - 1) ? 0 : 1);

            row[j] = MIN(replaced, MIN(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && same(a, i - 1, b, j - 2) && same(a, i - 2, b, j - 1)) {
                row[j] = MIN(row[j], two_above[j - 2] + 1);
            }
        }
    }
    return MIN(rows[a.len % 3][b.len], max + 1);
}

struct pawl__nearest pawl__nearest_to(pawl_view word)
{
    return (struct pawl__nearest){ .word = word };
}

static size_t edits_max(size_t word_len)
{
    if (word_len <= 3) {
        return 1;
    }
    return word_len <= 7 ? 2 : 3;
}

static bool begins(pawl_view name, pawl_view word)
{
    if (word.len < 2 || word.len >= name.len) {
        return false;
    }
    return pawl__edit_distance(word, (pawl_view){ name.data, word.len }, 0) == 0;
}

void pawl__nearest_offer(struct pawl__nearest *nearest, const char *name)
{
    pawl_view known = pawl_view_of(name);
    size_t max = edits_max(nearest->word.len);
    size_t distance = pawl__edit_distance(nearest->word, known, max);

    if (distance > 1 && begins(known, nearest->word)) {
        distance = 1;
    }
    if (distance > max) {
        return;
    }
    size_t at = nearest->count;
    while (at > 0 && nearest->best[at - 1].distance > distance) {
        at--;
    }
    if (at == PAWL__NEAREST_COUNT_MAX) {
        return;
    }
    nearest->count = MIN(nearest->count + 1, (size_t)PAWL__NEAREST_COUNT_MAX);
    for (size_t i = nearest->count - 1; i > at; i--) {
        nearest->best[i] = nearest->best[i - 1];
    }
    nearest->best[at].name = name;
    nearest->best[at].distance = distance;
}

void pawl__nearest_add_hint(const struct pawl__nearest *nearest, struct pawl__buf *buf)
{
    for (size_t i = 0; i < nearest->count; i++) {
        const char *before = i + 1 == nearest->count ? " or " : ", ";

        pawl__buf_add_text(buf, i == 0 ? "; did you mean " : before);
        pawl__buf_add_format(buf, "'%s'", nearest->best[i].name);
    }
    if (nearest->count > 0) {
        pawl__buf_add_char(buf, '?');
    }
}
