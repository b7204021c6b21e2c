package cost

// ratesAMX are those of AVX-512, but Debian's version of the library multiplies bytes in tiles of 64 columns and 64 terms.
// The rates of these products were fitted to 9,000 random ones on a Xeon with AMX. "make rates" has not run on one yet.
var ratesAMX = withTiles(ratesAVX512)

func withTiles(r [2]EngineRates) [2]EngineRates {
	library := &r[ByLibrary]
	library.bytes = tile{64, 64}
	for _, c := range [...]class{classProduct8, classDynamic8} {
		library.Rates[c] = amounts{termStart: 24, termRow: 13, termTap: 0.5, termWork: 0.0006}
	}
	return r
}
