#include "cli/node/versions.h"

#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <yaml.h>

#include "base/core/macros.h"
#include "cli/build_config.h"

#if PAWL_HAS_DUCKDB
#include <duckdb.h>
#endif
#if PAWL_HAS_POSTGRES
#include <libpq-fe.h>
#endif
#if PAWL_HAS_NODE
#include "net/http/http.h"
#endif

#define LEFT_OUT "not in this build"

/* clang says its name in __VERSION__, gcc only the number. */
#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void libpq_version(char ret_version[VERSION_SIZE])
{
#if PAWL_HAS_POSTGRES
    int version = PQlibVersion(); /* 150020 is 15.20 */

    snprintf(ret_version, VERSION_SIZE, "%d.%d", version / 10000, version % 10000);
#else
    snprintf(ret_version, VERSION_SIZE, LEFT_OUT);
#endif
}

/* RocksDB's C interface does not tell its version, but the name of the loaded file does:
 * librocksdb.so.7.8.3. */
static void rocksdb_version(char ret_version[VERSION_SIZE])
{
    char path[PATH_MAX];
    Dl_info info;
    void *symbol = dlsym(RTLD_DEFAULT, "rocksdb_open");
    bool found = symbol != NULL && dladdr(symbol, &info) != 0 && realpath(info.dli_fname, path);
    const char *suffix = found ? strstr(path, ".so.") : NULL;

    snprintf(ret_version,
             VERSION_SIZE,
             "%s",
             suffix == NULL ? PAWL_ROCKSDB_VERSION : suffix + strlen(".so."));
}

static const char *duckdb_version(void)
{
#if PAWL_HAS_DUCKDB
    const char *version = duckdb_library_version();

    return version[0] == 'v' ? version + 1 : version;
#else
    return LEFT_OUT;
#endif
}

static const char *microhttpd_version(void)
{
#if PAWL_HAS_NODE
    return pawl__http_library_version();
#else
    return LEFT_OUT;
#endif
}

void pawl__cli_versions(struct pawl__cli_part ret_parts[VERSIONS_COUNT])
{
    const struct {
        const char *name;
        const char *version;
        void (*find)(char ret_version[VERSION_SIZE]);
    } parts[] = {
        { "SQLite", sqlite3_libversion(), NULL },
        { "libpq", NULL, libpq_version },
        { "DuckDB", duckdb_version(), NULL },
        { "RocksDB", NULL, rocksdb_version },
        { "jansson", jansson_version_str(), NULL },
        { "libyaml", yaml_get_version_string(), NULL },
        { "OpenSSL", OpenSSL_version(OPENSSL_FULL_VERSION_STRING), NULL },
        { "libmicrohttpd", microhttpd_version(), NULL },
        { "compiler", COMPILER, NULL },
    };
    static_assert(COUNT_OF(parts) == VERSIONS_COUNT, "one row a part");

    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        ret_parts[i].name = parts[i].name;
        if (parts[i].find != NULL) {
            parts[i].find(ret_parts[i].version);
        } else {
            snprintf(ret_parts[i].version, VERSION_SIZE, "%s", parts[i].version);
        }
    }
}

const char *pawl__cli_build_kind(void)
{
    return PAWL_BUILD_KIND;
}
