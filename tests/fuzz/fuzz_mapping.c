/* A path, a line end, and any bytes as a payload: no crash; what a path finds in JSON is JSON; an event that is judged
 * to be a row has a value for every column; and any payload can be stored as JSON. */
#include "fuzz/fuzz.h"

#include "base/json/json.h"
#include "delivery/mapping/mapping.h"
#include "delivery/mapping/path.h"

static void try_path(const char *path, pawl_view payload)
{
    pawl_view value;
    bool is_found = false;

    CHECK(pawl__delivery_path_find(payload, path, &is_found, &value, NULL) == PAWL_OK);
    if (is_found) {
        CHECK(value.data >= payload.data && value.len <= payload.len);
        CHECK(pawl__json_check(value, value.len, NULL) == PAWL_OK);
    }
}

static void try_row(const struct delivery_mapping *mapping,
                    const struct delivery_entry *entry,
                    struct pawl__arena *arena)
{
    struct delivery_verdict verdict;

    CHECK(pawl__delivery_map_verdict(mapping, entry, &verdict, NULL) == PAWL_OK);
    for (size_t i = 0; verdict.kind == DELIVERY_ROW && i < mapping->count; i++) {
        struct delivery_value value;
        CHECK(pawl__delivery_map_value(&mapping->columns[i], entry, arena, &value, NULL)
              == PAWL_OK);
    }
}

static void try_types(const char *path,
                      const struct delivery_entry *entry,
                      struct pawl__arena *arena)
{
    for (int type = DELIVERY_BIGINT; type <= DELIVERY_JSON; type++) {
        const struct delivery_column column = { .name = "v",
                                                .type = (enum delivery_type)type,
                                                .path = path };
        const struct delivery_mapping mapping = { .table = "t", .columns = &column, .count = 1 };
        try_row(&mapping, entry, arena);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pawl__arena arena = ARENA_INIT;
    pawl_view payload = { (const char *)data, size };
    pawl_view line;
    pawl_view json;
    enum delivery_encoding encoding = DELIVERY_AS_JSON;

    if (!pawl__view_split(&payload, '\n', &line)) {
        return -1;
    }
    char *path = pawl__view_dup(line);
    struct delivery_entry entry = { .transaction_id = pawl_view_of("a:b:0"), .payload = payload };
    CHECK(path != NULL);
    if (pawl__delivery_path_check(path, NULL) == PAWL_OK) {
        if (pawl__json_check(payload, payload.len, NULL) == PAWL_OK) {
            try_path(path, payload);
        }
        try_types(path, &entry, &arena);
    }
    try_row(pawl__delivery_default_mapping(), &entry, &arena);
    CHECK(pawl__delivery_payload_json(payload, &arena, &encoding, &json, NULL) == PAWL_OK);
    CHECK(pawl__json_check(json, json.len, NULL) == PAWL_OK);
    CHECK(pawl__delivery_clean_text(payload, &arena, &json, NULL) == PAWL_OK);
    CHECK(pawl__view_is_utf8(json));
    pawl__arena_done(&arena);
    free(path);
    return 0;
}
