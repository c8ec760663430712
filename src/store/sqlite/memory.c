/* Stores in memory, which the connections of this process share: a VFS for SQLite.
 *
 * SQLite's own databases in memory cannot have a write-ahead log, so there a reader and the writer would
 * wait for each other. Here a file is a piece of memory, with the locks and the shared pages of an
 * index that the log needs; it is gone with the last connection. One lock covers all of it: what it
 * guards is a memcpy. */
#include "store/sqlite/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread/thread.h"

enum { NAME_BYTES_MAX = 512, ROOM_MIN = 64 << 10, SECTOR_BYTES = 4096 };

struct memory_handle;

struct memory_file {
    struct memory_file *next; /* of those that have a name */
    char *name;               /* NULL: temporary, or deleted */
    size_t handles;
    unsigned char *bytes;
    size_t size;
    size_t room;

    size_t readers;               /* handles with a lock of any kind */
    struct memory_handle *writer; /* has RESERVED or more */
    bool exclusive;

    void **pages; /* shared memory, for the index of the log */
    int page_count;
    size_t mapped;               /* handles that use it */
    int slots[SQLITE_SHM_NLOCK]; /* so many share it; -1: one has it alone */
};

struct memory_handle {
    sqlite3_file base; /* must be first */
    struct memory_file *file;
    int level;
    bool mapped;
    unsigned shared; /* bits of slots */
    unsigned alone;
};

static struct pawl__lock lock = { .mutex = PTHREAD_MUTEX_INITIALIZER };
static struct memory_file *files; /* covered by the lock */

static struct memory_handle *of(sqlite3_file *base)
{
    return (struct memory_handle *)base;
}

/* --- files --- */

static struct memory_file **find(const char *name) REQUIRES_LOCK(lock)
{
    struct memory_file **at = &files;

    while (*at != NULL && strcmp((*at)->name, name) != 0) {
        at = &(*at)->next;
    }
    return at;
}

static void unlink_file(struct memory_file *file) REQUIRES_LOCK(lock)
{
    if (file->name != NULL) {
        *find(file->name) = file->next;
        free(file->name);
        file->name = NULL;
    }
}

static void free_pages(struct memory_file *file)
{
    for (int i = 0; i < file->page_count; i++) {
        free(file->pages[i]);
    }
    free(file->pages);
    file->pages = NULL;
    file->page_count = 0;
}

static struct memory_file *make_file(const char *name) REQUIRES_LOCK(lock)
{
    struct memory_file *file = calloc(1, sizeof(*file));

    if (file == NULL || name == NULL) {
        return file;
    }
    file->name = strdup(name);
    if (file->name == NULL) {
        free(file);
        return NULL;
    }
    file->next = files;
    files = file;
    return file;
}

static bool grow(struct memory_file *file, size_t size)
{
    if (size > file->room) {
        size_t room = MAX(MAX(2 * file->room, size), (size_t)ROOM_MIN);
        unsigned char *bytes = realloc(file->bytes, room);
        if (bytes == NULL) {
            return false;
        }
        file->bytes = bytes;
        file->room = room;
    }
    if (size > file->size) {
        memset(file->bytes + file->size, 0, size - file->size);
        file->size = size;
    }
    return true;
}

static int memory_close(sqlite3_file *base)
{
    struct memory_file *file = of(base)->file;

    pawl__lock(&lock);
    if (--file->handles == 0) {
        unlink_file(file);
        free_pages(file);
        free(file->bytes);
        free(file);
    }
    pawl__unlock(&lock);
    return SQLITE_OK;
}

static int memory_read(sqlite3_file *base, void *to, int count, sqlite3_int64 offset)
{
    const struct memory_file *file = of(base)->file;
    size_t wanted = (size_t)count;

    pawl__lock(&lock);
    size_t left = (size_t)offset < file->size ? file->size - (size_t)offset : 0;
    size_t got = MIN(wanted, left);
    if (got > 0) {
        memcpy(to, file->bytes + offset, got);
    }
    pawl__unlock(&lock);
    if (got < wanted) {
        memset((char *)to + got, 0, wanted - got);
    }
    return got < wanted ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int memory_write(sqlite3_file *base, const void *from, int count, sqlite3_int64 offset)
{
    struct memory_file *file = of(base)->file;

    pawl__lock(&lock);
    bool room = grow(file, (size_t)offset + (size_t)count);
    if (room) {
        memcpy(file->bytes + offset, from, (size_t)count);
    }
    pawl__unlock(&lock);
    return room ? SQLITE_OK : SQLITE_IOERR_NOMEM;
}

static int memory_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct memory_file *file = of(base)->file;

    pawl__lock(&lock);
    file->size = MIN(file->size, (size_t)size);
    pawl__unlock(&lock);
    return SQLITE_OK;
}

