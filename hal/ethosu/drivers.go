package ethosu

// drivers are the carriers, the preferred first: hardware before software. A new
// carrier is one file and one row here.
var drivers = []*Driver{
	drmDriver(linux{}),
	armDriver(linux{}),
	fvpDriver,
	softwareDriver,
}
