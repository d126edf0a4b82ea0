// SPDX-License-Identifier: Apache-2.0
// Every key of a training config, once; see config.h.
#ifndef GRT_CONFIG_KEYS_H
#define GRT_CONFIG_KEYS_H

// Sections that a file may have. A section may be named as a key is (`optimizer: adam`, or
// `optimizer:` with keys below it).
#define GRT_CONFIG_SECTIONS(X)                                                                     \
    X("data")                                                                                      \
    X("dataset")                                                                                   \
    X("dataloader")                                                                                \
    X("transform")                                                                                 \
    X("model")                                                                                     \
    X("network")                                                                                   \
    X("training")                                                                                  \
    X("train")                                                                                     \
    X("trainer")                                                                                   \
    X("early_stopping")                                                                            \
    X("gpu")                                                                                       \
    X("hardware")                                                                                  \
    X("optimizer")                                                                                 \
    X("scheduler")                                                                                 \
    X("loss")                                                                                      \
    X("checkpoint")                                                                                \
    X("logging")                                                                                   \
    X("benchmark")                                                                                 \
    X("es")                                                                                        \
    X("ppo")                                                                                       \
    X("env")

// X(NAME, field, TYPE, section, fallback, min, max, words, aliases, help): every key. `section` is
// where the writer puts it. `words` are the values of a WORD, each with what else is taken for it:
// "f16=true=half|..."; of a TREE they are an example. An alias "a.b" is b inside section a. A
// fallback is read as a value is, but may lie outside the range; "" leaves the field zero.
//
// Four lists: what every kind of training takes, supervised training, evolution strategies, and
// PPO, which takes keys of the others too. Names are unique over all of them, so that a key of
// another kind can be named as such. An alias is looked for among the keys of the config's own kind
// first.
#define GRT_CONFIG_SUPERVISED_KEYS(X)                                                              \
    X(DATA, data, TEXT, "data", "", 0, 0, "",                                                      \
      "data_path data.path data.file data_file dataset dataset.path h5_path train_data",           \
      "file with the samples: HDF5, .csv, .tsv, .npz or .npy")                                     \
    X(INPUTS, inputs, NAMES, "data", "", 0, 0, "", "input input_keys input_datasets",              \
      "its data sets that are the network's inputs, side by side; default: x; `input: NAME` of a " \
      "list of layers takes one")                                                                  \
    X(TARGETS, targets, NAMES, "data", "", 0, 0, "", "target target_keys target_datasets labels",  \
      "its data sets that are the targets; default: y")                                            \
    X(SAMPLE_WEIGHTS, sample_weights, TEXT, "data", "", 0, 0, "",                                  \
      "sample_weight data.weights weight_column",                                                  \
      "its data set with a weight from 0 on for each sample, of .csv and .tsv a column, of .npy "  \
      "another .npy: losses and accuracies, of the validation too, are weighted means; default "   \
      "or none: all count alike")                                                                  \
    X(BATCH_SIZE, batch_size, WHOLE, "data", "0", 1, 1048576, "",                                  \
      "train_batch_size per_device_train_batch_size batch",                                        \
      "samples of one batch; default: by the device's profile and the model")                      \
    X(NUM_WORKERS, num_workers, WHOLE, "data", "0", 0, 256, "",                                    \
      "workers dataloader_num_workers n_workers",                                                  \
      "threads that read data, 0: the training thread; default: by the device's profile")          \
    X(PREFETCH_FACTOR, prefetch_factor, WHOLE, "data", "2", 1, 64, "", "prefetch",                 \
      "batches that each worker reads ahead")                                                      \
    X(PIN_MEMORY, pin_memory, FLAG, "data", "true", 0, 0, "", "dataloader_pin_memory",             \
      "read into memory that the device copies from directly")                                     \
    X(PERSISTENT_WORKERS, persistent_workers, FLAG, "data", "true", 0, 0, "", "",                  \
      "workers live as long as the run; false: they are started for each epoch")                   \
    X(CACHE, cache, WORD, "data", "auto", 0, 0, "auto|none=false|ram=true=memory=host|device=gpu", \
      "cache_data data.cache_mode",                                                                \
      "where the data set is kept: the device, memory or its file; auto: the first that it fits")  \
    X(SHUFFLE, shuffle, FLAG, "data", "true", 0, 0, "", "", "a new order of samples each epoch")   \
    X(SHUFFLE_WINDOW, shuffle_window, WHOLE, "data", "0", 0, 1099511627776, "",                    \
      "shuffle_buffer shuffle_buffer_size",                                                        \
      "samples that are mixed at a time, from 16 pieces of the file, for files larger than the "   \
      "memory; the pieces come from all over it, and validation gets whole ones; 0: all are "      \
      "mixed; compressed data have windows of their own chunks")                                   \
    X(DROP_LAST, drop_last, FLAG, "data", "false", 0, 0, "", "dataloader_drop_last",               \
      "leave out the last batch of an epoch when it is not full")                                  \
    X(VALIDATION_SPLIT, validation_split, REAL, "data", "0.1", 0, 0.9, "",                         \
      "val_split validation_fraction val_fraction val_ratio valid_split test_size",                \
      "share of the samples kept for validation")                                                  \
    X(VALIDATION_DATA, validation_data, TEXT, "data", "", 0, 0, "",                                \
      "val_data validation_file val_file valid_data eval_data test_data data.val data.validation", \
      "another file with the samples of the validation, all of them; validation_split is 0 then")  \
    X(VALIDATION_TARGETS, validation_targets, NAMES, "data", "", 0, 0, "",                         \
      "val_targets val_labels validation_labels eval_targets",                                     \
      "its targets in validation_data, of a .npy another .npy; default: the names of targets")     \
    X(NORMALIZE, normalize, FLAG, "data", "false", 0, 0, "", "normalise standardize standardise",  \
      "shift and scale inputs to mean 0, deviation 1; the numbers are stored with the model")      \
    X(TRANSFORM, transform, TREE, "data", "", 0, 0, "random_crop(padding=4) | normalize",          \
      "transform.train transforms train_transform",                                                \
      "what happens to images before the network, step by step, at random in training: resize, "   \
      "center_crop, random_crop, random_resized_crop, random_horizontal_flip, color_jitter, "      \
      "random_grayscale, gaussian_blur, random_erasing, cutout, normalize, mixup, cutmix; "        \
      "default: nothing")                                                                          \
    X(EVAL_TRANSFORM, eval_transform, TREE, "data", "", 0, 0, "center_crop(32) | normalize",       \
      "transform.eval transform.val transform.test val_transform test_transform",                  \
      "the steps of evaluations where they are others; default: those of `transform`, with "       \
      "nothing at random: the middle, and no changes of colours")                                  \
    X(ON_NAN, on_nan, WORD, "data", "error", 0, 0, "error|drop|late", "",                          \
      "samples with NaN or Inf: refuse the file before the start, leave them out, or refuse them " \
      "when they are read, without a look at all of the file first")                               \
    X(FILL, fill, TEXT, "data", "", 0, 0, "", "fill_missing fillna data.fill",                     \
      "of .csv and .tsv: what stands for a missing value of an input, a number, or mean, that of " \
      "its column; default: a missing value is refused")                                           \
    X(TEST_FLIPS, test_flips, FLAG, "data", "false", 0, 0, "", "tta test_time_flips",              \
      "of images: `gpurt eval` and `gpurt predict` take the mean of what the network says of an "  \
      "image and of its mirror image")                                                             \
    X(MODEL, model, WORD, "model", "mlp", 0, 0,                                                    \
      "mlp|points=pointnet|small|medium|large|resnet18|resnet34|resnet50|resnet101|resnet152|"     \
      "wideresnet=wide_resnet=wrn",                                                                \
      "model.name model.type model_name model_type model_size architecture network.type",          \
      "mlp, points (a point-set network), an mlp of depth 3, hidden 16 (small), 6, 64 (medium), "  \
      "12, 128 (large), or a network over images, such as resnet18, resnet18(stem=cifar, "         \
      "zero_init=true) or wideresnet(depth=28, width=2)")                                          \
    X(NETWORK, network, TREE, "model", "", 0, 0, "[{linear: 64}, relu, {linear: out}]", "",        \
      "a list of layers; default: none, the network is of the kind that `model` says, which "      \
      "takes "                                                                                     \
      "a list too")                                                                                \
    X(DEPTH, depth, WHOLE, "model", "3", 1, 256, "",                                               \
      "num_layers n_layers layers num_hidden_layers", "hidden layers")                             \
    X(HIDDEN, hidden, WHOLES, "model", "64", 1, 65536, "",                                         \
      "hidden_dim hidden_size hidden_channels hidden_units hidden_sizes hidden_dims width",        \
      "width of the hidden layers, or a list with the width of each, which says `depth` too")      \
    X(ACTIVATION, activation, WORD, "model", "relu", 0, 0,                                         \
      "relu|gelu=gelu_tanh=gelu_new|tanh|gelu_exact|silu=swish|sigmoid",                           \
      "act act_fn nonlinearity",                                                                   \
      "function after each hidden layer; gelu is the tanh form, PyTorch's approximate='tanh'")     \
    X(RESIDUAL, residual, FLAG, "model", "false", 0, 0, "", "residuals skip_connections",          \
      "from the second on, hidden layers add their input to what they give")                       \
    X(LAYER_NORM, layer_norm, FLAG, "model", "false", 0, 0, "", "layernorm use_layer_norm",        \
      "normalise what the activation of each hidden layer gets: activation(norm(W x + b))")        \
    X(POOLING, pooling, WORD, "model", "max", 0, 0, "mean=avg|max", "pool",                        \
      "how a point-set network sums up its points")                                                \
    X(HEAD_DEPTH, head_depth, WHOLE, "model", "1", 0, 256, "", "",                                 \
      "hidden layers behind the pooling of a point-set network")                                   \
    X(LOSS, loss, WORD, "model", "auto", 0, 0,                                                     \
      "auto|mse=mse_loss=mseloss=l2|huber=huberloss=smooth_l1=smoothl1loss|"                       \
      "cross_entropy=ce=cross-entropy=crossentropyloss|"                                           \
      "bce=bce_with_logits=bcewithlogitsloss|l1=mae=l1loss|nt_xent=ntxent=nt-xent=ntxentloss",     \
      "criterion loss_fn loss.name loss.type loss_function",                                       \
      "auto: cross_entropy for whole numbers that are no more classes than rows, else mse; "       \
      "nt_xent has no targets")                                                                    \
    X(LOSSES, losses, NAMES, "model", "", 0, 0, "", "loss_list criteria",                          \
      "one loss for each data set of targets, such as mse,cross_entropy(5) with the number of "    \
      "classes: their means are added up; default: the one loss")                                  \
    X(LOSS_WEIGHTS, loss_weights, REALS, "model", "", 0, 1e9, "", "loss_weight",                   \
      "of losses: what each counts in the sum, above 0; default: 1 each")                          \
    X(HUBER_DELTA, huber_delta, REAL, "model", "1", 1e-9, 1e9, "", "delta loss.delta",             \
      "where the Huber loss turns from square to linear")                                          \
    X(LABEL_SMOOTHING, label_smoothing, REAL, "model", "0", 0, 0.999999, "", "smoothing",          \
      "of cross_entropy: share of the target that all classes get alike, in training")             \
    X(CLASS_WEIGHTS, class_weights, REALS, "model", "", 0, 1e9, "", "loss.weight",                 \
      "of cross_entropy: a weight for each class, in training: the loss is the weighted mean, as " \
      "PyTorch's; default: 1 for each")                                                            \
    X(TEMPERATURE, temperature, REAL, "model", "0.5", 0.025, 1000, "",                             \
      "tau loss.temperature nt_xent_temperature", "of nt_xent: cosines are divided by it")         \
    X(PROJECTION, projection, WHOLES, "model", "[512, 128]", 1, 65536, "",                         \
      "projection_head projection_dims",                                                           \
      "of nt_xent: widths of the layers behind the network whose outputs are compared, relu "      \
      "between them; evaluations leave them out")                                                  \
    X(EPOCHS, epochs, WHOLE, "training", "10", 0, 1000000, "",                                     \
      "num_epochs max_epochs n_epochs num_train_epochs",                                           \
      "passes over the data; 0: none, and the first parameters are written")                       \
    X(LIMIT_TRAIN_BATCHES, limit_train_batches, AMOUNT, "training", "0", 0, 1e12, "",              \
      "train_batches steps_per_epoch limit_batches",                                               \
      "batches of an epoch: a number, or a share of all such as 0.1; other ones each epoch where " \
      "the data are shuffled; 0: all")                                                             \
    X(OVERFIT_BATCHES, overfit_batches, AMOUNT, "training", "0", 0, 1e12, "", "",                  \
      "a check that a network can learn at all: an epoch is the same so many batches each time, "  \
      "or that share of all, and they are its validation too; 0: no such check")                   \
    X(VAL_CHECK_INTERVAL, val_check_interval, AMOUNT, "training", "0", 0, 1e12, "",                \
      "eval_steps validation_interval eval_every validate_every val_interval",                     \
      "steps from one validation to the next, or that share of an epoch; 0: each epoch")           \
    X(TARGET_LOSS, target_loss, REAL, "training", "0", 0, 1000000000, "",                          \
      "until_loss stopping_threshold early_stopping.stopping_threshold",                           \
      "end when the loss of the validation, or of training without one, is at most this; 0: "      \
      "never")                                                                                     \
    X(TARGET_ACCURACY, target_accuracy, REAL, "training", "0", 0, 1, "", "until_accuracy",         \
      "end when the accuracy of the validation is at least this, a share; 0: never")               \
    X(PRECISION, precision, WORD, "training", "f32", 0, 0,                                         \
      "f32=false=fp32=float32=no=32|f16=true=fp16=float16=half=16-mixed=16|bf16=bfloat16=bf16-"    \
      "mixed",                                                                                     \
      "use_amp amp mixed_precision amp_dtype fp16 dtype use_fp16",                                 \
      "type of activations and products; parameters stay f32")                                     \
    X(ACCUMULATE, accumulate, WHOLE, "training", "1", 1, 4096, "",                                 \
      "gradient_accumulation_steps gradient_accumulation accumulate_grad_batches grad_accum "      \
      "grad_accum_steps accumulation_steps",                                                       \
      "batches that make one step together, as one of batch_size * accumulate samples would; "     \
      "default: 1, or by the device's profile where batch_size is not given either")               \
    X(ACCUMULATE_EXACT, accumulate_exact, FLAG, "training", "false", 0, 0, "",                     \
      "exact_accumulation grad_cache gradcache",                                                   \
      "of nt_xent: samples are told apart from those of all micro-batches of a step, not of "      \
      "their own alone; each goes forward twice")                                                  \
    X(KNN_EVERY, knn_every, WHOLE, "training", "0", 0, 1000000, "", "knn_interval",                \
      "of nt_xent: epochs between trials by nearest neighbours, where the file has labels; 0: "    \
      "never; default: a tenth of all")                                                            \
    X(MICRO_BATCHES, micro_batches, WHOLE, "training", "0", 0, 1024, "", "",                       \
      "parts of a step, or of PPO's copies, a power of two, that ranks share out; any number of "  \
      "ranks that divides it gives the same bits; default: one for each rank, more with "          \
      "rank_shares")                                                                               \
    X(RANK_SHARES, rank_shares, TEXT, "training", "", 0, 0, "", "",                                \
      "which micro-batches of a step ranks get: equal, as many each; speed, by the time that one " \
      "takes on each rank's device, measured at the start; or how many each, as 5,3; with the "    \
      "same micro_batches, and devices of one kind, the bits are the same; default: equal")        \
    X(SYNC_BATCH_NORM, sync_batch_norm, FLAG, "training", "false", 0, 0, "",                       \
      "sync_bn use_sync_bn sync_batchnorm",                                                        \
      "batch norms take the statistics of a micro-batch of every rank, not of their own alone")    \
    X(AUTO_ACCUMULATE, auto_accumulate, FLAG, "training", "false", 0, 0, "",                       \
      "auto_find_batch_size",                                                                      \
      "split a batch that does not fit into micro-batches of the same result")                     \
    X(ACTIVATION_CHECKPOINTING, activation_checkpointing, FLAG, "training", "false", 0, 0, "",     \
      "gradient_checkpointing use_gradient_checkpointing",                                         \
      "compute activations twice instead of keeping them")                                         \
    X(ON_NAN_LOSS, on_nan_loss, WORD, "training", "stop", 0, 0,                                    \
      "stop=error=true|skip=false|rollback", "on_inf_loss terminate_on_nan",                       \
      "a loss of NaN or Inf: end the run, leave out that step, or go back to the last checkpoint") \
    X(OPTIMIZER, optimizer, WORD, "optimizer", "adamw", 0, 0, "sgd|adam|adamw|lars",               \
      "optimizer.name optimizer.type optim optimizer_name",                                        \
      "with PyTorch's defaults; lars: sgd whose step for each matrix is by its own length")        \
    X(LEARNING_RATE, learning_rate, REAL, "optimizer", "0.001", 1e-12, 1000, "",                   \
      "lr base_lr init_lr", "step size")                                                           \
    X(LR_RULE, lr_rule, WORD, "optimizer", "none", 0, 0, "none=false|sqrt=true",                   \
      "lr_scaling scale_lr",                                                                       \
      "sqrt: learning_rate is for base_batch_size samples, and grows with the root of the batch")  \
    X(BASE_BATCH_SIZE, base_batch_size, WHOLE, "optimizer", "256", 1, 1048576, "", "",             \
      "see lr_rule")                                                                               \
    X(MOMENTUM, momentum, REAL, "optimizer", "0", 0, 0.999999, "", "", "of sgd and lars")          \
    X(NESTEROV, nesterov, FLAG, "optimizer", "false", 0, 0, "", "use_nesterov",                    \
      "sgd, lars: Nesterov's momentum")                                                            \
    X(TRUST_COEFFICIENT, trust_coefficient, REAL, "optimizer", "0.001", 1e-9, 1000, "",            \
      "trust_coef eta", "of lars: the step of a matrix over its length, with learning_rate 1")     \
    X(BETAS, betas, REALS, "optimizer", "[0.9, 0.999]", 0, 0.999999999, "", "adam_betas",          \
      "of adam and adamw")                                                                         \
    X(EPS, eps, REAL, "optimizer", "1e-8", 0, 1, "", "epsilon adam_eps adam_epsilon",              \
      "of adam and adamw")                                                                         \
    X(WEIGHT_DECAY, weight_decay, REAL, "optimizer", "0", 0, 1000, "", "wd l2_reg",                \
      "default: 0.01 for adamw, else 0")                                                           \
    X(DECAY_OF, decay_of, WORD, "optimizer", "all", 0, 0, "all|matrices=weights", "",              \
      "what weight_decay is for: all parameters, as in PyTorch, so that results compare; or "      \
      "matrices: not norms and biases, which it pulls to 0 without making the network simpler")    \
    X(FREEZE, freeze, NAMES, "optimizer", "", 0, 0, "", "frozen freeze_layers",                    \
      "parameters that stay as they are, by name (* and ? stand for others), or body: all but "    \
      "those of the last layer; default: none")                                                    \
    X(GROUPS, groups, TREE, "optimizer", "", 0, 0, "[{match: \"*.bias\", weight_decay: 0}]",       \
      "param_groups parameter_groups",                                                             \
      "a learning_rate or weight_decay for parameters by name (* and ? stand for others), as in "  \
      "the example; the first that matches counts, and learning_rate 0 leaves them as they are; "  \
      "default: none")                                                                             \
    X(MAX_GRAD_NORM, max_grad_norm, REAL, "optimizer", "0", 0, 1e9, "",                            \
      "clip_grad_norm grad_clip gradient_clip gradient_clip_val clip_norm gradient_clipping",      \
      "gradients longer than this are shortened; 0: never")                                        \
    X(SCHEDULE, schedule, WORD, "scheduler", "constant", 0, 0,                                     \
      "constant=none=false|cosine=cosine_annealing=cosineannealinglr|step=step_lr=steplr|"         \
      "one_cycle=onecycle=onecyclelr=1cycle|linear=linear_with_warmup=linear_decay=polynomial|"    \
      "plateau=reduce_on_plateau=reducelronplateau=reduce_lr_on_plateau",                          \
      "scheduler lr_scheduler lr_schedule scheduler.name scheduler.type lr_scheduler_type",        \
      "how the learning rate goes")                                                                \
    X(WARMUP_STEPS, warmup_steps, WHOLE, "scheduler", "0", 0, 1000000000, "",                      \
      "warmup num_warmup_steps lr_warmup_steps",                                                   \
      "steps in which the learning rate grows first, from learning_rate / warmup_steps on")        \
    X(WARMUP_RATIO, warmup_ratio, REAL, "scheduler", "0", 0, 0.9, "",                              \
      "warmup_share warmup_fraction pct_start",                                                    \
      "the same as a share of all steps; default: 0, of one_cycle 0.3")                            \
    X(DIV_FACTOR, div_factor, REAL, "scheduler", "25", 1, 1e9, "", "",                             \
      "one_cycle begins with learning_rate over this")                                             \
    X(FINAL_DIV_FACTOR, final_div_factor, REAL, "scheduler", "10000", 1, 1e12, "", "",             \
      "and ends with what it began with over this")                                                \
    X(MIN_LEARNING_RATE, min_learning_rate, REAL, "scheduler", "0", 0, 1000, "",                   \
      "min_lr eta_min lr_min", "where cosine and linear end, and below which plateau never goes")  \
    X(PLATEAU_FACTOR, plateau_factor, REAL, "scheduler", "0.1", 1e-9, 0.999999, "",                \
      "lr_factor scheduler.factor", "what schedule plateau multiplies the learning rate by")       \
    X(PLATEAU_PATIENCE, plateau_patience, WHOLE, "scheduler", "10", 0, 1000000000, "",             \
      "lr_patience scheduler.patience",                                                            \
      "after more than so many validations in a row without an improvement of metric_for_best")    \
    X(PLATEAU_THRESHOLD, plateau_threshold, REAL, "scheduler", "0.0001", 0, 1, "",                 \
      "scheduler.threshold", "an improvement is larger than this share of the best")               \
    X(PLATEAU_COOLDOWN, plateau_cooldown, WHOLE, "scheduler", "0", 0, 1000000000, "",              \
      "scheduler.cooldown", "validations after each time that do not count")                       \
    X(LR_STEP, lr_step, WHOLE, "scheduler", "0", 0, 1000000000, "",                                \
      "lr_step_size scheduler.step_size",                                                          \
      "epochs after which schedule step multiplies by gamma; 0: a third of all")                   \
    X(GAMMA, gamma, REAL, "scheduler", "0.1", 1e-9, 1, "", "lr_gamma lr_decay", "see lr_step")     \
    X(LOSS_SCALE, loss_scale, REAL, "training", "65536", 1, 4294967296.0, "",                      \
      "init_scale initial_loss_scale", "first loss scale of f16")                                  \
    X(GROWTH_INTERVAL, growth_interval, WHOLE, "training", "2000", 1, 1000000000, "", "",          \
      "steps without overflow after which the loss scale doubles")                                 \
    X(CHECKPOINT_DIR, checkpoint_dir, TEXT, "checkpoint", "checkpoints", 0, 0, "",                 \
      "output_dir save_dir checkpoint.dir checkpoint_path ckpt_dir", "folder of the checkpoints")  \
    X(CHECKPOINT_INTERVAL, checkpoint_interval, WHOLE, "checkpoint", "0", 0, 1000000000, "",       \
      "save_steps save_interval save_every checkpoint.interval save_freq",                         \
      "steps between checkpoints; 0: each epoch, at most twice a second")                          \
    X(METRIC_FOR_BEST, metric_for_best, WORD, "checkpoint", "loss", 0, 0, "loss|accuracy|top5",    \
      "metric_for_best_model monitor early_stopping_metric",                                       \
      "what of a validation makes best.h5, and is an improvement for patience")                    \
    X(KEEP, keep, WHOLE, "checkpoint", "3", 1, 1000000, "",                                        \
      "save_total_limit keep_last keep_checkpoints max_to_keep save_top_k",                        \
      "newest checkpoints that are kept, besides the best")                                        \
    X(LOG_INTERVAL, log_interval, WHOLE, "logging", "50", 1, 1000000000, "",                       \
      "logging_steps log_every_n_steps log_every print_freq log_freq", "steps between log lines")  \
    X(AUTOTUNE, autotune, FLAG, "gpu", "false", 0, 0, "", "cudnn_benchmark",                       \
      "find this device's fastest settings before the start")                                      \
    X(AUTOTUNE_SECONDS, autotune_seconds, REAL, "gpu", "20", 0.1, 86400, "", "", "time for it")    \
    X(COMPILE, compile, FLAG, "gpu", "true", 0, 0, "", "torch_compile use_compile compile_model",  \
      "accepted: a step is always recorded once and replayed")                                     \
    X(EMPTY_CACHE_FREQ, empty_cache_freq, WHOLE, "gpu", "0", 0, 1000000000, "",                    \
      "empty_cache_interval empty_cache_every",                                                    \
      "accepted: memory is planned before the start and does not fragment")                        \
    X(BATCH_SIZES, batch_sizes, WHOLES, "benchmark", "", 1, 1048576, "", "",                       \
      "batch sizes that `gpurt bench` tries; default: 64-4096*4, on a GPU 256-65536*4")            \
    X(NUM_WORKERS_OPTIONS, num_workers_options, WHOLES, "benchmark", "", 0, 256, "",               \
      "benchmark.num_workers num_workers_list",                                                    \
      "numbers of workers that it tries; default: 0 and 2, on a GPU 0 and 4")                      \
    X(STEPS_PER_TEST, steps_per_test, WHOLE, "benchmark", "10", 1, 1000000, "", "benchmark.steps", \
      "steps that it times for each")                                                              \
    X(TEST_MIXED_PRECISION, test_mixed_precision, FLAG, "benchmark", "false", 0, 0, "",            \
      "test_amp", "try f16 besides f32; default: true on a GPU, else false")                       \
    X(TEST_PIN_MEMORY, test_pin_memory, FLAG, "benchmark", "false", 0, 0, "", "",                  \
      "try pin_memory on and off")

