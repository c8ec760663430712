/* Files and standard input as a source: what waits, what is refused, what is read again. */
#include "lib/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "delivery/sources/file.h"
#include "lib/fault.h"
#include "lib/file.h"
#include "lib/tempdir.h"

static const struct delivery_fetch many = { .messages_max = 100, .bytes_max = 1 << 20 };

struct fixture {
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 16];
    struct delivery_file_options options;
    struct delivery_source *source;
    pawl_error error;
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    *state = f;
    assert_ok(tempdir_make(f->dir, "file", &f->error), &f->error);
    snprintf(f->path, sizeof(f->path), "%s/events.jsonl", f->dir);
    f->options = (struct delivery_file_options){ .path = f->path };
    return 0;
}

static void close_source(struct fixture *f)
{
    if (f->source != NULL) {
        f->source->ops->close(f->source);
        f->source = NULL;
    }
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;

    close_source(f);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

static void write_text(struct fixture *f, const char *text)
{
    file_write(f->path, text, strlen(text));
}

static pawl_status open_source(struct fixture *f)
{
    close_source(f);
    return pawl__delivery_file_open(&f->options, &f->source, &f->error);
}

/* Everything that is there now, as "2:{..} 3:{..}", acknowledged; the last place in *ret_last. */
static const char *read_all(struct fixture *f, struct delivery_place *ret_last)
{
    static char text[1024];
    struct delivery_batch batch = { 0 };
    size_t len = 0;

    text[0] = '\0';
    assert_ok(f->source->ops->fetch(f->source, &many, &batch, &f->error), &f->error);
    for (size_t i = 0; i < batch.count; i++) {
        len += (size_t)snprintf(&text[len],
                                sizeof(text) - len,
                                "%s%d:%.*s",
                                i == 0 ? "" : " ",
                                (int)batch.messages[i].place.sequence,
                                VIEW_ARGS(batch.messages[i].payload));
        if (ret_last != NULL) {
            *ret_last = batch.messages[i].place;
        }
    }
    assert_ok(f->source->ops->ack(f->source, batch.messages, batch.count, &f->error), &f->error);
    return text;
}

static void test_an_unterminated_last_line_waits(void **state)
{
    struct fixture *f = *state;
    size_t rest = 0;

    write_text(f, "{\"a\":1}\n{\"b\":");
    assert_ok(open_source(f), &f->error);
    assert_string_equal(read_all(f, NULL), "1:{\"a\":1}");
    assert_true(pawl__delivery_file_is_at_end(f->source, &rest));
    assert_int_equal(rest, strlen("{\"b\":"));
    assert_string_equal(read_all(f, NULL), "");
    write_text(f, "{\"a\":1}\n{\"b\":2}\n");
    assert_string_equal(read_all(f, NULL), "2:{\"b\":2}");
    assert_true(pawl__delivery_file_is_at_end(f->source, &rest));
    assert_int_equal(rest, 0);
}

static void test_blank_lines_and_a_byte_order_mark_are_no_messages(void **state)
{
    struct fixture *f = *state;
    struct delivery_stream_state now;

    write_text(f, "\xef\xbb\xbf{\"a\":1}\r\n\n  \r\n{\"b\":2}\n\n");
    assert_ok(open_source(f), &f->error);
    assert_string_equal(read_all(f, NULL), "1:{\"a\":1}\r 4:{\"b\":2}");
    assert_ok(f->source->ops->state(f->source, 0, &now, &f->error), &f->error);
    assert_int_equal(now.acked_to, 5);
    assert_true(f->source->may_skip);
}

static void test_the_same_command_finds_the_same_places(void **state)
{
    struct fixture *f = *state;
    struct delivery_place first;
    struct delivery_place second;

    write_text(f, "{\"a\":1}\n{\"b\":2}\n");
    assert_ok(open_source(f), &f->error);
    read_all(f, &first);
    assert_ok(open_source(f), &f->error);
    read_all(f, &second);
    assert_memory_equal(&first, &second, sizeof(first));

    f->options.generation = "2026-02-03"; /* another generation is another file */
    assert_ok(open_source(f), &f->error);
    read_all(f, &second);
    assert_int_not_equal(first.created_ns, second.created_ns);
    assert_int_equal(first.sequence, second.sequence);
}

static void test_a_file_that_grew_goes_on_where_it_was(void **state)
{
    struct fixture *f = *state;

    write_text(f, "{\"a\":1}\n{\"b\":2}\n");
    assert_ok(open_source(f), &f->error);
    read_all(f, &f->options.applied);
    write_text(f, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
    assert_ok(open_source(f), &f->error);
    assert_ok(f->source->ops->restart_at(f->source, 3, &f->error), &f->error);
    assert_string_equal(read_all(f, NULL), "3:{\"c\":3}");
}

static void test_a_file_that_changed_before_our_place_is_refused(void **state)
{
    struct fixture *f = *state;
    static const char *const changed[] = {
        "{\"a\":9}\n{\"b\":2}\n{\"c\":3}\n", /* one byte, same length */
        "{\"a\":1}\n\n{\"b\":2}\n{\"c\":3}\n",
        "{\"a\":1}\n", /* shorter */
        "{\"a\":1}\n{\"b\":2}",
        "",
    };

    write_text(f, "{\"a\":1}\n{\"b\":2}\n");
    assert_ok(open_source(f), &f->error);
    read_all(f, &f->options.applied);
    for (size_t i = 0; i < COUNT_OF(changed); i++) {
        write_text(f, changed[i]);
        assert_status(open_source(f), PAWL_CONFLICT, &f->error);
        assert_message(&f->error, "name another --generation than '1'");
        assert_message(&f->error, f->path);
    }
    f->options.generation = "2";
    write_text(f, changed[0]);
    assert_ok(open_source(f), &f->error);
    assert_string_equal(read_all(f, NULL), "1:{\"a\":9} 2:{\"b\":2} 3:{\"c\":3}");
}

static void test_a_file_that_is_cut_or_replaced_meanwhile_is_refused(void **state)
{
    struct fixture *f = *state;
    struct delivery_stream_state now;
    char other[TEMPDIR_SIZE + 32];

    write_text(f, "{\"a\":1}\n{\"b\":2}\n");
    assert_ok(open_source(f), &f->error);
    read_all(f, NULL);
    assert_ok(f->source->ops->state(f->source, 2, &now, &f->error), &f->error);
    assert_true(now.probe_found);
    assert_int_equal(truncate(f->path, 8), 0);
    assert_status(f->source->ops->state(f->source, 2, &now, &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "has become shorter");

    write_text(f, "{\"a\":1}\n{\"b\":2}\n");
    assert_ok(open_source(f), &f->error);
    read_all(f, NULL);
    snprintf(other, sizeof(other), "%s/other", f->dir);
    file_write(other, "{\"z\":1}\n", 8);
    assert_int_equal(rename(other, f->path), 0);
    assert_status(f->source->ops->state(f->source, 0, &now, &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "was replaced");
}

static void test_a_probe_finds_a_line_that_was_read_long_ago(void **state)
{
    struct fixture *f = *state;
    struct delivery_batch batch = { 0 };
    struct delivery_stream_state now;
    struct delivery_fetch all = { .messages_max = 10000, .bytes_max = 1 << 20 };
    FILE *file = fopen(f->path, "we");

    for (int i = 1; i <= 5000; i++) {
        fprintf(file, "{\"n\":%d}\n", i);
    }
    assert_int_equal(fclose(file), 0);
    assert_ok(open_source(f), &f->error);
    assert_ok(f->source->ops->state(f->source, 4000, &now, &f->error),
              &f->error); /* not yet read */
    assert_true(now.probe_found);
    int64_t stored_ns = now.probe_stored_ns;
    assert_ok(f->source->ops->fetch(f->source, &all, &batch, &f->error), &f->error);
    assert_int_equal(batch.count, 5000);
    assert_int_equal(batch.messages[3999].place.stored_ns, stored_ns);
    int64_t early_ns = batch.messages[9].place.stored_ns;
    assert_ok(f->source->ops->state(f->source, 10, &now, &f->error), &f->error);
    assert_int_equal(now.probe_stored_ns, early_ns);
    assert_ok(f->source->ops->state(f->source, 5001, &now, &f->error), &f->error);
    assert_false(now.probe_found);
    assert_int_equal(now.last, 5000);
}

static void test_a_line_at_the_limit_passes_and_one_above_it_is_named(void **state)
{
    struct fixture *f = *state;
    struct delivery_batch batch = { 0 };

    f->options.line_bytes_max = 10;
    write_text(f, "1\n\"45678901\"\n\"456789012\"\n2\n");
    assert_ok(open_source(f), &f->error);
    assert_string_equal(read_all(f, NULL), "1:1 2:\"45678901\"");
    assert_status(
        f->source->ops->fetch(f->source, &many, &batch, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "line 3 is longer than 10 bytes");
}

static void test_what_is_no_file_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_status(open_source(f), PAWL_NOT_FOUND, &f->error);
    f->options.path = f->dir;
    assert_status(open_source(f), PAWL_INVALID, &f->error);
    assert_message(&f->error, "is a directory");
}

/* --- standard input --- */

static void pipe_text(struct fixture *f, const char *text, bool close_writer, int *ret_writer)
{
    int ends[2];

    close_source(f);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
    f->options.path = NULL;
    f->options.fd = ends[0];
    if (close_writer) {
        close(ends[1]);
    } else {
        *ret_writer = ends[1];
    }
}

static void test_a_pipe_is_read_again_by_the_next_run_and_each_line_passed_once(void **state)
{
    struct fixture *f = *state;
    size_t rest = 0;

    pipe_text(f, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n", true, NULL);
    assert_ok(open_source(f), &f->error);
    assert_string_equal(read_all(f, &f->options.applied), "1:{\"a\":1} 2:{\"b\":2} 3:{\"c\":3}");
    close(f->options.fd);

    pipe_text(f, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n{\"d\":4}\n", true, NULL);
    assert_ok(open_source(f), &f->error);
    assert_ok(f->source->ops->restart_at(f->source, 4, &f->error), &f->error);
    assert_string_equal(read_all(f, NULL), "4:{\"d\":4}");
    assert_string_equal(read_all(f, NULL), "");
    assert_true(pawl__delivery_file_is_at_end(f->source, &rest));
    close(f->options.fd);

    struct delivery_batch batch = { 0 };
    pipe_text(f, "{\"a\":1}\n{\"b\":9}\n{\"c\":3}\n{\"d\":4}\n", true, NULL);
    assert_ok(open_source(f), &f->error);
    assert_ok(f->source->ops->restart_at(f->source, 4, &f->error), &f->error);
    assert_status(
        f->source->ops->fetch(f->source, &many, &batch, &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "'standard input' has changed");
    close(f->options.fd);
}

static void test_a_slow_pipe_holds_nobody(void **state)
{
    struct fixture *f = *state;
    struct delivery_fetch patient = many;
    struct delivery_batch batch = { 0 };
    int writer = -1;

    pipe_text(f, "{\"a\":", false, &writer);
    assert_ok(open_source(f), &f->error);
    patient.wait_ns = 100 * NS_PER_MS;
    assert_ok(f->source->ops->fetch(f->source, &patient, &batch, &f->error), &f->error);
    assert_int_equal(batch.count, 0);
    assert_int_equal(write(writer, "1}\n", 3), 3);
    assert_string_equal(read_all(f, NULL), "1:{\"a\":1}");
    close(writer);
    close(f->options.fd);
}

static void test_a_pipe_repeats_only_what_nobody_acknowledged(void **state)
{
    struct fixture *f = *state;
    struct delivery_batch batch = { 0 };

    pipe_text(f, "1\n2\n3\n", true, NULL);
    assert_ok(open_source(f), &f->error);
    assert_ok(f->source->ops->fetch(f->source, &many, &batch, &f->error), &f->error);
    assert_int_equal(batch.count, 3);
    assert_ok(f->source->ops->ack(f->source, batch.messages, 1, &f->error), &f->error);
    assert_ok(f->source->ops->restart_at(f->source, 2, &f->error), &f->error);
    assert_string_equal(read_all(f, NULL), "2:2 3:3");
    assert_status(f->source->ops->restart_at(f->source, 2, &f->error), PAWL_UNSUPPORTED, &f->error);
    assert_message(&f->error, "run the command again");
    close(f->options.fd);
}

static void test_no_memory_loses_no_line(void **state)
{
    struct fixture *f = *state;

    write_text(f, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
    FAULT_WALK (walk) {
        struct delivery_batch batch = { 0 };
        pawl_status status = open_source(f);
        if (status == PAWL_OK) {
            status = f->source->ops->fetch(f->source, &many, &batch, &f->error);
        }
        bool fired = fault_fired();
        fault_disarm();
        assert_int_equal(status, fired ? PAWL_NOMEM : PAWL_OK);
        if (f->source
            != NULL) { /* a fetch that failed is asked again, from where the pipeline knows */
            assert_ok(f->source->ops->restart_at(f->source, 1, &f->error), &f->error);
            assert_string_equal(read_all(f, NULL), "1:{\"a\":1} 2:{\"b\":2} 3:{\"c\":3}");
        }
    }
}

#define file_test(function) cmocka_unit_test_setup_teardown(function, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        file_test(test_an_unterminated_last_line_waits),
        file_test(test_blank_lines_and_a_byte_order_mark_are_no_messages),
        file_test(test_the_same_command_finds_the_same_places),
        file_test(test_a_file_that_grew_goes_on_where_it_was),
        file_test(test_a_file_that_changed_before_our_place_is_refused),
        file_test(test_a_file_that_is_cut_or_replaced_meanwhile_is_refused),
        file_test(test_a_probe_finds_a_line_that_was_read_long_ago),
        file_test(test_a_line_at_the_limit_passes_and_one_above_it_is_named),
        file_test(test_what_is_no_file_is_refused),
        file_test(test_a_pipe_is_read_again_by_the_next_run_and_each_line_passed_once),
        file_test(test_a_slow_pipe_holds_nobody),
        file_test(test_no_memory_loses_no_line),
        file_test(test_a_pipe_repeats_only_what_nobody_acknowledged),
    };

    return cmocka_run_group_tests_name("delivery_file", tests, NULL, NULL);
}
