# SPDX-License-Identifier: Apache-2.0
"""Plants small mistakes in the C sources and counts those that a test notices; see ci/mutate.sh.

In C a mistake is an expression with a switch around it: `a < b` becomes
`(grt_mutant(7) ? (a <= b) : (a < b))`. The tree is built once with all of them, a first run of the
tests, each case of a suite by itself, notes which reach which, and each is then switched on for the
tests that reach it, its area's before others and the quickest first, until one fails. In a kernel a
mistake is another operator or number in the text: the kernel is built anew for each, and the tests
run that had a kernel of its file built.
"""
import argparse, collections, concurrent.futures, glob, itertools, json, os, random, re, resource
import shutil, signal, subprocess, sys, tempfile, threading, time
from clang.cindex import CursorKind as Kind, Index, StorageClass

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.environ.get("GPURT_MUTATE_WORK") or os.path.join(ROOT, "build", "mutate")
TREE = os.path.join(WORK, "tree")
BUILD = os.path.join(TREE, "build", "release")  # as far from the sources as any build: a compiler's cache serves it
WHOLE = {}  # files with places, as they were when the places were drawn: work may go on beside a run
MEMORY = 8 << 30  # bytes that a process of a test may take
HANGS = 900  # seconds by the wall's clock: a test that neither ends nor works

