/* Marks, and what is counted of them. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "delivery/rocksdb/internal.h"

enum { MARK_STEP = 1000 };

/* LSNs that are marked together, and the rows that they have now. */
struct marks {
    size_t count;
    bool *found; /* this and the rest have `count` each */
    struct wal_fate_row *rows;
    struct wal_key *keys; /* of those that a look is about */
    pawl_view *views;
    struct pawl__rocks_value *values;
    size_t *at;
};

static void marks_free(struct marks *marks)
{
    free(marks->found);
    free(marks->rows);
    free(marks->keys);
    free(marks->views);
    free(marks->values);
    free(marks->at);
}

static pawl_status marks_make(struct marks *marks, size_t count, pawl_error *reterr)
{
    *marks = (struct marks){
        .count = count,
        .found = calloc(count, sizeof(*marks->found)),
        .rows = calloc(count, sizeof(*marks->rows)),
        .keys = calloc(count, sizeof(*marks->keys)),
        .views = calloc(count, sizeof(*marks->views)),
        .values = calloc(count, sizeof(*marks->values)),
        .at = calloc(count, sizeof(*marks->at)),
    };
    if (marks->found == NULL || marks->rows == NULL || marks->keys == NULL || marks->views == NULL
        || marks->values == NULL || marks->at == NULL) {
        marks_free(marks);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for marks of the WAL");
    }
    return PAWL_OK;
}

/* Looks for those that were not found yet under one prefix. */
static pawl_status find_under(struct rocksdb_wal *wal,
                              enum delivery_entry_state state,
                              const delivery_lsn *lsns,
                              struct marks *marks,
                              pawl_error *reterr)
{
    struct wal_key *keys = marks->keys;
    pawl_view *views = marks->views;
    size_t *at = marks->at;
    struct pawl__rocks_value *values = marks->values;
    size_t count = 0;
    pawl_status status = PAWL_OK;

    for (size_t i = 0; i < marks->count; i++) {
        if (!marks->found[i]) {
            keys[count] = pawl__delivery_wal_fate_key(state, lsns[i]);
            views[count] = pawl__delivery_wal_key(&keys[count]);
            at[count++] = i;
        }
    }
    if (count == 0) {
        return PAWL_OK;
    }
    TRY(pawl__rocks_get_many(wal->db, NULL, WAL_FATES, views, count, values, reterr));
    for (size_t i = 0; i < count; i++) {
        if (values[i].found && status == PAWL_OK) {
            marks->found[at[i]] = true;
            status = pawl__delivery_wal_fate_decode(
                state, lsns[at[i]], values[i].view, &marks->rows[at[i]], reterr);
        }
        pawl__rocks_value_done(&values[i]);
    }
    return status;
}

static pawl_status find_rows(struct rocksdb_wal *wal,
                             const delivery_lsn *lsns,
                             struct marks *marks,
                             pawl_error *reterr)
{
    for (int i = 0; i < DELIVERY_STATE_COUNT; i++) {
        TRY(find_under(wal, (enum delivery_entry_state)i, lsns, marks, reterr));
    }
    return PAWL_OK;
}

static pawl_status put_row(struct pawl__rocks_batch *batch,
                           delivery_lsn lsn,
                           const struct wal_fate_row *old,
                           const struct delivery_fate *fate,
                           pawl_error *reterr)
{
    char space[WAL_SMALL_BYTES_MAX];
    struct pawl__buf value = BUF_OVER(space);
    struct wal_fate_row row = *old;
    struct wal_key key = pawl__delivery_wal_fate_key(fate->state, lsn);

    row.fate = *fate;
    pawl__delivery_wal_fate_encode(lsn, &row, &value);
    TRY(pawl__buf_check(&value, "a row of the WAL", reterr));
    pawl__rocks_put(batch, WAL_FATES, pawl__delivery_wal_key(&key), pawl__buf_view(&value));
    return PAWL_OK;
}

static void delete_row(struct pawl__rocks_batch *batch,
                       delivery_lsn lsn,
                       enum delivery_entry_state state)
{
    struct wal_key key = pawl__delivery_wal_fate_key(state, lsn);

    pawl__rocks_delete(batch, WAL_FATES, pawl__delivery_wal_key(&key));
}

static void count_move(struct wal_marked *marked,
                       delivery_lsn lsn,
                       const struct wal_fate_row *old,
                       enum delivery_entry_state to)
{
    marked->entries[old->fate.state]--;
    marked->bytes[old->fate.state] -= old->bytes;
    marked->entries[to]++;
    marked->bytes[to] += old->bytes;
    marked->floors[to] = MIN(marked->floors[to], lsn);
}

