// Package platform restricts the module to the platforms of docs/platforms.md. Packages that depend
// on the operating system or the byte order import it, so that on other platforms the compiler
// prints only the message in unsupported.go.
package platform
