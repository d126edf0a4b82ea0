gpurt-profile 1
# NVIDIA A100, 40 and 80 GB; batches come from the memory classes gpu-40g and gpu-80g.
level = device
match.vendor = nvidia
match.name = A100

from = derived: the A100 and RTX 3060 Laptop guide: A100
train.num_envs = 1024
train.num_dirs = 64
train.dir_chunk = 64
mem_fraction = 0.95
autotune = 3

# CLBlast is column-major, so its M is our N: MWG 32, NWG 64, KWG 32, 8 x 16 lanes.
from = derived: CLBlast's tuning of the A100
gemm.tiled.medium = 64 32 32 4 4
end
