package grammar

// Tune makes small vocabularies take the ways of large ones.
func Tune(outside, bytes int, bounds ...int) (back func()) {
	a, b, c := manyOutside, narrow, tierBounds
	manyOutside, narrow, tierBounds = outside, bytes, append(bounds, maxPiece)
	return func() { manyOutside, narrow, tierBounds = a, b, c }
}
