/* An application compared with itself: each kind of edit of its entries is named, and nothing else is.
 * Argument: the backend. */
#include "lib/app_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/verify/sketch.h"
#include "app/verify/verify.h"
#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/os/failpoint.h"

enum { SHOP = 7, NEIGHBOUR = 9, OTHER = 8, PARTITION = 1 };

/* --- sketches --- */

struct left {
    uint64_t added;
    uint64_t removed;
    uint64_t sum;
};

static void count_left(void *context, const struct app_sketch_item *item, bool added)
{
    struct left *left = context;

    left->added += added;
    left->removed += !added;
    left->sum += item->words[0];
}

static void fill_sketch(struct app_sketch *sketch, uint64_t first, uint64_t last, bool add)
{
    for (uint64_t i = first; i <= last; i++) {
        const struct app_sketch_item item = { { i, i * 3, UINT64_MAX - i, 1, 0 } };
        if (add) {
            pawl__app_sketch_add(sketch, &item);
        } else {
            pawl__app_sketch_remove(sketch, &item);
        }
    }
}

static void test_a_sketch_names_what_differs_between_long_lists(void **state)
{
    AUTO(pawl__app_sketch_free_p) struct app_sketch *sketch = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    struct left left = { 0 };

    (void)state;
    assert_ok(pawl__app_sketch_new(&sketch, &error), &error);
    fill_sketch(sketch, 1, 300000, true);
    fill_sketch(sketch, 11, 300005, false);
    assert_true(pawl__app_sketch_name(sketch, count_left, &left));
    assert_int_equal(left.added, 10);
    assert_int_equal(left.removed, 5);
    assert_int_equal(left.sum, 55 + 5 * 300003);
    fill_sketch(sketch, 1, SKETCH_NAMED_MAX, true);
    left = (struct left){ 0 };
    assert_true(pawl__app_sketch_name(sketch, count_left, &left));
    assert_int_equal(left.added, SKETCH_NAMED_MAX);
    fill_sketch(sketch, 1, UINT64_C(4) * SKETCH_NAMED_MAX, true);
    assert_false(pawl__app_sketch_name(sketch, count_left, &left)); /* and says so */
}

/* --- an application --- */

struct findings {
    struct pawl__buf text;
    size_t count;
};

static bool add_finding(void *context, const pawl_app_damage *damage)
{
    struct findings *findings = context;

    findings->count++;
    pawl__buf_add_format(
        &findings->text, "%s: %s\n", pawl_app_part_word(damage->part), damage->what);
    return true;
}

static void update(struct app_fixture *f, uint64_t id, const char *data, const char *key)
{
    const pawl_app_update change = { .size = sizeof(pawl_app_update),
                                     .id = id,
                                     .data = pawl_view_of(data) };
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = SHOP,
                                       .kind = pawl_view_of("shop"),
                                       .key = pawl_view_of(key),
                                       .updates = &change,
                                       .update_count = 1 };

    app_exec(f, &command);
}

/* PLog of partition 1: 1-3 invoices 1000-1002 of workspace 7, 4 one of 9, 5 a record of 7 with a key, 6 and 7
 * updates of it. */
static void fill(struct app_fixture *f, pawl_app_trust trust)
{
    f->descriptor.trust = trust;
    f->options.flush_interval_ms = 1;
    app_open(f);
    for (int i = 0; i < 3; i++) {
        app_invoice(f, SHOP);
    }
    app_invoice(f, NEIGHBOUR);
    assert_ok(app_try_create(f, SHOP, PAWL_APP_C_RECORD, "pay"), &f->error);
    uint64_t id = f->response->ids[0].id;
    update(f, id, "{\"a\":1}", NULL);
    update(f, id, "{\"a\":2}", "again");
    app_create(f, OTHER, PAWL_APP_W_RECORD);
    app_await_written(f, PARTITION);
    app_await_written(f, 0);
}

