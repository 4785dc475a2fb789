// brisk/export.h: symbol visibility. The library is built with hidden visibility; what is public says so.
#pragma once

#if __cplusplus < 202002L
#error "Brisk needs C++20: -std=c++20, or target_link_libraries(... brisk::brisk), which brings it"
#endif

#if defined(BRISK_STATIC)
#define BRISK_EXPORT
#else
#define BRISK_EXPORT __attribute__((visibility("default")))
#endif
