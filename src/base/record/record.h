/* What a record consists of, said once: a table of its fields. Copies, JSON in both directions, columns of a
 * list and the schema in an API's description all come from it.
 *
 *     static const struct pawl__field fields[] = {
 *         { FIELD(pawl_task, task_id, FIELD_TEXT), .flags = FIELD_REQUIRED, .about = "Its name" },
 *         { FIELD(pawl_task, metadata, FIELD_JSON), .about = "Any JSON value" },
 *         { FIELD_AS("created_at", pawl_task, created_at_us, FIELD_TIME) },
 *     };
 *     const struct pawl__record task_record = RECORD("Task", pawl_task, fields);
 *
 * A record is plain memory that starts with zeros: a text without bytes, a time of 0 and a pointer that is
 * NULL are values that are missing, and null in JSON. */
#ifndef PAWL_BASE_RECORD_RECORD_H
#define PAWL_BASE_RECORD_RECORD_H

#include <stddef.h>

#include "base/core/arena.h"
#include "base/core/buf.h"
#include "base/json/json.h"
#include "base/json/object.h"
#include "base/os/clock.h"
#include "base/terminal/table.h"

enum pawl__field_kind {
    FIELD_TEXT,     /* pawl_view. min, max: its bytes */
    FIELD_JSON,     /* pawl_view: a value of any kind as JSON */
    FIELD_BOOL,     /* bool */
    FIELD_INT32,    /* int32_t. min, max: its value; both 0 is no limit */
    FIELD_INT64,    /* int64_t, likewise */
    FIELD_UINT64,   /* uint64_t up to INT64_MAX, likewise */
    FIELD_DURATION, /* int64_t in milliseconds, "30s" in JSON. min, max: in milliseconds */
    FIELD_TIME,     /* int64_t in microseconds since 1970, RFC 3339 in JSON; written, never read */
    FIELD_ENUM,     /* an enum without gaps from 0 on, or FIELD_ENUM_NONE: `names` */
    FIELD_NAME,     /* const char *, of static memory; written, never read */
    FIELD_CHARS,    /* char[], with a NUL; written, never read */
    FIELD_REAL,     /* double; written, never read */
    FIELD_TEXTS,    /* const pointer to pawl_views, and a size_t of how many, of min to max */
    FIELD_RECORD,   /* const pointer to a `record` */
    FIELD_RECORDS,  /* const pointer to `record`s, and a size_t of how many, of min to max */
};

enum {
    FIELD_REQUIRED = 1 << 0, /* must be there when it is read */
    FIELD_SET = 1 << 1,      /* is always there when it is written: never null */
    FIELD_BLANK = 1 << 2,    /* a text that may be empty when it is read */
    FIELD_OMITTED = 1 << 3,  /* left out instead of null when it is written; a number: below 0 */
    FIELD_OR_ONE = 1 << 4,   /* RECORDS: instead of the object, one of the records may be read */
    FIELD_OBJECT = 1 << 5,   /* JSON: an object, of any keys */
};
#define FIELD_ENUM_NONE (~0U) /* nothing was read */

struct pawl__field {
    const char *name; /* in JSON */
    enum pawl__field_kind kind;
    size_t offset;
    unsigned flags;
    int64_t min;
    int64_t max;
    const char *const *names; /* ENUM: by value, NULL after the last */
    const struct pawl__record *record;
    size_t count_offset; /* TEXTS, RECORDS */
    const char *refused; /* why it is not read, though it is written; NULL: it is */
    const char *about;   /* one sentence, for people who use the API */
};

struct pawl__record {
    const char *name;
    size_t size;
    const struct pawl__field *fields;
    size_t count;
    const struct pawl__record
        *extends; /* whose fields come first, when it is written: its value begins with one of
                                         * those; NULL: none */
    const void *initial; /* what it is before it is read; NULL: zeros */
    const char *about;
    bool sized; /* it begins with its size, which copies have set */
};

#define FIELD_AS(name_, type, member, kind_) \
    .name = (name_), .kind = (kind_), .offset = offsetof(type, member)
