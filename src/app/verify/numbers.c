/* The numbers of each workspace, and what is stored of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/verify/gapless.h"
#include "app/verify/verify.h"
#include "base/core/error.h"
#include "base/core/grow.h"

/* --- a workspace --- */

struct sequence {
    uint16_t id;
    struct app_gapless used;
    uint64_t covered_last; /* of the events that the stored offset covers */
    bool stored;
    bool damaged;
    struct app_stored row;
    uint64_t row_last; /* of the events before row.offset */
    bool doubled;
};

/* Start with zeroes. */
struct workspace {
    uint64_t id; /* 0: none */
    uint16_t partition;
    struct sequence *sequences;
    size_t count;
    size_t room;
};

static void workspace_clear(struct workspace *workspace)
{
    for (size_t i = 0; i < workspace->count; i++) {
        pawl__app_gapless_done(&workspace->sequences[i].used);
    }
    workspace->count = 0;
}

static void workspace_done(struct workspace *workspace)
{
    workspace_clear(workspace);
    free(workspace->sequences);
}

static pawl_status find_sequence(const struct app_verify *verify,
                                 struct workspace *workspace,
                                 uint16_t id,
                                 struct sequence **ret_sequence,
                                 pawl_error *reterr)
{
    for (size_t i = 0; i < workspace->count; i++) {
        if (workspace->sequences[i].id == id) {
            *ret_sequence = &workspace->sequences[i];
            return PAWL_OK;
        }
    }
    struct sequence *more =
        pawl__grow(workspace->sequences, workspace->count, &workspace->room, sizeof(*more));
    if (more == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for sequences");
    }
    workspace->sequences = more;
    struct sequence *sequence = &more[workspace->count++];
    uint64_t initial = pawl__app_initial_of(&verify->app->definition.descriptor, id);
    *sequence = (struct sequence){ .id = id };
    pawl__app_gapless_init(&sequence->used, MAX(initial, (uint64_t)1));
    *ret_sequence = sequence;
    return PAWL_OK;
}

static pawl_status add_row(const struct app_verify *verify,
                           struct workspace *workspace,
                           const struct app_entry *entry,
                           pawl_error *reterr)
{
    const struct app_seq *seq = &verify->app->partitions[workspace->partition].seq;
    struct app_key_parts parts;
    struct sequence *sequence = NULL;

    if (!pawl__app_key_parse(APP_SEQ, entry->key, &parts)) {
        return PAWL_OK; /* reported elsewhere */
    }
    TRY(find_sequence(verify, workspace, parts.sequence, &sequence, reterr));
    sequence->stored = true;
    sequence->damaged =
        pawl__app_stored_decode(
            APP_SEQ, entry->key, entry->value, seq->accepts_short, NULL, &sequence->row, NULL)
        != PAWL_OK;
    return PAWL_OK;
}

static pawl_status add_number(struct app_verify *verify,
                              struct workspace *workspace,
                              const pawl_app_event *event,
                              const pawl_app_number *number,
                              bool report_damage,
                              pawl_error *reterr)
{
    uint64_t covered = verify->partitions[workspace->partition].stored;
    struct sequence *sequence = NULL;
    bool fresh = true;

    TRY(find_sequence(verify, workspace, number->sequence, &sequence, reterr));
    TRY(pawl__app_gapless_use(&sequence->used, number->number, &fresh, reterr));
    if (event->plog_offset < covered) {
        sequence->covered_last = MAX(sequence->covered_last, number->number);
    }
    if (event->plog_offset < sequence->row.offset) {
        sequence->row_last = MAX(sequence->row_last, number->number);
    }
    sequence->doubled = sequence->doubled || !fresh;
    if (!fresh && report_damage) {
        pawl__app_verify_finding(verify,
                                 PAWL_APP_PART_SEQUENCES,
                                 "number %" PRIu64 " of sequence '%s' of workspace %" PRIu64
                                 " is used again at PLog offset %" PRIu64 " of partition %u",
                                 number->number,
                                 pawl_app_sequence_name(verify->app, number->sequence),
                                 workspace->id,
                                 event->plog_offset,
                                 workspace->partition);
    }
    return PAWL_OK;
}

static pawl_status add_event(struct app_verify *verify,
                             struct workspace *workspace,
                             const pawl_app_event *event,
                             bool report_damage,
                             pawl_error *reterr)
{
    for (size_t i = 0; i < event->number_count; i++) {
        TRY(add_number(verify, workspace, event, &event->numbers[i], report_damage, reterr));
    }
    return PAWL_OK;
}

/* --- what is wrong with it --- */

enum verdict { FITS, DAMAGED, NOT_STORED, AHEAD, BEHIND, ANOTHER, UNKNOWN };

