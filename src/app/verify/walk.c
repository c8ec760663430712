/* Reading the logs and the families of an application that is verified. */
#include <inttypes.h>

#include "app/verify/verify.h"
#include "base/core/error.h"
#include "base/core/macros.h"

static bool is_wanted(const struct app_verify *verify, uint64_t workspace)
{
    return verify->workspace == 0 || verify->workspace == workspace;
}

/* --- watched --- */

enum { LOOK_EVERY = 256 }; /* entries: some milliseconds */

struct watched_walk {
    struct app_verify *verify;
    app_entry_visitor visit;
    void *context;
};

static pawl_status visit_watched(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct watched_walk *walk = context;
    struct verify_progress *progress = &walk->verify->progress;

    TRY(walk->visit(walk->context, entry, reterr));
    progress->log_entries += entry->family == APP_PLOG || entry->family == APP_WLOG;
    return ++progress->entries % LOOK_EVERY == 0 ? pawl__app_verify_look(progress, reterr)
                                                 : PAWL_OK;
}

pawl_status pawl__app_verify_look(const struct verify_progress *progress, pawl_error *reterr)
{
    const pawl_watch *watch = &progress->watch;

    return watch->progress == NULL
                   || watch->progress(watch->context,
                                      MIN(progress->log_entries, progress->log_entries_max),
                                      progress->log_entries_max)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_CANCELLED, "the verification was cancelled");
}

pawl_status pawl__app_verify_walk(struct app_verify *verify,
                                  const struct app_range *range,
                                  app_entry_visitor visitor,
                                  void *context,
                                  pawl_error *reterr)
{
    struct watched_walk walk = { verify, visitor, context };

    return pawl__app_store_walk(verify->store, range, visit_watched, &walk, reterr);
}

/* --- families --- */

struct family_walk {
    struct app_verify *verify;
    const struct verify_family *family;
};

static pawl_status visit_entry(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct family_walk *walk = context;
    struct app_verify *verify = walk->verify;
    struct app_key_parts parts;

    (void)reterr;
    verify->report.entries[walk->family->part]++;
    if (!pawl__app_key_parse(entry->family, entry->key, &parts)
        || parts.app != verify->app->definition.descriptor.id) {
        pawl__app_verify_odd_key(verify, walk->family->part, entry, " is none of this application");
        return PAWL_OK;
    }
    walk->family->visit(verify, &parts, entry->value);
    return PAWL_OK;
}

pawl_status pawl__app_verify_family(struct app_verify *verify,
                                    const struct verify_family *family,
                                    pawl_error *reterr)
{
    struct family_walk walk = { verify, family };
    struct app_range range = { .family = family->family };
    uint32_t app = verify->app->definition.descriptor.id;
    struct app_key first = pawl__app_key_wlog(app, verify->workspace, 0);
    struct app_key end = pawl__app_key_wlog(app, verify->workspace + 1, 0);

    if (verify->workspace != 0) { /* with which all of these keys begin */
        range.from = (pawl_view){ first.bytes, first.len - 8 };
        range.until = (pawl_view){ end.bytes, end.len - 8 };
    }
    return pawl__app_verify_walk(verify, &range, visit_entry, &walk, reterr);
}

/* --- the logs --- */

struct log_walk {
    struct app_verify *verify;
    const struct verify_events *events;
    struct pawl__arena arena;
    uint16_t partition;
    uint64_t
        before; /* the offset of the entry before this one in the same log; 0: it is the first */
};

static void log_walk_done(struct log_walk *walk)
{
    pawl__arena_done(&walk->arena);
}

static void report_hole(struct log_walk *walk, uint64_t first, uint64_t last)
{
    if (walk->events->report_damage && first <= last) {
        pawl__app_verify_finding(walk->verify,
                                 PAWL_APP_PART_PLOG,
                                 "the PLog of partition %u has no events at offsets %" PRIu64
                                 "-%" PRIu64,
                                 walk->partition,
                                 first,
                                 last);
    }
}

/* From the last one to the first. */
static void visit_offset(struct log_walk *walk, const struct app_key_parts *parts)
{
    struct verify_partition *partition = &walk->verify->partitions[parts->partition];

    if (!walk->events->report_damage) {
        return;
    }
    walk->verify->report.entries[PAWL_APP_PART_PLOG]++;
    partition->end = partition->end == 0 ? parts->number : partition->end;
    if (walk->before != 0) {
        report_hole(walk, parts->number + 1, walk->before - 1);
    }
    walk->before = parts->number;
}

