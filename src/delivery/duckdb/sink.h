/* The sink on DuckDB: one file that is shared, and in it one sink per pipeline with a table of its own.
 *
 * One caller at a time works on a file; the others wait. After a transaction whose outcome nobody knows, and after
 * an error that may have left DuckDB unusable, the next call of any sink closes the file, opens it again and then
 * answers from what is really there. */
#ifndef PAWL_DELIVERY_DUCKDB_SINK_H
#define PAWL_DELIVERY_DUCKDB_SINK_H

#include <pawl/delivery.h>

#include "delivery/mapping/mapping.h"
#include "store/duckdb/duckdb.h"

struct delivery_duckdb_file;

struct delivery_duckdb_options {
    const char *path;
    struct pawl__duck_options duck; /* what it points to outlives the file */
    struct pawl__random *random;    /* of the id of a new file. NULL: the real one */
    bool
        quarantine; /* a file that does not open is moved aside and a new one made; otherwise CORRUPT */
    bool replace; /* the same with one that would open */
};

/* What the caller has to say loudly. */
struct delivery_duckdb_opened {
    bool is_new;
    int quarantined;    /* N of PATH.quarantined-N; 0: nothing was wrong */
    uint64_t cut_bytes; /* see pawl__duck_cut_bytes */
    pawl_error why;     /* quarantined: what was wrong with it */
};

PAWL_MUST_USE pawl_status
pawl__delivery_duckdb_open(const struct delivery_duckdb_options *options,
                           struct delivery_duckdb_file **ret_file,
                           struct delivery_duckdb_opened *ret_opened, /* may be NULL */
                           pawl_error *reterr);

/* After all its sinks. */
DEFINE_AUTO(struct delivery_duckdb_file *, pawl__delivery_duckdb_close)

/* Makes the table, or adds the optional columns that it lacks. INVALID: no mapping, an expression of it that DuckDB
 * does not understand, or a column of the table has another type. CONFLICT: another pipeline has the table, or this one has another. The mapping outlives the sink; NULL:
 * the default. */
PAWL_MUST_USE pawl_status pawl__delivery_duckdb_sink(struct delivery_duckdb_file *file,
                                                     const char *pipeline,
                                                     const struct delivery_mapping *mapping,
                                                     struct delivery_sink **ret_sink,
                                                     pawl_error *reterr);

/* pawl_delivery_select. */
PAWL_MUST_USE pawl_status pawl__delivery_duckdb_query(struct delivery_duckdb_file *file,
                                                      const char *sql,
                                                      const pawl_query_options *options,
                                                      pawl_query_visit visit,
                                                      void *context,
                                                      pawl_error *reterr);

#endif
