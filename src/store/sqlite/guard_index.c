/* Keeps a failing disk under the log's index (-shm) from killing the process.
 *
 * SQLite maps that file and reads and writes it through plain pointers. A page that the disk does not
 * deliver is then a SIGBUS, which a library must neither risk nor catch. Three things prevent it:
 *   - when SQLite maps the index, the kernel is asked for all of its pages. What fails here is an error;
 *   - they are locked in memory, so that none is evicted and has to be read again. Beyond the limit for
 *     locked memory (RLIMIT_MEMLOCK) they are not, and a page evicted before the disk fails can still kill;
 *   - before every lock the pages are asked for again, to be written: a file system that has shut down
 *     refuses that for a page it has written back. It costs half a microsecond per 32 KiB.
 *
 * SQLite hands out the open file, so its methods are replaced there; a VFS of our own would also replace
 * the one an application has made its default. */
#include <errno.h>
#include <sys/mman.h>

#include "store/sqlite/internal.h"

static struct sqlite_index_guard *guard_of(sqlite3_file *file)
{
    return (struct sqlite_index_guard *)(uintptr_t)file->pMethods; /* its first member */
}

/* Kernels before 5.14 know neither advice: there it stays as SQLite has it. */
static bool are_pages_present(void *start, size_t bytes)
{
    if (madvise(start, bytes, MADV_POPULATE_WRITE) == 0) {
        return true;
    }
    /* EINVAL also for a map that is only read. */
    return errno == EINVAL && (madvise(start, bytes, MADV_POPULATE_READ) == 0 || errno == EINVAL);
}

static int guarded_map(
    sqlite3_file *file, int number, int bytes, int extend, void volatile **ret_region)
{
    struct sqlite_index_guard *guard = guard_of(file);
    int rc = guard->real->xShmMap(file, number, bytes, extend, ret_region);
    void *region = (void *)(uintptr_t)*ret_region;

    if (region == NULL || (rc != SQLITE_OK && rc != SQLITE_READONLY)) {
        return rc;
    }
    if (!are_pages_present(region, (size_t)bytes)) {
        *ret_region = NULL;
        return SQLITE_IOERR_SHMMAP;
    }
    (void)mlock(region, (size_t)bytes);
    if (number < SQLITE_REGIONS_GUARDED) {
        guard->regions[number] = region;
        guard->region_bytes = (size_t)bytes;
    }
    return rc;
}

static int guarded_lock(sqlite3_file *file, int offset, int count, int flags)
{
    const struct sqlite_index_guard *guard = guard_of(file);

    for (size_t i = 0; (flags & SQLITE_SHM_LOCK) && i < SQLITE_REGIONS_GUARDED; i++) {
        if (guard->regions[i] != NULL
            && !are_pages_present(guard->regions[i], guard->region_bytes)) {
            return SQLITE_IOERR_SHMLOCK;
        }
    }
    return guard->real->xShmLock(file, offset, count, flags);
}

static int guarded_unmap(sqlite3_file *file, int delete)
{
    struct sqlite_index_guard *guard = guard_of(file);

    for (size_t i = 0; i < SQLITE_REGIONS_GUARDED; i++) {
        guard->regions[i] = NULL;
    }
    return guard->real->xShmUnmap(file, delete);
}

void pawl__sqlite_guard_index(struct pawl__sqlite *db)
{
    struct sqlite_index_guard *guard = &db->index_guard;
    sqlite3_file *file = NULL;
    int rc = sqlite3_file_control(db->native, "main", SQLITE_FCNTL_FILE_POINTER, &file);

    if (rc != SQLITE_OK || file == NULL || file->pMethods == NULL || file->pMethods->iVersion < 2
        || file->pMethods->xShmMap == NULL) {
        return; /* this file has no index */
    }
    guard->real = file->pMethods;
    guard->methods = *file->pMethods;
    guard->methods.xShmMap = guarded_map;
    guard->methods.xShmLock = guarded_lock;
    guard->methods.xShmUnmap = guarded_unmap;
    file->pMethods = &guard->methods;
}
