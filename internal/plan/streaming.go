package plan

// Streaming says which weights of a program stay in a device's memory, and how the others get there
// if [Limits.Weights] leaves no room for all. Bytes are in the device's own layout of weights.
type Streaming struct {
	Resident int // bytes that stay on the device: vectors, tables, the head, and layers

	// Layers are the layers whose matrices are copied to the device in every step, in ascending
	// order. They take turns in Slots buffers of SlotBytes bytes on the device, so that one layer
	// is copied while another one computes. Staged bytes of a step's copies are read from the
	// program's weights each time, because the host has no pinned memory for them.
	Layers    []int
	Slots     int
	SlotBytes int
	Streamed  int // bytes of all Layers, copied in each step
	Staged    int // bytes of Streamed that are not in pinned memory

	Experts ExpertCache
	Pinned  int // bytes of pinned host memory, for layers and experts
}

// An ExpertCache keeps the most used experts of every mixture on the device. The others are copied
// when a token needs them.
type ExpertCache struct {
	Layers int // mixtures with a cache; 0: no cache
	Of     int // experts of a mixture
	Kept   int // experts of a mixture on the device at a time
	Used   int // experts per token
	Shared int // further places, used by all mixtures in turn for experts that do not fit their own places
	Bytes  int // of one place, which holds one expert
}

// Any reports whether any weights stream.
func (s *Streaming) Any() bool { return len(s.Layers) > 0 || s.Experts.Layers > 0 }

// Device returns the bytes of device memory that weights take.
func (s *Streaming) Device() int {
	x := &s.Experts
	return s.Resident + s.Slots*s.SlotBytes + (x.Layers*x.Kept+x.Shared)*x.Bytes
}
