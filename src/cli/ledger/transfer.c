/* pawl ledger import|export */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/fs.h"
#include "cli/ledger/ledger.h"

static const char *const format_names[] = {
    [PAWL_FORMAT_JSONL] = "jsonl",
    [PAWL_FORMAT_PARQUET] = "parquet",
    [PAWL_FORMAT_SEED_SQLITE] = "seed",
};

static pawl_file_format format_of_name(const char *name)
{
    size_t format = 0;

    while (strcmp(format_names[format], name) != 0) { /* the table allows no other */
        format++;
    }
    return (pawl_file_format)format;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text);

    return len >= strlen(end) && strcmp(text + len - strlen(end), end) == 0;
}

/* --- export --- */

/* A reader that went away ends every command in the same way. */
static pawl_status as_output(pawl_status status, pawl_error *reterr)
{
    if (status != PAWL_OK && reterr->native == EPIPE) {
        reterr->status = PAWL_CLOSED;
        return PAWL_CLOSED;
    }
    return status;
}

static pawl_status export_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;
    const char *given = pawl__cli_args_value(run->args, "format");
    const char *path = pawl__cli_args_operand(run->args, 0);
    pawl_file_format format = PAWL_FORMAT_JSONL;
    pawl_event_filter filter;
    uint64_t count = 0;

    path = path == NULL ? "-" : path;
    if (given != NULL) {
        format = format_of_name(given);
    } else if (ends_with(path, ".parquet")) {
        format = PAWL_FORMAT_PARQUET;
    }
    TRY(pawl__cli_ledger_filter(run, &filter, reterr));
    TRY(pawl__cli_ledger_open(run, LEDGER_TO_READ, &ledger, reterr));
    AUTO(pawl__cli_progress_done)
    struct pawl__cli_progress work = pawl__cli_progress_start(run, "export", false);
    const pawl_watch watch = pawl__cli_progress_watch(&work);
    pawl_status status = pawl_ledger_export(ledger, path, format, &filter, &watch, &count, reterr);
    pawl__cli_progress_done(&work);
    if (status != PAWL_OK || strcmp(path, "-") == 0) {
        return as_output(status, reterr);
    }
    return pawl__cli_ledger_print_row(json_pack("{s:I}", "exported", (json_int_t)count), reterr);
}

const struct pawl__cli_command pawl__cli_cmd_ledger_export = {
    .name = "export",
    .summary = "write events to a file",
    .description =
        "Writes the events, as of now, as JSON lines or as Parquet (a column a field). The file "
        "is new, and complete when it has its name. Without FILE, or with '-', JSON lines go to "
        "standard output. Imported into an empty ledger, the export of a whole one gives the same "
        "offsets and hashes.",
    .flags = FLAGS(FLAG("format",
                        "FORMAT",
                        "How; by the name of the file if it is left out.",
                        .choices = CHOICES("jsonl", "parquet")),
                   LEDGER_FILTER_FLAGS),
    .operands = OPERANDS({ .name = "FILE",
                           .help = "Where to; '-' is standard output.",
                           .kind = VALUE_FILE,
                           .optional = true }),
    .examples =
        EXAMPLES(TESTED(LEDGER_EXAMPLE_APPEND "pawl ledger export --data ./data village.parquet",
                        "for analysis"),
                 { .line = "pawl ledger export --ledger a.db | pawl ledger import --ledger "
                           "postgres://pawl@db/pawl -",
                   .says = "move a ledger" }),
    .run = export_run,
    .only_prints = true,
};

/* --- import --- */

/* JSON lines begin with '{', perhaps behind blank lines. */
static bool may_be_lines(const char *start, size_t len)
{
    size_t blank = strspn(start, " \t\r\n");

    return len == 0 || start[blank] == '{' || (blank == len && start[blank] == '\0');
}

