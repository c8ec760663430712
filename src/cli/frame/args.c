#include "cli/frame/args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"

void pawl__cli_args_done(struct pawl__cli_args *args)
{
    free(args->given);
    free(args->operands);
    *args = (struct pawl__cli_args){ 0 };
}

bool pawl__cli_parse_number(const char *text, int64_t *ret_number)
{
    const char *digits = text[0] == '-' ? text + 1 : text;
    char *end = NULL;

    if (digits[0] < '0' || digits[0] > '9') { /* strtoll would take spaces and a plus */
        return false;
    }
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0') {
        return false;
    }
    *ret_number = number;
    return true;
}

static const struct pawl__cli_flag *flag_of(const struct pawl__cli_args *args, const char *name)
{
    const struct pawl__cli_flag *flag =
        pawl__cli_flag_named(args->cli, &args->path, pawl_view_of(name));

    REQUIRE(flag != NULL); /* a command asks only for flags of its own table */
    return flag;
}

const char *pawl__cli_args_value(const struct pawl__cli_args *args, const char *name)
{
    const struct pawl__cli_flag *flag = flag_of(args, name);

    for (size_t i = args->given_count; i > 0; i--) {
        if (args->given[i - 1].flag == flag) {
            return flag->value == NULL ? "" : args->given[i - 1].value;
        }
    }
    return flag->fallback;
}

bool pawl__cli_args_has(const struct pawl__cli_args *args, const char *name)
{
    const struct pawl__cli_flag *flag = flag_of(args, name);

    for (size_t i = 0; i < args->given_count; i++) {
        if (args->given[i].flag == flag) {
            return true;
        }
    }
    return false;
}

int64_t pawl__cli_args_number(const struct pawl__cli_args *args, const char *name)
{
    const char *value = pawl__cli_args_value(args, name);
    int64_t number = 0;

    REQUIRE(value != NULL);
    bool is_number = pawl__cli_parse_number(value, &number);
    REQUIRE(is_number); /* the parser let nothing else through */
    return number;
}

const char *pawl__cli_args_next(const struct pawl__cli_args *args, const char *name, size_t *index)
{
    const struct pawl__cli_flag *flag = flag_of(args, name);

    while (*index < args->given_count) {
        const struct pawl__cli_given *given = &args->given[(*index)++];

        if (given->flag == flag) {
            return flag->value == NULL ? "" : given->value;
        }
    }
    return NULL;
}

const char *pawl__cli_args_operand(const struct pawl__cli_args *args, size_t index)
{
    return index < args->operand_count ? args->operands[index] : NULL;
}
