/* Every function of <pawl/ledger.h> with each of its arguments bad, and callbacks that call back: a
 * status, never a crash, an abort or a hang. */
#include "lib/ledger_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/header.h"

static const pawl_view no_bytes = { NULL, 5 }; /* five bytes at NULL */
static const pawl_view any = { "r", 1 };
static const pawl_view none = { NULL, 0 };

static void check_bad(struct ledger_fixture *f, const char *call, pawl_status status)
{
    if (status != PAWL_INVALID || f->err.status != PAWL_INVALID || f->err.message[0] == '\0') {
        fail_msg("%s: %s, and the error says %s: '%s'",
                 call,
                 pawl_status_name(status),
                 pawl_status_name(f->err.status),
                 f->err.message);
    }
    f->err = (pawl_error)PAWL_ERROR_INIT;
}

#define BAD(call) check_bad(f, #call, (call))

static pawl_status step_over(void *context, const pawl_event *event, pawl_error *reterr)
{
    (void)context;
    (void)event;
    (void)reterr;
    return PAWL_OK;
}

static void see_append(void *context,
                       const pawl_append_result *results,
                       size_t count,
                       const pawl_error *outcome)
{
    (void)results;
    (void)count;
    (void)outcome;
    *(int *)context += 1;
}

static bool see_count(void *context, const pawl_count *counted)
{
    (void)context;
    (void)counted;
    return true;
}

static bool see_turn(void *context, const pawl_turn_info *info)
{
    (void)context;
    (void)info;
    return true;
}

static bool see_snapshot(void *context, const pawl_snapshot_info *info)
{
    (void)context;
    (void)info;
    return true;
}

/* Each text of an event at NULL in turn, and one that is NULL as a whole. */
static pawl_event bad_event(size_t field)
{
    pawl_event event = event_of("e", 0, "1");
    pawl_view *const fields[] = {
        &event.id, &event.run_id, &event.kind, &event.actor, &event.payload
    };

    *fields[field] = no_bytes;
    return event;
}

enum { EVENT_TEXTS = 5 };

static pawl_event_filter bad_filter(size_t field)
{
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;
    pawl_view *const fields[] = { &filter.run_id, &filter.kind, &filter.actor };

    if (field < COUNT_OF(fields)) {
        *fields[field] = no_bytes;
    } else {
        filter.size = field == COUNT_OF(fields) ? 0 : SIZE_MAX;
    }
    return filter;
}

enum { BAD_FILTERS = 5 };

static void test_open_and_append_check_their_arguments(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger *l = f->ledger;
    pawl_ledger *other = NULL;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_event good = event_of("e", 0, "1");
    int answers = 0;

    BAD(pawl_ledger_open("memory:", NULL, NULL, &f->err));
    BAD(pawl_ledger_open("", NULL, &other, &f->err));
    options.size = 1;
    BAD(pawl_ledger_open("memory:", &options, &other, &f->err));
    options = (pawl_ledger_options)PAWL_LEDGER_OPTIONS_INIT;
    options.payload_bytes_max = 0;
    BAD(pawl_ledger_open("memory:", &options, &other, &f->err));
    assert_null(other);
    pawl_ledger_close(NULL, 0, NULL);
    pawl_ledger_interrupt(NULL);
    BAD(pawl_ledger_append(NULL, &good, NULL, &f->err));
    BAD(pawl_ledger_append(l, NULL, NULL, &f->err));
    BAD(pawl_ledger_append_many(NULL, &good, 1, NULL, &f->err));
    BAD(pawl_ledger_append_many(l, NULL, 2, NULL, &f->err));
    BAD(pawl_ledger_append_many(l, &good, SIZE_MAX, NULL, &f->err));
    BAD(pawl_ledger_append_async(NULL, &good, 1, see_append, &answers, &f->err));
    BAD(pawl_ledger_append_async(l, NULL, 1, see_append, &answers, &f->err));
    BAD(pawl_ledger_append_async(l, &good, 0, see_append, &answers, &f->err));
    BAD(pawl_ledger_append_async(l, &good, SIZE_MAX, see_append, &answers, &f->err));
    BAD(pawl_ledger_append_async(l, &good, 1, NULL, &answers, &f->err));
    BAD(pawl_event_check(NULL, NULL, &f->err));
    BAD(pawl_event_check(&good, &options, &f->err)); /* payload_bytes_max is 0 */
    BAD(pawl_ledger_append_many(l, &good, 1, &(pawl_append_result){ .size = 0 }, &f->err));
    for (size_t i = 0; i < EVENT_TEXTS; i++) {
        pawl_event events[] = { good, bad_event(i) };
        BAD(pawl_ledger_append_async(l, events, 2, see_append, &answers, &f->err));
        BAD(pawl_event_check(&events[1], NULL, &f->err));
        BAD(pawl_ledger_append(l, &events[1], NULL, &f->err));
        BAD(pawl_ledger_append_many(l, events, 2, NULL, &f->err));
    }
    assert_ok(pawl_ledger_append_many(l, NULL, 0, NULL, &f->err), &f->err);
    assert_int_equal(pawl_ledger_append(l, NULL, NULL, NULL), PAWL_INVALID); /* no error wanted */
    assert_int_equal(answers, 0);
    assert_int_equal(latest_offset(f), 0);
}

