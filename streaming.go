package realizar

import "github.com/realizar/realizar/internal/plan"

// Streaming describes which weights of a model stay on a device and which are streamed to it. Sizes
// are in the device's layout.
type Streaming struct {
	Resident int64 `json:"resident"` // bytes of weights that stay on the device, without Experts

	// Layers are the layers that are copied to the device in every step. They take turns in Slots
	// buffers of SlotBytes each, so that one layer is copied while another one computes. Streamed
	// is the size of all Layers in bytes. Staged is the part of it that is read from the file in
	// every step, because it is not in pinned host memory.
	Layers    []LayerRange `json:"layers,omitempty"`
	Slots     int          `json:"slots,omitempty"`
	SlotBytes int64        `json:"slot_bytes,omitempty"`
	Streamed  int64        `json:"streamed,omitempty"`
	Staged    int64        `json:"staged,omitempty"`

	Experts *ExpertCache `json:"experts,omitempty"` // nil if experts are not cached one by one
	Pinned  int64        `json:"pinned"`            // bytes of pinned host memory for layers and experts
}

// A LayerRange is the layers from First to Last, inclusive, counted from 0.
type LayerRange struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// An ExpertCache describes a cache on the device of the experts that are used most in each
// mixture-of-experts layer. The other experts are copied from pinned host memory when a token needs
// them.
type ExpertCache struct {
	Layers int   `json:"layers"` // number of mixture-of-experts layers
	Of     int   `json:"of"`     // experts of a layer
	Kept   int   `json:"kept"`   // experts of a layer that are on the device at a time
	Used   int   `json:"used"`   // experts that compute a token
	Shared int   `json:"shared"` // further slots that all layers share
	Bytes  int64 `json:"bytes"`  // size of a slot, which holds one expert
}

// Device returns the bytes of device memory that all slots take.
func (c *ExpertCache) Device() int64 { return int64(c.Layers*c.Kept+c.Shared) * c.Bytes }

// newStreaming returns s as a Streaming, or nil if nothing streams.
func newStreaming(s *plan.Streaming) *Streaming {
	if !s.Any() {
		return nil
	}
	all := &Streaming{
		Resident: int64(s.Resident), Slots: s.Slots, SlotBytes: int64(s.SlotBytes),
		Streamed: int64(s.Streamed), Staged: int64(s.Staged), Pinned: int64(s.Pinned),
	}
	for _, layer := range s.Layers {
		if n := len(all.Layers); n > 0 && all.Layers[n-1].Last == layer-1 {
			all.Layers[n-1].Last = layer
			continue
		}
		all.Layers = append(all.Layers, LayerRange{layer, layer})
	}
	if x := &s.Experts; x.Layers > 0 {
		all.Experts = &ExpertCache{Layers: x.Layers, Of: x.Of, Kept: x.Kept, Used: x.Used, Shared: x.Shared, Bytes: int64(x.Bytes)}
	}
	return all
}
