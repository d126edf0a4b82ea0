// SPDX-License-Identifier: Apache-2.0
// The JSON half of a table, called by table.c. Open and close do nothing for the other formats but
// take and drop the head.
#ifndef APPS_TABLE_JSON_H
#define APPS_TABLE_JSON_H

#include "table.h"

bool table_json_open(struct table *table);
bool table_json_row(struct table *table, const struct table_cell *cells);
bool table_json_close(struct table *table);

#endif
