package cost

var ratesNEON = [2]EngineRates{
	ByLibrary: {floats: tile{8, 1}, bytes: tile{16, 1}},
	ByGo:      {floats: tile{8, 1}, bytes: tile{16, 4}},
}
