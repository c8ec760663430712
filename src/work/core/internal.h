/* The handle pawl_work, for src/work. */
#ifndef PAWL_WORK_CORE_INTERNAL_H
#define PAWL_WORK_CORE_INTERNAL_H

#include "engine/engine.h"
#include "work/core/backend.h"
#include "work/core/group.h"
#include "work/items/prefetch_return.h"
#include "work/items/waiters.h"

struct pawl_work {
    struct pawl__engine
        engine; /* counts the calls that write or wait; its watch wakes waiting claims */
    struct work_backend *backend;
    pawl_work_options options;
    char boot_id[PAWL__BOOT_ID_SIZE];
    struct work_group *group;
    atomic_bool waits_cancelled;
    struct work_prefetch *prefetch; /* NULL: claims prefetch nothing */
    struct work_waiters waiters;
    struct pawl__watch changes; /* changes with each commit while somebody follows */
    atomic_uint followers;      /* subscriptions to it */
    struct pawl__watch_subscriber
        elsewhere; /* of engine.watch, which knows of other processes' commits */
};

/* pawl_work_open on a given clock and boot: of a test, or a simulation. NULL: the real clock. */
PAWL_MUST_USE pawl_status pawl__work_open_at(const char *location,
                                             const pawl_work_options *options,
                                             struct pawl__clock *clock,
                                             const char *boot_id,
                                             pawl_work **ret_work,
                                             pawl_error *reterr);

/* For tests: what the location "model:" opens. NULL: nothing, as at first. */
void pawl__work_register_model(pawl__backend_open *open);

/* WRONG_THREAD from inside an answer of pawl_work_complete_async: that thread is the one that would have
 * to carry the call out. */
PAWL_MUST_USE pawl_status pawl__work_check_thread(const pawl_work *work, pawl_error *reterr);

/* pawl__work_submit_request for a caller that has entered already. */
PAWL_MUST_USE pawl_status pawl__work_submit_inside(pawl_work *work,
                                                   struct work_request *request,
                                                   pawl_error *reterr);

/* The feed of changes, for open and close (items/changes.c). */
void pawl__work_changes_init(pawl_work *work);
void pawl__work_changes_done(pawl_work *work);

/* pawl_work_release without waiting; its context is the pawl_work. */
work_release_fn pawl__work_release_async;

/* Frees or fails items that wait for items which foreign SQL has ended. Adds to *freed. */
PAWL_MUST_USE pawl_status pawl__work_free_orphans(pawl_work *work,
                                                  uint64_t *freed,
                                                  pawl_error *reterr);

#endif
