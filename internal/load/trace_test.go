package load

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadTrace(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for name, test := range map[string]struct {
		text string
		want []Arrival
	}{
		"Mooncake": {
			"\n" + `{"timestamp": 27482, "input_length": 1026, "output_length": 52, "hash_ids": [46, 47, 2366]}` + "\n\n" + `{"timestamp": 27000, "input_length": 7, "output_length": 0, "hash_ids": []}`,
			[]Arrival{{At: 0, Prompt: 7, Answer: 1}, {At: ms(482), Prompt: 1026, Answer: 52, Blocks: []uint64{46, 47, 2366}}},
		},
		"Azure": {
			"\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.4799600,3180,8\n",
			[]Arrival{{At: 0, Prompt: 4808, Answer: 10}, {At: ms(500), Prompt: 3180, Answer: 8}},
		},
		"Azure with zones": {
			"TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:00.017930+00:00,2399,6\n",
			[]Arrival{{At: 0, Prompt: 2162, Answer: 5}, {At: ms(8), Prompt: 2399, Answer: 6}},
		},
		"BurstGPT": {
			"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n45.5,ChatGPT,1087,230,1317,Conversation log\n",
			[]Arrival{{At: 0, Prompt: 472, Answer: 18}, {At: ms(40500), Prompt: 1087, Answer: 230}},
		},
	} {
		got, err := ReadTrace("t", strings.NewReader(test.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range got.Arrivals {
			got.Arrivals[i].At = got.Arrivals[i].At.Round(time.Microsecond)
		}
		if !reflect.DeepEqual(got.Arrivals, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got.Arrivals, test.want)
		}
	}
}

func TestReadTraceErrors(t *testing.T) {
	for text, part := range map[string]string{
		"":                           "t has no requests",
		"timestamp,a\n":              "t has no requests",
		"timestamp,a\n1,2\n":         "t:2: there is no field input_length or",
		`{"timestamp": 1, "input_le`: "t:1: unexpected EOF",
		"{\"input_length\": 1}":      "t:1: there is no field timestamp",
		"timestamp,input_length,output_length\n1,0,2\n":                              `t:2: "0" tokens: want a number from 1 to`,
		"timestamp,input_length,output_length\n1,2,3\nNaN,1,2\n":                     `t:3: "NaN" is not a time`,
		"timestamp,input_length,output_length\n1,1e30,2\n":                           `"1e30" tokens`,
		"timestamp,input_length,output_length\n1,5\n":                                "wrong number of fields",
		`{"timestamp": 1, "input_length": 513, "output_length": 1, "hash_ids": [1]}`: "1 hash_ids for a prompt of 513 tokens: want one for each 512",
		`{"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": ["x"]}`: `"x" in hash_ids is not a whole number`,
		`{"timestamp": "yesterday", "input_length": 1, "output_length": 1}`:          `"yesterday" is not a time`,
		`{"timestamp": 1, "input_length": -1, "output_length": 1}`:                   `"-1" tokens`,
	} {
		if got, err := ReadTrace("t", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %+v, %v, want %q", text, got, err, part)
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add(`{"timestamp": 1, "input_length": 513, "output_length": 1, "hash_ids": [1,2]}`)
	f.Add("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n")
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := ReadTrace("t", strings.NewReader(text))
		if err != nil {
			return
		}
		before := time.Duration(0)
		for _, a := range trace.Arrivals {
			if a.At < before || a.Prompt < 1 || a.Answer < 1 || len(a.Blocks) > a.Prompt {
				t.Fatalf("%+v after %v", a, before)
			}
			before = a.At
		}
	})
}

// A trace's requests are sent at their times, with their lengths and shared beginnings.
func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trace, err := ReadTrace("t", strings.NewReader(`
			{"timestamp": 0, "input_length": 1000, "output_length": 3, "hash_ids": [1, 2]}
			{"timestamp": 4000, "input_length": 1100, "output_length": 4, "hash_ids": [1, 3, 4]}
			{"timestamp": 9000, "input_length": 20, "output_length": 5}`))
		if err != nil {
			t.Fatal(err)
		}
		trace.Speed = 2
		s := &stub{first: 30 * time.Millisecond, gap: 10 * time.Millisecond, pieces: 4}
		o := usual()
		o.Concurrency, o.Requests, o.Trace = 0, 0, trace
		begun := time.Now()
		r, err := run(t, t.Context(), s, o)
		if err != nil || r.Completed != 3 || r.Due != 4.5 || r.Trace != "t" || r.Late.Max != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if took := time.Since(begun); took != 4560*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		var prompts [][]string
		for i, body := range s.bodies {
			prompts = append(prompts, strings.Fields(body["messages"].([]any)[0].(map[string]any)["content"].(string)))
			if n := trace.Arrivals[i].Prompt; len(prompts[i]) != n || body["max_tokens"] != float64(trace.Arrivals[i].Answer) {
				t.Errorf("prompt %d has %d words, and an answer of %v", i, len(prompts[i]), body["max_tokens"])
			}
		}
		if !reflect.DeepEqual(prompts[0][:512], prompts[1][:512]) || reflect.DeepEqual(prompts[0][512:1000], prompts[1][512:1000]) {
			t.Error("the first two share another part than their first block")
		}
	})
	o := usual()
	o.Trace, o.Rate = &Trace{}, 1
	if _, err := newGenerator(context.Background(), o, nil); err == nil || !strings.Contains(err.Error(), "a trace sets arrival times") {
		t.Error(err)
	}
}
