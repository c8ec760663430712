#include "base/error.h"
#include "base/macros.h"
#include "cli/commands.h"
#include "cli/run.h"
#include "cli/text.h"
#include "store/parts.h"

#define VERSION_BYTES_MAX 8192

static void add_text(struct pawl__buf *out, const struct pawl__part *parts)
{
    pawl__buf_add_format(out, "pawl %s (%s)\n", pawl_version(), pawl__build_kind());
    for (size_t i = 0; i < PAWL__PARTS_COUNT; i++) {
        pawl__buf_add_format(out, "  %-9s %s\n", parts[i].name, parts[i].version);
    }
}

static void add_json(struct pawl__buf *out, const struct pawl__part *parts)
{
    pawl__buf_add_format(out, "{\"version\":\"%s\",\"build\":", pawl_version());
    pawl__text_add_json(out, pawl_view_of(pawl__build_kind()));
    pawl__buf_add_text(out, ",\"parts\":{");
    for (size_t i = 0; i < PAWL__PARTS_COUNT; i++) {
        pawl__buf_add_text(out, i == 0 ? "" : ",");
        pawl__text_add_json(out, pawl_view_of(parts[i].name));
        pawl__buf_add_char(out, ':');
        pawl__text_add_json(out, pawl_view_of(parts[i].version));
    }
    pawl__buf_add_text(out, "}}\n");
}

static pawl_status version_run(struct pawl__run *run, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(VERSION_BYTES_MAX);
    struct pawl__part parts[PAWL__PARTS_COUNT];

    pawl__parts(parts);
    if (run->json) {
        add_json(&out, parts);
    } else {
        add_text(&out, parts);
    }
    return pawl__out_add(&out, reterr);
}

const struct pawl__command pawl__cmd_version = {
    .name = "version",
    .summary = "print the version of pawl and of its parts",
    .description = "Prints the version of pawl, how it was built, and the versions of the "
                   "libraries that are loaded now, which may be newer than those it was built "
                   "with. A report of a bug wants all of it.",
    .examples = EXAMPLES({ .line = "pawl version", .says = "for a bug report", .runs = true },
                         { .line = "pawl version --json", .says = "for a program", .runs = true }),
    .run = version_run,
    .no_settings = true,
};
