#include "engine/engine.h"

#include "base/core/error.h"
#include "engine/open.h"

void pawl__engine_init(struct pawl__engine *engine, const char *name, struct pawl__clock *clock)
{
    engine->name = name;
    engine->clock = pawl__clock_or_real(clock);
    pawl__calls_init(&engine->calls, NULL);
}

void pawl__engine_done(struct pawl__engine *engine)
{
    pawl__commit_free(engine->commit);
    engine->commit = NULL;
    if (engine->watch_ready) {
        pawl__watch_done(&engine->watch);
        engine->watch_ready = false;
    }
    pawl__calls_done(&engine->calls);
}

void pawl__engine_watch(struct pawl__engine *engine, pawl__watch_fn outside, void *context)
{
    pawl__watch_init(&engine->watch, outside, context);
    engine->watch_ready = true;
}

pawl_status pawl__engine_start(struct pawl__engine *engine,
                               const struct pawl__commit_options *options,
                               pawl_error *reterr)
{
    struct pawl__commit_options with_clock = *options;

    with_clock.clock = engine->calls.clock;
    return pawl__commit_new(&with_clock, &engine->commit, reterr);
}

pawl_status pawl__engine_submit(struct pawl__engine *engine,
                                struct pawl__commit_item *item,
                                pawl_error *reterr)
{
    return engine->commit == NULL ? pawl__fail_read_only(engine->name, reterr)
                                  : pawl__commit_submit(engine->commit, &item, INT64_MAX, reterr);
}

pawl_status pawl__engine_submit_async(struct pawl__engine *engine,
                                      struct pawl__commit_item *item,
                                      pawl_error *reterr)
{
    return engine->commit == NULL ? pawl__fail_read_only(engine->name, reterr)
                                  : pawl__commit_submit_async(engine->commit, item, reterr);
}

void pawl__engine_interrupt(struct pawl__engine *engine)
{
    atomic_store(&engine->interrupted, true);
    if (engine->watch_ready) {
        pawl__watch_bump(&engine->watch);
    }
}

struct closing_handle {
    struct pawl__engine *engine;
    void (*calls_ended)(void *context);
    void *context;
};

static bool stop(void *context, bool drain, int64_t deadline_ns)
{
    struct closing_handle *handle = context;
    bool ended = pawl__calls_await(&handle->engine->calls, deadline_ns);

    if (ended && handle->calls_ended != NULL) {
        handle->calls_ended(handle->context);
    }
    return pawl__commit_stop(handle->engine->commit, drain, deadline_ns, NULL) == PAWL_OK && ended;
}

static void interrupt(void *context)
{
    pawl__engine_interrupt(((struct closing_handle *)context)->engine);
}

pawl_status pawl__engine_close(struct pawl__engine *engine,
                               uint32_t timeout_ms,
                               void (*calls_ended)(void *context),
                               void *context,
                               pawl_error *reterr)
{
    struct closing_handle handle = { engine, calls_ended, context };
    struct pawl__closing closing = {
        .stop = stop, .interrupt = interrupt, .context = &handle, PAWL__CLOSING_DEFAULT
    };

    if (timeout_ms > 0) {
        closing.drain_ns = timeout_ms * NS_PER_MS / 2;
        closing.interrupted_ns = timeout_ms * NS_PER_MS - closing.drain_ns;
    }
    return engine->commit == NULL || pawl__close_bounded(&closing, engine->calls.clock)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_TIMEOUT, "%s: its store does not come back", engine->name);
}
