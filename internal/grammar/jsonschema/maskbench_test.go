package jsonschema_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/jsonschema"
)

// A benchCase is a file of MaskBench.
type benchCase struct {
	Schema json.RawMessage `json:"schema"`
	Tests  []struct {
		Valid bool            `json:"valid"`
		Data  json.RawMessage `json:"data"`
	} `json:"tests"`
}

// TestMaskBench checks the instances of MaskBench's schemas. REALIZAR_MASKBENCH names the folder of
// the files. Instances are written as MaskBench's runner writes them: with Python's json.dumps, in
// the order of the file.
func TestMaskBench(t *testing.T) {
	folder := os.Getenv("REALIZAR_MASKBENCH")
	if folder == "" {
		t.Skip("REALIZAR_MASKBENCH is not the folder of MaskBench's data")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(os.Getenv("REALIZAR_MASKBENCH_EVERY")); err == nil {
		var some []string
		for i := 0; i < len(files); i += n {
			some = append(some, files[i])
		}
		files = some
	}
	var o jsonschema.Options
	if os.Getenv("REALIZAR_MASKBENCH_ORDER") == "any" {
		o.Order = jsonschema.AnyOrder
	}
	voc := loadVocabulary(t)
	var firsts, masks []time.Duration
	var passing, refusedValid, acceptedInvalid, failed, instances int
	reasons := map[string]int{}
	examples := map[string][]string{}
	var times []time.Duration
	var slow []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c benchCase
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		b := grammar.NewBuilder(grammar.Limits{})
		symbol, err := jsonschema.Compile(b, c.Schema, o)
		var g *grammar.Grammar
		if err == nil {
			g, err = b.Grammar(symbol)
		}
		took := time.Since(start)
		times = append(times, took)
		if took > 100*time.Millisecond {
			slow = append(slow, fmt.Sprintf("%s %s", took.Round(time.Millisecond), filepath.Base(file)))
		}
		if err != nil {
			failed++
			for _, test := range c.Tests {
				if test.Valid && errors.Is(err, jsonschema.ErrUnsatisfiable) {
					t.Errorf("%s: %v, but for %s", filepath.Base(file), err, test.Data)
				}
			}
			key := reason(err)
			reasons[key]++
			if len(examples[key]) < 4 {
				examples[key] = append(examples[key], filepath.Base(file)+": "+err.Error())
			}
			continue
		}
		ok := true
		for i, test := range c.Tests {
			instances++
			text := dumps(test.Data)
			st, fits := g.Start().Bytes(text)
			got := fits && st.Ends()
			if err := st.Err(); err != nil {
				t.Logf("%s: %v", filepath.Base(file), err)
			}
			if voc != nil {
				accepted, spent, err := voc.read(g, text)
				if err != nil || accepted != got {
					t.Errorf("%s: by tokens accepted %v, %v, by bytes %v: %s", filepath.Base(file), accepted, err, got, text)
				}
				if i == 0 {
					firsts = append(firsts, took+spent[0])
				}
				for j, d := range spent {
					if d > 5*time.Millisecond {
						slow = append(slow, fmt.Sprintf("%s mask %d of %s", d.Round(time.Microsecond), j, filepath.Base(file)))
					}
				}
				masks = append(masks, spent...)
			}
			if got == test.Valid {
				continue
			}
			ok = false
			judge := verdict(c.Schema, test.Data)
			if got {
				acceptedInvalid++
			} else {
				refusedValid++
			}
			t.Logf("%s: accepted %v, valid %v, santhosh: %v", filepath.Base(file), got, test.Valid, judge)
			if !got {
				n := fit(g, text)
				t.Logf("    at %d: %q <> %q", n, text[max(0, n-60):n], text[n:min(len(text), n+40)])
			}
		}
		if ok {
			passing++
		}
	}
	slices.Sort(times)
	if voc != nil {
		slices.Sort(firsts)
		slices.Sort(masks)
		report(t, "first mask, with compiling", firsts)
		report(t, "mask", masks)
	}
	t.Logf("%d schemas, %d passing, %d not compiled; %d instances, %d valid refused, %d invalid accepted", len(files), passing, failed, instances, refusedValid, acceptedInvalid)
	report(t, "compile", times)
	var keys []string
	for k := range reasons {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return reasons[keys[i]] > reasons[keys[j]] })
	for _, k := range keys {
		t.Logf("%5d %s", reasons[k], k)
		for _, e := range examples[k] {
			t.Logf("          %s", e)
		}
	}
	for _, s := range slow {
		t.Log("slow: ", s)
	}
}

func report(t *testing.T, name string, sorted []time.Duration) {
	var sum time.Duration
	for _, d := range sorted {
		sum += d
	}
	at := func(p float64) time.Duration { return sorted[int(p*float64(len(sorted)-1))] }
	t.Logf("%s: %d, mean %v, 25%% %v, median %v, 75%% %v, 90%% %v, 99%% %v, 99.9%% %v, most %v", name, len(sorted), sum/time.Duration(len(sorted)), at(.25), at(.5), at(.75), at(.9), at(.99), at(.999), at(1))
}

