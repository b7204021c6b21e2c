// Package platform lets the module compile on the machines of docs/platforms.md only.
// What depends on the operating system or on the order of bytes imports it, so that elsewhere the compiler's one
// message is the sentence of unsupported.go.
package platform
