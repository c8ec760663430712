#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/commands.h"
#include "cli/frame/run.h"
#include "cli/node/versions.h"

#define VERSION_BYTES_MAX 8192

static void add_text(struct pawl__buf *out, const struct pawl__cli_part *parts)
{
    pawl__buf_add_format(out, "pawl %s (%s)\n", pawl_version(), pawl__cli_build_kind());
    for (size_t i = 0; i < VERSIONS_COUNT; i++) {
        pawl__buf_add_format(out, "  %-13s %s\n", parts[i].name, parts[i].version);
    }
}

static json_t *version_json(const struct pawl__cli_part *parts)
{
    json_t *versions = json_object();

    for (size_t i = 0; i < VERSIONS_COUNT; i++) {
        /* What fails here for want of memory fails in json_pack, too. */
        (void)json_object_set_new(versions, parts[i].name, json_string(parts[i].version));
    }
    return json_pack("{s:s, s:s, s:o}",
                     "version",
                     pawl_version(),
                     "build",
                     pawl__cli_build_kind(),
                     "parts",
                     versions);
}

static pawl_status version_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(VERSION_BYTES_MAX);
    struct pawl__cli_part parts[VERSIONS_COUNT];

    pawl__cli_versions(parts);
    if (!run->json) {
        add_text(&out, parts);
        return pawl__cli_out_add(&out, reterr);
    }
    TRY(pawl__cli_out_add_json(&out, version_json(parts), reterr));
    return pawl__cli_out_add(&out, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_version = {
    .name = "version",
    .summary = "print the version of pawl and of its parts",
    .description = "Prints the version of pawl, how it was built, and the versions of the "
                   "libraries that are loaded now, which may be newer than those it was built "
                   "with. A report of a bug wants all of it.",
    .examples = EXAMPLES(TESTED("pawl version", "for a bug report"),
                         TESTED("pawl version --json", "for a program")),
    .run = version_run,
    .only_prints = true,
    .no_settings = true,
};
