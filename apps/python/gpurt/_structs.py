# SPDX-License-Identifier: Apache-2.0
"""The structs and functions of the public headers; tests/python/layout.py compares both.

A struct is a text: a type and a colon, then the fields of that type, in their order.
"""

import ctypes
import operator
from ctypes import CFUNCTYPE, POINTER, Structure, c_bool, c_void_p

from ._errors import ConfigError
from ._find import library

STOP = CFUNCTYPE(c_bool)

_TYPES = {
    "bool": c_bool,
    "enum": ctypes.c_int,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "i64": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
    "text": ctypes.c_char_p,
    "texts": POINTER(ctypes.c_char_p),
    "any": c_void_p,  # some pointer
    "size": ctypes.c_size_t,
    "stop": STOP,
    "void": None,
}


def _type(word):
    """`u32`, `char*16` for an array, `>name` for a pointer to a struct."""
    kind, _, count = word.partition("*")
    if kind == "char":
        return ctypes.c_char * int(count)
    found = POINTER(_TYPES[kind[1:]]) if kind.startswith(">") else _TYPES[kind]
    return found * int(count) if count else found


# ctypes keeps the low bits of a number that does not fit, so that -1 would be four billions.
_UNSIGNED = {ctypes.c_uint32: 32, ctypes.c_uint64: 64}


