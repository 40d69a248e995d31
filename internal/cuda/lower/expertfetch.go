package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
)

// KeepArgs are the arguments of the kernel that decides which experts stay on the device.
type KeepArgs struct {
	Active, Count                driver.DevicePtr
	Table, Heat, Holders         driver.DevicePtr
	Experts, Kept, First, Shared int32
	Missing, Missed, Uses        driver.DevicePtr
	Bytes                        int64
}

// FetchArgs are the arguments of the kernel that copies experts to the device.
type FetchArgs struct {
	Missing, Missed, Images, Places driver.DevicePtr
	Bytes, Apart                    int64
}

// FetchBlocks is the number of blocks that fetch experts. Together with the reads in flight of each
// thread, they saturate the link.
const FetchBlocks = 64

// fetch returns the launches that copy the chosen experts to the device, or none if all experts
// stay on the device.
func (m *mixture) fetch() ([]Launch, error) {
	x, cache := m.cached()
	if cache == nil {
		return nil, nil
	}
	c, e := &cache.Mixtures[x.Mixture], &m.e
	table := m.WeightsAt + driver.DevicePtr(c.Tables)
	k := KeepArgs{
		Active: e.active, Count: e.sizes, Table: table, Heat: table + driver.DevicePtr(4*c.Experts), Holders: table + driver.DevicePtr(8*c.Experts),
		Experts: int32(c.Experts), Kept: int32(c.Kept), First: int32(c.First), Shared: int32(cache.Layers * cache.Kept),
		Missing: e.missing, Missed: e.missed, Uses: m.ScratchAt + driver.DevicePtr(m.Room.Uses), Bytes: int64(c.Bytes),
	}
	keep, err := m.launch("expertcache", "keep", m.rows, device.Arguments(&k), 256, func(*Shape) driver.Dim3 { return driver.Dim3{X: 1} })
	if err != nil {
		return nil, err
	}
	f := FetchArgs{Missing: k.Missing, Missed: k.Missed, Places: m.WeightsAt + driver.DevicePtr(cache.At), Bytes: int64(c.Bytes), Apart: int64(cache.Bytes)}
	if m.ExpertImages != nil {
		f.Images = m.ExpertImages[x.Mixture]
	}
	fetch, err := m.launch("expertcache", "fetch", m.rows, device.Arguments(&f), 256, func(*Shape) driver.Dim3 { return driver.Dim3{X: FetchBlocks} })
	return []Launch{keep, fetch}, err
}

// cached returns the mixture's part of the expert cache, or nil if all of its experts stay on the
// device.
func (m *mixture) cached() (weights.ExpertPart, *weights.ExpertCache) {
	if m.Weights.Experts == nil {
		return weights.ExpertPart{}, nil
	}
	x, ok := m.Weights.Experts.PartOf[m.attr.Gate[0]]
	if !ok {
		return x, nil // matrices of heads
	}
	return x, m.Weights.Experts
}
