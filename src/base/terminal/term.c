#include "base/terminal/term.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/core/quantity.h"
#include "base/os/environment.h"
#include "base/terminal/display.h"

enum {
    WIDTH_DEFAULT = 80,
    WIDTH_MAX = 1000,
    BAR_MIN = 10,
    BAR_MAX = 40,
    FIGURES_WIDTH = 28, /* room for most of them, so that the bar keeps its length */
    FRAME_BYTES_MAX = 8192,
};

#define SHOW_AFTER_NS NS_PER_S
#define REDRAW_NS (100 * NS_PER_MS)
#define SMOOTHING_S 3.0 /* speed of so long ago weighs half */

size_t pawl__term_width(int fd, size_t otherwise)
{
    struct winsize size;

    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
        return otherwise;
    }
    return MIN((size_t)size.ws_col, (size_t)WIDTH_MAX);
}

static bool is_utf8_locale(const char *const *environment)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *value = pawl__environment_get(environment, names[i]);
        if (value != NULL) {
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
        }
    }
    return false;
}

static size_t columns_of(const char *const *environment)
{
    const char *text = pawl__environment_get(environment, "COLUMNS");
    int64_t columns;

    if (text == NULL || pawl__integer_parse(pawl_view_of(text), &columns, NULL) != PAWL_OK
        || columns < 1 || columns > WIDTH_MAX) {
        return WIDTH_DEFAULT;
    }
    return (size_t)columns;
}

struct pawl__term pawl__term_detect(int fd, const char *const *environment)
{
    const char *kind = pawl__environment_get(environment, "TERM");
    bool is_dumb = kind == NULL || strcmp(kind, "dumb") == 0;
    bool is_terminal = isatty(fd) == 1 && !is_dumb;

    return (struct pawl__term){
        .is_terminal = is_terminal,
        .colour = is_terminal && pawl__environment_get(environment, "NO_COLOR") == NULL,
        .unicode = is_utf8_locale(environment),
        .width = pawl__term_width(fd, columns_of(environment)),
    };
}

struct pawl__progress pawl__progress_start(const struct pawl__progress_options *options)
{
    int64_t now_ns = pawl__monotonic_ns(options->clock);

    return (struct pawl__progress){
        .options = *options,
        .started_ns = now_ns,
        .drawn_ns = now_ns,
        .drawn_done = options->already,
        .off = !options->term.is_terminal,
    };
}

/* Nothing depends on a frame: a terminal that went away gets no more of them. */
static void put(struct pawl__progress *progress, pawl_view frame)
{
    if (pawl__sink_write(&progress->options.sink, frame, NULL) != PAWL_OK) {
        progress->off = true;
    }
}

static void measure(struct pawl__progress *progress, uint64_t done, int64_t now_ns)
{
    double seconds = (double)(now_ns - progress->drawn_ns) / (double)NS_PER_S;
    double gained = done > progress->drawn_done ? (double)(done - progress->drawn_done) : 0;
    double weight = progress->rate > 0 ? seconds / (seconds + SMOOTHING_S) : 1;

    progress->rate += (gained / seconds - progress->rate) * weight;
    progress->drawn_ns = now_ns;
    progress->drawn_done = done;
}

static void format_count(const struct pawl__progress *progress, double count, char *ret_text)
{
    if (progress->options.bytes) {
        pawl__size_human(count, ret_text);
    } else {
        pawl__count_human(count, ret_text);
    }
}

/* What stands behind the bar. */
static void add_figures(const struct pawl__progress *progress, double share, struct pawl__buf *buf)
{
    const struct pawl__progress_options *options = &progress->options;
    char rate[PAWL__QUANTITY_SIZE];
    char text[PAWL__QUANTITY_SIZE];

    format_count(progress, progress->rate, rate);
    if (options->total == 0) {
        format_count(progress, (double)progress->drawn_done, text);
        pawl__buf_add_format(buf, "%s  %s/s  ", text, rate);
        pawl__duration_human(progress->drawn_ns - progress->started_ns, text);
        pawl__buf_add_text(buf, text);
        return;
    }
    double left = (double)(options->total - MIN(progress->drawn_done, options->total));
    double left_s = progress->rate > 0 ? left / progress->rate : 1e9;
    pawl__buf_add_format(buf, "%3d%%  %s/s  ", (int)(share * 100), rate);
    if (left_s >= 1e8) {
        pawl__buf_add_text(buf, "--:-- left");
    } else {
        pawl__duration_human((int64_t)(left_s * (double)NS_PER_S), text);
        pawl__buf_add_format(buf, "%s left", text);
    }
}

