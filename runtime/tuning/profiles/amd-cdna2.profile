gpurt-profile 1
# AMD CDNA2: Instinct MI210, MI250; 64 lanes a wave, 512 registers a lane.
level = architecture
match.arch = cdna2

from = derived: registers reported by clang 15 for gfx90a
gemm.tiled.large = 128 128 16 8 8
gemm.tiled16.large = 128 128 16 8 8

from = derived: the A100 and RTX 3060 Laptop guide: A100, whose class they are
train.num_envs = 1024
train.num_dirs = 64
train.dir_chunk = 64
mem_fraction = 0.95
autotune = 3
end
