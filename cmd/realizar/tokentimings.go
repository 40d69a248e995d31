package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/tokenizer"
)

// tokenTimings are the times of one answer's tokens, and of what came before the first.
type tokenTimings struct {
	begun time.Time // opening the model
	setup realizar.LoadTimings
	tok   *tokenizer.Tokenizer // nil: texts are empty
	texts []string             // of the tokens that the caller got

	mu      sync.Mutex    // guards the fields that steps change
	first   time.Time     // begin of the first step
	last    time.Time     // begin of the first step, then the time of the last token
	capture time.Duration // time to capture graphs that delayed steps up to the first token
	prompt  int           // tokens of these steps
	steps   int           // number of these steps
	next    tokenTime
	tokens  []tokenTime // all chosen tokens, which may be more than the caller got

	proposed, accepted, proposals int // tokens, and the steps that had some
}

// A tokenTime is the time of the steps from one token to the next.
type tokenTime [tokenTimeParts]time.Duration

// The parts of a [tokenTime].
const (
	embedTime  = iota // before the first layer
	deviceTime        // all of the work on the model's device
	sampleTime        // the choice of the token
	totalTime         // by the clock
	tokenTimeParts
)

func newTokenTimings() *tokenTimings { return &tokenTimings{begun: time.Now()} }

// opened records the model that answers.
func (t *tokenTimings) opened(m *realizar.Model) {
	t.setup = m.Setup()
	t.tok, _ = m.Tokenizer()
}

// take records the tokens of an event.
func (t *tokenTimings) take(e *realizar.Event) {
	for _, id := range e.Tokens {
		text := ""
		if t.tok != nil {
			text = string(t.tok.Piece(id))
		}
		t.texts = append(t.texts, text)
	}
}

// step records a step. The tokens that a step makes of one answer share its time.
func (t *tokenTimings) step(s *realizar.StepTiming) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first.IsZero() {
		t.first, t.last = s.Begun, s.Begun
	}
	if len(t.tokens) == 0 {
		t.capture += max(0, s.Capture-s.Begun.Sub(s.Submitted)) // what ran beside the step before cost nothing
		t.prompt += s.Tokens
		t.steps++
	}
	t.next[embedTime] += s.Embed
	t.next[deviceTime] += s.Device
	t.next[sampleTime] += s.Choose
	if s.Chosen == 0 {
		return
	}
	t.next[totalTime] = s.Done.Sub(t.last)
	n := 1 + s.Accepted
	for i := range t.next {
		t.next[i] /= time.Duration(n)
	}
	for range n {
		t.tokens = append(t.tokens, t.next)
	}
	if t.last, t.next = s.Done, (tokenTime{}); s.Proposed > 0 {
		t.proposed, t.accepted, t.proposals = t.proposed+s.Proposed, t.accepted+s.Accepted, t.proposals+1
	}
}

// given returns the times of the tokens that the caller got.
func (t *tokenTimings) given() []tokenTime {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tokens[:min(len(t.texts), len(t.tokens))]
}

// A phase is a part of the time to the first token.
type phase struct {
	name string
	took time.Duration
	what string
}

// phases returns the phases so far, in order, and their sum. They do not change after the first
// token is given.
func (t *tokenTimings) phases() []phase {
	s := &t.setup
	all := []phase{
		{"open", s.Open, "files, architecture, tokenizer, device, memory"},
		{"load", s.Load, "weights"},
		{"compile", s.Compile, "kernels"},
	}
	if given := t.given(); len(given) > 0 {
		first := &given[0]
		all = append(all,
			phase{"encode", t.first.Sub(t.begun) - s.Open - s.Load - s.Compile - s.Capture, "the prompt as tokens, and what else there is before its first step"},
			phase{"capture", s.Capture + t.capture, "steps as graphs"},
			phase{"prefill", first[totalTime] - t.capture - first[sampleTime], fmt.Sprintf("tokens: %d, steps: %d", t.prompt, t.steps)},
			phase{"first sample", first[sampleTime], ""})
	}
	sum := phase{name: "total"}
	for i := range all {
		all[i].took = max(0, all[i].took)
		sum.took += all[i].took
	}
	return append(all, sum)
}

// A timeSummary is one number of each part of the times.
type timeSummary struct {
	name string
	time tokenTime
}

