package cost

var ratesDotprod = [2]EngineRates{
	ByLibrary: {floats: tile{8, 1}, bytes: tile{16, 4}},
	ByGo:      {floats: tile{8, 1}, bytes: tile{16, 4}},
}
