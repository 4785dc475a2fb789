#!/usr/bin/env bash
# packages.sh GROUP...: installs the Debian packages of these groups of packages.txt that are missing, saying what it does.
# Fails only when a package that must be there cannot be installed. Needs root or sudo, and only when something is missing.
set -euo pipefail
list="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/packages.txt"

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]; }
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "packages: not root and no sudo; install them by hand: ${required[*]} ${optional[*]}" >&2
    return 1
  fi
}
apt_install() { as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"; }

required=()
optional=()
declare -A cost
while read -r name group reason; do
  case "$name" in '' | '#'*) continue ;; esac
  for wanted in "$@"; do
    if [ "$group" = "$wanted" ] && ! installed "$name"; then
      required+=("$name")
    elif [ "$group" = "$wanted-optional" ] && ! installed "$name"; then
      optional+=("$name")
      cost[$name]="$reason"
    fi
  done
done <"$list"

if [ $((${#required[@]} + ${#optional[@]})) -eq 0 ]; then
  echo "packages: all present"
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "packages: no apt-get here, and these Debian packages are missing: ${required[*]} ${optional[*]}" >&2
  echo "packages: going on; CMake says what it does not find" >&2
  exit 0
fi
echo "packages: installing ${required[*]} ${optional[*]}"
as_root apt-get update -q || echo "packages: the package lists could not be renewed; trying those at hand" >&2
if [ ${#required[@]} -gt 0 ]; then
  apt_install "${required[@]}" || {
    echo "packages: could not install ${required[*]}" >&2
    exit 1
  }
fi
for name in "${optional[@]}"; do
  apt_install "$name" || echo "packages: going on without $name: ${cost[$name]}" >&2
done
