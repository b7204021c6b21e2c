#!/bin/sh
# Builds for arm64 without cgo and runs the result under qemu-user: programs on a
# static binary and on one that opens libraries, and the tests of what is written in
# assembly or depends on how arm64 rounds.
set -eu

cd "$(dirname "$0")/.."
unset ETRUN_XNNPACK # of this machine: these builds find theirs, or have none
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || {
	echo "arm64: qemu-aarch64: missing; make deps installs it" >&2
	exit 1
}
libc=/usr/aarch64-linux-gnu
[ -e $libc/lib/ld-linux-aarch64.so.1 ] || {
	echo "arm64: $libc: missing (package libc6-arm64-cross); make deps installs it" >&2
	exit 1
}
export CGO_ENABLED=0 GOOS=linux GOARCH=arm64 GOFLAGS="${GOFLAGS:-} -trimpath" # as dist, which compiles nothing again then

bin=bin/etrun-arm64
for tags in nodl ""; do
	go build -tags "$tags" -o $bin ./cmd/etrun
	for args in doctor "verify testdata/pte/bundle.bpte" "testdata/pte/stack_traces.pte" "testdata/digits/xnnpack.pte"; do
		echo "arm64: etrun $args"
		# shellcheck disable=SC2086 # a list of arguments
		$qemu -L $libc $bin $args
	done
done
# These start the test binary itself, which the kernel cannot do here, or take too long. Of the packages of the command,
# those that compute in floats.
skipped="TestFVP|TestDiskFull|TestHoles|TestPeakMemory|TestInputFiles|TestDataFiles|TestBundleFiles|TestCheckedFiles|TestLoweredFiles|TestQuantizedFiles|TestWrittenFiles|TestStdin|TestStdout"
skipped="$skipped|TestServe[A-Z].*|TestDocumentSnippets|TestReportThroughPipes"
# Tests of the command and of pictures that take long and show nothing about a machine.
skipped="$skipped|TestEnded|TestDocumentCommands|TestStrangeFiles|TestServeUsage|TestBench(Audio|Text|Interrupted)|TestWrittenRepaired"
skipped="$skipped|TestRepairMutants|TestLoadFails|TestLower(TriesIntegers|ExternalConstants.*|BesideDelegates|Methods|Reasons|Refuses)"
skipped="$skipped|TestTimesHaveOneNotation|TestCommandPages|TestTranscribe|TestEstimatesAreUpperBounds|TestBombsAreRefused"
go test -vet=off -tags nodl -short -skip "^($skipped)\$" -exec "$qemu" ./internal/simd/... ./kernels/tensor/... ./cmd/etrun \
	./cmd/etrun/internal/calibrate ./cmd/etrun/internal/diff ./cmd/etrun/internal/layered ./media/picture \
	./cmd/etrun/internal/stats ./media/sound
# Programs against the outputs of PyTorch, and the loops of every instruction set against those in Go, on processors with dot
# products and without.
trap 'rm -f internal/integration/arm64.test delegate/xnnpack/arm64.test delegate/xnnpack/internal/goengine/arm64.test internal/simd/arm64.test' EXIT
for package in internal/integration delegate/xnnpack delegate/xnnpack/internal/goengine internal/simd; do
	tags=nodl
	[ $package != internal/simd ] || tags=levels
	go test -vet=off -tags $tags -ldflags "-s -w" -c -o $package/arm64.test ./$package
done
run() { # CPU FOLDER TESTS
	echo "arm64: $2 on $1: $3"
	(cd "$2" && "$qemu" ./arm64.test -test.list "^($3)\$" | grep -q ^Test) || {
		echo "arm64: $2 has none of these tests" >&2
		exit 1
	}
	(cd "$2" && "$qemu" -cpu "$1" ./arm64.test -test.short -test.run "^($3)\$")
}
for cpu in cortex-a53 cortex-a76 max; do
	run $cpu internal/integration "TestSeeds|TestMergedDelegates"
	run $cpu delegate/xnnpack TestPrograms
	run $cpu delegate/xnnpack/internal/goengine "TestPackedVersion|TestPackingLimits|TestPixelBlocksErrors"
	run $cpu internal/simd "TestQuantized|TestDot|TestNibbles|TestMulAdd|TestMulAddRuns|TestChannelTaps|TestNarrowChannelTaps|TestInterleave|TestWinograd.*|TestRowDots"
done
run max delegate/xnnpack/internal/goengine TestInt8
go test -vet=off -tags nodl -run '^TestFilterNumbers$' -exec "$qemu" ./internal/sandbox
