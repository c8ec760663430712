#include "cli/text.h"

#include <stdio.h>
#include <string.h>

#include "base/display.h"
#include "base/macros.h"

/* Takes one character; false when it is a control character or no UTF-8, and then *ret_part is one
 * byte, or the C1 control in its two. */
static bool take_printable(pawl_view *text, pawl_view *ret_part)
{
    pawl_view before = *text;
    uint32_t code = 0;
    bool utf8 = pawl__view_take_utf8(text, &code);
    bool taken = utf8 || pawl__view_take(text, 1, ret_part);

    REQUIRE(taken); /* the caller looked whether there is something */
    if (utf8) {
        *ret_part = (pawl_view){ before.data, before.len - text->len };
    }
    /* U+0080 to U+009F are controls that some terminals obey. */
    return utf8 && code >= 0x20 && (code < 0x7F || code >= 0xA0);
}

void pawl__text_add_safe(struct pawl__buf *buf, pawl_view text)
{
    while (text.len > 0) {
        pawl_view part;

        if (take_printable(&text, &part)) {
            pawl__buf_add(buf, part);
            continue;
        }
        for (size_t i = 0; i < part.len; i++) {
            pawl__buf_add_format(buf, "\\x%02X", (unsigned char)part.data[i]);
        }
    }
}

void pawl__text_add_json(struct pawl__buf *buf, pawl_view text)
{
    pawl__buf_add_char(buf, '"');
    while (text.len > 0) {
        pawl_view part;

        if (!take_printable(&text, &part)) {
            unsigned char byte = (unsigned char)part.data[0];
            pawl__buf_add_format(buf, "\\u%04x", byte < 0x80 ? byte : 0xFFFDu);
        } else {
            pawl__buf_add_text(buf, part.data[0] == '"' || part.data[0] == '\\' ? "\\" : "");
            pawl__buf_add(buf, part);
        }
    }
    pawl__buf_add_char(buf, '"');
}

struct pawl__quoted pawl__quote(const char *text)
{
    struct pawl__quoted quoted;
    struct pawl__buf buf = BUF_OVER(quoted.text);

    quoted.text[0] = '\0';
    pawl__display_add_quoted(&buf, pawl_view_of(text));
    if (buf.broken) { /* a tower of combining marks */
        snprintf(quoted.text, sizeof(quoted.text), "'...'");
    }
    return quoted;
}

void pawl__text_pad(struct pawl__buf *buf, size_t from_column, size_t column)
{
    pawl__display_add_spaces(buf, column > from_column ? column - from_column : 0);
}

static void wrap_line(struct pawl__buf *buf, pawl_view line, struct pawl__wrap wrap)
{
    size_t column = wrap.column;
    bool fresh = true; /* no word on this line yet */
    pawl_view word;

    while (pawl__view_split(&line, ' ', &word)) {
        size_t columns = pawl__display_width(word);

        if (!fresh && column + 1 + columns > wrap.width) {
            pawl__buf_add_char(buf, '\n');
            pawl__text_pad(buf, 0, wrap.indent);
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

void pawl__text_wrap(struct pawl__buf *buf, const char *text, struct pawl__wrap wrap)
{
    pawl_view rest = pawl_view_of(text);
    pawl_view line;

    while (pawl__view_split(&rest, '\n', &line)) {
        wrap_line(buf, line, wrap);
        if (rest.len > 0 && rest.data[0] != '\n') {
            pawl__text_pad(buf, 0, wrap.indent);
        }
        wrap.column = wrap.indent;
    }
}
