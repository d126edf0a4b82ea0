// SPDX-License-Identifier: Apache-2.0
// What sensors tell at the edges of their files, in made-up trees of them, and a look at the
// machine and its processes that goes on.
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "monitor/look.h"
#include "runtime_folder.h"
#include "sensors/reader.h"

static void put(const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-9 * fabs(want) + 1e-12)) {
        fail_msg("%.17g, wanted %.17g", got, want);
    }
}

static void gone(const char *path) {
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    unlink(full);
}

// ---- what readers share ----

static void addresses(void **state) {
    static const struct {
        const char *text, *pci;
    } rows[] = {{"0000:65:00.0", "0000:65:00.0"},
                {"00000000:65:00.0", "0000:65:00.0"},
                {"0001ABCD:CA:1F.7", "abcd:ca:1f.7"},
                {"65:00.0", "65:00.0"},
                {"", ""},
                {"0000:65:00.0\n", "0000:65:00.0\n"},
                {"0000:65:00.0/and/more", "0000:65:00.0/an"}};
    struct sensor_sample sample = {0};
    char pci[16];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sensor_pci(rows[i].text, pci);
        assert_string_equal(pci, rows[i].pci);
    }
    // Sixteen devices have room; an address that is not told is nobody's.
    for (int i = 0; i < SENSOR_DEVICES; i++) {
        struct sensor_device *device = sensor_add(&sample, "x");
        assert_non_null(device);
        assert_true(isnan(device->values[0]) && isnan(device->values[SENSOR_COUNT - 1]));
    }
    assert_null(sensor_add(&sample, "x"));
    assert_int_equal(sample.count, SENSOR_DEVICES);
    assert_false(sensor_has(&sample, ""));
    snprintf(sample.devices[15].pci, 16, "a");
    assert_true(sensor_has(&sample, "a"));
    sample.count = 15;
    assert_false(sensor_has(&sample, "a"));
    static const char *const keys[] = {"utilisation", "memory_used",  "memory_total",
                                       "power",       "power_limit",  "temperature",
                                       "clock",       "memory_clock", "energy"};
    for (int i = 0; i < SENSOR_COUNT; i++) {
        assert_string_equal(sensor_key((enum sensor_quantity)i), keys[i]);
    }
}

static void kernel_files(void **state) {
    static const struct {
        const char *text;
        double number;
    } rows[] = {
        {"12\n", 12}, {"-3 and more\n", -3}, {"0x10\n", 16}, {"1e3", 1000},  {"\n12\n", NAN},
        {"", NAN},    {"none\n", NAN},       {"inf\n", NAN}, {"nan\n", NAN}, {"  7\n", 7}};
    char text[8];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put("/file", rows[i].text);
        double number = sensor_number("%s/file", root);
        assert_true(isnan(rows[i].number) ? isnan(number) : number == rows[i].number);
    }
    assert_true(isnan(sensor_number("%s/nowhere", root)));
    put("/file", "123456789\nsecond");
    assert_true(sensor_text(text, sizeof text, "%s/file", root));
    assert_string_equal(text, "1234567");
    put("/file", "ab\nsecond");
    assert_true(sensor_text(text, sizeof text, "%s/file", root));
    assert_string_equal(text, "ab");
    assert_false(sensor_text(text, sizeof text, "%s/nowhere", root));
    assert_string_equal(text, "");
    // Of two files that tell the same the first counts; the second folder fills what is left.
    struct sensor_sample sample = {0};
    struct sensor_device *device = sensor_add(&sample, "x");
    char folder[128];
    snprintf(folder, sizeof folder, "%s/card", root);
    put("/card/hwmon/hwmon1/power1_average", "5000000");
    put("/card/hwmon/hwmon1/power1_input", "6000000");
    put("/card/hwmon/hwmon1/power1_max", "8000000");
    put("/card/hwmon/hwmon1/temp2_input", "41500");
    put("/card/hwmon/hwmon1/energy1_input", "2500000");
    sensor_hwmon(folder, device);
    near(device->values[SENSOR_POWER], 5);
    near(device->values[SENSOR_POWER_LIMIT], 8);
    near(device->values[SENSOR_TEMPERATURE], 41.5);
    near(device->values[SENSOR_ENERGY], 2.5);
    assert_true(isnan(device->values[SENSOR_CLOCK]));
    device->values[SENSOR_POWER] = 7;  // told already
    put("/card/hwmon/hwmon1/freq1_input", "3000000");
    put("/card/hwmon/hwmon1/freq2_input", "4000000");
    sensor_hwmon(folder, device);
    near(device->values[SENSOR_POWER], 7);
    near(device->values[SENSOR_CLOCK], 3);
    near(device->values[SENSOR_MEMORY_CLOCK], 4);
}

