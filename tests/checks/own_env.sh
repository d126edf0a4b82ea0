#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Does what shaders/env/README.md says, with an installed gpurt and outside the tree: writes its
# example to a file, trains it on every backend until it learns, plays it, and makes mistakes in it.
# Usage: own_env.sh SOURCE_DIR BUILD_DIR

set -euo pipefail
source=${1:?usage: own_env.sh SOURCE_DIR BUILD_DIR}
build=${2:?usage: own_env.sh SOURCE_DIR BUILD_DIR}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
wrong() { echo "own_env.sh: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$tmp/prefix" >/dev/null
gpurt=$(find "$tmp/prefix/bin" -name gpurt)
# The kernels of the file are compiled here for the first time; drivers may have the others.
around=${XDG_CACHE_HOME:-$HOME/.cache}
export POCL_CACHE_DIR=${POCL_CACHE_DIR:-$around/pocl/kcache} MESA_SHADER_CACHE_DIR=${MESA_SHADER_CACHE_DIR:-$around}
export XDG_CACHE_HOME=$tmp/cache
mkdir "$tmp/work" "$XDG_CACHE_HOME"
cd "$tmp/work"
awk '/^```/ { inside = $0 == "```c"; next } inside' "$source/shaders/env/README.md" >slider.k
grep -q 'define ENV slider' slider.k || wrong "the README has no example"

awk '/^```/ { inside = $0 == "```team"; next } inside' "$source/shaders/env/README.md" >team.k
grep -q 'define ENV team' team.k || wrong "the README has no example of a state in memory"

few=(--iterations 1 --num-envs 4 --num-dirs 2 --episode-length 20)
# learns FILE DEVICE: near the middle for most of the time; at first it is for a tenth of it.
learns() {
    "$gpurt" train es --env "$1" --step-size 0.1 --noise-std 0.1 --iterations 30 --num-envs 16 \
        --num-dirs 8 --until 0.7 --device "$2" --format jsonl >rows.jsonl
    awk -F'"evaluate_good_rate":' 'END { split($2, rest, /[,}]/); exit !(rest[1] > 0.7) }' rows.jsonl ||
        wrong "$1 did not learn on $2: $(tail -n 1 rows.jsonl)"
}
# refused CODE WORDS FILE DEVICE: one line with the words, and the exit code.
refused() {
    local code=0
    "$gpurt" train es --env "$3" "${few[@]}" --checkpoint x.h5 --device "$4" >out 2>err || code=$?
    [ "$code" = "$1" ] || wrong "$3 on $4: exit code $code and not $1: $(cat err)"
    grep -qF -- "$2" err || wrong "$3 on $4 does not say '$2': $(cat err)"
    # PoCL counts the errors of its compiler on stderr.
    [ "$(grep -cv ' generated\.$' err)" = 1 ] || wrong "$3 on $4: more than one line: $(cat err)"
    [ ! -e x.h5 ] || wrong "$3 on $4 left a checkpoint"
}
# state DEVICE FILE: the trajectory of a policy trained for an instant.
state() {
    "$gpurt" train es --env "$2" "${few[@]}" --device "$1" --checkpoint state.h5 >/dev/null 2>&1
    "$gpurt" play "$2" --checkpoint state.h5 --device "$1" --steps 5 --format json
    rm -f state*.h5
}

sed 's/s\.v = v;/s.v = vv;/' slider.k >typo.k
line=$(grep -n vv typo.k | cut -d: -f1)
[ -n "$line" ] || wrong "the example has no line to mistype"
mkdir -p other "with space" folder.k
cp slider.k "with space/my slider.k"
# As long as the original: a length tells nothing.
sed 's/2\.0f \* philox_uniform/0.5f * philox_uniform/' slider.k >other/slider.k

for device in ref:0 opencl:0 vulkan:0; do
    learns ./slider.k "$device"
    "$gpurt" play ./slider.k --checkpoint slider-phase1.h5 --device "$device" -o slider.svg
    grep -q '</svg>' slider.svg || wrong "no picture of slider on $device"
    "$gpurt" train es --env ./slider.k --iterations 99 --until 0.1 \
        --resume slider-phase1.h5 --device "$device" >/dev/null
    # Going on in a changed text is said, and in the same text it is not.
    cp slider.k again.k
    "$gpurt" train es --env ./again.k "${few[@]}" --device "$device" --checkpoint again.h5 >/dev/null 2>&1
    "$gpurt" train es --env ./again.k "${few[@]}" --iterations 2 --resume again.h5 --device "$device" \
        --checkpoint again.h5 >/dev/null 2>err
    ! grep -q 'another text' err || wrong "the same text is another on $device"
    cp other/slider.k again.k
    "$gpurt" train es --env ./again.k "${few[@]}" --iterations 3 --resume again.h5 --device "$device" \
        --checkpoint again.h5 >/dev/null 2>err
    grep -q "trained in another text of environment 'slider'" err || wrong "a changed text is not noticed on $device"
    rm -f again*.h5 again.k
    rm -f slider*.h5 slider.svg
    refused 65 "./typo.k:$line:" ./typo.k "$device"
    # Another file of the same name is another environment, and a changed file is not the old one.
    state "$device" ./slider.k >one.json
    state "$device" ./other/slider.k >two.json
    cmp -s one.json two.json && wrong "two environments of one name are one on $device"
    cp slider.k changes.k
    state "$device" ./changes.k >first.json
    cmp -s one.json first.json || wrong "the same text gives another trajectory on $device"
    cp other/slider.k changes.k
    state "$device" ./changes.k >second.json
    cmp -s two.json second.json || wrong "a changed file is taken for the old one on $device"
    state "$device" "with space/my slider.k" >third.json
    cmp -s one.json third.json || wrong "a path with a space gives another trajectory on $device"
done

# The picture: charts with names, and shapes where the environment has them. What is charted follows
# from the example's own
# equations: v' = v + 0.1 a, reward 1 - x'^2 - 0.1 a^2.
sed -e 's|^#define ENV_DT.*|&\n#define ENV_DRAW(S, LINE, CIRCLE, POINT) LINE(-1.0f, 0.0f, 1.0f, 0.0f, 0.02f) CIRCLE(S.x, 0.1f, 0.1f) POINT(S.x, 0.0f)|' \
    -e 's/ENV slider/ENV cartpole/' slider.k >drawn.k
for policy in linear mlp16 mlp16-tanh; do
    "$gpurt" train es --env ./drawn.k "${few[@]}" --policy "$policy" --device ref:0 --checkpoint drawn.h5 >/dev/null 2>&1
    "$gpurt" play ./drawn.k --checkpoint drawn.h5 --device ref:0 --steps 30 --format json -o drawn.json
    python3 - drawn.json <<'END' || wrong "play: what is shown of $policy does not follow from the example"
import json, sys
d = json.load(open(sys.argv[1]))
wrong = 0
for t in range(len(d["frames"]) - 1):
    (x, v), (x2, v2), (a,), (r,) = d["frames"][t], d["frames"][t + 1], d["actions"][t], d["rewards"][t + 1]
    wrong += d["observations"][t] != [x, v] or abs(v2 - v - 0.1 * a) > 1e-5
    wrong += abs(r - (1 - x2 * x2 - 0.1 * a * a)) > 1e-4 or not -1 <= a <= 1
sys.exit(wrong > 0 or len(d["frames"]) < 5)
END
done
"$gpurt" play ./drawn.k --checkpoint drawn.h5 --device ref:0 -o drawn.svg
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' drawn.svg || wrong "play: no XML"
for part in '<circle' '>state x<' '>state v<' '>observation 0, 1<' '>action, -1 to 1: 0<' '>reward of a step<'; do
    grep -qF -- "$part" drawn.svg || wrong "the picture of drawn.k has no $part"
done
! grep -q 'angle, rad' drawn.svg || wrong "a file called cartpole is drawn as gpurt's own"
rm -f drawn*

[ -n "$(ls "$XDG_CACHE_HOME/gpurt")" ] || wrong "nothing is cached"

: >empty.k
echo 'FN float f(float x) { return x; }' >no_env.k
grep -v 'FN bool env_good' slider.k >no_good.k
sed 's,lib/math\.k,lib/maths.k,' slider.k >no_file.k
sed 's/ENV_OBS 2/ENV_OBS 0/' slider.k >no_obs.k
sed 's/F(1, v)/F(2, v)/' slider.k >gap.k
refused 66 "./none.k" ./none.k ref:0
refused 66 "./folder.k" ./folder.k ref:0
refused 65 "./empty.k: no environment" ./empty.k ref:0
refused 65 "./no_env.k: no environment" ./no_env.k ref:0
refused 65 "env_good()" ./no_good.k ref:0
refused 65 "./no_file.k:3:" ./no_file.k ref:0
refused 65 "obs" ./no_obs.k ref:0
refused 65 "ENV_STATE" ./gap.k ref:0
refused 64 "slider" slider ref:0
# A state in memory is for learners that act from outside.
refused 64 "'team' keeps its state in device memory" ./team.k ref:0
code=0
"$gpurt" bench rollout --env ./empty.k --device ref:0 2>err || code=$?
[ "$code" = 65 ] || wrong "bench rollout of an empty file: exit code $code"
"$gpurt" bench rollout --env ./slider.k --num-envs 4 --num-dirs 2 --episode-length 10 --samples 1 \
    --device ref:0 >rows ||
    wrong "bench rollout does not take a file"
grep -q slider rows || wrong "bench rollout does not name the environment"

# Where there is no compiler one line says so, and names the remedy.
mkdir no_programs
code=0
PATH=$PWD/no_programs XDG_CACHE_HOME=$tmp/none "$gpurt" train es --env ./slider.k "${few[@]}" \
    --checkpoint x.h5 --device ref:0 2>err || code=$?
[ "$code" = 69 ] || wrong "without a C compiler the exit code is $code: $(cat err)"
grep -q 'install gcc or clang' err || wrong "without a C compiler no remedy is named: $(cat err)"
echo "own_env.sh: slider learns on ref, opencl and vulkan from an installed gpurt"
