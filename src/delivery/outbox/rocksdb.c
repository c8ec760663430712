#include "delivery/outbox/rocksdb.h"

#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/random.h"
#include "base/os/failpoint.h"
#include "delivery/outbox/rocksdb_internal.h"
#include "delivery/rocksdb/row.h"

enum { LOOKUP_STEP = 128 };

/* --- the rows of statistics --- */

static struct outbox_numbers numbers_of_appended(const struct outbox_appended *a)
{
    return (struct outbox_numbers){ .at = { a->last, a->entries, a->bytes, a->running_ns, a->hour },
                                    .count = 5 };
}

static struct outbox_appended appended_of_numbers(const struct outbox_numbers *n)
{
    return (struct outbox_appended){ n->at[0], n->at[1], n->at[2], n->at[3], n->at[4] };
}

static struct outbox_numbers numbers_of_moved(const struct outbox_moved *m)
{
    return (struct outbox_numbers){ .at = { m->pending,
                                            m->pending_bytes,
                                            m->kept,
                                            m->kept_bytes,
                                            m->failed,
                                            m->failed_bytes,
                                            m->trimmed },
                                    .count = 7 };
}

static struct outbox_moved moved_of_numbers(const struct outbox_numbers *n)
{
    return (struct outbox_moved){ n->at[0], n->at[1], n->at[2], n->at[3],
                                  n->at[4], n->at[5], n->at[6] };
}

static pawl_status put_numbers(struct pawl__rocks_batch *batch,
                               enum outbox_family family,
                               const struct outbox_key *key,
                               const struct outbox_numbers *numbers,
                               pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf value = BUF_INIT(OUTBOX_SMALL_BYTES_MAX);

    pawl__delivery_outbox_numbers_encode(key, numbers, &value);
    TRY(pawl__buf_check(&value, "a row of the outbox", reterr));
    pawl__rocks_put(batch, family, pawl__delivery_outbox_key(key), pawl__buf_view(&value));
    return PAWL_OK;
}

struct outbox_moved pawl__delivery_outbox_moved(struct outbox_rocksdb *outbox)
{
    pawl__lock(&outbox->lock);
    struct outbox_moved moved = outbox->moved;
    pawl__unlock(&outbox->lock);
    return moved;
}

pawl_status pawl__delivery_outbox_write_moved(struct outbox_rocksdb *outbox,
                                              struct pawl__rocks_batch *batch,
                                              const struct outbox_moved *moved,
                                              bool durable,
                                              pawl_error *reterr)
{
    struct outbox_key key = pawl__delivery_outbox_text_key("moved");
    struct outbox_numbers numbers = numbers_of_moved(moved);

    TRY(put_numbers(batch, OUTBOX_META, &key, &numbers, reterr));
    TRY(durable ? pawl__rocks_write(outbox->db, batch, reterr)
                : pawl__rocks_write_unsynced(outbox->db, batch, reterr));
    pawl__lock(&outbox->lock);
    outbox->moved = *moved;
    pawl__unlock(&outbox->lock);
    return PAWL_OK;
}

static pawl_status sync_moves(struct outbox_store *store, pawl_error *reterr)
{
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;

    TRY(pawl__rocks_batch_new(outbox->db, &batch, reterr));
    pawl__lock(&outbox->move_lock);
    struct outbox_moved moved = pawl__delivery_outbox_moved(outbox);
    pawl_status status = pawl__delivery_outbox_write_moved(outbox, batch, &moved, true, reterr);
    pawl__unlock(&outbox->move_lock);
    return status;
}

/* --- appending --- */

struct outbox_appended pawl__delivery_outbox_appended(struct outbox_rocksdb *outbox)
{
    pawl__lock(&outbox->lock);
    struct outbox_appended appended = outbox->appended;
    pawl__unlock(&outbox->lock);
    return appended;
}

void pawl__delivery_outbox_set_appended(struct outbox_rocksdb *outbox,
                                        const struct outbox_appended *appended)
{
    pawl__lock(&outbox->lock);
    outbox->appended = *appended;
    pawl__unlock(&outbox->lock);
}

