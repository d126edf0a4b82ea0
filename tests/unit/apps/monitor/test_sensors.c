// SPDX-License-Identifier: Apache-2.0
// Readers of sensors, on trees of files as the kernel's documentation has them, and on a library in
// place of NVIDIA's (tests/drivers/fake_nvml.c).
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sensors/sensors.h"

static char root[64];

#define CARD "/sys/class/drm/card0/device"

static void put(const char *path, const char *format, ...) {
    char full[512], text[2048];
    va_list list;
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void link_to(const char *target, const char *path) {
    char full[512];
    put(path, "");
    snprintf(full, sizeof full, "%s%s", root, path);
    unlink(full);
    assert_int_equal(symlink(target, full), 0);
}

static int begin(void **state) {
    (void)state;
    strcpy(root, "/tmp/test_sensors.XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static struct sensors *open_tree(void) {
    struct sensors *sensors = sensors_open(&(struct sensors_desc){root, "/nowhere/libnothing.so"});
    assert_non_null(sensors);
    return sensors;
}

// The only device of a reader.
static const struct sensor_device *only(const struct sensor_sample *sample, const char *reader) {
    const struct sensor_device *found = NULL;
    for (size_t i = 0; i < sample->count; i++) {
        if (strcmp(sample->devices[i].reader, reader) == 0) {
            assert_null(found);
            found = &sample->devices[i];
        }
    }
    assert_non_null(found);
    return found;
}

static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-9 * fabs(want) + 1e-12)) {
        fail_msg("%.17g, wanted %.17g", got, want);
    }
}

static void unknown(const struct sensor_device *device, enum sensor_quantity quantity) {
    if (!isnan(device->values[quantity])) {
        fail_msg("%s is %g, and nobody told it", sensor_key(quantity), device->values[quantity]);
    }
}

// A card as /sys has it: the folder of the PCI device, and links to it.
static void put_card(int number, const char *pci, const char *vendor, const char *device) {
    char path[128], target[128];
    snprintf(path, sizeof path, "/sys/devices/%s/vendor", pci);
    put(path, "%s\n", vendor);
    snprintf(path, sizeof path, "/sys/devices/%s/device", pci);
    put(path, "%s\n", device);
    snprintf(path, sizeof path, "/sys/class/drm/card%d/device", number);
    snprintf(target, sizeof target, "../../../devices/%s", pci);
    link_to(target, path);
}

// ---- AMD ----

static void amd(void **state) {
    (void)state;
    put_card(0, "0000:03:00.0", "0x1002", "0x744c");
    put("/sys/class/drm/card0-DP-1/status", "connected\n");
    put(CARD "/gpu_busy_percent", "87\n");
    put(CARD "/mem_info_vram_total", "25753026560\n");
    put(CARD "/mem_info_vram_used", "19314769920\n");
    put(CARD "/hwmon/hwmon3/power1_average", "267000000\n");
    put(CARD "/hwmon/hwmon3/power1_cap", "339000000\n");
    put(CARD "/hwmon/hwmon3/temp1_input", "64000\n");
    put(CARD "/hwmon/hwmon3/freq1_input", "2371000000\n");
    put(CARD "/hwmon/hwmon3/freq2_input", "1249000000\n");
    struct sensors *sensors = open_tree();
    struct sensor_sample sample;
    sensors_read(sensors, &sample);
    const struct sensor_device *device = only(&sample, "amdgpu");
    assert_string_equal(device->name, "AMD GPU 0x744c");
    assert_string_equal(device->pci, "0000:03:00.0");
    near(device->values[SENSOR_UTILISATION], 0.87);
    near(device->values[SENSOR_MEMORY_TOTAL], 25753026560.0);
    near(device->values[SENSOR_MEMORY_USED], 19314769920.0);
    near(device->values[SENSOR_POWER], 267);
    near(device->values[SENSOR_POWER_LIMIT], 339);
    near(device->values[SENSOR_TEMPERATURE], 64);
    near(device->values[SENSOR_CLOCK], 2371);
    near(device->values[SENSOR_MEMORY_CLOCK], 1249);
    unknown(device, SENSOR_ENERGY);
    // A name that the board has, power under its other name, and files that say nothing.
    char path[256];
    snprintf(path, sizeof path, "%s" CARD "/hwmon/hwmon3/power1_average", root);
    unlink(path);
    put(CARD "/product_name", "Instinct MI300X\n");
    put(CARD "/hwmon/hwmon3/power1_input", "750000000\n");
    put(CARD "/hwmon/hwmon3/temp1_input", "\n");
    put(CARD "/gpu_busy_percent", "none\n");
    sensors_read(sensors, &sample);
    device = only(&sample, "amdgpu");
    assert_string_equal(device->name, "Instinct MI300X");
    near(device->values[SENSOR_POWER], 750);
    unknown(device, SENSOR_TEMPERATURE);
    unknown(device, SENSOR_UTILISATION);
    sensors_close(&sensors);
    assert_null(sensors);
}

