#include "cli/frame/text.h"

#include <stdio.h>

#include "base/terminal/display.h"

struct pawl__cli_quoted pawl__cli_quote(const char *text)
{
    struct pawl__cli_quoted quoted;
    struct pawl__buf buf = BUF_OVER(quoted.text);

    quoted.text[0] = '\0';
    pawl__display_add_quoted(&buf, pawl_view_of(text));
    if (buf.broken) { /* a tower of combining marks */
        snprintf(quoted.text, sizeof(quoted.text), "'...'");
    }
    return quoted;
}

void pawl__cli_text_pad(struct pawl__buf *buf, size_t from_column, size_t column)
{
    pawl__display_add_spaces(buf, column > from_column ? column - from_column : 0);
}

static void wrap_line(struct pawl__buf *buf, pawl_view line, struct pawl__cli_wrap wrap)
{
    size_t column = wrap.column;
    bool fresh = true; /* no word on this line yet */
    pawl_view word;

    while (pawl__view_split(&line, ' ', &word)) {
        size_t columns = pawl__display_width(word);

        if (!fresh && column + 1 + columns > wrap.width) {
            pawl__buf_add_char(buf, '\n');
            pawl__cli_text_pad(buf, 0, wrap.indent);
            column = wrap.indent;
            fresh = true;
        }
        if (!fresh) {
            pawl__buf_add_char(buf, ' ');
            column++;
        }
        pawl__buf_add(buf, word);
        column += columns;
        fresh = false;
    }
    pawl__buf_add_char(buf, '\n');
}

void pawl__cli_text_wrap(struct pawl__buf *buf, const char *text, struct pawl__cli_wrap wrap)
{
    pawl_view rest = pawl_view_of(text);
    pawl_view line;

    while (pawl__view_split(&rest, '\n', &line)) {
        wrap_line(buf, line, wrap);
        if (rest.len > 0 && rest.data[0] != '\n') {
            pawl__cli_text_pad(buf, 0, wrap.indent);
        }
        wrap.column = wrap.indent;
    }
}
