/* The work store beside the applications: its numbers are shown with the node's.
 *
 * It may come later than the node, and the node does not make it: it is looked for whenever somebody
 * asks, and stays open once it was found. One that cannot be read costs only its own numbers. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "server/node_internal.h"

struct node_work {
    struct pawl__lock lock; /* covers the rest; the store itself is any thread's */
    char *location;
    pawl_work_options options;
    pawl_work *store; /* NULL: none yet */
    bool failed;      /* that was said already */
    struct pawl__series *up;
};

static const struct pawl__metric_def up_def = {
    .name = "pawl_work_up",
    .help = "1 when there is a work store and it could be read.",
    .type = PAWL__GAUGE,
};

static pawl_status init(struct node_work *work,
                        const struct pawl__node_options *options,
                        struct pawl__metrics *metrics,
                        pawl_error *reterr)
{
    struct pawl__metric *up = NULL;
    pawl_status status = pawl__metrics_register(metrics, &up_def, &up, reterr);

    if (status == PAWL_OK) {
        status = pawl__metric_series(up, NULL, &work->up, reterr);
    }
    if (status == PAWL_OK && options->work != NULL) {
        work->location = strdup(options->work);
        status = work->location == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a path")
                                        : PAWL_OK;
    }
    work->options = options->work_options;
    work->options.must_exist = true;
    return status;
}

pawl_status pawl__node_work_new(const struct pawl__node_options *options,
                                struct pawl__metrics *metrics,
                                struct node_work **ret_work,
                                pawl_error *reterr)
{
    struct node_work *work = calloc(1, sizeof(*work));

    if (work == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for metrics");
    }
    pawl_status status = pawl__lock_init(&work->lock, reterr);
    if (status != PAWL_OK) {
        free(work);
        return status;
    }
    status = init(work, options, metrics, reterr);
    if (status != PAWL_OK) {
        pawl__node_work_free(work);
        return status;
    }
    *ret_work = work;
    return PAWL_OK;
}

void pawl__node_work_free(struct node_work *work)
{
    if (work == NULL) {
        return;
    }
    pawl_work_close(work->store);
    pawl__lock_done(&work->lock);
    free(work->location);
    free(work);
}

/* NULL: there is none, or *reterr says why not. */
static pawl_work *find(struct node_work *work, pawl_error *reterr)
{
    pawl_work *store = NULL;

    pawl__lock(&work->lock);
    if (work->store == NULL && work->location != NULL
        && pawl_work_open(work->location, &work->options, &store, reterr) == PAWL_OK) {
        work->store = store;
    }
    store = work->store;
    pawl__unlock(&work->lock);
    return store;
}

/* Once until it works again. */
static void say(struct node_work *work, const pawl_error *error)
{
    bool fails = error->status != PAWL_OK && error->status != PAWL_NOT_FOUND;

    pawl__lock(&work->lock);
    bool new = fails && !work->failed;
    work->failed = fails;
    pawl__unlock(&work->lock);
    if (new) {
        LOG_WARNING("the work store cannot be read", LOG_TEXT("error", error->message));
    }
}

char *pawl__node_work_metrics(struct node_work *work)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_work *store = find(work, &error);
    char *text = NULL;
    size_t len = 0;

    if (store != NULL) {
        (void)!pawl_work_get_metrics(store, &text, &len, &error);
    }
    pawl__gauge_set(work->up, text != NULL ? 1 : 0);
    say(work, &error);
    return text;
}
