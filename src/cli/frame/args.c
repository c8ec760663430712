#include "cli/frame/args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"

void pawl__args_done(struct pawl__args *args)
{
    free(args->given);
    free(args->operands);
    *args = (struct pawl__args){ 0 };
}

bool pawl__parse_number(const char *text, int64_t *ret_number)
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

static const struct pawl__flag *flag_of(const struct pawl__args *args, const char *name)
{
    const struct pawl__flag *flag = pawl__flag_named(args->cli, &args->path, pawl_view_of(name));

    REQUIRE(flag != NULL); /* a command asks only for flags of its own table */
    return flag;
}

const char *pawl__args_value(const struct pawl__args *args, const char *name)
{
    const struct pawl__flag *flag = flag_of(args, name);

    for (size_t i = args->given_count; i > 0; i--) {
        if (args->given[i - 1].flag == flag) {
            return flag->value == NULL ? "" : args->given[i - 1].value;
        }
    }
    return flag->fallback;
}

bool pawl__args_has(const struct pawl__args *args, const char *name)
{
    const struct pawl__flag *flag = flag_of(args, name);

    for (size_t i = 0; i < args->given_count; i++) {
        if (args->given[i].flag == flag) {
            return true;
        }
    }
    return false;
}

int64_t pawl__args_number(const struct pawl__args *args, const char *name)
{
    const char *value = pawl__args_value(args, name);
    int64_t number = 0;

    REQUIRE(value != NULL);
    bool is_number = pawl__parse_number(value, &number);
    REQUIRE(is_number); /* the parser let nothing else through */
    return number;
}

const char *pawl__args_next(const struct pawl__args *args, const char *name, size_t *index)
{
    const struct pawl__flag *flag = flag_of(args, name);

    while (*index < args->given_count) {
        const struct pawl__given *given = &args->given[(*index)++];

        if (given->flag == flag) {
            return flag->value == NULL ? "" : given->value;
        }
    }
    return NULL;
}

const char *pawl__args_operand(const struct pawl__args *args, size_t index)
{
    return index < args->operand_count ? args->operands[index] : NULL;
}
