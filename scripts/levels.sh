#!/bin/sh
# Runs the tests of what calls vector loops at the instruction sets below the machine's, and
# without assembly. GODEBUG removes features in golang.org/x/sys/cpu; ETRUN_WANT_LEVEL makes
# TestLevel fail where that had no effect. The loops themselves run at all of these levels in
# TestLowerLevels of internal/simd, a part of "make test" and "make cases".
set -eu

cd "$(dirname "$0")/.."
packages="./internal/math32/... ./kernels/..."

run() { # LIST VARIABLE...
	list=$1
	shift
	echo "levels: $*"
	# shellcheck disable=SC2086 # a list of packages
	env "$@" go test -vet=off -short -count=1 $list
	env "$@" go test -vet=off -short -count=1 -run '^Test(Level|Int8|PixelBlocks|PackingLimits|PackedVersion)$' ./internal/simd \
		./delegate/xnnpack/internal/goengine
}

if [ "$(go env GOARCH)" = amd64 ]; then
	if grep -qw avx2 /proc/cpuinfo; then
		run "$packages" GODEBUG=cpu.avx512f=off ETRUN_WANT_LEVEL=avx2
		if grep -qw avx_vnni /proc/cpuinfo; then
			run "$packages" GODEBUG=cpu.avx512f=off,cpu.avxvnni=off ETRUN_WANT_LEVEL=avx2
		fi
	fi
	run "$packages" GODEBUG=cpu.avx2=off ETRUN_WANT_LEVEL=go
fi
# The kernels run the same loops in Go as above. Built as scripts/machines.sh does, which compiles nothing again then.
run "./internal/simd/... ./internal/math32/..." CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath -tags=purego" ETRUN_WANT_LEVEL=go