static pawl_status put_ids(struct pawl__rocks_batch *batch,
                           const struct outbox_entry *entry,
                           struct pawl__buf *value,
                           pawl_error *reterr)
{
    struct outbox_key number = pawl__delivery_outbox_number_key(entry->number);
    struct outbox_key index = pawl__delivery_outbox_hash_key(&entry->key);
    const struct outbox_hit hit = { true, entry->number, entry->payload_hash };

    pawl__delivery_outbox_index_encode(&entry->key, &hit, value);
    TRY(pawl__buf_check(value, "an index row of the outbox", reterr));
    pawl__rocks_put(batch, OUTBOX_INDEX, pawl__delivery_outbox_key(&index), pawl__buf_view(value));
    pawl__delivery_outbox_id_encode(entry->number, &entry->key, value);
    TRY(pawl__buf_check(value, "an id row of the outbox", reterr));
    pawl__rocks_put(batch, OUTBOX_IDS, pawl__delivery_outbox_key(&number), pawl__buf_view(value));
    return PAWL_OK;
}

static pawl_status put_entry(struct pawl__rocks_batch *batch,
                             const struct outbox_entry *entry,
                             struct pawl__buf *value,
                             pawl_error *reterr)
{
    struct outbox_key number = pawl__delivery_outbox_number_key(entry->number);
    struct outbox_key pending = pawl__delivery_outbox_pending_key(entry->subject, entry->number);
    const struct outbox_numbers bytes = { .at = { pawl__delivery_outbox_bytes(entry) },
                                          .count = 1 };

    pawl__delivery_outbox_entry_encode(entry, value);
    TRY(pawl__buf_check(value, "an entry of the outbox", reterr));
    pawl__rocks_put(
        batch, OUTBOX_ENTRIES, pawl__delivery_outbox_key(&number), pawl__buf_view(value));
    TRY(put_numbers(batch, OUTBOX_PENDING_ROWS, &pending, &bytes, reterr));
    return put_ids(batch, entry, value, reterr);
}

static pawl_status put_hour(struct pawl__rocks_batch *batch,
                            struct outbox_appended *next,
                            uint64_t first,
                            pawl_error *reterr)
{
    uint64_t hour = next->running_ns / (uint64_t)(3600 * NS_PER_S);
    struct outbox_key key = pawl__delivery_outbox_number_key(hour);
    const struct outbox_numbers numbers = { .at = { first }, .count = 1 };

    if (hour < next->hour) {
        return PAWL_OK;
    }
    next->hour = hour + 1;
    return put_numbers(batch, OUTBOX_HOURS, &key, &numbers, reterr);
}

static pawl_status put_entries(struct pawl__rocks_batch *batch,
                               const struct outbox_entry *entries,
                               size_t count,
                               struct outbox_appended *next,
                               pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf value = BUF_INIT(DELIVERY_ROW_BYTES_MAX);
    struct outbox_key key = pawl__delivery_outbox_text_key("appended");

    TRY(count == 0 ? PAWL_OK : put_hour(batch, next, next->last + 1, reterr));
    for (size_t i = 0; i < count; i++) {
        REQUIRE(entries[i].number == next->last + 1);
        TRY(put_entry(batch, &entries[i], &value, reterr));
        next->last++;
        next->entries++;
        next->bytes += pawl__delivery_outbox_bytes(&entries[i]);
    }
    struct outbox_numbers numbers = numbers_of_appended(next);
    return put_numbers(batch, OUTBOX_META, &key, &numbers, reterr);
}

pawl_status pawl__delivery_outbox_put_new(struct pawl__rocks_batch *batch,
                                          const struct outbox_entry *entry,
                                          struct outbox_appended *appended,
                                          pawl_error *reterr)
{
    return put_entries(batch, entry, 1, appended, reterr);
}

