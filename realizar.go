// Package realizar runs open-weight language models on CPUs and NVIDIA GPUs, without cgo.
//
// [Open] loads a model from a GGUF file, a safetensors file or a folder downloaded from a model
// hub. [Model.Generate] continues a text and [Model.Chat] answers a conversation. Both return an
// iterator of [Event] values, which carry the answer as it is generated:
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
// Leaving the loop or cancelling the context ends the request.
//
// # Requests
//
// A [Request] or [ChatRequest] has one prompt and asks for one or more answers
// ([Generation.Choices]). Prefill steps run the prompt. Decode steps then generate the tokens of
// each answer one after the other. The last event of an answer has a [Finish], which says why the
// answer ended, how many tokens it used and how long it took.
//
// The methods of a Model may be called from many goroutines. Running requests share each step of
// the model, up to [Options.Parallel] answers at a time; other requests wait in a queue. The
// answers to a request depend only on the model, its options, the request and the seed, never on
// the other requests.
//
// Prompts are never truncated. A prompt that exceeds the context is a [*ContextError] with both
// lengths.
//
// # Memory
//
// Open plans the memory for weights, the KV cache and scratch before it loads anything. If the
// model does not fit, Open returns an error that wraps [ErrMemory]. [Options.Context],
// [Options.Parallel], [Options.Memory] and [Options.DeviceMemory] control the plan.
// [Description.Memory] computes it without loading the model.
//
// # GPUs
//
// A program that imports package github.com/realizar/realizar/cuda can run models on NVIDIA GPUs.
// It needs the GPU's driver and no other software. [Options.Device] selects the device.
//
// # Further functions
//
//   - [JSONSchema], [JSONOf], [Regexp], [OneOf], [GBNF], [Lark] and [Model.StructuralTag] make a
//     [Grammar], which constrains an answer.
//   - [Model.Embed] computes embeddings, [Model.Rank] scores documents, and [Model.Logits] returns
//     raw logits.
//   - [Describe] reads a model's files without loading the model.
//   - [OpenTokenizer] and [OpenTemplate] open a tokenizer or a chat template alone.
//   - [Model.Metrics] and [Options.Watch] observe a running model.
package realizar

import (
	"context"
	"errors"
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

// A Model is a loaded model. Its methods are safe for concurrent use by multiple goroutines.
type Model struct {
	file   *modelfile.File
	files  weightFiles // file, and that of the program's head if it has one
	arch   *arch.Model
	engine *engine.Group
	draft  *draftModel // or nil
	device modelDevice

	parallel   int           // see [Model.Parallel]
	hostMemory int64         // see [Model.HostMemory]
	opening    time.Duration // see [LoadTimings]
	identity   [32]byte      // see [Model.CacheIdentity]; zeros without Options.TransferCache

	tok    *tokenizer.Tokenizer
	tokErr error // why tok is nil
	ends   map[int32]bool

	strayEnds []int32 // see [Model.StrayEnds]

	templates    hub.Templates
	templateErr  error
	pooling      Pooling
	poolingErr   error
	sigmoid      bool  // [Rank.Scores] are the sigmoid of the logits
	untyped      bool  // the model has no token types, which tell the texts of a pair apart
	rankErr      error // why the model cannot rank although it has a head for it
	defaults     Sampling
	hasDefaults  bool
	specialNames map[string]string // texts of special tokens by template variable, such as bos_token

	vocabulary func() *grammar.Vocabulary // computed by the first call
	turns      turnCache
	formsMutex sync.Mutex
	forms      map[*chat.Template]*shownForm // nil for a template that shows no form

	canary *canary
	close  func() error
}

// Open loads the model at path, which names a GGUF file, a safetensors file, or a folder with one
// of these as model hubs publish it. It returns when the model is ready to run or ctx is done. If a
// weight is NaN or infinite, Open returns an error that wraps [modelfile.ErrFormat].
//
// The files must not change until the model is closed, because steps may read weights from them at
// any time. If a file is truncated, Open, or a request that needs the missing weights, returns an
// error that wraps [modelfile.ErrFormat].
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
	var head weightFiles
	if m.arch, head, err = o.build(f); err != nil {
		return nil, err
	}
	m.files = append(weightFiles{f}, head...)
	err = m.readText(o.PreTokenizer)
	if err == nil {
		m.draft, err = openDraft(&o, m.arch, m.tok)
	}
	if err == nil {
		err = m.draft.guard(func() error { return head.Guard(func() error { return m.start(ctx, &o) }) })
	}
	if err != nil {
		return nil, errors.Join(err, m.draft.close(), head.Close())
	}
	return m, nil
}

// readText reads the tokenizer, the chat templates and the recommended sampling. A model without a
// tokenizer or a template still runs on token ids, so errors in these are reported when they are
// needed. If the options name a pre-tokenizer, an error of the tokenizer is returned at once.
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

