#include "delivery/rocksdb/row.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/crc32c.h"
#include "base/core/error.h"

enum { SEAL_BYTES = 4, HASH_BYTES = sizeof(struct delivery_hash) };

static uint32_t checksum(pawl_view key, pawl_view body)
{
    return pawl__crc32c(body) ^ pawl__crc32c(key);
}

void pawl__delivery_row_begin(uint8_t version, struct pawl__buf *value)
{
    pawl__buf_clear(value);
    pawl__buf_add_u8(value, version);
}

void pawl__delivery_row_seal(pawl_view key, struct pawl__buf *value)
{
    if (!value->broken) {
        pawl__buf_add_u32be(value, checksum(key, pawl__buf_view(value)));
    }
}

pawl_status pawl__delivery_row_open(uint8_t version,
                                    pawl_view key,
                                    const char *name,
                                    pawl_view value,
                                    struct delivery_row *ret_row,
                                    pawl_error *reterr)
{
    pawl_view rest = value;
    pawl_view body = value;
    uint32_t crc = 0;
    uint8_t found = 0;

    if (value.len <= SEAL_BYTES || !pawl__view_take(&rest, value.len - SEAL_BYTES, &body)
        || !pawl__view_take_u32be(&rest, &crc) || crc != checksum(key, body)
        || !pawl__view_take_u8(&body, &found)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "%s is damaged: its checksum does not fit", name);
    }
    if (found != version) {
        return pawl__fail(reterr,
                          PAWL_UNSUPPORTED,
                          "%s has format %u, this pawl knows %u: use a newer one",
                          name,
                          found,
                          version);
    }
    *ret_row = (struct delivery_row){ .rest = body, .ok = true };
    return PAWL_OK;
}

pawl_status pawl__delivery_row_finish(const struct delivery_row *in,
                                      const char *name,
                                      pawl_error *reterr)
{
    return in->ok && in->rest.len == 0
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_CORRUPT, "%s is damaged: its fields do not fit", name);
}

uint8_t pawl__delivery_row_take_u8(struct delivery_row *in, uint8_t max)
{
    uint8_t value = 0;

    in->ok = in->ok && pawl__view_take_u8(&in->rest, &value) && value <= max;
    return value;
}

uint32_t pawl__delivery_row_take_u32(struct delivery_row *in)
{
    uint32_t value = 0;

    in->ok = in->ok && pawl__view_take_u32be(&in->rest, &value);
    return value;
}

uint64_t pawl__delivery_row_take_u64(struct delivery_row *in)
{
    uint64_t value = 0;

    in->ok = in->ok && pawl__view_take_u64be(&in->rest, &value);
    return value;
}

void pawl__delivery_row_take_bytes(struct delivery_row *in, void *ret_bytes, size_t len)
{
    pawl_view bytes;

    in->ok = in->ok && pawl__view_take(&in->rest, len, &bytes);
    if (in->ok) {
        memcpy(ret_bytes, bytes.data, len);
    }
}

pawl_view pawl__delivery_row_take_text(struct delivery_row *in)
{
    pawl_view text = { NULL, 0 };
    uint32_t len = pawl__delivery_row_take_u32(in);

    in->ok = in->ok && pawl__view_take(&in->rest, len, &text);
    return text;
}

void pawl__delivery_row_add_text(struct pawl__buf *value, pawl_view text)
{
    if (text.len > DELIVERY_ROW_BYTES_MAX) {
        value->broken = true;
        return;
    }
    pawl__buf_add_u32be(value, (uint32_t)text.len);
    pawl__buf_add(value, text);
}

void pawl__delivery_row_add_hash(struct pawl__buf *value, const struct delivery_hash *hash)
{
    pawl__buf_add(value, (pawl_view){ (const char *)hash->bytes, HASH_BYTES });
}

void pawl__delivery_row_add_short(struct pawl__buf *value, const char *text, size_t size)
{
    size_t len = strnlen(text, MIN(size - 1, (size_t)UINT8_MAX));

    pawl__buf_add_u8(value, (uint8_t)len);
    pawl__buf_add(value, (pawl_view){ text, len });
}

