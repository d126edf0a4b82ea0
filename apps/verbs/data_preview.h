// SPDX-License-Identifier: Apache-2.0
// Looking at images: `gpurt data preview`, and the sheet of `gpurt data info FILE -o sheet.png`.
#ifndef APPS_DATA_PREVIEW_H
#define APPS_DATA_PREVIEW_H

// With the word `preview` first. Returns an exit code.
int data_preview(int argc, char **argv);
// Some images of each class of the file. Returns an exit code.
int data_sheet(const char *path, const char *output);

#endif