static void test_readers_check_their_arguments(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger *l = f->ledger;
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;
    pawl_reader *reader = NULL;
    const pawl_event *event = NULL;

    BAD(pawl_reader_open(NULL, NULL, &reader, &f->err));
    BAD(pawl_reader_open(l, NULL, NULL, &f->err));
    options.size = 3;
    BAD(pawl_reader_open(l, &options, &reader, &f->err));
    options.size = sizeof(options);
    for (size_t i = 0; i < BAD_FILTERS; i++) {
        pawl_event_filter filter = bad_filter(i);
        options.filter = &filter;
        BAD(pawl_reader_open(l, &options, &reader, &f->err));
    }
    assert_null(reader);
    BAD(pawl_reader_next(NULL, &event, &f->err));
    assert_ok(pawl_reader_open(l, NULL, &reader, &f->err), &f->err);
    BAD(pawl_reader_next(reader, NULL, &f->err));
    pawl_reader_free(reader);
    BAD(pawl_reader_wait(NULL, 1, &f->err));
    BAD(pawl_reader_on_events(NULL, NULL, NULL, &f->err));
    pawl_reader_cancel(NULL);
    pawl_reader_free(NULL);
    assert_int_equal(pawl_reader_position(NULL), 0);
}

static void test_questions_check_their_arguments(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger *l = f->ledger;
    pawl_ledger_head head;
    uint64_t offset;
    int64_t turn;
    pawl_event *event = NULL;
    char *text = NULL;

    BAD(pawl_ledger_latest_offset(NULL, &offset, &f->err));
    BAD(pawl_ledger_latest_offset(l, NULL, &f->err));
    BAD(pawl_ledger_get_head(NULL, &head, &f->err));
    BAD(pawl_ledger_get_head(l, NULL, &f->err));
    BAD(pawl_ledger_get_metrics(NULL, &text, NULL, &f->err));
    BAD(pawl_ledger_get_metrics(l, NULL, NULL, &f->err));
    BAD(pawl_ledger_max_turn(NULL, any, &turn, &f->err));
    BAD(pawl_ledger_max_turn(l, any, NULL, &f->err));
    BAD(pawl_ledger_max_turn(l, no_bytes, &turn, &f->err));
    BAD(pawl_ledger_last_complete_turn(NULL, any, &turn, &f->err));
    BAD(pawl_ledger_last_complete_turn(l, any, NULL, &f->err));
    BAD(pawl_ledger_last_complete_turn(l, no_bytes, &turn, &f->err));
    BAD(pawl_ledger_last_complete_turn(l, none, &turn, &f->err));
    BAD(pawl_ledger_get(NULL, any, 0, &event, &f->err));
    BAD(pawl_ledger_get(l, any, 0, NULL, &f->err));
    BAD(pawl_ledger_get(l, no_bytes, 0, &event, &f->err));
    BAD(pawl_ledger_get(l, none, 0, &event, &f->err));
    BAD(pawl_ledger_get(l, any, 7, &event, &f->err));
    assert_null(event);
    pawl_event_free(NULL);
    BAD(pawl_ledger_counts(NULL, PAWL_COUNT_BY_RUN, NULL, see_count, NULL, &f->err));
    BAD(pawl_ledger_counts(l, PAWL_COUNT_BY_RUN, NULL, NULL, NULL, &f->err));
    BAD(pawl_ledger_counts(l, (pawl_count_by)3, NULL, see_count, NULL, &f->err));
    BAD(pawl_ledger_counts(l, (pawl_count_by)-1, NULL, see_count, NULL, &f->err));
    BAD(pawl_ledger_turns(NULL, none, NULL, see_turn, NULL, &f->err));
    BAD(pawl_ledger_turns(l, none, NULL, NULL, NULL, &f->err));
    BAD(pawl_ledger_turns(l, no_bytes, NULL, see_turn, NULL, &f->err));
    for (size_t i = 0; i < BAD_FILTERS; i++) {
        pawl_event_filter filter = bad_filter(i);
        BAD(pawl_ledger_counts(l, PAWL_COUNT_BY_KIND, &filter, see_count, NULL, &f->err));
    }
}

