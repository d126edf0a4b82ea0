// SPDX-License-Identifier: Apache-2.0
// Profiles: the numbers that steer speed, as data. Files runtime/tuning/profiles/*.profile,
// embedded at build:
//
//     gpurt-profile 1                         the version, first line
//     level = device                          how specific it is, see GRT_PROFILE_LEVELS
//     match.name = RTX 3060 Laptop            which devices it is for; every condition must hold
//     from = derived: CLBlast's tuning ...    where the rows below have their numbers
//     gemm.tiled.large = 128 128 16 8 8       a setting, from GRT_PROFILE_KEYS
//     end                                     last line: a file cut short is noticed
//
// A device gets every profile that matches; they are merged setting by setting and the more
// specific wins. Above all stands the user's own file, which `gpurt tune` writes, and above that
// the file that GPURT_PROFILE names. What is wrong in a file is refused with file and line; nothing
// is guessed.
#ifndef GRT_PROFILE_H
#define GRT_PROFILE_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

// How specific a profile is, the least first.
#define GRT_PROFILE_LEVELS(X)                                                                      \
    X(DEFAULT, "default")                                                                          \
    X(CLASS, "class")               /* gpu or cpu, perhaps of some memory */                       \
    X(VENDOR, "vendor")             /* nvidia, amd, ... */                                         \
    X(ARCHITECTURE, "architecture") /* hopper, rdna3, ... */                                       \
    X(DEVICE, "device")             /* by its name */                                              \
    X(USER, "user")                 /* $XDG_CONFIG_HOME/gpurt/DEVICE-KEY.profile */                \
    X(NAMED, "named")               /* $GPURT_PROFILE */

enum grt_profile_level {
#define X(name, text) GRT_PROFILE_##name,
    GRT_PROFILE_LEVELS(X)
#undef X
        GRT_PROFILE_LEVEL_COUNT,
};
GRT_API const char *grt_profile_level_text(enum grt_profile_level level);

// What may stand in `from`, with what has to follow the colon.
#define GRT_PROFILE_ORIGINS(X)                                                                     \
    X(MEASURED, "measured") /* by us on that device: date, driver, figure */                       \
    X(DERIVED, "derived")   /* from what; not measured by us */                                    \
    X(GUESSED, "default")   /* nothing: a value that works */

// Tiles of variants whose costs are settings: rows x columns, and what else tells them apart. A
// setting has a number for each, in the order of the variant's own table.
#define GRT_TILES_COOP "128x256 256x128 160x256 128x128 256x64 64x64 32x32"
#define GRT_TILES_MMA                                                                              \
    "128x256 128x128 128x64 64x64 32x32 16x128 64x64x64 32x64x64 128x32x64 64x32x64"
#define GRT_TILES_WGMMA "128x256x4 128x192x4 128x128x4 64x128x8 128x64x7 64x128x2 64x64x4"
#define GRT_TILES_WGMMA_48K "128x256 128x128 128x64"
#define GRT_TILES_SPLIT "64x128 64x64 32x32"
#define GRT_TILES_SPLIT_WGMMA "128x128x32 64x128x16 64x64x32 64x32x32"

