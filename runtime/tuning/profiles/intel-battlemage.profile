gpurt-profile 1
# Intel Arc B (Battlemage): subgroups of 16, and llama.cpp's threads of a tile doubled against DG2.
level = architecture
match.arch = battlemage

from = derived: CLBlast's tuning of the Arc A770, the workgroup doubled as llama.cpp does for Xe2
gemm.tiled.large = 128 64 16 8 4
gemm.tiled.medium = 64 64 16 8 4
gemm.tiled16.large = 128 64 16 8 4
gemm.tiled16.medium = 64 64 16 8 4
end