static char seen[256];
static void note_card(void *context, const char *folder, const char *pci) {
    (void)context;
    snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s=%s ", strstr(folder, "card"),
             pci);
}

// Cards by their number, not by their name; connectors and what has no vendor are none.
static void cards(void **state) {
    (void)state;
    put("/sys/class/drm/card10/device/vendor", "0x1002\n");
    put("/sys/class/drm/card2/device/vendor", "0x8086\n");
    put("/sys/class/drm/card1/device/vendor", "0x1002\n");
    put("/sys/class/drm/card1-DP-1/device/vendor", "0x1002\n");
    put("/sys/class/drm/card3/device/other", "");
    put("/sys/class/drm/renderD128/device/vendor", "0x1002\n");
    seen[0] = '\0';
    sensor_cards(root, 0, note_card, NULL);
    assert_string_equal(seen, "card1/device= card2/device= card10/device= ");
    seen[0] = '\0';
    sensor_cards(root, 0x1002, note_card, NULL);
    assert_string_equal(seen, "card1/device= card10/device= ");
}

// ---- readers ----

static struct sensor_device last;
static const struct sensor_device *reads(struct sensors *sensors, const char *reader) {
    struct sensor_sample sample;
    sensors_read(sensors, &sample);
    for (size_t i = 0; i < sample.count; i++) {
        if (strcmp(sample.devices[i].reader, reader) == 0) {
            last = sample.devices[i];
            return &last;
        }
    }
    return NULL;
}

static struct sensors *open_tree(void) {
    return sensors_open(&(struct sensors_desc){root, "/nowhere/libnothing.so"});
}

// Names by the maker, clocks of either driver, memory in units of any size.
static void other_cards(void **state) {
    static const struct {
        const char *vendor, *name;
    } makers[] = {{"0x8086", "Intel GPU 0x1"},
                  {"0x10de", "NVIDIA GPU 0x1"},
                  {"0x1002", "AMD GPU 0x1"},
                  {"0x1af4", "GPU 0x1"}};
    static const struct {
        const char *line;
        double bytes;
    } memory[] = {{"drm-resident-vram0:\t3", 3},
                  {"drm-resident-vram0:\t3 KiB", 3072},
                  {"drm-resident-vram0:\t3 MiB", 3145728},
                  {"drm-resident-vram0:\t2 GiB", 2147483648.0},
                  {"drm-memory-vram:\t5 KiB", 5120},
                  {"drm-total-vram0:\t7 KiB", 7168},
                  {"drm-total-vram0:\t7 KiB\ndrm-resident-vram0:\t1 KiB", 1024},
                  {"drm-total-a:\t7 KiB\ndrm-total-b:\t1 KiB", 8192},
                  {"drm-other:\t7 KiB", 0}};
    (void)state;
    put("/sys/class/drm/card0/device/device", "0x1\n");
    for (size_t i = 0; i < 4; i++) {
        put("/sys/class/drm/card0/device/vendor", makers[i].vendor);
        struct sensors *sensors = open_tree();
        const struct sensor_device *device = reads(sensors, "fdinfo");
        assert_string_equal(device->name, makers[i].name);
        sensors_close(&sensors);
    }
    struct sensors *sensors = open_tree();
    put("/sys/class/drm/card0/device/drm/card0/gt_cur_freq_mhz", "300");
    near(reads(sensors, "fdinfo")->values[SENSOR_CLOCK], 300);
    put("/sys/class/drm/card0/device/drm/card0/gt_act_freq_mhz", "250");
    near(reads(sensors, "fdinfo")->values[SENSOR_CLOCK], 250);
    put("/sys/class/drm/card0/device/drm/card0/lmem_total_bytes", "4096");
    near(reads(sensors, "fdinfo")->values[SENSOR_MEMORY_TOTAL], 4096);
    put("/proc/9/fd/x", "");
    char link[256];
    snprintf(link, sizeof link, "%s/proc/9/fd/4", root);
    assert_int_equal(symlink("/dev/dri/renderD128", link), 0);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        char text[256];
        snprintf(text, sizeof text, "drm-pdev:\t\ndrm-client-id:\t1\n%s\n", memory[i].line);
        put("/proc/9/fdinfo/4", text);
        near(reads(sensors, "fdinfo")->values[SENSOR_MEMORY_USED], memory[i].bytes);
    }
    // A client without a number is none, and an engine that ran back in time says nothing.
    put("/proc/9/fdinfo/4", "drm-pdev:\t\ndrm-resident-vram0:\t3 KiB\n");
    assert_true(isnan(reads(sensors, "fdinfo")->values[SENSOR_MEMORY_USED]));
