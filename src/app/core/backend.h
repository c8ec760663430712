/* Where an application is stored: ordered keys in families, written in atomic batches that may require a
 * key to be new. Backends: memory, RocksDB, PostgreSQL.
 *
 * Threads: any, all at the same time. A key has one writer, the thread that owns its partition: so a
 * backend may read first and write then. */
#ifndef PAWL_APP_CORE_BACKEND_H
#define PAWL_APP_CORE_BACKEND_H

#include "app/core/keys.h"
#include "base/core/arena.h"
#include "base/core/macros.h"
#include "engine/open.h"

enum app_mode {
    APP_PUT,    /* whatever is there */
    APP_INSERT, /* nothing may be there */
    APP_DELETE, /* nothing is there afterwards; the value does not matter */
    APP_SKIP,   /* in tables of modes: nothing is written; never in an entry */
};

struct app_entry {
    enum app_family family;
    enum app_mode mode; /* of a write */
    pawl_view key;
    pawl_view value;
};

/* Keys whose values are wanted. */
struct app_lookup {
    enum app_family family;
    const pawl_view *keys;
    size_t count;
    int64_t deadline_ns; /* monotonic, for a store that is elsewhere; 0: none */
};

struct app_value {
    bool found;
    pawl_view bytes;
};

/* What readers of long ranges read at once. */
enum { APP_PAGE_ENTRIES = 256, APP_PAGE_BYTES_MAX = 1 << 20 };

/* Keys in [from, until); an empty `until` has no end. */
struct app_range {
    enum app_family family;
    pawl_view from;
    pawl_view until;
    bool backwards;   /* from the last to the first */
    size_t limit;     /* entries of a page, at least 1; of a walk in all, 0: no limit */
    size_t bytes_max; /* a page ends after the entry that exceeds it; a walk has its own */
};

/* Entries and the memory that they point to. Start with zeroes; a scan replaces what is in it. */
struct app_page {
    struct pawl__arena arena;
    struct app_entry *entries;
    size_t count;
    size_t bytes; /* of keys and values */
};

void pawl__app_page_done(struct app_page *page);

/* For backends: whether the range wants more entries, and adding a copy of one. */
bool pawl__app_page_has_room(const struct app_page *page, const struct app_range *range);
PAWL_MUST_USE pawl_status pawl__app_page_add(struct app_page *page,
                                             enum app_family family,
                                             pawl_view key,
                                             pawl_view value,
                                             pawl_error *reterr);

struct app_anchor;
struct app_store_options;

struct app_store {
    const struct app_store_ops *ops;
    const char *name;        /* how the location calls the application; NULL: in no way */
    const char *anchor_name; /* for people: where its anchor is */
};

/* What is not there has found = false. Values are in the arena. TIMEOUT after the deadline. */
typedef pawl_status app_get_many_fn(struct app_store *store,
                                    const struct app_lookup *lookup,
                                    struct pawl__arena *arena,
                                    struct app_value *ret_values,
                                    pawl_error *reterr);

/* A page of a range, in order, into an empty page with room for `limit` entries. Fewer entries than `limit` and
 * no more bytes than `bytes_max`: the range ends here. Nothing is held when it returns. */
typedef pawl_status app_scan_fn(struct app_store *store,
                                const struct app_range *range,
                                struct app_page *page,
                                pawl_error *reterr);

/* All or nothing, in order (the last one of a key stays), and durable when it returns PAWL_OK. A backend that
 * returns earlier appears to work and gives a number out twice after a power cut.
 *
 * CONFLICT: a key that is to be inserted was there before the batch; the message names it, nothing was written.
 * IO, UNAVAILABLE, TIMEOUT: nobody knows. Any other: nothing was written. */
typedef pawl_status app_write_fn(struct app_store *store,
                                 const struct app_entry *entries,
                                 size_t count,
                                 pawl_error *reterr);

/* The anchor (anchor.h), apart from the entries; an empty one was never written. The write replaces it as a
 * whole and is durable when it returns. One thread at a time. */
typedef pawl_status app_read_anchor_fn(struct app_store *store,
                                       struct pawl__buf *text,
                                       pawl_error *reterr);
typedef pawl_status app_write_anchor_fn(struct app_store *store,
                                        pawl_view text,
                                        pawl_error *reterr);

struct app_store_ops {
    /* In a build without the engine; then there is nothing else. */
    struct {
        const char *engine;
        const char *option;
    } absent;

