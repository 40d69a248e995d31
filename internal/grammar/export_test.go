package grammar

// Tune makes small vocabularies take the ways of large ones.
func Tune(outside, bytes int, bounds ...int) (back func()) {
	a, b, c, d := manyOutside, narrow, tierBounds, apartShare
	manyOutside, narrow, tierBounds, apartShare = outside, bytes, append(bounds, maxPiece), outside+1
	return func() { manyOutside, narrow, tierBounds, apartShare = a, b, c, d }
}
