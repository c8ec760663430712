/* What the anchor knows: the descriptor, and how far the logs reached. */
#include "app/verify/check.h"
#include "base/core/error.h"

/* --- the descriptor --- */

static pawl_status compare_descriptor(struct check *check, pawl_view json, pawl_error *reterr)
{
    struct pawl__sha256 hash;
    pawl_error error = PAWL_ERROR_INIT;

    TRY(pawl__sha256(json, &hash, reterr));
    if (pawl__app_anchor_know_descriptor(check->app->store, &hash, &error) != PAWL_OK) {
        pawl__check_tell(check, PAWL_APP_PART_DESCRIPTOR, "%s", error.message);
    }
    return PAWL_OK;
}

static pawl_status take_meta(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct check *check = context;
    uint32_t app = check->app->definition.descriptor.id;
    struct app_key descriptor = pawl__app_key_meta(app);
    struct app_key format = pawl__app_key_format(app);
    char space[160];
    struct pawl__buf key = BUF_OVER(space);

    check->report.entries[PAWL_APP_PART_DESCRIPTOR]++;
    if (pawl__view_equal(entry->key, pawl__app_key_view(&descriptor))) {
        return compare_descriptor(check, entry->value, reterr);
    }
    if (!pawl__view_equal(entry->key, pawl__app_key_view(&format))) {
        pawl__app_key_describe(APP_META, entry->key, &key);
        pawl__check_tell(check,
                         PAWL_APP_PART_DESCRIPTOR,
                         "%s is neither the descriptor nor the format: no pawl wrote it",
                         key.broken ? "a long key" : space);
    }
    return PAWL_OK;
}

pawl_status pawl__check_descriptor(struct check *check, pawl_error *reterr)
{
    const struct app_range range = { .family = APP_META };

    return pawl__app_store_walk(check->app->store, &range, take_meta, check, reterr);
}

/* --- the logs --- */

pawl_status pawl__check_anchor(struct check *check, pawl_error *reterr)
{
    struct app_anchor anchor;
    pawl_error error = PAWL_ERROR_INIT;
    bool known = false;
    pawl_status status = pawl__app_anchor_read(check->app, &anchor, &known, &error);

    if (status == PAWL_CORRUPT) { /* one that cannot be read is not none */
        pawl__check_tell(check, PAWL_APP_PART_ANCHOR, "%s", error.message);
        return PAWL_OK;
    }
    check->report.anchor_missing = !known && check->report.entries[PAWL_APP_PART_PLOG] > 0;
    for (uint16_t i = 0; i < check->app->partition_count && known && status == PAWL_OK; i++) {
        check->report.entries[PAWL_APP_PART_ANCHOR] += anchor.ends[i].offset > 0;
        status = pawl__app_anchor_compare(check->app, &anchor, i, &error);
        if (status == PAWL_CORRUPT) {
            pawl__check_tell(check, PAWL_APP_PART_ANCHOR, "%s", error.message);
            status = PAWL_OK;
        }
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail(reterr, status, "%s", error.message);
}
