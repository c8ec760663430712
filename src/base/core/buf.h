/* Bytes grow in a buffer with a ceiling; they are read back through a view that moves.
 *
 * A buffer remembers that something did not fit (or that memory ran out), so a writer checks
 * `broken` once, at the end. Pointer arithmetic on bytes lives here and nowhere else. */
#ifndef PAWL_BASE_CORE_BUF_H
#define PAWL_BASE_CORE_BUF_H

#include <pawl/pawl.h>

#include "base/core/macros.h"

struct pawl__buf {
    char *data; /* NUL-terminated whenever it is not NULL; the NUL is not part of len */
    size_t len;
    size_t cap;
    size_t max;  /* ceiling of len */
    bool broken; /* an addition did not fit or could not be allocated; it left no bytes behind */
    bool nomem;  /* broken because memory ran out */
};

#define BUF_INIT(bytes_max) \
    {                       \
        .max = (bytes_max)  \
    }

/* Over memory of the caller's, an array that outlives the buffer: it allocates nothing, its ceiling
 * is the array, and it must not be given to _done or _steal. */
#define BUF_OVER(array)                                                 \
    {                                                                   \
        .data = (array), .cap = sizeof(array), .max = sizeof(array) - 1 \
    }

void pawl__buf_done(struct pawl__buf *buf);  /* frees the bytes; the buffer may be used again */
void pawl__buf_clear(struct pawl__buf *buf); /* len 0, not broken; keeps the memory */

void pawl__buf_cut(struct pawl__buf *buf, size_t len); /* back to an earlier len; not broken */

void pawl__buf_add(struct pawl__buf *buf, pawl_view bytes);
void pawl__buf_add_text(struct pawl__buf *buf, const char *text);
void pawl__buf_add_char(struct pawl__buf *buf, char c);
PRINTF_LIKE(2, 3) void pawl__buf_add_format(struct pawl__buf *buf, const char *format, ...);

/* The shortest decimal form that reads back as `value`, which must be finite; a point in every
 * locale. */
void pawl__buf_add_real(struct pawl__buf *buf, double value);

void pawl__buf_add_u8(struct pawl__buf *buf, uint8_t value);
void pawl__buf_add_u32le(struct pawl__buf *buf, uint32_t value);
void pawl__buf_add_u64le(struct pawl__buf *buf, uint64_t value);
void pawl__buf_add_u16be(struct pawl__buf *buf, uint16_t value);
void pawl__buf_add_u32be(struct pawl__buf *buf, uint32_t value);
void pawl__buf_add_u64be(struct pawl__buf *buf, uint64_t value);

/* Appends `len` bytes for the caller to fill; NULL (and broken) when they do not fit. */
char *pawl__buf_extend(struct pawl__buf *buf, size_t len);

pawl_view pawl__buf_view(const struct pawl__buf *buf);

/* PAWL_OK, or what broke the buffer: "<what> over <max> bytes" (INVALID) or NOMEM. */
PAWL_MUST_USE pawl_status pawl__buf_check(const struct pawl__buf *buf,
                                          const char *what,
                                          pawl_error *reterr);

/* Gives the bytes away as a malloc'ed NUL-terminated string and leaves the buffer empty. NULL when
 * it is broken; an empty buffer gives "". */
char *pawl__buf_steal(struct pawl__buf *buf);

/* The same for a call that hands text to its caller, with its length unless ret_len is NULL. Fails as
 * pawl__buf_check does. */
PAWL_MUST_USE pawl_status pawl__buf_hand_out(
    struct pawl__buf *buf, const char *what, char **ret_text, size_t *ret_len, pawl_error *reterr);

/* Reading: each takes from the front of `in`; too few bytes is false with `in` unmoved. */
PAWL_MUST_USE bool pawl__view_take(pawl_view *in, size_t len, pawl_view *ret_bytes);
PAWL_MUST_USE bool pawl__view_take_u8(pawl_view *in, uint8_t *ret_value);
PAWL_MUST_USE bool pawl__view_take_u32le(pawl_view *in, uint32_t *ret_value);
PAWL_MUST_USE bool pawl__view_take_u64le(pawl_view *in, uint64_t *ret_value);
PAWL_MUST_USE bool pawl__view_take_u16be(pawl_view *in, uint16_t *ret_value);
PAWL_MUST_USE bool pawl__view_take_u32be(pawl_view *in, uint32_t *ret_value);
PAWL_MUST_USE bool pawl__view_take_u64be(pawl_view *in, uint64_t *ret_value);

/* Everything up to `separator` into *ret_part, and `in` moved behind it. Without a separator the
 * whole rest is the part and `in` becomes empty. False when `in` is empty. */
PAWL_MUST_USE bool pawl__view_split(pawl_view *in, char separator, pawl_view *ret_part);

bool pawl__view_equal(pawl_view a, pawl_view b);
bool pawl__view_is(pawl_view view, const char *text);
int pawl__view_compare(pawl_view a, pawl_view b); /* by bytes, as memcmp */

/* Which of these names the view is; `count`: none of them. */
size_t pawl__view_index(pawl_view view, const char *const *names, size_t count);

/* A malloc'ed NUL-terminated copy; NULL without memory. A NUL inside is copied as it is. */
char *pawl__view_dup(pawl_view view);

void pawl__text_free(char **text); /* free, for AUTO */

/* One code point of well-formed UTF-8; false, `in` unmoved, when there is none at the front. */
PAWL_MUST_USE bool pawl__view_take_utf8(pawl_view *in, uint32_t *ret_code);

/* How many bytes at the front are ASCII and not NUL; looks at several at a time. */
size_t pawl__view_ascii_run(pawl_view view);

/* Well-formed UTF-8 by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool pawl__view_is_utf8(pawl_view view);

/* ASCII without a NUL: what most text is, and found out quickly. */
bool pawl__view_is_plain(pawl_view view);

/* Arguments for "%.*s". */
#define VIEW_ARGS(view) (int)(view).len, (view).data == NULL ? "" : (view).data

#endif
