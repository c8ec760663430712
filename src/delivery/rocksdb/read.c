/* Reading in LSN order: the rows of family fates, from three prefixes, walk beside the entries that they belong to.
 *
 *   fates     pending:5  pending:6  confirmed:7  pending:9
 *   entries   5          6          7            9
 *
 * The two must agree. A fate row without its entry is CORRUPT, and so is an entry without a fate row, but up to the
 * LSN that clean_up has reached: there it is a forgotten entry whose space has not been given back yet. Where
 * a read wants only some states it jumps over the entries of the others, and cannot notice one that lost its row. */
#include <inttypes.h>

#include "base/core/error.h"
#include "delivery/rocksdb/internal.h"

struct walk {
    const struct delivery_range *range;
    struct pawl__rocks_snapshot *snapshot;
    struct pawl__rocks_iter *fates[DELIVERY_STATE_COUNT];
    delivery_lsn lsns[DELIVERY_STATE_COUNT]; /* where they stand; UINT64_MAX: at their end */
    struct pawl__rocks_iter *entries;
    delivery_lsn entry;   /* where it stands; UINT64_MAX: at its end */
    bool jumps;           /* entries before the next wanted one were not looked at */
    delivery_lsn cleaned; /* as of the snapshot */
    struct pawl__arena arena;
};

static void walk_done(struct walk *walk)
{
    for (int i = 0; i < DELIVERY_STATE_COUNT; i++) {
        pawl__rocks_iter_close(walk->fates[i]);
    }
    pawl__rocks_iter_close(walk->entries);
    pawl__rocks_snapshot_close(walk->snapshot);
    pawl__arena_done(&walk->arena);
}

static pawl_status open_fates(struct rocksdb_wal *wal,
                              struct walk *walk,
                              enum delivery_entry_state state,
                              delivery_lsn floor,
                              pawl_error *reterr)
{
    const struct delivery_range *range = walk->range;
    struct wal_key from = pawl__delivery_wal_fate_key(state, MAX(range->from, floor));
    struct wal_key until = range->to == UINT64_MAX
                               ? pawl__delivery_wal_fate_end(state)
                               : pawl__delivery_wal_fate_key(state, range->to + 1);
    struct pawl__rocks_range rows = { pawl__delivery_wal_key(&from),
                                      pawl__delivery_wal_key(&until) };

    return pawl__rocks_iter_open(
        wal->db, walk->snapshot, WAL_FATES, rows, &walk->fates[state], reterr);
}

static pawl_status open_entries(struct rocksdb_wal *wal, struct walk *walk, pawl_error *reterr)
{
    struct wal_key from = pawl__delivery_wal_entry_key(walk->range->from);
    struct wal_key until = pawl__delivery_wal_entry_key(
        walk->range->to == UINT64_MAX ? UINT64_MAX : walk->range->to + 1);
    struct pawl__rocks_range rows = { pawl__delivery_wal_key(&from),
                                      pawl__delivery_wal_key(&until) };

    return pawl__rocks_iter_open(
        wal->db, walk->snapshot, WAL_ENTRIES, rows, &walk->entries, reterr);
}

/* The counters that this walk needs, as of its snapshot: those in memory may be of a later moment. */
static pawl_status read_counters(struct rocksdb_wal *wal,
                                 struct walk *walk,
                                 struct wal_counters *counters,
                                 pawl_error *reterr)
{
    static const enum wal_counter needed[] = { WAL_MARKED, WAL_CLEANED };
    struct wal_key keys[COUNT_OF(needed)];
    pawl_view views[COUNT_OF(needed)];
    struct pawl__rocks_value values[COUNT_OF(needed)];
    pawl_status status = PAWL_OK;

    for (size_t i = 0; i < COUNT_OF(needed); i++) {
        keys[i] = pawl__delivery_wal_text_key(pawl__delivery_wal_counter_name(needed[i]));
        views[i] = pawl__delivery_wal_key(&keys[i]);
    }
    TRY(pawl__rocks_get_many(
        wal->db, walk->snapshot, WAL_META, views, COUNT_OF(needed), values, reterr));
    for (size_t i = 0; i < COUNT_OF(needed); i++) {
        if (values[i].found && status == PAWL_OK) {
            status = pawl__delivery_wal_counter_decode(needed[i], values[i].view, counters, reterr);
        }
        pawl__rocks_value_done(&values[i]);
    }
    walk->cleaned = MIN(counters->cleaned.cleaned, UINT64_MAX - 1);
    return status;
}

