/* The applications of the node, as registry.c, open.c, handle.c and rebuild.c share them. */
#ifndef PAWL_SERVER_APPS_REGISTRY_H
#define PAWL_SERVER_APPS_REGISTRY_H

#include "base/os/clock.h"
#include "server/apps/apps.h"

enum { APPS_OPENERS = 4, APPS_RETRY_MS = 1000 };

/* One of them: what clients see of it, and when it is opened next. */
struct node_app {
    struct node_apps *all;
    char name[PAWL_APP_NAME_BYTES_MAX + 1]; /* that of its directory */
    pawl_app *app;                          /* NULL: it is not open */
    bool opening;                           /* somebody does that now */
    bool given_up;                          /* it is not tried again */
    pawl_status why;                        /* of the last attempt; PAWL_OK: there was none */
    int64_t retry_ns;                       /* when to try, unless it is given up */
    struct node_probe *probe;
    /* A handle that a rebuild withdrew and whose probe hangs in the store: it is closed before the next open. */
    struct node_app_state unclosed;
    unsigned uses;         /* by whoever has a state of it */
    struct node_app *next; /* of those that were removed while somebody had one */
};

struct node_apps {
    struct pawl__lock lock; /* covers the rest but the threads */
    struct pawl__cond changed;
    struct apps_part *part;
    struct node_app **apps; /* in the order in which they were found or created */
    size_t count;
    /* Handles of applications that another process has taken over. Somebody may still be in a call of one,
     * so they are closed when the node ends. */
    struct node_app_state *lost;
    size_t lost_count;
    size_t lost_room;
    struct node_app *removed;
    bool stop;
    struct pawl__thread openers[APPS_OPENERS];
};

static inline int64_t pawl__serve_apps_now_ns(const struct node_apps *apps)
{
    return pawl__monotonic_ns(apps->part->clock);
}

/* Whether it is on its way, so that somebody who waits a moment finds it. */
static inline bool pawl__serve_app_is_pending(const struct node_app *app)
{
    return app->app == NULL && app->why == PAWL_OK;
}

/* --- registry.c --- */

/* NULL: there is none of that name. */
struct node_app *pawl__serve_app_find_locked(struct node_apps *apps, pawl_view name)
    REQUIRES_LOCK(apps->lock);

/* What clients see of it, not held. With the lock of the applications. */
struct node_app_state pawl__serve_app_state_of(const struct node_app *app);

/* `refusal`: the status of one that does not fit in. */
PAWL_MUST_USE pawl_status pawl__serve_apps_check_room_locked(struct node_apps *apps,
                                                             unsigned partitions,
                                                             pawl_status refusal,
                                                             pawl_error *reterr)
    REQUIRES_LOCK(apps->lock);

PAWL_MUST_USE pawl_status pawl__serve_app_add_locked(struct node_apps *apps,
                                                     const char *name,
                                                     struct node_app **ret_app,
                                                     pawl_error *reterr) REQUIRES_LOCK(apps->lock);
void pawl__serve_app_remove_locked(struct node_apps *apps, struct node_app *app)
    REQUIRES_LOCK(apps->lock);

/* --- handle.c --- */

/* Makes an open handle the application's, with a probe; or closes it. */
PAWL_MUST_USE pawl_status pawl__serve_app_admit(struct node_app *app,
                                                pawl_app *opened,
                                                pawl_status refusal,
                                                pawl_error *reterr);
/* Opens its store with these options, and admits it. As long as the store takes. */
PAWL_MUST_USE pawl_status pawl__serve_app_open_handle(struct node_app *app,
                                                      const pawl_app_options *options,
                                                      pawl_error *reterr);

#endif
