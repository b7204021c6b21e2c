#!/bin/sh
# Builds etrun for arm64 without cgo and runs programs on it under qemu-user.
set -eu

cd "$(dirname "$0")/.."
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || {
	echo "arm64: qemu-aarch64: missing; make deps installs it" >&2
	exit 1
}
bin=bin/etrun-arm64
CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go build -o $bin ./cmd/etrun
$qemu $bin --version
$qemu $bin verify testdata/pte/bundle.bpte
$qemu $bin testdata/pte/stack_traces.pte