    size_t size; /* of a store, which begins with struct app_store and starts with zeroes */
    pawl_status (*open)(struct app_store *store,
                        const struct pawl__location *location,
                        const struct app_store_options *options,
                        pawl_error *reterr);
    void (*close)(struct app_store *store); /* also after an open that failed */

    /* From any thread: calls under way and later ones end soon, for good. NULL: they do anyway. */
    void (*interrupt)(struct app_store *store);

    /* Before close, when nothing uses the store any more: what makes the next open quick, until the deadline.
     * NULL: nothing does. TIMEOUT: the store does not come back, and must not be closed. */
    pawl_status (*flush_last)(struct app_store *store, int64_t deadline_ns, pawl_error *reterr);

    /* A store that reads this one as it is now, whatever is written meanwhile; it is closed before this one. NULL:
     * there is no such thing. */
    pawl_status (*freeze)(struct app_store *store,
                          struct app_store **ret_frozen,
                          pawl_error *reterr);

    app_get_many_fn *get_many;
    app_scan_fn *scan; /* called through pawl__app_store_scan, which prepares the page */
    app_write_fn *write;
    app_read_anchor_fn *read_anchor;
    app_write_anchor_fn *write_anchor;

    /* CONFLICT: an older application at the same location has the id. NULL: the location prevents it. */
    pawl_status (*check_neighbours)(struct app_store *store,
                                    const struct app_anchor *anchor,
                                    pawl_error *reterr);
};

struct app_store_options {
    bool must_exist; /* NOT_FOUND when there is none */
    bool read_only;  /* nothing will be written */
    bool unsafe_no_sync;
    uint64_t free_space_min; /* of a directory */
    uint64_t memory_max;     /* of all directories that this process has open; 0: as it is */
    uint32_t answer_ms_max;  /* of a server; 0: the wrapper's default */
    uint32_t lease_ms; /* of a server: how long its owner keeps it while it stands still; 0: 15 s */

    /* For a store that several applications may share: which one. Both or none. */
    uint32_t app_id;
    const char *app_name;
};

/* "memory:", a directory or postgres://..., where ?app=NAME says which one when the options do not.
 * INVALID names a scheme that is none of them. */
PAWL_MUST_USE pawl_status pawl__app_store_open(const char *location,
                                               const struct app_store_options *options,
                                               struct app_store **ret_store,
                                               pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__app_store_flush_last(struct app_store *store, /* NULL is fine */
                                                     int64_t deadline_ns,
                                                     pawl_error *reterr);
void pawl__app_store_close(struct app_store *store); /* NULL is fine */
DEFINE_AUTO(struct app_store *, pawl__app_store_close)

extern const struct app_store_ops pawl__app_memory_ops;
extern const struct app_store_ops pawl__app_rocksdb_ops;
extern const struct app_store_ops pawl__app_postgres_ops;

/* Makes a store of ops->size zero bytes for the scheme of the location, and opens it. The setup is a
 * struct app_store_options. */
PAWL_MUST_USE pawl__backend_open pawl__app_store_make;

/* False ends the walk. */
typedef bool app_name_visit(void *context, const char *name);

/* Calls `visit` with the name of every application in the database, in order. */
PAWL_MUST_USE pawl_status pawl__app_postgres_list(const char *url,
                                                  app_name_visit *visit,
                                                  void *context,
                                                  pawl_error *reterr);

/* One key. */
PAWL_MUST_USE pawl_status pawl__app_store_get(struct app_store *store,
                                              enum app_family family,
                                              pawl_view key,
                                              struct pawl__arena *arena,
                                              struct app_value *ret_value,
                                              pawl_error *reterr);

/* A page of a range, in place of what was in it. */
PAWL_MUST_USE app_scan_fn pawl__app_store_scan;

/* Calls the visitor with the entries of a range, page by page. It may write. Anything but PAWL_OK from it ends
 * the walk and is returned. */
typedef pawl_status (*app_entry_visitor)(void *context,
                                         const struct app_entry *entry,
                                         pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__app_store_walk(struct app_store *store,
                                               const struct app_range *range,
                                               app_entry_visitor visitor,
                                               void *context,
                                               pawl_error *reterr);

/* For backends: a copy of what a look-up found; NULL: nothing. */
PAWL_MUST_USE pawl_status pawl__app_value_copy(struct app_value *ret_value,
                                               const pawl_view *found,
                                               struct pawl__arena *arena,
                                               pawl_error *reterr);

/* For backends: what an insert says that found its key. */
pawl_status pawl__app_store_conflict(const struct app_entry *entry, pawl_error *reterr);

#endif
