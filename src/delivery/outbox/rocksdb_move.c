/* What becomes of entries: small rows move between families, a thousand in a batch, with the statistics that they
 * change. Without waiting for the disk: lost with a power cut, they are found out again from the stream. */
#include <stdio.h>

#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "delivery/outbox/rocksdb_internal.h"

enum { MOVE_STEP = 1000, RETRY_STEP = 16 };

struct move {
    struct outbox_rocksdb *outbox;
    struct pawl__rocks_batch *batch;
    struct outbox_moved moved;
    struct pawl__buf value;
    size_t in_batch;
    uint64_t count;
    bool durable;
};

static pawl_status move_begin(struct move *move, struct outbox_store *store, pawl_error *reterr)
{
    *move = (struct move){ .outbox = pawl__delivery_outbox_as_rocksdb(store),
                           .value = BUF_INIT(OUTBOX_SMALL_BYTES_MAX) };
    move->moved = pawl__delivery_outbox_moved(move->outbox);
    return pawl__rocks_batch_new(move->outbox->db, &move->batch, reterr);
}

static void move_done(struct move *move)
{
    pawl__rocks_batch_free(move->batch);
    pawl__buf_done(&move->value);
}

static pawl_status move_write(struct move *move, pawl_error *reterr)
{
    if (move->in_batch == 0) {
        return PAWL_OK;
    }
    FAILPOINT("delivery.outbox.move.before", reterr);
    TRY(pawl__delivery_outbox_write_moved(
        move->outbox, move->batch, &move->moved, move->durable, reterr));
    FAILPOINT("delivery.outbox.move.after", reterr);
    move->in_batch = 0;
    return PAWL_OK;
}

/* One more entry is in the batch. */
static pawl_status move_count(struct move *move, pawl_error *reterr)
{
    move->in_batch++;
    move->count++;
    return move->in_batch < MOVE_STEP ? PAWL_OK : move_write(move, reterr);
}

static pawl_status put_numbers(struct move *move,
                               enum outbox_family family,
                               const struct outbox_key *key,
                               const struct outbox_numbers *numbers,
                               pawl_error *reterr)
{
    pawl__delivery_outbox_numbers_encode(key, numbers, &move->value);
    TRY(pawl__buf_check(&move->value, "a row of the outbox", reterr));
    pawl__rocks_put(
        move->batch, family, pawl__delivery_outbox_key(key), pawl__buf_view(&move->value));
    return PAWL_OK;
}

static void drop(struct move *move, enum outbox_family family, const struct outbox_key *key)
{
    pawl__rocks_delete(move->batch, family, pawl__delivery_outbox_key(key));
}

/* --- out of and into pending --- */

/* The subject of an entry and the bytes of its pending row; *ret_found false: it is not pending. */
static pawl_status find_pending(struct move *move,
                                uint64_t number,
                                struct outbox_key *ret_key,
                                uint64_t *ret_bytes,
                                bool *ret_found,
                                pawl_error *reterr)
{
    struct outbox_read read = OUTBOX_READ_INIT;
    struct pawl__rocks_value row = { .found = false };
    bool found = false;
    pawl_status status =
        pawl__delivery_outbox_rocksdb_read(&move->outbox->base, number, &read, &found, reterr);

    if (status == PAWL_OK && found) {
        *ret_key = pawl__delivery_outbox_pending_key(read.entry.subject, number);
        pawl_view key = pawl__delivery_outbox_key(ret_key);
        status = pawl__rocks_get_many(
            move->outbox->db, NULL, OUTBOX_PENDING_ROWS, &key, 1, &row, reterr);
    }
    pawl__delivery_outbox_read_done(&read);
    if (status == PAWL_OK && row.found) {
        status = pawl__delivery_outbox_pending_bytes(
            pawl__delivery_outbox_key(ret_key), row.view, ret_bytes, reterr);
    }
    *ret_found = row.found;
    pawl__rocks_value_done(&row);
    return status;
}

static void leave_pending(struct move *move, const struct outbox_key *key, uint64_t bytes)
{
    drop(move, OUTBOX_PENDING_ROWS, key);
    move->moved.pending++;
    move->moved.pending_bytes += bytes;
}

