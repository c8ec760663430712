/* A store under torture: the little that the writer needs of each wrapper in src/store. */
#ifndef TESTS_TORTURE_STORE_H
#define TESTS_TORTURE_STORE_H

#include <pawl/pawl.h>

struct torture_store {
    const struct torture_store_ops *ops;
};

/* Takes one record; the walk stops at anything but PAWL_OK. */
typedef pawl_status torture_visit(void *context,
                                  uint64_t number,
                                  pawl_view text,
                                  pawl_error *reterr);

struct torture_store_ops {
    const char *name;

    /* Opens the store in the directory (or of the URL) `location` and makes what is missing.
     * `unsafe`: without its fsyncs, for the control. */
    pawl_status (*open)(const char *location,
                        bool unsafe,
                        struct torture_store **ret_store,
                        pawl_error *reterr);
    void (*close)(struct torture_store *store);

    /* One transaction with the records first .. first + count - 1, durable when it returns OK. */
    pawl_status (*append)(struct torture_store *store,
                          uint64_t first,
                          uint64_t count,
                          pawl_error *reterr);

    /* Every record, in any order. */
    pawl_status (*list)(struct torture_store *store,
                        torture_visit *visit,
                        void *context,
                        pawl_error *reterr);

    /* Takes everything out again. NULL: whoever made the directory removes it. */
    pawl_status (*drop)(const char *location, pawl_error *reterr);

    /* What the store does now and then: checkpoint, flush. A cut in the middle is a good one. */
    pawl_status (*tidy)(struct torture_store *store, pawl_error *reterr);
};

extern const struct torture_store_ops torture_sqlite;
extern const struct torture_store_ops torture_postgres;
extern const struct torture_store_ops torture_duckdb;
extern const struct torture_store_ops torture_rocksdb;

#endif
