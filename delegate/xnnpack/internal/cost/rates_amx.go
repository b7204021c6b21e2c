package cost

var ratesAMX = [2]EngineRates{
	ByLibrary: {floats: tile{32, 1}, bytes: tile{64, 64}},
	ByGo:      {floats: tile{16, 1}, bytes: tile{16, 4}},
}
