/* Saying what happens: a constant message and fields.
 *
 *     LOG_DEBUG("batch committed", LOG_NATURAL("items", count), LOG_TEXT("store", path));
 *
 * Libraries report and programs log: code of the library uses LOG_DEBUG only, a failure is logged
 * once, by the program, where it stops being returned. No payloads at info. A line that nobody
 * wants costs one branch, and its arguments are not evaluated.
 *
 * Lines go to the sink of pawl_set_log_sink; base/log/log_write.h has the one that programs use. */
#ifndef PAWL_BASE_LOG_LOG_H
#define PAWL_BASE_LOG_LOG_H

#include <stdatomic.h>

#include <pawl/pawl.h>

#define LOG_DEBUG(...) LOG_AT_(PAWL_LOG_DEBUG, __VA_ARGS__, LOG_END_)
#define LOG_INFO(...) LOG_AT_(PAWL_LOG_INFO, __VA_ARGS__, LOG_END_)
#define LOG_WARNING(...) LOG_AT_(PAWL_LOG_WARNING, __VA_ARGS__, LOG_END_)
#define LOG_ERROR(...) LOG_AT_(PAWL_LOG_ERROR, __VA_ARGS__, LOG_END_)

#define LOG_TEXT(key, text) pawl__log_view(key, pawl_view_of(text))
#define LOG_VIEW(key, view) pawl__log_view(key, view)
#define LOG_INTEGER(key, number) \
    ((pawl_log_field){ (key), PAWL_LOG_INTEGER, { .integer = (number) } })
#define LOG_NATURAL(key, number) \
    ((pawl_log_field){ (key), PAWL_LOG_NATURAL, { .natural = (number) } })
#define LOG_REAL(key, number) ((pawl_log_field){ (key), PAWL_LOG_REAL, { .real = (number) } })
#define LOG_BOOLEAN(key, is) ((pawl_log_field){ (key), PAWL_LOG_BOOLEAN, { .boolean = (is) } })

/* The end of the fields, so that a macro with none of them is still C. */
#define LOG_END_ ((pawl_log_field){ NULL, PAWL_LOG_TEXT, { .integer = 0 } })

#define LOG_AT_(level, message, ...)                                            \
    do {                                                                        \
        if (pawl__log_wants(level)) {                                           \
            pawl__log(level, message, (const pawl_log_field[]){ __VA_ARGS__ }); \
        }                                                                       \
    } while (0)

extern atomic_int pawl__log_least; /* one above the highest level while there is no sink */

static inline bool pawl__log_wants(pawl_log_level level)
{
    return __builtin_expect(
        (int)level >= atomic_load_explicit(&pawl__log_least, memory_order_relaxed), 0);
}

static inline pawl_log_field pawl__log_view(const char *key, pawl_view view)
{
    return (pawl_log_field){ key, PAWL_LOG_TEXT, { .text = view } };
}

/* `fields` ends with one whose key is NULL. Keeps errno. */
void pawl__log(pawl_log_level level, const char *message, const pawl_log_field *fields);

#endif
