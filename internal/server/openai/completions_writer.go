package openai

import (
	"strconv"
	"strings"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// A completionsWriter writes the answers to a request for completions.
type completionsWriter struct {
	*writer
	request *completionsRequest
	tokens  [][]int32           // by prompt
	choices []completionsChoice // those of the first prompt, then those of the second, and so on
}

// A completionsChoice is an answer, or in a stream the part that has not been sent.
type completionsChoice struct {
	text         []byte
	scores       textLogProbs
	promptScores []byte
	reason       realizar.FinishReason
}

// Begin prepares the choices. With echo, a choice begins with its prompt.
func (w *completionsWriter) Begin(prompts [][]int32) error {
	r := w.request
	n := r.generation.Choices
	w.tokens = prompts
	w.choices = make([]completionsChoice, len(prompts)*n)
	for i := range w.choices {
		c := &w.choices[i]
		c.scores = textLogProbs{x: w.x, top: valueOr(r.logProbs, 0)}
		if !r.echo {
			continue
		}
		p := &r.prompts[i/n]
		c.text = []byte(p.Prompt)
		if p.PromptTokens != nil {
			tok, err := w.x.Model().Tokenizer()
			if err != nil {
				return err
			}
			c.text = []byte(tok.Decode(p.PromptTokens, false))
		}
		if err := w.x.Reserve(len(c.text)); err != nil {
			return err
		}
	}
	for i := range prompts {
		if len(prompts[i]) == 1 { // the first token has no score
			if err := w.addPrompt(i, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// Delta adds the next part of an answer and sends it if the answer is a stream.
func (w *completionsWriter) Delta(d *server.Delta) error {
	if d.PromptLogProbs != nil {
		return w.addPrompt(d.Prompt, d.PromptLogProbs)
	}
	c := &w.choices[d.Index]
	c.text = append(c.text, d.Text...)
	w.addScores(c, d.LogProbs)
	if d.Finish != nil {
		c.reason = d.Finish.Reason
	}
	if len(c.text) == 0 && len(c.scores.tokens) == 0 && c.reason == "" {
		return nil
	}
	w.chunk = append(w.appendChoice(append(w.chunk[:0], w.begin...), d.Index), w.end...)
	c.text = c.text[:0]
	return w.stream.SendEvent("", w.chunk)
}

// End ends the stream, or writes the whole answer.
func (w *completionsWriter) End(r *server.Result) error {
	if w.stream != nil {
		return w.finish(r)
	}
	for i, scores := range r.PromptLogProbs {
		if scores == nil {
			continue
		}
		if err := w.addPrompt(i, scores); err != nil {
			return err
		}
	}
	b := w.head("text_completion")
	for i := range r.Answers {
		c, a := &w.choices[i], &r.Answers[i]
		c.text = append(c.text, a.Text...)
		w.addScores(c, a.LogProbs)
		c.reason = a.Finish.Reason
		if i > 0 {
			b = append(b, ',')
		}
		b = w.x.Spill(w.appendChoice(w.x.Spill(b), i))
		*c = completionsChoice{}
	}
	b = w.usage(append(b, `],"usage":`...), &r.Usage)
	w.x.WriteJSON(append(appendTimings(w.appendTransfer(b, r.Offer), r.Timings), '}'))
	return nil
}

// scoreBytes bounds the JSON of one scored token, in bytes, with the spare room of the list that it
// is appended to.
const scoreBytes = 128

// addPrompt adds the scores of a prompt to its answers.
func (w *completionsWriter) addPrompt(prompt int, scores []realizar.TokenLogProb) error {
	r := w.request
	p := &r.prompts[prompt]
	n := r.generation.Choices
	choices := w.choices[prompt*n : (prompt+1)*n]
	var promptScores []byte
	if r.promptScores != nil {
		if err := w.x.Reserve(scoreBytes * len(scores) * (1 + *r.promptScores)); err != nil {
			return err
		}
		promptScores = appendPromptScores(w.x, nil, firstOf(scores, *r.promptScores), server.Keep)
	}
	if r.echo && r.logProbs != nil {
		if err := w.x.Reserve(scoreBytes * len(choices) * len(scores) * (1 + *r.logProbs)); err != nil {
			return err
		}
	}
	for i := range choices {
		c := &choices[i]
		c.promptScores = promptScores
		if !r.echo || r.logProbs == nil {
			continue
		}
		for j, id := range w.tokens[prompt] {
			var score *realizar.TokenLogProb
			if j > 0 {
				score = &scores[j-1]
			}
			inText := p.PromptTokens != nil || !w.special(id) || r.special && (j > 0 || strings.HasPrefix(p.Prompt, string(w.x.Piece(id))))
			c.scores.add(id, score, inText)
		}
	}
	return nil
}

// addScores adds the scores of an answer's tokens if the request wants them.
func (w *completionsWriter) addScores(c *completionsChoice, scores []realizar.TokenLogProb) {
	if w.request.logProbs == nil {
		return
	}
	for i := range scores {
		c.scores.add(scores[i].Token, &scores[i], !w.special(scores[i].Token))
	}
}

// special reports whether a token is left out of an answer's text.
func (w *completionsWriter) special(id int32) bool {
	tok, err := w.x.Model().Tokenizer()
	return err == nil && tok.IsSpecial(id)
}

// firstOf returns scores with at most n of the likeliest tokens each.
func firstOf(scores []realizar.TokenLogProb, n int) []realizar.TokenLogProb {
	out := make([]realizar.TokenLogProb, len(scores))
	for i, s := range scores {
		s.Top = s.Top[:min(n, len(s.Top))]
		out[i] = s
	}
	return out
}

// appendChoice appends what a choice has so far.
func (w *completionsWriter) appendChoice(b []byte, index int) []byte {
	c := &w.choices[index]
	b = jsontext.AppendString(append(jsontext.AppendInt(append(b, `{"index":`...), index), `,"text":`...), c.text)
	b = append(b, `,"logprobs":`...)
	if w.request.logProbs != nil {
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
