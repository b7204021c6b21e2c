#!/bin/sh
# Builds libXNNPACK of July 2026 as one shared library from its sources:
#
#	scripts/xnnpack.sh SOURCE [FOLDER]
#
# SOURCE is a checkout of XNNPACK at commit 92a7ad501b95. The library is written to FOLDER,
# by default lib/ of this checkout; it is used even if the folder has Debian's older one.
# pthreadpool and cpuinfo are linked into it.
#
# The sources of pthreadpool (October 2025 or later), cpuinfo, FXdiv and FP16 are taken from
# the folders of these names next to SOURCE. CMake downloads those that are not there.
#
# Variables: CC and CXX are the compilers. CMAKE_FLAGS are further options of cmake, for
# example to compile for another processor. BUILD is the folder to build in, where a build
# that was stopped continues; without it a temporary one is used. JOBS is the number of
# parallel compilations.
#
# Needs: cmake, ninja, python3 and a C and a C++ compiler. It takes 5 to 20 minutes of one core.
set -eu

soname=libXNNPACK.so.0.20260727
commit=92a7ad501b95
header=2b137b0253c2a08047e913cc2a50063c3170d0eec40d118c20c8b701a344d2a2 # SHA-256

say() { echo "xnnpack: $*"; }
die() {
	echo "xnnpack: $*" >&2
	exit 1
}

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
	sed -n '2,/^set -eu$/s/^# \{0,1\}//p' "$0" >&2
	exit 2
fi
export CC="${CC:-cc}" CXX="${CXX:-c++}"
for tool in cmake ninja python3 "${CC%% *}" "${CXX%% *}"; do
	command -v "$tool" >/dev/null || die "$tool: missing"
done
[ -d "$1" ] || die "$1: no such folder"
source=$(cd "$1" && pwd)
[ -f "$source/include/xnnpack.h" ] && [ -f "$source/CMakeLists.txt" ] || die "$source: no sources of XNNPACK"
# The binding calls the functions of this header by its numbers (cbindings/xnn/soname.go).
found=$(sha256sum "$source/include/xnnpack.h" | cut -d ' ' -f 1)
[ "$found" = "$header" ] || die "$source: include/xnnpack.h is of another version, want commit $commit"

lib=${2:-$(dirname "$0")/../lib}
mkdir -p "$lib" || die "$lib: cannot be created"
lib=$(cd "$lib" && pwd)
if [ -n "${BUILD:-}" ]; then
	mkdir -p "$BUILD"
	build=$(cd "$BUILD" && pwd)
else
	build=$(mktemp -d)
	trap 'rm -rf "$build"' EXIT
fi

# run COMMAND...: its output is shown if it fails.
run() {
	"$@" >"$build/log" 2>&1 && return
	tail -n 30 "$build/log" >&2
	die "$1 failed"
}

set --
for pair in CPUINFO:cpuinfo PTHREADPOOL:pthreadpool FXDIV:FXdiv FP16:FP16; do
	tree=$source/../${pair#*:}
	[ ! -d "$tree" ] || set -- "$@" "-D${pair%:*}_SOURCE_DIR=$(cd "$tree" && pwd)"
done
say "configuring in $build"
# shellcheck disable=SC2086 # CMAKE_FLAGS are several words
run cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
	-DXNNPACK_LIBRARY_TYPE=static -DPTHREADPOOL_LIBRARY_TYPE=static -DCPUINFO_LIBRARY_TYPE=static \
	-DXNNPACK_BUILD_TESTS=OFF -DXNNPACK_BUILD_BENCHMARKS=OFF -DXNNPACK_BUILD_ALL_MICROKERNELS=OFF \
	-DXNNPACK_ENABLE_KLEIDIAI=OFF "$@" ${CMAKE_FLAGS:-}
say "compiling"
run ninja -C "$build" ${JOBS:+-j "$JOBS"} XNNPACK
grep -q pthreadpool_create_v2 "$build/pthreadpool/libpthreadpool.a" || die "pthreadpool is older than October 2025: threads would stall on a busy core"

# Symbols are bound inside the library, so that a pthreadpool that the process has loaded is not used.
echo '{ global: xnn_*; pthreadpool_*; local: *; };' >"$build/exports"
say "linking"
# shellcheck disable=SC2086 # CXX may have options
run $CXX -shared -s -o "$build/$soname" -static-libstdc++ -static-libgcc -Wl,-soname,$soname -Wl,-Bsymbolic -Wl,-z,defs \
	-Wl,--version-script="$build/exports" -Wl,--gc-sections \
	-Wl,--whole-archive "$build/libXNNPACK.a" "$build/pthreadpool/libpthreadpool.a" -Wl,--no-whole-archive \
	-Wl,--start-group "$build/libxnnpack-microkernels-prod.a" "$build/cpuinfo/libcpuinfo.a" -Wl,--end-group -lm -lpthread

install -m 644 "$build/$soname" "$lib/$soname"
echo "$soname" >"$lib/.complete"
say "$lib/$soname is complete; etrun uses it with ETRUN_XNNPACK=$lib, or without where it searches that folder"