// X(NAME, key, type, numbers, min, max, default, meaning): every setting there is. `numbers` names
// those of one row, so it says how many there are. type: `whole` or `real`.
#define GRT_PROFILE_KEYS(X)                                                                        \
    X(GEMM_TILED_LARGE, "gemm.tiled.large", whole, "BM BN BK TM TN", 4, 512, "128 128 16 8 8",     \
      "tile of the tiled product, f32: workgroup's rows, columns, depth; lane's rows, columns")    \
    X(GEMM_TILED_MEDIUM, "gemm.tiled.medium", whole, "BM BN BK TM TN", 4, 512, "64 64 16 4 4",     \
      "the same where large tiles are too few to fill the device")                                 \
    X(GEMM_TILED_SMALL, "gemm.tiled.small", whole, "BM BN BK TM TN", 4, 512, "32 32 16 4 4",       \
      "the same for small products")                                                               \
    X(GEMM_TILED16_LARGE, "gemm.tiled16.large", whole, "BM BN BK TM TN", 4, 512, "128 128 16 8 8", \
      "tile of the tiled product, f16 and bf16")                                                   \
    X(GEMM_TILED16_MEDIUM, "gemm.tiled16.medium", whole, "BM BN BK TM TN", 4, 512, "64 64 16 4 4", \
      "the same where large tiles are too few to fill the device")                                 \
    X(GEMM_TILED16_SMALL, "gemm.tiled16.small", whole, "BM BN BK TM TN", 4, 512, "32 32 16 4 4",   \
      "the same for small products")                                                               \
    X(GEMM_PLAIN, "gemm.plain", whole, "WG", 1, 1024, "64", "workgroup of the plain product")      \
    X(GEMM_PANEL, "gemm.panel", whole, "MR NV BM BN BK", 0, 1024, "0 0 0 0 0",                     \
      "panels of the product on a CPU: rows and vectors in registers; a block's rows, columns, "   \
      "depth. 0: by vector width and local memory")                                                \
    X(GEMM_COOP, "gemm.coop", whole, "BM BN BK WM WN LOOP", 0, 512, "0 0 0 0 0 0",                 \
      "tile of f16 and bf16 products by cooperative matrices: workgroup's rows, columns, depth; "  \
      "subgroup's rows, columns; loop, 1 plain, 2 pipelined. 0: by what they cost")                \
    X(GEMM_COOP_FIT, "gemm.coop.fit", whole, GRT_TILES_COOP, 1, 64, "1 1 1 2 1 2 10",              \
      "workgroups of each of its tiles that a compute unit holds at once")                         \
    X(GEMM_COOP_STEP, "gemm.coop.step", whole, GRT_TILES_COOP, 1, 1000000,                         \
      "750 790 890 825 410 360 400", "nanoseconds that each tile takes for 32 of k")               \
    X(GEMM_COOP_STEP_T, "gemm.coop.step_t", whole, GRT_TILES_COOP, 1, 1000000,                     \
      "750 715 890 825 410 360 400", "the same where a is transposed")                             \
    X(GEMM_COOP_ENDS, "gemm.coop.ends", whole, GRT_TILES_COOP, 0, 1000000,                         \
      "5800 6000 6500 5000 3800 1900 2500", "nanoseconds for beginning and ending a tile")         \
    X(GEMM_MMA, "gemm.mma", whole, "BM BN BK WM WN STAGES", 0, 512, "0 0 0 0 0 0",                 \
      "tile of f16 and bf16 products by mma.sync, with tiles on their way. 0: by what they cost")  \
    X(GEMM_MMA_FIT, "gemm.mma.fit", whole, GRT_TILES_MMA, 1, 64, "1 2 3 4 12 4 3 4 2 4",           \
      "workgroups of each of its tiles that a compute unit holds at once")                         \
    X(GEMM_MMA_STEP, "gemm.mma.step", real, GRT_TILES_MMA, 0.001, 1000,                            \
      "1.2 0.72 0.68 0.44 0.59 0.24 0.62 0.34 0.1 0.2",                                            \
      "microseconds that so many of each tile take for 32 of k, the first and the last four for "  \
      "64")                                                                                        \
    X(GEMM_MMA_ALONE, "gemm.mma.alone", real, GRT_TILES_MMA, 0.001, 1000,                          \
      "1.2 0.38 0.25 0.16 0.14 0.1 0.17 0.11 0.15 0.1", "the same for one alone")                  \
    X(GEMM_MMA_ENDS, "gemm.mma.ends", real, GRT_TILES_MMA, 0, 1000,                                \
      "1.2 0.7 0.6 0.5 0.8 0.5 0.5 0.9 1.6 1.2", "microseconds for beginning and ending a tile")   \
    X(GEMM_MMA_RAGGED, "gemm.mma.ragged", real, "bytes_8 bytes_4 bytes_2", 1, 100, "1.3 2 2.5",    \
      "how many times as long a step takes where rows are multiples of so many bytes only")        \
    X(GEMM_WGMMA, "gemm.wgmma", whole, "BM BN STAGES", 0, 512, "0 0 0",                            \
      "tile of f16 and bf16 products by wgmma, with tiles on their way. 0: by what they cost")     \
    X(GEMM_WGMMA_FIT, "gemm.wgmma.fit", whole, GRT_TILES_WGMMA, 1, 64, "1 1 1 1 1 3 2",            \
      "workgroups of each of its tiles, rows x columns x stages, that a compute unit holds at "    \
      "once")                                                                                      \
    X(GEMM_WGMMA_STEP, "gemm.wgmma.step", real, GRT_TILES_WGMMA, 0.001, 1000,                      \
      "0.534 0.422 0.27 0.151 0.179 0.419 0.197",                                                  \
      "microseconds that so many of each tile take for 64 of k")                                   \
    X(GEMM_WGMMA_ENDS, "gemm.wgmma.ends", real, GRT_TILES_WGMMA, 0, 1000,                          \
      "1.2 0.59 0.28 0.38 0.05 0.41 0.01", "microseconds for beginning and ending a tile")         \
    X(GEMM_WGMMA_48K, "gemm.wgmma_48k", whole, "BM BN STAGES AHEAD", 0, 512, "0 0 0 0",            \
      "the same in 48 KiB of shared memory, with blocks of 32 of k that are loaded ahead. 0: by "  \
      "the product")                                                                               \
    X(GEMM_WGMMA_48K_STEP, "gemm.wgmma_48k.step", real, GRT_TILES_WGMMA_48K, 0.001, 1000,          \
      "0.3 0.17 0.12", "microseconds that each of its tiles takes for 32 of k")                    \
    X(GEMM_WGMMA_48K_ENDS, "gemm.wgmma_48k.ends", real, GRT_TILES_WGMMA_48K, 0, 1000,              \
      "0.3 0.3 0.3", "microseconds for beginning and ending a tile")                               \
    X(GEMM_SPLIT_USE, "gemm.split.use", whole, "use", 0, 1, "0",                                   \
      "1: f32 products are done on the matrix unit, each number as three bfloats")                 \
    X(GEMM_SPLIT, "gemm.split", whole, "BM BN BK WM WN", 0, 512, "0 0 0 0 0",                      \
      "tile of those by cooperative matrices. 0: by what they cost")                               \
    X(GEMM_SPLIT_FIT, "gemm.split.fit", whole, GRT_TILES_SPLIT, 1, 64, "2 3 6",                    \
      "workgroups of each of its tiles that a compute unit holds at once")                         \
    X(GEMM_SPLIT_STEP, "gemm.split.step", whole, GRT_TILES_SPLIT, 1, 1000000, "3030 2300 1200",    \
      "nanoseconds that each tile takes for 32 of k")                                              \
    X(GEMM_SPLIT_ENDS, "gemm.split.ends", whole, GRT_TILES_SPLIT, 0, 1000000, "6000 4400 2400",    \
      "nanoseconds for beginning and ending a tile")                                               \
    X(GEMM_SPLIT_WGMMA, "gemm.split_wgmma", whole, "BM BN BK", 0, 512, "0 0 0",                    \
      "tile of those by wgmma. 0: by what they cost")                                              \
    X(GEMM_SPLIT_WGMMA_FIT, "gemm.split_wgmma.fit", whole, GRT_TILES_SPLIT_WGMMA, 1, 64,           \
      "1 2 2 3", "workgroups of each of its tiles that a compute unit holds at once")              \
    X(GEMM_SPLIT_WGMMA_STEP, "gemm.split_wgmma.step", whole, GRT_TILES_SPLIT_WGMMA, 1, 1000000,    \
      "1460 860 950 960", "nanoseconds that each tile takes for a step of k, its last number")     \
    X(GEMM_SPLIT_WGMMA_ALONE, "gemm.split_wgmma.alone", whole, GRT_TILES_SPLIT_WGMMA, 1, 1000000,  \
      "1460 480 670 450", "the same for one on a compute unit alone")                              \
    X(GEMM_SPLIT_WGMMA_ENDS, "gemm.split_wgmma.ends", whole, GRT_TILES_SPLIT_WGMMA, 0, 1000000,    \
      "5000 3600 2200 1800", "nanoseconds for beginning and ending a tile")                        \
    X(GEMM_SPLIT_MMA, "gemm.split_mma", whole, "BM BN BK WM WN", 0, 512, "0 0 0 0 0",              \
      "tile of those by mma.sync. 0: by what they cost")                                           \
    X(GEMM_CACHE, "gemm.cache", whole, "bytes", 0, 4000000000, "44000000",                         \
      "bytes of the last cache that c of a product may fill, to stay there for what reads it "     \
      "next")                                                                                      \
    X(GEMM_SCHEDULE, "gemm.schedule", real, "memory cache store read meet", 0.001, 1e9,            \
      "4200000 16000000 0.103 0.036 1.3",                                                          \
      "what cutting k of a product costs: bytes of memory and of the cache in a "                  \
      "microsecond; microseconds to store and to read 4 KiB of a part, and for parts to meet")     \
    X(STREAM_WG, "stream.wg", whole, "WG", 0, 1024, "256",                                         \
      "workgroup of elementwise kernels; 0: one subgroup")                                         \
    X(STREAM_GROUPS, "stream.groups", whole, "groups", 1, 65535, "65535",                          \
      "most workgroups of elementwise kernels; past that a lane takes more elements")              \
    X(ROW_BYTES, "nn.row_bytes", whole, "bytes", 1, 256, "16",                                     \
      "rows of a network's inputs are padded to a multiple of these")                              \
    X(PATCH_MIB, "nn.patch_mib", whole, "MiB", 1, 65536, "256",                                    \
      "patches of images that a convolution by products makes at a time")                          \
    X(CONV_WGMMA, "conv.wgmma", whole, "BM BN STAGES DEPTH", 0, 256, "0 0 0 0",                    \
      "tile of convolutions on Hopper. 0: by what they cost")                                      \
    X(CONV_BOX, "conv.box", whole, "WIDTH HEIGHT", 0, 256, "0 0",                                  \
      "pixels across and down of the boxes of such a tile, powers of two. 0: with the fewest "     \
      "steps")                                                                                     \
    X(MEM_FRACTION, "mem_fraction", real, "share", 0.05, 1, "0.9",                                 \
      "share of the free device memory that may be taken")                                         \
    X(AUTOTUNE, "autotune", whole, "level", 0, 3, "2", "how far `gpurt tune` searches")            \
    X(ROLLOUT_WG, "rollout.wg", whole, "WG", 1, 1024, "128",                                       \
      "environments of a workgroup, which share the weights of one policy")                        \
    X(NUM_ENVS, "train.num_envs", whole, "count", 1, 1048576, "128", "environments of a rollout")  \
    X(NUM_DIRS, "train.num_dirs", whole, "count", 1, 65536, "16",                                  \
      "directions of an evolution step")                                                           \
    X(DIR_CHUNK, "train.dir_chunk", whole, "count", 1, 65536, "8", "directions run at once")       \
    X(SMALL_BATCH, "train.small.batch", whole, "samples", 1, 1048576, "256",                       \
      "batch of a small model, such as depth 3, hidden 16")                                        \
    X(SMALL_WORKERS, "train.small.workers", whole, "threads", 0, 256, "2", "its data loaders")     \
    X(SMALL_ACCUMULATE, "train.small.accumulate", whole, "batches", 1, 4096, "1",                  \
      "batches whose gradients it adds up before a step")                                          \
    X(MEDIUM_BATCH, "train.medium.batch", whole, "samples", 1, 1048576, "64",                      \
      "batch of a medium model, such as depth 6, hidden 64")                                       \
    X(MEDIUM_WORKERS, "train.medium.workers", whole, "threads", 0, 256, "2", "its data loaders")   \
    X(MEDIUM_ACCUMULATE, "train.medium.accumulate", whole, "batches", 1, 4096, "4",                \
      "batches whose gradients it adds up before a step")                                          \
    X(LARGE_BATCH, "train.large.batch", whole, "samples", 1, 1048576, "16",                        \
      "batch of a large model, such as depth 12, hidden 128")                                      \
    X(LARGE_WORKERS, "train.large.workers", whole, "threads", 0, 256, "2", "its data loaders")     \
    X(LARGE_ACCUMULATE, "train.large.accumulate", whole, "batches", 1, 4096, "16",                 \
      "batches whose gradients it adds up before a step")

