package main

import "testing"

// The program terminates the process on errors.
func TestFirst(t *testing.T) {
	t.Chdir("../..")
	main()
}
