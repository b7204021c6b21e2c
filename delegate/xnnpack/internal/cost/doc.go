// Package cost (no compatibility promise) estimates the time of a run of a graph on each engine.
package cost
