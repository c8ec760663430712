/* How much memory all connections of a server have together. Any thread. */
#ifndef PAWL_NET_H2_BUDGET_H
#define PAWL_NET_H2_BUDGET_H

#include <nghttp2/nghttp2.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct pawl__h2_budget {
    atomic_size_t used;
    size_t max;
};

/* False, and nothing taken, when it would not fit. An eighth stays for nghttp2, whose failures end connections. */
bool pawl__h2_budget_take(struct pawl__h2_budget *budget, size_t bytes);
void pawl__h2_budget_give(struct pawl__h2_budget *budget, size_t bytes);

/* An allocator for nghttp2 that counts here, up to the very maximum. */
nghttp2_mem pawl__h2_budget_mem(struct pawl__h2_budget *budget);

#endif
