/* The numbers of each workspace, and what is stored of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/verify/check.h"
#include "app/verify/gapless.h"
#include "base/core/error.h"

/* --- a workspace --- */

struct sequence {
    uint16_t id;
    struct gapless used;
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
        pawl__gapless_done(&workspace->sequences[i].used);
    }
    workspace->count = 0;
}

static void workspace_done(struct workspace *workspace)
{
    workspace_clear(workspace);
    free(workspace->sequences);
}

static pawl_status find_sequence(const struct check *check,
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
    if (workspace->count == workspace->room) {
        size_t room = workspace->room == 0 ? 8 : workspace->room * 2;
        struct sequence *more = realloc(workspace->sequences, room * sizeof(*more));
        if (more == NULL) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu sequences", room);
        }
        workspace->sequences = more;
        workspace->room = room;
    }
    struct sequence *sequence = &workspace->sequences[workspace->count++];
    uint64_t initial = pawl__app_initial_of(&check->app->definition.descriptor, id);
    *sequence = (struct sequence){ .id = id };
    pawl__gapless_init(&sequence->used, MAX(initial, (uint64_t)1));
    *ret_sequence = sequence;
    return PAWL_OK;
}

static pawl_status take_row(const struct check *check,
                            struct workspace *workspace,
                            const struct app_entry *entry,
                            pawl_error *reterr)
{
    const struct app_seq *seq = &check->app->partitions[workspace->partition].seq;
    struct app_key_parts parts;
    struct sequence *sequence = NULL;

    if (!pawl__app_key_take(APP_SEQ, entry->key, &parts)) {
        return PAWL_OK; /* told elsewhere */
    }
    TRY(find_sequence(check, workspace, parts.sequence, &sequence, reterr));
    sequence->stored = true;
    sequence->damaged =
        pawl__app_stored_decode(
            APP_SEQ, entry->key, entry->value, seq->short_too, NULL, &sequence->row, NULL)
        != PAWL_OK;
    return PAWL_OK;
}

static pawl_status take_number(struct check *check,
                               struct workspace *workspace,
                               const pawl_app_event *event,
                               const pawl_app_number *number,
                               bool tell,
                               pawl_error *reterr)
{
    uint64_t covered = check->partitions[workspace->partition].stored;
    struct sequence *sequence = NULL;
    bool fresh = true;

    TRY(find_sequence(check, workspace, number->sequence, &sequence, reterr));
    TRY(pawl__gapless_use(&sequence->used, number->number, &fresh, reterr));
    if (event->plog_offset < covered) {
        sequence->covered_last = MAX(sequence->covered_last, number->number);
    }
    if (event->plog_offset < sequence->row.offset) {
        sequence->row_last = MAX(sequence->row_last, number->number);
    }
    sequence->doubled = sequence->doubled || !fresh;
    if (!fresh && tell) {
        pawl__check_tell(check,
                         PAWL_APP_PART_SEQUENCES,
                         "number %" PRIu64 " of sequence '%s' of workspace %" PRIu64
                         " is used again at PLog offset %" PRIu64 " of partition %u",
                         number->number,
                         pawl_app_sequence_name(check->app, number->sequence),
                         workspace->id,
                         event->plog_offset,
                         workspace->partition);
    }
    return PAWL_OK;
}

static pawl_status take_event(struct check *check,
                              struct workspace *workspace,
                              const pawl_app_event *event,
                              bool tell,
                              pawl_error *reterr)
{
    for (size_t i = 0; i < event->number_count; i++) {
        TRY(take_number(check, workspace, event, &event->numbers[i], tell, reterr));
    }
    return PAWL_OK;
}

/* --- what is wrong with it --- */

enum verdict { FITS, DAMAGED, NOT_STORED, AHEAD, BEHIND, ANOTHER, UNKNOWN };

