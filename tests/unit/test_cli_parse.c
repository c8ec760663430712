#include "lib/check.h"

#include "base/core/macros.h"
#include "cli/frame/args.h"
#include "lib/cli_table.h"
#include "lib/fault.h"

#define PARSE(...)                                                   \
    parse_words(COUNT_OF(((const char *[]){ "pawl", __VA_ARGS__ })), \
                (const char *const[]){ "pawl", __VA_ARGS__ })

static struct pawl__cli_args args;
static pawl_error error;

static pawl_status parse_words(size_t count, const char *const *words)
{
    pawl__cli_args_done(&args);
    return pawl__cli_args_parse(&table_cli, (int)count, words, &args, &error);
}

static int teardown(void **state)
{
    (void)state;
    pawl__cli_args_done(&args);
    return 0;
}

static void assert_path(const char *expected)
{
    char text[COMMAND_PATH_SIZE];

    assert_string_equal(pawl__cli_path_text(&args.path, text), expected);
}

/* Refused as bad usage, with these words somewhere in the message. */
#define assert_refused(message_part, ...)                        \
    do {                                                         \
        assert_status(PARSE(__VA_ARGS__), PAWL_INVALID, &error); \
        assert_message(&error, message_part);                    \
    } while (0)

static void test_words_lead_to_a_command_three_deep(void **state)
{
    (void)state;
    assert_ok(PARSE("work", "checkpoint", "add", "task-1", "task-2"), &error);
    assert_path("pawl work checkpoint add");
    assert_int_equal(args.operand_count, 2);
    assert_string_equal(pawl__cli_args_operand(&args, 1), "task-2");
    assert_null(pawl__cli_args_operand(&args, 2));
}

static void test_a_group_alone_parses_to_the_group(void **state)
{
    (void)state;
    assert_ok(PARSE("ledger"), &error);
    assert_path("pawl ledger");
    assert_ok(parse_words(1, (const char *const[]){ "pawl" }), &error);
    assert_path("pawl");
    assert_ok(parse_words(0, NULL), &error);
    assert_path("pawl");
}

static void test_values_come_behind_a_space_or_an_equals_sign(void **state)
{
    (void)state;
    assert_ok(PARSE("ledger", "append", "--format", "text", "--tag=a=b"), &error);
    assert_string_equal(pawl__cli_args_value(&args, "format"), "text");
    assert_string_equal(pawl__cli_args_value(&args, "tag"), "a=b");
    assert_ok(PARSE("ledger", "append", "--tag="), &error);
    assert_string_equal(pawl__cli_args_value(&args, "tag"), "");
}

static void test_common_flags_and_settings_stand_anywhere(void **state)
{
    (void)state;
    assert_ok(PARSE("--json", "ledger", "--data", "d", "tail", "--log-level=debug"), &error);
    assert_path("pawl ledger tail");
    assert_true(pawl__cli_args_has(&args, "json"));
    assert_string_equal(pawl__cli_args_value(&args, "data"), "d");
    assert_string_equal(pawl__cli_args_value(&args, "log-level"), "debug");
}

static void test_flags_of_a_group_reach_the_commands_below(void **state)
{
    (void)state;
    assert_ok(PARSE("work", "--queue", "q", "checkpoint", "add", "x"), &error);
    assert_string_equal(pawl__cli_args_value(&args, "queue"), "q");
    assert_ok(PARSE("work", "checkpoint", "add", "x", "--queue", "q"), &error);
    assert_string_equal(pawl__cli_args_value(&args, "queue"), "q");
}

static void test_letters_bundle_and_take_a_value_attached_or_next(void **state)
{
    (void)state;
    assert_ok(PARSE("ledger", "tail", "-fqn7"), &error);
    assert_true(pawl__cli_args_has(&args, "follow"));
    assert_true(pawl__cli_args_has(&args, "quiet"));
    assert_int_equal(pawl__cli_args_number(&args, "from"), 7);
    assert_ok(PARSE("ledger", "tail", "-n", "-8"), &error);
    assert_int_equal(pawl__cli_args_number(&args, "from"), -8);
}

static void test_a_missing_flag_has_its_fallback(void **state)
{
    (void)state;
    assert_ok(PARSE("ledger", "append"), &error);
    assert_string_equal(pawl__cli_args_value(&args, "format"), "json");
    assert_null(pawl__cli_args_value(&args, "tag"));
    assert_false(pawl__cli_args_has(&args, "format"));
}

