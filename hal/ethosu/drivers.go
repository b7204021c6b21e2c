package ethosu

// drivers are in order of preference: hardware before software. A new driver is one file and one
// entry here.
var drivers = []*Driver{
	drmDriver(linux{}),
	armDriver(linux{}),
	fvpDriver,
	softwareDriver,
}