#define GRT_CONFIG_SHARED_KEYS(X)                                                                  \
    X(MAX_STEPS, max_steps, WHOLE, "training", "0", 0, 1000000000000, "", "total_steps",           \
      "end after so many steps, of es: iterations, or after `epochs` or `iterations` where they "  \
      "are given and sooner; 0: by those")                                                         \
    X(MAX_TIME, max_time, TIME, "training", "0", 0, 1000000000, "",                                \
      "max_seconds time_limit max_train_time",                                                     \
      "end after this time of training, start-up aside and resumed runs included; 0: never")       \
    X(PATIENCE, patience, WHOLE, "training", "0", 0, 1000000000, "",                               \
      "early_stopping_patience early_stop_patience early_stopping_rounds",                         \
      "end after so many validations, or trials of the policy, in a row without improvement; 0: "  \
      "never")                                                                                     \
    X(MIN_DELTA, min_delta, REAL, "training", "0", 0, 1000000000, "",                              \
      "early_stopping_min_delta early_stopping_threshold early_stopping_delta",                    \
      "what patience counts as an improvement is larger than this")                                \
    X(SEED, seed, WHOLE, "training", "0", 0, 9007199254740992, "", "random_seed manual_seed",      \
      "of everything random: the first parameters, the order of the data, the noise")              \
    X(EMA, ema, REAL, "optimizer", "0", 0, 0.9999999, "", "ema_decay model_ema_decay",             \
      "the weights of evaluations and checkpoints are a running average: this much of what it "    \
      "was, the rest of a step's result; 0: none, they are the newest")                            \
    X(LOG, log, TEXT, "logging", "", 0, 0, "", "log_file logging.file",                            \
      "file for the log, one JSON object a line")                                                  \
    X(TENSORBOARD, tensorboard, TEXT, "logging", "", 0, 0, "",                                     \
      "tensorboard_dir log_dir logging_dir logging.dir", "folder for TensorBoard's event files")   \
    X(HISTOGRAMS, histograms, FLAG, "logging", "false", 0, 0, "", "log_histograms",                \
      "with tensorboard: how the numbers of each parameter are spread, at every checkpoint")       \
    X(BACKEND, backend, WORD, "gpu", "auto", 0, 0, "auto|vulkan|opencl|ref", "gpu_backend",        \
      "the GPU API")                                                                               \
    X(DEVICE, device, TEXT, "gpu", "", 0, 0, "", "gpu.name",                                       \
      "vulkan:0, vulkan, part of a name, PCI address, cpu, or auto, the best there is; gpu, "      \
      "cuda, hip, rocm, mps, xpu: the best GPU, and no run without one; a list: one for each "     \
      "rank")                                                                                      \
    X(MEM_FRACTION, mem_fraction, REAL, "gpu", "0", 0.01, 1, "",                                   \
      "memory_fraction gpu_memory_fraction per_process_memory_fraction",                           \
      "share of the free device memory to take; default: by the device's profile")

