#include "base/json/object.h"

#include "base/json/json.h"
#include "base/os/clock.h"
#include "base/terminal/display.h"

struct pawl__object pawl__object_start(struct pawl__buf *buf)
{
    pawl__buf_add_char(buf, '{');
    return (struct pawl__object){ .buf = buf };
}

void pawl__object_key(struct pawl__object *object, const char *key)
{
    pawl__buf_add_format(object->buf, "%s\"%s\":", object->any ? "," : "", key);
    object->any = true;
}

void pawl__object_text(struct pawl__object *object, const char *key, pawl_view text)
{
    pawl__object_key(object, key);
    if (text.len == 0) {
        pawl__buf_add_text(object->buf, "null");
    } else {
        pawl__display_add_json(object->buf, text);
    }
}

void pawl__object_integer(struct pawl__object *object, const char *key, int64_t value)
{
    pawl__object_key(object, key);
    pawl__buf_add_format(object->buf, "%lld", (long long)value);
}

void pawl__object_bool(struct pawl__object *object, const char *key, bool value)
{
    pawl__object_key(object, key);
    pawl__buf_add_text(object->buf, value ? "true" : "false");
}

void pawl__object_real(struct pawl__object *object, const char *key, double value)
{
    pawl__object_key(object, key);
    pawl__buf_add_real(object->buf, value);
}

void pawl__object_time(struct pawl__object *object, const char *key, int64_t us)
{
    char text[PAWL__TIME_SIZE] = "";

    if (us != 0) {
        pawl__time_rfc3339(us, text);
    }
    pawl__object_text(object, key, pawl_view_of(text));
}

/* Line breaks in JSON stand between values: a blank means the same, and the object stays a line. */
static void add_on_one_line(struct pawl__buf *buf, pawl_view json)
{
    pawl_view part;

    while (json.len > 0 && pawl__view_split(&json, '\n', &part)) {
        pawl__buf_add(buf, part);
        pawl__buf_add_text(buf, json.len > 0 ? " " : "");
    }
}

void pawl__object_json(struct pawl__object *object, const char *key, pawl_view json)
{
    if (json.len == 0 || pawl__json_check(json, SIZE_MAX / 2, NULL) != PAWL_OK) {
        pawl__object_text(object, key, json);
        return;
    }
    pawl__object_key(object, key);
    add_on_one_line(object->buf, json);
}

void pawl__object_end(struct pawl__object *object)
{
    pawl__buf_add_char(object->buf, '}');
}
