package driver_test

import (
	"errors"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
)

const lostAdvice = "; the context is of no more use: close it and open another, or restart the process where that fails too"

func TestErrorText(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{Devices: []drivertest.Device{{Name: "Small", Memory: 4096}}})
	c := f.Context()
	for _, test := range []struct {
		name string
		fail string
		code driver.Code
		run  func() error
		is   error
		text string
	}{
		{
			name: "out of memory",
			run: func() error {
				_, err := c.Alloc(8192)
				return err
			},
			is:   driver.ErrOutOfMemory,
			text: "cuda: loading layer 3: cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY): 8192 bytes wanted, 4096 of 4096 bytes free",
		},
		{
			name: "out of pinned memory", fail: "cuMemHostAlloc", code: driver.OutOfMemory,
			run: func() error {
				_, err := c.AllocHost(100)
				return err
			},
			is:   driver.ErrOutOfMemory,
			text: "cuda: loading layer 3: cuMemHostAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY): 100 bytes of pinned host memory wanted, 4096 of 4096 bytes free",
		},
		{
			name: "out of memory elsewhere", fail: "cuStreamCreate", code: driver.OutOfMemory,
			run: func() error {
				_, err := c.NewStream()
				return err
			},
			is:   driver.ErrOutOfMemory,
			text: "cuda: loading layer 3: cuStreamCreate: out of memory (CUDA_ERROR_OUT_OF_MEMORY): 4096 of 4096 bytes free",
		},
		{
			name: "a size below zero",
			run: func() error {
				_, err := c.Alloc(-1)
				return err
			},
			text: "cuda: loading layer 3: cuMemAlloc: invalid argument (CUDA_ERROR_INVALID_VALUE): -1 bytes wanted; a size is above zero",
		},
		{
			name: "wrong text",
			run: func() error {
				_, err := c.LoadModule([]byte("int main() {}"))
				return err
			},
			text: "cuda: loading layer 3: cuModuleLoadDataEx: a PTX JIT compilation failed (CUDA_ERROR_INVALID_PTX): ptxas fatal   : Missing .version directive at start of file",
		},
		{
			name: "a code without words", fail: "cuCtxSynchronize", code: 12345,
			run:  c.Synchronize,
			text: "cuda: loading layer 3: cuCtxSynchronize: an error that the driver has no words for (CUDA error 12345)",
		},
		{
			name: "a fault", fail: "cuCtxSynchronize", code: driver.IllegalAddress,
			run:  c.Synchronize,
			is:   driver.ErrDeviceLost,
			text: "cuda: loading layer 3: cuCtxSynchronize: an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)" + lostAdvice,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.fail != "" {
				f.Fail(test.fail, 1, test.code)
			}
			err := c.Do(func() error {
				defer c.Doing(c.Doing("loading layer 3"))
				return test.run()
			})
			if err == nil || err.Error() != test.text {
				t.Errorf("got  %v\nwant %s", err, test.text)
			}
			for _, kind := range []error{driver.ErrOutOfMemory, driver.ErrDeviceLost} {
				if errors.Is(err, kind) != errors.Is(test.is, kind) {
					t.Errorf("whether the error is %v: %v", kind, errors.Is(err, kind))
				}
			}
		})
	}
}

func TestDoingIsRestored(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{})
	c := f.Context()
	f.Fail("cuCtxSynchronize", 1, driver.InvalidValue)
	err := c.Do(func() error {
		defer c.Doing(c.Doing("the whole"))
		func() {
			defer c.Doing(c.Doing("a part"))
		}()
		return c.Synchronize()
	})
	var e *driver.Error
	if !errors.As(err, &e) || e.Doing != "the whole" {
		t.Errorf("got %v", err)
	}
}

// Every call after a device is lost reports the loss, and none reaches the driver.
func TestLost(t *testing.T) {
	for _, code := range []driver.Code{driver.ECCUncorrectable, driver.IllegalAddress, driver.LaunchFailed, driver.Unknown} {
		f := drivertest.New(t, drivertest.Options{})
		c := f.Context()
		first := c.Do(func() error {
			s, err := c.NewStream()
			if err != nil {
				return err
			}
			f.Fail("cuStreamSynchronize", 1, code)
			err = s.Synchronize()
			before := f.Calls("cuMemAlloc") + f.Calls("cuMemGetInfo") + f.Calls("cuStreamDestroy") + f.Calls("cuStreamQuery") + f.Calls("cuLaunchKernel") + f.Calls("cuModuleLoadDataEx")
			_, alloc := c.Alloc(1)
			_, _, info := c.MemInfo()
			_, query := s.Query()
			_, module := c.LoadModule([]byte(".version"))
			for _, again := range []error{alloc, info, query, module, s.Destroy()} {
				if !errors.Is(again, err) {
					t.Errorf("%d: after %v came %v", code, err, again)
				}
			}
			if after := f.Calls("cuMemAlloc") + f.Calls("cuMemGetInfo") + f.Calls("cuStreamDestroy") + f.Calls("cuStreamQuery") + f.Calls("cuLaunchKernel") + f.Calls("cuModuleLoadDataEx"); after != before {
				t.Errorf("%d: %d calls were made on a lost device", code, after-before)
			}
			return err
		})
		if !errors.Is(first, driver.ErrDeviceLost) {
			t.Errorf("%d: got %v", code, first)
		}
	}
}