static pawl_status fill_batch(struct pawl__rocks_batch *batch,
                              const struct marks *marks,
                              const delivery_lsn *lsns,
                              const struct delivery_fate *fates,
                              struct wal_counters *next,
                              pawl_error *reterr)
{
    /* All of one prefix, then all of the other: a memtable takes neighbours quickly. */
    for (size_t i = 0; i < marks->count; i++) {
        if (marks->found[i] && marks->rows[i].fate.state != fates[i].state) {
            delete_row(batch, lsns[i], marks->rows[i].fate.state);
        }
    }
    for (size_t i = 0; i < marks->count; i++) {
        if (marks->found[i]) {
            TRY(put_row(batch, lsns[i], &marks->rows[i], &fates[i], reterr));
            count_move(&next->marked, lsns[i], &marks->rows[i], fates[i].state);
        }
    }
    return pawl__delivery_rocksdb_put_counter(batch, WAL_MARKED, next, reterr);
}

static struct wal_counters begin_moves(struct rocksdb_wal *wal)
{
    pawl__lock(&wal->lock);
    wal->moves++;
    struct wal_counters counters = wal->counters;
    pawl__unlock(&wal->lock);
    return counters;
}

/* `marked` NULL: nothing has changed. */
static void end_moves(struct rocksdb_wal *wal, const struct wal_marked *marked)
{
    pawl__lock(&wal->lock);
    wal->moves++;
    if (marked != NULL) {
        wal->counters.marked = *marked;
    }
    pawl__unlock(&wal->lock);
}

static pawl_status write_marks(struct rocksdb_wal *wal,
                               struct pawl__rocks_batch *batch,
                               bool sync,
                               pawl_error *reterr)
{
    FAILPOINT("delivery.wal.mark.before", reterr);
    TRY(sync ? pawl__rocks_write(wal->db, batch, reterr)
             : pawl__rocks_write_unsynced(wal->db, batch, reterr));
    FAILPOINT("delivery.wal.mark.after", reterr);
    return PAWL_OK;
}

static pawl_status mark_step(struct rocksdb_wal *wal,
                             struct pawl__rocks_batch *batch,
                             const delivery_lsn *lsns,
                             const struct delivery_fate *fates,
                             size_t count,
                             bool sync,
                             pawl_error *reterr)
{
    struct marks marks;

    TRY(marks_make(&marks, count, reterr));
    struct wal_counters next = begin_moves(wal);
    pawl_status status = find_rows(wal, lsns, &marks, reterr);
    if (status == PAWL_OK) {
        status = fill_batch(batch, &marks, lsns, fates, &next, reterr);
    }
    if (status == PAWL_OK) {
        status = write_marks(wal, batch, sync, reterr);
    }
    end_moves(wal, status == PAWL_OK ? &next.marked : NULL);
    marks_free(&marks);
    return status;
}

/* A second mark of the same LSN must see the first: it begins the next step. */
static size_t step_of(const delivery_lsn *lsns, size_t count)
{
    size_t step = 1;

    while (step < MIN(count, (size_t)MARK_STEP) && lsns[step] > lsns[step - 1]) {
        step++; /* ascending, as apply marks them: none is there twice */
    }
    return step;
}

