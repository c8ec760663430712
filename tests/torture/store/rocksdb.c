#include "torture/store/store.h"

#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/fs.h"
#include "store/rocksdb/rocksdb.h"
#include "torture/oracle.h"

struct rocksdb_store {
    struct torture_store base;
    struct pawl__rocks *db;
};

static void free_text(char **text)
{
    free(*text);
}

static void close_store(struct torture_store *store)
{
    struct rocksdb_store *self = (struct rocksdb_store *)store;

    if (self != NULL) {
        pawl__rocks_close(self->db);
        free(self);
    }
}

static pawl_status open_store(const char *location,
                              bool unsafe,
                              struct torture_store **ret_store,
                              pawl_error *reterr)
{
    static const char *const families[] = { "records" };
    struct pawl__rocks_options options = {
        .families = families,
        .family_count = 1,
        .free_space_min = UINT64_C(16) << 20,
        .memtable_bytes = 1 << 20, /* small: files are made and compacted during a short run */
        .unsafe_no_sync = unsafe,
    };
    AUTO(free_text) char *path = pawl__fs_join(location, "rocks");
    struct rocksdb_store *self = calloc(1, sizeof(*self));

    REQUIRE(self != NULL && path != NULL);
    self->base.ops = &torture_rocksdb;
    pawl_status status = pawl__rocks_open(path, &options, &self->db, reterr);
    if (status != PAWL_OK) {
        close_store(&self->base);
        return status;
    }
    *ret_store = &self->base;
    return PAWL_OK;
}

static pawl_status append(struct torture_store *store,
                          uint64_t first,
                          uint64_t count,
                          pawl_error *reterr)
{
    struct rocksdb_store *self = (struct rocksdb_store *)store;
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    pawl_status status = pawl__rocks_batch_new(self->db, &batch, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    for (uint64_t n = first; n < first + count; n++) {
        char text[RECORD_BYTES_MAX];
        size_t len = record_text(n, text);
        struct pawl__buf key = BUF_INIT(8);
        pawl__buf_add_u64be(&key, n);
        pawl__rocks_put(batch, 0, pawl__buf_view(&key), (pawl_view){ text, len });
        pawl__buf_done(&key);
    }
    return pawl__rocks_write(self->db, batch, reterr);
}

static pawl_status list(struct torture_store *store,
                        torture_visit *visit,
                        void *context,
                        pawl_error *reterr)
{
    struct rocksdb_store *self = (struct rocksdb_store *)store;
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    struct pawl__rocks_range all = { { NULL, 0 }, { NULL, 0 } };
    pawl_status status = pawl__rocks_iter_open(self->db, NULL, 0, all, &iter, reterr);

    if (status == PAWL_OK) {
        status = pawl__rocks_iter_first(iter, reterr);
    }
    while (status == PAWL_OK && iter->valid) {
        pawl_view key = iter->key;
        uint64_t number = 0;
        if (!pawl__view_take_u64be(&key, &number)) {
            return pawl__fail(reterr, PAWL_CORRUPT, "a key has %zu bytes", iter->key.len);
        }
        status = visit(context, number, iter->value, reterr);
        if (status == PAWL_OK) {
            status = pawl__rocks_iter_next(iter, reterr);
        }
    }
    return status;
}

static pawl_status tidy(struct torture_store *store, pawl_error *reterr)
{
    return pawl__rocks_flush(((struct rocksdb_store *)store)->db, reterr);
}

const struct torture_store_ops torture_rocksdb = {
    .name = "rocksdb",
    .open = open_store,
    .close = close_store,
    .append = append,
    .list = list,
    .tidy = tidy,
};