// summaries returns, for the tokens after the first, the median of each part, the 95th percentile
// and the sum. It returns nil if there are no such tokens.
func summaries(tokens []tokenTime) []timeSummary {
	if len(tokens) < 2 {
		return nil
	}
	tokens = tokens[1:]
	n := len(tokens)
	median, most, sum := timeSummary{name: "median"}, timeSummary{name: "95%"}, timeSummary{name: "sum"}
	for part := range tokenTimeParts {
		times := make([]time.Duration, n)
		for i := range tokens {
			times[i] = tokens[i][part]
			sum.time[part] += times[i]
		}
		slices.Sort(times)
		median.time[part], most.time[part] = (times[(n-1)/2]+times[n/2])/2, times[(95*n+99)/100-1]
	}
	return []timeSummary{median, most, sum}
}

// write writes two tables: the phases up to the first token, and the times of each token.
func (t *tokenTimings) write(w io.Writer) {
	given := t.given()
	all := summaries(given)
	first := newTable()
	first.row("first token", "ms", "")
	for _, p := range t.phases() {
		first.row(p.name, millisecondsText(p.took), p.what)
	}
	text := "\n" + first.text(1)
	if len(given) > 0 {
		each := newTable()
		each.row("token", "embed ms", "device ms", "sample ms", "total ms", "text")
		add := func(name string, time *tokenTime, text string) {
			row := []string{name}
			for _, part := range time {
				row = append(row, millisecondsText(part))
			}
			each.row(append(row, text)...)
		}
		for i := range given {
			add(strconv.Itoa(i+1), &given[i], shortText(t.texts[i]))
		}
		for i := range all {
			add(all[i].name, &all[i].time, "")
		}
		text += "\n" + each.text(0, 1, 2, 3, 4)
	}
	if n := len(given) - 1; n > 0 {
		sum := all[2].time
		text += fmt.Sprintf("\nmedian, 95%% and sum are of the %d tokens after the first: %.2f tok/s, %.1f%% of the time on the device\n",
			n, float64(n)/sum[totalTime].Seconds(), 100*float64(sum[deviceTime])/float64(sum[totalTime]))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.proposals > 0 {
		text += fmt.Sprintf("%d steps had %d proposed tokens, of which %d were right; the tokens of a step share its time\n", t.proposals, t.proposed, t.accepted)
	}
	_, _ = io.WriteString(w, text)
}

func millisecondsText(d time.Duration) string { return fmt.Sprintf("%.3f", milliseconds(d)) }

// shortText returns a token's text in quotes, cut if it is long.
func shortText(text string) string {
	const most = 24 // characters
	if runes := []rune(text); len(runes) > most {
		return strconv.Quote(string(runes[:most])) + "..."
	}
	return strconv.Quote(text)
}

// A timingTrace is what --json writes of the times.
type timingTrace struct {
	FirstToken map[string]float64 `json:"first_token"` // by phase, in milliseconds
	Tokens     []tokenTrace       `json:"tokens"`
	Median     *tokenTrace        `json:"median,omitempty"` // of the tokens after the first
	Most       *tokenTrace        `json:"p95,omitempty"`
	Sum        *tokenTrace        `json:"sum,omitempty"`
}

// A tokenTrace is a [tokenTime].
type tokenTrace struct {
	Embed  float64 `json:"embed_ms"`
	Device float64 `json:"device_ms"`
	Sample float64 `json:"sample_ms"`
	Total  float64 `json:"total_ms"`
}

func newTokenTrace(t *tokenTime) *tokenTrace {
	return &tokenTrace{milliseconds(t[embedTime]), milliseconds(t[deviceTime]), milliseconds(t[sampleTime]), milliseconds(t[totalTime])}
}

// trace returns t in the form of --json.
func (t *tokenTimings) trace() *timingTrace {
	given := t.given()
	j := &timingTrace{FirstToken: map[string]float64{}, Tokens: []tokenTrace{}}
	for _, p := range t.phases() {
		j.FirstToken[strings.ReplaceAll(p.name, " ", "_")+"_ms"] = milliseconds(p.took)
	}
	for i := range given {
		j.Tokens = append(j.Tokens, *newTokenTrace(&given[i]))
	}
	if all := summaries(given); all != nil {
		j.Median, j.Most, j.Sum = newTokenTrace(&all[0].time), newTokenTrace(&all[1].time), newTokenTrace(&all[2].time)
	}
	return j
}
