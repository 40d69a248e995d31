#!/usr/bin/env bash
# Compiles every kernel file for the base (sm_80) and for Hopper (sm_90a) into PTX,
# compressed, beside this script or into the folder given. Needs clang 19.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
out=${1:-ptx}
clang=${CLANG:-clang-19}
mkdir -p "$out"
compile() { # FILE TARGET
  local to
  to=$out/$(basename "$1" .cu).$2.ptx
  "$clang" -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch="$2" --cuda-feature=+ptx80 -std=c++20 -O3 \
    -ffp-contract=off -fno-exceptions -Wall -Wextra -Werror -S -o "$to" "$1"
  gzip -9nf "$to"
}
export -f compile
export out clang
for f in *.cu; do
  printf '%s sm_80\0%s sm_90a\0' "$f" "$f"
done | xargs -0 -P "$(getconf _NPROCESSORS_ONLN)" -I{} bash -c 'set -euo pipefail; compile {}'
