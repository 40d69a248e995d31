package grammar_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/jsonschema"
)

// TestMaskBenchTimes logs the processor time that masks take for the schemas and valid instances of
// MaskBench. REALIZAR_MASKBENCH names the folder of the files; REALIZAR_MASKBENCH_EVERY=n takes
// every nth file.
func TestMaskBenchTimes(t *testing.T) {
	folder := os.Getenv("REALIZAR_MASKBENCH")
	if folder == "" {
		t.Skip("REALIZAR_MASKBENCH is not the folder of MaskBench's data")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	every, err := strconv.Atoi(os.Getenv("REALIZAR_MASKBENCH_EVERY"))
	if err != nil {
		every = 1
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m := realVocabulary(t)
	v := m.vocabulary()
	words := make([]uint32, v.Words())
	var first, masks, steps []time.Duration
	type slow struct {
		took       time.Duration
		file, text string
	}
	var slowest []slow
	large := 0 // schemas that exceed the limits
	for n := 0; n < len(files); n += every {
		data, err := os.ReadFile(files[n])
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Schema json.RawMessage `json:"schema"`
			Tests  []struct {
				Valid bool            `json:"valid"`
				Data  json.RawMessage `json:"data"`
			} `json:"tests"`
		}
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		begin := cpu()
		b := grammar.NewBuilder(grammar.Limits{})
		start, err := jsonschema.Compile(b, c.Schema, jsonschema.Options{})
		if err != nil {
			continue
		}
		g, err := b.Grammar(start)
		if err != nil {
			continue
		}
		if err := g.Start().Mask(v, words); err != nil {
			t.Logf("%s: %v", files[n], err)
			if large++; !errors.Is(err, grammar.ErrLimit) {
				t.Fail()
			}
			continue
		}
		first = append(first, cpu()-begin)
		for _, test := range c.Tests {
			if !test.Valid {
				continue
			}
			s := g.Start()
			text := spaced(test.Data)
			done := 0
			for _, id := range m.tokens(text) {
				begin := cpu()
				if err := s.Mask(v, words); err != nil {
					t.Errorf("%s after %q: %v", files[n], text[:done], err)
					break
				}
				took := cpu() - begin
				masks = append(masks, took)
				if took > 500*time.Microsecond {
					slowest = append(slowest, slow{took, filepath.Base(files[n]), text[max(0, done-60):done]})
				}
				begin = cpu()
				next, ok := s.Token(v, id)
				steps = append(steps, cpu()-begin)
				if open := words[id/32]>>(id%32)&1 != 0; open != ok {
					t.Fatalf("%s after %q: the mask of %q is %v, but it fits: %v", files[n], text[:done], m.pieces[id], open, ok)
				}
				if !ok {
					break
				}
				s = next
				done += len(m.pieces[id])
			}
		}
	}
	t.Logf("first: %s", quantiles(first))
	t.Logf("masks: %s", quantiles(masks))
	t.Logf("steps: %s", quantiles(steps))
	slices.SortFunc(slowest, func(a, b slow) int { return int(b.took - a.took) })
	for i, s := range slowest {
		if i < 25 || i%40 == 0 {
			t.Logf("%v %s after %q", s.took, s.file, s.text)
		}
	}
	t.Logf("%d above 500µs, %d schemas are too large", len(slowest), large)
}

// spaced returns JSON with a space after commas and colons, as Python's json.dumps writes it.
func spaced(data []byte) string {
	var flat bytes.Buffer
	if err := json.Compact(&flat, data); err != nil {
		return string(data)
	}
	var out []byte
	inside := false
	for i, b := range flat.Bytes() {
		out = append(out, b)
		switch {
		case b == '"' && !escaped(flat.Bytes()[:i]):
			inside = !inside
		case !inside && (b == ',' || b == ':'):
			out = append(out, ' ')
		}
	}
	return string(out)
}

// escaped reports whether text ends with an odd number of backslashes.
func escaped(text []byte) bool {
	n := 0
	for n < len(text) && text[len(text)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}
