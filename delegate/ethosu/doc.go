// Package ethosu is the delegate for Arm Ethos-U NPUs. It reads the payloads that ExecuTorch's Arm
// backend creates with the Vela compiler, and runs them on a device of
// [github.com/etrun-go/etrun/hal/ethosu].
package ethosu

// ID is the name that identifies the delegate in programs.
const ID = "EthosUBackend"
