// Package index (no compatibility promise) implements the operators that find elements by
// index, mask or order: selecting, gathering, scattering, sorting. Values move without
// regard to their type; every index is checked before anything is read or written through
// it.
package index
