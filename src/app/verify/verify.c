#include "app/verify/verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/core/format.h"
#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/sized.h"
#include "base/thread/inside.h"

static const char *const part_words[] = { "anchor",      "plog",      "wlog",
                                          "records",     "sequences", "offsets",
                                          "number_keys", "keys",      "descriptor" };
_Static_assert(COUNT_OF(part_words) == PAWL_APP_PARTS, "one word a part");

const char *pawl_app_part_word(pawl_app_part part)
{
    return (size_t)part < COUNT_OF(part_words) ? part_words[part] : "unknown";
}

void pawl__app_verify_finding(struct app_verify *verify,
                              pawl_app_part part,
                              const char *format,
                              ...)
{
    char what[PAWL_ERROR_MESSAGE_SIZE];
    va_list args;

    if (verify->quiet[part]) {
        return;
    }
    verify->report.wrong[part]++;
    if (verify->visit != NULL) {
        va_start(args, format);
        vsnprintf(what, sizeof(what), format, args);
        va_end(args);
        INSIDE(verify->app);
        const pawl_app_damage damage = { sizeof(damage), part, what };
        if (!verify->visit(verify->context, &damage)) {
            verify->visit = NULL;
        }
    }
}

void pawl__app_verify_odd_key(struct app_verify *verify,
                              pawl_app_part part,
                              const struct app_entry *entry,
                              const char *what)
{
    char space[160];
    struct pawl__buf key = BUF_OVER(space);

    pawl__app_key_describe(entry->family, entry->key, &key);
    pawl__app_verify_finding(verify, part, "%s%s", key.broken ? "a long key" : space, what);
}

/* --- what an event must have left --- */

static void expect_numbers(struct app_verify *verify, const pawl_app_event *event)
{
    for (size_t i = 0; i < event->number_count; i++) {
        const pawl_app_number *used = &event->numbers[i];
        if (used->sequence >= PAWL_APP_SEQ_OWN_MIN) {
            pawl__app_verify_expect(verify->sketch,
                                    &(struct verify_item){ .part = PAWL_APP_PART_NUMBER_KEYS,
                                                           .sequence = used->sequence,
                                                           .workspace = event->workspace,
                                                           .number = used->number,
                                                           .offset = event->plog_offset });
        }
    }
}

static pawl_status expect(void *context,
                          uint16_t partition,
                          const pawl_app_event *event,
                          pawl_view bytes,
                          pawl_error *reterr)
{
    struct app_verify *verify = context;
    struct app_sketch *sketch = verify->sketch;
    struct verify_item item = { .part = PAWL_APP_PART_WLOG,
                                .workspace = event->workspace,
                                .number = event->wlog_offset,
                                .offset = event->plog_offset,
                                .content = pawl__app_sketch_hash(sketch, bytes) };

    pawl__app_verify_expect(sketch, &item);
    if (verify->app->partitions[partition].seq.numbered && verify->app->format == APP_FORMAT) {
        expect_numbers(verify, event);
    }
    if (event->key.len > 0) {
        const pawl_view hash = { (const char *)event->request_hash, sizeof(event->request_hash) };
        item.part = PAWL_APP_PART_KEYS;
        item.number = pawl__app_sketch_hash(sketch, event->key);
        item.content = pawl__app_sketch_hash(sketch, hash);
        pawl__app_verify_expect(sketch, &item);
    }
    return pawl__app_verify_records_event(verify, event, reterr);
}

/* --- what is there --- */

static void remove_number_key(struct app_verify *verify,
                              const struct app_key_parts *parts,
                              pawl_view value)
{
    struct verify_item item = { .part = PAWL_APP_PART_NUMBER_KEYS,
                                .sequence = parts->sequence,
                                .workspace = parts->workspace,
                                .number = parts->number };
    pawl_view rest = value;

    if (!pawl__view_take_u64be(&rest, &item.offset) || rest.len != 0) {
        item.content = pawl__app_sketch_hash(verify->sketch, value);
    }
    pawl__app_verify_found(verify->sketch, &item);
}

