/* Commands of a partition: one queue, one thread that commits them in groups.
 *
 * A group is one transaction of the sequencer and one atomic write: for each command the sequencer
 * gives an offset and numbers, the batch gets the event and all that it does. Then
 *
 *   written     flush, and everybody has the answer
 *   CONFLICT    the trust level found a number in use. Nothing was written: actualize, the commands of
 *               other workspaces run again as a group, and those of the workspace whose key is in use
 *               one by one, so that only they fail
 *   otherwise   the write may have happened: actualize, and nothing runs again by itself
 *
 * What can be refused without numbers (keys, updates, singletons) is refused before a command gets any. */
#include <stdlib.h>

#include "app/core/apply.h"
#include "app/core/item.h"
#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/thread/inside.h"
#include "sequencer/internal.h"

enum {
    GROUP_MAX = 1000,
    WAITING_MAX = 65536,
    ACTUALIZE_MS_MAX = 10000, /* a group waits so long for its numbers to be rebuilt */
    RECORD_BYTES_ABOUT = 128, /* keys and lengths */
};

#define GROUP_BYTES_MAX ((size_t)32 << 20)

static struct app_item *item_of(struct pawl__commit_item *item)
{
    return (struct app_item *)item;
}

static void decide(struct app_item *item, const pawl_error *error)
{
    item->decided = true;
    item->item.outcome = *error;
}

/* --- an attempt --- */

/* The commands of one commit. */
struct group {
    struct app_partition *partition;
    struct pawl__commit_item *const *items;
    size_t count;
};

static bool has_undecided(const struct group *group, bool isolated)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct app_item *item = item_of(group->items[i]);
        if (!item->decided && item->isolated == isolated) {
            return true;
        }
    }
    return false;
}

static void decide_all(struct group *group, const pawl_error *error)
{
    for (size_t i = 0; i < group->count; i++) {
        if (!item_of(group->items[i])->decided) {
            decide(item_of(group->items[i]), error);
        }
    }
}

static void decide_attempt(struct app_partition *partition, const pawl_error *error)
{
    for (size_t i = 0; i < partition->attempt_count; i++) {
        decide(partition->attempt[i], error);
    }
}

/* Drops the numbers of the attempt and waits until they are rebuilt. The commands that are left were not written,
 * so a wait that ends too early is BUSY, not an unknown outcome. */
static void restart(struct group *group)
{
    pawl_sequencer *sequencer = group->partition->sequencer;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl_sequencer_actualize(sequencer, &error);

    if (status == PAWL_OK && (has_undecided(group, false) || has_undecided(group, true))) {
        status = pawl_sequencer_wait(sequencer, ACTUALIZE_MS_MAX, &error);
    }
    if (status == PAWL_TIMEOUT) {
        status = pawl__fail(&error, PAWL_BUSY, "the sequences are being actualized");
    }
    if (status != PAWL_OK) {
        decide_all(group, &error);
    }
}

/* With options.busy_ms_max the queue waits, and stays in order. */
static pawl_status start_group(struct app_partition *partition,
                               const struct app_request *request,
                               uint64_t *ret_offset,
                               pawl_error *reterr)
{
    uint32_t busy_ms_max = partition->app->options.busy_ms_max;
    pawl_status status = pawl_sequencer_start(
        partition->sequencer, request->kind->id, request->workspace, ret_offset, reterr);

    if (status != PAWL_BUSY || busy_ms_max == 0) {
        return status;
    }
    pawl_error waited = PAWL_ERROR_INIT;
    return pawl__sequencer_await(partition->sequencer, busy_ms_max, &waited) == PAWL_OK
               ? pawl_sequencer_start(
                   partition->sequencer, request->kind->id, request->workspace, ret_offset, reterr)
               : status;
}

/* Nothing of the command was written: its numbers are the next ones again. */
static void drop_command(struct app_partition *partition, size_t entries)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl_sequencer_drop(partition->sequencer, &error);

    REQUIRE(status == PAWL_OK || status == PAWL_CLOSED); /* closed after us, never before */
    pawl__app_batch_cut(&partition->batch, entries);
}

