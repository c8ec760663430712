/* Which file system holds the data directory, and what it is worth. */
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "cli/node/doctor.h"

/* A field of mountinfo has space, tab, newline and backslash as \040 and so on. True when `field`
 * is `path` or a directory above it; *ret_len is how much of the path it covers. */
static bool covers(pawl_view field, const char *path, size_t *ret_len)
{
    size_t len = 0;

    while (field.len > 0) {
        pawl_view part;
        char c = field.data[0];

        if (c == '\\' && field.len >= 4) {
            int high = field.data[1] - '0';
            int middle = field.data[2] - '0';
            c = (char)(unsigned char)(high * 64 + middle * 8 + (field.data[3] - '0'));
        }
        if (!pawl__view_take(&field, field.data[0] == '\\' && field.len >= 4 ? 4 : 1, &part)
            || path[len] != c) {
            return false;
        }
        len++;
    }
    bool root = len == 1; /* "/" covers everything */
    *ret_len = len;
    return root || path[len] == '\0' || path[len] == '/';
}

static bool has_option(pawl_view options, const char *name)
{
    pawl_view option;

    while (pawl__view_split(&options, ',', &option)) {
        if (pawl__view_is(option, name)) {
            return true;
        }
    }
    return false;
}

/* 36 35 98:0 /root /mount/point rw,noatime master:1 - ext4 /dev/sda1 rw,barrier=0 */
struct line {
    pawl_view point;
    pawl_view options;
    pawl_view type;
    pawl_view super_options;
};

static bool read_line(pawl_view text, struct line *ret_line)
{
    pawl_view field;

    for (int i = 0; i < 5; i++) {
        if (!pawl__view_split(&text, ' ', &ret_line->point)) {
            return false;
        }
    }
    if (!pawl__view_split(&text, ' ', &ret_line->options)) {
        return false;
    }
    do {
        if (!pawl__view_split(&text, ' ', &field)) {
            return false;
        }
    } while (!pawl__view_is(field, "-"));
    return pawl__view_split(&text, ' ', &ret_line->type) && pawl__view_split(&text, ' ', &field)
           && pawl__view_split(&text, ' ', &ret_line->super_options);
}

struct pawl__cli_mount pawl__cli_mount_of(pawl_view mountinfo, const char *path)
{
    struct pawl__cli_mount mount = { .type = "" };
    size_t longest = 0;
    pawl_view text;

    while (pawl__view_split(&mountinfo, '\n', &text)) {
        struct line line;
        size_t len = 0;

        /* A later mount on the same point hides the earlier one. */
        if (!read_line(text, &line) || !covers(line.point, path, &len) || len < longest) {
            continue;
        }
        longest = len;
        size_t type_len = MIN(line.type.len, sizeof(mount.type) - 1);
        memcpy(mount.type, line.type.data, type_len);
        mount.type[type_len] = '\0';
        mount.no_barrier = has_option(line.super_options, "nobarrier")
                           || has_option(line.super_options, "barrier=0")
                           || has_option(line.options, "nobarrier");
        mount.read_only = has_option(line.options, "ro") || has_option(line.super_options, "ro");
    }
    return mount;
}

static const struct {
    const char *type; /* a '*' at the end stands for anything */
    const char *cost;
    const char *fix;
} doubtful[] = {
    { "tmpfs", "everything is gone when the machine restarts", "use a directory on a disk" },
    { "ramfs", "everything is gone when the machine restarts", "use a directory on a disk" },
    { "overlay", "everything is gone with the container", "mount a volume for the data directory" },
    { "nfs*",
      "locks and fsync depend on the server and its options",
      "use a local disk, or PostgreSQL" },
    { "cifs", "locks and fsync depend on the server", "use a local disk, or PostgreSQL" },
    { "smb*", "locks and fsync depend on the server", "use a local disk, or PostgreSQL" },
    { "9p", "shared memory of SQLite may not work", "use a local disk" },
    { "virtiofs", "fsync depends on the host", "use a disk of the guest" },
    { "fuse*", "fsync does what the file system's program makes of it", "use a local disk" },
};

static bool type_is(const char *type, const char *pattern)
{
    size_t len = strlen(pattern);

    return pattern[len - 1] == '*' ? strncmp(type, pattern, len - 1) == 0
                                   : strcmp(type, pattern) == 0;
}

struct pawl__cli_finding pawl__cli_judge_mount(const char *path,
                                               const struct pawl__cli_mount *mount)
{
    static const char check[] = "file system";
    struct pawl__cli_finding finding;
    pawl_error error = PAWL_ERROR_INIT;

    if (mount->read_only) {
        pawl__fail(&error, PAWL_DENIED, "'%s' is on a file system mounted read-only", path);
        finding = pawl__cli_finding_problem(check, &error, "nothing can be stored");
        pawl__cli_finding_fix(&finding, "mount it read-write, or use another directory");
        return finding;
    }
    if (mount->no_barrier) {
        finding = pawl__cli_finding_warning(check,
                                            "a power cut loses what was acknowledged",
                                            "%s mounted without write barriers",
                                            mount->type);
        pawl__cli_finding_fix(&finding, "remove nobarrier (barrier=0) from its mount options");
        return finding;
    }
    for (size_t i = 0; i < COUNT_OF(doubtful); i++) {
        if (type_is(mount->type, doubtful[i].type)) {
            finding = pawl__cli_finding_warning(
                check, doubtful[i].cost, "'%s' is on %s", path, mount->type);
            pawl__cli_finding_fix(&finding, "%s", doubtful[i].fix);
            return finding;
        }
    }
    return pawl__cli_finding_ok(check, "%s", mount->type[0] == '\0' ? "not known" : mount->type);
}
