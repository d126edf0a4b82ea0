gpurt-profile 1
# Qualcomm Adreno: 32 KiB of shared memory, few registers a lane, the host's memory.
level = vendor
match.vendor = qualcomm

from = derived: half of the shared memory, so that two workgroups fit
gemm.tiled.large = 64 64 16 4 4
gemm.tiled.medium = 32 64 16 4 4
gemm.tiled.small = 32 32 8 4 4
gemm.tiled16.large = 64 64 16 4 4
gemm.tiled16.medium = 32 64 16 4 4
gemm.tiled16.small = 32 32 8 4 4

from = default
stream.wg = 128
mem_fraction = 0.5
end
