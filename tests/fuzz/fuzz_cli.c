/* Arguments, one behind each NUL: parsing and completing them never crashes, and what is accepted
 * holds what the table promises. */
#include "fuzz/fuzz.h"

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "cli/frame/args.h"
#include "cli/frame/complete.h"
#include "lib/cli_table.h"

#define WORDS_MAX 64
#define BYTES_MAX 4096

static void check_accepted(const struct pawl__cli_args *args)
{
    for (size_t i = 0; i < args->given_count; i++) {
        const struct pawl__cli_given *given = &args->given[i];

        CHECK((given->flag->value == NULL) == (given->value == NULL));
        int64_t number;
        CHECK(given->flag->kind != VALUE_NUMBER || pawl__cli_parse_number(given->value, &number));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[BYTES_MAX + 1];
    const char *words[WORDS_MAX] = { "pawl" };
    size_t count = 1;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__cli_args args;

    size = MIN(size, (size_t)BYTES_MAX);
    for (size_t i = 0; i < size; i++) {
        text[i] = (char)data[i];
        if (count < WORDS_MAX && (i == 0 || text[i - 1] == '\0')) {
            words[count++] = &text[i];
        }
    }
    text[size] = '\0';
    if (pawl__cli_args_parse(&table_cli, (int)count, words, &args, &error) == PAWL_OK) {
        check_accepted(&args);
        pawl__cli_args_done(&args);
    } else {
        CHECK(pawl__view_is_utf8(pawl_view_of(error.message)));
    }
    struct pawl__buf answers = BUF_INIT(COMPLETE_BYTES_MAX);
    pawl__cli_complete(&answers, &table_cli, count - 1, words + 1);
    pawl__buf_done(&answers);
    return 0;
}
