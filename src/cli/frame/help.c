#include "cli/frame/help.h"

#include <stdio.h>
#include <string.h>

#include "base/core/macros.h"
#include "cli/frame/text.h"

#define NAME_COLUMN 2
#define TEXT_COLUMN_MAX 30 /* a longer name gets a line of its own */

void pawl__cli_help_usage(struct pawl__buf *buf, const struct pawl__cli_path *path)
{
    const struct pawl__cli_command *leaf = pawl__cli_path_leaf(path);
    char text[COMMAND_PATH_SIZE];

    pawl__buf_add_text(buf, pawl__cli_path_text(path, text));
    if (leaf->commands != NULL) {
        pawl__buf_add_text(buf, " COMMAND");
    }
    pawl__buf_add_text(buf, " [flags]");
    for (const struct pawl__cli_operand *operand = leaf->operands;
         operand != NULL && operand->name != NULL;
         operand++) {
        pawl__buf_add_format(buf,
                             operand->optional ? " [%s%s]" : " %s%s",
                             operand->name,
                             operand->repeats ? "..." : "");
    }
}

/* "-j, --jobs N" */
static void add_flag(struct pawl__buf *buf, const struct pawl__cli_flag *flag)
{
    if (flag->letter != '\0') {
        pawl__buf_add_format(buf, "-%c, ", flag->letter);
    }
    pawl__buf_add_format(buf, "--%s", flag->name);
    if (flag->value != NULL) {
        pawl__buf_add_format(buf, " %s", flag->value);
    }
}

/* "One of a, b or c." */
static void add_choices(struct pawl__buf *buf, const char *const *choices)
{
    if (choices == NULL || choices[0] == NULL) {
        return;
    }
    pawl__buf_add_format(buf, " %s%s", choices[1] == NULL ? "Only " : "One of ", choices[0]);
    for (size_t i = 1; choices[i] != NULL; i++) {
        pawl__buf_add_format(buf, "%s%s", choices[i + 1] == NULL ? " or " : ", ", choices[i]);
    }
    pawl__buf_add_char(buf, '.');
}

static void add_bounds(struct pawl__buf *buf, int64_t min, int64_t max)
{
    if (min != 0 || max != 0) {
        pawl__buf_add_format(buf, " From %lld to %lld.", (long long)min, (long long)max);
    }
}

void pawl__cli_help_flag_notes(struct pawl__buf *buf, const struct pawl__cli_flag *flag)
{
    add_choices(buf, flag->choices);
    add_bounds(buf, flag->min, flag->max);
    pawl__buf_add_text(buf, flag->required ? " Required." : "");
    pawl__buf_add_text(buf, flag->repeats ? " May be given several times." : "");
    if (flag->fallback != NULL) {
        pawl__buf_add_format(buf, " Default: %s.", flag->fallback);
    }
}

void pawl__cli_help_operand_notes(struct pawl__buf *buf, const struct pawl__cli_operand *operand)
{
    add_choices(buf, operand->choices);
    add_bounds(buf, operand->min, operand->max);
}

/* A list of names with texts beside them: collected first, because the widest name decides where
 * the texts start. */
struct list {
    struct pawl__buf *buf;
    size_t width;
    size_t text_column;
    bool measuring;
};

static struct list list_start(struct pawl__buf *buf, size_t width)
{
    return (struct list){ .buf = buf, .width = width, .measuring = true };
}

static void list_row(struct list *list, const char *name, const char *text)
{
    size_t len = strlen(name);

    if (list->measuring) {
        size_t column = NAME_COLUMN + len + 2;
        list->text_column = MAX(list->text_column, MIN(column, (size_t)TEXT_COLUMN_MAX));
        return;
    }
    pawl__cli_text_pad(list->buf, 0, NAME_COLUMN);
    pawl__buf_add_text(list->buf, name);
    if (NAME_COLUMN + len + 2 > list->text_column) {
        pawl__buf_add_char(list->buf, '\n');
        pawl__cli_text_pad(list->buf, 0, list->text_column);
    } else {
        pawl__cli_text_pad(list->buf, NAME_COLUMN + len, list->text_column);
    }
    pawl__cli_text_wrap(
        list->buf,
        text,
        (struct pawl__cli_wrap){ list->width, list->text_column, list->text_column });
}

static void list_commands(struct list *list, const struct pawl__cli_command *command)
{
    for (size_t i = 0; command->commands[i] != NULL; i++) {
        if (!command->commands[i]->hidden) {
            list_row(list, command->commands[i]->name, command->commands[i]->summary);
        }
    }
}

static void list_flags(struct list *list, const struct pawl__cli_flag *flags)
{
    AUTO(pawl__buf_done) struct pawl__buf name = BUF_INIT(HELP_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(HELP_BYTES_MAX);

    for (; flags->name != NULL; flags++) {
        pawl__buf_clear(&name);
        pawl__buf_clear(&text);
        add_flag(&name, flags);
        pawl__buf_add_text(&text, flags->help);
        pawl__cli_help_flag_notes(&text, flags);
        if (!name.broken && !text.broken) {
            list_row(list, name.data, text.data);
        } else {
            list->buf->broken = true; /* out of memory; the caller hears of it */
        }
    }
}

static void list_operands(struct list *list, const struct pawl__cli_operand *operands)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(HELP_BYTES_MAX);

    for (; operands->name != NULL; operands++) {
        pawl__buf_clear(&text);
        pawl__buf_add_text(&text, operands->help);
        pawl__cli_help_operand_notes(&text, operands);
        if (!text.broken) {
            list_row(list, operands->name, text.data);
        } else {
            list->buf->broken = true;
        }
    }
}

