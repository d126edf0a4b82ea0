// SPDX-License-Identifier: Apache-2.0
// page.css and page.js, which the build makes texts of.
#ifndef APPS_REPORT_PAGE_H
#define APPS_REPORT_PAGE_H

extern const char report_page_css[];
extern const char report_page_js[];

#endif
