/* Text for people: quoted for a message, wrapped to a width. base/terminal/display.h makes it harmless. */
#ifndef PAWL_CLI_FRAME_TEXT_H
#define PAWL_CLI_FRAME_TEXT_H

#include <pawl/pawl.h>

#include "base/core/buf.h"

/* An argument as a message shows it: safe, in quotes, a long one cut. The text lives to the end of
 * the expression it is made in: pawl__fail(..., "no file %s", pawl__cli_quote(name).text). */
#define QUOTED_SIZE 300
struct pawl__cli_quoted {
    char text[QUOTED_SIZE];
};
struct pawl__cli_quoted pawl__cli_quote(const char *text);

/* Adds `text` wrapped at spaces so that no line is longer than `width` columns (a longer word
 * stands alone). Lines after the first are indented by `indent` columns; `column` is where the
 * first one starts. "\n" in the text starts a new line. Ends with a newline. */
struct pawl__cli_wrap {
    size_t width;
    size_t indent;
    size_t column;
};
void pawl__cli_text_wrap(struct pawl__buf *buf, const char *text, struct pawl__cli_wrap wrap);

/* Adds spaces up to `column`, given where the line is now. */
void pawl__cli_text_pad(struct pawl__buf *buf, size_t from_column, size_t column);

#endif