static int memory_sync(sqlite3_file *base, int flags)
{
    (void)base;
    (void)flags;
    return SQLITE_OK;
}

static int memory_size(sqlite3_file *base, sqlite3_int64 *ret_size)
{
    pawl__lock(&lock);
    *ret_size = (sqlite3_int64)of(base)->file->size;
    pawl__unlock(&lock);
    return SQLITE_OK;
}

/* --- locks of the file --- */

static int lock_locked(struct memory_handle *handle, int level) REQUIRES_LOCK(lock)
{
    struct memory_file *file = handle->file;

    if (handle->level >= level) {
        return SQLITE_OK;
    }
    if (handle->level == SQLITE_LOCK_NONE) {
        if (file->exclusive) {
            return SQLITE_BUSY;
        }
        file->readers++;
        handle->level = SQLITE_LOCK_SHARED;
    }
    if (level == SQLITE_LOCK_SHARED) {
        return SQLITE_OK;
    }
    if (file->writer != NULL && file->writer != handle) {
        return SQLITE_BUSY;
    }
    if (level == SQLITE_LOCK_EXCLUSIVE && file->readers > 1) {
        return SQLITE_BUSY;
    }
    file->writer = handle;
    file->exclusive = level == SQLITE_LOCK_EXCLUSIVE;
    handle->level = level;
    return SQLITE_OK;
}

static int memory_lock(sqlite3_file *base, int level)
{
    pawl__lock(&lock);
    int rc = lock_locked(of(base), level);
    pawl__unlock(&lock);
    return rc;
}

static int memory_unlock(sqlite3_file *base, int level)
{
    struct memory_handle *handle = of(base);
    struct memory_file *file = handle->file;

    pawl__lock(&lock);
    if (level < handle->level) {
        if (file->writer == handle) {
            file->writer = NULL;
            file->exclusive = false;
        }
        file->readers -= level == SQLITE_LOCK_NONE;
        handle->level = level;
    }
    pawl__unlock(&lock);
    return SQLITE_OK;
}

static int memory_is_reserved(sqlite3_file *base, int *ret_reserved)
{
    pawl__lock(&lock);
    *ret_reserved = of(base)->file->writer != NULL;
    pawl__unlock(&lock);
    return SQLITE_OK;
}

static int memory_control(sqlite3_file *base, int operation, void *argument)
{
    (void)base;
    (void)operation;
    (void)argument;
    return SQLITE_NOTFOUND;
}

static int memory_sector(sqlite3_file *base)
{
    (void)base;
    return SECTOR_BYTES;
}

static int memory_traits(sqlite3_file *base)
{
    (void)base;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE | SQLITE_IOCAP_SAFE_APPEND | SQLITE_IOCAP_SEQUENTIAL;
}

/* --- the index of the log --- */

static bool add_pages(struct memory_file *file, int count, int size)
{
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are what the array holds */
    void **pages = realloc(file->pages, (size_t)count * sizeof(*pages));

    if (pages == NULL) {
        return false;
    }
    file->pages = pages;
    while (file->page_count < count) {
        void *page = calloc(1, (size_t)size);
        if (page == NULL) {
            return false;
        }
        pages[file->page_count++] = page;
    }
    return true;
}

static int memory_map(sqlite3_file *base, int page, int size, int extend, void volatile **ret_page)
{
    struct memory_handle *handle = of(base);
    struct memory_file *file = handle->file;

    pawl__lock(&lock);
    file->mapped += !handle->mapped;
    handle->mapped = true;
    bool room = page < file->page_count || !extend || add_pages(file, page + 1, size);
    *ret_page = page < file->page_count ? file->pages[page] : NULL;
    pawl__unlock(&lock);
    return room ? SQLITE_OK : SQLITE_IOERR_NOMEM;
}

static int memory_unmap(sqlite3_file *base, int delete_it)
{
    struct memory_handle *handle = of(base);
    struct memory_file *file = handle->file;

    (void)delete_it;
    pawl__lock(&lock);
    file->mapped -= handle->mapped;
    handle->mapped = false;
    if (file->mapped == 0) {
        free_pages(file);
    }
    pawl__unlock(&lock);
    return SQLITE_OK;
}

static void unlock_slots(struct memory_handle *handle, int first, int count, unsigned bits)
    REQUIRES_LOCK(lock)
{
    for (int i = first; i < first + count; i++) {
        if (handle->alone >> i & 1) {
            handle->file->slots[i] = 0;
        } else if (handle->shared >> i & 1) {
            handle->file->slots[i]--;
        }
    }
    handle->alone &= ~bits;
    handle->shared &= ~bits;
}

