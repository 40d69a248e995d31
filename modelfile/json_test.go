package modelfile_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/modelfile"
)

// describe renders metadata as text: one key per line, with objects in arrays in braces.
func describe(m *modelfile.Meta) string {
	var b strings.Builder
	for _, key := range m.Keys() {
		v, _ := m.Value(key)
		fmt.Fprintf(&b, "%s %s = %s\n", key, m.Type(key), show(v))
	}
	return b.String()
}

func show(v any) string {
	switch v := v.(type) {
	case *modelfile.Meta:
		return "{" + strings.TrimSuffix(strings.ReplaceAll(describe(v), "\n", "; "), "; ") + "}"
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, show(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return fmt.Sprintf("%q", v)
	case []string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

func TestParseJSON(t *testing.T) {
	const text = `
{
  "architectures": ["LlamaForCausalLM"],
  "attention_bias": false,
  "eos_token_id": [1, 2],
  "hidden_size": 64,
  "rms_norm_eps": 1e-05,
  "rope_parameters": {"rope_theta": 10000.0, "nested": {"rope_type": "default"}},
  "rope_scaling": null,
  "empty": {},
  "none": [],
  "long_factor": [1, 1.05, 2],
  "floats": [1.0, NaN, -Infinity],
  "flags": [true, false],
  "mixed": [1, "a", null, {"x": {"y": 2}, "z": []}, [3, 4]],
  "model_max_length": 1000000000000000019884624838656,
  "largest": 9223372036854775807,
  "smallest": -9223372036854775808,
  "beyond": 9223372036854775808,
  "text": "tab\t quote\" slash\/ \u00e9 \ud83d\ude00 lone \ud83d.",
  "a.b": 1,
  "": -0.5E+1
}`
	const want = `architectures []string = ["LlamaForCausalLM"]
attention_bias bool = false
eos_token_id []int64 = [1 2]
hidden_size int64 = 64
rms_norm_eps float64 = 1e-05
rope_parameters.rope_theta float64 = 10000
rope_parameters.nested.rope_type string = "default"
rope_scaling null = <nil>
empty object = {}
none []any = []
long_factor []any = [1, 1.05, 2]
floats []float64 = [1 NaN -Inf]
flags []bool = [true false]
mixed []any = [1, "a", <nil>, {x.y int64 = 2; z []any = []}, [3 4]]
model_max_length float64 = 1e+30
largest int64 = 9223372036854775807
smallest int64 = -9223372036854775808
beyond float64 = 9.223372036854776e+18
text string = "tab\t quote\" slash/ é 😀 lone �."
a.b int64 = 1
 float64 = -5
`
	m, err := modelfile.ParseJSON("config.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, describe(m)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// As in Python's dict, the last of several members with one name counts, at the position of the
// first.
func TestParseJSONDuplicates(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`{"a": 1, "b": 2, "a": 3}`, "a int64 = 3\nb int64 = 2\n"},
		{`{"a": {"x": 1}, "a": null}`, "a null = <nil>\n"},
		{`{"a": {"x": 1}, "a": {"y": 2}}`, "a.y int64 = 2\n"},
		{`{"a.x": 1, "b": 2, "a": {"x": 3}}`, "a.x int64 = 3\nb int64 = 2\n"},
	} {
		m, err := modelfile.ParseJSON("config.json", []byte(test.text))
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if diff := cmp.Diff(test.want, describe(m)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.text, diff)
		}
	}
}

func TestParseJSONRefuses(t *testing.T) {
	many := new(strings.Builder)
	for range 60 {
		fmt.Fprintf(many, `{%q:`, strings.Repeat("x", 1000))
	}
	many.WriteString("{")
	for i := range 20000 {
		fmt.Fprintf(many, `"%d":0,`, i)
	}
	many.WriteString(`"":0}` + strings.Repeat("}", 60))
	for _, test := range []struct{ text, want string }{
		{``, "end of the JSON text"},
		{`[1]`, `'['`},
		{`1`, `'1'`},
		{`{`, "end of the JSON text"},
		{`{"a"`, "end of the JSON text"},
		{`{"a":`, "end of the JSON text"},
		{`{"a":1`, "end of the JSON text"},
		{`{"a":1,}`, `'}'`},
		{`{"a":[1,]}`, `']'`},
		{`{"a":1 "b":2}`, `'"'`},
		{`{a:1}`, `'a'`},
		{`{'a':1}`, `'\''`},
		{`{"a":1} {}`, `'{'`},
		{`{"a":nul}`, `'n'`},
		{`{"a":nullx}`, `'x'`},
		{`{"a":01}`, `'1'`},
		{`{"a":+1}`, `'+'`},
		{`{"a":-}`, `'-'`},
		{`{"a":.5}`, `'.'`},
		{`{"a":1.}`, `'.'`},
		{`{"a":1e}`, `'e'`},
		{`{"a":1e999}`, "beyond the range"},
		{`{"a":"x`, "ends within a string"},
		{`{"a":"x\`, "ends within a string"},
		{`{"a":"\x41"}`, `\x`},
		{"{\"a\":\"\\\x1b\"}", `"\\\x1b"`},
		{`{"a":"\u00g0"}`, `\u`},
		{`{"a":"\u00`, `\u`},
		{"{\"a\":\"line\nbreak\"}", "control character 0x0a"},
		{"{\"a\":\"\xff\"}", "not UTF-8"},
		{"{\"a\":\"\xff\\n\"}", "not UTF-8"},
		{"\ufeff{}", "'\\ufeff'"},
		{strings.Repeat(`{"a":`, 1000), "64 deep"},
		{`{"a":` + strings.Repeat(`[`, 1000), "64 deep"},
		{many.String(), "out of proportion"},
	} {
		_, err := modelfile.ParseJSON("folder/config.json", []byte(test.text))
		wantError(t, err, modelfile.ErrFormat, "folder/config.json", test.want)
	}
}

func TestMetaGetters(t *testing.T) {
	m, err := modelfile.ParseJSON("config.json", []byte(`{
		"int": 7, "whole": 2.0, "half": 0.5, "huge": 1e30, "nan": NaN, "bool": true, "text": "x", "null": null,
		"ints": [1, 2], "wholes": [1.0, 2.0], "numbers": [1, 2.5], "texts": ["a"], "bools": [false], "mixed": [1, "a"], "none": []}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		call      string
		got, want lookup
	}{
		{"Int int", look(m.Int("int")), lookup{int64(7), true}},
		{"Int whole", look(m.Int("whole")), lookup{int64(2), true}},
		{"Int half", look(m.Int("half")), lookup{int64(0), false}},
		{"Int huge", look(m.Int("huge")), lookup{int64(0), false}},
		{"Int nan", look(m.Int("nan")), lookup{int64(0), false}},
		{"Int bool", look(m.Int("bool")), lookup{int64(0), false}},
		{"Int text", look(m.Int("text")), lookup{int64(0), false}},
		{"Int null", look(m.Int("null")), lookup{int64(0), false}},
		{"Int ints", look(m.Int("ints")), lookup{int64(0), false}},
		{"Int absent", look(m.Int("absent")), lookup{int64(0), false}},
		{"Float int", look(m.Float("int")), lookup{7.0, true}},
		{"Float half", look(m.Float("half")), lookup{0.5, true}},
		{"Float text", look(m.Float("text")), lookup{0.0, false}},
		{"Bool bool", look(m.Bool("bool")), lookup{true, true}},
		{"Bool int", look(m.Bool("int")), lookup{false, false}},
		{"String text", look(m.String("text")), lookup{"x", true}},
		{"String null", look(m.String("null")), lookup{"", false}},
		{"Ints ints", look(m.Ints("ints")), lookup{[]int64{1, 2}, true}},
		{"Ints wholes", look(m.Ints("wholes")), lookup{[]int64{1, 2}, true}},
		{"Ints numbers", look(m.Ints("numbers")), lookup{[]int64(nil), false}},
		{"Ints texts", look(m.Ints("texts")), lookup{[]int64(nil), false}},
		{"Ints int", look(m.Ints("int")), lookup{[]int64(nil), false}},
		{"Ints none", look(m.Ints("none")), lookup{[]int64{}, true}},
		{"Floats ints", look(m.Floats("ints")), lookup{[]float64{1, 2}, true}},
		{"Floats numbers", look(m.Floats("numbers")), lookup{[]float64{1, 2.5}, true}},
		{"Floats mixed", look(m.Floats("mixed")), lookup{[]float64(nil), false}},
		{"Strings texts", look(m.Strings("texts")), lookup{[]string{"a"}, true}},
		{"Strings text", look(m.Strings("text")), lookup{[]string(nil), false}},
		{"Strings mixed", look(m.Strings("mixed")), lookup{[]string(nil), false}},
		{"Bools bools", look(m.Bools("bools")), lookup{[]bool{false}, true}},
		{"Bools none", look(m.Bools("none")), lookup{[]bool{}, true}},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.call, diff)
		}
	}

	var none *modelfile.Meta
	if _, ok := none.Int("int"); ok || none.Keys() != nil || none.Type("int") != "" {
		t.Error("a nil Meta holds something")
	}
}

// A lookup is the result of a getter.
type lookup struct {
	Value any
	OK    bool
}

func look[T any](v T, ok bool) lookup { return lookup{v, ok} }

// TestMetaUnder checks the members of an object by their own keys.
func TestMetaUnder(t *testing.T) {
	m, err := modelfile.ParseJSON("config.json", []byte(`{"a": 1, "text": {"a": 2, "b": {"c": [3]}}, "textual": {"a": 4}, "empty": {}}`))
	if err != nil {
		t.Fatal(err)
	}
	text := m.Under("text")
	if d := cmp.Diff([]string{"a", "b.c"}, text.Keys()); d != "" {
		t.Error(d)
	}
	if n, ok := text.Int("a"); !ok || n != 2 {
		t.Errorf("a is %d, %v", n, ok)
	}
	for _, key := range []string{"a", "b", "empty", "tex"} {
		if keys := m.Under(key).Keys(); len(keys) > 0 {
			t.Errorf("under %s are %v", key, keys)
		}
	}
	var none *modelfile.Meta
	if keys := none.Under("text").Keys(); len(keys) > 0 {
		t.Errorf("under text of nothing are %v", keys)
	}
}

// Integers of every GGUF width are read as int64 if they fit.
func TestMetaIntWidths(t *testing.T) {
	m := open(t, write(t, "model.gguf", ggufBytes(t, allValues, nil))).Meta()
	for key, want := range map[string]int64{
		"u8": math.MaxUint8, "i8": math.MinInt8, "u16": math.MaxUint16, "i16": math.MinInt16,
		"u32": math.MaxUint32, "i32": math.MinInt32, "i64": math.MinInt64,
	} {
		if got, ok := m.Int(key); !ok || got != want {
			t.Errorf("Int(%q) = %d, %v, want %d", key, got, ok, want)
		}
		if got, ok := m.Float(key); !ok || got != float64(want) {
			t.Errorf("Float(%q) = %v, %v, want %d", key, got, ok, want)
		}
	}
	if got, ok := m.Int("u64"); ok || got != 0 {
		t.Errorf("Int of 2^64-1 = %d, %v", got, ok)
	}
	for _, test := range []struct{ key, want string }{
		{"u32", "uint32"}, {"[]string", "[]string"}, {"nested", "[]any"}, {"f32", "float32"}, {"absent", ""},
	} {
		if got := m.Type(test.key); got != test.want {
			t.Errorf("Type(%q) = %q, want %q", test.key, got, test.want)
		}
	}
	for _, key := range []string{"[]u8", "[]i8", "[]u16", "[]i16", "[]u32", "[]i32", "[]i64"} {
		if _, ok := m.Ints(key); !ok {
			t.Errorf("Ints(%q) finds no integers", key)
		}
		if _, ok := m.Floats(key); !ok {
			t.Errorf("Floats(%q) finds no numbers", key)
		}
	}
	if v, ok := m.Floats("[]f32"); !ok || v[0] != -0.5 {
		t.Errorf("Floats of float32 = %v, %v", v, ok)
	}
	if _, ok := m.Ints("[]u64"); ok {
		t.Error("Ints takes 2^63")
	}
}
