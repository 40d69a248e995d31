package realizar

import (
	"context"
	"fmt"
	"time"

	"github.com/realizar/realizar/tokenizer"
)

// An Infill is a text with a gap (fill in the middle). A model that was trained for it, as many
// code models are, answers with the text for the gap. Special tokens do not match in its texts.
type Infill struct {
	Before, After string // texts before and after the gap
	// Files are further files that are related to the text, the closest one last.
	Files []File
}

// A File is a file around an [Infill]. Its name is ignored if the model has no tokens for file
// names.
type File struct{ Name, Text string }

const (
	infillSnippet    = "\n\n--- snippet ---\n\n" // before a file without a name, or if the model has no tokens for files
	infillRepository = "repository\n"            // name of the repository
	infillFile       = "file\n"                  // name of the file with the gap
)

// infill returns the prompt of r.Infill.
func (m *Model) infill(ctx context.Context, tok *tokenizer.Tokenizer, r *Request, most int) (Prompt, error) {
	f, ok := tok.Infill()
	if !ok {
		return Prompt{}, fmt.Errorf("realizar: %w: Infill is set, but the tokenizer of the model has no infill tokens", ErrUnsuited)
	}
	begun := time.Now()
	w := &infillWriter{ctx: ctx, tok: tok, most: most}
	if bos, ok := tok.BOS(); ok && !r.Plain && tok.AddsBOS() {
		w.ids = append(w.ids, bos)
	}
	w.files(&f, r.Infill.Files)
	w.token(f.Prefix)
	w.text(r.Infill.Before)
	w.token(f.Suffix)
	w.text(r.Infill.After)
	w.token(f.Middle)
	if w.err != nil {
		return Prompt{}, w.err
	}
	return Prompt{Tokens: w.ids, Tokenize: time.Since(begun)}, checkTokens("prompt token", w.ids, m.Vocab())
}

// An infillWriter writes the parts of a prompt. It stops at the first error.
type infillWriter struct {
	ctx  context.Context
	tok  *tokenizer.Tokenizer
	most int // largest number of tokens; 0 is no limit
	ids  []int32
	err  error
}

func (w *infillWriter) token(id int32) {
	w.ids = append(w.ids, id)
	if w.err == nil && w.most > 0 && len(w.ids) > w.most {
		w.err = fmt.Errorf("realizar: %w", &ContextError{Prompt: len(w.ids), Context: w.most, More: true})
	}
}

// text adds a text. Special tokens do not match in it.
func (w *infillWriter) text(text string) {
	if w.err != nil || text == "" {
		return
	}
	ids, err := w.tok.EncodeWithin(w.ctx, limitsOf(w.ctx, w.most), []tokenizer.Span{{Text: text}}, false)
	if err != nil {
		w.err = tooLong(err, w.most)
		return
	}
	if w.ids = append(w.ids, ids...); w.most > 0 && len(w.ids) > w.most {
		w.err = fmt.Errorf("realizar: %w", &ContextError{Prompt: len(w.ids), Context: w.most, More: true})
	}
}

// files adds the files around the text.
func (w *infillWriter) files(f *tokenizer.Infill, files []File) {
	if len(files) == 0 {
		return
	}
	named := f.Repository >= 0 && f.Separator >= 0
	if named {
		w.token(f.Repository)
		w.text(infillRepository)
	}
	for _, file := range files {
		if named && file.Name != "" {
			w.token(f.Separator)
			w.text(file.Name + "\n")
		} else {
			w.text(infillSnippet)
		}
		w.text(file.Text)
	}
	if named {
		w.token(f.Separator)
		w.text(infillFile)
	}
}
