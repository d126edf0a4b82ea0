gpurt-profile 1
# Every AMD GPU. A compiler that aims at 8 waves leaves a lane 128 registers: 8 x 8 products with the tile
# on its way would spill (clang 15, gfx1100; see ci/static_check.sh).
level = vendor
match.vendor = amd

from = derived: registers reported by clang 15 for gfx1030, gfx1100 and gfx90a
gemm.tiled.large = 128 64 16 8 4
gemm.tiled.medium = 64 64 16 4 4
gemm.tiled.small = 32 32 16 4 4
gemm.tiled16.large = 128 64 16 8 4
gemm.tiled16.medium = 64 64 16 4 4
gemm.tiled16.small = 32 32 16 4 4
end
