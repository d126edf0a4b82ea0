# SPDX-License-Identifier: Apache-2.0
"""Plants small mistakes in the C sources and counts those that a test notices; see ci/mutate.sh.

In C a mistake is an expression with a switch around it: `a < b` becomes
`(grt_mutant(7) ? (a <= b) : (a < b))`. The tree is built once with all of them, a first run of the
tests notes which reach which, and each is then switched on for the tests that reach it, the
quickest first, until one fails. In a kernel a mistake is another operator or number in the text:
the kernel is built anew for each, and all tests of its area run.
"""
import argparse, collections, concurrent.futures, json, os, random, re, resource, shutil, signal, subprocess, sys, time
from clang.cindex import CursorKind as Kind, Index, StorageClass

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.environ.get("GPURT_MUTATE_WORK") or os.path.join(ROOT, "build", "mutate")
TREE = os.path.join(WORK, "tree")
BUILD = os.path.join(WORK, "build")
WHOLE = {}  # files with places, as they were when the places were drawn: work may go on beside a run
MEMORY = 8 << 30  # bytes that a process of a test may take

# Beginnings of an area's paths, and the tests that ought to notice a mistake there. Of a suite that
# runs on every device one run is enough, unless the area is a backend.
AREAS = {
    "base": ("runtime/base/", r"status|cache|half|cli|runs|run|checkpoint|profile|runlog"),
    "data": ("runtime/data/", r"order|dataset|look|hostile|loader|rows|drawn|made|supervised|train-data|data-import|data-preview|cli_data"),
    "device": ("runtime/device/", r"buffer|address|kernel|record|graph|schedule|lanes|plan|import|probe|binaries"),
    "opencl": ("backends/opencl/", r"(buffer|kernel|binaries|record|graph|schedule|lanes|plan|source)\.opencl|bad-driver"),
    "vulkan": ("backends/vulkan/", r"(buffer|kernel|binaries|record|graph|schedule|lanes|plan|source)\.vulkan|"
                                   r"no-manifest|bad-driver"),
    "ref": ("backends/ref/", r"(buffer|kernel|record|graph|schedule|lanes|plan|math|reduce)\.ref"),
    "ops": ("runtime/ops/", r"convert|map|reduce|shape|gemm|splitk|gaps|quarantine|choose|choices|colsum|random|tuned|"
                            r"conv|parts"),
    "nn": ("runtime/nn/", r"nn|fused|mlprows|images|resnet|transform|grads|network|layers|torch|networks|buffers|colours|mix"),
    "learn": ("runtime/learn/", r"optim|groups|apart|rates|contrast|learner|precision|nonfinite|torch|buffers|supervised|train-data"),
    "rl": ("runtime/rl/", r"es|policy|evolve|ppo|iteration|minibatch|twostate|draws|ppoloop|ppotorch|normalizer|cartpole|"
                          r"worlds|registers|uav|chunk|train-ppo|cli_es"),
    "es": ("runtime/rl/es runtime/rl/policy runtime/rl/rollout apps/train/train_es shaders/es/",
           r"es|policy|evolve|cartpole|cli_es"),
    "run": ("runtime/run/", r"run|runs|epochs|features|limits|runlog|supervised|train-data"),
    "store": ("runtime/store/", r"checkpoint|safetensors|runs|old-checkpoints|cli_files"),
    "config": ("runtime/config/", r"config|cli_es|networks|train-data"),
    "tuning": ("runtime/tuning/", r"profile|shipped|tuned|tune|choose"),
    "source": ("runtime/source/", r"source|own-env|env-operations"),
    "apps": ("apps/", r"test_.*|cli.*|train|train-data|bench-ppo|train-ppo|tune|completion|runs|limits|images-cli|data-import|"
                     r"bench-rows|data-preview|report|narrow|networks|classify"),
    "kernels": ("shaders/", r"math|map|reduce|shape|convert|random|gemm|nn|grads|conv|images|colsum|optim|es|policy|ppo|"
                            r"iteration|minibatch|drawn|rows|transform|mlprows|fused|cartpole|uav|standing|contrast|colours|mix"),
}
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
         "+": "-", "-": "+", "*": "+", "/": "*"}