static void test_the_last_value_wins_unless_the_flag_repeats(void **state)
{
    size_t index = 0;

    (void)state;
    assert_ok(PARSE("ledger", "append", "--data", "a", "-t", "1", "--data", "b", "-t2"), &error);
    assert_string_equal(pawl__cli_args_value(&args, "data"), "b");
    assert_string_equal(pawl__cli_args_next(&args, "tag", &index), "1");
    assert_string_equal(pawl__cli_args_next(&args, "tag", &index), "2");
    assert_null(pawl__cli_args_next(&args, "tag", &index));
}

static void test_two_dashes_end_the_flags_and_one_is_a_value(void **state)
{
    (void)state;
    assert_ok(PARSE("work", "run", "--type", "t", "--", "ls", "--json", "-x"), &error);
    assert_int_equal(args.operand_count, 3);
    assert_string_equal(pawl__cli_args_operand(&args, 1), "--json");
    assert_false(pawl__cli_args_has(&args, "json"));
    assert_ok(PARSE("ledger", "append", "-"), &error);
    assert_string_equal(pawl__cli_args_operand(&args, 0), "-");
    assert_ok(PARSE("--data", "-", "ledger", "tail"), &error);
    assert_string_equal(pawl__cli_args_value(&args, "data"), "-");
}

static void test_help_asks_for_nothing_else(void **state)
{
    (void)state;
    assert_ok(PARSE("work", "run", "--help"), &error);
    assert_true(args.help);
    assert_ok(PARSE("-h"), &error);
    assert_true(args.help);
}

static void test_an_unknown_command_names_the_nearest(void **state)
{
    (void)state;
    assert_refused("no command 'leger' in 'pawl'; did you mean 'ledger'?", "leger");
    assert_refused("no command 'tial' in 'pawl ledger'; did you mean 'tail'?", "ledger", "tial");
    assert_refused("'pawl --help' lists them all", "xyzzy");
    assert_refused("no command ''", "");
    /* Hidden ones are not given away. */
    assert_refused("'pawl --help' lists them all", "__secre");
}

static void test_an_unknown_flag_names_the_nearest_or_its_command(void **state)
{
    (void)state;
    assert_refused("no flag '--jsno' in 'pawl ledger tail'; did you mean '--json'?",
                   "ledger",
                   "tail",
                   "--jsno");
    assert_refused("no flag '--log-leve' in 'pawl'; did you mean '--log-level'?", "--log-leve=x");
    assert_refused("it is a flag of 'pawl ledger tail'", "--follow", "ledger", "tail");
    assert_refused("no flag '-x' in 'pawl ledger tail'", "ledger", "tail", "-x");
    assert_refused("no flag '-j' of '-json' in 'pawl'; a long flag has two dashes", "-json");
}

static void test_wrong_values_say_what_is_allowed(void **state)
{
    (void)state;
    assert_refused(
        "'--format' is 'xml'; allowed: json, jsonl, text", "ledger", "append", "--format=xml");
    assert_refused("'--format' is ''", "ledger", "append", "--format=");
    assert_refused("'--from' is '1x', which is not a whole number", "ledger", "tail", "-n1x");
    assert_refused("not a whole number", "ledger", "tail", "-n", " 1");
    assert_refused("out of range (64 bits)", "ledger", "tail", "--from=9223372036854775808");
    assert_refused("'--jobs' is 0; allowed: 1 to 64", "work", "run", "-j0", "--type", "t", "x");
    assert_refused("'--jobs' is 65; allowed: 1 to 64", "work", "run", "-j65", "--type", "t", "x");
    assert_ok(PARSE("work", "run", "-j64", "--type", "t", "x"), &error);
    assert_refused("'--data' is empty", "--data=", "ledger", "tail");
}

static void test_a_value_too_few_or_too_many_is_refused(void **state)
{
    (void)state;
    assert_refused("'--data' needs a value: --data DIR", "ledger", "tail", "--data");
    assert_refused("'--data' needs a value before '--json'", "--data", "--json", "ledger", "tail");
    assert_refused("'--json' takes no value, but got 'yes'", "--json=yes", "ledger", "tail");
}

