// SPDX-License-Identifier: Apache-2.0
#include "closest.h"

#include <string.h>

#define LONGEST 31  // letters of a word that is compared
#define MOST 2      // slips
// What a slip counts, so that of names as many slips away the one without a wrong letter is closer:
// "gellu" is gelu with an l too many rather than geglu.
#define SLIP 4
#define WRONG_LETTER 5
#define LEAST_BEGINNING 3

// Insertions, deletions, replacements and swaps of neighbours that turn a into b, by what each
// counts.
static size_t distance(const char *a, const char *b) {
    size_t na = strlen(a);
    size_t nb = strlen(b);
    size_t d[LONGEST + 1][LONGEST + 1];
    // Each slip changes the length by one at most; most names of a long list end here.
    if (na > LONGEST || nb > LONGEST || na > nb + MOST || nb > na + MOST) {
        return LONGEST * SLIP;
    }
    for (size_t i = 0; i <= na; i++) {
        for (size_t j = 0; j <= nb; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = (i + j) * SLIP;
                continue;
            }
            size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1] ? WRONG_LETTER : 0);
            if (d[i - 1][j] + SLIP < best) {
                best = d[i - 1][j] + SLIP;
            }
            if (d[i][j - 1] + SLIP < best) {
                best = d[i][j - 1] + SLIP;
            }
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && d[i - 2][j - 2] + SLIP < best) {
                best = d[i - 2][j - 2] + SLIP;
            }
            d[i][j] = best;
        }
    }
    return d[na][nb];
}

// Whether one word is the beginning of the other: "train" and "training", "inf" and "info".
static bool begins(const char *a, const char *b) {
    size_t na = strlen(a), nb = strlen(b), n = na < nb ? na : nb;
    return n >= LEAST_BEGINNING && strncmp(a, b, n) == 0;
}

const char *grt_closest(const char *word, const void *names, size_t count, size_t stride) {
    const char *closest = NULL;
    size_t least = (MOST + 1) * SLIP;  // of a short word less than half may be wrong
    for (size_t i = 0; i < count; i++) {
        const char *name = NULL;
        memcpy(&name, (const char *)names + i * stride, sizeof name);
        size_t far = distance(word, name);
        if (far < least && 2 * (far / SLIP) < strlen(name)) {
            least = far;
            closest = name;
        }
    }
    // A word that was cut short or drawn out, when only one name can be meant.
    size_t meant = 0;
    for (size_t i = 0; !closest && i < count; i++) {
        const char *name = NULL;
        memcpy(&name, (const char *)names + i * stride, sizeof name);
        meant += begins(word, name);
    }
    for (size_t i = 0; meant == 1 && !closest && i < count; i++) {
        const char *name = NULL;
        memcpy(&name, (const char *)names + i * stride, sizeof name);
        closest = begins(word, name) ? name : NULL;
    }
    return closest;
}
