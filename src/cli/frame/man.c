#include "cli/frame/man.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/frame/help.h"

/* Text of a line: backslashes and dashes mean something to roff, and so do a dot or a quote at the
 * start of a line, before which a zero-width character stands. */
static void add_roff(struct pawl__buf *buf, const char *text)
{
    if (text[0] == '.' || text[0] == '\'') {
        pawl__buf_add_text(buf, "\\&");
    }
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '\\':
            pawl__buf_add_text(buf, "\\e");
            break;
        case '-':
            pawl__buf_add_text(buf, "\\-");
            break;
        case '\'':
            pawl__buf_add_text(buf, "\\(aq");
            break;
        default:
            pawl__buf_add_char(buf, *text);
        }
    }
}

/* Prose: "\n\n" starts a paragraph, a single "\n" a line. */
static void add_prose(struct pawl__buf *buf, const char *text)
{
    pawl_view rest = pawl_view_of(text);
    pawl_view line;

    while (pawl__view_split(&rest, '\n', &line)) {
        char *copy = pawl__view_dup(line);

        if (copy == NULL) {
            buf->broken = true;
            return;
        }
        if (line.len == 0) {
            pawl__buf_add_text(buf, ".PP");
        } else {
            add_roff(buf, copy);
        }
        pawl__buf_add_char(buf, '\n');
        free(copy);
    }
}

static void add_flags(struct pawl__buf *buf, const struct pawl__cli_flag *flags)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(MAN_BYTES_MAX);

    for (; flags != NULL && flags->name != NULL; flags++) {
        pawl__buf_clear(&text);
        pawl__buf_add_text(&text, flags->help);
        pawl__cli_help_flag_notes(&text, flags);
        pawl__buf_add_text(buf, ".TP\n");
        if (flags->letter != '\0') {
            pawl__buf_add_format(buf, "\\fB\\-%c\\fR, ", flags->letter);
        }
        pawl__buf_add_text(buf, "\\fB\\-\\-");
        add_roff(buf, flags->name);
        pawl__buf_add_text(buf, "\\fR");
        if (flags->value != NULL) {
            pawl__buf_add_text(buf, " \\fI");
            add_roff(buf, flags->value);
            pawl__buf_add_text(buf, "\\fR");
        }
        pawl__buf_add_char(buf, '\n');
        add_prose(buf, text.data == NULL ? "" : text.data);
        buf->broken = buf->broken || text.broken;
    }
}

static void add_operands(struct pawl__buf *buf, const struct pawl__cli_operand *operands)
{
    for (; operands != NULL && operands->name != NULL; operands++) {
        pawl__buf_add_text(buf, ".TP\n\\fI");
        add_roff(buf, operands->name);
        pawl__buf_add_text(buf, "\\fR\n");
        add_roff(buf, operands->help);
        pawl__cli_help_operand_notes(buf, operands);
        pawl__buf_add_char(buf, '\n');
    }
}

static void add_examples(struct pawl__buf *buf, const struct pawl__cli_example *examples)
{
    for (size_t i = 0; examples != NULL && examples->line != NULL; examples++, i++) {
        pawl__buf_add_text(buf, i > 0 ? ".PP\n" : "");
        add_roff(buf, examples->says);
        pawl__buf_add_text(buf, ":\n.PP\n.RS 4\n.nf\n");
        add_roff(buf, examples->line);
        pawl__buf_add_text(buf, "\n.fi\n.RE\n");
    }
}

static void add_usage(struct pawl__buf *buf, const struct pawl__cli_path *path)
{
    AUTO(pawl__buf_done) struct pawl__buf usage = BUF_INIT(MAN_BYTES_MAX);

    pawl__cli_help_usage(&usage, path);
    add_roff(buf, usage.data == NULL ? "" : usage.data);
    pawl__buf_add_char(buf, '\n');
    buf->broken = buf->broken || usage.broken;
}