#define CYCLES(busy, all, capacity)                                                                \
    "drm-pdev:\t\ndrm-client-id:\t1\ndrm-cycles-a:\t" busy "\ndrm-total-cycles-a:\t" all           \
    "\ndrm-engine-capacity-a:\t" capacity "\ndrm-cycles-b:\t" busy "\ndrm-total-cycles-b:\t" all   \
    "\n"
    static const struct {
        const char *text;
        double busy;
    } shares[] = {{CYCLES("0", "100", "2"), NAN},  {CYCLES("50", "200", "2"), 0.5},
                  {CYCLES("50", "300", "2"), 0},   {CYCLES("40", "400", "2"), NAN},
                  {CYCLES("50", "400", "2"), NAN}, {CYCLES("250", "500", "2"), 1},
                  {CYCLES("260", "600", "0"), 0.1}};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        put("/proc/9/fdinfo/4", shares[i].text);
        double busy = reads(sensors, "fdinfo")->values[SENSOR_UTILISATION];
        assert_true(isnan(shares[i].busy) ? isnan(busy) : fabs(busy - shares[i].busy) < 1e-9);
    }
    sensors_close(&sensors);
}

// The CPU: several packages, one of which runs over; ticks that run back; other names of chips.
static void cpus(void **state) {
    static const char *const chips[] = {"coretemp", "k10temp", "zenpower", "cpu_thermal"};
    (void)state;
    put("/proc/stat", "cpu  10 0 0 90 0 0 0 0\n");
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "1000000");
    put("/sys/class/powercap/intel-rapl:1/energy_uj", "9000000");
    put("/sys/class/powercap/intel-rapl:1/max_energy_range_uj", "10000000");
    struct sensors *sensors = open_tree();
    const struct sensor_device *device = reads(sensors, "cpu");
    assert_string_equal(device->name, "CPU");
    assert_true(isnan(device->values[SENSOR_UTILISATION]));
    assert_true(isnan(device->values[SENSOR_TEMPERATURE]) && isnan(device->values[SENSOR_CLOCK]));
    assert_true(isnan(device->values[SENSOR_MEMORY_USED]));
    near(device->values[SENSOR_ENERGY], 0);
    put("/proc/stat", "cpu  20 10 10 120 0 10 10 20\n");  // 70 of 100
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "1500000");
    put("/sys/class/powercap/intel-rapl:1/energy_uj", "2000000");
    device = reads(sensors, "cpu");
    near(device->values[SENSOR_UTILISATION], 0.7);
    near(device->values[SENSOR_ENERGY], 0.5 + 3);
    put("/proc/stat", "cpu  20 10 10 130 90 10 10 20\n");  // waiting for a disk is no work
    device = reads(sensors, "cpu");
    near(device->values[SENSOR_UTILISATION], 0);
    near(device->values[SENSOR_ENERGY], 3.5);
    device = reads(sensors, "cpu");
    assert_true(isnan(device->values[SENSOR_UTILISATION]));  // no time has passed
    put("/proc/stat", "cpu  300 10 10 100 0 10 10 20\n");    // idle ran back
    near(reads(sensors, "cpu")->values[SENSOR_UTILISATION], 1);
    put("/proc/stat", "cpu0 1 1 1 1\n");
    assert_true(isnan(reads(sensors, "cpu")->values[SENSOR_UTILISATION]));
    for (size_t i = 0; i < 4; i++) {
        put("/sys/class/hwmon/hwmon0/name", chips[i]);
        put("/sys/class/hwmon/hwmon0/temp1_input", i ? "52000" : "51000");
        near(reads(sensors, "cpu")->values[SENSOR_TEMPERATURE], i ? 52 : 51);
    }
    put("/sys/class/hwmon/hwmon0/name", "acpitz");
    assert_true(isnan(reads(sensors, "cpu")->values[SENSOR_TEMPERATURE]));
    gone("/sys/class/powercap/intel-rapl:0/energy_uj");
    near(reads(sensors, "cpu")->values[SENSOR_ENERGY], 3.5);
    gone("/sys/class/powercap/intel-rapl:1/energy_uj");
    assert_true(isnan(reads(sensors, "cpu")->values[SENSOR_ENERGY]));
    put("/proc/meminfo", "MemTotalX: 1 kB\nMemTotal: 8 kB\nMemAvailable: 3 kB\n");
    device = reads(sensors, "cpu");
    near(device->values[SENSOR_MEMORY_TOTAL], 8192);
    near(device->values[SENSOR_MEMORY_USED], 5120);
    sensors_close(&sensors);
    put("/proc/cpuinfo", "Model\t\t: A board\nmodel name\t: Another\n");
    sensors = open_tree();
    assert_string_equal(reads(sensors, "cpu")->name, "A board");
    sensors_close(&sensors);
    // The time of a process: fields behind a name with anything in it.
    put("/proc/5/stat", "5 (a b) c) S 1 2 3 4 5 6 7 8 9 10 11 22 33 44\n");
    near(sensor_process_seconds(root, 5), 33.0 / (double)sysconf(_SC_CLK_TCK));
    put("/proc/5/stat", "5 (a S 1 2 3");
    assert_true(isnan(sensor_process_seconds(root, 5)));
    put("/proc/5/stat", "5 (a) S 1 2");
    assert_true(isnan(sensor_process_seconds(root, 5)));
}