/* Gives the command numbers and adds it to the attempt, or decides it. False: no more fit, or the sequencer
 * refuses and all have their outcome. */
static bool add_to_attempt(struct group *group, struct app_item *item)
{
    struct app_partition *partition = group->partition;
    const struct app_request *request = &item->request;
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t offset = 0;
    size_t entries = partition->batch.count;
    bool first = partition->attempt_count == 0;
    pawl_status status =
        first ? start_group(partition, request, &offset, &error)
              : pawl_sequencer_also(
                  partition->sequencer, request->kind->id, request->workspace, &offset, &error);

    if (status != PAWL_OK) {
        if (first) {
            decide_all(group, &error);
        }
        return false;
    }
    status = pawl__app_build_event(partition, item, offset, &error);
    if (status == PAWL_OK) {
        item->entry_at = entries;
        partition->attempt[partition->attempt_count++] = item;
    } else {
        decide(item, &error);
        drop_command(partition, entries);
    }
    return true;
}

/* Whether it gets numbers in this attempt. It has its outcome when it never does. */
static bool may_run(struct app_partition *partition, struct app_item *item)
{
    pawl_error error = PAWL_ERROR_INIT;
    enum app_examined state = APP_RUN;
    pawl_status status = pawl__app_examine(partition, item, &state, &error);

    if (status != PAWL_OK || state == APP_ANSWERED) {
        decide(item, &error);
    }
    return status == PAWL_OK && state == APP_RUN;
}

static void fill_attempt(struct group *group)
{
    struct app_partition *partition = group->partition;
    bool isolated = !has_undecided(group, false); /* when the others have their outcome */
    size_t limit = isolated ? 1 : GROUP_MAX;
    bool more = true;

    pawl__app_batch_clear(&partition->batch);
    pawl__arena_clear(&partition->arena);
    partition->attempt_count = 0;
    for (size_t i = 0; i < group->count && more; i++) {
        struct app_item *item = item_of(group->items[i]);
        if (!item->decided && item->isolated == isolated && may_run(partition, item)) {
            more = add_to_attempt(group, item) && partition->attempt_count < limit;
        }
    }
}

static pawl_status write_attempt(struct app_partition *partition, pawl_error *reterr)
{
    FAILPOINT("app.write.before", reterr);
    TRY(partition->seq.store->ops->write(
        partition->seq.store, partition->batch.entries, partition->batch.count, reterr));
    FAILPOINT("app.write.after", reterr);
    return PAWL_OK;
}

/* A number that one command of a workspace could not use goes to the next command of that workspace. */
static void isolate_workspaces(struct group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct app_item *failed = item_of(group->items[i]);
        for (size_t j = 0; j < group->count && failed->isolated && !failed->decided; j++) {
            struct app_item *other = item_of(group->items[j]);
            other->isolated =
                other->isolated || other->request.workspace == failed->request.workspace;
        }
    }
}

static void run_attempt(struct group *group)
{
    struct app_partition *partition = group->partition;
    pawl_error error = PAWL_ERROR_INIT;

    fill_attempt(group);
    if (partition->attempt_count == 0) {
        return;
    }
    pawl_status status = write_attempt(partition, &error);
    if (status == PAWL_OK) {
        size_t last = partition->attempt_count - 1;
        pawl__app_anchor_writer_note(partition, partition->attempt[last]->response->plog_offset);
        status = pawl_sequencer_flush(partition->sequencer, &error);
        REQUIRE(status == PAWL_OK || status == PAWL_CLOSED); /* closed after us, never before */
        decide_attempt(partition, &(pawl_error)PAWL_ERROR_INIT);
        return;
    }
    if (status == PAWL_CONFLICT && partition->attempt_count > 1) {
        pawl__app_find_conflicts(partition);
        isolate_workspaces(group);
    } else {
        if (status == PAWL_CONFLICT) {
            pawl__app_explain_conflict(partition, &error);
        }
        decide_attempt(partition, &error);
    }
    restart(group);
}