/* All of it sees one moment. */
static pawl_status walk_open_locked(struct rocksdb_wal *wal, struct walk *walk, pawl_error *reterr)
    REQUIRES_LOCK(wal->files_lock)
{
    struct wal_counters counters = { .appended = { 0 } };

    TRY(pawl__rocks_snapshot_open(wal->db, &walk->snapshot, reterr));
    TRY(read_counters(wal, walk, &counters, reterr));
    for (int i = 0; i < DELIVERY_STATE_COUNT; i++) {
        TRY(open_fates(wal, walk, (enum delivery_entry_state)i, counters.marked.floors[i], reterr));
    }
    return open_entries(wal, walk, reterr);
}

static pawl_status walk_open(struct rocksdb_wal *wal, struct walk *walk, pawl_error *reterr)
{
    pawl__lock(&wal->files_lock);
    pawl_status status = walk_open_locked(wal, walk, reterr);
    pawl__unlock(&wal->files_lock);
    return status;
}

/* --- where the iterators stand --- */

static pawl_status note_fate(struct walk *walk, enum delivery_entry_state state, pawl_error *reterr)
{
    const struct pawl__rocks_iter *iter = walk->fates[state];

    walk->lsns[state] = UINT64_MAX;
    return iter->valid
               ? pawl__delivery_wal_parse_fate_key(iter->key, state, &walk->lsns[state], reterr)
               : PAWL_OK;
}

static pawl_status note_entry(struct walk *walk, pawl_error *reterr)
{
    walk->entry = UINT64_MAX;
    return walk->entries->valid
               ? pawl__delivery_wal_parse_entry_key(walk->entries->key, &walk->entry, reterr)
               : PAWL_OK;
}

static pawl_status seek_entry(struct walk *walk, delivery_lsn lsn, pawl_error *reterr)
{
    struct wal_key key = pawl__delivery_wal_entry_key(lsn);

    TRY(pawl__rocks_iter_seek(walk->entries, pawl__delivery_wal_key(&key), reterr));
    return note_entry(walk, reterr);
}

static pawl_status walk_begin(struct walk *walk, pawl_error *reterr)
{
    for (int i = 0; i < DELIVERY_STATE_COUNT; i++) {
        TRY(pawl__rocks_iter_first(walk->fates[i], reterr));
        TRY(note_fate(walk, (enum delivery_entry_state)i, reterr));
    }
    walk->jumps = walk->range->states != DELIVERY_STATES_ALL;
    return walk->jumps ? PAWL_OK : seek_entry(walk, walk->range->from, reterr);
}

/* The next fate row. False: there is none. */
static bool next_row(const struct walk *walk, enum delivery_entry_state *ret_state)
{
    enum delivery_entry_state lowest = DELIVERY_PENDING;

    for (int i = 1; i < DELIVERY_STATE_COUNT; i++) {
        if (walk->lsns[i] < walk->lsns[lowest]) {
            lowest = (enum delivery_entry_state)i;
        }
    }
    *ret_state = lowest;
    return walk->lsns[lowest] != UINT64_MAX;
}

static pawl_status refuse_twins(const struct walk *walk,
                                enum delivery_entry_state state,
                                pawl_error *reterr)
{
    for (int i = 0; i < DELIVERY_STATE_COUNT; i++) {
        if (i != (int)state && walk->lsns[i] == walk->lsns[state]) {
            return pawl__fail(
                reterr,
                PAWL_CORRUPT,
                "LSN %" PRIu64 " is both %s and %s",
                walk->lsns[state],
                pawl__delivery_state_name((enum delivery_entry_state)MIN(i, (int)state)),
                pawl__delivery_state_name((enum delivery_entry_state)MAX(i, (int)state)));
        }
    }
    return PAWL_OK;
}