NAMES = {"<": "comparison", "<=": "comparison", ">": "comparison", ">=": "comparison", "==": "comparison",
         "!=": "comparison", "&&": "logic", "||": "logic"}
# One switch for everything that is linked, and a note of each place that was reached.
SWITCH = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int grt_mutant(int number);
int grt_mutant(int number) {
    static int on = -1;
    static unsigned char reached[65536];
    if (on < 0) {
        const char *text = getenv("GPURT_MUTANT");
        on = text ? atoi(text) : 0;
    }
    if (number >= 0 && number < (int)sizeof reached && !reached[number]) {
        reached[number] = 1;
        const char *path = getenv("GPURT_MUTANT_REACHED");
        int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
        if (file >= 0) {
            char line[16];
            int length = snprintf(line, sizeof line, "%d\n", number);
            if (write(file, line, (size_t)length) != length) {
                on = on + 0;
            }
            close(file);
        }
    }
    return on == number;
}
"""


def sites(path, args):
    """Places of one file: (first, end, rule, text that is planted)."""
    with open(path, "rb") as f:
        text = f.read()
    unit = Index.create().parse(path, args=args)
    found = []

    def part(node):
        return node.extent.start.offset, node.extent.end.offset

    def cut(first, end):
        return text[first:end].decode()

    def add(first, end, rule, planted):
        # What a macro makes has the place of its name or of its text, neither the expression's.
        if 0 <= first < end <= len(text) and not re.search(r"[#;]|\\\n", cut(first, end)):
            found.append((first, end, rule, planted))

    def binary(node):
        sides = list(node.get_children())
        if len(sides) != 2:
            return
        (a, b), (c, d) = part(sides[0]), part(sides[1])
        first, end = part(node)
        if not first <= a < b <= c < d <= end:
            return
        operator = cut(b, c).strip()
        if operator in SWAPS:
            add(first, end, NAMES.get(operator, "arithmetic"),
                cut(first, b) + cut(b, c).replace(operator, SWAPS[operator]) + cut(c, end))

    def call(node):
        # Of these either order means the same.
        if node.spelling in ("strcmp", "strncmp", "memcmp", "calloc", "fmin", "fmax", "fminf", "fmaxf"):
            return
        given = list(node.get_arguments())
        first, end = part(node)
        for one, two in zip(given, given[1:]):
            (a, b), (c, d) = part(one), part(two)
            same = one.type.get_canonical().spelling == two.type.get_canonical().spelling
            if same and first < a < b <= c < d <= end and cut(a, b) != cut(c, d):
                add(first, end, "arguments", cut(first, a) + cut(c, d) + cut(b, c) + cut(a, b) + cut(d, end))
                return

    def walk(node, parent, body):
        kind = node.kind
        if str(node.location.file) != path and kind != Kind.TRANSLATION_UNIT:
            return
        if kind == Kind.FUNCTION_DECL:
            body = node.is_definition()
        if kind in (Kind.ENUM_DECL, Kind.STRUCT_DECL, Kind.STATIC_ASSERT) or (
                kind == Kind.VAR_DECL and (node.storage_class == StorageClass.STATIC or not body)):
            return
        if body and kind == Kind.BINARY_OPERATOR:
            binary(node)
        if body and kind == Kind.CALL_EXPR:
            call(node)
        if body and kind == Kind.INTEGER_LITERAL:
            first, end = part(node)
            if re.fullmatch(r"[0-9]+[uUlL]*", cut(first, end)):
                add(first, end, "constant", cut(first, end) + " + 1")
        # A statement is dropped with its semicolon left behind.
        if body and parent.kind == Kind.COMPOUND_STMT and kind in (
                Kind.CALL_EXPR, Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR, Kind.UNARY_OPERATOR):
            first, end = part(node)
            # A macro may be more than an expression.
            if not re.match(r"[A-Z0-9_]+\b", cut(first, end)) and text[end:end + 1] == b";":
                add(first, end, "statement", None)
        children = list(node.get_children())
        if kind == Kind.CASE_STMT:
            children = children[1:]
        if kind == Kind.VAR_DECL and node.type.kind.name == "CONSTANTARRAY":
            children = [c for c in children if c.kind == Kind.INIT_LIST_EXPR]
        for child in children:
            walk(child, node, body)

    walk(unit.cursor, unit.cursor, False)
    return found


def kernel_sites(path):
    """Places in the bodies of a kernel's file, by its text: operators with blanks around them, numbers."""
    with open(path, "rb") as f:
        text = f.read().decode()
    found, at = [], 0
    for line in text.splitlines(keepends=True):
        code = line.split("//")[0]
        if line.startswith(("    ", "FN ")) and not code.rstrip().endswith("\\"):
            for m in re.finditer(r" (<=|>=|==|!=|<|>|&&|\|\||\+|-|\*) ", code):
                rule = NAMES.get(m[1], "arithmetic")
                found.append((at + m.start(1), at + m.end(1), rule, SWAPS[m[1]]))
            for m in re.finditer(r"(?<![\w.])(\d+)u\b", code):
                found.append((at + m.start(), at + m.end(), "constant", f"{int(m[1]) + 1}u"))
        at += len(line.encode())
    return found


