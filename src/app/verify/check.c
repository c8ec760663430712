#include "app/verify/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/thread/inside.h"

static const char *const part_words[] = { "anchor",      "plog",      "wlog",
                                          "records",     "sequences", "offsets",
                                          "number_keys", "keys",      "descriptor" };
_Static_assert(COUNT_OF(part_words) == PAWL_APP_PARTS, "one word a part");

const char *pawl_app_part_word(pawl_app_part part)
{
    return (size_t)part < COUNT_OF(part_words) ? part_words[part] : "unknown";
}

void pawl__check_tell(struct check *check, pawl_app_part part, const char *format, ...)
{
    char what[PAWL_ERROR_MESSAGE_SIZE];
    va_list args;

    if (check->quiet[part]) {
        return;
    }
    check->report.wrong[part]++;
    if (check->visitor != NULL) {
        va_start(args, format);
        vsnprintf(what, sizeof(what), format, args);
        va_end(args);
        struct pawl__inside inside;
        pawl__inside_enter(&inside, check->app);
        check->visitor(check->context, part, what);
        pawl__inside_leave(&inside);
    }
}

static bool is_wanted(const struct check *check, uint64_t workspace)
{
    return check->workspace == 0 || check->workspace == workspace;
}

/* --- families --- */

struct family_walk {
    struct check *check;
    const struct check_family *family;
};

static pawl_status take_entry(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct family_walk *walk = context;
    struct check *check = walk->check;
    struct app_key_parts parts;

    check->report.entries[walk->family->part]++;
    if (!pawl__app_key_take(entry->family, entry->key, &parts)
        || parts.app != check->app->definition.descriptor.id) {
        char space[160];
        struct pawl__buf key = BUF_OVER(space);
        pawl__app_key_describe(entry->family, entry->key, &key);
        pawl__check_tell(check,
                         walk->family->part,
                         "%s is none of this application",
                         key.broken ? "a long key" : space);
        return PAWL_OK;
    }
    return walk->family->take(check, &parts, entry->value, reterr);
}

pawl_status pawl__check_family(struct check *check,
                               const struct check_family *family,
                               pawl_error *reterr)
{
    struct family_walk walk = { check, family };
    struct app_range range = { .family = family->family };
    uint32_t app = check->app->definition.descriptor.id;
    struct app_key first = pawl__app_key_wlog(app, check->workspace, 0);
    struct app_key behind = pawl__app_key_wlog(app, check->workspace + 1, 0);

    if (check->workspace != 0) { /* which stands in front of all of these keys */
        range.from = (pawl_view){ first.bytes, first.len - 8 };
        range.until = (pawl_view){ behind.bytes, behind.len - 8 };
    }
    return pawl__app_store_walk(check->app->store, &range, take_entry, &walk, reterr);
}

/* --- the logs --- */

struct log_walk {
    struct check *check;
    const struct check_events *events;
    struct pawl__arena arena;
    uint16_t partition;
    uint64_t
        before; /* the offset of the entry before this one of the same log; 0: it is the first */
};

static void tell_hole(struct log_walk *walk, uint64_t first, uint64_t last)
{
    if (walk->events->tell && first <= last) {
        pawl__check_tell(walk->check,
                         PAWL_APP_PART_PLOG,
                         "the PLog of partition %u has no events at offsets %" PRIu64 "-%" PRIu64,
                         walk->partition,
                         first,
                         last);
    }
}

/* From the last one to the first. */
static void take_offset(struct log_walk *walk, const struct app_key_parts *parts)
{
    struct check_partition *partition = &walk->check->partitions[parts->partition];

    if (!walk->events->tell) {
        return;
    }
    walk->check->report.entries[PAWL_APP_PART_PLOG]++;
    partition->end = partition->end == 0 ? parts->number : partition->end;
    if (walk->before != 0) {
        tell_hole(walk, parts->number + 1, walk->before - 1);
    }
    walk->before = parts->number;
}

