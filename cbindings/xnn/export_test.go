package xnn

// Places returns the folders searched for a library.
func Places() []string { return places("") }

// Sonames are the supported versions.
var Sonames = sonames
