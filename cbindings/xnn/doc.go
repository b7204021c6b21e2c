// Package xnn (no compatibility promise) binds XNNPACK's subgraph API one to one. The library is
// opened at run time, not linked: a program runs with or without it, and reports which.
//
// Three implementations have the same Go interface: cgo (the default), purego (CGO_ENABLED=0) and
// none (tag nodl, for static programs).
//
// The binding supports specific sonames. XNNPACK renumbers enums and changes structs between
// versions without notice, so a library with any other soname is rejected.
//
// Memory: XNNPACK keeps arguments of type [Address]. The memory behind them must not move and must
// stay valid as described at each field; Go memory must be pinned with a runtime.Pinner.
//
//go:generate sh -c "go run -tags nodl ./gen > calls_cgo.go.new && mv calls_cgo.go.new calls_cgo.go"
package xnn