enum grt_profile_key {
#define X(name, key, type, numbers, min, max, fallback, meaning) GRT_KEY_##name,
    GRT_PROFILE_KEYS(X)
#undef X
        GRT_KEY_COUNT,
};

#define GRT_PROFILE_NUMBERS 10
#define GRT_PROFILE_TEXT 240

struct grt_profile_key_info {
    const char *key;      // "gemm.tiled.large"
    const char *numbers;  // "BM BN BK TM TN"
    bool whole;
    double min, max;
    const char *fallback;
    const char *meaning;
};
// NULL for a number that is no key.
GRT_API const struct grt_profile_key_info *grt_profile_key_info(enum grt_profile_key key);
// The key of that name, or of a name that it had in an earlier version; or GRT_KEY_COUNT.
GRT_API enum grt_profile_key grt_profile_key_find(const char *name);

struct grt_profile_value {
    uint32_t count;
    double numbers[GRT_PROFILE_NUMBERS];
    char profile[GRT_PROFILE_TEXT];  // where it stands: "nvidia-a100-80g:14", a path with its line
    char from[GRT_PROFILE_TEXT];     // "measured: 2026-11-15, driver 580.95, 45 TFLOP/s"
};

// ---- the merged profile of a device ----

struct grt_profile;

// NULL with file and line (GRT_CONFIG) when a file of the user's is wrong.
GRT_API struct grt_profile *grt_profile_create(const struct grt_dev_info *info);
GRT_API void grt_profile_destroy(struct grt_profile **profile);
// Of an open device; lives as long as it.
GRT_API const struct grt_profile *grt_dev_profile(const struct grt_dev *dev);