# Beginnings of an area's paths, and the tests that ought to notice a mistake there. Of a suite that
# runs on every device one run is enough, unless the area is a backend.
AREAS = {
    "base": ("runtime/base/", r"status|outside|cache|half|thread|cli|runs|run|checkpoint|profile|runlog|behind|dialect"),
    "comm": ("runtime/comm/ backends/mpi/ runtime/run/supervised/supervised_ranks apps/train/trainer_ranks", r"ranks|others|windows|shares|ranks-.*"),
    "data": ("runtime/data/ runtime/import/", r"journeys|order|dataset|values|look|hostile|damaged|loader|rows|drawn|made|supervised|train-data|data-import|data-tables|"
                              r"data-preview|data-direct|cli_data|images-cli|outside"),
    "device": ("runtime/device/ runtime/timeline/", r"buffer|address|kernel|record|graph|schedule|lanes|plan|import|probe|"
                                   r"binaries|timeline|timed|trace|nothing|refused|timeline-cli"),
    "opencl": ("backends/opencl/", r"(buffer|kernel|binaries|record|graph|schedule|lanes|plan|source|timeline|timed)\.opencl(\.as-gpu)?|"
                                   r"bad-driver|address|cl\w+"),
    "vulkan": ("backends/vulkan/", r"(buffer|kernel|binaries|record|graph|schedule|lanes|plan|source|timeline|timed)\.vulkan(\.as-gpu)?|"
                                   r"no-manifest|bad-driver|import|vk\w+"),
    "ref": ("backends/ref/", r"(buffer|kernel|record|graph|schedule|lanes|plan|math|reduce)\.ref"),
    "ops": ("runtime/ops/", r"convert|map|reduce|shape|gemm|splitk|gaps|quarantine|choose|choices|convchoices|colsum|random|tuned|"
                            r"conv|parts"),
    "nn": ("runtime/nn/", r"journeys|nn|fused|reference|mlprows|images|resnet|transform|grads|network|layers|torch|networks|buffers|colours|mix"),
    "learn": ("runtime/learn/", r"journeys|learnfacts|losses|pieces|optim|groups|apart|rates|contrast|pairs|learner|precision|nonfinite|torch|buffers|supervised|tasks|train-data|outside"),
    "rl": ("runtime/rl/", r"policies|journeys|es|esfacts|policy|evolve|ppo|iteration|minibatch|twostate|draws|ppoloop|ppotorch|normalizer|cartpole|"
                          r"worlds|registers|uav|chunk|train-ppo|ranks-ppo|tasks|cli_es|stepper|flight|drawing|sight"),
    "es": ("runtime/rl/es runtime/rl/policy runtime/rl/rollout apps/train/train_es shaders/es/",
           r"policies|journeys|es|esfacts|policy|evolve|cartpole|cli_es|stands|ranks-es|outside"),
    "run": ("runtime/run/", r"journeys|run|runranks|runfacts|tight|shares|runs|epochs|features|limits|runlog|supervised|tasks|train-data|behind|scores|"
                            r"classify|simclr|ranks-supervised|data-direct|board|outside"),
    "store": ("runtime/store/ runtime/onnx/", r"journeys|checkpoint|safetensors|runs|old-checkpoints|cli_files|weights|to-onnx|from-onnx"),
    "config": ("runtime/config/", r"journeys|config|settings|edges|cli_es|networks|train-data"),
    "tuning": ("runtime/tuning/", r"profile|shipped|tuned|tune|choose"),
    "source": ("runtime/source/", r"source|dialect|worlds|own-env|env-operations"),
    "apps": ("apps/", r"policies|journeys|test_.*|cli.*|texts|train|train-data|bench-ppo|train-ppo|tune|completion|runs|limits|images-cli|data-import|"
                     r"bench-rows|data-tables|data-preview|report|narrow|networks|classify|sweep|sweep-ssh|estimate|monitor|contribute|"
                     r"weights|to-onnx|from-onnx|timeline-cli|init|board|data-direct|bench-scaling|bench-devices|looks|manual|outside|"
                     r"simclr|old-checkpoints|stands|vendor-report|bad-driver|no-manifest|monitor-tmux|sweep-slurm|report-browser|ranks-.*"),
    "kernels": ("shaders/", r"math|map|reduce|shape|convert|random|gemm|nn|grads|conv|images|colsum|optim|es|policy|ppo|"
                            r"iteration|minibatch|drawn|rows|transform|mlprows|fused|cartpole|uav|standing|contrast|pairs|colours|mix|stepper|flight|drawing|sight"),
}
# Suites whose kernels and variants ref does not have.
ON_PANELS = re.compile(r"(conv|parts|chunk)\.opencl")
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
void grt_mutant_kernel(const char *name);
static void note(const char *line, int length) {
    const char *path = getenv("GPURT_MUTANT_REACHED");
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (file >= 0) {
        if (write(file, line, (size_t)length) != length) {
            length = 0;
        }
        close(file);
    }
}
void grt_mutant_kernel(const char *name) {
    char line[96];
    note(line, snprintf(line, sizeof line, "%.80s\n", name));
}
int grt_mutant(int number) {
    static int on = -1;
    static unsigned char reached[65536];
    if (on < 0) {
        const char *text = getenv("GPURT_MUTANT");
        on = text ? atoi(text) : 0;
    }
    if (number >= 0 && number < (int)sizeof reached && !reached[number]) {
        reached[number] = 1;
        char line[16];
        note(line, snprintf(line, sizeof line, "%d\n", number));
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


def planted_in(mutants):
    return [(m["file"], m["first"], m["end"]) for m in mutants]


def choose(areas, count, seeds):
    """As many places in every area, drawn by each seed, none inside another."""
    with open(os.path.join(BUILD, "compile_commands.json")) as f:
        commands = {os.path.relpath(c["file"], TREE): c["command"].split() for c in json.load(f)}
    kernels = [os.path.relpath(os.path.join(folder, name), TREE) for folder, _, names in
               os.walk(os.path.join(TREE, "shaders")) for name in names if name.endswith(".k")]
    mutants, pools = [], {}
    for area in areas:
        beginnings = tuple(AREAS[area][0].split())
        pool = []
        for path in sorted(p for p in commands if p.startswith(beginnings)):
            args = [w for w in commands[path] if w.startswith(("-I", "-D", "-std"))]
            pool += [(path, *site) for site in sites(os.path.join(TREE, path), args)]
        for path in sorted(p for p in kernels if p.startswith(beginnings)):
            pool += [(path, *site) for site in kernel_sites(os.path.join(TREE, path))]
        pools[area] = pool
    for seed, (place, area) in itertools.product(seeds, enumerate(areas)):
        draw = random.Random(f"{seed} {area}")
        pool = pools[area][:]
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
                        site[0] == t[0] and site[1] < t[2] and t[1] < site[2] for t in taken + planted_in(mutants)):
                    taken.append(site)
        for path, first, end, rule, planted in taken:
            with open(os.path.join(TREE, path), "rb") as f:
                text = WHOLE[path] = f.read()
            mutants.append({"number": len(mutants) + 1, "seed": seed, "area": area, "file": path, "first": first, "end": end,
                            "line": text[:first].count(b"\n") + 1,
                            "column": first - text.rfind(b"\n", 0, first), "rule": rule, "kernel": path.endswith(".k"),
                            "was": " ".join(text[first:end].decode().split()), "planted": planted})
    return mutants


def again(record):
    """The places of an earlier run's record that no test had noticed, where they are now."""
    mutants = []
    with open(record) as f:
        rows = [json.loads(line) for line in f]
    for row in rows:
        if row["found_by"]:
            continue
        with open(os.path.join(TREE, row["file"]), "rb") as f:
            text = WHOLE[row["file"]] = f.read()
        pattern = r"\s+".join(re.escape(word) for word in row["was"].split()).encode()
        places = [((abs(text[:p.start()].count(b"\n") + 1 - row["line"]),
                    abs(p.start() - text.rfind(b"\n", 0, p.start()) - row.get("column", 0))), p)
                  for p in re.finditer(pattern, text)]
        if not places:
            print(f"{row['file']}:{row['line']}: no such place any more: {row['was'][:90]}")
            continue
        place = min(places, key=lambda p: p[0])[1]
        mutants.append({**row, "number": len(mutants) + 1, "first": place.start(), "end": place.end(),
                        "line": text[:place.start()].count(b"\n") + 1, "kernel": row["file"].endswith(".k")})
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
    """Writes a kernel's file with its mistake, and whether it builds; or without, for the next one's build."""
    text = WHOLE[m["file"]]
    if planted:
        text = text[:m["first"]] + m["planted"].encode() + text[m["end"]:]
    with open(os.path.join(TREE, m["file"]), "wb") as f:
        f.write(text)
    return not planted or subprocess.run(["ninja", "-C", BUILD, "gpurt-test"], capture_output=True).returncode == 0


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


def run(test, seconds, cpu, **environment):
    """Whether it passed, and the seconds that its cores took: the wall's clock is that of the load.

    One that takes all memory, or more of the cores than `cpu` seconds, has failed. What took longer than
    `seconds` by the wall's clock is None."""
    def bound():
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)  # what begins in the background ignores them
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + 1, int(cpu) + 2))
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(test["command"], preexec_fn=bound, start_new_session=True, cwd=test["folder"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env={**os.environ, **test["environment"], "TMPDIR": folder, **environment})
        late = threading.Timer(seconds, os.killpg, (process.pid, signal.SIGKILL))
        late.start()
        begin = time.monotonic()
        _, status, used = os.wait4(process.pid, 0)
        late.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        try:
            os.killpg(process.pid, signal.SIGKILL)  # children that it left behind
        except ProcessLookupError:
            pass
    passed = process.returncode == 0
    return None if not passed and time.monotonic() - begin >= seconds else passed, used.ru_utime + used.ru_stime


def suites_of(area):
    """Names of the suites in the folders of tests/unit that are named as the area's own are."""
    folders = {"tests/unit/" + beginning.split("/")[1] for beginning in AREAS[area][0].split()
               if beginning.startswith("runtime/") and beginning.count("/") == 2 and beginning.endswith("/")}
    return [re.search(r"suite_(\w+)\.c$", path)[1] for folder in folders
            for path in glob.glob(os.path.join(TREE, folder, "suite_*.c"))]


def tests_of(areas, only):
    """Tests of the areas by name and folder, a suite's cases one by one; on several devices ref's, unless a backend is judged."""
    patterns = {area: "(" + "|".join([AREAS[area][1], *suites_of(area)]) + r")(\.(ref|opencl|vulkan).*)?" for area in areas}
    listed = json.loads(subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True,
                                       text=True, check=True).stdout)["tests"]
    all_names = {t["name"] for t in listed}
    tests = {}
    for test in listed:
        name, command = test["name"], test["command"]
        given = {p["name"]: p["value"] for p in test["properties"]}
        on_driver = re.search(r"\.(opencl|vulkan)", name)
        own = [area for area in areas if re.fullmatch(patterns[area], name) and
               (area in ("opencl", "vulkan") or not on_driver or (area in ("kernels", "ops") and ON_PANELS.match(name)) or
                (name.split(".")[0] + ".ref" not in all_names and ".opencl" in name))]
        if not own or not re.fullmatch(only, name) or given.get("WILL_FAIL"):
            continue
        whole = {"command": command, "areas": own, "folder": given.get("WORKING_DIRECTORY", BUILD),
                 "environment": dict(e.split("=", 1) for e in given.get("ENVIRONMENT", []))}
        source = glob.glob(os.path.join(TREE, "tests/unit/*", f"suite_{command[-1]}.c"))
        if os.path.basename(command[0]) != "gpurt-test" or "--case" in command or not source:
            tests[name] = whole
            continue
        with open(source[0]) as f:
            # Some suites have a macro of their own: LOOK_CASE().
            cases = re.findall(r"\b(?:[A-Z_]+_CASE|cmocka_unit_test)\(([a-z0-9_]+)\)(?=\s*[,}])", f.read())
        for case in cases:
            tests[f"{name}:{case}"] = {**whole, "command": command[:1] + ["--case", case] + command[1:]}
        if not cases:
            sys.exit(f"{source[0]}: no cases were read")
    return tests


