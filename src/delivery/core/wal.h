/* The consumer WAL of one pipeline: entries by LSN, an index from transaction ids to LSNs, and a little about
 * itself. Intake appends while apply reads: any thread, all at once, one writer per call kind.
 *
 * "Durable" means: on disk when the call returns, survives a power cut. After a failed durable call nobody knows
 * what is on disk: the pipeline closes the WAL, opens it again and recovers. */
#ifndef PAWL_DELIVERY_CORE_WAL_H
#define PAWL_DELIVERY_CORE_WAL_H

#include "base/core/macros.h"
#include "delivery/core/failed.h"

struct delivery_wal;

enum { DELIVERY_HOLDER_SIZE = 64 };

/* The stream lost its tail, or the WAL was adopted: what entries up to `lsn` say about places is about messages that
 * are not there any more, and no cursor row up to this fence and version may stand above `sequence`. */
struct delivery_rewound {
    delivery_lsn lsn; /* 0: never */
    uint64_t sequence;
    uint64_t fence;
    uint64_t version;
};

/* What the WAL knows of itself and of its sink. */
struct delivery_wal_meta {
    struct delivery_uuid wal_id;
    struct delivery_uuid sink_id;
    uint64_t epoch;
    uint64_t fence;       /* of the newest opener: the token of its lease */
    delivery_lsn applied; /* the highest that the sink was seen to have applied */
    bool restart_source;  /* the consumer has to be made anew before anything is fetched */
    struct delivery_rewound rewound;
    uint64_t doubt_to;            /* see position.h */
    uint64_t begun_at;            /* the last sequence that nobody promised to deliver */
    int64_t running_ns;           /* as of the last batch */
    struct delivery_place stream; /* the newest place from which everything was appended */
    char lease_holder[DELIVERY_HOLDER_SIZE]; /* for people */
    int64_t lease_until_us;                  /* wall, for people: decides nothing */
};

struct delivery_wal_stats {
    delivery_lsn first; /* the lowest that is still there; last + 1 without any */
    delivery_lsn last;  /* the highest ever appended, also after clean_up; 0: none */
    delivery_lsn
        cleaned; /* up to here clean_up has forgotten entries; lost with it or not at all */
    uint64_t entries[DELIVERY_STATE_COUNT];
    uint64_t bytes[DELIVERY_STATE_COUNT];
    uint64_t index_entries; /* about: a store may estimate it */
    uint64_t index_bytes;
};

/* What the index says about a key. */
struct delivery_hit {
    bool found;
    uint64_t epoch;   /* older than the WAL's: it speaks of another sink, and counts for nothing */
    delivery_lsn lsn; /* 0: from a sink's row, not from an entry */
    struct delivery_hash payload_hash;
};

struct delivery_key {
    struct delivery_hash key;
    struct delivery_hash payload_hash;
};

/* Which entries a read wants. */
struct delivery_range {
    delivery_lsn from;
    delivery_lsn to; /* inclusive */
    unsigned states; /* bits 1 << enum delivery_entry_state */
    size_t entries_max;
    size_t bytes_max; /* a page ends after the entry that exceeds it */
};
#define DELIVERY_STATES_ALL 7U

struct delivery_wal_ops {
    /* *ret_found false: the WAL is new. */
    pawl_status (*read_meta)(struct delivery_wal *wal,
                             struct delivery_wal_meta *ret_meta,
                             bool *ret_found,
                             pawl_error *reterr);
    pawl_status (*write_meta)(struct delivery_wal *wal, /* durable */
                              const struct delivery_wal_meta *meta,
                              pawl_error *reterr);

    /* All or nothing, durable: the entries, pending, with LSNs above every other, and their index entries under
     * meta's epoch. An entry by place above meta's stream place needs no index entry as long as lookup finds it
     * among the entries. One fsync. */
    pawl_status (*append)(struct delivery_wal *wal,
                          const struct delivery_entry *entries,
                          size_t count,
                          const struct delivery_wal_meta *meta,
                          pawl_error *reterr);

    /* One hit per key: from the index under the current epoch, else from an entry that is still there, else from the
     * index under an older one. */
    pawl_status (*lookup)(struct delivery_wal *wal,
                          const struct delivery_key *keys,
                          size_t count,
                          struct delivery_hit *ret_hits,
                          pawl_error *reterr);

    /* In LSN order. Fewer than entries_max and no more than bytes_max: the range ends here. */
    pawl_status (*read)(struct delivery_wal *wal,
                        const struct delivery_range *range,
                        struct delivery_page *page,
                        pawl_error *reterr);

    /* New fates of entries that are there; those that are not are left out. Not durable by itself: lost, it is
     * found out again from the sink. */
    pawl_status (*mark)(struct delivery_wal *wal,
                        const delivery_lsn *lsns,
                        const struct delivery_fate *fates,
                        size_t count,
                        pawl_error *reterr);

    /* Index entries for what a sink holds, under `epoch`. Durable with the next write_meta or append. */
    pawl_status (*put_index)(struct delivery_wal *wal,
                             const struct delivery_key *keys,
                             size_t count,
                             uint64_t epoch,
                             pawl_error *reterr);

    /* Puts every entry that is still there into the index under `epoch`. As above. */
    pawl_status (*reindex)(struct delivery_wal *wal, uint64_t epoch, pawl_error *reterr);

    /* What people decided about entries: kept with them, in place of earlier decisions, and the entries become
     * confirmed. Entries that are not there are left out. Durable; each by itself, one fsync. */
    pawl_status (*decide)(struct delivery_wal *wal,
                          const struct delivery_decision *decisions,
                          size_t count,
                          pawl_error *reterr);

    /* LSNs above `after` of entries that have a decision, ascending, up to `room`. */
    pawl_status (*decided)(struct delivery_wal *wal,
                           delivery_lsn after,
                           delivery_lsn *ret_lsns,
                           size_t room,
                           size_t *ret_count,
                           pawl_error *reterr);

    /* Texts are in the arena. *ret_found false: nobody has decided. */
    pawl_status (*read_decision)(struct delivery_wal *wal,
                                 delivery_lsn lsn,
                                 struct pawl__arena *arena,
                                 struct delivery_decision *ret_decision,
                                 bool *ret_found,
                                 pawl_error *reterr);

    /* Forgets confirmed entries up to `to`, and the decisions about them. Pending and failed ones stay: failed_events
     * can be made anew from them until somebody has decided. Index entries stay. Need not be durable. */
    pawl_status (*clean_up)(struct delivery_wal *wal, delivery_lsn to, pawl_error *reterr);

    pawl_status (*stats)(struct delivery_wal *wal,
                         struct delivery_wal_stats *ret_stats,
                         pawl_error *reterr);

    /* `bytes` of the statistics alone: asked before every batch, so it costs nothing. */
    void (*held_bytes)(struct delivery_wal *wal, uint64_t ret_bytes[DELIVERY_STATE_COUNT]);

    void (*close)(struct delivery_wal *wal);
};

struct delivery_wal {
    const struct delivery_wal_ops *ops;
};

#endif