static enum verdict judge(const struct app_verify *verify, const struct sequence *of)
{
    if (pawl__app_initial_of(&verify->app->definition.descriptor, of->id) == 0) {
        return UNKNOWN;
    }
    if (of->damaged) {
        return DAMAGED;
    }
    if (!of->stored) {
        return of->covered_last > 0 ? NOT_STORED : FITS;
    }
    if (of->row.number > of->used.last) {
        return AHEAD;
    }
    if (of->row.number < of->covered_last) {
        return BEHIND;
    }
    return of->row.offset != 0 && of->row.number != of->row_last ? ANOTHER : FITS;
}

/* Rows and offset are written as one. */
static bool offset_is_behind(const struct app_verify *verify,
                             const struct workspace *workspace,
                             const struct sequence *of)
{
    return of->stored && !of->damaged
           && of->row.offset > verify->partitions[workspace->partition].stored;
}

static bool is_suspect(const struct app_verify *verify, const struct workspace *workspace)
{
    for (size_t i = 0; i < workspace->count; i++) {
        const struct sequence *of = &workspace->sequences[i];
        if (judge(verify, of) != FITS || of->used.missing_count > 0 || of->doubled
            || offset_is_behind(verify, workspace, of)) {
            return true;
        }
    }
    return false;
}

static void report_verdict(struct app_verify *verify, uint64_t workspace, const struct sequence *of)
{
    char space[256] = "";
    struct pawl__buf text = BUF_OVER(space);

    switch (judge(verify, of)) {
    case FITS:
        return;
    case UNKNOWN:
        pawl__buf_add_text(&text, "the application has no such sequence");
        break;
    case DAMAGED:
        pawl__buf_add_text(&text, "what is stored is damaged");
        break;
    case NOT_STORED:
        pawl__buf_add_format(
            &text, "nothing is stored, the log has used up to %" PRIu64, of->covered_last);
        break;
    case AHEAD:
        pawl__buf_add_format(&text,
                             "%" PRIu64 " is stored, the log ends at %" PRIu64,
                             of->row.number,
                             of->used.last);
        break;
    case BEHIND:
        pawl__buf_add_format(&text,
                             "%" PRIu64 " is stored, the log has used up to %" PRIu64
                             ": numbers would be given out twice",
                             of->row.number,
                             of->covered_last);
        break;
    case ANOTHER:
        pawl__buf_add_format(&text,
                             "%" PRIu64 " is stored as the last one before PLog offset %" PRIu64
                             ", which was %" PRIu64,
                             of->row.number,
                             of->row.offset,
                             of->row_last);
        break;
    }
    pawl__app_verify_finding(verify,
                             PAWL_APP_PART_SEQUENCES,
                             "sequence %u '%s' of workspace %" PRIu64 ": %s",
                             of->id,
                             pawl_app_sequence_name(verify->app, of->id),
                             workspace,
                             space);
}

/* The offset was read first of all, and an application that is in use has stored more numbers since: what
 * counts is the offset now, which was written together with the row. */
static pawl_status offset_is_still_behind(const struct app_verify *verify,
                                          const struct workspace *workspace,
                                          const struct sequence *of,
                                          bool *ret_behind,
                                          pawl_error *reterr)
{
    uint64_t now = 0;

    *ret_behind = offset_is_behind(verify, workspace, of);
    if (*ret_behind) {
        TRY(pawl__app_verify_offset_now(verify, workspace->partition, &now, reterr));
        *ret_behind = of->row.offset > now;
    }
    return PAWL_OK;
}

static pawl_status report_workspace(struct app_verify *verify,
                                    const struct workspace *workspace,
                                    pawl_error *reterr)
{
    struct verify_partition *partition = &verify->partitions[workspace->partition];

    for (size_t i = 0; i < workspace->count; i++) {
        const struct sequence *of = &workspace->sequences[i];
        report_verdict(verify, workspace->id, of);
        for (size_t k = 0; k < of->used.missing_count; k++) {
            pawl__app_verify_finding(verify,
                                     PAWL_APP_PART_SEQUENCES,
                                     "numbers %" PRIu64 "-%" PRIu64
                                     " of sequence '%s' of workspace %" PRIu64 " were never used",
                                     of->used.missing[k].first,
                                     of->used.missing[k].last,
                                     pawl_app_sequence_name(verify->app, of->id),
                                     workspace->id);
        }
        bool behind = false;
        TRY(offset_is_still_behind(verify, workspace, of, &behind, reterr));
        if (behind && !partition->offset_reported) {
            partition->offset_reported = true;
            pawl__app_verify_finding(verify,
                                     PAWL_APP_PART_OFFSETS,
                                     "partition %u: numbers are stored up to PLog offset %" PRIu64
                                     ", its stored offset is %" PRIu64,
                                     workspace->partition,
                                     of->row.offset,
                                     partition->stored);
        }
    }
    return PAWL_OK;
}