static char *verify(struct app_fixture *f, uint64_t workspace)
{
    struct findings findings = { .text = BUF_INIT(1 << 20) };
    pawl_app_report report = PAWL_APP_REPORT_INIT;
    pawl_status status =
        pawl_app_verify(f->app, workspace, add_finding, &findings, NULL, &report, &f->error);

    assert_status(status, findings.count == 0 ? PAWL_OK : PAWL_CORRUPT, &f->error);
    if (findings.count == 0) {
        pawl__buf_add_text(&findings.text, "");
    }
    char *text = pawl__buf_steal(&findings.text);
    return text == NULL ? strdup("") : text;
}

static void expect_whole(struct app_fixture *f)
{
    app_assert_text(verify(f, 0), "");
    app_assert_text(verify(f, SHOP), "");
    app_assert_text(verify(f, NEIGHBOUR), "");
    app_assert_text(verify(f, OTHER), "");
    app_assert_text(verify(f, 12345), "");
}

static void test_a_good_application_has_nothing_wrong(void **state)
{
    struct app_fixture *f = *state;
    pawl_app_report report = PAWL_APP_REPORT_INIT;

    fill(f, PAWL_APP_TRUST_0);
    expect_whole(f);
    assert_ok(pawl_app_verify(f->app, 0, NULL, NULL, NULL, &report, &f->error), &f->error);
    assert_int_equal(report.entries[PAWL_APP_PART_PLOG], 8);
    assert_int_equal(report.entries[PAWL_APP_PART_WLOG], 8);
    assert_int_equal(report.entries[PAWL_APP_PART_RECORDS], 6);
    assert_int_equal(report.entries[PAWL_APP_PART_NUMBER_KEYS], 4);
    assert_int_equal(report.entries[PAWL_APP_PART_KEYS], 2);
    assert_int_equal(report.entries[PAWL_APP_PART_OFFSETS], 2);
    assert_int_equal(report.entries[PAWL_APP_PART_DESCRIPTOR], 2);
    if (!f->in_memory) {
        app_reopen(f);
        expect_whole(f);
    }
}

static void test_a_row_beside_descriptor_and_format_is_named(void **state)
{
    struct app_fixture *f = *state;
    struct app_key key = pawl__app_key_format(1);

    fill(f, PAWL_APP_TRUST_2);
    key.bytes[key.len - 1] = 'x';
    app_sabotage(f, APP_META, key, pawl_view_of("2"));
    app_assert_text(verify(f, 0),
                    "descriptor: the formax (application 1) is neither the descriptor nor the "
                    "format: no pawl wrote it\n");
}

static void test_an_empty_application_has_nothing_wrong(void **state)
{
    struct app_fixture *f = *state;

    app_open(f);
    expect_whole(f);
}

/* --- edits --- */

enum how { DELETE, FLIP, PUT_JUNK, PUT_NUMBER };

struct edit {
    const char *name;
    enum app_family family;
    struct app_key key;
    enum how how;
    uint64_t number; /* of PUT_NUMBER */
    uint64_t offset;
    const char *finding;
    bool quiet_of_neighbours; /* `verify` of another workspace of the partition finds nothing */
};

static void change(struct app_fixture *f, const struct edit *edit, const struct app_value *was)
{
    char bytes[256] = "";

    switch (edit->how) {
    case DELETE:
        app_delete(f, edit->family, edit->key);
        break;
    case FLIP:
        assert_true(was->found && was->bytes.len <= sizeof(bytes));
        memcpy(bytes, was->bytes.data, was->bytes.len);
        bytes[was->bytes.len - 1] ^= 1;
        app_sabotage(f, edit->family, edit->key, (pawl_view){ bytes, was->bytes.len });
        break;
    case PUT_JUNK:
        app_sabotage(f, edit->family, edit->key, pawl_view_of("junk"));
        break;
    case PUT_NUMBER:
        app_sabotage_number(f, edit->family, edit->key, edit->number, edit->offset);
        break;
    }
}