def choose(areas, count, seed):
    """As many places in every area, drawn by the seed, none inside another."""
    with open(os.path.join(BUILD, "compile_commands.json")) as f:
        commands = {os.path.relpath(c["file"], TREE): c["command"].split() for c in json.load(f)}
    kernels = [os.path.relpath(os.path.join(folder, name), TREE) for folder, _, names in
               os.walk(os.path.join(TREE, "shaders")) for name in names if name.endswith(".k")]
    draw = random.Random(seed)
    mutants = []
    for place, area in enumerate(areas):
        beginnings = tuple(AREAS[area][0].split())
        pool = []
        for path in sorted(p for p in commands if p.startswith(beginnings)):
            args = [w for w in commands[path] if w.startswith(("-I", "-D", "-std"))]
            pool += [(path, *site) for site in sites(os.path.join(TREE, path), args)]
        for path in sorted(p for p in kernels if p.startswith(beginnings)):
            pool += [(path, *site) for site in kernel_sites(os.path.join(TREE, path))]
        draw.shuffle(pool)
        # Rules take turns, so that the commonest does not crowd out the others.
        by_rule = collections.OrderedDict()
        for site in pool:
            by_rule.setdefault(site[3], []).append(site)
        wanted = count // len(areas) + (place < count % len(areas))
        taken = []
        # Each area begins with another rule: of two places an area all would be of the first two.
        rules = sorted(by_rule)
        rules = rules[place % len(rules):] + rules[:place % len(rules)] if rules else rules
        while len(taken) < wanted and any(by_rule.values()):
            for rule in rules:
                site = by_rule[rule].pop() if by_rule[rule] else None
                if site and len(taken) < wanted and not any(
                        site[0] == t[0] and site[1] < t[2] and t[1] < site[2] for t in taken):
                    taken.append(site)
        for path, first, end, rule, planted in taken:
            with open(os.path.join(TREE, path), "rb") as f:
                text = WHOLE[path] = f.read()
            mutants.append({"number": len(mutants) + 1, "area": area, "file": path, "first": first, "end": end,
                            "line": text[:first].count(b"\n") + 1, "rule": rule, "kernel": path.endswith(".k"),
                            "was": " ".join(text[first:end].decode().split()), "planted": planted})
    return mutants


def plant(mutants):
    """Writes the C files of the tree anew, with the switches of these mistakes."""
    by_file = collections.defaultdict(list)
    for m in mutants:
        if not m["kernel"]:
            by_file[m["file"]].append(m)
    for path, own in by_file.items():
        text = WHOLE[path]
        for m in sorted((m for m in own if not m.get("broken")), key=lambda m: -m["first"]):
            was = text[m["first"]:m["end"]].decode()
            if m["planted"] is None:
                new = f"(grt_mutant({m['number']}) ? (void)0 : (void)({was}))"
            else:
                new = f"(grt_mutant({m['number']}) ? ({m['planted']}) : ({was}))"
            text = text[:m["first"]] + new.encode() + text[m["end"]:]
        # Declared in the first line, so that all others keep their numbers.
        with open(os.path.join(TREE, path), "wb") as f:
            f.write(b"int grt_mutant(int number); " + text)


