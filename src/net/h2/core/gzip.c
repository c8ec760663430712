#include "net/h2/core/gzip.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "base/core/error.h"

enum { GZIP_WINDOW = MAX_WBITS + 16, GZIP_MEMORY = 8, STEP_MIN = 4096, STEP_MAX = 1 << 20 };

static void inflate_end(z_stream *stream)
{
    (void)inflateEnd(stream);
}

static void deflate_end(z_stream *stream)
{
    (void)deflateEnd(stream);
}

static pawl_status gunzip_failed(int code, pawl_error *reterr)
{
    return code == Z_MEM_ERROR ? pawl__fail(reterr, PAWL_NOMEM, "no memory to decompress gzip")
                               : pawl__fail(reterr, PAWL_INVALID, "not a whole gzip member");
}

/* Room grows with what comes out: a small message that says it is large costs nothing. */
static size_t step_of(const struct pawl__buf *out)
{
    size_t step = MIN(MAX(out->len, (size_t)STEP_MIN), (size_t)STEP_MAX);
    return MIN(step, out->max - out->len);
}

/* One more piece out of `stream`. */
static int inflate_step(z_stream *stream, struct pawl__buf *out)
{
    size_t step = step_of(out);
    size_t before = out->len;
    char spare = 0;
    char *room = step == 0 ? &spare : pawl__buf_extend(out, step);

    if (room == NULL) {
        return Z_MEM_ERROR;
    }
    /* At the ceiling one byte of room tells a message that just fits from one that does not. */
    size_t given = step == 0 ? 1 : step;
    stream->next_out = (Bytef *)room;
    stream->avail_out = (uInt)given;
    int code = inflate(stream, Z_NO_FLUSH);
    size_t made = given - stream->avail_out;
    if (step == 0) {
        return made > 0 ? Z_NEED_DICT : code;
    }
    pawl__buf_cut(out, before + made);
    return code;
}

pawl_status pawl__h2_gunzip(pawl_view packed, struct pawl__buf *out, pawl_error *reterr)
{
    AUTO(inflate_end) z_stream stream = { .next_in = (z_const Bytef *)(uintptr_t)packed.data };
    int code = packed.len > UINT_MAX ? Z_DATA_ERROR : inflateInit2(&stream, GZIP_WINDOW);

    stream.avail_in = (uInt)packed.len;
    while (code == Z_OK) {
        code = inflate_step(&stream, out);
    }
    if (code == Z_NEED_DICT) { /* gzip has no dictionaries: it is ours */
        return pawl__fail(reterr, PAWL_NO_SPACE, "over %zu bytes when decompressed", out->max);
    }
    if (code != Z_STREAM_END) {
        return gunzip_failed(code, reterr);
    }
    if (stream.avail_in > 0) {
        return pawl__fail(
            reterr, PAWL_INVALID, "%u bytes after the gzip member", (unsigned)stream.avail_in);
    }
    return PAWL_OK;
}

pawl_status pawl__h2_gzip(pawl_view bytes, struct pawl__buf *out, pawl_error *reterr)
{
    AUTO(deflate_end) z_stream stream = { .next_in = (z_const Bytef *)(uintptr_t)bytes.data };
    size_t before = out->len;

    if (bytes.len > UINT_MAX / 2) {
        return pawl__fail(reterr, PAWL_NO_SPACE, "over 2 GiB to compress");
    }
    stream.avail_in = (uInt)bytes.len;
    if (deflateInit2(
            &stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY)
        != Z_OK) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory to compress");
    }
    size_t bound = (size_t)deflateBound(&stream, (uLong)bytes.len);
    char *room = pawl__buf_extend(out, bound);
    if (room == NULL) {
        return pawl__fail(reterr,
                          out->nomem ? PAWL_NOMEM : PAWL_NO_SPACE,
                          "no room for %zu bytes to compress",
                          bytes.len);
    }
    stream.next_out = (Bytef *)room;
    stream.avail_out = (uInt)bound;
    int code = deflate(&stream, Z_FINISH);
    pawl__buf_cut(out, before + bound - stream.avail_out);
    return code == Z_STREAM_END ? PAWL_OK
                                : pawl__fail(reterr, PAWL_FAILED, "gzip: zlib says %d", code);
}
