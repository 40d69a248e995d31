package modeltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// Mamba writes a GGUF file of a model without attention into a temporary folder of the test and
// returns its path: Mamba's layers, or Mamba-2's if second. Options about attention and about the
// feed-forward layer have no effect.
func Mamba(tb testing.TB, second bool, options ...Option) string {
	tb.Helper()
	const states, taps, steps, heads = 8, 4, 4, 8
	name := "mamba"
	if second {
		name = "mamba2"
	}
	s := newShape(options)
	inner := 2 * s.hidden
	s.architecture = name
	for key, n := range map[string]int{"ssm.inner_size": inner, "ssm.state_size": states, "ssm.conv_kernel": taps, "ssm.time_step_rank": steps} {
		if second && key == "ssm.time_step_rank" {
			n = heads
		}
		Metadata(name+"."+key, uint32(n))(s)
	}
	Metadata(name+".ssm.group_count", uint32(1))(s)

	random := rand.New(rand.NewPCG(s.seed, 1))
	var list []*tensor.Tensor
	add := func(name string, centre, spread float64, shape ...int) {
		t := &tensor.Tensor{Name: name, DType: tensor.F32, Shape: shape}
		for range t.Elems() {
			t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(float32(centre+spread*random.NormFloat64())))
		}
		list = append(list, t)
	}
	linear := func(name string, rows, cols int) { add(name+".weight", 0, 1/math.Sqrt(float64(cols)), rows, cols) }
	linear("token_embd", len(s.vocabulary), s.hidden)
	for i := range s.layers {
		p := fmt.Sprintf("blk.%d.", i)
		add(p+"attn_norm.weight", 1, 0.1, s.hidden)
		convolved := inner
		if second {
			convolved += 2 * states
			linear(p+"ssm_in", inner+convolved+heads, s.hidden)
			add(p+"ssm_dt.bias", -1, 1, heads)
			add(p+"ssm_a", -0.3, 0.05, heads, 1)
			add(p+"ssm_d", 1, 0.1, heads, 1)
			add(p+"ssm_norm.weight", 1, 0.1, 1, inner)
		} else {
			linear(p+"ssm_in", 2*inner, s.hidden)
			linear(p+"ssm_x", steps+2*states, inner)
			linear(p+"ssm_dt", inner, steps)
			add(p+"ssm_dt.bias", -1, 1, inner)
			add(p+"ssm_a", -0.3, 0.05, inner, states)
			add(p+"ssm_d", 1, 0.1, inner)
		}
		add(p+"ssm_conv1d.weight", 0, 0.5, convolved, taps)
		add(p+"ssm_conv1d.bias", 0, 0.1, convolved)
		linear(p+"ssm_out", s.hidden, inner)
	}
	add("output_norm.weight", 1, 0.1, s.hidden)
	linear("output", len(s.vocabulary), s.hidden)
	var file bytes.Buffer
	if err := modelfile.WriteGGUF(&file, s.ggufMetadata(tb), list); err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "model.gguf")
	write(tb, path, file.Bytes())
	return path
}
