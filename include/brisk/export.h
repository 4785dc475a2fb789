// brisk/export.h: symbol visibility. The library is built with hidden visibility; what is public says so.
#pragma once

#if defined(BRISK_STATIC)
#define BRISK_EXPORT
#else
#define BRISK_EXPORT __attribute__((visibility("default")))
#endif
