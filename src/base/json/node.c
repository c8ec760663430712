#include "base/json/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/nearest.h"
#include "base/core/quantity.h"
#include "base/os/clock.h"

struct pawl__json_node pawl__json_root(json_t *json, const char *name)
{
    return (struct pawl__json_node){ .value = json, .name = name };
}

struct pawl__json_node pawl__json_key(const struct pawl__json_node *object, const char *key)
{
    REQUIRE(json_is_object(object->value));
    return (struct pawl__json_node){
        .value = json_object_get(object->value, key),
        .parent = object,
        .name = key,
    };
}

struct pawl__json_node pawl__json_optional(const struct pawl__json_node *object, const char *key)
{
    struct pawl__json_node node = pawl__json_key(object, key);

    node.optional = true;
    return node;
}

struct pawl__json_node pawl__json_item(const struct pawl__json_node *array, size_t index)
{
    REQUIRE(json_is_array(array->value));
    REQUIRE(index < json_array_size(array->value));
    return (struct pawl__json_node){
        .value = json_array_get(array->value, index),
        .parent = array,
        .index = index,
    };
}

size_t pawl__json_count(const struct pawl__json_node *array)
{
    REQUIRE(json_is_array(array->value));
    return json_array_size(array->value);
}

static void add_path(const struct pawl__json_node *node, struct pawl__buf *buf)
{
    if (node->parent != NULL) {
        add_path(node->parent, buf);
    }
    if (node->name == NULL) {
        pawl__buf_add_format(buf, "[%zu]", node->index);
    } else {
        pawl__buf_add_text(buf, buf->len > 0 ? "." : "");
        pawl__buf_add_text(buf, node->name);
    }
}

pawl_status pawl__json_fail(const struct pawl__json_node *node,
                            pawl_error *reterr,
                            const char *format,
                            ...)
{
    char message[PAWL_ERROR_MESSAGE_SIZE];
    char path_bytes[PAWL_ERROR_MESSAGE_SIZE / 2] = "";
    struct pawl__buf path = BUF_OVER(path_bytes);
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    add_path(node, &path);
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "%s%s%s%s",
                      path_bytes,
                      path.broken ? "..." : "", /* a key longer than any message */
                      path.len > 0 ? ": " : "",
                      message);
}

static const char *type_name(const json_t *json)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        break;
    }
    return "null";
}

static bool is_absent(const struct pawl__json_node *node)
{
    return node->optional && (node->value == NULL || json_is_null(node->value));
}

static pawl_status fail_type(const struct pawl__json_node *node,
                             const char *expected,
                             pawl_error *reterr)
{
    if (node->value == NULL) {
        return pawl__json_fail(node, reterr, "missing, expected %s", expected);
    }
    return pawl__json_fail(node, reterr, "expected %s, found %s", expected, type_name(node->value));
}

/* Absent and optional is PAWL_OK with *ret_found false: what the caller has set stays. */
static pawl_status find(const struct pawl__json_node *node,
                        bool is_expected,
                        const char *expected,
                        bool *ret_found,
                        pawl_error *reterr)
{
    *ret_found = is_expected;
    return is_expected || is_absent(node) ? PAWL_OK : fail_type(node, expected, reterr);
}

pawl_status pawl__json_text(struct pawl__json_node node, pawl_view *ret_text, pawl_error *reterr)
{
    bool found = false;

    TRY(find(&node, json_is_string(node.value), "a string", &found, reterr));
    if (found) {
        *ret_text = (pawl_view){ json_string_value(node.value), json_string_length(node.value) };
    }
    return PAWL_OK;
}

/* A real is never an integer, not even 1.0: 0.99999999999999999999 reads as the same double, and an
 * integer that is rounded silently is worse than one that has to be written without its point. */
static pawl_status fail_real(const struct pawl__json_node *node, pawl_error *reterr)
{
    char text_space[64] = "";
    struct pawl__buf text = BUF_OVER(text_space);

    if (pawl__json_dump(node->value, &text, NULL) != PAWL_OK) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for JSON");
    }
    return pawl__json_fail(
        node, reterr, "expected an integer without point and exponent, found %s", text.data);
}

pawl_status pawl__json_int(
    struct pawl__json_node node, int64_t min, int64_t max, int64_t *ret_value, pawl_error *reterr)
{
    bool found = false;