static bool has_examples(const struct pawl__cli_path *path)
{
    const struct pawl__cli_command *leaf = pawl__cli_path_leaf(path);

    return leaf->examples != NULL && leaf->examples->line != NULL;
}

/* A command below the page's own: a subsection with everything in it, then those below. */
static void add_below(struct pawl__buf *buf, struct pawl__cli_path *path)
{
    const struct pawl__cli_command *leaf = pawl__cli_path_leaf(path);

    for (size_t i = 0; leaf->commands != NULL && leaf->commands[i] != NULL; i++) {
        const struct pawl__cli_command *command = leaf->commands[i];

        if (command->hidden) {
            continue;
        }
        path->commands[path->depth++] = command;
        pawl__buf_add_text(buf, ".SS ");
        add_usage(buf, path);
        add_prose(buf, command->description != NULL ? command->description : command->summary);
        add_operands(buf, command->operands);
        add_flags(buf, command->flags);
        if (has_examples(path)) {
            pawl__buf_add_text(buf, ".PP\n");
            add_examples(buf, command->examples);
        }
        if (path->depth < COMMAND_DEPTH_MAX) {
            add_below(buf, path);
        }
        path->depth--;
    }
}

static void add_exit_codes(struct pawl__buf *buf)
{
    static const char *const codes[] = {
        "done",
        "failed",
        "bad usage or input",
        "nothing found",
        "conflict, or a lease was lost",
        "busy, unavailable, no space, or could not check",
        "checked and found wrong: loss, duplicate, damage",
    };

    pawl__buf_add_text(buf, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        pawl__buf_add_format(buf, ".TP\n\\fB%zu\\fR\n%s\n", i, codes[i]);
    }
}

/* pawl.1 lists the other pages; each of those points back. */
static void add_see_also(struct pawl__buf *buf,
                         const struct pawl__cli *cli,
                         const struct pawl__cli_command *command)
{
    pawl__buf_add_text(buf, ".SH SEE ALSO\n");
    if (command != cli->root) {
        pawl__buf_add_format(buf, ".BR %s (1)\n", cli->root->name);
        return;
    }
    for (size_t i = 0, shown = 0; cli->root->commands[i] != NULL; i++) {
        if (!cli->root->commands[i]->hidden) {
            pawl__buf_add_text(buf, shown++ > 0 ? " ,\n" : "");
            pawl__buf_add_format(
                buf, ".BR %s\\-%s (1)", cli->root->name, cli->root->commands[i]->name);
        }
    }
    pawl__buf_add_char(buf, '\n');
}

static void add_root_parts(struct pawl__buf *buf, const struct pawl__cli *cli)
{
    pawl__buf_add_text(buf, ".SH COMMANDS\n");
    for (size_t i = 0; cli->root->commands[i] != NULL; i++) {
        const struct pawl__cli_command *command = cli->root->commands[i];

        if (!command->hidden) {
            pawl__buf_add_format(buf, ".TP\n\\fB%s\\fR\n", command->name);
            add_prose(buf, command->summary);
        }
    }
    pawl__buf_add_text(buf, ".SH COMMON FLAGS\nEvery command takes them.\n");
    add_flags(buf, cli->common);
    if (cli->settings != NULL && cli->settings->name != NULL) {
        pawl__buf_add_text(buf,
                           ".SH SETTINGS\nEvery setting is a key of pawl.yaml, a variable of the "
                           "environment and a flag that any command takes.\n");
        add_flags(buf, cli->settings);
    }
}

static void add_own_parts(struct pawl__buf *buf, struct pawl__cli_path *path)
{
    const struct pawl__cli_command *leaf = pawl__cli_path_leaf(path);

    if (leaf->commands != NULL) {
        pawl__buf_add_text(buf, ".SH COMMANDS\n");
        add_below(buf, path);
    }
    if (leaf->operands != NULL || leaf->flags != NULL) {
        pawl__buf_add_text(buf, ".SH OPTIONS\n");
        add_operands(buf, leaf->operands);
        add_flags(buf, leaf->flags);
    }
}

