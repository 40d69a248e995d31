package cuda

import (
	"github.com/realizar/realizar/internal/cuda/driver"
)

type keepArgs struct {
	active, count                driver.DevicePtr
	table, heat, holders         driver.DevicePtr
	experts, kept, first, shared int32
	missing, missed, uses        driver.DevicePtr
	bytes                        int64
}

type fetchArgs struct {
	missing, missed, images, places driver.DevicePtr
	bytes, apart                    int64
}

// fetchBlocks is how many blocks fetch: with what each of their threads has under way
// they keep the link busy.
const fetchBlocks = 64

// fetch makes the launches that bring the experts a step has chosen to the device, where
// not all of them stay there.
func (m *mixture) fetch() ([]launch, error) {
	x, cache := m.cached()
	if cache == nil {
		return nil, nil
	}
	c, e := &cache.mixtures[x.mixture], &m.e
	table := m.weightsAt + driver.DevicePtr(c.tables)
	k := keepArgs{
		active: e.active, count: e.sizes, table: table, heat: table + driver.DevicePtr(4*c.experts), holders: table + driver.DevicePtr(8*c.experts),
		experts: int32(c.experts), kept: int32(c.kept), first: int32(c.first), shared: int32(cache.Layers * cache.Kept),
		missing: e.missing, missed: e.missed, uses: m.scratchAt + driver.DevicePtr(m.room.uses), bytes: int64(c.bytes),
	}
	keep, err := m.launch("expertcache", "keep", m.rows, arguments(&k), 256, func(*shape) driver.Dim3 { return driver.Dim3{X: 1} })
	if err != nil {
		return nil, err
	}
	f := fetchArgs{missing: k.missing, missed: k.missed, places: m.weightsAt + driver.DevicePtr(cache.at), bytes: int64(c.bytes), apart: int64(cache.Bytes)}
	if m.expertImages != nil {
		f.images = m.expertImages[x.mixture]
	}
	fetch, err := m.launch("expertcache", "fetch", m.rows, arguments(&f), 256, func(*shape) driver.Dim3 { return driver.Dim3{X: fetchBlocks} })
	return []launch{keep, fetch}, err
}

// cached says where the mixture's experts are in the cache; nil where all of them stay on
// the device.
func (m *mixture) cached() (expertPart, *expertCache) {
	if m.weights.experts == nil {
		return expertPart{}, nil
	}
	return m.weights.experts.of[m.attr.Gate[0]], m.weights.experts
}
