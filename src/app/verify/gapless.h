/* Whether numbers were used once each, without a gap, fed in the order of the log. A number that comes
 * late fills the gap that it left. Pure. */
#ifndef PAWL_APP_VERIFY_GAPLESS_H
#define PAWL_APP_VERIFY_GAPLESS_H

#include <pawl/pawl.h>

/* Numbers that are missing so far, both ends included. */
struct app_gapless_range {
    uint64_t first;
    uint64_t last;
};

struct app_gapless {
    uint64_t initial;
    uint64_t last;                     /* the highest so far; 0: none */
    uint64_t used;                     /* how often any was */
    struct app_gapless_range *missing; /* ascending, apart from each other */
    size_t missing_count;
    size_t room;
};

void pawl__app_gapless_init(struct app_gapless *gapless, uint64_t initial);
void pawl__app_gapless_done(struct app_gapless *gapless);

/* A number was used. *ret_fresh false: it was used before, or lies below the initial value. NOMEM. */
PAWL_MUST_USE pawl_status pawl__app_gapless_use(struct app_gapless *gapless,
                                                uint64_t number,
                                                bool *ret_fresh,
                                                pawl_error *reterr);

#endif
