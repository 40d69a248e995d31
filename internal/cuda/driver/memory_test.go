package driver_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
)

// within runs f on a context.
func within(t *testing.T, c *driver.Context, f func() error) {
	t.Helper()
	if err := c.Do(f); err != nil {
		t.Fatal(err)
	}
}

// destroy calls f at the end of the test.
func destroy(t testing.TB, f func() error) {
	t.Helper()
	if err := f(); err != nil {
		t.Error(err)
	}
}

func TestAlloc(t *testing.T) {
	c := drivertest.New(t, drivertest.Options{Devices: []drivertest.Device{{Name: "Small", Memory: 1000}}}).Context()
	within(t, c, func() error {
		p, err := c.Alloc(600)
		if err != nil {
			return err
		}
		if free, total, err := c.MemInfo(); free != 400 || total != 1000 || err != nil {
			t.Errorf("%d of %d bytes free, %v", free, total, err)
		}
		if _, err := c.Alloc(500); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("500 of 400 bytes: %v", err)
		}
		if err := c.Free(p); err != nil {
			return err
		}
		if err := c.Free(p); err == nil {
			t.Error("memory could be freed twice")
		}
		if p, err = c.Alloc(1000); err != nil {
			return err
		}
		return errors.Join(c.Free(p), c.Free(0))
	})
}

func TestCopies(t *testing.T) {
	c := drivertest.New(t, drivertest.Options{}).Context()
	within(t, c, func() error {
		p, err := c.Alloc(64)
		if err != nil {
			return err
		}
		defer destroy(t, func() error { return c.Free(p) })
		want := make([]byte, 64)
		for i := range want {
			want[i] = byte(i)
		}
		got := make([]byte, 64)
		check := func(what string, err error) {
			t.Helper()
			if err == nil {
				err = c.CopyToHost(got, p)
			}
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %v\ngot  %v\nwant %v", what, err, got, want)
			}
		}
		check("to the device", c.CopyToDevice(p, want))
		copy(want[48:], want[:16])
		check("on the device", c.CopyOnDevice(p+48, p, 16))
		copy(want[4:7], []byte{9, 9, 9})
		check("bytes", c.Memset8(p+4, 9, 3))
		copy(want[8:16], []byte{4, 3, 2, 1, 4, 3, 2, 1})
		check("words", c.Memset32(p+8, 0x01020304, 2))
		check("nothing", errors.Join(c.CopyToDevice(p, nil), c.CopyToHost(nil, p), c.CopyOnDevice(p, p, 0), c.Memset8(p, 1, 0), c.Memset32(p, 1, 0)))
		for what, err := range map[string]error{
			"a copy past the end": c.CopyToDevice(p+60, want[:5]),
			"a negative copy":     c.CopyOnDevice(p, p+8, -1),
			"negative bytes":      c.Memset8(p, 0, -1),
			"negative words":      c.Memset32(p, 0, -1),
		} {
			if err == nil {
				t.Errorf("%s was done", what)
			}
		}
		return nil
	})
}

// The effects of a stream are not visible before the stream runs. A copy without a stream is
// complete when it returns; streams do not wait for it.
func TestCopiesAreOver(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{})
	c := f.Context()
	within(t, c, func() error {
		p, err := c.Alloc(64)
		if err != nil {
			return err
		}
		defer destroy(t, func() error { return c.Free(p) })
		for what, copying := range map[string]func() error{
			"to the device": func() error { return c.CopyToDevice(p, make([]byte, 8)) },
			"on the device": func() error { return c.CopyOnDevice(p, p+32, 8) },
			"bytes":         func() error { return c.Memset8(p, 0, 8) },
			"words":         func() error { return c.Memset32(p, 0, 8) },
		} {
			before := f.Calls("cuStreamSynchronize")
			if err := copying(); err != nil {
				return err
			}
			if f.Calls("cuStreamSynchronize") != before+1 {
				t.Errorf("%s: nobody waited", what)
			}
		}
		return nil
	})
}

func TestStreamCopies(t *testing.T) {
	c := drivertest.New(t, drivertest.Options{}).Context()
	within(t, c, func() error {
		s, err := c.NewStream()
		if err != nil {
			return err
		}
		defer destroy(t, s.Destroy)
		p, err := c.Alloc(32)
		if err != nil {
			return err
		}
		defer destroy(t, func() error { return c.Free(p) })
		host, err := c.AllocHost(64)
		if err != nil {
			return err
		}
		defer destroy(t, func() error { return c.FreeHost(host) })
		for i := range 32 {
			host[i] = byte(i)
		}
		want := slices.Clone(host[:32])
		copy(want[16:], want[:8])
		copy(want[28:], []byte{7, 7, 7})
		copy(want[8:12], []byte{1, 0, 0, 0})
		err = errors.Join(
			s.CopyToDevice(p, host[:32]),
			s.CopyOnDevice(p+16, p, 8),
			s.Memset8(p+28, 7, 3),
			s.Memset32(p+8, 1, 1),
			s.CopyToHost(host[32:], p),
			s.Synchronize(),
			s.CopyToDevice(p, nil), s.CopyToHost(nil, p), s.CopyOnDevice(p, p, 0), s.Memset8(p, 1, 0), s.Memset32(p, 1, 0),
		)
		if !bytes.Equal(host[32:], want) {
			t.Errorf("got  %v\nwant %v", host[32:], want)
		}
		goes := make([]byte, 8)
		for what, err := range map[string]error{
			"a copy from Go's memory": s.CopyToDevice(p, goes),
			"a copy to Go's memory":   s.CopyToHost(goes, p),
			"a negative copy":         s.CopyOnDevice(p, p+8, -1),
			"negative bytes":          s.Memset8(p, 0, -1),
			"negative words":          s.Memset32(p, 0, -1),
		} {
			if err == nil {
				t.Errorf("%s was done", what)
			}
		}
		return err
	})
}

func TestHostMemory(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{})
	c := f.Context()
	within(t, c, func() error {
		var all [][]byte
		for n := 1; n <= 5; n++ {
			b, err := c.AllocHost(n)
			if err != nil {
				return err
			}
			if len(b) != n {
				t.Errorf("%d bytes, want %d", len(b), n)
			}
			all = append(all, b)
		}
		if err := c.FreeHost(make([]byte, 3)); err == nil {
			t.Error("Go's memory could be freed")
		}
		if err := c.FreeHost(nil); err == nil {
			t.Error("nil could be freed")
		}
		for _, i := range []int{3, 0, 4, 1, 2} {
			if err := c.FreeHost(all[i]); err != nil {
				return err
			}
		}
		if err := c.FreeHost(all[0]); err == nil {
			t.Error("memory could be freed twice")
		}
		if n := f.Calls("cuMemFreeHost"); n != 5 {
			t.Errorf("%d pieces were freed", n)
		}
		if _, err := c.AllocHost(0); err == nil {
			t.Error("no bytes were given")
		}
		return nil
	})
}
