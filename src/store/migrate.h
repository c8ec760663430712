/* One way to bring the schema of an SQL store up to date, for all of them.
 *
 * A schema belongs to a component (ledger, work, ...) and is a list of numbered migrations,
 * embedded from sql/ENGINE/COMPONENT/0001_name.sql by scripts/embed-sql. What was applied is
 * recorded in the store itself:
 *
 *   schema_version(component TEXT, version TEXT, migration INTEGER, name TEXT, applied_at)
 *   primary key (component, migration)
 *
 * All that is missing is applied in one transaction, which also holds the records: a crash leaves
 * the old schema or the new one. A store that a newer program made is refused and not touched; so
 * is one whose records are not ours. There is no way back to an older schema. */
#ifndef PAWL_STORE_MIGRATE_H
#define PAWL_STORE_MIGRATE_H

#include <pawl/pawl.h>

struct pawl__migration {
    int number;          /* 1, 2, 3, ... without a gap */
    const char *version; /* of the schema from here on, "0.30.0"; the file's first line */
    const char *name;    /* the file's name without number and ".sql" */
    const char *sql;     /* one or more statements */
};

enum pawl__schema_kind {
    PAWL__SCHEMA_TABLE,
    PAWL__SCHEMA_TRIGGER,
    PAWL__SCHEMA_UNIQUE, /* an index that keeps keys apart */
    PAWL__SCHEMA_FUNCTION,
};

/* What the migrations leave behind, as far as scripts/embed-sql reads it from them. */
struct pawl__schema_object {
    enum pawl__schema_kind kind;
    const char *table; /* "" of a function */
    const char *name;  /* "" of a table */
    const char
        *detail; /* a trigger's function and the MD5 of its definition, "f.0123"; the columns of an
                         * index, "a,b"; the MD5 of a function's body */
};

struct pawl__schema {
    const char *component;
    const struct pawl__migration *migrations;
    size_t count;
    const struct pawl__schema_object *objects; /* of PostgreSQL's alone */
    size_t object_count;
    const char *fingerprint; /* of SQLite's alone, or NULL; see store/sqlite/schema_check.c */
};

/* A row of schema_version. The texts are borrowed for the call. */
struct pawl__schema_row {
    const char *component;
    const char *version;
    int migration;
    const char *name;
    const char *applied_at; /* UTC, "2026-01-29 10:20:30.123456"; NULL when rows are read */
};

/* Takes one row; the walk stops at anything but PAWL_OK and returns it. */
typedef pawl_status pawl__schema_visit(void *context,
                                       const struct pawl__schema_row *row,
                                       pawl_error *reterr);

struct pawl__clock;

/* What an engine brings. `store` is its handle. All methods are required. */
struct pawl__migrate_ops {
    const char *table_sql; /* CREATE TABLE IF NOT EXISTS schema_version (...) in its dialect */

    /* Starts a transaction that no second process can be in at the same time: it waits for the
     * other (BUSY after the store's own patience) and then sees what the other committed. A shared
     * transaction here lets two processes apply the same migration. */
    pawl_status (*begin)(void *store, pawl_error *reterr);

    /* Whether there is a table schema_version. Inside or outside of a transaction; writes nothing. */
    pawl_status (*has_table)(void *store, bool *ret_has, pawl_error *reterr);

    /* Visits the component's rows of that table in the order of their numbers. */
    pawl_status (*each)(void *store,
                        const char *component,
                        pawl__schema_visit *visit,
                        void *context,
                        pawl_error *reterr);

    /* Runs a script of several statements inside the transaction and stops at the first error. */
    pawl_status (*exec)(void *store, const char *sql, pawl_error *reterr);

    pawl_status (*record)(void *store, const struct pawl__schema_row *row, pawl_error *reterr);

    /* Returns PAWL_OK when everything since begin would survive a power cut. */
    pawl_status (*commit)(void *store, pawl_error *reterr);

    /* Takes back everything since begin; also after a failed commit. */
    void (*rollback)(void *store);

    struct pawl__clock *(*clock)(void *store); /* says when a migration was applied */
};

/* The methods that differ in nothing but the handle's type; `clock_of` is a member of it. */
#define DEFINE_MIGRATE_METHODS(handle_type, commit_one, rollback_one, clock_of) \
    static pawl_status migrate_commit(void *store, pawl_error *reterr)          \
    {                                                                           \
        return commit_one(store, reterr);                                       \
    }                                                                           \
    static void migrate_rollback(void *store)                                   \
    {                                                                           \
        rollback_one(store);                                                    \
    }                                                                           \
    static struct pawl__clock *migrate_clock(void *store)                       \
    {                                                                           \
        return ((const handle_type *)store)->clock_of;                          \
    }

/* Applies what is missing. UNSUPPORTED, with both versions in the message and nothing changed, when
 * the store is newer than `schema` or records other migrations than ours. A store that is up to
 * date is only read. */
PAWL_MUST_USE pawl_status pawl__migrate(const struct pawl__migrate_ops *ops,
                                        void *store,
                                        const struct pawl__schema *schema,
                                        pawl_error *reterr);

/* How many migrations pawl__migrate would apply; fails where it would refuse. Only reads. */
PAWL_MUST_USE pawl_status pawl__migrate_pending(const struct pawl__migrate_ops *ops,
                                                void *store,
                                                const struct pawl__schema *schema,
                                                size_t *ret_pending,
                                                pawl_error *reterr);

/* The version that the last migration of `schema` brings; "none" for an empty schema. */
const char *pawl__schema_version(const struct pawl__schema *schema);

#endif
