package llamacpp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// A writer writes answers, as a stream of server-sent events or as a whole.
type writer struct {
	x        *server.Exchange
	settings *settings
	several  bool           // the whole answer is a list
	stream   *server.Stream // nil where the answer comes as a whole
	chunk    []byte         // scratch
}

func newWriter(x *server.Exchange, s *settings, several bool) *writer {
	w := &writer{x: x, settings: s, several: several}
	if s.stream {
		w.stream = x.Stream(server.Events, func(e *server.Error) error {
			return w.stream.SendEvent("", Dialect{}.Error(http.Header{}, e))
		})
	}
	return w
}

// Begin is called before the model runs.
func (w *writer) Begin([][]int32) error { return nil }

// Delta sends what an answer goes on with.
func (w *writer) Delta(d *server.Delta) error {
	if d.Text == "" && len(d.LogProbs) == 0 && d.Finish == nil {
		return nil
	}
	b := head(w.chunk[:0], d.Index, d.Text)
	b = w.appendScores(b, d.LogProbs, server.Keep)
	if d.Finish == nil {
		b = append(b, `,"stop":false}`...)
	} else {
		b = append(w.appendEnd(b, d.Finish), '}')
	}
	w.chunk = b
	return w.stream.SendEvent("", b)
}

// End writes the whole answer. A stream has ended with its last event.
func (w *writer) End(r *server.Result) error {
	if w.stream != nil {
		return nil
	}
	var b []byte
	if w.several {
		b = append(b, '[')
	}
	for i := range r.Answers {
		a := &r.Answers[i]
		if i > 0 {
			b = append(b, ',')
		}
		text := a.Text
		if w.settings.indent > 0 {
			text = text[:indented(text, w.settings.indent)]
		}
		b = w.x.Spill(head(b, i, text))
		b = w.appendScores(b, a.LogProbs, w.x.Spill)
		b = w.appendEnd(b, a.Finish)
		if r.Timings != nil {
			data, _ := json.Marshal(r.Timings) // there is nothing in it that fails
			b = append(append(b, `,"trace_timings":`...), data...)
		}
		b = w.x.Spill(append(b, '}'))
	}
	if w.several {
		b = append(b, ']')
	}
	w.x.WriteJSON(b)
	return nil
}

// head appends what an answer or a part of it begins with.
func head[S ~string | ~[]byte](b []byte, index int, text S) []byte {
	b = jsontext.AppendInt(append(b, `{"index":`...), index)
	b = jsontext.AppendString(append(b, `,"content":`...), text)
	return append(b, `,"tokens":[],"id_slot":-1`...)
}

// appendEnd appends what is said of an answer when it has ended.
func (w *writer) appendEnd(b []byte, f *realizar.Finish) []byte {
	b = jsontext.AppendString(append(b, `,"stop":true,"model":`...), w.x.Name())
	b = jsontext.AppendInt(append(b, `,"tokens_predicted":`...), f.Usage.CompletionTokens)
	b = jsontext.AppendInt(append(b, `,"tokens_evaluated":`...), f.Usage.PromptTokens)
	b = jsontext.AppendInt(append(b, `,"tokens_cached":`...), f.Usage.PromptTokens+f.Usage.CompletionTokens)
	b = append(append(append(b, `,"truncated":false,"stop_type":"`...), stopType(f)...), '"')
	b = jsontext.AppendString(append(b, `,"stopping_word":`...), f.StopString)
	all := measures(f)
	b = append(b, `,"timings":{`...)
	for i, m := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = m.append(b, "")
	}
	b = append(b, '}')
	for _, m := range all {
		if slices.Contains(w.settings.wanted, "timings/"+m.name) {
			b = m.append(append(b, ','), "timings/")
		}
	}
	return b
}

// stopType is why an answer ended.
func stopType(f *realizar.Finish) string {
	switch {
	case f.Reason == realizar.FinishLength:
		return "limit"
	case f.StopString != "":
		return "word"
	}
	return "eos"
}

// A measure is one of what is measured of an answer.
type measure struct {
	name  string
	value float64
}

func (m measure) append(b []byte, prefix string) []byte {
	b = append(append(append(append(b, '"'), prefix...), m.name...), `":`...)
	return strconv.AppendFloat(b, m.value, 'g', -1, 64)
}

// measures are those of an answer, in milliseconds.
func measures(f *realizar.Finish) []measure {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	per := func(a, b float64) float64 {
		if b == 0 {
			return 0
		}
		return a / b
	}
	read, wrote := float64(f.Usage.PromptTokens-f.Usage.CachedTokens), float64(f.Usage.CompletionTokens)
	prefill, decode := ms(f.Timings.Prefill), ms(f.Timings.Decode)
	return []measure{
		{"cache_n", float64(f.Usage.CachedTokens)},
		{"prompt_n", read}, {"prompt_ms", prefill}, {"prompt_per_token_ms", per(prefill, read)}, {"prompt_per_second", per(1000*read, prefill)},
		{"predicted_n", wrote}, {"predicted_ms", decode}, {"predicted_per_token_ms", per(decode, wrote)}, {"predicted_per_second", per(1000*wrote, decode)},
	}
}

// indented is how much of a text comes before its first line, behind the one that it begins
// in, that has text behind fewer than n blanks.
func indented(text []byte, n int) int {
	for at := bytes.IndexByte(text, '\n'); at >= 0; {
		line := text[at+1:]
		next := bytes.IndexByte(line, '\n')
		if next >= 0 {
			line = line[:next]
		}
		rest := bytes.TrimLeft(line, " \t")
		if len(bytes.TrimSpace(rest)) > 0 && len(line)-len(rest) < n {
			return at
		}
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return len(text)
}

// appendScores appends the tokens of an answer, where they are asked for.
func (w *writer) appendScores(b []byte, scores []realizar.TokenLogProb, spill func([]byte) []byte) []byte {
	if w.settings.generation.LogProbs == nil {
		return b
	}
	b = append(b, `,"completion_probabilities":[`...)
	return append(w.x.AppendScores(b, server.ScoreForm{IDs: true}, scores, spill), ']')
}
