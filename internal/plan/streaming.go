package plan

// Streaming says which weights of a program lie in a device's memory, and how the
// others come to it where [Limits.Weights] leaves no room for all. Bytes are as the
// device lays weights out.
type Streaming struct {
	Resident int // bytes that stay on the device: vectors, tables, the head, and layers

	// Layers are those whose matrices come to the device in every step, in ascending
	// order. They take turns in Slots pieces of SlotBytes on the device, so that one
	// layer arrives while another one is at work. Of the bytes that a step copies,
	// Staged are read from the program's weights each time, as the host has no memory
	// pinned for them.
	Layers    []int
	Slots     int
	SlotBytes int
	Streamed  int // bytes of all Layers
	Staged    int // of Streamed

	Experts ExpertCache
	Pinned  int // bytes of the host's memory, of layers and experts
}

// An ExpertCache keeps on the device those experts of every mixture that were used
// most. The others are copied when a token needs them.
type ExpertCache struct {
	Layers int // mixtures with a cache; 0: there is none
	Of     int // experts that each of them has
	Kept   int // of these, so many are on the device at a time
	Used   int // by a token
	Shared int // further places, which all mixtures use in turn for what their own have no room for
	Bytes  int // of one expert's place
}

// Any reports whether anything streams.
func (s *Streaming) Any() bool { return len(s.Layers) > 0 || s.Experts.Layers > 0 }

// Device is the bytes of the device's memory that weights take.
func (s *Streaming) Device() int {
	x := &s.Experts
	return s.Resident + s.Slots*s.SlotBytes + (x.Layers*x.Kept+x.Shared)*x.Bytes
}
