#include "delivery/rocksdb/wal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "delivery/rocksdb/internal.h"
#include "delivery/rocksdb/row.h"

struct wal_counters pawl__delivery_rocksdb_counters(struct rocksdb_wal *wal)
{
    pawl__lock(&wal->lock);
    struct wal_counters counters = wal->counters;
    pawl__unlock(&wal->lock);
    return counters;
}

static void set_epoch(struct rocksdb_wal *wal, uint64_t epoch)
{
    pawl__lock(&wal->lock);
    wal->epoch = epoch;
    pawl__unlock(&wal->lock);
}

/* --- rows of family meta --- */

static void put_meta_row(struct pawl__rocks_batch *batch, const char *name, struct pawl__buf *value)
{
    struct wal_key key = pawl__delivery_wal_text_key(name);

    pawl__rocks_put(batch, WAL_META, pawl__delivery_wal_key(&key), pawl__buf_view(value));
}

/* *ret_found false: it is not there. */
static pawl_status get_meta_row(struct rocksdb_wal *wal,
                                const char *name,
                                struct pawl__buf *value,
                                bool *ret_found,
                                pawl_error *reterr)
{
    struct wal_key key = pawl__delivery_wal_text_key(name);
    pawl_view view = pawl__delivery_wal_key(&key);
    struct pawl__rocks_value row;

    TRY(pawl__rocks_get_many(wal->db, NULL, WAL_META, &view, 1, &row, reterr));
    *ret_found = row.found;
    pawl__buf_clear(value);
    pawl__buf_add(value, row.view);
    pawl__rocks_value_done(&row);
    return pawl__buf_check(value, "a row of the WAL's metadata", reterr);
}

pawl_status pawl__delivery_rocksdb_put_counter(struct pawl__rocks_batch *batch,
                                               enum wal_counter counter,
                                               const struct wal_counters *counters,
                                               pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf value = BUF_INIT(WAL_SMALL_BYTES_MAX);

    pawl__delivery_wal_counter_encode(counter, counters, &value);
    TRY(pawl__buf_check(&value, "a row of counters", reterr));
    put_meta_row(batch, pawl__delivery_wal_counter_name(counter), &value);
    return PAWL_OK;
}

static pawl_status put_meta(struct pawl__rocks_batch *batch,
                            const struct delivery_wal_meta *meta,
                            pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf value = BUF_INIT(WAL_SMALL_BYTES_MAX);

    pawl__delivery_wal_meta_encode(meta, &value);
    TRY(pawl__buf_check(&value, "the row 'meta'", reterr));
    put_meta_row(batch, "meta", &value);
    return PAWL_OK;
}

static pawl_status read_meta(struct delivery_wal *base,
                             struct delivery_wal_meta *ret_meta,
                             bool *ret_found,
                             pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf value = BUF_INIT(WAL_SMALL_BYTES_MAX);
    struct delivery_wal_meta meta = { .epoch = 0 };
    bool found = false;

    TRY(get_meta_row(as_rocksdb(base), "meta", &value, &found, reterr));
    if (found) {
        TRY(pawl__delivery_wal_meta_decode(pawl__buf_view(&value), &meta, reterr));
    }
    *ret_meta = meta;
    *ret_found = found;
    return PAWL_OK;
}

static pawl_status write_meta(struct delivery_wal *base,
                              const struct delivery_wal_meta *meta,
                              pawl_error *reterr)
{
    struct rocksdb_wal *wal = as_rocksdb(base);
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;

    TRY(pawl__rocks_batch_new(wal->db, &batch, reterr));
    TRY(put_meta(batch, meta, reterr));
    FAILPOINT("delivery.wal.meta.before", reterr);
    TRY(pawl__rocks_write(wal->db, batch, reterr));
    set_epoch(wal, meta->epoch);
    FAILPOINT("delivery.wal.meta.after", reterr);
    return PAWL_OK;
}

/* --- appending --- */

static pawl_status put_fate(struct pawl__rocks_batch *batch,
                            const struct delivery_entry *entry,
                            struct pawl__buf *value,
                            pawl_error *reterr)
{
    struct wal_key key = pawl__delivery_wal_fate_key(DELIVERY_PENDING, entry->lsn);
    struct wal_fate_row row = {
        .bytes = pawl__delivery_entry_bytes(entry),
        .by_place = entry->by_place,
        .key = entry->key,
    };

    pawl__delivery_wal_fate_encode(entry->lsn, &row, value);
    TRY(pawl__buf_check(value, "a row of the WAL", reterr));
    pawl__rocks_put(batch, WAL_FATES, pawl__delivery_wal_key(&key), pawl__buf_view(value));
    return PAWL_OK;
}