static void test_operands_too_few_or_too_many_are_refused(void **state)
{
    (void)state;
    assert_refused("'pawl work checkpoint add' needs ID; 'pawl work checkpoint add --help'",
                   "work",
                   "checkpoint",
                   "add");
    assert_refused("'pawl ledger tail' takes no arguments, but got 'x'", "ledger", "tail", "x");
    assert_refused(
        "'pawl ledger append' takes 1 argument, but got 'b' as well", "ledger", "append", "a", "b");
    assert_refused("'pawl work run' needs --type TYPE", "work", "run", "ls");
}

static void test_bytes_that_are_not_utf8_are_refused_except_in_paths(void **state)
{
    (void)state;
    assert_refused("'--tag' is not UTF-8: 'a\\xFF'", "ledger", "append", "--tag", "a\xff");
    assert_refused("no command '\\x1B[31m'", "\x1b[31m");
    assert_refused("no flag '--\\xC0\\xAF'", "--\xc0\xaf");
    assert_ok(PARSE("--data", "d\xff", "ledger", "append", "\xff"), &error);
    assert_string_equal(pawl__cli_args_operand(&args, 0), "\xff");
}

static void test_a_refused_line_leaves_the_result_alone(void **state)
{
    struct pawl__cli_args untouched = { .operand_count = 42 };

    (void)state;
    assert_status(pawl__cli_args_parse(
                      &table_cli, 2, (const char *const[]){ "pawl", "x" }, &untouched, &error),
                  PAWL_INVALID,
                  &error);
    assert_int_equal(untouched.operand_count, 42);
    assert_status(pawl__cli_args_parse(&table_cli, ARGS_COUNT_MAX + 1, NULL, &untouched, &error),
                  PAWL_INVALID,
                  &error);
    assert_message(&error, "the limit is 100000");
}

static void test_a_long_word_is_cut_in_the_message(void **state)
{
    char word[5000];

    (void)state;
    memset(word, 'a', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    assert_refused("aaa\xe2\x80\xa6'", word);
    assert_true(strlen(error.message) < 250);
}

static void test_running_out_of_memory_is_reported(void **state)
{
    (void)state;
    FAULT_WALK (walk) {
        pawl_status status = PARSE("ledger", "tail", "-fq", "--data", "d");
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
    }
    /* A message needs memory for its hint, too; without it the message is only shorter. */
    FAULT_WALK (walk) {
        pawl_status status = PARSE("ledger", "tial");
        assert_true(status == PAWL_INVALID || (status == PAWL_NOMEM && fault_fired()));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_words_lead_to_a_command_three_deep, teardown),
        cmocka_unit_test_teardown(test_a_group_alone_parses_to_the_group, teardown),
        cmocka_unit_test_teardown(test_values_come_behind_a_space_or_an_equals_sign, teardown),
        cmocka_unit_test_teardown(test_common_flags_and_settings_stand_anywhere, teardown),
        cmocka_unit_test_teardown(test_flags_of_a_group_reach_the_commands_below, teardown),
        cmocka_unit_test_teardown(test_letters_bundle_and_take_a_value_attached_or_next, teardown),
        cmocka_unit_test_teardown(test_a_missing_flag_has_its_fallback, teardown),
        cmocka_unit_test_teardown(test_the_last_value_wins_unless_the_flag_repeats, teardown),
        cmocka_unit_test_teardown(test_two_dashes_end_the_flags_and_one_is_a_value, teardown),
        cmocka_unit_test_teardown(test_help_asks_for_nothing_else, teardown),
        cmocka_unit_test_teardown(test_an_unknown_command_names_the_nearest, teardown),
        cmocka_unit_test_teardown(test_an_unknown_flag_names_the_nearest_or_its_command, teardown),
        cmocka_unit_test_teardown(test_wrong_values_say_what_is_allowed, teardown),
        cmocka_unit_test_teardown(test_a_value_too_few_or_too_many_is_refused, teardown),
        cmocka_unit_test_teardown(test_operands_too_few_or_too_many_are_refused, teardown),
        cmocka_unit_test_teardown(test_bytes_that_are_not_utf8_are_refused_except_in_paths,
                                  teardown),
        cmocka_unit_test_teardown(test_a_refused_line_leaves_the_result_alone, teardown),
        cmocka_unit_test_teardown(test_a_long_word_is_cut_in_the_message, teardown),
        cmocka_unit_test_teardown(test_running_out_of_memory_is_reported, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
