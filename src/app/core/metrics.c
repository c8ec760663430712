#include "engine/metrics.h"

#include <stdio.h>

#include "app/core/internal.h"
#include "base/core/argument.h"

pawl_status pawl_app_get_metrics(pawl_app *app,
                                 char **ret_text,
                                 size_t *ret_len,
                                 pawl_error *reterr)
{
    struct pawl__commit_totals totals = { 0 };
    char store[sizeof("app/") + PAWL_APP_NAME_BYTES_MAX];

    NEED(app, ret_text, reterr);
    for (size_t i = 0; i < app->partition_count; i++) {
        pawl__commit_totals_add(&totals, app->partitions[i].commit);
    }
    (void)snprintf(store, sizeof(store), "app/%s", app->definition.descriptor.name);
    return pawl__commit_metrics_text(&totals, store, ret_text, ret_len, reterr);
}
