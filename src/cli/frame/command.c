#include "cli/frame/command.h"

#include <stdio.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/macros.h"

const struct pawl__cli_command *pawl__cli_path_leaf(const struct pawl__cli_path *path)
{
    REQUIRE(path->depth > 0);
    return path->commands[path->depth - 1];
}

const char *pawl__cli_path_text(const struct pawl__cli_path *path, char ret_text[COMMAND_PATH_SIZE])
{
    size_t len = 0;

    ret_text[0] = '\0';
    for (size_t i = 0; i < path->depth && len < COMMAND_PATH_SIZE; i++) {
        int added = snprintf(ret_text + len,
                             COMMAND_PATH_SIZE - len,
                             i == 0 ? "%s" : " %s",
                             path->commands[i]->name);
        len += added > 0 ? (size_t)added : 0;
    }
    return ret_text;
}

const struct pawl__cli_command *pawl__cli_command_find(const struct pawl__cli_command *command,
                                                       const char *name)
{
    for (size_t i = 0; command->commands != NULL && command->commands[i] != NULL; i++) {
        if (strcmp(command->commands[i]->name, name) == 0) {
            return command->commands[i];
        }
    }
    return NULL;
}

/* List 0 belongs to the leaf, `depth` is the common one, depth + 1 the settings. */
static const struct pawl__cli_flag *flag_list(const struct pawl__cli *cli,
                                              const struct pawl__cli_path *path,
                                              size_t list)
{
    if (list < path->depth) {
        return path->commands[path->depth - 1 - list]->flags;
    }
    return list == path->depth ? cli->common : cli->settings;
}

/* A setting that is shown among the common flags is not met a second time. */
static bool is_common(const struct pawl__cli *cli, const struct pawl__cli_flag *flag)
{
    const struct pawl__cli_flag *common = cli->common;

    while (common != NULL && common->name != NULL && strcmp(common->name, flag->name) != 0) {
        common++;
    }
    return common != NULL && common->name != NULL;
}

const struct pawl__cli_flag *pawl__cli_flag_next(const struct pawl__cli *cli,
                                                 const struct pawl__cli_path *path,
                                                 struct pawl__cli_flag_walk *walk)
{
    for (; walk->list < path->depth + 2; walk->list++, walk->index = 0) {
        const struct pawl__cli_flag *flags = flag_list(cli, path, walk->list);

        while (flags != NULL && flags[walk->index].name != NULL) {
            const struct pawl__cli_flag *flag = &flags[walk->index++];

            if (walk->list <= path->depth || !is_common(cli, flag)) {
                return flag;
            }
        }
    }
    return NULL;
}

const struct pawl__cli_flag *pawl__cli_flag_named(const struct pawl__cli *cli,
                                                  const struct pawl__cli_path *path,
                                                  pawl_view name)
{
    struct pawl__cli_flag_walk walk = { 0 };
    const struct pawl__cli_flag *flag = pawl__cli_flag_next(cli, path, &walk);

    while (flag != NULL && !pawl__view_is(name, flag->name)) {
        flag = pawl__cli_flag_next(cli, path, &walk);
    }
    return flag;
}

const struct pawl__cli_flag *pawl__cli_flag_lettered(const struct pawl__cli *cli,
                                                     const struct pawl__cli_path *path,
                                                     char letter)
{
    struct pawl__cli_flag_walk walk = { 0 };
    const struct pawl__cli_flag *flag =
        letter == '\0' ? NULL : pawl__cli_flag_next(cli, path, &walk);

    while (flag != NULL && flag->letter != letter) {
        flag = pawl__cli_flag_next(cli, path, &walk);
    }
    return flag;
}

const struct pawl__cli_operand *pawl__cli_operand_at(const struct pawl__cli_command *command,
                                                     size_t index)
{
    const struct pawl__cli_operand *operand = command->operands;

    if (operand == NULL || operand->name == NULL) {
        return NULL;
    }
    for (; index > 0 && !operand->repeats; index--) {
        operand++;
        if (operand->name == NULL) {
            return NULL;
        }
    }
    return operand;
}