static pawl_status take_log_entry(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct log_walk *walk = context;
    struct check *check = walk->check;
    struct app_key_parts parts;
    pawl_app_event event;
    pawl_error error = PAWL_ERROR_INIT;

    if (!pawl__app_key_take(APP_PLOG, entry->key, &parts)) {
        return PAWL_OK; /* not of this range */
    }
    take_offset(walk, &parts);
    pawl__arena_clear(&walk->arena);
    pawl_status status = pawl__app_seq_event_of(entry, &walk->arena, &event, &error);
    if (status == PAWL_CORRUPT) {
        if (walk->events->tell) {
            pawl__check_tell(check, PAWL_APP_PART_PLOG, "%s", error.message);
        }
        return PAWL_OK;
    }
    if (status != PAWL_OK) {
        return pawl__fail(reterr, status, "%s", error.message);
    }
    if (pawl_app_partition_of(check->app, event.workspace) != walk->partition
        && walk->events->tell) {
        pawl__check_tell(check,
                         PAWL_APP_PART_PLOG,
                         "offset %" PRIu64 " of the PLog of partition %u has an event of workspace "
                         "%" PRIu64 ", which is not in this partition",
                         event.plog_offset,
                         walk->partition,
                         event.workspace);
    }
    return is_wanted(check, event.workspace) ? walk->events->take(
               walk->events->context, walk->partition, &event, entry->value, reterr)
                                             : PAWL_OK;
}

static pawl_status walk_log(struct log_walk *walk, pawl_error *reterr)
{
    uint32_t app = walk->check->app->definition.descriptor.id;
    struct app_key first = pawl__app_key_plog(app, walk->partition, 0);
    struct app_key behind = pawl__app_key_offset(app, (uint16_t)(walk->partition + 1));
    const struct app_range range = { .family = APP_PLOG,
                                     .from = pawl__app_key_view(&first),
                                     .until = pawl__app_key_view(&behind),
                                     .backwards = walk->events->backwards };
    TRY(pawl__app_store_walk(walk->check->app->store, &range, take_log_entry, walk, reterr));
    if (walk->before > 1) {
        tell_hole(walk, 1, walk->before - 1);
    }
    return PAWL_OK;
}

pawl_status pawl__check_events(struct check *check,
                               const struct check_events *events,
                               pawl_error *reterr)
{
    struct log_walk walk = { .check = check, .events = events };
    pawl_status status = PAWL_OK;

    for (uint16_t i = 0; i < check->app->partition_count && status == PAWL_OK; i++) {
        walk.partition = i;
        walk.before = 0;
        if (check->workspace == 0 || pawl_app_partition_of(check->app, check->workspace) == i) {
            status = walk_log(&walk, reterr);
        }
    }
    pawl__arena_done(&walk.arena);
    return status;
}

/* Before the first partition and behind the last one nothing may be. */
static pawl_status take_stray(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct check *check = context;
    char space[160];
    struct pawl__buf key = BUF_OVER(space);

    (void)reterr;
    pawl__app_key_describe(entry->family, entry->key, &key);
    pawl__check_tell(check,
                     entry->family == APP_PLOG ? PAWL_APP_PART_PLOG : PAWL_APP_PART_SEQUENCES,
                     "%s: there is no such partition",
                     key.broken ? "a long key" : space);
    return PAWL_OK;
}

static pawl_status check_strays(struct check *check, pawl_error *reterr)
{
    static const enum app_family families[] = { APP_PLOG, APP_SEQ };
    uint32_t app = check->app->definition.descriptor.id;
    struct app_key first = pawl__app_key_offset(app, 0);
    struct app_key behind = pawl__app_key_offset(app, (uint16_t)check->app->partition_count);
    for (size_t i = 0; check->workspace == 0 && i < COUNT_OF(families); i++) {
        const struct app_range before = { .family = families[i],
                                          .until = pawl__app_key_view(&first) };
        const struct app_range after = { .family = families[i],
                                         .from = pawl__app_key_view(&behind) };
        TRY(pawl__app_store_walk(check->app->store, &before, take_stray, check, reterr));
        TRY(pawl__app_store_walk(check->app->store, &after, take_stray, check, reterr));
    }
    return PAWL_OK;
}