static pawl_status fail_missing(uint64_t number, pawl_error *reterr)
{
    return pawl__fail(
        reterr,
        PAWL_CORRUPT,
        "entry %llu of the outbox has a row that says what became of it, but is not there",
        (unsigned long long)number);
}

static pawl_status make_pending(struct move *move,
                                uint64_t number,
                                uint64_t bytes,
                                pawl_error *reterr)
{
    struct outbox_read read = OUTBOX_READ_INIT;
    const struct outbox_numbers numbers = { .at = { bytes }, .count = 1 };
    bool found = false;
    pawl_status status =
        pawl__delivery_outbox_rocksdb_read(&move->outbox->base, number, &read, &found, reterr);

    if (status == PAWL_OK && !found) {
        status = fail_missing(number, reterr);
    }
    if (status == PAWL_OK) {
        struct outbox_key key = pawl__delivery_outbox_pending_key(read.entry.subject, number);
        status = put_numbers(move, OUTBOX_PENDING_ROWS, &key, &numbers, reterr);
        move->moved.pending--;
        move->moved.pending_bytes -= bytes;
    }
    pawl__delivery_outbox_read_done(&read);
    return status;
}

/* --- kept ones --- */

static pawl_status put_kept(struct move *move,
                            pawl_view stream,
                            const struct outbox_kept *kept,
                            uint64_t bytes,
                            pawl_error *reterr)
{
    struct outbox_key key = pawl__delivery_outbox_kept_key(stream, kept->sequence, kept->number);
    const struct outbox_numbers numbers = {
        .at = { (uint64_t)kept->created_ns, kept->session, (uint64_t)kept->acked_ns, bytes },
        .count = 4,
    };

    return put_numbers(move, OUTBOX_KEPT_ROWS, &key, &numbers, reterr);
}

static pawl_status keep_one(struct move *move,
                            pawl_view stream,
                            const struct outbox_kept *kept,
                            pawl_error *reterr)
{
    struct outbox_key pending = { .len = 0 };
    uint64_t bytes = 0;
    bool found = false;

    TRY(find_pending(move, kept->number, &pending, &bytes, &found, reterr));
    if (!found) {
        return PAWL_OK;
    }
    leave_pending(move, &pending, bytes);
    TRY(put_kept(move, stream, kept, bytes, reterr));
    move->moved.kept++;
    move->moved.kept_bytes += bytes;
    return move_count(move, reterr);
}

static pawl_status keep_all(struct outbox_store *store,
                            pawl_view stream,
                            const struct outbox_kept *kept,
                            size_t count,
                            pawl_error *reterr)
{
    AUTO(move_done) struct move move;

    TRY(move_begin(&move, store, reterr));
    for (size_t i = 0; i < count; i++) {
        TRY(keep_one(&move, stream, &kept[i], reterr));
    }
    return move_write(&move, reterr);
}

pawl_status pawl__delivery_outbox_rocksdb_keep(struct outbox_store *store,
                                               pawl_view stream,
                                               const struct outbox_kept *kept,
                                               size_t count,
                                               pawl_error *reterr)
{
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);

    pawl__lock(&outbox->move_lock);
    pawl_status status = keep_all(store, stream, kept, count, reterr);
    pawl__unlock(&outbox->move_lock);
    return status;
}

/* What happens to each kept row of a walk. */
struct kept_walk {
    struct move *move;
    pawl_view stream;
    uint64_t session;
    int64_t acked_ns;
};
typedef pawl_status kept_fn(struct kept_walk *walk,
                            const struct outbox_kept_row *row,
                            pawl_error *reterr);

