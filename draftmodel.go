package realizar

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/draft"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/hub"
	"github.com/realizar/realizar/internal/memory"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
	"github.com/realizar/realizar/tokenizer"
)

// A draftModel is the model of [Options.Draft]. A nil draftModel is none.
type draftModel struct {
	file   *modelfile.File
	arch   *arch.Model
	engine *engine.Engine
	model  *draft.Model // once it has started
}

// openDraft opens the draft model that o names, for a model with that tokenizer, or returns nil if o
// names none. The tokens must be the same.
func openDraft(o *Options, of *arch.Model, tok *tokenizer.Tokenizer) (d *draftModel, err error) {
	if o.Speculative != SpeculativeDraft {
		return nil, nil
	}
	f, err := modelfile.Open(o.Draft)
	if err != nil {
		return nil, fmt.Errorf("the draft model: %w", err)
	}
	d = &draftModel{file: f}
	err = d.guard(func() (err error) {
		if d.arch, err = arch.Build(f); err != nil {
			return err
		}
		return d.check(of, tok, o.PreTokenizer)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the draft model %s: %w", o.Draft, err), f.Close())
	}
	return d, nil
}

// check returns an error unless d can follow the answers of a model.
func (d *draftModel) check(of *arch.Model, tok *tokenizer.Tokenizer, pre string) error {
	if of.Program.Whole || d.arch.Program.Whole {
		return fmt.Errorf("%w: only models that write text have draft models", ErrOptions)
	}
	own, err := hub.ReadTokenizer(d.file, pre)
	switch {
	case err != nil:
		return err
	case tok == nil:
		return fmt.Errorf("%w: the model has no tokenizer to compare the tokens with", ErrOptions)
	}
	return sameTokens(tok, own)
}

// sameTokens returns an error with the first token in which a draft model's tokenizer differs from
// that of the model. Tokens that only one of them has do not matter.
func sameTokens(tok, own *tokenizer.Tokenizer) error {
	for id := range int32(min(tok.VocabSize(), own.VocabSize())) {
		want, got := tok.Piece(id), own.Piece(id)
		if !bytes.Equal(want, got) || tok.IsSpecial(id) != own.IsSpecial(id) {
			return fmt.Errorf("%w: its token %d is %.40q, and that of the model %.40q; want a model with the same tokens", ErrOptions, id, got, want)
		}
	}
	return nil
}

// replica returns a draft model of the same file that has not started, for a replica of the model. It
// is stopped, and only d is closed.
func (d *draftModel) replica() *draftModel {
	if d == nil {
		return nil
	}
	return &draftModel{file: d.file, arch: d.arch}
}

// start loads the draft model on p's device.
func (d *draftModel) start(ctx context.Context, p *memory.Planner, vocab int) (err error) {
	d.engine, err = engine.New(ctx, d.arch.Program, p.Device, p.Draft.Config, func(w *tensor.Tensor, spare bool) {
		if spare {
			d.file.ReleaseTensor(w)
		}
	})
	if err != nil {
		return fmt.Errorf("the draft model: %w", err)
	}
	d.model = draft.NewModel(d.engine, vocab)
	return nil
}

// stop frees what start has taken.
func (d *draftModel) stop() error {
	if d == nil || d.engine == nil {
		return nil
	}
	err := d.engine.Close()
	d.engine = nil
	return err
}

// close closes the file.
func (d *draftModel) close() error {
	if d == nil {
		return nil
	}
	return d.file.Close()
}

// guard calls do and explains a fault in the file, see [modelfile.File.Guard].
func (d *draftModel) guard(do func() error) error {
	if d == nil {
		return do()
	}
	return d.file.Guard(do)
}

// openDraft opens the draft model that o names for the model of d.
func (d *Description) openDraft(o *Options) (*draftModel, error) {
	if o.Speculative != SpeculativeDraft {
		return nil, nil
	}
	f, err := modelfile.Open(d.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	tok, _ := hub.ReadTokenizer(f, o.PreTokenizer)
	return openDraft(o, &arch.Model{Program: d.program.Program}, tok)
}