static pawl_status put_entry(struct pawl__rocks_batch *batch,
                             const struct delivery_entry *entry,
                             struct pawl__buf *value,
                             pawl_error *reterr)
{
    struct wal_key key = pawl__delivery_wal_entry_key(entry->lsn);

    pawl__delivery_wal_entry_encode(entry, value);
    TRY(pawl__buf_check(value, "an entry of the WAL", reterr));
    pawl__rocks_put(batch, WAL_ENTRIES, pawl__delivery_wal_key(&key), pawl__buf_view(value));
    return put_fate(batch, entry, value, reterr);
}

static pawl_status put_entries(struct pawl__rocks_batch *batch,
                               const struct delivery_entry *entries,
                               size_t count,
                               uint64_t epoch,
                               struct wal_appended *appended,
                               pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf value = BUF_INIT(WAL_VALUE_BYTES_MAX);

    for (size_t i = 0; i < count; i++) {
        const struct delivery_entry *entry = &entries[i];
        struct wal_index_row row = {
            .by_place = entry->by_place,
            .epoch = epoch,
            .lsn = entry->lsn,
            .payload_hash = entry->payload_hash,
        };
        if (entry->lsn <= appended->last || entry->lsn == UINT64_MAX) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "LSN %" PRIu64 " is not above %" PRIu64 ", the last of the WAL",
                              entry->lsn,
                              appended->last);
        }
        TRY(put_entry(batch, entry, &value, reterr));
        TRY(pawl__delivery_rocksdb_put_index_row(batch, &entry->key, &row, reterr));
        appended->last = entry->lsn;
        appended->entries++;
        appended->bytes += pawl__delivery_entry_bytes(entry);
    }
    return PAWL_OK;
}

static pawl_status append(struct delivery_wal *base,
                          const struct delivery_entry *entries,
                          size_t count,
                          const struct delivery_wal_meta *meta,
                          pawl_error *reterr)
{
    struct rocksdb_wal *wal = as_rocksdb(base);
    struct wal_counters next = pawl__delivery_rocksdb_counters(wal);
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;

    TRY(pawl__rocks_batch_new(wal->db, &batch, reterr));
    TRY(put_entries(batch, entries, count, meta->epoch, &next.appended, reterr));
    TRY(pawl__delivery_rocksdb_put_counter(batch, WAL_APPENDED, &next, reterr));
    TRY(put_meta(batch, meta, reterr));
    FAILPOINT("delivery.wal.append.before", reterr);
    TRY(pawl__rocks_write(wal->db, batch, reterr));
    pawl__lock(&wal->lock);
    wal->counters.appended = next.appended;
    wal->epoch = meta->epoch;
    pawl__unlock(&wal->lock);
    FAILPOINT("delivery.wal.append.after", reterr);
    return PAWL_OK;
}

/* --- opening and closing --- */

static pawl_status open_engine(struct rocksdb_wal *wal,
                               const char *dir,
                               const struct delivery_rocksdb_options *options,
                               pawl_error *reterr)
{
    static const char *const families[WAL_FAMILY_COUNT] = {
        [WAL_META] = "meta",
        [WAL_ENTRIES] = "entries",
        [WAL_FATES] = "fates",
        [WAL_INDEX] = "index",
    };
    struct pawl__rocks_options native = pawl__delivery_rocksdb_engine_options(options);

    native.families = families;
    native.family_count = WAL_FAMILY_COUNT;
    return pawl__rocks_open(dir, &native, &wal->db, reterr);
}

static pawl_status refuse_rows(struct rocksdb_wal *wal, enum wal_family family, pawl_error *reterr)
{
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    const struct pawl__rocks_range all = { .from = { NULL, 0 } };

    TRY(pawl__rocks_iter_open(wal->db, NULL, family, all, &iter, reterr));
    TRY(pawl__rocks_iter_first(iter, reterr));
    return iter->valid ? pawl__fail(reterr, PAWL_CORRUPT, "the store has rows, but no row 'format'")
                       : PAWL_OK;
}

/* A new store, or one whose creation was interrupted here. */
static pawl_status write_format(struct rocksdb_wal *wal, pawl_error *reterr)
{
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    AUTO(pawl__buf_done) struct pawl__buf value = BUF_INIT(WAL_SMALL_BYTES_MAX);

    for (int i = 0; i < WAL_FAMILY_COUNT; i++) {
        TRY(refuse_rows(wal, (enum wal_family)i, reterr));
    }
    TRY(pawl__rocks_batch_new(wal->db, &batch, reterr));
    pawl__delivery_wal_format_encode(WAL_FORMAT, &value);
    TRY(pawl__buf_check(&value, "the row 'format'", reterr));
    put_meta_row(batch, "format", &value);
    FAILPOINT("delivery.wal.format.before", reterr);
    TRY(pawl__rocks_write(wal->db, batch, reterr));
    FAILPOINT("delivery.wal.format.after", reterr);
    return PAWL_OK;
}

static pawl_status check_format(struct rocksdb_wal *wal, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf value = BUF_INIT(WAL_SMALL_BYTES_MAX);
    bool found = false;

    TRY(get_meta_row(wal, "format", &value, &found, reterr));
    return found ? pawl__delivery_wal_format_decode(pawl__buf_view(&value), reterr)
                 : write_format(wal, reterr);
}

