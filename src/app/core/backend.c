#include "app/core/backend.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "store/absent.h"

enum { KEY_BYTES_MAX = 1 << 20 };

static pawl_status open_directory(const struct pawl__location *location,
                                  const void *setup,
                                  void *ret_store,
                                  pawl_error *reterr)
{
    pawl_status status = pawl__app_store_make(location, setup, ret_store, reterr);

    return status == PAWL_OK ? status
                             : pawl__fail_context(reterr, status, "open '%s'", location->path);
}

pawl_status pawl__app_store_open(const char *location,
                                 const struct app_store_options *options,
                                 struct app_store **ret_store,
                                 pawl_error *reterr)
{
    static const struct pawl__backends backends = {
        .what = "an application",
        .parse = pawl__location_parse_app,
        .at = { [PAWL__AT_MEMORY] = pawl__app_store_make,
                [PAWL__AT_DIRECTORY] = open_directory,
                [PAWL__AT_POSTGRES] = pawl__app_store_make },
    };

    return pawl__open_backend(&backends, location, NULL, options, ret_store, reterr);
}

pawl_status pawl__app_store_flush_last(struct app_store *store,
                                       int64_t deadline_ns,
                                       pawl_error *reterr)
{
    return store == NULL || store->ops->flush_last == NULL
               ? PAWL_OK
               : store->ops->flush_last(store, deadline_ns, reterr);
}

pawl_status pawl__app_store_make(const struct pawl__location *location,
                                 const void *setup,
                                 void *ret_store,
                                 pawl_error *reterr)
{
    static const struct app_store_ops *const stores[PAWL__SCHEMES] = {
        [PAWL__AT_MEMORY] = &pawl__app_memory_ops,
        [PAWL__AT_DIRECTORY] = &pawl__app_rocksdb_ops,
        [PAWL__AT_POSTGRES] = &pawl__app_postgres_ops,
    };
    const struct app_store_ops *ops = stores[location->scheme];

    if (ops->absent.engine != NULL) {
        return pawl__fail_absent(reterr, ops->absent.engine, ops->absent.option);
    }
    AUTO(pawl__app_store_close_p) struct app_store *store = calloc(1, ops->size);

    if (store == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a store");
    }
    store->ops = ops;
    TRY(ops->open(store, location, setup, reterr));
    *(struct app_store **)ret_store = STEAL(store);
    return PAWL_OK;
}

void pawl__app_store_close(struct app_store *store)
{
    if (store != NULL) {
        store->ops->close(store);
    }
}

pawl_status pawl__app_store_get(struct app_store *store,
                                enum app_family family,
                                pawl_view key,
                                struct pawl__arena *arena,
                                struct app_value *ret_value,
                                pawl_error *reterr)
{
    const struct app_lookup lookup = { .family = family, .keys = &key, .count = 1 };

    return store->ops->get_many(store, &lookup, arena, ret_value, reterr);
}

pawl_status pawl__app_value_copy(struct app_value *ret_value,
                                 const pawl_view *found,
                                 struct pawl__arena *arena,
                                 pawl_error *reterr)
{
    *ret_value = (struct app_value){ .found = found != NULL };
    return found == NULL || pawl__arena_copy(arena, *found, &ret_value->bytes)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for a value");
}

/* --- pages --- */

void pawl__app_page_done(struct app_page *page)
{
    pawl__arena_done(&page->arena);
}

bool pawl__app_page_has_room(const struct app_page *page, const struct app_range *range)
{
    return page->count < range->limit && page->bytes <= range->bytes_max;
}

pawl_status pawl__app_page_add(struct app_page *page,
                               enum app_family family,
                               pawl_view key,
                               pawl_view value,
                               pawl_error *reterr)
{
    struct app_entry *entry = &page->entries[page->count];

    *entry = (struct app_entry){ .family = family };
    if (!pawl__arena_copy(&page->arena, key, &entry->key)
        || !pawl__arena_copy(&page->arena, value, &entry->value)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a page");
    }
    page->count++;
    page->bytes += key.len + value.len;
    return PAWL_OK;
}

pawl_status pawl__app_store_scan(struct app_store *store,
                                 const struct app_range *range,
                                 struct app_page *page,
                                 pawl_error *reterr)
{
    pawl__arena_clear(&page->arena);
    page->entries = pawl__arena_take(&page->arena, range->limit * sizeof(*page->entries));
    page->count = 0;
    page->bytes = 0;
    return page->entries == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a page")
                                 : store->ops->scan(store, range, page, reterr);
}

/* The rest of the range, after an entry in the order of the walk. */
static pawl_status skip_page(struct app_range *range,
                             const struct app_entry *last,
                             struct pawl__buf *key,
                             pawl_error *reterr)
{
    pawl__buf_clear(key);
    pawl__buf_add(key, last->key);
    if (range->backwards) {
        range->until = pawl__buf_view(key);
    } else {
        pawl__buf_add_u8(key, 0); /* the next possible key */
        range->from = pawl__buf_view(key);
    }
    return pawl__buf_check(key, "a key", reterr);
}

pawl_status pawl__app_store_walk(struct app_store *store,
                                 const struct app_range *wanted,
                                 app_entry_visitor visitor,
                                 void *context,
                                 pawl_error *reterr)
{
    AUTO(pawl__app_page_done) struct app_page page = { .count = 0 };
    AUTO(pawl__buf_done) struct pawl__buf key = BUF_INIT(KEY_BYTES_MAX);
    struct app_range range = *wanted;
    size_t left = wanted->limit == 0 ? SIZE_MAX : wanted->limit;

    range.bytes_max = APP_PAGE_BYTES_MAX;
    while (left > 0) {
        range.limit = MIN(left, (size_t)APP_PAGE_ENTRIES);
        TRY(pawl__app_store_scan(store, &range, &page, reterr));
        for (size_t i = 0; i < page.count; i++) {
            TRY(visitor(context, &page.entries[i], reterr));
        }
        if (page.count == 0) {
            break;
        }
        TRY(skip_page(&range, &page.entries[page.count - 1], &key, reterr));
        left -= page.count;
    }
    return PAWL_OK;
}

pawl_status pawl__app_store_conflict(const struct app_entry *entry, pawl_error *reterr)
{
    char space[PAWL_ERROR_MESSAGE_SIZE];
    struct pawl__buf text = BUF_OVER(space);

    pawl__app_key_describe(entry->family, entry->key, &text);
    return pawl__fail(reterr, PAWL_CONFLICT, "%s is there already", space);
}
