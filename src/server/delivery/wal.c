/* Routes of write-ahead logs: status, entries. */
#include <inttypes.h>
#include <stdio.h>

#include "base/core/error.h"
#include "server/delivery/delivery.h"
#include "server/page.h"

pawl_status pawl__serve_wal_show(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct pipeline_path *path = call->parameters;
    const struct node_pipeline_name name = pawl__serve_pipeline_name(path->pipeline);
    pawl_wal_status status = PAWL_WAL_STATUS_INIT;
    pawl_delivery *delivery = NULL;

    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    TRY(pawl_wal_get_status(delivery, name.text, &status, reterr));
    pawl__serve_answer(call, 200, &status);
    return PAWL_OK;
}

/* --- entries --- */

struct listing {
    struct pawl__serve_page page;
    pawl_error error;
};

static void listing_done(struct listing *listing)
{
    pawl__serve_page_done(&listing->page);
}

static bool add_entry(void *context, const pawl_wal_entry *entry)
{
    struct listing *listing = context;
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    if (pawl_wal_entry_to_json(entry, &json, &len, &listing->error) != PAWL_OK) {
        return false;
    }
    return pawl__serve_page_add_json(&listing->page, (pawl_view){ json, len });
}

pawl_status pawl__serve_wal_list(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct wal_list *asked = call->parameters;
    const struct node_pipeline_name name = pawl__serve_pipeline_name(asked->pipeline);
    AUTO(listing_done) struct listing listing = { .error = PAWL_ERROR_INIT };
    pawl_wal_filter filter = PAWL_WAL_FILTER_INIT;
    pawl_page page = PAWL_PAGE_INIT;
    pawl_delivery *delivery = NULL;

    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    pawl__serve_page_start(&listing.page, asked->limit);
    page.from = asked->from;
    page.limit = asked->limit;
    filter.pending = asked->pending;
    TRY(pawl_wal_read(delivery, name.text, &filter, &page, add_entry, &listing, reterr));
    if (listing.error.status != PAWL_OK) {
        return pawl__fail_with(reterr, listing.error.status, &listing.error);
    }
    pawl__serve_page_follow_at(&listing.page, &page);
    pawl__serve_page_answer(&listing.page, call);
    return PAWL_OK;
}

struct one {
    char *json;
    size_t len;
    pawl_error error;
};

static bool take_one(void *context, const pawl_wal_entry *entry)
{
    struct one *one = context;

    one->error.status = pawl_wal_entry_to_json(entry, &one->json, &one->len, &one->error);
    return false;
}

pawl_status pawl__serve_wal_entry(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct wal_path *path = call->parameters;
    const struct node_pipeline_name name = pawl__serve_pipeline_name(path->pipeline);
    pawl_wal_filter filter = PAWL_WAL_FILTER_INIT;
    pawl_page page = PAWL_PAGE_INIT;
    struct one one = { .error = PAWL_ERROR_INIT };
    pawl_delivery *delivery = NULL;

    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    page.from = path->lsn;
    filter.to = path->lsn;
    TRY(pawl_wal_read(delivery, name.text, &filter, &page, take_one, &one, reterr));
    if (one.error.status != PAWL_OK) {
        return pawl__fail_with(reterr, one.error.status, &one.error);
    }
    if (one.json == NULL) {
        return pawl__fail(reterr,
                          PAWL_NOT_FOUND,
                          "no entry with LSN %llu: it was cleaned up, or never there",
                          (unsigned long long)path->lsn);
    }
    pawl__serve_answer_json(call, 200, one.json, one.len);
    return PAWL_OK;
}