def plant_kernel(m, planted):
    """Writes a kernel's file with its mistake, or without; whether it builds."""
    text = WHOLE[m["file"]]
    if planted:
        text = text[:m["first"]] + m["planted"].encode() + text[m["end"]:]
    with open(os.path.join(TREE, m["file"]), "wb") as f:
        f.write(text)
    return subprocess.run(["ninja", "-C", BUILD, "gpurt-test"], capture_output=True).returncode == 0


def build(mutants):
    """What the compiler refuses is no mistake that anyone can make: such places are left out."""
    for _ in range(8):
        plant(mutants)
        done = subprocess.run(["ninja", "-k", "0", "-C", BUILD], capture_output=True, text=True)
        if done.returncode == 0:
            return
        wrong = set(re.findall(re.escape(TREE) + r"/(\S+?):(\d+):\d+: error", done.stdout))
        wrong |= set(re.findall(r"^[./]*(?:tree/)?((?:runtime|apps|backends)/\S+?):(\d+):\d+: error", done.stdout, re.M))
        # A line of an error may be one of a long expression's: the nearest place of the file goes.
        left = [m for m in mutants if not m.get("broken")]
        broken = []
        for path, line in wrong:
            near = sorted((m for m in left if m["file"] == path), key=lambda m: abs(m["line"] - int(line)))
            broken += near[:1]
        if not broken:
            sys.exit("the tree does not build, and no planted mistake is why:\n" + done.stdout[-2000:])
        for m in broken:
            m["broken"] = True
    sys.exit("the tree does not build")


def run_test(name, seconds, **environment):
    """Whether it passed, and the seconds it took. One that hangs or takes all memory has noticed."""
    def bound():
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    begin = time.monotonic()
    # A session of its own: ctest's limit is that of the test, and its children are many.
    test = subprocess.Popen(["ctest", "--test-dir", BUILD, "-R", "^" + re.escape(name) + "$"], preexec_fn=bound,
                            start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            env={**os.environ, **environment})
    try:
        passed = test.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        passed = False
        os.killpg(test.pid, signal.SIGKILL)
        test.wait()
    return passed, time.monotonic() - begin


def tests_of(areas, only):
    """Names of the areas' tests; of one suite on several devices ref's, unless a backend is judged."""
    listed = subprocess.run(["ctest", "--test-dir", BUILD, "-N"], capture_output=True, text=True, check=True).stdout
    all_names = re.findall(r"Test +#\d+: (\S+)", listed)
    names = set()
    for area in areas:
        wanted = re.compile("(" + AREAS[area][1] + r")(\.(ref|opencl|vulkan).*)?")
        names |= {n for n in all_names if wanted.fullmatch(n) and re.fullmatch(only, n) and (
            area in ("opencl", "vulkan") or not re.search(r"\.(opencl|vulkan)", n) or
            (n.split(".")[0] + ".ref" not in all_names and ".opencl" in n))}
    return [n for n in all_names if n in names]


def notice(names, times, most, environment):
    """The first test that fails, or None, and how many were run: the quickest, for so many seconds."""
    count, spent = 0, 0
    for name in sorted(names, key=times.get):
        spent += times[name]
        if count and spent > most:
            break
        count += 1
        if not run_test(name, 60 + 5 * times[name], **environment)[0]:
            return name, count
    return None, count


def judge(mutants, areas, only, most, slow, jobs, say):
    names = tests_of(areas, only)
    reaches, times = collections.defaultdict(list), {}

    def first_run(name):
        log = os.path.join(WORK, "reached." + name)
        if os.path.exists(log):
            os.remove(log)
        passed, seconds = run_test(name, slow, GPURT_MUTANT_REACHED=log)
        say(f"{len(times) + 1} of {len(names)}: {name}, {seconds:.0f} s" +
            ("" if passed else ", too slow, left out" if seconds >= slow else ", fails by itself and is left out"))
        times[name] = seconds if passed else None
        if passed and os.path.exists(log):
            with open(log) as f:
                for number in {int(line) for line in f.read().split()}:
                    reaches[number].append(name)

    def one(m):
        if m["kernel"]:
            own = re.compile("(" + AREAS[m["area"]][1] + r")(\.ref)?")
            near = [n for n in times if own.fullmatch(n) and n.endswith(".ref")]
            # One that does not compile is one that the compiler finds.
            built = plant_kernel(m, True)
            m["found_by"], m["ran"] = notice(near, times, most, {}) if built else ("the compiler", 0)
            m["reached_by"] = len(near)
            if not plant_kernel(m, False):
                sys.exit(f"{m['file']} does not build without its mistake")
        else:
            m["reached_by"] = len(reaches[m["number"]])
            m["found_by"], m["ran"] = notice(reaches[m["number"]], times, most, {"GPURT_MUTANT": str(m["number"])})
        say(f"{m['file']}:{m['line']}: {m['rule']}: " +
            (f"found by {m['found_by']}" if m["found_by"] else "NOT FOUND" if m["reached_by"] else "NOT REACHED"))

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(first_run, names))
        for name in [n for n in times if times[n] is None]:
            del times[name]
        list(pool.map(one, [m for m in mutants if not m["kernel"]]))
    # A kernel's mistake is in the one build that there is.
    for m in mutants:
        if m["kernel"]:
            one(m)


