#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt data import`: small sources of every kind become what they must, and damaged ones cost a
# line each. Usage: tests/cli/data/import.sh GPURT

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
gpurt=$(realpath "${1:?usage: import.sh GPURT}")
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$here/../../harness/command.sh"
cd "$tmp" || exit 1
python=/usr/bin/python3 # Debian's, which has h5py

"$python" "$here/import_sources.py" make || exit 1
for source in c10 p10 n10 c100 p100 stl photos; do expect 0 data import $source -o $source.h5; done
told '^folder of images: 2 images of 10x12x3, 2 classes, in photos.h5$'
expect 0 data import photos -o photos1.h5 --gray
expect 0 data import sizes -o sizes.h5 --size 8
expect 0 data import x.npy y.npy -o npy.h5
expect 0 data import many -o many.h5
expect 0 data import all.npz -o npz.h5
told '^all.npz: more.npy is none of the names that are known; left out$'
expect 0 data import plain.npz -o plain.h5

# Each image that cannot be read is a line, and the others are taken.
expect 0 data import tree -o tree.h5
for line in 'zero.png: has no bytes; left out' 'text.png: neither PNG nor JPEG; left out' \
    'short.png: PNG: it ends too early; left out' 'huge.png: PNG: ' 'flipped.png: PNG: ' \
    'cmyk.jpg: JPEG: CMYK, which is not taken; left out' 'short.jpg: JPEG: ' \
    'wide.png: 16 bits a channel; 8 are kept'; do
    [ "$(grep -c "^tree/train/a/$line" err)" -eq 1 ] ||
        wrong "no line, or more than one, says: $line"
done
told '^folder of images: 6 images of 9x7x3, 2 classes, in tree.h5$'
told '^7 were left out$'
# By any number of threads the same file and the same lines, in the same order.
for workers in 1 2 7; do
    expect 0 data import tree -o "tree$workers.h5" --workers $workers
    sed "s/tree$workers.h5/tree.h5/" err >"told$workers"
    same told1 "told$workers"
    "$python" -c 'import h5py, sys
a, b = (h5py.File(f) for f in sys.argv[1:])
for name in ("x", "y", "test/x", "test/y"):
    assert (name in a) == (name in b) and (name not in a or (a[name][:] == b[name][:]).all()), name' \
        tree.h5 "tree$workers.h5" || wrong "$workers threads import something else"
done
refuse 64 workers data import tree --workers 0 -o no.h5
"$python" "$here/import_sources.py" check || wrong "what was imported is something else"

# A network takes the files as they are.
expect 0 train supervised --device ref:0 --data c10.h5 hidden=4 depth=1 epochs=1 validation_split=0 checkpoint_dir=run -q
expect 0 eval --device ref:0 --data c10.h5 inputs=test/x targets=test/y --checkpoint run
expect 0 data info c10.h5
said 'test/x +u8 +3 x 32 x 32 x 3'
said 'CIFAR-10, binary, 10 classes'

# What cannot be imported is one line, and no file.
refuse 64 'data import: -o FILE says where to' data import c10
refuse 66 'nowhere' data import nowhere -o no.h5
refuse 65 'c10.h5: an HDF5 file is used as it is, nothing is to be imported: --data c10.h5' data import c10.h5 -o no.h5
printf 'no data\n' >text.dat
refuse 65 'text.dat: none of CIFAR-10, CIFAR-100, STL-10, a folder of folders of .png and .jpg, .npy, .npz, .csv and .tsv' \
    data import text.dat -o no.h5
refuse 65 'sizes/a/2.png: 9x7 pixels, and images before it are 26x19: --size N' data import sizes -o no.h5
refuse 65 "in Fortran's order" data import turned.npy -o no.h5
refuse 65 'images: u8 of [N][H][W]' data import y.npy -o no.h5
refuse 65 'error: nothing.npz: no array of images, such as x, images or x_train' data import nothing.npz -o no.h5
for labels in below-i1 below-i2 below-i4 below-i8 above; do
    refuse 65 "$labels.npy: labels: one is below 0 or above a million" data import x.npy $labels.npy -o no.h5
done
refuse 64 "'--size' is an option of \`gpurt data import\`" data info c10.h5 --size 3
refuse 64 "'--samples' is an option of \`gpurt data make\`" data import c10 --samples 3 -o no.h5
printf '\013' | dd of=c10/data_batch_2.bin bs=1 seek=3073 conv=notrunc status=none
refuse 65 'c10/data_batch_2.bin: record 1: its label is of no class' data import c10 -o no.h5
printf x >>c10/data_batch_2.bin
refuse 65 'c10/data_batch_2.bin: 12293 bytes are no whole number of records of 3073' data import c10 -o no.h5
: >stl/train_y.bin
refuse 65 'stl/train_X.bin: record 0: its label is of no class' data import stl -o no.h5
mkdir -p none/a && : >none/a/1.png
expect 65 data import none -o no.h5
told 'none: no image of it can be read'
rm none/a/1.png
refuse 65 'its folders have no .png and no .jpg' data import none -o no.h5
for name in p10/data_batch_1 all.npz x.npy; do
    size=$(stat -c %s $name)
    for cut in 1 9 40 $((size / 2)) $((size - 1)); do
        mkdir -p cut && head -c $cut $name >cut/"$(basename $name)"
        case $name in p10/*) from=cut ;; *) from=cut/$name ;; esac
        expect 65 data import $from -o no.h5
        [ "$(wc -l <err)" -le 2 ] || wrong "$cut bytes of $name are more than a line"
        rm -r cut
    done
done
[ ! -e no.h5 ] || wrong "a failed import leaves a file"
exit "$failed"
