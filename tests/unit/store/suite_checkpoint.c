// SPDX-License-Identifier: Apache-2.0
// Checkpoints: round trips, damage of every kind, a process killed while it writes, a full disk,
// and a folder of them.
#define _GNU_SOURCE  // unshare, for a disk of our own
#include "harness/harness.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/whole_file.h"
#include "gpurt/checkpoint.h"

static char folder[64];

// In memory where that is to be had: what a killed process leaves does not depend on the disk, and
// bringing every file to a real one takes most of the time.
static void enter(void) {
    snprintf(folder, sizeof folder, "%s/gpurt-checkpoint-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(folder));
}

static void leave(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static const char *in_folder(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

// Whether the folder holds a file whose name matches the pattern.
static bool holds(const char *pattern) {
    char command[160];
    snprintf(command, sizeof command, "ls '%s' | grep -q '%s'", folder, pattern);
    return system(command) == 0;
}

// Every type and rank, contents by seed.
static struct grt_archive *sample(uint64_t seed, uint64_t rows) {
    struct grt_archive *archive = grt_archive_create();
    assert_non_null(archive);
    const uint64_t shape[GRT_MAX_RANK] = {rows, 5, 2, 3, 2};
    for (uint32_t dtype = 0; dtype < GRT_DTYPE_COUNT; dtype++) {
        char name[64];
        snprintf(name, sizeof name, "model/layers.%u.weight", dtype);
        struct grt_archive_tensor *t = grt_archive_add(archive, name, (enum grt_dtype)dtype,
                                                       dtype % (GRT_MAX_RANK + 1), shape, NULL);
        assert_non_null(t);
        for (uint64_t i = 0; i < t->bytes; i++) {
            ((unsigned char *)t->data)[i] = (unsigned char)test_next(&seed);
        }
    }
    const uint64_t none[2] = {0, 4};
    assert_non_null(
        grt_archive_add(archive, "optimizer/exp_avg.layers.0.weight", GRT_F32, 1, shape, NULL));
    assert_non_null(grt_archive_add(archive, "empty", GRT_F32, 2, none, NULL));
    assert_non_null(grt_archive_add(archive, "top.level", GRT_U8, 0, NULL, "x"));
    assert_true(grt_archive_set_whole(archive, "step", (int64_t)rows * 1000003));
    assert_true(grt_archive_set_real(archive, "loss", 0.1 * (double)rows));
    assert_true(grt_archive_set_text(archive, "config", "epochs: 3\n# \xc3\xa4\n"));
    assert_true(grt_archive_set_text(archive, "nothing", ""));
    return archive;
}

static void check_same(const struct grt_archive *a, const struct grt_archive *b) {
    assert_int_equal(a->tensor_count, b->tensor_count);
    assert_int_equal(a->value_count, b->value_count);
    for (uint32_t i = 0; i < a->tensor_count; i++) {
        const struct grt_archive_tensor *x = &a->tensors[i];
        const struct grt_archive_tensor *y = grt_archive_find(b, x->name);
        assert_non_null(y);
        assert_true(x->dtype == y->dtype && x->rank == y->rank && x->bytes == y->bytes);
        assert_memory_equal(x->shape, y->shape, sizeof x->shape);
        assert_memory_equal(x->data, y->data, x->bytes);
    }
    for (uint32_t i = 0; i < a->value_count; i++) {
        const struct grt_archive_value *x = &a->values[i];
        const struct grt_archive_value *y = grt_archive_value(b, x->name);
        assert_non_null(y);
        if (!y) {
            return;
        }
        assert_true(x->type == y->type && x->whole == y->whole && x->real == y->real);
        assert_true(x->type != GRT_ARCHIVE_TEXT || strcmp(x->text, y->text) == 0);
    }
}

static void round_trip(void **state) {
    (void)state;
    enter();
    struct grt_archive *archive = sample(1, 7);
    assert_true(grt_checkpoint_save(archive, in_folder("a.h5")));
    struct grt_archive *back = grt_checkpoint_load(in_folder("a.h5"));
    assert_non_null(back);
    check_same(archive, back);
    assert_int_equal(grt_archive_whole(back, "step", 0), 7000021);
    assert_int_equal(grt_archive_whole(back, "loss", -1), -1);
    assert_true(grt_archive_real(back, "loss", 0) == 0.1 * 7);
    // Equal archives make equal files, whenever they are written.
    sleep(1);
    assert_true(grt_checkpoint_save(back, in_folder("b.h5")));
    char command[256];
    snprintf(command, sizeof command, "cmp '%s/a.h5' '%s/b.h5'", folder, folder);
    bool same_order = strcmp(archive->tensors[0].name, back->tensors[0].name) == 0;
    if (same_order) {
        assert_int_equal(system(command), 0);
    }
    grt_archive_destroy(&back);
    back = sample(1, 7);
    assert_true(grt_checkpoint_save(back, in_folder("b.h5")));
    assert_int_equal(system(command), 0);
    grt_archive_destroy(&back);
    grt_archive_destroy(&archive);
    leave();
}

static void came_back(void *lender) {
    ++*(int *)lender;
}

// A tensor that is lent is read where it is, is not freed, and is given back once.
static void lent(void **state) {
    (void)state;
    enter();
    const uint64_t shape[2] = {2, 3};
    float numbers[6] = {1, 2, 3, 4, 5, 6};
    int back = 0;
    struct grt_archive *archive = grt_archive_create(), *copied = grt_archive_create();
    archive->lender = &back;
    archive->give_back = came_back;
    struct grt_archive_tensor *t =
        grt_archive_lend(archive, "model/a.weight", GRT_F32, 2, shape, numbers);
    assert_non_null(t);
    assert_ptr_equal(t->data, numbers);
    assert_int_equal(t->bytes, sizeof numbers);
    TEST_REFUSED(grt_archive_lend(archive, "model/b", GRT_F32, 2, shape, NULL), GRT_INVALID,
                 "to lend");
    TEST_REFUSED(grt_archive_lend(archive, "model/a.weight", GRT_F32, 2, shape, numbers),
                 GRT_INVALID, "two tensors");
    numbers[5] = 7;
    assert_non_null(grt_archive_add(copied, "model/a.weight", GRT_F32, 2, shape, numbers));
    assert_true(grt_checkpoint_save(archive, in_folder("lent.h5")));
    assert_true(grt_checkpoint_save(copied, in_folder("copied.h5")));
    char command[256];
    snprintf(command, sizeof command, "cmp '%s/lent.h5' '%s/copied.h5'", folder, folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(back, 0);
    grt_archive_destroy(&archive);
    assert_int_equal(back, 1);
    grt_archive_destroy(&copied);
    leave();
}

static void refusals(void **state) {
    (void)state;
    enter();
    struct grt_archive *archive = grt_archive_create();
    const uint64_t one = 1;
    const uint64_t huge[2] = {UINT64_MAX / 2, 16};
    float value = 1.0f;
    assert_non_null(grt_archive_add(archive, "a.b", GRT_F32, 1, &one, &value));
    TEST_REFUSED(grt_archive_add(archive, "a.b", GRT_F32, 1, &one, &value), GRT_INVALID,
                 "two tensors 'a.b'");
    TEST_REFUSED(grt_archive_add(archive, "c", GRT_F32, 2, huge, NULL), GRT_INVALID, "a shape");
    TEST_REFUSED(grt_archive_add(archive, "c", GRT_F32, 5, huge, NULL), GRT_INVALID, "a shape");
    const char *const names[] = {"", "/a", "a/", "a//b", "..", "a/../b", "a/./b", "a\nb"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        TEST_REFUSED(grt_archive_add(archive, names[i], GRT_F32, 1, &one, &value), GRT_INVALID,
                     "is no name for a tensor");
    }
    TEST_REFUSED(grt_archive_set_whole(archive, "a/b", 1), GRT_INVALID, "no name for a value");
    TEST_REFUSED(grt_archive_set_text(archive, "a", NULL), GRT_INVALID, "the text of value");
    // A group and a tensor cannot have one name, nor can a value have that of the head.
    assert_non_null(grt_archive_add(archive, "a", GRT_F32, 1, &one, &value));
    TEST_REFUSED(grt_checkpoint_save(archive, in_folder("x.h5")), GRT_INVALID, "tensor a");
    grt_archive_destroy(&archive);
    archive = grt_archive_create();
    assert_true(grt_archive_set_whole(archive, "schema", 3));
    TEST_REFUSED(grt_checkpoint_save(archive, in_folder("x.h5")), GRT_INVALID, "schema");
    grt_archive_destroy(&archive);
    assert_int_not_equal(access(in_folder("x.h5"), F_OK), 0);
    TEST_REFUSED(grt_checkpoint_load(in_folder("x.h5")), GRT_NO_INPUT, "x.h5");
    TEST_REFUSED(grt_checkpoint_load(folder), GRT_NO_INPUT, "no regular file");
    TEST_REFUSED(grt_checkpoint_newest(folder), GRT_NO_INPUT, "no whole checkpoint");
    TEST_REFUSED(grt_checkpoint_newest(in_folder("missing")), GRT_NO_INPUT, "missing");
    leave();
}

// ---- damage ----

static unsigned char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = test_alloc(*size);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static void write_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

// One byte of a file, in place: all of it need not go to the disk again.
static void write_byte(const char *path, size_t at, unsigned char byte) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

#define SEAL_BYTES 24

// Of many bytes: room for the file is there at once, several threads make the digests, and it goes
// to the disk in pieces. A byte that changed far behind the first piece is noticed.
static void many_bytes(void **state) {
    (void)state;
    enter();
    struct grt_archive *archive = sample(9, 150000);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < archive->tensor_count; i++) {
        bytes += archive->tensors[i].bytes;
    }
    assert_true(bytes > 20u << 20);
    const char *path = in_folder("many.h5");
    assert_true(grt_checkpoint_save(archive, path));
    struct grt_archive *loaded = grt_checkpoint_load(path);
    assert_non_null(loaded);
    check_same(archive, loaded);
    grt_archive_destroy(&loaded);
    uint64_t size = 0;
    unsigned char *file = grt_whole_file_read(path, 1u << 30, &size);
    assert_non_null(file);
    write_byte(path, size - size / 8, (unsigned char)~file[size - size / 8]);
    free(file);
    TEST_REFUSED(grt_checkpoint_load(path), GRT_BAD_DATA, "digest");
    grt_archive_destroy(&archive);
    leave();
}

// A flipped bit anywhere in a sealed file is found. Without the seal, as after another program
// wrote the file anew, a flip may hit what does not matter; what is loaded then must be right.
static void bit_flips(void **state) {
    (void)state;
    enter();
    size_t size = 0;
    uint64_t seed = 3;
    struct grt_archive *archive = sample(1, 7);
    assert_true(grt_checkpoint_save(archive, in_folder("a.h5")));
    unsigned char *bytes = read_file(in_folder("a.h5"), &size);
    test_log.quiet = true;
    write_file(in_folder("flip.h5"), bytes, size);
    uint32_t flips = test.small ? 200 : 1000;
    for (uint32_t i = 0; i < flips; i++) {
        size_t at = test_next(&seed) % (size - SEAL_BYTES);
        unsigned char bit = (unsigned char)(1u << test_next(&seed) % 8);
        write_byte(in_folder("flip.h5"), at, bytes[at] ^ bit);
        TEST_REFUSED(grt_checkpoint_load(in_folder("flip.h5")), GRT_BAD_DATA, "damaged");
        write_byte(in_folder("flip.h5"), at, bytes[at]);
    }
    // In the tensors' bytes, without the seal: each has its own digest.
    const struct grt_archive_tensor *weight = &archive->tensors[2];
    const unsigned char *place = memmem(bytes, size, weight->data, weight->bytes);
    assert_non_null(place);
    write_file(in_folder("flip.h5"), bytes, size - SEAL_BYTES);
    for (uint64_t i = 0; i < weight->bytes; i++) {
        size_t at = (size_t)(place - bytes) + i;
        write_byte(in_folder("flip.h5"), at, bytes[at] ^ 1);
        TEST_REFUSED(grt_checkpoint_load(in_folder("flip.h5")), GRT_BAD_DATA, "digest is wrong");
        write_byte(in_folder("flip.h5"), at, bytes[at]);
    }
    struct grt_archive *back = grt_checkpoint_load(in_folder("flip.h5"));
    assert_non_null(back);
    check_same(archive, back);
    grt_archive_destroy(&back);
    // Anywhere, without the seal. HDF5 gives up in many places, in some without a word of ours;
    // each must end as bad data and one sentence, or with all that was saved.
    for (uint32_t i = 0; i < (test.small ? 150 : 1500); i++) {
        size_t at = test_next(&seed) % (size - SEAL_BYTES);
        unsigned char bit = (unsigned char)(1u << test_next(&seed) % 8);
        write_byte(in_folder("flip.h5"), at, bytes[at] ^ bit);
        uint32_t errors = test_log.lines[GRT_LOG_ERROR];
        test_log.quiet = true;
        back = grt_checkpoint_load(in_folder("flip.h5"));
        if (back) {
            check_same(archive, back);
            grt_archive_destroy(&back);
        } else {
            test_check_refused(true, GRT_BAD_DATA, "flip.h5", errors, __FILE__, __LINE__);
        }
        write_byte(in_folder("flip.h5"), at, bytes[at]);
    }
    // Cut short anywhere.
    for (uint32_t i = 0; i < 100; i++) {
        write_file(in_folder("flip.h5"), bytes, size * i / 101);
        TEST_REFUSED(grt_checkpoint_load(in_folder("flip.h5")), GRT_BAD_DATA, "flip.h5");
    }
    free(bytes);
    grt_archive_destroy(&archive);
    leave();
}

// ---- a folder ----

static bool there(uint64_t step) {
    char path[256];
    return grt_checkpoint_path(folder, step, path, sizeof path) && access(path, F_OK) == 0;
}

static void folders(void **state) {
    (void)state;
    enter();
    struct grt_archive *archive = sample(1, 3);
    char inner[128];
    snprintf(inner, sizeof inner, "%s/a/b", folder);
    assert_true(grt_checkpoint_make_dir(inner));
    assert_true(grt_checkpoint_make_dir(inner));
    struct grt_checkpoint_dir dir = {.dir = folder, .keep = 2};
    for (uint64_t step = 100; step <= 500; step += 100) {
        assert_true(grt_archive_set_whole(archive, "step", (int64_t)step));
        assert_true(grt_checkpoint_store(&dir, archive, step));
    }
    assert_false(there(100) || there(200) || there(300));
    assert_true(there(400) && there(500));
    // A process that is gone left a file; ours is still going.
    char gone[64];
    char going[64];
    snprintf(gone, sizeof gone, "step-000000000500.h5.%d.tmp", 0x7ffffff0);
    snprintf(going, sizeof going, "step-000000000500.h5.%ld.tmp", (long)getppid());
    char best[64];
    char others[64];
    snprintf(best, sizeof best, "best.h5.%d.tmp", 0x7ffffff0);
    snprintf(others, sizeof others, "rest.h5.%d.tmp", 0x7ffffff0);
    write_file(in_folder(best), "x", 1);
    write_file(in_folder(others), "x", 1);
    write_file(in_folder(gone), "x", 1);
    write_file(in_folder(going), "x", 1);
    write_file(in_folder("step-9.h5.txt"), "x", 1);
    assert_true(grt_checkpoint_store(&dir, archive, 600));
    assert_int_not_equal(access(in_folder(gone), F_OK), 0);
    assert_int_not_equal(access(in_folder(best), F_OK), 0);
    assert_int_equal(access(in_folder(others), F_OK), 0);
    assert_int_equal(access(in_folder(going), F_OK), 0);
    assert_int_equal(access(in_folder("step-9.h5.txt"), F_OK), 0);
    // The newest is damaged: the one before is taken, with a warning.
    assert_int_equal(truncate(in_folder("step-000000000600.h5"), 1000), 0);
    test_log.quiet = true;
    uint32_t warnings = test_log.lines[GRT_LOG_WARN];
    struct grt_archive *newest = grt_checkpoint_newest(folder);
    test_log.quiet = false;
    assert_non_null(newest);
    assert_int_equal(grt_archive_whole(newest, "step", 0), 500);
    assert_int_equal(test_log.lines[GRT_LOG_WARN], warnings + 1);
    assert_non_null(strstr(newest->path, "step-000000000500.h5"));
    grt_archive_destroy(&newest);
    grt_archive_destroy(&archive);
    leave();
}

// All checkpoints of a folder go into one below it, with the best where there is one; files of
// others stay, and each time it is another folder.
static void set_aside(void **state) {
    (void)state;
    enter();
    struct grt_archive *archive = sample(1, 3);
    struct grt_checkpoint_dir dir = {.dir = folder, .keep = 5};
    write_file(in_folder("notes.txt"), "x", 1);
    for (uint32_t time = 1; time <= 3; time++) {
        char aside[160], wanted[192];
        bool best = time != 2;
        assert_true(grt_checkpoint_store(&dir, archive, 7) &&
                    grt_checkpoint_store(&dir, archive, 8));
        if (best) {
            assert_true(grt_checkpoint_save(archive, in_folder("best.h5")));
        }
        assert_true(grt_checkpoint_any(folder));
        assert_true(grt_checkpoint_set_aside(folder, aside, sizeof aside));
        snprintf(wanted, sizeof wanted, "%s/earlier-%u", folder, time);
        assert_string_equal(aside, wanted);
        assert_false(grt_checkpoint_any(folder) || there(7) || there(8));
        assert_int_not_equal(access(in_folder("best.h5"), F_OK), 0);
        assert_int_equal(access(in_folder("notes.txt"), F_OK), 0);
        static const char *const moved[] = {"step-000000000007.h5", "step-000000000008.h5",
                                            "best.h5"};
        for (uint32_t i = 0; i < 3; i++) {
            snprintf(wanted, sizeof wanted, "%s/%s", aside, moved[i]);
            assert_int_equal(access(wanted, F_OK) == 0, i < 2 || best);
        }
    }
    grt_archive_destroy(&archive);
    leave();
}

// Steps beyond the one that is stored are another run's: `keep` neither counts nor removes them.
static void later_steps_stay(void **state) {
    (void)state;
    enter();
    struct grt_archive *archive = sample(1, 3);
    struct grt_checkpoint_dir dir = {.dir = folder};
    for (uint64_t step = 100; step <= 500; step += 100) {
        assert_true(grt_checkpoint_store(&dir, archive, step));
    }
    assert_true(there(100) && there(500));
    dir.keep = 2;
    assert_true(grt_checkpoint_store(&dir, archive, 250));
    assert_false(there(100));
    assert_true(there(200) && there(250) && there(300) && there(400) && there(500));
    grt_archive_destroy(&archive);
    leave();
}

// The bytes are on the disk before the name is, and the name before the save is done. What the disk
// refuses is said, and leaves the file as it was.
static void durable(void **state) {
    (void)state;
    enter();
    struct grt_archive *archive = sample(1, 3);
    char path[256];
    snprintf(path, sizeof path, "%s", in_folder("d.h5"));
    test_files = (struct test_files){0};
    assert_true(grt_checkpoint_save(archive, path));
    assert_string_equal(test_files.done, "frd");
    test_files = (struct test_files){0};
    assert_true(grt_archive_set_whole(archive, "step", 77));
    assert_true(grt_checkpoint_save(archive, path));
    assert_string_equal(test_files.done, "frd");
    assert_true(grt_archive_set_whole(archive, "step", 78));
    for (int i = 0; i < 2; i++) {
        test_files = (struct test_files){.fail = "fd"[i]};
        TEST_REFUSED(grt_checkpoint_save(archive, path), GRT_IO, "Input/output error");
        struct grt_archive *kept = grt_checkpoint_load(path);
        assert_non_null(kept);
        assert_int_equal(grt_archive_whole(kept, "step", 0), i == 0 ? 77 : 78);
        grt_archive_destroy(&kept);
        assert_string_equal(test_files.done, i == 0 ? "f" : "frd");
    }
    // Some file systems cannot sync a folder, which is no failure; a file they can.
    test_files = (struct test_files){.fail = 'd', .error = EINVAL};
    assert_true(grt_checkpoint_save(archive, path));
    test_files = (struct test_files){.fail = 'f', .error = EINVAL};
    TEST_REFUSED(grt_checkpoint_save(archive, path), GRT_IO, "Invalid argument");
    test_files = (struct test_files){0};
    // A second name for the same bytes: the folder goes to the disk when it has both.
    char twin[256], first[256];
    snprintf(twin, sizeof twin, "%s", in_folder("twin.h5"));
    snprintf(first, sizeof first, "%s", in_folder("step-000000000005.h5"));
    const struct grt_checkpoint_dir dir = {.dir = folder, .twin = twin};
    assert_true(grt_checkpoint_store(&dir, archive, 5));
    assert_string_equal(test_files.done, "frrd");
    assert_true(grt_whole_file_same(first, twin));
    // A file of other permissions keeps its name and its bytes.
    assert_int_equal(unlink(twin), 0);
    assert_true(grt_whole_file_save(twin, "mine", 4) && chmod(twin, 0600) == 0);
    test_files = (struct test_files){0};
    assert_true(grt_checkpoint_store(&dir, archive, 5));
    assert_string_equal(test_files.done, "frd");
    assert_false(grt_whole_file_same(first, twin));
    struct stat info;
    assert_int_equal(stat(twin, &info), 0);
    assert_int_equal(info.st_size, 4);
    grt_archive_destroy(&archive);
    leave();
}

// ---- killed ----

// Saves one after the other until it is killed; every tensor tells its step.
static void save_for_ever(void) {
    struct grt_checkpoint_dir dir = {.dir = folder, .keep = 2};
    const uint64_t shape[2] = {128, 256};
    struct grt_archive *archive = grt_archive_create();
    for (uint32_t k = 0; archive && k < 4; k++) {
        char name[32];
        snprintf(name, sizeof name, "model/layers.%u.weight", k);
        grt_archive_add(archive, name, GRT_U32, 2, shape, NULL);
    }
    for (uint32_t step = 1; archive && archive->tensor_count == 4; step++) {
        for (uint32_t k = 0; k < 4; k++) {
            uint32_t *words = archive->tensors[k].data;
            for (uint32_t i = 0; i < 128 * 256; i++) {
                words[i] = step + i * k;
            }
        }
        grt_archive_set_whole(archive, "step", step);
        if (!grt_checkpoint_store(&dir, archive, step)) {
            break;
        }
    }
    _exit(1);
}

static void killed(void **state) {
    (void)state;
    uint64_t seed = 11;
    uint32_t rounds = test.small ? 10 : 100;
    uint32_t half_written = 0;
    uint32_t first_ms = 0;
    enter();
    // As many as asked for, and on until one has hit the writing and not only the time between.
    uint32_t round = 0;
    for (; round < rounds || (half_written == 0 && round < 20 * rounds); round++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            save_for_ever();
        }
        // The first is left alone until it has saved a checkpoint, which tells how long that takes
        // here; then at any moment of twice that time, whatever else the machine does. Any
        // checkpoint counts: only two are kept, so on a busy machine the first may come and go
        // between two looks.
        while (round == 0 && !holds("step-.*h5$")) {
            assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            first_ms++;
        }
        uint64_t us = test_next(&seed) % (2000 * (first_ms + 4));
        nanosleep(&(struct timespec){.tv_sec = (time_t)(us / 1000000),
                                     .tv_nsec = 1000 * (long)(us % 1000000)},
                  NULL);
        assert_int_equal(kill(pid, SIGKILL), 0);
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        half_written += holds("tmp");
        uint32_t warnings = test_log.lines[GRT_LOG_WARN];
        struct grt_archive *newest = grt_checkpoint_newest(folder);
        assert_non_null(newest);
        assert_int_equal(test_log.lines[GRT_LOG_WARN], warnings);  // the very newest was whole
        uint32_t step = (uint32_t)grt_archive_whole(newest, "step", 0);
        assert_true(step > 0 && newest->tensor_count == 4);
        for (uint32_t k = 0; k < 4; k++) {
            const uint32_t *words = newest->tensors[k].data;
            for (uint32_t i = 0; i < 128 * 256; i++) {
                assert_int_equal(words[i], step + i * k);
            }
        }
        grt_archive_destroy(&newest);
    }
    print_message("%u of %u kills left a half-written file behind\n", half_written, round);
    assert_true(half_written > 0);
    leave();
}

// ---- a full disk ----

static void keep_line(void *context, enum grt_log_level level, const char *line) {
    (void)level;
    snprintf(context, 512, "%s", line);
}

// In a child: saving a large archive over a small one fails with path and reason, and the small one
// is still there, whole. Exit code 0 when all of it is so.
static int save_too_much(const char *reason) {
    char said[512] = "";
    struct grt_archive *archive = sample(1, 3);
    struct grt_archive *large = sample(1, 100000);
    const char *path = in_folder("step-000000000001.h5");
    if (!grt_checkpoint_save(archive, path)) {
        return 2;
    }
    grt_log_set(keep_line, said, GRT_LOG_ERROR);
    if (grt_checkpoint_save(large, path) || grt_last_status() != GRT_IO) {
        return 3;
    }
    if (!strstr(said, path) || !strstr(said, reason) || !strstr(said, "as it was")) {
        fprintf(stderr, "said: %s\n", said);
        return 4;
    }
    struct grt_archive *back = grt_checkpoint_newest(folder);
    if (!back || back->tensor_count != archive->tensor_count ||
        memcmp(grt_archive_find(back, "model/layers.1.weight")->data, archive->tensors[1].data,
               archive->tensors[1].bytes) != 0) {
        return 5;
    }
    // Nothing half written is left to fill the disk further.
    return holds("tmp") ? 6 : 0;
}

static void full_disk(void **state) {
    (void)state;
    enter();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        // A limit on the size of files, which every user may set on himself.
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = {1 << 20, 1 << 20};
        setrlimit(RLIMIT_FSIZE, &limit);
        _exit(save_too_much(strerror(EFBIG)));
    }
    int status = 0;
    waitpid(pid, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 0);
    // A disk of 1 MiB, where we may mount one.
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("tmpfs", folder, "tmpfs", 0, "size=1m") != 0) {
            _exit(77);
        }
        _exit(save_too_much(strerror(ENOSPC)));
    }
    waitpid(pid, &status, 0);
    if (WEXITSTATUS(status) == 77) {
        print_message("no disk may be mounted here; the size limit stood for it\n");
    } else {
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    leave();
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(round_trip),       TEST_CASE(many_bytes), TEST_CASE(lent),
    TEST_CASE(refusals),         TEST_CASE(bit_flips),  TEST_CASE(folders),
    TEST_CASE(later_steps_stay), TEST_CASE(durable),    TEST_CASE(killed),
    TEST_CASE(full_disk),        TEST_CASE(set_aside),
};
TEST_SUITE(checkpoint, false, cases);
