/* Text for people: harmless on a terminal, wrapped to a width. */
#ifndef PAWL_CLI_TEXT_H
#define PAWL_CLI_TEXT_H

#include <pawl/pawl.h>

#include "base/buf.h"

/* Adds a whole message with control characters and bytes that are no UTF-8 as \xNN, so that nothing
 * in it can move a cursor or hide a line. Names in it were quoted before (pawl__display_add), so
 * that a backslash stays what it is. */
void pawl__text_add_safe(struct pawl__buf *buf, pawl_view text);

/* Adds `text` as a JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD. */
void pawl__text_add_json(struct pawl__buf *buf, pawl_view text);

/* An argument as a message shows it: safe, in quotes, a long one cut. The text lives to the end of
 * the expression it is made in: pawl__fail(..., "no file %s", pawl__quote(name).text). */
#define QUOTED_SIZE 300
struct pawl__quoted {
    char text[QUOTED_SIZE];
};
struct pawl__quoted pawl__quote(const char *text);

/* Adds `text` wrapped at spaces so that no line is longer than `width` columns (a longer word
 * stands alone). Lines after the first are indented by `indent` columns; `column` is where the
 * first one starts. "\n" in the text starts a new line. Ends with a newline. */
struct pawl__wrap {
    size_t width;
    size_t indent;
    size_t column;
};
void pawl__text_wrap(struct pawl__buf *buf, const char *text, struct pawl__wrap wrap);

/* Adds spaces up to `column`, given where the line is now. */
void pawl__text_pad(struct pawl__buf *buf, size_t from_column, size_t column);

#endif
