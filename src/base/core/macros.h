/* The few macros that everything uses. They name nothing that links, so they carry no prefix. */
#ifndef PAWL_BASE_CORE_MACROS_H
#define PAWL_BASE_CORE_MACROS_H

#include <stddef.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Each argument is evaluated once: MAX(deadline - now(), 0) must not read the clock twice, since the
 * second reading may be below 0 where the first was not. */
#define MIN(a, b) PICK_(<, a, b, __COUNTER__)
#define MAX(a, b) PICK_(>, a, b, __COUNTER__)
#define PICK_(compare, a, b, serial) PICK_ONCE_(compare, a, b, serial)
#define PICK_ONCE_(compare, a, b, serial)                        \
    __extension__({                                              \
        __typeof__(1 ? (a) : (b)) a_##serial = (a);              \
        __typeof__(1 ? (a) : (b)) b_##serial = (b);              \
        a_##serial compare b_##serial ? a_##serial : b_##serial; \
    })

/* AUTO(fn) type name = ...;   calls fn(&name) when the scope ends, in reverse order.
 * DEFINE_AUTO declares a destructor that takes the pointer itself, and makes that fn from it:
 *
 *     DEFINE_AUTO(struct pawl__map *, pawl__map_free)     void pawl__map_free(struct pawl__map *), and _free_p
 *     AUTO(pawl__map_free_p) struct pawl__map *map = NULL; */
#define AUTO(fn) __attribute__((cleanup(fn)))
#define DEFINE_AUTO(pointer_type, destructor)          \
    void destructor(pointer_type);                     \
    static inline void destructor##_p(pointer_type *p) \
    {                                                  \
        destructor(*p);                                \
    }

/* Hands a pointer over to another owner and leaves NULL behind, so that AUTO does nothing. */
#define STEAL(pointer)                           \
    __extension__({                              \
        __typeof__(pointer) stolen_ = (pointer); \
        (pointer) = NULL;                        \
        stolen_;                                 \
    })

#define PRINTF_LIKE(format_index, first_argument) \
    __attribute__((format(printf, format_index, first_argument)))

/* Our own mistakes, in release builds too: a ledger that lost an invariant stops before it writes.
 * The world's mistakes (disk, peer, caller) get a status instead. One condition each. */
#define REQUIRE(condition)                                                  \
    do {                                                                    \
        if (__builtin_expect(!(condition), 0)) {                            \
            pawl__require_failed(#condition, __FILE__, __LINE__, __func__); \
        }                                                                   \
    } while (0)

__attribute__((noreturn, cold)) void pawl__require_failed(const char *condition,
                                                          const char *file,
                                                          int line,
                                                          const char *function);

/* Returns what failed: the happy path runs straight down, and scope (AUTO) cleans up. Of a function that
 * returns pawl_status. */
#define TRY(call)                         \
    do {                                  \
        pawl_status try_status_ = (call); \
        if (try_status_ != PAWL_OK) {     \
            return try_status_;           \
        }                                 \
    } while (0)

#endif