def main():
    parser = argparse.ArgumentParser(usage="ci/mutate.sh [--area NAME] [--count N] [--seed S] [--most SECONDS] "
                                     "[--slow SECONDS] [--jobs N] [--tests PATTERN] [--output FILE] [--list]")
    parser.add_argument("--area", default=",".join(AREAS))
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=float, default=600)
    parser.add_argument("--slow", type=float, default=900)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tests", default=".*")
    parser.add_argument("--output")
    parser.add_argument("--glslang", default="")
    parser.add_argument("--list", action="store_true")
    a = parser.parse_args()
    areas = a.area.split(",")
    unknown = [n for n in areas if n not in AREAS]
    if unknown or a.count < 1:
        parser.error(f"no area '{unknown[0]}': there are {', '.join(AREAS)}" if unknown else "--count of at least 1")

    os.makedirs(TREE, exist_ok=True)
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True,
                           check=True).stdout.split("\n")
    for path in filter(None, files):
        source, target = os.path.join(ROOT, path), os.path.join(TREE, path)
        if not os.path.isfile(source):
            continue
        with open(source, "rb") as f:
            now = f.read()
        if os.path.exists(target):
            with open(target, "rb") as f:
                if f.read() == now:
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(source, target)
    with open(os.path.join(WORK, "switch.c"), "w") as f:
        f.write(SWITCH)
    switch = os.path.join(WORK, "switch.o")
    subprocess.run(["cc", "-O1", "-fPIC", "-c", os.path.join(WORK, "switch.c"), "-o", switch], check=True)
    # The flags of any build: a compiler's cache serves all files without a mistake.
    subprocess.run(["cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
                    f"-DCMAKE_C_STANDARD_LIBRARIES={switch}"] +
                   ([f"-DGPURT_GLSLANG={a.glslang}"] if a.glslang else []), check=True, stdout=subprocess.DEVNULL)

    mutants = choose(areas, a.count, a.seed)
    if a.list:
        for m in mutants:
            print(f"{m['file']}:{m['line']}: {m['rule']}: {m['was'][:90]}")
        return
    build(mutants)
    mutants = [m for m in mutants if not m.get("broken")]
    print(f"{len(mutants)} mistakes planted (seed {a.seed})", flush=True)
    judge(mutants, areas, a.tests, a.most, a.slow, a.jobs, lambda line: print(line, flush=True))

    if a.output:
        with open(a.output, "w") as f:
            for m in mutants:
                f.write(json.dumps({k: m[k] for k in ("area", "file", "line", "rule", "was", "planted", "reached_by", "ran",
                                                      "found_by")} | {"seed": a.seed}) + "\n")
    print(f"\n{'area':8} planted found")
    for area in areas + ["all"]:
        own = [m for m in mutants if area in (m["area"], "all")]
        found = sum(m["found_by"] is not None for m in own)
        if own:
            print(f"{area:8} {len(own):7} {found:5}  {100 * found / len(own):.0f} %")
    left = [m for m in mutants if not m["found_by"]]
    print("\nnot found:" if left else "\nall were found")
    for m in left:
        print(f"{m['file']}:{m['line']}: {m['rule']}, {m['ran']} of {m['reached_by']} tests: {m['was'][:100]}")


main()
