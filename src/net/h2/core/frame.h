/* gRPC's messages in a stream of bytes: a flag, a length in 4 bytes, and the message. Pure. */
#ifndef PAWL_NET_H2_CORE_FRAME_H
#define PAWL_NET_H2_CORE_FRAME_H

#include "net/h2/core/grpc.h"

enum { PAWL__H2_PREFIX_SIZE = 5 };

struct pawl__h2_deframer {
    char prefix[PAWL__H2_PREFIX_SIZE];
    size_t prefix_len;
    size_t wanted;          /* bytes of the message, once the prefix is whole */
    size_t bytes_max;       /* of a message, as sent and decompressed */
    bool gzip;              /* what grpc-encoding says */
    struct pawl__buf raw;   /* of the message; grows as bytes arrive, whatever was announced */
    struct pawl__buf whole; /* decompressed */
};

enum pawl__h2_deframed {
    PAWL__H2_MORE,    /* all bytes are used, and the message is not whole */
    PAWL__H2_MESSAGE, /* one is whole: *ret_message, until the next call; bytes may be left */
    PAWL__H2_BAD,     /* the stream is lost: *ret_code and reterr say why */
};

#define PAWL__H2_DEFRAMER_INIT(bytes_max_, gzip_)  \
    {                                              \
        .bytes_max = (bytes_max_), .gzip = (gzip_) \
    }

void pawl__h2_deframer_done(struct pawl__h2_deframer *deframer);

/* Takes from the front of `in`. */
enum pawl__h2_deframed pawl__h2_deframe(struct pawl__h2_deframer *deframer,
                                        pawl_view *in,
                                        pawl_view *ret_message,
                                        enum pawl__h2_code *ret_code,
                                        pawl_error *reterr);

/* In the middle of a message: the stream must not end here. */
bool pawl__h2_deframer_is_open(const struct pawl__h2_deframer *deframer);

/* Bytes of memory that it holds. */
size_t pawl__h2_deframer_bytes(const struct pawl__h2_deframer *deframer);

void pawl__h2_prefix(char ret_prefix[PAWL__H2_PREFIX_SIZE], bool compressed, size_t len);

#endif