static enum verdict judge(const struct check *check, const struct sequence *of)
{
    if (pawl__app_initial_of(&check->app->definition.descriptor, of->id) == 0) {
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
static bool offset_is_behind(const struct check *check,
                             const struct workspace *workspace,
                             const struct sequence *of)
{
    return of->stored && !of->damaged
           && of->row.offset > check->partitions[workspace->partition].stored;
}

static bool is_doubtful(const struct check *check, const struct workspace *workspace)
{
    for (size_t i = 0; i < workspace->count; i++) {
        const struct sequence *of = &workspace->sequences[i];
        if (judge(check, of) != FITS || of->used.missing_count > 0 || of->doubled
            || offset_is_behind(check, workspace, of)) {
            return true;
        }
    }
    return false;
}

static void tell_verdict(struct check *check, uint64_t workspace, const struct sequence *of)
{
    char space[256] = "";
    struct pawl__buf text = BUF_OVER(space);

    switch (judge(check, of)) {
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
    pawl__check_tell(check,
                     PAWL_APP_PART_SEQUENCES,
                     "sequence %u '%s' of workspace %" PRIu64 ": %s",
                     of->id,
                     pawl_app_sequence_name(check->app, of->id),
                     workspace,
                     space);
}

static void tell_workspace(struct check *check, const struct workspace *workspace)
{
    struct check_partition *partition = &check->partitions[workspace->partition];

    for (size_t i = 0; i < workspace->count; i++) {
        const struct sequence *of = &workspace->sequences[i];
        tell_verdict(check, workspace->id, of);
        for (size_t k = 0; k < of->used.missing_count; k++) {
            pawl__check_tell(check,
                             PAWL_APP_PART_SEQUENCES,
                             "numbers %" PRIu64 "-%" PRIu64
                             " of sequence '%s' of workspace %" PRIu64 " were never used",
                             of->used.missing[k].first,
                             of->used.missing[k].last,
                             pawl_app_sequence_name(check->app, of->id),
                             workspace->id);
        }
        if (offset_is_behind(check, workspace, of) && !partition->behind) {
            partition->behind = true;
            pawl__check_tell(check,
                             PAWL_APP_PART_OFFSETS,
                             "partition %u: numbers are stored up to PLog offset %" PRIu64
                             ", its stored offset is %" PRIu64,
                             workspace->partition,
                             of->row.offset,
                             partition->stored);
        }
    }
}

/* --- all of them --- */

struct numbers {
    struct check *check;
    struct pawl__arena arena;
    struct check_rows *rows; /* by partition */
    struct workspace workspace;
    uint64_t *doubtful; /* room for the limit */
    size_t doubtful_count;
    bool more; /* than that */
};

static void numbers_done(struct numbers *numbers)
{
    for (size_t i = 0; numbers->rows != NULL && i < numbers->check->app->partition_count; i++) {
        pawl__check_rows_done(&numbers->rows[i]);
    }
    free(numbers->rows);
    free(numbers->doubtful);
    workspace_done(&numbers->workspace);
    pawl__arena_done(&numbers->arena);
}

static void doubt(struct numbers *numbers, uint64_t workspace)
{
    size_t count = numbers->doubtful_count;

    if (count > 0 && numbers->doubtful[count - 1] == workspace) {
        return;
    }
    if (count == pawl__check_limits.doubtful_max) {
        numbers->more = true;
    } else {
        numbers->doubtful[numbers->doubtful_count++] = workspace;
    }
}

/* Takes the rows of a workspace, and doubts those before it, which have no event in a WLog. */
static pawl_status take_rows(struct numbers *numbers,
                             struct workspace *workspace,
                             pawl_error *reterr)
{
    struct check_rows *rows = &numbers->rows[workspace->partition];
    uint64_t of = 0;
    pawl_status status = pawl__check_rows_next(numbers->check, rows, &of, reterr);

    while (status == PAWL_OK && of != 0 && of <= workspace->id) {
        numbers->check->report.entries[PAWL_APP_PART_SEQUENCES]++;
        if (of < workspace->id) {
            doubt(numbers, of);
        } else {
            status = take_row(numbers->check, workspace, &rows->entries[rows->at], reterr);
        }
        rows->at++;
        status =
            status == PAWL_OK ? pawl__check_rows_next(numbers->check, rows, &of, reterr) : status;
    }
    return status;
}

static pawl_status open_rows(struct numbers *numbers, pawl_error *reterr)
{
    const struct check *check = numbers->check;
    numbers->rows = calloc(check->app->partition_count, sizeof(*numbers->rows));
    if (numbers->rows == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for partitions");
    }
    for (size_t i = 0; i < check->app->partition_count; i++) {
        TRY(pawl__check_rows_open(check, (uint16_t)i, &numbers->rows[i], reterr));
    }
    return PAWL_OK;
}

/* --- from the WLogs --- */

static void end_workspace(struct numbers *numbers)
{
    struct workspace *workspace = &numbers->workspace;

    if (workspace->id != 0 && is_doubtful(numbers->check, workspace)) {
        doubt(numbers, workspace->id);
    }
    workspace_clear(workspace);
}

static pawl_status begin_workspace(struct numbers *numbers, uint64_t id, pawl_error *reterr)
{
    end_workspace(numbers);
    numbers->workspace.id = id;
    numbers->workspace.partition = pawl_app_partition_of(numbers->check->app, id);
    return take_rows(numbers, &numbers->workspace, reterr);
}

static pawl_status take_wlog(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct numbers *numbers = context;
    struct check *check = numbers->check;
    struct app_key_parts parts;
    pawl_app_event event;
    pawl_view bytes = entry->value;
    uint64_t offset = 0;

    check->report.entries[PAWL_APP_PART_WLOG]++;
    if (!pawl__app_key_take(APP_WLOG, entry->key, &parts)
        || parts.app != check->app->definition.descriptor.id) {
        pawl__check_tell(check, PAWL_APP_PART_WLOG, "a key of %zu bytes is none", entry->key.len);
        return PAWL_OK;
    }
    (void)!pawl__view_take_u64be(&bytes, &offset);
    struct sketch_item item = pawl__check_item(PAWL_APP_PART_WLOG,
                                               0,
                                               parts.workspace,
                                               parts.number,
                                               offset,
                                               pawl__sketch_hash(check->sketch, bytes));
    pawl__sketch_remove(check->sketch, &item);
    pawl_status status = parts.workspace == numbers->workspace.id
                             ? PAWL_OK
                             : begin_workspace(numbers, parts.workspace, reterr);
    pawl__arena_clear(&numbers->arena);
    if (status == PAWL_OK
        && pawl__app_event_decode(bytes, &numbers->arena, &event, NULL) == PAWL_OK) {
        status = take_event(check, &numbers->workspace, &event, false, reterr);
    }
    return status;
}

static pawl_status walk_wlogs(struct numbers *numbers, pawl_error *reterr)
{
    const struct check *check = numbers->check;
    uint32_t app = check->app->definition.descriptor.id;
    struct app_key first = pawl__app_key_wlog(app, check->workspace, 0);
    struct app_key behind = pawl__app_key_wlog(app, check->workspace + 1, 0);
    struct app_range range = { .family = APP_WLOG };

    if (check->workspace != 0) {
        range.from = pawl__app_key_view(&first);
        range.until = pawl__app_key_view(&behind);
    }
    pawl_status status =
        pawl__app_store_walk(check->app->store, &range, take_wlog, numbers, reterr);
    end_workspace(numbers);
    for (uint16_t i = 0; i < check->app->partition_count && status == PAWL_OK; i++) {
        struct workspace beyond = { .id = UINT64_MAX, .partition = i };
        status = take_rows(numbers, &beyond, reterr); /* what is left has no event in a WLog */
        workspace_done(&beyond);
    }
    return status;
}

/* --- a second look, from the PLogs --- */

struct second {
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

struct reload {
    struct check *check;
    struct workspace *workspace;
};

static pawl_status reload_row(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct reload *reload = context;

    return take_row(reload->check, reload->workspace, entry, reterr);
}

static pawl_status begin_second(struct second *second, uint64_t id, pawl_error *reterr)
{
    struct check *check = second->numbers->check;
    uint32_t app = check->app->definition.descriptor.id;
    struct workspace *workspace = &second->workspaces[second->count++];
    struct reload reload = { check, workspace };

    *workspace = (struct workspace){ .id = id, .partition = pawl_app_partition_of(check->app, id) };
    struct app_key first = pawl__app_key_seq(app, workspace->partition, id, 0);
    struct app_key behind = pawl__app_key_seq(app, workspace->partition, id + 1, 0);
    const struct app_range range = { .family = APP_SEQ,
                                     .from = pawl__app_key_view(&first),
                                     .until = pawl__app_key_view(&behind) };
    return pawl__app_store_walk(check->app->store, &range, reload_row, &reload, reterr);
}

static pawl_status take_again(void *context,
                              uint16_t partition,
                              const pawl_app_event *event,
                              pawl_view bytes,
                              pawl_error *reterr)
{
    struct second *second = context;
    struct workspace *workspace = bsearch(
        &event->workspace, second->workspaces, second->count, sizeof(*second->workspaces), by_id);

    (void)partition;
    (void)bytes;
    return workspace == NULL ? PAWL_OK
                             : take_event(second->numbers->check, workspace, event, true, reterr);
}

static pawl_status look_again(struct second *second, pawl_error *reterr)
{
    struct numbers *numbers = second->numbers;
    const struct check_events events = { false, false, take_again, second };
    qsort(numbers->doubtful, numbers->doubtful_count, sizeof(uint64_t), by_number);
    for (size_t i = 0; i < numbers->doubtful_count; i++) {
        if (i == 0 || numbers->doubtful[i] != numbers->doubtful[i - 1]) {
            TRY(begin_second(second, numbers->doubtful[i], reterr));
        }
    }
    TRY(pawl__check_events(numbers->check, &events, reterr));
    for (size_t i = 0; i < second->count; i++) {
        tell_workspace(numbers->check, &second->workspaces[i]);
    }
    if (numbers->more) {
        pawl__check_tell(numbers->check,
                         PAWL_APP_PART_SEQUENCES,
                         "numbers of more than %zu workspaces are wrong: the others are not listed",
                         pawl__check_limits.doubtful_max);
    }
    return PAWL_OK;
}

static pawl_status second_look(struct numbers *numbers, pawl_error *reterr)
{
    struct second second = { .numbers = numbers };

    if (numbers->doubtful_count == 0) {
        return PAWL_OK;
    }
    second.workspaces = calloc(numbers->doubtful_count, sizeof(*second.workspaces));
    pawl_status status = second.workspaces == NULL
                             ? pawl__fail(reterr, PAWL_NOMEM, "no memory for workspaces")
                             : look_again(&second, reterr);
    for (size_t i = 0; i < second.count; i++) {
        workspace_done(&second.workspaces[i]);
    }
    free(second.workspaces);
    return status;
}

pawl_status pawl__check_numbers(struct check *check, pawl_error *reterr)
{
    struct numbers *numbers = calloc(1, sizeof(*numbers));

    if (numbers == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for numbers");
    }
    numbers->check = check;
    numbers->doubtful = calloc(pawl__check_limits.doubtful_max, sizeof(*numbers->doubtful));
    pawl_status status = numbers->doubtful == NULL
                             ? pawl__fail(reterr, PAWL_NOMEM, "no memory for workspaces")
                             : open_rows(numbers, reterr);
    if (status == PAWL_OK) {
        status = walk_wlogs(numbers, reterr);
    }
    if (status == PAWL_OK) {
        status = second_look(numbers, reterr);
    }
    numbers_done(numbers);
    free(numbers);
    return status;
}
