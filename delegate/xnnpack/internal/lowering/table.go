package lowering

func init() {
	Lowerings = make(map[string]*lowerRow)
	for _, rows := range [][]lowerRow{elementwiseLowerings, moveLowerings, matmulLowerings, convolutionLowerings, poolLowerings,
		quantizedLowerings, dynamicLowerings} {
		for i := range rows {
			Lowerings[rows[i].op] = &rows[i]
		}
	}
}
