// Package realizar runs open-weight language models.
//
// A [Model] is opened from a GGUF file, a safetensors file or a folder as model
// hubs lay it out, and answers a [Request] or a [ChatRequest] with a sequence of
// [Event]s:
//
//	m, err := realizar.Open(ctx, "model.gguf", realizar.Options{})
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	for event, err := range m.Generate(ctx, &realizar.Request{Prompt: "Once upon a time"}) {
//		if err != nil {
//			return err
//		}
//		fmt.Print(event.Text)
//	}
//
// Leaving the loop or cancelling the context stops the work. A Model may be
// used by many goroutines at once. What a request answers depends on the model,
// the request and its seed alone, never on who else is being served.
//
// Nothing is cut off silently: a prompt that does not fit is an error with both
// numbers, and an answer that ends early says why.
package realizar

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/hub"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tokenizer"
)

// A Model is an opened model. Its methods may be called by many goroutines.
type Model struct {
	file   *modelfile.File
	arch   *arch.Model
	engine *engine.Engine
	device modelDevice

	parallel   int           // answers under way at one time
	hostMemory int64         // see [Model.HostMemory]
	opening    time.Duration // see [LoadTimings]

	tok    *tokenizer.Tokenizer
	tokErr error // why tok is nil
	ends   map[int32]bool

	strayEnds []int32 // see [Model.StrayEnds]

	templates    hub.Templates
	templateErr  error
	pooling      Pooling
	poolingErr   error
	sigmoid      bool  // scores are the sigmoid of the head's logits, see [Model.Rank]
	untyped      bool  // the model is not told which text of a pair a token is of
	rankErr      error // why texts cannot be ranked, though there is a head
	defaults     Sampling
	hasDefaults  bool
	specialNames map[string]string // bos_token and so on, for templates

	vocabulary func() *grammar.Vocabulary // made when it is first needed
	turns      turnCache
	formsMutex sync.Mutex
	forms      map[*chat.Template]*shownForm // that were looked for; nil: not found

	canary *canary
	close  func() error
}

// Open opens the model at path: a GGUF file, a safetensors file, or a folder
// with one of these as model hubs lay it out. It returns when the model is
// ready to run, or ctx ends. A weight that is NaN or infinite is an error that
// wraps [modelfile.ErrFormat].
//
// The files must stay as they are until the model is closed, since weights may be
// read from them at any time. Where one is cut short, loading or the requests that
// need what is gone end with such an error too.
func Open(ctx context.Context, path string, o Options) (*Model, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	begun := time.Now()
	f, err := modelfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("realizar: %w", err)
	}
	var m *Model
	err = f.Guard(func() (err error) {
		m, err = open(ctx, f, o)
		return err
	})
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("realizar: %w", err)
	}
	m.opened(time.Since(begun))
	return m, nil
}

func open(ctx context.Context, f *modelfile.File, o Options) (*Model, error) {
	m := &Model{file: f}
	m.vocabulary = sync.OnceValue(m.makeVocabulary)
	var err error
	if m.arch, err = arch.Build(f); err != nil {
		return nil, err
	}
	if err := m.readText(o.PreTokenizer); err != nil {
		return nil, err
	}
	if err := m.start(ctx, &o); err != nil {
		return nil, err
	}
	return m, nil
}

// readText reads the tokenizer, the chat templates and the model's own
// sampling. A model without a tokenizer or a template still runs on token ids,
// so that what is wrong with these is reported where they are needed, but a
// pre-tokenizer that was asked for has to be there.
func (m *Model) readText(pre string) error {
	generation, err := hub.ReadGeneration(m.file)
	if err != nil {
		return err
	}
	m.tok, m.tokErr = hub.ReadTokenizer(m.file, pre)
	if pre != "" && m.tokErr != nil {
		return m.tokErr
	}
	m.ends = hub.EndTokens(m.file, m.tok, generation)
	if err := m.checkEnds(); err != nil {
		return err
	}
	m.templates, m.templateErr = hub.ReadTemplates(m.file)
	if m.defaults, m.hasDefaults, err = recommended(m.file, generation); err != nil {
		return err
	}
	m.pooling, m.poolingErr = poolingOf(m.file, m.arch.Program.Whole)
	m.sigmoid, m.rankErr = hub.Sigmoid(m.file, m.arch.Spec.Labels)
	m.untyped = hub.WithoutTypes(m.file)
	m.specialNames = hub.SpecialTexts(m.tok)
	return nil
}

