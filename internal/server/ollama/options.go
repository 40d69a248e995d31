package ollama

import (
	"encoding/json"
	"math"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// options are the options of an answer.
type options struct {
	generation realizar.Generation
	seeded     bool
	context    int  // num_ctx; 0 means that of the loaded model
	lastN      *int // repeat_last_n
	newlines   bool // penalize_newline
}

// defaults returns the sampling of a request without options: what the model's files recommend, or
// Ollama's defaults.
func defaults(m *realizar.Model) realizar.Sampling {
	if d, ok := m.DefaultSampling(); ok {
		return d
	}
	return orOllamas(nil)
}

// orOllamas returns makers, or Ollama's defaults if it is nil.
func orOllamas(makers *realizar.Sampling) realizar.Sampling {
	if makers != nil {
		return *makers
	}
	return realizar.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.9}
}

// newOptions returns the options of a request without any.
func newOptions(x *server.Exchange) options {
	return options{generation: realizar.Generation{Sampling: defaults(x.Model().Model), Choices: 1}, newlines: true}
}

const recommended = "what the model's makers recommend, or "

var optionsFields = fields.List[options]{
	fields.Number("temperature", recommended+"0.8", 0, 100, func(o *options) *float32 { return &o.generation.Temperature }),
	fields.New("top_k", "a whole number from 1, or 0 or -1 for all tokens", recommended+"40", func(o *options, v json.RawMessage) error {
		k, err := fields.ReadWhole(v, -1, math.MaxInt32)
		o.generation.TopK = max(0, k)
		return err
	}),
	share("top_p", "0.9", func(o *options) *float32 { return &o.generation.TopP }),
	fields.Number("min_p", recommended+"0", 0, 1, func(o *options) *float32 { return &o.generation.MinP }),
	share("typical_p", "1", func(o *options) *float32 { return &o.generation.Typical }),
	fields.New("seed", "a whole number of 64 bits; -1 is a random one", "a random one", func(o *options, v json.RawMessage) error {
		seed, err := fields.ReadSeed(v)
		o.generation.Seed, o.seeded = seed, seed != math.MaxUint64
		return err
	}),
	fields.New("num_predict", "a whole number from 1, or -1 or -2 for as many as the context has room for", "-1", func(o *options, v json.RawMessage) error {
		n, err := fields.ReadWhole(v, -2, math.MaxInt32)
		if err != nil || n == 0 {
			return fields.ErrWrong
		}
		if o.generation.MaxTokens = nil; n > 0 {
			o.generation.MaxTokens = &n
		}
		return nil
	}),
	fields.New("stop", "a string, or a list of up to 64", "none", readStop),
	fields.Number("repeat_penalty", recommended+"1", 0.01, 100, func(o *options) *float32 { return &o.generation.RepetitionPenalty }),
	fields.New("repeat_last_n", "a whole number from 0, or -1 for all tokens; with a penalty 0, which switches penalties off, or all tokens", "-1", func(o *options, v json.RawMessage) error {
		n, err := fields.ReadWhole(v, -1, math.MaxInt32)
		o.lastN = &n
		return err
	}),
	fields.Number("presence_penalty", "0", -2, 2, func(o *options) *float32 { return &o.generation.PresencePenalty }),
	fields.Number("frequency_penalty", "0", -2, 2, func(o *options) *float32 { return &o.generation.FrequencyPenalty }),
	fields.New("penalize_newline", "true or false; with a penalty true", "true", func(o *options, v json.RawMessage) error {
		return fields.ReadFlag(v, &o.newlines)
	}),
	fields.New("num_ctx", "a whole number from 1 to the loaded context", "what is loaded", func(o *options, v json.RawMessage) (err error) {
		o.context, err = fields.ReadWhole(v, 1, math.MaxInt32)
		return err
	}),
	fields.Ignored[options]("num_keep"), // about truncating a context, which is never done
	fields.Only[options]("mirostat", "0", "leave it out, and use top_p or min_p", "0"),
	fields.Ignored[options]("mirostat_tau"),
	fields.Ignored[options]("mirostat_eta"),
	fields.Only[options]("tfs_z", "1", "leave it out, and use top_p or min_p", "1", "1.0"),
	fields.Refused[options]("rope_frequency_base", "the model's files say it"),
	fields.Refused[options]("rope_frequency_scale", "the model's files say it"),
	fields.Only[options]("vocab_only", "false", "the model is loaded as a whole", "false"),
	fields.Only[options]("embedding_only", "false", "the model is loaded as a whole", "false"),
	fields.Ignored[options]("num_gpu"),
	fields.Ignored[options]("main_gpu"),
	fields.Ignored[options]("num_thread"),
	fields.Ignored[options]("num_batch"),
	fields.Ignored[options]("num_gqa"),
	fields.Ignored[options]("numa"),
	fields.Ignored[options]("use_mmap"),
	fields.Ignored[options]("use_mlock"),
	fields.Ignored[options]("low_vram"),
	fields.Ignored[options]("f16_kv"),
	fields.Ignored[options]("logits_all"),
}

// optionsField returns the field options.
func optionsField[R any](of func(*R) *options) fields.Field[R] {
	return fields.New("options", "an object", "none", func(r *R, v json.RawMessage) error {
		return optionsFields.Decode(of(r), v, "options")
	})
}

// share returns a field with a share of the probabilities. 0 keeps the likeliest token.
func share(name, otherwise string, to func(*options) *float32) fields.Field[options] {
	return fields.New(name, "a number from 0 to 1", recommended+otherwise, func(o *options, v json.RawMessage) (err error) {
		*to(o), err = fields.ReadShareOr0(v)
		return err
	})
}

func readStop(o *options, v json.RawMessage) (err error) {
	o.generation.Stop, err = fields.ReadStops("stop", v)
	return err
}

// settle checks the options against each other and the model.
func (o *options) settle(x *server.Exchange) error {
	if n := x.Model().Context(); o.context > n {
		return fields.Invalid("options.num_ctx", "num_ctx is %d, and the model is loaded with a context of %d tokens; ask for no more, or start the server with --context %d", o.context, n, o.context)
	}
	g := &o.generation
	if err := x.LookBack(g, o.lastN, "options.repeat_last_n"); err != nil {
		return err
	}
	if !o.newlines && server.Penalizes(g) {
		e := fields.Unsupported("penalize_newline false is not supported with a penalty, which looks at all tokens; leave it out")
		e.Param = "options.penalize_newline"
		return e
	}
	return nil
}