// ---- any other ----

#define ENGINES(client, render, copy)                                                              \
    "pos:\t0\nflags:\t02100002\ndrm-driver:\ti915\ndrm-pdev:\t0000:00:02.0\n"                      \
    "drm-client-id:\t" client "\ndrm-engine-render:\t" render " ns\ndrm-engine-copy:\t" copy       \
    " ns\ndrm-engine-video:\t0 ns\ndrm-engine-capacity-video:\t2\n"                                \
    "drm-total-local0:\t9 MiB\ndrm-resident-local0:\t4 MiB\ndrm-resident-system0:\t512 KiB\n"

static void rest(double seconds) {
    usleep((useconds_t)(1e6 * seconds));
}

static void other(void **state) {
    (void)state;
    put_card(0, "0000:00:02.0", "0x8086", "0x56a0");
    put("/sys/devices/0000:00:02.0/drm/card0/gt_act_freq_mhz", "2050\n");
    put("/sys/devices/0000:00:02.0/drm/card0/lmem_total_bytes", "16225243136\n");
    put("/sys/devices/0000:00:02.0/hwmon/hwmon1/energy1_input", "5000000\n");
    // Two descriptors of one client, another client, and a file that is none of a GPU.
    link_to("/dev/dri/renderD128", "/proc/77/fd/5");
    link_to("/dev/dri/renderD128", "/proc/77/fd/6");
    link_to("/dev/dri/card0", "/proc/78/fd/3");
    link_to("/etc/hosts", "/proc/78/fd/4");
    put("/proc/77/fdinfo/5", ENGINES("7", "1000000000", "0"));
    put("/proc/77/fdinfo/6", ENGINES("7", "1000000000", "0"));
    put("/proc/78/fdinfo/3", ENGINES("8", "5000000000", "100"));
    put("/proc/78/fdinfo/4", ENGINES("9", "5000000000", "100"));
    put("/proc/self/fdinfo/4", "nothing\n");
    struct sensors *sensors = open_tree();
    struct sensor_sample first, second;
    sensors_read(sensors, &first);
    const struct sensor_device *device = only(&first, "fdinfo");
    assert_string_equal(device->name, "Intel GPU 0x56a0");
    assert_string_equal(device->pci, "0000:00:02.0");
    unknown(device, SENSOR_UTILISATION);
    unknown(device, SENSOR_POWER);
    unknown(device, SENSOR_TEMPERATURE);
    near(device->values[SENSOR_MEMORY_USED], 2 * (4 * 1048576.0 + 512 * 1024.0));
    near(device->values[SENSOR_MEMORY_TOTAL], 16225243136.0);
    near(device->values[SENSOR_CLOCK], 2050);
    near(device->values[SENSOR_ENERGY], 5);
    // Client 7 rendered for 3 ms and client 8 for 1 ms; copies took 2 ms.
    rest(0.05);
    put("/proc/77/fdinfo/5", ENGINES("7", "1003000000", "2000000"));
    put("/proc/77/fdinfo/6", ENGINES("7", "1003000000", "2000000"));
    put("/proc/78/fdinfo/3", ENGINES("8", "5001000000", "100"));
    put("/sys/devices/0000:00:02.0/hwmon/hwmon1/energy1_input", "7000000\n");
    sensors_read(sensors, &second);
    device = only(&second, "fdinfo");
    double elapsed = second.seconds - first.seconds;
    near(device->values[SENSOR_UTILISATION], 0.004 / elapsed);
    near(device->values[SENSOR_POWER], 2 / elapsed);
    // A client that is gone takes nothing back, and one of another GPU is not counted.
    rest(0.01);
    put("/proc/77/fdinfo/5",
        "drm-pdev:\t0000:99:00.0\ndrm-client-id:\t7\ndrm-engine-render:\t9 ns\n");
    put("/proc/77/fdinfo/6", "");
    sensors_read(sensors, &first);
    device = only(&first, "fdinfo");
    near(device->values[SENSOR_UTILISATION], 0);
    near(device->values[SENSOR_MEMORY_USED], 4 * 1048576.0 + 512 * 1024.0);
    sensors_close(&sensors);
}