static void add_times(struct pawl__buf *buf, const char *text, size_t count)
{
    for (; count > 0; count--) {
        pawl__buf_add_text(buf, text);
    }
}

static void add_bar(const struct pawl__term *term,
                    double share,
                    size_t columns,
                    struct pawl__buf *buf)
{
    size_t full = (size_t)(share * (double)columns);

    pawl__buf_add_text(buf, term->colour ? "\x1b[32m" : "");
    add_times(buf, term->unicode ? "━" : "#", full);
    pawl__buf_add_text(buf, term->colour ? "\x1b[0m" : "");
    add_times(buf, term->unicode ? "─" : "-", columns - full);
    pawl__buf_add_text(buf, "  ");
}

/* Label, bar and figures in at most `width` columns: the bar gives way first, then the label. */
static void add_line(const struct pawl__progress *progress, size_t width, struct pawl__buf *buf)
{
    const struct pawl__progress_options *options = &progress->options;
    char figures_text[128] = "";
    struct pawl__buf figures = BUF_OVER(figures_text);
    AUTO(pawl__buf_done) struct pawl__buf label = BUF_INIT(FRAME_BYTES_MAX);
    double total = (double)MAX(options->total, (uint64_t)1);
    double share = MIN((double)progress->drawn_done / total, 1.0);

    pawl__display_add(&label, pawl_view_of(options->label));
    add_figures(progress, share, &figures);
    size_t figures_width = pawl__display_width(pawl__buf_view(&figures));
    figures_width = MIN(MAX(figures_width, (size_t)FIGURES_WIDTH), width);
    size_t rest = width - figures_width;
    size_t label_width = MIN(pawl__display_width(pawl__buf_view(&label)), rest);
    if (rest >= label_width + 2 + BAR_MIN + 2 && options->total > 0) {
        pawl__buf_add(buf, pawl__buf_view(&label));
        pawl__buf_add_text(buf, "  ");
        add_bar(&options->term, share, MIN(rest - label_width - 4, (size_t)BAR_MAX), buf);
    } else if (rest > 2) {
        pawl__display_add_cut(buf, pawl__buf_view(&label), rest - 2);
        pawl__buf_add_text(buf, "  ");
    }
    pawl__display_add_cut(buf, pawl__buf_view(&figures), width);
}

static void draw(struct pawl__progress *progress)
{
    AUTO(pawl__buf_done) struct pawl__buf frame = BUF_INIT(FRAME_BYTES_MAX);
    size_t width = progress->options.term.width;

    if (progress->options.fd >= 0) {
        width = pawl__term_width(progress->options.fd, width);
    }
    pawl__buf_add_text(&frame, "\r");
    add_line(progress, width > 1 ? width - 1 : 0, &frame); /* the last column may wrap */
    pawl__buf_add_text(&frame, "\x1b[K");
    if (!frame.broken) {
        put(progress, pawl__buf_view(&frame));
        progress->drawn = true;
    }
}

void pawl__progress_update(struct pawl__progress *progress, uint64_t done)
{
    if (progress->off) {
        return;
    }
    int64_t now_ns = pawl__monotonic_ns(progress->options.clock);
    bool early = now_ns - progress->started_ns < SHOW_AFTER_NS;
    if (early || now_ns - progress->drawn_ns < REDRAW_NS) {
        return;
    }
    measure(progress, done, now_ns);
    draw(progress);
}

void pawl__progress_clear(struct pawl__progress *progress)
{
    if (progress->drawn && !progress->off) {
        put(progress, pawl_view_of("\r\x1b[K"));
    }
    progress->drawn = false;
}

void pawl__progress_done(struct pawl__progress *progress)
{
    pawl__progress_clear(progress);
    progress->off = true;
}