def whole(name, value, bits=32):
    """A number of a struct or a call, from 0 on; ConfigError where it is none."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ConfigError(f"{name}: a whole number is wanted, not {value!r}") from None
    if not 0 <= number < 1 << bits:
        raise ConfigError(f"{name}: {number} is not from 0 to {(1 << bits) - 1}")
    return number


def _struct(name, text):
    kind, fields = None, []
    for word in text.split():
        if word.endswith(":"):
            kind = _type(word[:-1])
        else:
            fields.append((word, kind))
    bits = {field: _UNSIGNED[of] for field, of in fields if of in _UNSIGNED}

    def assign(self, field, value):
        if field in bits:
            value = whole(field, value, bits[field])
        Structure.__setattr__(self, field, value)

    made = type("grt_" + name, (Structure,), {"_fields_": fields, "__setattr__": assign})
    _TYPES[name] = made
    return made


dev_desc = _struct(
    "dev_desc",
    """text: backend device  bool: require_gpu validate  f64: mem_fraction  u64: mem_limit
    u32: shmem_limit  f64: max_submit_ms  bool: reverse_windows as_gpu""",
)
matrix_shape = _struct("matrix_shape", "u32: m n k  enum: in out")
caps = _struct(
    "caps",
    """u32: software integrated compute_units subgroup shuffle vector max_wg  u32*3: max_groups
    u32: shmem align f16_storage f16_arith i16_arith bf16 matrix_convert mma_layout imports
    timestamps  u64: max_binding max_texels max_buffer memory  u32: matrix_shape_count
    matrix_shape*16: matrix_shapes""",
)
dev_info = _struct(
    "dev_info",
    """enum: backend  u32: index  char*16: selector  char*128: name  char*64: vendor
    char*128: driver  char*64: driver_version api_version  char*16: pci  caps: caps""",
)
backend_report = _struct(
    "backend_report", "enum: backend  u32: device_count  char*256: problem note"
)
dev_list = _struct("dev_list", "u32: count  >dev_info: devices  backend_report*3: reports")

archive_tensor = _struct(
    "archive_tensor",
    "char*192: name  enum: dtype  u32: rank  u64*5: shape  u64: bytes  any: data  bool: lent",
)
archive_value = _struct(
    "archive_value", "char*64: name  enum: type  i64: whole  f64: real  text: text"
)
archive = _struct(
    "archive",
    """u32: tensor_count  >archive_tensor: tensors  u32: value_count  >archive_value: values
    char*1024: path  any: give_back  any: lender""",
)


def _words(call):
    """The words of a closed set, by their numbers."""
    call.restype = ctypes.c_char_p
    words = []
    while call(len(words)):
        words.append(call(len(words)).decode())
    return words


FIELDS = _words(library.grt_run_field_word)
EVENTS = _words(library.grt_run_event_word)
NEWS_ROW = 4  # GRT_RUN_NEWS_ROW
ENDED_SIGNAL, ENDED_NONFINITE, ENDED_FAILED = 7, 8, 9

run_row = _struct(
    "run_row",
    f"""enum: event  u64: step steps epochs  f64: eta score  u64: known
    f64*{len(FIELDS)}: numbers  text*{len(FIELDS)}: texts""",
)
run_report = _struct("run_report", "enum: news  u64: step steps  >run_row: row  text: text")
RUN_STOP = _TYPES["run_stop"] = CFUNCTYPE(c_bool, c_void_p)
RUN_REPORT = _TYPES["run_hook"] = CFUNCTYPE(None, c_void_p, POINTER(run_report))
supervised_desc = _struct(
    "supervised_desc",
    """any: dev config make of from comm  bool: resume  any: resume_from  bool: force lockstep
    run_stop: stop  run_hook: report  any: context""",
)
evaluation = _struct(
    "evaluation", "u64: samples  f64: loss accuracy top5 seconds  u32: loss_count  f64*4: losses"
)
scores = _struct("scores", "u64: samples  u32: classes  f64: mae mse r2 accuracy f1 auc")
onnx_export = _struct("onnx_export", "bool: probabilities embeddings")

env_setting = _struct("env_setting", "text: name  bool: whole  text: value least most text")
env_world = _struct(
    "env_world",
    """text: agents obs global act choices words shapes bits  >env_setting: settings
    any: rules  texts: terms""",
)
env_info = _struct(
    "env_info",
    """text: name  u32: obs act state  texts: state_names  u32: substeps phases length  f32: dt
    u32: operations  f32: step_size noise_std  u32: normalise shapes  any: source
    >env_world: world""",
)
env_value = _struct("env_value", "text: name  f64: value")
worlds_desc = _struct(
    "worlds_desc",
    """>env_info: env  >env_value: settings  u32: setting_count copies first phase length
    bool: once""",
)
worlds_sizes = _struct("worlds_sizes", "u32: agents obs global act choices words terms shapes")
stepper_view = _struct(
    "stepper_view",
    """u32: copies rows length  worlds_sizes: sizes
    any: actions choices obs global mask rewards ends""",
)

policy = _struct("policy", "u32: hidden  bool: bias tanh")
es_desc = _struct(
    "es_desc",
    """>env_info: env  policy: policy  enum: algo  u32: phase num_envs num_dirs dir_chunk top_dirs
    episode_length  f32: step_size noise_std  u32: seed  bool: no_normalise blind restart
    f64: max_submit_ms  stop: stop  any: comm  f64: ema""",
)
es_report = _struct(
    "es_report",
    """u32: iteration  f32: mean_return best_return spread good_rate fall_rate
    f64: steps seconds busy  bool: stopped  f32: best_good""",
)
ppo_report = _struct(
    "ppo_report",
    """bool: stopped  u32: iteration  f64: rows episodes mean_return length  f64*8: terms
    f64: policy_loss value_loss entropy kl clip_rate explained grad_norm lr  u32: epochs
    f64: seconds acting valuing update""",
)
ppo_task_desc = _struct(
    "ppo_task_desc",
    """any: dev config  >env_info: env  >env_value: settings  u32: setting_count  any: archive
    stop: stop  any: comm""",
)
ppo_task = _struct("ppo_task", "any: ppo worlds trials  u32: copies steps parts")

# What functions return, their names, and what they take.
for _line in """
    enum last_status
    text last_error
    text status_text enum
    void log_set any any enum
    >dev_list dev_list_create
    void dev_list_destroy any
    any dev_create any
    void dev_destroy any
    >dev_info dev_info any
    any config_create enum
    void config_destroy any
    bool config_read any text
    bool config_override any text
    enum config_key_find enum text
    bool config_given any enum
    bool config_effective any
    void config_settle any
    size config_value_text any enum any size
    >archive archive_create
    void archive_destroy any
    >archive checkpoint_newest text
    >archive model_load text
    bool model_save any text bool any
    bool onnx_write any any text
    any supervised_create any
    void supervised_destroy any
    any supervised_driver any
    enum run_go any
    bool task_take_network any any
    bool evaluate any any any enum stop any
    bool score any any any enum stop any
    >archive predict any any any stop
    >env_info env_open text
    void env_close any
    any stepper_create any any
    void stepper_destroy any
    >stepper_view stepper_view any
    bool stepper_reset any u32
    bool stepper_step any
    bool stepper_state any any u64
    bool stepper_set_state any any u64
    bool policy_parse text any
    any es_create any any
    void es_destroy any
    bool es_iterate any any
    bool es_evaluate any u32 any
    bool es_returns any any
    >es_desc es_desc_of any
    bool es_save any any
    bool es_load any any bool
    >ppo_task ppo_task_create any
    void ppo_task_destroy any
    bool ppo_task_save any text any
    bool ppo_task_recall any any bool
    bool ppo_task_setting any u32 any
    bool ppo_task_iterate any any
    bool ppo_evaluate any any enum u32 any
    bool ppo_task_load any any enum
    text worlds_term any u32
""".strip().splitlines():
    _result, _name, *_arguments = _line.split()
    _call = getattr(library, "grt_" + _name)
    _call.restype, _call.argtypes = _type(_result), [_type(word) for word in _arguments]
