/* What the C API of RocksDB 7.8 lacks, by one file of C++. For the RocksDB wrapper only. */
#ifndef PAWL_STORE_ROCKSDB_SHIM_H
#define PAWL_STORE_ROCKSDB_SHIM_H

#include <rocksdb/c.h>

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The shim looks into structs that only the engine's own C API knows. False: they are not as they were
 * in every version so far, and nothing else of this header may be called. */
bool pawl__rocks_shim_fits(void);

/* The engine keeps its info log in a file. When the disk fails or becomes read-only, that log meets an
 * assertion, which Debian's build has, and aborts the process. With this logger there is no file: warnings
 * and errors go to `say`, on any thread, and all else nowhere. */
void pawl__rocks_shim_set_logger(rocksdb_options_t *options, void (*say)(const char *text));

/* Memtables of every store whose options have it, together: `bytes` at the most, as long as flushes keep
 * up. They count as content of the cache, which so has less room for blocks. */
struct pawl__rocks_buffers;
struct pawl__rocks_buffers *pawl__rocks_shim_buffers_new(size_t bytes, rocksdb_cache_t *cache);
void pawl__rocks_shim_buffers_resize(struct pawl__rocks_buffers *buffers, size_t bytes);
size_t pawl__rocks_shim_buffers_used(const struct pawl__rocks_buffers *buffers);
void pawl__rocks_shim_set_buffers(rocksdb_options_t *options,
                                  const struct pawl__rocks_buffers *buffers);

#ifdef __cplusplus
}
#endif

#endif
