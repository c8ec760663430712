#include "app/core/backend.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

enum { KEY_BYTES_MAX = 1 << 20 };

static pawl_status open_directory(const struct pawl__location *location,
                                  const void *setup,
                                  void *ret_store,
                                  pawl_error *reterr)
{
    pawl_status status = pawl__app_rocksdb_open(location, setup, ret_store, reterr);

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
        .at = { [PAWL__AT_MEMORY] = pawl__app_memory_open,
                [PAWL__AT_DIRECTORY] = open_directory,
                [PAWL__AT_POSTGRES] = pawl__app_postgres_open },
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

/* The rest of the range, behind (or before) an entry. */
static pawl_status move_on(struct app_range *range,
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
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    AUTO(pawl__buf_done) struct pawl__buf key = BUF_INIT(KEY_BYTES_MAX);
    struct app_range range = *wanted;
    struct app_entry *entries = malloc(APP_PAGE_ENTRIES * sizeof(*entries));
    size_t count = 1;
    pawl_status status =
        entries == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a page") : PAWL_OK;

    range.limit = APP_PAGE_ENTRIES;
    range.bytes_max = APP_PAGE_BYTES_MAX;
    while (status == PAWL_OK && count > 0) {
        pawl__arena_clear(&arena);
        status = store->ops->scan(store, &range, &arena, entries, &count, reterr);
        for (size_t i = 0; i < count && status == PAWL_OK; i++) {
            status = visitor(context, &entries[i], reterr);
        }
        if (status == PAWL_OK && count > 0) {
            status = move_on(&range, &entries[count - 1], &key, reterr);
        }
    }
    free(entries);
    return status;
}

pawl_status pawl__app_store_conflict(const struct app_entry *entry, pawl_error *reterr)
{
    char space[PAWL_ERROR_MESSAGE_SIZE];
    struct pawl__buf text = BUF_OVER(space);

    pawl__app_key_describe(entry->family, entry->key, &text);
    return pawl__fail(reterr, PAWL_CONFLICT, "%s is there already", space);
}
