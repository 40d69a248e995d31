// Package modelfile reads GGUF files, safetensors files and the folders in
// which model hubs keep them as one thing: typed metadata and named tensors over
// a memory mapping. It knows the syntax of files and the meaning of none: which
// keys and tensors a model has is for others to say.
//
// A file that lies about itself is an error that names the file, the tensor or
// key, and the offset; reading allocates in proportion to what the file really
// holds, never to what it claims.
package modelfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/realizar/realizar/tensor"
)

// A Format is the format of the files that hold a model's tensors.
type Format uint8

// The formats that [Open] reads.
const (
	GGUF Format = iota + 1
	Safetensors
)

// String returns the format's name, "GGUF" or "safetensors".
func (f Format) String() string {
	switch f {
	case GGUF:
		return "GGUF"
	case Safetensors:
		return "safetensors"
	}
	return "unknown"
}

// A File is an opened model: one file, or the files of one folder. It does not
// change until it is closed and may be used from many goroutines.
type File struct {
	format   Format
	path     string
	size     int64
	meta     *Meta
	tensors  []*tensor.Tensor
	byName   map[string]*tensor.Tensor
	assets   map[string][]byte
	mappings []*mapping
	memory   allowance // for the headers of all files
}

// Format returns the format of the weights.
func (f *File) Format() Format { return f.format }

// Path returns the path that was opened, of a file or a folder.
func (f *File) Path() string { return f.path }

// Version identifies the files of weights by their paths, sizes and times of modification: two
// files with equal versions have equal weights, unless a file was changed and its time set back.
func (f *File) Version() string {
	text := new(strings.Builder)
	for _, m := range f.mappings {
		fmt.Fprintf(text, "%q %d %d\n", m.path, len(m.data), m.modified)
	}
	return text.String()
}

// Size returns the bytes of all files of weights together.
func (f *File) Size() int64 { return f.size }

// Meta returns the key/value pairs of a GGUF file, the first one's when there are
// several, or for safetensors the config.json of the folder, flattened; empty when
// there is none.
func (f *File) Meta() *Meta { return f.meta }

// Tensors returns the tensors in the order in which their data lies in the
// files, those of the first file first; one that is made of several stands where the
// numbers of its weights do. The slice and the tensors must not be written to.
func (f *File) Tensors() []*tensor.Tensor { return f.tensors }

// Tensor returns the tensor of that name and whether there is one.
func (f *File) Tensor(name string) (*tensor.Tensor, bool) {
	t, ok := f.byName[name]
	return t, ok
}

// Asset returns the content of a file that lies beside the weights, by its name
// within the folder, and whether there is one: "config.json",
// "generation_config.json", "tokenizer.json", "tokenizer.model",
// "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",
// "modules.json", "1_Pooling/config.json", and "additional_chat_templates/NAME.jinja". A GGUF file that was opened by its own
// path has no assets. The content stays valid after [File.Close] and must not be
// written to.
func (f *File) Asset(name string) ([]byte, bool) {
	data, ok := f.assets[name]
	return data, ok
}

// Release says that data, a part of a tensor's Data, will hardly be read again, so
// that the system need not keep its pages in memory. It stays readable. What is no
// part of the file is left alone. It must not be called after [File.Close].
func (f *File) Release(data []byte) {
	for _, m := range f.mappings {
		if m.letGo(data) {
			return
		}
	}
}

// Close gives the mapping back. The Data of the file's tensors must not be used
// afterwards: reading it may end the process.
func (f *File) Close() error {
	var errs []error
	for _, m := range f.mappings {
		errs = append(errs, m.close())
	}
	return errors.Join(errs...)
}