def kernels_of(path):
    """A pattern of the kernels that a file of kernels is a part of."""
    wanted = set()
    for top in glob.glob(os.path.join(TREE, "shaders", "**", "*.k"), recursive=True):
        seen, left = set(), [os.path.relpath(top, TREE)]
        while left:
            one = left.pop()
            if one not in seen and os.path.exists(os.path.join(TREE, one)):
                seen.add(one)
                with open(os.path.join(TREE, one)) as f:
                    left += ["shaders/" + name for name in re.findall(r'^#include "([^"]+)"', f.read(), re.M)]
        if path in seen:
            wanted.add(re.escape(os.path.basename(top)[:-2]))
    # An environment's kernels are named env_user.
    return re.compile(r"(\w+_)?(" + "|".join(wanted) + r")(_\w+)?")


def judge(mutants, areas, only, most, slow, jobs, say):
    tests = tests_of(areas, only)
    reaches, times = collections.defaultdict(set), {}

    def first_run(name):
        log = os.path.join(WORK, "reached." + name.replace("/", "_"))
        if os.path.exists(log):
            os.remove(log)
        passed, seconds = run(tests[name], HANGS, slow, GPURT_MUTANT_REACHED=log)
        if not passed:
            say(f"{name}: {seconds:.0f} s, " + ("too slow" if passed is None or seconds >= slow else "fails by itself") +
                ", left out")
            return
        times[name] = seconds
        if os.path.exists(log):
            with open(log) as f:
                for what in set(f.read().split()):
                    reaches[what].add(name)
            os.remove(log)

    def notice(m, names, environment):
        """The first test that fails, or None, and how many were run: for so many seconds."""
        count, spent = 0, 0
        for name in sorted(names, key=lambda n: (m["area"] not in tests[n]["areas"], times[n])):
            spent += times[name]
            if count and spent > most:
                break
            count += 1
            passed = run(tests[name], HANGS, 10 + 10 * times[name], **environment)[0]
            # One that hangs has noticed, if it does not hang without the mistake too.
            if passed is False or (passed is None and run(tests[name], HANGS, slow)[0]):
                return name, count
        return None, count

    def one(m):
        begin = time.monotonic()
        if m["kernel"]:
            own = kernels_of(m["file"])
            near = {n for kernel in reaches for n in reaches[kernel] if own.fullmatch(kernel) and ":" in n}
            # One that does not compile is one that the compiler finds.
            built = plant_kernel(m, True)
            m["found_by"], m["ran"] = notice(m, near, {}) if built else ("the compiler", 0)
        else:
            near = reaches[str(m["number"])]
            m["found_by"], m["ran"] = notice(m, near, {"GPURT_MUTANT": str(m["number"])})
        m["reached_by"] = len(near)
        say(f"{m['file']}:{m['line']}: {m['rule']}: " + (
            f"found by {m['found_by']}" if m["found_by"] else "NOT FOUND" if near else "NOT REACHED") +
            f" ({m['ran']} of {len(near)}, {time.monotonic() - begin:.0f} s)")

    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(first_run, tests))
        say(f"{len(times)} tests were run once in {time.monotonic() - begin:.0f} s, {sum(times.values()):.0f} s of the cores")
        list(pool.map(one, [m for m in mutants if not m["kernel"]]))
    # A kernel's mistake is in the one build that there is.
    for m in mutants:
        if m["kernel"]:
            one(m)
            plant_kernel(m, False)