static void test_turns_check_their_arguments(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger *l = f->ledger;
    pawl_turn *turn = NULL;
    pawl_event good = event_of("e", 0, "1");

    BAD(pawl_turn_begin(NULL, any, 1, &turn, &f->err));
    BAD(pawl_turn_begin(l, any, 1, NULL, &f->err));
    BAD(pawl_turn_begin(l, no_bytes, 1, &turn, &f->err));
    BAD(pawl_turn_begin(l, none, 1, &turn, &f->err));
    BAD(pawl_turn_begin(l, any, -1, &turn, &f->err));
    BAD(pawl_turn_resume(NULL, any, 1, 1, 0, &turn, &f->err));
    BAD(pawl_turn_resume(l, no_bytes, 1, 1, 0, &turn, &f->err));
    BAD(pawl_turn_resume(l, any, -1, 1, 0, &turn, &f->err));
    BAD(pawl_turn_resume(l, any, 1, 0, 0, &turn, &f->err));
    BAD(pawl_turn_resume(l, any, 1, 1, 0, NULL, &f->err));
    assert_null(turn);
    assert_ok(pawl_turn_begin(l, any, 1, &turn, &f->err), &f->err);
    uint64_t before = latest_offset(f);
    BAD(pawl_turn_append(NULL, &good, 1, NULL, &f->err));
    BAD(pawl_turn_append(turn, NULL, 1, NULL, &f->err));
    BAD(pawl_turn_append(turn, &good, SIZE_MAX, NULL, &f->err));
    for (size_t i = 0; i < EVENT_TEXTS; i++) {
        pawl_event event = bad_event(i);
        BAD(pawl_turn_append(turn, &event, 1, NULL, &f->err));
        event.run_id.len = 1; /* as long as the turn's own */
        BAD(pawl_turn_append(turn, &event, 1, NULL, &f->err));
    }
    BAD(pawl_turn_commit(NULL, &f->err));
    BAD(pawl_turn_abandon(NULL, none, &f->err));
    BAD(pawl_turn_abandon(turn, no_bytes, &f->err));
    assert_int_equal(latest_offset(f), before);
    assert_int_equal(pawl_turn_attempt(NULL), 0);
    pawl_turn_free(turn);
    pawl_turn_free(NULL);
}