// Power from energy is of one device: where another has come into its place, it is not known once.
static void power_of_energy(void **state) {
    static const char *const names[] = {"0000:03:00.0", "0000:04:00.0"};
    char path[160], link[256];
    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/sys/devices/%s/vendor", names[i]);
        put(path, "0x8086");
        snprintf(path, sizeof path, "/sys/devices/%s/hwmon/hwmon0/energy1_input", names[i]);
        put(path, "1000000");
        snprintf(path, sizeof path, "/sys/class/drm/card%d/x", i);
        put(path, "");
        snprintf(path, sizeof path, "../../../devices/%s", names[i]);
        snprintf(link, sizeof link, "%s/sys/class/drm/card%d/device", root, i);
        assert_int_equal(symlink(path, link), 0);
    }
    struct sensors *sensors = open_tree();
    struct sensor_sample first, second;
    sensors_read(sensors, &first);
    put("/sys/devices/0000:03:00.0/hwmon/hwmon0/energy1_input", "3000000");
    put("/sys/devices/0000:04:00.0/hwmon/hwmon0/energy1_input", "1000000");
    usleep(1000);
    sensors_read(sensors, &second);
    near(second.devices[0].values[SENSOR_POWER], 2 / (second.seconds - first.seconds));
    near(second.devices[1].values[SENSOR_POWER], 0);
    put("/sys/devices/0000:04:00.0/hwmon/hwmon0/energy1_input", "9000000");
    gone("/sys/class/drm/card0/device");
    usleep(1000);
    sensors_read(sensors, &first);
    assert_string_equal(first.devices[0].pci, "0000:04:00.0");
    assert_true(isnan(first.devices[0].values[SENSOR_POWER]));
    // A counter that ran back says nothing, and the CPU is no card without an address.
    put("/sys/devices/0000:04:00.0/hwmon/hwmon0/energy1_input", "8000000");
    usleep(1000);
    sensors_read(sensors, &second);
    assert_true(isnan(second.devices[0].values[SENSOR_POWER]));
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "1000000");
    put("/sys/class/drm/card2/device/vendor", "0x8086");
    put("/sys/class/drm/card2/device/hwmon/hwmon0/energy1_input", "0");
    gone("/sys/class/drm/card1/device");
    sensors_read(sensors, &first);
    sensors_read(sensors, &first);
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "2000000");
    gone("/sys/class/drm/card2/device/vendor");
    usleep(1000);
    sensors_read(sensors, &second);
    assert_string_equal(second.devices[0].reader, "cpu");
    assert_true(isnan(second.devices[0].values[SENSOR_POWER]));
    sensors_close(&sensors);
}