void pawl__cli_man_page(struct pawl__buf *buf,
                        const struct pawl__cli *cli,
                        const struct pawl__cli_command *command)
{
    struct pawl__cli_path path = { .commands = { cli->root, command },
                                   .depth = command == cli->root ? 1 : 2 };
    bool root = command == cli->root;
    const char *separator = root ? "" : "\\-";
    const char *name = root ? "" : command->name;

    pawl__buf_add_format(buf,
                         ".TH \"%s%s%s\" 1 \"\" \"pawl %s\"\n",
                         cli->root->name,
                         separator,
                         name,
                         pawl_version());
    pawl__buf_add_format(buf, ".SH NAME\n%s%s%s \\- ", cli->root->name, separator, name);
    add_roff(buf, command->summary);
    pawl__buf_add_text(buf, "\n.SH SYNOPSIS\n.nf\n");
    add_usage(buf, &path);
    pawl__buf_add_text(buf, ".fi\n.SH DESCRIPTION\n");
    add_prose(buf, command->description != NULL ? command->description : command->summary);
    if (root) {
        add_root_parts(buf, cli);
    } else {
        add_own_parts(buf, &path);
    }
    if (has_examples(&path)) {
        pawl__buf_add_text(buf, ".SH EXAMPLES\n");
        add_examples(buf, command->examples);
    }
    add_exit_codes(buf);
    add_see_also(buf, cli, command);
}

static pawl_status write_page(const struct pawl__cli *cli,
                              const struct pawl__cli_command *command,
                              const char *dir,
                              pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf page = BUF_INIT(MAN_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf path = BUF_INIT(MAN_BYTES_MAX);
    bool root = command == cli->root;

    pawl__cli_man_page(&page, cli, command);
    pawl__buf_add_format(
        &path, "%s/%s%s%s.1", dir, cli->root->name, root ? "" : "-", root ? "" : command->name);
    if (page.broken || path.broken) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a manual page");
    }
    FILE *file = fopen(path.data, "we");
    if (file == NULL) {
        return pawl__fail_errno(reterr, errno, "write '%s'", path.data);
    }
    bool written = fwrite(page.data, 1, page.len, file) == page.len;
    /* fclose writes what is still buffered, so it is asked even after a failure. */
    if (fclose(file) != 0 || !written) {
        return pawl__fail(reterr, PAWL_IO, "cannot write '%s'", path.data);
    }
    return PAWL_OK;
}

static void close_dir(DIR **dir)
{
    if (*dir != NULL) {
        closedir(*dir);
    }
}

/* An empty directory for the pages: one that is left over from an older table would be installed. */
static pawl_status clear_pages(const char *path, const char *name, pawl_error *reterr)
{
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        return pawl__fail_errno(reterr, errno, "create directory '%s'", path);
    }
    AUTO(close_dir) DIR *dir = opendir(path);
    if (dir == NULL) {
        return pawl__fail_errno(reterr, errno, "open directory '%s'", path);
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        bool page = strncmp(entry->d_name, name, strlen(name)) == 0
                    && fnmatch("*.1", entry->d_name, 0) == 0;
        if (page && unlinkat(dirfd(dir), entry->d_name, 0) != 0) {
            return pawl__fail_errno(reterr, errno, "remove '%s/%s'", path, entry->d_name);
        }
    }
    return PAWL_OK;
}

pawl_status pawl__cli_man_write(const struct pawl__cli *cli, const char *dir, pawl_error *reterr)
{
    TRY(clear_pages(dir, cli->root->name, reterr));
    TRY(write_page(cli, cli->root, dir, reterr));
    for (size_t i = 0; cli->root->commands[i] != NULL; i++) {
        if (!cli->root->commands[i]->hidden) {
            TRY(write_page(cli, cli->root->commands[i], dir, reterr));
        }
    }
    return PAWL_OK;
}
