package openai

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// An embeddingsRequest is the body of POST /v1/embeddings.
type embeddingsRequest struct {
	model      string
	inputs     []realizar.EmbedInput
	base64     bool
	dimensions int
	pooling    realizar.Pooling
	priority   int
	salt       string
}

// maxInputs is how many texts one request may bring, as in OpenAI's API.
const maxInputs = 2048

var embeddingsFields = fields.List[embeddingsRequest]{
	fields.Text("model", "the model that is served", func(r *embeddingsRequest) *string { return &r.model }),
	fields.New("input", "a string, a list of token ids, or a list of 1 to 2048 of either", "", func(r *embeddingsRequest, value json.RawMessage) (err error) {
		r.inputs, err = readEmbedInputs(value)
		return err
	}),
	fields.New("encoding_format", `"float" or "base64": little-endian float32`, `"float"`, func(r *embeddingsRequest, value json.RawMessage) error {
		switch string(value) {
		case `"float"`:
			r.base64 = false
		case `"base64"`:
			r.base64 = true
		default:
			return fields.ErrWrong
		}
		return nil
	}),
	fields.New("dimensions", "a whole number from 1 to the length of the model's own embeddings, of which the first elements are brought to unit length", "the model's own", func(r *embeddingsRequest, value json.RawMessage) (err error) {
		r.dimensions, err = fields.ReadWhole(value, 1, math.MaxInt32)
		return err
	}),
	fields.New("pooling", `"mean", "last", "cls" or "max": which tokens count, and how`, "what the model's files say, or else the last token; of a model that reads texts as a whole, the mean", func(r *embeddingsRequest, value json.RawMessage) error {
		for _, p := range []realizar.Pooling{realizar.PoolingMean, realizar.PoolingLast, realizar.PoolingCLS, realizar.PoolingMax} {
			if string(value) == `"`+p.String()+`"` {
				r.pooling = p
				return nil
			}
		}
		return fields.ErrWrong
	}),
	fields.Whole("priority", "0; lower ones go first", -math.MaxInt32, math.MaxInt32, func(r *embeddingsRequest) *int { return &r.priority }),
	fields.Text("cache_salt", "none", func(r *embeddingsRequest) *string { return &r.salt }),
	fields.Ignored[embeddingsRequest]("user"),
	fields.Ignored[embeddingsRequest]("metadata"),
	fields.Ignored[embeddingsRequest]("extra_body"),
}

// readEmbedInputs reads one text or several, as strings or ids.
func readEmbedInputs(value json.RawMessage) ([]realizar.EmbedInput, error) {
	if one, err := readEmbedInput(value, ""); err == nil {
		return []realizar.EmbedInput{one}, nil
	} else if value[0] == '"' {
		return nil, err
	}
	list, err := fields.Elements(value)
	if err != nil || len(list) == 0 || len(list) > maxInputs {
		return nil, fields.ErrWrong
	}
	if c := list[0][0]; c == '-' || '0' <= c && c <= '9' {
		_, err := fields.ReadIDs(value)
		return nil, err
	}
	inputs := make([]realizar.EmbedInput, len(list))
	for i, one := range list {
		if inputs[i], err = readEmbedInput(one, fmt.Sprintf("input[%d]", i)); err != nil {
			return nil, err
		}
	}
	return inputs, nil
}

// readEmbedInput reads one text. Errors are of at, where that is not empty.
func readEmbedInput(value json.RawMessage, at string) (in realizar.EmbedInput, err error) {
	switch value[0] {
	case '"':
		if err = fields.ReadText(value, &in.Text); err == nil && in.Text == "" {
			err = errors.New("the text is empty")
		}
	case '[':
		if in.Tokens, err = fields.ReadIDs(value); err == nil && len(in.Tokens) == 0 {
			err = fields.ErrWrong
		}
	default:
		err = fields.ErrWrong
	}
	if err != nil && at != "" {
		return in, fields.Named(err, at, "a string, or a list of token ids", value)
	}
	return in, err
}

// embeddings is POST /v1/embeddings.
func embeddings(x *server.Exchange) error {
	r, err := server.ReadFor(x, embeddingsFields, nil)
	if err != nil {
		return err
	}
	if err := checkEmbeddings(x, r); err != nil {
		return err
	}
	ctx, done, err := x.Begin(len(r.inputs))
	if err != nil {
		return err
	}
	defer done()
	vectors, err := x.Model().Embed(ctx, &realizar.EmbedRequest{Inputs: r.inputs, Pooling: r.pooling, Priority: -r.priority, Salt: r.salt})
	if errors.Is(err, realizar.ErrConfig) {
		return &server.Error{Status: http.StatusUnprocessableEntity, Param: "pooling", Code: "no_pooling", Message: server.Plain(err)}
	}
	if err != nil {
		return server.OfField("input", err)
	}
	tokens := 0
	b := []byte(`{"object":"list","data":[`)
	for i, v := range vectors {
		if r.dimensions > 0 {
			v.Vector = server.Shorten(v.Vector, r.dimensions)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsontext.AppendInt(append(b, `{"object":"embedding","index":`...), i), `,"embedding":`...)
		b = x.Spill(append(appendVector(b, v.Vector, r.base64), '}'))
		tokens += v.Tokens
	}
	b = jsontext.AppendString(append(b, `],"model":`...), x.Name())
	b = jsontext.AppendInt(append(b, `,"usage":{"prompt_tokens":`...), tokens)
	b = append(jsontext.AppendInt(append(b, `,"total_tokens":`...), tokens), `}}`...)
	x.Note(slog.Int("inputs", len(vectors)), slog.Int("prompt_tokens", tokens))
	x.WriteJSON(b)
	return nil
}

// checkEmbeddings refuses what does not go with the model.
func checkEmbeddings(x *server.Exchange, r *embeddingsRequest) error {
	if err := x.NoTimings(); err != nil {
		return err
	}
	if len(r.inputs) == 0 {
		return fields.Missing("input")
	}
	if n := x.Model().EmbeddingLength(); r.dimensions > n {
		return fields.Invalid("dimensions", "dimensions is %d, and the model's embeddings have %d; ask for no more, or leave it out", r.dimensions, n)
	}
	for i := range r.inputs {
		for j, id := range r.inputs[i].Tokens {
			if id < 0 || int(id) >= x.Model().Vocab() {
				return fields.Invalid("input", "input %d has the token id %d at index %d; the vocabulary has %d", i, id, j, x.Model().Vocab())
			}
		}
	}
	return nil
}

// appendVector appends v as numbers, or as little-endian float32 in base64.
func appendVector(b []byte, v []float32, inBase64 bool) []byte {
	if inBase64 {
		data := make([]byte, 0, 4*len(v))
		for _, f := range v {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
		}
		return append(base64.StdEncoding.AppendEncode(append(b, '"'), data), '"')
	}
	return jsontext.AppendFloats(b, v)
}
