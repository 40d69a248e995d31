package realizar

import (
	"context"
	"fmt"
	"time"

	"github.com/realizar/realizar/tokenizer"
)

// An Infill is a text with a gap. A model that was trained so, as many are that write code,
// answers with what belongs there. All of it is plain text.
type Infill struct {
	Before, After string // the gap
	// Files are others that the text may have to do with, the nearest last.
	Files []File
}

// A File is one of those around an [Infill]. A model that knows no such names is not told
// them.
type File struct{ Name, Text string }

// What stands before a file that has no name, or for a model that knows of no files. A model that
// knows them is told these names of the repository, and of the file with the gap.
const (
	infillSnippet    = "\n\n--- snippet ---\n\n"
	infillRepository = "repository\n"
	infillFile       = "file\n"
)

// infill is the prompt of a text with a gap.
func (m *Model) infill(ctx context.Context, tok *tokenizer.Tokenizer, r *Request, most int) (Prompt, error) {
	f, ok := tok.Infill()
	if !ok {
		return Prompt{}, fmt.Errorf("realizar: %w: a gap in a text is to be filled, and its tokenizer has no tokens for the text before one, after one and in between", ErrUnsuited)
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

// An infillWriter adds up the parts of a prompt. Its first error ends it.
type infillWriter struct {
	ctx  context.Context
	tok  *tokenizer.Tokenizer
	most int // tokens; 0: any number
	ids  []int32
	err  error
}

func (w *infillWriter) token(id int32) {
	w.ids = append(w.ids, id)
	if w.err == nil && w.most > 0 && len(w.ids) > w.most {
		w.err = fmt.Errorf("realizar: %w", &ContextError{Prompt: len(w.ids), Context: w.most, More: true})
	}
}

// text adds a text in which no special token matches.
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

// files adds the files around the text, if there are any.
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