static void test_folds_and_proofs_check_their_arguments(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger *l = f->ledger;
    pawl_fold_options folding = PAWL_FOLD_OPTIONS_INIT;
    pawl_verify_options verifying = PAWL_VERIFY_OPTIONS_INIT;
    pawl_proof proof = PAWL_PROOF_INIT;

    BAD(pawl_ledger_fold(NULL, NULL, step_over, NULL, NULL, &f->err));
    BAD(pawl_ledger_fold(l, NULL, NULL, NULL, NULL, &f->err));
    folding.size = SIZE_MAX;
    BAD(pawl_ledger_fold(l, &folding, step_over, NULL, NULL, &f->err));
    folding.size = sizeof(folding);
    for (size_t i = 0; i < BAD_FILTERS; i++) {
        pawl_event_filter filter = bad_filter(i);
        folding.filter = &filter;
        BAD(pawl_ledger_fold(l, &folding, step_over, NULL, NULL, &f->err));
    }
    BAD(pawl_ledger_verify(NULL, NULL, NULL, &f->err));
    verifying.size = 2;
    BAD(pawl_ledger_verify(l, &verifying, NULL, &f->err));
    assert_ok(pawl_ledger_verify(l, NULL, NULL, &f->err), &f->err);
    BAD(pawl_ledger_prove(NULL, f->dir, &proof, &f->err));
    BAD(pawl_ledger_prove(l, NULL, &proof, &f->err));
    BAD(pawl_ledger_last_proof(NULL, &proof, &f->err));
    BAD(pawl_ledger_last_proof(f->dir, NULL, &f->err));
}

static void test_snapshots_check_their_arguments(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger *l = f->ledger;
    pawl_restore_options restoring = PAWL_RESTORE_OPTIONS_INIT;

    BAD(pawl_ledger_snapshot_to(NULL, "x.db", NULL, NULL, &f->err));
    BAD(pawl_ledger_snapshot_to(l, NULL, NULL, NULL, &f->err));
    BAD(pawl_ledger_snapshot_to(l, "", NULL, NULL, &f->err));
    BAD(pawl_ledger_snapshot_schedule(NULL, f->dir, 0, 1, NULL, &f->err));
    BAD(pawl_ledger_snapshot_schedule(l, NULL, 0, 1, NULL, &f->err));
    BAD(pawl_ledger_snapshot_schedule(l, "", 0, 1, NULL, &f->err));
    BAD(pawl_ledger_snapshot_schedule(l, f->dir, 0, 0, NULL, &f->err));
    BAD(pawl_snapshot_list(NULL, NULL, see_snapshot, NULL, &f->err));
    BAD(pawl_snapshot_list("", NULL, see_snapshot, NULL, &f->err));
    BAD(pawl_snapshot_list(f->dir, NULL, NULL, NULL, &f->err));
    BAD(pawl_snapshot_prune(NULL, 1, NULL, &f->err));
    BAD(pawl_snapshot_prune("", 1, NULL, &f->err));
    BAD(pawl_snapshot_prune(f->dir, 0, NULL, &f->err));
    BAD(pawl_snapshot_restore(NULL, NULL, NULL, &f->err));
    BAD(pawl_snapshot_restore("", NULL, NULL, &f->err));
    restoring.size = 0;
    BAD(pawl_snapshot_restore(f->dir, &restoring, NULL, &f->err));
    restoring.size = sizeof(restoring);
    restoring.target = "";
    BAD(pawl_snapshot_restore(f->dir, &restoring, NULL, &f->err));
    restoring.target = NULL;
    restoring.tail_location = "";
    BAD(pawl_snapshot_restore(f->dir, &restoring, NULL, &f->err));
}

static void test_recall_checks_its_arguments(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger *l = f->ledger;
    float values[] = { 1, 2 };
    pawl_recalled found[1];
    size_t count;

    append_one(f, "e", 0, "1");
    BAD(pawl_ledger_embed(NULL, 1, values, 2, &f->err));
    BAD(pawl_ledger_embed(l, 1, NULL, 2, &f->err));
    BAD(pawl_ledger_embed(l, 1, values, 0, &f->err));
    BAD(pawl_ledger_embed(l, 1, values, SIZE_MAX, &f->err));
    BAD(pawl_ledger_recall(NULL, values, 2, NULL, found, 1, &count, &f->err));
    BAD(pawl_ledger_recall(l, NULL, 2, NULL, found, 1, &count, &f->err));
    BAD(pawl_ledger_recall(l, values, SIZE_MAX, NULL, found, 1, &count, &f->err));
    BAD(pawl_ledger_recall(l, values, 2, NULL, NULL, 1, &count, &f->err));
    BAD(pawl_ledger_recall(l, values, 2, NULL, found, 0, &count, &f->err));
    BAD(pawl_ledger_recall(l, values, 2, NULL, found, SIZE_MAX, &count, &f->err));
    BAD(pawl_ledger_recall(l, values, 2, NULL, found, 1, NULL, &f->err));
    for (size_t i = 0; i < BAD_FILTERS; i++) {
        pawl_event_filter filter = bad_filter(i);
        BAD(pawl_ledger_recall(l, values, 2, &filter, found, 1, &count, &f->err));
    }
    BAD(pawl_ledger_get_embedding(NULL, 1, values, 2, &count, &f->err));
    BAD(pawl_ledger_get_embedding(l, 1, NULL, 2, &count, &f->err));
    BAD(pawl_ledger_get_embedding(l, 1, values, 2, NULL, &f->err));
    assert_ok(pawl_ledger_embed(l, 1, values, 2, &f->err), &f->err);
    BAD(pawl_ledger_get_embedding(l, 1, values, 0, &count, &f->err));
}