/* --- all of them --- */

struct numbers {
    struct app_verify *verify;
    struct pawl__arena arena;
    struct verify_rows *rows; /* by partition */
    struct workspace workspace;
    uint64_t *suspects; /* room for the limit */
    size_t suspect_count;
    bool more; /* than that */
};

static void numbers_done(struct numbers *numbers)
{
    for (size_t i = 0; numbers->rows != NULL && i < numbers->verify->app->partition_count; i++) {
        pawl__app_page_done(&numbers->rows[i].page);
    }
    free(numbers->rows);
    free(numbers->suspects);
    workspace_done(&numbers->workspace);
    pawl__arena_done(&numbers->arena);
}

static void suspect(struct numbers *numbers, uint64_t workspace)
{
    size_t count = numbers->suspect_count;

    if (count > 0 && numbers->suspects[count - 1] == workspace) {
        return;
    }
    if (count == pawl__app_verify_limits.suspects_max) {
        numbers->more = true;
    } else {
        numbers->suspects[numbers->suspect_count++] = workspace;
    }
}

/* Adds the rows of a workspace, and suspects the workspaces before it, which have no event in a WLog. */
static pawl_status add_rows(struct numbers *numbers,
                            struct workspace *workspace,
                            pawl_error *reterr)
{
    struct verify_rows *rows = &numbers->rows[workspace->partition];
    uint64_t of = 0;

    TRY(pawl__app_verify_rows_next(numbers->verify, rows, &of, reterr));
    while (of != 0 && of <= workspace->id) {
        numbers->verify->report.entries[PAWL_APP_PART_SEQUENCES]++;
        if (of < workspace->id) {
            suspect(numbers, of);
        } else {
            TRY(add_row(numbers->verify, workspace, &rows->page.entries[rows->at], reterr));
        }
        rows->at++;
        TRY(pawl__app_verify_rows_next(numbers->verify, rows, &of, reterr));
    }
    return PAWL_OK;
}

/* --- from the WLogs --- */

static void end_workspace(struct numbers *numbers)
{
    struct workspace *workspace = &numbers->workspace;

    if (workspace->id != 0 && is_suspect(numbers->verify, workspace)) {
        suspect(numbers, workspace->id);
    }
    workspace_clear(workspace);
}

static pawl_status begin_workspace(struct numbers *numbers, uint64_t id, pawl_error *reterr)
{
    end_workspace(numbers);
    numbers->workspace.id = id;
    numbers->workspace.partition = pawl_app_partition_of(numbers->verify->app, id);
    return add_rows(numbers, &numbers->workspace, reterr);
}

static pawl_status add_wlog_entry(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct numbers *numbers = context;
    struct app_verify *verify = numbers->verify;
    struct app_key_parts parts;
    pawl_app_event event;
    pawl_view bytes = entry->value;

    verify->report.entries[PAWL_APP_PART_WLOG]++;
    if (!pawl__app_key_parse(APP_WLOG, entry->key, &parts)
        || parts.app != verify->app->definition.descriptor.id) {
        pawl__app_verify_finding(
            verify, PAWL_APP_PART_WLOG, "a key of %zu bytes is none", entry->key.len);
        return PAWL_OK;
    }
    struct verify_item item = { .part = PAWL_APP_PART_WLOG,
                                .workspace = parts.workspace,
                                .number = parts.number };
    (void)!pawl__view_take_u64be(&bytes, &item.offset);
    item.content = pawl__app_sketch_hash(verify->sketch, bytes);
    pawl__app_verify_found(verify->sketch, &item);
    if (parts.workspace != numbers->workspace.id) {
        TRY(begin_workspace(numbers, parts.workspace, reterr));
    }
    pawl__arena_clear(&numbers->arena);
    return pawl__app_event_decode(bytes, &numbers->arena, &event, NULL) == PAWL_OK
               ? add_event(verify, &numbers->workspace, &event, false, reterr)
               : PAWL_OK;
}

static pawl_status walk_wlogs(struct numbers *numbers, pawl_error *reterr)
{
    struct app_verify *verify = numbers->verify;
    uint32_t app = verify->app->definition.descriptor.id;
    struct app_key first = pawl__app_key_wlog(app, verify->workspace, 0);
    struct app_key end = pawl__app_key_wlog(app, verify->workspace + 1, 0);
    struct app_range range = { .family = APP_WLOG };

    if (verify->workspace != 0) {
        range.from = pawl__app_key_view(&first);
        range.until = pawl__app_key_view(&end);
    }
    TRY(pawl__app_verify_walk(verify, &range, add_wlog_entry, numbers, reterr));
    end_workspace(numbers);
    for (size_t i = 0; i < verify->app->partition_count; i++) {
        AUTO(workspace_done)
        struct workspace beyond = { .id = UINT64_MAX, .partition = (uint16_t)i };
        TRY(add_rows(numbers, &beyond, reterr)); /* what is left has no event in a WLog */
    }
    return PAWL_OK;
}

