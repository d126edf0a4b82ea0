gpurt-profile 1
# NVIDIA GeForce RTX 3090, 24 GB.
level = device
match.vendor = nvidia
match.name = RTX 3090
match.memory = 20 36

from = derived: the A100 and RTX 3060 Laptop guide: between the RTX 3060 Laptop and the A100: 10,496 lanes
train.num_envs = 1024
train.num_dirs = 64
train.dir_chunk = 32
autotune = 2

# CLBlast is column-major, so its M is our N: MWG 64, NWG 64, KWG 32, 16 x 8 lanes.
from = derived: CLBlast's tuning of the RTX 3090
gemm.tiled.medium = 64 64 32 8 4
end
