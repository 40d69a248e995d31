package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
)

// someTimings returns the timings of a prompt in two steps and of four tokens, of which the caller
// got three.
func someTimings() *tokenTimings {
	t := &tokenTimings{
		begun: at(0),
		setup: realizar.LoadTimings{Open: us(1000), Load: us(5000), Compile: us(2000), Capture: us(500)},
	}
	step := func(submitted, begun, done int, capture, device, embed, choose float64, tokens, chosen int) {
		t.step(&realizar.StepTiming{Submitted: at(submitted), Begun: at(begun), Done: at(done), Capture: us(capture), Device: us(device), Embed: us(embed), Choose: us(choose), Tokens: tokens, Chosen: chosen})
	}
	step(9000, 9000, 11000, 300, 1600, 10, 0, 256, 0)
	step(10000, 11000, 12500, 700, 1400, 8, 20, 44, 1) // captured while the first step ran
	step(11100, 12500, 13000, 200, 400, 2, 20, 1, 1)
	step(12600, 13000, 13700, 0, 600, 4, 30, 1, 1)
	step(13100, 13700, 14200, 0, 400, 2, 20, 1, 1)
	t.texts = []string{"Hello", " wörld,\x1b\n", "a very long text of a single token"}
	return t
}

func TestTokenTimingsText(t *testing.T) {
	var text bytes.Buffer
	someTimings().write(&text)
	const want = `
first token       ms
open           1.000  files, architecture, tokenizer, device, memory
load           5.000  weights
compile        2.000  kernels
encode         0.500  the prompt as tokens, and what else there is before its first step
capture        0.800  steps as graphs
prefill        3.180  tokens: 300, steps: 2
first sample   0.020
total         12.500

 token  embed ms  device ms  sample ms  total ms  text
     1     0.018      3.000      0.020     3.500  "Hello"
     2     0.002      0.400      0.020     0.500  " wörld,\x1b\n"
     3     0.004      0.600      0.030     0.700  "a very long text of a si"...
median     0.003      0.500      0.025     0.600
   95%     0.004      0.600      0.030     0.700
   sum     0.006      1.000      0.050     1.200

median, 95% and sum are of the 2 tokens after the first: 1666.67 tok/s, 83.3% of the time on the device
`
	if d := cmp.Diff(want, text.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestPhasesAddUp checks that the phases of the first token add up to the time until it came, and
// that none is negative.
func TestPhasesAddUp(t *testing.T) {
	x := someTimings()
	phases := x.phases()
	sum := time.Duration(0)
	for _, p := range phases[:len(phases)-1] {
		if sum += p.took; p.took < 0 {
			t.Errorf("%s took %v", p.name, p.took)
		}
	}
	if total := phases[len(phases)-1].took; sum != total || total != us(12500) {
		t.Errorf("the phases took %v, in all %v, want %v", sum, total, us(12500))
	}
}

func TestTokenTimingsJSON(t *testing.T) {
	data, err := json.Marshal(someTimings().trace())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"first_token":{"capture_ms":0.8,"compile_ms":2,"encode_ms":0.5,"first_sample_ms":0.02,"load_ms":5,"open_ms":1,"prefill_ms":3.18,"total_ms":12.5},` +
		`"tokens":[{"embed_ms":0.018,"device_ms":3,"sample_ms":0.02,"total_ms":3.5},{"embed_ms":0.002,"device_ms":0.4,"sample_ms":0.02,"total_ms":0.5},{"embed_ms":0.004,"device_ms":0.6,"sample_ms":0.03,"total_ms":0.7}],` +
		`"median":{"embed_ms":0.003,"device_ms":0.5,"sample_ms":0.025,"total_ms":0.6},"p95":{"embed_ms":0.004,"device_ms":0.6,"sample_ms":0.03,"total_ms":0.7},"sum":{"embed_ms":0.006,"device_ms":1,"sample_ms":0.05,"total_ms":1.2}}`
	if string(data) != want {
		t.Errorf("%s\nwant\n%s", data, want)
	}
}
