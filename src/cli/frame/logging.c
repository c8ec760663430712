#include <assert.h>
#include <unistd.h>

#include "base/log/log_write.h"
#include "cli/frame/run.h"
#include "config/config.h"

/* Lives as long as the process: threads of the library may log until its end. */
static struct pawl__log_writer writer;

/* The settings name levels and formats in the order of the enums. */
static_assert(PAWL_LOG_DEBUG == 0 && PAWL_LOG_ERROR == 3, "log.level: debug|info|warning|error");
enum { FORMAT_AUTO, FORMAT_LOGFMT, FORMAT_JSON }; /* log.format: auto|logfmt|json */

void pawl__cli_log_start(const struct pawl__config *config)
{
    int64_t format = pawl__config_number(config, PAWL__LOG_FORMAT);
    int64_t level = pawl__config_number(config, PAWL__LOG_LEVEL);

    pawl__log_writer_init(&writer, STDERR_FILENO);
    if (format != FORMAT_AUTO) {
        writer.format = format == FORMAT_JSON ? PAWL__LOG_JSON : PAWL__LOG_LOGFMT;
    }
    pawl_set_log_sink(pawl__log_writer_sink, &writer, (pawl_log_level)level);
}