#define GRT_CONFIG_ES_KEYS(X)                                                                      \
    X(ENV, env, TEXT, "es", "", 0, 0, "", "environment env_name env_id es.name", "environment")    \
    X(PHASE, phase, WHOLE, "es", "0", 1, 4294967295, "", "",                                       \
      "phase of the environment; 2 and up begin with the policy of the one before; default: 1")    \
    X(POLICY, policy, TEXT, "es", "", 0, 0, "", "policy_type",                                     \
      "linear, affine, mlpN or mlpN-tanh with N hidden units; default: affine")                    \
    X(ALGO, algo, WORD, "es", "ars", 0, 0, "ars|es", "algorithm",                                  \
      "augmented random search, or ranks and Adam")                                                \
    X(NUM_ENVS, num_envs, WHOLE, "es", "0", 1, 4294967295, "", "n_envs",                           \
      "environments for each side of a direction; default: by the device's profile")               \
    X(NUM_DIRS, num_dirs, WHOLE, "es", "0", 1, 4294967295, "", "num_directions n_directions",      \
      "directions of an iteration; default: by the device's profile")                              \
    X(DIR_CHUNK, dir_chunk, WHOLE, "es", "0", 1, 4294967295, "", "",                               \
      "directions run at once; bounds memory, changes no result; default: by the profile")         \
    X(TOP_DIRS, top_dirs, WHOLE, "es", "0", 1, 4294967295, "", "deltas_used",                      \
      "best directions that ars uses; default: half")                                              \
    X(STEP_SIZE, step_size, REAL, "es", "0", 1e-30, 1000000000, "", "es.learning_rate es.lr",      \
      "length of an update; default: the environment's, or 0.02")                                  \
    X(NOISE_STD, noise_std, REAL, "es", "0", 1e-45, 1000000000, "", "sigma noise_stdev",           \
      "deviation of the noise; default: the environment's, or 0.03")                               \
    X(EPISODE_LENGTH, episode_length, WHOLE, "es", "0", 1, 4294967295, "",                         \
      "max_episode_steps horizon rollout_length",                                                  \
      "steps of an episode; default: the environment's")                                           \
    X(NORMALIZE_OBSERVATIONS, normalize_observations, FLAG, "es", "true", 0, 0, "",                \
      "es.normalize es.normalise normalize_obs normalise_observations",                            \
      "shift and scale observations by their mean and deviation so far")                           \
    X(ITERATIONS, iterations, WHOLE, "es", "100", 1, 4294967295, "",                               \
      "num_iterations n_iterations n_iter", "updates in all, those of a resumed run included")     \
    X(UNTIL, until, REAL, "es", "0", 0, 1, "", "",                                                 \
      "end when the policy itself has this share of good steps; 0: never")                         \
    X(TARGET_RETURN, target_return, REAL, "es", "", -1e30, 1e30, "", "until_return",               \
      "end when the policy itself has this return; default: never")                                \
    X(DIRECTIONS, directions, TEXT, "es", "", 0, 0, "", "directions_file",                         \
      "file that what each direction of an iteration came to is appended to, as CSV")              \
    X(BASELINES, baselines, FLAG, "es", "false", 0, 0, "", "",                                     \
      "in the end compare with actions that never change")                                         \
    X(EVALUATE_EVERY, evaluate_every, WHOLE, "es", "0", 1, 4294967295, "",                         \
      "eval_freq eval_interval",                                                                   \
      "iterations between trials of the policy without noise; default: a tenth of all")            \
    X(CHECKPOINT_FILE, checkpoint_file, TEXT, "es", "", 0, 0, "", "es.checkpoint checkpoint.file", \
      "where the run is kept; default: that of --resume, or ENV-phaseN.h5")                        \
    X(CHECKPOINT_EVERY, checkpoint_every, WHOLE, "es", "10", 1, 4294967295, "", "",                \
      "iterations between checkpoints")                                                            \
    X(FROM, from, TEXT, "es", "", 0, 0, "", "es.init init_from",                                   \
      "checkpoint whose policy it begins with, or none; default: that of the phase before")