static pawl_status visit_log_entry(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct log_walk *walk = context;
    struct app_verify *verify = walk->verify;
    struct app_key_parts parts;
    pawl_app_event event;
    pawl_error error = PAWL_ERROR_INIT;

    if (!pawl__app_key_parse(APP_PLOG, entry->key, &parts)) {
        return PAWL_OK; /* not of this range */
    }
    visit_offset(walk, &parts);
    pawl__arena_clear(&walk->arena);
    pawl_status status = pawl__app_seq_event_of(entry, &walk->arena, &event, &error);
    if (status == PAWL_CORRUPT) {
        if (walk->events->report_damage) {
            pawl__app_verify_finding(verify, PAWL_APP_PART_PLOG, "%s", error.message);
        }
        return PAWL_OK;
    }
    if (status != PAWL_OK) {
        return pawl__fail(reterr, status, "%s", error.message);
    }
    if (pawl_app_partition_of(verify->app, event.workspace) != walk->partition
        && walk->events->report_damage) {
        pawl__app_verify_finding(verify,
                                 PAWL_APP_PART_PLOG,
                                 "offset %" PRIu64
                                 " of the PLog of partition %u has an event of workspace "
                                 "%" PRIu64 ", which is not in this partition",
                                 event.plog_offset,
                                 walk->partition,
                                 event.workspace);
    }
    return is_wanted(verify, event.workspace) ? walk->events->visit(
               walk->events->context, walk->partition, &event, entry->value, reterr)
                                              : PAWL_OK;
}

static pawl_status walk_log(struct log_walk *walk, pawl_error *reterr)
{
    uint32_t app = walk->verify->app->definition.descriptor.id;
    struct app_key first = pawl__app_key_plog(app, walk->partition, 0);
    struct app_key end = pawl__app_key_offset(app, (uint16_t)(walk->partition + 1));
    const struct app_range range = { .family = APP_PLOG,
                                     .from = pawl__app_key_view(&first),
                                     .until = pawl__app_key_view(&end),
                                     .backwards = walk->events->backwards };
    TRY(pawl__app_verify_walk(walk->verify, &range, visit_log_entry, walk, reterr));
    if (walk->before > 1) {
        report_hole(walk, 1, walk->before - 1);
    }
    return PAWL_OK;
}

pawl_status pawl__app_verify_events(struct app_verify *verify,
                                    const struct verify_events *events,
                                    pawl_error *reterr)
{
    AUTO(log_walk_done) struct log_walk walk = { .verify = verify, .events = events };
    for (size_t i = 0; i < verify->app->partition_count; i++) {
        walk.partition = (uint16_t)i;
        walk.before = 0;
        if (verify->workspace == 0 || pawl_app_partition_of(verify->app, verify->workspace) == i) {
            TRY(walk_log(&walk, reterr));
        }
    }
    return PAWL_OK;
}

/* Nothing may be stored before the first partition or after the last one. */
static pawl_status visit_stray(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    (void)reterr;
    pawl__app_verify_odd_key(context,
                             entry->family == APP_PLOG ? PAWL_APP_PART_PLOG
                                                       : PAWL_APP_PART_SEQUENCES,
                             entry,
                             ": there is no such partition");
    return PAWL_OK;
}

pawl_status pawl__app_verify_strays(struct app_verify *verify, pawl_error *reterr)
{
    static const enum app_family families[] = { APP_PLOG, APP_SEQ };
    uint32_t app = verify->app->definition.descriptor.id;
    struct app_key first = pawl__app_key_offset(app, 0);
    struct app_key end = pawl__app_key_offset(app, (uint16_t)verify->app->partition_count);
    for (size_t i = 0; verify->workspace == 0 && i < COUNT_OF(families); i++) {
        const struct app_range before = { .family = families[i],
                                          .until = pawl__app_key_view(&first) };
        const struct app_range after = { .family = families[i], .from = pawl__app_key_view(&end) };
        TRY(pawl__app_verify_walk(verify, &before, visit_stray, verify, reterr));
        TRY(pawl__app_verify_walk(verify, &after, visit_stray, verify, reterr));
    }
    return PAWL_OK;
}
