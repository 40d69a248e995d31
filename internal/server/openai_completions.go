package server

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/realizar/realizar"
)

// What completions are where a request does not say, as OpenAI's API has it.
const defaultCompletionTokens = 16

// The most that a request for completions may ask for.
const (
	maxPrompts           = 2048
	maxAnswers           = 4096 // of all its prompts
	maxCompletionsScores = 5
)

// completionsRequest is what POST /v1/completions takes.
type completionsRequest struct {
	settings
	prompts   []completionsPrompt
	maxTokens int
	echo      bool
	logProbs  *int
	special   bool
	bestOf    *int
}

// A completionsPrompt is a text, or ids.
type completionsPrompt struct {
	text   string
	tokens []int32
}

var completionsFields = append(within(func(r *completionsRequest) *settings { return &r.settings }, settingsFields), fields[completionsRequest]{
	{"prompt", "a string, a list of strings, a list of token ids, or a list of such lists", "", readPrompts},
	whole("max_tokens", "16", 0, math.MaxInt32, func(r *completionsRequest) *int { return &r.maxTokens }),
	flag("echo", "false", func(r *completionsRequest) *bool { return &r.echo }),
	optional("logprobs", "none", 0, maxCompletionsScores, func(r *completionsRequest) **int { return &r.logProbs }),
	flag("parse_special", "false: what looks like a special token is plain text", func(r *completionsRequest) *bool { return &r.special }),
	only[completionsRequest]("add_special_tokens", "true", "send token ids to have none added", "true"),
	optional("best_of", "n", 1, maxChoices, func(r *completionsRequest) **int { return &r.bestOf }),
	only[completionsRequest]("suffix", `""`, "the model continues a text and cannot fill one in", `""`),
	only[completionsRequest]("response_format", `{"type":"text"}`, "answers are free text", `{"type":"text"}`),
}...)

func readPrompts(r *completionsRequest, v json.RawMessage) error {
	if v[0] == '"' {
		r.prompts = make([]completionsPrompt, 1)
		return readText(v, &r.prompts[0].text)
	}
	if ids, err := readIDs(v); err == nil && len(ids) > 0 {
		r.prompts = []completionsPrompt{{tokens: ids}}
		return nil
	}
	list, err := elements(v)
	switch {
	case err != nil:
		return err
	case len(list) == 0:
		return invalid("prompt", "prompt is an empty list; want one prompt at least")
	case len(list) > maxPrompts:
		return invalid("prompt", "prompt is a list of %d; want %d at most", len(list), maxPrompts)
	}
	r.prompts = make([]completionsPrompt, len(list))
	for i, v := range list {
		p := &r.prompts[i]
		if v[0] == '[' {
			p.tokens, err = readIDs(v)
		} else {
			err = readText(v, &p.text)
		}
		if err != nil || (v[0] == '[') != (list[0][0] == '[') {
			return errWrong
		}
	}
	return nil
}

func (s *Server) readCompletions(x *exchange) (*completionsRequest, error) {
	data, err := s.body(x)
	if err != nil {
		return nil, err
	}
	s.notePrompt(x, data)
	r := &completionsRequest{settings: s.newSettings(), maxTokens: defaultCompletionTokens}
	if err := completionsFields.decode(r, data, ""); err != nil {
		return nil, err
	}
	n := r.generation.Choices
	switch {
	case r.prompts == nil:
		return nil, missing("prompt")
	case r.bestOf != nil && *r.bestOf != n:
		return nil, &Error{Status: 400, Param: "best_of", Code: "unsupported_parameter", Message: "best_of other than n is not supported: all answers are sent"}
	case len(r.prompts)*n > maxAnswers:
		return nil, invalid("n", "%d prompts with %d answers each are more than %d", len(r.prompts), n, maxAnswers)
	}
	r.generation.MaxTokens = &r.maxTokens
	r.generation.LogProbs = r.logProbs
	if err := s.settle(&r.settings); err != nil {
		return nil, err
	}
	if r.echo && r.logProbs != nil {
		r.generation.PromptLogProbs = new(max(*r.logProbs, valueOr(r.promptScores, 0)))
	}
	return r, nil
}

func valueOr[T any](p *T, v T) T {
	if p != nil {
		return *p
	}
	return v
}

// jobs are the request's prompts as the model runs them. Where no seed was asked for,
// each has its own.
func (s *Server) jobs(r *completionsRequest) ([]job, error) {
	jobs := make([]job, len(r.prompts))
	for i := range r.prompts {
		given := &r.prompts[i]
		p, err := s.model.Prompt(&realizar.Request{Prompt: given.text, PromptTokens: given.tokens, Special: r.special})
		if err != nil {
			return nil, ofField("prompt", err)
		}
		jobs[i] = job{p.Tokens, r.generation}
		if i > 0 && !r.seeded {
			jobs[i].generation.Seed = randomSeed()
		}
	}
	return jobs, nil
}

// completions is POST /v1/completions.
func (s *Server) completions(x *exchange) error {
	r, err := s.readCompletions(x)
	if err != nil {
		return err
	}
	if err := x.watchFor(len(r.prompts)*r.generation.Choices, &r.generation); err != nil {
		return err
	}
	ctx, done, err := s.begin(x, len(r.prompts)*r.generation.Choices)
	if err != nil {
		return err
	}
	defer done()
	begun := time.Now()
	jobs, err := s.jobs(r)
	if err != nil {
		return err
	}
	x.watch.prepared(0, time.Since(begun))
	a := &completionsAnswer{server: s, request: r, watch: x.watch, jobs: jobs, id: newID("cmpl-"), created: time.Now().Unix()}
	if err := a.open(); err != nil {
		return err
	}
	if r.stream {
		a.stream = s.stream(x)
		a.begin = head(nil, a.id, "text_completion", a.created, s.config.Names[0])
		a.end = streamEnd(&r.settings)
	}
	if err := s.answers(ctx, jobs, a.take); err != nil {
		return ofField("prompt", err)
	}
	x.noteUsage(&a.usage)
	if r.stream {
		return a.finish()
	}
	writeJSON(x.w, 200, a.body())
	return nil
}