// checkEnds puts aside the ids that end answers and that the model does not have, which
// some files name beside others. Where there are no others, no answer would end.
func (m *Model) checkEnds() error {
	for id := range m.ends {
		if int(id) >= m.Vocab() {
			m.strayEnds = append(m.strayEnds, id)
			delete(m.ends, id)
		}
	}
	slices.Sort(m.strayEnds)
	if len(m.strayEnds) > 0 && len(m.ends) == 0 {
		return fmt.Errorf("%w: the files end answers with token %d, and the model's vocabulary has %d", ErrConfig, m.strayEnds[0], m.Vocab())
	}
	return nil
}

// StrayEnds are the ids that end answers by the model's files and that it does not have, in
// ascending order: they are never chosen.
func (m *Model) StrayEnds() []int32 { return slices.Clone(m.strayEnds) }

// Close frees everything. Answers under way end with [ErrClosed]; every call
// returns when nothing is at work any longer.
func (m *Model) Close() error { return m.close() }

// Context is the number of tokens that a prompt and its answer may have
// together.
func (m *Model) Context() int { return m.engine.Context() }

// Vocab is the number of token ids; ids are below it.
func (m *Model) Vocab() int { return m.arch.Spec.Vocab }

// Parallel is the number of answers that may be under way at one time.
func (m *Model) Parallel() int { return m.parallel }

// EmbeddingLength is the number of elements of an embedding.
func (m *Model) EmbeddingLength() int { return m.arch.Spec.Hidden }

// Labels is the number of scores that [Model.Rank] gives a document; 0 where the model
// has no head for that.
func (m *Model) Labels() int { return m.arch.Spec.Labels }

// HostMemory is how many bytes of the host's memory were planned for the model: for
// weights that are laid out anew or stream, the cache, and a step's scratch. The file's
// pages, which the system may take back, are not part of it.
func (m *Model) HostMemory() int64 { return m.hostMemory }

// Damage is what is wrong with weights that are read from the model's file while the model
// runs, where something has written into the file; nil where all is well. A thousand pages
// evenly apart are looked at again and again, which takes about a minute for all of them: a
// change that touches none of these is not noticed.
func (m *Model) Damage() error { return m.canary.damage() }

// unsuited says that the model is not made for a purpose, and what it is made for.
func (m *Model) unsuited(purpose string) error {
	made := "writing text"
	switch {
	case m.Labels() > 0:
		made = "scores of pairs of texts"
	case m.arch.Program.Whole:
		made = "embeddings"
	}
	return fmt.Errorf("realizar: %w: %s is asked of it, and a %s is for %s", ErrUnsuited, purpose, m.arch.Architecture, made)
}

// Device is where the model runs: "cpu" or "cuda".
func (m *Model) Device() string { return m.device.Name() }

// DeviceName is what the device is called: "NVIDIA H200". It is empty for the
// processor.
func (m *Model) DeviceName() string { return m.device.Description() }

// Streaming is how weights come to the device; nil where none do, as all lie where
// they are computed with.
func (m *Model) Streaming() *Streaming { return m.device.streaming }

// DeviceProblem is why the model runs on the processor although the choice was
// open and the system has a driver for GPUs, or [Options] were for one; nil where there
// is nothing to say.
func (m *Model) DeviceProblem() error { return m.device.problem }

// DefaultSampling is what the model's makers recommend, and false where the
// files do not say.
func (m *Model) DefaultSampling() (Sampling, bool) { return m.defaults, m.hasDefaults }

// Tokenizer is the model's tokenizer, or an error that wraps [ErrNoTokenizer]
// and says what is wrong with it.
func (m *Model) Tokenizer() (*tokenizer.Tokenizer, error) {
	if m.tok == nil {
		return nil, m.tokErr
	}
	return m.tok, nil
}

// ChatTemplate is the model's chat template, or an error that wraps
// [ErrNoTemplate] and says what is wrong with it.
func (m *Model) ChatTemplate() (*chat.Template, error) {
	return m.template(false)
}

// template is the chat template to use: the one for tools if there are tools and it is
// there.
func (m *Model) template(tools bool) (*chat.Template, error) {
	if m.templateErr != nil {
		return nil, m.templateErr
	}
	return m.templates.Choose(m.file.Path(), tools)
}

// recommended is the sampling that a model's makers recommend, and whether they do.
func recommended(f hub.Source, generation *modelfile.Meta) (Sampling, bool, error) {
	p, ok, err := hub.ReadSampling(f, generation)
	return Sampling{
		RepetitionPenalty: p.Repetition, Temperature: p.Temperature, TopK: p.TopK, Typical: p.Typical, TopP: p.TopP, MinP: p.MinP,
	}, ok, err
}