static pawl_status walk_kept(struct outbox_store *store,
                             struct kept_walk *walk,
                             uint64_t from,
                             uint64_t to,
                             kept_fn *each,
                             pawl_error *reterr)
{
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);
    struct outbox_key first = pawl__delivery_outbox_kept_key(walk->stream, from, 0);
    struct outbox_key end = to == UINT64_MAX
                                ? pawl__delivery_outbox_name_end(walk->stream)
                                : pawl__delivery_outbox_kept_key(walk->stream, to + 1, 0);
    const struct pawl__rocks_range range = { pawl__delivery_outbox_key(&first),
                                             pawl__delivery_outbox_key(&end) };
    struct outbox_kept_row row;

    TRY(pawl__rocks_iter_open(outbox->db, NULL, OUTBOX_KEPT_ROWS, range, &iter, reterr));
    pawl_status status = pawl__rocks_iter_first(iter, reterr);
    for (; status == PAWL_OK && iter->valid; status = pawl__rocks_iter_next(iter, reterr)) {
        TRY(pawl__delivery_outbox_kept_row(iter->key, iter->value, &row, reterr));
        TRY(each(walk, &row, reterr));
    }
    return status;
}

static pawl_status move_kept(struct outbox_store *store,
                             const struct kept_walk *given,
                             uint64_t from,
                             uint64_t to,
                             kept_fn *each,
                             uint64_t *ret_count,
                             pawl_error *reterr)
{
    AUTO(move_done) struct move move;
    struct kept_walk walk = *given;

    TRY(move_begin(&move, store, reterr));
    walk.move = &move;
    TRY(walk_kept(store, &walk, from, to, each, reterr));
    TRY(move_write(&move, reterr));
    *ret_count = move.count;
    return PAWL_OK;
}

static pawl_status move_kept_locked(struct outbox_store *store,
                                    struct kept_walk walk,
                                    uint64_t from,
                                    uint64_t to,
                                    kept_fn *each,
                                    uint64_t *ret_count,
                                    pawl_error *reterr)
{
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);

    pawl__lock(&outbox->move_lock);
    pawl_status status = move_kept(store, &walk, from, to, each, ret_count, reterr);
    pawl__unlock(&outbox->move_lock);
    return status;
}

static void leave_kept(struct kept_walk *walk, const struct outbox_kept_row *row)
{
    struct outbox_key key =
        pawl__delivery_outbox_kept_key(walk->stream, row->kept.sequence, row->kept.number);

    drop(walk->move, OUTBOX_KEPT_ROWS, &key);
    walk->move->moved.kept--;
    walk->move->moved.kept_bytes -= row->bytes;
}

static pawl_status requeue_one(struct kept_walk *walk,
                               const struct outbox_kept_row *row,
                               pawl_error *reterr)
{
    leave_kept(walk, row);
    TRY(make_pending(walk->move, row->kept.number, row->bytes, reterr));
    return move_count(walk->move, reterr);
}

pawl_status pawl__delivery_outbox_rocksdb_requeue(struct outbox_store *store,
                                                  pawl_view stream,
                                                  uint64_t sequence,
                                                  uint64_t *ret_count,
                                                  pawl_error *reterr)
{
    struct kept_walk walk = { .stream = stream };

    return move_kept_locked(store, walk, sequence, UINT64_MAX, requeue_one, ret_count, reterr);
}

static pawl_status adopt_one(struct kept_walk *walk,
                             const struct outbox_kept_row *row,
                             pawl_error *reterr)
{
    struct outbox_kept kept = row->kept;

    if (kept.session == walk->session) {
        return PAWL_OK;
    }
    kept.session = walk->session;
    kept.acked_ns = walk->acked_ns;
    TRY(put_kept(walk->move, walk->stream, &kept, row->bytes, reterr));
    return move_count(walk->move, reterr);
}

pawl_status pawl__delivery_outbox_rocksdb_adopt(struct outbox_store *store,
                                                pawl_view stream,
                                                uint64_t session,
                                                int64_t acked_ns,
                                                pawl_error *reterr)
{
    struct kept_walk walk = { .stream = stream, .session = session, .acked_ns = acked_ns };
    uint64_t count = 0;

    return move_kept_locked(store, walk, 0, UINT64_MAX, adopt_one, &count, reterr);
}

