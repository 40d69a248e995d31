//go:build unix

package realizar

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/modelfile"
)

// The canary reports a write to a model's file, with the tensor's name, and that the file is
// restored.
func TestCanary(t *testing.T) {
	path := modeltest.Llama(t)
	var told []error
	m, err := Open(t.Context(), path, Options{Device: "cpu", Activations: ActivationsF32})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c, err := newCanary(m.files, m.arch.Program.Weights(), func(err error) { told = append(told, err) })
	if err != nil || len(c.parts) < 10 {
		t.Fatalf("%v, %d parts", err, len(c.parts))
	}
	round := func() {
		for i := range c.parts {
			c.look(i)
		}
	}
	if round(); c.damage() != nil || len(told) != 0 {
		t.Fatalf("of a file that nobody touched: %v, told %v", c.damage(), told)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := c.parts[len(c.parts)/2]
	at := bytes.Index(whole, p.tensor.Data[p.at:p.to])
	if at < 0 {
		t.Fatal("the part is not in the file")
	}
	write := func(b []byte) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(b, int64(at)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte{^whole[at]})
	round()
	round()
	var damage *modelfile.FormatError
	if !errors.As(c.damage(), &damage) || damage.Tensor != p.tensor.Name || len(told) != 1 {
		t.Errorf("%v, told %v", c.damage(), told)
	}
	write(whole[at : at+1])
	if round(); c.damage() != nil || len(told) != 2 || told[1] != nil {
		t.Errorf("whole again: %v, told %v", c.damage(), told)
	}
}

// BenchmarkCanary measures the verification of a part that is not in a CPU cache, and the share of
// a core that the canary takes.
func BenchmarkCanary(b *testing.B) {
	m, err := Open(b.Context(), modeltest.Llama(b), Options{Device: "cpu", Activations: ActivationsF32})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	c := m.canary
	cold := make([]byte, 64<<20)
	part := 0
	for b.Loop() {
		if part%64 == 0 { // evict the model's pages from the CPU's caches
			b.StopTimer()
			for i := 0; i < len(cold); i += 64 {
				cold[i]++
			}
			b.StartTimer()
		}
		c.look(part % len(c.parts))
		part++
	}
	b.ReportMetric(100*float64(b.Elapsed())/float64(b.N)*canaryLooks/float64(canaryPause), "%core")
}
