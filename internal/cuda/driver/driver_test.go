package driver_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
)

// On a machine with a GPU Open succeeds. On any other its error says why not.
func TestOpen(t *testing.T) {
	d, err := driver.Open()
	if err != nil {
		if !errors.Is(err, driver.ErrNoDriver) && !errors.Is(err, driver.ErrNoDevice) && !errors.Is(err, driver.ErrTooOld) {
			t.Errorf("the error is of no kind: %v", err)
		}
		if _, again := driver.Open(); !errors.Is(again, err) {
			t.Errorf("a second call says %v, the first %v", again, err)
		}
		return
	}
	if d.Version() < 12010 {
		t.Errorf("version %v was taken", d.Version())
	}
}

func TestOpenLibrary(t *testing.T) {
	for _, test := range []struct {
		name    string
		options drivertest.Options
		fail    driver.Code // of cuDriverGetVersion
		is      error
		text    string
	}{
		{name: "as it should be"},
		{name: "12.1", options: drivertest.Options{Version: 12010}},
		{
			name: "too old, and lacking what came later", options: drivertest.Options{Version: 11080, Missing: []string{"cuTensorMapEncodeTiled"}},
			is:   driver.ErrTooOld,
			text: "the NVIDIA driver is too old: it is for CUDA 11.8, and 12.1 is needed; install a driver of version 530 or later",
		},
		{
			name: "not a driver", options: drivertest.Options{Missing: []string{"cuLaunchKernelEx"}},
			is:   driver.ErrNoDriver,
			text: "no usable NVIDIA driver: its library lacks cuLaunchKernelEx: undefined symbol: cuLaunchKernelEx; install a driver of version 530 or later",
		},
		{
			name: "no device", options: drivertest.Options{Init: driver.NoDevice},
			is:   driver.ErrNoDevice,
			text: "no NVIDIA GPU is visible: cuda: cuInit: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE); see what nvidia-smi lists, and what CUDA_VISIBLE_DEVICES allows",
		},
		{
			name: "library and kernel module differ", options: drivertest.Options{Init: driver.SystemDriverMismatch},
			is:   driver.ErrNoDriver,
			text: "no usable NVIDIA driver: cuda: cuInit: system has unsupported display driver / cuda driver combination (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH); does nvidia-smi work?",
		},
		{
			name: "a stub", fail: driver.StubLibrary,
			is:   driver.ErrNoDriver,
			text: "no usable NVIDIA driver: cuda: cuDriverGetVersion: an error that the driver has no words for (CUDA error 34)",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := drivertest.New(t, test.options)
			if test.fail != 0 {
				f.Fail("cuDriverGetVersion", 1, test.fail)
			}
			d, err := driver.OpenLibrary(f.Lookup)
			if test.is == nil {
				if err != nil {
					t.Fatal(err)
				}
				if want := max(test.options.Version, 12010); d.Version() < want {
					t.Errorf("version %v, want %v", d.Version(), want)
				}
				return
			}
			if !errors.Is(err, test.is) {
				t.Errorf("the error is not %v", test.is)
			}
			if err == nil || err.Error() != test.text {
				t.Errorf("got  %v\nwant %s", err, test.text)
			}
		})
	}
}

func TestDevices(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{Devices: []drivertest.Device{{Name: "First", Memory: 1 << 30}, {Name: "Second", Memory: 2 << 30}}})
	devices, err := f.Driver().Devices()
	if err != nil {
		t.Fatal(err)
	}
	want := []driver.Device{
		{
			Index: 0, Name: "First", UUID: "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f", PCI: "0000:01:00.0",
			Capability: driver.Capability{Major: 9}, Memory: 1 << 30, Multiprocessors: 132, L2: 50 << 20,
			SharedPerBlock: 227 << 10, Clock: 1_980_000, MemoryClock: 3_201_000, MemoryBus: 6144,
		},
		{
			Index: 1, Name: "Second", UUID: "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f", PCI: "0000:02:00.0",
			Capability: driver.Capability{Major: 9}, Memory: 2 << 30, Multiprocessors: 132, L2: 50 << 20,
			SharedPerBlock: 227 << 10, Clock: 1_980_000, MemoryClock: 3_201_000, MemoryBus: 6144,
		},
	}
	if diff := cmp.Diff(want, devices, cmpopts.IgnoreUnexported(driver.Device{})); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	if got := devices[0].Bandwidth(); got != 4_916_736_000_000 {
		t.Errorf("bandwidth %.0f", got)
	}
}

func TestDevicesFail(t *testing.T) {
	t.Run("none", func(t *testing.T) {
		f := drivertest.New(t, drivertest.Options{Devices: []drivertest.Device{}})
		if _, err := f.Driver().Devices(); !errors.Is(err, driver.ErrNoDevice) {
			t.Errorf("got %v", err)
		}
	})
	for _, call := range []string{"cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetPCIBusId", "cuDeviceGetUuid", "cuDeviceTotalMem", "cuDeviceGetAttribute"} {
		t.Run(call, func(t *testing.T) {
			f := drivertest.New(t, drivertest.Options{})
			f.Fail(call, 1, driver.InvalidDevice)
			_, err := f.Driver().Devices()
			var e *driver.Error
			if !errors.As(err, &e) || e.Call != call || e.Code != driver.InvalidDevice {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCapability(t *testing.T) {
	for _, test := range []struct {
		c            driver.Capability
		major, minor int
		want         bool
	}{
		{driver.Capability{Major: 8, Minor: 6}, 8, 0, true},
		{driver.Capability{Major: 8, Minor: 6}, 8, 6, true},
		{driver.Capability{Major: 8, Minor: 6}, 8, 9, false},
		{driver.Capability{Major: 8, Minor: 9}, 9, 0, false},
		{driver.Capability{Major: 9, Minor: 0}, 8, 9, true},
	} {
		if got := test.c.AtLeast(test.major, test.minor); got != test.want {
			t.Errorf("%v at least %d.%d: %v", test.c, test.major, test.minor, got)
		}
	}
}
