package main_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/tensor"
)

// says checks that a text contains parts.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s\ndoes not say %q", text, p)
		}
	}
}

func TestInspect(t *testing.T) {
	out := output(t, "", "inspect", modeltest.Llama(t, modeltest.DType(tensor.Q8_0), modeltest.Window(32), modeltest.AddBOS()),
		"--context", "128", "--parallel", "3")
	says(t, out, "architecture   llama\n", "format         GGUF, ", "dtypes         Q8_0 9", ", F32 ", "context        256 tokens\n",
		"layers         2, 2 with a window of 32 tokens\n", "width          64, feed-forward 96\n", "heads          4, key/value heads 2, head width 16\n",
		"byte-level BPE", "272 tokens", "begins with <|endoftext|>", "chat template  yes\n",
		"Memory for 3 answers of 128 tokens\n", " laid out for the kernels, the rest mapped from the file\n", "keys and values", "a window of 32 tokens, F16", "scratch", "total",
		"\nThe cache holds 3 sequences of 128 tokens, or 384 tokens in all\n")
	out = output(t, "", "inspect", modeltest.Hub(t, modeltest.Template("")), "--activations", "f32")
	says(t, out, "LlamaForCausalLM", "safetensors", "chat template  none\n", "Memory for one answer of 256 tokens", "KiB  mapped from the file\n", "256 tokens, F32",
		"\nThe cache holds one sequence of 256 tokens, or 256 tokens in all\n")
	out = output(t, "", "inspect", modeltest.Llama(t, modeltest.HeadDim(32)), "--kv-cache", "q8", "--kv-host", "1.5GiB", "--parallel", "8", "--context", "128", "--memory", "1GiB")
	says(t, out, ", Q8_0\n", "host               1.5 GiB  for what the cache has no room for\n", "Memory for 8 answers of 128 tokens\n", "The cache holds 8 sequences of 128 tokens, or 1024 tokens in all\n")
}

func TestInspectLists(t *testing.T) {
	model := modeltest.Llama(t, modeltest.Metadata("general.description", strings.Repeat("long ", 100)+"\x1b[31m"))
	out := output(t, "", "inspect", model, "--tensors", "--metadata", "--plan")
	says(t, out, "\nTensors\n\n", "blk.0.attn_q.weight", "F32  64x64", " 16384\n",
		"\nMetadata\n\n", `general.architecture = "llama"`, "llama.context_length = 256\n", `(272 elements)`, "... (505 characters)",
		"\nPlan\n\n", "attention", "hidden %")
	if strings.Contains(out, "\x1b") {
		t.Error("the file's text steers the terminal")
	}
}

func TestInspectDerived(t *testing.T) {
	model := modeltest.Hub(t, modeltest.Quantised(modeltest.LayoutOf(t, "gptq")))
	says(t, output(t, "", "inspect", model, "--tensors"), "dtypes         ", "Q5_0 ",
		"model.layers.0.mlp.up_proj.weight               Q5_0  96x64    4224  made of qweight, scales, qzeros\n",
		" laid out for the kernels, the rest mapped from the file\n")
	says(t, output(t, "", "inspect", model, "--tensors", "--json"), `"parts": [`, `"model.layers.0.mlp.up_proj.qzeros"`)
}

