/* Similarity of vectors, 16 floats at a time.
 *
 * Written with the compiler's vector types, so that the same lines become AVX-512, AVX2, SSE2 or
 * NEON. On x86 the widest that the processor has is chosen at run time; the build itself asks for
 * nothing beyond the baseline. Four sums side by side keep the adders busy; each lane adds up a
 * 64th of the products, and the lanes are added in double precision. */
#include <assert.h>
#include <string.h>

#include "base/core/macros.h"
#include "ledger/recall/recall.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "embeddings are stored little-endian and used as they are");

enum { LANES = 16, SUMS = 4, STEP = LANES * SUMS };

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

/* Nothing of it may be a call: a callee compiled for another processor would pass vectors in other
 * registers. */
#define INLINE __attribute__((always_inline)) static inline

INLINE double dot_body(const float *a, const char *b, size_t count)
{
    lanes sums[SUMS] = { 0 };
    double total = 0;
    size_t i = 0;

    for (; i + STEP <= count; i += STEP) {
        for (size_t j = 0; j < SUMS; j++) {
            lanes x;
            lanes y;
            memcpy(&x, &a[i + j * LANES], sizeof(x));
            memcpy(&y, &b[(i + j * LANES) * sizeof(float)], sizeof(y));
            sums[j] += x * y;
        }
    }
    lanes sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (size_t j = 0; j < LANES; j++) {
        total += (double)sum[j];
    }
    for (; i < count; i++) {
        float y;
        memcpy(&y, &b[i * sizeof(float)], sizeof(y));
        total += (double)a[i] * (double)y;
    }
    return total;
}

static double dot_baseline(const float *a, const char *b, size_t count)
{
    return dot_body(a, b, count);
}

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static double dot_avx2(const float *a,
                                                           const char *b,
                                                           size_t count)
{
    return dot_body(a, b, count);
}

__attribute__((target("avx512f,fma"))) static double dot_avx512(const float *a,
                                                                const char *b,
                                                                size_t count)
{
    return dot_body(a, b, count);
}

static double dot(const float *a, const char *b, size_t count)
{
    if (__builtin_cpu_supports("avx512f")) {
        return dot_avx512(a, b, count);
    }
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
               ? dot_avx2(a, b, count)
               : dot_baseline(a, b, count);
}
#else
static double dot(const float *a, const char *b, size_t count)
{
    return dot_baseline(a, b, count);
}
#endif

static double in_range(double cosine)
{
    if (cosine >= -RECALL_COSINE_MAX && cosine <= RECALL_COSINE_MAX) {
        return MIN(MAX(cosine, -1.0), 1.0); /* rounding may step over the edge */
    }
    return cosine;
}

double pawl__ledger_recall_similarity(const float *query, pawl_view vector, size_t dimensions)
{
    REQUIRE(vector.len == dimensions * sizeof(float));
    return in_range(dot(query, vector.data, dimensions));
}
