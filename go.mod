module github.com/etrun-go/etrun

go 1.26.0

require github.com/x448/float16 v0.8.4

require golang.org/x/sys v0.49.0

require (
	github.com/ebitengine/purego v0.11.3
	github.com/google/flatbuffers v25.12.19+incompatible
	github.com/google/go-cmp v0.7.0
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.9
	go.uber.org/goleak v1.3.0
)

require github.com/inconshreveable/mousetrap v1.1.0 // indirect
