/* What a saboteur does to the RocksDB directory of an application, with RocksDB alone: nothing of pawl stands
 * between it and the bytes.
 *
 *   app_edit DIR dump     every entry: "FAMILY KEY VALUE", both in hexadecimal, "-" for no bytes
 *   app_edit DIR apply    reads "put FAMILY KEY VALUE" and "delete FAMILY KEY" a line, writes them at once */
#include <rocksdb/c.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAMILIES_MAX = 32, LINE_MAX = 1 << 20 };

struct store {
    rocksdb_t *db;
    char **names;
    size_t count;
    rocksdb_column_family_handle_t *families[FAMILIES_MAX];
};

static void check(char *error)
{
    if (error != NULL) {
        fprintf(stderr, "app_edit: %s\n", error);
        exit(1);
    }
}

static void open_store(const char *dir, struct store *ret_store)
{
    rocksdb_options_t *options = rocksdb_options_create();
    const rocksdb_options_t *each[FAMILIES_MAX];
    char *error = NULL;

    rocksdb_options_set_info_log_level(options, 4);
    ret_store->names = rocksdb_list_column_families(options, dir, &ret_store->count, &error);
    check(error);
    if (ret_store->count > FAMILIES_MAX) {
        exit(1);
    }
    for (size_t i = 0; i < ret_store->count; i++) {
        each[i] = options;
    }
    ret_store->db = rocksdb_open_column_families(options,
                                                 dir,
                                                 (int)ret_store->count,
                                                 (const char *const *)ret_store->names,
                                                 each,
                                                 ret_store->families,
                                                 &error);
    check(error);
}

static void print_hex(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        printf("%02x", (unsigned char)bytes[i]);
    }
    if (len == 0) {
        putchar('-');
    }
}

static void dump(const struct store *store)
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();

    for (size_t i = 0; i < store->count; i++) {
        rocksdb_iterator_t *walk =
            rocksdb_create_iterator_cf(store->db, options, store->families[i]);
        for (rocksdb_iter_seek_to_first(walk); rocksdb_iter_valid(walk); rocksdb_iter_next(walk)) {
            size_t len = 0;
            const char *key = rocksdb_iter_key(walk, &len);
            printf("%s ", store->names[i]);
            print_hex(key, len);
            putchar(' ');
            const char *value = rocksdb_iter_value(walk, &len);
            print_hex(value, len);
            putchar('\n');
        }
        rocksdb_iter_destroy(walk);
    }
    rocksdb_readoptions_destroy(options);
}

/* In place. */
static size_t from_hex(char *text)
{
    size_t len = strcmp(text, "-") == 0 ? 0 : strlen(text) / 2;

    for (size_t i = 0; i < len; i++) {
        char digits[3] = { text[2 * i], text[2 * i + 1], '\0' };
        text[i] = (char)strtoul(digits, NULL, 16);
    }
    return len;
}

static rocksdb_column_family_handle_t *family_of(const struct store *store, const char *name)
{
    for (size_t i = 0; i < store->count; i++) {
        if (strcmp(store->names[i], name) == 0) {
            return store->families[i];
        }
    }
    fprintf(stderr, "app_edit: no family '%s'\n", name);
    exit(1);
}

static void add_line(const struct store *store, char *line, rocksdb_writebatch_t *batch)
{
    char *rest = NULL;
    char *verb = strtok_r(line, " \n", &rest);
    char *family = strtok_r(NULL, " \n", &rest);
    char *key = strtok_r(NULL, " \n", &rest);
    char *value = strtok_r(NULL, " \n", &rest);

    if (verb == NULL || family == NULL || key == NULL
        || (strcmp(verb, "delete") != 0 && (strcmp(verb, "put") != 0 || value == NULL))) {
        fprintf(stderr, "app_edit: neither 'put FAMILY KEY VALUE' nor 'delete FAMILY KEY'\n");
        exit(2);
    }
    rocksdb_column_family_handle_t *handle = family_of(store, family);
    size_t key_len = from_hex(key);
    if (strcmp(verb, "delete") == 0) {
        rocksdb_writebatch_delete_cf(batch, handle, key, key_len);
    } else {
        size_t value_len = from_hex(value);
        rocksdb_writebatch_put_cf(batch, handle, key, key_len, value, value_len);
    }
}

static void apply(const struct store *store)
{
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    rocksdb_writeoptions_t *options = rocksdb_writeoptions_create();
    char *line = malloc(LINE_MAX);
    char *error = NULL;

    while (line != NULL && fgets(line, LINE_MAX, stdin) != NULL) {
        add_line(store, line, batch);
    }
    rocksdb_writeoptions_set_sync(options, 1);
    rocksdb_write(store->db, options, batch, &error);
    check(error);
    free(line);
    rocksdb_writeoptions_destroy(options);
    rocksdb_writebatch_destroy(batch);
}

int main(int argc, char **argv)
{
    struct store store = { 0 };

    if (argc != 3 || (strcmp(argv[2], "dump") != 0 && strcmp(argv[2], "apply") != 0)) {
        fprintf(stderr, "usage: app_edit DIR dump|apply\n");
        return 2;
    }
    open_store(argv[1], &store);
    if (strcmp(argv[2], "dump") == 0) {
        dump(&store);
    } else {
        apply(&store);
    }
    for (size_t i = 0; i < store.count; i++) {
        rocksdb_column_family_handle_destroy(store.families[i]);
    }
    rocksdb_close(store.db);
    return 0;
}