// Never NULL for a key of the list: without any profile it is the default.
GRT_API const struct grt_profile_value *grt_profile_get(const struct grt_profile *profile,
                                                        enum grt_profile_key key);
// The first number of a setting that is whole.
GRT_API uint32_t grt_profile_whole(const struct grt_profile *profile, enum grt_profile_key key);
// Replaces a setting of an open device, for what is recorded from here on; for tuning and tests.
GRT_API bool grt_dev_profile_set(struct grt_dev *dev, enum grt_profile_key key,
                                 const struct grt_profile_value *value);

struct grt_profile_part {
    const char *name;  // "nvidia-a100-80g", or the user's path
    enum grt_profile_level level;
    const char *why;  // "its name has 'A100', its memory is 70 GiB or more"
};
// The i-th profile that the device got, the most specific first; false past the last.
GRT_API bool grt_profile_part(const struct grt_profile *profile, uint32_t i,
                              struct grt_profile_part *part);

// ---- the user's own file ----

// Its path for this device; false when neither XDG_CONFIG_HOME nor HOME names a folder.
GRT_API bool grt_profile_user_path(const struct grt_dev_info *info, char *path, size_t capacity);
// Whether a setting could be stored now: makes the folder when it is not there, and false with the
// reason when it cannot be written to. For whoever would search long for nothing.
GRT_API bool grt_profile_storable(const struct grt_dev_info *info);
// Replaces one setting of it and keeps all else, comments too; makes it when it is not there. The
// file is replaced as a whole or not at all, and processes that do so at once wait for each other.
// `value.profile` is not looked at.
GRT_API bool grt_profile_store(const struct grt_dev_info *info, enum grt_profile_key key,
                               const struct grt_profile_value *value);

#ifdef __cplusplus
}
#endif
#endif
