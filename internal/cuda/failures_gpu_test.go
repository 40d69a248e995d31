//go:build gpu

package cuda

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/tensor"
)

// A request for more memory than the GPU has is an error with numbers, and leaks nothing.
func TestGPUOutOfMemory(t *testing.T) {
	b := openGPU(t, Options{})
	p := decoder(t, tensor.Q8_0)
	small := limitsFor(p, 8, 2)
	// Loading the kernels takes memory once.
	if err := compiled(t, b, p, small).Close(); err != nil {
		t.Fatal(err)
	}
	before := b.Memory()
	big := small
	page, err := big.PageBytes(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	big.Pages = []int{int(before.Total)/page + 1}
	_, err = b.Compile(context.Background(), p, big, nil)
	if !errors.Is(err, driver.ErrOutOfMemory) || !regexp.MustCompile(`making room for states: .*\d+ bytes wanted, \d+ of \d+ bytes free$`).MatchString(err.Error()) {
		t.Errorf("got %v", err)
	}
	if lost := before.Free - b.Memory().Free; lost > 64<<20 {
		t.Errorf("%d bytes are gone", lost)
	}
	if err := run(compiled(t, b, p, small), batchOf(p, 2, 0, 3)); err != nil {
		t.Errorf("a small model: %v", err)
	}
}

// faulting is a kernel that writes to an invalid address.
const faulting = `
.version 7.0
.target sm_80
.address_size 64

.visible .entry fault()
{
	.reg .b64 %d<2>;
	mov.u64 %d1, 64;
	st.global.u64 [%d1], %d1;
	ret;
}
`

// faultVariable tells a child process to run the fault.
const faultVariable = "REALIZAR_TEST_FAULT"

// A faulting kernel fails its step and all later ones, and the process survives. The process cannot
// use the GPU afterwards, so the test runs it as a child.
func TestGPUFault(t *testing.T) {
	if os.Getenv(faultVariable) == "" {
		for _, eager := range []string{"graphs", "eager"} {
			c := exec.Command(os.Args[0], "-test.run=^TestGPUFault$", "-test.v", "-test.timeout=2m")
			c.Env = append(os.Environ(), faultVariable+"="+eager)
			if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestGPUFault") {
				t.Errorf("%s: %v\n%s", eager, err, out)
			}
		}
		return
	}
	b, err := Open(Options{Eager: os.Getenv(faultVariable) == "eager"})
	if err != nil {
		t.Fatal(err)
	}
	p := decoder(t, tensor.Q8_0)
	lim := limitsFor(p, 8, 2)
	x, err := b.Compile(context.Background(), p, lim, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := x.(*executable)
	if err := run(e, batchOf(p, 2, 0, 3)); err != nil {
		t.Fatal(err)
	}
	err = b.Main.Do(func() error {
		m, err := b.Main.LoadModule([]byte(faulting))
		if err != nil {
			return err
		}
		f, err := m.Function("fault")
		if err != nil {
			return err
		}
		return f.Launch(e.stream, driver.LaunchConfig{Grid: driver.Dim3{X: 1}, Block: driver.Dim3{X: 1}}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if err := run(e, batchOf(p, 2, 3+i, 1)); !errors.Is(err, driver.ErrDeviceLost) {
			t.Errorf("step %d after the fault: %v", i, err)
		} else if i == 0 {
			t.Log(err)
		}
	}
	if _, err := b.Compile(context.Background(), p, lim, nil); !errors.Is(err, driver.ErrDeviceLost) {
		t.Errorf("Compile after the fault: %v", err)
	}
	if err := errors.Join(e.Close(), b.Close()); err != nil {
		t.Errorf("Close after the fault: %v", err)
	}
}
