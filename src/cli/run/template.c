#include "cli/run/template.h"

#include <string.h>

#include "base/core/error.h"

/* How a shell would read the next byte of the command. */
enum shell_state {
    WORDS,
    SINGLE,
    DOUBLE,
    BACKQUOTES,
    COMMENT,
    HERE_DOCUMENT,
    DOLLAR_QUOTE,
    ARITHMETIC,
    OLD_ARITHMETIC,
};

static const char *const refusals[] = {
    [SINGLE] = "inside of quotes",
    [DOUBLE] = "inside of quotes",
    [BACKQUOTES] = "inside of backquotes; $(...) may hold it",
    [COMMENT] = "in a comment",
    [HERE_DOCUMENT] = "after a here-document",
    [DOLLAR_QUOTE] = "after $'...', which not every shell has",
    [ARITHMETIC] = "in or after ((...)), where a shell may run what it holds",
    [OLD_ARITHMETIC] = "in or after $[...], where a shell may run what it holds",
};

static bool starts_with(pawl_view text, pawl_view start)
{
    pawl_view front;

    return start.len > 0 && pawl__view_take(&text, start.len, &front)
           && pawl__view_equal(front, start);
}

static enum shell_state after_word_char(pawl_view rest, bool word_starts)
{
    static const struct {
        pawl_view start;
        enum shell_state state;
    } openings[] = { { { "$'", 2 }, DOLLAR_QUOTE },
                     { { "((", 2 }, ARITHMETIC },
                     { { "$[", 2 }, OLD_ARITHMETIC },
                     { { "<<", 2 }, HERE_DOCUMENT } };

    for (size_t i = 0; i < COUNT_OF(openings); i++) {
        if (starts_with(rest, openings[i].start)) {
            return openings[i].state;
        }
    }
    switch (rest.data[0]) {
    case '\'':
        return SINGLE;
    case '"':
        return DOUBLE;
    case '`':
        return BACKQUOTES;
    case '#':
        return word_starts ? COMMENT : WORDS;
    default:
        return WORDS;
    }
}

/* The state after the first character of `rest`, which is not escaped. */
static enum shell_state next_state(enum shell_state state, pawl_view rest, bool word_starts)
{
    char c = rest.data[0];

    switch (state) {
    case WORDS:
        return after_word_char(rest, word_starts);
    case SINGLE:
        return c == '\'' ? WORDS : SINGLE;
    case DOUBLE:
        return c == '"' ? WORDS : DOUBLE;
    case BACKQUOTES:
        return c == '`' ? WORDS : BACKQUOTES;
    case COMMENT:
        return c == '\n' ? WORDS : COMMENT;
    case HERE_DOCUMENT:
    case DOLLAR_QUOTE:
    case ARITHMETIC:
    case OLD_ARITHMETIC:
        return state; /* the rest is not parsed */
    }
    return state;
}

static bool is_escape(enum shell_state state, char c)
{
    return c == '\\' && (state == WORDS || state == DOUBLE || state == BACKQUOTES);
}

static pawl_status refuse(pawl_view mark, enum shell_state state, pawl_error *reterr)
{
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "'--exec': %.*s stands %s; write it bare, use \"$PAWL_INPUT\", or choose "
                      "another mark with --replace",
                      VIEW_ARGS(mark),
                      refusals[state]);
}

pawl_status pawl__cli_template_check(pawl_view command, pawl_view mark, pawl_error *reterr)
{
    enum shell_state state = WORDS;
    bool word_starts = true;
    pawl_view taken;

    if (command.len == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "'--exec' is empty");
    }
    if (command.len >= RUNNER_TEXT_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'--exec' has %zu bytes, the limit is %d",
                          command.len,
                          RUNNER_TEXT_MAX - 1);
    }
    while (command.len > 0) {
        char c = command.data[0];
        size_t step = 1;
        if (starts_with(command, mark)) {
            if (state != WORDS) {
                return refuse(mark, state, reterr);
            }
            step = mark.len;
        } else if (is_escape(state, c)) {
            if (starts_with((pawl_view){ command.data + 1, command.len - 1 }, mark)) {
                return pawl__fail(
                    reterr, PAWL_INVALID, "'--exec': %.*s follows a backslash", VIEW_ARGS(mark));
            }
            step = MIN(2, command.len);
        } else {
            state = next_state(state, command, word_starts);
        }
        word_starts = strchr(" \t\n;&|()", c) != NULL;
        if (!pawl__view_take(&command, step, &taken)) {
            break;
        }
    }
    return PAWL_OK;
}

void pawl__cli_shell_quote(struct pawl__buf *buf, pawl_view text)
{
    pawl_view part;

    pawl__buf_add_char(buf, '\'');
    while (text.len > 0) {
        bool quote_follows = memchr(text.data, '\'', text.len) != NULL;
        if (!pawl__view_split(&text, '\'', &part)) {
            break;
        }
        pawl__buf_add(buf, part);
        if (quote_follows) {
            pawl__buf_add_text(buf, "'\\''");
        }
    }
    pawl__buf_add_char(buf, '\'');
}

void pawl__cli_template_fill(struct pawl__buf *buf,
                             pawl_view command,
                             pawl_view mark,
                             pawl_view input)
{
    pawl_view taken;

    while (command.len > 0) {
        if (starts_with(command, mark)) {
            pawl__cli_shell_quote(buf, input);
            if (!pawl__view_take(&command, mark.len, &taken)) {
                return;
            }
        } else if (pawl__view_take(&command, 1, &taken)) {
            pawl__buf_add(buf, taken);
        }
    }
}