// Clients have numbers of their card: the first of each of two cards are two.
static void two_cards(void **state) {
    static const char *const cards[] = {"0000:04:00.0", "0000:05:00.0"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char path[64], text[256];
        put_card(i, cards[i], "0x8086", "0xe20b");
        snprintf(path, sizeof path, "/proc/9/fd/%d", 4 + i);
        link_to("/dev/dri/renderD128", path);
        snprintf(path, sizeof path, "/proc/9/fdinfo/%d", 4 + i);
        snprintf(text, sizeof text,
                 "drm-pdev:\t%s\ndrm-client-id:\t1\ndrm-engine-ccs:\t1 ns\n"
                 "drm-resident-vram0:\t%d KiB\n",
                 cards[i], 64 << i);
        put(path, text);
    }
    struct sensors *sensors = open_tree();
    struct sensor_sample sample;
    sensors_read(sensors, &sample);
    size_t seen = 0;
    for (size_t i = 0; i < sample.count; i++) {
        for (int k = 0; k < 2; k++) {
            if (strcmp(sample.devices[i].pci, cards[k]) == 0) {
                near(sample.devices[i].values[SENSOR_MEMORY_USED], 65536 << k);
                seen++;
            }
        }
    }
    assert_int_equal(seen, 2);
    sensors_close(&sensors);
}

// Xe counts cycles, of its own clock; old drivers tell memory under another name.
static void cycles(void **state) {
    (void)state;
    put_card(1, "0000:04:00.0", "0x8086", "0xe20b");
    put("/sys/devices/0000:04:00.0/tile0/gt0/freq0/act_freq", "2850\n");
    link_to("/dev/dri/renderD129", "/proc/9/fd/4");
    put("/proc/9/fdinfo/4", "drm-pdev:\t0000:04:00.0\ndrm-client-id:\t1\ndrm-memory-vram:\t64 KiB\n"
                            "drm-cycles-ccs:\t100\ndrm-total-cycles-ccs:\t1000\n"
                            "drm-engine-capacity-ccs:\t4\n");
    struct sensors *sensors = open_tree();
    struct sensor_sample sample;
    sensors_read(sensors, &sample);
    put("/proc/9/fdinfo/4", "drm-pdev:\t0000:04:00.0\ndrm-client-id:\t1\ndrm-memory-vram:\t64 KiB\n"
                            "drm-cycles-ccs:\t1300\ndrm-total-cycles-ccs:\t2000\n"
                            "drm-engine-capacity-ccs:\t4\n");
    sensors_read(sensors, &sample);
    const struct sensor_device *device = only(&sample, "fdinfo");
    near(device->values[SENSOR_UTILISATION], 0.3);
    near(device->values[SENSOR_MEMORY_USED], 65536);
    near(device->values[SENSOR_CLOCK], 2850);
    sensors_close(&sensors);
}