static void remove_key(struct app_verify *verify,
                       const struct app_key_parts *parts,
                       pawl_view value)
{
    struct verify_item item = { .part = PAWL_APP_PART_KEYS,
                                .workspace = parts->workspace,
                                .number = pawl__app_sketch_hash(verify->sketch, parts->text) };
    pawl_view rest = value;
    pawl_view hash = value;

    if (!pawl__view_take(&rest, 32, &hash) || !pawl__view_take_u64be(&rest, &item.offset)
        || rest.len != 0) {
        hash = value;
        item.offset = 0;
    }
    item.content = pawl__app_sketch_hash(verify->sketch, hash);
    pawl__app_verify_found(verify->sketch, &item);
}

/* --- all of it --- */

/* Numbers are stored after the log has them, never before. */
static void check_ends(struct app_verify *verify)
{
    for (size_t i = 0; i < verify->app->partition_count; i++) {
        const struct verify_partition *partition = &verify->partitions[i];
        bool looked =
            verify->workspace == 0 || pawl_app_partition_of(verify->app, verify->workspace) == i;
        if (looked && partition->stored > partition->end + 1) {
            pawl__app_verify_finding(verify,
                                     PAWL_APP_PART_OFFSETS,
                                     "partition %zu: the stored offset is %" PRIu64
                                     ", the PLog ends at %" PRIu64,
                                     i,
                                     partition->stored,
                                     partition->end);
        }
    }
}

/* What is not there any more, or not yet, is no finding of its own. */
static void check_rebuilding(struct app_verify *verify)
{
    if (verify->app->rebuilding) {
        pawl__app_verify_finding(
            verify,
            PAWL_APP_PART_SEQUENCES,
            "a rebuild of the numbers was interrupted: run 'pawl seq rebuild' again; "
            "until then numbers, offsets and keys of numbers are not compared");
        verify->quiet[PAWL_APP_PART_SEQUENCES] = true;
        verify->quiet[PAWL_APP_PART_OFFSETS] = true;
        verify->quiet[PAWL_APP_PART_NUMBER_KEYS] = true;
    }
}

static pawl_status verify_parts(struct app_verify *verify, pawl_error *reterr)
{
    static const struct verify_family families[] = {
        { APP_NUMBERS, PAWL_APP_PART_NUMBER_KEYS, remove_number_key },
        { APP_KEYS, PAWL_APP_PART_KEYS, remove_key },
    };
    const struct verify_events events = { true, true, expect, verify };

    check_rebuilding(verify);
    TRY(pawl__app_verify_descriptor(verify, reterr));
    TRY(pawl__app_verify_offsets(verify, reterr)); /* before the logs: they only grow */
    TRY(pawl__app_verify_events(verify, &events, reterr));
    check_ends(verify);
    TRY(pawl__app_verify_strays(verify, reterr));
    TRY(pawl__app_verify_numbers(verify, reterr));
    for (size_t i = 0; i < COUNT_OF(families); i++) {
        TRY(pawl__app_verify_family(verify, &families[i], reterr));
    }
    TRY(pawl__app_verify_name_differences(verify, verify->sketch, reterr));
    TRY(pawl__app_verify_records(verify, reterr));
    return pawl__app_verify_anchor(verify, reterr);
}

static pawl_status conclude(const struct app_verify *verify, pawl_error *reterr)
{
    uint64_t wrong = 0;

    for (size_t i = 0; i < PAWL_APP_PARTS; i++) {
        wrong += verify->report.wrong[i];
    }
    if (wrong == 0) {
        return PAWL_OK;
    }
    return pawl__fail_advised(reterr,
                              PAWL_CORRUPT,
                              "application '%s': %" PRIu64
                              " %s wrong: 'pawl seq verify --all' lists %s, "
                              "'pawl seq rebuild' repairs numbers; restore all else from a backup",
                              verify->app->definition.descriptor.name,
                              wrong,
                              wrong == 1 ? "thing is" : "things are",
                              wrong == 1 ? "it" : "them");
}

