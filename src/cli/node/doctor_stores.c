/* The stores in the data directory, and the server beyond it. Doctor has no store open, so it may
 * look at their files. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/fs.h"
#include "cli/node/doctor_checks.h"
#include "config/config.h"
#include "store/layout.h"
#include "store/lock.h"
#include "store/postgres/postgres.h"
#include "store/sqlite/inspect.h"

#define CHECK_BYTES_MAX \
    (UINT64_C(256) << 20) /* a second or two of reading; --full reads it all \
                           */
#define CONNECT_MS_MAX 5000

/* What a failure costs, and what to do. */
static struct pawl__cli_finding refused_store(const char *check,
                                              const char *path,
                                              const pawl_error *error)
{
    struct pawl__cli_finding finding =
        pawl__cli_finding_problem(check, error, "this store cannot be used");

    switch (error->status) {
    case PAWL_CORRUPT:
        finding.cost = "part of what was stored may be lost";
        pawl__cli_finding_fix(&finding, "keep a copy of '%s', then restore a snapshot", path);
        break;
    case PAWL_UNSUPPORTED:
        pawl__cli_finding_fix(&finding, "use the version of pawl that made it, or a newer one");
        break;
    case PAWL_INVALID:
        pawl__cli_finding_fix(&finding, "move '%s' away, or use another data directory", path);
        break;
    case PAWL_BUSY:
        finding.cost = "it could not be checked, and only its owner can use it";
        pawl__cli_finding_fix(&finding, "nothing, if that is your node; else stop that process");
        break;
    default:
        pawl__cli_finding_fix(&finding, "see who owns '%s' and what its permissions are", path);
    }
    return finding;
}

static struct pawl__cli_finding judge_sqlite(const char *check,
                                             const struct pawl__sqlite_facts *facts)
{
    unsigned long long bytes = facts->bytes;

    if (bytes == 0) {
        return pawl__cli_finding_ok(check, "empty, never written to");
    }
    if (!facts->wal) {
        struct pawl__cli_finding finding = pawl__cli_finding_warning(
            check,
            "readers and writers wait for each other until the next open for writing",
            "its journal mode is not WAL");

        pawl__cli_finding_fix(&finding, "open it once with pawl; do not change its pragmas");
        return finding;
    }
    return pawl__cli_finding_ok(check,
                                "%llu bytes, WAL, %s%s",
                                bytes,
                                facts->checked ? "no damage found"
                                               : "too large to be read whole here: "
                                                 "use --full",
                                facts->pending > 0 ? ", schema will be brought up to date" : "");
}

static void inspect_sqlite(struct pawl__cli_doctor *doctor,
                           const struct pawl__place *place,
                           const char *path)
{
    struct pawl__sqlite_inspection look = {
        .application_id = place->application_id,
        .schema = place->schema,
        .check_bytes_max = pawl__cli_args_has(doctor->args, "full") ? UINT64_MAX : CHECK_BYTES_MAX,
    };
    struct pawl__sqlite_facts facts = { 0 };
    pawl_error error = PAWL_ERROR_INIT;

    pawl__cli_doctor_add(doctor,
                         pawl__sqlite_inspect(path, &look, &facts, &error) == PAWL_OK
                             ? judge_sqlite(place->name, &facts)
                             : refused_store(place->name, path, &error));
}

/* DuckDB and RocksDB change their files when they are opened: only their locks are looked at. */
static void inspect_owned(struct pawl__cli_doctor *doctor,
                          const struct pawl__place *place,
                          const char *path)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = place->kind == PAWL__PLACE_DUCKDB
                             ? pawl__store_lock_inspect_beside(path, &error)
                             : pawl__store_lock_inspect_inside(path, &error);

    pawl__cli_doctor_add(doctor,
                         status == PAWL_OK ? pawl__cli_finding_ok(place->name, "there, not in use")
                                           : refused_store(place->name, path, &error));
}

static void add_unreachable(struct pawl__cli_doctor *doctor, const char *name, int error_number)
{
    pawl_error error = PAWL_ERROR_INIT;

    pawl__fail_errno(&error, error_number, "look at '%s'", name);
    pawl__cli_doctor_add(doctor, refused_store(name, name, &error));
}

static void inspect_apps(struct pawl__cli_doctor *doctor,
                         const struct pawl__place *place,
                         const char *path)
{
    DIR *dir = opendir(path);

    if (dir == NULL) {
        add_unreachable(doctor, place->name, errno);
        return;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        AUTO(pawl__text_free) char *app = pawl__fs_join(path, entry->d_name);
        struct stat info;

        if (entry->d_name[0] != '.' && app != NULL && stat(app, &info) == 0
            && S_ISDIR(info.st_mode)) {
            inspect_owned(doctor, place, app);
        }
    }
    closedir(dir);
}

void pawl__cli_inspect_stores(struct pawl__cli_doctor *doctor)
{
    size_t found = 0;

    for (size_t i = 0; i < PAWL__PLACES_COUNT; i++) {
        const struct pawl__place *place = &pawl__places[i];
        AUTO(pawl__text_free) char *path = pawl__fs_join(doctor->data, place->name);
        struct stat info;
        int failure = path == NULL ? ENOMEM : 0;

        if (path != NULL && stat(path, &info) != 0) {
            failure = errno;
        }
        if (failure == ENOENT) {
            continue; /* a store that is not there yet is made when it is needed */
        }
        found++;
        if (failure != 0) {
            add_unreachable(doctor, place->name, failure);
            continue;
        }
        switch (place->kind) {
        case PAWL__PLACE_SQLITE:
            inspect_sqlite(doctor, place, path);
            break;
        case PAWL__PLACE_DUCKDB:
        case PAWL__PLACE_ROCKSDB:
            inspect_owned(doctor, place, path);
            break;
        case PAWL__PLACE_APPS:
            inspect_apps(doctor, place, path);
            break;
        }
    }
    if (found == 0) {
        pawl__cli_doctor_add(doctor, pawl__cli_finding_ok("stores", "none yet"));
    }
}

void pawl__cli_inspect_postgres(struct pawl__cli_doctor *doctor)
{
    struct pawl__pg_options options = { .connect_ms_max = CONNECT_MS_MAX };
    AUTO(pawl__pg_close_p) struct pawl__pg *pg = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    if (!doctor->postgres) {
        return;
    }
    const char *url = pawl__config_text(doctor->config, PAWL__DATABASE_URL);
    if (pawl__pg_open(url, &options, &pg, &error) != PAWL_OK) {
        struct pawl__cli_finding finding =
            pawl__cli_finding_problem("PostgreSQL", &error, "ledger and work cannot be stored");

        pawl__cli_finding_fix(&finding, "start the server, or correct database_url");
        pawl__cli_doctor_add(doctor, finding);
        return;
    }
    const struct pawl__pg_server *server = pawl__pg_server_of(pg);
    struct pawl__cli_pg_facts facts = {
        .location = server->location,
        .version = server->version,
        .fsync = server->fsync,
        .full_page_writes = server->full_page_writes,
        .read_only = server->read_only,
        .default_commit = server->default_commit,
    };
    pawl__cli_doctor_add(doctor, pawl__cli_judge_pg_access(&facts));
    pawl__cli_doctor_add(doctor, pawl__cli_judge_pg_durability(&facts));
}
