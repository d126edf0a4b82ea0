gpurt-profile 1
# Apple's GPUs through MoltenVK: 32 KiB of threadgroup memory, subgroups of 32, unified memory.
level = vendor
match.vendor = apple

from = derived: the largest tiles of 4 x 4 and 8 x 4 that leave room for two workgroups
gemm.tiled.large = 64 64 16 8 4
gemm.tiled.medium = 64 32 16 4 4
gemm.tiled.small = 32 32 16 4 4
gemm.tiled16.large = 64 64 16 8 4
gemm.tiled16.medium = 64 32 16 4 4
gemm.tiled16.small = 32 32 16 4 4

from = default
mem_fraction = 0.7
end