static pawl_status append(struct outbox_store *store,
                          const struct outbox_entry *entries,
                          size_t count,
                          int64_t running_ns,
                          pawl_error *reterr)
{
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;

    struct outbox_appended next = pawl__delivery_outbox_appended(outbox);
    next.running_ns = MAX(next.running_ns, (uint64_t)running_ns);
    TRY(pawl__rocks_batch_new(outbox->db, &batch, reterr));
    TRY(put_entries(batch, entries, count, &next, reterr));
    FAILPOINT("delivery.outbox.append.before", reterr);
    TRY(pawl__rocks_write(outbox->db, batch, reterr));
    pawl__delivery_outbox_set_appended(outbox, &next);
    FAILPOINT("delivery.outbox.append.after", reterr);
    return PAWL_OK;
}

static pawl_status lookup_step(struct outbox_rocksdb *outbox,
                               const struct delivery_hash *keys,
                               size_t count,
                               struct outbox_hit *ret_hits,
                               pawl_error *reterr)
{
    pawl_view views[LOOKUP_STEP] = { { NULL, 0 } };
    struct pawl__rocks_value values[LOOKUP_STEP];
    pawl_status status = PAWL_OK;

    for (size_t i = 0; i < count; i++) {
        views[i] = (pawl_view){ (const char *)keys[i].bytes, sizeof(keys[i].bytes) };
    }
    TRY(pawl__rocks_get_many(outbox->db, NULL, OUTBOX_INDEX, views, count, values, reterr));
    for (size_t i = 0; i < count; i++) {
        ret_hits[i] = (struct outbox_hit){ .found = false };
        if (values[i].found && status == PAWL_OK) {
            status =
                pawl__delivery_outbox_index_decode(&keys[i], values[i].view, &ret_hits[i], reterr);
        }
        pawl__rocks_value_done(&values[i]);
    }
    return status;
}

static pawl_status lookup(struct outbox_store *store,
                          const struct delivery_hash *keys,
                          size_t count,
                          struct outbox_hit *ret_hits,
                          pawl_error *reterr)
{
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);

    for (size_t at = 0; at < count; at += LOOKUP_STEP) {
        size_t some = MIN(count - at, (size_t)LOOKUP_STEP);
        TRY(lookup_step(outbox, &keys[at], some, &ret_hits[at], reterr));
    }
    return PAWL_OK;
}

static pawl_status stats(struct outbox_store *store,
                         struct outbox_stats *ret_stats,
                         pawl_error *reterr)
{
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);

    (void)reterr;
    pawl__lock(&outbox->lock);
    const struct outbox_appended *in = &outbox->appended;
    const struct outbox_moved *out = &outbox->moved;
    *ret_stats = (struct outbox_stats){ .outbox = outbox->id,
                                        .last = in->last,
                                        .running_ns = (int64_t)in->running_ns,
                                        .pending = in->entries - out->pending,
                                        .pending_bytes = in->bytes - out->pending_bytes,
                                        .kept = out->kept,
                                        .kept_bytes = out->kept_bytes,
                                        .failed = out->failed,
                                        .failed_bytes = out->failed_bytes,
                                        .ids = in->entries - out->trimmed };
    pawl__unlock(&outbox->lock);
    return PAWL_OK;
}

/* --- opening and closing --- */

static pawl_status open_engine(struct outbox_rocksdb *outbox,
                               const char *dir,
                               const struct delivery_rocksdb_options *options,
                               pawl_error *reterr)
{
    static const char *const families[OUTBOX_FAMILY_COUNT] = {
        [OUTBOX_META] = "meta",       [OUTBOX_HOURS] = "hours",
        [OUTBOX_ENTRIES] = "entries", [OUTBOX_PENDING_ROWS] = "pending",
        [OUTBOX_KEPT_ROWS] = "kept",  [OUTBOX_FAILED_ROWS] = "failed",
        [OUTBOX_INDEX] = "index",     [OUTBOX_IDS] = "ids",
    };
    struct pawl__rocks_options native = pawl__delivery_rocksdb_engine_options(options);

    native.families = families;
    native.family_count = OUTBOX_FAMILY_COUNT;
    return pawl__rocks_open(dir, &native, &outbox->db, reterr);
}