/* --- what an event must have left --- */

struct sketch_item pawl__check_item(pawl_app_part part,
                                    uint16_t sequence,
                                    uint64_t workspace,
                                    uint64_t number,
                                    uint64_t offset,
                                    uint64_t content)
{
    return (struct sketch_item){
        { (uint64_t)part << 16 | sequence, workspace, number, offset, content }
    };
}

static void expect_numbers(struct check *check, const pawl_app_event *event)
{
    for (size_t i = 0; i < event->number_count; i++) {
        const pawl_app_number *used = &event->numbers[i];
        if (used->sequence >= PAWL_APP_SEQ_OWN_MIN) {
            struct sketch_item item = pawl__check_item(PAWL_APP_PART_NUMBER_KEYS,
                                                       used->sequence,
                                                       event->workspace,
                                                       used->number,
                                                       event->plog_offset,
                                                       0);
            pawl__sketch_add(check->sketch, &item);
        }
    }
}

static pawl_status expect(void *context,
                          uint16_t partition,
                          const pawl_app_event *event,
                          pawl_view bytes,
                          pawl_error *reterr)
{
    struct check *check = context;
    struct sketch *sketch = check->sketch;
    struct sketch_item item = pawl__check_item(PAWL_APP_PART_WLOG,
                                               0,
                                               event->workspace,
                                               event->wlog_offset,
                                               event->plog_offset,
                                               pawl__sketch_hash(sketch, bytes));

    pawl__sketch_add(sketch, &item);
    if (check->app->partitions[partition].seq.numbered && check->app->format == APP_FORMAT) {
        expect_numbers(check, event);
    }
    if (event->key.len > 0) {
        const pawl_view hash = { (const char *)event->request_hash, sizeof(event->request_hash) };
        item = pawl__check_item(PAWL_APP_PART_KEYS,
                                0,
                                event->workspace,
                                pawl__sketch_hash(sketch, event->key),
                                event->plog_offset,
                                pawl__sketch_hash(sketch, hash));
        pawl__sketch_add(sketch, &item);
    }
    return pawl__check_records_event(check, event, reterr);
}

/* --- what is there --- */

static pawl_status take_number_key(struct check *check,
                                   const struct app_key_parts *parts,
                                   pawl_view value,
                                   pawl_error *reterr)
{
    pawl_view rest = value;
    uint64_t offset = 0;
    uint64_t more = 0;

    (void)reterr;
    if (!pawl__view_take_u64be(&rest, &offset) || rest.len != 0) {
        more = pawl__sketch_hash(check->sketch, value);
    }
    struct sketch_item item = pawl__check_item(
        PAWL_APP_PART_NUMBER_KEYS, parts->sequence, parts->workspace, parts->number, offset, more);
    pawl__sketch_remove(check->sketch, &item);
    return PAWL_OK;
}

static pawl_status take_key(struct check *check,
                            const struct app_key_parts *parts,
                            pawl_view value,
                            pawl_error *reterr)
{
    pawl_view rest = value;
    pawl_view hash = value;
    uint64_t offset = 0;

    (void)reterr;
    if (!pawl__view_take(&rest, 32, &hash) || !pawl__view_take_u64be(&rest, &offset)
        || rest.len != 0) {
        hash = value;
        offset = 0;
    }
    struct sketch_item item = pawl__check_item(PAWL_APP_PART_KEYS,
                                               0,
                                               parts->workspace,
                                               pawl__sketch_hash(check->sketch, parts->text),
                                               offset,
                                               pawl__sketch_hash(check->sketch, hash));
    pawl__sketch_remove(check->sketch, &item);
    return PAWL_OK;
}

/* --- what is left --- */

struct difference {
    struct sketch_item item;
    bool added; /* the log has it; else the store has */
};

struct differences {
    struct difference *list;
    size_t count;
    size_t room;
    bool no_memory;
};