/* Each attempt decides at least one command, or sees to it that the next one does. */
static pawl_status commit_group(void *context,
                                struct pawl__commit_item *const *items,
                                size_t count,
                                pawl_error *reterr)
{
    struct group group = { .partition = context, .items = items, .count = count };

    (void)reterr;
    while (has_undecided(&group, false) || has_undecided(&group, true)) {
        run_attempt(&group);
    }
    return PAWL_OK;
}

/* --- a caller --- */

static void free_item(struct pawl__commit_item *commit_item)
{
    struct app_item *item = item_of(commit_item);

    pawl__app_request_done(&item->request);
    free(item->response);
    free(item);
}

static pawl_status make_response(struct app_item *item, uint16_t partition, pawl_error *reterr)
{
    size_t ids = item->request.raw_count;
    size_t numbers = item->request.next_count;
    size_t ids_at = sizeof(pawl_app_response);
    size_t numbers_at = ids_at + ids * sizeof(pawl_app_id);
    char *block = calloc(1, numbers_at + (numbers + 1) * sizeof(pawl_app_number));

    if (block == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a response");
    }
    item->response = (pawl_app_response *)(void *)block;
    item->ids = (pawl_app_id *)(void *)&block[ids_at];
    item->numbers = (pawl_app_number *)(void *)&block[numbers_at];
    *item->response = (pawl_app_response){ .size = sizeof(pawl_app_response),
                                           .partition = partition,
                                           .ids = item->ids,
                                           .id_count = ids,
                                           .numbers = item->numbers,
                                           .number_count = numbers };
    return PAWL_OK;
}

static void free_item_p(struct app_item **item)
{
    if (*item != NULL) {
        free_item(&(*item)->item);
    }
}

static pawl_status make_item(struct app_partition *partition,
                             const pawl_app_command *command,
                             struct app_item **ret_item,
                             pawl_error *reterr)
{
    AUTO(free_item_p) struct app_item *item = calloc(1, sizeof(*item));

    TRY(pawl__app_refuse_reader(partition->app, reterr));
    if (item == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a command");
    }
    TRY(pawl__app_request_make(
        &partition->app->definition.descriptor, command, &item->request, reterr));
    TRY(make_response(item, partition->seq.partition, reterr));
    size_t records = item->request.create_count + item->request.update_count;
    item->item.bytes = item->request.bytes * 3 + (records + 2) * RECORD_BYTES_ABOUT;
    item->item.free = free_item;
    *ret_item = STEAL(item);
    return PAWL_OK;
}

pawl_status pawl_app_exec(pawl_app *app,
                          const pawl_app_command *command,
                          pawl_app_response **ret_response,
                          pawl_error *reterr)
{
    NEED(app, reterr);
    NEED(command, reterr);
    NEED(ret_response, reterr);
    struct app_partition *partition = pawl__app_partition(app, command->workspace);
    struct app_item *item = NULL;

    if (!app->options.read_only && pawl__is_inside(&app->answering)) {
        /* On the thread that would have to execute it. */
        return pawl__fail_detail(reterr,
                                 PAWL_INVALID,
                                 PAWL_DETAIL_WRONG_THREAD,
                                 "an answer cannot wait for a command; use pawl_app_exec_async");
    }
    TRY(make_item(partition, command, &item, reterr));
    struct pawl__commit_item *mine = &item->item;
    int64_t deadline_ns =
        pawl__monotonic_ns(app->wait_clock) + app->options.exec_ms_max * NS_PER_MS;
    pawl_status status = pawl__commit_submit(partition->commit, &mine, deadline_ns, reterr);
    if (mine == NULL) {
        return status; /* the committer has it, and frees it */
    }
    if (status == PAWL_OK) {
        *ret_response = STEAL(item->response);
    }
    free_item(mine);
    return status;
}

