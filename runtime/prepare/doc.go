// Package prepare (no compatibility promise) makes of a method of a file what its instances share. The stages are functions from one
// value to the next:
//
//	linked     its operators, backends and external data are found
//	opened     each delegate of the file has an image, or a payload that lowering may merge with the calls around it
//	built      it is a dataflow; faults of exporters are repaired, or refused
//	rewritten  constants are computed, and chains of calls are replaced by cheaper ones
//	lowered    regions are compiled for backends
//	compiled   the payloads that no region contains are compiled too
//	Method     the memory of an instance is planned
//
// Values do not change after the stage that returns them. If a lowered method does not fit into memory, the next
// stages are repeated with the method as it was rewritten.
package prepare