static void collect(void *context, const struct sketch_item *item, bool added)
{
    struct differences *all = context;

    if (all->count == all->room) {
        size_t room = all->room == 0 ? 64 : all->room * 2;
        struct difference *list = realloc(all->list, room * sizeof(*list));
        if (list == NULL) {
            all->no_memory = true;
            return;
        }
        all->list = list;
        all->room = room;
    }
    all->list[all->count++] = (struct difference){ *item, added };
}

enum { WHICH_WORDS = 3 }; /* part and sequence, workspace, number */

static int compare_which(const struct difference *a, const struct difference *b)
{
    for (size_t i = 0; i < WHICH_WORDS; i++) {
        if (a->item.words[i] != b->item.words[i]) {
            return a->item.words[i] < b->item.words[i] ? -1 : 1;
        }
    }
    return 0;
}

static int in_order(const void *left, const void *right)
{
    const struct difference *a = left;
    const struct difference *b = right;
    int order = compare_which(a, b);

    return order != 0 ? order : (int)b->added - (int)a->added;
}

static void describe(struct check *check, const struct difference *of, struct pawl__buf *text)
{
    pawl_app_part part = (pawl_app_part)(of->item.words[0] >> 16);
    uint16_t sequence = (uint16_t)of->item.words[0];
    uint64_t workspace = of->item.words[1];
    uint64_t number = of->item.words[2];
    uint64_t offset = of->item.words[3];

    switch (part) {
    case PAWL_APP_PART_WLOG:
        pawl__buf_add_format(
            text, "offset %" PRIu64 " of the WLog of workspace %" PRIu64, number, workspace);
        break;
    case PAWL_APP_PART_RECORDS:
        pawl__buf_add_format(text, "record %" PRIu64 " of workspace %" PRIu64, number, workspace);
        break;
    case PAWL_APP_PART_NUMBER_KEYS:
        pawl__buf_add_format(text,
                             "the key of number %" PRIu64 " of sequence '%s' of workspace %" PRIu64,
                             number,
                             pawl_app_sequence_name(check->app, sequence),
                             workspace);
        break;
    default:
        pawl__buf_add_format(text, "an idempotency key of workspace %" PRIu64, workspace);
        break;
    }
    if (offset != 0) {
        pawl__buf_add_format(text, " (PLog offset %" PRIu64 ")", offset);
    }
}

/* Both sides have it: it is another one. */
static void tell_difference(struct check *check, const struct difference *of, bool both)
{
    char space[192];
    struct pawl__buf text = BUF_OVER(space);

    describe(check, of, &text);
    check->report.unaccounted +=
        of->item.words[0] >> 16 == PAWL_APP_PART_WLOG && !both && !of->added;
    pawl__check_tell(check,
                     (pawl_app_part)(of->item.words[0] >> 16),
                     "%s %s",
                     space,
                     both        ? "is not what the PLog says"
                     : of->added ? "is missing"
                                 : "is in no event of the PLog");
}

pawl_status pawl__check_name(struct check *check, struct sketch *sketch, pawl_error *reterr)
{
    struct differences all = { .count = 0 };
    bool complete = pawl__sketch_name(sketch, collect, &all);

    if (all.count > 1) {
        qsort(all.list, all.count, sizeof(*all.list), in_order);
    }
    for (size_t i = 0; i < all.count; i++) {
        bool both = i + 1 < all.count && all.list[i].added && !all.list[i + 1].added
                    && compare_which(&all.list[i], &all.list[i + 1]) == 0;
        tell_difference(check, &all.list[i], both);
        i += both;
    }
    free(all.list);
    if (all.no_memory) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for what is wrong");
    }
    if (!complete) {
        pawl__check_tell(check,
                         sketch == check->records.sketch ? PAWL_APP_PART_RECORDS
                                                         : PAWL_APP_PART_WLOG,
                         "%s differ from the PLog in more places than can be named one by one",
                         sketch == check->records.sketch ? "records" : "WLogs or keys");
    }
    return PAWL_OK;
}

/* --- all of it --- */