static void expect_finding(struct app_fixture *f, const struct edit *edit, uint64_t workspace)
{
    char *text = verify(f, workspace);

    if (strstr(text, edit->finding) == NULL) {
        fail_msg("%s: '%s' is not among the findings:\n%s", edit->name, edit->finding, text);
    }
    free(text);
}

/* Changes one entry, looks, and puts it back. */
static void try_edit(struct app_fixture *f, const struct edit *edit)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct app_value was;

    assert_ok(
        pawl__app_store_get(
            f->app->store, edit->family, pawl__app_key_view(&edit->key), &arena, &was, &f->error),
        &f->error);
    change(f, edit, &was);
    expect_finding(f, edit, 0);
    expect_finding(f, edit, SHOP);
    if (edit->quiet_of_neighbours) {
        app_assert_text(verify(f, NEIGHBOUR), "");
    }
    if (was.found) {
        app_sabotage(f, edit->family, edit->key, was.bytes);
    } else {
        app_delete(f, edit->family, edit->key);
    }
}

static void try_edits(struct app_fixture *f, const struct edit *edits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        try_edit(f, &edits[i]);
    }
    expect_whole(f); /* each was put back */
}

#define PLOG(offset) APP_PLOG, pawl__app_key_plog(1, PARTITION, offset)
#define WLOG(offset) APP_WLOG, pawl__app_key_wlog(1, SHOP, offset)
#define RECORD(id) APP_RECORDS, pawl__app_key_record(1, SHOP, id)
#define ROW(sequence) APP_SEQ, pawl__app_key_seq(1, PARTITION, SHOP, sequence)
#define OFFSET APP_OFFSETS, pawl__app_key_offset(1, PARTITION)
#define NUMBER(number) APP_NUMBERS, pawl__app_key_used(1, SHOP, APP_INVOICE, number)
#define KEY(text) APP_KEYS, pawl__app_key_idempotency(1, SHOP, pawl_view_of(text))
#define FIRST_C PAWL_APP_C_ID_MIN

static void test_edits_of_the_logs_are_named(void **state)
{
    struct app_fixture *f = *state;
    const struct edit edits[] = {
        { "PLog: deleted", PLOG(2), DELETE, 0, 0, "has no events at offsets 2-2", false },
        { "PLog: deleted, the WLog",
          PLOG(2),
          DELETE,
          0,
          0,
          "offset 2 of the WLog of workspace 7 (PLog offset 2) is in no event",
          false },
        { "PLog: the first", PLOG(1), DELETE, 0, 0, "has no events at offsets 1-1", false },
        { "PLog: the last",
          PLOG(7),
          DELETE,
          0,
          0,
          "partition 1: the stored offset is 8, the PLog ends at 6",
          false },
        { "PLog: flipped",
          PLOG(2),
          FLIP,
          0,
          0,
          "plog: offset 2 of the PLog of partition 1",
          false },
        { "PLog: added", PLOG(9), PUT_JUNK, 0, 0, "plog: offset 9 of the PLog", false },
        { "WLog: deleted",
          WLOG(2),
          DELETE,
          0,
          0,
          "offset 2 of the WLog of workspace 7 (PLog offset 2) is missing",
          true },
        { "WLog: flipped", WLOG(2), FLIP, 0, 0, "offset 2 of the WLog of workspace 7", true },
        { "WLog: overwritten", WLOG(6), PUT_JUNK, 0, 0, "is not what the PLog says", true },
        { "WLog: added",
          WLOG(7),
          PUT_JUNK,
          0,
          0,
          "offset 7 of the WLog of workspace 7 is in no event",
          true },
        { "record: deleted",
          RECORD(200002),
          DELETE,
          0,
          0,
          "record 200002 of workspace 7 is missing",
          true },
        { "record: flipped",
          RECORD(200002),
          FLIP,
          0,
          0,
          "record 200002 of workspace 7 is not what the PLog says",
          true },
        { "record: updated, flipped",
          RECORD(FIRST_C),
          FLIP,
          0,
          0,
          "is not what the PLog says",
          true },
        { "record: added",
          RECORD(200009),
          PUT_JUNK,
          0,
          0,
          "record 200009 of workspace 7 is in no event",
          true },
        { "key: deleted",
          KEY("pay"),
          DELETE,
          0,
          0,
          "keys: an idempotency key of workspace 7 (PLog offset 5) is missing",
          true },
        { "key: flipped", KEY("pay"), FLIP, 0, 0, "keys: an idempotency key of workspace 7", true },
        { "key: added", KEY("more"), PUT_JUNK, 0, 0, "is in no event of the PLog", true },
    };

    fill(f, PAWL_APP_TRUST_2);
    try_edits(f, edits, COUNT_OF(edits));
}

