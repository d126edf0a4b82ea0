gpurt-profile 1
# NVIDIA GeForce RTX 4090, 24 GB; that of laptops is another chip with 16.
level = device
match.vendor = nvidia
match.name = RTX 4090
match.memory = 20 36

from = derived: the A100 and RTX 3060 Laptop guide: between the RTX 3060 Laptop and the A100: 16,384 lanes
train.num_envs = 1024
train.num_dirs = 64
train.dir_chunk = 32
autotune = 2

# CLBlast is column-major, so its M is our N: MWG 128, NWG 64, 32 x 8 lanes; KWG 32 halved, since two
# tiles of that depth exceed 48 KiB.
from = derived: CLBlast's tuning of the RTX 4090
gemm.tiled.medium = 64 128 16 8 4
end
