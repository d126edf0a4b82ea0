gpurt-profile 1
# Drivers that run kernels on the CPU: long workgroups become loops, and memory is the host's.
level = class
match.class = cpu

from = default
gemm.plain = 16
# Large tiles take seconds to compile on a CPU and bring nothing.
gemm.tiled.large = 32 32 16 4 4
gemm.tiled.medium = 32 32 16 4 4
gemm.tiled.small = 32 32 16 4 4
gemm.tiled16.large = 32 32 16 4 4
gemm.tiled16.medium = 32 32 16 4 4
gemm.tiled16.small = 32 32 16 4 4
stream.wg = 1024
nn.row_bytes = 1
nn.patch_mib = 4
autotune = 1

from = derived: the A100 and RTX 3060 Laptop guide: a tenth of the RTX 3060 Laptop's, which has 3,840 lanes
train.num_envs = 32
train.num_dirs = 16
train.dir_chunk = 8
train.small.batch = 128
train.medium.batch = 32
train.medium.accumulate = 2
train.large.batch = 8
train.large.accumulate = 4
end