static void test_edits_of_numbers_are_named(void **state)
{
    struct app_fixture *f = *state;
    const struct edit edits[] = {
        { "row: lowered",
          ROW(APP_INVOICE),
          PUT_NUMBER,
          1001,
          4,
          "sequence 16 'invoice' of workspace 7: 1001 is stored, the log has used up to 1002",
          true },
        { "row: older", ROW(APP_INVOICE), PUT_NUMBER, 1000, 2, "would be given out twice", true },
        { "row: deleted",
          ROW(APP_INVOICE),
          DELETE,
          0,
          0,
          "nothing is stored, the log has used up to 1002",
          true },
        { "row: raised",
          ROW(APP_INVOICE),
          PUT_NUMBER,
          1009,
          4,
          "1009 is stored, the log ends at 1002",
          true },
        { "row: of another offset",
          ROW(APP_INVOICE),
          PUT_NUMBER,
          1002,
          3,
          "1002 is stored as the last one before PLog offset 3, which was 1001",
          true },
        { "row: flipped", ROW(APP_INVOICE), FLIP, 0, 0, "what is stored is damaged", true },
        { "row: cut", ROW(APP_INVOICE), PUT_JUNK, 0, 0, "what is stored is damaged", true },
        { "row: of no sequence", ROW(99), PUT_NUMBER, 5, 5, "has no such sequence", true },
        { "row: in the wrong partition",
          APP_SEQ,
          pawl__app_key_seq(1, 0, SHOP, APP_INVOICE),
          PUT_NUMBER,
          1002,
          4,
          "sequence 16 'invoice' of workspace 7 is stored in partition 0, which does not have",
          true },
        { "WLog offsets: deleted",
          ROW(PAWL_APP_SEQ_WLOG_OFFSET),
          DELETE,
          0,
          0,
          "sequence 1 'wlog_offset' of workspace 7: nothing is stored",
          true },
        { "ids: lowered",
          ROW(PAWL_APP_SEQ_OW_RECORD),
          PUT_NUMBER,
          200001,
          4,
          "200001 is stored, the log has used up to 200003",
          true },
        { "offset: deleted",
          OFFSET,
          DELETE,
          0,
          0,
          "offsets: partition 1: numbers are stored up to",
          false },
        { "offset: lowered", OFFSET, PUT_NUMBER, 2, 2, "its stored offset is 2", false },
        { "offset: raised",
          OFFSET,
          PUT_NUMBER,
          20,
          20,
          "the stored offset is 20, the PLog ends at 7",
          false },
        { "offset: flipped",
          OFFSET,
          FLIP,
          0,
          0,
          "offsets: the sequences' offset of partition 1",
          false },
        { "number: deleted",
          NUMBER(1001),
          DELETE,
          0,
          0,
          "the key of number 1001 of sequence 'invoice' of workspace 7 (PLog offset 2) is missing",
          true },
        { "number: of another event", NUMBER(1001), FLIP, 0, 0, "is not what the PLog says", true },
        { "number: added",
          NUMBER(1003),
          PUT_JUNK,
          0,
          0,
          "the key of number 1003 of sequence 'invoice' of workspace 7 is in no event",
          true },
    };

    fill(f, PAWL_APP_TRUST_0);
    try_edits(f, edits, COUNT_OF(edits));
}

