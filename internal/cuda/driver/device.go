package driver

import "fmt"

// A Device is a GPU that the driver reports. The driver respects CUDA_VISIBLE_DEVICES, which
// selects and orders the devices.
type Device struct {
	Index int
	Name  string
	UUID  string // GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
	PCI   string // domain:bus:device.function

	Capability      Capability
	Memory          int // bytes
	Multiprocessors int
	L2              int // bytes
	SharedPerBlock  int // maximum shared memory of a block, in bytes
	Clock           int // of the multiprocessors, kHz
	MemoryClock     int // kHz
	MemoryBus       int // bits

	handle uintptr
}

// A Capability is a compute capability, such as 9.0 for Hopper.
type Capability struct{ Major, Minor int }

func (c Capability) String() string { return fmt.Sprintf("%d.%d", c.Major, c.Minor) }

// AtLeast reports whether c is the capability major.minor or a later one.
func (c Capability) AtLeast(major, minor int) bool {
	return c.Major > major || c.Major == major && c.Minor >= minor
}

// Bandwidth returns the peak bandwidth of the memory bus at two transfers per clock, in bytes per
// second. No kernel reaches it.
func (d Device) Bandwidth() float64 {
	return 2 * float64(d.MemoryClock) * 1000 * float64(d.MemoryBus) / 8
}

// Attributes of a device, a CUdevice_attribute.
const (
	attributeClock           = 13
	attributeMultiprocessors = 16
	attributeMemoryClock     = 36
	attributeMemoryBus       = 37
	attributeL2              = 38
	attributeMajor           = 75
	attributeMinor           = 76
	attributeSharedPerBlock  = 97
)

// Devices lists the GPUs. The error wraps [ErrNoDevice] if there is none.
func (d *Driver) Devices() ([]Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if code := d.call(fnDeviceGetCount, at(&d.out.i)); code != Success {
		return nil, d.fault(fnDeviceGetCount, code)
	}
	n := int(d.out.i)
	if n <= 0 {
		return nil, noDevice(nil)
	}
	devices := make([]Device, n)
	for i := range devices {
		if err := d.describe(i, &devices[i]); err != nil {
			err.Doing = fmt.Sprintf("looking at device %d", i)
			return nil, err
		}
	}
	return devices, nil
}

func (d *Driver) describe(index int, dev *Device) *Error {
	if code := d.call(fnDeviceGet, at(&d.out.i), uintptr(index)); code != Success {
		return d.fault(fnDeviceGet, code)
	}
	dev.Index, dev.handle = index, uintptr(d.out.i)

	text, size := at(&d.out.text), uintptr(len(d.out.text))
	if code := d.call(fnDeviceGetName, text, size, dev.handle); code != Success {
		return d.fault(fnDeviceGetName, code)
	}
	dev.Name = d.text()
	if code := d.call(fnDeviceGetPCIBusID, text, size, dev.handle); code != Success {
		return d.fault(fnDeviceGetPCIBusID, code)
	}
	dev.PCI = d.text()
	if code := d.call(fnDeviceGetUUID, text, dev.handle); code != Success {
		return d.fault(fnDeviceGetUUID, code)
	}
	u := d.out.text[:16]
	dev.UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	if code := d.call(fnDeviceTotalMem, at(&d.out.size[0]), dev.handle); code != Success {
		return d.fault(fnDeviceTotalMem, code)
	}
	dev.Memory = int(d.out.size[0])

	for _, a := range []struct {
		attribute uintptr
		value     *int
	}{
		{attributeMajor, &dev.Capability.Major},
		{attributeMinor, &dev.Capability.Minor},
		{attributeMultiprocessors, &dev.Multiprocessors},
		{attributeL2, &dev.L2},
		{attributeSharedPerBlock, &dev.SharedPerBlock},
		{attributeClock, &dev.Clock},
		{attributeMemoryClock, &dev.MemoryClock},
		{attributeMemoryBus, &dev.MemoryBus},
	} {
		if code := d.call(fnDeviceGetAttribute, at(&d.out.i), a.attribute, dev.handle); code != Success {
			e := d.fault(fnDeviceGetAttribute, code)
			e.Detail = fmt.Sprintf("attribute %d", a.attribute)
			return e
		}
		*a.value = int(d.out.i)
	}
	return nil
}
