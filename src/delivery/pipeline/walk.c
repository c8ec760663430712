/* Reading the WAL and the exceptions from end to end. */
#include "delivery/pipeline/internal.h"

#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/grow.h"

pawl_status pawl__delivery_each_entry(struct delivery_pipeline *pipeline,
                                      delivery_lsn from,
                                      delivery_entry_visitor *visitor,
                                      void *context,
                                      pawl_error *reterr)
{
    AUTO(pawl__delivery_page_done) struct delivery_page page = { .count = 0 };
    struct delivery_range range = {
        .from = from,
        .to = UINT64_MAX,
        .states = DELIVERY_STATES_ALL,
        .entries_max = DELIVERY_READ_ENTRIES,
        .bytes_max = DELIVERY_READ_BYTES,
    };

    do {
        TRY(pipeline->parts.wal->ops->read(pipeline->parts.wal, &range, &page, reterr));
        for (size_t i = 0; i < page.count; i++) {
            TRY(visitor(pipeline, &page.entries[i], context, reterr));
            range.from = page.entries[i].lsn + 1;
        }
    } while (page.count > 0);
    return PAWL_OK;
}

pawl_status pawl__delivery_read_one(struct delivery_pipeline *pipeline,
                                    delivery_lsn lsn,
                                    struct delivery_page *page,
                                    bool *ret_found,
                                    pawl_error *reterr)
{
    struct delivery_range range = { lsn, lsn, DELIVERY_STATES_ALL, 1, SIZE_MAX };

    TRY(pipeline->parts.wal->ops->read(pipeline->parts.wal, &range, page, reterr));
    *ret_found = page->count == 1;
    return PAWL_OK;
}

pawl_status pawl__delivery_find_in_sink(struct delivery_pipeline *pipeline,
                                        const struct delivery_entry *entry,
                                        struct delivery_known *ret_known,
                                        pawl_error *reterr)
{
    struct delivery_sink *sink = pipeline->parts.sink;
    struct delivery_names names;

    *ret_known = (struct delivery_known){ .found = false };
    TRY(pawl__delivery_entry_names(entry, &names, reterr));
    struct delivery_key keys[] = { { names.id, entry->payload_hash },
                                   { names.conflict, entry->payload_hash } };
    struct delivery_known known[COUNT_OF(keys)];
    TRY(sink->ops->lookup(sink, keys, COUNT_OF(keys), known, reterr));
    for (size_t i = 0; i < COUNT_OF(keys) && !ret_known->found; i++) {
        if (known[i].found
            && pawl__delivery_hash_equal(&known[i].payload_hash, &entry->payload_hash)) {
            *ret_known = known[i];
        }
    }
    return PAWL_OK;
}

void pawl__delivery_exceptions_done(struct delivery_exceptions *exceptions)
{
    free(exceptions->items);
    *exceptions = (struct delivery_exceptions){ .items = NULL };
}

pawl_status pawl__delivery_exceptions_add(struct delivery_exceptions *exceptions,
                                          const struct delivery_exception *exception,
                                          pawl_error *reterr)
{
    struct delivery_exception *items =
        pawl__grow(exceptions->items, exceptions->count, &exceptions->room, sizeof(*items));

    TRY(pawl__check_memory(items, "the exceptions of a pipeline", reterr));
    exceptions->items = items;
    items[exceptions->count++] = *exception;
    return PAWL_OK;
}

pawl_status pawl__delivery_exceptions_read(struct delivery_pipeline *pipeline,
                                           struct delivery_exceptions *exceptions,
                                           pawl_error *reterr)
{
    struct delivery_sink *sink = pipeline->parts.sink;
    struct delivery_exception page[64];
    size_t count = 0;
    delivery_lsn after = 0;

    exceptions->count = 0;
    do {
        TRY(sink->ops->exceptions(sink, after, page, COUNT_OF(page), &count, reterr));
        for (size_t i = 0; i < count; i++) {
            TRY(pawl__delivery_exceptions_add(exceptions, &page[i], reterr));
            after = page[i].lsn;
        }
    } while (count == COUNT_OF(page));
    return PAWL_OK;
}

const struct delivery_exception *pawl__delivery_exceptions_find(
    const struct delivery_exceptions *exceptions, delivery_lsn lsn)
{
    size_t low = 0;
    size_t high = exceptions->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (exceptions->items[middle].lsn < lsn) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < exceptions->count && exceptions->items[low].lsn == lsn ? &exceptions->items[low]
                                                                        : NULL;
}
