/* Arguments into struct pawl__cli_args: one pass, left to right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/frame/args.h"
#include "cli/frame/text.h"
#include "cli/frame/unknown.h"

struct parse {
    struct pawl__cli_args args;
    const char *const *argv;
    int argc;
    int at;           /* the argument that comes next */
    bool flags_ended; /* "--" was seen */
};

/* Room for a message that lists choices or names. */
#define LIST_SIZE 300
#define WHAT_SIZE 80 /* "'--flag'" */

static pawl_status refuse_choice(const char *what,
                                 const char *value,
                                 const char *const *choices,
                                 pawl_error *reterr)
{
    char list_text[LIST_SIZE] = "";
    struct pawl__buf list = BUF_OVER(list_text);

    for (size_t i = 0; choices[i] != NULL; i++) {
        pawl__buf_add_format(&list, "%s%s", i == 0 ? "" : ", ", choices[i]);
    }
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "%s is %s; allowed: %s",
                      what,
                      pawl__cli_quote(value).text,
                      list_text);
}

static bool all_digits(const char *value)
{
    const char *digits = value[0] == '-' ? value + 1 : value;

    return digits[0] != '\0' && digits[strspn(digits, "0123456789")] == '\0';
}

static pawl_status check_number(
    const char *what, const char *value, int64_t min, int64_t max, pawl_error *reterr)
{
    int64_t number = 0;
    bool bounded = min != 0 || max != 0;

    if (!pawl__cli_parse_number(value, &number)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          all_digits(value) ? "%s is %s, which is out of range (64 bits)"
                                            : "%s is %s, which is not a whole number",
                          what,
                          pawl__cli_quote(value).text);
    }
    if (bounded && (number < min || number > max)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%s is %lld; allowed: %lld to %lld",
                          what,
                          (long long)number,
                          (long long)min,
                          (long long)max);
    }
    return PAWL_OK;
}

/* The part of a flag or an operand that says which values it takes. */
struct rule {
    const char *const *choices;
    enum pawl__cli_value_kind kind;
    int64_t min;
    int64_t max;
};

static pawl_status check_value(const char *what,
                               const char *value,
                               struct rule rule,
                               pawl_error *reterr)
{

    if (rule.kind == VALUE_FILE || rule.kind == VALUE_DIR) {
        return value[0] != '\0' ? PAWL_OK : pawl__fail(reterr, PAWL_INVALID, "%s is empty", what);
    }
    if (!pawl__view_is_utf8(pawl_view_of(value))) {
        return pawl__fail(
            reterr, PAWL_INVALID, "%s is not UTF-8: %s", what, pawl__cli_quote(value).text);
    }
    if (rule.kind == VALUE_NUMBER) {
        return check_number(what, value, rule.min, rule.max, reterr);
    }
    if (rule.choices == NULL) {
        return PAWL_OK;
    }
    for (size_t i = 0; rule.choices[i] != NULL; i++) {
        if (strcmp(rule.choices[i], value) == 0) {
            return PAWL_OK;
        }
    }
    return refuse_choice(what, value, rule.choices, reterr);
}

static pawl_status give(struct parse *parse,
                        const struct pawl__cli_flag *flag,
                        const char *value,
                        pawl_error *reterr)
{
    if (value != NULL) {
        struct rule rule = { flag->choices, flag->kind, flag->min, flag->max };
        char what[WHAT_SIZE];

        snprintf(what, sizeof(what), "'--%s'", flag->name);
        TRY(check_value(what, value, rule, reterr));
    }
    parse->args.given[parse->args.given_count++] = (struct pawl__cli_given){ flag, value };
    parse->args.help = parse->args.help || strcmp(flag->name, "help") == 0;
    return PAWL_OK;
}

/* "-" and negative numbers are values; anything else with a dash is more likely a forgotten value
 * than one that is meant. */
static bool may_be_value(const char *argument)
{
    int64_t number;

    return argument[0] != '-' || argument[1] == '\0' || pawl__cli_parse_number(argument, &number);
}

