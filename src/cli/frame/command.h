/* The model of the command line: one tree of commands, from which parsing, help, man pages and
 * shell completion all come. Nothing about a command is written down twice.
 *
 * A command is a constant table in a file of its capability's folder, and commands.c lists the top ones:
 *
 *     static const struct pawl__cli_command list = {
 *         .name = "list",
 *         .summary = "list failed events, newest first",
 *         .flags = FLAGS(FLAG("status", "STATUS", "Only these.", .choices = STATUSES)),
 *         .examples = EXAMPLES(TESTED("pawl failed list --status pending", "what waits for a person")),
 *         .run = list_run,
 *     };
 *     const struct pawl__cli_command pawl__cli_cmd_failed = {
 *         .name = "failed",
 *         .summary = "events that could not be delivered",
 *         .commands = COMMANDS(&list, &show, &retry),
 *     };
 *
 * A summary is a few words in lower case without a stop ("list failed events"), `help` is one or
 * more sentences, `description` is prose in which an empty line ("\n\n") starts a paragraph. ASCII,
 * all of them. */
#ifndef PAWL_CLI_FRAME_COMMAND_H
#define PAWL_CLI_FRAME_COMMAND_H

#include <pawl/pawl.h>

struct pawl__cli_run;

/* What a value is: decides what is accepted and what a shell offers. */
enum pawl__cli_value_kind {
    VALUE_TEXT,   /* UTF-8 */
    VALUE_NUMBER, /* a whole number from min to max; no bounds when both are 0 */
    VALUE_FILE,   /* any bytes but none at all; "-" may mean standard input or output */
    VALUE_DIR,    /* the same, a directory */
    VALUE_COMMAND /* a word of the command tree */
};

struct pawl__cli_flag {
    const char *name;           /* "jobs" for --jobs; NULL ends a list */
    char letter;                /* 'j' for -j; 0: none */
    const char *value;          /* what help calls the value: "N"; NULL makes the flag a switch */
    const char *help;           /* behind it in the list */
    const char *const *choices; /* the only values allowed, NULL-terminated; NULL: any */
    const char *fallback;       /* the value when it is not given; NULL: none */
    enum pawl__cli_value_kind kind;
    int64_t min;
    int64_t max;
    bool required;
    bool repeats; /* every value counts; otherwise the last one wins */
};

/* An argument that is not a flag. Required ones come first; only the last may repeat. */
struct pawl__cli_operand {
    const char *name; /* "ID"; NULL ends a list */
    const char *help;
    const char *const *choices;
    enum pawl__cli_value_kind kind;
    int64_t min;
    int64_t max;
    bool optional;
    bool repeats;
};

struct pawl__cli_example {
    const char *line; /* as typed: "pawl config show --json"; NULL ends a list */
    const char *says; /* what it is for */
    bool runs;        /* a test runs it in an empty directory and expects exit code 0 */
};

/* A command has either `commands` (and needs one of them) or `run`. */
struct pawl__cli_command {
    const char *name;
    const char *summary;
    const char *description;
    const struct pawl__cli_command *const *commands; /* NULL-terminated */
    const struct pawl__cli_flag *flags;              /* of this command and all below it */
    const struct pawl__cli_operand *operands;
    const struct pawl__cli_example *examples;
    pawl_status (*run)(struct pawl__cli_run *run, pawl_error *reterr);
    const char
        *when_damaged; /* what to do next when it ends with 6 and the error does not say; NULL:
                               * that of the command above */
    bool
        only_prints; /* changes nothing and judges nothing: a reader that has enough (`| head`) ends it
                       * with exit code 0 */
    bool hidden;     /* not in help, man pages and completion */
    bool no_settings; /* runs even when the configuration is wrong: run->config is NULL */
};

#define COMMANDS(...) ((const struct pawl__cli_command *const[]){ __VA_ARGS__, NULL })
#define FLAGS(...) ((const struct pawl__cli_flag[]){ __VA_ARGS__, { .name = NULL } })
/* A flag with a value; its help, and what else there is to say of it, follow. */
#define FLAG(flag, called, ...)                                \
    {                                                          \
        .name = (flag), .value = (called), .help = __VA_ARGS__ \
    }
/* The same of a whole number from `least` to `most`. */
#define NUMBER_FLAG(flag, called, least, most, ...) \
    FLAG(flag, called, __VA_ARGS__, .kind = VALUE_NUMBER, .min = (least), .max = (most))
#define OPERANDS(...) ((const struct pawl__cli_operand[]){ __VA_ARGS__, { .name = NULL } })
#define EXAMPLES(...) ((const struct pawl__cli_example[]){ __VA_ARGS__, { .line = NULL } })
/* An example that a test runs. */
#define TESTED(typed, purpose)                           \
    {                                                    \
        .line = (typed), .says = (purpose), .runs = true \
    }
#define CHOICES(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* A whole command line. */
struct pawl__cli {
    const struct pawl__cli_command *root;
    const struct pawl__cli_flag *common; /* every command takes them and shows them in --help */
    const struct pawl__cli_flag
        *settings; /* every command takes them; `pawl help settings` shows them */
};

#define COMMAND_DEPTH_MAX 4 /* pawl work checkpoint add */

/* The commands from the root to one of them: "pawl config show". */
struct pawl__cli_path {
    const struct pawl__cli_command *commands[COMMAND_DEPTH_MAX];
    size_t depth;
};

/* The last command of a path. */
const struct pawl__cli_command *pawl__cli_path_leaf(const struct pawl__cli_path *path);

/* "pawl config show" into `ret_text`, cut when it does not fit. */
#define COMMAND_PATH_SIZE 96
const char *pawl__cli_path_text(const struct pawl__cli_path *path,
                                char ret_text[COMMAND_PATH_SIZE]);

/* The command of that name directly below, or NULL. */
const struct pawl__cli_command *pawl__cli_command_find(const struct pawl__cli_command *command,
                                                       const char *name);

/* Walks the flags that may stand at `path`: those of its commands from the leaf up, then the common
 * ones, then the settings. Start with { 0 }; NULL ends the walk. */
struct pawl__cli_flag_walk {
    size_t list;
    size_t index;
};
const struct pawl__cli_flag *pawl__cli_flag_next(const struct pawl__cli *cli,
                                                 const struct pawl__cli_path *path,
                                                 struct pawl__cli_flag_walk *walk);

/* The flag called `name` (or -letter) at `path`, or NULL. */
const struct pawl__cli_flag *pawl__cli_flag_named(const struct pawl__cli *cli,
                                                  const struct pawl__cli_path *path,
                                                  pawl_view name);
const struct pawl__cli_flag *pawl__cli_flag_lettered(const struct pawl__cli *cli,
                                                     const struct pawl__cli_path *path,
                                                     char letter);

/* The operand that the argument at `index` fills, or NULL when there is none left. */
const struct pawl__cli_operand *pawl__cli_operand_at(const struct pawl__cli_command *command,
                                                     size_t index);

#endif