/* Nothing but WLogs and records is left, and the anchor knows that there was more. */
static void test_logs_and_numbers_that_are_deleted_together_are_named(void **state)
{
    struct app_fixture *f = *state;

    fill(f, PAWL_APP_TRUST_2);
    for (uint64_t i = 1; i <= 7; i++) {
        app_delete(f, APP_PLOG, pawl__app_key_plog(1, PARTITION, i));
    }
    app_delete(f, OFFSET);
    for (int sequence = 1; sequence <= APP_INVOICE; sequence++) {
        uint16_t i = (uint16_t)sequence;
        app_delete(f, ROW(i));
        app_delete(f, APP_SEQ, pawl__app_key_seq(1, PARTITION, NEIGHBOUR, i));
    }
    const struct edit all = { .name = "all",
                              .finding = "of the WLog of workspace 7 (PLog offset 3) is "
                                         "in no event of the PLog" };
    const struct edit records = { .name = "all",
                                  .finding = "record 200001 of workspace 7 is in no" };
    expect_finding(f, &all, 0);
    expect_finding(f, &all, SHOP);
    expect_finding(f, &records, SHOP);
}

static void test_the_anchor_tells_of_a_cut_of_everything(void **state)
{
    struct app_fixture *f = *state;

    if (f->in_memory) {
        return;
    }
    fill(f, PAWL_APP_TRUST_2);
    app_reopen(f); /* which writes it */
    app_await_written(f, PARTITION);
    app_delete(f, PLOG(7));
    app_delete(f, WLOG(6));
    const struct edit cut = { .name = "cut",
                              .finding =
                                  "anchor: cut off: the log of partition 1 ends at offset 6, "
                                  "its anchor is at 7" };
    expect_finding(f, &cut, 0);
    expect_finding(f, &cut, SHOP);
}

/* A number that two events used, as level 2 lets it happen. */
static void test_a_number_that_was_given_twice_is_named(void **state)
{
    struct app_fixture *f = *state;

    app_forget_quickly(f);
    f->descriptor.trust = PAWL_APP_TRUST_2;
    app_open(f);
    app_invoice(f, SHOP);
    app_invoice(f, SHOP);
    app_invoice(f, NEIGHBOUR);
    app_await_written(f, PARTITION);
    app_sabotage_number(f, ROW(APP_INVOICE), 1000, 2);
    assert_int_equal(app_invoice(f, SHOP), 1001);
    app_await_written(f, PARTITION);
    app_assert_text(verify(f, 0),
                    "sequences: number 1001 of sequence 'invoice' of workspace 7 is used again at "
                    "PLog offset 4 of partition 1\n");
}

/* --- more than memory is for --- */

static const struct app_verify_limits usual_limits = { 200000, 100000, 1000 };

enum { RECORDS = 60 };
#define FIRST_RECORD PAWL_APP_C_ID_MIN

static void expect_updated(struct app_fixture *f, const char *text)
{
    struct findings findings = { .text = BUF_INIT(1 << 20) };
    pawl_app_report report = PAWL_APP_REPORT_INIT;
    pawl_status status =
        pawl_app_verify(f->app, 0, add_finding, &findings, NULL, &report, &f->error);

    assert_status(status, findings.count == 0 ? PAWL_OK : PAWL_CORRUPT, &f->error);
    assert_int_equal(report.entries[PAWL_APP_PART_RECORDS], RECORDS);
    pawl__buf_add_text(&findings.text, "");
    char *found = pawl__buf_steal(&findings.text);
    assert_string_equal(found == NULL ? "" : found, text);
    free(found);
}

