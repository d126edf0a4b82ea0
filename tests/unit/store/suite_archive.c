// SPDX-License-Identifier: Apache-2.0
// Archives on both sides of what they hold, where tensors lie in a checkpoint, folders of them,
// and files that another program has changed.
#include "harness/harness.h"

#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/whole_file.h"
#include "gpurt/safetensors.h"
#include "kits/cache_kit.h"
#include "store/checkpoint_parts.h"

static char folder[128];

static int begin(void **state) {
    snprintf(folder, sizeof folder, "%s/gpurt-archive-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    return mkdtemp(folder) ? test_case_begin(state) : -1;
}

static int end(void **state) {
    kit_remove_tree(folder);
    return test_case_end(state);
}

// A path in the folder; the newest 8 stay.
static const char *in(const char *name) {
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static const uint64_t one = 1;

static void names_and_limits(void **state) {
    (void)state;
    static const char *const good[] = {"a.", ".a", "..a", "a..b", "a/b.c", "a b", "\xc3\xa4"};
    static const char *const bad[] = {"a\x7f", "\t", "a/.", "./a", "/", "a/b/", "a/..", "a//b"};
    struct grt_archive *archive = grt_archive_create();
    char name[256], *text = test_alloc(GRT_ARCHIVE_MAX_TEXT + 2);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_non_null(grt_archive_add(archive, good[i], GRT_U8, 1, &one, "x"));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        TEST_REFUSED(grt_archive_add(archive, bad[i], GRT_U8, 1, &one, "x"), GRT_INVALID,
                     "is no name for a tensor");
        TEST_REFUSED(grt_archive_set_whole(archive, bad[i], 1), GRT_INVALID,
                     "is no name for a value");
    }
    assert_int_equal(archive->tensor_count, sizeof good / sizeof *good);
    assert_int_equal(archive->value_count, 0);
    memset(name, 'n', sizeof name);
    for (int more = 0; more < 2; more++) {
        name[GRT_ARCHIVE_NAME - 1 + more] = '\0';
        if (more) {
            TEST_REFUSED(grt_archive_add(archive, name, GRT_U8, 1, &one, "x"), GRT_INVALID,
                         "is no name for a tensor");
        } else {
            assert_non_null(grt_archive_add(archive, name, GRT_U8, 1, &one, "x"));
        }
        memset(name, 'n', sizeof name);
        name[GRT_ARCHIVE_VALUE_NAME - 1 + more] = '\0';
        assert_int_equal(more || grt_archive_set_whole(archive, name, 3), 1);
        if (more) {
            TEST_REFUSED(grt_archive_set_whole(archive, name, 3), GRT_INVALID,
                         "no name for a value");
        }
        memset(name, 'n', sizeof name);
        memset(text, 't', GRT_ARCHIVE_MAX_TEXT + 1);
        text[GRT_ARCHIVE_MAX_TEXT + more] = '\0';
        if (more) {
            TEST_REFUSED(grt_archive_set_text(archive, "t", text), GRT_INVALID,
                         "the text of value 't' has more than 60000 bytes");
        } else {
            assert_true(grt_archive_set_text(archive, "t", text));
        }
    }
    assert_int_equal(strlen(grt_archive_text(archive, "t", "")), GRT_ARCHIVE_MAX_TEXT);
    // A value of the same name is another value, and takes no room.
    assert_true(grt_archive_set_real(archive, "t", 2.5));
    assert_int_equal(grt_archive_value(archive, "t")->type, GRT_ARCHIVE_REAL);
    assert_null(grt_archive_value(archive, "t")->text);
    for (int i = (int)archive->value_count; i < GRT_ARCHIVE_MAX_VALUES; i++) {
        snprintf(name, sizeof name, "v%d", i);
        assert_true(grt_archive_set_whole(archive, name, i));
    }
    TEST_REFUSED(grt_archive_set_whole(archive, "more", 1), GRT_INVALID,
                 "no room for value 'more'");
    assert_true(grt_archive_set_whole(archive, "t", 9));
    assert_int_equal(grt_archive_whole(archive, "t", 0), 9);
    assert_int_equal(grt_archive_whole(archive, "v1023", 0), 1023);
    static const uint64_t huge[2] = {1ull << 61, 1};
    TEST_REFUSED(grt_archive_add(archive, "h", GRT_F32, 2, huge, NULL), GRT_INVALID, "a shape");
    TEST_REFUSED(grt_archive_add(archive, "h", GRT_DTYPE_COUNT, 1, &one, NULL), GRT_INVALID,
                 "an archive, a name, a type and a shape are wanted");
    TEST_REFUSED(grt_archive_add(archive, "h", GRT_F32, GRT_MAX_RANK + 1, huge, NULL), GRT_INVALID,
                 "a shape are wanted");
    TEST_REFUSED(grt_archive_add(archive, "h", GRT_F32, 1, NULL, NULL), GRT_INVALID, "a shape");
    TEST_REFUSED(grt_archive_add(NULL, "h", GRT_F32, 1, &one, NULL), GRT_INVALID, "an archive");
    TEST_REFUSED(grt_archive_add(archive, NULL, GRT_F32, 1, &one, NULL), GRT_INVALID, "a name");
    assert_null(grt_archive_find(archive, "h"));
    assert_null(grt_archive_find(archive, NULL));
    assert_null(grt_archive_find(NULL, "a."));
    assert_null(grt_archive_value(NULL, "t"));
    grt_archive_destroy(&archive);
    assert_null(archive);
    grt_archive_destroy(&archive);
    grt_archive_destroy(NULL);
    free(text);
}

// To a device and from it: the same name, type and shape, said of both where they differ.
static void tensors_of_devices(void **state) {
    (void)state;
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.device = "ref:0"));
    struct grt_archive *archive = grt_archive_create();
    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    float got[8] = {0};
    assert_true(dev && archive);
    struct grt_buf *buf = grt_buf_create(dev, grt_buf_desc(.size = 32));
    struct grt_tensor tensor = {
        .range = {buf, 8, 24}, .dtype = GRT_F32, .rank = 2, .shape = {2, 3}};
    assert_true(grt_buf_write(buf, 8, numbers, sizeof numbers));
    assert_true(grt_archive_take(archive, "a", &tensor));
    const struct grt_archive_tensor *a = grt_archive_find(archive, "a");
    assert_true(a && a->rank == 2 && a->shape[0] == 2 && a->shape[1] == 3 && a->bytes == 24);
    assert_memory_equal(a->data, numbers, sizeof numbers);
    TEST_REFUSED(grt_archive_take(archive, "a", &tensor), GRT_INVALID, "two tensors 'a'");
    static const float zeros[8];
    assert_true(grt_buf_write(buf, 0, zeros, sizeof zeros));
    assert_true(grt_archive_give(archive, "a", &tensor));
    assert_true(grt_buf_read(buf, 0, got, sizeof got));
    assert_true(got[0] == 0 && got[1] == 0);
    assert_memory_equal(got + 2, numbers, sizeof numbers);
    const struct {
        struct grt_tensor tensor;
        const char *says;
    } others[] = {
        {{.dtype = GRT_F32, .rank = 2, .shape = {3, 2}},
         "the archive: tensor 'a' is f32 [2][3] there and f32 [3][2] here"},
        {{.dtype = GRT_F32, .rank = 1, .shape = {6}},
         "the archive: tensor 'a' is f32 [2][3] there and f32 [6] here"},
        {{.dtype = GRT_U32, .rank = 2, .shape = {2, 3}},
         "the archive: tensor 'a' is f32 [2][3] there and u32 [2][3] here"},
    };
    for (int i = 0; i < 3; i++) {
        struct grt_tensor other = others[i].tensor;
        other.range = tensor.range;
        TEST_REFUSED(grt_archive_give(archive, "a", &other), GRT_BAD_DATA, others[i].says);
        TEST_REFUSED(grt_archive_fits(archive, "a", other.dtype, other.rank, other.shape),
                     GRT_BAD_DATA, others[i].says);
    }
    assert_true(grt_archive_fits(archive, "a", tensor.dtype, tensor.rank, tensor.shape));
    TEST_REFUSED(grt_archive_fits(NULL, "a", tensor.dtype, tensor.rank, tensor.shape), GRT_INVALID,
                 "an archive, a name and a shape are wanted");
    TEST_REFUSED(grt_archive_give(archive, "b", &tensor), GRT_BAD_DATA,
                 "the archive: tensor 'b' is missing");
    snprintf(archive->path, sizeof archive->path, "run/best.h5");
    TEST_REFUSED(grt_archive_give(archive, "b", &tensor), GRT_BAD_DATA,
                 "run/best.h5: tensor 'b' is missing");
    tensor.range.buf = NULL;
    TEST_REFUSED(grt_archive_give(archive, "a", &tensor), GRT_INVALID,
                 "a: an archive and a tensor of an allocated plan are wanted");
    TEST_REFUSED(grt_archive_take(archive, "c", &tensor), GRT_INVALID,
                 "c: a tensor of an allocated plan is wanted");
    grt_archive_destroy(&archive);
    grt_buf_destroy(&buf);
    grt_dev_destroy(&dev);
}

