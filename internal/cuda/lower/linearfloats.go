package lower

// floatBlocks are the blocks of the kernels of float32 weights, by their number of input rows; see
// kernels/linear_floats.cuh.
var floatBlocks = map[int]floatBlock{
	8:  {tiles: 1, shared: 76 << 10, each: 2, time: 10},
	32: {tiles: 2, shared: 160 << 10, each: 1, time: 16},
	64: {tiles: 4, shared: 128 << 10, each: 1, time: 61},
}

// A floatBlock is what a block has: tiles of weight rows, and shared memory in bytes. each is how many
// a multiprocessor runs at a time, and time how long these take, relative to the others: the first two
// are measured on an H200.
type floatBlock struct{ tiles, shared, each, time int }

// grid returns the number of blocks, along both dimensions, for units tiles of weight rows and for
// groups of the given number of input rows.
func (b *floatBlock) grid(units, rows, input int) (x, y int) {
	return (units + b.tiles - 1) / b.tiles, (input + rows - 1) / rows
}

// floatVariants returns first, a kernel of a single row, the smallest one for several rows, and the
// others whose blocks the device has memory for.
func (c *Compiler) floatVariants(first variant) []variant {
	all := []variant{first, {name: "linear_f32_8", rows: 8, kind: ofFloats}}
	for _, v := range []variant{{name: "linear_f32_32", rows: 32, kind: ofFloats}, {name: "linear_f32_64", rows: 64, kind: ofFloats}} {
		if c.SharedPerBlock == 0 || floatBlocks[v.rows].shared <= c.SharedPerBlock {
			all = append(all, v)
		}
	}
	return all
}

// chooseFloats returns the index of the kernel with the shortest estimated time. Large blocks read
// less, small ones are more.
func (c *Compiler) chooseFloats(variants []variant, units, input int) (best int) {
	if input == 1 {
		return 0
	}
	at, took := max(1, c.Multiprocessors), 0
	for i, v := range variants[1:] {
		b := floatBlocks[v.rows]
		x, y := b.grid(units, v.rows, input)
		if n := (x*y + b.each*at - 1) / (b.each * at) * b.time; best == 0 || n < took {
			best, took = i+1, n
		}
	}
	return best
}
