/* Help, manual pages and completion: everything that is printed from the table. */
#include "lib/check.h"

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "cli/frame/complete.h"
#include "cli/frame/help.h"
#include "cli/frame/man.h"
#include "cli/frame/text.h"
#include "lib/cli_table.h"
#include "lib/fault.h"

static struct pawl__buf out = BUF_INIT(HELP_BYTES_MAX);

static int teardown(void **state)
{
    (void)state;
    pawl__buf_done(&out);
    out = (struct pawl__buf)BUF_INIT(HELP_BYTES_MAX);
    return 0;
}

static const char *help_of(struct pawl__cli_path path, size_t width)
{
    pawl__buf_clear(&out);
    pawl__cli_help_full(&out, &table_cli, &path, width);
    assert_false(out.broken);
    return out.data;
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' is not in:\n%s", part, text);
    }
}

static void test_help_shows_usage_flags_notes_and_examples(void **state)
{
    struct pawl__cli_path path = { { &table_root, &table_ledger, &table_append }, 3 };

    (void)state;
    assert_string_equal(
        help_of(path, 80),
        "Usage: pawl ledger append [flags] [FILE]\n"
        "\n"
        "Appends one event, or one a line from standard input.\n"
        "\n"
        "An event that is there already is answered with its first offset.\n"
        "\n"
        "Arguments:\n"
        "  FILE  To read.\n"
        "\n"
        "Flags:\n"
        "  -t, --tag TAG    Mark the event. May be given several times.\n"
        "  --format FORMAT  How input is written. One of json, jsonl or text. Default:\n"
        "                   json.\n"
        "\n"
        "Common flags:\n"
        "  --data DIR  Where stores are.\n"
        "  --json      Print JSON.\n"
        "  -h, --help  Print this.\n"
        "\n"
        "Examples:\n"
        "  # one event from standard input\n"
        "  pawl ledger append --tag a -\n");
}

static void test_help_of_a_group_lists_its_commands_but_not_hidden_ones(void **state)
{
    struct pawl__cli_path path = { { &table_root }, 1 };

    (void)state;
    assert_has(help_of(path, 80), "  ledger  an append-only event log\n");
    assert_null(strstr(out.data, "__secret"));
    pawl__buf_clear(&out);
    pawl__cli_help_short(&out, &path, 80);
    assert_has(out.data, "Usage: pawl COMMAND [flags]\n\nCommands:\n");
    assert_has(out.data, "'pawl --help' says more");
}

static void test_help_of_a_command_shows_the_flags_of_its_groups(void **state)
{
    struct pawl__cli_path path = { { &table_root, &table_work, &table_work_run }, 3 };

    (void)state;
    assert_has(help_of(path, 80), "Usage: pawl work run [flags] COMMAND [ARGUMENT...]\n");
    assert_has(out.data, "\nFlags of 'pawl work':\n  --queue NAME");
    assert_has(out.data, "At the same time. From 1 to 64. Default: 1.");
    assert_has(out.data, "Of the items. Required.");
}

static void test_no_line_is_wider_than_the_terminal(void **state)
{
    struct pawl__cli_path path = { { &table_root, &table_ledger, &table_append }, 3 };

    (void)state;
    for (size_t width = HELP_WIDTH_MIN; width <= HELP_WIDTH_MAX; width++) {
        pawl_view rest = pawl_view_of(help_of(path, width));
        pawl_view line;

        while (pawl__view_split(&rest, '\n', &line)) {
            if (line.len > width && strncmp(line.data, "Usage", 5) != 0) {
                fail_msg("%zu > %zu: %.*s", line.len, width, VIEW_ARGS(line));
            }
        }
    }
    help_of(path, 0); /* no terminal at all */
}

static void test_a_page_describes_every_command_below_it(void **state)
{
    (void)state;
    pawl__cli_man_page(&out, &table_cli, &table_work);
    assert_has(out.data, ".TH \"pawl\\-work\" 1");
    assert_has(out.data, ".SH NAME\npawl\\-work \\- leased work items\n");
    assert_has(out.data, ".SS pawl work checkpoint add [flags] ID...\n");
    assert_has(out.data, "\\fB\\-j\\fR, \\fB\\-\\-jobs\\fR \\fIN\\fR\n");
    pawl__buf_clear(&out);
    pawl__cli_man_page(&out, &table_cli, &table_root);
    assert_has(out.data, ".BR pawl\\-ledger (1)");
    assert_has(out.data, "\\fB\\-\\-log\\-level\\fR");
    assert_null(strstr(out.data, "__secret"));
}

#define COMPLETE(...)                                           \
    complete_words(COUNT_OF(((const char *[]){ __VA_ARGS__ })), \
                   (const char *const[]){ __VA_ARGS__ })