func TestInspectJSON(t *testing.T) {
	type description struct {
		Path         string
		Format       string
		Architecture string
		Problem      string
		Parameters   int
		DTypes       []struct {
			DType string
			Share float64
		}
		Dimensions struct {
			Layers, Context, Vocab int
			HeadDim                int `json:"head_dim"`
		}
		Tokenizer    struct{ Vocab int }
		ChatTemplate bool `json:"chat_template"`
		ToolTemplate bool `json:"tool_template"`
		Memory       *struct {
			Context, Parallel              int
			Weights, Scratch, Total, Bytes int64
			States                         []struct {
				Kind   string
				Layers int
				Bytes  int64
			}
		}
		Tensors []struct {
			Name, DType string
			Shape       []int
			Bytes       int
		}
		Metadata []struct {
			Key, Type string
			Value     any
		}
		Plan string
	}
	read := func(args ...string) (d description) {
		t.Helper()
		if err := json.Unmarshal([]byte(output(t, "", append([]string{"inspect", "--json"}, args...)...)), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	model := modeltest.Llama(t, modeltest.HeadDim(24), modeltest.Metadata("numbers", []float32{1, 2}), modeltest.Metadata("bytes", []uint8{1, 2}))
	d := read(model, "--context", "64", "--parallel", "2")
	if d.Path != model || d.Format != "GGUF" || d.Architecture != "llama" || d.Problem != "" || len(d.DTypes) != 1 || d.DTypes[0].Share != 1 ||
		d.Dimensions.Layers != 2 || d.Dimensions.HeadDim != 24 || d.Dimensions.Context != 256 || d.Tokenizer.Vocab != 272 || !d.ChatTemplate || d.ToolTemplate {
		t.Errorf("got %+v", d)
	}
	if d.Tensors != nil || d.Metadata != nil || d.Plan != "" {
		t.Errorf("got lists that were not asked for: %+v", d)
	}
	// Two answers of 64 tokens: keys and values of 2 heads of 24 in 2 layers, 2 bytes each.
	m := d.Memory
	if m == nil || m.Context != 64 || m.Parallel != 2 || len(m.States) != 1 || m.States[0].Kind != "kv" || m.States[0].Layers != 2 ||
		m.States[0].Bytes != 2*64*2*2*24*2*2 || m.Total != m.Weights+m.States[0].Bytes+m.Scratch {
		t.Errorf("memory is %+v", m)
	}
	d = read(model, "--tensors", "--metadata", "--plan")
	if len(d.Tensors) != 21 || len(d.Metadata) < 10 || !strings.Contains(d.Plan, "attention") {
		t.Errorf("%d tensors, %d entries, plan %q", len(d.Tensors), len(d.Metadata), d.Plan)
	}
	for _, e := range d.Metadata {
		if list, ok := e.Value.([]any); (e.Key == "bytes" || e.Key == "numbers") && (!ok || len(list) != 2) {
			t.Errorf("%s is %v, want a list of two", e.Key, e.Value)
		}
	}
	unknown := read(modeltest.Llama(t, modeltest.Architecture("abacus")))
	if !strings.Contains(unknown.Problem, "abacus") || unknown.Memory != nil || unknown.Dimensions.Layers != 2 {
		t.Errorf("an unknown architecture is %+v", unknown)
	}
}

func TestInspectWhatCannotRun(t *testing.T) {
	says(t, output(t, "", "inspect", modeltest.Llama(t, modeltest.Architecture("abacus")), "--plan"),
		"architecture   abacus\n", `unknown architecture "abacus"`, "layers         2\n", "272 tokens", "none: ")
	says(t, output(t, "", "inspect", modeltest.Llama(t, modeltest.VocabularyOnly())),
		"holds no weights", "byte-level BPE", "chat template  yes")
}

func TestInspectContext(t *testing.T) {
	fails(t, realizarRun(t, "inspect", modeltest.Llama(t), "--context", "257"), 2, "257", "256")
}

// TestInspectDivided checks what each of several devices would hold: half of the keys and values, and
// less than all weights.
func TestInspectDivided(t *testing.T) {
	model := modeltest.Llama(t, modeltest.DType(tensor.Q8_0))
	says(t, output(t, "", "inspect", model, "--devices", "2", "--context", "128"), "\nDivided among 2 devices, beside a step's scratch memory\n", "device 0", "device 1", "KiB  weights ")
	var d struct {
		Memory  realizar.Memory
		Divided []realizar.PartMemory
	}
	if err := json.Unmarshal([]byte(output(t, "", "inspect", model, "--devices", "2", "--context", "128", "--json")), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Divided) != 2 || len(d.Memory.States) != 1 {
		t.Fatalf("%+v", d)
	}
	for _, p := range d.Divided {
		if all := d.Memory.Weights; p.Weights <= all/2 || p.Weights >= all || 2*p.States != d.Memory.States[0].Bytes {
			t.Errorf("%+v of weights of %d and states of %d", p, all, d.Memory.States[0].Bytes)
		}
	}
	if out := output(t, "", "inspect", model); strings.Contains(out, "Divided among") {
		t.Error(out)
	}
}

// TestInspectReplicasRefused checks what says that copies cannot run.
func TestInspectReplicasRefused(t *testing.T) {
	model := modeltest.Llama(t)
	for _, n := range []string{"0", "65"} {
		fails(t, realizarRun(t, "inspect", model, "--replicas", n), 2, "--replicas="+n, "1 to 64")
	}
	fails(t, realizarRun(t, "inspect", model, "--replicas", "2", "--device", "cpu"), 2, "2 replicas need as many devices, and the processor is one")
}