// What a hostile or broken tree has.
static void broken(void **state) {
    (void)state;
    char large[2000];
    memset(large, '9', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    put_card(0, "0000:00:02.0", "0x8086", large);
    put_card(1, "0000:03:00.0", "0x1002", "0x1");
    put("/sys/class/drm/card2/device", "no folder");
    put("/sys/class/drm/cardx/device/vendor", "0x1002");
    put("/sys/devices/0000:03:00.0/mem_info_vram_total", "%s", large);
    put("/sys/devices/0000:03:00.0/gpu_busy_percent", "inf");
    put("/proc/stat", "cpu");
    put("/proc/cpuinfo", "model name\t: %s", large);
    put("/proc/meminfo", "MemTotal");
    link_to("/dev/dri/renderD128", "/proc/5/fd/1");
    put("/proc/5/fdinfo/1",
        "drm-pdev:\t0000:00:02.0\ndrm-client-id:\t1\ndrm-engine-%s:\t1 ns\n:\n::\n", large);
    struct sensors *sensors = open_tree();
    struct sensor_sample sample;
    for (int i = 0; i < 3; i++) {
        sensors_read(sensors, &sample);
        assert_true(strlen(only(&sample, "cpu")->name) < SENSOR_NAME);
        unknown(only(&sample, "cpu"), SENSOR_MEMORY_TOTAL);
        unknown(only(&sample, "amdgpu"), SENSOR_UTILISATION);
    }
    sensors_close(&sensors);
}

// ---- the CPU ----

static void cpu(void **state) {
    (void)state;
    put("/proc/stat", "cpu  100 20 30 800 50 0 0 0 90 9\ncpu0 1 1 1 1\n");
    put("/proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n");
    put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\ncpu MHz\t\t: 2000.5\n"
                         "processor\t: 1\nmodel name\t: Some CPU @ 2 GHz\ncpu MHz\t\t: 3000.5\n");
    put("/sys/class/hwmon/hwmon0/name", "nvme\n");
    put("/sys/class/hwmon/hwmon0/temp1_input", "30000\n");
    put("/sys/class/hwmon/hwmon1/name", "k10temp\n");
    put("/sys/class/hwmon/hwmon1/temp1_input", "71500\n");
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "9000000\n");
    put("/sys/class/powercap/intel-rapl:0/max_energy_range_uj", "10000000\n");
    put("/proc/31/stat", "31 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0\n");
    struct sensors *sensors = open_tree();
    struct sensor_sample sample, second;
    sensors_read(sensors, &sample);
    const struct sensor_device *device = only(&sample, "cpu");
    assert_string_equal(device->name, "Some CPU @ 2 GHz");
    unknown(device, SENSOR_UTILISATION);
    unknown(device, SENSOR_POWER);
    near(device->values[SENSOR_MEMORY_TOTAL], 1024000);
    near(device->values[SENSOR_MEMORY_USED], 600 * 1024);
    near(device->values[SENSOR_CLOCK], 2500.5);
    near(device->values[SENSOR_TEMPERATURE], 71.5);
    // 30 ticks busy of 100; the counter of energy runs over; cpufreq tells the clock.
    put("/proc/stat", "cpu  120 25 35 860 60 0 0 0 90 9\n");
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "2000000\n");
    put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2700000\n");
    rest(0.01);
    sensors_read(sensors, &second);
    device = only(&second, "cpu");
    near(device->values[SENSOR_UTILISATION], 0.3);
    near(device->values[SENSOR_CLOCK], 2700);
    near(device->values[SENSOR_POWER], 3 / (second.seconds - sample.seconds));
    near(sensor_process_seconds(root, 31), 300.0 / (double)sysconf(_SC_CLK_TCK));
    assert_true(isnan(sensor_process_seconds(root, 32)));
    sensors_close(&sensors);
}

// ---- NVIDIA ----

static void nvidia(void **state) {
    (void)state;
    // The kernel shows the card too: it is told once.
    put_card(0, "0000:65:00.0", "0x10de", "0x2335");
    struct sensors *sensors = sensors_open(&(struct sensors_desc){root, FAKE_NVML});
    struct sensor_sample sample;
    sensors_read(sensors, &sample);
    assert_int_equal(sample.count, 3);  // and the CPU
    const struct sensor_device *device = &sample.devices[0];
    assert_string_equal(device->reader, "nvml");
    assert_string_equal(device->name, "NVIDIA Fake");
    assert_string_equal(device->pci, "0000:65:00.0");
    near(device->values[SENSOR_UTILISATION], 0.42);
    near(device->values[SENSOR_MEMORY_TOTAL], 80.0 * 1073741824.0);
    near(device->values[SENSOR_MEMORY_USED], 72.0 * 1073741824.0);
    near(device->values[SENSOR_POWER], 345.678);
    near(device->values[SENSOR_POWER_LIMIT], 700);
    near(device->values[SENSOR_TEMPERATURE], 61);
    near(device->values[SENSOR_CLOCK], 1980);
    near(device->values[SENSOR_MEMORY_CLOCK], 3201);
    near(device->values[SENSOR_ENERGY], 1050);
    device = &sample.devices[1];
    assert_string_equal(device->pci, "0000:ca:00.0");
    near(device->values[SENSOR_MEMORY_TOTAL], 16.0 * 1073741824.0);
    near(device->values[SENSOR_MEMORY_USED], 4.0 * 1073741824.0);
    unknown(device, SENSOR_UTILISATION);
    unknown(device, SENSOR_POWER);
    unknown(device, SENSOR_TEMPERATURE);
    unknown(device, SENSOR_CLOCK);
    unknown(device, SENSOR_ENERGY);
    sensors_close(&sensors);
    // A library that is something else.
    sensors = sensors_open(&(struct sensors_desc){root, "libm.so.6"});
    sensors_read(sensors, &sample);
    only(&sample, "fdinfo");
    sensors_close(&sensors);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(amd, begin, end),
        cmocka_unit_test_setup_teardown(other, begin, end),
        cmocka_unit_test_setup_teardown(two_cards, begin, end),
        cmocka_unit_test_setup_teardown(cycles, begin, end),
        cmocka_unit_test_setup_teardown(broken, begin, end),
        cmocka_unit_test_setup_teardown(cpu, begin, end),
        cmocka_unit_test_setup_teardown(nvidia, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