    TRY(find(&node, json_is_number(node.value), "an integer", &found, reterr));
    if (!found) {
        return PAWL_OK;
    }
    if (json_is_real(node.value)) {
        return fail_real(&node, reterr);
    }
    int64_t value = json_integer_value(node.value);
    if (value < min || value > max) {
        return pawl__json_fail(&node,
                               reterr,
                               "%lld is not within %lld to %lld",
                               (long long)value,
                               (long long)min,
                               (long long)max);
    }
    *ret_value = value;
    return PAWL_OK;
}

pawl_status pawl__json_duration(struct pawl__json_node node,
                                const int64_t range[2],
                                int64_t *ret_ms,
                                pawl_error *reterr)
{
    char least[PAWL__QUANTITY_SIZE];
    char most[PAWL__QUANTITY_SIZE];
    pawl_error wrong = PAWL_ERROR_INIT;
    pawl_view text = { NULL, 0 };
    int64_t ns = 0;

    TRY(pawl__json_text(node, &text, reterr));
    if (text.data == NULL) {
        return PAWL_OK;
    }
    if (pawl__duration_parse(text, &ns, &wrong) != PAWL_OK) {
        return pawl__json_fail(&node, reterr, "%s", wrong.message);
    }
    if (ns < range[0] * NS_PER_MS || ns > range[1] * NS_PER_MS) {
        pawl__duration_format(range[0] * NS_PER_MS, least);
        pawl__duration_format(range[1] * NS_PER_MS, most);
        return pawl__json_fail(&node, reterr, "not within %s and %s", least, most);
    }
    *ret_ms = ns / NS_PER_MS;
    return PAWL_OK;
}

pawl_status pawl__json_real(struct pawl__json_node node, double *ret_value, pawl_error *reterr)
{
    bool found = false;

    TRY(find(&node, json_is_number(node.value), "a number", &found, reterr));
    *ret_value = found ? json_number_value(node.value) : *ret_value;
    return PAWL_OK;
}

pawl_status pawl__json_bool(struct pawl__json_node node, bool *ret_value, pawl_error *reterr)
{
    bool found = false;

    TRY(find(&node, json_is_boolean(node.value), "a boolean", &found, reterr));
    *ret_value = found ? json_is_true(node.value) : *ret_value;
    return PAWL_OK;
}

pawl_status pawl__json_object(struct pawl__json_node node,
                              struct pawl__json_node *ret_object,
                              pawl_error *reterr)
{
    bool found = false;

    TRY(find(&node, json_is_object(node.value), "an object", &found, reterr));
    *ret_object = found ? node : *ret_object;
    return PAWL_OK;
}

pawl_status pawl__json_array(struct pawl__json_node node,
                             struct pawl__json_node *ret_array,
                             pawl_error *reterr)
{
    bool found = false;

    TRY(find(&node, json_is_array(node.value), "an array", &found, reterr));
    *ret_array = found ? node : *ret_array;
    return PAWL_OK;
}

static bool is_among(const char *key, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(key, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static pawl_status fail_unknown(const struct pawl__json_node *node,
                                const char *const *names,
                                size_t count,
                                pawl_error *reterr)
{
    char hint_bytes[PAWL_ERROR_MESSAGE_SIZE / 2] = "";
    struct pawl__buf hint = BUF_OVER(hint_bytes);
    struct pawl__nearest nearest = pawl__nearest_to(pawl_view_of(node->name));

    for (size_t i = 0; i < count; i++) {
        pawl__nearest_offer(&nearest, names[i]);
    }
    pawl__nearest_add_hint(&nearest, &hint);
    for (size_t i = 0; nearest.count == 0 && i < count; i++) {
        pawl__buf_add_format(&hint, "%s%s", i == 0 ? "; known: " : ", ", names[i]);
    }
    return pawl__json_fail(node, reterr, "unknown key%s", hint_bytes);
}

pawl_status pawl__json_only(const struct pawl__json_node *object,
                            const char *const *names,
                            size_t count,
                            pawl_error *reterr)
{
    const char *key;
    json_t *value;

    REQUIRE(json_is_object(object->value));
    json_object_foreach(object->value, key, value)
    {
        if (!is_among(key, names, count)) {
            struct pawl__json_node node = { .value = value, .parent = object, .name = key };
            return fail_unknown(&node, names, count, reterr);
        }
    }
    return PAWL_OK;
}