static pawl_status forget_one(struct kept_walk *walk,
                              const struct outbox_kept_row *row,
                              pawl_error *reterr)
{
    struct outbox_key entry = pawl__delivery_outbox_number_key(row->kept.number);

    leave_kept(walk, row);
    drop(walk->move, OUTBOX_ENTRIES, &entry);
    return move_count(walk->move, reterr);
}

pawl_status pawl__delivery_outbox_rocksdb_forget(struct outbox_store *store,
                                                 pawl_view stream,
                                                 uint64_t sequence,
                                                 uint64_t *ret_count,
                                                 pawl_error *reterr)
{
    struct kept_walk walk = { .stream = stream };

    return move_kept_locked(store, walk, 0, sequence, forget_one, ret_count, reterr);
}

/* --- failed ones --- */

static pawl_status fail_one(struct outbox_store *store,
                            const struct outbox_failed *failed,
                            pawl_error *reterr)
{
    AUTO(move_done) struct move move;
    struct outbox_key pending = { .len = 0 };
    struct outbox_key key = pawl__delivery_outbox_number_key(failed->number);
    struct outbox_failed_row row = { .failed = *failed };
    bool found = false;

    TRY(move_begin(&move, store, reterr));
    move.durable = true;
    TRY(find_pending(&move, failed->number, &pending, &row.bytes, &found, reterr));
    if (!found) {
        return PAWL_OK;
    }
    leave_pending(&move, &pending, row.bytes);
    pawl__delivery_outbox_failed_encode(&row, &move.value);
    TRY(pawl__buf_check(&move.value, "a failed row of the outbox", reterr));
    pawl__rocks_put(move.batch,
                    OUTBOX_FAILED_ROWS,
                    pawl__delivery_outbox_key(&key),
                    pawl__buf_view(&move.value));
    move.moved.failed++;
    move.moved.failed_bytes += row.bytes;
    move.in_batch++;
    return move_write(&move, reterr);
}

pawl_status pawl__delivery_outbox_rocksdb_fail(struct outbox_store *store,
                                               const struct outbox_failed *failed,
                                               pawl_error *reterr)
{
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);

    pawl__lock(&outbox->move_lock);
    pawl_status status = fail_one(store, failed, reterr);
    pawl__unlock(&outbox->move_lock);
    return status;
}

/* Under a new number, as if it were appended; the old one is gone with its id row. */
static pawl_status retry_row(struct move *move,
                             const struct pawl__rocks_iter *iter,
                             struct outbox_appended *appended,
                             struct outbox_read *read,
                             pawl_error *reterr)
{
    struct outbox_failed_row row;
    uint64_t number = 0;
    bool found = false;

    TRY(pawl__delivery_outbox_parse_number(iter->key, &number, reterr));
    TRY(pawl__delivery_outbox_failed_decode(number, iter->value, &row, reterr));
    TRY(pawl__delivery_outbox_rocksdb_read(&move->outbox->base, number, read, &found, reterr));
    if (!found) {
        return fail_missing(number, reterr);
    }
    struct outbox_entry entry = read->entry;
    entry.number = appended->last + 1;
    TRY(pawl__delivery_outbox_put_new(move->batch, &entry, appended, reterr));
    pawl__rocks_delete(move->batch, OUTBOX_FAILED_ROWS, iter->key);
    pawl__rocks_delete(move->batch, OUTBOX_ENTRIES, iter->key);
    pawl__rocks_delete(move->batch, OUTBOX_IDS, iter->key);
    move->moved.failed--;
    move->moved.failed_bytes -= row.bytes;
    move->moved.trimmed++;
    move->in_batch++;
    move->count++;
    return PAWL_OK;
}