/* The answers without their descriptions, one line: "append tail :none". */
static const char *complete_words(size_t count, const char *const *words)
{
    static char flat[2000];
    struct pawl__buf text = BUF_INIT(sizeof(flat) - 1);
    pawl_view rest;
    pawl_view line;
    pawl_view word;

    pawl__buf_clear(&out);
    pawl__cli_complete(&out, &table_cli, count, words);
    rest = pawl__buf_view(&out);
    while (pawl__view_split(&rest, '\n', &line)) {
        assert_true(pawl__view_split(&line, '\t', &word));
        pawl__buf_add_text(&text, text.len > 0 ? " " : "");
        pawl__buf_add(&text, word);
    }
    assert_non_null(text.data);
    memcpy(flat, text.data, text.len + 1);
    pawl__buf_done(&text);
    return flat;
}

static void test_completion_offers_commands_and_their_operands(void **state)
{
    (void)state;
    assert_string_equal(COMPLETE(""), "ledger work help :none");
    assert_string_equal(COMPLETE("le"), "ledger :none");
    assert_string_equal(COMPLETE("ledger", ""), "append tail :none");
    assert_string_equal(COMPLETE("--json", "work", "--queue", "q", "ch"), "checkpoint :none");
    assert_string_equal(COMPLETE("ledger", "append", ""), ":file");
    assert_string_equal(COMPLETE("ledger", "append", "x", ""), ":none");
    assert_string_equal(COMPLETE("help", "work", ""), "run checkpoint :none");
    assert_string_equal(COMPLETE("help", "work", "nothing", ""), ":none");
}

static void test_completion_offers_flags_and_their_values(void **state)
{
    (void)state;
    assert_string_equal(COMPLETE("ledger", "append", "--f"), "--format :none");
    assert_string_equal(COMPLETE("ledger", "tail", "-"),
                        "--follow --quiet --from --data --json --help :none");
    assert_string_equal(COMPLETE("--l"), "--log-level :none");
    assert_string_equal(COMPLETE("ledger", "append", "--format", "js"), "json jsonl :none");
    assert_string_equal(COMPLETE("ledger", "append", "--format=t"), "--format=text :none");
    assert_string_equal(COMPLETE("--data", ""), ":dir");
    assert_string_equal(COMPLETE("--data=x"), ":dir");
    assert_string_equal(COMPLETE("--nothing=x"), ":none");
    assert_string_equal(COMPLETE("ledger", "append", "--", "--f"), ":file");
}

static void test_completion_survives_wrong_words(void **state)
{
    (void)state;
    assert_string_equal(COMPLETE("nonsense", "--what", "le"), "ledger :none");
    assert_string_equal(COMPLETE("-", "-zz", "--=", "le"), "ledger :none");
    pawl__buf_clear(&out);
    pawl__cli_complete(&out, &table_cli, 0, NULL);
    assert_int_equal(out.len, 0);
}

static void test_every_shell_has_a_script(void **state)
{
    (void)state;
    assert_has(pawl__cli_completion_script("bash"), "complete -F _pawl pawl");
    assert_has(pawl__cli_completion_script("zsh"), "#compdef pawl");
    assert_has(pawl__cli_completion_script("fish"), "complete -c pawl");
    assert_null(pawl__cli_completion_script("tcsh"));
}

static void test_quoted_text_is_harmless_on_a_terminal(void **state)
{
    (void)state;
    assert_string_equal(pawl__cli_quote("a\tb\x7f").text, "'a\\tb\\x7F'");
    assert_string_equal(pawl__cli_quote("gr\xc3\xbc\xc3\x9f").text, "'gr\xc3\xbc\xc3\x9f'");
    assert_string_equal(pawl__cli_quote("\xc2\x9b"
                                        "2J")
                            .text,
                        "'\\u{009B}2J'"); /* CSI */
    assert_string_equal(pawl__cli_quote("\xc3").text, "'\\xC3'");
}

static void test_memory_that_runs_out_breaks_the_buffer(void **state)
{
    struct pawl__cli_path path = { { &table_root, &table_ledger, &table_append }, 3 };

    (void)state;
    FAULT_WALK (walk) {
        struct pawl__buf buf = BUF_INIT(HELP_BYTES_MAX);

        pawl__cli_help_full(&buf, &table_cli, &path, 80);
        pawl__cli_man_page(&buf, &table_cli, &table_work);
        assert_int_equal(buf.broken, fault_fired());
        pawl__buf_done(&buf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_help_shows_usage_flags_notes_and_examples, teardown),
        cmocka_unit_test_teardown(test_help_of_a_group_lists_its_commands_but_not_hidden_ones,
                                  teardown),
        cmocka_unit_test_teardown(test_help_of_a_command_shows_the_flags_of_its_groups, teardown),
        cmocka_unit_test_teardown(test_no_line_is_wider_than_the_terminal, teardown),
        cmocka_unit_test_teardown(test_a_page_describes_every_command_below_it, teardown),
        cmocka_unit_test_teardown(test_completion_offers_commands_and_their_operands, teardown),
        cmocka_unit_test_teardown(test_completion_offers_flags_and_their_values, teardown),
        cmocka_unit_test_teardown(test_completion_survives_wrong_words, teardown),
        cmocka_unit_test_teardown(test_every_shell_has_a_script, teardown),
        cmocka_unit_test_teardown(test_quoted_text_is_harmless_on_a_terminal, teardown),
        cmocka_unit_test_teardown(test_memory_that_runs_out_breaks_the_buffer, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
