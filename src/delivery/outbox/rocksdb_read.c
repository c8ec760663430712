#include "base/core/error.h"
#include "base/os/clock.h"
#include "delivery/outbox/rocksdb_internal.h"

pawl_status pawl__delivery_outbox_kept_row(pawl_view key,
                                           pawl_view value,
                                           struct outbox_kept_row *ret_row,
                                           pawl_error *reterr)
{
    struct outbox_numbers numbers = { .count = 4 };
    struct outbox_kept kept = { .number = 0 };
    pawl_view stream;

    TRY(pawl__delivery_outbox_parse_kept(key, &stream, &kept.sequence, &kept.number, reterr));
    TRY(pawl__delivery_outbox_numbers_decode(
        key, "a kept row of the outbox", value, &numbers, reterr));
    kept.created_ns = (int64_t)numbers.at[0];
    kept.session = numbers.at[1];
    kept.acked_ns = (int64_t)numbers.at[2];
    *ret_row = (struct outbox_kept_row){ kept, numbers.at[3] };
    return PAWL_OK;
}

pawl_status pawl__delivery_outbox_pending_bytes(pawl_view key,
                                                pawl_view value,
                                                uint64_t *ret_bytes,
                                                pawl_error *reterr)
{
    struct outbox_numbers numbers = { .count = 1 };

    TRY(pawl__delivery_outbox_numbers_decode(
        key, "a pending row of the outbox", value, &numbers, reterr));
    *ret_bytes = numbers.at[0];
    return PAWL_OK;
}

/* --- names --- */

static pawl_status next_name(struct outbox_store *store,
                             enum outbox_family family,
                             size_t number_count,
                             pawl_view after,
                             struct pawl__buf *name,
                             bool *ret_found,
                             pawl_error *reterr)
{
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    const struct pawl__rocks_range all = { .from = { NULL, 0 } };
    struct outbox_key above = pawl__delivery_outbox_name_end(after);
    uint64_t numbers[2];
    pawl_view found = { NULL, 0 };

    TRY(pawl__rocks_iter_open(outbox->db, NULL, family, all, &iter, reterr));
    TRY(pawl__rocks_iter_seek(
        iter, after.len == 0 ? pawl_view_of("") : pawl__delivery_outbox_key(&above), reterr));
    if (iter->valid) {
        TRY(number_count == 1
                ? pawl__delivery_outbox_parse_pending(iter->key, &found, &numbers[0], reterr)
                : pawl__delivery_outbox_parse_kept(
                    iter->key, &found, &numbers[0], &numbers[1], reterr));
    }
    *ret_found = iter->valid;
    pawl__buf_clear(name);
    pawl__buf_add(name, found);
    return pawl__buf_check(name, "a name of the outbox", reterr);
}

pawl_status pawl__delivery_outbox_rocksdb_next_subject(struct outbox_store *store,
                                                       pawl_view after,
                                                       struct pawl__buf *subject,
                                                       bool *ret_found,
                                                       pawl_error *reterr)
{
    return next_name(store, OUTBOX_PENDING_ROWS, 1, after, subject, ret_found, reterr);
}

pawl_status pawl__delivery_outbox_rocksdb_next_stream(struct outbox_store *store,
                                                      pawl_view after,
                                                      struct pawl__buf *stream,
                                                      bool *ret_found,
                                                      pawl_error *reterr)
{
    return next_name(store, OUTBOX_KEPT_ROWS, 2, after, stream, ret_found, reterr);
}

/* --- entries --- */

static pawl_status copy_entry(uint64_t number,
                              pawl_view value,
                              struct outbox_read *read,
                              pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct outbox_entry entry;

    TRY(pawl__delivery_outbox_entry_decode(number, value, &arena, &entry, reterr));
    return pawl__delivery_outbox_read_copy(read, &entry, reterr);
}

pawl_status pawl__delivery_outbox_rocksdb_read(struct outbox_store *store,
                                               uint64_t number,
                                               struct outbox_read *read,
                                               bool *ret_found,
                                               pawl_error *reterr)
{
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);
    struct outbox_key key = pawl__delivery_outbox_number_key(number);
    pawl_view view = pawl__delivery_outbox_key(&key);
    struct pawl__rocks_value value;

    TRY(pawl__rocks_get_many(outbox->db, NULL, OUTBOX_ENTRIES, &view, 1, &value, reterr));
    *ret_found = value.found;
    pawl_status status = value.found ? copy_entry(number, value.view, read, reterr) : PAWL_OK;
    pawl__rocks_value_done(&value);
    return status;
}

/* `from` matters: acknowledged entries leave deleted rows behind, which a seek would step over one by one. */
pawl_status pawl__delivery_outbox_rocksdb_head(struct outbox_store *store,
                                               pawl_view subject,
                                               uint64_t from,
                                               struct outbox_read *read,
                                               bool *ret_found,
                                               pawl_error *reterr)
{
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    struct outbox_key first = pawl__delivery_outbox_pending_key(subject, from);
    struct outbox_key end = pawl__delivery_outbox_name_end(subject);
    const struct pawl__rocks_range range = { pawl__delivery_outbox_key(&first),
                                             pawl__delivery_outbox_key(&end) };
    uint64_t number = 0;
    pawl_view name;

    TRY(pawl__rocks_iter_open(outbox->db, NULL, OUTBOX_PENDING_ROWS, range, &iter, reterr));
    TRY(pawl__rocks_iter_first(iter, reterr));
    *ret_found = iter->valid;
    if (!iter->valid) {
        return PAWL_OK;
    }
    TRY(pawl__delivery_outbox_parse_pending(iter->key, &name, &number, reterr));
    TRY(pawl__delivery_outbox_rocksdb_read(store, number, read, ret_found, reterr));
    return *ret_found ? PAWL_OK
                      : pawl__fail(reterr,
                                   PAWL_CORRUPT,
                                   "entry %llu of the outbox is pending, but not there",
                                   (unsigned long long)number);
}

