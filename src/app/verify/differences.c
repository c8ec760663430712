/* What the log says and what is stored, compared in a sketch; what is left in it is named. */
#include <inttypes.h>
#include <stdlib.h>

#include "app/verify/verify.h"
#include "base/core/error.h"
#include "base/core/grow.h"

static struct app_sketch_item sketched(const struct verify_item *item)
{
    return (struct app_sketch_item){ { (uint64_t)item->part << 16 | item->sequence,
                                       item->workspace,
                                       item->number,
                                       item->offset,
                                       item->content } };
}

void pawl__app_verify_expect(struct app_sketch *sketch, const struct verify_item *item)
{
    struct app_sketch_item words = sketched(item);

    pawl__app_sketch_add(sketch, &words);
}

void pawl__app_verify_found(struct app_sketch *sketch, const struct verify_item *item)
{
    struct app_sketch_item words = sketched(item);

    pawl__app_sketch_remove(sketch, &words);
}

/* --- what is left --- */

struct difference {
    struct app_sketch_item item;
    bool added; /* the log has it; else the store has */
};

struct differences {
    struct difference *list;
    size_t count;
    size_t room;
    bool no_memory;
};

static void collect(void *context, const struct app_sketch_item *item, bool added)
{
    struct differences *all = context;
    struct difference *list = pawl__grow(all->list, all->count, &all->room, sizeof(*list));

    if (list == NULL) {
        all->no_memory = true;
        return;
    }
    all->list = list;
    list[all->count++] = (struct difference){ *item, added };
}

enum { WHICH_WORDS = 3 }; /* part and sequence, workspace, number */

static int compare_which(const struct difference *a, const struct difference *b)
{
    for (size_t i = 0; i < WHICH_WORDS; i++) {
        if (a->item.words[i] != b->item.words[i]) {
            return a->item.words[i] < b->item.words[i] ? -1 : 1;
        }
    }
    return 0;
}

static int in_order(const void *left, const void *right)
{
    const struct difference *a = left;
    const struct difference *b = right;
    int order = compare_which(a, b);

    return order != 0 ? order : (int)b->added - (int)a->added;
}

static void describe(struct app_verify *verify, const struct difference *of, struct pawl__buf *text)
{
    pawl_app_part part = (pawl_app_part)(of->item.words[0] >> 16);
    uint16_t sequence = (uint16_t)of->item.words[0];
    uint64_t workspace = of->item.words[1];
    uint64_t number = of->item.words[2];
    uint64_t offset = of->item.words[3];

    switch (part) {
    case PAWL_APP_PART_WLOG:
        pawl__buf_add_format(
            text, "offset %" PRIu64 " of the WLog of workspace %" PRIu64, number, workspace);
        break;
    case PAWL_APP_PART_RECORDS:
        pawl__buf_add_format(text, "record %" PRIu64 " of workspace %" PRIu64, number, workspace);
        break;
    case PAWL_APP_PART_NUMBER_KEYS:
        pawl__buf_add_format(text,
                             "the key of number %" PRIu64 " of sequence '%s' of workspace %" PRIu64,
                             number,
                             pawl_app_sequence_name(verify->app, sequence),
                             workspace);
        break;
    default:
        pawl__buf_add_format(text, "an idempotency key of workspace %" PRIu64, workspace);
        break;
    }
    if (offset != 0) {
        pawl__buf_add_format(text, " (PLog offset %" PRIu64 ")", offset);
    }
}

/* Both sides have it: it is another one. */
static void report_difference(struct app_verify *verify, const struct difference *of, bool both)
{
    char space[192];
    struct pawl__buf text = BUF_OVER(space);

    describe(verify, of, &text);
    verify->report.unaccounted +=
        of->item.words[0] >> 16 == PAWL_APP_PART_WLOG && !both && !of->added;
    pawl__app_verify_finding(verify,
                             (pawl_app_part)(of->item.words[0] >> 16),
                             "%s %s",
                             space,
                             both        ? "is not what the PLog says"
                             : of->added ? "is missing"
                                         : "is in no event of the PLog");
}

pawl_status pawl__app_verify_name_differences(struct app_verify *verify,
                                              struct app_sketch *sketch,
                                              pawl_error *reterr)
{
    struct differences all = { .count = 0 };
    bool complete = pawl__app_sketch_name(sketch, collect, &all);

    if (all.count > 1) {
        qsort(all.list, all.count, sizeof(*all.list), in_order);
    }
    for (size_t i = 0; i < all.count; i++) {
        bool both = i + 1 < all.count && all.list[i].added && !all.list[i + 1].added
                    && compare_which(&all.list[i], &all.list[i + 1]) == 0;
        report_difference(verify, &all.list[i], both);
        i += both;
    }
    free(all.list);
    if (all.no_memory) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for what is wrong");
    }
    if (!complete) {
        pawl__app_verify_finding(
            verify,
            sketch == verify->records.sketch ? PAWL_APP_PART_RECORDS : PAWL_APP_PART_WLOG,
            "%s differ from the PLog in more places than can be named one by one",
            sketch == verify->records.sketch ? "records" : "WLogs or keys");
    }
    return PAWL_OK;
}
