/* Values travel in PostgreSQL's binary form: integers big-endian, text and bytes as they are (so a
 * view needs no copy and no NUL behind it), times as microseconds since 2000-01-01 UTC. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "store/postgres/internal.h"

#define EPOCH_US INT64_C(946684800000000) /* 2000-01-01, since 1970 */

enum { /* pg_type.oid; fixed since there are such numbers */
       OID_BOOL = 16,
       OID_BYTEA = 17,
       OID_NAME = 19,
       OID_INT8 = 20,
       OID_INT2 = 21,
       OID_INT4 = 23,
       OID_TEXT = 25,
       OID_JSON = 114,
       OID_FLOAT4 = 700,
       OID_FLOAT8 = 701,
       OID_BYTEA_ARRAY = 1001,
       OID_TEXT_ARRAY = 1009,
       OID_INT8_ARRAY = 1016,
       OID_BPCHAR = 1042,
       OID_VARCHAR = 1043,
       OID_TIMESTAMPTZ = 1184,
       OID_TIMESTAMPTZ_ARRAY = 1185,
       OID_UUID = 2950,
       OID_JSONB = 3802,
};

/* The first type is that of a parameter; a column may have any of them. */
static const struct {
    char letter;
    Oid types[7];
} letters[] = {
    { 'i', { OID_INT8, OID_INT4, OID_INT2 } },
    { 'd', { OID_FLOAT8, OID_FLOAT4 } },
    { 't', { OID_TEXT, OID_VARCHAR, OID_BPCHAR, OID_NAME, OID_JSON, OID_JSONB } },
    { 'x', { OID_BYTEA, OID_UUID } },
    { 'b', { OID_BOOL } },
    { 'z', { OID_TIMESTAMPTZ } },
    { 'I', { OID_INT8_ARRAY } },
    { 'T', { OID_TEXT_ARRAY } },
    { 'X', { OID_BYTEA_ARRAY } },
    { 'Z', { OID_TIMESTAMPTZ_ARRAY } },
};

static const Oid *types_of(char letter)
{
    for (size_t i = 0; i < COUNT_OF(letters); i++) {
        if (letters[i].letter == letter) {
            return letters[i].types;
        }
    }
    pawl__require_failed("a letter of a type", __FILE__, __LINE__, __func__);
}

Oid pawl__pg_param_type(char letter)
{
    return types_of(letter)[0];
}

bool pawl__pg_column_fits(char letter, Oid type)
{
    for (const Oid *at = types_of(letter); *at != 0; at++) {
        if (*at == type) {
            return true;
        }
    }
    return false;
}

static void bind_word(struct pg_bound *bound, size_t i, int64_t value)
{
    bound->words[i] = htobe64((uint64_t)value);
    bound->data[i] = (const char *)&bound->words[i];
    bound->lengths[i] = 8;
}

static void bind_double(struct pg_bound *bound, size_t i, double value)
{
    int64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    bind_word(bound, i, bits);
}

static void bind_bool(struct pg_bound *bound, size_t i, bool value)
{
    bound->data[i] = value ? "\1" : "\0";
    bound->lengths[i] = 1;
}

/* Microseconds since 2000; false when they do not fit. */
static bool stored_time(int64_t wall_us, int64_t *ret_stored)
{
    *ret_stored = wall_us;
    return wall_us == PAWL__PG_TIME_INFINITY || wall_us == PAWL__PG_TIME_MINUS_INFINITY
           || !__builtin_sub_overflow(wall_us, EPOCH_US, ret_stored);
}

static pawl_status bind_time(struct pg_bound *bound, size_t i, int64_t wall_us, pawl_error *reterr)
{
    int64_t value;

    if (!stored_time(wall_us, &value)) {
        return pawl__fail(reterr, PAWL_INVALID, "parameter %zu: time out of range", i + 1);
    }
    bind_word(bound, i, value);
    return PAWL_OK;
}

static pawl_status bind_view(
    struct pg_bound *bound, size_t i, pawl_view view, bool is_text, pawl_error *reterr)
{
    if (view.len > PAWL__PG_VALUE_BYTES_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "parameter %zu has %zu bytes, the limit is %d",
                          i + 1,
                          view.len,
                          PAWL__PG_VALUE_BYTES_MAX);
    }
    /* The server would refuse it too, but in the middle of a pipeline. */
    if (is_text && view.len > 0 && memchr(view.data, '\0', view.len) != NULL) {
        return pawl__fail(
            reterr, PAWL_INVALID, "parameter %zu: text in PostgreSQL cannot hold a NUL", i + 1);
    }
    bound->data[i] = view.len == 0 ? "" : view.data; /* NULL would be SQL's null */
    bound->lengths[i] = (int)view.len;
    return PAWL_OK;
}