def main():
    parser = argparse.ArgumentParser(usage="ci/mutate.sh [--area NAME] [--count N] [--seed S] [--most SECONDS] "
                                     "[--slow SECONDS] [--jobs N] [--tests PATTERN] [--again FILE] [--output FILE] [--list]")
    parser.add_argument("--area", default=",".join(AREAS))
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--most", type=float, default=600)
    parser.add_argument("--slow", type=float, default=900)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tests", default=".*")
    parser.add_argument("--again")
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
    set_of_files = {path for path in files if os.path.isfile(os.path.join(ROOT, path))}
    # What an earlier run copied and is gone by now would be built too.
    for folder, below, names in os.walk(TREE):
        if folder == TREE and "build" in below:
            below.remove("build")
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, TREE) not in set_of_files:
                os.remove(path)
    for path in filter(None, files):
        source, target = os.path.join(ROOT, path), os.path.join(TREE, path)
        if not os.path.isfile(source):
            continue
        with open(source, "rb") as f:
            now = f.read()
        if path == "runtime/device/kernel.c":
            # Tests that have a kernel built are noted, for mistakes in it.
            now, count = re.subn(rb"(\nstatic struct grt_kernel \*build\([^{;]*)\{",
                                 rb"\1{ extern void grt_mutant_kernel(const char *name); grt_mutant_kernel(info->name);",
                                 now)
            if count != 1:
                sys.exit(f"{path}: the function that builds kernels was not found")
        if os.path.exists(target):
            with open(target, "rb") as f:
                if f.read() == now:
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as f:
            f.write(now)
        shutil.copymode(source, target)
    with open(os.path.join(WORK, "switch.c"), "w") as f:
        f.write(SWITCH)
    switch = os.path.join(WORK, "switch.o")
    subprocess.run(["cc", "-O1", "-fPIC", "-c", os.path.join(WORK, "switch.c"), "-o", switch], check=True)
    # The flags of any build: a compiler's cache serves all files without a mistake.
    subprocess.run(["cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
                    f"-DCMAKE_C_STANDARD_LIBRARIES={switch}"] +
                   ([f"-DGPURT_GLSLANG={a.glslang}"] if a.glslang else []), check=True, stdout=subprocess.DEVNULL)

    mutants = again(a.again) if a.again else choose(areas, a.count, [int(seed) for seed in a.seed.split(",")])
    areas = [n for n in areas if any(m["area"] == n for m in mutants)] if a.again else areas
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
                told = {k: m.get(k) for k in ("area", "file", "line", "column", "rule", "was", "planted", "reached_by",
                                              "ran", "found_by")}
                f.write(json.dumps({**told, "seed": m["seed"]}) + "\n")
    for seed in sorted({m["seed"] for m in mutants}):
        print(f"\nseed {seed}\n{'area':8} planted found")
        for area in areas + ["all"]:
            own = [m for m in mutants if area in (m["area"], "all") and m["seed"] == seed]
            found = sum(m["found_by"] is not None for m in own)
            if own:
                print(f"{area:8} {len(own):7} {found:5}  {100 * found / len(own):.0f} %")
    left = [m for m in mutants if not m["found_by"]]
    print("\nnot found:" if left else "\nall were found")
    for m in left:
        print(f"{m['file']}:{m['line']}: {m['rule']}, {m['ran']} of {m['reached_by']} tests: {m['was'][:100]}")


main()
