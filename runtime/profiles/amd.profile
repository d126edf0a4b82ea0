gpurt-profile 1
# Every AMD GPU. What runs at once is limited by registers: of the tiles that clang 15 compiles without
# spilling for gfx1030, gfx1100 and gfx90a, those with the fewest registers (86 to 121 of 256) for their
# size. 128 x 128 x 16 takes 138 and spills on gfx1100; 64 x 64 x 16 with 4 x 4 takes 196, since the
# compiler unrolls its depth and loads all of it ahead. See ci/static_check.sh --list.
level = vendor
match.vendor = amd

from = derived: registers reported by clang 15 for gfx1030, gfx1100 and gfx90a
gemm.tiled.large = 128 64 16 8 4
gemm.tiled.medium = 64 64 16 8 4
gemm.tiled.small = 32 32 8 4 4
gemm.tiled16.large = 128 64 16 8 4
gemm.tiled16.medium = 64 64 16 8 4
gemm.tiled16.small = 32 32 8 4 4
end
