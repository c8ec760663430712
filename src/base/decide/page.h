/* One page of a list (pawl_page) while it is walked: what is shown, and where the next page begins. A walk reads one
 * entry more than it shows, so that it can tell:
 *
 *     return pawl__page_admits(&walk->page, record->id)
 *            && pawl__page_show(&walk->page, walk->visit(walk->context, record)); */
#ifndef PAWL_BASE_DECIDE_PAGE_H
#define PAWL_BASE_DECIDE_PAGE_H

#include <pawl/pawl.h>

struct pawl__page {
    pawl_page page; /* as given; then as it is answered */
    bool is_asked;  /* false: the caller gave none */
    bool is_full;
    uint64_t shown;
};

/* `given` may be NULL: all entries. INVALID: it has no size, or its from_id no end. */
PAWL_MUST_USE pawl_status pawl__page_take(const pawl_page *given,
                                          struct pawl__page *ret_page,
                                          pawl_error *reterr);

/* How many entries to read; 0: all. */
uint64_t pawl__page_reads(const struct pawl__page *page);

/* False: the page is full, and the next one begins with this entry. */
bool pawl__page_admits(struct pawl__page *page, uint64_t number);
bool pawl__page_admits_id(struct pawl__page *page, pawl_view id);

/* After the visitor was shown an entry, and whether it wants more. False: no entry need be read. */
bool pawl__page_show(struct pawl__page *page, bool wants_more);

/* When the walk has succeeded. NULL is fine. */
void pawl__page_answer(const struct pawl__page *page, pawl_page *ret_page);

#endif