/* By what the file begins with, not by what it is called. */
static pawl_status guess_format(const char *path, pawl_file_format *ret_format, pawl_error *reterr)
{
    AUTO(pawl__fs_close) int fd = strcmp(path, "-") == 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    char start[17] = "";

    *ret_format = PAWL_FORMAT_JSONL;
    if (strcmp(path, "-") == 0) {
        return PAWL_OK;
    }
    if (fd < 0) {
        return pawl__fail_errno(reterr, errno, "open '%s'", path);
    }
    if (lseek(fd, 0, SEEK_CUR) < 0) {
        return PAWL_OK; /* a pipe: what is read is gone */
    }
    ssize_t got = read(fd, start, sizeof(start) - 1);
    if (got < 0) {
        return pawl__fail_errno(reterr, errno, "read '%s'", path);
    }
    if (memcmp(start, "PAR1", 4) == 0) {
        *ret_format = PAWL_FORMAT_PARQUET;
    } else if (memcmp(start, "SQLite format 3", sizeof("SQLite format 3")) == 0) {
        *ret_format = PAWL_FORMAT_SEED_SQLITE;
    } else if (!may_be_lines(start, (size_t)got)) {
        return pawl__fail(
            reterr,
            PAWL_INVALID,
            "'%s' begins with neither JSON lines nor Parquet nor SQLite; to import "
            "CSV, convert it first, for example with DuckDB: COPY (FROM 'events.csv') "
            "TO 'events.parquet'",
            path);
    }
    return PAWL_OK;
}

static pawl_status import_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;
    const char *path = pawl__cli_args_operand(run->args, 0);
    const char *given = pawl__cli_args_value(run->args, "format");
    pawl_import_report report = { .size = sizeof(pawl_import_report) };
    pawl_file_format format;

    if (given != NULL) {
        format = format_of_name(given);
    } else {
        TRY(guess_format(path, &format, reterr));
    }
    TRY(pawl__cli_ledger_open(run, LEDGER_TO_CREATE, &ledger, reterr));
    AUTO(pawl__cli_progress_done)
    struct pawl__cli_progress work =
        pawl__cli_progress_start(run, "import", format == PAWL_FORMAT_JSONL);
    const pawl_watch watch = pawl__cli_progress_watch(&work);
    pawl_status status = pawl_ledger_import(ledger, path, format, &watch, &report, reterr);
    pawl__cli_progress_done(&work);
    if (status != PAWL_OK && report.appended + report.duplicates == 0) {
        return status;
    }
    json_t *row = json_pack("{s:I, s:I}",
                            "appended",
                            (json_int_t)report.appended,
                            "duplicates",
                            (json_int_t)report.duplicates);
    pawl_status printed = pawl__cli_ledger_print_row(row, status == PAWL_OK ? reterr : NULL);
    return status == PAWL_OK ? printed : status;
}

const struct pawl__cli_command pawl__cli_cmd_ledger_import = {
    .name = "import",
    .summary = "append the events of a file",
    .description =
        "Takes what export writes, lines as append takes them, and SQLite databases of the "
        "original schema without hashes, which are only read ('seed'). The format is seen from "
        "the file; from standard input it is JSON lines. Turns are imported as they are.\n\n"
        "What is there already is counted as a duplicate, so an import that stopped is simply "
        "started again. An error names the line, row or offset; everything before it was "
        "appended.",
    .flags = FLAGS(FLAG("format",
                        "FORMAT",
                        "What the file is; seen from it if it is left out.",
                        .choices = CHOICES("jsonl", "parquet", "seed"))),
    .operands = OPERANDS({ .name = "FILE", .help = "'-' is standard input.", .kind = VALUE_FILE }),
    .examples = EXAMPLES(TESTED(LEDGER_EXAMPLE_APPEND
                                "pawl ledger export --data ./data | pawl ledger import "
                                "--data ./copy -",
                                "copy a ledger"),
                         { .line = "pawl ledger import --data ./data old-village.db",
                           .says = "a database of the original schema" }),
    .run = import_run,
};