/* Numbers are stored behind the log, never ahead of it. */
static void check_ends(struct check *check)
{
    for (size_t i = 0; i < check->app->partition_count; i++) {
        const struct check_partition *partition = &check->partitions[i];
        bool looked =
            check->workspace == 0 || pawl_app_partition_of(check->app, check->workspace) == i;
        if (looked && partition->stored > partition->end + 1) {
            pawl__check_tell(check,
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
static void check_rebuilding(struct check *check)
{
    if (check->app->rebuilding) {
        pawl__check_tell(check,
                         PAWL_APP_PART_SEQUENCES,
                         "a rebuild of the numbers was interrupted: run 'pawl seq rebuild' again; "
                         "until then numbers, offsets and keys of numbers are not compared");
        check->quiet[PAWL_APP_PART_SEQUENCES] = true;
        check->quiet[PAWL_APP_PART_OFFSETS] = true;
        check->quiet[PAWL_APP_PART_NUMBER_KEYS] = true;
    }
}

static pawl_status check_parts(struct check *check, pawl_error *reterr)
{
    static const struct check_family families[] = {
        { APP_NUMBERS, PAWL_APP_PART_NUMBER_KEYS, take_number_key },
        { APP_KEYS, PAWL_APP_PART_KEYS, take_key },
    };
    const struct check_events events = { true, true, expect, check };

    check_rebuilding(check);
    pawl_status status = pawl__check_descriptor(check, reterr);
    if (status == PAWL_OK) {
        status = pawl__check_offsets(check, reterr); /* before the logs: they only grow */
    }
    if (status == PAWL_OK) {
        status = pawl__check_events(check, &events, reterr);
    }
    if (status == PAWL_OK) {
        check_ends(check);
        status = check_strays(check, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__check_numbers(check, reterr);
    }
    for (size_t i = 0; i < COUNT_OF(families) && status == PAWL_OK; i++) {
        status = pawl__check_family(check, &families[i], reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__check_name(check, check->sketch, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__check_records(check, reterr);
    }
    return status == PAWL_OK ? pawl__check_anchor(check, reterr) : status;
}

static pawl_status conclude(const struct check *check, pawl_error *reterr)
{
    uint64_t wrong = 0;

    for (size_t i = 0; i < PAWL_APP_PARTS; i++) {
        wrong += check->report.wrong[i];
    }
    if (wrong == 0) {
        return PAWL_OK;
    }
    return pawl__fail_advised(reterr,
                              PAWL_CORRUPT,
                              "application '%s': %" PRIu64
                              " %s wrong: 'pawl seq verify --all' lists %s, "
                              "'pawl seq rebuild' repairs numbers; restore all else from a backup",
                              check->app->definition.descriptor.name,
                              wrong,
                              wrong == 1 ? "thing is" : "things are",
                              wrong == 1 ? "it" : "them");
}

pawl_status pawl_app_verify(pawl_app *app,
                            uint64_t workspace,
                            pawl_app_wrong_visitor visitor,
                            void *context,
                            pawl_app_report *ret_report,
                            pawl_error *reterr)
{
    NEED(app, reterr);
    NEED(ret_report, reterr);
    if (workspace > PAWL_APP_WORKSPACE_MAX) {
        return pawl__fail(reterr, PAWL_INVALID, "there is no workspace %" PRIu64, workspace);
    }
    struct check *check = calloc(1, sizeof(*check));
    if (check == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory to check an application");
    }
    check->app = app;
    check->workspace = workspace;
    check->visitor = visitor;
    check->context = context;
    check->bytes = (struct pawl__buf)BUF_INIT(APP_EVENT_BYTES_MAX);
    pawl_status status = pawl__sketch_new(&check->sketch, reterr);
    if (status == PAWL_OK) {
        status = pawl__check_records_start(check, reterr);
    }
    if (status == PAWL_OK) {
        status = check_parts(check, reterr);
    }
    if (status == PAWL_OK) {
        *ret_report = check->report;
        status = conclude(check, reterr);
    }
    pawl__check_records_done(check);
    pawl__sketch_free(check->sketch);
    pawl__buf_done(&check->bytes);
    free(check);
    return status;
}
