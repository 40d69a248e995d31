package grammar

// Tune lets small vocabularies take the code paths of large ones. back restores the settings.
func Tune(outside, bytes int, bounds ...int) (back func()) {
	a, b, c, d := manyOutside, narrow, tierBounds, apartShare
	manyOutside, narrow, tierBounds, apartShare = outside, bytes, append(bounds, maxPiece), outside+1
	return func() { manyOutside, narrow, tierBounds, apartShare = a, b, c, d }
}
