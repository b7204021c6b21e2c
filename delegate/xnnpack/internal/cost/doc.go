// Package cost estimates the time of a run of a graph on each engine.
package cost
