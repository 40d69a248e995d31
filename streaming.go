package realizar

import "github.com/realizar/realizar/internal/plan"

// A Streaming says which weights of a model lie on a device, and how the others come
// to it. Bytes are as the device lays weights out.
type Streaming struct {
	Resident int64 `json:"resident"` // bytes that stay on the device: of layers that do not stream, and of what belongs to no layer

	// Layers come to the device in every step. They take turns in Slots pieces of
	// SlotBytes there, so that one arrives while another one is at work. Of their bytes,
	// Staged are read from the file each time, as the host has no memory pinned for them.
	Layers    []LayerRange `json:"layers,omitempty"`
	Slots     int          `json:"slots,omitempty"`
	SlotBytes int64        `json:"slot_bytes,omitempty"`
	Streamed  int64        `json:"streamed,omitempty"` // bytes of all Layers
	Staged    int64        `json:"staged,omitempty"`   // of Streamed

	Experts *ExpertCache `json:"experts,omitempty"` // nil where experts are as the other weights of their layer
	Pinned  int64        `json:"pinned"`            // bytes of the host's memory, of layers and experts
}

// A LayerRange is the layers from First to Last, counted from 0.
type LayerRange struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// An ExpertCache keeps on the device those experts of every mixture that were used
// most. The others are copied from pinned memory when a token needs them.
type ExpertCache struct {
	Layers int   `json:"layers"` // that are mixtures
	Of     int   `json:"of"`     // experts that each of them has
	Kept   int   `json:"kept"`   // of these, so many are on the device at a time
	Used   int   `json:"used"`   // by a token
	Shared int   `json:"shared"` // further places, which all mixtures use in turn
	Bytes  int64 `json:"bytes"`  // of one expert's place
}

// Device is the bytes of the device's memory that all places of experts take.
func (c *ExpertCache) Device() int64 { return int64(c.Layers*c.Kept+c.Shared) * c.Bytes }

// newStreaming is s, or nil where nothing streams.
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