/* *ret_found false: the row is not there. */
static pawl_status get_row(struct outbox_rocksdb *outbox,
                           const char *name,
                           struct pawl__buf *value,
                           bool *ret_found,
                           pawl_error *reterr)
{
    pawl_view key = pawl_view_of(name);
    struct pawl__rocks_value row;

    TRY(pawl__rocks_get_many(outbox->db, NULL, OUTBOX_META, &key, 1, &row, reterr));
    *ret_found = row.found;
    pawl__buf_clear(value);
    pawl__buf_add(value, row.view);
    pawl__rocks_value_done(&row);
    return pawl__buf_check(value, "a row of the outbox", reterr);
}

static pawl_status load_numbers(struct outbox_rocksdb *outbox,
                                const char *name,
                                struct outbox_numbers *numbers,
                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf value = BUF_INIT(OUTBOX_SMALL_BYTES_MAX);
    bool found = false;

    TRY(get_row(outbox, name, &value, &found, reterr));
    return found ? pawl__delivery_outbox_numbers_decode(pawl_view_of(name),
                                                        "a row of the outbox's statistics",
                                                        pawl__buf_view(&value),
                                                        numbers,
                                                        reterr)
                 : PAWL_OK;
}

/* A store with entries has a row that counts them: without it the numbers would begin again. */
static pawl_status refuse_rows(struct outbox_rocksdb *outbox, pawl_error *reterr)
{
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    const struct pawl__rocks_range all = { .from = { NULL, 0 } };

    TRY(pawl__rocks_iter_open(outbox->db, NULL, OUTBOX_IDS, all, &iter, reterr));
    TRY(pawl__rocks_iter_first(iter, reterr));
    return iter->valid ? pawl__fail(reterr, PAWL_CORRUPT, "the outbox has entries, but no count")
                       : PAWL_OK;
}

/* Copies of a directory have the same name; an outbox that was made anew has another. */
static pawl_status put_id(struct pawl__rocks_batch *batch, pawl_error *reterr)
{
    struct outbox_key key = pawl__delivery_outbox_text_key("outbox");
    struct outbox_numbers id = { .count = 1 };

    while (id.at[0] == 0) {
        TRY(pawl__random_bytes(pawl__random_real(), &id.at[0], sizeof(id.at[0]), reterr));
    }
    return put_numbers(batch, OUTBOX_META, &key, &id, reterr);
}

static pawl_status check_format(struct outbox_rocksdb *outbox, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf value = BUF_INIT(OUTBOX_SMALL_BYTES_MAX);
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    bool found = false;

    TRY(get_row(outbox, "format", &value, &found, reterr));
    if (found) {
        return pawl__delivery_row_format_decode(
            OUTBOX_MAGIC, OUTBOX_FORMAT, pawl__buf_view(&value), reterr);
    }
    TRY(refuse_rows(outbox, reterr));
    TRY(pawl__rocks_batch_new(outbox->db, &batch, reterr));
    pawl__delivery_row_format_encode(OUTBOX_MAGIC, OUTBOX_FORMAT, &value);
    TRY(pawl__buf_check(&value, "the row 'format'", reterr));
    pawl__rocks_put(batch, OUTBOX_META, pawl_view_of("format"), pawl__buf_view(&value));
    TRY(put_id(batch, reterr));
    return pawl__rocks_write(outbox->db, batch, reterr);
}

static pawl_status load(struct outbox_rocksdb *outbox, pawl_error *reterr)
{
    struct outbox_numbers appended = { .count = 5 };
    struct outbox_numbers moved = { .count = 7 };
    struct outbox_numbers id = { .count = 1 };

    TRY(check_format(outbox, reterr));
    TRY(load_numbers(outbox, "outbox", &id, reterr));
    TRY(load_numbers(outbox, "appended", &appended, reterr));
    TRY(load_numbers(outbox, "moved", &moved, reterr));
    TRY(appended.at[0] == 0 ? refuse_rows(outbox, reterr) : PAWL_OK);
    if (id.at[0] == 0) {
        return pawl__fail(reterr, PAWL_CORRUPT, "the outbox has no row that names it");
    }
    outbox->id = id.at[0];
    outbox->appended = appended_of_numbers(&appended);
    outbox->moved = moved_of_numbers(&moved);
    return PAWL_OK;
}