// checkEnds moves end tokens outside the vocabulary, which some files list, from ends to strayEnds.
// If no end token remains, no answer would end, so it returns an error.
func (m *Model) checkEnds() error {
	for id := range m.ends {
		if int(id) >= m.Vocab() {
			m.strayEnds = append(m.strayEnds, id)
			delete(m.ends, id)
		}
	}
	slices.Sort(m.strayEnds)
	if len(m.strayEnds) > 0 && len(m.ends) == 0 {
		return fmt.Errorf("%w: the files name token %d as the end of answers, which is outside the vocabulary of %d tokens, and no other", ErrConfig, m.strayEnds[0], m.Vocab())
	}
	return nil
}

// StrayEnds returns the end tokens in the model's files that are outside its vocabulary, in
// ascending order. They are never sampled.
func (m *Model) StrayEnds() []int32 { return slices.Clone(m.strayEnds) }

// Close ends running and queued requests with [ErrClosed], waits for the running step, and frees
// the model's memory. Further calls wait for the first one and return its error.
func (m *Model) Close() error { return m.close() }

// Context returns the largest number of tokens that a prompt and one answer may have together.
func (m *Model) Context() int { return m.engine.Context() }

// Vocab returns the size of the vocabulary. Token ids are from 0 to Vocab-1.
func (m *Model) Vocab() int { return m.arch.Spec.Vocab }

// Parallel returns the largest number of answers that run at a time, on all replicas together.
func (m *Model) Parallel() int { return m.parallel }

// EmbeddingLength returns the number of elements of an embedding.
func (m *Model) EmbeddingLength() int { return m.arch.Spec.Hidden }

// Labels returns the number of scores that [Model.Rank] computes for a document. It is 0 if the
// model has no classification head.
func (m *Model) Labels() int { return m.arch.Spec.Labels }

// HostMemory returns the bytes of host memory that were planned for the model. On the CPU these are
// repacked weights, the KV cache and scratch, on a GPU streamed weights in pinned memory, and in
// both cases [Options.HostCache]. Pages of the mapped file do not count, since the system can
// reclaim them.
func (m *Model) HostMemory() int64 { return m.hostMemory }

// Damage returns an error if weights that the running model reads from its file have changed since
// it was opened, and nil otherwise. The model verifies about a thousand pages of 4 KiB, evenly
// spaced, once a minute. It does not notice a change outside these pages.
func (m *Model) Damage() error { return m.canary.damage() }

// unsuited returns an [ErrUnsuited] that names the purpose and what the model is made for.
func (m *Model) unsuited(purpose string) error {
	made := "writing text"
	switch {
	case m.Labels() > 0:
		made = "scores of pairs of texts"
	case m.arch.Program.Whole:
		made = "embeddings"
	}
	return fmt.Errorf("realizar: %w: the request asks for %s, but a %s model is for %s", ErrUnsuited, purpose, m.arch.Architecture, made)
}

// Device returns the kind of device that the model runs on: "cpu" or "cuda".
func (m *Model) Device() string { return m.device.Name() }

// Replicas returns the number of copies of the model, see [Options.Replicas].
func (m *Model) Replicas() int { return len(m.engine.Engines()) }

// DeviceName returns the name of the GPU, for example "NVIDIA H200". It is empty on the CPU.
func (m *Model) DeviceName() string { return m.device.Description() }

// Streaming returns how weights are streamed to the device, or nil if the device holds all weights.
func (m *Model) Streaming() *Streaming { return m.device.streaming }

// DeviceProblem returns why the model runs on the CPU if [Options.Device] allowed a GPU, and the
// system has a GPU driver or other options apply to a GPU only. Otherwise it returns nil.
func (m *Model) DeviceProblem() error { return m.device.problem }

// DefaultSampling returns the sampling parameters that the model's files recommend, and false if
// they recommend none. Requests do not use them unless the caller copies them to the Sampling of
// their [Generation].
func (m *Model) DefaultSampling() (Sampling, bool) { return m.defaults, m.hasDefaults }

// Tokenizer returns the model's tokenizer. If the model has none that can be used, the error wraps
// [ErrNoTokenizer] and says why.
func (m *Model) Tokenizer() (*tokenizer.Tokenizer, error) {
	if m.tok == nil {
		return nil, m.tokErr
	}
	return m.tok, nil
}

// ChatTemplate returns the model's chat template for conversations without tools. If the model has
// none that can be used, the error wraps [ErrNoTemplate] and says why.
func (m *Model) ChatTemplate() (*chat.Template, error) {
	return m.template(false)
}

// template returns the chat template to use. With tools it prefers the model's template for tools.
func (m *Model) template(tools bool) (*chat.Template, error) {
	if m.templateErr != nil {
		return nil, m.templateErr
	}
	return m.templates.Choose(m.file.Path(), tools)
}

// recommended returns the sampling parameters that a model's files recommend, and false if they
// recommend none.
func recommended(f hub.Source, generation *modelfile.Meta) (Sampling, bool, error) {
	p, ok, err := hub.ReadSampling(f, generation)
	return Sampling{
		RepetitionPenalty: p.Repetition, Temperature: p.Temperature, TopK: p.TopK, Typical: p.Typical, TopP: p.TopP, MinP: p.MinP,
	}, ok, err
}
