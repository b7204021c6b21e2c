// Package ethosu is the delegate for Arm Ethos-U NPUs: it reads the payloads that
// ExecuTorch's Arm backend makes with the Vela compiler, and runs them on a device of
// [github.com/etrun-go/etrun/hal/ethosu].
package ethosu

// ID is the name by which programs ask for the delegate.
const ID = "EthosUBackend"