static void test_import_and_export_check_their_arguments(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger *l = f->ledger;
    pawl_event good = event_of("e", 0, "1");
    pawl_event *event = NULL;
    char *json = NULL;
    static const pawl_file_format wrong[] = { (pawl_file_format)3, (pawl_file_format)-1 };

    BAD(pawl_event_from_json(no_bytes, NULL, &event, &f->err));
    BAD(pawl_event_from_json(none, NULL, &event, &f->err));
    BAD(pawl_event_from_json(pawl_view_of("{\"turn\":1}"), NULL, NULL, &f->err));
    BAD(pawl_event_to_json(NULL, &json, NULL, &f->err));
    BAD(pawl_event_to_json(&good, NULL, NULL, &f->err));
    for (size_t i = 0; i < EVENT_TEXTS; i++) {
        pawl_event bad = bad_event(i);
        BAD(pawl_event_to_json(&bad, &json, NULL, &f->err));
        BAD(pawl_event_from_json(pawl_view_of("{\"turn\":1}"), &bad, &event, &f->err));
    }
    assert_true(event == NULL && json == NULL);
    BAD(pawl_ledger_export(NULL, "x", PAWL_FORMAT_JSONL, NULL, NULL, NULL, &f->err));
    BAD(pawl_ledger_export(l, NULL, PAWL_FORMAT_JSONL, NULL, NULL, NULL, &f->err));
    BAD(pawl_ledger_export(l, "", PAWL_FORMAT_JSONL, NULL, NULL, NULL, &f->err));
    BAD(pawl_ledger_export(l, "x", PAWL_FORMAT_SEED_SQLITE, NULL, NULL, NULL, &f->err));
    BAD(pawl_ledger_export(l, "-", PAWL_FORMAT_PARQUET, NULL, NULL, NULL, &f->err));
    BAD(pawl_ledger_import(NULL, "x", PAWL_FORMAT_JSONL, NULL, NULL, &f->err));
    BAD(pawl_ledger_import(l, NULL, PAWL_FORMAT_JSONL, NULL, NULL, &f->err));
    BAD(pawl_ledger_import(l, "", PAWL_FORMAT_JSONL, NULL, NULL, &f->err));
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        BAD(pawl_ledger_export(l, "x", wrong[i], NULL, NULL, NULL, &f->err));
        BAD(pawl_ledger_import(l, "x", wrong[i], NULL, NULL, &f->err));
    }
    append_one(f, "e", 0, "1");
    for (size_t i = 0; i < BAD_FILTERS; i++) {
        pawl_event_filter filter = bad_filter(i);
        char path[TEMPDIR_SIZE + 16];
        snprintf(path, sizeof(path), "%s/out", f->dir);
        BAD(pawl_ledger_export(l, path, PAWL_FORMAT_JSONL, &filter, NULL, NULL, &f->err));
        assert_true(access(path, F_OK) != 0);
    }
}

/* --- callbacks that call back --- */

/* What every callback does: it appends, reads, asks, and closes the ledger when it is told to. */
struct caller {
    pawl_ledger *ledger;
    bool closes;
    int calls;
    pawl_status appended;
    pawl_status asked;
};

