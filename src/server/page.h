/* Lists, a page at a time: {"items":[...],"next":"..."}. A client passes `next` as `from` to get the next page; it is
 * null on the last one. */
#ifndef PAWL_SERVER_PAGE_H
#define PAWL_SERVER_PAGE_H

#include "server/route.h"

enum { PAGE_LIMIT_DEFAULT = 100, PAGE_LIMIT_MAX = 1000, PAGE_NEXT_SIZE = 256 };

struct pawl__serve_page {
    uint64_t limit;
    uint64_t count;
    char next[PAGE_NEXT_SIZE]; /* empty: there is none */
    struct pawl__buf body;
};

/* The parameter of every page; `from` depends on the list. */
#define PAGE_LIMIT_FIELD(type)                                                  \
    {                                                                           \
        FIELD(type, limit, FIELD_UINT64),                                       \
            .min = 1, .max = PAGE_LIMIT_MAX,                                    \
            .about = "Items of a page; it may have fewer, when they are large." \
    }
#define PAGE_FROM_ABOUT "`next` of the page before; none: the first page."

/* What a page looks like: the fields of its record. */
struct pawl__serve_page_shape {
    const void *items;
    size_t count;
    pawl_view next;
};
#define PAGE_FIELDS(record_)                                                              \
    {                                                                                     \
        { FIELD(struct pawl__serve_page_shape, items, FIELD_RECORDS),                     \
          .record = (record_),                                                            \
          .count_offset = offsetof(struct pawl__serve_page_shape, count) },               \
            { FIELD(struct pawl__serve_page_shape, next, FIELD_TEXT),                     \
              .about = "Pass it as `from` to get the next page; null on the last one." }, \
    }

void pawl__serve_page_start(struct pawl__serve_page *ret_page, uint64_t limit);
void pawl__serve_page_done(struct pawl__serve_page *page);

/* True when there is room for one more; else `position` is where the next page begins. */
bool pawl__serve_page_has_room(struct pawl__serve_page *page, pawl_view position);

/* The next page begins where that of the library does: at an id, or at a number. */
void pawl__serve_page_follow(struct pawl__serve_page *page, const pawl_page *listed);
void pawl__serve_page_follow_at(struct pawl__serve_page *page, const pawl_page *listed);

/* False: the page is as large as one may be, or there is no memory. */
bool pawl__serve_page_add(struct pawl__serve_page *page,
                          const struct pawl__record *record,
                          const void *value);
bool pawl__serve_page_add_json(struct pawl__serve_page *page, pawl_view json);

/* Ends the list and leaves the object open, for other keys. */
void pawl__serve_page_end_list(struct pawl__serve_page *page);
/* Answers 200. */
void pawl__serve_page_answer(struct pawl__serve_page *page, struct pawl__serve_call *call);

#endif