/* The entries iterator to where an entry of this LSN must be; UINT64_MAX: no more should come. */
static pawl_status reach_entry(struct walk *walk, delivery_lsn lsn, pawl_error *reterr)
{
    if (walk->jumps || (walk->entry < lsn && walk->entry <= walk->cleaned)) {
        /* Forgotten entries may be many; what follows them counts again. */
        TRY(seek_entry(walk, walk->jumps ? lsn : MIN(lsn, walk->cleaned + 1), reterr));
    }
    if (walk->entry < lsn) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "LSN %" PRIu64
                          " has an entry, but is neither pending, confirmed nor failed",
                          walk->entry);
    }
    if (walk->entry != lsn) {
        return pawl__fail(reterr, PAWL_CORRUPT, "the entry of LSN %" PRIu64 " is not there", lsn);
    }
    walk->jumps = false;
    return PAWL_OK;
}

static pawl_status add_entry(struct walk *walk,
                             enum delivery_entry_state state,
                             struct delivery_page *page,
                             pawl_error *reterr)
{
    delivery_lsn lsn = walk->lsns[state];
    struct wal_fate_row row;
    struct delivery_entry entry;

    TRY(pawl__delivery_wal_fate_decode(state, lsn, walk->fates[state]->value, &row, reterr));
    TRY(reach_entry(walk, lsn, reterr));
    pawl__arena_clear(&walk->arena);
    TRY(pawl__delivery_wal_entry_decode(lsn, walk->entries->value, &walk->arena, &entry, reterr));
    entry.fate = row.fate;
    TRY(pawl__delivery_page_add(page, &entry, reterr));
    TRY(pawl__rocks_iter_next(walk->entries, reterr));
    return note_entry(walk, reterr);
}

static bool is_full(const struct delivery_page *page, const struct delivery_range *range)
{
    return page->count >= range->entries_max || page->bytes > range->bytes_max;
}

/* All states were wanted, and every row has had its entry. */
static pawl_status check_end(struct walk *walk, pawl_error *reterr)
{
    if (!walk->jumps && walk->entry <= walk->cleaned) {
        TRY(seek_entry(walk, walk->cleaned + 1, reterr));
    }
    return walk->jumps || walk->entry == UINT64_MAX ? PAWL_OK
                                                    : reach_entry(walk, UINT64_MAX, reterr);
}

static pawl_status fill_page(struct walk *walk, struct delivery_page *page, pawl_error *reterr)
{
    enum delivery_entry_state state = DELIVERY_PENDING;

    TRY(walk_begin(walk, reterr));
    while (next_row(walk, &state)) {
        if (is_full(page, walk->range)) {
            return PAWL_OK;
        }
        TRY(refuse_twins(walk, state, reterr));
        if ((walk->range->states & (1U << (unsigned)state)) != 0) {
            TRY(add_entry(walk, state, page, reterr));
        } else {
            walk->jumps = true;
        }
        TRY(pawl__rocks_iter_next(walk->fates[state], reterr));
        TRY(note_fate(walk, state, reterr));
    }
    return is_full(page, walk->range) ? PAWL_OK : check_end(walk, reterr);
}

pawl_status pawl__delivery_rocksdb_read(struct delivery_wal *base,
                                        const struct delivery_range *range,
                                        struct delivery_page *page,
                                        pawl_error *reterr)
{
    AUTO(walk_done) struct walk walk = { .range = range, .entry = UINT64_MAX };

    pawl__delivery_page_clear(page);
    if (range->from > range->to) {
        return PAWL_OK;
    }
    TRY(walk_open(as_rocksdb(base), &walk, reterr));
    return fill_page(&walk, page, reterr);
}
