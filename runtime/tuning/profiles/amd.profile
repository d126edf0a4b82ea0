gpurt-profile 1
# Every AMD GPU. What runs at once is limited by registers: of the tiles that clang 15 compiles without
# spilling for gfx1030 and gfx90a, large ones that leave room for several waves (ci/static_check.sh
# --list prints the registers of each).
level = vendor
match.vendor = amd

from = derived: registers reported by clang 15 for gfx1030 and gfx90a
gemm.tiled.large = 128 64 16 8 4
gemm.tiled.medium = 64 64 16 8 4
gemm.tiled.small = 32 32 8 4 4
gemm.tiled16.large = 128 64 16 8 4
gemm.tiled16.medium = 64 64 16 8 4
gemm.tiled16.small = 32 32 8 4 4
end
