// SPDX-License-Identifier: Apache-2.0
// `gpurt data order`: the rows of an epoch.
#ifndef APPS_DATA_ORDER_H
#define APPS_DATA_ORDER_H

// With the word `order` first. Returns an exit code.
int data_order(int argc, char **argv);

#endif
