package grammar

// Tune makes small vocabularies take the ways of large ones.
func Tune(outside, bytes int, bounds ...int) (back func()) {
	a, b, c, d := manyOutside, narrow, tierBounds, maxApart
	manyOutside, narrow, tierBounds, maxApart = outside, bytes, append(bounds, maxPiece), outside+3
	return func() { manyOutside, narrow, tierBounds, maxApart = a, b, c, d }
}
