package main

import (
	"encoding/json"
	"fmt"
	"math"
)

// A figure is a number; in JSON it is null if it is infinite or undefined.
type figure float64

// MarshalJSON implements [json.Marshaler].
func (f figure) MarshalJSON() ([]byte, error) {
	if v := float64(f); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return json.Marshal(v)
	}
	return []byte("null"), nil
}

// An evalResult is the result of an evaluation, as --json writes it.
type evalResult struct {
	predicted
	Text    string       `json:"text"`
	Bytes   int          `json:"bytes"`
	Tokens  int          `json:"tokens"`
	Scored  int          `json:"scored"`
	Window  int          `json:"window"`
	Stride  int          `json:"stride"`
	Seconds float64      `json:"seconds"`
	Against *evalAgainst `json:"against,omitempty"`
}

// predicted says how well a model predicted the text.
type predicted struct {
	Model           string `json:"model"`
	Nats            figure `json:"nats"`
	Perplexity      figure `json:"perplexity"`
	PerplexityError figure `json:"perplexity_error"`
	BitsPerByte     figure `json:"bits_per_byte"`
}

// evalAgainst is the result of the model compared with.
type evalAgainst struct {
	predicted
	Mean       figure `json:"divergence_mean"`
	Median     figure `json:"divergence_median"`
	Most       figure `json:"divergence_99"`
	Max        figure `json:"divergence_max"`
	SameChoice figure `json:"same_choice"`
}

func (e *evaluation) result(c *evalCommand) *evalResult {
	of := func(m *evaluated) predicted {
		s := &m.score
		return predicted{m.path, figure(s.Mean()), figure(s.Perplexity()), figure(s.PerplexityError()), figure(s.BitsPerByte(len(e.text)))}
	}
	model := e.models[0]
	r := &evalResult{
		predicted: of(model), Text: c.Text, Bytes: len(e.text), Tokens: len(e.ids), Scored: model.score.Tokens,
		Window: e.window, Stride: e.stride, Seconds: e.took.Seconds(),
	}
	if len(e.models) > 1 {
		d := &e.divergence
		r.Against = &evalAgainst{
			predicted: of(e.models[1]), Mean: figure(d.Mean()), SameChoice: figure(d.Agreement()),
			Median: figure(d.Quantile(0.5)), Most: figure(d.Quantile(0.99)), Max: figure(d.Quantile(1)),
		}
	}
	return r
}

// write writes the result as a table, or as one JSON object.
func (r *evalResult) write(a *app, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(a.out).Encode(r)
	}
	t := newTable()
	text := r.Text
	if text == "-" {
		text = "standard input"
	}
	t.row("text", fmt.Sprintf("%s, %d bytes, %d tokens, %d of them scored", text, r.Bytes, r.Tokens, r.Scored))
	t.row("windows", fmt.Sprintf("%d tokens, %d apart", r.Window, r.Stride))
	predicted := func(p *predicted) {
		t.row("perplexity", fmt.Sprintf("%.4f ± %.4f", p.Perplexity, p.PerplexityError))
		t.row("bits per byte", fmt.Sprintf("%.4f", p.BitsPerByte))
	}
	t.row("model", r.Model)
	predicted(&r.predicted)
	if o := r.Against; o != nil {
		t.row("against", o.Model)
		predicted(&o.predicted)
		t.row("divergence", fmt.Sprintf("%.3g on average, median %.3g, 99%% below %.3g, at most %.3g", o.Mean, o.Median, o.Most, o.Max))
		t.row("same choice", fmt.Sprintf("%.2f%%", 100*o.SameChoice))
	}
	t.row("took", fmt.Sprintf("%.1f s, %.0f tokens a second", r.Seconds, float64(r.Scored)/r.Seconds))
	_, err := fmt.Fprint(a.out, t.text())
	return err
}