/* --- workspaces that do not fit, checked again from the PLogs --- */

struct recheck {
    struct numbers *numbers;
    struct workspace *workspaces; /* by ascending id */
    size_t count;
};

static int by_number(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

static int by_id(const void *key, const void *element)
{
    uint64_t id = *(const uint64_t *)key;
    const struct workspace *workspace = element;

    return (id > workspace->id) - (id < workspace->id);
}

static void recheck_done(struct recheck *again)
{
    for (size_t i = 0; i < again->count; i++) {
        workspace_done(&again->workspaces[i]);
    }
    free(again->workspaces);
}

struct reload {
    struct app_verify *verify;
    struct workspace *workspace;
};

static pawl_status reload_row(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct reload *reload = context;

    return add_row(reload->verify, reload->workspace, entry, reterr);
}

static pawl_status begin_recheck(struct recheck *again, uint64_t id, pawl_error *reterr)
{
    struct app_verify *verify = again->numbers->verify;
    uint32_t app = verify->app->definition.descriptor.id;
    struct workspace *workspace = &again->workspaces[again->count++];
    struct reload reload = { verify, workspace };

    *workspace =
        (struct workspace){ .id = id, .partition = pawl_app_partition_of(verify->app, id) };
    struct app_key first = pawl__app_key_seq(app, workspace->partition, id, 0);
    struct app_key end = pawl__app_key_seq(app, workspace->partition, id + 1, 0);
    const struct app_range range = { .family = APP_SEQ,
                                     .from = pawl__app_key_view(&first),
                                     .until = pawl__app_key_view(&end) };
    return pawl__app_verify_walk(verify, &range, reload_row, &reload, reterr);
}

static pawl_status recheck_event(void *context,
                                 uint16_t partition,
                                 const pawl_app_event *event,
                                 pawl_view bytes,
                                 pawl_error *reterr)
{
    struct recheck *again = context;
    struct workspace *workspace = bsearch(
        &event->workspace, again->workspaces, again->count, sizeof(*again->workspaces), by_id);

    (void)partition;
    (void)bytes;
    return workspace == NULL ? PAWL_OK
                             : add_event(again->numbers->verify, workspace, event, true, reterr);
}

static pawl_status recheck_all(struct recheck *again, pawl_error *reterr)
{
    struct numbers *numbers = again->numbers;
    const struct verify_events events = { false, false, recheck_event, again };
    qsort(numbers->suspects, numbers->suspect_count, sizeof(uint64_t), by_number);
    for (size_t i = 0; i < numbers->suspect_count; i++) {
        if (i == 0 || numbers->suspects[i] != numbers->suspects[i - 1]) {
            TRY(begin_recheck(again, numbers->suspects[i], reterr));
        }
    }
    TRY(pawl__app_verify_events(numbers->verify, &events, reterr));
    for (size_t i = 0; i < again->count; i++) {
        TRY(report_workspace(numbers->verify, &again->workspaces[i], reterr));
    }
    if (numbers->more) {
        pawl__app_verify_finding(
            numbers->verify,
            PAWL_APP_PART_SEQUENCES,
            "numbers of more than %zu workspaces are wrong: the others are not listed",
            pawl__app_verify_limits.suspects_max);
    }
    return PAWL_OK;
}

static pawl_status recheck(struct numbers *numbers, pawl_error *reterr)
{
    AUTO(recheck_done) struct recheck again = { .numbers = numbers };

    if (numbers->suspect_count == 0) {
        return PAWL_OK;
    }
    again.workspaces = calloc(numbers->suspect_count, sizeof(*again.workspaces));
    return again.workspaces == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for workspaces")
                                    : recheck_all(&again, reterr);
}

pawl_status pawl__app_verify_numbers(struct app_verify *verify, pawl_error *reterr)
{
    size_t partitions = verify->app->partition_count;
    AUTO(numbers_done)
    struct numbers numbers = {
        .verify = verify,
        .rows = calloc(partitions, sizeof(*numbers.rows)),
        .suspects = calloc(pawl__app_verify_limits.suspects_max, sizeof(*numbers.suspects)),
    };

    if (numbers.rows == NULL || numbers.suspects == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for numbers");
    }
    for (size_t i = 0; i < partitions; i++) {
        pawl__app_verify_rows_start(verify, (uint16_t)i, &numbers.rows[i]);
    }
    TRY(walk_wlogs(&numbers, reterr));
    return recheck(&numbers, reterr);
}
