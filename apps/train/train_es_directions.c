// SPDX-License-Identifier: Apache-2.0
// What each direction of an iteration came to, a line each, for who computes an update again: the
// noise of a direction follows from seed, iteration and direction (es.h).
#include "train_es_directions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/talk.h"

// Whether the last line has no end: who wrote it was killed in the middle of it.
static bool torn(const char *path) {
    FILE *file = fopen(path, "r");
    int last = '\n';
    if (file && fseek(file, -1, SEEK_END) == 0) {
        last = fgetc(file);
    }
    if (file) {
        fclose(file);
    }
    return last != '\n';
}

bool es_directions_open(struct es_directions *d, const char *path) {
    *d = (struct es_directions){.path = path, .file = fopen(path, "a")};
    if (!d->file) {
        return grt_fail(GRT_NO_OUTPUT, "cannot create %s: %s", path, strerror(errno));
    }
    fseek(d->file, 0, SEEK_END);
    long bytes = ftell(d->file);
    if (bytes == 0) {
        fputs("iteration,direction,seed,return_plus,return_minus\n", d->file);
    } else if (bytes > 0 && torn(path)) {
        fputc('\n', d->file);
    }
    return true;
}

bool es_directions_add(struct es_directions *d, const struct grt_es *es, uint32_t iteration) {
    const struct grt_es_desc *desc = grt_es_desc_of(es);
    float *returns = d->file ? malloc(2 * (size_t)desc->num_dirs * sizeof *returns) : NULL;
    if (!d->file) {
        return true;
    }
    bool good = returns && grt_es_returns(es, returns);
    // Nine digits tell every float from its neighbours.
    for (uint32_t i = 0; good && i < desc->num_dirs; i++) {
        fprintf(d->file, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%.9g,%.9g\n", iteration, i,
                desc->seed, (double)returns[2 * i], (double)returns[2 * i + 1]);
    }
    free(returns);
    errno = 0;
    if (good && (fflush(d->file) != 0 || ferror(d->file))) {
        talk_error("cannot write %s: %s; nothing more is written there", d->path,
                   strerror(errno ? errno : EIO));
        es_directions_close(d);
        d->failed = true;
    }
    return good;
}

void es_directions_close(struct es_directions *d) {
    if (d->file) {
        fclose(d->file);
    }
    d->file = NULL;
}
