#include "engine/calls.h"

#include "base/core/error.h"
#include "base/thread/inside.h"

void pawl__calls_init(struct pawl__calls *calls, struct pawl__clock *clock)
{
    *calls = (struct pawl__calls){ .clock = pawl__clock_or_real(clock) };
    pawl__lock_cond_init(&calls->lock, &calls->gone);
    calls->ready = true;
}

void pawl__calls_done(struct pawl__calls *calls)
{
    if (calls->ready) {
        pawl__cond_done(&calls->gone);
        pawl__lock_done(&calls->lock);
        calls->ready = false;
    }
}

int64_t pawl__calls_now_ns(const struct pawl__calls *calls)
{
    return pawl__monotonic_ns(calls->clock);
}

void pawl__calls_enter(struct pawl__calls *calls)
{
    pawl__lock(&calls->lock);
    calls->count++;
    pawl__unlock(&calls->lock);
}

/* Signals under the lock: the closing thread frees it as soon as it gets it. */
void pawl__calls_leave(struct pawl__calls *calls)
{
    pawl__lock(&calls->lock);
    REQUIRE(calls->count > 0);
    calls->count--;
    if (calls->count == 0) {
        pawl__cond_signal(&calls->gone);
    }
    pawl__unlock(&calls->lock);
}

bool pawl__calls_await(struct pawl__calls *calls, int64_t deadline_ns)
{
    bool in_time = true;

    pawl__lock(&calls->lock);
    while (calls->count > 0 && in_time) {
        in_time = pawl__cond_wait_until(&calls->gone, &calls->lock, deadline_ns);
    }
    bool gone = calls->count == 0;
    pawl__unlock(&calls->lock);
    return gone;
}

pawl_status pawl__calls_check_outside(const void *handle, const char *what, pawl_error *reterr)
{
    return pawl__is_inside(handle)
               ? pawl__fail_detail(reterr,
                                   PAWL_INVALID,
                                   PAWL_DETAIL_WRONG_THREAD,
                                   "%s cannot be closed from within its own callback",
                                   what)
               : PAWL_OK;
}

bool pawl__close_bounded(const struct pawl__closing *closing, struct pawl__clock *clock)
{
    int64_t all_ns = closing->drain_ns + closing->interrupted_ns;
    int64_t start_ns = pawl__monotonic_ns(clock);

    if (closing->interrupt == NULL) {
        return closing->stop(closing->context, true, start_ns + all_ns);
    }
    if (closing->stop(closing->context, true, start_ns + closing->drain_ns)) {
        return true;
    }
    closing->interrupt(closing->context);
    return closing->stop(closing->context, false, start_ns + all_ns);
}