#define GRT_CONFIG_PPO_KEYS(X)                                                                     \
    X(ROLLOUT_STEPS, rollout_steps, WHOLE, "ppo", "128", 1, 1048576, "",                           \
      "horizon num_steps n_steps rollout_length rollout_fragment_length",                          \
      "steps of each environment in an iteration")                                                 \
    X(UPDATE_EPOCHS, update_epochs, WHOLE, "ppo", "4", 1, 1000, "",                                \
      "ppo_epochs n_epochs num_epochs num_sgd_iter k_epochs",                                      \
      "passes over the rows of an iteration")                                                      \
    X(DISCOUNT, discount, REAL, "ppo", "0.99", 0, 1, "", "gamma discount_factor",                  \
      "what a reward one step later is worth")                                                     \
    X(GAE_LAMBDA, gae_lambda, REAL, "ppo", "0.95", 0, 1, "", "lambda lam gae_tau",                 \
      "of generalised advantage estimation")                                                       \
    X(CLIP, clip, REAL, "ppo", "0.2", 1e-6, 100, "",                                               \
      "clip_range clip_coef clip_epsilon clip_eps eps_clip clip_ratio clip_param",                 \
      "how far the ratio of probabilities may leave 1")                                            \
    X(VALUE_CLIP, value_clip, REAL, "ppo", "0", 0, 1e9, "", "clip_range_vf vf_clip_param",         \
      "how far a value may move in an iteration; 0: any way")                                      \
    X(VALUE_WEIGHT, value_weight, REAL, "ppo", "0.5", 0, 1e9, "",                                  \
      "vf_coef value_coef value_loss_coef", "of the critic's loss")                                \
    X(ENTROPY_WEIGHT, entropy_weight, REAL, "ppo", "0.01", 0, 1e9, "",                             \
      "ent_coef entropy_coef entropy_coeff", "of the bonus for policies that explore")             \
    X(TARGET_KL, target_kl, REAL, "ppo", "0", 0, 1e9, "", "kl_target",                             \
      "end the epochs of an iteration when the policy has moved this far; 0: never")               \
    X(LOG_STD, log_std, REAL, "ppo", "0", -20, 10, "", "log_std_init",                             \
      "of continuous actions at the start: logarithm of their deviation")                          \
    X(CRITIC, critic, WORD, "ppo", "auto", 0, 0, "auto|central=true|local=false",                  \
      "critic_type centralized_critic use_centralized_v",                                          \
      "what the critic sees: also the whole environment, or the agent's own observation; auto: "   \
      "the whole where it can be seen")                                                            \
    X(ACTOR, actor, TREE, "ppo", "", 0, 0, "[{linear: 64}, tanh, {linear: out}]",                  \
      "actor_network policy_network",                                                              \
      "a list of layers; default: an mlp by depth, hidden and activation")                         \
    X(CRITIC_NETWORK, critic_network, TREE, "ppo", "", 0, 0,                                       \
      "[{linear: 64}, relu, {linear: out}]", "value_network",                                      \
      "the same for the critic; default: an mlp, too")                                             \
    X(EPISODE_LIMIT, episode_limit, WHOLE, "ppo", "0", 1, 1048576, "",                             \
      "max_steps max_episode_steps episode_length time_limit_steps",                               \
      "steps after which an episode is cut; default: the environment's")                           \
    X(SETTINGS, settings, NAMES, "ppo", "", 0, 0, "", "env_settings env_config env_kwargs",        \
      "settings of the environment, NAME=VALUE each; on the command line they are keys; default: " \
      "the environment's")                                                                         \
    X(NUM_UAVS, num_uavs, WHOLE, "ppo", "0", 1, 64, "", "num_agents n_agents",                     \
      "setting of the environment uav; default: the environment's")                                \
    X(NUM_OBSTACLES, num_obstacles, WHOLE, "ppo", "0", 0, 16384, "", "",                           \
      "setting of the environment uav; default: the environment's")                                \
    X(MAP, map, WHOLE, "ppo", "0", 1, 1024, "", "map_size grid_size",                              \
      "setting of the environment uav; default: the environment's")                                \
    X(WINDOW, window, WHOLE, "ppo", "0", 1, 1024, "", "window_size view_size",                     \
      "setting of the environment uav; default: the environment's")                                \
    X(EPISODES_PER_BATCH, episodes_per_batch, WHOLE, "ppo", "0", 0, 4294967295, "", "",            \
      "episodes of an iteration: as many environments, each for one episode's steps; 0: by "       \
      "num_envs and rollout_steps")                                                                \
    X(EPISODES_PER_WORKER, episodes_per_worker, WHOLE, "ppo", "0", 0, 4294967295, "", "",          \
      "the same as num_workers times this many episodes_per_batch")                                \
    X(EVALUATE_ENVS, evaluate_envs, WHOLE, "ppo", "256", 1, 1048576, "",                           \
      "eval_episodes num_eval_episodes n_eval_episodes",                                           \
      "episodes of an evaluation, with the most likely actions")

