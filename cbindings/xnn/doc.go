// Package xnn (no compatibility promise) binds XNNPACK's graph interface one to one. The
// library is opened at run time, never linked: a program built anywhere runs where the
// library is and where it is not, and says which.
//
// Three twins have the same Go interface: cgo (the default), purego (CGO_ENABLED=0)
// and none (tag nodl, a pure static program).
//
// The binding knows exact sonames. XNNPACK renumbers enums and changes structs
// between versions without notice, so a library of any other soname is refused by
// its name.
//
// Memory: arguments of type [Address] are kept by XNNPACK. The bytes behind them
// must stay where they are, and alive, as the field's comment says; for Go memory
// that means a runtime.Pinner.
//
//go:generate sh -c "go run -tags nodl ./gen > calls_cgo.go.new && mv calls_cgo.go.new calls_cgo.go"
package xnn