/* The value of a flag that came without '=': the next argument. */
static pawl_status give_next(struct parse *parse,
                             const struct pawl__cli_flag *flag,
                             pawl_error *reterr)
{
    const char *next = parse->at < parse->argc ? parse->argv[parse->at] : NULL;

    if (next == NULL) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'--%s' needs a value: --%s %s",
                          flag->name,
                          flag->name,
                          flag->value);
    }
    if (!may_be_value(next)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'--%s' needs a value before %s; a value with a dash is written --%s=%s",
                          flag->name,
                          pawl__cli_quote(next).text,
                          flag->name,
                          flag->value);
    }
    parse->at++;
    return give(parse, flag, next, reterr);
}

static pawl_status parse_long(struct parse *parse, const char *argument, pawl_error *reterr)
{
    const char *equals = strchr(argument, '=');
    pawl_view name = { argument + 2,
                       equals == NULL ? strlen(argument + 2) : (size_t)(equals - argument - 2) };
    const struct pawl__cli_flag *flag =
        pawl__cli_flag_named(parse->args.cli, &parse->args.path, name);

    if (flag == NULL) {
        return pawl__cli_unknown_flag(parse->args.cli, &parse->args.path, name, reterr);
    }
    if (flag->value == NULL) {
        return equals == NULL ? give(parse, flag, NULL, reterr)
                              : pawl__fail(reterr,
                                           PAWL_INVALID,
                                           "'--%s' takes no value, but got %s",
                                           flag->name,
                                           pawl__cli_quote(equals + 1).text);
    }
    return equals == NULL ? give_next(parse, flag, reterr) : give(parse, flag, equals + 1, reterr);
}

/* -j4, -j 4, -qf. */
static pawl_status parse_letters(struct parse *parse, const char *argument, pawl_error *reterr)
{
    for (const char *letter = argument + 1; *letter != '\0'; letter++) {
        const struct pawl__cli_flag *flag =
            pawl__cli_flag_lettered(parse->args.cli, &parse->args.path, *letter);
        if (flag == NULL) {
            return pawl__cli_unknown_letter(&parse->args.path, letter, argument, reterr);
        }
        if (flag->value != NULL) {
            return letter[1] == '\0' ? give_next(parse, flag, reterr)
                                     : give(parse, flag, letter + 1, reterr);
        }
        TRY(give(parse, flag, NULL, reterr));
    }
    return PAWL_OK;
}

static pawl_status refuse_operand(const struct parse *parse, const char *word, pawl_error *reterr)
{
    char path[COMMAND_PATH_SIZE];
    size_t count = parse->args.operand_count;

    pawl__cli_path_text(&parse->args.path, path);
    if (count == 0) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'%s' takes no arguments, but got %s",
                          path,
                          pawl__cli_quote(word).text);
    }
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "'%s' takes %zu argument%s, but got %s as well",
                      path,
                      count,
                      count == 1 ? "" : "s",
                      pawl__cli_quote(word).text);
}

/* A word is the next command while the path is not at its end, and an operand behind it. */
static pawl_status parse_word(struct parse *parse, const char *word, pawl_error *reterr)
{
    struct pawl__cli_args *args = &parse->args;
    const struct pawl__cli_command *leaf = pawl__cli_path_leaf(&args->path);
    char what[WHAT_SIZE];

    if (leaf->commands != NULL) {
        const struct pawl__cli_command *next = pawl__cli_command_find(leaf, word);

        if (next == NULL) {
            return pawl__cli_unknown_command(&args->path, word, reterr);
        }
        REQUIRE(args->path.depth < COMMAND_DEPTH_MAX);
        args->path.commands[args->path.depth++] = next;
        return PAWL_OK;
    }
    const struct pawl__cli_operand *operand = pawl__cli_operand_at(leaf, args->operand_count);
    if (operand == NULL) {
        return refuse_operand(parse, word, reterr);
    }
    struct rule rule = { operand->choices, operand->kind, operand->min, operand->max };
    snprintf(what, sizeof(what), "%s", operand->name);
    TRY(check_value(what, word, rule, reterr));
    args->operands[args->operand_count++] = word;
    return PAWL_OK;
}