void pawl__delivery_row_take_short(struct delivery_row *in, char *ret_text, size_t size)
{
    size_t len = pawl__delivery_row_take_u8(in, (uint8_t)MIN(size - 1, (size_t)UINT8_MAX));

    memset(ret_text, 0, size);
    if (in->ok) {
        pawl__delivery_row_take_bytes(in, ret_text, len);
    }
    in->ok = in->ok && strnlen(ret_text, size) == len;
}

/* --- the row "format" --- */

enum { FORMAT_ROW_VERSION = 1 };

static const char format_key[] = "format";

static void name_format_row(const char *magic, char ret_name[64])
{
    snprintf(ret_name, 64, "the row 'format' of the %.32s", magic);
}

void pawl__delivery_row_format_encode(const char *magic, uint32_t format, struct pawl__buf *value)
{
    pawl__delivery_row_begin(FORMAT_ROW_VERSION, value);
    pawl__buf_add_text(value, magic);
    pawl__buf_add_u32be(value, format);
    pawl__delivery_row_seal(pawl_view_of(format_key), value);
}

pawl_status pawl__delivery_row_format_decode(const char *magic,
                                             uint32_t known,
                                             pawl_view value,
                                             pawl_error *reterr)
{
    struct delivery_row in;
    pawl_view found = { NULL, 0 };
    char name[64];

    name_format_row(magic, name);
    TRY(pawl__delivery_row_open(
        FORMAT_ROW_VERSION, pawl_view_of(format_key), name, value, &in, reterr));
    in.ok = pawl__view_take(&in.rest, strlen(magic), &found) && pawl__view_is(found, magic);
    uint32_t format = pawl__delivery_row_take_u32(&in);
    TRY(pawl__delivery_row_finish(&in, name, reterr));
    if (format != known) {
        return pawl__fail(reterr,
                          PAWL_UNSUPPORTED,
                          "the %s has format %" PRIu32 ", this pawl knows %" PRIu32
                          ": use a newer one",
                          magic,
                          format,
                          known);
    }
    return PAWL_OK;
}

/* --- directories --- */

static bool has_suffix(const char *name, const char *suffix)
{
    size_t len = strlen(name);

    return len >= strlen(suffix) && strcmp(&name[len - strlen(suffix)], suffix) == 0;
}

/* What a store leaves behind whose creation was interrupted. */
static bool belongs_to_beginning(const char *name)
{
    return name[0] == '.' || strcmp(name, "pawl.lock") == 0 || strcmp(name, "LOCK") == 0
           || strcmp(name, "IDENTITY") == 0 || strncmp(name, "MANIFEST-", 9) == 0
           || strncmp(name, "OPTIONS-", 8) == 0 || has_suffix(name, ".dbtmp");
}

static void close_dir(DIR **stream)
{
    if (*stream != NULL) {
        closedir(*stream);
    }
}

pawl_status pawl__delivery_row_refuse_foreign(const char *dir, const char *what, pawl_error *reterr)
{
    bool exists = false;

    TRY(pawl__rocks_inspect(dir, &exists, reterr));
    AUTO(close_dir) DIR *stream = exists ? NULL : opendir(dir);
    if (stream == NULL) {
        return exists || errno == ENOENT ? PAWL_OK
                                         : pawl__fail_errno(reterr, errno, "read '%s'", dir);
    }
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (!belongs_to_beginning(entry->d_name)) {
            return pawl__fail(
                reterr,
                PAWL_INVALID,
                "the directory is not %s %s: it holds '%s'; name an empty or a new one",
                strchr("aeiou", what[0]) != NULL ? "an" : "a",
                what,
                entry->d_name);
        }
    }
    return PAWL_OK;
}

struct pawl__rocks_options pawl__delivery_rocksdb_engine_options(
    const struct delivery_rocksdb_options *options)
{
    return (struct pawl__rocks_options){
        .memtable_bytes = options->memtable_bytes,
        .background_jobs = options->background_jobs,
        .blob_bytes_min = options->blob_bytes_min,
        .blob_file_bytes = options->blob_file_bytes,
        .free_space_min = options->free_space_min,
        .read_only = options->read_only,
        .no_compression = options->no_compression,
        .unsafe_no_sync = options->unsafe_no_sync,
        .clock = options->clock,
    };
}