static int lock_slots(struct memory_handle *handle, int first, int count, bool alone)
    REQUIRES_LOCK(lock)
{
    unsigned bits = ((1U << count) - 1) << first;
    int *slots = handle->file->slots;

    if (((alone ? handle->alone : handle->shared) & bits) == bits) {
        return SQLITE_OK;
    }
    for (int i = first; i < first + count; i++) {
        if (slots[i] < 0 || (alone && slots[i] > 0)) {
            return SQLITE_BUSY;
        }
    }
    for (int i = first; i < first + count; i++) {
        slots[i] = alone ? -1 : slots[i] + 1;
    }
    *(alone ? &handle->alone : &handle->shared) |= bits;
    return SQLITE_OK;
}

static int memory_shm_lock(sqlite3_file *base, int first, int count, int flags)
{
    int rc = SQLITE_OK;

    pawl__lock(&lock);
    if (flags & SQLITE_SHM_UNLOCK) {
        unlock_slots(of(base), first, count, ((1U << count) - 1) << first);
    } else {
        rc = lock_slots(of(base), first, count, (flags & SQLITE_SHM_EXCLUSIVE) != 0);
    }
    pawl__unlock(&lock);
    return rc;
}

static void memory_barrier(sqlite3_file *base)
{
    (void)base;
    atomic_thread_fence(memory_order_seq_cst);
    pawl__lock(&lock); /* as SQLite's own: a thread that was inside has finished */
    pawl__unlock(&lock);
}

/* --- names --- */

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = memory_close,
    .xRead = memory_read,
    .xWrite = memory_write,
    .xTruncate = memory_truncate,
    .xSync = memory_sync,
    .xFileSize = memory_size,
    .xLock = memory_lock,
    .xUnlock = memory_unlock,
    .xCheckReservedLock = memory_is_reserved,
    .xFileControl = memory_control,
    .xSectorSize = memory_sector,
    .xDeviceCharacteristics = memory_traits,
    .xShmMap = memory_map,
    .xShmLock = memory_shm_lock,
    .xShmBarrier = memory_barrier,
    .xShmUnmap = memory_unmap,
};

static int memory_open(
    sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *ret_flags)
{
    struct memory_handle *handle = of(base);

    (void)vfs;
    *handle = (struct memory_handle){ .level = SQLITE_LOCK_NONE };
    pawl__lock(&lock);
    struct memory_file *file = name == NULL ? NULL : *find(name);
    bool wanted = file == NULL && (name == NULL || (flags & SQLITE_OPEN_CREATE));
    if (wanted) {
        file = make_file(name);
    }
    if (file != NULL) {
        file->handles++;
        handle->file = file;
        handle->base.pMethods = &methods;
    }
    pawl__unlock(&lock);
    if (file == NULL) {
        return wanted ? SQLITE_IOERR_NOMEM : SQLITE_CANTOPEN;
    }
    if (ret_flags != NULL) {
        *ret_flags = flags;
    }
    return SQLITE_OK;
}

static int memory_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs;
    (void)sync;
    pawl__lock(&lock);
    struct memory_file *file = *find(name);
    if (file != NULL) {
        unlink_file(file); /* its handles keep it */
    }
    pawl__unlock(&lock);
    return SQLITE_OK; /* also without one: a journal is closed, which frees it, before it is deleted */
}

static int memory_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret_there)
{
    (void)vfs;
    (void)flags;
    pawl__lock(&lock);
    *ret_there = *find(name) != NULL;
    pawl__unlock(&lock);
    return SQLITE_OK;
}

static int memory_full_name(sqlite3_vfs *vfs, const char *name, int size, char *to)
{
    (void)vfs;
    sqlite3_snprintf(size, to, "%s", name);
    return SQLITE_OK;
}

static sqlite3_vfs vfs;
static int registered_rc;

static void register_vfs(void)
{
    const sqlite3_vfs *usual = sqlite3_vfs_find(NULL);

    if (usual == NULL) {
        registered_rc = SQLITE_ERROR;
        return;
    }
    vfs = *usual; /* for the clock, naps and random bytes */
    vfs.iVersion = 2;
    vfs.pNext = NULL;
    vfs.zName = PAWL__SQLITE_MEMORY_VFS;
    vfs.szOsFile = (int)sizeof(struct memory_handle);
    vfs.mxPathname = NAME_BYTES_MAX;
    vfs.xOpen = memory_open;
    vfs.xDelete = memory_delete;
    vfs.xAccess = memory_access;
    vfs.xFullPathname = memory_full_name;
    registered_rc = sqlite3_vfs_register(&vfs, 0);
}

int pawl__sqlite_register_memory(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, register_vfs);
    return registered_rc;
}