static pawl_status bind_array(struct pg_bound *bound,
                              size_t i,
                              const struct pawl__buf *bytes,
                              pawl_error *reterr)
{
    pawl_status status = pawl__buf_check(bytes, "an array", reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "parameter %zu", i + 1);
    }
    bound->data[i] = bytes->data;
    bound->lengths[i] = (int)bytes->len;
    return PAWL_OK;
}

static pawl_status bind_one(struct pg_bound *bound,
                            size_t i,
                            const struct pawl__pg_value *value,
                            pawl_error *reterr)
{
    switch (value->type) {
    case 'i':
        bind_word(bound, i, value->as.i64);
        return PAWL_OK;
    case 'd':
        bind_double(bound, i, value->as.d);
        return PAWL_OK;
    case 'b':
        bind_bool(bound, i, value->as.b);
        return PAWL_OK;
    case 'z':
        return bind_time(bound, i, value->as.i64, reterr);
    case 't':
    case 'x':
        return bind_view(bound, i, value->as.view, value->type == 't', reterr);
    case 'I':
    case 'T':
    case 'X':
    case 'Z':
        return bind_array(bound, i, value->as.array, reterr);
    default:
        REQUIRE(value->type == 0);
        bound->data[i] = NULL;
        bound->lengths[i] = 0;
        return PAWL_OK;
    }
}

pawl_status pawl__pg_bind(const char *types,
                          const struct pawl__pg_value *values,
                          size_t count,
                          struct pg_bound *bound,
                          pawl_error *reterr)
{
    bound->bytes = 0;
    for (size_t i = 0; i < count; i++) {
        REQUIRE(values[i].type == 0 || values[i].type == types[i]);
        TRY(bind_one(bound, i, &values[i], reterr));
        bound->formats[i] = 1;
        bound->bytes += (size_t)bound->lengths[i] + 4;
    }
    return PAWL_OK;
}

/* The binary form of an array: dimensions (1), whether there are nulls (which the server finds out
 * by itself), the elements' type, how many, the first index; then each element behind its length,
 * which is -1 for null. An empty array has 0 dimensions. */
void pawl__pg_array_start(struct pawl__pg_array *array, char letter, size_t count)
{
    static const struct {
        char letter;
        Oid element;
    } elements[] = {
        { 'I', OID_INT8 }, { 'T', OID_TEXT }, { 'X', OID_BYTEA }, { 'Z', OID_TIMESTAMPTZ }
    };
    size_t i = 0;

    while (elements[i].letter != letter) {
        i++;
        REQUIRE(i < COUNT_OF(elements));
    }
    REQUIRE(count <= INT32_MAX);
    array->letter = letter;
    pawl__buf_clear(&array->bytes);
    pawl__buf_add_u32be(&array->bytes, count > 0);
    pawl__buf_add_u32be(&array->bytes, 0);
    pawl__buf_add_u32be(&array->bytes, elements[i].element);
    if (count > 0) {
        pawl__buf_add_u32be(&array->bytes, (uint32_t)count);
        pawl__buf_add_u32be(&array->bytes, 1);
    }
}

void pawl__pg_array_add_i64(struct pawl__pg_array *array, int64_t value)
{
    pawl__buf_add_u32be(&array->bytes, sizeof(value));
    pawl__buf_add_u64be(&array->bytes, (uint64_t)value);
}

void pawl__pg_array_add_null(struct pawl__pg_array *array)
{
    pawl__buf_add_u32be(&array->bytes, UINT32_MAX);
}

void pawl__pg_array_add_view(struct pawl__pg_array *array, pawl_view value)
{
    pawl__buf_add_u32be(&array->bytes, (uint32_t)value.len);
    pawl__buf_add(&array->bytes, value);
}

void pawl__pg_array_add_time(struct pawl__pg_array *array, int64_t wall_us)
{
    int64_t value;

    array->bytes.broken |= !stored_time(wall_us, &value);
    pawl__pg_array_add_i64(array, value);
}

