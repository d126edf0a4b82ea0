// SPDX-License-Identifier: Apache-2.0
// json_check [--lines]: whether stdin is one JSON document, or one in each line; exit status 0 or
// 1, with the place of the first mistake on stderr. Duplicate keys are a mistake.
#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check(const char *text, size_t size, size_t line) {
    json_error_t error;
    json_t *document = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!document) {
        fprintf(stderr, "json_check: line %zu, column %d: %s\n", line + (size_t)error.line - 1,
                error.column, error.text);
        return 1;
    }
    json_decref(document);
    return 0;
}

static int check_lines(void) {
    char *line = NULL;
    size_t capacity = 0;
    size_t count = 0;
    int rc = 0;
    ssize_t size;
    while (rc == 0 && (size = getline(&line, &capacity, stdin)) > 0) {
        count++;
        rc = check(line, (size_t)size, count);
    }
    free(line);
    if (count == 0) {
        fprintf(stderr, "json_check: no line at all\n");
    }
    return count == 0 ? 1 : rc;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--lines") == 0) {
        return check_lines();
    }
    if (argc > 1) {
        fprintf(stderr, "usage: json_check [--lines] < FILE\n");
        return 64;
    }
    static char text[4 << 20];
    size_t size = fread(text, 1, sizeof text, stdin);
    return check(text, size, 1);
}
