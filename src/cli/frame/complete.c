#include "cli/frame/complete.h"

#include <string.h>

#include "base/core/macros.h"

/* Where the words before the last one lead. */
struct cursor {
    struct pawl__cli_path path;
    const struct pawl__cli_flag *awaits; /* the flag whose value comes next */
    size_t operand_count;
    bool flags_ended;
};

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static const struct pawl__cli_flag *flag_of_word(const struct pawl__cli *cli,
                                                 const struct pawl__cli_path *path,
                                                 const char *word)
{
    return word[1] == '-' ? pawl__cli_flag_named(cli, path, pawl_view_of(word + 2))
                          : pawl__cli_flag_lettered(cli, path, word[2] == '\0' ? word[1] : '\0');
}

static void pass_word(struct cursor *cursor, const struct pawl__cli *cli, const char *word)
{
    const struct pawl__cli_command *leaf = pawl__cli_path_leaf(&cursor->path);

    if (cursor->awaits != NULL) {
        cursor->awaits = NULL;
    } else if (!cursor->flags_ended && word[0] == '-' && word[1] != '\0') {
        const struct pawl__cli_flag *flag = flag_of_word(cli, &cursor->path, word);

        cursor->flags_ended = strcmp(word, "--") == 0;
        cursor->awaits = flag != NULL && flag->value != NULL ? flag : NULL;
    } else if (leaf->commands == NULL) {
        cursor->operand_count++;
    } else {
        const struct pawl__cli_command *next = pawl__cli_command_find(leaf, word);

        if (next != NULL && cursor->path.depth < COMMAND_DEPTH_MAX) {
            cursor->path.commands[cursor->path.depth++] = next;
        }
    }
}

static void offer(struct pawl__buf *buf, const char *prefix, const char *word, const char *help)
{
    pawl__buf_add_format(buf, "%s%s\t%s\n", prefix, word, help == NULL ? "" : help);
}

static void offer_commands(struct pawl__buf *buf,
                           const struct pawl__cli_command *in,
                           const char *word)
{
    for (size_t i = 0; in->commands != NULL && in->commands[i] != NULL; i++) {
        const struct pawl__cli_command *command = in->commands[i];

        if (!command->hidden && starts_with(command->name, word)) {
            offer(buf, "", command->name, command->summary);
        }
    }
}

/* Settings are many: they are offered once their first letter is there. */
static void offer_flags(struct pawl__buf *buf,
                        const struct pawl__cli *cli,
                        const struct cursor *cursor,
                        const char *word)
{
    struct pawl__cli_flag_walk walk = { 0 };
    const char *name = starts_with(word, "--") ? word + 2 : "";

    for (const struct pawl__cli_flag *flag = pawl__cli_flag_next(cli, &cursor->path, &walk);
         flag != NULL;
         flag = pawl__cli_flag_next(cli, &cursor->path, &walk)) {
        bool setting = walk.list > cursor->path.depth;

        if (starts_with(flag->name, name) && (!setting || name[0] != '\0')) {
            offer(buf, "--", flag->name, flag->help);
        }
    }
}

static const char *file_rule(enum pawl__cli_value_kind kind)
{
    switch (kind) {
    case VALUE_FILE:
        return ":file\n";
    case VALUE_DIR:
        return ":dir\n";
    case VALUE_TEXT:
    case VALUE_NUMBER:
    case VALUE_COMMAND:
        break;
    }
    return ":none\n";
}

/* `prefix` is what stands before the value in the same word: "--log-level=". */
static void offer_choices(struct pawl__buf *buf,
                          const char *prefix,
                          const char *const *choices,
                          const char *value)
{
    for (size_t i = 0; choices != NULL && choices[i] != NULL; i++) {
        if (starts_with(choices[i], value)) {
            offer(buf, prefix, choices[i], "");
        }
    }
}

/* `pawl help work che`: the operands so far are commands. */
static void offer_help_words(struct pawl__buf *buf,
                             const struct pawl__cli *cli,
                             const char *const *operands,
                             size_t count,
                             const char *word)
{
    const struct pawl__cli_command *command = cli->root;

    for (size_t i = 0; i < count && command != NULL; i++) {
        command = pawl__cli_command_find(command, operands[i]);
    }
    if (command != NULL) {
        offer_commands(buf, command, word);
    }
}

static void complete_value(struct pawl__buf *buf,
                           const struct pawl__cli_flag *flag,
                           const char *word)
{
    offer_choices(buf, "", flag->choices, word);
    pawl__buf_add_text(buf, file_rule(flag->kind));
}

/* --flag=VALUE. */
static bool complete_inline_value(struct pawl__buf *buf,
                                  const struct pawl__cli *cli,
                                  const struct cursor *cursor,
                                  const char *word)
{
    pawl_view rest = pawl_view_of(word);
    pawl_view name;
    AUTO(pawl__buf_done) struct pawl__buf prefix = BUF_INIT(COMPLETE_BYTES_MAX);

    if (!starts_with(word, "--") || !pawl__view_split(&rest, '=', &name)
        || name.len == strlen(word)) {
        return false;
    }
    const struct pawl__cli_flag *flag = pawl__cli_flag_named(
        cli, &cursor->path, (pawl_view){ .data = name.data + 2, .len = name.len - 2 });
    if (flag != NULL && flag->value != NULL) {
        pawl__buf_add_format(&prefix, "--%s=", flag->name);
        offer_choices(
            buf, prefix.data == NULL ? "" : prefix.data, flag->choices, word + name.len + 1);
    }
    pawl__buf_add_text(buf, flag == NULL ? ":none\n" : file_rule(flag->kind));
    return true;
}

static void complete_operand(struct pawl__buf *buf,
                             const struct pawl__cli *cli,
                             const struct cursor *cursor,
                             size_t count,
                             const char *const *words)
{
    const struct pawl__cli_operand *operand =
        pawl__cli_operand_at(pawl__cli_path_leaf(&cursor->path), cursor->operand_count);
    const char *word = words[count - 1];

    if (operand == NULL) {
        pawl__buf_add_text(buf, ":none\n");
        return;
    }
    offer_choices(buf, "", operand->choices, word);
    if (operand->kind == VALUE_COMMAND) {
        size_t before = cursor->operand_count;
        offer_help_words(buf, cli, words + (count - 1 - before), before, word);
    }
    pawl__buf_add_text(buf, file_rule(operand->kind));
}

void pawl__cli_complete(struct pawl__buf *buf,
                        const struct pawl__cli *cli,
                        size_t count,
                        const char *const *words)
{
    struct cursor cursor = { .path = { .commands = { cli->root }, .depth = 1 } };

    if (count == 0) {
        return;
    }
    for (size_t i = 0; i + 1 < count; i++) {
        pass_word(&cursor, cli, words[i]);
    }
    const char *word = words[count - 1];
    if (cursor.awaits != NULL) {
        complete_value(buf, cursor.awaits, word);
    } else if (!cursor.flags_ended && complete_inline_value(buf, cli, &cursor, word)) {
        return;
    } else if (!cursor.flags_ended && word[0] == '-') {
        offer_flags(buf, cli, &cursor, word);
        pawl__buf_add_text(buf, ":none\n");
    } else if (pawl__cli_path_leaf(&cursor.path)->commands != NULL) {
        offer_commands(buf, pawl__cli_path_leaf(&cursor.path), word);
        pawl__buf_add_text(buf, ":none\n");
    } else {
        complete_operand(buf, cli, &cursor, count, words);
    }
}