void pawl__pg_array_done(struct pawl__pg_array *array)
{
    pawl__buf_done(&array->bytes);
}

struct pawl__pg_rows pawl__pg_rows_of(PGresult *result, const char *columns)
{
    const char *affected = PQcmdTuples(result);

    return (struct pawl__pg_rows){
        .result = result,
        .columns = columns == NULL ? "" : columns,
        .count = (size_t)PQntuples(result),
        .affected = affected[0] == '\0' ? 0 : strtoll(affected, NULL, 10),
    };
}

void pawl__pg_rows_done(struct pawl__pg_rows *rows)
{
    PQclear(rows->result);
    *rows = (struct pawl__pg_rows){ 0 };
}

static void check_place(const struct pawl__pg_rows *rows, size_t row, size_t column)
{
    REQUIRE(row < rows->count);
    REQUIRE(column < strlen(rows->columns));
}

bool pawl__pg_is_null(const struct pawl__pg_rows *rows, size_t row, size_t column)
{
    check_place(rows, row, column);
    return PQgetisnull(rows->result, (int)row, (int)column) != 0;
}

/* The bytes as they came; an empty view for null. */
static pawl_view raw(const struct pawl__pg_rows *rows, size_t row, size_t column, char letter)
{
    check_place(rows, row, column);
    REQUIRE(rows->columns[column] == letter);
    return (pawl_view){ .data = PQgetvalue(rows->result, (int)row, (int)column),
                        .len = (size_t)PQgetlength(rows->result, (int)row, (int)column) };
}

static int64_t word_of(pawl_view bytes)
{
    uint64_t u64 = 0;
    uint32_t u32 = 0;
    uint16_t u16 = 0;

    switch (bytes.len) {
    case 0:
        return 0;
    case sizeof(u16):
        memcpy(&u16, bytes.data, sizeof(u16));
        return (int16_t)be16toh(u16);
    case sizeof(u32):
        memcpy(&u32, bytes.data, sizeof(u32));
        return (int32_t)be32toh(u32);
    default:
        REQUIRE(bytes.len == sizeof(u64));
        memcpy(&u64, bytes.data, sizeof(u64));
        return (int64_t)be64toh(u64);
    }
}

int64_t pawl__pg_get_i64(const struct pawl__pg_rows *rows, size_t row, size_t column)
{
    return word_of(raw(rows, row, column, 'i'));
}

double pawl__pg_get_double(const struct pawl__pg_rows *rows, size_t row, size_t column)
{
    pawl_view bytes = raw(rows, row, column, 'd');
    int64_t bits = word_of(bytes);
    double value;

    if (bytes.len == sizeof(float)) {
        int32_t bits32 = (int32_t)bits;
        float value32;
        memcpy(&value32, &bits32, sizeof(value32));
        return (double)value32;
    }
    memcpy(&value, &bits, sizeof(value));
    return value;
}

bool pawl__pg_get_bool(const struct pawl__pg_rows *rows, size_t row, size_t column)
{
    pawl_view bytes = raw(rows, row, column, 'b');

    return bytes.len == 1 && bytes.data[0] != 0;
}

int64_t pawl__pg_get_time(const struct pawl__pg_rows *rows, size_t row, size_t column)
{
    pawl_view bytes = raw(rows, row, column, 'z');
    int64_t stored = word_of(bytes);
    int64_t wall_us;

    if (bytes.len == 0 || stored == INT64_MAX || stored == INT64_MIN) {
        return stored; /* null is 0, the others are the infinities */
    }
    /* PostgreSQL counts from 2000, so its last 30 years do not fit us: the year 294247 must do. */
    return __builtin_add_overflow(stored, EPOCH_US, &wall_us) ? INT64_MAX - 1 : wall_us;
}

pawl_view pawl__pg_get_text(const struct pawl__pg_rows *rows, size_t row, size_t column)
{
    pawl_view bytes = raw(rows, row, column, 't');
    uint8_t version = 0;

    if (PQftype(rows->result, (int)column) == OID_JSONB) {
        /* jsonb has a version byte before its text; null has neither. */
        REQUIRE(!pawl__view_take_u8(&bytes, &version) || version == 1);
    }
    return bytes;
}

pawl_view pawl__pg_get_bytes(const struct pawl__pg_rows *rows, size_t row, size_t column)
{
    return raw(rows, row, column, 'x');
}