/* --- kept ones --- */

static pawl_status open_kept(struct outbox_rocksdb *outbox,
                             pawl_view stream,
                             struct pawl__rocks_iter **ret_iter,
                             pawl_error *reterr)
{
    struct outbox_key first = pawl__delivery_outbox_kept_key(stream, 0, 0);
    struct outbox_key end = pawl__delivery_outbox_name_end(stream);
    const struct pawl__rocks_range range = { pawl__delivery_outbox_key(&first),
                                             pawl__delivery_outbox_key(&end) };

    return pawl__rocks_iter_open(outbox->db, NULL, OUTBOX_KEPT_ROWS, range, ret_iter, reterr);
}

static pawl_status take_kept(const struct pawl__rocks_iter *iter,
                             struct outbox_kept *ret_kept,
                             bool *ret_found,
                             pawl_error *reterr)
{
    struct outbox_kept_row row;

    *ret_found = iter->valid;
    if (iter->valid) {
        TRY(pawl__delivery_outbox_kept_row(iter->key, iter->value, &row, reterr));
        *ret_kept = row.kept;
    }
    return PAWL_OK;
}

pawl_status pawl__delivery_outbox_rocksdb_first_kept(struct outbox_store *store,
                                                     pawl_view stream,
                                                     uint64_t sequence,
                                                     struct outbox_kept *ret_kept,
                                                     bool *ret_found,
                                                     pawl_error *reterr)
{
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    struct outbox_key at = pawl__delivery_outbox_kept_key(stream, sequence, 0);

    TRY(open_kept(pawl__delivery_outbox_as_rocksdb(store), stream, &iter, reterr));
    TRY(pawl__rocks_iter_seek(iter, pawl__delivery_outbox_key(&at), reterr));
    return take_kept(iter, ret_kept, ret_found, reterr);
}

pawl_status pawl__delivery_outbox_rocksdb_last_kept(struct outbox_store *store,
                                                    pawl_view stream,
                                                    uint64_t sequence,
                                                    struct outbox_kept *ret_kept,
                                                    bool *ret_found,
                                                    pawl_error *reterr)
{
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    struct outbox_key at = pawl__delivery_outbox_kept_key(stream, sequence, UINT64_MAX);

    TRY(open_kept(pawl__delivery_outbox_as_rocksdb(store), stream, &iter, reterr));
    TRY(pawl__rocks_iter_seek_back(iter, pawl__delivery_outbox_key(&at), reterr));
    return take_kept(iter, ret_kept, ret_found, reterr);
}

/* --- the rest --- */

pawl_status pawl__delivery_outbox_rocksdb_next_failed(struct outbox_store *store,
                                                      uint64_t from,
                                                      struct outbox_failed *ret_failed,
                                                      bool *ret_found,
                                                      pawl_error *reterr)
{
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    struct outbox_key first = pawl__delivery_outbox_number_key(from);
    const struct pawl__rocks_range range = { .from = pawl__delivery_outbox_key(&first) };
    struct outbox_failed_row row;
    uint64_t number = 0;

    TRY(pawl__rocks_iter_open(outbox->db, NULL, OUTBOX_FAILED_ROWS, range, &iter, reterr));
    TRY(pawl__rocks_iter_first(iter, reterr));
    *ret_found = iter->valid;
    if (!iter->valid) {
        return PAWL_OK;
    }
    TRY(pawl__delivery_outbox_parse_number(iter->key, &number, reterr));
    TRY(pawl__delivery_outbox_failed_decode(number, iter->value, &row, reterr));
    *ret_failed = row.failed;
    return PAWL_OK;
}

/* The first hour at or after the asked one begins with the first entry that is not older. */
pawl_status pawl__delivery_outbox_rocksdb_accepted_before(struct outbox_store *store,
                                                          int64_t running_ns,
                                                          uint64_t *ret_number,
                                                          pawl_error *reterr)
{
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    struct outbox_key first =
        pawl__delivery_outbox_number_key((uint64_t)(running_ns / (3600 * NS_PER_S)));
    const struct pawl__rocks_range range = { .from = pawl__delivery_outbox_key(&first) };
    struct outbox_numbers numbers = { .count = 1 };

    TRY(pawl__rocks_iter_open(outbox->db, NULL, OUTBOX_HOURS, range, &iter, reterr));
    TRY(pawl__rocks_iter_first(iter, reterr));
    if (iter->valid) {
        TRY(pawl__delivery_outbox_numbers_decode(
            iter->key, "an hour of the outbox", iter->value, &numbers, reterr));
        *ret_number = numbers.at[0];
        return PAWL_OK;
    }
    pawl__lock(&outbox->lock);
    *ret_number = outbox->appended.last + 1;
    pawl__unlock(&outbox->lock);
    return PAWL_OK;
}