static pawl_status retry_rows(struct move *move,
                              struct outbox_appended *appended,
                              pawl_error *reterr)
{
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    AUTO(pawl__delivery_outbox_read_done) struct outbox_read read = OUTBOX_READ_INIT;
    const struct pawl__rocks_range all = { .from = { NULL, 0 } };

    TRY(pawl__rocks_iter_open(move->outbox->db, NULL, OUTBOX_FAILED_ROWS, all, &iter, reterr));
    pawl_status status = pawl__rocks_iter_first(iter, reterr);
    for (; status == PAWL_OK && iter->valid; status = pawl__rocks_iter_next(iter, reterr)) {
        TRY(retry_row(move, iter, appended, &read, reterr));
        if (move->in_batch == RETRY_STEP) { /* whole events are in the batch */
            TRY(move_write(move, reterr));
            pawl__delivery_outbox_set_appended(move->outbox, appended);
        }
    }
    TRY(status);
    TRY(move_write(move, reterr));
    pawl__delivery_outbox_set_appended(move->outbox, appended);
    return PAWL_OK;
}

static pawl_status retry_all(struct outbox_store *store, uint64_t *ret_count, pawl_error *reterr)
{
    AUTO(move_done) struct move move;

    TRY(move_begin(&move, store, reterr));
    move.durable = true;
    struct outbox_appended appended = pawl__delivery_outbox_appended(move.outbox);
    TRY(retry_rows(&move, &appended, reterr));
    *ret_count = move.count;
    return PAWL_OK;
}

pawl_status pawl__delivery_outbox_rocksdb_retry(struct outbox_store *store,
                                                uint64_t *ret_count,
                                                pawl_error *reterr)
{
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);

    pawl__lock(&outbox->move_lock);
    pawl_status status = retry_all(store, ret_count, reterr);
    pawl__unlock(&outbox->move_lock);
    return status;
}

/* --- ids --- */

static pawl_status trim_row(struct move *move,
                            const struct pawl__rocks_iter *iter,
                            uint64_t number,
                            pawl_error *reterr)
{
    struct outbox_key entry = pawl__delivery_outbox_number_key(number);
    pawl_view view = pawl__delivery_outbox_key(&entry);
    struct pawl__rocks_value there;
    struct delivery_hash key;

    TRY(pawl__rocks_get_many(move->outbox->db, NULL, OUTBOX_ENTRIES, &view, 1, &there, reterr));
    bool is_there = there.found;
    pawl__rocks_value_done(&there);
    if (is_there) {
        return PAWL_OK; /* pending, kept or failed: it needs its id */
    }
    TRY(pawl__delivery_outbox_id_decode(number, iter->value, &key, reterr));
    struct outbox_key index = pawl__delivery_outbox_hash_key(&key);
    drop(move, OUTBOX_INDEX, &index);
    pawl__rocks_delete(move->batch, OUTBOX_IDS, iter->key);
    move->moved.trimmed++;
    return move_count(move, reterr);
}

static pawl_status trim_ids(struct outbox_store *store,
                            uint64_t number,
                            uint64_t max,
                            uint64_t *ret_count,
                            pawl_error *reterr)
{
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    AUTO(move_done) struct move move;
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);
    struct outbox_key end = pawl__delivery_outbox_number_key(number);
    const struct pawl__rocks_range range = { .until = pawl__delivery_outbox_key(&end) };
    uint64_t at = 0;

    TRY(move_begin(&move, store, reterr));
    TRY(pawl__rocks_iter_open(outbox->db, NULL, OUTBOX_IDS, range, &iter, reterr));
    pawl_status status = pawl__rocks_iter_first(iter, reterr);
    for (; status == PAWL_OK && iter->valid && move.count < max;
         status = pawl__rocks_iter_next(iter, reterr)) {
        TRY(pawl__delivery_outbox_parse_number(iter->key, &at, reterr));
        TRY(trim_row(&move, iter, at, reterr));
    }
    TRY(status);
    TRY(move_write(&move, reterr));
    *ret_count = move.count;
    return PAWL_OK;
}

pawl_status pawl__delivery_outbox_rocksdb_trim(struct outbox_store *store,
                                               uint64_t number,
                                               uint64_t max,
                                               uint64_t *ret_count,
                                               pawl_error *reterr)
{
    struct outbox_rocksdb *outbox = pawl__delivery_outbox_as_rocksdb(store);

    pawl__lock(&outbox->move_lock);
    pawl_status status = trim_ids(store, number, max, ret_count, reterr);
    pawl__unlock(&outbox->move_lock);
    return status;
}
