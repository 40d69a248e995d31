package ollama

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// maxInputs is how many texts one request may bring.
const maxInputs = 2048

// embedRequest is what POST /api/embed takes.
type embedRequest struct {
	model      string
	options    options
	keep       keepAlive
	hasInput   bool
	inputs     []realizar.EmbedInput
	truncate   bool
	dimensions int
}

var embedFields = fields.List[embedRequest]{
	fields.Text("model", "the only model", func(r *embedRequest) *string { return &r.model }),
	fields.New("input", "a string, or a list of up to 2048", "", readInputs),
	fields.Flag("truncate", "false: an input that does not fit is an error; with true its end is cut off", func(r *embedRequest) *bool { return &r.truncate }),
	fields.Whole("dimensions", "or 0: the model's own; of fewer, the first elements are brought to unit length", 0, math.MaxInt32, func(r *embedRequest) *int { return &r.dimensions }),
	optionsField(func(r *embedRequest) *options { return &r.options }),
	keepAliveField(func(r *embedRequest) *keepAlive { return &r.keep }),
}

func readInputs(r *embedRequest, v json.RawMessage) error {
	r.hasInput = true
	var text string
	if v[0] == '"' {
		if err := fields.ReadText(v, &text); err != nil || text == "" {
			return err
		}
		r.inputs = []realizar.EmbedInput{{Text: text}}
		return nil
	}
	list, err := fields.Elements(v)
	if err != nil || len(list) > maxInputs {
		return fields.ErrWrong
	}
	r.inputs = make([]realizar.EmbedInput, len(list))
	for i, v := range list {
		if err := fields.ReadText(v, &r.inputs[i].Text); err != nil {
			return err
		}
	}
	return nil
}

// embed is POST /api/embed.
func embed(x *server.Exchange) error {
	began := time.Now()
	r, err := server.ReadFor(x, embedFields, func() *embedRequest { return &embedRequest{options: newOptions(x)} })
	if err != nil {
		return err
	}
	if err := r.check(x); err != nil {
		return err
	}
	all, err := vectors(x, "input", r.truncate, &realizar.EmbedRequest{Inputs: r.inputs})
	if err != nil {
		return err
	}
	tokens := 0
	b := append(jsontext.AppendString([]byte(`{"model":`), cmp.Or(r.model, x.Name())), `,"embeddings":[`...)
	for i, v := range all {
		if i > 0 {
			b = append(b, ',')
		}
		if r.dimensions > 0 {
			v.Vector = server.Shorten(v.Vector, r.dimensions)
		}
		b = x.Spill(jsontext.AppendFloats(b, v.Vector))
		tokens += v.Tokens
	}
	b = appendDuration(append(b, `],"total_duration":`...), time.Since(began))
	b = jsontext.AppendInt(append(b, `,"load_duration":0,"prompt_eval_count":`...), tokens)
	x.Note(slog.Int("inputs", len(all)), slog.Int("prompt_tokens", tokens))
	x.WriteJSON(append(b, '}'))
	return nil
}

func (r *embedRequest) check(x *server.Exchange) error {
	r.keep.apply(x)
	if !r.hasInput {
		return fields.Missing("input")
	}
	if n := x.Model().EmbeddingLength(); r.dimensions > n {
		return fields.Invalid("dimensions", "dimensions is %d, and the model's embeddings have %d", r.dimensions, n)
	}
	return r.options.settle(x)
}

// embeddingsRequest is what POST /api/embeddings takes.
type embeddingsRequest struct {
	model, prompt string
	options       options
	keep          keepAlive
}

var embeddingsFields = fields.List[embeddingsRequest]{
	fields.Text("model", "the only model", func(r *embeddingsRequest) *string { return &r.model }),
	fields.Text("prompt", "empty, which loads the model", func(r *embeddingsRequest) *string { return &r.prompt }),
	optionsField(func(r *embeddingsRequest) *options { return &r.options }),
	keepAliveField(func(r *embeddingsRequest) *keepAlive { return &r.keep }),
}

// embeddings is POST /api/embeddings, whose vectors have the length that the model gives
// them.
func embeddings(x *server.Exchange) error {
	r, err := server.ReadFor(x, embeddingsFields, func() *embeddingsRequest { return &embeddingsRequest{options: newOptions(x)} })
	if err != nil {
		return err
	}
	r.keep.apply(x)
	if err := r.options.settle(x); err != nil {
		return err
	}
	if r.prompt == "" {
		x.WriteJSON([]byte(`{"embedding":[]}`))
		return nil
	}
	all, err := vectors(x, "prompt", false, &realizar.EmbedRequest{Inputs: []realizar.EmbedInput{{Text: r.prompt}}, KeepLength: true})
	if err != nil {
		return err
	}
	x.Note(slog.Int("inputs", 1), slog.Int("prompt_tokens", all[0].Tokens))
	x.WriteJSON(append(jsontext.AppendFloats([]byte(`{"embedding":`), all[0].Vector), '}'))
	return nil
}

// vectors are the embeddings of r, whose texts are the field param.
func vectors(x *server.Exchange, param string, truncate bool, r *realizar.EmbedRequest) ([]realizar.Embedding, error) {
	if err := x.NoTimings(); err != nil {
		return nil, err
	}
	if len(r.Inputs) == 0 {
		return nil, nil
	}
	ctx, done, err := x.Begin(len(r.Inputs))
	if err != nil {
		return nil, err
	}
	defer done()
	if truncate {
		for i := range r.Inputs {
			if err := shorten(ctx, x.Model().Model, &r.Inputs[i]); err != nil {
				return nil, server.OfField(param, err)
			}
		}
	}
	all, err := x.Model().Embed(ctx, r)
	if errors.Is(err, realizar.ErrConfig) {
		return nil, &server.Error{Status: http.StatusUnprocessableEntity, Code: "no_pooling", Message: server.Plain(err)}
	}
	return all, server.OfField(param, err)
}

// shorten cuts the end off an input that does not fit, but for a special token that the
// tokenizer ends every text with.
func shorten(ctx context.Context, m *realizar.Model, in *realizar.EmbedInput) error {
	p, err := m.Prompt(ctx, &realizar.Request{Prompt: in.Text}, 0)
	if err != nil || len(p.Tokens) <= m.Context() {
		return err
	}
	tok, err := m.Tokenizer()
	if err != nil {
		return err
	}
	in.Text, in.Tokens = "", p.Tokens[:m.Context():m.Context()]
	if last := p.Tokens[len(p.Tokens)-1]; tok.IsSpecial(last) {
		in.Tokens = append(in.Tokens[:m.Context()-1], last)
	}
	return nil
}