static void call_back(struct caller *caller)
{
    char id[16];
    uint64_t offset;

    if (caller->calls++ > 0) {
        return;
    }
    snprintf(id, sizeof(id), "inside");
    pawl_event event = event_of(id, 7, "1");
    caller->appended = pawl_ledger_append(caller->ledger, &event, NULL, NULL);
    caller->asked = pawl_ledger_latest_offset(caller->ledger, &offset, NULL);
    if (caller->closes) {
        pawl_ledger_close(caller->ledger, 0, NULL); /* of a ledger that the call still uses */
    }
}

static pawl_status in_step(void *context, const pawl_event *event, pawl_error *reterr)
{
    (void)event;
    (void)reterr;
    call_back(context);
    return PAWL_OK;
}

static bool in_count(void *context, const pawl_count *counted)
{
    (void)counted;
    call_back(context);
    return true;
}

static bool in_turn(void *context, const pawl_turn_info *info)
{
    (void)info;
    call_back(context);
    return true;
}

static bool in_progress(void *context, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    call_back(context);
    return true;
}

static pawl_status run_fold(struct ledger_fixture *f, struct caller *caller)
{
    return pawl_ledger_fold(f->ledger, NULL, in_step, caller, NULL, &f->err);
}

static pawl_status run_counts(struct ledger_fixture *f, struct caller *caller)
{
    return pawl_ledger_counts(f->ledger, PAWL_COUNT_BY_KIND, NULL, in_count, caller, &f->err);
}

static pawl_status run_turns(struct ledger_fixture *f, struct caller *caller)
{
    return pawl_ledger_turns(f->ledger, none, NULL, in_turn, caller, &f->err);
}

static pawl_status run_verify(struct ledger_fixture *f, struct caller *caller)
{
    pawl_verify_options options = PAWL_VERIFY_OPTIONS_INIT;
    const pawl_watch watch = { sizeof(pawl_watch), in_progress, caller };

    options.watch = &watch;
    return pawl_ledger_verify(f->ledger, &options, NULL, &f->err);
}

static pawl_status run_snapshot(struct ledger_fixture *f, struct caller *caller)
{
    const pawl_watch watch = { sizeof(pawl_watch), in_progress, caller };
    char path[TEMPDIR_SIZE + 16];

    snprintf(path, sizeof(path), "%s/copy.db", f->dir);
    unlink(path);
    return pawl_ledger_snapshot_to(f->ledger, path, &watch, NULL, &f->err);
}

static pawl_status run_export(struct ledger_fixture *f, struct caller *caller)
{
    const pawl_watch watch = { sizeof(pawl_watch), in_progress, caller };
    char path[TEMPDIR_SIZE + 16];

    snprintf(path, sizeof(path), "%s/out.jsonl", f->dir);
    unlink(path);
    return pawl_ledger_export(f->ledger, path, PAWL_FORMAT_JSONL, NULL, &watch, NULL, &f->err);
}

static pawl_status run_import(struct ledger_fixture *f, struct caller *caller)
{
    const pawl_watch watch = { sizeof(pawl_watch), in_progress, caller };
    char path[TEMPDIR_SIZE + 16];
    FILE *file = NULL;

    snprintf(path, sizeof(path), "%s/in.jsonl", f->dir);
    file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 3000; i++) { /* enough for a progress between batches */
        fprintf(file,
                "{\"id\":\"i-%d\",\"run_id\":\"r\",\"turn\":9,\"kind\":\"k\",\"actor\":\"a\","
                "\"payload\":1}\n",
                i);
    }
    assert_int_equal(fclose(file), 0);
    return pawl_ledger_import(f->ledger, path, PAWL_FORMAT_JSONL, &watch, NULL, &f->err);
}

static const struct {
    const char *name;
    pawl_status (*run)(struct ledger_fixture *f, struct caller *caller);
} calls[] = {
    { "fold", run_fold },         { "counts", run_counts }, { "turns", run_turns },
    { "verify", run_verify },     { "export", run_export }, { "import", run_import },
    { "snapshot", run_snapshot },
};

static void fill(struct ledger_fixture *f)
{
    pawl_turn *turn = begin_turn(f, "r", 1);

    assert_ok(pawl_turn_commit(turn, &f->err), &f->err);
    pawl_turn_free(turn);
    append_one(f, "a", 0, "1");
    append_one(f, "b", 0, "2");
}