// ---- a look that goes on ----

// A file of a process that lives: this one holds it.
static int alive(const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/gpurt", root);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "/gpurt/%s", name);
    put(path, text);
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    chmod(full, 0600);
    int fd = open(full, O_RDONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    return fd;
}

static void looks(void **state) {
    char link[256];
    (void)state;
    put("/sys/devices/0000:03:00.0/vendor", "0x1002\n");
    put("/sys/devices/0000:03:00.0/gpu_busy_percent", "30\n");
    put("/sys/devices/0000:03:00.0/mem_info_vram_total", "1000\n");
    put("/sys/devices/0000:03:00.0/mem_info_vram_used", "250\n");
    put("/sys/devices/0000:03:00.0/product_name", "Card\n");
    put("/sys/class/drm/card0/x", "");
    snprintf(link, sizeof link, "%s/sys/class/drm/card0/device", root);
    assert_int_equal(symlink("../../../devices/0000:03:00.0", link), 0);
    put("/proc/stat", "cpu  10 0 0 90 0 0 0 0\n");
    put("/proc/7/stat", "7 (a) S 1 2 3 4 5 6 7 8 9 10 100 0 0 0\n");
    int seven = alive("7.json", "{\"app\": \"train es\", \"name\": \"Card\", \"step\": 3}");
    int eight = alive("8.json", "{\"app\": \"bench\", \"software\": 1}");
    struct look *look = look_open(&(struct sensors_desc){root, "/nowhere/libnothing.so"});
    assert_non_null(look);
    assert_int_equal(look->sample.count, 2);
    assert_int_equal(look->process_count, 2);
    assert_int_equal(look->processes[0].device, 0);
    assert_int_equal(look->processes[1].device, 1);
    assert_true(isnan(look->processes[0].cpus));
    assert_true(isnan(look->processes[1].seconds));
    put("/sys/devices/0000:03:00.0/gpu_busy_percent", "50\n");
    put("/sys/devices/0000:03:00.0/mem_info_vram_used", "750\n");
    put("/proc/7/stat", "7 (a) S 1 2 3 4 5 6 7 8 9 10 100 50 0 0\n");
    double before = look->sample.seconds;
    look_again(look);
    assert_int_equal(look->busy[0].count, 2);
    near(look->busy[0].values[0], 0.3);
    near(look->busy[0].values[1], 0.5);
    near(look->filled[0].values[0], 0.25);
    near(look->filled[0].values[1], 0.75);
    near(look->processes[0].cpus,
         50.0 / (double)sysconf(_SC_CLK_TCK) / (look->sample.seconds - before));
    // A number that another process has now begins anew.
    put("/proc/7/stat", "7 (a) S 1 2 3 4 5 6 7 8 9 10 1 1 0 0\n");
    look_again(look);
    assert_true(isnan(look->processes[0].cpus));
    // The course keeps the newest.
    for (int i = 0; i < LOOK_PAST; i++) {
        look_again(look);
    }
    assert_int_equal(look->busy[0].count, LOOK_PAST);
    near(look->busy[0].values[0], 0.5);
    close(seven);
    look_again(look);
    assert_int_equal(look->process_count, 1);
    assert_true(look->processes[0].state.pid == 8);
    close(eight);
    look_close(&look);
    assert_null(look);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(addresses), CASE(kernel_files),    CASE(cards), CASE(other_cards),
        CASE(cpus),      CASE(power_of_energy), CASE(looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
