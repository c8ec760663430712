/* Metrics of several registries as one text. Prometheus wants the series of a metric together, after one head. */
#include "base/log/metrics.h"

#include <string.h>

static bool begins_with(pawl_view text, const char *start)
{
    return text.len >= strlen(start) && memcmp(text.data, start, strlen(start)) == 0;
}

/* One metric of a text: its name, and all of its lines. */
struct block {
    pawl_view name;
    pawl_view lines;
};

/* Of "# HELP name What it is." */
static pawl_view name_in(pawl_view head)
{
    pawl_view name = head;

    if (pawl__view_take(&head, strlen("# HELP "), &name)) {
        name = head;
        (void)!pawl__view_split(&head, ' ', &name);
    }
    return name;
}

/* The next metric, taken from the text; false: there is none left. */
static bool next_block(pawl_view *text, struct block *ret_block)
{
    pawl_view rest = *text;
    pawl_view line;

    if (!pawl__view_split(&rest, '\n', &line)) {
        return false;
    }
    ret_block->name = name_in(line);
    for (pawl_view after = rest; pawl__view_split(&after, '\n', &line); rest = after) {
        if (begins_with(line, "# HELP ")) {
            break;
        }
    }
    return pawl__view_take(text, text->len - rest.len, &ret_block->lines);
}

static bool find_block(pawl_view text, pawl_view name, struct block *ret_block)
{
    while (next_block(&text, ret_block)) {
        if (pawl__view_equal(ret_block->name, name)) {
            return true;
        }
    }
    return false;
}

static void add_series(struct pawl__buf *out, pawl_view lines)
{
    pawl_view line;

    while (pawl__view_split(&lines, '\n', &line)) {
        if (!begins_with(line, "#")) {
            pawl__buf_add(out, line);
            pawl__buf_add_text(out, "\n");
        }
    }
}

static bool is_in_any(const pawl_view *texts, size_t count, pawl_view name)
{
    struct block block;

    for (size_t i = 0; i < count; i++) {
        if (find_block(texts[i], name, &block)) {
            return true;
        }
    }
    return false;
}

void pawl__metrics_join(const pawl_view *texts, size_t count, struct pawl__buf *out)
{
    for (size_t i = 0; i < count; i++) {
        pawl_view text = texts[i];
        struct block block;

        while (next_block(&text, &block)) {
            if (is_in_any(texts, i, block.name)) {
                continue; /* it was added with the first one */
            }
            pawl__buf_add(out, block.lines);
            for (size_t j = i + 1; j < count; j++) {
                struct block same;

                if (find_block(texts[j], block.name, &same)) {
                    add_series(out, same.lines);
                }
            }
        }
    }
}
