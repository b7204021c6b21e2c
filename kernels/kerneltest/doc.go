// Package kerneltest (no compatibility promise) is a conformance suite for operators. It
// takes any [kernels.Set], so that portable operators, specialised ones and those of other
// packages stand the same tests:
//
//   - [Table] checks that the rows of a set are well formed.
//   - [Run] calls operators by name and compares what they give with what they must.
//   - [Calls] makes the calls that real programs make.
//   - [Random] and [Fuzz] call every operator with arguments that nobody would write.
//   - [NoAllocs] checks that an operator allocates nothing once it is warm.
//
// Every call is made in guarded memory and must keep the contract of
// [kernels.Func], whatever its arguments are: it neither panics nor writes outside
// its outs, its error is an argument error, and all it leaves behind depends on
// nothing but its arguments.
package kerneltest
