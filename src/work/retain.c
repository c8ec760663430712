#include "work/retain.h"

bool pawl__retain_keeps(struct retain *retain, pawl_checkpoint_type type, bool verified)
{
    uint32_t bit = UINT32_C(1) << type;
    bool keeps = retain->seen < retain->keep_last || (retain->types_seen & bit) == 0
                 || (verified && !retain->verified_seen);

    retain->seen++;
    retain->types_seen |= bit;
    retain->verified_seen = retain->verified_seen || verified;
    return keeps;
}