static void test_more_updated_records_than_fit_are_compared_in_parts(void **state)
{
    static const struct app_verify_limits few[] = {
        { 8, 4, 1000 },  /* enough parts */
        { 4, 40, 1000 }, /* too few: they are halved */
    };
    struct app_fixture *f = *state;

    assert_memory_equal(&pawl__app_verify_limits, &usual_limits, sizeof(usual_limits));
    app_open(f);
    for (int i = 0; i < RECORDS; i++) {
        app_create(f, SHOP, PAWL_APP_C_RECORD);
    }
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < RECORDS; i++) {
            update(f, FIRST_RECORD + i, round == 2 ? "{\"a\":2}" : "{\"a\":1}", NULL);
        }
    }
    for (size_t i = 0; i < COUNT_OF(few); i++) {
        pawl__app_verify_limits = few[i];
        expect_updated(f, "");
    }
    char wrong[100];
    snprintf(wrong,
             sizeof(wrong),
             "records: record %" PRIu64 " of workspace 7 is not what the PLog says\n",
             FIRST_RECORD + 7);
    app_sabotage(f, RECORD(FIRST_RECORD + 7), pawl_view_of("junk"));
    for (size_t i = 0; i < COUNT_OF(few); i++) {
        pawl__app_verify_limits = few[i];
        expect_updated(f, wrong);
    }
    pawl__app_verify_limits = usual_limits;
}

/* Numbers are stored while it is read: that is no damage. */
static void test_an_application_in_use_is_whole(void **state)
{
    struct app_fixture *f = *state;

    f->options.flush_interval_ms = 1;
    app_open(f);
    for (uint64_t round = 0; round < 200; round++) {
        app_invoice(f, SHOP);
        char *found = verify(f, 0);
        assert_string_equal(found, "");
        free(found);
    }
}

static void test_more_wrong_workspaces_than_are_listed_are_said_to_be_more(void **state)
{
    enum { LISTED = 2, WRONG = 5 };
    struct app_fixture *f = *state;

    app_forget_quickly(f);
    app_open(f);
    for (uint64_t i = 0; i < WRONG; i++) {
        app_invoice(f, SHOP + 2 * i);
    }
    app_await_written(f, PARTITION);
    for (uint64_t i = 0; i < WRONG; i++) {
        app_sabotage_number(
            f, APP_SEQ, pawl__app_key_seq(1, PARTITION, SHOP + 2 * i, APP_INVOICE), 1007, i + 1);
    }
    pawl__app_verify_limits.suspects_max = LISTED;
    char *text = verify(f, 0);
    pawl__app_verify_limits = usual_limits;
    assert_non_null(strstr(text, "of workspace 7"));
    assert_non_null(strstr(text, "of workspace 9"));
    assert_null(strstr(text, "of workspace 11"));
    assert_non_null(
        strstr(text, "numbers of more than 2 workspaces are wrong: the others are not listed"));
    free(text);
}

/* --- anew --- */

/* Whatever became of the numbers, the log knows them. */
static void test_a_rebuild_makes_the_numbers_anew_from_the_log(void **state)
{
    struct app_fixture *f = *state;

    if (f->in_memory) {
        return;
    }
    fill(f, PAWL_APP_TRUST_0);
    app_sabotage_number(f, ROW(APP_INVOICE), 1000, 2);
    app_sabotage_number(f, ROW(99), 7, 2);
    app_sabotage_number(f, ROW(PAWL_APP_SEQ_OW_RECORD), 999999, 2);
    app_sabotage(f, ROW(PAWL_APP_SEQ_WLOG_OFFSET), pawl_view_of("junk"));
    app_delete(f, NUMBER(1001));
    app_sabotage(f, NUMBER(1007), pawl_view_of("junk"));
    app_sabotage_number(f, OFFSET, 20, 20);
    pawl_app_close(STEAL(f->app), 0, NULL);
    f->options.rebuild = true;
    app_open(f);
    assert_ok(pawl_app_wait(f->app, APP_PATIENCE_MS, &f->error), &f->error);
    app_await_written(f, PARTITION);
    app_await_written(f, 0);
    expect_whole(f);
    assert_int_equal(app_invoice(f, SHOP), 1003);
    f->options.rebuild = false;
    app_reopen(f);
    assert_int_equal(app_invoice(f, SHOP), 1004);
}