// What PPO takes of the other lists, with its own fallback.
#define GRT_CONFIG_PPO_TAKES(X)                                                                    \
    X(ENV, "")                                                                                     \
    X(PHASE, "0")                                                                                  \
    X(NUM_ENVS, "0")                                                                               \
    X(NUM_WORKERS, "0")                                                                            \
    X(ITERATIONS, "100")                                                                           \
    X(NORMALIZE_OBSERVATIONS, "false")                                                             \
    X(TARGET_RETURN, "")                                                                           \
    X(UNTIL, "0")                                                                                  \
    X(EVALUATE_EVERY, "0")                                                                         \
    X(CHECKPOINT_FILE, "")                                                                         \
    X(CHECKPOINT_INTERVAL, "10")                                                                   \
    X(FROM, "")                                                                                    \
    X(BATCH_SIZE, "0")                                                                             \
    X(MICRO_BATCHES, "0")                                                                          \
    X(DEPTH, "2")                                                                                  \
    X(HIDDEN, "64")                                                                                \
    X(ACTIVATION, "tanh")                                                                          \
    X(RESIDUAL, "false")                                                                           \
    X(LAYER_NORM, "false")                                                                         \
    X(PRECISION, "f32")                                                                            \
    X(OPTIMIZER, "adam")                                                                           \
    X(LEARNING_RATE, "0.0003")                                                                     \
    X(BETAS, "[0.9, 0.999]")                                                                       \
    X(EPS, "1e-5")                                                                                 \
    X(WEIGHT_DECAY, "0")                                                                           \
    X(MAX_GRAD_NORM, "0.5")                                                                        \
    X(SCHEDULE, "constant")                                                                        \
    X(WARMUP_STEPS, "0")                                                                           \
    X(MIN_LEARNING_RATE, "0")                                                                      \
    X(LOSS_SCALE, "65536")                                                                         \
    X(GROWTH_INTERVAL, "2000")

// Defaults of `gpurt train classify`, which has all keys of supervised training: the field's, for
// images. grt_config_settle() says which of them give way to other keys.
#define GRT_CONFIG_CLASSIFY_TAKES(X)                                                               \
    X(MODEL, "resnet18")                                                                           \
    X(LOSS, "cross_entropy")                                                                       \
    X(NORMALIZE, "true")                                                                           \
    X(BATCH_SIZE, "128")                                                                           \
    X(OPTIMIZER, "sgd")                                                                            \
    X(LEARNING_RATE, "0.1")                                                                        \
    X(MOMENTUM, "0.9")                                                                             \
    X(NESTEROV, "true")                                                                            \
    X(WEIGHT_DECAY, "0.0005")                                                                      \
    X(DECAY_OF, "matrices")                                                                        \
    X(SCHEDULE, "cosine")                                                                          \
    X(WARMUP_RATIO, "0.05")

#define GRT_CONFIG_KEYS(X)                                                                         \
    GRT_CONFIG_SHARED_KEYS(X)                                                                      \
    GRT_CONFIG_SUPERVISED_KEYS(X)                                                                  \
    GRT_CONFIG_ES_KEYS(X)                                                                          \
    GRT_CONFIG_PPO_KEYS(X)

#endif
