/* What the anchor knows: the descriptor, and how far the logs reached. */
#include "app/verify/verify.h"
#include "base/core/error.h"

/* --- the descriptor --- */

static pawl_status compare_descriptor(struct app_verify *verify, pawl_view json, pawl_error *reterr)
{
    struct pawl__sha256 hash;
    pawl_error error = PAWL_ERROR_INIT;

    TRY(pawl__sha256(json, &hash, reterr));
    if (pawl__app_anchor_compare_descriptor(verify->app->store, &hash, &error) != PAWL_OK) {
        pawl__app_verify_finding(verify, PAWL_APP_PART_DESCRIPTOR, "%s", error.message);
    }
    return PAWL_OK;
}

static pawl_status check_meta(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct app_verify *verify = context;
    uint32_t app = verify->app->definition.descriptor.id;
    struct app_key descriptor = pawl__app_key_meta(app);
    struct app_key format = pawl__app_key_format(app);

    verify->report.entries[PAWL_APP_PART_DESCRIPTOR]++;
    if (pawl__view_equal(entry->key, pawl__app_key_view(&descriptor))) {
        return compare_descriptor(verify, entry->value, reterr);
    }
    if (!pawl__view_equal(entry->key, pawl__app_key_view(&format))) {
        pawl__app_verify_odd_key(verify,
                                 PAWL_APP_PART_DESCRIPTOR,
                                 entry,
                                 " is neither the descriptor nor the format: no pawl wrote it");
    }
    return PAWL_OK;
}

pawl_status pawl__app_verify_descriptor(struct app_verify *verify, pawl_error *reterr)
{
    const struct app_range range = { .family = APP_META };

    return pawl__app_verify_walk(verify, &range, check_meta, verify, reterr);
}

/* --- the logs --- */

pawl_status pawl__app_verify_anchor(struct app_verify *verify, pawl_error *reterr)
{
    struct app_anchor anchor;
    pawl_error error = PAWL_ERROR_INIT;
    bool known = false;
    pawl_status status = pawl__app_anchor_read(verify->app, &anchor, &known, &error);

    if (status == PAWL_CORRUPT) { /* one that cannot be read is not none */
        pawl__app_verify_finding(verify, PAWL_APP_PART_ANCHOR, "%s", error.message);
        return PAWL_OK;
    }
    verify->report.anchor_missing = !known && verify->report.entries[PAWL_APP_PART_PLOG] > 0;
    for (uint16_t i = 0; i < verify->app->partition_count && known && status == PAWL_OK; i++) {
        verify->report.entries[PAWL_APP_PART_ANCHOR] += anchor.ends[i].offset > 0;
        status = pawl__app_anchor_compare(verify->app, &anchor, i, &error);
        if (status == PAWL_CORRUPT) {
            pawl__app_verify_finding(verify, PAWL_APP_PART_ANCHOR, "%s", error.message);
            status = PAWL_OK;
        }
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail(reterr, status, "%s", error.message);
}
