#include "app/core/backend.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/os/fs.h"
#include "store/location.h"

enum { URL_BYTES_MAX = 8192, KEY_BYTES_MAX = 1 << 20 };

/* Which application of a database: ours to read, libpq would refuse it. */
static pawl_status take_app_name(const char *location,
                                 struct pawl__buf *url,
                                 char **ret_name,
                                 pawl_error *reterr)
{
    static const char prefix[] = "app=";
    pawl_view rest = pawl_view_of(location);
    pawl_view base = { NULL, 0 };
    pawl_view parameter;
    char before = '?';

    (void)!pawl__view_split(&rest, '?', &base);
    pawl__buf_add(url, base);
    while (pawl__view_split(&rest, '&', &parameter)) {
        pawl_view taken;
        pawl_view name = parameter;
        if (pawl__view_take(&name, strlen(prefix), &taken) && pawl__view_is(taken, prefix)) {
            if (*ret_name != NULL && !pawl__view_is(name, *ret_name)) {
                pawl_view shown = { name.data, MIN(name.len, (size_t)64) };
                return pawl__fail(reterr,
                                  PAWL_INVALID,
                                  "the location says 'app=%.64s', and also 'app=%.*s'",
                                  *ret_name,
                                  VIEW_ARGS(shown));
            }
            free(*ret_name);
            *ret_name = pawl__view_dup(name);
        } else {
            pawl__buf_add_char(url, before);
            pawl__buf_add(url, parameter);
            before = '&';
        }
    }
    return pawl__buf_check(url, "the URL", reterr);
}

static pawl_status open_postgres(const char *location,
                                 const struct app_store_options *options,
                                 struct app_store **ret_store,
                                 pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf url = BUF_INIT(URL_BYTES_MAX);
    AUTO(pawl__text_free) char *name = NULL;
    struct app_store_options with_name = *options;

    TRY(take_app_name(location, &url, &name, reterr));
    if (options->app_name == NULL) {
        with_name.app_name = name;
    } else if (name != NULL && strcmp(name, options->app_name) != 0) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the location says 'app=%.64s', the descriptor '%s'",
                          name,
                          options->app_name);
    }
    return pawl__app_postgres_open(url.data, &with_name, ret_store, reterr);
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

pawl_status pawl__app_store_open(const char *location,
                                 const struct app_store_options *options,
                                 struct app_store **ret_store,
                                 pawl_error *reterr)
{
    if (location == NULL || location[0] == '\0') {
        return pawl__fail(reterr, PAWL_INVALID, "the location is empty");
    }
    if (strcmp(location, "memory:") == 0) {
        return pawl__app_memory_open(ret_store, reterr);
    }
    if (pawl__location_is_postgres(location)) {
        return open_postgres(location, options, ret_store, reterr);
    }
    if (strstr(location, "://") != NULL || begins_with(location, "memory:")) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "location '%s' is neither a directory nor postgres:// nor memory:",
                          location);
    }
    pawl_status status = pawl__app_rocksdb_open(location, options, ret_store, reterr);
    return status == PAWL_OK ? status : pawl__fail_context(reterr, status, "open '%s'", location);
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
