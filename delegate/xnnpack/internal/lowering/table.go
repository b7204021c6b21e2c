package lowering

func init() {
	for _, rows := range [][]lowerRow{elementwiseLowerings, moveLowerings, matmulLowerings, convolutionLowerings, poolLowerings,
		quantizedLowerings, dynamicLowerings} {
		for i := range rows {
			lowerings[rows[i].class] = &rows[i]
		}
	}
}