static void verify_free(struct app_verify **verify)
{
    if (*verify != NULL) {
        pawl__app_verify_records_done(*verify);
        pawl__app_sketch_free((*verify)->sketch);
        pawl__buf_done(&(*verify)->bytes);
        free(*verify);
    }
}

/* How many events the logs have that are to be read. */
static pawl_status count_events(struct app_verify *verify, uint64_t *ret_count, pawl_error *reterr)
{
    const pawl_app *app = verify->app;
    uint64_t count = 0;

    for (uint16_t i = 0; i < app->partition_count; i++) {
        uint64_t end = 0;

        if (verify->workspace == 0 || pawl_app_partition_of(app, verify->workspace) == i) {
            TRY(pawl_app_get_log_end(verify->app, i, &end, reterr));
            count += end;
        }
    }
    *ret_count = count;
    return PAWL_OK;
}

/* In a store that moved on while it was read nobody can tell a fault from a new event. */
static pawl_status check_still(struct app_verify *verify, uint64_t before, pawl_error *reterr)
{
    uint64_t now = 0;

    if (verify->store != verify->app->store) {
        return PAWL_OK;
    }
    TRY(count_events(verify, &now, reterr));
    return now == before ? PAWL_OK
                         : pawl__fail(reterr,
                                      PAWL_BUSY,
                                      "application '%s' cannot be checked while commands are "
                                      "executed: try again when there are fewer",
                                      verify->app->definition.descriptor.name);
}

static pawl_status verify_all(struct app_verify *verify,
                              pawl_app_report *ret_report,
                              pawl_error *reterr)
{
    pawl_error wrong = PAWL_ERROR_INIT;
    uint64_t events = 0;

    TRY(pawl__app_sketch_new(&verify->sketch, reterr));
    TRY(pawl__app_verify_records_start(verify, reterr));
    TRY(count_events(verify, &events, reterr));
    verify->progress.log_entries_max = verify->workspace == 0 ? 2 * events : events;
    TRY(pawl__app_verify_look(&verify->progress, reterr));
    TRY(verify_parts(verify, reterr));
    pawl_status status = conclude(verify, &wrong);
    if (status != PAWL_OK) {
        TRY(check_still(verify, events, reterr));
    }
    pawl__give_sized(&verify->report, sizeof(verify->report), ret_report);
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &wrong);
}

pawl_status pawl_app_verify(pawl_app *app,
                            uint64_t workspace,
                            pawl_app_damage_visit visit,
                            void *context,
                            const pawl_watch *watch,
                            pawl_app_report *ret_report,
                            pawl_error *reterr)
{
    NEED(app, ret_report, reterr);
    TRY(pawl__check_sized("ret_report", ret_report, reterr));
    if (workspace > PAWL_APP_WORKSPACE_MAX) {
        return pawl__fail(reterr, PAWL_INVALID, "there is no workspace %" PRIu64, workspace);
    }
    AUTO(pawl__app_store_close_p) struct app_store *frozen = NULL;
    AUTO(verify_free) struct app_verify *verify = calloc(1, sizeof(*verify));
    if (verify == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory to verify an application");
    }
    if (app->store->ops->freeze != NULL) {
        TRY(app->store->ops->freeze(app->store, &frozen, reterr));
    }
    verify->progress.watch = (pawl_watch)PAWL_WATCH_INIT;
    TRY(pawl__take_sized(
        "watch", watch, &verify->progress.watch, sizeof(verify->progress.watch), reterr));
    verify->app = app;
    verify->store = frozen == NULL ? app->store : frozen;
    verify->workspace = workspace;
    verify->visit = visit;
    verify->context = context;
    verify->bytes = (struct pawl__buf)BUF_INIT(APP_EVENT_BYTES_MAX);
    return verify_all(verify, ret_report, reterr);
}