// A benchVocabulary is the vocabulary in the file REALIZAR_RANKS. The file holds base64 texts and
// their ids in tiktoken's format; Llama 3's tokenizer.model is one.
type benchVocabulary struct {
	v       *grammar.Vocabulary
	ids     map[string]int32
	longest int
	words   []uint32
	end     int32
}

// loadVocabulary returns nil if REALIZAR_RANKS is not set.
func loadVocabulary(t *testing.T) *benchVocabulary {
	path := os.Getenv("REALIZAR_RANKS")
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b := &benchVocabulary{ids: map[string]int32{}}
	var pieces [][]byte
	for line := range strings.Lines(string(data)) {
		text, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		piece, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		b.ids[string(piece)] = int32(len(pieces))
		b.longest = max(b.longest, len(piece))
		pieces = append(pieces, piece)
	}
	b.end = int32(len(pieces))
	b.v = grammar.NewVocabulary(append(pieces, nil), map[string]int32{"<|end|>": b.end}, []int32{b.end})
	b.words = make([]uint32, b.v.Words())
	return b
}

// encode splits a text greedily into the longest tokens.
func (b *benchVocabulary) encode(text []byte) []int32 {
	var out []int32
	for len(text) > 0 {
		for n := min(len(text), b.longest); n > 0; n-- {
			if id, ok := b.ids[string(text[:n])]; ok {
				out = append(out, id)
				text = text[n:]
				break
			}
		}
	}
	return out
}

// read feeds a text's tokens to a grammar and computes a mask before each.
func (b *benchVocabulary) read(g *grammar.Grammar, text []byte) (bool, []time.Duration, error) {
	s := g.Start()
	var spent []time.Duration
	for _, id := range append(b.encode(text), b.end) {
		clear(b.words)
		start := time.Now()
		err := s.Mask(b.v, b.words)
		spent = append(spent, time.Since(start))
		if err != nil {
			return false, spent, err
		}
		in := b.words[id/32]>>(id%32)&1 == 1
		if id == b.end {
			return in && s.Ends(), spent, nil
		}
		next, ok := s.Token(b.v, id)
		if ok != in {
			return false, spent, fmt.Errorf("token %d: in the mask %v, taken %v", id, in, ok)
		}
		if !ok {
			return false, spent, nil
		}
		s = next
	}
	return false, spent, nil
}

// fit returns how many bytes of a text the grammar accepts.
func fit(g *grammar.Grammar, text []byte) int {
	s := g.Start()
	for i := range text {
		next, ok := s.Bytes(text[i : i+1])
		if !ok {
			return i
		}
		s = next
	}
	return len(text)
}

func reason(err error) string {
	var unsupported *jsonschema.UnsupportedError
	var schema *jsonschema.SchemaError
	switch {
	case errors.As(err, &unsupported):
		return "unsupported " + unsupported.Keyword
	case errors.As(err, &schema):
		return "no schema: " + cut(schema.Reason)
	}
	return cut(err.Error())
}

func cut(s string) string {
	if len(s) > 60 {
		return s[:60]
	}
	return s
}

func verdict(schema, instance []byte) string {
	s, err := santhosh.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return err.Error()
	}
	c := santhosh.NewCompiler()
	c.DefaultDraft(santhosh.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("mem:///schema.json", s); err != nil {
		return err.Error()
	}
	compiled, err := c.Compile("mem:///schema.json")
	if err != nil {
		return "does not compile: " + cut(err.Error())
	}
	v, err := santhosh.UnmarshalJSON(bytes.NewReader(instance))
	if err != nil {
		return err.Error()
	}
	if err := compiled.Validate(v); err != nil {
		return "invalid: " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return "valid"
}

// dumps writes JSON as Python's json.dumps with ensure_ascii=False does, with a space after commas
// and colons.
func dumps(data []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var out bytes.Buffer
	if err := dump(d, &out); err != nil {
		return data
	}
	return out.Bytes()
}

func dump(d *json.Decoder, out *bytes.Buffer) error {
	tok, err := d.Token()
	if err != nil {
		return err
	}
	switch tok := tok.(type) {
	case json.Delim:
		out.WriteRune(rune(tok))
		for i := 0; d.More(); i++ {
			if i > 0 {
				out.WriteString(", ")
			}
			if tok == '{' {
				if err := dump(d, out); err != nil {
					return err
				}
				out.WriteString(": ")
			}
			if err := dump(d, out); err != nil {
				return err
			}
		}
		end, err := d.Token()
		if err == nil {
			out.WriteRune(rune(end.(json.Delim)))
		}
		return err
	case string:
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		err := e.Encode(tok)
		out.Truncate(out.Len() - 1)
		return err
	case json.Number:
		out.WriteString(string(tok))
	case bool:
		fmt.Fprint(out, tok)
	case nil:
		out.WriteString("null")
	}
	return nil
}
