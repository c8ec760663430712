#include "work/checkpoints/diff.h"

#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/json/json.h"

/* A walk: the path to where it stands, and room for the two values. Its depth is bounded by what
 * pawl__json_parse lets in. */
struct walk {
    pawl_difference_visit visit;
    void *context;
    struct pawl__buf path;
    struct pawl__buf from;
    struct pawl__buf to;
    bool stopped;
};

static void walk_done(struct walk *walk)
{
    pawl__buf_done(&walk->path);
    pawl__buf_done(&walk->from);
    pawl__buf_done(&walk->to);
}

static pawl_status compare(struct walk *walk, json_t *from, json_t *to, pawl_error *reterr);

static void add_key(struct pawl__buf *path, const char *key)
{
    pawl__buf_add_char(path, '/');
    for (; *key != '\0'; key++) {
        if (*key == '~' || *key == '/') {
            pawl__buf_add_text(path, *key == '~' ? "~0" : "~1");
        } else {
            pawl__buf_add_char(path, *key);
        }
    }
}

static pawl_status step(struct walk *walk, size_t back_to, json_t *a, json_t *b, pawl_error *reterr)
{
    pawl_status status = pawl__buf_check(&walk->path, "the path", reterr);

    if (status == PAWL_OK) {
        status = compare(walk, a, b, reterr);
    }
    pawl__buf_cut(&walk->path, back_to);
    return status;
}

/* Leaves the canonical form in the buffer; empty for a value that is not there. */
static pawl_status write_value(json_t *value, struct pawl__buf *buf, pawl_error *reterr)
{
    pawl__buf_clear(buf);
    return value == NULL ? PAWL_OK : pawl__json_canonical(value, buf, reterr);
}

static pawl_status compare_plain(struct walk *walk, json_t *from, json_t *to, pawl_error *reterr)
{
    TRY(write_value(from, &walk->from, reterr));
    TRY(write_value(to, &walk->to, reterr));
    pawl_view before = pawl__buf_view(&walk->from);
    pawl_view after = pawl__buf_view(&walk->to);
    if (!pawl__view_equal(before, after)) {
        const pawl_difference difference = {
            sizeof(difference), pawl__buf_view(&walk->path), before, after
        };
        walk->stopped = !walk->visit(walk->context, &difference);
    }
    return PAWL_OK;
}

static pawl_status compare_objects(struct walk *walk, json_t *from, json_t *to, pawl_error *reterr)
{
    size_t back_to = walk->path.len;
    const char *key;
    json_t *value;
    pawl_status status = PAWL_OK;

    json_object_foreach(from, key, value)
    {
        if (status == PAWL_OK && !walk->stopped) {
            add_key(&walk->path, key);
            status = step(walk, back_to, value, json_object_get(to, key), reterr);
        }
    }
    json_object_foreach(to, key, value)
    {
        if (status == PAWL_OK && !walk->stopped && json_object_get(from, key) == NULL) {
            add_key(&walk->path, key);
            status = step(walk, back_to, NULL, value, reterr);
        }
    }
    return status;
}

static pawl_status compare_arrays(struct walk *walk, json_t *from, json_t *to, pawl_error *reterr)
{
    size_t back_to = walk->path.len;
    size_t count = MAX(json_array_size(from), json_array_size(to));

    for (size_t i = 0; i < count && !walk->stopped; i++) {
        pawl__buf_add_format(&walk->path, "/%zu", i);
        /* NULL after the end: jansson's own answer. */
        TRY(step(walk, back_to, json_array_get(from, i), json_array_get(to, i), reterr));
    }
    return PAWL_OK;
}

static pawl_status compare(struct walk *walk, json_t *from, json_t *to, pawl_error *reterr)
{
    if (json_is_object(from) && json_is_object(to)) {
        return compare_objects(walk, from, to, reterr);
    }
    if (json_is_array(from) && json_is_array(to)) {
        return compare_arrays(walk, from, to, reterr);
    }
    return compare_plain(walk, from, to, reterr);
}

pawl_status pawl__work_json_diff(
    pawl_view from, pawl_view to, pawl_difference_visit visit, void *context, pawl_error *reterr)
{
    json_auto_t *before = NULL;
    json_auto_t *after = NULL;
    size_t bytes_max = 8 * (MAX(from.len, to.len) + 64); /* "\u0001" and 1e300 written out */
    AUTO(walk_done)
    struct walk walk = {
        .visit = visit,
        .context = context,
        .path = BUF_INIT(bytes_max),
        .from = BUF_INIT(bytes_max),
        .to = BUF_INIT(bytes_max),
    };

    pawl_status status = pawl__json_parse(from, from.len, &before, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "from");
    }
    status = pawl__json_parse(to, to.len, &after, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "to");
    }
    return compare(&walk, before, after, reterr);
}
