package realizar_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
)

// Watch is called for every step. The steps follow each other and have as many tokens as the
// request, and the answer does not change.
func TestWatch(t *testing.T) {
	prompt := ids(300)
	r := realizar.Request{PromptTokens: prompt, Generation: realizar.Generation{MaxTokens: new(12), IgnoreEnd: true}}
	want := generate(t, open(t, realizar.Options{}, modeltest.Context(512)), r).tokens
	for _, profile := range []bool{false, true} {
		var steps []realizar.StepTiming
		o := realizar.Options{Profile: profile, Watch: func(s realizar.StepTiming) {
			s.Spans = slices.Clone(s.Spans)
			steps = append(steps, s)
		}}
		begun := time.Now()
		m, err := realizar.Open(t.Context(), modeltest.Llama(t, modeltest.Context(512)), o)
		if err != nil {
			t.Fatal(err)
		}
		s := m.Setup()
		if took := time.Since(begun); s.Open <= 0 || s.Load <= 0 || s.Load+s.Compile > took || s.Open+s.Load+s.Compile+s.Capture > took {
			t.Errorf("opening took %+v of %v", s, took)
		}
		if got := generate(t, m, r).tokens; !slices.Equal(got, want) {
			t.Errorf("watched, the answer is %v, not %v", got, want)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		tokens, read, chosen := 0, 0, 0
		var done time.Time
		for i, s := range steps {
			tokens, read, chosen = tokens+s.Tokens, read+s.Prompt, chosen+s.Chosen
			if s.Step != uint64(i+1) || s.Answers != 1 || s.Submitted.Before(begun) || s.Begun.Before(s.Submitted) || s.Begun.Before(done) || s.Done.Before(s.Begun) {
				t.Errorf("step %d is %+v", i+1, s)
			}
			if s.Embed <= 0 || s.Choose < 0 || s.Embed+s.Choose > s.Device || s.Device > s.Done.Sub(s.Submitted) {
				t.Errorf("step %d took %v, with %v and %v", i+1, s.Device, s.Embed, s.Choose)
			}
			layers, spent := map[int]bool{}, time.Duration(0)
			for _, span := range s.Spans {
				layers[span.Layer] = true
				if spent += span.Time; span.Kernel == "" || span.Where == "" || span.Begin+span.Time > s.Device {
					t.Errorf("step %d took %v and has the span %+v", i+1, s.Device, span)
				}
			}
			if none := len(s.Spans) == 0; none == profile || profile && (len(layers) != 3 || !layers[-1] || !layers[1]) || spent > s.Device {
				t.Errorf("step %d has spans of the layers %v that took %v of %v, where they are wanted: %v", i+1, layers, spent, s.Device, profile)
			}
			done = s.Done
		}
		if tokens != len(prompt)+len(want)-1 || read != len(prompt) || chosen != len(want) {
			t.Errorf("%d tokens were run, %d of prompts, and %d chosen, of %d and %d", tokens, read, chosen, len(prompt), len(want))
		}
	}
	if _, err := realizar.Open(t.Context(), "absent", realizar.Options{Profile: true}); !errors.Is(err, realizar.ErrOptions) {
		t.Errorf("a profile that nobody is told of: %v", err)
	}
}