static void add_commands(struct pawl__buf *buf,
                         const struct pawl__cli_command *command,
                         size_t width)
{
    struct list list = list_start(buf, width);

    pawl__buf_add_text(buf, "\nCommands:\n");
    list_commands(&list, command);
    list.measuring = false;
    list_commands(&list, command);
}

static void add_flags(struct pawl__buf *buf,
                      const char *title,
                      const struct pawl__cli_flag *flags,
                      size_t width)
{
    struct list list = list_start(buf, width);

    if (flags == NULL || flags->name == NULL) {
        return;
    }
    pawl__buf_add_format(buf, "\n%s:\n", title);
    list_flags(&list, flags);
    list.measuring = false;
    list_flags(&list, flags);
}

static void add_operands(struct pawl__buf *buf,
                         const struct pawl__cli_operand *operands,
                         size_t width)
{
    struct list list = list_start(buf, width);

    if (operands == NULL || operands->name == NULL) {
        return;
    }
    pawl__buf_add_text(buf, "\nArguments:\n");
    list_operands(&list, operands);
    list.measuring = false;
    list_operands(&list, operands);
}

static void add_examples(struct pawl__buf *buf,
                         const struct pawl__cli_example *examples,
                         size_t width)
{
    if (examples == NULL || examples->line == NULL) {
        return;
    }
    pawl__buf_add_text(buf, "\nExamples:\n");
    for (; examples->line != NULL; examples++) {
        pawl__buf_add_text(buf, "  # ");
        pawl__cli_text_wrap(buf, examples->says, (struct pawl__cli_wrap){ width, 4, 4 });
        pawl__buf_add_format(buf, "  %s\n", examples->line);
    }
}

static size_t readable_width(size_t width)
{
    return MAX((size_t)HELP_WIDTH_MIN, MIN(width, (size_t)HELP_WIDTH_MAX));
}

static void add_usage(struct pawl__buf *buf, const struct pawl__cli_path *path)
{
    pawl__buf_add_text(buf, "Usage: ");
    pawl__cli_help_usage(buf, path);
    pawl__buf_add_char(buf, '\n');
}

/* The leaf's own flags first, then what each group around it gives to all its commands. */
static void add_flags_of_path(struct pawl__buf *buf,
                              const struct pawl__cli_path *path,
                              size_t width)
{
    for (size_t depth = path->depth; depth > 0; depth--) {
        struct pawl__cli_path group = *path;
        char text[COMMAND_PATH_SIZE];
        char title[COMMAND_PATH_SIZE + 16];

        group.depth = depth;
        snprintf(title, sizeof(title), "Flags of '%s'", pawl__cli_path_text(&group, text));
        add_flags(
            buf, depth == path->depth ? "Flags" : title, path->commands[depth - 1]->flags, width);
    }
}

void pawl__cli_help_full(struct pawl__buf *buf,
                         const struct pawl__cli *cli,
                         const struct pawl__cli_path *path,
                         size_t width)
{
    const struct pawl__cli_command *leaf = pawl__cli_path_leaf(path);
    const char *prose = leaf->description != NULL ? leaf->description : leaf->summary;

    width = readable_width(width);
    add_usage(buf, path);
    pawl__buf_add_char(buf, '\n');
    pawl__cli_text_wrap(buf, prose, (struct pawl__cli_wrap){ .width = width });
    if (leaf->commands != NULL) {
        add_commands(buf, leaf, width);
    }
    add_operands(buf, leaf->operands, width);
    add_flags_of_path(buf, path, width);
    add_flags(buf, "Common flags", cli->common, width);
    add_examples(buf, leaf->examples, width);
}

void pawl__cli_help_short(struct pawl__buf *buf, const struct pawl__cli_path *path, size_t width)
{
    char text[COMMAND_PATH_SIZE];

    width = readable_width(width);
    add_usage(buf, path);
    add_commands(buf, pawl__cli_path_leaf(path), width);
    pawl__buf_add_format(buf, "\n'%s --help' says more.\n", pawl__cli_path_text(path, text));
}

void pawl__cli_help_settings(struct pawl__buf *buf, const struct pawl__cli *cli, size_t width)
{
    width = readable_width(width);
    pawl__cli_text_wrap(
        buf,
        "Every setting is a key of pawl.yaml, a variable of the environment and a flag "
        "that any command takes. A flag wins over the environment, the environment "
        "over the file. 'pawl config show' prints what is in force and where it came "
        "from.",
        (struct pawl__cli_wrap){ .width = width });
    add_flags(buf, "Settings", cli->settings, width);
}
