package grammar

// Tune makes small vocabularies take the ways of large ones.
func Tune(outside, bytes int, bounds ...int) (back func()) {
	a, b, c, d := manyOutside, narrow, tierBounds, differing
	manyOutside, narrow, tierBounds, differing = outside, bytes, append(bounds, maxPiece), 1
	return func() { manyOutside, narrow, tierBounds, differing = a, b, c, d }
}