static void outbox_free(struct outbox_rocksdb *outbox)
{
    pawl__rocks_close(outbox->db);
    pawl__lock_done(&outbox->move_lock);
    pawl__lock_done(&outbox->lock);
    free(outbox);
}

static void outbox_free_p(struct outbox_rocksdb **outbox)
{
    if (*outbox != NULL) {
        outbox_free(*outbox);
    }
}

/* A disk that does not answer keeps the handle for ever: the process ends without it. */
static void close_outbox(struct outbox_store *store)
{
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);
    int64_t deadline_ns = pawl__monotonic_ns(outbox->clock) + outbox->close_timeout_ns;

    if (pawl__rocks_flush_last(outbox->db, deadline_ns, NULL) == PAWL_OK) {
        outbox_free(outbox);
    }
}

static const struct outbox_store_ops ops = {
    .append = append,
    .lookup = lookup,
    .next_subject = pawl__delivery_outbox_rocksdb_next_subject,
    .head = pawl__delivery_outbox_rocksdb_head,
    .read = pawl__delivery_outbox_rocksdb_read,
    .keep = pawl__delivery_outbox_rocksdb_keep,
    .next_stream = pawl__delivery_outbox_rocksdb_next_stream,
    .first_kept = pawl__delivery_outbox_rocksdb_first_kept,
    .last_kept = pawl__delivery_outbox_rocksdb_last_kept,
    .requeue = pawl__delivery_outbox_rocksdb_requeue,
    .adopt = pawl__delivery_outbox_rocksdb_adopt,
    .forget = pawl__delivery_outbox_rocksdb_forget,
    .set_aside = pawl__delivery_outbox_rocksdb_fail,
    .next_failed = pawl__delivery_outbox_rocksdb_next_failed,
    .retry = pawl__delivery_outbox_rocksdb_retry,
    .accepted_before = pawl__delivery_outbox_rocksdb_accepted_before,
    .trim = pawl__delivery_outbox_rocksdb_trim,
    .sync = sync_moves,
    .stats = stats,
    .close = close_outbox,
};

static struct outbox_rocksdb *outbox_new(const struct delivery_rocksdb_options *options)
{
    struct outbox_rocksdb *outbox = calloc(1, sizeof(*outbox));

    if (outbox != NULL) {
        outbox->base.ops = &ops;
        pawl__lock_init(&outbox->move_lock);
        pawl__lock_init(&outbox->lock);
        outbox->clock = pawl__clock_or_real(options->clock);
        outbox->close_timeout_ns = options->close_timeout_ns != 0 ? options->close_timeout_ns
                                                                  : DELIVERY_WAL_CLOSE_NS_DEFAULT;
    }
    return outbox;
}

static pawl_status open_outbox(const char *dir,
                               const struct delivery_rocksdb_options *options,
                               struct outbox_store **ret_store,
                               pawl_error *reterr)
{
    AUTO(outbox_free_p) struct outbox_rocksdb *outbox = outbox_new(options);

    TRY(pawl__check_memory(outbox, "an outbox", reterr));
    TRY(pawl__delivery_row_refuse_foreign(dir, "outbox", reterr));
    TRY(open_engine(outbox, dir, options, reterr));
    TRY(load(outbox, reterr));
    *ret_store = &STEAL(outbox)->base;
    return PAWL_OK;
}

pawl_status pawl__delivery_outbox_rocksdb_open(const char *dir,
                                               const struct delivery_rocksdb_options *options,
                                               struct outbox_store **ret_store,
                                               pawl_error *reterr)
{
    static const struct delivery_rocksdb_options defaults = { 0 };
    pawl_status status = open_outbox(dir, options == NULL ? &defaults : options, ret_store, reterr);

    return status == PAWL_OK ? PAWL_OK
                             : pawl__fail_context(reterr, status, "open outbox '%s'", dir);
}
