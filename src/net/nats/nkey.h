/* Nkeys: ed25519 keys in base32 with a prefix and a checksum, as NATS writes them. cnats signs with a seed
 * but wants the public key beside it; people have only the seed. */
#ifndef PAWL_NET_NATS_NKEY_H
#define PAWL_NET_NATS_NKEY_H

#include <pawl/pawl.h>

#define PAWL__NKEY_SIZE 64 /* of either text, with a NUL */

/* The public key ("U...") of a seed ("SU..."). INVALID shows nothing of the seed. */
PAWL_MUST_USE pawl_status pawl__nats_nkey_public(pawl_view seed,
                                                 char ret_public[PAWL__NKEY_SIZE],
                                                 pawl_error *reterr);

#endif
