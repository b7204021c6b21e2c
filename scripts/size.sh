#!/bin/sh
# Checks the sizes of stripped executables: the static etrun, and what the library with the
# portable kernels adds to a program.
set -eu

cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
status=0

# The size of a package's executable, in bytes.
size() { # GOARCH PACKAGE
	CGO_ENABLED=0 GOOS=linux GOARCH=$1 go build -trimpath -buildvcs=false -tags nodl -ldflags '-s -w' -o "$out/program" "$2" >&2
	wc -c <"$out/program"
}

budget() { # NAME BYTES LIMIT
	echo "size: $1: $2 bytes, limit $3"
	if [ "$2" -gt "$3" ]; then
		echo "size: $1: above the limit; go tool nm -size -sort size, and go version -m, list what is inside" >&2
		status=1
	fi
}

for arch in amd64 arm64; do
	budget "etrun, static, $arch" "$(size $arch ./cmd/etrun)" 28000000
	budget "daemon on portable kernels beyond an empty program, $arch" \
		$(($(size $arch ./scripts/size/daemon) - $(size $arch ./scripts/size/empty))) 6000000
	budget "examples/daemon beyond the same server without a model, $arch" \
		$(($(size $arch ./examples/daemon) - $(size $arch ./scripts/size/http))) 6000000
done
exit $status
