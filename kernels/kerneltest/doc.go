// Package kerneltest (no compatibility promise) is a conformance suite for operators. It accepts
// any [kernels.Set], so that portable, specialized and third-party operators pass the same tests:
//
//   - [Table] checks that the entries of a set are well formed.
//   - [Run] calls operators by name and compares the results with the expected ones.
//   - [Calls] executes calls from real programs.
//   - [Random] and [Fuzz] call every operator with generated, mostly invalid arguments.
//   - [NoAllocs] checks that an operator does not allocate after its first call.
//
// Every call is made in guarded memory and must satisfy the contract of [kernels.Func] whatever its
// arguments: it does not panic or write outside its outs, its error is an argument error, and its
// results depend only on its arguments.
package kerneltest
