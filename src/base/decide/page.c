#include "base/decide/page.h"

#include <stdio.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"

pawl_status pawl__page_take(const pawl_page *given, struct pawl__page *ret_page, pawl_error *reterr)
{
    *ret_page = (struct pawl__page){ .page = PAWL_PAGE_INIT, .is_asked = given != NULL };
    TRY(pawl__take_sized("page", given, &ret_page->page, sizeof(ret_page->page), reterr));
    ret_page->page.more = false;
    return memchr(ret_page->page.from_id, '\0', sizeof(ret_page->page.from_id)) != NULL
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_INVALID, "page: from_id: has no NUL at its end");
}

uint64_t pawl__page_reads(const struct pawl__page *page)
{
    return page->page.limit == 0 || page->page.limit == UINT64_MAX ? 0 : page->page.limit + 1;
}

/* True: there is an entry, and no room for it. */
static bool ends(struct pawl__page *page)
{
    page->page.more = page->is_full || (page->page.limit != 0 && page->shown == page->page.limit);
    return page->page.more;
}

bool pawl__page_admits(struct pawl__page *page, uint64_t number)
{
    bool ended = ends(page);

    page->page.from = ended ? number : number + 1;
    return !ended;
}

bool pawl__page_admits_id(struct pawl__page *page, pawl_view id)
{
    bool ended = ends(page);

    page->page.from_id[0] = '\0';
    if (ended) {
        (void)snprintf(page->page.from_id, sizeof(page->page.from_id), "%.*s", VIEW_ARGS(id));
    }
    return !ended;
}

bool pawl__page_show(struct pawl__page *page, bool wants_more)
{
    page->shown++;
    page->is_full = !wants_more;
    return wants_more || page->is_asked;
}

void pawl__page_answer(const struct pawl__page *page, pawl_page *ret_page)
{
    pawl__give_sized(&page->page, sizeof(page->page), ret_page);
}
