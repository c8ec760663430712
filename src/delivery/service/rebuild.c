/* Making a lost or damaged DuckDB file anew: from the write-ahead logs first, then from the sources. What each pipeline does
 * for it is what it does on any start (core/reconcile.h, REBUILD); here the file is moved aside, everybody who has it is
 * stopped, and all of them are run until their sources have no more. */
#include <stdio.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/thread/inside.h"
#include "delivery/service/internal.h"

struct rebuild {
    struct pawl_delivery *delivery;
    bool replace;
    const pawl_watch *watch;
    pawl_rebuilt_visit visit;
    void *context;
    bool wants_more; /* the visitor */
    pawl_rebuild_result result;
    uint64_t done; /* events of the pipelines before */
    bool is_cancelled;
    pawl_error first; /* of the first that is incomplete */

    struct pawl__arena arena;
    const char **names;
    struct delivery_runner **held; /* NULL: let go */
    bool *was_running;
    size_t count;
};

static void rebuild_done(struct rebuild *rebuild)
{
    pawl__arena_done(&rebuild->arena);
}

/* --- the file --- */

static pawl_status begin(struct pawl_delivery *delivery, pawl_error *reterr)
{
    pawl__lock(&delivery->lock);
    bool is_busy = delivery->observers > 0 || delivery->is_rebuilding;
    delivery->is_rebuilding |= !is_busy;
    pawl__unlock(&delivery->lock);
    return is_busy ? pawl__fail(reterr,
                                PAWL_BUSY,
                                "an audit, a trace, a replay or a rebuild is under way: try again "
                                "later")
                   : PAWL_OK;
}

static void end(struct pawl_delivery *delivery)
{
    pawl__lock(&delivery->lock);
    delivery->is_rebuilding = false;
    pawl__unlock(&delivery->lock);
}

static void let_go_of_all(struct rebuild *rebuild)
{
    for (size_t i = 0; i < rebuild->count; i++) {
        if (rebuild->held[i] != NULL) {
            pawl__delivery_let_go(rebuild->held[i], rebuild->was_running[i]);
            rebuild->held[i] = NULL;
        }
    }
}

static pawl_status hold_all(struct rebuild *rebuild, pawl_error *reterr)
{
    TRY(pawl__delivery_names(
        rebuild->delivery, &rebuild->arena, &rebuild->names, &rebuild->count, reterr));
    size_t room = rebuild->count + 1;
    rebuild->held = pawl__arena_take(&rebuild->arena, room * sizeof(*rebuild->held));
    rebuild->was_running = pawl__arena_take(&rebuild->arena, room * sizeof(*rebuild->was_running));
    if (rebuild->held == NULL || rebuild->was_running == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a rebuild");
    }
    memset(rebuild->held, 0, room * sizeof(*rebuild->held));
    for (size_t i = 0; i < rebuild->count; i++) {
        TRY(pawl__delivery_hold(rebuild->delivery,
                                rebuild->names[i],
                                "rebuilt",
                                &rebuild->held[i],
                                &rebuild->was_running[i],
                                reterr));
    }
    return PAWL_OK;
}

static pawl_status replace_file(struct rebuild *rebuild, pawl_error *reterr)
{
    struct pawl_delivery *delivery = rebuild->delivery;
    struct delivery_duckdb_opened opened = { .why = PAWL_ERROR_INIT };
    pawl_rebuild_result *result = &rebuild->result;

    pawl__lock(&delivery->manage); /* whoever looks at the file for a moment has this */
    pawl_status status =
        pawl__delivery_directory_replace_file(delivery, rebuild->replace, &opened, reterr);
    pawl__unlock(&delivery->manage);
    result->file_was_damaged = opened.why.status != PAWL_OK;
    result->file_was_missing = opened.is_new && opened.quarantined == 0;
    if (opened.quarantined > 0) {
        snprintf(result->quarantined,
                 sizeof(result->quarantined),
                 "%s/" DELIVERY_FILE_NAME ".quarantined-%d",
                 delivery->dir,
                 opened.quarantined);
    }
    return status;
}

/* Everybody stands still when it is done. */
static pawl_status make_file(struct rebuild *rebuild, pawl_error *reterr)
{
    TRY(begin(rebuild->delivery, reterr));
    pawl_status status = hold_all(rebuild, reterr);
    if (status == PAWL_OK) {
        status = replace_file(rebuild, reterr);
    }
    end(rebuild->delivery);
    if (status != PAWL_OK) {
        let_go_of_all(rebuild);
    }
    return status;
}

/* --- one pipeline --- */

static pawl_status apply_log(struct delivery_runner *runner, pawl_error *reterr)
{
    pawl_status status = pawl__delivery_open_stores(runner, reterr);

    if (status == PAWL_OK) {
        status = pawl__delivery_settle_all(runner, reterr);
    }
    if (status == PAWL_OK) {
        pawl__delivery_checkpoint_now(runner);
    }
    pawl__delivery_close_parts(runner);
    return status;
}

static bool show(void *context, uint64_t settled, uint64_t accepted)
{
    struct rebuild *rebuild = context;

    rebuild->is_cancelled = pawl__delivery_show_progress(rebuild->delivery,
                                                         rebuild->watch,
                                                         rebuild->done + settled,
                                                         rebuild->done + accepted,
                                                         NULL)
                            != PAWL_OK;
    return !rebuild->is_cancelled;
}