/* The committer has the outcome of a command that nobody waits for. */
static void answer_item(struct pawl__commit_item *commit_item)
{
    struct app_item *item = item_of(commit_item);
    bool done = item->item.outcome.status == PAWL_OK;
    {
        AUTO(pawl__inside_leave) struct pawl__inside app;
        pawl__inside_enter(&app, item->app);
        AUTO(pawl__inside_leave) struct pawl__inside answer;
        pawl__inside_enter(&answer, &item->app->answering);
        item->done(item->context, done ? STEAL(item->response) : NULL, &item->item.outcome);
    }
    free_item(commit_item);
}

pawl_status pawl_app_exec_async(pawl_app *app,
                                const pawl_app_command *command,
                                pawl_app_exec_done done,
                                void *context,
                                pawl_error *reterr)
{
    NEED(app, reterr);
    NEED(command, reterr);
    NEED(done, reterr);
    struct app_partition *partition = pawl__app_partition(app, command->workspace);
    AUTO(free_item_p) struct app_item *item = NULL;

    TRY(make_item(partition, command, &item, reterr));
    item->app = app;
    item->done = done;
    item->context = context;
    item->item.done = answer_item;
    TRY(pawl__commit_submit_async(partition->commit, &item->item, reterr));
    item = NULL; /* the committer has it */
    return PAWL_OK;
}

void pawl_app_response_free(pawl_app_response *response)
{
    free(response);
}

/* --- a partition --- */

static pawl_status start_sequencer(struct app_partition *partition, pawl_error *reterr)
{
    const struct pawl_app *app = partition->app;
    pawl_seq_storage storage = pawl__app_seq_storage(&partition->seq);
    pawl_sequencer_options options = PAWL_SEQUENCER_OPTIONS_INIT;

    options.types = app->types;
    options.type_count = app->type_count;
    options.storage = &storage;
    options.unflushed_max = app->options.unflushed_max;
    options.flush_interval_ms = app->options.flush_interval_ms;
    options.cache_size = app->options.cache_size;
    options.close_ms_max = app->options.close_ms_max;
    return pawl__sequencer_new_at(&options, app->clock, &partition->sequencer, reterr);
}

pawl_status pawl__app_partition_init(struct app_partition *partition, pawl_error *reterr)
{
    const struct pawl__commit_options options = {
        .name = "app-commit",
        .commit = commit_group,
        .context = partition,
        .limits = { .batch_items_max = GROUP_MAX,
                    .batch_bytes_max = GROUP_BYTES_MAX,
                    .waiting_max = WAITING_MAX },
        .clock = partition->app->wait_clock,
    };

    partition->bytes = (struct pawl__buf)BUF_INIT(APP_EVENT_BYTES_MAX);
    partition->attempt = calloc(GROUP_MAX, sizeof(struct app_item *));
    if (partition->attempt == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a partition");
    }
    TRY(pawl__app_reapply(&partition->seq, reterr));
    TRY(start_sequencer(partition, reterr));
    return pawl__commit_new(&options, &partition->commit, reterr);
}

bool pawl__app_partition_stop(struct app_partition *partition, bool drain, int64_t deadline_ns)
{
    return (partition->commit == NULL
            || pawl__commit_stop(partition->commit, drain, deadline_ns, NULL) == PAWL_OK)
           && pawl__sequencer_close_until(partition->sequencer, deadline_ns);
}

bool pawl__app_partition_done(struct app_partition *partition, int64_t deadline_ns)
{
    if (partition->commit != NULL) {
        bool ended = pawl__commit_stop(partition->commit, true, deadline_ns, NULL) == PAWL_OK;
        pawl__commit_free(partition->commit);
        if (!ended) {
            return false; /* it may still be using all that follows */
        }
    }
    if (!pawl__sequencer_end(partition->sequencer, deadline_ns)) {
        return false;
    }
    pawl__app_batch_done(&partition->batch);
    pawl__arena_done(&partition->arena);
    pawl__buf_done(&partition->bytes);
    free(partition->attempt);
    return true;
}
