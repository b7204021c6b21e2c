#!/bin/sh
# Tests the machines of the second tier. 386 stands for 32-bit arm: it has the same sizes and
# runs on amd64 without an emulator. Builds for linux/arm (qemu-user) and WASI (wazero) must
# print and compute what the build for this machine does, without assembly, bit for bit.
set -eu

cd "$(dirname "$0")/.."
unset ETRUN_XNNPACK # of this machine: these builds find theirs, or have none
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath" # as dist, which compiles nothing again then
out=$(mktemp -d)
trap 'code=$?; [ $code = 0 ] || cat "$out/stderr" >&2; rm -rf "$out"' EXIT
: >"$out/stderr"

# Some kernels for amd64 run no 32-bit programs: there, fewer tests run, as arm, emulated.
qemu=$(command -v qemu-arm || command -v qemu-arm-static) || {
	echo "machines: qemu-arm: missing; make deps installs it" >&2
	exit 1
}
GOARCH=386 go build -o "$out/runs" ./scripts/size/empty
if "$out/runs" 2>"$out/stderr"; then
	# Without those that serve and measure, which are compiled below: sizes and places of files and requests are computed elsewhere.
	served='/(cmd/etrun|cmd/etrun/internal/(command/.*|daemon|load)|examples/.*|serve(/isolate|/openai)?)$'
	# Without assembly these take a minute, and show nothing about 32 bits: how soon large nodes stop, and a loop in Go, which
	# scripts/levels.sh runs as well.
	slow='^Test(StopsInsideNodes|PixelBlocks)$'
	# shellcheck disable=SC2046 # a list of packages
	GOARCH=386 go test -vet=off -short -skip "$slow" $(GOARCH=386 go list ./... | grep -Ev "$served")
else
	echo "machines: linux/386 does not run here: fewer tests of 32 bits"
	GOARCH=arm GOARM=7 go test -vet=off -short -exec "$qemu" ./internal/flatbuf/... ./kernels/tensor/... ./runtime/...
fi
go build -modfile=tools/go.mod -o "$out/staticcheck" honnef.co/go/tools/cmd/staticcheck

# Tests, too, are compiled for 32 bits without assembly, and for another system. Builds show the rest.
for machine in linux/arm darwin/arm64; do
	echo "machines: vet $machine"
	GOOS=${machine%/*} GOARCH=${machine#*/} GOARM=7 go vet ./...
done
# What only the first tier uses is unused here (U1000).
GOOS=linux GOARCH=arm GOARM=7 "$out/staticcheck" -tests=false -checks inherit,-U1000 ./...

build() { # OS ARCH TAGS
	echo "machines: build $1/$2"
	GOOS=$1 GOARCH=$2 GOARM=7 go build -tags "$3" -ldflags "-X main.release=test" -o "bin/etrun-$1-$2" ./cmd/etrun
}
build darwin arm64 ""
build linux riscv64 ""
build linux arm ""
build wasip1 wasm ""
build linux "$(go env GOHOSTARCH)" nodl,purego

go build -modfile=tools/go.mod -o "$out/wazero" github.com/tetratelabs/wazero/cmd/wazero

native() { "bin/etrun-linux-$(go env GOHOSTARCH)" "$@"; }
arm() { "$qemu" bin/etrun-linux-arm "$@"; }
wasi() {
	"$out/wazero" run -cachedir="$out/compiled" -env PWD=/ -mount="$PWD/testdata:/testdata:ro" -mount="$out:$out" bin/etrun-wasip1-wasm "$@"
}

# Every command writes into $1; $2 is one of the functions above.
commands() {
	mkdir "$1"
	for program in digits/portable.pte pte/two_conds.pte pte/map_loop.pte; do
		$2 check testdata/$program
		for command in inspect plan; do # what is lowered depends on the machine
			$2 $command testdata/$program --lower rewrite
		done
		$2 report testdata/$program --lower rewrite --output "$1/report.html" >/dev/null
		grep -v 'made by' "$1/report.html"
		rm "$1/report.html"
	done >"$1/text"
	for program in digits/portable digits/xnnpack pte/conv_portable pte/dynamic_pair pte/dynamic_view pte/index_lists pte/map_loop \
		pte/scalar_inputs pte/stack_traces pte/two_conds pte/initial_state ethosu/programs/digits; do
		$2 testdata/$program.pte --lower rewrite --seed 7 --output-dir "$1/$program" >/dev/null
	done
	for bundle in bundle bundle_int8; do
		$2 verify testdata/pte/$bundle.bpte
	done >"$1/verified"
	status=0
	$2 inspect testdata/pte/README.md 2>/dev/null || status=$?
	echo "$status" >"$1/status"
}
for machine in native arm wasi; do
	echo "machines: commands and programs, $machine"
	commands "$out/$machine" $machine 2>"$out/stderr"
done
for machine in arm wasi; do
	diff -r "$out/native" "$out/$machine" || {
		echo "machines: $machine: other outputs than on this machine" >&2
		exit 1
	}
done
echo "machines: arm and WASI: $(find "$out/wasi" -type f | wc -l) files of outputs, equal to this machine's"
