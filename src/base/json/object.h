/* One JSON object that grows in a buffer: { "key": value, ... }. Values that are missing are null. */
#ifndef PAWL_BASE_JSON_OBJECT_H
#define PAWL_BASE_JSON_OBJECT_H

#include <pawl/pawl.h>

#include "base/core/buf.h"

struct pawl__object {
    struct pawl__buf *buf;
    bool any;
};

struct pawl__object pawl__object_start(struct pawl__buf *buf);
void pawl__object_text(struct pawl__object *object, const char *key, pawl_view text);
void pawl__object_integer(struct pawl__object *object, const char *key, int64_t value);
void pawl__object_bool(struct pawl__object *object, const char *key, bool value);
void pawl__object_real(struct pawl__object *object, const char *key, double value);
void pawl__object_time(struct pawl__object *object, const char *key, int64_t us); /* 0: none */
/* A stored JSON value, on one line; foreign SQL may have stored something else, which is then a
 * string. */
void pawl__object_json(struct pawl__object *object, const char *key, pawl_view json);
/* The key alone; the caller adds the value. */
void pawl__object_key(struct pawl__object *object, const char *key);
void pawl__object_end(struct pawl__object *object);

#endif
