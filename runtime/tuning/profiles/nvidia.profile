gpurt-profile 1
# Every NVIDIA GPU: a lane's 8 x 8 products keep the multipliers busy, and 128 x 128 of a workgroup fit
# twice into the registers of a multiprocessor.
level = vendor
match.vendor = nvidia

from = derived: YHs_Sample, 98 % of cuBLAS on an A100 with 128 x 128 and 8 x 8
gemm.tiled.large = 128 128 16 8 8
gemm.tiled16.large = 128 128 16 8 8

from = default
gemm.tiled.medium = 64 64 16 4 4
gemm.tiled.small = 32 32 16 4 4
gemm.tiled16.medium = 64 64 16 4 4
gemm.tiled16.small = 32 32 16 4 4
end
