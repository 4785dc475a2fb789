#!/usr/bin/env bash
# check.sh NAME: one packaging test; CMakeLists.txt beside this file sets BRISK_* and runs install first.
set -euo pipefail
prefix="$BRISK_WORK/moved"
consumer="$BRISK_SOURCE/examples/consumer"
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
configure() {  # configure SOURCE NAME SETTING...: into a new folder of this name
  local source="$1" folder="$BRISK_WORK/$2"
  shift 2
  rm -rf "$folder"
  cmake -S "$source" -B "$folder" -G "$BRISK_GENERATOR" -DCMAKE_CXX_COMPILER="$BRISK_CXX" \
    -DCMAKE_CXX_COMPILER_LAUNCHER="$BRISK_LAUNCHER" "$@"
}

install_moved() {  # an installed tree keeps no path of the place it was installed to
  rm -rf "$BRISK_WORK/prefix" "$prefix"
  cmake --install "$BRISK_BUILD" --prefix "$BRISK_WORK/prefix" >/dev/null
  mv "$BRISK_WORK/prefix" "$prefix"
  [ -f "$prefix/include/brisk/brisk.h" ] || fail "brisk/brisk.h is not installed"
  ! grep -rl -e "$BRISK_SOURCE" -e "$BRISK_WORK" "$prefix/include" "$prefix/$BRISK_LIBDIR/cmake" \
    "$prefix/$BRISK_LIBDIR/pkgconfig" || fail "these installed files name the machine they were made on"
}

find_package() {
  configure "$consumer" find_package -DCMAKE_PREFIX_PATH="$prefix"
  cmake --build "$BRISK_WORK/find_package"
  "$BRISK_WORK/find_package/consumer"
}

components() {  # a part that was not built is refused by name; the same part, optional, is not
  local absent=gloo cuda=TRUE
  [ "$BRISK_COMPONENTS" = cuda ] || absent=cuda cuda=FALSE
  mkdir -p "$BRISK_WORK/components_source"
  cat >"$BRISK_WORK/components_source/CMakeLists.txt" <<PROJECT
cmake_minimum_required(VERSION 3.22)
project(components LANGUAGES CXX)
find_package(brisk 1.0 REQUIRED OPTIONAL_COMPONENTS gloo cuda)
if(brisk_gloo_FOUND OR NOT brisk_cuda_FOUND STREQUAL "$cuda" OR NOT TARGET brisk::brisk OR NOT TARGET brisk::kernels)
  message(FATAL_ERROR "optional components are wrong")
endif()
find_package(brisk 1.0 REQUIRED COMPONENTS $absent)
PROJECT
  if configure "$BRISK_WORK/components_source" components -DCMAKE_PREFIX_PATH="$prefix" 2>"$BRISK_WORK/components.log"; then
    fail "a component that was not built was found"
  fi
  tr -s ' \n' ' ' <"$BRISK_WORK/components.log" | grep "was not built with $absent" || {
    cat "$BRISK_WORK/components.log"
    fail "the message does not say what is missing"
  }
}

pkg_config() {
  local flags
  flags="$(PKG_CONFIG_PATH="$prefix/$BRISK_LIBDIR/pkgconfig" pkg-config --cflags --libs brisk)"
  # shellcheck disable=SC2086
  "$BRISK_CXX" -std=c++20 -Wall -Wextra -Werror "$consumer/main.cpp" -o "$BRISK_WORK/pkg_config_consumer" $flags \
    -Wl,-rpath,"$prefix/$BRISK_LIBDIR"
  "$BRISK_WORK/pkg_config_consumer"
}

symbols() {  # the library exports its own names and no dependency's; templates of the standard library cannot be hidden
  local library="$prefix/$BRISK_LIBDIR/libbrisk.so" found
  local inner="(spdlog|fmt|nlohmann|dnnl|brisk::(graph|passes|exec|cpu|core|optim|train|cli))::"
  if [ ! -f "$library" ]; then
    echo "SKIPPED: a static library exports what it has"
    return
  fi
  nm -DC --defined-only "$library" | cut -d' ' -f2- | sort -u >"$BRISK_WORK/symbols.txt"
  grep -q " brisk::" "$BRISK_WORK/symbols.txt" || fail "nothing of brisk is exported"
  found="$(grep -E "^. (vtable for |typeinfo for |guard variable for )?$inner" "$BRISK_WORK/symbols.txt" || true)"
  [ -z "$found" ] || fail "exported, and not part of the public API: $found"
  ! objdump -p "$library" | grep -E "NEEDED.*(spdlog|fmt|gomp|omp|cuda)" || fail "a dependency that users would have to install"
}

subproject() {  # only the program's own object is compiled: the library's are those of this build
  configure "$BRISK_SOURCE/tests/packaging/subproject" subproject -DBRISK_SOURCE="$BRISK_SOURCE"
  cmake --build "$BRISK_WORK/subproject" --target consumer_object
}

mkdir -p "$BRISK_WORK"
case "$1" in
  install) install_moved ;;
  find_package | components | pkg_config | symbols | subproject) "$1" ;;
  *) fail "unknown test $1" ;;
esac
