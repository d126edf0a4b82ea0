gpurt-profile 1
# Intel Arc A (DG2) and Data Center GPU Flex.
level = architecture
match.arch = dg2

# CLBlast is column-major, so its M is our N: MWG 64, NWG 32, 16 x 4 lanes.
from = derived: CLBlast's tuning of the Arc A770
gemm.tiled.medium = 32 64 16 8 4
gemm.tiled16.medium = 32 64 16 8 4
end