static pawl_status mark_locked(struct rocksdb_wal *wal,
                               const delivery_lsn *lsns,
                               const struct delivery_fate *fates,
                               size_t count,
                               pawl_error *reterr) REQUIRES_LOCK(wal->fates_lock)
{
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;

    TRY(pawl__rocks_batch_new(wal->db, &batch, reterr));
    for (size_t done = 0, step = 0; done < count; done += step) {
        step = step_of(&lsns[done], count - done);
        TRY(mark_step(wal, batch, &lsns[done], &fates[done], step, false, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__delivery_rocksdb_mark(struct delivery_wal *base,
                                        const delivery_lsn *lsns,
                                        const struct delivery_fate *fates,
                                        size_t count,
                                        pawl_error *reterr)
{
    struct rocksdb_wal *wal = as_rocksdb(base);

    pawl__lock(&wal->fates_lock);
    pawl_status status = mark_locked(wal, lsns, fates, count, reterr);
    pawl__unlock(&wal->fates_lock);
    return status;
}

pawl_status pawl__delivery_rocksdb_fate(struct rocksdb_wal *wal,
                                        delivery_lsn lsn,
                                        struct delivery_fate *ret_fate,
                                        bool *ret_found,
                                        pawl_error *reterr)
{
    struct marks marks;

    TRY(marks_make(&marks, 1, reterr));
    pawl_status status = find_rows(wal, &lsn, &marks, reterr);
    *ret_found = marks.found[0];
    *ret_fate = marks.rows[0].fate;
    marks_free(&marks);
    return status;
}

pawl_status pawl__delivery_rocksdb_mark_with(struct rocksdb_wal *wal,
                                             struct pawl__rocks_batch *batch,
                                             delivery_lsn lsn,
                                             const struct delivery_fate *fate,
                                             bool sync,
                                             pawl_error *reterr)
{
    return mark_step(wal, batch, &lsn, fate, 1, sync, reterr);
}

/* --- statistics --- */

struct look {
    struct wal_counters counters;
    uint64_t moves;
};

static struct look look(struct rocksdb_wal *wal)
{
    pawl__lock(&wal->lock);
    struct look now = { wal->counters, wal->moves };
    pawl__unlock(&wal->lock);
    return now;
}

/* The first LSN of a state from its floor on; `none` without any. */
static pawl_status find_first(struct pawl__rocks_iter *iter,
                              enum delivery_entry_state state,
                              const struct look *now,
                              delivery_lsn *ret_first,
                              pawl_error *reterr)
{
    struct wal_key from =
        pawl__delivery_wal_fate_key(state, MIN(now->counters.marked.floors[state], UINT64_MAX - 1));
    struct wal_key end = pawl__delivery_wal_fate_end(state);
    delivery_lsn first = now->counters.appended.last + 1;

    TRY(pawl__rocks_iter_seek(iter, pawl__delivery_wal_key(&from), reterr));
    if (iter->valid && iter->key.len > 0
        && memcmp(iter->key.data, end.bytes, MIN(iter->key.len, end.len)) < 0) {
        TRY(pawl__delivery_wal_parse_fate_key(iter->key, state, &first, reterr));
    }
    *ret_first = first;
    return PAWL_OK;
}

/* Nothing was moved since `now`, and nothing was about to be: the floors may rise to what was found. An entry that
 * was appended meanwhile is above them. */
static void raise_floors(struct rocksdb_wal *wal,
                         const struct look *now,
                         const delivery_lsn firsts[DELIVERY_STATE_COUNT])
{
    pawl__lock(&wal->lock);
    if (wal->moves == now->moves && now->moves % 2 == 0) {
        for (int i = 0; i < DELIVERY_STATE_COUNT; i++) {
            wal->counters.marked.floors[i] = firsts[i];
        }
    }
    pawl__unlock(&wal->lock);
}

static pawl_status find_firsts(struct rocksdb_wal *wal,
                               const struct look *now,
                               delivery_lsn *ret_first,
                               pawl_error *reterr)
{
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    const struct pawl__rocks_range all = { .from = { NULL, 0 } };
    delivery_lsn firsts[DELIVERY_STATE_COUNT];
    delivery_lsn lowest = UINT64_MAX;

    TRY(pawl__rocks_iter_open(wal->db, NULL, WAL_FATES, all, &iter, reterr));
    for (int i = 0; i < DELIVERY_STATE_COUNT; i++) {
        TRY(find_first(iter, (enum delivery_entry_state)i, now, &firsts[i], reterr));
        lowest = MIN(lowest, firsts[i]);
    }
    raise_floors(wal, now, firsts);
    *ret_first = MIN(lowest, now->counters.appended.last + 1);
    return PAWL_OK;
}

/* Entries can be read and marked a moment before the append that wrote them has returned and is counted. */
static uint64_t not_negative(uint64_t value)
{
    return value > (uint64_t)INT64_MAX ? 0 : value;
}

static void count_states(const struct wal_counters *counters, struct delivery_wal_stats *stats)
{
    for (int i = 0; i < DELIVERY_STATE_COUNT; i++) {
        stats->entries[i] = counters->marked.entries[i];
        stats->bytes[i] = counters->marked.bytes[i];
    }
    stats->entries[DELIVERY_PENDING] =
        not_negative(stats->entries[DELIVERY_PENDING] + counters->appended.entries);
    stats->bytes[DELIVERY_PENDING] =
        not_negative(stats->bytes[DELIVERY_PENDING] + counters->appended.bytes);
    stats->entries[DELIVERY_CONFIRMED] -= counters->cleaned.entries;
    stats->bytes[DELIVERY_CONFIRMED] -= counters->cleaned.bytes;
}

static pawl_status index_size(struct rocksdb_wal *wal,
                              struct delivery_wal_stats *stats,
                              pawl_error *reterr)
{
    uint64_t files = 0;
    uint64_t memory = 0;

    TRY(pawl__rocks_property(
        wal->db, WAL_INDEX, "rocksdb.estimate-num-keys", &stats->index_entries, reterr));
    TRY(pawl__rocks_property(wal->db, WAL_INDEX, "rocksdb.total-sst-files-size", &files, reterr));
    TRY(pawl__rocks_property(
        wal->db, WAL_INDEX, "rocksdb.cur-size-all-mem-tables", &memory, reterr));
    stats->index_bytes = files + memory;
    return PAWL_OK;
}

pawl_status pawl__delivery_rocksdb_stats(struct delivery_wal *base,
                                         struct delivery_wal_stats *ret_stats,
                                         pawl_error *reterr)
{
    struct rocksdb_wal *wal = as_rocksdb(base);
    struct look now = look(wal);
    struct delivery_wal_stats stats = {
        .last = now.counters.appended.last,
        .cleaned = now.counters.cleaned.cleaned,
    };

    count_states(&now.counters, &stats);
    TRY(index_size(wal, &stats, reterr));
    TRY(find_firsts(wal, &now, &stats.first, reterr));
    *ret_stats = stats;
    return PAWL_OK;
}

void pawl__delivery_rocksdb_held_bytes(struct delivery_wal *base,
                                       uint64_t ret_bytes[DELIVERY_STATE_COUNT])
{
    struct wal_counters counters = pawl__delivery_rocksdb_counters(as_rocksdb(base));
    struct delivery_wal_stats stats = { 0 };

    count_states(&counters, &stats);
    memcpy(ret_bytes, stats.bytes, sizeof(stats.bytes));
}