/* A last line that waits for its end is no event yet. */
static pawl_status read_source(struct rebuild *rebuild, const char *name, pawl_error *reterr)
{
    const pawl_watch watch = { sizeof(pawl_watch), show, rebuild };
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl_pipeline_start(rebuild->delivery, name, &error);

    if (status == PAWL_OK) {
        status = pawl_pipeline_drain(rebuild->delivery, name, 0, &watch, &error);
        status = status == PAWL_INVALID ? PAWL_OK : status;
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

static void stop(struct pawl_delivery *delivery, const char *name)
{
    struct delivery_runner *runner = NULL;
    bool was_running = false;

    if (pawl__delivery_hold(delivery, name, "stopped", &runner, &was_running, NULL) == PAWL_OK) {
        pawl__delivery_let_go(runner, false);
    }
}

/* The log while nobody else has it, then the source with the pipeline's own thread. */
static pawl_status rebuild_one(struct rebuild *rebuild, size_t i, pawl_error *reterr)
{
    struct delivery_runner *runner = rebuild->held[i];
    const char *name = rebuild->names[i];
    bool is_paused = runner->declared.paused;
    bool is_readable = pawl__delivery_is_readable(&runner->declared);
    pawl_status status = apply_log(runner, reterr);

    rebuild->held[i] = NULL;
    if (status != PAWL_OK || is_paused || !is_readable) {
        pawl__delivery_let_go(runner, rebuild->was_running[i]);
        TRY(status);
        return pawl__fail(
            reterr,
            PAWL_UNSUPPORTED,
            is_paused ? "it is paused: the rest follows from its source when it is resumed"
                      : "its source cannot be read again: hand the same events in once more");
    }
    pawl__delivery_let_go(runner, false);
    status = read_source(rebuild, name, reterr);
    if (!rebuild->was_running[i]) {
        stop(rebuild->delivery, name);
    }
    return status;
}

struct telling {
    struct rebuild *rebuild;
    pawl_status status;
    const pawl_error *error;
};

static bool tell(void *context, const pawl_pipeline_status *status)
{
    const struct telling *telling = context;
    struct rebuild *rebuild = telling->rebuild;
    const pawl_rebuilt rebuilt = {
        .size = sizeof(rebuilt),
        .pipeline = status->name,
        .delivered = status->delivered,
        .filtered = status->filtered,
        .failed = status->failed,
        .pending = status->pending,
        .losses = status->losses,
        .status = telling->status,
        .error = telling->status == PAWL_OK ? (pawl_view){ NULL, 0 }
                                            : pawl_view_of(telling->error->message),
    };

    rebuild->done += status->delivered + status->filtered + status->failed;
    if (rebuild->visit != NULL && rebuild->wants_more) {
        rebuild->wants_more = rebuild->visit(rebuild->context, &rebuilt);
    }
    return true;
}

static pawl_status rebuild_all(struct rebuild *rebuild, pawl_error *reterr)
{
    TRY(make_file(rebuild, reterr));
    for (size_t i = 0; i < rebuild->count && !rebuild->is_cancelled; i++) {
        pawl_error error = PAWL_ERROR_INIT;
        struct telling telling = { .rebuild = rebuild, .error = &error };
        telling.status = rebuild_one(rebuild, i, &error);
        rebuild->result.pipelines++;
        rebuild->result.incomplete += telling.status != PAWL_OK;
        if (telling.status != PAWL_OK && rebuild->first.status == PAWL_OK) {
            rebuild->first = error;
            pawl__fail_context(&rebuild->first, error.status, "pipeline '%s'", rebuild->names[i]);
        }
        (void)!pawl_pipeline_get(rebuild->delivery, rebuild->names[i], tell, &telling, NULL);
    }
    let_go_of_all(rebuild);
    if (rebuild->is_cancelled) {
        return pawl__fail(reterr, PAWL_CANCELLED, "interrupted; pipelines go on when they run");
    }
    if (rebuild->first.status == PAWL_OK) {
        return PAWL_OK;
    }
    *reterr = rebuild->first;
    return pawl__fail_context(reterr,
                              PAWL_UNAVAILABLE,
                              "%llu of %llu pipelines are not complete",
                              (unsigned long long)rebuild->result.incomplete,
                              (unsigned long long)rebuild->result.pipelines);
}

pawl_status pawl_delivery_rebuild(pawl_delivery *delivery,
                                  bool replace,
                                  const pawl_watch *watch,
                                  pawl_rebuilt_visit visit,
                                  void *context,
                                  pawl_rebuild_result *ret_result,
                                  pawl_error *reterr)
{
    NEED(delivery, ret_result, reterr);
    pawl_watch watched = PAWL_WATCH_INIT;
    pawl_error error = PAWL_ERROR_INIT;

    TRY(pawl__take_sized("watch", watch, &watched, sizeof(watched), reterr));
    TRY(pawl__check_sized("ret_result", ret_result, reterr));
    AUTO(rebuild_done)
    struct rebuild rebuild = { .delivery = delivery,
                               .replace = replace,
                               .watch = &watched,
                               .visit = visit,
                               .context = context,
                               .wants_more = true,
                               .result = PAWL_REBUILD_RESULT_INIT,
                               .first = PAWL_ERROR_INIT };
    pawl__calls_enter(&delivery->calls);
    pawl_status status = rebuild_all(&rebuild, &error);
    pawl__calls_leave(&delivery->calls);
    pawl__give_sized(&rebuild.result, sizeof(rebuild.result), ret_result);
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}
