package main

import "testing"

// The program ends the process where anything fails.
func TestFirst(t *testing.T) {
	t.Chdir("../..")
	main()
}
