#include "lib/check.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/terminal/display.h"
#include "base/terminal/table.h"
#include "lib/fault.h"

static const struct pawl__column columns[] = { { "seq_id", false },
                                               { "name", false },
                                               { "rate", false } };

struct fixture {
    struct pawl__buf out;
    struct pawl__table table;
    pawl_error error;
};

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){ .out = BUF_INIT(10 << 20) };
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    pawl__table_done(&f->table);
    pawl__buf_done(&f->out);
    return 0;
}

static void start(struct fixture *f, enum pawl__table_form form, size_t width)
{
    pawl__table_done(&f->table);
    pawl__buf_clear(&f->out);
    pawl__table_init(&f->table,
                     columns,
                     COUNT_OF(columns),
                     &(struct pawl__table_options){
                         .form = form, .width = width, .sink = pawl__sink_buf(&f->out) });
}

static void add(struct fixture *f, int64_t seq, const char *name, struct pawl__cell rate)
{
    const struct pawl__cell cells[] = { pawl__cell_integer(seq),
                                        pawl__cell_text(pawl_view_of(name)),
                                        rate };

    assert_ok(pawl__table_add(&f->table, cells, &f->error), &f->error);
}

static void assert_output(struct fixture *f, const char *expected)
{
    assert_ok(pawl__table_end(&f->table, &f->error), &f->error);
    assert_string_equal(f->out.data == NULL ? "" : f->out.data, expected);
}

static void add_rows(struct fixture *f)
{
    add(f, 7, "plain", pawl__cell_real(0.5));
    add(f, -1234567, "中文 wide", pawl__cell_none());
    add(f, 0, "e\xCC\x81t\xC3\xA9 marks", pawl__cell_real(100));
    add(f, 1, "\x1b[2J\ttab\nline\xFF", pawl__cell_real((double)NAN));
    add(f, 2, "", pawl__cell_integer(3));
}

static void test_columns_align_on_a_terminal(void **state)
{
    struct fixture *f = *state;

    start(f, PAWL__TABLE_TERMINAL, 80);
    add_rows(f);
    assert_output(f,
                  "  SEQ ID  NAME                    RATE\n"
                  "       7  plain                    0.5\n"
                  "-1234567  中文 wide                  -\n"
                  "       0  e\xCC\x81t\xC3\xA9 marks                100\n"
                  "       1  \\x1B[2J\\ttab\\nline\\xFF     -\n"
                  "       2                             3\n");
}

static void test_texts_are_cut_to_fit_and_numbers_are_not(void **state)
{
    struct fixture *f = *state;

    start(f, PAWL__TABLE_TERMINAL, 24);
    add(f, 7, "somewhat longer", pawl__cell_integer(5));
    add(f, 1234567, "中文中文中文", pawl__cell_integer(5));
    assert_output(f,
                  " SEQ ID  NAME       RATE\n"
                  "      7  somewhat…     5\n"
                  "1234567  中文中文…     5\n");
    start(f, PAWL__TABLE_TERMINAL, 1); /* narrower than numbers and the least of a text */
    add(f, 1234567, "somewhat longer", pawl__cell_integer(5));
    assert_output(f,
                  " SEQ ID  NAME      RATE\n"
                  "1234567  somewha…     5\n");
}

static void test_a_whole_column_is_never_cut_and_a_heading_may_be_bold(void **state)
{
    static const struct pawl__column ids[] = { { "id", true }, { "note", false } };
    struct fixture *f = *state;
    const struct pawl__cell cells[] = { pawl__cell_text(
                                            pawl_view_of("0198c0de-0000-7000-8000-000000000000")),
                                        pawl__cell_text(pawl_view_of("a longer remark")) };

    pawl__table_init(&f->table,
                     ids,
                     COUNT_OF(ids),
                     &(struct pawl__table_options){ .form = PAWL__TABLE_TERMINAL,
                                                    .width = 48,
                                                    .colour = true,
                                                    .sink = pawl__sink_buf(&f->out) });
    assert_ok(pawl__table_add(&f->table, cells, &f->error), &f->error);
    assert_output(f,
                  "\x1b[1mID                                    NOTE\x1b[0m\n"
                  "0198c0de-0000-7000-8000-000000000000  a longer …\n");
}

static void test_no_rows_write_nothing(void **state)
{
    struct fixture *f = *state;

    for (enum pawl__table_form form = PAWL__TABLE_TERMINAL; form <= PAWL__TABLE_JSON; form++) {
        start(f, form, 80);
        assert_output(f, "");
    }
}

static void test_a_pipe_gets_whole_values_between_tabs(void **state)
{
    struct fixture *f = *state;

    start(f, PAWL__TABLE_PLAIN, 10);
    add_rows(f);
    assert_output(f,
                  "7\tplain\t0.5\n"
                  "-1234567\t中文 wide\t\n"
                  "0\te\xCC\x81t\xC3\xA9 marks\t100\n"
                  "1\t\\x1B[2J\\ttab\\nline\\xFF\t\n"
                  "2\t\t3\n");
}

