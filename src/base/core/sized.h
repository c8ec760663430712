/* Structs that grow from version to version and begin with their size: what callers hand in, and what they
 * get filled in. Programs compiled against an older header have smaller ones. */
#ifndef PAWL_BASE_CORE_SIZED_H
#define PAWL_BASE_CORE_SIZED_H

#include <pawl/pawl.h>

#include "base/core/arena.h"

/* Copies a caller's struct over `taken`, which holds the defaults: fields that it does not have stay as they
 * are. NULL leaves all of them. INVALID: it has no size, a greater one than `size`, or one that no version has. */
PAWL_MUST_USE pawl_status
pawl__take_sized(const char *what, const void *given, void *taken, size_t size, pawl_error *reterr);

/* The same for an array, whose elements are as far from each other as the first one says, into an array of
 * `count` elements of `size`. `defaults` is one element. INVALID names the index. */
PAWL_MUST_USE pawl_status pawl__take_sized_array(const char *what,
                                                 const void *given,
                                                 size_t count,
                                                 const void *defaults,
                                                 void *taken,
                                                 size_t size,
                                                 pawl_error *reterr);

/* The same without a copy where none is needed: *array stays the caller's when its elements have today's size,
 * and is in the arena when they are smaller. */
PAWL_MUST_USE pawl_status pawl__widen_sized(const char *what,
                                            const void **array,
                                            size_t count,
                                            const void *defaults,
                                            size_t size,
                                            struct pawl__arena *arena,
                                            pawl_error *reterr);

/* INVALID: a struct that is to be filled in says no size. NULL is fine: nobody asks. */
PAWL_MUST_USE pawl_status pawl__check_sized(const char *what, const void *ret, pawl_error *reterr);

/* Fills a caller's struct with as much of `made` as it has room for, and sets its size to that. NULL is fine. */
void pawl__give_sized(const void *made, size_t size, void *ret);

/* The same for an array; the size of its first element is that of all. */
void pawl__give_sized_array(const void *made, size_t count, size_t size, void *ret);

#endif
