package cpu

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/synth"
	"github.com/realizar/realizar/internal/synth/synthtest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

var update = flag.Bool("update", false, "rewrite the golden stages")

// synthetic returns the program of a small model file with random weights.
func synthetic(t *testing.T, s *synth.Shape, mix string) *plan.Program {
	t.Helper()
	file, err := modelfile.Open(synthtest.File(t, s, mix))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	model, err := arch.Build(file)
	if err != nil {
		t.Fatal(err)
	}
	return model.Program
}

// The stages of whole models equal the reviewed text: what each computes, reads and writes.
func TestStages(t *testing.T) {
	small := synth.Shape{
		Name: "small", Architecture: "llama", Layers: 2, Hidden: 256, FFN: 512, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 512, Context: 128,
		RopeBase: 1e4, Eps: 1e-5, Tied: true,
	}
	qwen := small
	qwen.Architecture, qwen.QKNorm, qwen.Tied = "qwen3", true, false
	programs := models(t)
	programs["llama"], programs["qwen3"] = synthetic(t, &small, "Q4_K_M"), synthetic(t, &qwen, "Q8_0")
	for name, p := range programs {
		var text strings.Builder
		values := func(all []plan.Value) {
			for _, v := range all {
				fmt.Fprintf(&text, " %%%d", v)
			}
		}
		code := New(1).layout(p, &plan.Limits{Tokens: 1, Seqs: 1, Rows: 1, Activations: tensor.Q8_0}, false)
		for i := range code.stages {
			s := &code.stages[i]
			io := s.IO()
			fmt.Fprintf(&text, "%v\n\tof", s)
			values(io.In)
			text.WriteString(" makes")
			values(io.Out)
			text.WriteByte('\n')
		}
		golden := filepath.Join("testdata", name+".stages")
		if *update {
			if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), text.String()); d != "" {
			t.Errorf("the stages differ from %s; if they should, run the test with -update\n%s", golden, d)
		}
	}
}

// An unsupported operation is an error that names its place.
func TestUnknownOperation(t *testing.T) {
	p := beside(t)
	p.Nodes[1].Op = &plan.Op{Name: "dream"}
	lim := plan.Limits{Tokens: 1, Seqs: 1, Rows: 1, PageTokens: 1, Cache: tensor.F32, Activations: tensor.F32}
	exe, err := New(1).Compile(context.Background(), p, lim, nil)
	if err == nil {
		_ = exe.Close()
	}
	if want := "cpu: dream norm: no kernel for this operation"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}
