# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The runs behind the checkpoints here, read with `.`. Each was stopped in the middle by gpurt 0.1.0
# on ref:0, and then went on to its end:
#
#   NAME.h5.gz              where it was stopped
#   NAME.safetensors.gz     all tensors at the end, by `gpurt convert --all`
#
# Commit ba18979 made them; of tide_first, whose checkpoint has no digest of the data, 7ba21a0. That
# commit's square roots, and its tanh in gelu, are other functions by a bit here and there.

python=/usr/bin/python3 # Debian's, which has h5py
# make_data FILE: small numbers without a random generator.
make_data() {
    "$python" - "$1" <<'PY'
import sys, h5py, numpy as np
i = np.arange(96, dtype="f8")[:, None]
sea = ((i * 37 + np.arange(5) * 11) % 29 / 14 - 1).astype("f4")
shoal = ((i[:, :, None] * 13 + np.arange(6)[:, None] * 7 + np.arange(3) * 5) % 23 / 11 - 1).astype("f4")
with h5py.File(sys.argv[1], "w") as file:
    file["sea"] = sea
    file["shoal"] = shoal
    file["tide"] = np.column_stack([sea[:, 0] * sea[:, 1], np.abs(sea[:, 2])]).astype("f4")
    file["kind"] = (np.arange(96) * 7 // 4 % 3).astype("i4")
PY
}

# run NAME: the arguments of a run in `args`; what stops it in the middle in `middle`.
run() {
    case $1 in
    tide | tide_first)
        args=(train supervised --data harbour.h5 inputs=sea targets=tide hidden=8 depth=2 layer_norm=true
            residual=true batch_size=12 epochs=3 seed=9 validation_split=0.25 checkpoint_dir="$1" -q)
        [ "$1" = tide ] || args+=(activation=gelu)
        middle=(max_steps=13)
        ;;
    kind)
        args=(train supervised --data harbour.h5 inputs=shoal targets=kind model=points hidden=8
            depth=1 head_depth=1 batch_size=12 epochs=3 seed=4 validation_split=0.25
            checkpoint_dir="$1" -q)
        middle=(max_steps=8)
        ;;
    pole)
        args=(train es --env cartpole --policy mlp16 --num-envs 4 --num-dirs 4 --episode-length 60
            --seed 5 --checkpoint pole.h5)
        # shellcheck disable=SC2034  # read by whoever makes the files
        middle=(--iterations 3)
        ;;
    esac
}