static pawl_status parse_argument(struct parse *parse, pawl_error *reterr)
{
    const char *argument = parse->argv[parse->at++];

    if (parse->flags_ended || argument[0] != '-' || argument[1] == '\0') {
        return parse_word(parse, argument, reterr);
    }
    if (strcmp(argument, "--") == 0) {
        parse->flags_ended = true;
        return PAWL_OK;
    }
    return argument[1] == '-' ? parse_long(parse, argument, reterr)
                              : parse_letters(parse, argument, reterr);
}

/* The operand that is required and missing, or NULL. */
static const struct pawl__cli_operand *missing_operand(const struct pawl__cli_command *leaf,
                                                       size_t count)
{
    const struct pawl__cli_operand *next = pawl__cli_operand_at(leaf, count);
    bool repeated = count > 0 && pawl__cli_operand_at(leaf, count - 1) == next;

    return next == NULL || next->optional || repeated ? NULL : next;
}

static pawl_status check_complete(const struct pawl__cli_args *args, pawl_error *reterr)
{
    const struct pawl__cli_operand *operand =
        missing_operand(pawl__cli_path_leaf(&args->path), args->operand_count);
    struct pawl__cli_flag_walk walk = { 0 };
    char path[COMMAND_PATH_SIZE];

    pawl__cli_path_text(&args->path, path);
    if (operand != NULL) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'%s' needs %s; '%s --help' explains it",
                          path,
                          operand->name,
                          path);
    }
    for (const struct pawl__cli_flag *flag = pawl__cli_flag_next(args->cli, &args->path, &walk);
         flag != NULL;
         flag = pawl__cli_flag_next(args->cli, &args->path, &walk)) {
        if (flag->required && !pawl__cli_args_has(args, flag->name)) {
            return pawl__fail(
                reterr, PAWL_INVALID, "'%s' needs --%s %s", path, flag->name, flag->value);
        }
    }
    return PAWL_OK;
}

static pawl_status parse_all(struct parse *parse, pawl_error *reterr)
{
    while (parse->at < parse->argc) {
        TRY(parse_argument(parse, reterr));
    }
    return parse->args.help ? PAWL_OK : check_complete(&parse->args, reterr);
}

pawl_status pawl__cli_args_parse(const struct pawl__cli *cli,
                                 int argc,
                                 const char *const *argv,
                                 struct pawl__cli_args *ret_args,
                                 pawl_error *reterr)
{
    struct parse parse = { .argv = argv, .argc = argc, .at = 1 };
    struct pawl__cli_args *args = &parse.args;

    if (argc > ARGS_COUNT_MAX) {
        return pawl__fail(
            reterr, PAWL_INVALID, "%d arguments, the limit is %d", argc, ARGS_COUNT_MAX);
    }
    args->cli = cli;
    args->path.commands[args->path.depth++] = cli->root;
    size_t given_max = 1;
    for (int i = 1; i < argc; i++) {
        bool bundle = argv[i][0] == '-' && argv[i][1] != '-'; /* -qf is two flags */
        given_max += bundle ? strlen(argv[i]) : 1;
    }
    args->given = calloc(given_max, sizeof(args->given[0]));
    args->operands = calloc((size_t)MAX(argc, 1), sizeof(args->operands[0]));
    pawl_status status = args->given == NULL || args->operands == NULL
                             ? pawl__fail(reterr, PAWL_NOMEM, "no memory for the arguments")
                             : parse_all(&parse, reterr);
    if (status != PAWL_OK) {
        pawl__cli_args_done(args);
        return status;
    }
    *ret_args = *args;
    return PAWL_OK;
}