// A completionsAnswer is what such a request is answered with, as a whole or as a
// stream.
type completionsAnswer struct {
	server  *Server
	request *completionsRequest
	jobs    []job
	id      string
	created int64
	usage   usage
	watch   *stopwatch
	choices []completionsChoice // those of the first prompt, then those of the next

	stream     *stream
	begin, end []byte // of every chunk, up to its choices and after them
	chunk      []byte // scratch
}

// A completionsChoice is an answer as far as it has come, or what a stream has not sent
// of it.
type completionsChoice struct {
	text         []byte
	scores       textLogProbs
	promptScores []byte
	reason       realizar.FinishReason
}

// open begins the answers: those that echo have the prompt.
func (a *completionsAnswer) open() error {
	r := a.request
	n := r.generation.Choices
	a.choices = make([]completionsChoice, len(a.jobs)*n)
	for i := range a.choices {
		c := &a.choices[i]
		c.scores = textLogProbs{server: a.server, top: valueOr(r.logProbs, 0)}
		if !r.echo {
			continue
		}
		p := &r.prompts[i/n]
		c.text = []byte(p.text)
		if p.tokens != nil {
			tok, err := a.server.model.Tokenizer()
			if err != nil {
				return err
			}
			c.text = []byte(tok.Decode(p.tokens, false))
		}
	}
	for i := range a.jobs {
		if len(a.jobs[i].tokens) == 1 { // the model has no scores for it
			a.takePrompt(i, a.choices[i*n:(i+1)*n], nil)
		}
	}
	return nil
}

// take passes an event on.
func (a *completionsAnswer) take(job int, e *realizar.Event) error {
	n := a.request.generation.Choices
	if e.PromptLogProbs != nil {
		a.takePrompt(job, a.choices[job*n:(job+1)*n], e.PromptLogProbs)
		return nil
	}
	index := job*n + e.Choice
	a.watch.saw(index, e)
	c := &a.choices[index]
	c.text = append(c.text, e.Text...)
	if a.request.logProbs != nil {
		scores := textScores(e)
		for i := range scores {
			c.scores.add(scores[i].Token, &scores[i], !a.server.special(scores[i].Token))
		}
	}
	if e.Finish != nil {
		a.usage.add(e.Choice, e.Finish)
		c.reason = e.Finish.Reason
	}
	if a.stream == nil {
		return nil
	}
	if len(c.text) == 0 && len(c.scores.tokens) == 0 && c.reason == "" {
		return nil
	}
	a.chunk = append(a.appendChoice(append(a.chunk[:0], a.begin...), index), a.end...)
	c.text = c.text[:0]
	return a.stream.send(a.chunk)
}

// special reports whether a token is left out of the text of an answer.
func (s *Server) special(id int32) bool {
	tok, err := s.model.Tokenizer()
	return err == nil && tok.IsSpecial(id)
}

// takePrompt keeps the scores of a prompt for all of its answers.
func (a *completionsAnswer) takePrompt(job int, choices []completionsChoice, scores []realizar.TokenLogProb) {
	r := a.request
	p := &r.prompts[job]
	for i := range choices {
		c := &choices[i]
		if r.promptScores != nil {
			c.promptScores = a.server.appendPromptScores(nil, firstOf(scores, *r.promptScores))
		}
		if !r.echo || r.logProbs == nil {
			continue
		}
		for j, id := range a.jobs[job].tokens {
			var score *realizar.TokenLogProb
			if j > 0 {
				score = &scores[j-1]
			}
			inText := p.tokens != nil || !a.server.special(id) || r.special && (j > 0 || strings.HasPrefix(p.text, string(a.server.piece(id))))
			c.scores.add(id, score, inText)
		}
	}
}

// firstOf are scores with no more than n of the likeliest tokens.
func firstOf(scores []realizar.TokenLogProb, n int) []realizar.TokenLogProb {
	out := make([]realizar.TokenLogProb, len(scores))
	for i, s := range scores {
		s.Top = s.Top[:min(n, len(s.Top))]
		out[i] = s
	}
	return out
}

// appendChoice appends an answer as far as it has come.
func (a *completionsAnswer) appendChoice(b []byte, index int) []byte {
	c := &a.choices[index]
	b = appendString(append(appendInt(append(b, `{"index":`...), index), `,"text":`...), c.text)
	b = append(b, `,"logprobs":`...)
	if a.request.logProbs != nil {
		b = c.scores.take(b)
	} else {
		b = append(b, "null"...)
	}
	if b = append(b, `,"finish_reason":`...); c.reason != "" {
		b = strconv.AppendQuote(b, string(c.reason))
	} else {
		b = append(b, "null"...)
	}
	if c.promptScores != nil {
		b = append(append(b, `,"prompt_logprobs":`...), c.promptScores...)
	}
	return append(b, '}')
}

// finish ends the stream.
func (a *completionsAnswer) finish() error {
	if b := lastChunk(append(a.chunk[:0], a.begin...), &a.request.settings, &a.usage, a.watch); b != nil {
		a.stream.add(b)
	}
	return a.stream.done()
}

// body is the whole answer.
func (a *completionsAnswer) body() []byte {
	b := head(nil, a.id, "text_completion", a.created, a.server.config.Names[0])
	for i := range a.choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = a.appendChoice(b, i)
	}
	return append(a.watch.appendTimings(appendUsage(append(b, `],"usage":`...), &a.usage)), '}')
}
