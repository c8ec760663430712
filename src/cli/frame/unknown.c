#include "cli/frame/unknown.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/nearest.h"
#include "cli/frame/text.h"

#define HINT_SIZE 300

pawl_status pawl__cli_unknown_command(const struct pawl__cli_path *path,
                                      const char *word,
                                      pawl_error *reterr)
{
    const struct pawl__cli_command *leaf = pawl__cli_path_leaf(path);
    struct pawl__nearest nearest = pawl__nearest_to(pawl_view_of(word));
    char hint_text[HINT_SIZE] = "";
    struct pawl__buf hint = BUF_OVER(hint_text);
    char text[COMMAND_PATH_SIZE];

    for (size_t i = 0; leaf->commands != NULL && leaf->commands[i] != NULL; i++) {
        if (!leaf->commands[i]->hidden) {
            pawl__nearest_offer(&nearest, leaf->commands[i]->name);
        }
    }
    pawl__nearest_add_hint(&nearest, &hint);
    if (leaf->commands == NULL) {
        pawl__buf_add_text(&hint, ", which has no commands");
    } else if (hint.len == 0) {
        pawl__buf_add_format(
            &hint, "; '%s --help' lists them all", pawl__cli_path_text(path, text));
    }
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "no command %s in '%s'%s",
                      pawl__cli_quote(word).text,
                      pawl__cli_path_text(path, text),
                      hint_text);
}

static bool has_flag(const struct pawl__cli_command *command, pawl_view name)
{
    for (size_t i = 0; command->flags != NULL && command->flags[i].name != NULL; i++) {
        if (pawl__view_is(name, command->flags[i].name)) {
            return true;
        }
    }
    return false;
}

/* Extends `path` to the first command below its leaf that has a flag called `name`. The tree is
 * at most COMMAND_DEPTH_MAX deep. */
static bool find_owner(struct pawl__cli_path *path, pawl_view name)
{
    const struct pawl__cli_command *leaf = pawl__cli_path_leaf(path);

    if (leaf->hidden || path->depth == COMMAND_DEPTH_MAX) {
        return false;
    }
    for (size_t i = 0; leaf->commands != NULL && leaf->commands[i] != NULL; i++) {
        path->commands[path->depth++] = leaf->commands[i];
        if (has_flag(leaf->commands[i], name) || find_owner(path, name)) {
            return true;
        }
        path->depth--;
    }
    return false;
}

static void add_flag_hint(const struct pawl__cli *cli,
                          const struct pawl__cli_path *path,
                          pawl_view name,
                          struct pawl__buf *hint)
{
    struct pawl__nearest nearest = pawl__nearest_to(name);
    struct pawl__cli_flag_walk walk = { 0 };
    char text[COMMAND_PATH_SIZE];

    for (const struct pawl__cli_flag *flag = pawl__cli_flag_next(cli, path, &walk); flag != NULL;
         flag = pawl__cli_flag_next(cli, path, &walk)) {
        pawl__nearest_offer(&nearest, flag->name);
    }
    for (size_t i = 0; i < nearest.count; i++) {
        const char *before = i == 0 ? "; did you mean " : i + 1 < nearest.count ? ", " : " or ";

        pawl__buf_add_format(hint, "%s'--%s'", before, nearest.best[i].name);
    }
    pawl__buf_add_format(hint,
                         "%s '%s --help' lists them all",
                         nearest.count > 0 ? "?" : ";",
                         pawl__cli_path_text(path, text));
}

pawl_status pawl__cli_unknown_flag(const struct pawl__cli *cli,
                                   const struct pawl__cli_path *path,
                                   pawl_view name,
                                   pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf word = BUF_INIT(name.len + sizeof("--"));
    char hint_text[HINT_SIZE] = "";
    struct pawl__buf hint = BUF_OVER(hint_text);
    struct pawl__cli_path owner = { .commands = { cli->root }, .depth = 1 };
    char text[COMMAND_PATH_SIZE];

    pawl__buf_add_text(&word, "--");
    pawl__buf_add(&word, name);
    if (find_owner(&owner, name)) {
        pawl__buf_add_format(&hint, "; it is a flag of '%s'", pawl__cli_path_text(&owner, text));
    } else {
        add_flag_hint(cli, path, name, &hint);
    }
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "no flag %s in '%s'%s",
                      pawl__cli_quote(word.data == NULL ? "--" : word.data).text,
                      pawl__cli_path_text(path, text),
                      hint_text);
}

pawl_status pawl__cli_unknown_letter(const struct pawl__cli_path *path,
                                     const char *letter,
                                     const char *argument,
                                     pawl_error *reterr)
{
    char text[COMMAND_PATH_SIZE];
    char word[] = { '-', *letter, '\0' };
    bool bundled = argument[2] != '\0';

    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "no flag %s%s%s in '%s'%s",
                      pawl__cli_quote(word).text,
                      bundled ? " of " : "",
                      bundled ? pawl__cli_quote(argument).text : "",
                      pawl__cli_path_text(path, text),
                      bundled ? "; a long flag has two dashes" : "");
}