static void test_json_is_one_object_a_line(void **state)
{
    struct fixture *f = *state;
    pawl_view rest;
    pawl_view line;
    size_t lines = 0;

    start(f, PAWL__TABLE_JSON, 10);
    add_rows(f);
    add(f, INT64_MIN, "\"quoted\\\"", pawl__cell_bool(true));
    assert_ok(pawl__table_end(&f->table, &f->error), &f->error);
    rest = pawl__buf_view(&f->out);
    while (pawl__view_split(&rest, '\n', &line)) {
        json_t *object = json_loadb(line.data, line.len, 0, NULL);

        assert_non_null(object);
        assert_int_equal(json_object_size(object), 3);
        lines++;
        json_decref(object);
    }
    assert_int_equal(lines, 6);
    assert_non_null(strstr(f->out.data, "{\"seq_id\":7,\"name\":\"plain\",\"rate\":0.5}\n"));
    assert_non_null(strstr(f->out.data, "\"name\":\"中文 wide\",\"rate\":null}\n"));
    assert_non_null(strstr(f->out.data,
                           "{\"seq_id\":-9223372036854775808,\"name\":\"\\\"quoted\\\\\\\"\","
                           "\"rate\":true}\n"));
    assert_non_null(strstr(f->out.data, "\\u001b[2J\\u0009tab\\nline\xEF\xBF\xBD"));
}

/* Rows beyond the measured ones go out at once, in the same columns. */
static void test_many_rows_stream_in_the_first_ones_columns(void **state)
{
    struct fixture *f = *state;

    start(f, PAWL__TABLE_TERMINAL, 80);
    for (int i = 0; i < PAWL__TABLE_MEASURED_MAX - 1; i++) {
        add(f, i, "name", pawl__cell_none());
    }
    assert_int_equal(f->out.len, 0);
    add(f, 0, "name", pawl__cell_none());
    assert_int_equal(f->table.held_rows, 0);
    size_t line = strlen("SEQ ID  NAME  RATE\n");
    assert_int_equal(f->out.len, (PAWL__TABLE_MEASURED_MAX + 1) * line);
    pawl__buf_clear(&f->out);
    add(f, 1, "longer name", pawl__cell_integer(12345));
    assert_string_equal(f->out.data, "     1  lon…  12345\n");
    assert_int_equal(f->table.held_rows, 0);
    assert_output(f, "     1  lon…  12345\n");
}

static pawl_status refuse_write(void *context, pawl_view bytes, pawl_error *reterr)
{
    (void)context;
    (void)bytes;
    if (reterr != NULL) {
        reterr->status = PAWL_CLOSED;
    }
    return PAWL_CLOSED;
}

static void test_a_reader_that_left_is_reported(void **state)
{
    struct fixture *f = *state;
    const struct pawl__cell cells[] = { pawl__cell_none(), pawl__cell_none(), pawl__cell_none() };

    start(f, PAWL__TABLE_PLAIN, 80);
    f->table.options.sink = (struct pawl__sink){ refuse_write, NULL };
    assert_status(pawl__table_add(&f->table, cells, &f->error), PAWL_CLOSED, &f->error);
    start(f, PAWL__TABLE_TERMINAL, 80);
    f->table.options.sink = (struct pawl__sink){ refuse_write, NULL };
    assert_ok(pawl__table_add(&f->table, cells, &f->error), &f->error);
    assert_status(pawl__table_end(&f->table, &f->error), PAWL_CLOSED, &f->error);
}

/* A row that failed left no part of itself behind: the next one is whole. */
static void assert_goes_on(struct fixture *f)
{
    static const char row[] = "0  next     -\n";

    if (f->table.options.form == PAWL__TABLE_TERMINAL && !f->table.measured) {
        pawl__buf_clear(&f->out);
        add(f, 0, "next", pawl__cell_none());
        assert_ok(pawl__table_end(&f->table, &f->error), &f->error);
        assert_true(f->out.len > sizeof(row));
        assert_string_equal(f->out.data + f->out.len - strlen(row), row);
    }
}

static void test_allocation_failures_are_reported(void **state)
{
    struct fixture *f = *state;
    char large[2000];

    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    for (enum pawl__table_form form = PAWL__TABLE_TERMINAL; form <= PAWL__TABLE_JSON; form++) {
        FAULT_WALK (walk) {
            const struct pawl__cell cells[] = { pawl__cell_integer(1),
                                                pawl__cell_text(pawl_view_of(large)),
                                                pawl__cell_bool(false) };
            pawl__buf_done(&f->out);
            start(f, form, 80);
            pawl_status status = pawl__table_add(&f->table, cells, &f->error);
            if (status == PAWL_OK) {
                status = pawl__table_end(&f->table, &f->error);
            }
            bool fired = fault_fired();
            fault_disarm();
            assert_status(status, fired ? PAWL_NOMEM : PAWL_OK, &f->error);
            assert_goes_on(f);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_columns_align_on_a_terminal),
        TEST(test_texts_are_cut_to_fit_and_numbers_are_not),
        TEST(test_a_whole_column_is_never_cut_and_a_heading_may_be_bold),
        TEST(test_no_rows_write_nothing),
        TEST(test_a_pipe_gets_whole_values_between_tabs),
        TEST(test_json_is_one_object_a_line),
        TEST(test_many_rows_stream_in_the_first_ones_columns),
        TEST(test_a_reader_that_left_is_reported),
        TEST(test_allocation_failures_are_reported),
    };
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