/* What opens an older store reads the offsets, and what repairs them must not need them. */
static void test_a_rebuild_repairs_an_older_store_that_cannot_be_brought_up(void **state)
{
    struct app_fixture *f = *state;
    pawl_app *app = NULL;

    if (f->in_memory) {
        return;
    }
    fill(f, PAWL_APP_TRUST_0);
    app_delete(f, APP_META, pawl__app_key_format(1));
    app_sabotage(f, OFFSET, pawl_view_of("junk"));
    app_remove_anchor(f); /* such a store has none */
    f->app->anchor_writer.started = false;
    pawl_app_close(STEAL(f->app), 0, NULL);
    assert_status(
        pawl_app_open(f->location, NULL, &f->options, &app, &f->error), PAWL_CORRUPT, &f->error);
    f->options.rebuild = true;
    app_open(f);
    assert_ok(pawl_app_wait(f->app, APP_PATIENCE_MS, &f->error), &f->error);
    app_await_written(f, PARTITION);
    app_await_written(f, 0);
    expect_whole(f);
    assert_false(f->app->partitions[PARTITION].seq.accepts_short);
    f->options.rebuild = false;
    app_reopen(f);
    assert_int_equal(app_invoice(f, SHOP), 1003);
}

/* At the first, the second, ... write, until one is not interrupted any more. */
static bool interrupt_rebuild(struct app_fixture *f, int at)
{
    char point[64];

    snprintf(point, sizeof(point), "app.format.write.before=error:IO@%d", at);
    assert_ok(pawl__failpoint_set(point, &f->error), &f->error);
    f->options.rebuild = true;
    pawl_status status = pawl_app_open(f->location, NULL, &f->options, &f->app, &f->error);
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
    f->options.rebuild = false;
    assert_true(status == PAWL_OK || status == PAWL_IO);
    return status != PAWL_OK;
}

static void test_an_interrupted_rebuild_is_told_as_that_and_resumed_by_the_next_open(void **state)
{
    struct app_fixture *f = *state;
    int interrupted = 0;

    if (f->in_memory) {
        return;
    }
    fill(f, PAWL_APP_TRUST_0);
    pawl_app_close(STEAL(f->app), 0, NULL);
    while (interrupt_rebuild(f, interrupted + 1)) {
        f->options.read_only = true;
        assert_ok(pawl_app_open(f->location, NULL, &f->options, &f->app, &f->error), &f->error);
        if (interrupted > 0) { /* before that, nothing was written */
            app_assert_text(verify(f, 0),
                            "sequences: a rebuild of the numbers was interrupted: run 'pawl seq "
                            "rebuild' again; until then numbers, offsets and keys of numbers are "
                            "not compared\n");
        }
        pawl_app_close(STEAL(f->app), 0, NULL);
        f->options.read_only = false;
        interrupted++;
    }
    assert_true(interrupted >= 3);
    assert_ok(pawl_app_wait(f->app, APP_PATIENCE_MS, &f->error), &f->error);
    app_await_written(f, PARTITION);
    app_sabotage_number(f, ROW(PAWL_APP_SEQ_OW_RECORD), 999999, 2);
    pawl_app_close(STEAL(f->app), 0, NULL);
    assert_true(interrupt_rebuild(f, 2)); /* what is to be forgotten is still there */
    assert_ok(pawl_app_open(f->location, NULL, &f->options, &f->app, &f->error), &f->error);
    assert_ok(pawl_app_wait(f->app, APP_PATIENCE_MS, &f->error), &f->error);
    app_await_written(f, PARTITION);
    app_await_written(f, 0);
    expect_whole(f);
    assert_int_equal(app_invoice(f, SHOP), 1003);
}