static void places_of_tensors(void **state) {
    (void)state;
    static const char *const rows[][4] = {
        {"model/layers.0.weight", "/model/layers.0", "weight", "layers.0.weight"},
        {"a", "/", "a", "a"},
        {"a.b", "/a", "b", "a.b"},
        {"m/a", "/m", "a", "a"},
        {".a", "/", ".a", ".a"},
        {"a.", "/", "a.", "a."},
        {"m/.a", "/m", ".a", ".a"},
        {"m/a.", "/m", "a.", "a."},
        {"m.n/a", "/m.n", "a", "a"},
        {"m/n/a.b.c", "/m/n/a.b", "c", "a.b.c"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct checkpoint_place place = checkpoint_place(rows[i][0]);
        assert_string_equal(place.group, rows[i][1]);
        assert_string_equal(place.leaf, rows[i][2]);
        assert_string_equal(place.name, rows[i][3]);
    }
}

// ---- folders ----

static void put(const char *name) {
    assert_true(grt_whole_file_save(in(name), "x", 1));
}

static bool there(const char *name) {
    return access(in(name), F_OK) == 0;
}

static void folders(void **state) {
    (void)state;
    char path[64];
    assert_true(grt_checkpoint_path("d", 7, path, 23));
    assert_string_equal(path, "d/step-000000000007.h5");
    assert_false(grt_checkpoint_path("d", 7, path, 22));
    put("file");
    TEST_REFUSED(grt_checkpoint_make_dir(NULL), GRT_INVALID, "a path of a folder is wanted");
    TEST_REFUSED(grt_checkpoint_make_dir(""), GRT_INVALID, "a path of a folder is wanted");
    TEST_REFUSED(grt_checkpoint_make_dir(in("file")), GRT_NO_OUTPUT, "file is no folder");
    TEST_REFUSED(grt_checkpoint_make_dir(in("file/below")), GRT_NO_OUTPUT,
                 "cannot make the folder ");
    assert_true(grt_checkpoint_make_dir(in("a/b//c/")));
    assert_true(there("a/b/c"));
    // Which names are of steps, which are whole files.
    assert_false(grt_checkpoint_any(NULL) || grt_checkpoint_any(in("gone")));
    static const char *const foreign[] = {"step-7.h5",
                                          "step-0000000000007.h5",
                                          "step-.h5",
                                          "step-000000000007.h5x",
                                          "xstep-000000000007.h5",
                                          "step-000000000007.h5.1.tmp",
                                          "best.h5"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        put(foreign[i]);
        assert_false(grt_checkpoint_any(folder));
    }
    assert_int_equal(mkdir(in("step-000000000007.h5"), 0700), 0);
    assert_false(grt_checkpoint_any(folder));
    put("step-1000000000000.h5");  // thirteen digits
    assert_true(grt_checkpoint_any(folder));
    assert_int_equal(unlink(in("step-1000000000000.h5")), 0);
    TEST_REFUSED(grt_checkpoint_newest(NULL), GRT_INVALID, "a folder is wanted");
    TEST_REFUSED(grt_checkpoint_newest(folder), GRT_NO_INPUT, "no whole checkpoint in ");
    // The newest is that of the largest number, however many digits it has.
    struct grt_archive *archive = grt_archive_create();
    static const uint64_t steps[] = {999999999999, 1000000000000, 5};
    const struct grt_checkpoint_dir dir = {.dir = folder};
    for (int i = 0; i < 3; i++) {
        assert_true(grt_archive_set_whole(archive, "step", (int64_t)steps[i]));
        assert_true(grt_checkpoint_store(&dir, archive, steps[i]));
    }
    struct grt_archive *newest = grt_checkpoint_newest(folder);
    assert_non_null(newest);
    assert_true(grt_archive_whole(newest, "step", 0) == 1000000000000);
    assert_string_equal(newest->path, in("step-1000000000000.h5"));
    grt_archive_destroy(&newest);
    TEST_REFUSED(grt_checkpoint_store(&dir, NULL, 1), GRT_INVALID, "a folder and an archive");
    TEST_REFUSED(grt_checkpoint_store(&(struct grt_checkpoint_dir){0}, archive, 1), GRT_INVALID,
                 "a folder and an archive are wanted");
    // Into a path that does not fit nothing is moved.
    TEST_REFUSED(grt_checkpoint_set_aside(folder, path, 8), GRT_NO_OUTPUT,
                 "cannot make a folder in ");
    assert_true(there("step-1000000000000.h5"));
    TEST_REFUSED(grt_checkpoint_set_aside(in("gone"), path, sizeof path), GRT_NO_INPUT,
                 "cannot read the folder ");
    assert_true(grt_checkpoint_set_aside(folder, path, sizeof path));
    assert_true(there("earlier-1/step-1000000000000.h5") && there("earlier-1/best.h5") &&
                there("earlier-1/step-000000000005.h5") && there("step-7.h5"));
    assert_false(grt_checkpoint_any(folder));
    grt_archive_destroy(&archive);
}

// Of a file, what processes that are gone left half written; nothing of others.
static void half_written(void **state) {
    (void)state;
    char going[64];
    static const char *const names[] = {"best.h5.2147483632.tmp",
                                        "best.h5.x.tmp",
                                        "best.h5.2147483632.tmpx",
                                        "rest.h5.2147483632.tmp",
                                        "best.h5.-5.tmp",
                                        "best.h5.0.tmp",
                                        "best.h5"};
    snprintf(going, sizeof going, "best.h5.%ld.tmp", (long)getpid());
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        put(names[i]);
    }
    put(going);
    grt_checkpoint_clean(in("best.h5"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(there(names[i]), i > 0);
    }
    assert_true(there(going));
    // By its name alone, in the folder where one is.
    char before[4096];
    put(names[0]);
    assert_true(getcwd(before, sizeof before) && chdir(folder) == 0);
    grt_checkpoint_clean("best.h5");
    assert_int_equal(chdir(before), 0);
    assert_false(there(names[0]));
    grt_checkpoint_clean(in("gone/best.h5"));
}

// ---- files of others ----

enum { SEAL = sizeof(struct checkpoint_seal) };

static const char *unsealed(void) {
    struct grt_archive *archive = grt_archive_create();
    struct stat info;
    const char *path = in("c.h5");
    assert_non_null(grt_archive_add(archive, "model/a.b", GRT_F32, 1, &one, &(float){2}));
    assert_non_null(grt_archive_add(archive, "c", GRT_U8, 1, &one, "x"));
    assert_true(grt_archive_set_whole(archive, "step", 5) &&
                grt_archive_set_text(archive, "word", "text"));
    assert_true(grt_checkpoint_save(archive, path) && stat(path, &info) == 0);
    assert_int_equal(truncate(path, info.st_size - SEAL), 0);
    grt_archive_destroy(&archive);
    return path;
}

static void attribute(hid_t of, const char *name, hid_t type, hsize_t count, const void *value) {
    hid_t space = count ? H5Screate_simple(1, &count, NULL) : H5Screate(H5S_SCALAR);
    H5Adelete(of, name);
    hid_t id = H5Acreate2(of, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(id >= 0 && H5Awrite(id, type, value) >= 0);
    H5Aclose(id);
    H5Sclose(space);
}

// One change each, as h5py makes it.
static const char *change(hid_t file, int which) {
    hid_t space = H5Screate(H5S_SCALAR), c = H5Dopen2(file, "c", H5P_DEFAULT), made = -1;
    hid_t text = H5Tcopy(H5T_C_S1);
    const char *says = NULL;
    H5Tset_size(text, 40);
    switch (which) {
    case 0:
        break;
    case 1:
        H5Lcreate_soft("/c", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
        says = "a link that gpurt does not write";
        break;
    case 2:
        H5Lcreate_external("x.h5", "/", file, "out", H5P_DEFAULT, H5P_DEFAULT);
        says = "a link that gpurt does not write";
        break;
    case 3:
        made = H5Dcreate2(file, "extra", H5T_IEEE_F32LE, space, 0, 0, 0);
        says = "a data set that gpurt does not write at extra";
        break;
    case 4:
        attribute(file, "step", H5T_STD_I64LE, 0, &(int64_t){6});
        says = "tensors or values are missing or changed: the digest is wrong";
        break;
    case 5:
        attribute(file, "more", H5T_STD_I64LE, 0, &(int64_t){6});
        says = "tensors or values are missing or changed: the digest is wrong";
        break;
    case 6:
        attribute(file, "step", H5T_STD_I32LE, 0, &(int32_t){5});
        says = "an attribute that gpurt does not write";
        break;
    case 7:
        attribute(file, "step", H5T_STD_I64LE, 2, (const int64_t[]){5, 5});
        says = "an attribute that gpurt does not write";
        break;
    case 8:
        H5Adelete(file, "digest");
        says = "an attribute that gpurt does not write";
        break;
    case 9:
        attribute(file, "schema", text, 0,
                  "gpurt.checkpoint/2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        says = "no checkpoint of gpurt (attribute schema is not gpurt.checkpoint/1)";
        break;
    case 10:
        H5Adelete(c, "name");
        says = "a data set without its name or digest at c";
        break;
    case 11:
        H5Adelete(c, "digest");
        says = "a data set without its name or digest at c";
        break;
    case 12:
        attribute(c, "digest", H5T_STD_U64LE, 0, &(uint64_t){7});
        says = "a tensor whose digest is wrong at c";
        break;
    case 13:
        attribute(c, "dtype", text, 0, "i8\0xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        says = "a data set that gpurt does not write at c";
        break;
    case 14:
        H5Ldelete(file, "c", H5P_DEFAULT);
        says = "tensors or values are missing or changed: the digest is wrong";
        break;
    case 15:
        H5Lmove(file, "c", file, "d", H5P_DEFAULT, H5P_DEFAULT);
        says = "a data set without its name or digest at d";
        break;
    case 16:
        made = H5Tcopy(H5T_IEEE_F32LE);
        H5Tcommit2(file, "type", made, 0, 0, 0);
        says = "an object that gpurt does not write at type";
        break;
    case 17:
        made = H5Gopen2(file, "/model", H5P_DEFAULT);
        H5Lcreate_hard(file, "/model", made, "again", H5P_DEFAULT, H5P_DEFAULT);
        says = "groups nested too deep at model/again/again";
        break;
    default:
        break;
    }
    H5Tclose(text);
    H5Dclose(c);
    H5Sclose(space);
    if (made >= 0) {
        H5Oclose(made);
    }
    return says;
}

static void changed_by_others(void **state) {
    (void)state;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    for (int which = 0; which <= 17; which++) {
        const char *path = unsealed();
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        const char *says = change(file, which);
        assert_true(H5Fclose(file) >= 0);
        if (says) {
            TEST_REFUSED(grt_checkpoint_load(path), GRT_BAD_DATA, says);
            assert_non_null(strstr(grt_last_error(), "c.h5: "));
            continue;
        }
        struct grt_archive *archive = grt_checkpoint_load(path);
        assert_non_null(archive);
        assert_int_equal(archive->tensor_count, 2);
        assert_int_equal(grt_archive_whole(archive, "step", 0), 5);
        assert_string_equal(archive->path, path);
        grt_archive_destroy(&archive);
    }
    // A name of as many parts as are read, the last cut at its dot, and one of one part more.
    char name[128], longer[130];
    for (size_t i = 0; i < 60; i++) {
        name[i] = i % 2 ? '/' : 'a';
    }
    snprintf(name + 60, sizeof name - 60, "x.y");
    snprintf(longer, sizeof longer, "a/%s", name);
    struct grt_archive *deep = grt_archive_create();
    assert_non_null(grt_archive_add(deep, name, GRT_U8, 1, &one, "x"));
    assert_true(grt_checkpoint_save(deep, in("deep.h5")));
    grt_archive_destroy(&deep);
    deep = grt_checkpoint_load(in("deep.h5"));
    assert_true(deep && grt_archive_find(deep, name));
    TEST_REFUSED(grt_archive_add(deep, longer, GRT_U8, 1, &one, "x"), GRT_INVALID,
                 "is no name for a tensor");
    grt_archive_destroy(&deep);
    TEST_REFUSED(grt_checkpoint_load(NULL), GRT_INVALID, "a path is wanted");
    TEST_REFUSED(grt_checkpoint_save(NULL, "x"), GRT_INVALID, "an archive and a path are wanted");
    // The seal of older versions, whole and not.
    for (int wrong = 0; wrong < 2; wrong++) {
        const char *path = unsealed();
        uint64_t size = 0;
        unsigned char *bytes = grt_whole_file_read(path, 1 << 20, &size);
        struct checkpoint_seal seal = {.magic = CHECKPOINT_SEAL_1};
        uint64_t digest = grt_digest(bytes, size, 0) + (uint64_t)wrong;
        for (int i = 0; i < 8; i++) {
            seal.digest[i] = (unsigned char)(digest >> 8 * i);
        }
        int fd = open(path, O_WRONLY | O_APPEND);
        assert_int_equal(write(fd, &seal, sizeof seal), sizeof seal);
        close(fd);
        free(bytes);
        if (wrong) {
            TEST_REFUSED(grt_checkpoint_load(path), GRT_BAD_DATA,
                         "c.h5: damaged: the digest of the file is wrong");
        } else {
            struct grt_archive *archive = grt_checkpoint_load(path);
            assert_non_null(archive);
            grt_archive_destroy(&archive);
        }
    }
}

// ---- safetensors ----

// PyTorch's counts of batches are whole numbers of 64 bits there and floats here.
static void counts_of_batches(void **state) {
    (void)state;
    static const struct {
        float saved, loaded;
    } rows[] = {{5, 5}, {0, 0}, {-3, 0}, {2.75f, 2}, {16777216, 16777216}, {1e12f, 16777216}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = in("n.safetensors");
        struct grt_archive *archive = grt_archive_create();
        assert_non_null(
            grt_archive_add(archive, "bn.num_batches_tracked", GRT_F32, 1, &one, &rows[i].saved));
        assert_non_null(grt_archive_add(archive, "w", GRT_F32, 1, &one, &rows[i].saved));
        assert_true(grt_safetensors_save(archive, path));
        grt_archive_destroy(&archive);
        archive = grt_safetensors_load(path);
        assert_non_null(archive);
        assert_string_equal(archive->path, path);
        const struct grt_archive_tensor *t = grt_archive_find(archive, "bn.num_batches_tracked");
        assert_true(t && t->dtype == GRT_F32 && t->rank == 1 && t->shape[0] == 1);
        assert_true(*(const float *)t->data == rows[i].loaded);
        assert_true(*(const float *)grt_archive_find(archive, "w")->data == rows[i].saved);
        grt_archive_destroy(&archive);
        uint64_t size = 0;
        char *bytes = grt_whole_file_read(path, 1 << 16, &size);
        assert_non_null(strstr(bytes + 8,
                               "\"bn.num_batches_tracked\":{\"dtype\":\"I64\",\"shape\":[],"
                               "\"data_offsets\":[0,8]}"));
        free(bytes);
    }
    struct grt_archive *archive = grt_archive_create();
    assert_non_null(grt_archive_add(archive, "a\xff", GRT_U8, 1, &one, "x"));
    TEST_REFUSED(grt_safetensors_save(archive, in("x.safetensors")), GRT_INVALID,
                 "x.safetensors: names and values must be UTF-8");
    assert_false(there("x.safetensors"));
    TEST_REFUSED(grt_safetensors_save(NULL, "x"), GRT_INVALID, "an archive and a path are wanted");
    TEST_REFUSED(grt_safetensors_save(archive, NULL), GRT_INVALID, "an archive and a path");
    TEST_REFUSED(grt_safetensors_load(NULL), GRT_INVALID, "a path is wanted");
    grt_archive_destroy(&archive);
}

#define ARCHIVE_CASE(function)                                                                     \
    { #function, function, begin, end, NULL }

static const struct CMUnitTest cases[] = {
    ARCHIVE_CASE(names_and_limits),  ARCHIVE_CASE(tensors_of_devices),
    TEST_CASE(places_of_tensors),    ARCHIVE_CASE(folders),
    ARCHIVE_CASE(half_written),      ARCHIVE_CASE(changed_by_others),
    ARCHIVE_CASE(counts_of_batches),
};
TEST_SUITE(archive, false, cases);