static void assert_called_back(struct ledger_fixture *f, size_t i, bool closes)
{
    struct caller caller = { .ledger = f->ledger, .closes = closes };
    pawl_status status = calls[i].run(f, &caller);

    if (status != PAWL_OK || caller.calls == 0 || caller.appended != PAWL_OK
        || caller.asked != PAWL_OK) {
        fail_msg("%s: %s (%s) after %d callbacks, which appended: %s, asked: %s",
                 calls[i].name,
                 pawl_status_name(status),
                 f->err.message,
                 caller.calls,
                 pawl_status_name(caller.appended),
                 pawl_status_name(caller.asked));
    }
}

static void test_callbacks_may_append_and_ask(void **state)
{
    struct ledger_fixture *f = *state;

    fill(f);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        assert_called_back(f, i, false);
    }
}

static void test_closing_a_ledger_in_its_callback_does_nothing(void **state)
{
    struct ledger_fixture *f = *state;

    fill(f);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        char id[32];

        assert_called_back(f, i, true);
        snprintf(id, sizeof(id), "after-%zu", i);
        append_one(f, id, 0, "1"); /* it is still open */
    }
}

/* --- nothing is left out --- */

static void test_every_function_of_the_header_is_called_here(void **state)
{
    (void)state;
    assert_header_is_called("include/pawl/ledger.h", "tests/unit/test_ledger_arguments.c", 40);
}

static void told_of_nothing(void *context)
{
    (void)context;
}

static void test_a_ledger_stays_open_for_readers_that_follow(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_reader *reader = NULL;
    pawl_ledger *ledger = NULL;

    assert_ok(pawl_ledger_open("memory:", NULL, &ledger, &f->err), &f->err);
    assert_ok(pawl_reader_open(ledger, NULL, &reader, &f->err), &f->err);
    assert_ok(pawl_reader_on_events(reader, told_of_nothing, NULL, &f->err), &f->err);
    assert_status(pawl_ledger_close(ledger, 0, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "a reader that follows is open");
    pawl_reader_free(reader);
    assert_ok(pawl_ledger_close(ledger, 0, &f->err), &f->err);
}

/* Of a program that was compiled against a header without the members after `size`: garbage follows. */
static void test_json_of_an_older_event_reads_no_further_than_its_size(void **state)
{
    static const char json[] =
        "{\"id\":\"e\",\"run_id\":\"r\",\"turn\":1,\"kind\":\"k\",\"actor\":\"a\",\"payload\":1}";
    static const size_t sizes[] = { 0, 7, sizeof(size_t), SIZE_MAX };
    pawl_event cut;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const pawl_status expected = sizes[i] == sizeof(size_t) ? PAWL_OK : PAWL_INVALID;
        pawl_event *event = NULL;
        char *text = NULL;

        memset(&cut, 0xa5, sizeof(cut));
        cut.size = sizes[i];
        assert_int_equal(pawl_event_from_json(pawl_view_of(json), &cut, &event, NULL), expected);
        assert_int_equal(event != NULL, expected == PAWL_OK);
        pawl_event_free(event);
        /* There is no payload, which an event needs. */
        assert_int_equal(pawl_event_to_json(&cut, &text, NULL, NULL), PAWL_INVALID);
        assert_null(text);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_open_and_append_check_their_arguments),
        LEDGER_TEST(test_readers_check_their_arguments),
        LEDGER_TEST(test_questions_check_their_arguments),
        LEDGER_TEST(test_turns_check_their_arguments),
        LEDGER_TEST(test_folds_and_proofs_check_their_arguments),
        LEDGER_TEST(test_snapshots_check_their_arguments),
        LEDGER_TEST(test_recall_checks_its_arguments),
        LEDGER_TEST(test_import_and_export_check_their_arguments),
        LEDGER_TEST(test_json_of_an_older_event_reads_no_further_than_its_size),
        LEDGER_TEST(test_a_ledger_stays_open_for_readers_that_follow),
        LEDGER_TEST(test_callbacks_may_append_and_ask),
        LEDGER_TEST(test_closing_a_ledger_in_its_callback_does_nothing),
        LEDGER_TEST(test_every_function_of_the_header_is_called_here),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