static void test_a_rebuild_from_a_log_that_lost_events_is_refused(void **state)
{
    struct app_fixture *f = *state;
    pawl_app *app = NULL;

    if (f->in_memory) {
        return;
    }
    fill(f, PAWL_APP_TRUST_0);
    app_delete(f, PLOG(2));
    pawl_app_close(STEAL(f->app), 0, NULL);
    f->options.rebuild = true;
    assert_status(
        pawl_app_open(f->location, NULL, &f->options, &app, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "the logs themselves are not whole");
    f->options.rebuild = false;
    app_open(f); /* nothing was changed */
    assert_int_equal(app_invoice(f, SHOP), 1003);
}

/* Without its format a store would be read as one of format 1, in which a lowered number has no checksum. */
static void test_an_application_that_lost_its_format_or_descriptor_is_damaged(void **state)
{
    static const struct {
        struct app_key (*key)(uint32_t app);
        const char *says;
    } lost[] = {
        { pawl__app_key_format, "the stored format is missing: restore it from a backup" },
        { pawl__app_key_meta, "the stored descriptor" },
    };
    struct app_fixture *f = *state;
    pawl_app *app = NULL;

    if (f->in_memory) {
        return;
    }
    fill(f, PAWL_APP_TRUST_2);
    for (size_t i = 0; i < COUNT_OF(lost); i++) {
        app_delete(f, APP_META, lost[i].key(1));
        pawl_app_close(STEAL(f->app), 0, NULL);
        for (int read_only = 0; read_only <= 1; read_only++) {
            f->options.read_only = read_only == 1;
            assert_status(pawl_app_open(f->location, NULL, &f->options, &app, &f->error),
                          PAWL_CORRUPT,
                          &f->error);
            assert_message(&f->error, lost[i].says);
        }
        f->options.read_only = false;
        app_teardown(state);
        app_setup(state);
        f = *state;
        fill(f, PAWL_APP_TRUST_2);
    }
}

#define APP_TEST(name) cmocka_unit_test_setup_teardown(name, app_setup, app_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sketch_names_what_differs_between_long_lists),
        APP_TEST(test_a_row_beside_descriptor_and_format_is_named),
        APP_TEST(test_an_empty_application_has_nothing_wrong),
        APP_TEST(test_a_good_application_has_nothing_wrong),
        APP_TEST(test_edits_of_the_logs_are_named),
        APP_TEST(test_edits_of_numbers_are_named),
        APP_TEST(test_logs_and_numbers_that_are_deleted_together_are_named),
        APP_TEST(test_the_anchor_tells_of_a_cut_of_everything),
        APP_TEST(test_a_number_that_was_given_twice_is_named),
        APP_TEST(test_a_rebuild_makes_the_numbers_anew_from_the_log),
        APP_TEST(test_a_rebuild_repairs_an_older_store_that_cannot_be_brought_up),
        APP_TEST(test_an_interrupted_rebuild_is_told_as_that_and_resumed_by_the_next_open),
        APP_TEST(test_a_rebuild_from_a_log_that_lost_events_is_refused),
        APP_TEST(test_more_updated_records_than_fit_are_compared_in_parts),
        APP_TEST(test_an_application_in_use_is_whole),
        APP_TEST(test_more_wrong_workspaces_than_are_listed_are_said_to_be_more),
        APP_TEST(test_an_application_that_lost_its_format_or_descriptor_is_damaged),
    };

    return app_suite(argc, argv, tests, COUNT_OF(tests));
}
