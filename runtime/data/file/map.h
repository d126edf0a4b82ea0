// SPDX-License-Identifier: Apache-2.0
// Inside runtime/data: a file seen as memory. Rows that lie apart are copied out of it without a
// call to the system for each.
//
// A page that is no longer in the file, because it was truncated, or that the disk does not give,
// would be a SIGBUS and the end of the process. A handler puts zeros in the place of the whole file
// instead and marks it as torn; whoever copied asks grt_map_check() afterwards, before the copy is
// used. Faults elsewhere go to the handler that was there before. The signal must not be blocked in
// threads that read.
#ifndef GRT_MAP_H
#define GRT_MAP_H

#include "array.h"

struct grt_file_map;

// NULL when the system or the number of maps does not allow it: then rows are read with pread().
struct grt_file_map *grt_map_create(int fd, uint64_t bytes);
void grt_map_destroy(struct grt_file_map **map);
const unsigned char *grt_map_bytes(const struct grt_file_map *map);
// Whether all that was read of it until now was in the file; else the fault.
bool grt_map_check(const struct grt_file_map *map, struct grt_fault *fault);

// The fault of a file that ends at byte `end`, `missing` bytes before its data do.
bool grt_fault_truncated(struct grt_fault *fault, uint64_t end, uint64_t missing);

#endif