/* A row that is missing was never written: its call was never made. But a WAL with entries has appended some. */
static pawl_status load_counters(struct rocksdb_wal *wal, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf value = BUF_INIT(WAL_SMALL_BYTES_MAX);
    bool found = false;

    for (int i = 0; i < WAL_COUNTER_COUNT; i++) {
        enum wal_counter counter = (enum wal_counter)i;
        TRY(get_meta_row(wal, pawl__delivery_wal_counter_name(counter), &value, &found, reterr));
        if (found) {
            TRY(pawl__delivery_wal_counter_decode(
                counter, pawl__buf_view(&value), &wal->counters, reterr));
        } else if (counter == WAL_APPENDED) {
            TRY(refuse_rows(wal, WAL_ENTRIES, reterr));
        }
    }
    return PAWL_OK;
}

static pawl_status load(struct rocksdb_wal *wal, pawl_error *reterr)
{
    struct delivery_wal_meta meta;
    bool found = false;

    TRY(check_format(wal, reterr));
    TRY(load_counters(wal, reterr));
    TRY(read_meta(&wal->base, &meta, &found, reterr));
    wal->epoch = meta.epoch;
    return PAWL_OK;
}

static void wal_free(struct rocksdb_wal *wal)
{
    pawl__rocks_close(wal->db);
    pawl__lock_done(&wal->fates_lock);
    pawl__lock_done(&wal->files_lock);
    pawl__lock_done(&wal->lock);
    free(wal);
}

static void wal_free_p(struct rocksdb_wal **wal)
{
    if (*wal != NULL) {
        wal_free(*wal);
    }
}

/* The engine does not flush by itself, and would read its log at the next open. A disk that does not answer keeps
 * the handle for ever: the process ends without it. */
static void close_wal(struct delivery_wal *base)
{
    struct rocksdb_wal *wal = as_rocksdb(base);
    int64_t deadline_ns = pawl__monotonic_ns(wal->clock) + wal->close_timeout_ns;

    if (pawl__rocks_flush_last(wal->db, deadline_ns, NULL) == PAWL_OK) {
        wal_free(wal);
    }
}

static const struct delivery_wal_ops ops = {
    .read_meta = read_meta,
    .write_meta = write_meta,
    .append = append,
    .lookup = pawl__delivery_rocksdb_lookup,
    .read = pawl__delivery_rocksdb_read,
    .mark = pawl__delivery_rocksdb_mark,
    .decide = pawl__delivery_rocksdb_decide,
    .decided = pawl__delivery_rocksdb_decided,
    .read_decision = pawl__delivery_rocksdb_read_decision,
    .put_index = pawl__delivery_rocksdb_put_index,
    .reindex = pawl__delivery_rocksdb_reindex,
    .clean_up = pawl__delivery_rocksdb_clean_up,
    .stats = pawl__delivery_rocksdb_stats,
    .held_bytes = pawl__delivery_rocksdb_held_bytes,
    .close = close_wal,
};

static struct rocksdb_wal *wal_new(const struct delivery_rocksdb_options *options)
{
    struct rocksdb_wal *wal = calloc(1, sizeof(*wal));

    if (wal != NULL) {
        wal->base.ops = &ops;
        pawl__lock_init(&wal->fates_lock);
        pawl__lock_init(&wal->files_lock);
        pawl__lock_init(&wal->lock);
        wal->clock = pawl__clock_or_real(options->clock);
        wal->close_timeout_ns = options->close_timeout_ns != 0 ? options->close_timeout_ns
                                                               : DELIVERY_WAL_CLOSE_NS_DEFAULT;
    }
    return wal;
}

static pawl_status open_wal(const char *dir,
                            const struct delivery_rocksdb_options *options,
                            struct delivery_wal **ret_wal,
                            pawl_error *reterr)
{
    AUTO(wal_free_p) struct rocksdb_wal *wal = wal_new(options);

    TRY(pawl__check_memory(wal, "a WAL", reterr));
    TRY(pawl__delivery_row_refuse_foreign(dir, "WAL", reterr));
    TRY(open_engine(wal, dir, options, reterr));
    TRY(load(wal, reterr));
    *ret_wal = &STEAL(wal)->base;
    return PAWL_OK;
}

pawl_status pawl__delivery_rocksdb_wal_open(const char *dir,
                                            const struct delivery_rocksdb_options *options,
                                            struct delivery_wal **ret_wal,
                                            pawl_error *reterr)
{
    static const struct delivery_rocksdb_options defaults = { 0 };

    if (dir == NULL || ret_wal == NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "a WAL needs a directory");
    }
    pawl_status status = open_wal(dir, options == NULL ? &defaults : options, ret_wal, reterr);
    return status == PAWL_OK ? PAWL_OK
                             : pawl__fail_context(reterr, status, "open consumer WAL '%s'", dir);
}
