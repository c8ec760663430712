#include "app/core/hurry.h"

static void hurry_main(void *context)
{
    struct app_hurry *hurry = context;

    if (!pawl__cancel_wait_until(&hurry->in_time, hurry->at_ns)) {
        hurry->store->ops->interrupt(hurry->store);
    }
}

void pawl__app_hurry_start(struct app_hurry *hurry, struct app_store *store, int64_t at_ns)
{
    *hurry = (struct app_hurry){ .at_ns = at_ns };
    if (store == NULL || store->ops->interrupt == NULL
        || pawl__cancel_init(&hurry->in_time, NULL, NULL) != PAWL_OK) {
        return;
    }
    hurry->store = store;
    (void)!pawl__thread_start(&hurry->thread, "pawl-hurry", hurry_main, hurry, NULL);
}

void pawl__app_hurry_stop(struct app_hurry *hurry)
{
    if (hurry->store != NULL) {
        pawl__cancel_now(&hurry->in_time);
        pawl__thread_join(&hurry->thread);
        pawl__cancel_done(&hurry->in_time);
    }
}
