/* Whether a store is still where it was opened: the file, its log and the log's index. Nobody removes
 * the last two while we have the store open (SQLite's own locks see to that), but a hand may, or a
 * program that closed the file behind SQLite's back. Then SQLite goes on with what it has open, other
 * processes make new ones, and both give the same offset.
 *
 * SQLite can be asked about the file only. The other two are compared with what stood under their
 * names when this handle was opened. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/core/error.h"
#include "store/sqlite/internal.h"

static const char *const suffixes[SQLITE_SIDES] = { "-wal", "-shm" };

void pawl__sqlite_note_sides(struct pawl__sqlite *db)
{
    const char *path = sqlite3_db_filename(db->native, "main");

    for (size_t i = 0; i < SQLITE_SIDES; i++) {
        struct sqlite_side *side = &db->sides[i];
        struct stat info;

        /* Without memory for the name, or without the file (a store that is only read), it is not
         * compared. */
        if (asprintf(&side->path, "%s%s", path, suffixes[i]) < 0) {
            side->path = NULL;
        } else if (stat(side->path, &info) == 0) {
            side->known = true;
            side->device = info.st_dev;
            side->inode = info.st_ino;
        }
    }
}

void pawl__sqlite_forget_sides(struct pawl__sqlite *db)
{
    for (size_t i = 0; i < SQLITE_SIDES; i++) {
        free(db->sides[i].path);
    }
}

static bool is_in_place(const struct sqlite_side *side)
{
    struct stat info;

    return !side->known
           || (stat(side->path, &info) == 0 && info.st_dev == side->device
               && info.st_ino == side->inode);
}

pawl_status pawl__sqlite_fail_moved(const char *path, pawl_error *reterr)
{
    return pawl__fail(reterr,
                      PAWL_IO,
                      "'%s' was moved, replaced or deleted while it was open: open it again",
                      path);
}

pawl_status pawl__sqlite_check_sides(const struct pawl__sqlite *db, pawl_error *reterr)
{
    for (size_t i = 0; i < SQLITE_SIDES; i++) {
        if (!is_in_place(&db->sides[i])) {
            return pawl__sqlite_fail_moved(db->sides[i].path, reterr);
        }
    }
    return PAWL_OK;
}

pawl_status pawl__sqlite_check_place(struct pawl__sqlite *db, pawl_error *reterr)
{
    int moved = 0;
    int rc = sqlite3_file_control(db->native, "main", SQLITE_FCNTL_HAS_MOVED, &moved);

    return rc == SQLITE_OK && moved != 0 ? pawl__sqlite_fail_moved(db->path, reterr)
                                         : pawl__sqlite_check_sides(db, reterr);
}