#define FIELD(type, member, kind_) FIELD_AS(#member, type, member, kind_)
#define RECORD(name_, type, fields_)                                                            \
    {                                                                                           \
        .name = (name_), .size = sizeof(type), .fields = (fields_), .count = COUNT_OF(fields_), \
    }
/* With the value that reading starts from. */
#define RECORD_FROM(name_, type, fields_, initial_)                                             \
    {                                                                                           \
        .name = (name_), .size = sizeof(type), .fields = (fields_), .count = COUNT_OF(fields_), \
        .initial = (initial_),                                                                  \
    }

/* Of a struct of the public headers, which begins with its size. */
#define SIZED_RECORD(name_, type, fields_)                                                      \
    {                                                                                           \
        .name = (name_), .size = sizeof(type), .fields = (fields_), .count = COUNT_OF(fields_), \
        .sized = true,                                                                          \
    }

/* NULL: there is none of this name. */
const struct pawl__field *pawl__record_field(const struct pawl__record *record, const char *name);

/* --- memory --- */

/* INVALID names the first text that has a length and no bytes. */
PAWL_MUST_USE pawl_status pawl__record_check(const struct pawl__record *record,
                                             const void *value,
                                             pawl_error *reterr);

/* A copy with everything it points to in the arena; false without memory: then it is incomplete. */
PAWL_MUST_USE bool pawl__record_copy(const struct pawl__record *record,
                                     struct pawl__arena *arena,
                                     const void *from,
                                     void *ret_copy);

/* Copies of records with texts alone, in one block: bytes that their texts need, each with a NUL, and moving
 * them there; returns the end of what was written. */
size_t pawl__record_text_bytes(const struct pawl__record *record, const void *value);
char *pawl__record_move_texts(const struct pawl__record *record, void *value, char *to);

/* --- JSON --- */

/* Adds an object with all fields. A NULL value is null. */
void pawl__record_write(const struct pawl__record *record,
                        const void *value,
                        struct pawl__buf *buf);
/* The same into an object that has, or gets, other keys as well. */
void pawl__record_write_fields(const struct pawl__record *record,
                               const void *value,
                               struct pawl__object *object);

/* Reads an object; what it leaves out keeps the value that *ret_value has. Texts point into the JSON or the
 * arena. INVALID names the field: one that is unknown, missing, of another type or out of its range. */
PAWL_MUST_USE pawl_status pawl__record_read(const struct pawl__record *record,
                                            struct pawl__json_node node,
                                            struct pawl__arena *arena,
                                            void *ret_value,
                                            pawl_error *reterr);

/* Makes *ret_value what it is before anything is read into it. */
void pawl__record_start(const struct pawl__record *record, void *ret_value);

/* Reads one field out of a text: a part of a path, a parameter of a query. Neither JSON, TEXTS nor RECORDS. INVALID
 * names the field. */
PAWL_MUST_USE pawl_status pawl__record_read_text(const struct pawl__field *field,
                                                 pawl_view text,
                                                 void *value,
                                                 pawl_error *reterr);

/* --- rows --- */

/* The field's value as a cell; `time` holds the text of one that is a time. */
struct pawl__cell pawl__record_cell(const struct pawl__field *field,
                                    const void *value,
                                    char time[PAWL__TIME_SIZE]);

/* --- schemas --- */

/* Adds the JSON schema of what pawl__record_write writes, or of what pawl__record_read reads. Records inside
 * it are references to #/components/schemas. */
enum pawl__record_use { RECORD_WRITTEN, RECORD_READ };
void pawl__record_schema(const struct pawl__record *record,
                         enum pawl__record_use use,
                         struct pawl__buf *buf);
/* {"$ref": "#/components/schemas/NAME"}: the name of one that is read ends in "Input". */
void pawl__record_reference(const struct pawl__record *record,
                            enum pawl__record_use use,
                            struct pawl__buf *buf);
const char *pawl__record_suffix(enum pawl__record_use use);
/* That of one field: {"type": "integer", ...}. `initial` has the value that it has when it is left out; NULL: none. */
void pawl__field_schema(const struct pawl__field *field,
                        enum pawl__record_use use,
                        const void *initial,
                        struct pawl__buf *buf);

#endif
