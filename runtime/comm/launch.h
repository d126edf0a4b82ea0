// SPDX-License-Identifier: Apache-2.0
// Inside runtime/comm: the transport of the launcher.
#ifndef GRT_COMM_LAUNCH_H
#define GRT_COMM_LAUNCH_H

#include "gpurt/comm.h"

// Opens the plugin; NULL with the sentence. It stays open: Open MPI cannot be closed.
const struct grt_transport *launch_transport(void);

#endif
